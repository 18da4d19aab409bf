/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What ends the wait of softhca-perf --events between daemons. Each wait reads a pipe into which
 * nobody writes: a wait that does not end lasts until the test is killed.
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
static void
open_pipes(int idle[2], int other[2])
{
	assert_int_equal(pipe(idle), 0);
	assert_int_equal(pipe(other), 0);
}

static void
close_pipes(const int idle[2], const int other[2])
{
	for (unsigned int i = 0; i < 2; i++) {
		close(idle[i]);
		close(other[i]);
	}
}

static void
wait_in_vain(struct perf_wake *w, int fd)
{
	char byte;

	perf_wake_begin(w);
	assert_int_equal(read(fd, &byte, 1), -1);
	assert_int_equal(errno, EINTR);
	perf_wake_end(w);
}

/* Also if the descriptor is readable long before, or just when, the wait begins. */
static void
by_descriptor(void **state)
{
	int idle[2], other[2];
	struct perf_wake *w;

	open_pipes(idle, other);
	assert_int_equal(write(other[1], "x", 1), 1);
	w = perf_wake_start(other[0]);
	assert_non_null(w);
	for (unsigned int i = 0; i < WAITS; i++)
		wait_in_vain(w, idle[0]);
	perf_wake_stop(w);
	close_pipes(idle, other);
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
	int idle[2], other[2];
	struct perf_wake *w;
	pthread_t thread;

	open_pipes(idle, other);
	w = perf_wake_start(other[0]);
	assert_non_null(w);
	assert_int_equal(pthread_create(&thread, NULL, write_soon, &other[1]), 0);
	wait_in_vain(w, idle[0]);
	pthread_join(thread, NULL);
	perf_wake_stop(w);
	close_pipes(idle, other);
}

/* The caller looks around now and then, whatever happens. */
static void
by_time(void **state)
{
	int idle[2], other[2];
	struct perf_wake *w;

	open_pipes(idle, other);
	w = perf_wake_start(-1);
	assert_non_null(w);
	wait_in_vain(w, idle[0]);
	perf_wake_stop(w);
	close_pipes(idle, other);
}

static void
by_interrupt(void **state)
{
	int idle[2], other[2];
	struct perf_wake *w;

	open_pipes(idle, other);
	w = perf_wake_start(other[0]);
	assert_non_null(w);
	__atomic_store_n(&is_interrupted, true, __ATOMIC_RELAXED);
	wait_in_vain(w, idle[0]);
	__atomic_store_n(&is_interrupted, false, __ATOMIC_RELAXED);
	perf_wake_stop(w);
	close_pipes(idle, other);
}

/* Who does not wait is not disturbed: sleep() would return early. */
static void
outside_of_waits(void **state)
{
	int idle[2], other[2];
	struct perf_wake *w;

	open_pipes(idle, other);
	assert_int_equal(write(other[1], "x", 1), 1);
	w = perf_wake_start(other[0]);
	assert_non_null(w);
	assert_int_equal(usleep(100000), 0);
	perf_wake_stop(w);
	close_pipes(idle, other);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_descriptor),    cmocka_unit_test(during_the_wait),
		cmocka_unit_test(by_time),	    cmocka_unit_test(by_interrupt),
		cmocka_unit_test(outside_of_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
