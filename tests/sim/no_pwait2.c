/* SPDX-License-Identifier: BSD-3-Clause */

/* epoll_pwait2() of a kernel or a container that has none: linked with --wrap. */

#include <errno.h>
#include <sys/epoll.h>
#include <time.h>

int __wrap_epoll_pwait2(int fd, struct epoll_event *events, int n, const struct timespec *t,
			const void *mask);

int
__wrap_epoll_pwait2(int fd, struct epoll_event *events, int n, const struct timespec *t,
		    const void *mask)
{
	(void)fd;
	(void)events;
	(void)n;
	(void)t;
	(void)mask;
	errno = ENOSYS;
	return -1;
}
