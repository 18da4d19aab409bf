/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_INITIATOR_TA_INITIATOR_OP_H
#define UB_INITIATOR_TA_INITIATOR_OP_H

/*
 * Operations of requests: all that is in their headers, and where their payload lies. Included by
 * ta_initiator_send.c only.
 */

#include "ub/initiator/ta_initiator.h"

#define TV_EN(on) HCA_FIELD(3, 3, on)
#define UD_FLAG(on) HCA_FIELD(0, 0, on)
#define MT_EN(on) HCA_FIELD(3, 3, on)
#define FCE(on) HCA_FIELD(2, 2, on)
#define RETRY(on) HCA_FIELD(1, 1, on)
#define E_BIT(on) HCA_FIELD(22, 22, on)

/* One SGE has all of the payload, or the record says where it is and which data goes with it. */
static __rte_noinline void
find_among(const struct hca_ub_record *r, uint32_t from, struct hca_ta_op *op)
{
	const struct hca_sge *sge = hca_ub_record_sges(r);

	op->source = HCA_TA_OP_RECORD;
	if (hca_ub_record_data(r) != NULL || hca_ub_wrs[r->op].flags & HCA_UB_WR_ENABLES)
		return;
	for (uint32_t i = 0; i < r->nsge; from -= sge[i++].len) {
		if (from >= sge[i].len)
			continue;
		if (op->payload > sge[i].len - from)
			return;
		op->source = HCA_TA_OP_LOCAL;
		op->key = sge[i].lkey;
		op->req.va = sge[i].va + from;
		return;
	}
}

static inline void
tai_find_payload(const struct hca_ub_record *r, uint32_t from, struct hca_ta_op *op)
{
	op->source = HCA_TA_OP_NO_PAYLOAD;
	if (op->payload == 0)
		return;
	if (unlikely(r->flags & HCA_REC_FULL || r->op == HCA_OP_ATOMIC)) {
		find_among(r, from, op);
		return;
	}
	/* the only SGE, which is as long as the message */
	op->source = HCA_TA_OP_LOCAL;
	op->key = r->sge.lkey;
	op->req.va = r->sge.va + from;
}

/* Bytes 1, 4 and 5 to 7 of the BTAH. FCE speaks of the message, so its last packet has it. */
static inline void
fill_btah(const struct hca_qp *qp, const struct hca_ub_record *r, const struct hca_tai_piece *piece,
	  struct hca_ta_op *op)
{
	bool names_op = op->opcode == HCA_UB_TA_STORE || op->opcode == HCA_UB_TA_LOAD;
	bool to_queue = (hca_ub_ta_ops[op->last_opcode].is & HCA_UB_EXT(MTETAH)) != 0;

	op->ta1 = (uint8_t)(HCA_FIELD(5, 4, HCA_UB_EE_NORMAL) |
			    TV_EN((r->order & HCA_UB_HAS_TOKEN) != 0) | UD_FLAG(names_op));
	op->ta4 = (uint8_t)(HCA_FIELD(6, 4, HCA_UB_ODR(r->order)) | MT_EN(to_queue) |
			    FCE(piece->last && r->flags & HCA_REC_SOLICITED) | RETRY(piece->again));
	op->rc = qp->cfg.local_qpn | E_BIT((r->order & HCA_UB_EXCLUSIVE) != 0);
}

static inline void
fill_opcodes(const struct hca_ub_record *r, const struct hca_tai_piece *piece, struct hca_ta_op *op)
{
	const struct hca_ub_wr *wr = &hca_ub_wrs[r->op];

	if (r->op == HCA_OP_ATOMIC) {
		op->opcode = op->last_opcode = r->atomic;
		return;
	}
	op->opcode = wr->opcode;
	op->last_opcode = piece->last ? wr->last_opcode : wr->opcode;
}

/* Bytes that its packets carry. */
static inline uint32_t
payload_of(const struct hca_ub_record *r, uint32_t length)
{
	if (r->op == HCA_OP_ATOMIC)
		return 2 * length;
	return hca_ub_wrs[r->op].flags & HCA_UB_WR_READ ? 0 : length;
}

/* Data for a receive or a notification; of a Write_with_immediate also the message length. */
static inline void
fill_signal(const struct hca_ub_record *r, struct hca_ta_op *op)
{
	op->req.data = r->data;
	op->req.tc = r->tc;
	if (likely(op->last_opcode == HCA_UB_TA_WRITE))
		return;
	if (op->last_opcode == HCA_UB_TA_WRITE_NOTIFY) {
		op->req.notify = r->notify;
		op->req.notify_token_id = r->notify_token_id;
		/* reserved where the packet has no value of its own */
		op->req.notify_token = r->order & HCA_UB_HAS_TOKEN ? r->notify_token : 0;
	} else if (op->last_opcode == HCA_UB_TA_WRITE_IMM) {
		op->req.notify_token = r->tc_token;
		op->req.total = r->len;
	}
}

/* Fill in the operation of a segment of the request r of qp. */
static inline void
tai_fill_op(const struct hca_qp *qp, uint32_t qpi, const struct hca_ub_record *r,
	    const struct hca_tai_piece *piece, struct hca_ta_op *op)
{
	/* word by word: a field that is not set here is not read for this kind of operation */
	op->flags = 0;
	op->object = qpi;
	op->generation = qp->cfg.generation;
	op->tassn = piece->tassn;
	op->encap = 0;
	op->payload = payload_of(r, piece->length);
	op->length = piece->length;
	op->key = 0;
	op->offset = piece->offset / HCA_UB_OFFSET_UNIT;
	op->req.record = piece->ref;
	op->req.from = piece->offset;
	op->req.address = r->raddr + piece->offset;
	op->req.token_id = r->token_id;
	op->req.token = r->token;
	op->req.user = r->user;
	op->tps.desc_seq = 0;
	op->tps.flags = 0;
	fill_opcodes(r, piece, op);
	fill_btah(qp, r, piece, op);
	fill_signal(r, op);
	tai_find_payload(r, piece->offset, op);
}

#endif
