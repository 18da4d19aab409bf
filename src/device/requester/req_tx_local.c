/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * BIND_MW and LOCAL_INV: requests without packets. req_tx executes them once, in order: they have
 * no PSN, and rewinds skip them. Their window is inaccessible while it changes; if other lcores may
 * still be reading it, a round must pass between the two steps, during which the QP waits. An
 * operation in progress belongs to req_tx and ends independently of the QP: the CEU waits for it
 * when the window is freed.
 *
 * Those in progress form a list of records linked by imm; raddr holds the round, srqn the QP index.
 */

#include <rte_rcu_qsbr.h>

#include "abi_cqe.h"
#include "abi_wqe.h"
#include "requester/req_tx.h"
#include "vtp/window.h"

static const struct hca_bind *
bind_of(const struct hca_record *r)
{
	return &((const struct hca_record_full *)r)->body.bind;
}

static inline bool
is_bind(const struct hca_record *r)
{
	return r->op == HCA_OP_BIND_MW;
}

static uint8_t
begin_local(struct hca_pipe *h, const struct hca_qp *qp, const struct hca_record *r)
{
	if (is_bind(r))
		return hca_window_claim(&h->core, &qp->cfg, bind_of(r));
	return hca_window_invalidate(&h->core, &qp->cfg, r->rkey) ? 0 : HCA_SYND_MW_BIND;
}

/* from here on req_rx may complete the request */
static void
finish_local(struct hca_pipe *h, const struct hca_qp *qp, struct hca_record *r)
{
	if (is_bind(r))
		hca_window_bind(&h->core, &qp->cfg, bind_of(r));
	else
		hca_window_settle(&h->core, r->rkey);
	HCA_COUNT(h, REQ_TX, req_local_ops);
	__atomic_store_n(&r->flags, r->flags | HCA_REC_SENT, __ATOMIC_RELEASE);
}

enum hca_req_tx_stop
hca_req_tx_local(struct hca_req_tx_visit *v, struct hca_record *r)
{
	if (v->qp->req_tx.flags & HCA_REQ_TX_LOCAL)
		return HCA_REQ_TX_STOP_PARK;
	r->syndrome = begin_local(v->h, v->qp, r);
	if (r->syndrome != 0) {
		HCA_COUNT(v->h, REQ_TX, req_bind_error);
		return HCA_REQ_TX_STOP_BAD;
	}
	r->psn = v->next_psn;
	r->npsn = 0;
	r->desc_seq = v->desc_seq;
	if (v->h->single_worker) {
		finish_local(v->h, v->qp, r);
		return HCA_REQ_TX_GO;
	}
	v->qp->req_tx.flags |= HCA_REQ_TX_LOCAL;
	r->raddr = rte_rcu_qsbr_start(v->h->rcu);
	r->srqn = v->qpi;
	r->imm = v->ctx->local;
	v->ctx->local = hca_req_tx_ref(v, v->next);
	return HCA_REQ_TX_STOP_PARK;
}

unsigned int
hca_req_tx_local_poll(struct hca_pipe *h, struct hca_req_tx_ctx *ctx)
{
	uint32_t *link = &ctx->local;
	unsigned int n = 0;

	for (; *link != HCA_RECREF_NONE; n++) {
		struct hca_record *r = hca_record(h, *link);
		uint32_t qpi = r->srqn;

		if (rte_rcu_qsbr_check(h->rcu, r->raddr, false) != 1) {
			link = &r->imm;
			continue;
		}
		*link = r->imm;
		h->qp[qpi].req_tx.flags &= ~HCA_REQ_TX_LOCAL;
		finish_local(h, &h->qp[qpi], r);
		hca_req_tx_wake(h, qpi);
	}
	return n;
}

void
hca_req_tx_local_abandon(struct hca_pipe *h, struct hca_req_tx_ctx *ctx, uint32_t qpi)
{
	uint32_t *link = &ctx->local;
	struct hca_record *r;

	if (!(h->qp[qpi].req_tx.flags & HCA_REQ_TX_LOCAL))
		return;
	h->qp[qpi].req_tx.flags &= ~HCA_REQ_TX_LOCAL;
	for (r = hca_record(h, *link); r->srqn != qpi; r = hca_record(h, *link))
		link = &r->imm;
	*link = r->imm;
	hca_window_settle(&h->core, is_bind(r) ? bind_of(r)->new_key : r->rkey);
}
