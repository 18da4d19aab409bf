/* SPDX-License-Identifier: BSD-3-Clause */

/* UB's agent of the daemon: a thread that sets up channels to peers (docs/ub.md). */

#include <string.h>
#include <time.h>

#include "endpoint_impl.h"
#include "endpoint_log.h"
#include "graph/sleep.h"
#include "wire/wire_view.h"

uint64_t
endpoint_agent_now(void *arg)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void
endpoint_agent_kick(void *arg)
{
	hca_kick_stage(((struct endpoint *)arg)->hca, HCA_STAGE_DOORBELL);
}

/* The device has no shorter ones. */
static uint32_t
timeout_us(const struct endpoint_config *c)
{
	return c->ub_timeout_us != 0 && c->ub_timeout_us < HCA_TP_RTO_LEAST ? HCA_TP_RTO_LEAST
									    : c->ub_timeout_us;
}

int
endpoint_agent_start(struct endpoint *e)
{
	const struct endpoint_config *c = &e->cfg;
	const struct ubagent_config config = {
		.drv = e->drv,
		.thread = true,
		.asks = true,
		.seed = c->seed == 0 ? 0 : ~c->seed,
		.now = endpoint_agent_now,
		.kick = endpoint_agent_kick,
		.arg = e,
		.tps = c->ub_tps,
		.window = c->ub_window,
		.rule = c->ub_rule + 1,
		.spray = 1 + (uint32_t)__builtin_ctz(c->ub_paths),
		.reorder_us = c->ub_reorder_us,
		.timeout_us = timeout_us(c),
		.choices = c->ub_choices,
		.mode = c->ub_mode,
		.sack = c->ub_sack,
		.exponent = c->ub_exponent + 1,
	};
	int err;

	if (!c->ub)
		return 0;
	err = ubagent_create(&config, &e->agent);
	return err == 0 ? 0
			: endpoint_fail(err, "the agent of UB did not start: %s",
					hca_driver_reason());
}

void
endpoint_agent_stop(struct endpoint *e)
{
	ubagent_destroy(e->agent);
	e->agent = NULL;
}
