/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The receive side of SEND and WRITE with immediate: receive WQEs, where their data goes, and the
 * completions. All of the queue is the owner's memory and may change at any time: the producer
 * count is checked and kept, a WQE is copied once and only the copy is used.
 */

#include <string.h>

#include "engine/ee.h"

int
ee_recv_available(struct hca_qp_ee *ee)
{
	const struct hca_rq_record *record;
	uint32_t producer;

	if (likely(ee->rq_producer != ee->rq_consumed))
		return 1;
	if (ee->rq.bytes == 0)
		return 0;
	record = hca_qbuf_at(&ee->rq, 1u << (ee->rq_size_log + ee->rq_stride_log));
	producer = hca_le32_to_cpu(__atomic_load_n(&record->producer, __ATOMIC_ACQUIRE));
	if (producer - ee->rq_consumed > 1u << ee->rq_size_log)
		return -1;
	ee->rq_producer = producer;
	return producer != ee->rq_consumed;
}

/* One data unit in one read of each of its words; false: the list ends here. */
static inline bool
read_unit(const uint8_t *unit, uint32_t *count, struct hca_sge *sge)
{
	const hca_le64 *word = (const void *)unit;
	uint64_t w0 = hca_le64_to_cpu(__atomic_load_n(&word[0], __ATOMIC_RELAXED));
	uint64_t w1 = hca_le64_to_cpu(__atomic_load_n(&word[1], __ATOMIC_RELAXED));

	*count = (uint32_t)w0;
	sge->va = w1;
	sge->lkey = (uint32_t)(w0 >> 32);
	sge->len = *count & HCA_WQE_MAX_BYTE_CNT;
	return (w0 | w1) != 0;
}

bool
ee_recv_fetch(struct ee_request *q)
{
	struct hca_qp_ee *ee = &q->qp->ee;
	const uint8_t *wqe = hca_qbuf_at(&ee->rq, ee_recv_offset(ee));
	uint32_t stride = 1u << ee->rq_stride_log, count;
	uint64_t total = 0;
	unsigned int n = 0;

	for (uint32_t at = HCA_WQE_UNIT; at < stride && n < HCA_WQE_MAX_SGE;
	     at += HCA_WQE_UNIT, n++) {
		if (!read_unit(wqe + at, &count, &ee->recv_sge[n]))
			break;
		if (count & HCA_INLINE_FLAG)
			return false;
		total += ee->recv_sge[n].len;
	}
	q->nsge = n;
	q->sge_at = 0;
	q->sge_off = 0;
	q->room = RTE_MIN(total, HCA_MAX_MSG_SIZE);
	return true;
}

bool
ee_recv_place(struct ee_request *q)
{
	const struct hca_sge *sge = q->qp->ee.recv_sge;
	uint32_t left = q->len;

	q->npieces = 0;
	while (left != 0 && q->sge_at < q->nsge) {
		const struct hca_sge *s = &sge[q->sge_at];
		uint32_t n = RTE_MIN(s->len - q->sge_off, left);
		struct ee_piece *p = &q->piece[q->npieces];

		if (n != 0) {
			p->va = s->va + q->sge_off;
			p->len = n;
			p->mpt = hca_vtp_check(&q->h->vtp, s->lkey, q->qp->cfg.pd,
					       HCA_ACCESS_LOCAL_WRITE, p->va, n);
			if (p->mpt == NULL)
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

static struct hca_cqe *
reserve(struct hca *h, struct ee_ctx *ctx, struct hca_qp *qp, bool solicited)
{
	struct hca_cqe *cqe = hca_cq_reserve(h, qp->cfg.rcqn, &ctx->batch, solicited, HCA_STAGE_EE);

	if (likely(cqe != NULL)) {
		cqe->my_qpn = hca_cpu_to_le32(qp->cfg.local_qpn);
		cqe->srqn = 0;
		cqe->wqe = hca_cpu_to_le32(ee_recv_offset(&qp->ee));
	}
	qp->ee.rq_consumed++;
	return cqe;
}

void
ee_recv_complete(struct hca *h, struct ee_ctx *ctx, struct hca_qp *qp, uint8_t opcode, uint32_t imm,
		 uint32_t bytes, bool solicited)
{
	struct hca_cqe *cqe = reserve(h, ctx, qp, solicited);

	if (unlikely(cqe == NULL)) {
		HCA_COUNT(h, EE, resp_cqe_error);
		return;
	}
	cqe->rqpn = hca_cpu_to_le32(qp->cfg.remote_qpn);
	cqe->flags = 0;
	cqe->imm = imm;
	cqe->byte_cnt = hca_cpu_to_le32(bytes);
	hca_cq_publish(cqe, opcode);
}

void
ee_recv_fail(struct hca *h, struct ee_ctx *ctx, struct hca_qp *qp, uint8_t syndrome)
{
	struct hca_cqe *cqe = reserve(h, ctx, qp, true);
	struct hca_cqe_err *err = (struct hca_cqe_err *)cqe;

	hca_count(h, HCA_STAGE_EE,
		  syndrome == HCA_SYND_WR_FLUSH ? HCA_CTR_resp_cqe_flush_error
						: HCA_CTR_resp_cqe_error);
	if (cqe == NULL)
		return;
	err->reserved08 = 0;
	err->reserved0c = 0;
	err->syndrome = syndrome;
	err->vendor_err = 0;
	err->db_cnt = 0;
	err->reserved14 = 0;
	hca_cq_publish(cqe, HCA_CQE_OP_ERR_RECV);
}
