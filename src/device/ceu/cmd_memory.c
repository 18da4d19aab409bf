/* SPDX-License-Identifier: BSD-3-Clause */

/* Commands about memory keys and translation (3.2.3). */

#include <string.h>

#include "ceu/ceu.h"
#include "ctxmgt/ctxmgt.h"

int
hca_cmd_sw2hw_mpt(struct hca_core *h, struct hca_cmd *c)
{
	int rc;

	if (c->step == 0) {
		if (c->op_modifier != 0)
			return HCA_STAT_BAD_PARAM;
		rc = hca_mpt_begin(h, c->in_modifier, (const void *)c->in, &c->mpt);
		if (rc != HCA_STAT_OK)
			return rc;
		c->step = 1;
	}
	if (c->step == 1) {
		rc = hca_mpt_slice(h, &c->mpt);
		if (rc == HCA_MPT_AGAIN)
			return HCA_CMD_AGAIN;
		if (rc != HCA_STAT_OK)
			return rc;
		hca_icm_write(h, HCA_ICM_MPT, c->in_modifier, c->in);
		c->step = 2;
	}
	rc = hca_mpt_commit(h, c->in_modifier, &c->mpt);
	return rc == HCA_MPT_AGAIN ? HCA_CMD_AGAIN : rc;
}

int
hca_cmd_hw2sw_mpt(struct hca_core *h, struct hca_cmd *c)
{
	static const struct hca_mpt gone;
	uint32_t index = c->in_modifier;
	int rc;

	if (index == 0 || index >= h->ctxmgt->count[HCA_ICM_MPT])
		return HCA_STAT_BAD_INDEX;
	if (c->step == 0) {
		rc = hca_mpt_dying(h, index);
		if (rc == HCA_MPT_AGAIN)
			return HCA_CMD_AGAIN;
		if (rc != HCA_STAT_OK)
			return rc;
		hca_ceu_key_gone(h, index);
		c->rcu = hca_round_start(h);
		c->step = 1;
		return HCA_CMD_AGAIN;
	}
	if (c->step == 1) {
		if (!hca_round_done(h, c->rcu))
			return HCA_CMD_AGAIN;
		c->step = 2;
	}
	if (!hca_mpt_release(h, index))
		return HCA_CMD_AGAIN;
	hca_icm_write(h, HCA_ICM_MPT, index, &gone);
	return HCA_STAT_OK;
}

int
hca_cmd_write_mtt(struct hca_core *h, struct hca_cmd *c)
{
	struct hca_mbox_write_mtt *m = (void *)c->in;
	uint64_t bus[HCA_WRITE_MTT_MAX];

	for (uint32_t i = 0; i < c->in_modifier; i++)
		bus[i] = hca_be64_to_cpu(*hca_write_mtt_entry(m, i));
	return hca_mtt_write(h, hca_be64_to_cpu(m->start_index), bus, c->in_modifier);
}
