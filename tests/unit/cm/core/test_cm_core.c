/* SPDX-License-Identifier: BSD-3-Clause */

/* Accounts, cookies, repetition, the table of pairs, shared by the protocols of set-up. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cm_cookie.h"
#include "cm_pairs.h"
#include "cm_repeat.h"
#include "cm_share.h"

#include <cmocka.h>

static const uint8_t a[16] = {[15] = 1}, b[16] = {[15] = 2}, c[16] = {[0] = 0xfe, [15] = 3};
static const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};

/* ---- cookies ---- */

/* The reference vector of SipHash-2-4: 8 of its bytes 00h, 01h .. under the key 00h .. 0fh */
static void
test_siphash(void **state)
{
	const uint64_t word = UINT64_C(0x0706050403020100);

	assert_true(cm_siphash(key, NULL, 0) == UINT64_C(0x726fdb47dd0e0e31));
	assert_true(cm_siphash(key, &word, 1) == UINT64_C(0x93f5f5799a932462));
}

/* It is good for one to two periods, and only for its own purpose. */
static void
test_cookie(void **state)
{
	const uint64_t period = CM_COOKIE_PERIOD_NS, other[2] = {key[0], key[1] + 1};

	for (uint64_t made = 0; made < 3 * period; made += period / 3) {
		uint64_t cookie = cm_cookie(key, a, b, 77, made), ends = made / period * period;

		assert_true(cm_cookie_is_good(key, a, b, 77, cookie, made));
		assert_true(cm_cookie_is_good(key, a, b, 77, cookie, made + period));
		assert_true(cm_cookie_is_good(key, a, b, 77, cookie, ends + 2 * period - 1));
		assert_false(cm_cookie_is_good(key, a, b, 77, cookie, ends + 2 * period));
		assert_false(cm_cookie_is_good(key, b, a, 77, cookie, made));
		assert_false(cm_cookie_is_good(key, a, c, 77, cookie, made));
		assert_false(cm_cookie_is_good(key, a, b, 78, cookie, made));
		assert_false(cm_cookie_is_good(other, a, b, 77, cookie, made));
	}
}

/* ---- repetition ---- */

static void
test_repeat(void **state)
{
	const struct cm_repeat_rule rule = {.first = 100,
					    .longest = CM_REPEAT_UNBOUNDED,
					    .repeats = 3};
	const struct cm_repeat_rule once = {.first = 7, .longest = CM_REPEAT_UNBOUNDED};
	struct cm_repeat r = {.tries = 9};
	uint64_t begun = 5000, due = 0;

	due = cm_repeat_begin(&rule, &r, begun);
	assert_int_equal(due, begun + 100);
	for (uint32_t n = 1; n <= 3; n++) {
		uint64_t now = due;

		assert_true(cm_repeat_again(&rule, &r, now, &due));
		assert_int_equal(r.tries, n);
		assert_int_equal(due, now + (100u << n));
	}
	assert_false(cm_repeat_again(&rule, &r, due, &due));
	assert_int_equal(due - begun, cm_repeat_whole(&rule));
	due = cm_repeat_begin(&once, &r, 0);
	assert_false(cm_repeat_again(&once, &r, due, &due));
	assert_int_equal(cm_repeat_whole(&once), 7);
}

/* A longest wait, also of the first one; a wait that does not count grows as the others. */
static void
test_repeat_longest(void **state)
{
	const struct cm_repeat_rule rule = {.first = 100, .longest = 350, .repeats = 3};
	const struct cm_repeat_rule low = {.first = 100, .longest = 60, .repeats = 1};
	struct cm_repeat r;
	uint64_t due;

	assert_int_equal(cm_repeat_begin(&rule, &r, 0), 100);
	assert_int_equal(cm_repeat_later(&rule, &r, 1000), 1200);
	assert_int_equal(r.tries, 0);
	for (uint32_t n = 1; n <= 3; n++) {
		assert_true(cm_repeat_again(&rule, &r, 2000, &due));
		assert_int_equal(due, 2350);
	}
	assert_false(cm_repeat_again(&rule, &r, 2000, &due));
	assert_int_equal(cm_repeat_begin(&low, &r, 0), 60);
}

/* ---- pairs ---- */

#define ENTRIES 100u

static void
expect(const struct cm_pairs *p, const uint8_t *own, const uint8_t *peer, uint64_t set)
{
	uint64_t seen = 0;
	uint32_t last = 0;

	for (uint32_t i = cm_pairs_first(p, own, peer); i != CM_PAIRS_NONE;
	     i = cm_pairs_next(p, i)) {
		assert_true(seen == 0 || i > last);
		last = i;
		if (i < 64)
			seen |= UINT64_C(1) << i;
	}
	assert_true((seen & set) == set);
}

/* All entries of a pair are found by their indexes, in whatever order they came and went. */
static void
test_pairs(void **state)
{
	void *mem = calloc(1, cm_pairs_bytes(ENTRIES));
	struct cm_pairs p;
	uint32_t found = 0;

	cm_pairs_init(&p, ENTRIES, key, mem);
	assert_int_equal(cm_pairs_first(&p, a, b), CM_PAIRS_NONE);
	cm_pairs_add(&p, 7, a, b);
	cm_pairs_add(&p, 3, a, b);
	cm_pairs_add(&p, 5, a, b);
	cm_pairs_add(&p, 0, b, a);
	cm_pairs_add(&p, 63, a, c);
	expect(&p, a, b, 1u << 7 | 1u << 3 | 1u << 5);
	expect(&p, b, a, 1u << 0);
	expect(&p, a, c, UINT64_C(1) << 63);
	cm_pairs_remove(&p, 3, a, b);
	expect(&p, a, b, 1u << 7 | 1u << 5);
	for (uint32_t i = cm_pairs_first(&p, a, b); i != CM_PAIRS_NONE; i = cm_pairs_next(&p, i))
		assert_int_not_equal(i, 3);
	cm_pairs_add(&p, 3, a, b);
	expect(&p, a, b, 1u << 7 | 1u << 3 | 1u << 5);
	/* a pair of its own for each: few are in the way of others */
	for (uint32_t i = 8; i < 60; i++)
		cm_pairs_add(&p, i, a, (const uint8_t[16]){[0] = (uint8_t)i});
	for (uint32_t i = cm_pairs_first(&p, a, b); i != CM_PAIRS_NONE; i = cm_pairs_next(&p, i))
		found++;
	assert_in_range(found, 3, 12);
	free(mem);
}

/* One entry also needs a table. */
static void
test_pairs_of_one(void **state)
{
	uint32_t mem[2] = {0};
	struct cm_pairs p;

	assert_int_equal(cm_pairs_bytes(1), sizeof(mem));
	cm_pairs_init(&p, 1, key, mem);
	cm_pairs_add(&p, 0, a, b);
	assert_int_equal(cm_pairs_first(&p, a, b), 0);
	cm_pairs_remove(&p, 0, a, b);
	cm_pairs_remove(&p, 0, a, b);
	assert_int_equal(cm_pairs_first(&p, a, b), CM_PAIRS_NONE);
}

/* ---- accounts ---- */

static void
test_share_limits(void **state)
{
	struct cm_share_limits l = cm_share_limits(255, 4);

	assert_int_equal(l.peers, 192);
	assert_int_equal(l.half, 63);
	assert_int_equal(l.address, 63);
	l = cm_share_limits(15, 4); /* a half may be a whole link, an address have two */
	assert_int_equal(l.peers, 12);
	assert_int_equal(l.half, 4);
	assert_int_equal(l.address, 8);
	l = cm_share_limits(1, 16);
	assert_int_equal(l.peers, 1);
	assert_int_equal(l.half, 1);
	assert_int_equal(l.address, 1);
}

static void
test_share(void **state)
{
	const struct cm_share_limits limits = {.peers = 10, .half = 6, .address = 4};
	uint64_t mem[128] = {0};
	enum cm_share_full full;
	struct cm_share s;

	assert_true(cm_share_bytes(&limits) <= sizeof(mem));
	cm_share_init(&s, &limits, key, mem);
	assert_int_equal(cm_share_left(&s, a, 0, &full), 4);
	assert_int_equal(full, CM_SHARE_FULL_ADDRESS);
	cm_share_take(&s, a, 0, CM_SHARE_half, 3);
	assert_int_equal(cm_share_left(&s, a, 0, &full), 1);
	assert_int_equal(cm_share_left(&s, b, 0, &full), 3); /* halves of all */
	assert_int_equal(full, CM_SHARE_FULL_HALF);
	cm_share_take(&s, b, 0, CM_SHARE_half, 3);
	assert_int_equal(cm_share_left(&s, c, 0, &full), 0);
	assert_int_equal(full, CM_SHARE_FULL_HALF);
	/* the handshakes are complete */
	cm_share_give(&s, a, 0, CM_SHARE_half, 3);
	cm_share_take(&s, a, 0, CM_SHARE_open, 3);
	cm_share_give(&s, b, 0, CM_SHARE_half, 3);
	cm_share_take(&s, b, 0, CM_SHARE_open, 4);
	assert_int_equal(cm_share_left(&s, b, 0, &full), 0);
	assert_int_equal(full, CM_SHARE_FULL_ADDRESS);
	assert_int_equal(cm_share_left(&s, c, 0, &full), 3);
	assert_int_equal(full, CM_SHARE_FULL_PEERS);
	cm_share_take(&s, c, 0, CM_SHARE_half, 0);
	assert_int_equal(s.rows, 2);
	cm_share_give(&s, a, 0, CM_SHARE_open, 3);
	assert_int_equal(s.rows, 1);
	assert_int_equal(cm_share_left(&s, a, 0, &full), 4);
	assert_int_equal(cm_share_left(&s, b, 0, &full), 0);
	cm_share_give(&s, a, 0, CM_SHARE_open, 3); /* it has none */
	assert_int_equal(s.used[CM_SHARE_open], 4);
}

/* Which account has the most halves, through all changes, against a count of the test's own. */
static void
test_share_most(void **state)
{
	const struct cm_share_limits limits = {.peers = 60, .half = 60, .address = 12};
	uint32_t count[8] = {0}, all = 0, left;
	uint8_t address[16] = {0};
	enum cm_share_full full;
	uint64_t mem[1024] = {0}, number = 1;
	struct cm_share s;

	assert_true(cm_share_bytes(&limits) <= sizeof(mem));
	cm_share_init(&s, &limits, key, mem);
	assert_null(cm_share_most(&s));
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t k, most = 0;

		number = number * UINT64_C(6364136223846793005) + 1442695040888963407u;
		k = number >> 60 & 7;
		address[15] = (uint8_t)(k / 2); /* two users each */
		left = cm_share_left(&s, address, k % 2, &full);
		assert_int_equal(left, 12 - count[k] < 60 - all ? 12 - count[k] : 60 - all);
		if ((number >> 40 & 3) != 0 && left > 0) {
			assert_int_equal(cm_share_take(&s, address, k % 2, CM_SHARE_half, 1)->user,
					 k % 2);
			count[k]++;
			all++;
		} else if (count[k] > 0) {
			cm_share_give(&s, address, k % 2, CM_SHARE_half, 1);
			count[k]--;
			all--;
		}
		for (k = 0; k < 8; k++)
			most = count[k] > most ? count[k] : most;
		assert_true(all == 0 || cm_share_most(&s)->used[CM_SHARE_half] == most);
		assert_int_equal(s.used[CM_SHARE_half], all);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_siphash),	     cmocka_unit_test(test_cookie),
		cmocka_unit_test(test_repeat),	     cmocka_unit_test(test_repeat_longest),
		cmocka_unit_test(test_pairs),	     cmocka_unit_test(test_pairs_of_one),
		cmocka_unit_test(test_share_limits), cmocka_unit_test(test_share),
		cmocka_unit_test(test_share_most),
	};

	return cmocka_run_group_tests_name("cm_core", tests, NULL, NULL);
}
