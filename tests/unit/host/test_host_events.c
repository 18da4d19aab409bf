/* SPDX-License-Identifier: BSD-3-Clause */

/* The thread that forwards events: it ends when it is told, whatever it does at that moment. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host_events.h"

#define STARTS 20000u
#define ENOUGH_S 5  /* fewer where the machine is busy */
#define HANGS_S 60u /* only a program that hangs takes so long */

static bool
enough(time_t began)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - began > ENOUGH_S;
}

static time_t
begin(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	alarm(HANGS_S);
	return now.tv_sec;
}

/* Some time, another one for each n, so that the end meets the thread at every place. */
static void
dawdle(uint32_t n)
{
	for (volatile uint32_t i = 0; i < n; i++)
		;
	if (n % 3 == 0)
		sched_yield();
}

/* Started and ended time after time, urged up to so often in between. */
static void
ends_after(uint32_t most)
{
	static struct host_events ev;
	time_t began = begin();

	for (uint32_t i = 0; i < STARTS && !enough(began); i++) {
		memset(&ev, 0, sizeof(ev));
		assert_int_equal(host_events_start(&ev), 0);
		for (uint32_t k = 0; k < i % (most + 1); k++) {
			host_events_urge(&ev);
			dawdle(i % 100);
		}
		dawdle(most == 0 ? i % 1000 : 0);
		host_events_stop(&ev);
		assert_false(ev.runs);
	}
	alarm(0);
}

static void
test_ends(void **state)
{
	(void)state;
	ends_after(0);
}

/* The end is not taken for one more of them. */
static void
test_ends_among_urges(void **state)
{
	(void)state;
	ends_after(7);
}

/* Without a thread there is nothing to wait for. */
static void
test_never_started(void **state)
{
	struct host_events ev = {0};

	(void)state;
	host_events_urge(&ev);
	host_events_stop(&ev);
	host_events_stop(&ev);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_ends_among_urges),
		cmocka_unit_test(test_never_started),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
