/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Receives that complete in the order of sending, ODR[2]. A TP sends the requests of a queue in
 * their order, so one whose sender asks for that completes when no packet before its first one is
 * missing on its TP. Until then its message waits in the TP's list, in the order of PSNs. TPR, the
 * TP receiver, marks the packets that it passes on in front of a hole, and reports when a hole is
 * filled. The answer does not wait.
 *
 * Other TPs of a group are not looked at: no header says which requests they carry.
 */

#include "ub/target/ta_target.h"
#include "ub/ub_cqe.h"

/* Numbers of messages in lists: their index + 1; 0: none. */
static struct tat_message *
order_at(struct tat_ctx *ctx, uint32_t number)
{
	return &ctx->message[number - 1];
}

static uint32_t
order_number(const struct tat_ctx *ctx, const struct tat_message *m)
{
	return (uint32_t)(m - ctx->message) + 1;
}

/* All packets before PSN `first` have come to TAT, as far as the one that it executes tells. */
static bool
order_is_reached(const struct hca_ub_rxd *r, uint32_t first)
{
	return !(r->flags & HCA_UB_RXD_AHEAD) || hca_psn_diff(*hca_ub_rxd_expected(r), first) >= 0;
}

static void
order_write(struct hca_pipe *h, struct tat_ctx *ctx, const struct tat_message *m)
{
	HCA_COUNT(h, TAT, resp_completions);
	hca_ub_cqe_write(&h->core, m->cqn, &ctx->batch, HCA_STAGE_TAT, &m->ready);
}

/* The oldest one of the list completes, unless its queue is gone. */
static void
order_end_first(struct hca_pipe *h, struct tat_ctx *ctx, struct hca_tp *tp)
{
	struct tat_message *m = order_at(ctx, tp->tat.ordered);

	tp->tat.ordered = m->after;
	tp->tat.ordered_n--;
	m->waits = false;
	if (m->killed == TAT_FINE && (tat_recv_is_alive(h, m) || m->killed == TAT_TC_ERROR))
		order_write(h, ctx, m);
	tat_message_return(ctx, order_number(ctx, m) - 1);
}

void
tat_order_reach(struct hca_pipe *h, struct hca_tp *tp, uint32_t psn)
{
	struct tat_ctx *ctx = tat_ctx(h);

	while (tp->tat.ordered != 0 &&
	       hca_psn_diff(psn, order_at(ctx, tp->tat.ordered)->first) >= 0)
		order_end_first(h, ctx, tp);
}

void
tat_order_drop(struct hca_pipe *h, struct hca_tp *tp)
{
	while (tp->tat.ordered != 0)
		order_end_first(h, tat_ctx(h), tp);
}

static void
order_insert(struct tat_request *q, struct tat_message *m)
{
	uint32_t *link = &q->tp->tat.ordered;

	while (*link != 0 && hca_psn_diff(order_at(q->ctx, *link)->first, m->first) < 0)
		link = &order_at(q->ctx, *link)->after;
	m->after = *link;
	*link = order_number(q->ctx, m);
	q->tp->tat.ordered_n++;
	m->waits = true;
	HCA_COUNT(q->h, TAT, ub_ordered_held);
}

void
tat_order_complete(struct tat_request *q, const struct hca_ub_cqe *cqe)
{
	struct tat_message *m = q->msg;

	m->first = q->o->first;
	m->ready = *cqe;
	if (order_is_reached(q->rxd, m->first)) {
		tat_order_reach(q->h, q->tp, m->first);
		order_write(q->h, q->ctx, m);
	} else {
		order_insert(q, m);
	}
}

void
tat_order_kill(struct hca_pipe *h, struct tat_ctx *ctx, struct tat_message *m, uint8_t why)
{
	/* it was executed and answered: in ERROR it completes before the rest is flushed */
	if (why == TAT_TC_ERROR && m->killed == TAT_FINE)
		order_write(h, ctx, m);
	m->killed = why;
}
