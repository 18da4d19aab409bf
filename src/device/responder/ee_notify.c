/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The notification point of RoCE's congestion control: data that came with a congestion mark is
 * answered with a CNP to its source, at most one for each QP and interval. This is so whatever
 * algorithm this device has for its own packets, because the peer may be hardware.
 */

#include <errno.h>

#include "core/table.h"
#include "responder/ee.h"

int
ee_notify_init(struct hca_pipe *h, struct ee_ctx *ctx)
{
	ctx->notice_head = ctx->notice_tail = HCA_QP_NONE;
	ctx->notice = hca_table_alloc(h->qp_mask + 1, sizeof(*ctx->notice), h->cfg.socket_id);
	return ctx->notice != NULL ? 0 : -ENOMEM;
}

void
ee_notify_fini(struct ee_ctx *ctx)
{
	hca_table_free(ctx->notice);
	ctx->notice = NULL;
}

/* A message of decap may be older than the end of the QP, which has no peer then. */
void
ee_notify_marked(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint64_t now)
{
	struct ee_ctx *ctx = ee_ctx(h);
	struct ee_notice *n = &ctx->notice[qpi];

	if (n->due || now < n->next_at || !ee_state_receives(hca_qp_state(qp))) {
		HCA_COUNT(h, EE, np_cnp_suppressed);
		return;
	}
	n->due = true;
	n->next = HCA_QP_NONE;
	n->next_at = now + HCA_PARAMETER(h, cnp_interval_us) * UINT64_C(1000);
	if (ctx->notice_head == HCA_QP_NONE)
		ctx->notice_head = qpi;
	else
		ctx->notice[ctx->notice_tail].next = qpi;
	ctx->notice_tail = qpi;
	ee_note_waits(h, ctx);
}

static uint32_t
pop_notice(struct ee_ctx *ctx)
{
	uint32_t qpi = ctx->notice_head;

	ctx->notice_head = ctx->notice[qpi].next;
	ctx->notice[qpi].due = false;
	return qpi;
}

void
ee_notify_forget(struct hca_pipe *h, uint32_t qpi)
{
	struct ee_ctx *ctx = ee_ctx(h);
	uint32_t last = ctx->notice_tail, at;

	ctx->notice[qpi].next_at = 0;
	if (!ctx->notice[qpi].due)
		return;
	/* a round through the list, which keeps the order of the others */
	do {
		at = pop_notice(ctx);
		if (at == qpi) {
			HCA_COUNT(h, EE, np_cnp_suppressed);
			continue;
		}
		ctx->notice[at].due = true;
		ctx->notice[at].next = HCA_QP_NONE;
		if (ctx->notice_head == HCA_QP_NONE)
			ctx->notice_head = at;
		else
			ctx->notice[ctx->notice_tail].next = at;
		ctx->notice_tail = at;
	} while (at != last);
	ee_note_waits(h, ctx);
}

/* False: the QP does not receive any more. */
static bool
notify(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi, struct rte_mbuf *m)
{
	const struct hca_qp *qp = &h->qp[qpi];

	if (!ee_state_receives(hca_qp_state(qp))) {
		HCA_COUNT(h, EE, np_cnp_suppressed);
		return false;
	}
	rte_pktmbuf_reset(m);
	*hca_txd(m) = (struct hca_txd){
		.qpi = qpi,
		.opcode = HCA_BTH_CNP,
		.len = HCA_CNP_PAYLOAD_LEN,
		.generation = qp->cfg.generation,
	};
	ctx->out[ctx->nout++] = m;
	HCA_COUNT(h, EE, np_cnp_sent);
	return true;
}

unsigned int
ee_notify_emit(struct hca_pipe *h, struct ee_ctx *ctx, uint64_t now, unsigned int budget)
{
	unsigned int room = RTE_MIN(hca_edge_room(h, &h->edge[HCA_EDGE_EE_ENCAP]), budget), n = 0;

	while (ctx->notice_head != HCA_QP_NONE && n < room) {
		void *m;

		if (ctx->nout == RTE_DIM(ctx->out))
			ee_push(h, ctx, now);
		if (rte_mempool_get(h->resp_pool, &m) != 0) {
			HCA_COUNT(h, EE, resp_no_mbuf);
			break;
		}
		if (notify(h, ctx, pop_notice(ctx), m))
			n++;
		else
			rte_mempool_put(h->resp_pool, m);
	}
	ee_push(h, ctx, now);
	return n;
}
