/* SPDX-License-Identifier: BSD-3-Clause */

/* Connection management of the daemon: its agent, with a thread (docs/use.md). */

#include "endpoint_impl.h"
#include "endpoint_log.h"

static void
group(void *arg, uint32_t gid_index, const uint8_t mgid[16], bool joined)
{
	struct endpoint *e = arg;

	(void)endpoint_kernel_group(&e->kernel, gid_index, mgid, joined); /* counted there */
}

int
endpoint_cm_start(struct endpoint *e)
{
	const struct endpoint_config *c = &e->cfg;
	const struct ibagent_config config = {
		.drv = e->drv,
		.thread = true,
		.asks = true,
		.seed = c->seed == 0 ? 0 : c->seed ^ 0x1b,
		.now = endpoint_agent_now,
		.kick = endpoint_agent_kick,
		.group = group,
		.arg = e,
		.limits = c->cm_limits,
		.user_share = c->quota.user_share,
		.pings_off = !c->ping,
	};
	int err;

	if (!c->cm) {
		LOG_INFO("%s: no connection management ([cm] enabled = no)", c->name);
		return 0;
	}
	err = ibagent_create(&config, &e->cm);
	return err == 0 ? 0
			: endpoint_fail(err, "connection management did not start: %s",
					hca_driver_reason());
}

void
endpoint_cm_stop(struct endpoint *e)
{
	ibagent_destroy(e->cm);
	e->cm = NULL;
}
