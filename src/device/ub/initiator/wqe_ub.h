/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_INITIATOR_WQE_UB_H
#define UB_INITIATOR_WQE_UB_H

/*
 * Decodes send WQEs of Jettys (abi_tp.h). As wqe_unit.h it reads the device's private copy only and
 * checks the structure: TPs, tokens, keys and ranges are checked when they are used.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_tp.h"
#include "ub/record.h"

/* Pointers lead into the copy. If status is not 0 the other members are invalid. */
struct hca_wqe_ub {
	uint8_t status; /* 0 or HCA_UB_STATUS_* */
	uint8_t nsge;	/* SGEs of non-zero length */
	uint8_t nunits; /* data units, including empty ones */
	bool is_inline; /* data: len bytes */
	bool is_rd;	/* Read or atomic */
	uint32_t len;	/* bytes of the message; of an atomic: of one operand */
	const struct hca_ub_wr *wr;
	const struct hca_ub_unit *ub;
	const struct hca_raddr_unit *raddr; /* NULL: the WQE has no such unit, as the next three */
	const struct hca_notify_unit *notify;
	const uint8_t *operands;
	const struct hca_ud_unit *ud; /* not checked here */
	const uint8_t *data;	      /* first data unit, or inline bytes */
	struct hca_sge first;	      /* first SGE of non-zero length, when nsge != 0 */
};

/* As hca_wqe_decode(): size and op are any value, of size at most stride bytes exist. */
void hca_wqe_ub_decode(const uint8_t *wqe, uint32_t size, uint32_t stride, uint8_t op,
		       struct hca_wqe_ub *out);

/* hca_wqe_ub_fill_simple() of an operation with these enum hca_ub_wr_flag. */
static __rte_always_inline bool
hca_wqe_ub_fill_form(const uint8_t *wqe, uint32_t size, uint32_t stride, uint32_t flags,
		     struct hca_ub_record *r)
{
	const uint32_t other = HCA_UB_WR_NOTIFY | HCA_UB_WR_OPERANDS | HCA_UB_WR_ENABLES;
	const struct hca_ub_unit *u = (const void *)(wqe + sizeof(struct hca_next_unit));
	bool remote = (flags & HCA_UB_WR_RADDR) != 0;
	uint32_t off = sizeof(struct hca_next_unit) + sizeof(*u) +
		       (remote ? sizeof(struct hca_raddr_unit) : 0);
	const struct hca_raddr_unit *raddr = (const void *)(u + 1);
	const struct hca_data_unit *d = (const void *)(wqe + off);
	uint32_t cnt = hca_le32_to_cpu(d->byte_cnt), order = hca_le32_to_cpu(u->order);
	uint32_t to = hca_le32_to_cpu(u->number), tc = hca_le32_to_cpu(u->tc);
	uint32_t most = flags & HCA_UB_WR_SEGMENTED ? HCA_WQE_MAX_BYTE_CNT : HCA_UB_SEND_MAX;

	if ((flags & other) || size != off + sizeof(*d) || size > stride || cnt == 0 ||
	    cnt > most || HCA_UB_TO(to) > HCA_UB_TO_TPG ||
	    HCA_UB_ODR_EXECUTION(HCA_UB_ODR(order)) == HCA_UB_CODE_RESERVED ||
	    HCA_UB_TC_TYPE(tc) == HCA_UB_CODE_RESERVED || (order & HCA_UB_EXCLUSIVE))
		return false;
	r->flags = flags & HCA_UB_WR_READ ? HCA_REC_RD : 0;
	r->status = 0;
	r->nsge = 1;
	r->order = order & (HCA_MASK(2, 0) | HCA_UB_HAS_TOKEN);
	r->atomic = HCA_UB_ATOMIC(order);
	r->len = cnt;
	r->to = to;
	r->raddr = remote ? hca_le64_to_cpu(raddr->raddr) : 0;
	r->token_id = remote ? hca_le32_to_cpu(raddr->rkey) & HCA_TOKEN_ID_MASK : 0;
	r->token = hca_le32_to_cpu(u->token);
	r->first = r->open = 0;
	r->active = 0;
	r->sge.va = hca_le64_to_cpu(d->addr);
	r->sge.lkey = hca_le32_to_cpu(d->lkey);
	r->sge.len = cnt;
	if (likely((flags & (HCA_UB_WR_RADDR | HCA_UB_WR_RECV)) == HCA_UB_WR_RADDR))
		return true;
	r->data = hca_le64_to_cpu(u->data);
	r->notify = 0;
	r->notify_token_id = r->notify_token = 0;
	r->tc = tc;
	r->tc_token = hca_le32_to_cpu(u->tc_token);
	r->user = HCA_UB_UD_MAKE_OPERATION(HCA_UB_UD_OP(order));
	return true;
}

/*
 * The common form alone: Send, Write or Read with one data unit that is not empty, over a TP. True:
 * the record is filled in as by hca_wqe_ub_decode() and hca_wqe_ub_fill(); false: it is another
 * form, or a wrong one, and *r is not meaningful. For a Write or Read the second line of the
 * record, which says nothing, is left as it is.
 */
static inline bool
hca_wqe_ub_fill_simple(const uint8_t *wqe, uint32_t size, uint32_t stride, uint8_t op,
		       struct hca_ub_record *r)
{
	const struct hca_ub_wr *wr = &hca_ub_wrs[op & 31];

	/* the most frequent one with flags that are constant for the compiler */
	if (likely((op & 31) == HCA_OP_RDMA_WRITE))
		return hca_wqe_ub_fill_form(wqe, size, stride, HCA_UB_WR_OF_WRITE, r);
	return wr->known && hca_wqe_ub_fill_form(wqe, size, stride, wr->flags, r);
}

/* Whether the record of a decoded WQE must be a full one. */
static inline bool
hca_wqe_ub_full(const struct hca_wqe_ub *w)
{
	return w->is_inline || w->nsge > 1 || w->operands != NULL || w->ud != NULL;
}

/*
 * Fill in the record of a decoded WQE, full where hca_wqe_ub_full() says so, but for op, wqe_index
 * and the flags that the next unit and the chain tell. av: of one with a UD unit.
 */
void hca_wqe_ub_fill(const struct hca_wqe_ub *w, const struct hca_ud_av *av,
		     struct hca_ub_record *r);

#endif
