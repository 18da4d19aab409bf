/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The receive side of SEND and WRITE with immediate: receive WQEs, their SGEs, and completions. The
 * queue is the owner's memory and may change at any time: the producer count is checked and cached,
 * and a WQE is copied once and only the copy is used.
 */

#include <errno.h>
#include <string.h>

#include "responder/ee.h"

#define SOURCE_MAC 6u /* in an Ethernet header */

bool
ee_recv_fetch(struct ee_request *q)
{
	struct hca_qp_ee *ee = &q->qp->ee;
	uint32_t stride_log = ee->rq_stride_log;
	const uint8_t *wqe;
	int n;

	q->fetched = true;
	if (q->srq != NULL) {
		wqe = hca_srq_peek(q->srq, q->srq_next);
		stride_log = q->srq->stride_log;
		q->nda = hca_le32_to_cpu(
			__atomic_load_n((const hca_le32 *)(const void *)wqe, __ATOMIC_RELAXED));
	} else {
		wqe = hca_qbuf_at(&ee->rq, ee_recv_offset(ee));
	}
	n = hca_rq_fetch(wqe, 1u << stride_log, ee->recv_sge, &q->room);
	if (n < 0)
		return false;
	q->nsge = (uint8_t)n;
	q->sge_at = 0;
	q->sge_off = 0;
	return true;
}

bool
ee_recv_place(struct ee_request *q)
{
	const struct hca_sge *sge = q->qp->ee.recv_sge;
	uint32_t left = q->len, pd = q->srq != NULL ? q->srq->pd : q->pd;

	q->npieces = 0;
	while (left != 0 && q->sge_at < q->nsge) {
		const struct hca_sge *s = &sge[q->sge_at];
		uint32_t n = RTE_MIN(s->len - q->sge_off, left);
		struct ee_piece *p = &q->piece[q->npieces];

		if (n != 0) {
			p->va = s->va + q->sge_off;
			p->len = n;
			p->mpt = hca_vtp_check(&q->h->vtp, s->lkey, pd, HCA_ACCESS_LOCAL_WRITE,
					       p->va, n);
			if (unlikely(p->mpt == NULL) && !ee_foreign_piece(q, p, s->lkey, pd))
				return false;
			q->npieces++;
			q->sge_off += n;
			left -= n;
		}
		if (q->sge_off == s->len) {
			q->sge_at++;
			q->sge_off = 0;
		}
	}
	return left == 0;
}

bool
ee_srq_take(struct hca_pipe *h, struct hca_qp *qp, struct hca_srq *s, uint64_t next, uint32_t nda)
{
	struct hca_qp_ee *ee = &qp->ee;
	int rc = hca_srq_take(s, next, nda);

	if (unlikely(rc == -EAGAIN))
		return false;
	ee->recv_off = HCA_SRQ_HEAD(next);
	ee->recv_srqn = s->srqn;
	ee->recv_generation = s->generation;
	ee->flags |= EE_RECV_HELD;
	if (unlikely(rc != 0))
		hca_srq_catas(&h->core, s, HCA_STAGE_EE);
	hca_srq_check_limit(&h->core, s, HCA_STAGE_EE);
	return true;
}

bool
ee_recv_claim(struct ee_request *q)
{
	q->claimed = ee_srq_take(q->h, q->qp, q->srq, q->srq_next, q->nda);
	return q->claimed;
}

void
ee_recv_take(struct ee_request *q)
{
	q->fetched = false;
	if (q->srq != NULL && !q->claimed)
		ee_srq_take(q->h, q->qp, q->srq, q->srq_next, q->nda);
}

struct hca_srq *
ee_held_srq(const struct hca_pipe *h, const struct hca_qp_ee *ee)
{
	struct hca_srq *s = hca_srq_find(&h->core, ee->recv_srqn);

	return s != NULL && s->generation == ee->recv_generation ? s : NULL;
}

/* CQ of the WQE taken from an SRQ; without a CQ it is refused, and counted, as with a dead one. */
static uint32_t
held_cq(const struct hca_pipe *h, const struct hca_qp *qp)
{
	const struct hca_srq *s;

	if (likely(qp->cfg.service != HCA_ST_XRC_TGT))
		return qp->cfg.rcqn;
	s = ee_held_srq(h, &qp->ee);
	return s != NULL ? s->cqn : UINT32_MAX;
}

/*
 * Reserve a CQE for the WQE taken from an SRQ, or for the oldest one of the RQ, which is consumed.
 */
static struct hca_cqe *
reserve(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_qp *qp, bool solicited)
{
	struct hca_qp_ee *ee = &qp->ee;
	bool held = ee->flags & EE_RECV_HELD;
	uint32_t cqi = unlikely(held) ? held_cq(h, qp) : qp->cfg.rcqn;
	struct hca_cqe *cqe = hca_cq_reserve(&h->core, cqi, &ctx->batch, solicited, HCA_STAGE_EE);

	if (likely(cqe != NULL)) {
		cqe->my_qpn = hca_cpu_to_le32(qp->cfg.local_qpn);
		cqe->srqn = held ? hca_cpu_to_le32(ee->recv_srqn) : 0;
		cqe->wqe = hca_cpu_to_le32(held ? ee->recv_off : ee_recv_offset(ee));
	}
	if (unlikely(held))
		ee->flags &= ~EE_RECV_HELD;
	else
		__atomic_store_n(&ee->rq_consumed, ee->rq_consumed + 1, __ATOMIC_RELAXED);
	return cqe;
}

static void
complete(struct hca_pipe *h, struct hca_cqe *cqe, uint8_t opcode, uint32_t imm, uint32_t bytes,
	 uint32_t rqpn, uint32_t flags)
{
	if (unlikely(cqe == NULL))
		return; /* counted where the slot is refused */
	cqe->rqpn = hca_cpu_to_le32(rqpn);
	cqe->flags = hca_cpu_to_le32(flags);
	cqe->imm = imm;
	cqe->byte_cnt = hca_cpu_to_le32(bytes);
	hca_cq_publish(cqe, opcode);
}

void
ee_recv_complete(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_qp *qp, uint8_t opcode,
		 uint32_t imm, uint32_t bytes, bool solicited)
{
	complete(h, reserve(h, ctx, qp, solicited), opcode, imm, bytes, qp->cfg.remote_qpn, 0);
}

void
ee_recv_complete_ud(struct ee_request *q, uint32_t flags, uint32_t bytes)
{
	struct hca_cqe *cqe =
		reserve(q->h, q->ctx, q->qp, (q->rxd->flags & HCA_RXD_SOLICITED) != 0);
	bool gsi = (q->rxd->flags & HCA_RXD_GSI) != 0;

	if (unlikely(q->rxd->vlan != 0 || gsi) && cqe != NULL)
		hca_cq_set_sender(&q->h->core, q->qp->cfg.rcqn, cqe, q->rxd->vlan,
				  gsi ? q->frame + SOURCE_MAC : NULL);
	complete(q->h, cqe, q->rxd->opcode, q->imm, bytes, q->src_qpn, flags);
}

void
ee_recv_last(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi)
{
	struct hca_qp *qp = &h->qp[qpi];

	if (qp->ee.flags & EE_RECV_HELD) {
		if (likely(ee_held_srq(h, &qp->ee) != NULL))
			ee_recv_fail(h, ctx, qp, HCA_SYND_WR_FLUSH);
		else /* an XRC SRQ and its CQ may be destroyed before its message is complete */
			qp->ee.flags &= ~EE_RECV_HELD;
	}
	if (qp->ee.srq == NULL || qp->ee.flags & EE_LAST_WQE)
		return;
	qp->ee.flags |= EE_LAST_WQE;
	hca_eq_raise_qp(&h->core, HCA_STAGE_EE, HCA_EVENT_LAST_WQE, qpi);
}

void
ee_recv_fail(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_qp *qp, uint8_t syndrome)
{
	struct hca_cqe *cqe = reserve(h, ctx, qp, true);

	HCA_COUNT_AT(h, HCA_STAGE_EE,
		     syndrome == HCA_SYND_WR_FLUSH ? HCA_CTR_resp_cqe_flush_error
						   : HCA_CTR_resp_cqe_error);
	hca_qp_stat_add32(&qp->ee.resp_cqe_error, 1);
	if (cqe == NULL)
		return;
	hca_cqe_fill_error(cqe, syndrome);
	hca_cq_publish(cqe, HCA_CQE_OP_ERR_RECV);
}
