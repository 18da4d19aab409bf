/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Rounds: how something is taken away from a running engine. For objects that stages keep state of
 * (QPs): last ACKs (last_ack.c), state word, RCU round (no stage produces for it any more), edges
 * (all packets produced for it have arrived), purge (they are forgotten), RCU round, free.
 */

#include <rte_bitops.h>

#include "ceu/ceu.h"
#include "ctxmgt/ctxmgt.h"
#include "engine/impl.h"

enum teardown_step {
	TD_LAST_ACKS,
	TD_STATE,
	TD_RCU,
	TD_EDGES,
	TD_PURGE,
	TD_PURGED,
	TD_RCU2,
	TD_FREE,
};

void
hca_teardown_start(struct hca_teardown *t, uint32_t first, uint32_t last, uint32_t domain)
{
	*t = (struct hca_teardown){
		.first = first,
		.last = last,
		.domain = domain,
		.cursor = first,
	};
}

static bool
in_domain(const struct hca_teardown *t, uint32_t domain)
{
	return t->domain == HCA_DOMAIN_ALL || t->domain == domain;
}

/* Whether this is a live QP to be removed. */
static bool
is_doomed_qp(const struct hca_core *h, const struct hca_teardown *t, uint32_t qpi)
{
	const struct hca_qp_cfg *q = &h->qp[qpi].cfg;

	return q->local_qpn != 0 && in_domain(t, q->usr_page);
}

static void
reset_qp(struct hca_core *h, const struct hca_teardown *t, uint32_t qpi)
{
	struct hca_qp_cfg *q = &h->qp[qpi].cfg;

	if (!in_domain(t, q->usr_page))
		return;
	__atomic_store_n(&q->state, HCA_QPS_RST, __ATOMIC_SEQ_CST);
	if (q->service == HCA_ST_UD && q->local_qpn != 0)
		hca_mcast_forget(h, q->local_qpn);
	if (q->local_qpn != 0 && hca_wire_of_qp(h, &h->qp[qpi])->qp_reset != NULL)
		hca_wire_of_qp(h, &h->qp[qpi])->qp_reset(h, qpi);
}

uint32_t
hca_ceu_others(const struct hca_core *h, uint32_t *first)
{
	const struct hca_object_range *o = ((const struct hca_pipe *)h)->object;

	*first = o[HCA_OBJECT_QP].count;
	return o[HCA_OBJECT_ANY].count - *first;
}

const struct hca_wire_object *
hca_ceu_object(const struct hca_core *h, uint32_t obj, uint32_t *i)
{
	const struct hca_pipe *p = (const struct hca_pipe *)h;
	enum hca_object_kind kind = hca_object_kind(p, obj);

	*i = obj - p->object[kind].first;
	HCA_WIRES_IN_USE(h, w)
	{
		if (w->object != NULL && w->object->kind == kind)
			return w->object;
	}
	return NULL;
}

/* ---- differences between QPs and other objects ---- */

static bool
is_doomed(const struct hca_core *h, const struct hca_teardown *t, uint32_t obj)
{
	uint32_t i;
	const struct hca_wire_object *o = hca_ceu_object(h, obj, &i);

	return o == NULL ? is_doomed_qp(h, t, obj) : in_domain(t, 0) && o->is_live(h, i);
}

static void
reset_object(struct hca_core *h, const struct hca_teardown *t, uint32_t obj)
{
	uint32_t i;
	const struct hca_wire_object *o = hca_ceu_object(h, obj, &i);

	if (o == NULL)
		reset_qp(h, t, obj);
	else if (in_domain(t, 0) && o->is_live(h, i))
		o->reset(h, i);
}

static void
free_object(struct hca_core *h, uint32_t obj)
{
	uint32_t i;
	const struct hca_wire_object *o = hca_ceu_object(h, obj, &i);

	if (o == NULL)
		hca_qp_free(h, obj);
	else
		o->free(h, i);
}

/* The stages that keep state of it, a bit each. */
static uint32_t
stages_of(const struct hca_core *h, uint32_t obj)
{
	uint32_t i;
	const struct hca_wire_object *o = hca_ceu_object(h, obj, &i);

	return o == NULL ? hca_qp_stages((const struct hca_pipe *)h, &h->qp[obj]) : o->stages;
}

static void
mark_edges(const struct hca *dev, struct hca_teardown *t)
{
	for (unsigned int n = 0; n < dev->n_pipes; n++)
		for (unsigned int i = 0; i < HCA_EDGE_N; i++)
			t->mark[n][i] =
				__atomic_load_n(&dev->pipe[n].edge[i].enq, __ATOMIC_ACQUIRE);
}

/*
 * Frames may wait for the port for any time, so edges to encap are not waited for: their
 * descriptors belong to an old generation of the QP, which encap checks first.
 */
static bool
pipe_passed(const struct hca_pipe *h, const uint64_t *mark)
{
	for (unsigned int i = 0; i < HCA_EDGE_N; i++)
		if (h->edge[i].ring != NULL && h->edge[i].to != HCA_STAGE_ENCAP &&
		    (int64_t)(__atomic_load_n(&h->edge[i].deq, __ATOMIC_ACQUIRE) - mark[i]) < 0)
			return false;
	return true;
}

static bool
edges_passed(const struct hca *dev, const struct hca_teardown *t)
{
	for (unsigned int n = 0; n < dev->n_pipes; n++)
		if (!pipe_passed(&dev->pipe[n], t->mark[n]))
			return false;
	return true;
}

static void
purge_send(struct hca_pipe *h, uint32_t stages, uint32_t obj)
{
	__atomic_store_n(&h->purge_seq, h->purge_seq + 1, __ATOMIC_RELEASE);
	for (; stages != 0; stages &= stages - 1)
		hca_msg_send(h, HCA_STAGE_CEU, rte_bsf32(stages), obj, HCA_MSG_PURGE);
}

static bool
purge_acked(const struct hca_pipe *h, uint32_t stages)
{
	for (; stages != 0; stages &= stages - 1)
		if (__atomic_load_n(&h->line[rte_bsf32(stages)].purge_ack, __ATOMIC_ACQUIRE) !=
		    h->purge_seq)
			return false;
	return true;
}

/* Purge the next live object of the range; false: no further object, up to the cursor. */
static bool
purge_next(struct hca_core *h, struct hca_teardown *t)
{
	for (uint32_t n = 0; n < HCA_CEU_OBJECTS_PER_POLL && t->cursor <= t->last; n++) {
		uint32_t obj = t->cursor++;

		if (!is_doomed(h, t, obj))
			continue;
		t->purged = stages_of(h, obj);
		t->asked = hca_pipe_of_object(h, obj);
		purge_send(t->asked, t->purged, obj);
		return true;
	}
	return false;
}

/* Objects worked on per poll. */
#define SLICE 256u
#define WORK (HCA_CEU_OBJECTS_PER_POLL / SLICE)

/* The next slice [*from, return) of [*cursor, end). */
static uint32_t
slice(uint32_t *cursor, uint32_t end, uint32_t *from)
{
	*from = *cursor;
	*cursor += RTE_MIN(SLICE, end - *from);
	return *cursor;
}

static bool
reset_all(struct hca_core *h, struct hca_teardown *t)
{
	uint32_t i, end = slice(&t->cursor, t->last + 1, &i);

	for (; i < end; i++)
		reset_object(h, t, i);
	return end == t->last + 1;
}

static bool
free_all(struct hca_core *h, struct hca_teardown *t)
{
	uint32_t i, end = slice(&t->cursor, t->last + 1, &i);

	for (; i < end; i++)
		if (is_doomed(h, t, i))
			free_object(h, i);
	return end == t->last + 1;
}

bool
hca_teardown_step(struct hca_core *h, struct hca_teardown *t)
{
	switch (t->step) {
	case TD_LAST_ACKS:
		if (!hca_last_acks_step(h, t))
			return false;
		t->cursor = t->first;
		t->step = TD_STATE;
		/* fall through */
	case TD_STATE:
		if (!reset_all(h, t))
			return false;
		t->cursor = t->first;
		t->token = hca_round_start(h);
		t->step = TD_RCU;
		return false;
	case TD_RCU:
		if (!hca_round_done(h, t->token))
			return false;
		mark_edges(h->hca, t);
		t->step = TD_EDGES;
		/* fall through */
	case TD_EDGES:
		if (!edges_passed(h->hca, t))
			return false;
		t->step = TD_PURGE;
		/* fall through */
	case TD_PURGE:
		if (purge_next(h, t)) {
			t->step = TD_PURGED;
			return false;
		}
		if (t->cursor <= t->last)
			return false;
		t->token = hca_round_start(h);
		t->step = TD_RCU2;
		return false;
	case TD_PURGED:
		if (purge_acked(t->asked, t->purged))
			t->step = TD_PURGE;
		return false;
	case TD_RCU2:
		if (!hca_round_done(h, t->token))
			return false;
		t->cursor = t->first;
		t->step = TD_FREE;
		/* fall through */
	default:
		return free_all(h, t);
	}
}

enum close_step {
	CLOSE_QPS,
	CLOSE_MARK_CQS, /* new work does not find them, but readers may still use one */
	CLOSE_MARK_SRQS,
	CLOSE_MARK_KEYS,
	CLOSE_MARK_OTHERS,
	CLOSE_RCU,
	CLOSE_SRQS, /* before the CQs, which XRC SRQs use */
	CLOSE_CQS,
	CLOSE_KEYS,
	CLOSE_OTHERS, /* with all domains */
};

void
hca_close_start(struct hca_core *h, struct hca_cmd *c, uint32_t domain)
{
	hca_teardown_start(&c->teardown, 0, h->qp_mask, domain);
	c->step = CLOSE_QPS;
}

static void
mark(uint32_t *state, uint32_t free, uint32_t dying)
{
	if (__atomic_load_n(state, __ATOMIC_ACQUIRE) != free)
		__atomic_store_n(state, dying, __ATOMIC_RELEASE);
}

/* Whether the slice continues: entries cost 1 if they were only checked, else more. */
static bool
slice_continues(uint32_t *spent, uint32_t cost)
{
	*spent += cost;
	return *spent < HCA_CEU_OBJECTS_PER_POLL;
}

/* One slice of a step over a table; true: the whole table is done. */
static bool
mark_cqs(struct hca_core *h, struct hca_teardown *t)
{
	for (uint32_t spent = 0; t->cursor <= h->cq_mask && slice_continues(&spent, 1);
	     t->cursor++) {
		struct hca_cq *cq = &h->cq[t->cursor];

		if (in_domain(t, cq->usr_page))
			mark(&cq->state, HCA_CQ_FREE, HCA_CQ_DYING);
	}
	return t->cursor > h->cq_mask;
}

static bool
mark_srqs(struct hca_core *h, struct hca_teardown *t)
{
	for (uint32_t spent = 0; t->cursor <= h->srq_mask && slice_continues(&spent, 1);
	     t->cursor++) {
		struct hca_srq *srq = &h->srq[t->cursor];

		if (!in_domain(t, srq->usr_page))
			continue;
		mark(&srq->state, HCA_SRQ_FREE, HCA_SRQ_DYING);
		if (srq->jfr)
			hca_ceu_jfr(h)->hide(h, srq->srqn);
	}
	return t->cursor > h->srq_mask;
}

static bool
mark_keys(struct hca_core *h, struct hca_teardown *t)
{
	for (uint32_t spent = 0; t->cursor <= h->vtp.mpt_mask && slice_continues(&spent, 1);
	     t->cursor++) {
		struct hca_mpt_entry *e = &h->vtp.mpt[t->cursor];

		if (!in_domain(t, hca_mpt_domain(&h->vtp, e)))
			continue;
		mark(&e->state, HCA_MPT_FREE, HCA_MPT_DYING);
		hca_ceu_key_gone(h, t->cursor);
	}
	return t->cursor > h->vtp.mpt_mask;
}

/* The other objects go with all domains; clients of the domain leave them. */
static bool
mark_others(struct hca_core *h, struct hca_teardown *t)
{
	uint32_t first, at, n = hca_ceu_others(h, &first);

	if (t->domain == HCA_DOMAIN_ALL)
		return true;
	for (uint32_t spent = 0; t->cursor < n && slice_continues(&spent, 1); t->cursor++) {
		const struct hca_wire_object *o = hca_ceu_object(h, first + t->cursor, &at);

		if (o->leave != NULL)
			o->leave(h, at, t->domain);
	}
	return t->cursor >= n;
}

static bool
free_cqs(struct hca_core *h, struct hca_teardown *t)
{
	for (uint32_t spent = 0; t->cursor <= h->cq_mask && slice_continues(&spent, 1);
	     t->cursor++) {
		const struct hca_cq *cq = &h->cq[t->cursor];

		if (hca_cq_state(cq) == HCA_CQ_FREE || !in_domain(t, cq->usr_page))
			continue;
		hca_cq_free(h, t->cursor);
		spent += WORK;
	}
	return t->cursor > h->cq_mask;
}

static bool
free_srqs(struct hca_core *h, struct hca_teardown *t)
{
	for (uint32_t spent = 0; t->cursor <= h->srq_mask && slice_continues(&spent, 1);
	     t->cursor++) {
		const struct hca_srq *srq = &h->srq[t->cursor];

		if (hca_srq_state(srq) == HCA_SRQ_FREE || !in_domain(t, srq->usr_page))
			continue;
		hca_srq_free(h, t->cursor);
		spent += WORK;
	}
	return t->cursor > h->srq_mask;
}

/* A large region takes several slices of its own. */
static bool
free_keys(struct hca_core *h, struct hca_teardown *t)
{
	static const struct hca_mpt gone;

	for (uint32_t spent = 0; t->cursor <= h->vtp.mpt_mask && slice_continues(&spent, 1);
	     t->cursor++) {
		const struct hca_mpt_entry *e = &h->vtp.mpt[t->cursor];

		if (hca_mpt_state(e) == HCA_MPT_FREE || !in_domain(t, hca_mpt_domain(&h->vtp, e)))
			continue;
		spent += WORK + e->mtt_count / 2;
		if (!hca_mpt_release(h, t->cursor))
			return false;
		hca_icm_write(h, HCA_ICM_MPT, t->cursor, &gone);
	}
	return t->cursor > h->vtp.mpt_mask;
}

static void
close_rest(struct hca_core *h)
{
	struct hca_ctxmgt *c = h->ctxmgt;

	for (unsigned int t = 0; t < HCA_ICM_TABLE_N; t++)
		c->count[t] = 0;
	hca_icm_unmap_all(h);
	hca_addr_reset(c);
	__atomic_store_n(&c->gsi_qpn, 0, __ATOMIC_RELEASE);
	c->ready = false;
}

/* Other objects than QPs go with all domains. True: a teardown of them has begun. */
static bool
close_others(struct hca_core *h, struct hca_teardown *t)
{
	uint32_t first, n = hca_ceu_others(h, &first);

	if (t->domain != HCA_DOMAIN_ALL || n == 0)
		return false;
	hca_teardown_start(t, first, first + n - 1, HCA_DOMAIN_ALL);
	return true;
}

bool
hca_close_step(struct hca_core *h, struct hca_cmd *c)
{
	static bool (*const table[])(struct hca_core * h, struct hca_teardown * t) = {
		[CLOSE_MARK_CQS] = mark_cqs,   [CLOSE_MARK_SRQS] = mark_srqs,
		[CLOSE_MARK_KEYS] = mark_keys, [CLOSE_MARK_OTHERS] = mark_others,
		[CLOSE_CQS] = free_cqs,	       [CLOSE_SRQS] = free_srqs,
		[CLOSE_KEYS] = free_keys,
	};
	bool done;

	if (c->step == CLOSE_QPS || c->step == CLOSE_OTHERS)
		done = hca_teardown_step(h, &c->teardown);
	else if (c->step == CLOSE_RCU)
		done = hca_round_done(h, c->rcu);
	else
		done = table[c->step](h, &c->teardown);
	if (!done)
		return false;
	c->teardown.cursor = 0;
	if (c->step == CLOSE_MARK_OTHERS)
		c->rcu = hca_round_start(h);
	if (c->step == CLOSE_CQS && c->teardown.domain == HCA_DOMAIN_ALL)
		hca_eq_destroy_all(h);
	if (c->step == CLOSE_KEYS && close_others(h, &c->teardown)) {
		c->step = CLOSE_OTHERS;
		return false;
	}
	if (c->step != CLOSE_KEYS && c->step != CLOSE_OTHERS) {
		c->step++;
		return false;
	}
	if (c->teardown.domain == HCA_DOMAIN_ALL)
		close_rest(h);
	return true;
}
