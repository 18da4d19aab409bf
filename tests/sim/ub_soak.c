/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * UB with real threads that race on all CPUs: mixed operations over three TPs and bad links, whose
 * HCAs come and go.
 *
 *  ub_soak LAYOUT SECONDS [SEED]
 */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "ub_mix.h"

#define REQUESTS 200u

/* The device's clock does not run before the EAL does. */
static uint64_t
seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec;
}

int
main(int argc, char **argv)
{
	int layout = argc > 1 ? sim_layout_of(argv[1]) : -1;
	uint64_t seconds = argc > 2 ? strtoull(argv[2], NULL, 0) : 3;
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : sim_env("SIM_SEED", 1);
	uint64_t end = seconds_now() + seconds;
	unsigned int runs = 0;

	if (layout < 0) {
		fprintf(stderr, "usage: ub_soak rtc|txrx|full [SECONDS [SEED]]\n");
		return 2;
	}
	do {
		const struct sim_config cfg = {.layout = (enum hca_layout)layout,
					       .executor = SIM_THREADS,
					       .all_cpus = true,
					       .seed = seed + runs++};

		sim_set_repeat("ub_soak %s 1 %llu", argv[1], (unsigned long long)cfg.seed);
		ub_mix_random(&cfg, REQUESTS);
	} while (seconds_now() < end);
	printf("layout %s: %u runs of %u requests a side\n", argv[1], runs, REQUESTS);
	return 0;
}
