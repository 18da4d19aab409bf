/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Effects of the network on the requests of RC and XRC: gaps, late packets, duplicates. Only
 * counters depend on it. All of it runs only for packets that are not the expected one, and for the
 * next packet after one of those (EE_FILLED, EE_TWICE).
 */

#include "responder/ee.h"

static struct hca_order *
order_of(const struct ee_request *q)
{
	return hca_order_of(q->ctx->order, q->qp, q->qpi);
}

static uint32_t
count_of(const struct ee_request *q)
{
	return (uint32_t)q->qp->ee.rx_packets;
}

static void
count_late(struct ee_request *q, const struct hca_order *o)
{
	HCA_COUNT(q->h, EE, rx_late);
	HCA_COUNT_N(q->h, EE, rx_late_depth, o->depth);
	hca_qp_stat_add32(&q->qp->ee.rx_late, 1);
}

static void
count_doubled(struct ee_request *q)
{
	HCA_COUNT(q->h, EE, rx_doubled);
	hca_qp_stat_add32(&q->qp->ee.rx_doubled, 1);
}

void
ee_order_early(struct ee_request *q, bool begins)
{
	struct hca_qp_ee *ee = &q->qp->ee;

	if (!hca_order_ahead(order_of(q), ee->epsn, q->rxd->psn, begins, count_of(q)))
		return;
	HCA_COUNT(q->h, EE, rx_missing);
	hca_qp_stat_add32(&ee->rx_missing, 1);
}

void
ee_order_filled(struct ee_request *q)
{
	struct hca_order *o = order_of(q);
	struct hca_qp_ee *ee = &q->qp->ee;
	bool open;

	if (hca_order_filled(o, !(ee->flags & EE_NAK_OWED), count_of(q), &open))
		count_late(q, o);
	if (open)
		ee->flags |= EE_FILLED;
}

/*
 * Half the time after which the peer repeats unacknowledged requests, by this side's timeout: both
 * ends of a connection have the same timeout as a rule.
 */
static uint64_t
half_timeout(const struct ee_request *q)
{
	uint32_t code = hca_qp_ack_timeout(q->qp) & 31;

	return code != 0 ? HCA_ACK_TIMEOUT_NS(code) / 2 : UINT64_MAX;
}

/* The peer had no time to repeat the packet accepted last: its copy comes from the network. */
static bool
too_soon(const struct ee_request *q)
{
	uint16_t units = q->ctx->stamp - q->qp->ee.accepted_at;
	uint64_t since = (uint64_t)units * EE_STAMP_NS;

	return since < RTE_MIN(half_timeout(q), EE_RECENT_NS);
}

void
ee_order_pause(struct ee_ctx *ctx, uint64_t now)
{
	ctx->pause = now - ctx->burst_at;
	ctx->pause_end = ctx->arrived + EE_WAITED;
}

/*
 * This worker may not have run for so long that packets and their repetitions wait side by side. If
 * it did run, and nothing came, some duplicates are not counted.
 */
static bool
may_have_waited(const struct ee_request *q)
{
	return q->ctx->arrived < q->ctx->pause_end && q->ctx->pause >= half_timeout(q);
}

static bool
is_doubled(const struct ee_request *q, const struct hca_order *o, bool *sure)
{
	uint32_t psn = q->rxd->psn;

	*sure = true;
	if (o->run || may_have_waited(q))
		return false;
	if (q->op->kind != HCA_PKT_SEND && q->op->kind != HCA_PKT_WRITE)
		return ee_unanswered(&q->qp->ee, psn);
	if (((psn + 1) & HCA_PSN_MASK) == q->qp->ee.epsn)
		return too_soon(q);
	*sure = false;
	return false;
}

void
ee_order_duplicate(struct ee_request *q)
{
	struct hca_order *o = order_of(q);
	bool sure = false;

	o->overdue = hca_order_was_missing(o, q->rxd->psn, count_of(q));
	if (!o->overdue && hca_order_repeats(o, q->rxd->psn))
		return;
	if (!o->overdue && is_doubled(q, o, &sure))
		count_doubled(q);
	hca_order_duplicate(o, q->rxd->psn, sure);
	q->qp->ee.flags |= EE_TWICE;
}

static void
after_duplicate(struct ee_request *q, struct hca_order *o)
{
	bool again = hca_psn_diff(q->rxd->psn, q->qp->ee.epsn) < 0;

	if (!hca_order_after_duplicate(o, q->rxd->psn, again))
		return;
	if (o->overdue)
		count_late(q, o);
	else
		count_doubled(q);
}

void
ee_order_next(struct ee_request *q)
{
	struct hca_order *o = order_of(q);
	struct hca_qp_ee *ee = &q->qp->ee;

	if (ee->flags & EE_FILLED && hca_order_next(o, q->rxd->psn))
		count_late(q, o);
	if (ee->flags & EE_TWICE)
		after_duplicate(q, o);
	ee->flags &= ~(EE_FILLED | EE_TWICE);
}
