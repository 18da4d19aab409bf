/* SPDX-License-Identifier: BSD-3-Clause */

/* Peers that are not ready, requests without an answer, memory of this side that is late. */

#include "tai_rig.h"

#include <errno.h>

#include "hca.h"

static void
post(struct tai_rig *r, uint8_t op, uint32_t len)
{
	rig_post(r, op, len)->atomic = HCA_UB_TA_SWAP;
	rig_poll(r);
}

/* The same number again, marked as a retry, after the time that the answer asks for. */
static void
test_not_ready(void **state)
{
	struct tai_rig *r = *state;
	struct hca_ta_op *op;
	uint64_t due;
	uint32_t tpi;

	post(r, HCA_OP_SEND, 3000);
	op = rig_next(r, 1);
	assert_int_equal(HCA_BITS(op->ta4, 1, 1), 0);
	rig_taack(r, 1, 0, HCA_UB_RSP_RNR, 12);
	due = rig_armed_for(r);
	assert_true(due >= r->now + 8192000 && due <= r->now + 8192000 + 1024);
	assert_int_equal(r->h->ub->tp[1].tai.open_out, 0);
	assert_int_equal(r->qp->tai.open, 1);
	assert_true(op->flags & HCA_TA_OP_ANSWERED);
	rig_expire(r, due - 5000); /* too early */
	assert_int_equal(rig_skip(r), 0);
	assert_true(rig_armed_for(r) == due);
	rig_expire(r, due);
	assert_int_equal(rig_skip(r), 0); /* the first one is in the lane */
	rig_release_all(r);
	op = rig_any(r, &tpi);
	assert_non_null(op);
	assert_int_equal(op->tassn, 0);
	assert_int_equal(HCA_BITS(op->ta4, 1, 1), 1);
	assert_int_equal(op->payload, 3000);
	assert_int_equal(op->last_opcode, HCA_UB_TA_SEND);
	rig_taack(r, tpi, 0, 0, 0);
	rig_expect(r, 0, 0);
	rig_release_all(r);
	rig_check_quiet(r);
	assert_int_equal(RIG_COUNTER(r, ub_segments_reissued), 1);
	assert_int_equal(RIG_COUNTER(r, ub_segments_not_ready), 1);
	assert_int_equal(r->qp->tai_wait.reissued, 1);
}

/* As TPS does when a TPACK tells of the oldest operation, and has given it back. */
static void
tell(struct tai_rig *r, uint8_t status)
{
	struct hca_tp *tp = &r->h->ub->tp[1];
	uint32_t at = tp->tx.lane[HCA_TP_REQUESTS].done & (tp->cfg.window - 1u);
	uint32_t index = tp->lane[HCA_TP_REQUESTS].ring[at];

	r->h->ub->ops.op[HCA_TP_REQUESTS][index].tps.flags |= HCA_TA_OP_MAKE_TOLD(status);
	tp->tx.told++;
	rig_release(r, 1, 1);
}

/* A TPACK in the place of the answer. */
static void
test_told(void **state)
{
	static const struct {
		uint8_t op, told, status;
	} of[] = {
		{HCA_OP_SEND, HCA_UB_ACK_TA << 5 | HCA_UB_ACK_TA_DONE, 0},
		{HCA_OP_RDMA_WRITE, HCA_UB_ACK_TA << 5 | HCA_UB_ACK_TA_DONE, 0},
		{HCA_OP_RDMA_READ, HCA_UB_ACK_TA << 5 | HCA_UB_ACK_TA_DONE,
		 HCA_UB_STATUS_REMOTE_RESPONSE_LENGTH},
		{HCA_OP_SEND, HCA_UB_ACK_TA << 5 | HCA_UB_ACK_TA_FAILED,
		 HCA_UB_STATUS_REMOTE_ACCESS},
		{HCA_OP_SEND, HCA_UB_ACK_ERROR << 5 | HCA_UB_ERROR_ABORT,
		 HCA_UB_STATUS_REMOTE_ACCESS},
		{HCA_OP_RDMA_READ, HCA_UB_ACK_ERROR << 5 | HCA_UB_ERROR_UNSUPPORTED,
		 HCA_UB_STATUS_REMOTE_UNSUPPORTED},
	};
	struct tai_rig *r = *state;
	uint64_t due;

	for (uint32_t i = 0; i < RTE_DIM(of); i++) {
		post(r, of[i].op, 100);
		rig_skip(r);
		tell(r, of[i].told);
		rig_expect(r, i, of[i].status);
		assert_int_equal(r->h->ub->tp[1].tai.open_out, 0);
	}
	/* not ready: the same number again, after the time that it tells */
	post(r, HCA_OP_SEND, 100);
	rig_skip(r);
	tell(r, HCA_UB_ACK_RNR << 5 | 12);
	due = rig_armed_for(r);
	assert_true(due >= r->now + 8192000 && due <= r->now + 8192000 + 1024);
	rig_expire(r, due);
	rig_taack(r, 1, RTE_DIM(of), 0, 0);
	rig_expect(r, RTE_DIM(of), 0);
	rig_release_all(r);
	rig_check_quiet(r);
	assert_int_equal(RIG_COUNTER(r, ub_segments_told), RTE_DIM(of) + 1);
	assert_int_equal(RIG_COUNTER(r, ub_segments_not_ready), 1);
}

/* A segment of a longer one: its part, and no other. */
static void
test_part_is_not_ready(void **state)
{
	struct tai_rig *r = *state;
	struct hca_ta_op *op;
	uint32_t tpi;

	rig_post(r, HCA_OP_RDMA_WRITE, 2 * 65536 + 100);
	rig_poll(r);
	rig_skip(r);
	rig_taack(r, 1, 2, HCA_UB_RSP_PAGE_FAULT, 0);
	rig_release_all(r);
	rig_expire(r, r->now + 10000);
	op = rig_any(r, &tpi);
	assert_int_equal(op->tassn, 2);
	assert_int_equal(op->payload, 100);
	assert_true(op->req.address == RIG_RADDR + 2 * 65536);
	rig_taack(r, 1, 0, 0, 2);
	rig_expect(r, 0, 0);
}

static void
test_too_often(void **state)
{
	struct tai_rig *r = *state;
	uint32_t tpi;

	r->qp->cfg.rnr_retry = 2;
	post(r, HCA_OP_SEND, 8);
	for (unsigned int i = 0; i < 3; i++) {
		assert_non_null(rig_any(r, &tpi));
		rig_expect_none(r);
		rig_taack(r, tpi, 0, HCA_UB_RSP_RNR, 0);
		rig_release_all(r);
		rig_expire(r, r->now + 10000);
	}
	rig_expect(r, 0, HCA_UB_STATUS_RNR_EXC);
	assert_null(rig_any(r, &tpi));
	rig_check_quiet(r);
}

static void
test_for_ever(void **state)
{
	struct tai_rig *r = *state;
	uint32_t tpi;

	post(r, HCA_OP_SEND, 8);
	for (unsigned int i = 0; i < 300; i++) {
		assert_non_null(rig_any(r, &tpi));
		rig_taack(r, tpi, 0, HCA_UB_RSP_RNR, HCA_UB_RNR_TIMER_MAX);
		rig_release_all(r);
		rig_expire(r, r->now + HCA_UB_RNR_NS(HCA_UB_RNR_TIMER_MAX) + 1024);
	}
	rig_expect_none(r);
}

/* A request that waits to be sent again has no answer: one for it is dropped. */
static void
test_answer_while_it_waits(void **state)
{
	struct tai_rig *r = *state;

	post(r, HCA_OP_SEND, 8);
	rig_skip(r);
	rig_taack(r, 1, 0, HCA_UB_RSP_RNR, 5);
	rig_taack(r, 1, 0, 0, 0);
	rig_expect_none(r);
	assert_int_equal(RIG_COUNTER(r, ub_rsp_unknown_request), 1);
}

/* Requests behind it go on, but for those that its order holds. */
static void
test_others_go_on(void **state)
{
	struct tai_rig *r = *state;

	rig_post(r, HCA_OP_SEND, 8)->order = HCA_UB_ODR_RELAXED;
	rig_poll(r);
	rig_skip(r);
	rig_taack(r, 1, 0, HCA_UB_RSP_RNR, 5);
	rig_post(r, HCA_OP_SEND, 8);
	rig_post(r, HCA_OP_SEND, 8)->order = HCA_UB_ODR_STRONG;
	rig_poll(r);
	assert_int_equal(rig_skip(r), 1);
	rig_taack(r, 2, 1, 0, 0);
	rig_expect_none(r);
	assert_int_equal(rig_skip(r), 0);
}

/* ---- no answer ---- */

#define TIMEOUT HCA_ACK_TIMEOUT_NS(17)

static void
test_no_answer(void **state)
{
	struct tai_rig *r = *state;
	struct hca_ub_headers h;
	uint64_t from = r->now;

	post(r, HCA_OP_ATOMIC, 8);
	assert_true(rig_armed_for(r) == from + TIMEOUT);
	rig_skip(r);
	rig_release_all(r);
	rig_expire(r, from + TIMEOUT - 1);
	rig_expect_none(r);
	rig_expire(r, from + TIMEOUT);
	rig_expect(r, 0, HCA_UB_STATUS_ACK_TIMEOUT);
	assert_int_equal(rig_skip(r), 0); /* never again */
	assert_int_equal(RIG_COUNTER(r, ub_requests_timed_out), 1);
	/* the peer has it: the request still takes one of the peer's places */
	assert_int_equal(r->h->ub->tp[1].tai.open_out, 1);
	h = rig_response(HCA_UB_TA_ATOMIC_RESPONSE, r->qp, 0);
	rig_answer(r, 1, &h, "12345678", 8);
	assert_int_equal(RIG_COUNTER(r, ub_rsp_abandoned), 1);
	assert_int_equal(r->mem[0], 0);
	rig_check_quiet(r);
}

/* Requests that are given up give their places back after a life or two, once. */
static void
test_places_expire(void **state)
{
	struct tai_rig *r = *state;
	struct hca_tp *tp = &r->h->ub->tp[1];
	uint64_t from = r->now, life = hca_tai_life(tp);

	r->h->ub->tpg[RIG_GROUP].count = 1;
	tp->cfg.requests = 2;
	assert_true(life >= TIMEOUT);
	post(r, HCA_OP_SEND, 8);
	post(r, HCA_OP_RDMA_READ, 8);
	post(r, HCA_OP_RDMA_WRITE, 8);
	assert_int_equal(rig_skip(r), 2);
	rig_release_all(r);
	assert_true(hca_tai_deadline(r->h, r->now) == UINT64_MAX);
	rig_expire(r, from + TIMEOUT);
	rig_expect(r, 0, HCA_UB_STATUS_ACK_TIMEOUT);
	rig_expect(r, 1, HCA_UB_STATUS_ACK_TIMEOUT);
	assert_int_equal(tp->tai.open_out, 2);
	assert_true(hca_tai_deadline(r->h, r->now) == from + TIMEOUT + life);
	r->now = from + TIMEOUT + life;
	rig_poll(r);
	assert_int_equal(tp->tai.open_out, 2);
	r->now += life - 1;
	rig_poll(r);
	assert_int_equal(rig_skip(r), 0);
	r->now++;
	rig_poll(r);
	assert_int_equal(rig_skip(r), 1);
	assert_int_equal(tp->tai.open_out, 1);
	assert_int_equal(RIG_COUNTER(r, ub_places_lapsed), 2);
	assert_true(hca_tai_deadline(r->h, r->now) == UINT64_MAX);
	/* the first answer comes late: its place has expired */
	rig_taack(r, 1, 0, 0, 0);
	assert_int_equal(RIG_COUNTER(r, ub_rsp_late), 1);
	assert_int_equal(tp->tai.open_out, 1);
	assert_int_equal(tp->tai.expired, 1);
	rig_taack(r, 1, 2, 0, 0);
	rig_release_all(r);
	rig_expect(r, 2, 0);
	rig_check_quiet(r);
}

/* One place expires, another one is given up later; the answers of both come, in either order. */
static void
test_late_answers(void **state)
{
	struct tai_rig *r = *state;
	struct hca_tp *tp = &r->h->ub->tp[1];

	r->h->ub->tpg[RIG_GROUP].count = 1;
	post(r, HCA_OP_SEND, 8);
	rig_skip(r);
	rig_release_all(r);
	rig_expire(r, r->now + TIMEOUT);
	for (unsigned int i = 0; i < 2; i++) {
		r->now += hca_tai_life(tp);
		rig_poll(r);
	}
	assert_int_equal(tp->tai.expired, 1);
	post(r, HCA_OP_SEND, 8);
	rig_skip(r);
	rig_release_all(r);
	rig_expire(r, r->now + TIMEOUT);
	assert_int_equal(tp->tai.open_out, 1);
	rig_taack(r, 1, 0, 0, 0);
	assert_int_equal(tp->tai.open_out, 1);
	rig_taack(r, 1, 1, 0, 0);
	assert_int_equal(RIG_COUNTER(r, ub_rsp_late), 1);
	assert_int_equal(RIG_COUNTER(r, ub_rsp_abandoned), 1);
	rig_taack(r, 1, 1, 0, 0);
	assert_int_equal(RIG_COUNTER(r, ub_rsp_unknown_request), 1);
	rig_check_quiet(r);
}

static void
test_life(void **state)
{
	struct tai_rig *r = *state;
	struct hca_tp *tp = &r->h->ub->tp[1];

	tp->cfg.rto_base = 20000;
	tp->cfg.rto_exponent = 1;
	tp->cfg.retries = 7;
	assert_true(hca_tai_life(tp) == UINT64_C(2) * 20000000 * 255);
	tp->cfg.rto_exponent = 0;
	tp->cfg.retries = 0;
	assert_true(hca_tai_life(tp) == TIMEOUT);
	tp->cfg.rto_base = 2097152;
	tp->cfg.rto_exponent = 15;
	tp->cfg.retries = 15;
	assert_true(hca_tai_life(tp) == UINT64_C(60000000000));
}

static void
test_never(void **state)
{
	struct tai_rig *r = *state;

	uint64_t from = r->now;

	r->qp->cfg.ack_timeout = 0;
	post(r, HCA_OP_SEND, 8);
	rig_release_all(r);
	for (unsigned int i = 1; i < 10; i++)
		rig_expire(r, from + i * TIMEOUT);
	rig_expect_none(r);
	assert_true(rig_armed_for(r) == 0);
}

/* An answer of the request puts it off. */
static void
test_sign_of_life(void **state)
{
	struct tai_rig *r = *state;
	uint64_t from = r->now;

	rig_post(r, HCA_OP_RDMA_WRITE, 2 * 65536);
	rig_poll(r);
	rig_skip(r);
	r->now = from + 1000000;
	rig_taack(r, 1, 0, 0, 0);
	rig_expire(r, from + TIMEOUT);
	rig_expect_none(r);
	assert_true(rig_armed_for(r) == from + 1000000 + TIMEOUT);
	rig_expire(r, from + 1000000 + TIMEOUT);
	rig_expect(r, 0, HCA_UB_STATUS_ACK_TIMEOUT);
}

/* An answer for several requests, of which one was given up before. */
static void
test_late_answer_of_many(void **state)
{
	struct tai_rig *r = *state;

	r->h->ub->tpg[RIG_GROUP].count = 1;
	post(r, HCA_OP_RDMA_WRITE, 8);
	rig_expire(r, r->now + TIMEOUT);
	rig_expect(r, 0, HCA_UB_STATUS_ACK_TIMEOUT);
	post(r, HCA_OP_RDMA_WRITE, 8);
	assert_int_equal(r->h->ub->tp[1].tai.open_out, 2);
	rig_taack(r, 1, 0, 0, 1);
	rig_expect(r, 1, 0);
	rig_skip(r);
	rig_release_all(r);
	rig_check_quiet(r);
}

/* One that was given up before it was sent is passed over, and never was at the peer. */
static void
test_given_up_unsent(void **state)
{
	struct tai_rig *r = *state;
	struct hca_ta_op *op;

	post(r, HCA_OP_RDMA_WRITE, 8);
	rig_expire(r, r->now + TIMEOUT);
	rig_expect(r, 0, HCA_UB_STATUS_ACK_TIMEOUT);
	op = rig_next(r, 1);
	assert_int_equal(op->flags, HCA_TA_OP_ORPHAN);
	op->tps.flags = HCA_TA_OP_SKIPPED;
	rig_release_all(r);
	rig_check_quiet(r);
}

/* ---- memory of this side ---- */

static int
not_now(void *arg, uint32_t domain, bool write, uint64_t addr, void *bytes, uint32_t len)
{
	return *(int *)arg;
}

static void
test_late_memory(void **state)
{
	struct tai_rig *r = *state;
	struct hca_mpt_entry *e = &r->h->vtp.mpt[HCA_KEY_INDEX(RIG_KEY)];
	struct hca_ub_headers h = rig_response(HCA_UB_TA_READ_RESPONSE, r->qp, 0);
	uint64_t page = (uint64_t)(uintptr_t)r->mem | HCA_BUS_FOREIGN;
	uint8_t data[1024] = {0};
	int rc = -EAGAIN;
	uint32_t tpi;

	r->h->cfg.foreign = not_now;
	r->h->cfg.foreign_arg = &rc;
	post(r, HCA_OP_RDMA_READ, 2048);
	rig_skip(r);
	rig_release_all(r);
	r->h->vtp.mtt = &page;
	e->page_shift = 20;
	e->state = HCA_MPT_FOREIGN;
	e->foreign = 1;
	h.rtph.last = 0;
	rig_answer(r, 1, &h, data, 1024);
	rig_expect_none(r);
	assert_int_equal(RIG_COUNTER(r, ub_rsp_scatter_late), 1);
	e->state = HCA_MPT_VALID;
	h.rtph.last = 1;
	h.rtph.psn = 1;
	h.ofstetah.offset = 1;
	rig_answer(r, 1, &h, data, 1024);
	rig_expect_none(r);
	rig_expire(r, r->now + HCA_TAI_LATE_NS + 2000);
	assert_int_equal(rig_any(r, &tpi)->tassn, 0);
	rig_answer(r, tpi, &h, data, 1024);
	h.rtph.last = 0;
	h.rtph.psn = 0;
	h.ofstetah.offset = 0;
	rig_answer(r, tpi, &h, data, 1024);
	rig_expect(r, 0, 0);
	rig_release_all(r);
	rig_check_quiet(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
		T(test_not_ready),
		T(test_told),
		T(test_part_is_not_ready),
		T(test_too_often),
		T(test_for_ever),
		T(test_answer_while_it_waits),
		T(test_others_go_on),
		T(test_no_answer),
		T(test_places_expire),
		T(test_late_answers),
		T(test_life),
		T(test_never),
		T(test_sign_of_life),
		T(test_late_answer_of_many),
		T(test_given_up_unsent),
		T(test_late_memory),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
