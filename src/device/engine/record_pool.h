/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_RECORD_POOL_H
#define ENGINE_RECORD_POOL_H

/*
 * Pools of request records and who may take one.
 *
 * Every live QP owns two records of each kind; the rest is shared. A QP that holds fewer than two
 * of a kind may always take one, others only while shared ones are left, so that a QP which waits
 * (RNR, a dead peer) cannot keep those from working that would free it.
 *
 * Of the shared ones an owner (UAR page) may hold only as many as are still free: one that never
 * gives back ends with half of them, two with a third each, and there is always something for who
 * comes next. An owner that is alone may have seven eighths. The parser counts what each
 * QP holds (parser.held) from the window: references enter at head and leave at sq_freed.
 *
 * Take and settle: parser only. Return: RTC enqueues references on pool->free before it publishes
 * sq_freed. hca_record_reserve_qp(): CEU only. in_use: anybody, may lag.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "ctxmgt/qp.h"
#include "engine/record.h"

struct hca;

#define HCA_RECORDS_PER_QP_RESERVED 2u

/*
 * count objects of `size` bytes each, zeroed; the references to them are their indexes, ORed with
 * mark (HCA_RECREF_FULL or 0). kind ends the name of the ring. -ENOMEM; a pool that was never set
 * up (all zero) may be passed to fini.
 */
int hca_record_pool_init(struct hca *h, struct hca_record_pool *p, const char *kind, uint32_t count,
			 uint32_t size, uint32_t mark);
void hca_record_pool_fini(struct hca_record_pool *p);

/* Records neither on the parser's stack nor on their way back to it. */
uint32_t hca_record_pool_in_use(const struct hca_record_pool *p);

/*
 * One live QP more (delta 1) or less (-1, after every stage has forgotten it). -ENOMEM: the pools
 * cannot give two records of each kind to one more QP; nothing has changed.
 */
int hca_record_reserve_qp(struct hca *h, uint32_t usr_page, int delta);

/* Move returned references to the stack. */
void hca_record_pool_refill(struct hca_record_pool *p);

/* Read at any time by whoever asks how many records are in use. */
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

/* How many more of the shared records the owner may take now. */
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

/* HCA_RECREF_NONE: none for this QP now. */
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

/* Records the QP could take in one go; shared: it may take from the shared ones. */
static inline uint32_t
hca_record_allowance(const struct hca_record_pool *p, const struct hca_qp_parser *q, bool shared)
{
	uint32_t held = RTE_MIN((uint32_t)q->held[p->mark != 0], HCA_RECORDS_PER_QP_RESERVED);
	uint32_t n = HCA_RECORDS_PER_QP_RESERVED - held;

	if (shared)
		n += hca_record_share(p, hca_record_owner(p, q));
	return RTE_MIN(n, p->stack_n);
}

/* The QP has used the n topmost of the stack, within its allowance. */
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

/* The QP has got rid of n records of this kind. */
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
