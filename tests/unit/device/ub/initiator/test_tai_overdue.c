/* SPDX-License-Identifier: BSD-3-Clause */

/* Requests for which a Jetty waits longer than the peer may keep their places, or without limit. */

#include "tai_rig.h"

#include "hca.h"

#define PATIENCE HCA_TAI_OVERDUE_NS

/* One TP, which takes two requests; the Jetty waits without limit. */
static struct hca_tp *
begin(struct tai_rig *r)
{
	struct hca_tp *tp = &r->h->ub->tp[1];

	r->h->ub->tpg[RIG_GROUP].count = 1;
	tp->cfg.requests = 2;
	r->qp->cfg.ack_timeout = 0;
	return tp;
}

static void
post(struct tai_rig *r, uint8_t op, uint32_t len)
{
	rig_post(r, op, len);
	rig_poll(r);
}

/* Two requests that the peer has acknowledged are overdue. */
static struct hca_tp *
two_overdue(struct tai_rig *r)
{
	struct hca_tp *tp = begin(r);

	post(r, HCA_OP_SEND, 8);
	post(r, HCA_OP_RDMA_WRITE, 8);
	assert_int_equal(rig_skip(r), 2);
	rig_release_all(r);
	rig_expire(r, r->now + PATIENCE);
	assert_int_equal(RIG_COUNTER(r, ub_segments_overdue), 2);
	assert_int_equal(tp->tai.abandoned, 2);
	return tp;
}

static void
pass_a_life(struct tai_rig *r, const struct hca_tp *tp)
{
	r->now += hca_tai_life(tp);
	rig_poll(r);
}

/* Their places are others' after a life or two; they complete when their answers come. */
static void
test_places(void **state)
{
	struct tai_rig *r = *state;
	struct hca_tp *tp = two_overdue(r);

	assert_true(hca_tai_deadline(r->h, r->now) == r->now + hca_tai_life(tp));
	post(r, HCA_OP_RDMA_WRITE, 8);
	pass_a_life(r, tp);
	assert_int_equal(rig_skip(r), 0);
	pass_a_life(r, tp);
	assert_int_equal(rig_skip(r), 1);
	assert_int_equal(tp->tai.open_out, 1);
	assert_int_equal(RIG_COUNTER(r, ub_places_lapsed), 2);
	assert_int_equal(RIG_COUNTER(r, ub_requests_timed_out), 0);
	rig_expect_none(r);
	rig_release_all(r);
	rig_taack(r, 1, 0, 0, 2);
	for (uint32_t i = 0; i < 3; i++)
		rig_expect(r, i, 0);
	assert_int_equal(tp->tai.expired, 0);
	assert_int_equal(RIG_COUNTER(r, ub_responses), 1);
	rig_check_quiet(r);
}

/* An answer before the place expires gives it back, once. */
static void
test_answer_in_between(void **state)
{
	struct tai_rig *r = *state;
	struct hca_tp *tp = two_overdue(r);

	pass_a_life(r, tp);
	rig_taack(r, 1, 0, 0, 0);
	rig_expect(r, 0, 0);
	assert_int_equal(tp->tai.open_out, 1);
	assert_int_equal(tp->tai.abandoned, 1);
	pass_a_life(r, tp);
	assert_int_equal(RIG_COUNTER(r, ub_places_lapsed), 1);
	assert_int_equal(tp->tai.open_out, 0);
	rig_taack(r, 1, 1, 0, 0);
	rig_expect(r, 1, 0);
	assert_int_equal(tp->tai.expired, 0);
	rig_check_quiet(r);
}

/* A refusal is also an answer. */
static void
test_refusal(void **state)
{
	struct tai_rig *r = *state;
	struct hca_tp *tp = two_overdue(r);

	rig_taack(r, 1, 1, HCA_UB_RSP_ERROR, HCA_UB_ERROR_UNSUPPORTED);
	assert_int_equal(tp->tai.open_out, 1);
	assert_int_equal(tp->tai.abandoned, 1);
	rig_taack(r, 1, 0, 0, 0);
	rig_expect(r, 0, 0);
	rig_expect(r, 1, HCA_UB_STATUS_REMOTE_UNSUPPORTED);
	rig_check_quiet(r);
}

/* "Not ready" after all: it is sent again, and has a place as any other. */
static void
test_not_ready(void **state)
{
	struct tai_rig *r = *state;
	struct hca_tp *tp = two_overdue(r);

	rig_taack(r, 1, 1, 0, 0);
	rig_taack(r, 1, 0, HCA_UB_RSP_RNR, 0);
	assert_int_equal(tp->tai.open_out, 0);
	assert_int_equal(tp->tai.abandoned, 0);
	rig_expire(r, r->now + 10000);
	assert_int_equal(rig_skip(r), 1);
	assert_int_equal(tp->tai.open_out, 1);
	rig_release_all(r);
	rig_taack(r, 1, 0, 0, 0);
	rig_expect(r, 0, 0);
	rig_expect(r, 1, 0);
	rig_check_quiet(r);
}

/* A part of a Read_response that does not fit, then the last one. */
static void
fail_read(struct tai_rig *r, const struct hca_tp *tp, uint16_t tassn)
{
	struct hca_ub_headers h = rig_response(HCA_UB_TA_READ_RESPONSE, r->qp, tassn);
	static const uint8_t data[1024];

	h.rtph.last = 0;
	h.ofstetah.offset = 2048 / HCA_UB_OFFSET_UNIT;
	rig_answer(r, 1, &h, data, sizeof(data));
	rig_expect(r, tassn, HCA_UB_STATUS_REMOTE_RESPONSE_LENGTH);
	assert_int_equal(tp->tai.open_out, 1);
	assert_int_equal(tp->tai.abandoned, 1);
	h.rtph.last = 1;
	h.ofstetah.offset = 1024 / HCA_UB_OFFSET_UNIT;
	rig_answer(r, 1, &h, data, sizeof(data));
	assert_int_equal(tp->tai.expired, 0);
	rig_check_quiet(r);
}

/* A Read that fails in the middle of its response is at the peer until the last packet. */
static void
test_read_fails(void **state)
{
	struct tai_rig *r = *state;
	struct hca_tp *tp = begin(r);

	for (unsigned int lives = 0; lives < 3; lives++) {
		post(r, HCA_OP_RDMA_READ, 2048);
		rig_skip(r);
		rig_release_all(r);
		rig_expire(r, r->now + PATIENCE);
		for (unsigned int i = 0; i < lives; i++)
			pass_a_life(r, tp);
		assert_int_equal(tp->tai.expired, lives == 2);
		fail_read(r, tp, (uint16_t)lives);
	}
}

/* One that is given up later has its place once. */
static void
test_given_up(void **state)
{
	struct tai_rig *r = *state;
	struct hca_tp *tp = begin(r);
	uint64_t from = r->now;

	r->qp->cfg.ack_timeout = 19;
	post(r, HCA_OP_SEND, 8);
	rig_skip(r);
	rig_release_all(r);
	assert_true(rig_armed_for(r) == from + PATIENCE);
	rig_expire(r, from + PATIENCE);
	assert_true(rig_armed_for(r) == from + HCA_ACK_TIMEOUT_NS(19));
	for (unsigned int i = 0; i < 2; i++)
		pass_a_life(r, tp);
	rig_expect_none(r);
	rig_expire(r, from + HCA_ACK_TIMEOUT_NS(19));
	rig_expect(r, 0, HCA_UB_STATUS_ACK_TIMEOUT);
	assert_int_equal(tp->tai.open_out, 0);
	assert_int_equal(tp->tai.abandoned, 0);
	assert_int_equal(tp->tai.expired, 1);
	rig_taack(r, 1, 0, 0, 0);
	assert_int_equal(RIG_COUNTER(r, ub_rsp_late), 1);
	rig_check_quiet(r);
}

/* The peer may not have requests that are still in the lane. */
static void
test_in_the_lane(void **state)
{
	struct tai_rig *r = *state;
	struct hca_tp *tp = begin(r);
	uint64_t from = r->now;

	post(r, HCA_OP_SEND, 8);
	rig_skip(r);
	rig_expire(r, from + PATIENCE);
	assert_int_equal(tp->tai.abandoned, 0);
	assert_true(rig_armed_for(r) == from + 2 * PATIENCE);
	rig_release_all(r);
	rig_expire(r, from + 2 * PATIENCE);
	assert_int_equal(tp->tai.abandoned, 1);
	rig_taack(r, 1, 0, 0, 0);
	rig_expect(r, 0, 0);
	rig_check_quiet(r);
}

/* An answer of the request puts it off. */
static void
test_sign_of_life(void **state)
{
	struct tai_rig *r = *state;
	struct hca_tp *tp = begin(r);
	uint64_t from = r->now;

	post(r, HCA_OP_RDMA_WRITE, 2 * 65536);
	rig_skip(r);
	rig_release_all(r);
	r->now = from + 1000000;
	rig_taack(r, 1, 0, 0, 0);
	rig_expire(r, from + PATIENCE);
	assert_int_equal(tp->tai.abandoned, 0);
	assert_true(rig_armed_for(r) == from + 1000000 + PATIENCE);
	rig_expire(r, from + 1000000 + PATIENCE);
	assert_int_equal(tp->tai.abandoned, 1);
	rig_taack(r, 1, 1, 0, 0);
	rig_expect(r, 0, 0);
	rig_check_quiet(r);
}

/* While no other deadline is near, a new request becomes overdue in time. */
static void
test_the_next_one(void **state)
{
	struct tai_rig *r = *state;
	struct hca_tp *tp = begin(r);

	r->qp->cfg.ack_timeout = 31;
	post(r, HCA_OP_SEND, 8);
	rig_skip(r);
	rig_release_all(r);
	rig_expire(r, r->now + PATIENCE);
	post(r, HCA_OP_SEND, 8);
	rig_skip(r);
	rig_release_all(r);
	assert_true(rig_armed_for(r) == r->now + PATIENCE);
	rig_expire(r, r->now + PATIENCE);
	assert_int_equal(tp->tai.abandoned, 2);
	rig_taack(r, 1, 0, 0, 1);
	rig_check_quiet(r);
}

/* A Jetty that is reset, or in ERR: its abandoned requests are not counted again. */
static void
test_purge(void **state)
{
	struct tai_rig *r = *state;
	struct hca_tp *tp = two_overdue(r);

	r->qp->cfg.state = HCA_QPS_RST;
	hca_tai_forget(r->h, r->qp, RIG_QPI);
	assert_int_equal(tp->tai.open_out, 2);
	assert_int_equal(tp->tai.abandoned, 2);
	for (unsigned int i = 0; i < 2; i++)
		pass_a_life(r, tp);
	assert_int_equal(tp->tai.expired, 2);
	rig_check_quiet(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
		T(test_places),	     T(test_answer_in_between), T(test_refusal),
		T(test_not_ready),   T(test_read_fails),	T(test_given_up),
		T(test_in_the_lane), T(test_sign_of_life),	T(test_the_next_one),
		T(test_purge),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
