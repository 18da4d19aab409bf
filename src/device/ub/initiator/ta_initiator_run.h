/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_INITIATOR_TA_INITIATOR_RUN_H
#define UB_INITIATOR_TA_INITIATOR_RUN_H

/*
 * Runs of plain requests: Writes, Reads or Sends of one segment and one SGE that need not wait for
 * others, to the member of a group that took the segment before them. Values that change from one
 * to the next are kept in locals. Included by ta_initiator_send.c only.
 */

#include <stddef.h>
#include <string.h>

#include "ub/initiator/ta_initiator_choose.h"
#include "ub/initiator/ta_initiator_op.h"

/* The longest of which neither the length nor the turn of its TP needs a look; 0: none. */
static inline uint32_t
longest_plain(const struct hca_tai_ctx *ctx)
{
	uint32_t cost = RTE_MIN(ctx->run, HCA_TAI_SEGMENT);

	return cost > HCA_TAI_OVERHEAD ? RTE_MIN(ctx->segment, cost - HCA_TAI_OVERHEAD - 1) : 0;
}

/* Values that a record of a run has in common with the one before it, as a rule. */
struct plain {
	uint64_t kind; /* tai_record_kind() it; UINT64_MAX: no record yet */
	uint8_t op;    /* of all records of the run */
	uint8_t opcode, ta1, ta4, counted;
	uint32_t rc;
};

/* Operation, flags, status and order. */
static inline uint64_t
tai_record_kind(const struct hca_ub_record *r)
{
	static const struct hca_ub_record which = {.op = UINT8_MAX,
						   .flags = UINT8_MAX,
						   .status = UINT8_MAX,
						   .order = UINT8_MAX};
	uint64_t kind, mask;

	_Static_assert(offsetof(struct hca_ub_record, order) < sizeof(kind), "in the first word");
	memcpy(&kind, r, sizeof(kind));
	memcpy(&mask, &which, sizeof(mask));
	return kind & mask;
}

#define PLAIN_OPS (1u << HCA_OP_RDMA_WRITE | 1u << HCA_OP_RDMA_READ | 1u << HCA_OP_SEND)

/*
 * A plain request of any length, to any TP, with the operation of the run. False: the general path
 * has to look at it, as at a Send that completes in order.
 */
static inline bool
tai_begin_plain(const struct hca_ub_record *r, uint32_t qpn, struct plain *p)
{
	uint32_t order = hca_tai_execution_order(r);
	bool read = r->op == HCA_OP_RDMA_READ, send = r->op == HCA_OP_SEND;

	if (r->status != 0 || r->flags & (HCA_REC_FULL | HCA_REC_FENCE) ||
	    order == HCA_UB_ODR_STRONG || (send && r->order & HCA_UB_ODR_COMPLETION) ||
	    (PLAIN_OPS >> (r->op & 31) & 1) == 0 || (p->kind != UINT64_MAX && p->op != r->op))
		return false;
	p->kind = tai_record_kind(r);
	p->op = r->op;
	p->opcode = hca_ub_wrs[r->op & 31].last_opcode;
	p->ta1 = (uint8_t)(HCA_FIELD(5, 4, HCA_UB_EE_NORMAL) |
			   TV_EN((r->order & HCA_UB_HAS_TOKEN) != 0));
	p->ta4 = (uint8_t)(HCA_FIELD(6, 4, HCA_UB_ODR(r->order)) | MT_EN(send) |
			   FCE((r->flags & HCA_REC_SOLICITED) != 0));
	p->counted =
		(uint8_t)((order != HCA_UB_ODR_NONE ? HCA_TAI_COUNTED_ORDERED : 0) |
			  (read ? HCA_TAI_COUNTED_READ : 0) | (send ? HCA_TAI_COUNTED_SEND : 0));
	p->rc = qpn | E_BIT((r->order & HCA_UB_EXCLUSIVE) != 0);
	return true;
}

static inline bool
tai_is_plain(const struct hca_ub_record *r, uint32_t qpn, struct plain *p)
{
	return likely(tai_record_kind(r) == p->kind) || tai_begin_plain(r, qpn, p);
}

/* tai_fill_op() of a plain request. */
static inline void
tai_fill_plain(const struct hca_ub_record *r, const struct plain *p, uint32_t ref, uint16_t tassn,
	       struct hca_ta_op *op)
{
	op->opcode = op->last_opcode = p->opcode;
	op->ta1 = p->ta1;
	op->ta4 = p->ta4;
	op->rc = p->rc;
	op->tassn = tassn;
	op->source = HCA_TA_OP_LOCAL;
	op->encap = 0;
	op->payload = op->length = r->len;
	op->key = r->sge.lkey;
	op->offset = 0;
	op->req.address = r->raddr;
	op->req.va = r->sge.va;
	op->req.record = ref;
	op->req.from = 0;
	op->req.token_id = r->token_id;
	op->req.token = r->token;
	op->tps.desc_seq = 0;
	op->tps.flags = 0;
	if (p->op == HCA_OP_RDMA_WRITE)
		return;
	op->req.tc = r->tc;
	if (p->op == HCA_OP_RDMA_READ) {
		op->source = HCA_TA_OP_NO_PAYLOAD;
		op->payload = 0;
	}
}

/* Segments that may be put at once, as far as their requests are plain. */
static inline uint32_t
longest_run(const struct visit *v)
{
	const struct hca_qp *qp = v->qp;
	uint32_t n = RTE_MIN(v->left, v->room), used;

	used = (uint16_t)(qp->tai.tassn - hca_tai_una(qp));
	n = RTE_MIN(n, qp->tai.segment_mask + 1u - RTE_MIN(used, qp->tai.segment_mask + 1u));
	n = RTE_MIN(n, v->h->ub->pool[HCA_TP_REQUESTS].free_n);
	return RTE_MIN(n, v->head - qp->sq_next);
}

/* n segments of this cost in sum, which tai_send_run() has put into the lane of a TP. */
static inline void
tai_end_run(struct visit *v, uint32_t n, uint32_t cost, uint32_t ordered, const struct plain *p)
{
	struct hca_tp *tp = hca_tai_tp(v->h, v->member);
	struct hca_tp_lane *lane = &tp->lane[HCA_TP_REQUESTS];
	struct hca_qp *qp = v->qp;

	v->h->ub->pool[HCA_TP_REQUESTS].free_n -= n;
	__atomic_store_n(&tp->tai.open_out, tp->tai.open_out + n, __ATOMIC_RELAXED);
	__atomic_store_n(&lane->head, lane->head + n, __ATOMIC_RELEASE);
	v->put += n;
	v->left -= n;
	v->room -= n;
	v->ctx->turn[v->group].spent += cost;
	qp->tai.deficit -= (int32_t)cost;
	qp->tai.open = (uint16_t)(qp->tai.open + n);
	qp->tai.open_ordered = (uint16_t)(qp->tai.open_ordered + ordered);
	if (p->counted & HCA_TAI_COUNTED_READ)
		qp->tai.open_reads = (uint16_t)(qp->tai.open_reads + n);
	if (p->counted & HCA_TAI_COUNTED_SEND)
		qp->tai.open_sends = (uint16_t)(qp->tai.open_sends + n);
	__atomic_store_n(&qp->tai.tassn, (uint16_t)(qp->tai.tassn + n), __ATOMIC_RELEASE);
	__atomic_store_n(&qp->sq_next, qp->sq_next + n, __ATOMIC_RELEASE);
}

/*
 * The next requests, as far as they are plain and there is room. The segment before them was sent
 * in this visit, to v->member. Returns how many.
 */
static inline uint32_t
tai_send_run(struct visit *v)
{
	struct hca_tp *tp = hca_tai_tp(v->h, v->member);
	struct hca_qp *qp = v->qp;
	const uint32_t *free =
		v->h->ub->pool[HCA_TP_REQUESTS].free + v->h->ub->pool[HCA_TP_REQUESTS].free_n;
	uint32_t *ring = tp->lane[HCA_TP_REQUESTS].ring, at = tp->lane[HCA_TP_REQUESTS].head;
	uint32_t to = HCA_UB_MAKE_NUMBER(HCA_UB_TO_TPG, v->group), mask = tp->cfg.window - 1u;
	uint32_t generation = qp->cfg.generation, qpn = qp->cfg.local_qpn, next = qp->sq_next;
	uint32_t longest = longest_plain(v->ctx), most = longest_run(v);
	struct plain plain = {.kind = UINT64_MAX};
	uint32_t n = 0, cost = 0, ordered = 0;
	int32_t deficit = qp->tai.deficit;
	uint16_t tassn = qp->tai.tassn;
	uint64_t now = v->ctx->now;

	for (; n < most && deficit > (int32_t)cost; n++, tassn++) {
		uint32_t ref = hca_tai_ref(qp, next + n), index = free[-1 - (int)n];
		struct hca_ub_record *r = hca_ub_record(v->h, ref);
		struct hca_jetty_segment *s = hca_tai_segment(qp, tassn);
		struct hca_ta_op *op = hca_tai_op(v->h, index);

		if (n + 2 < most)
			rte_prefetch0(hca_tai_record(v->h, qp, next + n + 2));
		if (unlikely(r->to != to || r->len - 1 >= longest || !tai_is_plain(r, qpn, &plain)))
			break;
		op->flags = 0;
		op->object = v->qpi;
		op->generation = generation;
		tai_fill_plain(r, &plain, ref, tassn, op);
		s->cursor = next + n;
		s->op = index;
		s->number = v->member;
		s->state = HCA_TAI_SEGMENT_OPEN;
		s->retries = s->packets = 0;
		s->counted = plain.counted;
		r->first = tassn;
		r->open++;
		r->active = now;
		ring[(at + n) & mask] = index;
		cost += HCA_TAI_OVERHEAD + op->payload;
		ordered += (plain.counted & HCA_TAI_COUNTED_ORDERED) != 0;
	}
	if (n != 0)
		tai_end_run(v, n, cost, ordered, &plain);
	return n;
}

#endif
