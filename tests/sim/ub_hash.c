/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * As stepped_hash, of UB: mixed operations over three TPs and bad links.
 *
 *  ub_hash SEED [COUNT]   one line "SEED HASH" for each seed
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ub_mix.h"

int
main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

	for (uint64_t k = seed; k < seed + count; k++) {
		const struct sim_config cfg = {.layout = HCA_LAYOUT_FULL,
					       .executor = SIM_STEPPED,
					       .seed = k};

		sim_set_repeat("ub_hash %" PRIu64, k);
		printf("%" PRIu64 " %016" PRIx64 "\n", k, ub_mix_random(&cfg, 30));
	}
	return 0;
}
