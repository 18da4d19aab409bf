/* SPDX-License-Identifier: BSD-3-Clause */

/* The driver's dispatch of operations and its check of the caller, with the rows of own_ops.h. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "driver_types.h"

static unsigned int calls;

static int
plus_one(const uint32_t *request, uint32_t *answer)
{
	calls++;
	*answer = *request + 1;
	return 0;
}

int
driver_op_open(struct hca_client *client, const uint32_t *request, uint32_t *answer)
{
	return plus_one(request, answer);
}

int
driver_op_closed(struct hca_client *client, const uint32_t *request, uint32_t *answer)
{
	return plus_one(request, answer);
}

int
driver_op_open_extra(struct hca_client *client, const uint32_t *request, uint32_t *answer,
		     struct hca_ctl_extra *extra)
{
	extra->fds[0] = 7;
	return plus_one(request, answer);
}

int
driver_op_closed_extra(struct hca_client *client, const uint32_t *request, uint32_t *answer,
		       struct hca_ctl_extra *extra)
{
	extra->fds[0] = 7;
	return plus_one(request, answer);
}

static int
call(bool privileged, enum hca_ctl_op op)
{
	struct hca_driver drv = {.lock.guard = PTHREAD_MUTEX_INITIALIZER};
	struct hca_client client = {.drv = &drv, .privileged = privileged};
	struct hca_ctl_extra extra = {.fds = {-1}};
	uint32_t request = 41, answer = 0;
	int err;

	calls = 0;
	err = hca_client_call(&client, op, &request, &answer, &extra);
	assert_int_equal(calls, err == 0);
	assert_int_equal(answer, err == 0 ? 42 : 0);
	assert_int_equal(extra.fds[0], err == 0 && hca_ctl_shape(op)->fds_out != 0 ? 7 : -1);
	assert_true(driver_lock_try(&drv.lock)); /* released on every way out */
	return err;
}

static void
callers(void **state)
{
	for (int privileged = 0; privileged < 2; privileged++) {
		const int reserved = privileged ? 0 : -EACCES;

		assert_int_equal(call(privileged, HCA_CTL_OPEN), 0);
		assert_int_equal(call(privileged, HCA_CTL_OPEN_EXTRA), 0);
		assert_int_equal(call(privileged, HCA_CTL_CLOSED), reserved);
		assert_int_equal(call(privileged, HCA_CTL_CLOSED_EXTRA), reserved);
	}
	assert_int_equal(call(false, HCA_CTL_CLOSED), -EACCES);
	assert_non_null(strstr(hca_driver_reason(), "closed is for privileged users"));
}

static void
not_of_the_driver(void **state)
{
	for (int privileged = 0; privileged < 2; privileged++) {
		assert_int_equal(call(privileged, HCA_CTL_SOCKET), -EINVAL);
		assert_non_null(strstr(hca_driver_reason(), "socket is no operation"));
		assert_int_equal(call(privileged, HCA_CTL_OP_COUNT), -EINVAL);
		assert_int_equal(call(privileged, UINT32_MAX), -EINVAL);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(callers),
		cmocka_unit_test(not_of_the_driver),
	};

	return cmocka_run_group_tests_name("unit-driver-ops", tests, NULL, NULL);
}
