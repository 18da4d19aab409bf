/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Seeded random runs over a bad link, in every layout.
 *
 *   test_random [--seed FIRST] [--seeds COUNT] [--layout NAME] [--ops N] [--clean]
 *
 * NAME: rtc, txrx, full, stepped, threads-rtc, threads-txrx, threads-full; threads is these three.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_mix.h"

static const struct {
	const char *name;
	enum hca_layout layout;
	enum sim_executor executor;
} ways[] = {
	{"rtc", HCA_LAYOUT_RTC, SIM_DIRECT},
	{"txrx", HCA_LAYOUT_TXRX, SIM_DIRECT},
	{"full", HCA_LAYOUT_FULL, SIM_DIRECT},
	{"stepped", HCA_LAYOUT_FULL, SIM_STEPPED},
	/* real time and real races: not repeatable, so only few seeds by default */
	{"threads-rtc", HCA_LAYOUT_RTC, SIM_THREADS},
	{"threads-txrx", HCA_LAYOUT_TXRX, SIM_THREADS},
	{"threads-full", HCA_LAYOUT_FULL, SIM_THREADS},
};

#define WAYS (sizeof(ways) / sizeof(ways[0]))
#define THREADS_EVERY 15u

static void
run(uint64_t seed, unsigned int way, unsigned int ops, bool clean)
{
	struct sim_mix mix = {
		.cfg = {.layout = ways[way].layout, .executor = ways[way].executor, .seed = seed},
		.ops = ops,
		.max_pairs = 6,
		.max_len = 40000,
	};

	if (!clean)
		mix.impair = sim_bad_link;
	sim_set_repeat("test_random --seed %" PRIu64 " --seeds 1 --layout %s --ops %u%s", seed,
		       ways[way].name, ops, clean ? " --clean" : "");
	sim_mix_run(&mix);
}

/* The selected layouts; by default all, those with threads only for some seeds. */
static bool
chosen(const char *layout, unsigned int way, uint64_t number)
{
	bool threads = ways[way].executor == SIM_THREADS;

	if (layout != NULL && strcmp(layout, "threads") != 0)
		return strcmp(layout, ways[way].name) == 0;
	return threads ? number % THREADS_EVERY == 0 : layout == NULL;
}

int
main(int argc, char **argv)
{
	uint64_t seed = sim_env("SIM_SEED", 1), seeds = sim_env("SIM_SEEDS", 30);
	const char *layout = getenv("SIM_LAYOUT");
	unsigned int ops = 2000;
	bool clean = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--clean") == 0)
			clean = true;
		else if (i + 1 == argc)
			break;
		else if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[++i], NULL, 0);
		else if (strcmp(argv[i], "--seeds") == 0)
			seeds = strtoull(argv[++i], NULL, 0);
		else if (strcmp(argv[i], "--ops") == 0)
			ops = (unsigned int)strtoul(argv[++i], NULL, 0);
		else if (strcmp(argv[i], "--layout") == 0)
			layout = argv[++i];
	}
	for (uint64_t k = seed; k < seed + seeds; k++)
		for (unsigned int w = 0; w < WAYS; w++)
			if (chosen(layout, w, k - seed))
				run(k, w, ops, clean);
	printf("%" PRIu64 " seeds from %" PRIu64 ": all well\n", seeds, seed);
	return 0;
}
