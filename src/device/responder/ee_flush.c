/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The end of a QP in the responder: messages of other stages, flushing of receives in ERR, and
 * forgetting everything for a purge.
 */

#include "responder/ee.h"

static uint32_t
ee_index(const struct hca_pipe *h, const struct hca_qp_ee *ee)
{
	return (uint32_t)((const struct hca_qp *)RTE_PTR_SUB(ee, offsetof(struct hca_qp, ee)) -
			  h->qp);
}

void
ee_forget(struct hca_pipe *h, struct hca_qp_ee *ee)
{
	HCA_COUNT_N(h, EE, resp_abandoned,
		    ee_jobs(ee) + ((ee->flags & (EE_ACK_OWED | EE_NAK_OWED)) != 0));
	ee->job_pending = 0;
	ee->job_now = 0;
	ee->new_jobs = 0;
	ee->unacked = 0;
	ee->msg_kind = EE_MSG_NONE;
	if (unlikely(ee->flags & EE_PACED))
		ee_pace_drop(h, ee, ee_index(h, ee));
	if (unlikely(ee->flags & EE_LEAVES))
		hca_leave_ack(h);
	ee->flags &= ~(EE_ACK_OWED | EE_NAK_OWED | EE_GAP | EE_RNR | EE_LEAVES);
}

/* The QP will be reset. An ACK that could wait is due now. */
static void
leave(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi)
{
	struct hca_qp_ee *ee = &qp->ee;

	if (ee->unacked != 0)
		ee->flags |= EE_ACK_OWED;
	if (!(ee->flags & (EE_ACK_OWED | EE_NAK_OWED))) {
		hca_leave_ack(h);
		return;
	}
	ee->flags |= EE_LEAVES;
	ee_list_ready(h, ee_ctx(h), ee, qpi);
}

/*
 * First notify, then the count: a later post sees notify and rings. An invalid count flushes
 * nothing.
 */
void
ee_flush_start(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi)
{
	struct hca_qp_ee *ee = &h->qp[qpi].ee;
	uint32_t bytes_log = ee->rq_size_log + ee->rq_stride_log, producer;

	ee->msg_kind = EE_MSG_NONE;
	if (ee->rq.bytes == 0) {
		ee_recv_last(h, ctx, qpi);
		return;
	}
	__atomic_store_n(&hca_rq_record(&ee->rq, bytes_log)->notify, hca_cpu_to_le32(1),
			 __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	producer = hca_rq_posted(&ee->rq, bytes_log);
	if (producer - ee->rq_consumed > 1u << ee->rq_size_log) {
		HCA_COUNT(h, EE, rq_catas);
		hca_eq_raise_qp(&h->core, HCA_STAGE_EE, HCA_EVENT_WQ_CATAS, qpi);
		producer = ee->rq_consumed;
	}
	ee->rq_producer = producer;
	if (producer == ee->rq_consumed)
		return;
	ee->flags |= EE_FLUSHING;
	ee_list_ready(h, ctx, ee, qpi);
}

unsigned int
ee_flush_some(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_qp *qp)
{
	struct hca_qp_ee *ee = &qp->ee;
	unsigned int n = 0;

	if (hca_qp_state(qp) == HCA_QPS_ERR)
		for (; n < EE_FLUSH_CHUNK && ee->rq_consumed != ee->rq_producer; n++)
			ee_recv_fail(h, ctx, qp, HCA_SYND_WR_FLUSH);
	else
		ee->rq_producer = ee->rq_consumed;
	if (ee->rq_consumed == ee->rq_producer)
		ee->flags &= ~EE_FLUSHING;
	return n;
}

static void
unlink_lists(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi)
{
	struct hca_qp_ee *ee = &h->qp[qpi].ee;

	if (ee->flags & EE_ON_READY) {
		hca_qp_list_remove(h, &ctx->ready, EE_READY_LINK, qpi);
		ctx->ready_count--;
	}
	if (ee->flags & EE_ON_LAZY)
		hca_qp_list_remove(h, &ctx->lazy, EE_LAZY_LINK, qpi);
	ee->flags &= ~(EE_ON_READY | EE_ON_LAZY);
}

static void
state_changed(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi)
{
	uint32_t state = hca_qp_state(qp);

	if (state == HCA_QPS_ERR) {
		if (!(qp->ee.flags & EE_FATAL))
			ee_forget(h, &qp->ee);
		ee_flush_start(h, ee_ctx(h), qpi);
	} else if (state == HCA_QPS_RST) {
		ee_forget(h, &qp->ee);
	} else if (unlikely(qp->ee.flags & EE_PACED)) {
		/* its algorithm is another one now */
		ee_pace_drop(h, &qp->ee, qpi);
		ee_list_ready(h, ee_ctx(h), &qp->ee, qpi);
	}
}

static void
on_state(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	if (flags & HCA_MSG_PURGE) {
		unlink_lists(h, ee_ctx(h), qpi);
		ee_notify_forget(h, qpi);
		ee_forget(h, &qp->ee);
		qp->ee.flags = 0;
		hca_purge_ack(h, HCA_STAGE_EE);
		return;
	}
	if (flags & HCA_MSG_CNP)
		ee_pace_cnp(h, qpi, now);
	if (flags & HCA_MSG_STATE)
		state_changed(h, qp, qpi);
	if (flags & HCA_MSG_LEAVES)
		leave(h, qp, qpi);
}

static void
on_kick(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	if (hca_qp_state(qp) == HCA_QPS_ERR)
		ee_flush_start(h, ee_ctx(h), qpi);
}

static void
on_decap(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	ee_notify_marked(h, qp, qpi, now);
}

/*
 * The memory of a READ did not answer in time: the requester repeats the rest of it. If a request
 * after it has failed the QP meanwhile, nothing can be repeated.
 */
static void
read_late(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi)
{
	struct hca_qp_ee *ee = &qp->ee;
	uint8_t count = __atomic_load_n(&qp->encap.resp_late, __ATOMIC_ACQUIRE);
	uint32_t psn = __atomic_load_n(&qp->encap.resp_late_psn, __ATOMIC_RELAXED);

	__atomic_store_n(&qp->ee.late_seen, count, __ATOMIC_RELEASE);
	if (ee->flags & EE_FATAL ? hca_psn_diff(psn & HCA_PSN_MASK, ee->owed_psn) >= 0
				 : !ee_state_receives(hca_qp_state(qp)))
		return;
	ee_late_job(h, ee_ctx(h), qpi, psn & HCA_PSN_MASK, psn & HCA_RESP_LATE_REPEAT);
	if (ee->flags & EE_FATAL)
		ee_refuse_late(ee, ee->owed_psn);
}

/*
 * The memory of a READ became invalid while it was answered. Its remaining responses are not sent;
 * a fatal NAK that waited after them is replaced by this earlier one.
 */
static void
read_failed(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi)
{
	uint32_t state = hca_qp_state(qp);
	uint32_t psn = __atomic_load_n(&qp->encap.resp_failed_psn, __ATOMIC_ACQUIRE);

	if (!ee_state_receives(state) && !(state == HCA_QPS_ERR && qp->ee.flags & EE_FATAL))
		return;
	psn = ee_awaited_psn(&qp->ee, psn);
	if (qp->ee.flags & EE_FATAL &&
	    (!(qp->ee.flags & EE_NAK_OWED) || hca_psn_diff(psn, qp->ee.owed_psn) >= 0))
		return; /* later responses fail as well */
	ee_forget(h, &qp->ee);
	ee_fatal(h, ee_ctx(h), qpi, EE_ACCESS, psn, 0);
}

static void
on_encap(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	if (flags & HCA_MSG_LATE)
		read_late(h, qp, qpi);
	if (flags & HCA_MSG_FAILED)
		read_failed(h, qp, qpi);
}

/* CNPs are due, or the time of QPs that congestion control made wait has come. */
static unsigned int
end_waits(struct hca_pipe *h, struct ee_ctx *ctx, uint64_t now, unsigned int budget)
{
	unsigned int n = ee_notify_emit(h, ctx, now, budget);

	ee_pace_due(h, ctx, now);
	ee_note_waits(h, ctx);
	return n;
}

unsigned int
ee_messages(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	unsigned int n = 0;

	if (!hca_msg_due(h, HCA_STAGE_EE))
		return 0;
	n += hca_msg_drain(h, HCA_STAGE_ENCAP, HCA_STAGE_EE, on_encap, now, budget);
	n += hca_msg_drain(h, HCA_STAGE_PARSER, HCA_STAGE_EE, on_state, now, budget);
	n += hca_msg_drain(h, HCA_STAGE_REQ_RX, HCA_STAGE_EE, on_state, now, budget);
	n += hca_msg_drain(h, HCA_STAGE_DOORBELL, HCA_STAGE_EE, on_kick, now, budget);
	n += hca_msg_drain(h, HCA_STAGE_DECAP, HCA_STAGE_EE, on_decap, now, budget);
	n += hca_msg_drain(h, HCA_STAGE_CEU, HCA_STAGE_EE, on_state, now, budget);
	if (unlikely(ee_ctx(h)->waits))
		n += end_waits(h, ee_ctx(h), now, budget);
	return n;
}
