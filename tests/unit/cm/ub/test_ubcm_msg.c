/* SPDX-License-Identifier: BSD-3-Clause */

/* The bytes of messages: written ones, and those refused when read. */

#include <string.h>

#include "ubcm_rig.h"

static struct ubcm_msg
good_message(uint8_t type, uint32_t ntps)
{
	struct ubcm_msg m = {
		.type = type,
		.status = UBCM_STATUS_IDLE,
		.transaction = 0x0123456789abcdef,
		.ntps = ntps,
		.timer = {.rto_base = 20,
			  .rto_exponent = 3,
			  .retries = 7,
			  .ack_every = 16,
			  .ooo_every = 4},
	};

	memset(m.source, 0xa1, sizeof(m.source));
	memset(m.destination, 0xb2, sizeof(m.destination));
	for (uint32_t i = 0; i < ntps; i++)
		m.tp[i] = (struct ubcm_msg_tp){
			.tpn = 0x112233 + i,
			.psn = 0xfedcba,
			.limits = {.window = 1024,
				   .sack = 512,
				   .mtu = 4096,
				   .requests = 0x0403,
				   .mode = HCA_TP_MODE_SACK,
				   .flags = 3,
				   .cc = 9},
		};
	return m;
}

/* A REQ with one TP, byte for byte */
static void
test_bytes(void **state)
{
	static const uint8_t want[] = {
		1,    1,    0,	  88,				/* version, REQ, length */
		0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, /* transaction */
		0,    6,    0,	  0,				/* status */
		0,    1,    0,	  32,				/* ENTITY */
		0xa1, 0xa1, 0xa1, 0xa1, 0xa1, 0xa1, 0xa1, 0xa1, 0xa1, 0xa1, 0xa1, 0xa1,
		0xa1, 0xa1, 0xa1, 0xa1, 0xb2, 0xb2, 0xb2, 0xb2, 0xb2, 0xb2, 0xb2, 0xb2,
		0xb2, 0xb2, 0xb2, 0xb2, 0xb2, 0xb2, 0xb2, 0xb2, 0,    2,    0,	  20, /* TP */
		0x11, 0x22, 0x33, 0,	0xfe, 0xdc, 0xba, 0,	/* TPN, first PSN */
		0x04, 0,    0x02, 0,	0x10, 0,    0x04, 0x03, /* W, SACK, MTU, requests */
		2,    3,    9,	  0,				/* mode, flags, CC */
		0,    3,    0,	  8,				/* TIMER */
		0,    0,    0,	  20,	3,    7,    16,	  4,
	};
	struct ubcm_msg m = good_message(UBCM_REQ, 1);
	uint8_t bytes[UBCM_MSG_MAX];

	(void)state;
	assert_int_equal(ubcm_msg_build(&m, bytes), sizeof(want));
	assert_memory_equal(bytes, want, sizeof(want));
}

static void
test_cookie_bytes(void **state)
{
	static const uint8_t want[] = {
		0,    4,    0,	  8, /* COOKIE */
		0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
	};
	struct ubcm_msg m = good_message(UBCM_RETRY, 0);
	uint8_t bytes[UBCM_MSG_MAX];
	size_t len;

	(void)state;
	m.cookie = UINT64_C(0x0123456789abcdef);
	len = ubcm_msg_build(&m, bytes);
	assert_memory_equal(bytes + len - sizeof(want), want, sizeof(want));
	/* smaller than any REQ: no gain by directing it at another host */
	m = good_message(UBCM_REQ, 1);
	assert_true(len < ubcm_msg_build(&m, bytes));
}

/* RETRY without its cookie; a REQ needs none. */
static void
test_no_cookie(void **state)
{
	struct ubcm_msg m = good_message(UBCM_RETRY, 0), got;
	uint8_t bytes[UBCM_MSG_MAX];
	size_t len = ubcm_msg_build(&m, bytes);

	(void)state;
	hca_put_be16(bytes + 2, (uint16_t)(len - 12));
	assert_int_equal(ubcm_msg_parse(bytes, len - 12, &got), UBCM_DROP_missing);
}

static void
assert_same(const struct ubcm_msg *a, const struct ubcm_msg *b)
{
	assert_int_equal(a->type, b->type);
	assert_int_equal(a->status, b->status);
	assert_true(a->transaction == b->transaction);
	assert_memory_equal(a->source, b->source, 16);
	assert_memory_equal(a->destination, b->destination, 16);
	assert_int_equal(a->ntps, b->ntps);
	for (uint32_t i = 0; i < a->ntps; i++) {
		assert_int_equal(a->tp[i].tpn, b->tp[i].tpn);
		assert_int_equal(a->tp[i].psn, b->tp[i].psn);
		assert_true(ubcm_limits_equal(&a->tp[i].limits, &b->tp[i].limits));
	}
	assert_true(ubcm_timer_equal(&a->timer, &b->timer));
	assert_int_equal(a->has_cookie, b->has_cookie);
	assert_true(a->cookie == b->cookie);
}

static void
test_round_trip(void **state)
{
	(void)state;
	for (uint32_t type = UBCM_REQ; type < UBCM_TYPES; type++) {
		bool tps = type != UBCM_REJ && type != UBCM_DISC_REP && type != UBCM_RETRY;
		bool timer = type == UBCM_REQ || type == UBCM_REP;
		struct ubcm_msg m = good_message((uint8_t)type, tps ? UBCM_MSG_TPS : 0), got;
		uint8_t bytes[UBCM_MSG_MAX];
		size_t len;

		m.has_cookie = type == UBCM_REQ || type == UBCM_RETRY;
		m.cookie = m.has_cookie ? UINT64_C(0x0123456789abcdef) : 0;
		if (!timer)
			memset(&m.timer, 0, sizeof(m.timer));
		len = ubcm_msg_build(&m, bytes);
		assert_int_equal(ubcm_msg_parse(bytes, len, &got), UBCM_DROP_none);
		assert_same(&got, &m);
	}
}

/* Every prefix is refused, with the length it has and with that it claims. */
static void
test_truncated(void **state)
{
	struct ubcm_msg m = good_message(UBCM_REQ, 3), got;
	uint8_t bytes[UBCM_MSG_MAX];
	size_t len = ubcm_msg_build(&m, bytes);

	(void)state;
	for (size_t n = 0; n < len; n++) {
		uint8_t *cut = malloc(n + 1); /* of exactly that size, for sanitizers */

		memcpy(cut, bytes, n);
		assert_int_equal(ubcm_msg_parse(cut, n, &got), UBCM_DROP_length);
		if (n >= 4) {
			hca_put_be16(cut + 2, (uint16_t)n);
			assert_int_not_equal(ubcm_msg_parse(cut, n, &got), UBCM_DROP_none);
		}
		free(cut);
	}
	assert_int_equal(ubcm_msg_parse(bytes, len + 1, &got), UBCM_DROP_length);
}

/* Each flipped bit: refused, or another message that can be written again. */
static void
test_flipped(void **state)
{
	struct ubcm_msg m = good_message(UBCM_REP, 2), got;
	uint8_t bytes[UBCM_MSG_MAX], again[UBCM_MSG_MAX];
	size_t len = ubcm_msg_build(&m, bytes);
	uint32_t refused = 0;

	(void)state;
	for (size_t bit = 0; bit < 8 * len; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (ubcm_msg_parse(bytes, len, &got) == UBCM_DROP_none)
			assert_in_range(ubcm_msg_build(&got, again), UBCM_HEADER_BYTES, len);
		else
			refused++;
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_in_range(refused, 100, 8 * len);
}

static enum ubcm_drop
parse_with(struct ubcm_msg *m, size_t at, uint8_t value)
{
	struct ubcm_msg got;
	uint8_t bytes[UBCM_MSG_MAX];
	size_t len = ubcm_msg_build(m, bytes);

	bytes[at] = value;
	return ubcm_msg_parse(bytes, len, &got);
}

/* One value out of range at a time; offsets of a REQ with one TP */
static void
test_values(void **state)
{
	enum {
		TP = 56,
		TIMER = 80
	};
	static const struct {
		uint32_t at;
		uint8_t value;
		enum ubcm_drop drop;
	} cases[] = {
		{0, 2, UBCM_DROP_version},	  {1, 0, UBCM_DROP_type},
		{1, UBCM_TYPES, UBCM_DROP_type},  {1, 255, UBCM_DROP_type},
		{17, 7, UBCM_DROP_missing},	  {53, 7, UBCM_DROP_missing},
		{77, 7, UBCM_DROP_missing},	  {19, 31, UBCM_DROP_tlv},
		{19, 33, UBCM_DROP_tlv},	  {55, 19, UBCM_DROP_tlv},
		{18, 255, UBCM_DROP_tlv},	  {79, 9, UBCM_DROP_tlv},
		{77, 1, UBCM_DROP_tlv},		  {TP + 8, 5, UBCM_DROP_value},
		{TP + 8, 0, UBCM_DROP_value},	  {TP + 8, 16, UBCM_DROP_value},
		{TP + 10, 8, UBCM_DROP_value},	  {TP + 11, 1, UBCM_DROP_value},
		{TP + 12, 8, UBCM_DROP_value},	  {TP + 12, 0, UBCM_DROP_value},
		{TP + 16, 3, UBCM_DROP_value},	  {TIMER + 3, 3, UBCM_DROP_value},
		{TIMER, 1, UBCM_DROP_value},	  {TIMER + 4, 8, UBCM_DROP_value},
		{TIMER + 5, 16, UBCM_DROP_value}, {TIMER + 6, 0, UBCM_DROP_value},
		{TIMER + 7, 0, UBCM_DROP_value},  {TP + 12, 0x20, UBCM_DROP_none},
		{TP + 17, 0xff, UBCM_DROP_none},  {TP + 3, 0xff, UBCM_DROP_none},
		{14, 0xff, UBCM_DROP_none},	  {TP + 19, 0xff, UBCM_DROP_none},
		{TIMER + 3, 0, UBCM_DROP_none},
	};
	struct ubcm_msg m = good_message(UBCM_REQ, 1);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (parse_with(&m, cases[i].at, cases[i].value) != cases[i].drop)
			fail_msg("byte %u = %u", cases[i].at, cases[i].value);
	m.tp[0].tpn = 0;
	assert_int_equal(parse_with(&m, 0, 1), UBCM_DROP_value);
	m.tp[0].tpn = 1;
	m.tp[0].limits.requests = 0;
	assert_int_equal(parse_with(&m, 0, 1), UBCM_DROP_value);
}

static void
test_tpn_twice(void **state)
{
	struct ubcm_msg m = good_message(UBCM_REQ, 3);

	(void)state;
	m.tp[2].tpn = m.tp[0].tpn;
	assert_int_equal(parse_with(&m, 0, 1), UBCM_DROP_value);
}

/* Append a TLV to a built message; returns its new length. */
static size_t
append(uint8_t *bytes, size_t len, uint16_t type, uint16_t length, const uint8_t *value)
{
	size_t all = 4 + (length + 3u) / 4 * 4;

	memset(bytes + len, 0, all);
	hca_put_be16(bytes + len, type);
	hca_put_be16(bytes + len + 2, length);
	if (value != NULL)
		memcpy(bytes + len + 4, value, length);
	hca_put_be16(bytes + 2, (uint16_t)(len + all));
	return len + all;
}

static void
test_too_many(void **state)
{
	struct ubcm_msg m = good_message(UBCM_REQ, UBCM_MSG_TPS), got;
	uint8_t bytes[2 * UBCM_MSG_MAX], value[32];
	size_t len = ubcm_msg_build(&m, bytes);

	(void)state;
	memcpy(value, bytes + 56, 20);
	value[0]++;
	assert_int_equal(ubcm_msg_parse(bytes, append(bytes, len, 2, 20, value), &got),
			 UBCM_DROP_repeated);
	assert_int_equal(ubcm_msg_parse(bytes, append(bytes, len, 1, 32, NULL), &got),
			 UBCM_DROP_repeated);
	assert_int_equal(ubcm_msg_parse(bytes, append(bytes, len, 3, 8, bytes + len - 8), &got),
			 UBCM_DROP_repeated);
	while (len <= UBCM_MSG_MAX)
		len = append(bytes, len, 77, 4, NULL);
	assert_int_equal(ubcm_msg_parse(bytes, len, &got), UBCM_DROP_length);
}

/* Changes of any length, anywhere, also of length 0 */
static void
test_unknown_skipped(void **state)
{
	static const uint16_t types[] = {0, 5, 6, 255, 256, 0x8001, 0xffff};
	struct ubcm_msg m = good_message(UBCM_REQ, 2), got;
	uint8_t bytes[UBCM_MSG_MAX], value[13] = {1, 2, 3};
	size_t len = ubcm_msg_build(&m, bytes);

	(void)state;
	for (uint32_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		len = append(bytes, len, types[i], (uint16_t)(2 * i), value);
	assert_int_equal(ubcm_msg_parse(bytes, len, &got), UBCM_DROP_none);
	assert_same(&got, &m);
}

/* The other end gets the same, and gets it again. */
static void
test_both(void **state)
{
	struct ubcm_limits a = {.window = 128,
				.sack = 1024,
				.mtu = 1024,
				.requests = 7,
				.mode = HCA_TP_MODE_SACK,
				.flags = 0x0f,
				.cc = 1},
			   b = {.window = 2048,
				.sack = 64,
				.mtu = 8192,
				.requests = 5,
				.mode = HCA_TP_MODE_TRACK,
				.flags = 0x15,
				.cc = 2},
			   ab = ubcm_limits_both(&a, &b), ba = ubcm_limits_both(&b, &a),
			   want = {.window = 128,
				   .sack = 64,
				   .mtu = 1024,
				   .requests = 5,
				   .mode = HCA_TP_MODE_TRACK,
				   .flags = 0x05,
				   .cc = 0};
	struct ubcm_timer s = {100, 3, 7, 16, 1}, t = {500, 1, 9, 8, 2}, z = {0, 1, 9, 8, 2},
			  st = ubcm_timer_both(&s, &t), ts = ubcm_timer_both(&t, &s),
			  wanted = {500, 1, 7, 8, 1};

	(void)state;
	assert_true(ubcm_limits_equal(&ab, &want) && ubcm_limits_equal(&ba, &want));
	ba = ubcm_limits_both(&a, &ab);
	assert_true(ubcm_limits_equal(&ba, &want));
	assert_true(ubcm_timer_equal(&st, &wanted) && ubcm_timer_equal(&ts, &wanted));
	st = ubcm_timer_both(&s, &z);
	assert_int_equal(st.rto_base, 0);
	ba.cc = ab.cc = 3;
	assert_int_equal(ubcm_limits_both(&ba, &ab).cc, 3);
}

static void
test_largest_rto(void **state)
{
	struct ubcm_timer t = {.rto_base = 20, .rto_exponent = 3, .retries = 6};

	(void)state;
	assert_true(ubcm_rto_largest(&t) == UINT64_C(5242880000));
	t = (struct ubcm_timer){.rto_exponent = 1, .retries = 7};
	assert_true(ubcm_rto_largest(&t) == 128 * UBCM_MS);
	t = (struct ubcm_timer){.rto_base = 2097152, .rto_exponent = 7, .retries = 15};
	assert_true(ubcm_rto_largest(&t) == UBCM_RTO_MOST);
	assert_string_equal(ubcm_status_str(UBCM_STATUS_TIMEOUT), "no answer");
	assert_string_equal(ubcm_status_str(77), "unknown status");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),	  cmocka_unit_test(test_cookie_bytes),
		cmocka_unit_test(test_no_cookie), cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_truncated), cmocka_unit_test(test_flipped),
		cmocka_unit_test(test_values),	  cmocka_unit_test(test_tpn_twice),
		cmocka_unit_test(test_too_many),  cmocka_unit_test(test_unknown_skipped),
		cmocka_unit_test(test_both),	  cmocka_unit_test(test_largest_rto),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
