/* SPDX-License-Identifier: BSD-3-Clause */

/* Tokens: the requests that reach a segment, through the checks and through the stage. */

#include "target/tat_rig.h"

#include <string.h>

/* ---- the check itself ---- */

static struct hca_token_access
good(void)
{
	return (struct hca_token_access){
		.va = RIG_VA + 100,
		.len = 8,
		.token_id = RIG_ID(RIG_SEGMENT),
		.value = RIG_VALUE,
		.right = HCA_ACCESS_REMOTE_WRITE,
		.has_value = true,
	};
}

static void
expect(struct rig *r, const struct hca_token_access *a, enum hca_token_verdict verdict)
{
	const struct hca_mpt_entry *e = NULL;

	assert_int_equal(hca_token_check(&r->h->core, a, &e), verdict);
	if (verdict == HCA_TOKEN_OK)
		assert_ptr_equal(e, &r->h->vtp.mpt[HCA_BITS(a->token_id, 16, 0)]);
	else
		assert_null(e);
}

/* Each verdict, and that an access which has several faults is refused for the first of them. */
static void
test_verdicts(void **state)
{
	struct rig *r = *state;
	struct hca_token_access a = good();

	expect(r, &a, HCA_TOKEN_OK);
	a.value++;
	expect(r, &a, HCA_TOKEN_BAD_VALUE);
	a.has_value = false;
	expect(r, &a, HCA_TOKEN_BAD_VALUE);
	a.token_id = RIG_ID(RIG_READ_ONLY);
	expect(r, &a, HCA_TOKEN_BAD_RIGHT);
	a.len = RIG_LEN;
	expect(r, &a, HCA_TOKEN_BAD_RANGE);
	a.token_id = RIG_ID(RIG_VERBS);
	expect(r, &a, HCA_TOKEN_BAD_VERBS);
	a.token_id = RIG_ID(RIG_DYING);
	expect(r, &a, HCA_TOKEN_BAD_UNKNOWN);
}

static void
test_ranges(void **state)
{
	static const struct {
		uint64_t va, len;
		bool ok;
	} row[] = {
		{RIG_VA, RIG_LEN, true},	 {RIG_VA, RIG_LEN + 1, false},
		{RIG_VA - 1, 1, false},		 {RIG_VA + RIG_LEN - 1, 1, true},
		{RIG_VA + RIG_LEN, 1, false},	 {RIG_VA + RIG_LEN - 1, 2, false},
		{RIG_VA, UINT64_MAX, false},	 {UINT64_MAX, 1, false},
		{UINT64_MAX, UINT64_MAX, false}, {0, 1, false},
	};
	struct rig *r = *state;
	struct hca_token_access a = good();

	for (unsigned int i = 0; i < RTE_DIM(row); i++) {
		a.va = row[i].va;
		a.len = row[i].len;
		expect(r, &a, row[i].ok ? HCA_TOKEN_OK : HCA_TOKEN_BAD_RANGE);
	}
}

/* All 20 bits count: the index, the three bits that change with each use, and no other table. */
static void
test_every_bit_of_the_id(void **state)
{
	struct rig *r = *state;
	struct hca_token_access a = good();

	for (uint32_t bit = 0; bit < 20; bit++) {
		a.token_id = RIG_ID(RIG_SEGMENT) ^ 1u << bit;
		if (HCA_BITS(a.token_id, 16, 0) != 0 && HCA_BITS(a.token_id, 16, 0) < RIG_REGIONS &&
		    bit < 17)
			continue; /* another region */
		expect(r, &a, HCA_TOKEN_BAD_UNKNOWN);
	}
}

static void
test_windows_are_no_segments(void **state)
{
	struct rig *r = *state;
	struct hca_token_access a = good();

	r->h->vtp.mpt[RIG_SEGMENT].flags &= ~HCA_MPT_FLAG_REGION;
	expect(r, &a, HCA_TOKEN_BAD_UNKNOWN);
}

/* The value may change between a Read and the gathering of its payload. */
static void
test_again_asks_for_no_value(void **state)
{
	struct rig *r = *state;
	struct hca_token_access a = good();
	const struct hca_mpt_entry *e = NULL;

	a.has_value = false;
	assert_int_equal(hca_token_check_again(&r->h->core, &a, &e), HCA_TOKEN_OK);
	r->ub->token[RIG_SEGMENT].flags = 0;
	assert_int_equal(hca_token_check_again(&r->h->core, &a, &e), HCA_TOKEN_BAD_VERBS);
}

static void
test_rotation(void **state)
{
	static const uint32_t both[2] = {RIG_VALUE, RIG_SECOND}, second[2] = {RIG_SECOND, 0};
	const uint32_t flags = HCA_TOKEN_EXPORTED | HCA_TOKEN_CHECK;
	struct hca_token row = {.flags = flags, .value = {RIG_VALUE, RIG_SECOND}};

	assert_true(hca_token_fits(&row, true, RIG_VALUE));
	assert_false(hca_token_fits(&row, true, RIG_SECOND));
	hca_token_store(&row, flags | HCA_TOKEN_SECOND, both);
	assert_true(hca_token_fits(&row, true, RIG_VALUE));
	assert_true(hca_token_fits(&row, true, RIG_SECOND));
	assert_false(hca_token_fits(&row, false, RIG_VALUE));
	hca_token_store(&row, flags, second);
	assert_false(hca_token_fits(&row, true, RIG_VALUE));
	assert_true(hca_token_fits(&row, true, RIG_SECOND));
	row.flags = HCA_TOKEN_EXPORTED;
	assert_true(hca_token_fits(&row, false, 0));
}

/* ---- the matrix, through the stage ---- */

enum value {
	NONE,
	RIGHT,
	WRONG,
	SECOND,
	REVOKED,
	VALUES
};

enum act {
	READ,
	WRITE,
	ATOMIC,
	SEND,
	ACTS
};

static struct rig_req
make(uint32_t n, enum act act, uint32_t region, uint32_t len)
{
	static const uint8_t operands[16];
	struct rig_req p;

	switch (act) {
	case READ:
		p = rig_read(n, 64, len);
		break;
	case WRITE:
		p = rig_write(n, 64, len, 1);
		break;
	case ATOMIC:
		p = rig_atomic(n, HCA_UB_TA_FETCH_ADD, 64, 8, operands);
		break;
	default:
		p = rig_send(n, len, 1);
		return p;
	}
	p.token_id = RIG_ID(region);
	return p;
}

static void
give_value(struct rig_req *p, enum value v)
{
	p->has_token = v != NONE;
	if (v == WRONG)
		p->token ^= 0x80000000;
	if (v == SECOND)
		p->token = RIG_SECOND;
}

/* The target of the request asks for a value, and accepts two; REVOKED: it has one value less. */
static void
prepare(struct rig *r, enum act act, uint32_t region, enum value v)
{
	struct hca_token *row = act == SEND ? &r->ub->jetty[RIG_QPI].token : &r->ub->token[region];
	uint32_t first = act == SEND ? RIG_JETTY_VALUE : RIG_VALUE;

	row->value[0] = v == REVOKED ? RIG_SECOND : first;
	row->value[1] = RIG_SECOND;
	if (row->flags != 0)
		row->flags = HCA_TOKEN_EXPORTED | HCA_TOKEN_CHECK |
			     (v == REVOKED ? 0 : HCA_TOKEN_SECOND);
}

static bool
is_allowed(enum act act, uint32_t region, enum value v, uint32_t len)
{
	if (len == 0 && (act == READ || act == WRITE))
		return true; /* an access to nothing */
	return (act == SEND || region == RIG_SEGMENT) && (v == RIGHT || v == SECOND);
}

static void
one(struct rig *r, uint32_t n, enum act act, uint32_t region, enum value v, uint32_t len)
{
	static const uint8_t answers[ACTS] = {HCA_UB_TA_READ_RESPONSE, HCA_UB_TA_TAACK,
					      HCA_UB_TA_ATOMIC_RESPONSE, HCA_UB_TA_TAACK};
	struct rig_req p = make(n, act, region, len);
	bool allowed = is_allowed(act, region, v, len);

	memset(r->mem, 0xcc, 4096);
	r->cqes = r->published = 0;
	if (act == SEND && allowed)
		rig_post_one(r, 0, 64);
	prepare(r, act, region, v);
	give_value(&p, v);
	rig_feed(r, p);
	rig_expect(r, answers[act], allowed ? RIG_OK : RIG_ABORT, (uint16_t)n);
	if (!allowed)
		for (uint32_t i = 0; i < 4096; i++)
			assert_int_equal(r->mem[i], 0xcc);
	assert_int_equal(r->cqes, act == SEND && allowed);
	assert_int_equal(r->tp->cfg.state, HCA_TPS_ACTIVE);
}

static void
test_matrix(void **state)
{
	static const uint32_t regions[] = {RIG_SEGMENT, RIG_VERBS}, lengths[] = {0, 8};
	struct rig *r = *state;
	uint32_t n = 0;

	for (uint32_t act = 0; act < ACTS; act++)
		for (uint32_t i = 0; i < RTE_DIM(regions); i++)
			for (uint32_t v = 0; v < VALUES; v++)
				for (uint32_t k = 0; k < RTE_DIM(lengths); k++)
					one(r, ++n, act, regions[i], v, lengths[k]);
	assert_int_equal(RIG_COUNTER(r, ub_ta_used) + RIG_COUNTER(r, ub_token_not_exported) +
				 RIG_COUNTER(r, ub_token_mismatch) + RIG_COUNTER(r, ub_tc_token),
			 n);
	assert_int_equal(r->tp->tat.mismatches,
			 RIG_COUNTER(r, ub_token_mismatch) + RIG_COUNTER(r, ub_tc_token));
}

/* n wrong values of a Jetty, whose numbers begin at first. */
static void
guess(struct rig *r, uint32_t rc, uint32_t first, uint32_t n)
{
	struct rig_req p = rig_write(0, 0, 4, 0);

	p.rc = rc;
	p.token++;
	for (uint32_t i = 0; i < n; i++) {
		p.psn = p.tpmsn = first + i;
		rig_give(r, p);
		if (i % 8 != 7 && i != n - 1)
			continue;
		hca_tat_poll(r->h, r->now, HCA_BURST);
		rig_release(r);
		hca_tat_poll(r->h, r->now, HCA_BURST);
	}
}

/* The answer to a right request of a Jetty. */
static void
expect_of(struct rig *r, uint32_t rc, uint32_t n, uint8_t answer)
{
	struct rig_req p = rig_write(n, 0, 4, 0);
	const struct hca_ta_op *op;

	p.rc = rc;
	r->seen = r->tp->lane[HCA_TP_RESPONSES].head;
	rig_feed(r, p);
	op = rig_answer(r);
	assert_int_equal(op->tassn, (uint16_t)n);
	assert_int_equal(op->rc, rc);
	assert_int_equal(op->ta4, answer);
	rig_release(r);
}

/* A second of the Jetty that guesses is over, whatever it sends; others and the TP go on. */
static void
test_flood(void **state)
{
	struct rig *r = *state;
	uint32_t n = 2 * TAT_FLOOD, other = RIG_RC + 1, like = RIG_RC ^ HCA_TP_SUSPECTS / 2;

	guess(r, RIG_RC, 1, TAT_FLOOD);
	/* a new second begins with nothing */
	r->now += TAT_FLOOD_NS;
	guess(r, RIG_RC, TAT_FLOOD + 1, TAT_FLOOD);
	expect_of(r, RIG_RC, ++n, RIG_OK);
	guess(r, other, ++n, 1);
	assert_int_equal(r->tp->cfg.state, HCA_TPS_ACTIVE);
	assert_int_equal(RIG_COUNTER(r, ub_token_floods), 1);
	expect_of(r, RIG_RC, ++n, RIG_ABORT);
	expect_of(r, other, ++n, RIG_ABORT);
	expect_of(r, like, ++n, RIG_OK);
	/* a suspect's tokens are not compared; those of another Jetty that guesses are, once */
	assert_int_equal(RIG_COUNTER(r, ub_token_suspect), 2);
	guess(r, RIG_RC, ++n, 1);
	assert_int_equal(RIG_COUNTER(r, ub_token_mismatch), 2 * TAT_FLOOD + 1);
	guess(r, like, ++n, 1);
	assert_int_equal(RIG_COUNTER(r, ub_token_mismatch), 2 * TAT_FLOOD + 2);
	expect_of(r, like, ++n, RIG_ABORT);
	r->now += TAT_FLOOD_NS;
	expect_of(r, RIG_RC, ++n, RIG_OK);
	expect_of(r, like, ++n, RIG_OK);
	assert_int_equal(RIG_COUNTER(r, ub_token_suspect), 4);
	assert_int_equal(RIG_COUNTER(r, ub_token_floods), 1);
	assert_int_equal(r->tp->cfg.state, HCA_TPS_ACTIVE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_verdicts),
		TEST(test_ranges),
		TEST(test_every_bit_of_the_id),
		TEST(test_windows_are_no_segments),
		TEST(test_again_asks_for_no_value),
		TEST(test_rotation),
		TEST(test_matrix),
		TEST(test_flood),
	};

	return cmocka_run_group_tests_name("token", tests, NULL, NULL);
}
