/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ipc_rig.h"
#include "raw.h"

void
raw_connect(struct raw *r, const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	memset(r, 0, sizeof(*r));
	r->uar_fd = r->sleep_fd = r->kick_fd = -1;
	strncpy(addr.sun_path, path, sizeof(addr.sun_path) - 1);
	r->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_true(r->sock >= 0);
	assert_int_equal(connect(r->sock, (struct sockaddr *)&addr, sizeof(addr)), 0);
}

void
raw_close(struct raw *r)
{
	if (r->uar_fd >= 0)
		close(r->uar_fd);
	if (r->sleep_fd >= 0)
		close(r->sleep_fd);
	if (r->kick_fd >= 0)
		close(r->kick_fd);
	close(r->sock);
}

int
raw_packet(struct raw *r, const void *bytes, size_t len, const int *fds, unsigned int num_fds)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * 253)] = {0};
	struct iovec iov = {(void *)(uintptr_t)bytes, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

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
	return sendmsg(r->sock, &msg, MSG_NOSIGNAL) >= 0 ? 0 : -errno;
}

static int
request_fds(struct raw *r, uint16_t op, const void *body, size_t len, const int *fds,
	    unsigned int num_fds)
{
	struct {
		struct ipc_request head;
		uint8_t body[IPC_BODY_MAX];
	} m = {.head = {HCA_CTL_VERSION, op, (uint32_t)len, r->seq}};

	if (len != 0)
		memcpy(m.body, body, len);
	return raw_packet(r, &m, sizeof(m.head) + len, fds, num_fds);
}

int
raw_request(struct raw *r, uint16_t op, const void *body, size_t len, int fd)
{
	return request_fds(r, op, body, len, &fd, fd >= 0 ? 1 : 0);
}

static void
take_fds(struct raw *r, struct msghdr *msg)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);

	r->fds[0] = r->fds[1] = r->fds[2] = r->fds[3] = -1;
	if (c != NULL && c->cmsg_type == SCM_RIGHTS)
		memcpy(r->fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
}

int
raw_reply(struct raw *r, int ms)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * HCA_CTL_FDS_MAX)];
	struct iovec iov[2] = {{&r->head, sizeof(r->head)}, {r->body, sizeof(r->body)}};
	struct msghdr msg = {
		.msg_iov = iov,
		.msg_iovlen = 2,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct pollfd p = {.fd = r->sock, .events = POLLIN};

	if (poll(&p, 1, ms) != 1)
		return -1;
	if (recvmsg(r->sock, &msg, MSG_CMSG_CLOEXEC) <= 0)
		return 0;
	take_fds(r, &msg);
	r->seq++;
	return 1;
}

static int
answered(struct raw *r, int err)
{
	if (err != 0)
		return err == -ECONNRESET ? -EPIPE : err;
	switch (raw_reply(r, RIG_TIMEOUT_MS)) {
	case 1:
		return r->head.err;
	case 0:
		return -EPIPE;
	default:
		return -ETIMEDOUT;
	}
}

int
raw_greet_as(struct raw *r, uint16_t version, struct hca_ctl_offer offer)
{
	const struct {
		struct ipc_request head;
		struct hca_ctl_hello hello;
	} m = {{version, HCA_CTL_HELLO, sizeof(m.hello), r->seq}, {IPC_MAGIC, offer}};
	int err = answered(r, raw_packet(r, &m, sizeof(m), NULL, 0));

	if (err != 0)
		return err;
	r->uar_fd = r->fds[0];
	r->sleep_fd = r->fds[1];
	r->kick_fd = r->fds[2];
	r->seq = r->welcome.nonce + 1;
	return 0;
}

int
raw_greet(struct raw *r)
{
	return raw_greet_as(r, HCA_CTL_VERSION, (struct hca_ctl_offer){0});
}

void
raw_open(struct raw *r, const char *path)
{
	raw_connect(r, path);
	assert_int_equal(raw_greet(r), 0);
}

void
raw_open_today(struct raw *r, const char *path)
{
	const struct hca_ctl_offer offer = {HCA_CTL_OLDER, HCA_CTL_MINOR, HCA_CTL_FEATURES};

	raw_connect(r, path);
	assert_int_equal(raw_greet_as(r, HCA_CTL_VERSION, offer), 0);
}

int
raw_call(struct raw *r, uint16_t op, const void *body, size_t len, int fd)
{
	return answered(r, raw_request(r, op, body, len, fd));
}

int
raw_call_fds(struct raw *r, uint16_t op, const void *body, size_t len, const int *fds,
	     unsigned int num_fds)
{
	return answered(r, request_fds(r, op, body, len, fds, num_fds));
}

int
raw_memory(struct raw *r, int mem, int maps)
{
	const int fds[] = {mem, maps};

	return raw_call_fds(r, HCA_CTL_MEMORY, NULL, 0, fds, 2);
}

int
raw_attach(struct raw *r, int fd, uint64_t va, uint64_t length, uint64_t offset)
{
	return raw_attach_as(r, fd, va, length, offset, HCA_CTL_SEGMENT_SEAL);
}

int
raw_attach_as(struct raw *r, int fd, uint64_t va, uint64_t length, uint64_t offset, uint32_t flags)
{
	const struct hca_ctl_segment segment = {va, length, offset, flags, 0};

	return raw_call(r, HCA_CTL_ATTACH, &segment, sizeof(segment), fd);
}
