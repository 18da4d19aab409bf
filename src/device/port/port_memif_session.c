/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The handshake with a peer: one state per expected message. A server talks to any number of peers
 * at the same time; the first one to send CONNECT is connected.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "port/port_memif_impl.h"

enum state {
	WAITS_INIT, /* server */
	WAITS_MEMORY,
	WAITS_HELLO, /* client; then one acknowledgement per step */
	WAITS_ACK_INIT,
	WAITS_ACK_REGION,
	WAITS_ACK_RING,
	WAITS_CONNECTED,
	UP,
};

/* Texts of the peer may lack the terminating zero. */
static void
take_text(char *to, size_t size, const char *from, size_t length)
{
	size_t n = strnlen(from, RTE_MIN(length, size - 1));

	memcpy(to, from, n);
	to[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if (to[i] < ' ' || to[i] > '~')
			to[i] = '?';
}

static int
send_message(const struct memif_session *s, const struct memif_message *m, int fd)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)m, .iov_len = sizeof(*m)};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd >= 0) {
		struct cmsghdr *cm = &control.align;

		h.msg_control = control.bytes;
		h.msg_controllen = sizeof(control.bytes);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cm), &fd, sizeof(fd));
	}
	return sendmsg(s->fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(*m) ? 0 : -EPIPE;
}

static int
send_plain(const struct memif_session *s, enum memif_type type)
{
	struct memif_message m = {.type = type};

	return send_message(s, &m, -1);
}

/* ---- names ---- */

#define NAME HCA_PORT_MEMIF_OURS "memif"
#define SMALLEST_LOG 5u

/* A port with one queue has the name of earlier releases. */
static void
put_name(const struct memif_session *s, char *name, size_t size)
{
	uint16_t queues = s->port->port.queues;

	if (queues == 1)
		snprintf(name, size, "%s", NAME);
	else
		snprintf(name, size, "%s %u", NAME, queues);
}

/* Number of queues in a name; 0: not a name of ours, or no number that frames are steered by. */
static uint16_t
queues_of(const char *name)
{
	unsigned long n;
	char *end;

	if (strncmp(name, NAME, strlen(NAME)) != 0)
		return 0;
	name += strlen(NAME);
	if (*name == '\0')
		return 1;
	n = strtoul(name, &end, 10);
	return *name == ' ' && *end == '\0' && n <= HCA_PORT_MEMIF_QUEUES &&
			       rte_is_power_of_2((uint32_t)n)
		       ? (uint16_t)n
		       : 0;
}

/*
 * Client: the rings that the server accepts. Rings between several queues are shorter, so that the
 * buffers that a queue fills in turn stay in its CPU's cache.
 */
static void
choose_rings(struct memif_session *s, const struct memif_hello *h)
{
	uint16_t own = s->port->port.queues, all = own * s->peer;

	if (all != 0 && h->max_s2m_ring >= all - 1 && h->max_m2s_ring >= all - 1) {
		s->rings[MEMIF_TX] = s->rings[MEMIF_RX] = all;
		for (uint16_t n = s->peer; n > 1 && s->log2_ring > SMALLEST_LOG; n /= 2)
			s->log2_ring--;
		return;
	}
	s->rings[MEMIF_TX] = (uint16_t)RTE_MIN(own, h->max_s2m_ring + 1u);
	s->rings[MEMIF_RX] = (uint16_t)RTE_MIN(own, h->max_m2s_ring + 1u);
}

/* ---- sending messages ---- */

static int
send_hello(const struct memif_session *s)
{
	struct memif_message m = {.type = MEMIF_HELLO};

	put_name(s, m.hello.name, sizeof(m.hello.name));
	m.hello.min_version = m.hello.max_version = MEMIF_VERSION;
	m.hello.max_region = REGIONS_MAX - 1;
	m.hello.max_m2s_ring = m.hello.max_s2m_ring = memif_rings_max(s->port->port.queues) - 1;
	m.hello.max_log2_ring_size = RING_LOG_MAX;
	return send_message(s, &m, -1);
}

static int
send_init(const struct memif_session *s)
{
	const struct hca_port_memif_config *cfg = &s->port->cfg;
	struct memif_message m = {.type = MEMIF_INIT};

	m.init.version = MEMIF_VERSION;
	m.init.id = cfg->id;
	m.init.mode = MEMIF_MODE_ETHERNET;
	memcpy(m.init.secret, cfg->secret, sizeof(m.init.secret));
	put_name(s, m.init.name, sizeof(m.init.name));
	return send_message(s, &m, -1);
}

static int
send_region(struct memif_session *s, const char **why)
{
	const struct hca_port_memif_config *cfg = &s->port->cfg;
	struct memif_message m = {.type = MEMIF_ADD_REGION};
	int fd = -1, err;

	s->conn = memif_conn_new();
	if (s->conn == NULL)
		return -ENOMEM;
	memcpy(s->conn->rings, s->rings, sizeof(s->conn->rings));
	err = memif_conn_build(s->conn, s->log2_ring, cfg->buffer, &fd, why);
	m.add_region.size = s->conn->region[0].size;
	if (err == 0)
		err = send_message(s, &m, fd);
	if (fd >= 0)
		close(fd);
	return err;
}

/* The next ring; those to the server come first. */
static int
send_ring(struct memif_session *s)
{
	uint16_t i = s->told++;
	enum memif_side side = i < s->rings[MEMIF_TX] ? MEMIF_TX : MEMIF_RX;
	struct memif_message m = {.type = MEMIF_ADD_RING};
	const struct memif_lane *l;

	if (side == MEMIF_RX)
		i -= s->rings[MEMIF_TX];
	l = &s->conn->lane[side][i];
	m.add_ring.index = i;
	m.add_ring.flags = side == MEMIF_TX ? MEMIF_RING_TO_SERVER : 0;
	m.add_ring.offset = (uint32_t)((uint8_t *)l->ring - s->conn->region[0].base);
	m.add_ring.log2_ring_size = (uint8_t)__builtin_ctz(l->size);
	return send_message(s, &m, l->fd);
}

static int
send_connect(const struct memif_session *s, enum memif_type type)
{
	struct memif_message m = {.type = type};

	snprintf(m.connect.interface, sizeof(m.connect.interface), "%.31s", s->port->name);
	return send_message(s, &m, -1);
}

/* ---- receiving messages ---- */

static int
take_hello(struct memif_session *s, const struct memif_message *m, const char **why)
{
	const struct memif_hello *h = &m->hello;

	*why = "Incompatible memif version";
	if (h->min_version > MEMIF_VERSION || h->max_version < MEMIF_VERSION)
		return -EPROTO;
	take_text(s->name, sizeof(s->name), h->name, sizeof(h->name));
	s->peer = queues_of(s->name);
	s->log2_ring = (uint8_t)RTE_MIN(s->port->cfg.log2_ring, h->max_log2_ring_size);
	choose_rings(s, h);
	s->state = WAITS_ACK_INIT;
	return send_init(s);
}

static int
take_init(struct memif_session *s, const struct memif_message *m, const char **why)
{
	const struct hca_port_memif_config *cfg = &s->port->cfg;
	const struct memif_init *i = &m->init;

	*why = "Incompatible memif version";
	if (i->version != MEMIF_VERSION)
		return -EPROTO;
	*why = "ID not found";
	if (i->id != cfg->id)
		return -ENOENT;
	*why = "Only ethernet mode supported";
	if (i->mode != MEMIF_MODE_ETHERNET)
		return -ENOTSUP;
	*why = i->secret[0] == '\0' ? "Secret required" : "Incorrect secret";
	if (cfg->secret[0] != '\0' && strncmp(cfg->secret, i->secret, sizeof(i->secret)) != 0)
		return -EACCES;
	*why = "Already connected";
	if (s->port->active != NULL)
		return -EBUSY;
	*why = NULL;
	take_text(s->name, sizeof(s->name), i->name, sizeof(i->name));
	s->peer = queues_of(s->name);
	s->conn = memif_conn_new();
	s->state = WAITS_MEMORY;
	return s->conn != NULL ? send_plain(s, MEMIF_ACK) : -ENOMEM;
}

/* Handle CONNECT (server) or CONNECTED (client), the last message before frames. */
static int
take_connect(struct memif_session *s, const struct memif_message *m, const char **why)
{
	int err = memif_conn_ready(s->conn, s->port->port.queues, s->peer, why);

	if (err != 0)
		return err;
	take_text(s->interface, sizeof(s->interface), m->connect.interface,
		  sizeof(m->connect.interface));
	s->conn->fenced = strncmp(s->name, HCA_PORT_MEMIF_OURS, strlen(HCA_PORT_MEMIF_OURS)) == 0;
	*why = "Already connected";
	err = memif_publish(s->port, s);
	if (err == 0)
		s->state = UP;
	*why = NULL;
	if (err == 0 && m->type == MEMIF_CONNECT)
		err = send_connect(s, MEMIF_CONNECTED);
	return err;
}

static int
take_memory(struct memif_session *s, const struct memif_message *m, int *fd, const char **why)
{
	int err;

	switch (m->type) {
	case MEMIF_ADD_REGION:
		err = memif_conn_add_region(s->port, s->conn, m->add_region.index,
					    m->add_region.size, *fd, why);
		break;
	case MEMIF_ADD_RING:
		err = memif_conn_add_ring(s->conn, s->port->port.queues, &m->add_ring, *fd, why);
		if (err == 0)
			*fd = -1;
		break;
	case MEMIF_CONNECT:
		return take_connect(s, m, why);
	default:
		*why = "Unexpected message";
		return -EPROTO;
	}
	return err == 0 ? send_plain(s, MEMIF_ACK) : err;
}

/* The client's next step after an acknowledgement. */
static int
next_client_step(struct memif_session *s, const char **why)
{
	if (s->state == WAITS_ACK_INIT) {
		s->state = WAITS_ACK_REGION;
		return send_region(s, why);
	}
	if (s->told < s->rings[MEMIF_TX] + s->rings[MEMIF_RX]) {
		s->state = WAITS_ACK_RING;
		return send_ring(s);
	}
	s->state = WAITS_CONNECTED;
	return send_connect(s, MEMIF_CONNECT);
}

static int
session_take(struct memif_session *s, const struct memif_message *m, int *fd, const char **why)
{
	if (m->type == MEMIF_DISCONNECT) {
		take_text(s->reason, sizeof(s->reason), m->disconnect.reason,
			  sizeof(m->disconnect.reason));
		return -ECONNRESET;
	}
	if (s->state == WAITS_HELLO && m->type == MEMIF_HELLO)
		return take_hello(s, m, why);
	if (s->state == WAITS_INIT && m->type == MEMIF_INIT)
		return take_init(s, m, why);
	if (s->state == WAITS_MEMORY)
		return take_memory(s, m, fd, why);
	if (s->state == WAITS_CONNECTED && m->type == MEMIF_CONNECTED)
		return take_connect(s, m, why);
	if (s->state >= WAITS_ACK_INIT && s->state <= WAITS_ACK_RING && m->type == MEMIF_ACK)
		return next_client_step(s, why);
	*why = "Unexpected message";
	return -EPROTO;
}

/* Close all descriptors if there are several, or if the message must have none. */
static int
take_descriptor(struct msghdr *h)
{
	int fd = -1;

	for (struct cmsghdr *cm = CMSG_FIRSTHDR(h); cm != NULL; cm = CMSG_NXTHDR(h, cm)) {
		size_t n = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		int one;

		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			if (fd >= 0)
				memif_close_apart(fd);
			memcpy(&one, CMSG_DATA(cm) + i * sizeof(int), sizeof(one));
			fd = one;
		}
	}
	return fd;
}

int
memif_session_read(struct memif_session *s, const char **why)
{
	struct memif_message m;
	struct iovec iov = {.iov_base = &m, .iov_len = sizeof(m)};
	union {
		char bytes[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr h = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t n = recvmsg(s->fd, &h, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	int fd, rc;

	*why = NULL;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	fd = take_descriptor(&h);
	s->ticks = 0;
	if (n == 0) {
		s->drained = true;
		rc = -ECONNRESET;
	} else if (n != sizeof(m)) {
		*why = "Invalid message size";
		rc = -EPROTO;
	} else {
		rc = session_take(s, &m, &fd, why);
	}
	if (fd >= 0)
		memif_close_apart(fd);
	return rc;
}

bool
memif_session_is_up(const struct memif_session *s)
{
	return s->state == UP;
}

struct memif_session *
memif_session_new(struct port_memif *p, int fd)
{
	struct memif_session *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		memif_close_apart(fd);
		return NULL;
	}
	s->port = p;
	s->fd = fd;
	s->state = p->cfg.server ? WAITS_INIT : WAITS_HELLO;
	if (p->cfg.server && send_hello(s) != 0) {
		memif_session_free(s, NULL);
		return NULL;
	}
	return s;
}

void
memif_session_free(struct memif_session *s, const char *why)
{
	struct memif_message m = {.type = MEMIF_DISCONNECT};

	if (why != NULL) {
		snprintf(m.disconnect.reason, sizeof(m.disconnect.reason), "%s", why);
		(void)send_message(s, &m, -1);
	}
	memif_conn_free(s->conn);
	if (s->drained)
		close(s->fd);
	else
		memif_close_apart(s->fd);
	free(s);
}
