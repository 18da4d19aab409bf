/* SPDX-License-Identifier: BSD-3-Clause */

/* SET_TOKEN, SET_JETTY_ID, BIND_JETTY: objects that requests of other hosts may name, and peers. */

#include "ub/ceu/tp.h"
#include "ctxmgt/ctxmgt.h"
#include "ub/token.h"

/* A region that lives; windows cannot be segments. */
static bool
is_region(const struct hca_core *h, uint32_t mpt)
{
	const struct hca_mpt_entry *e = &h->vtp.mpt[mpt];
	uint32_t state = hca_mpt_state(e);

	return (state == HCA_MPT_VALID || state == HCA_MPT_FOREIGN) &&
	       e->flags & HCA_MPT_FLAG_REGION;
}

/* Stages check requests meanwhile. */
static void
put_token(struct hca_token *t, const struct hca_mbox_set_token *m, uint32_t flags)
{
	const uint32_t value[] = {hca_be32_to_cpu(m->value[0]), hca_be32_to_cpu(m->value[1])};

	hca_token_store(t, flags, value);
}

void
hca_token_drop(struct hca_core *h, uint32_t mpt)
{
	__atomic_store_n(&h->ub->token[mpt].flags, 0, __ATOMIC_RELEASE);
}

static bool
flags_ok(uint32_t flags)
{
	if ((flags & ~HCA_TOKEN_FLAGS_ALL) != 0 || (flags != 0 && !(flags & HCA_TOKEN_EXPORTED)))
		return false;
	return !(flags & HCA_TOKEN_SECOND) || flags & HCA_TOKEN_CHECK;
}

int
hca_cmd_set_token(struct hca_core *h, struct hca_cmd *c)
{
	const struct hca_mbox_set_token *m = (const void *)c->in;
	uint32_t index = c->in_modifier, flags = hca_be32_to_cpu(m->flags);

	if (c->step != 0)
		return hca_round_done(h, c->rcu) ? HCA_STAT_OK : HCA_CMD_AGAIN;
	if (index == 0 || index >= h->ctxmgt->count[HCA_ICM_MPT])
		return HCA_STAT_BAD_INDEX;
	if (!flags_ok(flags))
		return HCA_STAT_BAD_PARAM;
	if (!is_region(h, index))
		return HCA_STAT_BAD_RES_STATE;
	if (flags != 0) {
		put_token(&h->ub->token[index], m, flags);
		return HCA_STAT_OK;
	}
	hca_token_drop(h, index);
	c->rcu = hca_round_start(h);
	c->step = 1;
	return HCA_CMD_AGAIN;
}

void
hca_tc_set(struct hca_tc *row, bool token, uint32_t value, uint32_t rnr_timer,
	   enum hca_tc_bound bound)
{
	uint32_t flags = HCA_TOKEN_EXPORTED | (token ? (uint32_t)HCA_TOKEN_CHECK : 0);
	const uint32_t values[] = {value, 0};

	__atomic_store_n(&row->rnr_timer, rnr_timer, __ATOMIC_RELAXED);
	__atomic_store_n(&row->bound, bound, __ATOMIC_RELAXED);
	hca_token_store(&row->token, flags, values);
}

void
hca_tc_close(struct hca_tc *row)
{
	__atomic_store_n(&row->token.flags, 0, __ATOMIC_RELEASE);
}

/* Whether requests can be sent to it: a Jetty, or a JFR. */
static bool
is_target(const struct hca_core *h, uint32_t tc)
{
	const struct hca_qp_cfg *q = &h->qp[HCA_TC_NUMBER(tc) & h->qp_mask].cfg;
	const struct hca_srq *s;

	if (tc > HCA_TC_MASK)
		return false;
	if (tc & HCA_TC_JFR) {
		s = hca_srq_find(h, HCA_TC_NUMBER(tc));
		return s != NULL && s->jfr;
	}
	return tc >= HCA_TC_WELL_KNOWN && q->local_qpn == tc && q->service == HCA_ST_JETTY;
}

void
hca_known_forget(struct hca_core *h, uint32_t tc)
{
	for (uint32_t i = 0; i < HCA_TC_WELL_KNOWN; i++)
		if (h->ub->known[i] == tc)
			__atomic_store_n(&h->ub->known[i], HCA_TC_NONE, __ATOMIC_RELEASE);
}

int
hca_cmd_set_jetty_id(struct hca_core *h, struct hca_cmd *c)
{
	uint32_t id = c->in_modifier;
	uint32_t *known = &h->ub->known[id & (HCA_TC_WELL_KNOWN - 1)];

	if (c->step != 0)
		return hca_round_done(h, c->rcu) ? HCA_STAT_OK : HCA_CMD_AGAIN;
	if (id >= HCA_TC_WELL_KNOWN)
		return HCA_STAT_BAD_INDEX;
	if (c->in_param != HCA_TC_NONE) {
		if (c->in_param > HCA_TC_MASK || !is_target(h, (uint32_t)c->in_param))
			return HCA_STAT_BAD_PARAM;
		if (*known != HCA_TC_NONE)
			return HCA_STAT_RESOURCE_BUSY;
		__atomic_store_n(known, (uint32_t)c->in_param, __ATOMIC_RELEASE);
		return HCA_STAT_OK;
	}
	if (*known == HCA_TC_NONE)
		return HCA_STAT_BAD_RES_STATE;
	__atomic_store_n(known, HCA_TC_NONE, __ATOMIC_RELEASE);
	c->rcu = hca_round_start(h);
	c->step = 1;
	return HCA_CMD_AGAIN;
}

/* ---- one peer ---- */

/* Its peer's words are read only while it is bound. */
static int
bind_to(struct hca_tc *row, const uint8_t eid[16], uint32_t tc)
{
	if (tc < HCA_TC_WELL_KNOWN || tc >= HCA_TC_JFR)
		return HCA_STAT_BAD_PARAM;
	if (row->bound == HCA_TC_BOUND)
		return HCA_STAT_RESOURCE_BUSY;
	row->peer = tc;
	memcpy(row->peer_eid, eid, sizeof(row->peer_eid));
	__atomic_store_n(&row->bound, HCA_TC_BOUND, __ATOMIC_RELEASE);
	return HCA_STAT_OK;
}

int
hca_cmd_bind_jetty(struct hca_core *h, struct hca_cmd *c)
{
	const struct hca_mbox_bind_jetty *m = (const void *)c->in;
	uint32_t qpi = c->in_modifier & h->qp_mask, tc = hca_be32_to_cpu(m->tc);
	const struct hca_qp_cfg *q = &h->qp[qpi].cfg;
	struct hca_tc *row = &h->ub->jetty[qpi];

	if (c->step != 0)
		return hca_round_done(h, c->rcu) ? HCA_STAT_OK : HCA_CMD_AGAIN;
	if (c->in_modifier == 0 || q->local_qpn != c->in_modifier || q->service != HCA_ST_JETTY)
		return HCA_STAT_BAD_INDEX;
	if (!q->one_peer)
		return HCA_STAT_BAD_RES_STATE;
	if (tc != HCA_TC_NONE)
		return bind_to(row, m->eid, tc);
	if (row->bound != HCA_TC_BOUND)
		return HCA_STAT_BAD_RES_STATE;
	__atomic_store_n(&row->bound, HCA_TC_ALONE, __ATOMIC_RELEASE);
	c->rcu = hca_round_start(h);
	c->step = 1;
	return HCA_CMD_AGAIN;
}
