/* SPDX-License-Identifier: BSD-3-Clause */

/* MCAST_ATTACH and MCAST_DETACH: groups of UD QPs. */

#include "ceu/ceu.h"
#include "ctxmgt/ctxmgt.h"

/* The live UD QP named by in_modifier. */
static int
find_ud(const struct hca_core *h, const struct hca_cmd *c)
{
	const struct hca_qp_cfg *q = &h->qp[c->in_modifier & h->qp_mask].cfg;

	if (c->in_modifier <= HCA_QPN_GSI || c->in_modifier >= HCA_QPN_MULTICAST ||
	    q->local_qpn != c->in_modifier)
		return HCA_STAT_BAD_INDEX;
	return q->service == HCA_ST_UD ? HCA_STAT_OK : HCA_STAT_BAD_PARAM;
}

int
hca_cmd_mcast_attach(struct hca_core *h, struct hca_cmd *c)
{
	const struct hca_mbox_mcast *m = (const void *)c->in;
	int rc = find_ud(h, c);

	return rc == HCA_STAT_OK ? hca_mcast_attach(h, m->mgid, c->in_modifier) : rc;
}

/*
 * The entry of a group without members is reused only after a round, when no lookup compares it any
 * more.
 */
int
hca_cmd_mcast_detach(struct hca_core *h, struct hca_cmd *c)
{
	const struct hca_mbox_mcast *m = (const void *)c->in;
	int rc;

	if (c->step == 0) {
		rc = find_ud(h, c);
		if (rc == HCA_STAT_OK)
			rc = hca_mcast_detach(h, m->mgid, c->in_modifier);
		if (rc != HCA_STAT_OK)
			return rc;
		c->rcu = hca_round_start(h);
		c->step = 1;
		return HCA_CMD_AGAIN;
	}
	if (!hca_round_done(h, c->rcu))
		return HCA_CMD_AGAIN;
	hca_mcast_reap(h);
	return HCA_STAT_OK;
}
