/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The stepped executor: a hash over all frames, completions and counters of a random run with
 * faults. Equal seeds give equal hashes in any process.
 *
 *  stepped_hash SEED [COUNT]   one line "SEED HASH" for each seed
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim_mix.h"

int
main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

	for (uint64_t k = seed; k < seed + count; k++) {
		const struct sim_mix mix = {
			.cfg = {.layout = HCA_LAYOUT_FULL, .executor = SIM_STEPPED, .seed = k},
			.ops = 150,
			.max_pairs = 4,
			.max_len = 10000,
			.impair = sim_bad_link,
		};

		sim_set_repeat("stepped_hash %" PRIu64, k);
		printf("%" PRIu64 " %016" PRIx64 "\n", k, sim_mix_run(&mix));
	}
	return 0;
}
