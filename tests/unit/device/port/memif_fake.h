/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_DEVICE_PORT_MEMIF_FAKE_H
#define TESTS_UNIT_DEVICE_PORT_MEMIF_FAKE_H

/* Peers of a memif port that send message by message. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "memif_rig.h"
#include "port/port_memif_proto.h"

#define FAKE_LOG 6u
#define FAKE_SLOTS (1u << FAKE_LOG)
#define FAKE_BUFFER 2048u
#define FAKE_RING 2048u /* bytes of a header and the descriptors */
#define FAKE_SIZE (2 * FAKE_RING + 2 * FAKE_SLOTS * FAKE_BUFFER)

struct fake {
	int fd, listener;
	int memory, event[2]; /* event: to the server, to the client */
	uint8_t *base;
	uint64_t size;
	struct memif_ring *to_server, *to_client;
};

static inline struct sockaddr_un
fake_address(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", rig_socket());
	return a;
}

static inline void
fake_dial(struct fake *f)
{
	struct sockaddr_un a = fake_address();

	*f = (struct fake){.listener = -1, .memory = -1, .event = {-1, -1}};
	f->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(f->fd, (struct sockaddr *)&a, sizeof(a)), 0);
}

static inline void
fake_listen(struct fake *f)
{
	struct sockaddr_un a = fake_address();

	*f = (struct fake){.fd = -1, .memory = -1, .event = {-1, -1}};
	f->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f->listener, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(f->listener, 4), 0);
}

/* Disconnect without a message. A listener stays open. */
static inline void
fake_leave(struct fake *f)
{
	int *const fds[] = {&f->fd, &f->memory, &f->event[0], &f->event[1]};

	if (f->base != NULL)
		munmap(f->base, f->size);
	f->base = NULL;
	for (size_t i = 0; i < RTE_DIM(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

static inline bool
fake_send(struct fake *f, const void *bytes, size_t length, const int *fds, size_t n)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
	union {
		char bytes[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n != 0) {
		h.msg_control = control.bytes;
		h.msg_controllen = CMSG_SPACE(n * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, n * sizeof(int));
	}
	return sendmsg(f->fd, &h, MSG_NOSIGNAL) == (ssize_t)length;
}

static inline bool
fake_say(struct fake *f, const struct memif_message *m, int fd)
{
	return fake_send(f, m, sizeof(*m), &fd, fd >= 0);
}

/* Type of the next message; 0: the connection has ended. */
static inline unsigned int
fake_hear(struct fake *f, struct memif_message *m, int *fd)
{
	struct iovec iov = {.iov_base = m, .iov_len = sizeof(*m)};
	struct pollfd p = {.fd = f->fd, .events = POLLIN};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr h = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	ssize_t n;

	if (fd != NULL)
		*fd = -1;
	assert_int_equal(poll(&p, 1, (int)TIMEOUT_MS), 1);
	n = recvmsg(f->fd, &h, MSG_CMSG_CLOEXEC);
	if (n != sizeof(*m))
		return 0;
	if (fd != NULL && CMSG_FIRSTHDR(&h) != NULL)
		memcpy(fd, CMSG_DATA(&control.align), sizeof(*fd));
	return m->type;
}

/* ---- a client's steps, each with the server's answer ---- */

static inline void
fake_memory(struct fake *f, unsigned int seals)
{
	f->size = FAKE_SIZE;
	f->memory = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(f->memory, FAKE_SIZE), 0);
	f->base = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_SHARED, f->memory, 0);
	if (seals != 0)
		assert_int_equal(fcntl(f->memory, F_ADD_SEALS, seals), 0);
	f->to_server = (struct memif_ring *)(void *)f->base;
	f->to_client = (struct memif_ring *)(void *)(f->base + FAKE_RING);
	f->to_server->cookie = f->to_client->cookie = MEMIF_COOKIE;
	for (uint32_t i = 0; i < FAKE_SLOTS; i++) {
		struct memif_desc d = {.length = FAKE_BUFFER,
				       .offset = 2 * FAKE_RING + i * FAKE_BUFFER};

		f->to_server->desc[i] = d;
		d.offset += FAKE_SLOTS * FAKE_BUFFER;
		f->to_client->desc[i] = d;
	}
	f->event[0] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	f->event[1] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

static inline struct memif_message
fake_init(void)
{
	struct memif_message m = {.type = MEMIF_INIT};

	m.init.version = MEMIF_VERSION;
	snprintf(m.init.name, sizeof(m.init.name), "fake");
	return m;
}

static inline struct memif_message
fake_region(uint16_t index, uint64_t size)
{
	struct memif_message m = {.type = MEMIF_ADD_REGION};

	m.add_region.index = index;
	m.add_region.size = size;
	return m;
}

static inline struct memif_message
fake_ring(bool to_server, uint32_t offset)
{
	struct memif_message m = {.type = MEMIF_ADD_RING};

	m.add_ring.flags = to_server;
	m.add_ring.offset = offset;
	m.add_ring.log2_ring_size = FAKE_LOG;
	return m;
}

#define FAKE_STEPS 6u

static inline bool
fake_step(struct fake *f, unsigned int step)
{
	struct memif_message m = {.type = MEMIF_CONNECT};

	switch (step) {
	case 0:
		return true; /* HELLO is sent without a request */
	case 1:
		m = fake_init();
		return fake_say(f, &m, -1);
	case 2:
		m = fake_region(0, f->size);
		return fake_say(f, &m, f->memory);
	case 3:
	case 4:
		m = fake_ring(step == 3, step == 3 ? 0 : FAKE_RING);
		return fake_say(f, &m, f->event[step - 3]);
	default:
		snprintf(m.connect.interface, sizeof(m.connect.interface), "fake0");
		return fake_say(f, &m, -1);
	}
}

/* Complete handshake, with the memory set up. */
static inline void
fake_connect(struct fake *f, unsigned int seals)
{
	static const unsigned int answer[FAKE_STEPS] = {MEMIF_HELLO, MEMIF_ACK, MEMIF_ACK,
							MEMIF_ACK,   MEMIF_ACK, MEMIF_CONNECTED};
	struct memif_message m;

	fake_dial(f);
	fake_memory(f, seals);
	for (unsigned int step = 0; step < FAKE_STEPS; step++) {
		assert_true(fake_step(f, step));
		assert_int_equal(fake_hear(f, &m, NULL), answer[step]);
	}
}

/* ---- a server's steps: the client's message, and the answer ---- */

static inline bool
fake_accept(struct fake *f)
{
	struct pollfd p = {.fd = f->listener, .events = POLLIN};

	assert_int_equal(poll(&p, 1, (int)TIMEOUT_MS), 1);
	f->fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
	return f->fd >= 0;
}

/* Step 0 sends HELLO; each later one receives a message, handles it and answers. */
static inline bool
fake_serve(struct fake *f, unsigned int step)
{
	struct memif_message m = {.type = MEMIF_HELLO}, heard;
	int fd = -1;

	if (step == 0) {
		snprintf(m.hello.name, sizeof(m.hello.name), "fake");
		m.hello.min_version = m.hello.max_version = MEMIF_VERSION;
		m.hello.max_log2_ring_size = FAKE_LOG;
		return fake_say(f, &m, -1);
	}
	m.type = step < 5 ? MEMIF_ACK : MEMIF_CONNECTED;
	assert_int_not_equal(fake_hear(f, &heard, &fd), 0);
	if (heard.type == MEMIF_ADD_REGION) {
		f->memory = fd;
		f->size = heard.add_region.size;
		f->base = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	} else if (heard.type == MEMIF_ADD_RING) {
		struct memif_ring **r = heard.add_ring.flags ? &f->to_server : &f->to_client;

		*r = (struct memif_ring *)(void *)(f->base + heard.add_ring.offset);
		f->event[heard.add_ring.flags ? 0 : 1] = fd;
	}
	return fake_say(f, &m, -1);
}

#endif
