/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Rounds: how something is taken away from a running engine (pipeline.md "Rounds"). For QPs: state
 * word, RCU round (nobody produces for it any more), edges (what was produced has arrived), purge
 * (what arrived is forgotten), RCU round, free.
 */

#include <rte_rcu_qsbr.h>

#include "ceu/ceu.h"
#include "ctxmgt/ctxmgt.h"

uint64_t
hca_round_start(struct hca *h)
{
	return rte_rcu_qsbr_start(h->rcu);
}

bool
hca_round_done(struct hca *h, uint64_t token)
{
	if (rte_rcu_qsbr_check(h->rcu, token, false) != 1)
		return false;
	HCA_COUNT(h, CEU, rounds);
	return true;
}

enum teardown_step {
	TD_STATE,
	TD_RCU,
	TD_EDGES,
	TD_PURGE,
	TD_PURGED,
	TD_RCU2,
};

void
hca_teardown_start(struct hca_teardown *t, uint32_t first, uint32_t last)
{
	*t = (struct hca_teardown){.first = first, .last = last, .cursor = first};
}

static void
mark_edges(const struct hca *h, struct hca_teardown *t)
{
	for (unsigned int i = 0; i < HCA_EDGE_N; i++)
		t->mark[i] = __atomic_load_n(&h->edge[i].enq, __ATOMIC_ACQUIRE);
}

static bool
edges_passed(const struct hca *h, const struct hca_teardown *t)
{
	for (unsigned int i = 0; i < HCA_EDGE_N; i++)
		if (h->edge[i].ring != NULL &&
		    (int64_t)(__atomic_load_n(&h->edge[i].deq, __ATOMIC_ACQUIRE) - t->mark[i]) < 0)
			return false;
	return true;
}

static const uint8_t purged[] = {HCA_STAGE_PARSER, HCA_STAGE_RTC, HCA_STAGE_RRC, HCA_STAGE_EE,
				 HCA_STAGE_TIMER};

static void
purge_send(struct hca *h, uint32_t qpi)
{
	h->purge_qpi = qpi;
	__atomic_store_n(&h->purge_seq, h->purge_seq + 1, __ATOMIC_RELEASE);
	for (unsigned int i = 0; i < RTE_DIM(purged); i++)
		hca_msg_send(h, HCA_STAGE_CEU, purged[i], qpi, HCA_MSG_PURGE);
}

static bool
purge_acked(const struct hca *h)
{
	for (unsigned int i = 0; i < RTE_DIM(purged); i++)
		if (__atomic_load_n(&h->line[purged[i]].purge_ack, __ATOMIC_ACQUIRE) !=
		    h->purge_seq)
			return false;
	return true;
}

/* Purge the next living QP of the range; false: there is none. */
static bool
purge_next(struct hca *h, struct hca_teardown *t)
{
	while (t->cursor <= t->last) {
		uint32_t qpi = t->cursor++;

		if (h->qp[qpi].cfg.local_qpn == 0)
			continue;
		purge_send(h, qpi);
		return true;
	}
	return false;
}

static void
states_to_rst(struct hca *h, const struct hca_teardown *t)
{
	for (uint32_t i = t->first; i <= t->last; i++)
		__atomic_store_n(&h->qp[i].cfg.state, HCA_QPS_RST, __ATOMIC_SEQ_CST);
}

bool
hca_teardown_step(struct hca *h, struct hca_teardown *t)
{
	switch (t->step) {
	case TD_STATE:
		states_to_rst(h, t);
		t->token = hca_round_start(h);
		t->step = TD_RCU;
		return false;
	case TD_RCU:
		if (!hca_round_done(h, t->token))
			return false;
		mark_edges(h, t);
		t->step = TD_EDGES;
		/* fall through */
	case TD_EDGES:
		if (!edges_passed(h, t))
			return false;
		t->step = TD_PURGE;
		/* fall through */
	case TD_PURGE:
		if (purge_next(h, t)) {
			t->step = TD_PURGED;
			return false;
		}
		t->token = hca_round_start(h);
		t->step = TD_RCU2;
		return false;
	case TD_PURGED:
		if (purge_acked(h))
			t->step = TD_PURGE;
		return false;
	default:
		break;
	}
	if (!hca_round_done(h, t->token))
		return false;
	for (uint32_t i = t->first; i <= t->last; i++)
		if (h->qp[i].cfg.local_qpn != 0)
			hca_qp_free(h, i);
	return true;
}

void
hca_close_start(struct hca *h, struct hca_cmd *c)
{
	hca_teardown_start(&c->teardown, 0, h->qp_mask);
	c->step = 0;
}

/* QPs are gone: CQs and keys are invisible to new work, but readers may still hold one. */
static void
close_mark(struct hca *h)
{
	for (uint32_t i = 0; i <= h->cq_mask; i++)
		if (h->cq[i].state != HCA_CQ_FREE)
			__atomic_store_n(&h->cq[i].state, HCA_CQ_DYING, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i <= h->srq_mask; i++)
		if (h->srq[i].state != HCA_SRQ_FREE)
			__atomic_store_n(&h->srq[i].state, HCA_SRQ_DYING, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i <= h->vtp.mpt_mask; i++)
		if (h->vtp.mpt[i].state != HCA_MPT_FREE)
			__atomic_store_n(&h->vtp.mpt[i].state, HCA_MPT_DYING, __ATOMIC_RELEASE);
}

static void
close_free(struct hca *h)
{
	struct hca_ctxmgt *c = h->ctxmgt;

	for (uint32_t i = 0; i <= h->cq_mask; i++)
		if (h->cq[i].state != HCA_CQ_FREE)
			hca_cq_free(h, i);
	for (uint32_t i = 0; i <= h->srq_mask; i++)
		if (h->srq[i].state != HCA_SRQ_FREE)
			hca_srq_free(h, i);
	hca_eq_destroy_all(h);
	for (uint32_t i = 0; i <= h->vtp.mpt_mask; i++)
		if (h->vtp.mpt[i].state != HCA_MPT_FREE)
			hca_mpt_release(h, i);
	for (unsigned int t = 0; t < HCA_ICM_TABLE_N; t++)
		c->count[t] = 0;
	hca_icm_unmap_all(h);
	hca_addr_reset(c);
	c->gsi_qpn = 0;
	c->ready = false;
}

bool
hca_close_step(struct hca *h, struct hca_cmd *c)
{
	if (c->step == 0) {
		if (!hca_teardown_step(h, &c->teardown))
			return false;
		close_mark(h);
		c->rcu = hca_round_start(h);
		c->step = 1;
		return false;
	}
	if (!hca_round_done(h, c->rcu))
		return false;
	close_free(h);
	return true;
}
