/* SPDX-License-Identifier: BSD-3-Clause */

/* When a polling thread yields: the rule alone, with a simulated clock and scheduler. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cpu_yield.h"

#define ALONE_NS 400u
#define SHARED_NS 2500u
#define TICK_NS 4000u
#define SLICE_NS 2800000u
#define FIRST_YIELDS 3u /* yields until CPU_YIELD_LOST_NS is lost */

/* The simulated CPU */
static uint64_t clock_ns;
static uint64_t switch_count;
static unsigned int yields, naps;
static bool neighbour; /* another thread wants the CPU and yields back */
static bool hog;       /* another thread wants the CPU and never yields */
static bool tick;      /* an interrupt occurs in every yield */

static uint64_t
fake_now(void)
{
	return clock_ns;
}

static void
fake_yield(void)
{
	yields++;
	clock_ns += hog ? SLICE_NS : neighbour ? SHARED_NS : tick ? TICK_NS : ALONE_NS;
	switch_count += neighbour || hog;
}

static void
fake_nap(void)
{
	naps++;
	clock_ns += 20000;
}

static uint64_t
fake_switches(void)
{
	return switch_count;
}

static const struct cpu_yield_system fake = {fake_now, fake_yield, fake_nap, fake_switches};

static int
setup(void **state)
{
	static struct cpu_yield g;

	clock_ns = 1000000;
	switch_count = 77;
	yields = naps = 0;
	neighbour = tick = hog = false;
	memset(&g, 0, sizeof(g));
	g.system = &fake;
	*state = &g;
	return 0;
}

/* Empty polls of 100 ns each for at least this time. */
static void
find_nothing(struct cpu_yield *g, uint64_t ns)
{
	for (uint64_t end = clock_ns + ns; clock_ns < end; clock_ns += 100)
		cpu_yield_empty(g, clock_ns);
}

static void
find_something(struct cpu_yield *g, bool full)
{
	cpu_yield_busy(g, clock_ns, full);
	clock_ns += 100;
}

static void
short_waits_meet_no_probe(void **state)
{
	struct cpu_yield *g = *state;

	for (int i = 0; i < 1000; i++) {
		find_nothing(g, CPU_YIELD_PROBE_NS - 1000);
		find_something(g, false);
	}
	assert_int_equal(yields, 0);
}

static void
long_waits_probe(void **state)
{
	struct cpu_yield *g = *state;

	find_nothing(g, CPU_YIELD_PROBE_NS);
	assert_int_equal(yields, 0);
	find_nothing(g, 1000);
	assert_int_equal(yields, 1);
	assert_false(cpu_yield_shared(g, clock_ns));
	find_nothing(g, 1000000);
	assert_in_range(yields, 90, 101);
}

/* A thread that has woken another one yields before 10 us have passed. */
static void
probe_is_due_soon(void **state)
{
	struct cpu_yield *g = *state;

	cpu_yield_soon(g);
	find_something(g, false);
	assert_int_equal(yields, 0);
	find_nothing(g, 1000);
	assert_int_equal(yields, 1);
	neighbour = true;
	cpu_yield_soon(g);
	find_nothing(g, 100);
	assert_true(cpu_yield_shared(g, clock_ns));
}

/* The age is that of the spell; work ends the spell. */
static void
age(void **state)
{
	struct cpu_yield *g = *state;
	uint64_t begun = clock_ns;

	assert_int_equal(cpu_yield_empty(g, clock_ns), 0);
	find_nothing(g, 50000);
	assert_int_equal(cpu_yield_empty(g, clock_ns), clock_ns - begun);
	find_something(g, false);
	assert_int_equal(cpu_yield_empty(g, clock_ns), 0);
	find_nothing(g, 5000);
	cpu_yield_restart(g);
	assert_int_equal(cpu_yield_empty(g, clock_ns), 0);
}

static void
neighbour_is_met(void **state)
{
	struct cpu_yield *g = *state;
	unsigned int before;

	neighbour = true;
	find_nothing(g, 11000);
	assert_true(cpu_yield_shared(g, clock_ns));
	/* every empty poll yields, from the first of a spell on */
	before = yields;
	for (int i = 0; i < 100; i++) {
		find_something(g, false);
		cpu_yield_empty(g, clock_ns);
	}
	assert_int_equal(yields - before, 100 + 100 / CPU_YIELD_BUSY_POLLS);
}

static void
busy_polls_yield_where_shared(void **state)
{
	struct cpu_yield *g = *state;

	for (int i = 0; i < 100; i++)
		find_something(g, true);
	assert_int_equal(yields, 0);
	neighbour = true;
	find_nothing(g, 11000);
	yields = 0;
	for (int i = 0; i < 10; i++)
		find_something(g, true);
	assert_int_equal(yields, 10);
	for (unsigned int i = 0; i < 4 * CPU_YIELD_BUSY_POLLS; i++)
		find_something(g, false);
	assert_int_equal(yields, 14);
}

/* A thread that finds something in every poll still yields to its neighbour. */
static void
endless_work_probes(void **state)
{
	struct cpu_yield *g = *state;

	for (uint64_t end = clock_ns + 1000000; clock_ns < end;)
		find_something(g, false);
	assert_in_range(yields, 9, 10);
	neighbour = true;
	for (uint64_t end = clock_ns + CPU_YIELD_BUSY_PROBE_NS + 1000; clock_ns < end;)
		find_something(g, false);
	assert_true(cpu_yield_shared(g, clock_ns));
	yields = 0;
	for (unsigned int i = 0; i < 4 * CPU_YIELD_BUSY_POLLS; i++)
		find_something(g, false);
	assert_int_equal(yields, 4);
}

/* With an empty poll in between it need not. */
static void
work_with_pauses_does_not(void **state)
{
	struct cpu_yield *g = *state;

	for (unsigned int i = 0; i < 10000; i++) {
		if (i % 500 == 0)
			cpu_yield_empty(g, clock_ns);
		find_something(g, true);
	}
	assert_int_equal(yields, 0);
}

/* The mode ends 100 to 200 us after the last yield that switched. */
static void
neighbour_leaves(void **state)
{
	struct cpu_yield *g = *state;

	neighbour = true;
	find_nothing(g, 100000);
	neighbour = false;
	find_nothing(g, CPU_YIELD_SHARED_NS / 2 - 3000);
	assert_true(cpu_yield_shared(g, clock_ns));
	find_nothing(g, CPU_YIELD_SHARED_NS / 2 + 3000);
	assert_false(cpu_yield_shared(g, clock_ns));
}

/* An interrupt makes a yield long, but is no neighbour. */
static void
tick_is_no_neighbour(void **state)
{
	struct cpu_yield *g = *state;

	tick = true;
	find_nothing(g, 1000000);
	assert_true(yields > 10);
	assert_false(cpu_yield_shared(g, clock_ns));
	neighbour = true;
	find_nothing(g, 20000);
	assert_true(cpu_yield_shared(g, clock_ns));
	neighbour = false;
	/* a switch that is not counted yet may still be attributed to this yield */
	find_nothing(g, CPU_YIELD_SHARED_NS / 2 * 3 + 5000);
	assert_false(cpu_yield_shared(g, clock_ns));
}

/* A switch between two yields does not belong to the second one. */
static void
old_switch_does_not_count(void **state)
{
	struct cpu_yield *g = *state;

	find_nothing(g, 100000);
	switch_count += 5;
	tick = true;
	find_nothing(g, 100000);
	assert_false(cpu_yield_shared(g, clock_ns));
}

/*
 * Yields would go to the hog: the thread makes only a few, which check whether it is still there.
 */
static void
hog_is_met(void **state)
{
	struct cpu_yield *g = *state;

	hog = true;
	find_nothing(g, CPU_YIELD_LOST_NS + SLICE_NS);
	assert_int_equal(yields, FIRST_YIELDS);
	assert_true(cpu_yield_hogged(g, clock_ns));
	assert_false(cpu_yield_shared(g, clock_ns));
	find_nothing(g, CPU_YIELD_HOGGED_MIN - 2 * SLICE_NS);
	for (int i = 0; i < 1000; i++)
		find_something(g, true);
	assert_int_equal(yields, FIRST_YIELDS);
	find_nothing(g, 5000000000);
	/* 20, 40 ... 640 ms, then 640 each; two yields each time */
	assert_in_range(yields - FIRST_YIELDS, 20, 26);
}

static void
hog_leaves(void **state)
{
	struct cpu_yield *g = *state;

	hog = true;
	find_nothing(g, 1000000000);
	hog = false;
	neighbour = true;
	find_nothing(g, CPU_YIELD_HOGGED_MAX);
	assert_false(cpu_yield_hogged(g, clock_ns));
	assert_true(cpu_yield_shared(g, clock_ns));
	/* a new hog counts as long as the first one did */
	neighbour = false;
	find_nothing(g, 4ull * CPU_YIELD_HOGGED_MAX);
	hog = true;
	yields = 0;
	find_nothing(g, CPU_YIELD_LOST_NS + SLICE_NS);
	assert_int_equal(yields, FIRST_YIELDS);
	assert_int_equal(g->hogged_ns, CPU_YIELD_HOGGED_MIN);
}

/* The CPU was away for a moment: an interrupt of the host, or another session. */
static void
some_long_yields_are_no_hog(void **state)
{
	struct cpu_yield *g = *state;

	neighbour = true;
	for (int i = 0; i < 100; i++) {
		find_nothing(g, CPU_YIELD_LOST_SHARE * SLICE_NS + 50000);
		hog = true;
		cpu_yield_empty(g, clock_ns);
		hog = false;
		assert_false(cpu_yield_hogged(g, clock_ns));
		assert_true(cpu_yield_shared(g, clock_ns));
	}
}

/* A thread that never sleeps yields nevertheless. */
static void
spinner_yields_to_hogs(void **state)
{
	struct cpu_yield *g = *state;

	g->spins = true;
	hog = true;
	find_nothing(g, 100 * SLICE_NS);
	assert_in_range(yields, 99, 101);
}

/* A program with a hog on its CPU polls for quick answers, but sleeps when they take longer. */
static void
program_naps_beside_hogs(void **state)
{
	struct cpu_yield *g = *state;

	g->naps = true;
	hog = true;
	find_nothing(g, CPU_YIELD_LOST_NS + SLICE_NS);
	assert_true(cpu_yield_hogged(g, clock_ns));
	naps = yields = 0;
	for (int i = 0; i < 10; i++) {
		find_something(g, false);
		find_nothing(g, CPU_YIELD_HOGGED_SPIN_NS - 1000);
	}
	assert_int_equal(naps, 0);
	find_something(g, false);
	find_nothing(g, CPU_YIELD_HOGGED_MIN / 2);
	assert_int_equal(yields, 0);
	/* all of that time but its beginning was spent in sleeps of 20 us and a poll each */
	assert_in_range(naps, (CPU_YIELD_HOGGED_MIN / 2 - CPU_YIELD_HOGGED_SPIN_NS) / 20100 - 1,
			(CPU_YIELD_HOGGED_MIN / 2 - CPU_YIELD_HOGGED_SPIN_NS) / 20100 + 2);
	/* a worker has its own way to sleep */
	g->naps = false;
	naps = 0;
	find_nothing(g, CPU_YIELD_HOGGED_MIN / 8);
	assert_int_equal(naps, 0);
}

/* Short yields, then one that lasts a slice. */
static void
have_a_turn(struct cpu_yield *g, uint32_t short_yields)
{
	for (uint32_t y = yields; yields - y < short_yields;)
		find_nothing(g, 1);
	hog = true;
	cpu_yield_empty(g, clock_ns);
	hog = false;
}

/*
 * A hog of another session has its turns in any case: a program goes on yielding to its worker. A
 * hog of its own session takes its yields.
 */
static void
session_of_a_hog(void **state)
{
	struct cpu_yield *g = *state;

	g->naps = true;
	neighbour = true;
	for (int i = 0; i < 100; i++) {
		have_a_turn(g, CPU_YIELD_TURN_YIELDS);
		assert_false(cpu_yield_hogged(g, clock_ns));
		assert_true(cpu_yield_shared(g, clock_ns));
	}
	for (uint64_t lost = 0; lost <= CPU_YIELD_LOST_NS; lost += SLICE_NS) {
		assert_false(cpu_yield_hogged(g, clock_ns));
		have_a_turn(g, CPU_YIELD_TURN_YIELDS - 1);
	}
	assert_true(cpu_yield_hogged(g, clock_ns));
}

/* A worker with the same hog on its CPU sleeps, so that its wake-up gives it the CPU. */
static void
worker_sleeps_in_turns(void **state)
{
	struct cpu_yield *g = *state;

	neighbour = true;
	for (uint64_t lost = 0; lost <= CPU_YIELD_LOST_NS; lost += SLICE_NS)
		have_a_turn(g, CPU_YIELD_TURN_YIELDS);
	assert_true(cpu_yield_hogged(g, clock_ns));
}

static void
naps_are_taken(void **state)
{
	struct cpu_yield *g = *state;

	neighbour = true;
	while (yields < 10 * (CPU_YIELD_NAP_EVERY - 1))
		find_nothing(g, 1);
	assert_in_range(naps, 9, 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(short_waits_meet_no_probe, setup),
		cmocka_unit_test_setup(long_waits_probe, setup),
		cmocka_unit_test_setup(probe_is_due_soon, setup),
		cmocka_unit_test_setup(age, setup),
		cmocka_unit_test_setup(neighbour_is_met, setup),
		cmocka_unit_test_setup(busy_polls_yield_where_shared, setup),
		cmocka_unit_test_setup(endless_work_probes, setup),
		cmocka_unit_test_setup(work_with_pauses_does_not, setup),
		cmocka_unit_test_setup(neighbour_leaves, setup),
		cmocka_unit_test_setup(tick_is_no_neighbour, setup),
		cmocka_unit_test_setup(old_switch_does_not_count, setup),
		cmocka_unit_test_setup(hog_is_met, setup),
		cmocka_unit_test_setup(hog_leaves, setup),
		cmocka_unit_test_setup(some_long_yields_are_no_hog, setup),
		cmocka_unit_test_setup(spinner_yields_to_hogs, setup),
		cmocka_unit_test_setup(program_naps_beside_hogs, setup),
		cmocka_unit_test_setup(session_of_a_hog, setup),
		cmocka_unit_test_setup(worker_sleeps_in_turns, setup),
		cmocka_unit_test_setup(naps_are_taken, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
