/* SPDX-License-Identifier: BSD-3-Clause */

/* When clients of a user with losses may begin. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ipc_turns.h"

#define MOST 100u
#define ONE 1001u
#define OTHER 1002u
#define START 50000u

static struct ipc_turns turns;

static int
setup(void **state)
{
	ipc_turns_init(&turns, MOST);
	return 0;
}

static int
teardown(void **state)
{
	ipc_turns_free(&turns);
	return 0;
}

static uint32_t
take(uid_t uid, uint64_t after)
{
	return ipc_turns_take(&turns, uid, START + after);
}

static void
nobody_waits(void **state)
{
	for (unsigned int i = 0; i < 10; i++)
		assert_int_equal(take(ONE, 0), 0);
}

/* One client in each interval; the other user's are not concerned. */
static void
one_by_one(void **state)
{
	ipc_turns_lost(&turns, ONE, START);
	assert_int_equal(take(ONE, 0), 20);
	assert_int_equal(take(ONE, 19), 1);
	assert_int_equal(take(OTHER, 19), 0);
	assert_int_equal(take(ONE, 20), 0);
	assert_int_equal(take(ONE, 20), 20);
	assert_int_equal(take(ONE, 35), 5); /* asking costs nothing */
	assert_int_equal(take(ONE, 45), 0);
	assert_int_equal(take(ONE, 45), 20);
}

static void
grows(void **state)
{
	static const uint32_t interval[] = {20, 40, 80, MOST, MOST};

	for (unsigned int i = 0; i < 5; i++) {
		ipc_turns_lost(&turns, ONE, START + i);
		assert_int_equal(take(ONE, i), interval[i]);
	}
	ipc_turns_lost(&turns, OTHER, START + 5);
	assert_int_equal(take(OTHER, 5), 20);
}

static void
forgotten(void **state)
{
	ipc_turns_lost(&turns, ONE, START);
	ipc_turns_lost(&turns, ONE, START + 10);
	ipc_turns_lost(&turns, OTHER, START + 20);
	assert_int_equal(take(ONE, IPC_TURN_FORGET_MS + 9), 0);
	assert_int_equal(take(ONE, IPC_TURN_FORGET_MS + 9), 40);
	assert_int_equal(take(ONE, IPC_TURN_FORGET_MS + 10), 0);
	assert_int_equal(take(ONE, IPC_TURN_FORGET_MS + 10), 0);
	assert_int_equal(take(OTHER, IPC_TURN_FORGET_MS + 10), 0);
	assert_int_equal(take(OTHER, IPC_TURN_FORGET_MS + 10), 20);
	ipc_turns_lost(&turns, ONE, START + IPC_TURN_FORGET_MS + 11); /* the first again */
	assert_int_equal(take(ONE, IPC_TURN_FORGET_MS + 11), 20);
}

/* A clock that another thread has read later. */
static void
clocks_differ(void **state)
{
	ipc_turns_lost(&turns, ONE, START + 5);
	assert_int_equal(take(ONE, 4), 21);
	assert_int_equal(take(ONE, 5), 20);
}

static void
off(void **state)
{
	turns.max = 0;
	ipc_turns_lost(&turns, ONE, START);
	assert_int_equal(take(ONE, 0), 0);
	assert_null(turns.list);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nobody_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(one_by_one, setup, teardown),
		cmocka_unit_test_setup_teardown(grows, setup, teardown),
		cmocka_unit_test_setup_teardown(forgotten, setup, teardown),
		cmocka_unit_test_setup_teardown(clocks_differ, setup, teardown),
		cmocka_unit_test_setup_teardown(off, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
