/* SPDX-License-Identifier: BSD-3-Clause */

/* Answers: aggregation, the ring of those to send, the lane, and the pool of operations. */

#include "tat_rig.h"

#include <string.h>

static void
give_writes(struct rig *r, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		rig_give(r, rig_write(first + i, 0, 4, 0));
}

static void
expect_one(struct rig *r, uint16_t tassn, uint8_t answer)
{
	const struct hca_ta_op *op = rig_answer(r);

	assert_int_equal(op->opcode, HCA_UB_TA_TAACK);
	assert_int_equal(op->tassn, tassn);
	assert_int_equal(op->ta4, answer);
}

/* 32 at most in one; TASSNs wrap. */
static void
test_aggregates(void **state)
{
	struct rig *r = *state;

	for (uint32_t i = 0; i < 40; i++) {
		struct rig_req p = rig_write(1 + i, 0, 4, 0);

		p.tassn = (uint16_t)(0xfff0 + i);
		rig_give(r, p);
	}
	assert_int_equal(rig_answers(r), 0);
	rig_poll(r);
	assert_int_equal(rig_answers(r), 2);
	expect_one(r, 0xfff0, 31);
	expect_one(r, 0x0010, 7);
	assert_int_equal(RIG_COUNTER(r, ub_taacks), 2);
	assert_int_equal(RIG_COUNTER(r, ub_taacks_merged), 38);
	assert_true(
		fx_take_msgs(r->fx, HCA_STAGE_TAT, HCA_STAGE_TPS, hca_tp_object(r->h, RIG_TPI)) &
		HCA_MSG_NEW);
	rig_release(r);
}

/* Only neighbours with the same queue, status 0, and the next TASSN. */
static void
test_aggregates_nothing_else(void **state)
{
	struct rig *r = *state;
	struct rig_req p = rig_write(2, 0, 4, 0);

	rig_give(r, rig_write(1, 0, 4, 0));
	p.rc = RIG_RC + 1;
	rig_give(r, p);		   /* another queue */
	p = rig_write(3, 0, 4, 0); /* refused */
	p.rc = RIG_RC + 1;
	p.token++;
	rig_give(r, p);
	p = rig_write(4, 0, 4, 0);
	p.rc = RIG_RC + 1;
	rig_give(r, p);
	p.psn = p.tpmsn = 5;
	p.tassn = 6; /* one is missing between */
	rig_give(r, p);
	p = rig_read(6, 0, 0);
	p.rc = RIG_RC + 1;
	p.tassn = 7;
	rig_give(r, p);
	rig_poll(r);
	assert_int_equal(rig_answers(r), 6);
	expect_one(r, 1, RIG_OK);
	expect_one(r, 2, RIG_OK);
	expect_one(r, 3, RIG_ABORT);
	expect_one(r, 4, RIG_OK);
	expect_one(r, 6, RIG_OK);
	assert_int_equal(rig_answer(r)->opcode, HCA_UB_TA_READ_RESPONSE);
	rig_release(r);
}

/* Writes of a burst have one answer in the ring together; as many as fit go into one TAACK. */
static void
test_bursts(void **state)
{
	struct rig *r = *state;
	struct rig_req p[RIG_REQUESTS];

	/* the ring is not reset: one answer stays in it, and its end lies within a burst */
	for (uint32_t round = 0, n = 1; round < 12; round++) {
		static const uint8_t size[] = {20, 7, 12, 1, 31, 8};
		uint32_t total = 0;

		for (uint32_t i = 0; total + size[(round + i) % 6] <= RIG_REQUESTS; i++) {
			uint32_t k = size[(round + i) % 6];

			for (uint32_t j = 0; j < k; j++)
				p[j] = rig_write(n + j, 4 * (total + j), 4, (uint8_t)(n + j));
			rig_give_burst(r, p, k);
			n += k;
			total += k;
		}
		assert_int_equal(r->tp->tat.open_in, total);
		rig_poll(r);
		for (uint32_t seen = 0; seen != total;) {
			const struct hca_ta_op *op = rig_answer(r);

			assert_int_equal(op->opcode, HCA_UB_TA_TAACK);
			assert_int_equal(op->tassn, (uint16_t)(n - total + seen));
			assert_true(op->ta4 < HCA_UB_AGGREGATE_MAX);
			seen += 1u + op->ta4;
			assert_true(seen <= total);
		}
		assert_int_equal(rig_answers(r), 0);
		assert_int_equal(r->tp->tat.open_in, 0);
		rig_release(r);
	}
}

/* Also in a burst, only neighbours are answered together. */
static void
test_bursts_of_strangers(void **state)
{
	struct rig *r = *state;
	struct rig_req p[32];

	for (uint32_t i = 0; i < 32; i++) {
		p[i] = rig_write(1 + i, 0, 4, 0);
		p[i].tassn = (uint16_t)(0xfffb + i); /* wraps behind the fifth */
	}
	for (uint32_t i = 8; i < 11; i++)
		p[i].rc = RIG_RC + 1; /* another queue */
	for (uint32_t i = 15; i < 32; i++)
		p[i].tassn++; /* one is missing between */
	p[20].token++;	      /* refused */
	rig_give_burst(r, p, 32);
	rig_poll(r);
	assert_int_equal(rig_answers(r), 6);
	expect_one(r, 0xfffb, 7);
	expect_one(r, 3, 2);
	expect_one(r, 6, 3);
	expect_one(r, 11, 4);
	expect_one(r, 16, RIG_ABORT);
	expect_one(r, 17, 10);
	rig_release(r);
}

/* The answers of a burst are given up with its TP, each once. */
static void
test_burst_of_a_dead_tp(void **state)
{
	struct rig *r = *state;
	struct rig_req p[30];

	for (uint32_t i = 0; i < 30; i++)
		p[i] = rig_write(1 + i, 0, 4, 0);
	rig_give_burst(r, p, 30);
	r->tp->cfg.state = HCA_TPS_ERROR;
	rig_poll(r);
	assert_int_equal(rig_answers(r), 0);
	assert_int_equal(RIG_COUNTER(r, ub_answers_abandoned), 30);
	assert_int_equal(r->tp->tat.open_in, 0);
}

/* A peer has at most `requests` open, complete ones without answer or incomplete ones. */
static void
test_too_many_requests(void **state)
{
	struct rig *r = *state;

	give_writes(r, 1, RIG_REQUESTS / 2);
	for (uint32_t i = 0; i < RIG_REQUESTS / 2; i++)
		rig_give(r, rig_part(rig_write(100 + i, 0, 0, 0), 100 + 2 * i, 0, 2));
	assert_int_equal(r->tp->tat.open_in, RIG_REQUESTS);
	assert_int_equal(r->tp->cfg.state, HCA_TPS_ACTIVE);
	rig_give(r, rig_write(200, 0, 4, 0));
	assert_int_equal(r->tp->cfg.state, HCA_TPS_ERROR);
	assert_int_equal(RIG_COUNTER(r, ub_ta_too_many), 1);
	assert_int_equal(RIG_COUNTER(r, ub_requests_abandoned), RIG_REQUESTS / 2);
	assert_int_equal(RIG_COUNTER(r, ub_answers_abandoned), RIG_REQUESTS / 2);
	assert_int_equal(r->tp->tat.open_in, 0);
}

/* Answered ones do not count, so a peer that keeps to the limit is never refused. */
static void
test_ring_turns(void **state)
{
	struct rig *r = *state;

	for (uint32_t i = 0; i < 50; i++) {
		give_writes(r, 1 + i * 37, 37);
		rig_poll(r);
		assert_int_equal(rig_answers(r), 2);
		expect_one(r, (uint16_t)(1 + i * 37), 31);
		expect_one(r, (uint16_t)(33 + i * 37), 4);
		rig_release(r);
	}
	assert_int_equal(r->tp->cfg.state, HCA_TPS_ACTIVE);
}

/* The lane is full: answers wait in the ring until TPS says that there is room. */
static void
test_full_lane(void **state)
{
	struct rig *r = *state;
	struct hca_tp_lane *lane = &r->tp->lane[HCA_TP_RESPONSES];

	/* operations that TPS has not given back */
	lane->head = r->seen = RIG_W - 2;
	give_writes(r, 1, 2);
	for (uint32_t i = 0; i < 3; i++)
		rig_give(r, rig_read(10 + i, 0, 4));
	rig_poll(r);
	assert_int_equal(rig_answers(r), 2);
	assert_int_equal(r->tp->tat.owed, 2);
	assert_true(hca_tat_deadline(r->h, r->now) == UINT64_MAX);
	rig_poll(r);
	assert_int_equal(rig_answers(r), 2);
	/* the first RIG_W - 2 operations belong to no request */
	r->tp->tat.taken = RIG_W - 2;
	rig_release(r);
	rig_poll(r);
	assert_int_equal(rig_answers(r), 4);
	assert_int_equal(r->tp->tat.owed, 0);
	for (uint32_t i = 0; i < 4; i++)
		rig_answer(r);
	rig_release(r);
}

/* A TP has at most as many operations as are left; atomics without one are not ready. */
static void
test_pool(void **state)
{
	static const uint8_t operands[16] = {1};
	struct rig *r = *state;
	struct hca_ta_op_pool *pool = &r->ub->pool[HCA_TP_RESPONSES];
	uint32_t n = 1;

	while (pool->free_n >= r->tp->tat.held) {
		rig_feed(r, rig_read(n++, 0, 4));
		assert_true(n < 2 * RIG_OPS);
	}
	assert_int_equal(r->tp->tat.held, RIG_OPS / 2 + 1);
	rig_feed(r, rig_atomic(n, HCA_UB_TA_FETCH_ADD, 64, 8, operands));
	assert_int_equal(r->mem[64], 0);
	assert_int_equal(RIG_COUNTER(r, ub_no_op), 1);
	rig_feed(r, rig_write(n + 1, 0, 4, 0));
	assert_int_equal(r->tp->tat.owed, 2);
	assert_true(hca_tat_deadline(r->h, r->now) == HCA_DEADLINE_ROOM);
	while (rig_answers(r) != 0)
		rig_answer(r);
	rig_release(r);
	rig_poll(r);
	assert_int_equal(r->tp->tat.owed, 0);
	assert_int_equal(rig_answers(r), 2);
	assert_int_equal(rig_answer(r)->ta4, RIG_NOT_READY(TAT_TIMER_DEVICE));
	assert_int_equal(rig_answer(r)->ta4, RIG_OK);
	rig_release(r);
}

/* No more messages than there are, and no TP has them all. */
static void
test_messages(void **state)
{
	struct rig *r = *state;
	struct tat_ctx *ctx = tat_ctx(r->h);
	uint32_t kept = ctx->free_n;

	rig_post_one(r, 0, 4096);
	ctx->free_n = 0;
	rig_feed(r, rig_send(1, 0, 1)); /* one with payload needs no message */
	ctx->free_n = kept;
	rig_expect_taack(r, RIG_NOT_READY(TAT_TIMER_DEVICE), 1);
	assert_int_equal(RIG_COUNTER(r, ub_no_message), 1);
	assert_int_equal(r->cqes, 0);
	rig_feed(r, rig_send(2, 8, 1));
	rig_expect_taack(r, RIG_OK, 2);
}

/* The TP dies with results of atomics that were not sent: teardown counts the operations. */
static void
test_dead_tp_gives_all_back(void **state)
{
	static const uint8_t operands[16] = {1};
	struct rig *r = *state;

	rig_feed(r, rig_atomic(1, HCA_UB_TA_FETCH_ADD, 64, 8, operands));
	rig_give(r, rig_atomic(2, HCA_UB_TA_FETCH_ADD, 64, 8, operands));
	rig_give(r, rig_write(3, 0, 4, 0));
	r->tp->cfg.state = HCA_TPS_ERROR;
	rig_poll(r);
	assert_int_equal(rig_answers(r), 1);
	assert_int_equal(r->tp->tat.held, 1);
	assert_int_equal(RIG_COUNTER(r, ub_answers_abandoned), 2);
	assert_int_equal(tat_ctx(r->h)->listed, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_aggregates),
		TEST(test_aggregates_nothing_else),
		TEST(test_bursts),
		TEST(test_bursts_of_strangers),
		TEST(test_burst_of_a_dead_tp),
		TEST(test_too_many_requests),
		TEST(test_ring_turns),
		TEST(test_full_lane),
		TEST(test_pool),
		TEST(test_messages),
		TEST(test_dead_tp_gives_all_back),
	};

	return cmocka_run_group_tests_name("ta_answer", tests, NULL, NULL);
}
