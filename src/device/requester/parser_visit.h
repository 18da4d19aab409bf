/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_PARSER_VISIT_H
#define REQUESTER_PARSER_VISIT_H

/*
 * The visit of a QP: shared by the parser and the functions that make records of WQEs, those of
 * RoCE in wqe_parser.c and those that the row of another wire names (parse_run and parse of struct
 * hca_wire_ops). All of them run on the parser's lcore.
 */

#include "core/qbuf.h"
#include "engine/impl.h"
#include "engine/wire_ops.h"
#include "requester/doorbell.h"
#include "requester/parser_fill.h"
#include "requester/parser_list.h"
#include "requester/record_pool.h"

/* Result of the visit of a QP. */
enum visit_end {
	VISIT_MORE, /* quota used up, or visit again */
	VISIT_IDLE, /* no WQEs announced */
	VISIT_PARKED,
	VISIT_NO_RECORD,
	VISIT_CATAS,
};

struct hca_parser_visit {
	struct hca_qp *qp;
	struct hca_qp_parser *p;
	const struct hca_wire_ops *other; /* the row of another wire than RoCE; NULL: RoCE */
	uint32_t head;
	uint32_t stop; /* limit of the window cursor head */
	uint32_t bad;  /* number of WQEs with a syndrome other than flush */
	bool flush;
	bool runs;			/* WQEs of the common form are parsed in runs */
	struct hca_record_pool *wanted; /* VISIT_NO_RECORD */
	enum visit_end end;		/* after a run: VISIT_MORE or VISIT_CATAS */
};

/* Do other QPs of the same owner wait for a record? */
static inline bool
others_wait(const struct hca_record_pool *pool, const struct hca_qp_parser *p)
{
	return unlikely(pool->waiting != 0) && hca_record_owner(pool, p)->wait_head != HCA_NO_QP;
}

/*
 * A record for the QP; HCA_RECREF_NONE: it waits for one of this pool. QPs that have waited longer
 * come first, unless the QP lacks one of the two records reserved for it.
 */
static inline uint32_t
hca_parser_take(struct hca_parser_visit *v, struct hca_record_pool *pool)
{
	struct hca_qp_parser *p = v->p;
	uint32_t ref = HCA_RECREF_NONE;

	if (likely(!others_wait(pool, p) || p->flags & HCA_PF_GRANTED || reserve_due(pool, p)))
		ref = hca_record_take(pool, p);
	if (unlikely(ref == HCA_RECREF_NONE))
		v->wanted = pool;
	return ref;
}

/*
 * Advance to the WQE after the one just parsed, according to its copy; false: the chain leaves the
 * order of the queue.
 */
static inline bool
chain_advance(struct hca_qp_parser *p, const struct hca_next_unit *next)
{
	uint32_t nda_nop = hca_le32_to_cpu(next->nda_nop);
	uint32_t nee_nds = hca_le32_to_cpu(next->nee_nds);
	uint32_t size = 1u << p->sq_size_log;

	p->sq_index = (uint16_t)((p->sq_index + 1u) & (size - 1));
	p->next_size = (uint8_t)HCA_NEXT_NDS(nee_nds);
	p->next_op = (uint8_t)HCA_NEXT_NOP(nda_nop);
	p->next_fence = (nee_nds & HCA_NEXT_F) != 0;
	p->in_chain = p->next_size != 0;
	if (!p->in_chain)
		return true;
	return ++p->chain_len < size && HCA_NEXT_NDA(nda_nop) == (uint32_t)p->sq_index
									 << p->sq_stride_log;
}

static inline void
chain_start(struct hca_qp_parser *p, uint32_t op, uint32_t size0, uint32_t fence)
{
	p->next_op = (uint8_t)op;
	p->next_size = (uint8_t)size0;
	p->next_fence = (uint8_t)fence;
	p->chain_len = 0;
	p->in_chain = 1;
}

/* Begin the chain of the next doorbell; false: that is not at the queue's position, or missing. */
static inline bool
chain_next(struct hca_qp_parser *p)
{
	uint32_t w = p->chain[p->chain_head & ((1u << p->sq_size_log) - 1)];

	if (unlikely(p->chain_head == p->chain_tail || HCA_CHAIN_SQ_HEAD(w) != p->sq_index))
		return false;
	p->chain_head++;
	chain_start(p, HCA_CHAIN_OPCODE(w), HCA_CHAIN_SIZE0(w), HCA_CHAIN_F(w));
	return true;
}

/*
 * Makes the record of a WQE of the common form; false: it has another form, and the record is not
 * meaningful. copy: the WQE, of the announced size, which may exceed the stride; at: the parser's
 * position.
 */
typedef bool (*hca_parse_simple_fn)(struct hca_pipe *h, const struct hca_qp *qp,
				    const uint8_t *copy, uint32_t size, uint32_t stride,
				    uint8_t service, struct hca_qp_parser *at, void *record);

/*
 * Parse a run of WQEs of the common form in this and the next chains, at most quota, taking
 * everything in bulk and keeping it in locals (9.5 ns per WQE, 14 one by one). Stops before the
 * first WQE of another form and at the end of room. Returns the number parsed. pool: small or full;
 * it, bytes of a record and simple are constants of each caller, so the compiler has a copy for
 * each.
 */
static __rte_always_inline unsigned int
hca_parser_run(struct hca_pipe *h, struct hca_parser_visit *v, unsigned int quota,
	       struct hca_record_pool *pool, size_t bytes, hca_parse_simple_fn simple)
{
	uint8_t copy[HCA_WQE_MAX_STRIDE] __rte_cache_aligned;
	const struct hca_next_unit *next = (const struct hca_next_unit *)copy;
	struct hca_qp_parser *p = v->p;
	bool shared = !others_wait(pool, p) || p->flags & HCA_PF_GRANTED;
	const uint32_t *refs = pool->stack + pool->stack_n;
	struct hca_qp_parser at = *p; /* state of the walk, in registers */
	uint32_t window_mask = at.window_mask, *window = at.window, stride_log = at.sq_stride_log;
	uint32_t stride = 1u << stride_log, head = v->head, n = 0;
	uint8_t service = v->qp->cfg.service;

	quota = RTE_MIN(quota, v->stop - head);
	quota = RTE_MIN(quota, hca_record_allowance(pool, p, shared));
	while (n < quota) {
		uint32_t size = (uint32_t)at.next_size * HCA_WQE_UNIT, ref;
		bool in_order;

		copy_wqe(copy, hca_qbuf_at(&at.sq, (uint32_t)at.sq_index << stride_log), size,
			 stride);
		ref = refs[-1 - (int)n];
		if (!simple(h, v->qp, copy, size, stride, service, &at,
			    (uint8_t *)pool->mem + (ref & ~HCA_RECREF_FULL) * bytes))
			break;
		__atomic_store_n(&window[head++ & window_mask], ref, __ATOMIC_RELAXED);
		n++;
		in_order = chain_advance(&at, next);
		if (unlikely(!in_order)) {
			v->end = VISIT_CATAS;
			break;
		}
		/* marked QPs may have chains without a doorbell: chain_begin() finds those */
		if (!at.in_chain && (at.marked != 0 || !chain_next(&at)))
			break;
	}
	p->sq_index = at.sq_index;
	p->next_op = at.next_op;
	p->next_size = at.next_size;
	p->next_fence = at.next_fence;
	p->in_chain = at.in_chain;
	p->chain_len = at.chain_len;
	p->chain_head = at.chain_head;
	p->rd_count = at.rd_count;
	hca_record_taken(pool, p, n);
	v->head = head;
	return n;
}

#endif
