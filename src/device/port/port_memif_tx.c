/* SPDX-License-Identifier: BSD-3-Clause */

/* The transmit rings; called on the lcores of tx. */

#include <string.h>
#include <unistd.h>

#include <rte_eal.h>

#include "port/port_memif_impl.h"
#include "wire/roce_qpn.h"

void
memif_break(struct port_memif *p, struct memif_conn *c, enum memif_broken why)
{
	uint32_t none = MEMIF_BROKEN_NO;
	uint64_t one = 1;

	/* keep the first reason: it caused the others */
	__atomic_compare_exchange_n(&c->broken, &none, why, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	if (write(p->broken_fd, &one, sizeof(one)) < 0)
		return; /* the eventfd's counter is full: the thread will wake anyway */
}

/* The index that the receiver advances: by frames consumed, or by buffers offered. */
static inline uint16_t
peer_index(const struct memif_conn *c, const struct memif_lane *l)
{
	const uint16_t *index = c->client ? &l->ring->tail : &l->ring->head;

	return __atomic_load_n(index, __ATOMIC_ACQUIRE);
}

/* Number of descriptors that may be filled; an invalid index breaks the connection. */
static uint32_t
room(struct port_memif *p, uint16_t q, struct memif_conn *c, const struct memif_lane *l)
{
	uint16_t index = peer_index(c, l);
	uint32_t n =
		c->client ? l->size - (uint16_t)(l->next - index) : (uint16_t)(index - l->next);

	if (likely(n <= l->size))
		return n;
	hca_port_count(&p->worker[MEMIF_TX][q].stats.tx_broken, 1);
	memif_break(p, c, MEMIF_BROKEN_TX_INDEX);
	return 0;
}

/* Buffer for a frame; bytes NULL: the peer's descriptor is invalid. */
struct space {
	uint8_t *bytes;
	uint32_t length;
};

static inline struct space
look(const struct memif_conn *c, const struct memif_lane *l, uint16_t slot)
{
	uint32_t i = slot & (l->size - 1);
	const uint64_t *d = (const uint64_t *)(const void *)&l->ring->desc[i];
	struct space s = {.length = c->buffer};
	uint64_t first;

	if (c->client) {
		s.bytes = l->buffers + (size_t)i * c->buffer;
		return s;
	}
	first = __atomic_load_n(d, __ATOMIC_RELAXED);
	s.length = (uint32_t)(first >> 32);
	if (likely(s.length != 0))
		s.bytes =
			memif_buffer(c, (uint16_t)(first >> 16),
				     (uint32_t)__atomic_load_n(d + 1, __ATOMIC_RELAXED), s.length);
	return s;
}

/*
 * Writes a descriptor. Region and offset belong to the client: a client writes its constant values,
 * a server does not change them.
 */
static inline void
fill(const struct memif_conn *c, struct memif_lane *l, uint16_t slot, uint32_t length, bool next)
{
	struct memif_desc *d = &l->ring->desc[slot & (l->size - 1)];

	if (c->client)
		__atomic_store_n((uint64_t *)(void *)d, (uint64_t)length << 32 | next,
				 __ATOMIC_RELAXED);
	else {
		__atomic_store_n(&d->length, length, __ATOMIC_RELAXED);
		__atomic_store_n(&d->flags, next ? MEMIF_DESC_NEXT : 0, __ATOMIC_RELAXED);
	}
}

enum put {
	PUT,
	PUT_NO_ROOM,
	PUT_BROKEN
};

/* Copy a frame into several buffers from *slot on, of which *left are available. */
static enum put
put_chain(struct memif_conn *c, struct memif_lane *l, uint16_t *slot, uint32_t *left,
	  const struct rte_mbuf *m)
{
	uint32_t in_segment = 0, rest = m->pkt_len, free_slots = *left;
	uint16_t at = *slot;

	while (rest != 0) {
		struct space s = look(c, l, at);
		uint32_t length = RTE_MIN(rest, s.length), done = 0;

		if (free_slots == 0)
			return PUT_NO_ROOM;
		if (s.bytes == NULL)
			return PUT_BROKEN;
		while (done < length) {
			uint32_t n = RTE_MIN(length - done, m->data_len - in_segment);

			memcpy(s.bytes + done,
			       rte_pktmbuf_mtod_offset(m, const uint8_t *, in_segment), n);
			done += n;
			in_segment += n;
			if (in_segment == m->data_len && m->next != NULL) {
				m = m->next;
				in_segment = 0;
			}
		}
		rest -= length;
		fill(c, l, at++, length, rest != 0);
		free_slots--;
	}
	*slot = at;
	*left = free_slots;
	return PUT;
}

static inline enum put
put(struct memif_conn *c, struct memif_lane *l, uint16_t *slot, uint32_t *left,
    const struct rte_mbuf *m)
{
	struct space s;

	if (unlikely(*left == 0))
		return PUT_NO_ROOM;
	s = look(c, l, *slot);
	if (unlikely(s.bytes == NULL))
		return PUT_BROKEN;
	if (unlikely(m->nb_segs != 1 || m->data_len > s.length))
		return put_chain(c, l, slot, left, m);
	memcpy(s.bytes, rte_pktmbuf_mtod(m, const void *), m->data_len);
	fill(c, l, (*slot)++, m->data_len, false);
	(*left)--;
	return PUT;
}

/*
 * Interrupts the receiver. A fenced receiver that has consumed no frame since the last kick is
 * still waking up and needs no interrupt.
 */
static void
kick(struct port_memif *p, uint16_t q, struct memif_conn *c, struct memif_lane *l)
{
	struct memif_worker *w = &p->worker[MEMIF_TX][q];
	uint64_t one = 1;

	if (l->kicked && peer_index(c, l) != l->kicked_at)
		l->kicked = false; /* checked in every burst, because indexes wrap around */
	/* index before the flag; memif_arm() has the matching fence */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (likely((__atomic_load_n(&l->ring->flags, __ATOMIC_RELAXED) & MEMIF_MASK_INT) != 0))
		return;
	if (l->kicked && c->fenced && peer_index(c, l) == l->kicked_at)
		return;
	l->kicked = true;
	l->kicked_at = peer_index(c, l);
	hca_port_count(&w->stats.tx_kicks, 1);
	__atomic_store_n(&w->kicker, rte_gettid(), __ATOMIC_RELAXED);
	__atomic_store_n(&w->kicks, w->kicks + 1, __ATOMIC_RELEASE);
	if (write(l->fd, &one, sizeof(one)) < 0)
		/* the full counter wakes the receiver */
		hca_port_count(&w->stats.tx_kicks, (uint64_t)-1);
	__atomic_store_n(&w->kicks, w->kicks + 1, __ATOMIC_RELAXED);
}

/* Drops all frames, as a switch does without a cable to their destination. */
static uint16_t
drop_all(struct port_memif *p, uint16_t q, struct rte_mbuf **m, uint16_t n)
{
	rte_pktmbuf_free_bulk(m, n);
	hca_port_count(&p->worker[MEMIF_TX][q].stats.tx_no_peer, n);
	return n;
}

/* A ring in a burst. */
struct sending {
	struct memif_lane *lane;
	uint32_t left, before; /* descriptors that may be filled: now, and before the burst */
	uint16_t slot;	       /* the next one */
};

static struct sending
begin(struct port_memif *p, uint16_t q, struct memif_conn *c, struct memif_lane *l)
{
	uint32_t left = room(p, q, c, l);

	return (struct sending){.lane = l, .left = left, .before = left, .slot = l->next};
}

/* Shows the frames to the receiver. */
static void
finish(struct port_memif *p, uint16_t q, struct memif_conn *c, const struct sending *s)
{
	struct memif_lane *l = s->lane;

	if (s->left == s->before)
		return;
	l->next = s->slot;
	__atomic_store_n(c->client ? &l->ring->head : &l->ring->tail, s->slot, __ATOMIC_RELEASE);
	kick(p, q, c, l);
}

/* The peer's queue that a frame is for. */
static inline uint16_t
queue_of(const struct memif_conn *c, const struct rte_mbuf *m)
{
	if (likely(c->peer_mask == 0))
		return 0;
	return hca_roce_qpn(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len) & c->peer_mask;
}

/* The ring of queue q to the peer's queue `to`. */
static inline struct memif_lane *
lane_to(const struct port_memif *p, struct memif_conn *c, uint16_t q, uint16_t to)
{
	uint32_t i = c->steered ? (uint32_t)to * p->port.queues + q
				: (c->shared ? q % c->rings[MEMIF_TX] : q);

	return &c->lane[MEMIF_TX][i];
}

static uint16_t
put_all(struct port_memif *p, uint16_t q, struct memif_conn *c, struct rte_mbuf **m, uint16_t n)
{
	struct hca_port_memif_stats *st = &p->worker[MEMIF_TX][q].stats;
	struct sending to[HCA_PORT_MEMIF_QUEUES];
	uint16_t sent = 0, dropped = 0;
	uint32_t begun = 0;
	uint64_t bytes = 0;

	for (; sent < n; sent++) {
		uint16_t k = queue_of(c, m[sent]);
		struct sending *s = &to[k];
		enum put rc;

		if ((begun >> k & 1) == 0)
			*s = begin(p, q, c, lane_to(p, c, q, k));
		begun |= 1u << k;
		rc = put(c, s->lane, &s->slot, &s->left, m[sent]);
		if (likely(rc == PUT)) {
			bytes += m[sent]->pkt_len;
			continue;
		}
		if (rc == PUT_BROKEN)
			memif_break(p, c, MEMIF_BROKEN_BUFFER);
		if (rc == PUT_BROKEN || s->left != s->lane->size)
			break;
		dropped++; /* too long for the whole ring */
	}
	hca_port_count(&st->tx_pkts, sent - dropped);
	hca_port_count(&st->tx_bytes, bytes);
	hca_port_count(&st->tx_too_long, dropped);
	hca_port_count(&st->tx_full, sent != n);
	for (; begun != 0; begun &= begun - 1)
		finish(p, q, c, &to[__builtin_ctz(begun)]);
	return sent;
}

/* By a ring of several queues; while another one sends there, no frame is accepted. */
static uint16_t
put_shared(struct port_memif *p, uint16_t q, struct memif_conn *c, struct rte_mbuf **m, uint16_t n)
{
	struct memif_lane *l = lane_to(p, c, q, 0);
	uint16_t sent;

	if (__atomic_exchange_n(&l->taken, 1, __ATOMIC_ACQUIRE) != 0) {
		hca_port_count(&p->worker[MEMIF_TX][q].stats.tx_full, 1);
		return 0;
	}
	sent = put_all(p, q, c, m, n);
	__atomic_store_n(&l->taken, 0, __ATOMIC_RELEASE);
	return sent;
}

uint16_t
memif_tx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct port_memif *p = memif_of(port);
	struct memif_conn *c = memif_enter(p, MEMIF_TX, q);
	uint16_t sent;

	(void)now;
	if (unlikely(c == NULL))
		return p->cfg.carrier ? drop_all(p, q, m, n) : 0;
	sent = unlikely(c->shared) ? put_shared(p, q, c, m, n) : put_all(p, q, c, m, n);
	memif_leave(p, MEMIF_TX, q);
	if (likely(sent != 0))
		rte_pktmbuf_free_bulk(m, sent);
	return sent;
}
