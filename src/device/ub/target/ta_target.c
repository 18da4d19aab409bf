/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * ta_target (TAT, transaction target): the stage that executes the requests of UB's peers. State
 * that the packets of one request share: ta_open.c; effect of each packet: ta_target_write.c,
 * ta_target_send.c, ta_target_read.c; receives: ta_recv.c; answers: ta_answer.c.
 */

#include "ub/target/ta_target.h"

#include <errno.h>
#include <string.h>

#include <rte_malloc.h>

#include "core/mbuf.h"

#define MESSAGES_MAX 8192u

/* ---- refusing ---- */

#define ERROR_ANSWER(code) (HCA_UB_RSP_ERROR << 5 | (code))

struct reason {
	enum hca_counter counter;
	uint8_t answer; /* byte 4 of the ATAH; 0: not answered */
	uint8_t status; /* of the receive that the request has taken */
};

#define ANSWER_UNSUPPORTED ERROR_ANSWER(HCA_UB_ERROR_UNSUPPORTED)
#define ANSWER_ABORT ERROR_ANSWER(HCA_UB_ERROR_ABORT)
#define ANSWER_PSN 0
#define ANSWER_RNR (HCA_UB_RSP_RNR << 5)
#define ANSWER_FAULT (HCA_UB_RSP_PAGE_FAULT << 5)

static const struct reason reasons[TAT_WHY_COUNT] = {
#define X(NAME, counter, answer, status) \
	[TAT_##NAME] = {HCA_CTR_##counter, ANSWER_##answer, HCA_UB_STATUS_##status},
	TAT_REFUSE_LIST(X)
#undef X
#define X(NAME, counter, text) \
	[TAT_TOKEN + HCA_TOKEN_BAD_##NAME - 1] = {HCA_CTR_##counter, ANSWER_ABORT, \
						  HCA_UB_STATUS_LOCAL_ACCESS},
		HCA_TOKEN_VERDICT_LIST(X)
#undef X
#define X(NAME, counter, answer, text) \
	[TAT_CODEC + HCA_UB_DROP_##NAME - HCA_UB_DROP_TA] = {HCA_CTR_##counter, ANSWER_##answer, \
							     HCA_UB_STATUS_LOCAL_LENGTH},
			HCA_UB_REFUSE_LIST(X)
#undef X
};

_Static_assert(TAT_CODEC - TAT_TOKEN == HCA_TOKEN_VERDICTS - 1, "a row for each");

static enum tat_why
why_codec(int rc)
{
	return (enum tat_why)(TAT_CODEC - rc - HCA_UB_DROP_TA);
}

/* A queue in RESET or ERROR drops requests, S8.2.2.3, unless both ends have agreed to tell. */
static uint8_t
answer_of(const struct tat_request *q, enum tat_why why)
{
	if ((why == TAT_UNKNOWN_TC || why == TAT_TC_ERROR) &&
	    !(q->tp->cfg.flags & HCA_TP_FLAG_TELL))
		return TAT_SILENT;
	return reasons[why].answer;
}

void
tat_refuse_for(struct tat_request *q, enum tat_why why, uint8_t timer)
{
	if (q->why != TAT_FINE || (q->o != NULL && q->o->answer != 0))
		return;
	q->why = (uint8_t)why;
	if (q->o != NULL)
		q->o->answer = answer_of(q, why) | timer;
	if (q->msg != NULL && q->msg->status == HCA_UB_STATUS_OK)
		q->msg->status = reasons[why].status;
}

void
tat_refuse(struct tat_request *q, enum tat_why why)
{
	tat_refuse_for(q, why, 0);
}

void
tat_tell_tps(struct hca_pipe *h, const struct hca_tp *tp, uint8_t flags)
{
	hca_tp_msg_send(h, HCA_STAGE_TAT, HCA_STAGE_TPS, tat_tp_index(h, tp), flags);
}

/* A dead TP has no open requests and no answers to give. */
static void
forget_tp(struct hca_pipe *h, struct hca_tp *tp, bool all)
{
	tat_open_drop(h, tp);
	tat_answer_drop(h, tp, all);
}

void
tat_fail(struct hca_pipe *h, struct hca_tp *tp, enum hca_counter why)
{
	HCA_COUNT_AT(h, HCA_STAGE_TAT, why);
	if (hca_tp_fail(tp))
		tat_tell_tps(h, tp, HCA_MSG_STATE);
	forget_tp(h, tp, false);
}

/* ---- guessed tokens ---- */

/*
 * A TP is shared by all users of two hosts, so Jettys that guess are refused one by one, and the TP
 * goes on. If a peer has at most HCA_TP_SUSPECTS Jettys, each has a bit of its own.
 */
static uint64_t
suspect_bit(const struct tat_request *q, uint64_t **word)
{
	uint32_t at = hca_ub_btah_rc_id(q->tah) & (HCA_TP_SUSPECTS - 1);

	*word = &q->tp->suspects[at / 64];
	return UINT64_C(1) << (at % 64);
}

static void
end_flood(struct hca_tp *tp)
{
	memset(tp->suspects, 0, HCA_TP_SUSPECTS / 8);
	tp->tat.flood = 0;
	tp->tat.flooded = false;
}

void
tat_mismatch(struct tat_request *q)
{
	struct hca_tp_tat *tat = &q->tp->tat;
	uint64_t *word, bit;

	__atomic_store_n(&tat->mismatches, tat->mismatches + 1, __ATOMIC_RELAXED);
	if (!tat_is_reliable(q))
		return;
	if (q->now - tat->flood_from >= TAT_FLOOD_NS) {
		end_flood(q->tp);
		tat->flood_from = q->now;
	}
	bit = suspect_bit(q, &word);
	*word |= bit;
	if (++tat->flood == TAT_FLOOD + 1) {
		tat->flooded = true;
		HCA_COUNT(q->h, TAT, ub_token_floods);
	}
}

/* During a flood: whether the request is of a Jetty that takes part in it. */
static bool
is_suspect(const struct tat_request *q)
{
	uint64_t *word, bit;

	if (q->now - q->tp->tat.flood_from >= TAT_FLOOD_NS) {
		end_flood(q->tp);
		return false;
	}
	bit = suspect_bit(q, &word);
	return (*word & bit) != 0;
}

/* ---- executing ---- */

static bool
fits_mtu(const struct tat_request *q)
{
	uint32_t mtu = 1u << q->tp->cfg.mtu_log;

	return q->last ? q->len <= mtu : q->len == mtu;
}

static void
tat_execute(struct tat_request *q)
{
	switch (q->v.op->kind) {
	case HCA_UB_KIND_SEND:
		tat_send(q);
		return;
	case HCA_UB_KIND_WRITE:
		tat_write(q);
		return;
	case HCA_UB_KIND_WRITE_BE:
		tat_write_enabled(q);
		return;
	case HCA_UB_KIND_READ:
		tat_read(q);
		return;
	default:
		tat_atomic(q);
		return;
	}
}

/* True: the edge of a domain lets the packet through, S11.4.2, or there is no edge. */
static bool
passes_edge(const struct tat_request *q)
{
	if (likely(!(q->h->cfg.ub_choices & HCA_UB_SWITCH_EDGE)))
		return true;
	return !hca_ub_btah_e_bit(q->tah) && hca_ub_btah_tv_en(q->tah);
}

/* Errors that do not depend on the opcode; rc: the codec's judgement of the headers. */
static void
tat_judge(struct tat_request *q, int rc)
{
	if (unlikely(rc != 0))
		tat_refuse(q, why_codec(rc));
	else if (unlikely(hca_ub_btah_poison(q->tah)))
		tat_refuse(q, TAT_POISON);
	else if (unlikely(!passes_edge(q)))
		tat_refuse(q, TAT_EDGE);
	else if (unlikely(hca_ub_btah_rc_type(q->tah) == HCA_UB_RC_SEQUENCE))
		tat_refuse(q, TAT_SEQUENCE);
	else if (unlikely(!fits_mtu(q)))
		tat_refuse(q, TAT_SUM);
	else if (unlikely(q->tp->tat.flooded) && is_suspect(q))
		tat_refuse(q, TAT_SUSPECT);
}

/* All packets have come: the effects that wait for that, the answer, the receive. */
static void
tat_finish(struct tat_request *q)
{
	struct tat_open *o = q->o;

	if (likely(o->answer == 0) && o->kind == HCA_UB_KIND_WRITE)
		tat_write_done(q);
	else if (o->answer == 0 && o->kind == HCA_UB_KIND_SEND)
		tat_send_done(q);
	if (q->msg != NULL && q->msg->held)
		tat_recv_fail(q->h, q->ctx, q->msg, q->msg->status);
	if (unlikely(o->answer == TAT_SILENT))
		HCA_COUNT(q->h, TAT, ub_requests_unanswered);
	else
		tat_owe(q);
}

static void
tat_count(struct tat_request *q, bool refused_before)
{
	if (unlikely(q->why != TAT_FINE))
		HCA_COUNT_AT(q->h, HCA_STAGE_TAT, reasons[q->why].counter);
	else if (unlikely(refused_before))
		HCA_COUNT(q->h, TAT, ub_ta_after_refusal);
	else
		HCA_COUNT(q->h, TAT, ub_ta_used);
}

static void
tat_request(struct tat_request *q, int rc)
{
	struct tat_open fresh;
	bool refused;

	if (!tat_open_find(q, &fresh))
		return;
	refused = q->o->answer != 0;
	if (unlikely(!tat_open_add(q))) {
		if (q->o == &fresh)
			HCA_COUNT(q->h, TAT, ub_requests_abandoned);
		return;
	}
	tat_judge(q, rc);
	if (likely(q->o->answer == 0))
		tat_execute(q);
	if (likely(tat_open_is_complete(q))) {
		tat_finish(q);
		tat_open_end(q, &fresh);
	} else {
		tat_open_keep(q, &fresh);
	}
	tat_count(q, refused);
}

/* Without TP: one packet, no answer. */
static void
tat_take_datagram(struct tat_request *q, int rc)
{
	if (unlikely(rc != 0))
		tat_refuse(q, why_codec(rc));
	else if (unlikely(hca_ub_btah_poison(q->tah)))
		tat_refuse(q, TAT_POISON);
	else if (unlikely(!passes_edge(q)))
		tat_refuse(q, TAT_EDGE);
	else
		tat_datagram(q);
	if (q->msg != NULL) {
		tat_recv_fail(q->h, q->ctx, q->msg, q->msg->status);
		tat_message_return(q->ctx, (uint32_t)(q->msg - q->ctx->message));
	}
	tat_count(q, false);
}

/* ---- packets ---- */

/* 0, or the codec's reason for a refusal. */
static int
tat_parse(struct tat_request *q)
{
	uint8_t *tph = (uint8_t *)(uintptr_t)q->tah - q->rxd->ta;
	uint8_t form = q->tp->cfg.flags & (HCA_TP_FLAG_TAID | HCA_TP_FLAG_OFST);
	struct hca_ub_tp_view tp;
	int rc;

	hca_ub_rxd_view(q->rxd, &tp);
	q->last = tp.last;
	rc = hca_ub_parse_ta(tph, &tp, form, &q->v);
	if (unlikely(q->v.op->is & HCA_UB_OP_RESPONSE))
		return -HCA_UB_DROP_TA_OPCODE;
	q->rc = hca_ub_btah_rc_id(q->tah);
	if (rc == 0) {
		q->payload = q->tah + q->v.payload;
		q->len = q->v.payload_len;
	}
	return rc;
}

static bool
tat_is_stale(const struct tat_request *q)
{
	return tat_is_reliable(q) && (q->rxd->generation != q->tp->cfg.generation ||
				      !hca_tp_receives(hca_tp_state(q->tp)));
}

static void
tat_packet(struct hca_pipe *h, struct tat_ctx *ctx, struct rte_mbuf *m, uint64_t now)
{
	const struct hca_ub_rxd *rxd = hca_ub_rxd(m);
	struct tat_request q = {
		.h = h,
		.ctx = ctx,
		.tp = &h->ub->tp[rxd->tp],
		.now = now,
		.rxd = rxd,
		.tah = (uint8_t *)(uintptr_t)hca_ub_rxd_tph(m) + rxd->ta,
		.op = TAT_NONE,
	};
	int rc;

	if (unlikely(tat_is_stale(&q))) {
		HCA_COUNT(h, TAT, ub_ta_stale);
		return;
	}
	rc = tat_parse(&q);
	if (unlikely(!tat_is_reliable(&q)))
		tat_take_datagram(&q, rc);
	else if (unlikely(rc != 0 && (hca_ub_refusal_answer(rc) == 0 ||
				      q.v.op->is & (HCA_UB_OP_RESPONSE | HCA_UB_OP_UNANSWERED))))
		HCA_COUNT_AT(h, HCA_STAGE_TAT, reasons[why_codec(rc)].counter);
	else
		tat_request(&q, rc);
}

void
hca_tat_process(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now)
{
	struct rte_mbuf *const *m = (struct rte_mbuf *const *)objs;
	struct tat_ctx *ctx = tat_ctx(h);
	unsigned int alone = 0;

	for (unsigned int i = 0, run; i < n; i += run) {
		run = tat_write_fast(h, m + i, n - i);
		alone += run;
		if (unlikely(run == 0)) {
			tat_packet(h, ctx, m[i], now);
			run = 1;
		}
	}
	HCA_COUNT_N(h, TAT, ub_requests, alone);
	HCA_COUNT_N(h, TAT, ub_ta_used, alone);
	HCA_COUNT_N(h, TAT, ub_requests_done, alone);
	hca_mbuf_free_burst(m, n);
}

unsigned int
hca_tat_room(struct hca_pipe *h)
{
	return HCA_DIRECT_ROOM;
}

/* ---- messages ---- */

static void
tat_on_qp(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	if (flags & HCA_MSG_PURGE) {
		tat_recv_forget(h, qpi);
		hca_purge_ack(h, HCA_STAGE_TAT);
	} else if (flags & (HCA_MSG_STATE | HCA_MSG_KICK)) {
		tat_recv_state(h, qpi);
	}
}

/* Whatever else the message says: operations may have come back, and the TP be dead. */
static void
tat_on_tp(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi, uint8_t flags, uint64_t now)
{
	if (flags & HCA_MSG_PURGE) {
		forget_tp(h, tp, true);
		hca_purge_ack(h, HCA_STAGE_TAT);
		return;
	}
	if (hca_tp_state(tp) == HCA_TPS_ERROR)
		forget_tp(h, tp, false);
	tat_answer_room(h, tp);
}

/* TPR has filled holes. Packets that it passed on before this message may still be in the ring. */
static void
tat_on_given(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi, uint8_t flags, uint64_t now)
{
	uint32_t given = __atomic_load_n(&tp->rx.given, __ATOMIC_ACQUIRE);
	struct hca_edge *e = &h->edge[HCA_EDGE_TPR_TAT];
	uint64_t mark = __atomic_load_n(&e->enq, __ATOMIC_ACQUIRE);

	if (tp->tat.ordered == 0 || hca_tp_state(tp) == HCA_TPS_RESET)
		return;
	while (e->ring != NULL && (int64_t)(mark - e->deq) > 0)
		(void)hca_edge_drain(h, e, HCA_BURST, now);
	tat_order_reach(h, tp, given);
}

static unsigned int
tat_messages(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	unsigned int n;

	if (!hca_msg_due(h, HCA_STAGE_TAT))
		return 0;
	n = hca_tp_msg_drain(h, HCA_STAGE_TPS, HCA_STAGE_TAT, tat_on_tp, now, budget);
	n += hca_tp_msg_drain(h, HCA_STAGE_TPR, HCA_STAGE_TAT, tat_on_given, now, budget);
	n += hca_msg_drain(h, HCA_STAGE_DOORBELL, HCA_STAGE_TAT, tat_on_qp, now, budget);
	n += hca_msg_drain(h, HCA_STAGE_PARSER, HCA_STAGE_TAT, tat_on_qp, now, budget);
	n += hca_msg_drain(h, HCA_STAGE_TAI, HCA_STAGE_TAT, tat_on_qp, now, budget);
	n += hca_ub_msg_drain(h, HCA_STAGE_CEU, HCA_STAGE_TAT, tat_on_qp, tat_on_tp, now, budget);
	return n;
}

/* ---- the stage ---- */

static struct tat_ctx *
tat_create(struct hca_pipe *h, uint32_t messages_n)
{
	struct tat_ctx *ctx =
		rte_zmalloc_socket("tat", sizeof(*ctx), RTE_CACHE_LINE_SIZE, h->cfg.socket_id);

	if (ctx == NULL)
		return NULL;
	ctx->message = rte_malloc_socket("tat_message", messages_n * sizeof(*ctx->message),
					 RTE_CACHE_LINE_SIZE, h->cfg.socket_id);
	ctx->free =
		rte_malloc_socket("tat_free", messages_n * sizeof(*ctx->free), 0, h->cfg.socket_id);
	ctx->flushing =
		rte_zmalloc_socket("tat_flushing", (h->qp_mask + 64) / 64 * 8, 0, h->cfg.socket_id);
	return ctx;
}

int
hca_tat_init(struct hca_pipe *h)
{
	struct tat_ctx *ctx;
	uint32_t n;

	if (h->ub == NULL)
		return 0;
	n = RTE_MIN(h->ub->pool[HCA_TP_RESPONSES].count, MESSAGES_MAX);
	ctx = tat_create(h, n);
	h->stage_ctx[HCA_STAGE_TAT] = ctx;
	if (ctx == NULL || ctx->message == NULL || ctx->free == NULL || ctx->flushing == NULL) {
		hca_tat_fini(h);
		return -ENOMEM;
	}
	ctx->first = ctx->head = TAT_NONE;
	while (n-- != 0)
		ctx->free[ctx->free_n++] = (uint16_t)n;
	return 0;
}

void
hca_tat_fini(struct hca_pipe *h)
{
	struct tat_ctx *ctx = tat_ctx(h);

	if (ctx == NULL)
		return;
	rte_free(ctx->flushing);
	rte_free(ctx->free);
	rte_free(ctx->message);
	rte_free(ctx);
	h->stage_ctx[HCA_STAGE_TAT] = NULL;
}

unsigned int
hca_tat_poll(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	struct tat_ctx *ctx = tat_ctx(h);
	unsigned int work;

	if (ctx == NULL)
		return 0;
	work = tat_messages(h, now, budget);
	work += hca_edge_drain(h, &h->edge[HCA_EDGE_TPR_TAT], budget, now);
	work += tat_recv_flush(h, budget);
	work += tat_answer(h, budget);
	if (ctx->batch.n != 0)
		hca_cq_batch_end(&h->core, &ctx->batch, HCA_STAGE_TAT);
	return work;
}

/* TPs that wait for room in their lane are told; those on the list wait for operations. */
uint64_t
hca_tat_deadline(const struct hca_pipe *h, uint64_t now)
{
	const struct tat_ctx *ctx = tat_ctx(h);

	if (ctx == NULL || (ctx->flushing_n == 0 && ctx->listed == 0))
		return UINT64_MAX;
	return ctx->flushing_n != 0 ? now : HCA_DEADLINE_ROOM;
}
