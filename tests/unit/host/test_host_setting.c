/* SPDX-License-Identifier: BSD-3-Clause */

/* Settings as text: all are judged before the first one changes. The driver is the test's. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "hca_limits.h"
#include "host_setting.h"

#define ERROR_MAX 127u /* bytes that DPDK's telemetry passes on */

/* Calls of the driver: the algorithm as parameter 0. */
static struct {
	unsigned int n;
	uint32_t number[8], value[8];
	int err; /* of the next call for an algorithm */
} calls;

int __wrap_hca_driver_set_congestion(struct hca_driver *drv, uint32_t number);
int __wrap_hca_driver_set_congestion_parameter(struct hca_driver *drv, uint32_t number,
					       uint32_t value);

static void
note(uint32_t number, uint32_t value)
{
	assert_true(calls.n < 8);
	calls.number[calls.n] = number;
	calls.value[calls.n++] = value;
}

int
__wrap_hca_driver_set_congestion(struct hca_driver *drv, uint32_t number)
{
	(void)drv;
	if (calls.err == 0)
		note(0, number);
	return calls.err;
}

int
__wrap_hca_driver_set_congestion_parameter(struct hca_driver *drv, uint32_t number, uint32_t value)
{
	(void)drv;
	note(number, value);
	return 0;
}

/* The text changes n settings. */
static void
changes(const char *text, unsigned int n)
{
	char why[192];

	memset(&calls, 0, sizeof(calls));
	assert_int_equal(host_setting_change(NULL, text, why, sizeof(why)), 0);
	assert_int_equal(calls.n, n);
}

static void
changed(unsigned int call, uint32_t number, uint32_t value)
{
	assert_int_equal(calls.number[call], number);
	assert_int_equal(calls.value[call], value);
}

/* Nothing changes, and the whole reason gets to the operator. */
static void
refuses(const char *text, const char *reason)
{
	char why[192];

	memset(&calls, 0, sizeof(calls));
	assert_int_equal(host_setting_change(NULL, text, why, sizeof(why)), -EINVAL);
	assert_int_equal(calls.n, 0);
	assert_true(strlen(why) <= ERROR_MAX);
	if (strstr(why, reason) == NULL)
		fail_msg("\"%s\": %s", text, why);
}

static void
several(void **state)
{
	(void)state;
	changes("cnp_dscp=63", 1);
	changed(0, HCA_CC_cnp_dscp, 63);
	changes("swift_base_delay_us=40,congestion=swift,cnp_interval_us=7", 3);
	changed(0, 0, hca_cc_number("swift"));
	changed(1, HCA_CC_swift_base_delay_us, 40);
	changed(2, HCA_CC_cnp_interval_us, 7);
}

/* A wrong one after right ones */
static void
all_or_none(void **state)
{
	(void)state;
	refuses("congestion=swift,cnp_dscp=64", "cnp_dscp: expected 1 to 63, found \"64\"");
	refuses("cnp_interval_us=7,congestion=cubic", "found \"cubic\"");
	refuses("cnp_interval_us=7,", "\"\" is no setting");
	refuses("", "\"\" is no setting");
}

/* The second algorithm could lack memory when the first one has changed. */
static void
twice(void **state)
{
	(void)state;
	refuses("congestion=dcqcn,congestion=swift", "congestion: expected once, found twice");
	refuses("cnp_dscp=5,congestion=swift,cnp_dscp=5", "cnp_dscp: expected once");
	refuses("swift_base_delay_us=40,swift_base_delay_us=41", "swift_base_delay_us: expected");
}

/* An algorithm without memory: the parameters stay as they are. */
static void
no_memory(void **state)
{
	char why[192];

	(void)state;
	memset(&calls, 0, sizeof(calls));
	calls.err = -ENOMEM;
	assert_int_equal(host_setting_change(NULL, "cnp_dscp=5,congestion=swift", why, sizeof(why)),
			 -ENOMEM);
	assert_int_equal(calls.n, 0);
}

/* The reason for a long name has all keys. */
static void
long_names(void **state)
{
	(void)state;
	refuses("an_unknown_name_of_forty_characters_or_so=1", HOST_SETTINGS);
	refuses("cnp_dscp=0000000000000000000000000000000000000000000000000000000000000000000000005",
		"cnp_dscp: expected 1 to 63, found \"00000000000000000000\"");
	refuses("cnp_dscp=000000000000000000000000000000000000000000000000000005beyond",
		"cnp_dscp: expected 1 to 63");
	refuses("congestion=an_algorithm_with_a_name_of_forty_characters",
		"found \"an_algorithm_with_a_\"");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(several),   cmocka_unit_test(all_or_none), cmocka_unit_test(twice),
		cmocka_unit_test(no_memory), cmocka_unit_test(long_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
