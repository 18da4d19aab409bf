/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_UB_AGENTS_H
#define TESTS_SIM_UB_AGENTS_H

/*
 * The channels of a pair as hosts make them: an agent on each side, whose messages go over the link
 * to Jetty 0 of the other one. They run when they are polled, and while a program waits for a peer
 * that it imports.
 */

#include "ub_pair.h"

#include "ubagent.h"

extern const struct ub_pair_maker ub_agents;

/* One turn of the agent of that side; not within a call of a driver. */
void ub_agents_poll(unsigned int side);
uint64_t ub_agents_counter(struct ub_pair *p, unsigned int side, const char *name);
/* Messages that were dropped, whatever the reason. */
uint64_t ub_agents_dropped(struct ub_pair *p, unsigned int side);

/* An import without waiting for it; whether it is up. */
uint32_t ub_agents_import(struct ub_pair *p, struct lib_context *client, enum sim_gid gid,
			  unsigned int peer);
bool ub_agents_is_up(struct ub_pair *p, struct lib_context *client, uint32_t number, uint32_t *tpg);

#endif
