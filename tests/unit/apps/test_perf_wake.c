/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Ends of the wait of softhca-perf --events between daemons. Each wait reads a pipe without a
 * writer: a wait that does not end lasts until the test is killed.
 */

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "perf.h"
#include "perf_wake.h"

#define WAITS 200u

static bool is_interrupted;

bool
perf_interrupted(void)
{
	return __atomic_load_n(&is_interrupted, __ATOMIC_RELAXED);
}

/* Both ends of two pipes: one is waited for, the other ends waiting. */
struct place {
	int idle[2], other[2];
	struct perf_wake *w;
};

static int
set_up(void **state)
{
	static struct place place;

	place.w = NULL;
	*state = &place;
	return pipe(place.idle) != 0 || pipe(place.other) != 0;
}

static int
tear_down(void **state)
{
	struct place *p = *state;

	perf_wake_stop(p->w);
	for (unsigned int i = 0; i < 2; i++) {
		close(p->idle[i]);
		close(p->other[i]);
	}
	return 0;
}

static void
start(struct place *p, int fd)
{
	p->w = perf_wake_start(fd);
	assert_non_null(p->w);
}

static void
wait_in_vain(struct place *p)
{
	char byte;

	perf_wake_begin(p->w);
	assert_int_equal(read(p->idle[0], &byte, 1), -1);
	assert_int_equal(errno, EINTR);
	perf_wake_end(p->w);
}

/* Also if the descriptor is readable long before, or just when, the wait begins. */
static void
by_descriptor(void **state)
{
	struct place *p = *state;

	assert_int_equal(write(p->other[1], "x", 1), 1);
	start(p, p->other[0]);
	for (unsigned int i = 0; i < WAITS; i++)
		wait_in_vain(p);
}

static void *
write_soon(void *arg)
{
	usleep(20000);
	assert_int_equal(write(*(int *)arg, "x", 1), 1);
	return NULL;
}

static void
during_the_wait(void **state)
{
	struct place *p = *state;
	pthread_t thread;

	start(p, p->other[0]);
	assert_int_equal(pthread_create(&thread, NULL, write_soon, &p->other[1]), 0);
	wait_in_vain(p);
	pthread_join(thread, NULL);
}

/* The caller looks around now and then, whatever happens. */
static void
by_time(void **state)
{
	struct place *p = *state;

	start(p, -1);
	wait_in_vain(p);
}

static void
by_interrupt(void **state)
{
	struct place *p = *state;

	start(p, p->other[0]);
	__atomic_store_n(&is_interrupted, true, __ATOMIC_RELAXED);
	wait_in_vain(p);
	__atomic_store_n(&is_interrupted, false, __ATOMIC_RELAXED);
}

/* A thread that does not wait is not disturbed: sleep() would return early. */
static void
outside_of_waits(void **state)
{
	struct place *p = *state;

	assert_int_equal(write(p->other[1], "x", 1), 1);
	start(p, p->other[0]);
	assert_int_equal(usleep(100000), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(by_descriptor, set_up, tear_down),
		cmocka_unit_test_setup_teardown(during_the_wait, set_up, tear_down),
		cmocka_unit_test_setup_teardown(by_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(by_interrupt, set_up, tear_down),
		cmocka_unit_test_setup_teardown(outside_of_waits, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
