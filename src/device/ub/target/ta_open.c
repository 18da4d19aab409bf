/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Open requests: which packets of a request have come. The transport delivers each packet once but
 * in any order, so a request is complete when as many have come as there are PSNs from its first to
 * its last. A send tells where it begins with every packet, by its offset; a write with its last
 * one, by its length.
 *
 * Incomplete requests of an honest peer lie within its window, so two of them never have the same
 * place in a ring of twice the window.
 */

#include "ub/target/ta_target.h"

static struct tat_open *
slot_of(const struct tat_request *q)
{
	struct tat_open *ring = q->tp->open;

	return &ring[q->rxd->tpmsn & (2u * q->tp->cfg.window - 1)];
}

static uint32_t
rc_of(const uint8_t *btah)
{
	return HCA_BITS(hca_get_be32(btah + 4), 21, 0);
}

static void
tat_publish_first(struct hca_tp *tp)
{
	__atomic_store_n(&tp->tat.open_in, (uint32_t)tp->tat.open + tp->tat.owed, __ATOMIC_RELAXED);
}

/* ---- messages ---- */

bool
tat_message_take(struct tat_request *q)
{
	struct tat_ctx *ctx = q->ctx;
	struct tat_message *m;
	uint16_t index;

	/* one TP gets no more of them than the others leave */
	if (unlikely(ctx->free_n == 0 ||
		     (uint32_t)q->tp->tat.open + q->tp->tat.ordered_n > ctx->free_n)) {
		tat_refuse_for(q, TAT_NO_MEMORY, TAT_TIMER_DEVICE);
		return false;
	}
	index = ctx->free[--ctx->free_n];
	m = &ctx->message[index];
	m->held = m->waits = false;
	m->killed = 0;
	m->status = HCA_UB_STATUS_OK;
	m->prev = TAT_NONE;
	m->next = ctx->first;
	if (ctx->first != TAT_NONE)
		ctx->message[ctx->first].prev = index;
	ctx->first = index;
	q->msg = m;
	if (q->o != NULL)
		q->o->message = index;
	return true;
}

void
tat_message_return(struct tat_ctx *ctx, uint32_t index)
{
	struct tat_message *m = &ctx->message[index];

	if (m->prev != TAT_NONE)
		ctx->message[m->prev].next = m->next;
	else
		ctx->first = m->next;
	if (m->next != TAT_NONE)
		ctx->message[m->next].prev = m->prev;
	ctx->free[ctx->free_n++] = (uint16_t)index;
}

/* ---- finding ---- */

static bool
tat_open_agrees(const struct tat_request *q, const struct tat_open *o)
{
	return o->tpmsn == q->rxd->tpmsn && o->kind == q->v.op->kind && o->rc == rc_of(q->tah) &&
	       o->tassn == hca_ub_btah_tassn(q->tah);
}

static bool
tat_open_begin(struct tat_request *q, struct tat_open *fresh)
{
	struct hca_tp_tat *tat = &q->tp->tat;

	if (unlikely((uint32_t)tat->open + tat->owed >= q->tp->cfg.requests)) {
		tat_fail(q->h, q->tp, HCA_CTR_ub_ta_too_many);
		return false;
	}
	*fresh = (struct tat_open){
		.tpmsn = q->rxd->tpmsn,
		.rc = rc_of(q->tah),
		.kind = q->v.op->kind,
		.tassn = hca_ub_btah_tassn(q->tah),
		.message = TAT_NO_MESSAGE,
	};
	q->o = fresh;
	q->msg = NULL;
	__atomic_store_n(&tat->requests, tat->requests + 1, __ATOMIC_RELAXED);
	HCA_COUNT(q->h, TAT, ub_requests);
	return true;
}

bool
tat_open_find(struct tat_request *q, struct tat_open *fresh)
{
	struct tat_open *slot = slot_of(q);

	if (!(slot->flags & TAT_OPEN)) {
		if (likely(!(slot->flags & TAT_CUT) || slot->tpmsn != q->rxd->tpmsn))
			return tat_open_begin(q, fresh);
		HCA_COUNT(q->h, TAT, ub_ta_after_refusal);
		return false;
	}
	if (unlikely(!tat_open_agrees(q, slot))) {
		tat_fail(q->h, q->tp, HCA_CTR_ub_ta_disagree);
		return false;
	}
	q->o = slot;
	q->msg = slot->message != TAT_NO_MESSAGE ? &q->ctx->message[slot->message] : NULL;
	return true;
}

/* ---- counting packets ---- */

static bool
has_headers(const struct tat_request *q)
{
	return q->v.at != NULL && q->rxd->end - q->rxd->ta >= q->v.at->beetah;
}

/* PSN of the first packet, as far as this one tells: true. */
static bool
tells_first(struct tat_request *q, uint32_t *first)
{
	uint32_t mtu_log = q->tp->cfg.mtu_log, before = 0;

	if (unlikely(!has_headers(q)))
		return false;
	switch (q->v.op->kind) {
	case HCA_UB_KIND_SEND:
		before = hca_ub_ofstetah_offset(q->tah + q->v.at->ofstetah);
		if (unlikely((before & ((1u << (mtu_log - 10)) - 1)) != 0)) {
			tat_refuse(q, TAT_SUM);
			return false;
		}
		before >>= mtu_log - 10;
		break;
	case HCA_UB_KIND_WRITE:
		before = hca_ub_maetah_length(q->tah + q->v.at->maetah);
		before = before != 0 ? (before - 1) >> mtu_log : 0;
		if (!q->last)
			return false;
		break;
	default:
		if (!q->last || !(q->v.op->is & HCA_UB_OP_LAST))
			return false;
	}
	*first = hca_tp_past(q->rxd->psn, before);
	return true;
}

static bool
is_between(const struct tat_open *o, uint32_t psn)
{
	if ((o->flags & (TAT_FIRST | TAT_END)) != (TAT_FIRST | TAT_END))
		return true;
	return hca_tp_past(psn, o->first) <= hca_tp_past(o->end, o->first);
}

static bool
tat_open_fits(struct tat_request *q)
{
	struct tat_open *o = q->o;
	uint32_t first;

	if (q->last && (o->flags & TAT_END))
		return false;
	if (tells_first(q, &first)) {
		if ((o->flags & TAT_FIRST) && o->first != first)
			return false;
		o->first = first;
		o->flags |= TAT_FIRST;
	}
	if (q->last) {
		o->end = q->rxd->psn;
		o->flags |= TAT_END;
	}
	o->packets++;
	return is_between(o, q->rxd->psn);
}

bool
tat_open_add(struct tat_request *q)
{
	if (likely(tat_open_fits(q)))
		return true;
	tat_fail(q->h, q->tp, HCA_CTR_ub_ta_disagree);
	return false;
}

/* The beginning of a refused request may be unreadable: then it ends with its last packet. */
static bool
is_cut(const struct tat_open *o)
{
	return (o->flags & (TAT_FIRST | TAT_END)) == TAT_END && o->answer != 0;
}

bool
tat_open_is_complete(const struct tat_request *q)
{
	const struct tat_open *o = q->o;

	if (!(o->flags & TAT_END))
		return false;
	if (unlikely(!(o->flags & TAT_FIRST)))
		return is_cut(o);
	return o->packets > hca_tp_past(o->end, o->first);
}

void
tat_open_keep(struct tat_request *q, const struct tat_open *fresh)
{
	struct tat_open *slot;

	if (q->o != fresh)
		return;
	slot = slot_of(q);
	*slot = *fresh;
	slot->flags |= TAT_OPEN;
	q->tp->tat.open++;
	tat_publish_first(q->tp);
}

void
tat_open_end(struct tat_request *q, const struct tat_open *fresh)
{
	struct tat_open *slot = slot_of(q);
	bool cut = is_cut(q->o);

	if (q->o->message != TAT_NO_MESSAGE && !q->ctx->message[q->o->message].waits)
		tat_message_return(q->ctx, q->o->message);
	if (q->o != fresh)
		q->tp->tat.open--;
	slot->flags = 0;
	if (unlikely(cut)) {
		slot->tpmsn = q->rxd->tpmsn;
		slot->flags = TAT_CUT;
		q->tp->tat.cut = true;
	}
	tat_publish_first(q->tp);
}

void
tat_open_drop(struct hca_pipe *h, struct hca_tp *tp)
{
	struct tat_ctx *ctx = tat_ctx(h);
	struct tat_open *ring = tp->open;

	tat_order_drop(h, tp);
	for (uint32_t i = 0; i < 2u * tp->cfg.window && tp->tat.open != 0; i++) {
		struct tat_open *o = &ring[i];

		if (!(o->flags & TAT_OPEN))
			continue;
		if (o->message != TAT_NO_MESSAGE) {
			tat_recv_fail(h, ctx, &ctx->message[o->message], HCA_UB_STATUS_ACK_TIMEOUT);
			tat_message_return(ctx, o->message);
		}
		o->flags = 0;
		tp->tat.open--;
		HCA_COUNT(h, TAT, ub_requests_abandoned);
	}
	tat_publish_first(tp);
}
