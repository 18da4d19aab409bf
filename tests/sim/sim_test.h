/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_SIM_TEST_H
#define TESTS_SIM_SIM_TEST_H

/*
 * Shared by the cmocka programs. Each takes SIM_SEED and SIM_LAYOUT (rtc, txrx, full, stepped, or
 * several with commas between them) from the environment; by default every test runs in all
 * layouts.
 */

#include <stdlib.h>
#include <string.h>

#include "sim_model.h"

#include <cmocka.h>

struct sim_way {
	const char *name;
	enum hca_layout layout;
	enum sim_executor executor;
};

static const struct sim_way sim_ways[] = {
	{"rtc", HCA_LAYOUT_RTC, SIM_DIRECT},
	{"txrx", HCA_LAYOUT_TXRX, SIM_DIRECT},
	{"full", HCA_LAYOUT_FULL, SIM_DIRECT},
	{"stepped", HCA_LAYOUT_FULL, SIM_STEPPED},
};

#define SIM_WAYS (sizeof(sim_ways) / sizeof(sim_ways[0]))

static inline void
sim_cmocka_fail(void)
{
	fail();
}

static inline bool
sim_way_wanted(const struct sim_way *w)
{
	const char *v = getenv("SIM_LAYOUT");

	while (v != NULL && *v != '\0') {
		size_t n = strcspn(v, ",");

		if (n == strlen(w->name) && memcmp(v, w->name, n) == 0)
			return true;
		v += n + (v[n] == ',');
		if (*v == '\0')
			return false;
	}
	return true;
}

/* Run fn in every selected layout; the command line that repeats it has its name and seed. */
static inline void
sim_each_way(const char *program, const char *test, void (*fn)(const struct sim_config *cfg))
{
	uint64_t seed = sim_env("SIM_SEED", 1);

	for (unsigned int i = 0; i < SIM_WAYS; i++) {
		const struct sim_config cfg = {.layout = sim_ways[i].layout,
					       .executor = sim_ways[i].executor,
					       .seed = seed};

		if (!sim_way_wanted(&sim_ways[i]))
			continue;
		sim_set_repeat("SIM_SEED=%llu SIM_LAYOUT=%s CMOCKA_TEST_FILTER=%s %s",
			       (unsigned long long)seed, sim_ways[i].name, test, program);
		fn(&cfg);
	}
}

/* Define test n: runs the function whose name is n and "_in" in every layout. */
#define SIM_TEST(n) \
	static void n(void **state) \
	{ \
		(void)state; \
		sim_each_way(PROGRAM, #n, n##_in); \
	}

static inline int
sim_main_of(const struct CMUnitTest *tests, size_t n)
{
	const char *filter = getenv("CMOCKA_TEST_FILTER"), *skip = getenv("CMOCKA_SKIP_FILTER");

	sim_on_fail = sim_cmocka_fail;
	if (filter != NULL)
		cmocka_set_test_filter(filter);
	if (skip != NULL)
		cmocka_set_skip_filter(skip);
	return _cmocka_run_group_tests("sim", tests, n, NULL, NULL);
}

#endif
