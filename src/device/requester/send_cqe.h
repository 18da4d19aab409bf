/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_SEND_CQE_H
#define REQUESTER_SEND_CQE_H

/*
 * Send completions of one QP that are filled and not handed over yet. The requester publishes
 * sq_una first: software that finds a CQE must find the window moved. req_rx; of UC and UD QPs
 * req_tx.
 */

#include "abi_cqe.h"
#include "engine/impl.h"

#define HCA_SEND_CQES 64u

struct hca_send_cqes {
	uint32_t n;
	struct {
		struct hca_cqe *cqe;
		uint32_t last_word;
	} of[HCA_SEND_CQES];
};

static inline void
hca_send_cqes_publish(struct hca_send_cqes *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		hca_cq_publish(c->of[i].cqe, c->of[i].last_word);
	c->n = 0;
}

/* Fills in the fields that all CQEs of requests have; false: cqe is NULL, the CQ was full. */
static inline bool
hca_send_cqe_add(struct hca_send_cqes *c, struct hca_cqe *cqe, const struct hca_qp *qp,
		 const struct hca_record *r, uint32_t opcode)
{
	if (unlikely(cqe == NULL))
		return false;
	cqe->my_qpn = hca_cpu_to_le32(qp->cfg.local_qpn);
	cqe->srqn = 0;
	cqe->wqe = hca_cpu_to_le32((uint32_t)r->wqe_index << qp->req_rx.sq_stride_log);
	c->of[c->n].cqe = cqe;
	c->of[c->n].last_word = opcode | 1u << 8; /* is_send */
	c->n++;
	return true;
}

/* The request r of qp has succeeded; cqe: reserved for it, or NULL. */
static inline void
hca_send_cqe_success(struct hca_send_cqes *c, struct hca_cqe *cqe, const struct hca_qp *qp,
		     const struct hca_record *r)
{
	if (unlikely(!hca_send_cqe_add(c, cqe, qp, r, r->op)))
		return;
	cqe->rqpn = 0;
	cqe->flags = 0;
	cqe->imm = 0;
	cqe->byte_cnt = hca_cpu_to_le32(r->len);
}

/* The same for a CQE that hca_cq_cursor_take() returned, except for the owner byte. */
static inline void
hca_send_cqe_plain(struct hca_cqe *cqe, uint32_t qpn, uint32_t wqe, const struct hca_record *r)
{
	cqe->my_qpn = hca_cpu_to_le32(qpn);
	cqe->srqn = 0;
	cqe->rqpn = 0;
	cqe->flags = 0;
	cqe->imm = 0;
	cqe->byte_cnt = hca_cpu_to_le32(r->len);
	cqe->wqe = hca_cpu_to_le32(wqe);
	cqe->opcode = r->op;
	cqe->is_send = 1;
	cqe->reserved1e = 0;
}

/* The same for one that has failed. */
static inline void
hca_send_cqe_error(struct hca_send_cqes *c, struct hca_cqe *cqe, const struct hca_qp *qp,
		   const struct hca_record *r, uint8_t syndrome)
{
	if (hca_send_cqe_add(c, cqe, qp, r, HCA_CQE_OP_ERR_SEND))
		hca_cqe_fill_error(cqe, syndrome);
}

#endif
