/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Time: segments that wait because the peer is not ready, and requests without an answer. A Jetty
 * has one entry in the timing wheel, for whichever comes first; the state at the expiry decides.
 * And TPs that died: their segments are looked for in all Jettys, some at each poll.
 */

#include "ub/initiator/ta_initiator.h"

#define TICK_LOG 10u /* of hca_jetty_segment.number */
#define SEARCH_QPS 256u
#define FOR_EVER (UINT64_MAX / 2) /* may be added to the time without overflow */

/* ---- timer ---- */

static void
tai_arm_timer(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint64_t deadline)
{
	struct hca_qp_tai_wait *w = &qp->tai_wait;

	if (deadline >= FOR_EVER || (w->timer_armed && w->timer_deadline <= deadline))
		return;
	w->deadline = deadline;
	__atomic_store_n(&w->timer_deadline, deadline, __ATOMIC_RELAXED);
	__atomic_store_n(&w->timer_armed, 1, __ATOMIC_RELEASE);
	hca_msg_send(h, HCA_STAGE_TAI, HCA_STAGE_TIMER, qpi, HCA_MSG_ARM);
}

/* How long the peer may say nothing about a request, ns. */
static uint64_t
timeout_of(const struct hca_qp *qp)
{
	uint32_t code = hca_qp_ack_timeout(qp) & 31;

	return code != 0 ? HCA_ACK_TIMEOUT_NS(code) : FOR_EVER;
}

void
hca_tai_expect(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi)
{
	tai_arm_timer(h, qp, qpi,
		      hca_tai_ctx(h)->now + RTE_MIN(timeout_of(qp), HCA_TAI_OVERDUE_NS));
}

/* ---- not ready ---- */

void
hca_tai_later(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, struct hca_jetty_segment *s,
	      uint64_t ns)
{
	uint64_t due = hca_tai_ctx(h)->now + ns + (1u << TICK_LOG) - 1;

	hca_tai_attempt_over(h, s);
	hca_tai_record(h, qp, s->cursor)->active = hca_tai_ctx(h)->now;
	s->state = HCA_TAI_SEGMENT_WAIT;
	s->number = (uint32_t)(due >> TICK_LOG);
	HCA_COUNT(h, TAI, ub_segments_not_ready);
	tai_arm_timer(h, qp, qpi, due >> TICK_LOG << TICK_LOG);
}

void
hca_tai_not_ready(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, struct hca_jetty_segment *s,
		  uint64_t ns)
{
	uint32_t allowed = hca_qp_live(&qp->cfg.rnr_retry);

	if (allowed != HCA_RNR_RETRY_FOREVER && s->retries >= allowed) {
		hca_tai_answered(h, qp, qpi, s, HCA_UB_STATUS_RNR_EXC);
		return;
	}
	s->retries += allowed != HCA_RNR_RETRY_FOREVER;
	hca_tai_later(h, qp, qpi, s, ns);
}

/* ---- expiries ---- */

/* One of those that wait. Returns when it is due, if that is not now. */
static uint64_t
check_wait(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, struct hca_jetty_segment *s)
{
	uint64_t now = hca_tai_ctx(h)->now;
	int32_t left = (int32_t)(s->number - (uint32_t)(now >> TICK_LOG));

	if (left > 0)
		return ((now >> TICK_LOG) + (uint32_t)left) << TICK_LOG;
	s->state = HCA_TAI_SEGMENT_AGAIN;
	qp->tai_wait.again++;
	hca_tai_wake(h, qpi);
	return FOR_EVER;
}

static void
time_out(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint32_t cursor)
{
	HCA_COUNT(h, TAI, ub_requests_timed_out);
	for (uint16_t t = hca_tai_una(qp); t != qp->tai.tassn; t++) {
		struct hca_jetty_segment *s = hca_tai_segment(qp, t);

		if (s->cursor == cursor && hca_tai_outstanding(s))
			hca_tai_abandon(h, qp, s);
	}
	hca_tai_fail(h, qp, qpi, cursor, HCA_UB_STATUS_ACK_TIMEOUT);
}

/*
 * One that has been silent since then, and is waited for. While its operation is in the lane, the
 * peer may not have it yet. Returns when to look at its place again.
 */
static uint64_t
check_place(struct hca_pipe *h, struct hca_jetty_segment *s, uint64_t active)
{
	uint64_t now = hca_tai_ctx(h)->now;

	if (s->counted & HCA_TAI_COUNTED_OVERDUE)
		return FOR_EVER;
	if (now < active + HCA_TAI_OVERDUE_NS)
		return active + HCA_TAI_OVERDUE_NS;
	if (s->op != HCA_TAI_NO_OP)
		return now + HCA_TAI_OVERDUE_NS;
	hca_tai_overdue(h, s);
	return FOR_EVER;
}

/* Timeouts of a Jetty are put off once until it has another answer or one counts. */
static uint16_t
excuse_of(const struct hca_qp *qp)
{
	return (uint16_t)(qp->tai_wait.answers + 1);
}

/* One that an answer is due of: not of its own, but some answer of its request. */
static uint64_t
check_answer(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, struct hca_jetty_segment *s,
	     bool excusable)
{
	struct hca_ub_record *r = hca_tai_record(h, qp, s->cursor);
	uint64_t timeout = timeout_of(qp), due = r->active + timeout, now = hca_tai_ctx(h)->now;

	if (s->number == HCA_TP_UNRELIABLE)
		return FOR_EVER;
	if (now < due)
		return RTE_MIN(due, check_place(h, s, r->active));
	if (excusable && hca_ub_was_stalled(&hca_tai_ctx(h)->stall, due)) {
		HCA_COUNT(h, TAI, ub_requests_put_off);
		qp->tai_wait.excused = excuse_of(qp);
		r->active = now;
		return now + RTE_MIN(timeout, HCA_TAI_OVERDUE_NS);
	}
	qp->tai_wait.excused = 0;
	time_out(h, qp, qpi, s->cursor);
	return FOR_EVER;
}

void
hca_tai_expired(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi)
{
	bool excusable = qp->tai_wait.excused != excuse_of(qp);
	uint64_t next = FOR_EVER;

	if (!qp->tai_wait.timer_armed)
		return;
	__atomic_store_n(&qp->tai_wait.timer_armed, 0, __ATOMIC_RELAXED);
	for (uint16_t t = hca_tai_una(qp); t != qp->tai.tassn; t++) {
		struct hca_jetty_segment *s = hca_tai_segment(qp, t);
		uint64_t due = FOR_EVER;

		if (s->state == HCA_TAI_SEGMENT_WAIT)
			due = check_wait(h, qp, qpi, s);
		else if (hca_tai_outstanding(s))
			due = check_answer(h, qp, qpi, s, excusable);
		next = RTE_MIN(next, due);
	}
	tai_arm_timer(h, qp, qpi, next);
	hca_tai_settle(h, qp, qpi);
	hca_tai_wake(h, qpi);
}

/* ---- TPs that died ---- */

static bool
is_dead(const struct hca_pipe *h, const struct hca_jetty_segment *s)
{
	uint32_t state;

	if (!hca_tai_outstanding(s) || s->number == HCA_TP_UNRELIABLE)
		return false;
	state = hca_tp_state(hca_tai_tp(h, s->number));
	return state == HCA_TPS_ERROR || state == HCA_TPS_RESET;
}

/* Nothing is sent again on another TP: it may have been executed. */
static void
search_qp(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi)
{
	bool found = false;

	for (uint16_t t = hca_tai_una(qp); t != qp->tai.tassn; t++) {
		struct hca_jetty_segment *s = hca_tai_segment(qp, t);
		uint32_t cursor = s->cursor;

		if (!is_dead(h, s))
			continue;
		hca_tai_abandon(h, qp, s);
		hca_tai_fail(h, qp, qpi, cursor, HCA_UB_STATUS_ACK_TIMEOUT);
		found = true;
	}
	if (!found)
		return;
	hca_tai_settle(h, qp, qpi);
	hca_tai_wake(h, qpi);
}

unsigned int
hca_tai_search(struct hca_pipe *h)
{
	struct hca_tai_ctx *ctx = hca_tai_ctx(h);
	uint32_t n = RTE_MIN(ctx->search_left, SEARCH_QPS);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t qpi = ctx->search_at++ & h->qp_mask;
		struct hca_qp *qp = &h->qp[qpi];

		if (hca_service_is_ub(qp->cfg.service) && hca_qp_state(qp) != HCA_QPS_RST &&
		    qp->tai.open != 0)
			search_qp(h, qp, qpi);
	}
	ctx->search_left -= n;
	if (ctx->search_left == 0 && ctx->search_purges) {
		ctx->search_purges = false;
		hca_purge_ack(h, HCA_STAGE_TAI);
	}
	return n;
}
