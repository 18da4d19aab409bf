/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The stepped executor: a hash over all frames, completions and counters of two random runs with
 * faults, one of all operations of reliable services, one of SENDs of a service. Equal seeds give
 * equal hashes in any process. Every third seed has one worker, as queues are written in another
 * way then.
 *
 *  stepped_hash SEED [COUNT [singles]]   one line "SEED HASH" for each seed
 *
 * singles: the operations are mostly one short message for each of many QPs.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_mix.h"
#include "sim_tagged.h"

#define SENDS 100u
/* short, so that most messages are within the time in which a QP takes one sample of the RTT */
#define SINGLES_TICK_NS 2u

static void
send_some(struct sim *s, struct sim_tagged *t)
{
	struct sim_rng *r = &sim_model(s)->rng;

	for (unsigned int sent = 0, tries = 0; sent < SENDS && tries < 100 * SENDS; tries++) {
		bool one = sim_tagged_send(t, sim_below(r, 2), sim_below(r, t->attr.flows));

		sent += one;
		if (!one || sim_below(r, 8) == 0)
			sim_poll(s);
		sim_tagged_reap(t);
		sim_tagged_fill(t);
	}
	sim_tagged_finish(t);
}

/* SENDs of a service, from and to several QPs, with or without an SRQ. */
static uint64_t
hash_sends(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);
	struct sim_rng r = {.s = cfg->seed * 91 + 3};
	struct sim_tagged_attr a = {
		.service = sim_below(&r, SIM_SERVICES),
		.gid = sim_below(&r, SIM_GIDS),
		.flows = 1 + sim_below(&r, 3),
		.max_len = 1000,
		.read = sim_below(&r, 4) == 0,
	};
	struct sim_tagged *t;
	uint64_t hash;

	a.srq = a.service != SIM_UC && sim_below(&r, 2);
	t = sim_tagged_open(s, &a);
	t->duplicates = true;
	sim_impair(s, 0, &sim_bad_link);
	sim_impair(s, 1, &sim_bad_link);
	send_some(s, t);
	hash = sim_hash_all(s);
	sim_tagged_close(t);
	sim_close(s);
	return hash;
}

int
main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	bool singles = argc > 3 && strcmp(argv[3], "singles") == 0;

	for (uint64_t k = seed; k < seed + count; k++) {
		enum hca_layout layout = k % 3 == 0 ? HCA_LAYOUT_RTC : HCA_LAYOUT_FULL;
		const struct sim_mix mix = {
			.cfg = {.layout = layout,
				.executor = SIM_STEPPED,
				.seed = k,
				.tick_ns = singles ? SINGLES_TICK_NS : 0},
			.ops = singles ? 600 : 150,
			.max_pairs = singles ? 8 : 4,
			.max_len = 10000,
			.impair = sim_bad_link,
			.singles = singles,
		};

		sim_set_repeat("stepped_hash %" PRIu64 "%s", k, singles ? " 1 singles" : "");
		printf("%" PRIu64 " %016" PRIx64 "\n", k, sim_mix_run(&mix) ^ hash_sends(&mix.cfg));
	}
	return 0;
}
