/* SPDX-License-Identifier: BSD-3-Clause */

/* Which workers share a CPU, and the table of docs/pipeline.md, whose path is the argument. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <rte_common.h>

#include "core/wires.h"
#include "graph/layout.h"

#define ROCE HCA_WIRE_BIT(HCA_WIRE_ROCE)
#define BOTH HCA_WIRES_ALL
#define PIPES_MAX 4u

static const char *page;

/* For each number of CPUs: all are used, and fewer than workers only if there are fewer. */
static void
every_cpu_is_used(void **state)
{
	(void)state;
	for (unsigned int layout = 0; layout < HCA_LAYOUTS; layout++)
		for (unsigned int ub = 0; ub < 2; ub++) {
			uint32_t wires = ub ? BOTH : ROCE;
			unsigned int workers = hca_layout_workers(layout, 1, wires);

			for (unsigned int cpus = 1; cpus < 2 * workers; cpus++) {
				uint32_t used = 0;

				for (unsigned int w = 0; w < workers; w++)
					used |= 1u << hca_layout_cpu(layout, 1, wires, cpus, w);
				assert_int_equal(used, (1u << RTE_MIN(cpus, workers)) - 1);
			}
		}
}

/* With two CPUs `full` is divided as `txrx` is. */
static void
halves(void **state)
{
	(void)state;
	for (unsigned int s = 0; s < HCA_STAGE_N; s++) {
		unsigned int worker = hca_layout_worker(HCA_LAYOUT_FULL, BOTH, s);

		assert_int_equal(hca_layout_cpu(HCA_LAYOUT_FULL, 1, BOTH, 2, worker),
				 hca_layout_worker(HCA_LAYOUT_TXRX, BOTH, s));
	}
}

/* Pipelines have CPUs apart if there is one for each, and divide the CPUs evenly. */
static void
pipelines(void **state)
{
	(void)state;
	for (unsigned int pipes = 1; pipes <= PIPES_MAX; pipes *= 2)
		for (unsigned int cpus = 1; cpus <= 9 * pipes; cpus++) {
			unsigned int all = hca_layout_workers(HCA_LAYOUT_FULL, pipes, ROCE);
			uint64_t used[PIPES_MAX] = {0};

			if (cpus >= all)
				break;
			for (unsigned int w = 0, pipe = 0; w < all; w++) {
				unsigned int cpu =
					hca_layout_cpu(HCA_LAYOUT_FULL, pipes, ROCE, cpus, w);

				while (w >= hca_layout_workers(HCA_LAYOUT_FULL, pipe + 1, ROCE))
					pipe++;
				assert_true(cpu < cpus);
				used[pipe] |= 1ull << cpu;
			}
			for (unsigned int p = 0; p < pipes; p++) {
				unsigned int n = (unsigned int)__builtin_popcountll(used[p]);

				assert_true(n >= RTE_MAX(RTE_MIN(cpus / pipes, 8u), 1u));
				for (unsigned int q = 0; q < p && cpus >= pipes; q++)
					assert_int_equal(used[p] & used[q], 0);
			}
		}
	for (unsigned int w = 0; w < 4; w++)
		assert_int_equal(hca_layout_cpu(HCA_LAYOUT_RTC, 4, ROCE, 2, w), w % 2);
	/* txrx: both halves of a pipeline on one CPU */
	for (unsigned int w = 0; w < 4; w++)
		assert_int_equal(hca_layout_cpu(HCA_LAYOUT_TXRX, 2, ROCE, 2, w), w / 2);
}

static void
short_text(void **state)
{
	char text[8];

	(void)state;
	hca_layout_plan(HCA_LAYOUT_FULL, BOTH, 4, text, sizeof(text));
	assert_string_equal(text, "doorbel");
}

static bool
page_has(const char *row)
{
	FILE *f = fopen(page, "re");
	bool found = false;
	char line[1024];

	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f) != NULL)
		found = strcmp(line, row) == 0;
	fclose(f);
	return found;
}

/* docs/pipeline.md has the plans of layout full, a row for each number of CPUs. */
static void
plans_in_the_docs(void **state)
{
	static const unsigned int cpus[] = {2, 4, 8, 13};
	unsigned int missing = 0;

	(void)state;
	for (unsigned int i = 0; i < RTE_DIM(cpus); i++) {
		char roce[HCA_LAYOUT_PLAN_BYTES], both[HCA_LAYOUT_PLAN_BYTES];
		char row[2 * HCA_LAYOUT_PLAN_BYTES + 32];

		hca_layout_plan(HCA_LAYOUT_FULL, ROCE, cpus[i], roce, sizeof(roce));
		hca_layout_plan(HCA_LAYOUT_FULL, BOTH, cpus[i], both, sizeof(both));
		snprintf(row, sizeof(row), "| %u | %s | %s |\n", cpus[i], roce, both);
		if (page_has(row))
			continue;
		print_error("%s has no row\n%s", page, row);
		missing++;
	}
	assert_int_equal(missing, 0);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_cpu_is_used), cmocka_unit_test(halves),
		cmocka_unit_test(pipelines),	     cmocka_unit_test(short_text),
		cmocka_unit_test(plans_in_the_docs),
	};

	page = argc > 1 ? argv[1] : "docs/pipeline.md";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
