/* SPDX-License-Identifier: BSD-3-Clause */

#include "ub_agents.h"

#define WAIT_NS (30000 * UB_PAIR_MS)

static struct ubagent *agents[2];
static struct ub_pair *pair;

#define CALL(p, ctx, NAME, request, answer) \
	do { \
		int rc_ = urma_inside()->call(ctx, HCA_CTL_##NAME, HCA_CTL_REQUEST(NAME, request), \
					      HCA_CTL_ANSWER(NAME, answer), NULL); \
		sim_check((p)->s, rc_ == 0, #NAME ": %d: %s", rc_, softhca_last_error(NULL)); \
	} while (0)

static uint64_t
now(void *arg)
{
	return ((struct sim *)arg)->now;
}

static void
progress(void *arg)
{
	sim_poll(arg);
}

static void
open_agents(struct ub_pair *p)
{
	pair = p;
	for (unsigned int i = 0; i < 2; i++) {
		const struct ubagent_config c = {.drv = p->s->side[i].drv,
						 .seed = 2 * p->cfg.sim.seed + i + 1,
						 .now = now,
						 .progress = progress,
						 .arg = p->s,
						 .tps = 1,
						 .window = HCA_TP_WINDOW_PACKETS(1),
						 .timeout_us = p->cfg.rto_base};
		int rc = ubagent_create(&c, &agents[i]);

		sim_check(p->s, rc == 0, "agent: %d: %s", rc, hca_driver_reason());
	}
}

static void
close_agents(struct ub_pair *p)
{
	for (unsigned int i = 0; i < 2; i++)
		ubagent_destroy(agents[i]);
}

void
ub_agents_poll(unsigned int side)
{
	ubagent_poll(agents[side]);
}

/* The sum of those whose names begin so; exact: the one of that name. */
static uint64_t
counters(struct ub_pair *p, unsigned int side, const char *name, bool exact)
{
	uint64_t value, sum = 0;
	bool found = false;
	const char *n;

	for (uint32_t k = 0;; k++) {
		n = hca_driver_agent_counter(p->s->side[side].drv, k, &value);
		if (n == NULL)
			break;
		if (exact ? strcmp(n, name) != 0 : strncmp(n, name, strlen(name)) != 0)
			continue;
		found = true;
		sum += value;
	}
	sim_check(p->s, found, "no counter %s", name);
	return sum;
}

uint64_t
ub_agents_counter(struct ub_pair *p, unsigned int side, const char *name)
{
	return counters(p, side, name, true);
}

uint64_t
ub_agents_dropped(struct ub_pair *p, unsigned int side)
{
	return counters(p, side, "cm_dropped_", false);
}

/* ---- imports ---- */

uint32_t
ub_agents_import(struct ub_pair *p, struct lib_context *client, enum sim_gid gid, unsigned int peer)
{
	struct hca_ctl_peer request = {.gid_index = gid};
	uint32_t number;

	sim_gid(peer, gid, request.eid);
	CALL(p, client, IMPORT_PEER, &request, &number);
	return number;
}

bool
ub_agents_is_up(struct ub_pair *p, struct lib_context *client, uint32_t number, uint32_t *tpg)
{
	struct hca_ctl_peer_state state;

	CALL(p, client, QUERY_PEER, &number, &state);
	*tpg = state.tpg;
	return state.up != 0;
}

static int
import_peer(struct lib_context *ctx, const struct urma_ctl_peer *request, uint32_t *number,
	    uint32_t *tpg)
{
	struct ub_pair *p = pair;
	uint64_t end = p->s->now + WAIT_NS;
	uint8_t eid[16];

	sim_gid(1, request->gid_index, eid);
	*number = ub_agents_import(p, ctx, request->gid_index, memcmp(request->eid, eid, 16) == 0);
	while (!ub_agents_is_up(p, ctx, *number, tpg)) {
		sim_check(p->s, p->s->now < end, "no channel to the peer");
		sim_poll(p->s);
		for (unsigned int i = 0; i < 2; i++)
			ub_agents_poll(i);
	}
	return 0;
}

static int
unimport_peer(struct lib_context *ctx, uint32_t number)
{
	CALL(pair, ctx, UNIMPORT_PEER, &number, NULL);
	return 0;
}

const struct ub_pair_maker ub_agents = {.open = open_agents,
					.close = close_agents,
					.import_peer = import_peer,
					.unimport_peer = unimport_peer};
