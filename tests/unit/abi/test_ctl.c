/* SPDX-License-Identifier: BSD-3-Clause */

/* Rules of the control channel for ends of other versions, with rows that have grown. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define HCA_CTL_GROWN(X) \
	X(QUERY_GID, 4, 24) \
	X(CREATE_QP, 40, 4)

#include "abi_ops.h"

static void
sizes_of_grown_rows(void **state)
{
	struct hca_ctl_sizes s = hca_ctl_sizes(HCA_CTL_QUERY_GID, 0);

	assert_true(s.request == 4 && s.answer == 24);
	s = hca_ctl_sizes(HCA_CTL_QUERY_GID, 1);
	assert_true(s.request == 4 && s.answer == sizeof(struct hca_ctl_gid));
	s = hca_ctl_sizes(HCA_CTL_CREATE_QP, 0);
	assert_true(s.request == 40 && s.answer == 4);
	s = hca_ctl_sizes(HCA_CTL_CREATE_QP, HCA_CTL_MINOR);
	assert_true(s.request == sizeof(struct hca_ctl_qp));
	s = hca_ctl_sizes(HCA_CTL_QUERY_PORT, 0);
	assert_true(s.request == 4 && s.answer == sizeof(struct hca_ctl_port));
}

static void
common_versions(void **state)
{
	assert_int_equal(hca_ctl_common(7, 0, 7, 0), 7);
	assert_int_equal(hca_ctl_common(7, 0, 8, 0), -1);
	assert_int_equal(hca_ctl_common(7, 0, 8, 1), 7);
	assert_int_equal(hca_ctl_common(8, 1, 7, 0), 7);
	assert_int_equal(hca_ctl_common(8, 1, 7, 3), 7);
	assert_int_equal(hca_ctl_common(9, 1, 7, 3), -1);
	assert_int_equal(hca_ctl_common(0xffff, 255, 7, 255), -1);
	assert_int_equal(hca_ctl_common(7, 7, 0, 0), 0);
}

/* Each row has the oldest version to which an end may send it. */
static void
rows_and_features(void **state)
{
	for (uint32_t op = 0; op < HCA_CTL_OP_COUNT; op++)
		assert_true(hca_ctl_shape(op)->since <= HCA_CTL_MINOR);
	assert_null(hca_ctl_shape(HCA_CTL_OP_COUNT));
	assert_int_equal(HCA_CTL_FEATURES & HCA_CTL_FEATURE_JETTY_RESET, 1);
	assert_true(HCA_CTL_OLDER <= HCA_CTL_VERSION);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_of_grown_rows),
		cmocka_unit_test(common_versions),
		cmocka_unit_test(rows_and_features),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
