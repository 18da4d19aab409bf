/* SPDX-License-Identifier: BSD-3-Clause */

/* A guest's clock is judged wrong if and only if that is proved. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "host_clock.h"

#define S 1000000000ull

/* The guest reported 0 between 10 and 10 + delay, and `went` between 20 and 20 + delay. */
static bool
is_wrong(uint64_t delay, uint64_t went)
{
	struct host_clock c;
	char text[128];

	host_clock_begin(&c, 10 * S, 10 * S + delay, 5 * S);
	host_clock_heard(&c, 20 * S, 20 * S + delay, 5 * S + went);
	return host_clock_is_wrong(&c, text, sizeof(text));
}

static void
goes_right(void **state)
{
	(void)state;
	assert_false(is_wrong(0, 10 * S));
	assert_false(is_wrong(S, 10 * S));
	assert_false(is_wrong(0, 12 * S));
	assert_false(is_wrong(0, 9 * S));
}

static void
goes_wrong(void **state)
{
	(void)state;
	assert_true(is_wrong(0, 30 * S));
	assert_true(is_wrong(S, 30 * S));
	assert_true(is_wrong(0, 13 * S));
	assert_true(is_wrong(0, 3 * S));
	assert_true(is_wrong(S, 3 * S));
	assert_true(is_wrong(0, 0));
}

/* Delayed lines, or a single one, prove nothing. */
static void
nothing_is_proved(void **state)
{
	struct host_clock c;
	char text[128];

	(void)state;
	assert_false(is_wrong(10 * S, 20 * S));
	assert_false(is_wrong(10 * S, 0));
	host_clock_begin(&c, 10 * S, 11 * S, 500 * S);
	assert_false(host_clock_is_wrong(&c, text, sizeof(text)));
	assert_non_null(text[0] != '\0' ? text : NULL);
}

/* The next machine counts from its own start. */
static void
begins_anew(void **state)
{
	struct host_clock c;
	char text[128];

	(void)state;
	host_clock_begin(&c, 10 * S, 10 * S, 5 * S);
	host_clock_heard(&c, 20 * S, 20 * S, 50 * S);
	assert_true(host_clock_is_wrong(&c, text, sizeof(text)));
	host_clock_begin(&c, 30 * S, 30 * S, 2 * S);
	host_clock_heard(&c, 40 * S, 40 * S, 12 * S);
	assert_false(host_clock_is_wrong(&c, text, sizeof(text)));
}

static void
counter_is_measured(void **state)
{
	uint32_t a = host_tsc_khz(), b = host_tsc_khz();

	(void)state;
	assert_true(a <= b + b / 50 && b <= a + a / 50);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_right),	       cmocka_unit_test(goes_wrong),
		cmocka_unit_test(nothing_is_proved),   cmocka_unit_test(begins_anew),
		cmocka_unit_test(counter_is_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
