/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * req_tx: which QP may send, how much and in which order; the position of each QP in
 * its window and PSN space; return of records. req_tx_segment.c writes the descriptors.
 */

#include <errno.h>

#include <rte_atomic.h>
#include <rte_malloc.h>

#include "abi_ctx.h"
#include "cc/cc.h"
#include "requester/req_rx.h"
#include "requester/req_tx.h"
#include "requester/rtt.h"
#include "queues/eq.h"

#define LINK offsetof(struct hca_qp, req_tx.list_next)

int
hca_req_tx_init(struct hca_pipe *h)
{
	struct hca_req_tx_ctx *ctx =
		rte_zmalloc_socket("req_tx", sizeof(*ctx), RTE_CACHE_LINE_SIZE, h->cfg.socket_id);

	h->stage_ctx[HCA_STAGE_REQ_TX] = ctx;
	if (ctx == NULL)
		return -ENOMEM;
	ctx->ready.head = HCA_QP_NONE;
	ctx->local = HCA_RECREF_NONE;
	if (hca_pace_init(&ctx->pace, 1u << h->cfg.log_qps, h->cfg.socket_id) != 0) {
		hca_req_tx_fini(h);
		return -ENOMEM;
	}
	return 0;
}

void
hca_req_tx_fini(struct hca_pipe *h)
{
	struct hca_req_tx_ctx *ctx = h->stage_ctx[HCA_STAGE_REQ_TX];

	if (ctx == NULL)
		return;
	hca_pace_fini(&ctx->pace);
	rte_free(ctx);
	h->stage_ctx[HCA_STAGE_REQ_TX] = NULL;
}

/* ---- ready list ---- */

static void
wake(struct hca_pipe *h, struct hca_req_tx_ctx *ctx, struct hca_qp *qp, uint32_t qpi)
{
	if (qp->req_tx.flags & (HCA_REQ_TX_READY | HCA_REQ_TX_PACED))
		return;
	qp->req_tx.flags |= HCA_REQ_TX_READY;
	hca_qp_list_append(h, &ctx->ready, LINK, qpi);
	ctx->count++;
}

/* Congestion control may answer otherwise now. */
static inline void
end_hold(struct hca_req_tx_ctx *ctx, struct hca_qp *qp, uint32_t qpi)
{
	if (likely(!(qp->req_tx.flags & HCA_REQ_TX_HELD)))
		return;
	hca_pace_drop(&ctx->pace, qpi);
	qp->req_tx.flags &= ~(HCA_REQ_TX_PACED | HCA_REQ_TX_HELD);
}

void
hca_req_tx_wake(struct hca_pipe *h, uint32_t qpi)
{
	end_hold(hca_req_tx_ctx(h), &h->qp[qpi], qpi);
	wake(h, hca_req_tx_ctx(h), &h->qp[qpi], qpi);
}

static void
pop(struct hca_pipe *h, struct hca_req_tx_ctx *ctx)
{
	uint32_t qpi = hca_qp_list_pop(h, &ctx->ready, LINK);

	h->qp[qpi].req_tx.flags &= ~HCA_REQ_TX_READY;
	ctx->count--;
}

/* For a purge only: takes the QP off the list it is on. */
static void
unlink_qp(struct hca_pipe *h, struct hca_req_tx_ctx *ctx, uint32_t qpi)
{
	struct hca_qp_req_tx *q = &h->qp[qpi].req_tx;

	if (q->flags & HCA_REQ_TX_READY) {
		hca_qp_list_remove(h, &ctx->ready, LINK, qpi);
		ctx->count--;
	} else if (q->flags & HCA_REQ_TX_PACED) {
		hca_pace_drop(&ctx->pace, qpi);
	}
	q->flags &= ~(HCA_REQ_TX_READY | HCA_REQ_TX_PACED | HCA_REQ_TX_HELD);
}

/* ---- static rates, and waits for congestion control ---- */

/* The QP's next frame must wait until then. flags: HCA_REQ_TX_HELD or 0 */
static void
pace(struct hca_req_tx_ctx *ctx, struct hca_qp *qp, uint32_t qpi, uint64_t until, uint8_t flags)
{
	qp->req_tx.flags |= HCA_REQ_TX_PACED | flags;
	hca_pace_put(&ctx->pace, qpi, until);
}

/* QPs whose time has come may send again. */
static void
end_pacing(struct hca_pipe *h, struct hca_req_tx_ctx *ctx, uint64_t now)
{
	uint32_t qpi;

	while ((qpi = hca_pace_take(&ctx->pace, now)) != HCA_PACE_NONE) {
		h->qp[qpi].req_tx.flags &= ~(HCA_REQ_TX_PACED | HCA_REQ_TX_HELD);
		wake(h, ctx, &h->qp[qpi], qpi);
	}
}

/* Bytes of the frames from ctx->out[first] on, from Ethernet header to ICRC. */
static uint64_t
bytes_from(const struct hca_req_tx_ctx *ctx, uint32_t first)
{
	uint64_t bytes = 0;

	for (uint32_t i = first; i < ctx->n_out; i++)
		bytes += hca_txd(ctx->out[i])->len + HCA_REQ_TX_FRAME_OVERHEAD;
	return bytes;
}

/*
 * Account for the time that the frames from ctx->out[first] on take on the link. A worker that is
 * late catches up a little, otherwise the rate would never be reached.
 */
static void
spend_time(struct hca_req_tx_ctx *ctx, struct hca_qp *qp, uint32_t first)
{
	uint64_t from = ctx->now - RTE_MIN(ctx->now, HCA_REQ_TX_PACE_SLACK);

	qp->addr.pace_at =
		RTE_MAX(qp->addr.pace_at, from) + bytes_from(ctx, first) * hca_qp_pace(qp) / 1000;
}

/* ---- cursors ---- */

/*
 * After a rewind, releases may pass next_psn: continue at the later one. The window cursors decide,
 * because the order of PSNs 2^23 apart is ambiguous.
 */
static void
catch_up(struct hca_req_tx_visit *v)
{
	const struct hca_record *r;
	uint32_t done;

	if (likely((int32_t)(v->tail - v->next) < 0))
		return;
	if (v->tail != v->next) {
		v->next = v->tail;
		v->pkt = 0;
		v->next_psn = v->upsn;
	}
	if (v->tail == v->head)
		return;
	r = hca_record(v->h, hca_req_tx_ref(v, v->tail));
	if (!(r->flags & HCA_REC_SENT))
		return;
	done = (v->upsn - r->psn) & HCA_PSN_MASK;
	if (done > v->pkt) {
		v->pkt = done;
		v->next_psn = v->upsn;
	}
}

/* Read una before the state: a stage that moves una past an error sets the state first. */
static void
load(struct hca_req_tx_visit *v, struct hca_pipe *h, struct hca_req_tx_ctx *ctx, uint32_t qpi)
{
	struct hca_qp *qp = &h->qp[qpi];
	uint64_t una = __atomic_load_n(&qp->sq_una, __ATOMIC_ACQUIRE);
	uint32_t half = (qp->req_tx.window_mask + 1) / 2;

	v->h = h;
	v->ctx = ctx;
	v->qp = qp;
	v->last = NULL;
	v->qpi = qpi;
	v->generation = qp->cfg.generation;
	v->next = qp->sq_next;
	v->pkt = qp->req_tx.pkt;
	v->head = __atomic_load_n(&qp->parser.head, __ATOMIC_ACQUIRE);
	v->tail = hca_una_tail(una);
	v->upsn = hca_una_psn(una);
	v->next_psn = qp->req_tx.next_psn;
	v->max_psn = qp->req_tx.max_psn;
	v->desc_seq = qp->req_tx.desc_seq;
	v->wqes = 0;
	v->local = false;
	v->ack_every = h->cfg.ack_every;
	v->half = half ? half - 1 : 0;
	v->transport = qp->req_tx.transport;
	v->unreliable = qp->req_tx.unreliable;
	if (unlikely(v->unreliable))
		v->ack_every = v->half = UINT32_MAX; /* there are no acknowledgements */
	v->deficit = qp->req_tx.deficit;
	v->since_ackreq = qp->req_tx.since_ackreq;
	catch_up(v);
}

/* Before the descriptors are passed on: a response must find max_psn. */
static void
store(struct hca_req_tx_visit *v)
{
	struct hca_qp_req_tx *q = &v->qp->req_tx;

	q->pkt = v->pkt;
	q->desc_seq = v->desc_seq;
	q->deficit = v->deficit;
	q->since_ackreq = v->since_ackreq;
	__atomic_store_n(&q->next_psn, v->next_psn, __ATOMIC_RELEASE);
	__atomic_store_n(&q->max_psn, v->max_psn, __ATOMIC_RELEASE);
	__atomic_store_n(&v->qp->sq_next, v->next, __ATOMIC_RELEASE);
}

/* Window cursor of the sent record that contains psn; head: no record does. */
static uint32_t
find_psn(struct hca_req_tx_visit *v, uint32_t psn)
{
	for (uint32_t c = v->tail; c != v->head; c++) {
		const struct hca_record *r = hca_record(v->h, hca_req_tx_ref(v, c));

		if (!(r->flags & HCA_REC_SENT))
			break;
		if (((psn - r->psn) & HCA_PSN_MASK) < r->npsn)
			return c;
	}
	return v->head;
}

/* ---- records back to their pools ---- */

static void
return_flush(struct hca_record_pool *p, struct hca_req_tx_returns *ret)
{
	if (ret->n != 0)
		rte_ring_sp_enqueue_bulk_elem(p->free, ret->ref, sizeof(ret->ref[0]), ret->n, NULL);
	ret->n = 0;
}

static inline void
return_record(struct hca_pipe *h, struct hca_req_tx_ctx *ctx, uint32_t ref)
{
	bool full = ref & HCA_RECREF_FULL;
	struct hca_req_tx_returns *ret = &ctx->ret[full];

	ret->ref[ret->n++] = ref;
	if (unlikely(ret->n == RTE_DIM(ret->ref)))
		return_flush(full ? &h->records[HCA_WIRE_ROCE].full
				  : &h->records[HCA_WIRE_ROCE].small,
			     ret);
}

static void
return_all(struct hca_pipe *h, struct hca_req_tx_ctx *ctx)
{
	return_flush(&h->records[HCA_WIRE_ROCE].small, &ctx->ret[0]);
	return_flush(&h->records[HCA_WIRE_ROCE].full, &ctx->ret[1]);
}

void
hca_req_tx_free_released(struct hca_pipe *h, struct hca_req_tx_ctx *ctx, struct hca_qp *qp,
			 uint32_t qpi)
{
	uint32_t tail = hca_una_tail(__atomic_load_n(&qp->sq_una, __ATOMIC_ACQUIRE));
	uint32_t done = __atomic_load_n(&qp->encap.req_done_seq, __ATOMIC_ACQUIRE);
	uint32_t freed = qp->sq_freed, mask = qp->req_tx.window_mask;
	bool idle = done == qp->req_tx.desc_seq; /* encap has none of its descriptors */
	const uint32_t *window = qp->req_tx.window;

	for (; freed != tail; freed++) {
		uint32_t ref = window[freed & mask];

		if (unlikely(!idle) && (int32_t)(done - hca_record(h, ref)->desc_seq) < 0)
			break;
		return_record(h, ctx, ref);
	}
	if (freed == qp->sq_freed)
		return;
	/* one worker returns those of all messages together, before the parser takes any */
	if (!h->single_worker || qp->req_tx.unreliable)
		return_all(h, ctx);
	__atomic_store_n(&qp->sq_freed, freed, __ATOMIC_RELEASE);
	hca_msg_send(h, HCA_STAGE_REQ_TX, HCA_STAGE_PARSER, qpi, HCA_MSG_FREED);
}

/* ---- errors ---- */

/* The record at cursor fails after everything before it; nothing later is sent. */
static void
report_bad(struct hca_req_tx_visit *v, uint32_t cursor)
{
	struct hca_qp_req_tx *q = &v->qp->req_tx;
	struct hca_record *r = hca_record(v->h, hca_req_tx_ref(v, cursor));

	/* the first one counts; one that the peer turned out to have received does not */
	if (q->flags & HCA_REQ_TX_BAD && (int32_t)(cursor - q->bad) >= 0 &&
	    (int32_t)(q->bad - v->tail) >= 0)
		return;
	if (!(r->flags & HCA_REC_SENT))
		r->desc_seq = v->desc_seq;
	q->flags |= HCA_REQ_TX_BAD;
	__atomic_store_n(&q->bad, cursor, __ATOMIC_RELEASE);
	if (v->unreliable)
		hca_req_tx_complete(v->h, v->ctx, v->qp, v->qpi);
	else
		hca_msg_send(v->h, HCA_STAGE_REQ_TX, HCA_STAGE_REQ_RX, v->qpi, HCA_MSG_BAD);
}

/* ERR, SQE: everything in the window goes to req_rx without being sent. */
static void
flush(struct hca_req_tx_visit *v)
{
	hca_req_tx_local_abandon(v->h, v->ctx, v->qpi);
	for (; v->next != v->head; v->next++) {
		struct hca_record *r = hca_record(v->h, hca_req_tx_ref(v, v->next));

		if (!(r->flags & HCA_REC_SENT))
			r->desc_seq = v->desc_seq;
	}
	v->pkt = 0;
	store(v);
	if (v->unreliable)
		hca_req_tx_complete(v->h, v->ctx, v->qp, v->qpi);
	/* even without new records: req_rx may have flushed before it saw our last `next` */
	else if (v->tail != v->head)
		hca_msg_send(v->h, HCA_STAGE_REQ_TX, HCA_STAGE_REQ_RX, v->qpi, HCA_MSG_BAD);
}

static inline bool
is_flushing(uint32_t state)
{
	return state == HCA_QPS_ERR || state == HCA_QPS_SQE;
}

/* ---- one QP's turn ---- */

static void
check_drained(struct hca_req_tx_visit *v)
{
	const struct hca_qp_cfg *cfg = &v->qp->cfg;
	const struct hca_record *r;

	if (!__atomic_load_n(&cfg->draining, __ATOMIC_RELAXED) ||
	    v->qp->req_tx.flags & (HCA_REQ_TX_DRAINED | HCA_REQ_TX_LOCAL) || v->upsn != v->max_psn)
		return;
	if (v->tail != v->head) {
		r = hca_record(v->h, hca_req_tx_ref(v, v->tail));
		if (r->flags & HCA_REC_SENT)
			return;
	}
	v->qp->req_tx.flags |= HCA_REQ_TX_DRAINED;
	if (__atomic_load_n(&cfg->sqd_notify, __ATOMIC_RELAXED))
		hca_eq_raise_qp(&v->h->core, HCA_STAGE_REQ_TX, HCA_EVENT_SQ_DRAINED, v->qpi);
}

void
hca_req_tx_check_drained(struct hca_pipe *h, uint32_t qpi)
{
	struct hca_req_tx_visit v;

	load(&v, h, hca_req_tx_ctx(h), qpi);
	check_drained(&v);
}

/* There are unacknowledged packets and no timer: req_rx starts it. Pairs with req_rx's disarm. */
static void
arm_timer(struct hca_req_tx_visit *v)
{
	if (hca_qp_ack_timeout(v->qp) == 0)
		return;
	if (!v->h->single_worker)
		rte_smp_mb();
	if (__atomic_load_n(&v->qp->req_rx.timer_armed, __ATOMIC_RELAXED) == 0)
		hca_msg_send(v->h, HCA_STAGE_REQ_TX, HCA_STAGE_REQ_RX, v->qpi, HCA_MSG_ARM);
}

static bool
on_hold(const struct hca_qp *qp)
{
	return __atomic_load_n(&qp->req_rx.flags, __ATOMIC_ACQUIRE) & HCA_REQ_RX_HOLD;
}

/* How much the QP may send in this turn; false: its pacing deadline has not passed. */
static inline bool
begin_turn(struct hca_req_tx_visit *v)
{
	uint32_t rate = hca_qp_pace(v->qp);

	if (unlikely(rate != 0)) {
		if (v->ctx->now < v->qp->addr.pace_at)
			return false;
		v->deficit = (int32_t)RTE_MIN(HCA_REQ_TX_QUANTUM, HCA_REQ_TX_PACE_TURN / rate + 1);
	} else if (v->deficit <= 0) {
		v->deficit += HCA_REQ_TX_QUANTUM;
	}
	v->leave = UINT32_MAX;
	v->cc = hca_cc_of(v->h, v->qpi);
	if (unlikely(v->cc != NULL)) {
		v->again = UINT64_MAX;
		v->turn_psn = v->next_psn;
		v->leave = v->cc->may_send(v->h, v->qpi, (v->next_psn - v->upsn) & HCA_PSN_MASK,
					   v->ctx->now, &v->again);
	}
	return true;
}

/* Frames were described from ctx->out[first] on; repeated: some not for the first time. */
static inline void
account_frames(struct hca_req_tx_visit *v, uint32_t first, bool repeated)
{
	struct hca_req_tx_ctx *ctx = v->ctx;
	struct hca_rtt *t;

	if (unlikely(hca_qp_pace(v->qp) != 0))
		spend_time(ctx, v->qp, first);
	if (unlikely(v->unreliable)) {
		ctx->copied[ctx->n_copied++] = v->qpi;
		return;
	}
	arm_timer(v);
	t = hca_rtt_of(v->h, v->qpi);
	if (unlikely(ctx->now >= t->next_at || repeated))
		hca_rtt_begin(v, t, repeated);
	if (unlikely(v->cc != NULL))
		hca_cc_sent(v->h, v->cc, v->qpi, (v->next_psn - 1) & HCA_PSN_MASK, repeated,
			    ctx->n_out - first, (v->next_psn - v->turn_psn) & HCA_PSN_MASK,
			    bytes_from(ctx, first), ctx->now);
}

/* Visit the QP at the head of the list; false: without credit it stays there. */
static bool
visit(struct hca_pipe *h, struct hca_req_tx_ctx *ctx)
{
	uint32_t qpi = ctx->ready.head, first = ctx->n_out, repeated = ctx->retransmitted, state,
		 seq;
	struct hca_req_tx_visit v;
	enum hca_req_tx_stop why;

	if (HCA_SHORT_WAYS && likely(hca_req_tx_single(h, ctx, qpi))) {
		pop(h, ctx);
		return true;
	}
	load(&v, h, ctx, qpi);
	state = hca_qp_state(v.qp);
	if (unlikely(state != HCA_QPS_RTS && state != HCA_QPS_SQD) || on_hold(v.qp)) {
		pop(h, ctx);
		if (is_flushing(state))
			flush(&v);
		return true;
	}
	if (unlikely(!begin_turn(&v))) {
		HCA_COUNT(h, REQ_TX, req_paced);
		pop(h, ctx);
		pace(ctx, v.qp, qpi, v.qp->addr.pace_at, 0);
		return true;
	}
	seq = v.desc_seq;
	why = hca_req_tx_send(&v, state);
	if (why >= HCA_REQ_TX_STOP_PARK)
		v.deficit = 0;
	store(&v);
	if (seq != v.desc_seq)
		account_frames(&v, first, repeated != ctx->retransmitted);
	if (unlikely(v.local && !v.unreliable))
		hca_msg_send(h, HCA_STAGE_REQ_TX, HCA_STAGE_REQ_RX, qpi, HCA_MSG_LOCAL);
	if (why == HCA_REQ_TX_STOP_CREDIT)
		return false;
	pop(h, ctx);
	if (why == HCA_REQ_TX_STOP_TURN)
		wake(h, ctx, v.qp, qpi);
	else if (why == HCA_REQ_TX_STOP_BAD)
		report_bad(&v, v.next);
	else if (unlikely(why == HCA_REQ_TX_STOP_CONGESTED) && v.again != UINT64_MAX)
		pace(ctx, v.qp, qpi, v.again, HCA_REQ_TX_HELD);
	if (unlikely(state == HCA_QPS_SQD))
		check_drained(&v);
	/* encap may have reported already the copies of earlier packets */
	if (unlikely(v.local && v.unreliable))
		hca_req_tx_complete(h, ctx, v.qp, qpi);
	return true;
}

static unsigned int
send_burst(struct hca_pipe *h, struct hca_req_tx_ctx *ctx, uint64_t now, unsigned int budget)
{
	struct hca_edge *e = &h->edge[HCA_EDGE_REQ_TX_ENCAP];
	uint32_t turns;

	if (ctx->count == 0)
		return 0;
	ctx->room = RTE_MIN(RTE_MIN(budget, HCA_BURST), hca_edge_room(h, e));
	ctx->n_out = ctx->n_spare = ctx->retransmitted = ctx->n_copied = 0;
	/* a single QP gets several turns; the limit is for QPs that do not send */
	ctx->stuck = ctx->room == 0;
	for (turns = HCA_BURST; turns > 0 && ctx->count != 0 && ctx->n_out < ctx->room; turns--) {
		if (!visit(h, ctx)) {
			ctx->stuck = true;
			break;
		}
	}
	if (ctx->n_spare != 0)
		rte_pktmbuf_free_bulk(ctx->spare, ctx->n_spare);
	if (ctx->n_out == 0)
		return 0;
	HCA_COUNT_N(h, REQ_TX, req_packets, ctx->n_out);
	HCA_COUNT_N(h, REQ_TX, retransmissions, ctx->retransmitted);
	hca_edge_push(h, e, (void *const *)ctx->out, ctx->n_out, now);
	/* a direct edge has copied everything by now; otherwise encap reports it */
	for (uint32_t i = 0; i < ctx->n_copied && e->ring == NULL; i++)
		hca_req_tx_complete(h, ctx, &h->qp[ctx->copied[i]], ctx->copied[i]);
	return ctx->n_out;
}

/* ---- messages ---- */

/* The QP's state changed: handles now the work that needs no room, the rest in the QP's turn. */
static void
attend(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi)
{
	struct hca_req_tx_ctx *ctx = hca_req_tx_ctx(h);
	struct hca_req_tx_visit v;
	uint32_t state;

	/* before RTS the CEU sets the PSNs: storing the loaded ones would overwrite them */
	if (unlikely(hca_qp_state(qp) < HCA_QPS_RTS))
		return;
	load(&v, h, ctx, qpi);
	state = hca_qp_state(qp);
	if (unlikely(state == HCA_QPS_RST))
		return;
	if (unlikely(is_flushing(state))) {
		flush(&v);
	} else {
		if (unlikely(v.unreliable && state == HCA_QPS_RTS))
			qp->req_tx.flags &= ~HCA_REQ_TX_BAD; /* back from SQE */
		store(&v);
		if (state == HCA_QPS_SQD)
			check_drained(&v);
		else
			qp->req_tx.flags &= ~HCA_REQ_TX_DRAINED;
		end_hold(ctx, qp, qpi);
		if (v.next != v.head)
			wake(h, ctx, qp, qpi);
	}
	hca_req_tx_free_released(h, ctx, qp, qpi);
}

static void
on_new(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	if (likely(hca_qp_state(qp) == HCA_QPS_RTS))
		wake(h, hca_req_tx_ctx(h), qp, qpi);
	else
		attend(h, qp, qpi);
}

/* Go back to the PSN that req_rx requests, or to una if that is later; never forward. */
static void
rewind_to(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi)
{
	uint64_t word = __atomic_load_n(&qp->req_rx.rewind, __ATOMIC_ACQUIRE);
	uint32_t psn = (uint32_t)word & HCA_PSN_MASK, at, pkt;
	struct hca_req_tx_visit v;

	if ((uint32_t)(word >> 32) == qp->req_tx.rewind_epoch)
		return;
	qp->req_tx.rewind_epoch = (uint32_t)(word >> 32);
	load(&v, h, hca_req_tx_ctx(h), qpi);
	if (((psn - v.upsn) & HCA_PSN_MASK) >= ((v.max_psn - v.upsn) & HCA_PSN_MASK))
		psn = v.upsn;
	at = find_psn(&v, psn);
	if (at != v.head) {
		pkt = (psn - hca_record(h, hca_req_tx_ref(&v, at))->psn) & HCA_PSN_MASK;
		if ((int32_t)(at - v.next) < 0 || (at == v.next && pkt < v.pkt)) {
			v.next = at;
			v.pkt = pkt;
			v.next_psn = psn;
			qp->req_tx.again = (uint8_t)(word >> 24);
			HCA_COUNT(h, REQ_TX, req_rewinds);
		}
	}
	store(&v);
}

/* All records were sent, so a release only returns records, as in attend(). */
static inline bool
is_at_rest(const struct hca_qp *qp, uint32_t state)
{
	return state == HCA_QPS_RTS && !qp->req_tx.unreliable &&
	       qp->sq_next == __atomic_load_n(&qp->parser.head, __ATOMIC_ACQUIRE) &&
	       !(qp->req_tx.flags & (HCA_REQ_TX_DRAINED | HCA_REQ_TX_HELD));
}

static void
on_req_rx(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	uint32_t state = hca_qp_state(qp);

	if (HCA_SHORT_WAYS && flags == HCA_MSG_RELEASE && likely(is_at_rest(qp, state))) {
		hca_req_tx_free_released(h, hca_req_tx_ctx(h), qp, qpi);
		return;
	}
	/* HOLD needs no action: the flag is read before each turn */
	if (unlikely(flags & HCA_MSG_REWIND) && (state == HCA_QPS_RTS || state == HCA_QPS_SQD))
		rewind_to(h, qp, qpi);
	attend(h, qp, qpi);
}

void
hca_req_tx_gather_failed(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi)
{
	uint32_t psn = __atomic_load_n(&qp->encap.req_failed_psn, __ATOMIC_ACQUIRE), at;
	uint32_t why = __atomic_load_n(&qp->encap.req_failed_syndrome, __ATOMIC_RELAXED);
	struct hca_req_tx_visit v;
	struct hca_record *r;

	load(&v, h, hca_req_tx_ctx(h), qpi);
	at = find_psn(&v, psn & HCA_PSN_MASK);
	if (at == v.head)
		return;
	r = hca_record(h, hca_req_tx_ref(&v, at));
	if (r->syndrome == 0)
		__atomic_store_n(&r->syndrome, (uint8_t)why, __ATOMIC_RELEASE);
	if ((int32_t)(v.next - at) > 0 || (v.next == at && v.pkt != 0)) {
		v.next = at;
		v.pkt = 0;
		v.next_psn = r->psn;
		qp->req_tx.again = HCA_AGAIN_GATHER;
		catch_up(&v);
	}
	/*
	 * the packet with the request for an ACK may be the one that failed: request it in a turn
	 */
	v.since_ackreq = 1;
	store(&v);
	report_bad(&v, at);
	if (!v.unreliable)
		hca_req_tx_wake(h, qpi);
}

static void
on_encap(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	uint32_t state = hca_qp_state(qp);

	if (unlikely(state == HCA_QPS_RST))
		return;
	if (unlikely(flags & HCA_MSG_FAILED) && !is_flushing(state) && !qp->req_tx.unreliable)
		hca_req_tx_gather_failed(h, qp, qpi);
	if (unlikely(flags & HCA_MSG_LATE) && !is_flushing(state) && !qp->req_tx.unreliable)
		hca_msg_send(h, HCA_STAGE_REQ_TX, HCA_STAGE_REQ_RX, qpi, HCA_MSG_LATE);
	if (unlikely(qp->req_tx.unreliable))
		hca_req_tx_complete(h, hca_req_tx_ctx(h), qp, qpi);
	hca_req_tx_free_released(h, hca_req_tx_ctx(h), qp, qpi);
}

static void
on_state(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	attend(h, qp, qpi);
}

/* The QP is in RST and nothing new arrives: return all records. */
static void
purge(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi)
{
	struct hca_req_tx_ctx *ctx = hca_req_tx_ctx(h);
	uint32_t head = __atomic_load_n(&qp->parser.head, __ATOMIC_ACQUIRE);

	unlink_qp(h, ctx, qpi);
	hca_req_tx_local_abandon(h, ctx, qpi);
	for (uint32_t i = qp->sq_freed; i != head; i++)
		return_record(h, ctx, qp->req_tx.window[i & qp->req_tx.window_mask]);
	return_all(h, ctx);
	__atomic_store_n(&qp->sq_freed, head, __ATOMIC_RELEASE);
}

static void
on_ceu(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	if (flags & HCA_MSG_PURGE) {
		purge(h, qp, qpi);
		hca_purge_ack(h, HCA_STAGE_REQ_TX);
	} else {
		attend(h, qp, qpi);
	}
}

static unsigned int
messages(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	unsigned int n;

	n = hca_msg_drain(h, HCA_STAGE_CEU, HCA_STAGE_REQ_TX, on_ceu, now, budget);
	n += hca_msg_drain(h, HCA_STAGE_REQ_RX, HCA_STAGE_REQ_TX, on_req_rx, now, budget);
	n += hca_msg_drain(h, HCA_STAGE_ENCAP, HCA_STAGE_REQ_TX, on_encap, now, budget);
	n += hca_msg_drain(h, HCA_STAGE_EE, HCA_STAGE_REQ_TX, on_state, now, budget);
	n += hca_msg_drain(h, HCA_STAGE_PARSER, HCA_STAGE_REQ_TX, on_new, now, budget);
	return_all(h, hca_req_tx_ctx(h));
	return n;
}

unsigned int
hca_req_tx_poll(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	struct hca_req_tx_ctx *ctx = hca_req_tx_ctx(h);
	unsigned int n = 0;

	if (hca_msg_due(h, HCA_STAGE_REQ_TX))
		n = messages(h, now, budget);
	if (unlikely(ctx->local != HCA_RECREF_NONE))
		n += hca_req_tx_local_poll(h, ctx);
	ctx->now = now;
	if (unlikely(now >= ctx->pace.next))
		end_pacing(h, ctx, now);
	n += send_burst(h, ctx, now, budget);
	if (unlikely(ctx->batch.n != 0))
		hca_cq_batch_end(&h->core, &ctx->batch, HCA_STAGE_REQ_TX);
	return n;
}

uint64_t
hca_req_tx_deadline(const struct hca_pipe *h, uint64_t now)
{
	const struct hca_req_tx_ctx *ctx = hca_req_tx_ctx(h);

	if (ctx->local != HCA_RECREF_NONE)
		return now;
	if (ctx->count != 0)
		return ctx->stuck ? HCA_DEADLINE_ROOM : now;
	return hca_pace_deadline(&ctx->pace);
}
