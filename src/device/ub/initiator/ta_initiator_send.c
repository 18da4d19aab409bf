/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Requests become segments, each with an operation in the lane of a TP. A request that may not go
 * yet holds up those behind it.
 */

#include <rte_prefetch.h>

#include "ub/initiator/ta_initiator_run.h"

/* Why a visit ended. */
enum stop {
	STOP_NO,     /* it goes on */
	STOP_TURN,   /* it has had its share */
	STOP_PARKED, /* until something of the Jetty happens */
	STOP_ROOM,   /* until there is room: visit.list */
};

/* ---- room of TPs ---- */

bool
hca_tai_tp_usable(const struct hca_tp *tp)
{
	uint32_t state = hca_tp_state(tp);

	return state == HCA_TPS_ACTIVE || state == HCA_TPS_PASSIVE;
}

uint32_t
hca_tai_tp_room(const struct hca_pipe *h, uint32_t tpi)
{
	const struct hca_tp *tp = hca_tai_tp(h, tpi);
	uint32_t room = tp->cfg.window - (tp->lane[HCA_TP_REQUESTS].head - tp->tai.taken);

	if (tpi == HCA_TP_UNRELIABLE)
		return room;
	/* the peer may send over other members of the group for long */
	if (unlikely(hca_tp_state(tp) == HCA_TPS_PASSIVE))
		return 0;
	return RTE_MIN(room, tp->cfg.requests - RTE_MIN(tp->tai.open_out, tp->cfg.requests));
}

/* ---- into the lane ---- */

static inline void
count_open(struct hca_qp *qp, const struct hca_ub_record *r, struct hca_jetty_segment *s)
{
	bool ordered = hca_tai_execution_order(r) != HCA_UB_ODR_NONE;
	bool reads = (r->flags & HCA_REC_RD) != 0;
	bool sends = (hca_ub_wrs[r->op].flags & HCA_UB_WR_RECV) != 0;

	s->counted =
		(uint8_t)((ordered ? HCA_TAI_COUNTED_ORDERED : 0) |
			  (reads ? HCA_TAI_COUNTED_READ : 0) | (sends ? HCA_TAI_COUNTED_SEND : 0));
	qp->tai.open++;
	qp->tai.open_ordered += ordered;
	qp->tai.open_reads += reads;
	qp->tai.open_sends += sends;
}

/* TPS is told once of all segments that a visit has put into the lane of a TP. */
static inline void
tell_tps(struct visit *v, uint32_t tpi)
{
	if (v->told != HCA_TAI_NONE)
		hca_tp_msg_send(v->h, HCA_STAGE_TAI, HCA_STAGE_TPS, v->told, HCA_MSG_NEW);
	v->told = tpi;
}

static inline void
tai_put_op(struct visit *v, struct hca_ub_record *r, const struct hca_tai_piece *piece,
	   uint32_t tpi, uint32_t index)
{
	struct hca_jetty_segment *s = hca_tai_segment(v->qp, piece->tassn);
	struct hca_ta_op *op = hca_tai_op(v->h, index);
	struct hca_tp *tp = hca_tai_tp(v->h, tpi);
	int32_t cost;

	tai_fill_op(v->qp, v->qpi, r, piece, op);
	s->op = index;
	s->number = tpi;
	s->state = HCA_TAI_SEGMENT_OPEN;
	s->packets = 0;
	r->active = v->ctx->now;
	if (tpi != HCA_TP_UNRELIABLE)
		__atomic_store_n(&tp->tai.open_out, tp->tai.open_out + 1, __ATOMIC_RELAXED);
	hca_tp_lane_put(tp, HCA_TP_REQUESTS, index);
	if (unlikely(tpi != v->told))
		tell_tps(v, tpi);
	v->put++;
	cost = HCA_TAI_OVERHEAD + (int32_t)RTE_MIN(op->payload, HCA_UB_SEND_MAX);
	v->qp->tai.deficit -= cost;
	if (likely(HCA_UB_TO(r->to) == HCA_UB_TO_TPG))
		spend_turn(v, HCA_UB_NUMBER(r->to), cost);
	v->left--;
}

/* Segments that a visit has put into lanes are sent, counted, and answers are due. */
static inline void
end_puts(struct visit *v)
{
	if (v->put == 0)
		return;
	tell_tps(v, HCA_TAI_NONE);
	HCA_COUNT_N(v->h, TAI, ub_segments, v->put);
	hca_tai_expect(v->h, v->qp, v->qpi);
}

/* Put a segment into the lane of a TP. *dead: its request never gets one. */
static inline enum stop
tai_send_segment(struct visit *v, struct hca_ub_record *r, const struct hca_tai_piece *piece,
		 bool *dead)
{
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
	tai_put_op(v, r, piece, tpi, index);
	return STOP_NO;
}

/* ---- segments that were not ready ---- */

static enum stop
tai_send_again(struct visit *v, uint16_t tassn)
{
	struct hca_jetty_segment *s = hca_tai_segment(v->qp, tassn);
	uint32_t ref = hca_tai_ref(v->qp, s->cursor);
	struct hca_ub_record *r = hca_ub_record(v->h, ref);
	struct hca_tai_piece piece = {.ref = ref, .tassn = tassn, .again = true};
	enum stop stop;
	bool dead;

	piece.offset = hca_tai_offset(v->ctx, r, tassn);
	piece.length = hca_tai_length(v->ctx, r, piece.offset);
	piece.last = piece.offset + piece.length == r->len;
	stop = tai_send_segment(v, r, &piece, &dead);
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
tai_send_all_again(struct visit *v)
{
	enum stop stop = STOP_NO;

	for (uint16_t t = hca_tai_una(v->qp); t != v->qp->tai.tassn && stop == STOP_NO; t++) {
		const struct hca_jetty_segment *s = hca_tai_segment(v->qp, t);

		if (v->qp->tai_wait.again == 0)
			break;
		if (s->state == HCA_TAI_SEGMENT_AGAIN && s->op == HCA_TAI_NO_OP)
			stop = v->left == 0 ? STOP_TURN : tai_send_again(v, t);
	}
	return stop;
}

/* ---- new segments ---- */

/* Whether the request may not begin before others of its Jetty are answered. */
static inline bool
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
static inline bool
is_too_long(const struct hca_pipe *h, const struct hca_ub_record *r)
{
	return HCA_UB_TO(r->to) == HCA_UB_TO_ADDRESS &&
	       r->len > 1u << hca_tai_tp(h, HCA_TP_UNRELIABLE)->cfg.mtu_log;
}

/* The TP that a request would take, or one of its group; NULL: no such TP. */
static const struct hca_tp *
some_tp(const struct hca_pipe *h, const struct hca_ub_record *r)
{
	uint32_t number = HCA_UB_NUMBER(r->to);
	const struct hca_tpg *g = &h->ub->tpg[number & h->ub->tp_mask];

	if (HCA_UB_TO(r->to) == HCA_UB_TO_TP)
		return hca_ub_tp(h->ub, number);
	return __atomic_load_n(&g->count, __ATOMIC_ACQUIRE) != 0 ? hca_tai_tp(h, g->tp[0]) : NULL;
}

/* A Jetty with one peer: requests that name no queue may go to all memory of its host. */
static bool
is_for_peer(const struct visit *v, const struct hca_ub_record *r)
{
	const struct hca_tc *row = &v->h->ub->jetty[v->qpi];
	const struct hca_tp *tp;

	if (__atomic_load_n(&row->bound, __ATOMIC_ACQUIRE) != HCA_TC_BOUND ||
	    HCA_UB_TO(r->to) == HCA_UB_TO_ADDRESS)
		return false;
	tp = some_tp(v->h, r);
	if (tp == NULL) /* it fails for that */
		return true;
	return hca_tc_is_peer(row, tp->cfg.peer_eid,
			      hca_ub_wrs[r->op].flags & HCA_UB_WR_RECV ? r->tc & HCA_TC_MASK
								       : row->peer);
}

/* The record at sq_next is over, or fails. */
static inline void
tai_next_record(struct hca_qp *qp)
{
	qp->tai.sent = 0;
	__atomic_store_n(&qp->sq_next, qp->sq_next + 1, __ATOMIC_RELEASE);
}

static void
fail_next(struct visit *v, uint8_t status)
{
	uint32_t cursor = v->qp->sq_next;

	v->left--;
	tai_next_record(v->qp);
	hca_tai_fail(v->h, v->qp, v->qpi, cursor, status);
	hca_tai_settle(v->h, v->qp, v->qpi);
}

static void
fail_stranger(struct visit *v)
{
	HCA_COUNT(v->h, TAI, ub_not_for_peer);
	fail_next(v, HCA_UB_STATUS_LOCAL_ACCESS);
}

/* The first segment of a request that none of is left, and so on. */
static inline struct hca_tai_piece
next_piece(const struct visit *v, const struct hca_ub_record *r, uint32_t ref)
{
	struct hca_tai_piece piece = {.ref = ref,
				      .tassn = v->qp->tai.tassn,
				      .offset = v->qp->tai.sent};

	piece.length = hca_tai_length(v->ctx, r, piece.offset);
	piece.last = piece.offset + piece.length == r->len;
	return piece;
}

static inline enum stop
tai_send_next(struct visit *v, struct hca_ub_record *r, uint32_t ref)
{
	struct hca_qp_tai *q = &v->qp->tai;
	struct hca_tai_piece piece = next_piece(v, r, ref);
	struct hca_jetty_segment *s = hca_tai_segment(v->qp, piece.tassn);
	enum stop stop;
	bool dead;

	if (piece.offset == 0 && is_held(v->qp, r))
		return STOP_PARKED;
	if (piece.last && hca_ub_wrs[r->op].flags & HCA_UB_WR_CLOSES && r->open != 0)
		return STOP_PARKED;
	if ((uint16_t)(q->tassn - hca_tai_una(v->qp)) > q->segment_mask)
		return STOP_PARKED;
	if (piece.offset == 0)
		r->first = piece.tassn;
	s->cursor = v->qp->sq_next;
	s->retries = 0;
	stop = tai_send_segment(v, r, &piece, &dead);
	if (unlikely(dead))
		fail_next(v, HCA_UB_STATUS_ACK_TIMEOUT);
	if (unlikely(stop != STOP_NO || dead))
		return stop;
	r->open++;
	count_open(v->qp, r, s);
	__atomic_store_n(&q->tassn, (uint16_t)(q->tassn + 1), __ATOMIC_RELEASE);
	if (piece.last)
		tai_next_record(v->qp);
	else
		q->sent += piece.length;
	return STOP_NO;
}

/* Whether plain requests may follow in a run, of which r would be the first. */
static inline bool
may_run(const struct visit *v, const struct hca_ub_record *r)
{
	return HCA_SHORT_WAYS && PLAIN_OPS >> (r->op & 31) & 1 && v->room != 0 &&
	       v->told == v->member && v->qp->tai.sent == 0 && likely(!v->qp->cfg.one_peer);
}

static enum stop
tai_send_new(struct visit *v)
{
	enum stop stop = STOP_NO;

	while (stop == STOP_NO && hca_qp_state(v->qp) == HCA_QPS_RTS) {
		struct hca_ub_record *r;
		uint32_t ref;

		if (v->qp->sq_next == v->head)
			return STOP_PARKED;
		if (v->left == 0 || v->qp->tai.deficit <= 0)
			return STOP_TURN;
		ref = hca_tai_ref(v->qp, v->qp->sq_next);
		r = hca_ub_record(v->h, ref);
		if (may_run(v, r) && tai_send_run(v) != 0)
			continue;
		if (unlikely(r->status != 0))
			fail_next(v, r->status);
		else if (unlikely(is_too_long(v->h, r)))
			fail_next(v, HCA_UB_STATUS_LOCAL_LENGTH);
		else if (unlikely(v->qp->cfg.one_peer) && v->qp->tai.sent == 0 &&
			 !is_for_peer(v, r))
			fail_stranger(v);
		else
			stop = tai_send_next(v, r, ref);
	}
	return stop;
}

/* ---- a visit ---- */

/* A Jetty that is alone takes as much as a visit allows; no other Jetty has to be compensated. */
static void
add_quantum(struct visit *v)
{
	struct hca_qp_tai *q = &v->qp->tai;

	q->deficit =
		v->ctx->ready_n == 0 ? HCA_TAI_ALONE : RTE_MIN(q->deficit, 0) + HCA_TAI_QUANTUM;
}

void
hca_tai_visit(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi)
{
	struct visit v = {.h = h,
			  .ctx = hca_tai_ctx(h),
			  .qp = qp,
			  .qpi = qpi,
			  .head = __atomic_load_n(&qp->parser.head, __ATOMIC_ACQUIRE),
			  .left = HCA_TAI_SEGMENTS_PER_VISIT,
			  .told = HCA_TAI_NONE};
	uint32_t state = hca_qp_state(qp);
	enum stop stop = STOP_NO;

	if (state == HCA_QPS_ERR)
		hca_tai_complete(h, qp, qpi);
	if (state != HCA_QPS_RTS && state != HCA_QPS_SQD)
		return;
	add_quantum(&v);
	if (unlikely(qp->tai_wait.again != 0))
		stop = tai_send_all_again(&v);
	if (stop == STOP_NO)
		stop = tai_send_new(&v);
	end_puts(&v);
	if (stop == STOP_TURN)
		hca_tai_wake(h, qpi);
	else if (stop == STOP_ROOM)
		hca_tai_wait(h, qpi, v.list);
}
