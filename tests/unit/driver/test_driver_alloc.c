/* SPDX-License-Identifier: BSD-3-Clause */

/* Index, tag and range allocators. */

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

#include "driver_alloc.h"

#define RANGE_LOG 10u
#define ROUNDS 20000u
#define BORROWERS 4096u

static void
test_ids(void **state)
{
	struct driver_ids ids;
	uint32_t index, first;

	assert_int_equal(driver_ids_init(&ids, 1, 70), 0);
	assert_int_equal(driver_ids_take(&ids, &first), 0);
	assert_int_equal(first, 1);
	for (uint32_t i = 2; i < 70; i++) {
		assert_int_equal(driver_ids_take(&ids, &index), 0);
		assert_int_equal(index, i);
	}
	assert_int_equal(driver_ids_take(&ids, &index), -ENOMEM);
	driver_ids_give(&ids, 40);
	driver_ids_give(&ids, 20);
	assert_int_equal(driver_ids_take(&ids, &index), 0);
	assert_int_equal(index, 40); /* the one that was returned first */
	driver_ids_give(&ids, 40);
	assert_int_equal(driver_ids_take(&ids, &index), 0);
	assert_int_equal(index, 20); /* the index freed last is reused last */
	assert_int_equal(ids.used, 68);
	driver_ids_free(&ids);
}

/*
 * One after the other: an index rests while DRIVER_IDS_REST others are used, and no more of them
 * are touched, however many come and go; so too after some were in use at once.
 */
static void
test_ids_rest(void **state)
{
	static const uint32_t at_once[] = {1, 2, 512};
	uint32_t last[BORROWERS] = {0}, held[512], highest = 0;
	struct driver_ids ids;

	assert_int_equal(driver_ids_init(&ids, 1, BORROWERS), 0);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		uint32_t n = at_once[round * 3 / (ROUNDS + 1)];

		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(driver_ids_take(&ids, &held[i]), 0);
			if (held[i] > highest)
				highest = held[i];
			if (last[held[i]] != 0)
				assert_true((round - last[held[i]]) * n > DRIVER_IDS_REST);
		}
		assert_true(highest <= n + DRIVER_IDS_REST);
		for (uint32_t i = 0; i < n; i++) {
			driver_ids_give(&ids, held[i]);
			last[held[i]] = round;
		}
	}
	assert_int_equal(ids.used, 0);
	driver_ids_free(&ids);
}

/* Indexes that a caller takes by their number, fresh, waiting and in between. */
static void
test_ids_at(void **state)
{
	const uint32_t count = 3 * DRIVER_IDS_REST;
	struct driver_random random;
	struct driver_ids ids;
	bool taken[3 * DRIVER_IDS_REST] = {false};
	uint32_t used = 0, index;

	driver_random_init(&random, 1);
	assert_int_equal(driver_ids_init(&ids, 1, count), 0);
	assert_int_equal(driver_ids_take_at(&ids, 0), -EINVAL);
	assert_int_equal(driver_ids_take_at(&ids, count), -EINVAL);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint64_t draw = driver_random_next(&random);

		index = 1 + (uint32_t)(draw >> 8) % (count - 1);
		if (taken[index]) {
			assert_int_equal(driver_ids_take_at(&ids, index), -EBUSY);
			driver_ids_give(&ids, index);
			taken[index] = false;
			used--;
			continue;
		}
		if ((draw & 1) != 0)
			assert_int_equal(driver_ids_take_at(&ids, index), 0);
		else
			assert_int_equal(driver_ids_take(&ids, &index), 0);
		assert_in_range(index, 1, count - 1);
		assert_false(taken[index]);
		taken[index] = true;
		assert_int_equal(ids.used, ++used);
	}
	for (; used < count - 1; used++) {
		assert_int_equal(driver_ids_take(&ids, &index), 0);
		assert_false(taken[index]);
		taken[index] = true;
	}
	assert_int_equal(driver_ids_take(&ids, &index), -ENOMEM);
	driver_ids_free(&ids);
}

static void
test_tags_change(void **state)
{
	struct driver_random random;
	struct driver_ids ids;
	uint32_t last = 0;

	driver_random_init(&random, 0);
	assert_int_equal(driver_ids_init(&ids, 0, 4), 0);
	for (uint32_t i = 0; i < 1000; i++) {
		uint32_t tag = driver_ids_new_tag(&ids, 2, 3, &random);

		assert_in_range(tag, 0, 7);
		assert_int_not_equal(tag, last);
		last = tag;
	}
	driver_ids_free(&ids);
}

/*
 * Tags must be hard to guess: in 4000 tags every bit is set in about half of them, none occurs
 * often, and neither the next tag nor those of another driver can be predicted.
 */
static void
test_tags_spread(void **state)
{
	enum {
		DRAWS = 4000,
		BITS = 10
	};
	static uint32_t tag[2][DRAWS], seen[1u << BITS];
	unsigned int same = 0, step = 0;

	memset(seen, 0, sizeof(seen));
	for (unsigned int k = 0; k < 2; k++) {
		struct driver_random random;
		struct driver_ids ids;

		assert_int_equal(driver_random_init(&random, 0), 0);
		assert_int_equal(driver_ids_init(&ids, 0, 16), 0);
		for (unsigned int i = 0; i < DRAWS; i++)
			tag[k][i] = driver_ids_new_tag(&ids, i % 16, BITS, &random);
		driver_ids_free(&ids);
	}
	for (unsigned int bit = 0; bit < BITS; bit++) {
		unsigned int set = 0;

		for (unsigned int i = 0; i < DRAWS; i++)
			set += tag[0][i] >> bit & 1;
		assert_in_range(set, DRAWS / 2 - 400, DRAWS / 2 + 400); /* 12 sigma */
	}
	for (unsigned int i = 0; i < DRAWS; i++) {
		assert_in_range(++seen[tag[0][i]], 1, 30); /* 4 are expected */
		same += tag[0][i] == tag[1][i];
		step += i != 0 && tag[0][i] - tag[0][i - 1] == tag[0][1] - tag[0][0];
	}
	assert_in_range(same, 0, 40);
	assert_in_range(step, 1, 40);
}

static void
test_seeded_sequence(void **state)
{
	struct driver_random a, b;

	driver_random_init(&a, 99);
	driver_random_init(&b, 99);
	for (int i = 0; i < 100; i++)
		assert_int_equal(driver_random_next(&a), driver_random_next(&b));
	driver_random_init(&b, 100);
	assert_int_not_equal(driver_random_next(&a), driver_random_next(&b));
}

/* Random allocations, compared with a plain map of owners: no overlap, and freed ranges merge. */
static void
test_ranges(void **state)
{
	struct {
		uint32_t first, count;
	} held[256];
	uint8_t owner[1u << RANGE_LOG] = {0};
	uint32_t num = 0, used = 0, first;
	struct driver_ranges ranges;
	uint64_t r = 99;

	assert_int_equal(driver_ranges_init(&ranges, RANGE_LOG), 0);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		r = r * 6364136223846793005ull + 1442695040888963407ull;
		uint32_t count = (uint32_t)(r >> 40) % (1u << (r >> 33) % 8) + 1;

		if ((r >> 32 & 1) != 0 && num < 256 &&
		    driver_ranges_take(&ranges, count, &first) == 0) {
			for (uint32_t i = first; i < first + count; i++)
				assert_int_equal(owner[i]++, 0);
			held[num].first = first;
			held[num++].count = count;
			used += count;
		} else if (num > 0) {
			uint32_t n = (uint32_t)(r >> 50) % num;

			for (uint32_t i = 0; i < held[n].count; i++)
				owner[held[n].first + i] = 0;
			driver_ranges_give(&ranges, held[n].first, held[n].count);
			used -= held[n].count;
			held[n] = held[--num];
		}
		assert_int_equal(ranges.used, used);
	}
	while (num-- > 0)
		driver_ranges_give(&ranges, held[num].first, held[num].count);
	assert_int_equal(ranges.used, 0);
	assert_int_equal(driver_ranges_take(&ranges, 1u << RANGE_LOG, &first), 0);
	assert_int_equal(driver_ranges_take(&ranges, 1, &first), -ENOMEM);
	assert_int_equal(driver_ranges_take(&ranges, (1u << RANGE_LOG) + 1, &first), -ENOMEM);
	driver_ranges_free(&ranges);
}

/* Entries are counted: the rest of a power of two stays free, and ranges may cross blocks. */
static void
test_ranges_uneven(void **state)
{
	const uint32_t quarter = 1u << (RANGE_LOG - 2);
	struct driver_ranges ranges;
	uint32_t a, b, c, d;

	assert_int_equal(driver_ranges_init(&ranges, RANGE_LOG), 0);
	assert_int_equal(driver_ranges_take(&ranges, quarter + 1, &a), 0);
	assert_int_equal(driver_ranges_take(&ranges, quarter + 1, &b), 0);
	assert_int_equal(ranges.used, 2 * quarter + 2);
	assert_int_equal(driver_ranges_take(&ranges, quarter - 1, &c), 0);
	assert_int_equal(driver_ranges_take(&ranges, quarter - 1, &d), 0);
	assert_int_equal(ranges.used, 4 * quarter);
	driver_ranges_give(&ranges, a, quarter + 1);
	driver_ranges_give(&ranges, c, quarter - 1);
	driver_ranges_give(&ranges, b, quarter + 1);
	driver_ranges_give(&ranges, d, quarter - 1);
	/* three quarters, behind a quarter at the beginning */
	assert_int_equal(driver_ranges_take(&ranges, quarter, &a), 0);
	assert_int_equal(driver_ranges_take(&ranges, 3 * quarter, &b), 0);
	assert_int_equal(a, 0);
	assert_int_equal(b, quarter);
	assert_int_equal(driver_ranges_take(&ranges, 1, &c), -ENOMEM);
	driver_ranges_give(&ranges, b, 3 * quarter);
	driver_ranges_give(&ranges, a, quarter);
	assert_int_equal(driver_ranges_take(&ranges, 4 * quarter, &a), 0);
	driver_ranges_free(&ranges);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids),	    cmocka_unit_test(test_ids_rest),
		cmocka_unit_test(test_ids_at),	    cmocka_unit_test(test_tags_change),
		cmocka_unit_test(test_tags_spread), cmocka_unit_test(test_seeded_sequence),
		cmocka_unit_test(test_ranges),	    cmocka_unit_test(test_ranges_uneven),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
