/* SPDX-License-Identifier: BSD-3-Clause */

/* How a client wakes the worker that checks its doorbells. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ipc_server_impl.h"

/* For workers that never sleep: a page that says so. */
static int
awake_page(void)
{
	int fd = memfd_create("softhca-awake", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 ||
	    (ftruncate(fd, HCA_UAR_PAGE_SIZE) == 0 &&
	     fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0))
		return fd;
	close(fd);
	return -1;
}

/* The session keeps one descriptor, the other one is sent. */
int
ipc_kick_open(struct ipc_session *s, int *fds)
{
	const struct ipc_sleep *sleep = s->server->config.sleep;
	int page = sleep != NULL ? fcntl(sleep->page_fd, F_DUPFD_CLOEXEC, 0) : awake_page(),
	    err = 0;

	if (page < 0)
		return ipc_fail(-errno, "the sleep words: %s", strerror(errno));
	fds[0] = page;
	s->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->kick_fd < 0)
		return ipc_fail(-errno, "eventfd: %s", strerror(errno));
	s->kicks = true;
	if (sleep != NULL)
		err = sleep->add(sleep->arg, s->uar_page, 0, s->kick_fd);
	if (err != 0)
		return ipc_fail(err, "the device does not take an eventfd: %s", strerror(-err));
	fds[1] = fcntl(s->kick_fd, F_DUPFD_CLOEXEC, 0);
	return fds[1] >= 0 ? 0 : ipc_fail(-errno, "eventfd: %s", strerror(errno));
}

void
ipc_kick_close(struct ipc_session *s)
{
	const struct ipc_sleep *sleep = s->server->config.sleep;

	if (!s->kicks)
		return;
	s->kicks = false;
	if (sleep != NULL)
		sleep->remove(sleep->arg, s->uar_page);
	close(s->kick_fd);
}
