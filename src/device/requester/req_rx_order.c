/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Finds gaps, late packets and duplicates among READ responses and acknowledgements. Only counters
 * depend on it.
 */

#include <errno.h>

#include <rte_malloc.h>

#include "engine/order.h"
#include "requester/req_rx.h"

int
hca_req_rx_order_init(struct hca_pipe *h)
{
	h->stage_ctx[HCA_STAGE_REQ_RX] =
		rte_zmalloc_socket("req_rx", HCA_ORDER_PLACES * sizeof(struct hca_order),
				   RTE_CACHE_LINE_SIZE, h->cfg.socket_id);
	return h->stage_ctx[HCA_STAGE_REQ_RX] != NULL ? 0 : -ENOMEM;
}

static struct hca_order *
order_of(const struct hca_req_rx_run *run)
{
	return hca_order_of(run->h->stage_ctx[HCA_STAGE_REQ_RX], run->qp, run->qpi);
}

static uint32_t
count_of(const struct hca_req_rx_run *run)
{
	return (uint32_t)run->qp->req_rx.rx_packets + run->packets;
}

static void
count_late(struct hca_req_rx_run *run, const struct hca_order *o)
{
	HCA_COUNT(run->h, REQ_RX, rx_late);
	HCA_COUNT_N(run->h, REQ_RX, rx_late_depth, o->depth);
	hca_qp_stat_add32(&run->qp->stats.rx_late, 1);
}

/* During a wait req_tx goes back in any case, and this side may be why a packet is missing. */
void
hca_req_rx_order_early(struct hca_req_rx_run *run, uint32_t psn)
{
	struct hca_qp_req_rx *q = &run->qp->req_rx;
	struct hca_order *o;

	if (q->flags & HCA_REQ_RX_HOLD)
		return;
	o = order_of(run);
	if (hca_order_ahead(o, run->upsn, psn, !(q->flags & HCA_REQ_RX_GAP), count_of(run))) {
		HCA_COUNT(run->h, REQ_RX, rx_missing);
		hca_qp_stat_add32(&run->qp->stats.rx_missing, 1);
	}
	o->filled = false;
	hca_req_rx_set_flags(q, HCA_REQ_RX_GAP);
}

/* Nothing was asked of the peer yet if the message to req_tx is still unsent. */
static bool
order_fill(struct hca_req_rx_run *run, struct hca_order *o)
{
	bool asked = !(run->msg & HCA_MSG_REWIND);

	if (hca_order_filled(o, asked, count_of(run), &o->filled))
		count_late(run, o);
	return !o->filled;
}

void
hca_req_rx_order_seen(struct hca_req_rx_run *run, uint32_t psn)
{
	struct hca_order *o = order_of(run);
	bool done = true;

	if (o->filled) {
		if (hca_order_next(o, psn))
			count_late(run, o);
		o->filled = false;
	} else if (psn == run->upsn && psn == o->gap.psn) {
		done = order_fill(run, o);
	} else {
		done = !o->known || hca_psn_diff(run->upsn, o->gap.psn) > 0;
	}
	if (done)
		hca_req_rx_clear_flags(&run->qp->req_rx, HCA_REQ_RX_GAP);
}

/* An answer for the second time; where nothing was sent twice, the network has doubled it. */
void
hca_req_rx_order_again(struct hca_req_rx_run *run, uint32_t psn)
{
	struct hca_qp_stats *s = &run->qp->stats;

	if (hca_psn_diff(psn, run->upsn) >= 0)
		return;
	if (__atomic_load_n(&s->retransmissions, __ATOMIC_RELAXED) == 0) {
		HCA_COUNT(run->h, REQ_RX, answers_doubled);
		hca_qp_stat_add32(&s->rx_doubled, 1);
	} else if (hca_order_was_missing(order_of(run), psn, count_of(run))) {
		count_late(run, order_of(run));
	}
}
