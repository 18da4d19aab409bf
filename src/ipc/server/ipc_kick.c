/* SPDX-License-Identifier: BSD-3-Clause */

/* How a client wakes the worker that checks its doorbells. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ipc_msg.h"
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

static uint32_t
sleep_offset(const struct ipc_sleep *sleep, uint32_t pipe)
{
	return sleep != NULL ? sleep->offset[pipe] : 0;
}

int
ipc_kick_of(struct ipc_session *s, uint32_t pipe, uint32_t *offset, int *fd)
{
	const struct ipc_sleep *sleep = s->server->config.sleep;
	int err = 0;

	if (pipe >= s->pipes)
		return ipc_fail(-EINVAL, "pipeline %u: expected less than %u", pipe, s->pipes);
	if (s->kick_fd[pipe] < 0) {
		s->kick_fd[pipe] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (s->kick_fd[pipe] < 0)
			return ipc_fail(-errno, "eventfd: %s", strerror(errno));
		if (sleep != NULL)
			err = sleep->add(sleep->arg, s->uar_page, pipe, s->kick_fd[pipe]);
	}
	if (err != 0) {
		close(s->kick_fd[pipe]);
		s->kick_fd[pipe] = -1;
		return ipc_fail(err, "the device does not take an eventfd: %s", strerror(-err));
	}
	*offset = sleep_offset(sleep, pipe);
	*fd = fcntl(s->kick_fd[pipe], F_DUPFD_CLOEXEC, 0);
	return *fd >= 0 ? 0 : ipc_fail(-errno, "eventfd: %s", strerror(errno));
}

int
ipc_kick_open(struct ipc_session *s, uint32_t *offset, int *fds)
{
	const struct ipc_sleep *sleep = s->server->config.sleep;

	fds[0] = sleep != NULL ? fcntl(sleep->page_fd, F_DUPFD_CLOEXEC, 0) : awake_page();
	if (fds[0] < 0)
		return ipc_fail(-errno, "the sleep words: %s", strerror(errno));
	return ipc_kick_of(s, 0, offset, &fds[1]);
}

void
ipc_kick_close(struct ipc_session *s)
{
	const struct ipc_sleep *sleep = s->server->config.sleep;

	if (sleep != NULL && s->kick_fd[0] >= 0)
		sleep->remove(sleep->arg, s->uar_page);
	ipc_close_fds(s->kick_fd, HCA_UAR_PIPES_MAX);
}
