/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Requests are complete when all of their segments are answered; CQEs leave in the order of the
 * window. In ERR all incomplete requests are flushed at once, in SQD open ones finish; one CQE says
 * so when no request is left.
 */

#include "ub/initiator/ta_initiator.h"
#include "ub/ub_cqe.h"

#define CQES 32u

/* CQEs of one Jetty, written after una: a client that finds one must find the window moved. */
struct completer {
	struct hca_pipe *h;
	struct hca_qp *qp;
	bool flushes;
	uint32_t n;
	uint32_t done, failed, flushed;
	uint32_t local;		 /* of its CQEs; in the order of memory */
	struct hca_cq_cursor cq; /* of successes, in place of cqe[] */
	struct hca_ub_cqe cqe[CQES];
};

/*
 * The first record that an operation may refer to: that of the oldest segment in use. Segments have
 * their numbers in the order of the window, and keep them until their operation is back. Those that
 * were given up without an operation have ended since una was moved.
 */
static inline uint32_t
used_from(const struct hca_qp *qp)
{
	uint16_t una = hca_tai_una_due(qp);

	return una != qp->tai.tassn ? hca_tai_segment(qp, una)->cursor : qp->sq_next;
}

static inline uint8_t
tai_cqe_kind(const struct hca_qp *qp)
{
	return qp->cfg.service == HCA_ST_JFS ? HCA_CQE_UB_JFS : HCA_CQE_UB_JETTY;
}

static void
add_cqe(struct completer *c, const struct hca_ub_record *r, uint8_t status)
{
	const struct hca_qp *qp = c->qp;

	c->cqe[c->n++] = (struct hca_ub_cqe){
		.kind = tai_cqe_kind(qp),
		.status = status,
		.opcode = r != NULL ? r->op : HCA_OP_NOP,
		.is_send = true,
		.number = qp->cfg.local_qpn,
		.wqe = r != NULL ? (uint32_t)r->wqe_index << qp->tai.sq_stride_log : 0,
		.bytes = r != NULL && status == HCA_UB_STATUS_OK ? r->len : 0,
	};
}

static void
tai_publish_cqes(struct completer *c, uint32_t tail)
{
	struct hca_qp *qp = c->qp;
	struct hca_cq_batch *batch = &hca_tai_ctx(c->h)->batch;

	__atomic_store_n(&qp->sq_una, (uint64_t)tail << 32 | hca_tai_una(qp), __ATOMIC_RELEASE);
	hca_cq_cursor_close(&c->cq);
	/* a CQ that the batch has no room for would miss its event */
	if (c->n != 0 && batch->n == HCA_CQ_BATCH)
		hca_cq_batch_end(&c->h->core, batch, HCA_STAGE_TAI);
	for (uint32_t i = 0; i < c->n; i++)
		hca_ub_cqe_write(&c->h->core, qp->cfg.scqn, batch, HCA_STAGE_TAI, &c->cqe[i]);
	c->n = 0;
}

/* A success into the next slot of a CQ that this worker alone writes; false: not that way. */
static inline bool
put_success(struct completer *c, const struct hca_ub_record *r)
{
	struct hca_cq_batch *batch = &hca_tai_ctx(c->h)->batch;
	struct hca_cqe_ub *cqe;

	/* all that is in cqe[] comes first */
	if (!HCA_SHORT_WAYS || unlikely(c->n != 0))
		return false;
	if (c->cq.cq == NULL) {
		if (unlikely(batch->n == HCA_CQ_BATCH))
			hca_cq_batch_end(&c->h->core, batch, HCA_STAGE_TAI);
		if (!hca_cq_cursor_open(&c->h->core, c->qp->cfg.scqn, batch, HCA_STAGE_TAI, &c->cq))
			return false;
		c->local = hca_cpu_to_le32(
			HCA_CQE_UB_MAKE_LOCAL(tai_cqe_kind(c->qp), c->qp->cfg.local_qpn));
	}
	cqe = (struct hca_cqe_ub *)hca_cq_cursor_take(&c->cq);
	if (unlikely(cqe == NULL))
		return false;
	hca_ub_cqe_fill_sent(cqe, c->local, (uint32_t)r->wqe_index << c->qp->tai.sq_stride_log,
			     r->len, r->op);
	return true;
}

/* The record before `tail` failed, was flushed, or finds the CQ in other hands, or full. */
static __rte_noinline void
tai_finish_general(struct completer *c, const struct hca_ub_record *r, uint32_t tail)
{
	uint8_t status = r->status;

	if (c->cq.cq != NULL || c->n == CQES)
		tai_publish_cqes(c, tail);
	if (status == HCA_UB_STATUS_OK && c->flushes)
		status = HCA_UB_STATUS_FLUSHED;
	c->done += status == HCA_UB_STATUS_OK;
	c->flushed += status == HCA_UB_STATUS_FLUSHED;
	c->failed += status != HCA_UB_STATUS_OK && status != HCA_UB_STATUS_FLUSHED;
	if (status != HCA_UB_STATUS_OK || r->flags & HCA_REC_SIGNALED)
		add_cqe(c, r, status);
}

/* The record at the tail is over. */
static inline void
tai_finish_record(struct completer *c, const struct hca_ub_record *r, uint32_t tail)
{
	if (likely(r->status == HCA_UB_STATUS_OK && !c->flushes) &&
	    (!(r->flags & HCA_REC_SIGNALED) || put_success(c, r)))
		c->done++;
	else
		tai_finish_general(c, r, tail);
}

static void
tai_finish_records(struct completer *c)
{
	uint32_t tail = hca_una_tail(c->qp->sq_una), first = tail, end = c->qp->sq_next;

	for (; tail != end; tail++) {
		const struct hca_ub_record *r = hca_tai_record(c->h, c->qp, tail);

		if (r->open != 0)
			break;
		tai_finish_record(c, r, tail);
	}
	if (tail != first)
		tai_publish_cqes(c, tail);
}

/* Open segments are at the peer, or in a lane, and are left there. */
static void
give_up_all(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi)
{
	for (uint16_t t = hca_tai_una(qp); t != qp->tai.tassn; t++) {
		struct hca_jetty_segment *s = hca_tai_segment(qp, t);

		if (s->state != HCA_TAI_SEGMENT_DONE)
			hca_tai_abandon(h, qp, s);
	}
	hca_tai_unlist(h, qpi);
	qp->tai.sent = 0;
	__atomic_store_n(&qp->sq_next, __atomic_load_n(&qp->parser.head, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
}

/* Records behind the tail that no operation refers to, in order. */
static void
free_records(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi)
{
	uint32_t tail = hca_una_tail(qp->sq_una), used = used_from(qp), freed = qp->sq_freed;

	/* both are positions of the window from sq_freed on */
	if (used - freed < tail - freed)
		tail = used;
	if (freed == tail)
		return;
	hca_tai_return(h, qp, freed, tail);
	__atomic_store_n(&qp->sq_freed, tail, __ATOMIC_RELEASE);
	hca_msg_send(h, HCA_STAGE_TAI, HCA_STAGE_PARSER, qpi, HCA_MSG_FREED);
}

/* Once for each time it enters the state. */
static void
say_once(struct completer *c, uint8_t flag, uint8_t status)
{
	if (c->qp->tai.flags & flag)
		return;
	c->qp->tai.flags |= flag;
	add_cqe(c, NULL, status);
	tai_publish_cqes(c, hca_una_tail(c->qp->sq_una));
}

static void
say_flushed(struct completer *c)
{
	say_once(c, HCA_TAI_FLUSHED, HCA_UB_STATUS_FLUSH_DONE);
	__atomic_store_n(&c->qp->tai.flushed, 1, __ATOMIC_RELEASE);
}

static void
say_done(struct completer *c, uint32_t state)
{
	const struct hca_qp *qp = c->qp;
	uint32_t head = __atomic_load_n(&qp->parser.head, __ATOMIC_ACQUIRE);

	if (state == HCA_QPS_SQD && qp->tai.open == 0)
		say_once(c, HCA_TAI_SUSPENDED, HCA_UB_STATUS_SUSPEND_DONE);
	if (state == HCA_QPS_ERR && qp->tai.flags & HCA_TAI_PARSED &&
	    hca_una_tail(qp->sq_una) == head)
		say_flushed(c);
}

void
hca_tai_complete(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi)
{
	struct completer c;
	uint32_t state = hca_qp_state(qp);

	if (state < HCA_QPS_RTS)
		return;
	c.h = h;
	c.qp = qp;
	c.flushes = state == HCA_QPS_ERR;
	c.n = c.done = c.failed = c.flushed = 0;
	c.cq.cq = NULL;
	if (unlikely(c.flushes))
		give_up_all(h, qp, qpi);
	tai_finish_records(&c);
	if (c.done != 0)
		HCA_COUNT_N(h, TAI, req_completions, c.done);
	if (unlikely(c.failed + c.flushed != 0)) {
		HCA_COUNT_N(h, TAI, req_cqe_error, c.failed);
		HCA_COUNT_N(h, TAI, req_cqe_flush_error, c.flushed);
		hca_qp_stat_add(&qp->stats.req_cqe_error, c.failed + c.flushed);
	}
	if (unlikely(state != HCA_QPS_RTS))
		say_done(&c, state);
	free_records(h, qp, qpi);
}

void
hca_tai_suspend(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi)
{
	if (!hca_qp_state_cas(qp, HCA_QPS_RTS, HCA_QPS_SQD))
		return;
	qp->tai.flags &= ~HCA_TAI_SUSPENDED;
	hca_tell_state(h, HCA_STAGE_TAI, qpi);
	HCA_COUNT(h, TAI, ub_suspended);
}

void
hca_tai_state(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi)
{
	uint32_t state = hca_qp_state(qp);

	if (state < HCA_QPS_RTS)
		return;
	if (state == HCA_QPS_RTS)
		qp->tai.flags &= ~HCA_TAI_SUSPENDED;
	hca_tai_complete(h, qp, qpi);
	if (state != HCA_QPS_ERR)
		hca_tai_wake(h, qpi);
}
