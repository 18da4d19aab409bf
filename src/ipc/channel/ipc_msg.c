/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ipc_msg.h"

void
ipc_close_fds(int *fds, unsigned int num_fds)
{
	for (unsigned int i = 0; i < num_fds; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

bool
ipc_fit(void *body, size_t len, size_t bytes)
{
	const uint8_t *more = body;

	if (len < bytes)
		memset((uint8_t *)body + len, 0, bytes - len);
	for (size_t i = bytes; i < len; i++)
		if (more[i] != 0)
			return false;
	return true;
}

int
ipc_send(int sock, const void *head, size_t head_bytes, const void *body, size_t body_bytes,
	 const int *fds, unsigned int num_fds, int flags)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * HCA_CTL_FDS_MAX)] = {0};
	struct iovec iov[2] = {
		{(void *)(uintptr_t)head, head_bytes},
		{(void *)(uintptr_t)body, body_bytes},
	};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = body_bytes != 0 ? 2 : 1};
	ssize_t n;

	if (num_fds > HCA_CTL_FDS_MAX)
		return -EINVAL;
	if (num_fds != 0) {
		struct cmsghdr *c;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * num_fds);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * num_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * num_fds);
	}
	do {
		n = sendmsg(sock, &msg, MSG_NOSIGNAL | flags);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	return errno == ECONNRESET ? -EPIPE : -errno;
}

/* Take over all descriptors of the message; those without room are closed. */
static unsigned int
take_fds(struct msghdr *msg, int *fds, unsigned int room)
{
	unsigned int n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
		size_t count;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (n < room)
				fds[n] = fd;
			else
				close(fd);
			n++;
		}
	}
	return n;
}

ssize_t
ipc_receive(int sock, void *message, size_t bytes, int *fds, unsigned int *num_fds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * IPC_FDS_PER_MESSAGE)];
	struct iovec iov = {message, bytes};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	unsigned int room = *num_fds, n, resets = 0;
	ssize_t got;

	*num_fds = 0;
	/*
	 * a reset is reported once, in front of the messages that the other end has sent before it
	 * closed
	 */
	do {
		got = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (got < 0 && (errno == EINTR || (errno == ECONNRESET && resets++ == 0)));
	if (got < 0)
		return errno == ECONNRESET ? 0 : -errno;
	n = take_fds(&msg, fds, room);
	*num_fds = n < room ? n : room;
	if (got > 0 && n <= room && (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0)
		return got;
	/* the message is complete, but this process may have no more descriptors */
	if (got > 0 && n <= room && (msg.msg_flags & MSG_TRUNC) == 0)
		return -EMFILE;
	/* an empty packet, which looks like the end of the stream, may also carry descriptors */
	return got == 0 ? 0 : -EBADMSG;
}
