/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_RECORD_POOL_H
#define REQUESTER_RECORD_POOL_H

/*
 * Pools of request records, two for each wire, and the rules for taking a record.
 *
 * Every live QP owns two records of each kind; the rest is shared. A QP with fewer than two of a
 * kind may always take one, others only while shared ones are left, so that waiting QPs (RNR, a
 * dead peer) cannot block those whose progress would free records.
 *
 * An owner (UAR page) may hold at most as many shared records as are still free: a single greedy
 * owner gets half of them, two get a third each, and some are always left for the next one. An
 * owner that is alone may have seven eighths. The parser counts the records of each QP
 * (parser.held) from the window: references enter at head and leave at sq_freed.
 *
 * Take and settle: parser only. Return: req_tx enqueues references on pool->free before it
 * publishes sq_freed. hca_record_reserve_qp(): CEU only. in_use: any thread, may lag.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "ctxmgt/qp.h"
#include "engine/impl.h"
#include "engine/record.h"
#include "engine/wire_ops.h"

#define HCA_RECORDS_PER_QP_RESERVED 2u

/* The pools of a wire: numbers of records, and their sizes in bytes. */
struct hca_record_sizes {
	uint32_t small, small_bytes;
	uint32_t full, full_bytes;
};

/**
 * Create the pools of a wire, of zeroed records. For the rows of wires (hca_wire_ops.create).
 *
 * @param h
 *   The pipe; its pools of the wire are zeros.
 * @param wire
 *   The wire.
 * @param s
 *   The sizes.
 * @return
 *   0, or -ENOMEM: hca_record_pools_fini() releases the pools that were made.
 */
int hca_record_pools_init(struct hca_pipe *h, enum hca_wire wire, const struct hca_record_sizes *s);
/* Release them; they may be zeros. */
void hca_record_pools_fini(struct hca_pipe *h, enum hca_wire wire);

/*
 * Number of records in use: neither on the parser's stack nor being returned to it; 0 of a pool of
 * zeros.
 */
uint32_t hca_record_pool_in_use(const struct hca_record_pool *p);

/*
 * Reserve the records of one more live QP (delta 1) or of one less (-1, after every stage has
 * forgotten it). -ENOMEM: there are not two records of each kind for one more QP; nothing changes.
 */
int hca_record_reserve_qp(struct hca_pipe *h, uint32_t service, uint32_t usr_page, int delta);

/* Move returned references to the stack. */
void hca_record_pool_refill(struct hca_record_pool *p);

/* The pools of the QPs of a service. */
static inline struct hca_record_pools *
hca_record_pools_of(struct hca_pipe *h, uint32_t service)
{
	return &h->records[hca_service_wire(&h->core, service)];
}

/* Atomic, because it is read at any time for statistics. */
static inline void
hca_record_set_stack(struct hca_record_pool *p, uint32_t n)
{
	__atomic_store_n(&p->stack_n, n, __ATOMIC_RELAXED);
}

static inline struct hca_record_owner *
hca_record_owner(const struct hca_record_pool *p, const struct hca_qp_parser *q)
{
	const struct hca_qp *qp = container_of(q, struct hca_qp, parser);

	return &p->owner[qp->cfg.usr_page];
}

/* Number of shared records that the owner may take now. */
static inline uint32_t
hca_record_share(const struct hca_record_pool *p, const struct hca_record_owner *o)
{
	uint32_t qps = __atomic_load_n(&p->reserved_qps, __ATOMIC_RELAXED);
	uint32_t taken = p->shared_used + qps * HCA_RECORDS_PER_QP_RESERVED, left, kept;

	if (unlikely(taken >= p->count))
		return 0;
	left = p->count - taken;
	if (likely(__atomic_load_n(&p->owners, __ATOMIC_RELAXED) <= 1)) {
		kept = (p->count - qps * HCA_RECORDS_PER_QP_RESERVED) / 8;
		return left > kept ? left - kept : 0;
	}
	return left > o->used ? (left - o->used + 1) / 2 : 0;
}

/* Takes a record; HCA_RECREF_NONE: no record is available to this QP. */
static inline uint32_t
hca_record_take(struct hca_record_pool *p, struct hca_qp_parser *q)
{
	uint16_t *held = &q->held[p->mark != 0];

	if (unlikely(p->stack_n == 0)) {
		hca_record_pool_refill(p);
		if (p->stack_n == 0)
			return HCA_RECREF_NONE;
	}
	if (*held >= HCA_RECORDS_PER_QP_RESERVED) {
		struct hca_record_owner *o = hca_record_owner(p, q);

		if (unlikely(hca_record_share(p, o) == 0))
			return HCA_RECREF_NONE;
		p->shared_used++;
		o->used++;
	}
	(*held)++;
	hca_record_set_stack(p, p->stack_n - 1);
	return p->stack[p->stack_n];
}

/* Number of records that the QP may take at once; shared: including shared ones. */
static inline uint32_t
hca_record_allowance(const struct hca_record_pool *p, const struct hca_qp_parser *q, bool shared)
{
	uint32_t held = RTE_MIN((uint32_t)q->held[p->mark != 0], HCA_RECORDS_PER_QP_RESERVED);
	uint32_t n = HCA_RECORDS_PER_QP_RESERVED - held;

	if (shared)
		n += hca_record_share(p, hca_record_owner(p, q));
	return RTE_MIN(n, p->stack_n);
}

/* The QP has taken the n topmost of the stack, within its allowance. */
static inline void
hca_record_taken(struct hca_record_pool *p, struct hca_qp_parser *q, uint32_t n)
{
	uint16_t *held = &q->held[p->mark != 0];
	uint32_t before = RTE_MAX((uint32_t)*held, HCA_RECORDS_PER_QP_RESERVED);

	*held += n;
	before = RTE_MAX((uint32_t)*held, HCA_RECORDS_PER_QP_RESERVED) - before;
	p->shared_used += before;
	hca_record_owner(p, q)->used += before;
	hca_record_set_stack(p, p->stack_n - n);
}

/* The QP has returned n records of this kind. */
static inline void
hca_record_settle(struct hca_record_pool *p, struct hca_qp_parser *q, uint32_t n)
{
	uint16_t *held = &q->held[p->mark != 0];
	uint32_t before = RTE_MAX((uint32_t)*held, HCA_RECORDS_PER_QP_RESERVED);

	*held -= n;
	before -= RTE_MAX((uint32_t)*held, HCA_RECORDS_PER_QP_RESERVED);
	p->shared_used -= before;
	hca_record_owner(p, q)->used -= before;
}

#endif
