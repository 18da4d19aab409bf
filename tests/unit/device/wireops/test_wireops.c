/* SPDX-License-Identifier: BSD-3-Clause */

/* The wires of a configuration: the rows that the device gets, and bits of no wire. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "core/core.h"
#include "wireops/wireops.h"

static struct hca_core h;

static int
set(uint32_t wires)
{
	h.cfg.wires = wires;
	return hca_wires_set(&h);
}

static void
test_rows(void **state)
{
	assert_int_equal(set(HCA_WIRE_BIT(HCA_WIRE_ROCE)), 0);
	assert_ptr_equal(h.wire[HCA_WIRE_ROCE], &hca_wire_roce);
	assert_null(h.wire[HCA_WIRE_UB]);
	assert_null(h.wire[HCA_WIRE_TEST]);
	assert_false(h.mixed);
	assert_int_equal(set(HCA_WIRE_BIT(HCA_WIRE_ROCE) | HCA_WIRE_BIT(HCA_WIRE_UB)), 0);
	assert_ptr_equal(h.wire[HCA_WIRE_UB], &hca_wire_ub);
	assert_true(h.mixed);
	/* the stages of RoCE are there without its bit */
	assert_int_equal(set(HCA_WIRE_BIT(HCA_WIRE_UB)), 0);
	assert_ptr_equal(h.wire[HCA_WIRE_ROCE], &hca_wire_roce);
	assert_ptr_equal(h.wire[HCA_WIRE_UB], &hca_wire_ub);
}

/* Each row names its own place. */
static void
test_places(void **state)
{
	assert_int_equal(hca_wire_roce.wire, HCA_WIRE_ROCE);
	assert_int_equal(hca_wire_ub.wire, HCA_WIRE_UB);
}

static void
test_unknown(void **state)
{
	assert_int_equal(set(HCA_WIRE_BIT(HCA_WIRE_NONE)), -EINVAL);
	assert_int_equal(set(HCA_WIRE_BIT(HCA_WIRES)), -EINVAL);
	assert_int_equal(set(UINT32_MAX), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
