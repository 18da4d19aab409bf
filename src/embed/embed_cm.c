/* SPDX-License-Identifier: BSD-3-Clause */

/* Connection management of embedded HCAs: an agent for each. */

#include "embed_impl.h"
#include "ibagent.h"

static int
start(struct softhca_embed *e, uint32_t i)
{
	struct embed_hca *s = &e->side[i];
	const struct ibagent_config c = {
		.drv = s->drv,
		.thread = e->threads != NULL,
		.seed = e->cfg.seed == 0 ? 0 : (e->cfg.seed * EMBED_HCAS_MAX + i) ^ 0x1b,
		.now = embed_agent_now,
		.kick = e->threads != NULL ? embed_agent_kick : NULL,
		.progress = e->threads == NULL ? embed_agent_progress : NULL,
		.arg = s,
	};
	int err = ibagent_create(&c, &s->cm);

	return err == 0 ? 0
			: embed_fail(err, "connection management of HCA %u: %s", i,
				     hca_driver_reason());
}

int
embed_cm_start(struct softhca_embed *e)
{
	int err = 0;

	for (uint32_t i = 0; i < e->cfg.num_hcas && err == 0; i++)
		err = start(e, i);
	return err;
}

void
embed_cm_stop(struct softhca_embed *e)
{
	for (uint32_t i = 0; i < e->cfg.num_hcas; i++) {
		struct ibagent *agent = e->side[i].cm;

		__atomic_store_n(&e->side[i].cm, NULL, __ATOMIC_RELAXED);
		ibagent_destroy(agent);
	}
}

void
embed_cm_poll(struct softhca_embed *e)
{
	if (e->threads != NULL)
		return;
	for (uint32_t i = 0; i < e->cfg.num_hcas; i++) {
		struct ibagent *agent = __atomic_load_n(&e->side[i].cm, __ATOMIC_RELAXED);

		if (agent != NULL)
			(void)ibagent_poll(agent);
	}
}
