/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "core/mbuf.h"
#include "core/ring_count.h"
#include "core/table.h"
#include "port/port_memory.h"
#include "wire/roce_qpn.h"

#define CHUNK 32u

/* What the receiver of a queue tells senders. */
struct memory_wait {
	uint32_t armed; /* [pub] signal the next frame on fd */
	bool may_sleep; /* [pub] fd has been requested */
	int fd;
} __rte_cache_aligned;

/* The receive queue, read and written by its lcore. */
struct memory_rx {
	uint16_t next; /* sender's queue to take from first */
} __rte_cache_aligned;

struct memory_pair;

struct memory_side {
	struct hca_port port;
	struct memory_pair *pair;
	struct memory_side *peer;
	bool closed;
	/* to this side, by queue and sender's queue */
	struct rte_ring *ring[HCA_PORT_MEMORY_QUEUES][HCA_PORT_MEMORY_QUEUES];
	struct memory_rx rx[HCA_PORT_MEMORY_QUEUES];
	struct memory_wait wait[HCA_PORT_MEMORY_QUEUES];
};

struct memory_pair {
	struct memory_side side[2];
};

static struct memory_side *
side_of(struct hca_port *p)
{
	return (struct memory_side *)p;
}

static uint16_t
memory_rx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct memory_side *s = side_of(port);
	struct rte_ring *const *from = s->ring[q];
	uint16_t queues = port->queues, at, got = 0;

	(void)now;
	if (likely(queues == 1))
		return (uint16_t)rte_ring_sc_dequeue_burst(from[0], (void **)m, n, NULL);
	at = s->rx[q].next;
	for (uint16_t i = 0; i < queues && got < n; i++) {
		if (!hca_ring_empty(from[at]))
			got += (uint16_t)rte_ring_sc_dequeue_burst(from[at], (void **)(m + got),
								   n - got, NULL);
		at = (at + 1) & (queues - 1);
	}
	s->rx[q].next = at;
	return got;
}

/* Wakes the receiver of a queue. */
static inline void
announce(struct memory_wait *w)
{
	uint64_t one = 1;

	if (!__atomic_load_n(&w->may_sleep, __ATOMIC_RELAXED))
		return;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&w->armed, __ATOMIC_RELAXED) != 0 &&
	    __atomic_exchange_n(&w->armed, 0, __ATOMIC_ACQ_REL) != 0 &&
	    write(w->fd, &one, sizeof(one)) < 0)
		__atomic_store_n(&w->armed, 1, __ATOMIC_RELEASE);
}

/*
 * The receiving queue of each frame up to the first one whose ring has no room. Returns the number
 * of frames with room.
 */
static uint16_t
steer(struct memory_side *to, uint16_t q, struct rte_mbuf *const *m, uint16_t n,
      uint8_t queue[CHUNK])
{
	uint32_t room[HCA_PORT_MEMORY_QUEUES], asked = 0;
	uint32_t mask = to->port.queues - 1u;

	for (uint16_t i = 0; i < n; i++) {
		uint32_t k = hca_roce_qpn(rte_pktmbuf_mtod(m[i], const uint8_t *), m[i]->data_len) &
			     mask;

		if ((asked >> k & 1) == 0)
			room[k] = hca_ring_room(to->ring[k][q]);
		asked |= 1u << k;
		if (room[k] == 0)
			return i;
		room[k]--;
		queue[i] = (uint8_t)k;
	}
	return n;
}

/* Sends at most CHUNK frames; returns the number of frames that had room. */
static uint16_t
send_chunk(struct memory_side *to, uint16_t q, struct rte_mbuf **m, uint16_t n)
{
	uint8_t queue[CHUNK];
	uint16_t took = steer(to, q, m, n, queue), end;
	uint32_t sent = 0;

	for (uint16_t i = 0; i < took; i = end) {
		for (end = i + 1; end < took && queue[end] == queue[i]; end++)
			;
		rte_ring_sp_enqueue_bulk(to->ring[queue[i]][q], (void *const *)(m + i),
					 (unsigned int)end - i, NULL);
		sent |= 1u << queue[i];
	}
	for (; sent != 0; sent &= sent - 1)
		announce(&to->wait[__builtin_ctz(sent)]);
	return took;
}

static uint16_t
memory_tx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct memory_side *to = side_of(port)->peer;
	uint16_t took = 0, want, k;

	(void)now;
	if (likely(port->queues == 1)) {
		took = (uint16_t)rte_ring_sp_enqueue_burst(to->ring[0][0], (void *const *)m, n,
							   NULL);
		announce(&to->wait[0]);
		return took;
	}
	do {
		want = (uint16_t)RTE_MIN((unsigned int)n - took, CHUNK);
		k = send_chunk(to, q, m + took, want);
		took += k;
	} while (k == want && took < n);
	return took;
}

static bool
memory_link_up(struct hca_port *port)
{
	(void)port;
	return true;
}

static int
memory_wait_fd(const struct hca_port *port, uint16_t q)
{
	struct memory_wait *w = &side_of((struct hca_port *)(uintptr_t)port)->wait[q];

	__atomic_store_n(&w->may_sleep, true, __ATOMIC_SEQ_CST);
	return w->fd;
}

static bool
memory_arm(struct hca_port *port, uint16_t q, bool on)
{
	struct memory_side *s = side_of(port);

	__atomic_store_n(&s->wait[q].armed, on, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint16_t i = 0; on && i < port->queues; i++)
		if (!hca_ring_empty(s->ring[q][i]))
			return true;
	return false;
}

static void
drain(struct memory_side *s)
{
	void *m;

	for (unsigned int q = 0; q < s->port.queues; q++)
		for (unsigned int i = 0; i < s->port.queues; i++)
			while (rte_ring_dequeue(s->ring[q][i], &m) == 0)
				rte_pktmbuf_free(m);
}

static void
release_side(struct memory_side *s)
{
	for (unsigned int q = 0; q < s->port.queues; q++) {
		if (s->wait[q].fd >= 0)
			close(s->wait[q].fd);
		for (unsigned int i = 0; i < s->port.queues; i++)
			rte_ring_free(s->ring[q][i]);
	}
}

static void
memory_close(struct hca_port *port)
{
	struct memory_side *s = side_of(port);
	struct memory_pair *pair = s->pair;

	drain(s);
	s->closed = true;
	if (!s->peer->closed)
		return;
	release_side(&pair->side[0]);
	release_side(&pair->side[1]);
	rte_free(pair);
}

static const struct hca_port_ops memory_ops = {
	.rx = memory_rx,
	.tx = memory_tx,
	.link_up = memory_link_up,
	.wait_fd = memory_wait_fd,
	.arm = memory_arm,
	.close = memory_close,
};

/* side: 0 or 1, part of the names. On failure the caller releases the side. */
static int
make_rings(struct memory_side *s, const char *name, unsigned int side, uint32_t depth,
	   int socket_id)
{
	char rn[RTE_RING_NAMESIZE];

	for (unsigned int q = 0; q < s->port.queues; q++) {
		s->wait[q].fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (s->wait[q].fd < 0)
			return -errno;
		for (unsigned int i = 0; i < s->port.queues; i++) {
			snprintf(rn, sizeof(rn), "%.16s.w%u.%u.%u", name, side, q, i);
			s->ring[q][i] = rte_ring_create(rn, depth, socket_id,
							RING_F_SP_ENQ | RING_F_SC_DEQ);
			if (s->ring[q][i] == NULL)
				return -rte_errno;
		}
	}
	s->port.queue_size = rte_ring_get_capacity(s->ring[0][0]);
	return 0;
}

int
hca_port_memory_pair(const char *name, uint16_t queues, uint32_t depth, int socket_id,
		     struct hca_port *out[2])
{
	struct memory_pair *pair;
	int rc = 0;

	if (queues == 0 || queues > HCA_PORT_MEMORY_QUEUES || !rte_is_power_of_2(queues) ||
	    !rte_is_power_of_2(depth))
		return -EINVAL;
	pair = rte_zmalloc_socket("hca_memory", sizeof(*pair), RTE_CACHE_LINE_SIZE, socket_id);
	if (pair == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < 2; i++) {
		struct memory_side *s = &pair->side[i];

		s->port = (struct hca_port){.ops = &memory_ops,
					    .max_frame = HCA_MBUF_DATA - RTE_PKTMBUF_HEADROOM,
					    .queues = queues};
		s->pair = pair;
		s->peer = &pair->side[1 - i];
		for (unsigned int q = 0; q < queues; q++)
			s->wait[q].fd = -1;
	}
	for (unsigned int i = 0; i < 2 && rc == 0; i++) {
		rc = make_rings(&pair->side[i], name, i, depth, socket_id);
		out[i] = &pair->side[i].port;
	}
	if (rc == 0)
		return 0;
	release_side(&pair->side[0]);
	release_side(&pair->side[1]);
	rte_free(pair);
	return rc;
}
