/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_EDGE_H
#define ENGINE_EDGE_H

/*
 * Edges pass descriptors forward. On the same worker an edge is a direct call with the burst,
 * otherwise an rte_ring (single producer, single consumer). This is decided once, when the graph is
 * built.
 *
 * The producer calls hca_edge_room() before it changes any state and pushes at most that many, so a
 * push cannot fail. Only the forward edges below exist; they form a DAG (graph.c asserts it), so
 * full edges cannot deadlock. All communication backward is by messages (msg.h), whose channels
 * cannot be full; the ring of looped-back frames (loopback.h) ends in sinks.
 *
 * enq and deq count objects, each on its writer's cache line: an edge has passed a round when deq
 * has reached the value of enq at its start.
 */

#include <rte_ring.h>

#include "core/ring_count.h"
#include "engine/stage.h"

/*
 * X(ENUM, from, to): objects are doorbell words or mbufs. The functions of an edge stand in the row
 * of its wire (wire_ops.h); without that wire the device does not have the edge, and process is
 * NULL. Encap takes from those that lead to it in this order: responses first, because they open
 * the peer's window.
 */
#define HCA_EDGE_LIST(X) \
	X(DB_PARSER, DOORBELL, PARSER) \
	X(EE_ENCAP, EE, ENCAP) \
	X(REQ_TX_ENCAP, REQ_TX, ENCAP) \
	X(DECAP_EE, DECAP, EE) \
	X(DECAP_REQ_RX, DECAP, REQ_RX) \
	X(DECAP_TPR, DECAP, TPR) \
	X(DECAP_TPS, DECAP, TPS) \
	X(TPR_TAI, TPR, TAI) \
	X(TPR_TAT, TPR, TAT) \
	X(DECAP_ENCAP, DECAP, ENCAP) /* of a wire without stages, which answers each frame */ \
	X(TPR_ENCAP, TPR, ENCAP) \
	X(TPS_ENCAP, TPS, ENCAP)

enum hca_edge_id {
#define X(e, f, t) HCA_EDGE_##e,
	HCA_EDGE_LIST(X)
#undef X
	HCA_EDGE_N
};

struct hca_edge {
	struct rte_ring *ring; /* NULL: direct */
	hca_stage_process_fn
		process; /* [pub] NULL: not in use; replaced while stage times are measured */
	hca_stage_process_fn plain; /* process while they are not */
	hca_stage_room_fn room;
	uint8_t from, to;
	/* ring: word of workers that the producer's worker must wake; the consumer's bit in it */
	uint64_t *wake;
	uint64_t wake_bit;
	uint64_t enq __rte_cache_aligned; /* producer */
	uint64_t deq __rte_cache_aligned; /* consumer */
} __rte_cache_aligned;

static inline unsigned int
hca_edge_room(struct hca_pipe *h, const struct hca_edge *e)
{
	return e->ring ? hca_ring_room(e->ring) : e->room(h);
}

static inline void
hca_edge_process(struct hca_pipe *h, const struct hca_edge *e, void *const *objs, unsigned int n,
		 uint64_t now)
{
	__atomic_load_n(&e->process, __ATOMIC_RELAXED)(h, objs, n, now);
}

/* n must not exceed the last result of hca_edge_room(). */
static inline void
hca_edge_push(struct hca_pipe *h, struct hca_edge *e, void *const *objs, unsigned int n,
	      uint64_t now)
{
	if (e->ring == NULL) {
		hca_edge_process(h, e, objs, n, now);
		return;
	}
	rte_ring_sp_enqueue_bulk(e->ring, objs, n, NULL);
	__atomic_store_n(&e->enq, e->enq + n, __ATOMIC_RELEASE);
	*e->wake |= e->wake_bit;
}

/* Consumer side, called in the consumer's poll; returns 0 for a direct edge. */
static inline unsigned int
hca_edge_drain(struct hca_pipe *h, struct hca_edge *e, unsigned int budget, uint64_t now)
{
	void *objs[HCA_BURST];
	unsigned int n;

	if (e->ring == NULL)
		return 0;
	n = rte_ring_sc_dequeue_burst(e->ring, objs, RTE_MIN(budget, HCA_BURST), NULL);
	if (n == 0)
		return 0;
	hca_edge_process(h, e, objs, n, now);
	__atomic_store_n(&e->deq, e->deq + n, __ATOMIC_RELEASE);
	return n;
}

#endif
