/* SPDX-License-Identifier: BSD-3-Clause */

/* Rows of a configuration, bits of no wire; the counters and the values of QPs of a wire. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "engine/impl.h"
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

/* A service is on the wire that offers its capability. */
static void
test_services(void **state)
{
	static const struct hca_wire_ops third = {.wire = HCA_WIRE_TEST, .caps = HCA_CAP_UB};

	assert_int_equal(set(HCA_WIRE_BIT(HCA_WIRE_ROCE)), 0);
	assert_int_equal(hca_service_wire(&h, HCA_ST_RC), HCA_WIRE_ROCE);
	assert_int_equal(hca_service_wire(&h, HCA_ST_XRC_TGT), HCA_WIRE_ROCE);
	assert_int_equal(hca_service_wire(&h, HCA_ST_RD), HCA_WIRE_NONE);
	assert_int_equal(hca_service_wire(&h, HCA_ST_JETTY), HCA_WIRE_NONE);
	assert_null(hca_wire_of_service(&h, HCA_ST_JETTY));
	h.cfg.wire_more = &third;
	assert_int_equal(set(HCA_WIRE_BIT(HCA_WIRE_ROCE)), 0);
	assert_ptr_equal(hca_wire_of_service(&h, HCA_ST_JFS), &third);
	h.cfg.wire_more = NULL;
	assert_int_equal(set(HCA_WIRE_BIT(HCA_WIRE_UB)), 0);
	assert_int_equal(hca_service_wire(&h, HCA_ST_JETTY), HCA_WIRE_UB);
	assert_int_equal(hca_service_wire(&h, HCA_ST_UD), HCA_WIRE_ROCE);
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

/* A counter belongs to the wire whose prefix its name has; UB's alone have one. */
static void
test_counters(void **state)
{
	unsigned int of_ub = 0;

	for (unsigned int i = 0; i < hca_counter_count(); i++) {
		bool is_ub = strncmp(hca_counter_name(i), "ub_", 3) == 0;

		assert_int_equal(hca_counter_wire(i), is_ub ? HCA_WIRE_UB : HCA_WIRE_NONE);
		of_ub += is_ub;
	}
	assert_true(of_ub > 0);
	assert_int_equal(hca_counter_wire(hca_counter_count()), HCA_WIRE_NONE);
}

/* Jettys have values, QPs have none; there are no wires beyond the table. */
static void
test_values(void **state)
{
	unsigned int n = hca_wire_value_count(HCA_WIRE_UB);

	assert_true(n > 0);
	assert_string_equal(hca_wire_value_name(HCA_WIRE_UB, 0), "next_tassn");
	assert_non_null(hca_wire_value_name(HCA_WIRE_UB, n - 1));
	assert_null(hca_wire_value_name(HCA_WIRE_UB, n));
	for (unsigned int wire = 0; wire < HCA_WIRE_ROWS + 1; wire++) {
		if (wire == HCA_WIRE_UB)
			continue;
		assert_int_equal(hca_wire_value_count(wire), 0);
		assert_null(hca_wire_value_name(wire, 0));
	}
}

static void
test_values_of_a_qp(void **state)
{
	static struct hca dev;
	static struct hca_core core;
	static struct hca_qp qp[2];
	uint64_t values[16] = {0};

	dev.core = &core;
	core.qp = qp;
	core.qp_mask = 1;
	core.cfg.wires = HCA_WIRE_BIT(HCA_WIRE_UB);
	assert_int_equal(hca_wires_set(&core), 0);
	qp[1].cfg.local_qpn = 0x101;
	qp[1].cfg.service = HCA_ST_JETTY;
	qp[1].tai.tassn = 7;
	assert_int_equal(hca_wire_values(&dev, HCA_WIRE_UB, 0x101, values), 0);
	assert_int_equal(values[0], 7);
	assert_int_equal(hca_wire_values(&dev, HCA_WIRE_UB, 0x103, values), -ENOENT);
	assert_int_equal(hca_wire_values(&dev, HCA_WIRE_UB, 0, values), -ENOENT);
	assert_int_equal(hca_wire_values(&dev, HCA_WIRE_ROCE, 0x101, values), -ENOENT);
	qp[1].cfg.service = HCA_ST_RC;
	assert_int_equal(hca_wire_values(&dev, HCA_WIRE_UB, 0x101, values), -ENOENT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),	       cmocka_unit_test(test_services),
		cmocka_unit_test(test_places),	       cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_counters),       cmocka_unit_test(test_values),
		cmocka_unit_test(test_values_of_a_qp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
