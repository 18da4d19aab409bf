/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Groups of TPs to one peer. A TP is in one group at most; it joins and leaves by SET_TPG, which
 * gives the whole group, or by a TP's own context. TAI reads groups while they change: it gets TPs
 * that were in the group a moment ago. PERMIT_TPG gives the users of a group, by DMA domain; they
 * are forgotten with the group.
 */

#include "ub/ceu/tp.h"

static const struct hca_tp *
first_of(const struct hca_core *h, const struct hca_tpg *g)
{
	return g->count != 0 ? &h->ub->tp[g->tp[0]] : NULL;
}

static bool
same_peer(const struct hca_tp *tp, const uint8_t peer[16])
{
	return memcmp(tp->cfg.peer_eid, peer, sizeof(tp->cfg.peer_eid)) == 0;
}

int
hca_tpg_check(const struct hca_core *h, uint32_t group, uint32_t tpi, const uint8_t peer[16])
{
	const struct hca_tpg *g;

	if (group == 0 || h->ub->tp[tpi].cfg.tpg == group)
		return HCA_STAT_OK;
	if (group > h->ub->tp_mask + 1)
		return HCA_STAT_BAD_PARAM;
	g = &h->ub->tpg[group - 1];
	if (g->count == HCA_TPG_MAX_TPS)
		return HCA_STAT_EXCEED_LIM;
	return g->count == 0 || same_peer(first_of(h, g), peer) ? HCA_STAT_OK : HCA_STAT_BAD_PARAM;
}

static void
set_group(struct hca_core *h, uint32_t tpi, uint32_t group)
{
	struct hca_tp *tp = &h->ub->tp[tpi];
	struct hca_tpc *image = (void *)hca_tp_work(tp)->image;

	__atomic_store_n(&tp->cfg.tpg, group, __ATOMIC_RELAXED);
	hca_tpc_set(image, HCA_TPC_GROUP, group);
}

static void
put(struct hca_tpg *g, const uint32_t *tp, uint32_t count)
{
	if (g->count == 0 && count != 0)
		__atomic_store_n(&g->generation, g->generation + 1, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < count; i++)
		__atomic_store_n(&g->tp[i], tp[i], __ATOMIC_RELAXED);
	__atomic_store_n(&g->count, count, __ATOMIC_RELEASE);
	/* its number may be that of another peer's group soon */
	for (uint32_t i = 0; count == 0 && i < RTE_DIM(g->user); i++)
		__atomic_store_n(&g->user[i], 0, __ATOMIC_RELEASE);
}

static bool
is_in(const uint32_t *tp, uint32_t count, uint32_t tpi)
{
	for (uint32_t i = 0; i < count; i++)
		if (tp[i] == tpi)
			return true;
	return false;
}

void
hca_tpg_move(struct hca_core *h, uint32_t tpi, uint32_t group)
{
	uint32_t was = h->ub->tp[tpi].cfg.tpg, left[HCA_TPG_MAX_TPS], n = 0;
	struct hca_tpg *g;

	if (was != 0 && was != group) {
		g = &h->ub->tpg[was - 1];
		for (uint32_t i = 0; i < g->count; i++)
			if (g->tp[i] != tpi)
				left[n++] = g->tp[i];
		put(g, left, n);
	}
	if (group != 0 && was != group) {
		g = &h->ub->tpg[group - 1];
		memcpy(left, g->tp, g->count * sizeof(left[0]));
		left[g->count] = tpi;
		put(g, left, g->count + 1);
	}
	set_group(h, tpi, group);
}

/* The TPs of the mailbox: live, different, in no other group, of one peer. */
static int
read_members(const struct hca_core *h, const struct hca_mbox_set_tpg *m, uint32_t group,
	     uint32_t *tp, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct hca_tp *t = hca_tp_find(h, hca_be32_to_cpu(m->tpn[i]));

		if (t == NULL)
			return HCA_STAT_BAD_PARAM;
		tp[i] = hca_tp_index(h, t);
		if (is_in(tp, i, tp[i]) || !same_peer(t, h->ub->tp[tp[0]].cfg.peer_eid))
			return HCA_STAT_BAD_PARAM;
		if (t->cfg.tpg != 0 && t->cfg.tpg != group)
			return HCA_STAT_BAD_RES_STATE;
	}
	return HCA_STAT_OK;
}

static int
set_members(struct hca_core *h, struct hca_cmd *c)
{
	const struct hca_mbox_set_tpg *m = (const void *)c->in;
	struct hca_tpg *g = &h->ub->tpg[c->in_modifier];
	uint32_t count = hca_be32_to_cpu(m->count), group = c->in_modifier + 1;
	uint32_t tp[HCA_TPG_MAX_TPS] = {0}, was[HCA_TPG_MAX_TPS], had = g->count;
	int rc;

	if (count > HCA_TPG_MAX_TPS)
		return HCA_STAT_EXCEED_LIM;
	if (count == 0 && had == 0)
		return HCA_STAT_BAD_RES_STATE;
	rc = read_members(h, m, group, tp, count);
	if (rc != HCA_STAT_OK)
		return rc;
	/* requests that name the group would go elsewhere */
	if (count != 0 && had != 0 && !same_peer(first_of(h, g), h->ub->tp[tp[0]].cfg.peer_eid))
		return HCA_STAT_BAD_RES_STATE;
	memcpy(was, g->tp, sizeof(was));
	put(g, tp, count);
	for (uint32_t i = 0; i < had; i++)
		if (!is_in(tp, count, was[i]))
			set_group(h, was[i], 0);
	for (uint32_t i = 0; i < count; i++)
		set_group(h, tp[i], group);
	return HCA_STAT_OK;
}

/* A TP that has left is not chosen any more when the command is done. */
int
hca_cmd_set_tpg(struct hca_core *h, struct hca_cmd *c)
{
	int rc;

	if (c->step != 0)
		return hca_round_done(h, c->rcu) ? HCA_STAT_OK : HCA_CMD_AGAIN;
	if (c->in_modifier > h->ub->tp_mask)
		return HCA_STAT_BAD_INDEX;
	rc = set_members(h, c);
	if (rc != HCA_STAT_OK)
		return rc;
	c->rcu = hca_round_start(h);
	c->step = 1;
	return HCA_CMD_AGAIN;
}

/* ---- users of a group ---- */

static void
permit(struct hca_tpg *g, uint32_t domain, bool may)
{
	uint64_t *word = &g->user[domain / 64], bit = UINT64_C(1) << (domain % 64);

	__atomic_store_n(word, may ? *word | bit : *word & ~bit, __ATOMIC_RELEASE);
}

void
hca_tpg_forget(struct hca_core *h, uint32_t group, uint32_t domain)
{
	struct hca_tpg *g = &h->ub->tpg[group];

	if (domain != 0 && hca_tpg_is_user(g, domain))
		permit(g, domain, false);
}

int
hca_cmd_permit_tpg(struct hca_core *h, struct hca_cmd *c)
{
	uint32_t domain = HCA_TPG_DOMAIN(c->in_param);
	struct hca_tpg *g;

	if (c->step != 0)
		return hca_round_done(h, c->rcu) ? HCA_STAT_OK : HCA_CMD_AGAIN;
	if (c->in_modifier > h->ub->tp_mask)
		return HCA_STAT_BAD_INDEX;
	if (c->in_param & ~(uint64_t)(HCA_TPG_PERMIT | HCA_FIELD(10, 0, domain)) || domain == 0)
		return HCA_STAT_BAD_PARAM;
	g = &h->ub->tpg[c->in_modifier];
	if (c->in_param & HCA_TPG_PERMIT) {
		if (g->count == 0)
			return HCA_STAT_BAD_RES_STATE;
		permit(g, domain, true);
		return HCA_STAT_OK;
	}
	permit(g, domain, false);
	c->rcu = hca_round_start(h);
	c->step = 1;
	return HCA_CMD_AGAIN;
}
