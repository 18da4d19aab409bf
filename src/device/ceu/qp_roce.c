/* SPDX-License-Identifier: BSD-3-Clause */

/* The CEU's part of RoCE's row: responder jobs and receives of a QP, its PSN. */

#include <rte_common.h>

#include "abi_qp_attr.h"
#include "abi_service.h"
#include "ceu/qp.h"
#include "ceu/qp_shape.h"
#include "queues/srq.h"

#define WORD(f) hca_be32_to_cpu(q->f)
#define JOB_BYTES RTE_ALIGN_CEIL(sizeof(struct hca_resp_job) * HCA_RESP_JOBS, sizeof(uint64_t))

/* Number of SGEs that a receive WQE of this QP can have. */
static uint32_t
receive_sges(const struct hca_qp_shape *s)
{
	uint32_t log = s->srq != NULL ? s->srq->stride_log : s->rq_stride_log;

	if (s->has & HCA_HAS_XRCD) /* any SRQ of its domain */
		return HCA_WQE_MAX_SGE;
	if (s->srq == NULL && !(s->has & HCA_HAS_RQ))
		return 0;
	return RTE_MIN((1u << log) / HCA_WQE_UNIT - 1, HCA_WQE_MAX_SGE);
}

void
hca_roce_qp_room(const struct hca_qp_shape *s, struct hca_qp_room *room)
{
	room->front = JOB_BYTES + sizeof(struct hca_sge) * receive_sges(s);
}

void
hca_roce_qp_fill(struct hca_qp *qp, const struct hca_qp_shape *s, uint8_t *front, uint8_t *back)
{
	const struct hca_service_info *service = &hca_services[s->service];

	qp->req_tx.window = qp->parser.window;
	qp->req_rx.window = qp->parser.window;
	qp->req_tx.window_mask = s->window - 1;
	qp->req_rx.window_mask = s->window - 1;
	qp->req_tx.transport = (uint8_t)(service->transport << 5);
	qp->req_tx.unreliable = (service->ops & (HCA_WQE_OP_UC | HCA_WQE_OP_UD)) != 0;
	qp->req_rx.sq_stride_log = (uint8_t)s->sq_stride_log;
	qp->ee.jobs = (struct hca_resp_job *)(void *)front;
	qp->ee.recv_sge = (struct hca_sge *)(void *)(front + JOB_BYTES);
	qp->ee.job_mask = HCA_RESP_JOBS - 1;
}

void
hca_roce_qp_apply(struct hca_qp *qp, const struct hca_qpc *q, uint32_t mask)
{
	uint32_t psn = WORD(next_send_psn);

	if (!(mask & HCA_QP_ATTR_SQ_PSN))
		return;
	__atomic_store_n(&qp->req_tx.next_psn, psn, __ATOMIC_RELEASE);
	__atomic_store_n(&qp->req_tx.max_psn, psn, __ATOMIC_RELEASE);
	__atomic_store_n(&qp->sq_una, psn, __ATOMIC_RELEASE);
}

uint32_t
hca_roce_qp_next(const struct hca_qp *qp)
{
	return __atomic_load_n(&qp->req_tx.next_psn, __ATOMIC_ACQUIRE);
}
