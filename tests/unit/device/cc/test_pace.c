/* SPDX-License-Identifier: BSD-3-Clause */

/* Objects that wait for their time, against a list that is searched whole. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cc/pace.h"

#define OBJECTS 97u
#define STEPS 40000u
#define TIMES 300u

static struct hca_pace pace;
static uint64_t at[OBJECTS]; /* of the model; UINT64_MAX: it does not wait */

static int
setup(void **state)
{
	pace = (struct hca_pace){.next = UINT64_MAX};
	pace.slot = calloc(OBJECTS, sizeof(*pace.slot));
	assert_non_null(pace.slot);
	memset(at, 0xff, sizeof(at));
	return 0;
}

static int
teardown(void **state)
{
	free(pace.slot);
	return 0;
}

static uint64_t
earliest(void)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < OBJECTS; i++)
		least = at[i] < least ? at[i] : least;
	return least;
}

static void
put(uint32_t obj, uint64_t when)
{
	hca_pace_put(&pace, obj, when);
	at[obj] = when;
}

static void
take(uint64_t now)
{
	uint64_t least = earliest();
	uint32_t obj = hca_pace_take(&pace, now);

	if (least > now) {
		assert_int_equal(obj, HCA_PACE_NONE);
		return;
	}
	assert_true(obj < OBJECTS);
	assert_int_equal(at[obj], least);
	at[obj] = UINT64_MAX;
}

static void
as_a_list(void **state)
{
	unsigned int random = 1;

	for (unsigned int i = 0; i < STEPS; i++) {
		uint32_t obj = (random = random * 1103515245u + 12345u) >> 8;
		uint64_t when = obj % TIMES;

		obj = obj / TIMES % OBJECTS;
		if (i % 3 == 2)
			take(when);
		else if (at[obj] == UINT64_MAX)
			put(obj, when);
		else if (hca_pace_drop(&pace, obj))
			at[obj] = UINT64_MAX;
		assert_int_equal(pace.next, earliest());
		assert_int_equal(pace.slot[obj].place != 0, at[obj] != UINT64_MAX);
	}
	while (pace.n != 0)
		take(TIMES);
	assert_int_equal(earliest(), UINT64_MAX);
}

/* One that is due does not cost a look at those that are not. */
static void
one_of_many(void **state)
{
	for (uint32_t i = 0; i < OBJECTS; i++)
		put(i, 1000 + i);
	assert_int_equal(hca_pace_take(&pace, 999), HCA_PACE_NONE);
	assert_int_equal(hca_pace_take(&pace, 1000), 0);
	assert_int_equal(pace.n, OBJECTS - 1);
	assert_int_equal(hca_pace_take(&pace, 1000), HCA_PACE_NONE);
	assert_false(hca_pace_drop(&pace, 0));
	assert_true(hca_pace_drop(&pace, 50));
	assert_false(hca_pace_drop(&pace, 50));
	assert_int_equal(pace.next, 1001);
	assert_int_equal(hca_pace_deadline(&pace), 0);
}

static void
deadline(void **state)
{
	assert_int_equal(hca_pace_deadline(&pace), UINT64_MAX);
	put(3, 10 * HCA_PACE_EARLY);
	assert_int_equal(hca_pace_deadline(&pace), 9 * HCA_PACE_EARLY);
	put(4, 5);
	assert_int_equal(hca_pace_deadline(&pace), 0);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {T(as_a_list), T(one_of_many), T(deadline)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
