/* SPDX-License-Identifier: BSD-3-Clause */

/* How segments end, and how operations and records come back. */

#include <rte_prefetch.h>

#include "ub/initiator/ta_initiator.h"

/* ---- ends ---- */

/* No answer is wanted any more. */
static void
close_segment(struct hca_pipe *h, struct hca_qp *qp, struct hca_jetty_segment *s)
{
	struct hca_ub_record *r = hca_tai_record(h, qp, s->cursor);
	struct hca_qp_tai *q = &qp->tai;

	qp->tai_wait.again -= s->state == HCA_TAI_SEGMENT_AGAIN;
	s->state = HCA_TAI_SEGMENT_DONE;
	r->open--;
	q->open--;
	q->open_ordered -= (s->counted & HCA_TAI_COUNTED_ORDERED) != 0;
	q->open_reads -= (s->counted & HCA_TAI_COUNTED_READ) != 0;
	q->open_sends -= (s->counted & HCA_TAI_COUNTED_SEND) != 0;
}

void
hca_tai_attempt_over(struct hca_pipe *h, struct hca_jetty_segment *s)
{
	if (s->op != HCA_TAI_NO_OP)
		hca_ta_op_set_flag(hca_tai_op(h, s->op), HCA_TA_OP_ANSWERED);
	if (s->number != HCA_TP_UNRELIABLE)
		hca_tai_place_back(h, s);
}

/* Its payload could not be read, and was sent as zeros. */
static bool
is_poisoned(const struct hca_ta_op *op)
{
	return (__atomic_load_n(&op->encap, __ATOMIC_ACQUIRE) & HCA_TA_OP_POISONED) != 0;
}

void
hca_tai_answered(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, struct hca_jetty_segment *s,
		 uint8_t status)
{
	uint32_t cursor = s->cursor;

	if (status != 0 && s->op != HCA_TAI_NO_OP && is_poisoned(hca_tai_op(h, s->op)))
		status = HCA_UB_STATUS_LOCAL_ACCESS;
	if (hca_tai_outstanding(s)) {
		hca_tai_attempt_over(h, s);
		if (status == 0)
			HCA_COUNT(h, TAI, ub_segments_done);
		else
			HCA_COUNT(h, TAI, ub_segments_failed);
	}
	hca_tai_record(h, qp, cursor)->active = hca_tai_ctx(h)->now;
	close_segment(h, qp, s);
	if (status != 0) {
		hca_qp_stat_add(&qp->tai_wait.refused, 1);
		hca_tai_fail(h, qp, qpi, cursor, status);
	}
	hca_tai_wake(h, qpi);
}

/* n requests of a TP are open no more. */
static void
requests_over(struct hca_pipe *h, uint32_t tpi, uint32_t n)
{
	struct hca_tp *tp = hca_tai_tp(h, tpi);

	if (n == 0)
		return;
	__atomic_store_n(&tp->tai.open_out, tp->tai.open_out - n, __ATOMIC_RELAXED);
	hca_tai_room_of_tp(h, tpi);
}

/* Segments of a Jetty that close, before they are taken off its counts. */
struct closed {
	uint32_t n, ordered, reads, sends;
};

/*
 * close_segment() of one that is outstanding and was answered well, at the counts' expense; reads:
 * it may be a Read or an atomic.
 */
static __rte_always_inline void
close_done(struct hca_pipe *h, struct hca_qp *qp, struct hca_jetty_segment *s, struct closed *c,
	   bool reads)
{
	struct hca_ub_record *r = hca_tai_record(h, qp, s->cursor);

	if (unlikely(s->op != HCA_TAI_NO_OP))
		hca_ta_op_set_flag(hca_tai_op(h, s->op), HCA_TA_OP_ANSWERED);
	s->state = HCA_TAI_SEGMENT_DONE;
	/* others of its request are due from now on */
	if (unlikely(--r->open != 0))
		r->active = hca_tai_ctx(h)->now;
	c->n++;
	c->ordered += (s->counted & HCA_TAI_COUNTED_ORDERED) != 0;
	c->reads += reads && (s->counted & HCA_TAI_COUNTED_READ) != 0;
	c->sends += (s->counted & HCA_TAI_COUNTED_SEND) != 0;
}

static inline void
end_closed(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, const struct closed *c)
{
	qp->tai.open -= c->n;
	qp->tai.open_ordered -= c->ordered;
	qp->tai.open_reads -= c->reads;
	qp->tai.open_sends -= c->sends;
	HCA_COUNT_N(h, TAI, ub_segments_done, c->n);
	hca_tai_wake(h, qpi);
}

void
hca_tai_done(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint16_t tassn, uint32_t n)
{
	uint32_t run = 0, tpi = HCA_TP_UNRELIABLE;
	struct closed c = {0};

	for (uint32_t i = 0; i < n; i++) {
		struct hca_jetty_segment *s = hca_tai_segment(qp, (uint16_t)(tassn + i));

		if (unlikely(!hca_tai_outstanding(s)))
			continue;
		if (unlikely(s->number != tpi)) {
			requests_over(h, tpi, run);
			tpi = s->number;
			run = 0;
		}
		close_done(h, qp, s, &c, true);
		if (unlikely(s->counted & HCA_TAI_COUNTED_OVERDUE))
			hca_tai_place_back(h, s);
		else
			run++;
	}
	requests_over(h, tpi, run);
	end_closed(h, qp, qpi, &c);
}

void
hca_tai_done_usual(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint16_t tassn, uint32_t n,
		   uint32_t tpi)
{
	struct hca_jetty_segment *ring = qp->tai.segment;
	uint32_t mask = qp->tai.segment_mask;
	struct closed c = {0};

	for (uint32_t i = 0; i < n; i++)
		close_done(h, qp, &ring[(tassn + i) & mask], &c, false);
	requests_over(h, tpi, n);
	end_closed(h, qp, qpi, &c);
}

/* The peer has the request, and its answer may come or not. */
static void
leave_open(struct hca_pipe *h, const struct hca_jetty_segment *s)
{
	HCA_COUNT(h, TAI, ub_segments_failed);
	if (s->number != HCA_TP_UNRELIABLE && !(s->counted & HCA_TAI_COUNTED_OVERDUE))
		hca_tai_given_up(h, s->number);
}

void
hca_tai_abandon(struct hca_pipe *h, struct hca_qp *qp, struct hca_jetty_segment *s)
{
	if (hca_tai_outstanding(s)) {
		leave_open(h, s);
		if (s->op != HCA_TAI_NO_OP)
			hca_ta_op_set_flag(hca_tai_op(h, s->op), HCA_TA_OP_ORPHAN);
	}
	close_segment(h, qp, s);
}

/* Segments of a failed request that are not at the peer. */
static void
drop_waiting(struct hca_pipe *h, struct hca_qp *qp, uint32_t cursor)
{
	for (uint16_t t = hca_tai_una(qp); t != qp->tai.tassn; t++) {
		struct hca_jetty_segment *s = hca_tai_segment(qp, t);

		if (s->cursor == cursor && s->state >= HCA_TAI_SEGMENT_WAIT)
			close_segment(h, qp, s);
	}
}

void
hca_tai_fail(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint32_t cursor, uint8_t status)
{
	struct hca_ub_record *r = hca_tai_record(h, qp, cursor);

	if (r->status == 0)
		r->status = status;
	drop_waiting(h, qp, cursor);
	/* its segments that are not sent yet never will be */
	if (cursor == qp->sq_next && qp->tai.sent != 0) {
		qp->tai.sent = 0;
		__atomic_store_n(&qp->sq_next, cursor + 1, __ATOMIC_RELEASE);
	}
	if (qp->cfg.suspend)
		hca_tai_suspend(h, qp, qpi);
}

/* ---- operations come back ---- */

/* One that TPS has passed over never was at the peer. */
static void
settle_orphan(struct hca_pipe *h, uint32_t tpi, const struct hca_ta_op *op)
{
	if (op->tps.flags & HCA_TA_OP_SKIPPED)
		(void)hca_tai_given_up_over(h, tpi, 1);
}

static void
jetty_is_back(struct hca_pipe *h, uint32_t qpi)
{
	if (qpi == HCA_TAI_NONE)
		return;
	hca_tai_wake(h, qpi);
	hca_tai_settle(h, &h->qp[qpi], qpi);
}

/* Meaning of a status in a TPACK for the request of the segment, as a TAACK with it would have. */
static void
take_status(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, struct hca_jetty_segment *s,
	    uint8_t told)
{
	const struct hca_ub_record *r = hca_tai_record(h, qp, s->cursor);
	uint32_t rspst = told >> 5, rspinfo = told & 31;
	bool has_data = r->op == HCA_OP_RDMA_READ ||
			(r->op == HCA_OP_ATOMIC && r->atomic != HCA_UB_TA_STORE);

	HCA_COUNT(h, TAI, ub_segments_told);
	if (rspst == HCA_UB_ACK_RNR || rspst == HCA_UB_ACK_PAGE_FAULT)
		hca_tai_not_ready(h, qp, qpi, s, HCA_UB_RNR_NS(rspinfo));
	else if (rspst == HCA_UB_ACK_TA && rspinfo == HCA_UB_ACK_TA_AGAIN)
		hca_tai_not_ready(h, qp, qpi, s, HCA_TAI_AGAIN_NS);
	else if (rspst == HCA_UB_ACK_TA && rspinfo == HCA_UB_ACK_TA_DONE)
		hca_tai_answered(h, qp, qpi, s,
				 has_data ? HCA_UB_STATUS_REMOTE_RESPONSE_LENGTH : 0);
	else if (rspst == HCA_UB_ACK_ERROR && rspinfo == HCA_UB_ERROR_UNSUPPORTED)
		hca_tai_answered(h, qp, qpi, s, HCA_UB_STATUS_REMOTE_UNSUPPORTED);
	else
		hca_tai_answered(h, qp, qpi, s, HCA_UB_STATUS_REMOTE_ACCESS);
}

/* The peer has answered the request of an operation by a TPACK. */
static void
op_is_told(struct hca_pipe *h, uint32_t tpi, uint32_t index, const struct hca_ta_op *op)
{
	struct hca_qp *qp = &h->qp[op->object];
	struct hca_jetty_segment *s;

	hca_tai_tp(h, tpi)->tai.told++;
	if (op->flags & HCA_TA_OP_ORPHAN) {
		(void)hca_tai_given_up_over(h, tpi, 1);
		return;
	}
	s = hca_tai_segment(qp, op->tassn);
	if (s->op == index && hca_tai_outstanding(s))
		take_status(h, qp, op->object, s, (uint8_t)HCA_TA_OP_TOLD(op->tps.flags));
}

/* *jetty: the one whose operations came back last, and which is not settled yet. */
static __rte_noinline void
op_is_back(struct hca_pipe *h, uint32_t tpi, uint32_t index, uint32_t *jetty)
{
	struct hca_ta_op *op = hca_tai_op(h, index);
	struct hca_jetty_segment *s;
	struct hca_qp *qp;

	if (op->flags & HCA_TA_OP_ORPHAN && tpi != HCA_TP_UNRELIABLE)
		settle_orphan(h, tpi, op);
	if (unlikely(HCA_TA_OP_TOLD(op->tps.flags) != 0))
		op_is_told(h, tpi, index, op);
	if (op->flags & HCA_TA_OP_FORGOTTEN)
		return;
	if (unlikely(op->object != *jetty)) {
		jetty_is_back(h, *jetty);
		*jetty = op->object;
	}
	qp = &h->qp[op->object];
	s = hca_tai_segment(qp, op->tassn);
	if (hca_tai_outstanding(s) && tpi == HCA_TP_UNRELIABLE)
		hca_tai_answered(h, qp, op->object, s,
				 is_poisoned(op) ? HCA_UB_STATUS_LOCAL_ACCESS : 0);
	else if (hca_tai_outstanding(s) && is_poisoned(op))
		hca_tai_fail(h, qp, op->object, s->cursor, HCA_UB_STATUS_LOCAL_ACCESS);
	s->op = HCA_TAI_NO_OP;
}

/*
 * op_is_back() of those from the place `taken` of the lane on that are usual ones of that Jetty,
 * which is not settled yet, and back to their pool. Returns the place of the first other one.
 */
static inline uint32_t
take_back_run(struct hca_pipe *h, const struct hca_tp *tp, uint32_t taken, uint32_t done,
	      uint32_t jetty)
{
	const uint32_t *lane = tp->lane[HCA_TP_REQUESTS].ring;
	struct hca_ta_op_pool *pool = &h->ub->pool[HCA_TP_REQUESTS];
	const struct hca_ta_op *ops = h->ub->ops.op[HCA_TP_REQUESTS];
	struct hca_jetty_segment *ring = h->qp[jetty].tai.segment;
	uint32_t mask = tp->cfg.window - 1, ring_mask = h->qp[jetty].tai.segment_mask;
	uint32_t *free = &pool->free[pool->free_n];

	for (; taken != done; taken++) {
		uint32_t index = lane[taken & mask];
		const struct hca_ta_op *op = &ops[index];

		rte_prefetch0(&ops[lane[(taken + 2) & mask]]);
		if (unlikely(op->object != jetty ||
			     op->flags & (HCA_TA_OP_ORPHAN | HCA_TA_OP_FORGOTTEN) ||
			     is_poisoned(op)))
			break;
		ring[op->tassn & ring_mask].op = HCA_TAI_NO_OP;
		*free++ = index;
	}
	pool->free_n = (uint32_t)(free - pool->free);
	return taken;
}

void
hca_tai_take_back(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi, uint32_t done)
{
	const uint32_t *lane = tp->lane[HCA_TP_REQUESTS].ring;
	uint32_t jetty = HCA_TAI_NONE, mask = tp->cfg.window - 1;
	uint32_t told = __atomic_load_n(&tp->tx.told, __ATOMIC_RELAXED);

	if (tp->tai.taken == done)
		return;
	while (tp->tai.taken != done) {
		uint32_t index = lane[tp->tai.taken++ & mask];

		op_is_back(h, tpi, index, &jetty);
		hca_ta_op_return(&h->ub->pool[HCA_TP_REQUESTS], index);
		if (HCA_SHORT_WAYS && likely(jetty != HCA_TAI_NONE && tpi != HCA_TP_UNRELIABLE &&
					     told == tp->tai.told))
			tp->tai.taken = take_back_run(h, tp, tp->tai.taken, done, jetty);
	}
	jetty_is_back(h, jetty);
	hca_tai_room_of_ops(h);
}

/* ---- numbers and records come back ---- */

void
hca_tai_settle(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi)
{
	uint64_t una = hca_tai_una_due(qp);

	__atomic_store_n(&qp->sq_una, (uint64_t)hca_una_tail(qp->sq_una) << 32 | una,
			 __ATOMIC_RELEASE);
	hca_tai_complete(h, qp, qpi);
}

static void
forget_segments(struct hca_pipe *h, struct hca_qp *qp)
{
	for (uint16_t t = hca_tai_una(qp); t != qp->tai.tassn; t++) {
		struct hca_jetty_segment *s = hca_tai_segment(qp, t);

		if (hca_tai_outstanding(s))
			leave_open(h, s);
		if (s->op != HCA_TAI_NO_OP)
			hca_ta_op_set_flag(hca_tai_op(h, s->op),
					   HCA_TA_OP_ORPHAN | HCA_TA_OP_FORGOTTEN);
		s->state = HCA_TAI_SEGMENT_DONE;
	}
	__atomic_store_n(&qp->sq_una, (uint64_t)hca_una_tail(qp->sq_una) << 32 | qp->tai.tassn,
			 __ATOMIC_RELEASE);
	qp->tai.open = qp->tai.open_ordered = qp->tai.open_reads = qp->tai.open_sends = 0;
	qp->tai_wait.again = 0;
}

void
hca_tai_forget(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi)
{
	uint32_t head = __atomic_load_n(&qp->parser.head, __ATOMIC_ACQUIRE);

	hca_tai_unlist(h, qpi);
	qp->tai.flags = 0;
	__atomic_store_n(&qp->tai_wait.timer_armed, 0, __ATOMIC_RELAXED);
	forget_segments(h, qp);
	hca_tai_return(h, qp, qp->sq_freed, head);
	qp->tai.sent = 0;
	__atomic_store_n(&qp->sq_next, head, __ATOMIC_RELEASE);
	__atomic_store_n(&qp->sq_freed, head, __ATOMIC_RELEASE);
}
