/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The answer of a QP that has to send only an ACK: its descriptor without the choice of
 * ee_response.c, and mbufs for several QPs at once. Equivalent to the general visit.
 */

#include "cc/cc.h"
#include "responder/ee.h"

/* Flags that change nothing; with EE_ACK_OWED and no others, an ACK up to epsn - 1 is due. */
#define IDLE_FLAGS (EE_ON_READY | EE_ON_LAZY | EE_ESTABLISHED | EE_LAST_WQE)

static inline bool
single_ack_due(const struct hca_pipe *h, const struct hca_qp *qp)
{
	return (qp->ee.flags & ~IDLE_FLAGS) == EE_ACK_OWED && qp->ee.job_pending == 0 &&
	       ee_state_receives(hca_qp_state(qp)) && !hca_cc_in_use(h);
}

/* An mbuf for an ACK; up to `want` are taken from the pool together. */
static inline struct rte_mbuf *
single_mbuf(struct hca_pipe *h, struct ee_acks *a, unsigned int want)
{
	if (a->n == 0) {
		want = RTE_MIN(want, RTE_DIM(a->spare));
		if (unlikely(rte_mempool_get_bulk(h->resp_pool, (void **)a->spare, want) != 0))
			return NULL;
		a->n = want;
	}
	return a->spare[--a->n];
}

bool
ee_single_ack(struct hca_pipe *h, struct ee_ctx *ctx, struct ee_acks *a, unsigned int room,
	      uint64_t now)
{
	uint32_t qpi = ctx->ready.head;
	struct hca_qp *qp = &h->qp[qpi];
	struct hca_qp_ee *ee = &qp->ee;
	struct rte_mbuf *m;

	if (!HCA_SHORT_WAYS || unlikely(room == 0) || unlikely(!single_ack_due(h, qp)))
		return false;
	m = single_mbuf(h, a, RTE_MIN(room, ctx->ready_count));
	if (unlikely(m == NULL))
		return false;
	if (unlikely(ctx->nout == RTE_DIM(ctx->out)))
		ee_push(h, ctx, now);
	*hca_txd(m) = (struct hca_txd){
		.qpi = qpi,
		.psn = (ee->epsn - 1) & HCA_PSN_MASK,
		.opcode = HCA_BTH_RC_ACK | qp->req_tx.transport,
		.syndrome = HCA_AETH_ACK | HCA_AETH_CREDITS_NONE,
		.resp.msn = ee->msn,
		.generation = qp->cfg.generation,
	};
	ctx->out[ctx->nout++] = m;
	ee->flags &= ~(EE_ACK_OWED | EE_ON_READY);
	ee->unacked = 0;
	a->acks++;
	hca_qp_list_pop(h, &ctx->ready, EE_READY_LINK);
	ctx->ready_count--;
	return true;
}

void
ee_single_acks_end(struct hca_pipe *h, struct ee_acks *a)
{
	if (a->n != 0)
		rte_pktmbuf_free_bulk(a->spare, a->n);
	if (a->acks != 0)
		HCA_COUNT_N(h, EE, acks_sent, a->acks);
}
