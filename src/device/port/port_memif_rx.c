/* SPDX-License-Identifier: BSD-3-Clause */

/* The receive rings; called on the lcores of rx. */

#include <string.h>

#include <rte_ether.h>
#include <rte_prefetch.h>

#include "port/port_memif_impl.h"

#define AHEAD 3u /* frames prefetched while one is copied */
#define NAP_NS 1000000u
#define SETTLED_NS 100000u /* time after which another CPU's writes are visible here */

/* Number of descriptors with frames; an invalid index breaks the connection. */
static uint32_t
waiting(struct port_memif *p, uint16_t q, struct memif_conn *c, const struct memif_lane *l)
{
	const uint16_t *index = c->client ? &l->ring->tail : &l->ring->head;
	uint32_t most = c->client ? (uint16_t)(l->given - l->next) : l->size;
	uint32_t n = (uint16_t)(__atomic_load_n(index, __ATOMIC_ACQUIRE) - l->next);

	if (likely(n <= most))
		return n;
	hca_port_count(&p->worker[MEMIF_RX][q].stats.rx_broken, 1);
	memif_break(p, c, MEMIF_BROKEN_RX_INDEX);
	return 0;
}

static void
set_mask(struct memif_lane *l, bool masked)
{
	__atomic_store_n(&l->ring->flags, masked ? MEMIF_MASK_INT : 0, __ATOMIC_RELAXED);
	l->unmasked = !masked;
}

/* A copy of a descriptor, read once: the peer may change it at any time. */
struct piece {
	const uint8_t *bytes; /* NULL: outside of the regions */
	uint32_t length;
	bool next;
};

static inline struct piece
look(const struct memif_conn *c, const struct memif_lane *l, uint16_t slot)
{
	uint32_t i = slot & (l->size - 1);
	const uint64_t *d = (const uint64_t *)(const void *)&l->ring->desc[i];
	uint64_t first = __atomic_load_n(d, __ATOMIC_RELAXED), second;
	struct piece piece = {.length = (uint32_t)(first >> 32),
			      .next = (first & MEMIF_DESC_NEXT) != 0};

	if (c->client) {
		if (likely(piece.length <= c->buffer))
			piece.bytes = l->buffers + (size_t)i * c->buffer;
		return piece;
	}
	second = __atomic_load_n(d + 1, __ATOMIC_RELAXED);
	piece.bytes = memif_buffer(c, (uint16_t)(first >> 16), (uint32_t)second, piece.length);
	return piece;
}

static inline void
fetch(const struct memif_conn *c, const struct memif_lane *l, uint16_t slot)
{
	struct piece piece = look(c, l, slot);

	if (likely(piece.bytes != NULL))
		rte_prefetch0(piece.bytes);
}

/* Clears the flag, which DPDK's sender never does. */
static void
clear_next_flag(const struct memif_lane *l, uint16_t slot)
{
	struct memif_desc *d = &l->ring->desc[slot & (l->size - 1)];

	__atomic_store_n(&d->flags, 0, __ATOMIC_RELAXED);
}

/*
 * Receive a frame of several descriptors from *slot on. Returns NULL, or the counter of its drop.
 */
static uint64_t *
take_chain(struct port_memif *p, uint16_t q, const struct memif_conn *c, const struct memif_lane *l,
	   uint16_t *slot, uint16_t end, struct rte_mbuf *m)
{
	struct hca_port_memif_stats *st = &p->worker[MEMIF_RX][q].stats;
	uint32_t room = rte_pktmbuf_tailroom(m), length = 0;
	uint64_t *drop = NULL;
	struct piece piece;

	do {
		if (*slot == end)
			return &st->rx_bad_chain;
		piece = look(c, l, *slot);
		if (piece.next)
			clear_next_flag(l, *slot);
		(*slot)++;
		if (drop == NULL && piece.bytes == NULL)
			drop = &st->rx_bad_buffer;
		else if (drop == NULL && piece.length > room - length)
			drop = &st->rx_too_long;
		if (drop != NULL)
			continue;
		memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, length), piece.bytes, piece.length);
		length += piece.length;
	} while (piece.next);
	m->data_len = (uint16_t)length;
	m->pkt_len = length;
	return drop != NULL || length >= RTE_ETHER_HDR_LEN ? drop : &st->rx_too_short;
}

static inline uint64_t *
take_one(struct port_memif *p, uint16_t q, const struct memif_conn *c, const struct memif_lane *l,
	 uint16_t *slot, uint16_t end, struct rte_mbuf *m)
{
	struct hca_port_memif_stats *st = &p->worker[MEMIF_RX][q].stats;
	struct piece piece = look(c, l, *slot);

	if (unlikely(piece.next))
		return take_chain(p, q, c, l, slot, end, m);
	(*slot)++;
	if (unlikely(piece.bytes == NULL))
		return &st->rx_bad_buffer;
	if (unlikely(piece.length < RTE_ETHER_HDR_LEN))
		return &st->rx_too_short;
	if (unlikely(piece.length > rte_pktmbuf_tailroom(m)))
		return &st->rx_too_long;
	memcpy(rte_pktmbuf_mtod(m, void *), piece.bytes, piece.length);
	m->data_len = (uint16_t)piece.length;
	m->pkt_len = piece.length;
	return NULL;
}

/* Returns descriptors up to `next` to the sender; with their buffers, if we are the client. */
static void
return_descriptors(const struct memif_conn *c, struct memif_lane *l, uint16_t next)
{
	l->next = next;
	if (!c->client) {
		__atomic_store_n(&l->ring->tail, next, __ATOMIC_RELEASE);
		return;
	}
	for (; l->given != (uint16_t)(next + l->size); l->given++) {
		uint64_t *d = (uint64_t *)(void *)&l->ring->desc[l->given & (l->size - 1)];

		/* no flags, region 0; the offset of a slot never changes */
		__atomic_store_n(d, (uint64_t)c->buffer << 32, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&l->ring->head, l->given, __ATOMIC_RELEASE);
}

/* Allocate as many mbufs of n as possible. */
static uint16_t
get_mbufs(struct port_memif *p, uint16_t q, struct rte_mbuf **m, uint16_t n)
{
	if (likely(rte_pktmbuf_alloc_bulk(p->queue[q].pool, m, n) == 0))
		return n;
	if (n > 1 && rte_pktmbuf_alloc_bulk(p->queue[q].pool, m, 1) == 0)
		return 1;
	hca_port_count(&p->worker[MEMIF_RX][q].stats.rx_no_mbuf, 1);
	return 0;
}

static uint16_t
ring_take(struct port_memif *p, uint16_t q, struct memif_conn *c, struct memif_lane *l,
	  struct rte_mbuf **m, uint16_t n, uint32_t ready)
{
	struct hca_port_memif_stats *st = &p->worker[MEMIF_RX][q].stats;
	uint16_t slot = l->next, end = (uint16_t)(slot + ready), kept = 0;
	uint64_t bytes = 0;

	n = get_mbufs(p, q, m, (uint16_t)RTE_MIN(ready, n));
	while (kept < n && slot != end) {
		uint64_t *drop;

		if ((uint16_t)(end - slot) > AHEAD)
			fetch(c, l, (uint16_t)(slot + AHEAD));
		drop = take_one(p, q, c, l, &slot, end, m[kept]);
		if (unlikely(drop != NULL)) {
			hca_port_count(drop, 1);
			continue;
		}
		bytes += m[kept++]->pkt_len;
	}
	if (unlikely(kept < n))
		rte_pktmbuf_free_bulk(m + kept, n - kept);
	if (likely(slot != l->next))
		return_descriptors(c, l, slot);
	hca_port_count(&st->rx_pkts, kept);
	hca_port_count(&st->rx_bytes, bytes);
	return kept;
}

/*
 * A sender without a barrier between writing the index and reading the flag may have read the flag
 * before the ring was unmasked. Its index is visible here after SETTLED_NS at most: until then
 * deadline makes the worker poll.
 */
static void
check_missed_interrupt(struct port_memif *p, uint16_t q, uint64_t now)
{
	struct memif_worker *w = &p->worker[MEMIF_RX][q];

	if (w->settle == 0)
		w->settle = now;
	else if (now - w->settle >= SETTLED_NS)
		__atomic_store_n(&p->queue[q].napped, false, __ATOMIC_RELAXED);
}

/* Before frames are taken from a ring: the peer need not raise interrupts. */
static void
mask_again(struct port_memif *p, uint16_t q, const struct memif_conn *c, struct memif_lane *l)
{
	set_mask(l, true);
	p->worker[MEMIF_RX][q].settle = 0;
	__atomic_store_n(&p->queue[q].napped, !c->fenced, __ATOMIC_RELAXED);
}

static uint16_t
lane_rx(struct port_memif *p, uint16_t q, struct memif_conn *c, struct memif_lane *l,
	struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	uint32_t ready = waiting(p, q, c, l);

	if (ready != 0) {
		if (unlikely(l->unmasked && !p->queue[q].armed))
			mask_again(p, q, c, l);
		return ring_take(p, q, c, l, m, n, ready);
	}
	if (l->unmasked && __atomic_load_n(&p->queue[q].napped, __ATOMIC_RELAXED))
		check_missed_interrupt(p, q, now);
	return 0;
}

/* Takes from the rings of several senders in turn. */
static uint16_t
rings_rx(struct port_memif *p, uint16_t q, struct memif_conn *c, struct rte_mbuf **m, uint16_t n,
	 uint64_t now)
{
	const struct memif_rings *r = &c->from[q];
	uint16_t at = p->queue[q].next, got = 0;

	for (uint16_t i = 0; i < r->n && got < n; i++) {
		if (at >= r->n)
			at = 0;
		got += lane_rx(p, q, c, &c->lane[MEMIF_RX][r->first + r->step * at], m + got,
			       n - got, now);
		at++;
	}
	p->queue[q].next = at;
	return got;
}

uint16_t
memif_rx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct port_memif *p = memif_of(port);
	struct memif_conn *c = memif_enter(p, MEMIF_RX, q);
	uint16_t got;

	if (unlikely(c == NULL))
		return 0;
	got = likely(c->rings[MEMIF_RX] == 1 && q == 0)
		      ? lane_rx(p, q, c, &c->lane[MEMIF_RX][0], m, n, now)
		      : rings_rx(p, q, c, m, n, now);
	memif_leave(p, MEMIF_RX, q);
	return got;
}

/* True: frames wait. */
static bool
arm_lane(struct port_memif *p, uint16_t q, struct memif_conn *c, struct memif_lane *l)
{
	if (!l->unmasked)
		set_mask(l, false);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return waiting(p, q, c, l) != 0;
}

/*
 * The ring of a foreign sender stays unmasked until frames arrive, so that later ones are not
 * missed.
 */
bool
memif_arm(struct hca_port *port, uint16_t q, bool on)
{
	struct port_memif *p = memif_of(port);
	const struct memif_rings *r;
	struct memif_conn *c;
	bool frames = false;

	p->queue[q].armed = on;
	c = memif_enter(p, MEMIF_RX, q);
	if (c == NULL)
		return false;
	if (on)
		hca_port_count(&p->worker[MEMIF_RX][q].stats.rx_arms, 1);
	r = &c->from[q];
	for (uint16_t i = 0; i < r->n; i++) {
		struct memif_lane *l = &c->lane[MEMIF_RX][r->first + r->step * i];

		if (on)
			frames |= arm_lane(p, q, c, l);
		else if (c->fenced && l->unmasked)
			set_mask(l, true);
	}
	memif_leave(p, MEMIF_RX, q);
	return frames;
}

uint64_t
memif_deadline(const struct hca_port *port, uint16_t q, uint64_t now)
{
	const struct port_memif *p = memif_of(port);

	return __atomic_load_n(&p->queue[q].napped, __ATOMIC_RELAXED) ? now + NAP_NS : UINT64_MAX;
}
