/* SPDX-License-Identifier: BSD-3-Clause */

/* UB's agents: one for each HCA, which sets up its channels to others. */

#include <string.h>

#include <rte_bitops.h>

#include "abi_tp.h"
#include "abi_ub.h"
#include "embed_impl.h"
#include "graph/sleep.h"
#include "ubagent.h"

uint64_t
embed_agent_now(void *arg)
{
	return softhca_embed_now(((struct embed_hca *)arg)->owner);
}

void
embed_agent_kick(void *arg)
{
	hca_kick_stage(((struct embed_hca *)arg)->hca, HCA_STAGE_DOORBELL);
}

void
embed_agent_progress(void *arg)
{
	const struct embed_hca *s = arg;

	(void)embed_run(s->owner, (uint32_t)(s - s->owner->side));
}

_Static_assert(SOFTHCA_UB_RULE_NAK == HCA_TP_RULE_NAK + 1 &&
		       SOFTHCA_UB_RULE_TIME == HCA_TP_RULE_TIME + 1 &&
		       SOFTHCA_UB_MODE_DROP == HCA_TP_MODE_DROP + 1 &&
		       SOFTHCA_UB_MODE_SACK == HCA_TP_MODE_SACK + 1,
	       "the public names are the device's");
#define SAME_CHOICE(NAME, bit, word, choice, text) \
	_Static_assert((uint32_t)SOFTHCA_UB_##NAME == (uint32_t)HCA_UB_SWITCH_##NAME, #NAME);
HCA_UB_SWITCH_LIST(SAME_CHOICE)
#undef SAME_CHOICE

static int
start(struct softhca_embed *e, uint32_t i)
{
	struct embed_hca *s = &e->side[i];
	const struct ubagent_config c = {
		.drv = s->drv,
		.thread = e->threads != NULL,
		.seed = e->cfg.seed == 0 ? 0 : ~(e->cfg.seed * EMBED_HCAS_MAX + i),
		.now = embed_agent_now,
		.kick = e->threads != NULL ? embed_agent_kick : NULL,
		.progress = e->threads == NULL ? embed_agent_progress : NULL,
		.arg = s,
		.tps = e->cfg.ub_tps,
		.window = e->cfg.ub_window,
		.rule = e->cfg.ub_rule, /* the numbers of rules, from 1 */
		.spray = e->cfg.ub_spray > 1 ? rte_bsf32(e->cfg.ub_spray) + 1 : 0,
		.reorder_us = e->cfg.ub_reorder_us,
		.choices = e->cfg.ub_choices,
		.mode = e->cfg.ub_mode, /* as the rule, from 1 */
		.sack = e->cfg.ub_sack,
		.exponent = e->cfg.ub_exponent,
	};
	int err = ubagent_create(&c, &s->agent);

	return err == 0 ? 0 : embed_fail(err, "channels of HCA %u: %s", i, hca_driver_reason());
}

int
embed_agents_start(struct softhca_embed *e)
{
	int err = 0;

	for (uint32_t i = 0; i < e->cfg.num_hcas && e->cfg.ub && err == 0; i++)
		err = start(e, i);
	return err;
}

void
embed_agents_stop(struct softhca_embed *e)
{
	for (uint32_t i = 0; i < e->cfg.num_hcas; i++) {
		struct ubagent *agent = e->side[i].agent;

		__atomic_store_n(&e->side[i].agent, NULL, __ATOMIC_RELAXED);
		ubagent_destroy(agent);
	}
}

void
embed_agents_poll(struct softhca_embed *e)
{
	if (e->threads != NULL)
		return;
	for (uint32_t i = 0; i < e->cfg.num_hcas; i++) {
		struct ubagent *agent = __atomic_load_n(&e->side[i].agent, __ATOMIC_RELAXED);

		if (agent != NULL)
			(void)ubagent_poll(agent);
	}
}
