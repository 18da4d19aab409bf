/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Requests become segments, each with an operation in the lane of a TP. A request that may not go
 * yet holds up those behind it.
 */

#include "ub/ta_initiator.h"

/* Why a visit ended. */
enum stop {
	STOP_NO,     /* it goes on */
	STOP_TURN,   /* it has had its share */
	STOP_PARKED, /* until something of the Jetty happens */
	STOP_ROOM,   /* until there is room: visit.list */
};

struct visit {
	struct hca *h;
	struct hca_tai_ctx *ctx;
	struct hca_qp *qp;
	uint32_t qpi;
	uint32_t head;
	uint32_t left; /* segments, and requests that fail at once */
	uint32_t list; /* STOP_ROOM */
};

/* ---- which TP ---- */

bool
hca_tai_tp_usable(const struct hca_tp *tp)
{
	uint32_t state = hca_tp_state(tp);

	return state == HCA_TPS_ACTIVE || state == HCA_TPS_PASSIVE;
}

uint32_t
hca_tai_tp_room(const struct hca *h, uint32_t tpi)
{
	const struct hca_tp *tp = hca_tai_tp(h, tpi);
	uint32_t room = tp->cfg.window - (tp->lane[HCA_TP_REQUESTS].head - tp->tai.taken);

	if (tpi == HCA_TP_UNRELIABLE)
		return room;
	return RTE_MIN(room, tp->cfg.requests - RTE_MIN(tp->tai.open_out, tp->cfg.requests));
}

/* The TP that a request names. False: there is none. */
static bool
named_tp(const struct hca *h, uint32_t tpn, uint32_t *tpi)
{
	const struct hca_tp *tp = hca_ub_tp(h->ub, tpn);

	*tpi = tpn & h->ub->tp_mask;
	return *tpi != HCA_TP_UNRELIABLE && hca_tai_tp_usable(tp) &&
	       __atomic_load_n(&tp->cfg.own_tpn, __ATOMIC_ACQUIRE) == tpn;
}

/* The next member of a group that takes a request. *alive: there is one that will. */
static bool
member_of(struct visit *v, uint32_t group, uint32_t *tpi, bool *alive)
{
	const struct hca_tpg *g = &v->h->ub->tpg[group];
	uint32_t n = __atomic_load_n(&g->count, __ATOMIC_ACQUIRE), at = v->ctx->turn[group];

	*alive = false;
	for (uint32_t i = 0; i < n; i++) {
		at = at < n ? at : 0;
		*tpi = g->tp[at++];
		if (!hca_tai_tp_usable(hca_tai_tp(v->h, *tpi)))
			continue;
		*alive = true;
		if (hca_tai_tp_room(v->h, *tpi) == 0)
			continue;
		v->ctx->turn[group] = (uint8_t)at;
		return true;
	}
	return false;
}

/* The TP of the next segment of a request; *alive false: it never gets one. */
static bool
choose_tp(struct visit *v, const struct hca_ub_record *r, uint32_t *tpi, bool *alive)
{
	uint32_t number = HCA_UB_NUMBER(r->to);

	*alive = true;
	switch (HCA_UB_TO(r->to)) {
	case HCA_UB_TO_TPG:
		*alive = number <= v->h->ub->tp_mask;
		v->list = hca_tai_wait_group(v->h, number);
		return *alive && member_of(v, number, tpi, alive) &&
		       hca_tai_may_go(v->h, v->qp, v->list);
	case HCA_UB_TO_TP:
		*alive = named_tp(v->h, number, tpi);
		break;
	default:
		*tpi = HCA_TP_UNRELIABLE;
	}
	v->list = hca_tai_wait_tp(v->h, *tpi);
	return *alive && hca_tai_tp_room(v->h, *tpi) != 0 && hca_tai_may_go(v->h, v->qp, v->list);
}

/* ---- into the lane ---- */

static void
count_open(struct hca_qp *qp, const struct hca_ub_record *r)
{
	qp->tai.open++;
	qp->tai.open_ordered += hca_tai_execution_order(r) != HCA_UB_ODR_NONE;
	qp->tai.open_reads += (r->flags & HCA_REC_RD) != 0;
	qp->tai.open_sends += (hca_ub_wrs[r->op].flags & HCA_UB_WR_RECV) != 0;
}

static void
put(struct visit *v, const struct hca_tai_cut *cut, uint32_t tpi, uint32_t index)
{
	struct hca_ub_record *r = hca_tai_record(v->h, v->qp, cut->cursor);
	struct hca_jetty_segment *s = hca_tai_segment(v->qp, cut->tassn);
	struct hca_tp *tp = hca_tai_tp(v->h, tpi);

	hca_tai_fill(v->h, v->qp, v->qpi, cut, hca_tai_op(v->h, index));
	s->op = index;
	s->number = tpi;
	s->state = HCA_TAI_SEGMENT_OPEN;
	s->packets = 0;
	r->refs++;
	r->active = v->ctx->now;
	if (tpi != HCA_TP_UNRELIABLE)
		__atomic_store_n(&tp->tai.open_out, tp->tai.open_out + 1, __ATOMIC_RELAXED);
	hca_tp_lane_put(tp, HCA_TP_REQUESTS, index);
	hca_tp_msg_send(v->h, HCA_STAGE_TAI, HCA_STAGE_TPS, tpi, HCA_MSG_NEW);
	HCA_COUNT(v->h, TAI, ub_segments);
	hca_tai_expect(v->h, v->qp, v->qpi);
	v->qp->tai.deficit -= HCA_TAI_OVERHEAD +
			      (int32_t)RTE_MIN(hca_tai_op(v->h, index)->payload, HCA_UB_SEND_MAX);
	v->left--;
}

/* Put a segment into the lane of a TP. *dead: its request never gets one. */
static enum stop
send_segment(struct visit *v, const struct hca_tai_cut *cut, bool *dead)
{
	const struct hca_ub_record *r = hca_tai_record(v->h, v->qp, cut->cursor);
	uint32_t tpi, index;
	bool alive;

	*dead = false;
	if (!choose_tp(v, r, &tpi, &alive)) {
		*dead = !alive;
		return alive ? STOP_ROOM : STOP_NO;
	}
	index = hca_ta_op_take(&v->h->ub->pool[HCA_TP_REQUESTS]);
	if (unlikely(index == HCA_TAI_NO_OP)) {
		v->list = hca_tai_wait_op(v->h);
		return STOP_ROOM;
	}
	put(v, cut, tpi, index);
	return STOP_NO;
}

/* ---- segments that were not ready ---- */

static enum stop
send_again(struct visit *v, uint16_t tassn)
{
	struct hca_jetty_segment *s = hca_tai_segment(v->qp, tassn);
	const struct hca_ub_record *r = hca_tai_record(v->h, v->qp, s->cursor);
	struct hca_tai_cut cut = {.cursor = s->cursor, .tassn = tassn, .again = true};
	enum stop stop;
	bool dead;

	cut.offset = hca_tai_offset(v->ctx, r, tassn);
	cut.length = hca_tai_length(v->ctx, r, cut.offset);
	cut.last = cut.offset + cut.length == r->len;
	stop = send_segment(v, &cut, &dead);
	if (dead) {
		hca_tai_answered(v->h, v->qp, v->qpi, s, HCA_UB_STATUS_ACK_TIMEOUT);
		hca_tai_settle(v->h, v->qp, v->qpi);
	}
	if (stop != STOP_NO || dead)
		return stop;
	v->qp->tai_wait.again--;
	HCA_COUNT(v->h, TAI, ub_segments_reissued);
	hca_qp_stat_add(&v->qp->tai_wait.reissued, 1);
	return STOP_NO;
}

/* One whose last operation is still in a lane waits until that is back. */
static enum stop
send_all_again(struct visit *v)
{
	enum stop stop = STOP_NO;

	for (uint16_t t = hca_tai_una(v->qp); t != v->qp->tai.tassn && stop == STOP_NO; t++) {
		const struct hca_jetty_segment *s = hca_tai_segment(v->qp, t);

		if (v->qp->tai_wait.again == 0)
			break;
		if (s->state == HCA_TAI_SEGMENT_AGAIN && s->op == HCA_TAI_NO_OP)
			stop = v->left == 0 ? STOP_TURN : send_again(v, t);
	}
	return stop;
}

/* ---- new segments ---- */

/* Whether the request may not begin before others of its Jetty are answered. */
static bool
is_held(const struct hca_qp *qp, const struct hca_ub_record *r)
{
	const struct hca_qp_tai *q = &qp->tai;

	if (r->flags & HCA_REC_FENCE && q->open_reads != 0)
		return true;
	if (hca_tai_execution_order(r) == HCA_UB_ODR_STRONG && q->open_ordered != 0)
		return true;
	return r->order & HCA_UB_ODR_COMPLETION && hca_ub_wrs[r->op].flags & HCA_UB_WR_RECV &&
	       q->open_sends != 0;
}

/* An unreliable request is one packet. */
static bool
is_too_long(const struct hca *h, const struct hca_ub_record *r)
{
	return HCA_UB_TO(r->to) == HCA_UB_TO_ADDRESS &&
	       r->len > 1u << hca_tai_tp(h, HCA_TP_UNRELIABLE)->cfg.mtu_log;
}

/* The record at sq_next is over, or fails. */
static void
next_record(struct hca_qp *qp)
{
	qp->tai.sent = 0;
	__atomic_store_n(&qp->sq_next, qp->sq_next + 1, __ATOMIC_RELEASE);
}

static void
fail_next(struct visit *v, uint8_t status)
{
	uint32_t cursor = v->qp->sq_next;

	v->left--;
	next_record(v->qp);
	hca_tai_fail(v->h, v->qp, v->qpi, cursor, status);
	hca_tai_settle(v->h, v->qp, v->qpi);
}

/* The first segment of a request that none of is left, and so on. */
static struct hca_tai_cut
next_cut(const struct visit *v, const struct hca_ub_record *r)
{
	struct hca_tai_cut cut = {.cursor = v->qp->sq_next,
				  .tassn = v->qp->tai.tassn,
				  .offset = v->qp->tai.sent};

	cut.length = hca_tai_length(v->ctx, r, cut.offset);
	cut.last = cut.offset + cut.length == r->len;
	return cut;
}

static enum stop
send_next(struct visit *v)
{
	struct hca_qp_tai *q = &v->qp->tai;
	struct hca_ub_record *r = hca_tai_record(v->h, v->qp, v->qp->sq_next);
	struct hca_tai_cut cut = next_cut(v, r);
	enum stop stop;
	bool dead;

	if (cut.offset == 0 && is_held(v->qp, r))
		return STOP_PARKED;
	if (cut.last && hca_ub_wrs[r->op].flags & HCA_UB_WR_CLOSES && r->open != 0)
		return STOP_PARKED;
	if ((uint16_t)(q->tassn - hca_tai_una(v->qp)) > q->segment_mask)
		return STOP_PARKED;
	if (cut.offset == 0)
		r->first = cut.tassn;
	hca_tai_segment(v->qp, cut.tassn)->cursor = cut.cursor;
	hca_tai_segment(v->qp, cut.tassn)->retries = 0;
	stop = send_segment(v, &cut, &dead);
	if (dead)
		fail_next(v, HCA_UB_STATUS_ACK_TIMEOUT);
	if (stop != STOP_NO || dead)
		return stop;
	r->open++;
	count_open(v->qp, r);
	__atomic_store_n(&q->tassn, (uint16_t)(q->tassn + 1), __ATOMIC_RELEASE);
	q->sent += cut.length;
	if (cut.last)
		next_record(v->qp);
	return STOP_NO;
}

static enum stop
send_new(struct visit *v)
{
	enum stop stop = STOP_NO;

	while (stop == STOP_NO && hca_qp_state(v->qp) == HCA_QPS_RTS) {
		const struct hca_ub_record *r;

		if (v->qp->sq_next == v->head)
			return STOP_PARKED;
		if (v->left == 0 || v->qp->tai.deficit <= 0)
			return STOP_TURN;
		r = hca_tai_record(v->h, v->qp, v->qp->sq_next);
		if (unlikely(r->status != 0))
			fail_next(v, r->status);
		else if (unlikely(is_too_long(v->h, r)))
			fail_next(v, HCA_UB_STATUS_LOCAL_LENGTH);
		else
			stop = send_next(v);
	}
	return stop;
}

/* ---- a visit ---- */

/* One that is alone takes as much as a visit allows; nobody has to be compensated for that. */
static void
add_quantum(struct visit *v)
{
	struct hca_qp_tai *q = &v->qp->tai;

	q->deficit =
		v->ctx->ready_n == 0 ? HCA_TAI_ALONE : RTE_MIN(q->deficit, 0) + HCA_TAI_QUANTUM;
}

void
hca_tai_visit(struct hca *h, struct hca_qp *qp, uint32_t qpi)
{
	struct visit v = {.h = h,
			  .ctx = hca_tai_ctx(h),
			  .qp = qp,
			  .qpi = qpi,
			  .head = __atomic_load_n(&qp->parser.head, __ATOMIC_ACQUIRE),
			  .left = HCA_TAI_SEGMENTS_PER_VISIT};
	uint32_t state = hca_qp_state(qp);
	enum stop stop = STOP_NO;

	if (state == HCA_QPS_ERR)
		hca_tai_complete(h, qp, qpi);
	if (state != HCA_QPS_RTS && state != HCA_QPS_SQD)
		return;
	add_quantum(&v);
	if (unlikely(qp->tai_wait.again != 0))
		stop = send_all_again(&v);
	if (stop == STOP_NO)
		stop = send_new(&v);
	if (stop == STOP_TURN)
		hca_tai_wake(h, qpi);
	else if (stop == STOP_ROOM)
		hca_tai_wait(h, qpi, v.list);
}
