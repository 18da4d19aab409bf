/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Ends: suspended, flushed, reset and destroyed Jettys, TPs that died or were taken away, payload
 * that could not be read, unreliable requests.
 */

#include "tai_rig.h"

static void
post(struct tai_rig *r, unsigned int n)
{
	while (n-- > 0)
		rig_post(r, HCA_OP_RDMA_WRITE, 8);
	rig_poll(r);
}

static void
set_state(struct tai_rig *r, uint32_t state)
{
	r->qp->cfg.state = state;
	hca_msg_send(r->h, HCA_STAGE_CEU, HCA_STAGE_TAI, RIG_QPI, HCA_MSG_STATE);
	rig_poll(r);
}

static void
parsed(struct tai_rig *r)
{
	hca_msg_send(r->h, HCA_STAGE_PARSER, HCA_STAGE_TAI, RIG_QPI, HCA_MSG_STATE);
	rig_poll(r);
}

static void
purge(struct tai_rig *r)
{
	r->qp->cfg.state = HCA_QPS_RST;
	r->h->purge_seq++;
	hca_msg_send(r->h, HCA_STAGE_CEU, HCA_STAGE_TAI, RIG_QPI, HCA_MSG_PURGE);
	rig_poll(r);
	assert_int_equal(r->h->line[HCA_STAGE_TAI].purge_ack, r->h->purge_seq);
	assert_int_equal(r->qp->sq_freed, r->qp->parser.head);
}

/* ---- suspend ---- */

/* Open requests finish, the others stay; then one CQE, and all go on after RTS. */
static void
test_suspend(void **state)
{
	struct tai_rig *r = *state;

	post(r, 2);
	rig_skip(r);
	set_state(r, HCA_QPS_SQD);
	post(r, 2);
	assert_int_equal(rig_skip(r), 0);
	rig_taack(r, 1, 0, 0, 0);
	rig_expect(r, 0, 0);
	rig_expect_none(r);
	rig_taack(r, 2, 1, 0, 0);
	rig_expect(r, 1, 0);
	rig_expect(r, 0, HCA_UB_STATUS_SUSPEND_DONE);
	set_state(r, HCA_QPS_SQD);
	rig_expect_none(r);
	set_state(r, HCA_QPS_RTS);
	assert_int_equal(rig_skip(r), 2);
	set_state(r, HCA_QPS_SQD);
	rig_expect_none(r);
	rig_taack(r, 1, 2, 0, 1);
	rig_expect(r, 2, 0);
	rig_expect(r, 3, 0);
	rig_expect(r, 0, HCA_UB_STATUS_SUSPEND_DONE);
	rig_release_all(r);
	rig_check_quiet(r);
}

/* A request of which a part was sent stays where it is. */
static void
test_suspend_in_the_middle(void **state)
{
	struct tai_rig *r = *state;

	r->h->ub->tp[1].cfg.requests = r->h->ub->tp[2].cfg.requests = 1;
	rig_post(r, HCA_OP_RDMA_WRITE, 4 * 65536);
	rig_poll(r);
	assert_int_equal(rig_skip(r), 2);
	set_state(r, HCA_QPS_SQD);
	rig_taack(r, 1, 0, 0, 1);
	rig_expect(r, 0, HCA_UB_STATUS_SUSPEND_DONE);
	assert_int_equal(rig_skip(r), 0);
	set_state(r, HCA_QPS_RTS);
	assert_int_equal(rig_skip(r), 2);
	rig_taack(r, 1, 2, 0, 1);
	rig_expect(r, 0, 0);
}

/* A failure suspends where the Jetty wants that. */
static void
test_failure_suspends(void **state)
{
	struct tai_rig *r = *state;

	r->qp->cfg.suspend = true;
	post(r, 3);
	rig_skip(r);
	rig_taack(r, 2, 1, 3, 2);
	assert_int_equal(r->qp->cfg.state, HCA_QPS_SQD);
	assert_true(fx_take_msgs(r->fx, HCA_STAGE_TAI, HCA_STAGE_PARSER, RIG_QPI) & HCA_MSG_STATE);
	rig_expect_none(r);
	post(r, 1);
	assert_int_equal(rig_skip(r), 0);
	rig_taack(r, 1, 0, 0, 0);
	rig_taack(r, 1, 2, 0, 0);
	rig_expect(r, 0, 0);
	rig_expect(r, 1, HCA_UB_STATUS_REMOTE_ACCESS);
	rig_expect(r, 2, 0);
	rig_expect(r, 0, HCA_UB_STATUS_SUSPEND_DONE);
	rig_expect_none(r);
	/* from there to ERR */
	set_state(r, HCA_QPS_ERR);
	rig_expect(r, 3, HCA_UB_STATUS_FLUSHED);
	rig_release_all(r);
	rig_check_quiet(r);
	assert_int_equal(RIG_COUNTER(r, ub_suspended), 1);
}

static void
test_failure_goes_on(void **state)
{
	struct tai_rig *r = *state;

	post(r, 1);
	rig_taack(r, 1, 0, 3, 2);
	rig_expect(r, 0, HCA_UB_STATUS_REMOTE_ACCESS);
	assert_int_equal(r->qp->cfg.state, HCA_QPS_RTS);
	post(r, 1);
	rig_taack(r, 2, 1, 0, 0);
	rig_expect(r, 1, 0);
}

/* ---- flush ---- */

static void
test_flush(void **state)
{
	struct tai_rig *r = *state;
	struct hca_ta_op *op;

	post(r, 2);
	rig_skip(r);
	rig_taack(r, 2, 1, 3, 1);
	rig_post(r, HCA_OP_SEND, 8)->flags |= HCA_REC_FENCE;
	set_state(r, HCA_QPS_ERR);
	rig_expect(r, 0, HCA_UB_STATUS_FLUSHED);
	rig_expect(r, 1, HCA_UB_STATUS_REMOTE_UNSUPPORTED);
	rig_expect(r, 2, HCA_UB_STATUS_FLUSHED);
	rig_expect_none(r);
	parsed(r);
	rig_expect(r, 0, HCA_UB_STATUS_FLUSH_DONE);
	post(r, 1); /* later ones are flushed one by one */
	rig_expect(r, 3, HCA_UB_STATUS_FLUSHED);
	parsed(r);
	rig_expect_none(r);
	/* the peer answers its request some time; the answer is not read */
	op = hca_tai_op(r->h, r->h->ub->tp[1].lane[HCA_TP_REQUESTS].ring[0]);
	assert_true(op->flags & HCA_TA_OP_ORPHAN);
	assert_int_equal(r->h->ub->tp[1].tai.open_out, 1);
	rig_taack(r, 1, 0, 0, 0);
	assert_int_equal(RIG_COUNTER(r, ub_rsp_abandoned), 1);
	rig_expect_none(r);
	rig_release_all(r);
	rig_check_quiet(r);
	assert_int_equal(RIG_COUNTER(r, req_cqe_flush_error), 3);
}

/* FLUSH_DONE waits for the parser, and for its parsed requests. */
static void
test_flush_of_nothing(void **state)
{
	struct tai_rig *r = *state;

	set_state(r, HCA_QPS_ERR);
	rig_expect_none(r);
	parsed(r);
	rig_expect(r, 0, HCA_UB_STATUS_FLUSH_DONE);
	set_state(r, HCA_QPS_ERR);
	rig_expect_none(r);
}

/* One that waits for room or for time is flushed from there. */
static void
test_flush_of_waiting_ones(void **state)
{
	struct tai_rig *r = *state;

	r->h->ub->tp[1].cfg.requests = r->h->ub->tp[2].cfg.requests = 1;
	post(r, 3);
	rig_skip(r);
	assert_true(r->qp->tai.flags & HCA_TAI_WAITS);
	rig_taack(r, 1, 0, HCA_UB_RSP_RNR, 10);
	rig_skip(r);
	set_state(r, HCA_QPS_ERR);
	for (uint32_t i = 0; i < 3; i++)
		rig_expect(r, i, HCA_UB_STATUS_FLUSHED);
	assert_false(r->qp->tai.flags & HCA_TAI_WAITS);
	rig_taack(r, 2, 1, 0, 0);
	rig_taack(r, 1, 2, 0, 0);
	rig_release_all(r);
	rig_check_quiet(r);
}

/* One whose operation is back already has nothing to come that could return its record. */
static void
test_flush_without_operation(void **state)
{
	struct tai_rig *r = *state;

	post(r, 1);
	rig_skip(r);
	rig_taack(r, 1, 0, HCA_UB_RSP_RNR, 10);
	rig_release_all(r);
	fx_take_msgs(r->fx, HCA_STAGE_TAI, HCA_STAGE_PARSER, RIG_QPI);
	set_state(r, HCA_QPS_ERR);
	rig_expect(r, 0, HCA_UB_STATUS_FLUSHED);
	assert_int_equal(r->qp->sq_freed, 1);
	assert_true(fx_take_msgs(r->fx, HCA_STAGE_TAI, HCA_STAGE_PARSER, RIG_QPI) & HCA_MSG_FREED);
	rig_check_quiet(r);
}

/* ---- reset and destroy ---- */

/* Records are back at once, operations when the TP has done with them. */
static void
test_purge(void **state)
{
	struct tai_rig *r = *state;
	struct hca_ta_op *op;

	r->h->ub->tpg[RIG_GROUP].count = 1;
	post(r, 4);
	rig_skip(r);
	rig_release(r, 1, 1);	  /* 0: arrived, no answer yet */
	rig_taack(r, 1, 1, 0, 0); /* 1: answered, in the lane */
	rig_taack(r, 1, 2, 1, 3); /* 2: waits */
	rig_post(r, HCA_OP_SEND, 8);
	purge(r);
	hca_record_pool_refill(&r->h->records[HCA_WIRE_UB].full);
	assert_int_equal(hca_record_pool_in_use(&r->h->records[HCA_WIRE_UB].full), 0);
	assert_int_equal(r->qp->tai.open | r->qp->tai.flags, 0);
	op = hca_tai_op(r->h, r->h->ub->tp[1].lane[HCA_TP_REQUESTS].ring[3]);
	assert_int_equal(op->flags, HCA_TA_OP_ORPHAN | HCA_TA_OP_FORGOTTEN);
	assert_int_equal(r->h->ub->tp[1].tai.open_out, 2);
	assert_int_equal(r->h->ub->tp[1].tai.abandoned, 2);
	/* answers to requests that were purged */
	rig_taack(r, 1, 0, 0, 0);
	rig_taack(r, 1, 3, 0, 0);
	rig_taack(r, 1, 3, 0, 0);
	assert_int_equal(RIG_COUNTER(r, ub_rsp_abandoned), 2);
	assert_int_equal(RIG_COUNTER(r, ub_rsp_unknown_queue), 1);
	rig_release_all(r);
	rig_expect_none(r);
	rig_check_quiet(r);
	/* it looks once for expired requests, and finds no such request */
	assert_true(hca_tai_deadline(r->h, r->now) > r->now);
	r->now = hca_tai_deadline(r->h, r->now);
	rig_poll(r);
	assert_true(hca_tai_deadline(r->h, r->now) == UINT64_MAX);
}

static void
test_purge_of_a_waiting_one(void **state)
{
	struct tai_rig *r = *state;
	struct hca_qp *other = rig_jetty(r, 5);

	r->h->ub->tpg[RIG_GROUP].count = 1;
	r->h->ub->tp[1].cfg.requests = 1;
	post(r, 2);
	rig_post_on(r, other, HCA_OP_SEND, 8);
	rig_poll(r);
	rig_skip(r);
	purge(r);
	assert_true(other->tai.flags & HCA_TAI_WAITS);
	rig_taack(r, 1, 0, 0, 0);
	assert_int_equal(rig_next(r, 1)->object, 5);
}

/* The Jetty lives again while an operation of its last life is in a lane. */
static void
test_next_life(void **state)
{
	struct tai_rig *r = *state;

	post(r, 1);
	rig_skip(r);
	purge(r);
	r->qp->cfg.state = HCA_QPS_RTS;
	r->qp->cfg.generation++;
	r->qp->sq_una = (uint64_t)r->qp->sq_next << 32;
	r->qp->tai.tassn = 0;
	post(r, 1);
	rig_skip(r);
	assert_int_equal(hca_tai_segment(r->qp, 0)->op, 1);
	rig_release(r, 1, 1);
	assert_int_equal(hca_tai_segment(r->qp, 0)->op, 1);
	rig_taack(r, (uint32_t)hca_tai_segment(r->qp, 0)->number, 0, 0, 0);
	rig_expect(r, 1, 0);
	rig_taack(r, 1, 0, 0, 0);
	rig_release_all(r);
	rig_check_quiet(r);
}

/* ---- TPs ---- */

static void
tp_dies(struct tai_rig *r, uint32_t tpi)
{
	r->h->ub->tp[tpi].cfg.state = HCA_TPS_ERROR;
	hca_tp_msg_send(r->h, HCA_STAGE_TPS, HCA_STAGE_TAI, tpi, HCA_MSG_DEAD);
	rig_poll(r);
	rig_release_all(r);
	rig_poll(r);
}

/* Requests that were sent are not repeated: they may have been executed. Others use another TP. */
static void
test_dead_tp(void **state)
{
	struct tai_rig *r = *state;

	rig_by_turns(r);
	r->h->ub->tp[1].cfg.requests = r->h->ub->tp[2].cfg.requests = 2;
	post(r, 8);
	assert_int_equal(rig_skip(r), 4);
	tp_dies(r, 1);
	rig_expect(r, 0, HCA_UB_STATUS_ACK_TIMEOUT);
	rig_expect_none(r);
	rig_taack(r, 2, 1, 0, 0);
	rig_expect(r, 1, 0);
	rig_expect(r, 2, HCA_UB_STATUS_ACK_TIMEOUT);
	rig_taack(r, 2, 3, 0, 0);
	rig_expect(r, 3, 0);
	assert_null(rig_next(r, 1));
	assert_int_equal(rig_skip(r), 2);
	tp_dies(r, 2); /* all of the group */
	for (uint32_t i = 4; i < 8; i++)
		rig_expect(r, i, HCA_UB_STATUS_ACK_TIMEOUT);
	rig_expect_none(r);
	assert_int_equal(RIG_COUNTER(r, ub_segments_reissued), 0);
	hca_record_pool_refill(&r->h->records[HCA_WIRE_UB].full);
	assert_int_equal(hca_record_pool_in_use(&r->h->records[HCA_WIRE_UB].full), 0);
}

/* A segment that waits for a peer that is not ready has no TP: it goes to another one. */
static void
test_dead_tp_while_it_waits(void **state)
{
	struct tai_rig *r = *state;

	post(r, 1);
	rig_skip(r);
	rig_taack(r, 1, 0, 1, 0);
	tp_dies(r, 1);
	rig_expect_none(r);
	r->now += 10000;
	hca_msg_send(r->h, HCA_STAGE_TIMER, HCA_STAGE_TAI, RIG_QPI, HCA_MSG_EXPIRED);
	rig_poll(r);
	assert_non_null(rig_next(r, 2));
	rig_taack(r, 2, 0, 0, 0);
	rig_expect(r, 0, 0);
}

/* The CEU waits until no segment is of that TP, whose next life is another one. */
static void
test_purge_of_a_tp(void **state)
{
	struct tai_rig *r = *state;
	struct hca_tp *tp = &r->h->ub->tp[1];

	rig_by_turns(r);
	post(r, 2);
	rig_skip(r);
	tp->cfg.state = HCA_TPS_RESET;
	r->h->purge_seq++;
	hca_tp_msg_send(r->h, HCA_STAGE_CEU, HCA_STAGE_TAI, 1, HCA_MSG_PURGE);
	rig_poll(r);
	assert_int_equal(r->h->line[HCA_STAGE_TAI].purge_ack, r->h->purge_seq);
	rig_expect(r, 0, HCA_UB_STATUS_ACK_TIMEOUT);
	assert_int_equal(tp->tai.taken, tp->lane[HCA_TP_REQUESTS].head);
	assert_int_equal(r->h->ub->pool[HCA_TP_REQUESTS].free_n,
			 r->h->ub->pool[HCA_TP_REQUESTS].count - 1);
	hca_tp_begin(tp, tp->cfg.block, 0, 0);
	rig_taack(r, 2, 1, 0, 0);
	rig_expect(r, 1, 0);
	rig_release_all(r);
	rig_check_quiet(r);
}

/* ---- payload that could not be read ---- */

static void
test_poisoned(void **state)
{
	struct tai_rig *r = *state;

	rig_by_turns(r);
	post(r, 2);
	/* the answer comes first, or the end of the operation */
	rig_next(r, 1)->encap = HCA_TA_OP_POISONED;
	rig_taack(r, 1, 0, 3, 2);
	rig_expect(r, 0, HCA_UB_STATUS_LOCAL_ACCESS);
	rig_next(r, 2)->encap = HCA_TA_OP_POISONED;
	rig_release_all(r);
	rig_expect_none(r);
	rig_taack(r, 2, 1, 3, 2);
	rig_expect(r, 1, HCA_UB_STATUS_LOCAL_ACCESS);
	rig_check_quiet(r);
}

/* ---- unreliable ---- */

static void
test_unreliable(void **state)
{
	struct tai_rig *r = *state;
	struct hca_ta_op *op;

	for (unsigned int i = 0; i < 3; i++)
		rig_post(r, HCA_OP_SEND, 100)->to = HCA_UB_MAKE_NUMBER(HCA_UB_TO_ADDRESS, 0);
	rig_poll(r);
	op = rig_next(r, HCA_TP_UNRELIABLE);
	assert_int_equal(op->opcode, HCA_UB_TA_SEND);
	assert_int_equal(r->h->ub->tp[0].tai.open_out, 0);
	rig_next(r, HCA_TP_UNRELIABLE)->encap = HCA_TA_OP_POISONED;
	rig_expect_none(r);
	rig_release(r, HCA_TP_UNRELIABLE, 2);
	rig_expect(r, 0, 0);
	rig_expect(r, 1, HCA_UB_STATUS_LOCAL_ACCESS);
	rig_taack(r, 1, 2, 0, 0); /* such a request has no answer */
	assert_int_equal(RIG_COUNTER(r, ub_rsp_other_peer), 1);
	rig_release(r, HCA_TP_UNRELIABLE, 1);
	rig_expect(r, 2, 0);
	rig_check_quiet(r);
}

static void
test_unreliable_too_long(void **state)
{
	struct tai_rig *r = *state;

	rig_post(r, HCA_OP_SEND, RIG_MTU)->to = HCA_UB_MAKE_NUMBER(HCA_UB_TO_ADDRESS, 0);
	rig_post(r, HCA_OP_SEND, RIG_MTU + 1)->to = HCA_UB_MAKE_NUMBER(HCA_UB_TO_ADDRESS, 0);
	rig_poll(r);
	assert_int_equal(rig_skip(r), 1);
	rig_release(r, HCA_TP_UNRELIABLE, 1);
	rig_expect(r, 0, 0);
	rig_expect(r, 1, HCA_UB_STATUS_LOCAL_LENGTH);
}

static void
test_unreliable_purge(void **state)
{
	struct tai_rig *r = *state;

	rig_post(r, HCA_OP_SEND, 100)->to = HCA_UB_MAKE_NUMBER(HCA_UB_TO_ADDRESS, 0);
	rig_poll(r);
	purge(r);
	rig_release_all(r);
	rig_check_quiet(r);
	rig_expect_none(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
		T(test_suspend),
		T(test_suspend_in_the_middle),
		T(test_failure_suspends),
		T(test_failure_goes_on),
		T(test_flush),
		T(test_flush_of_nothing),
		T(test_flush_of_waiting_ones),
		T(test_flush_without_operation),
		T(test_purge),
		T(test_purge_of_a_waiting_one),
		T(test_next_life),
		T(test_dead_tp),
		T(test_dead_tp_while_it_waits),
		T(test_purge_of_a_tp),
		T(test_poisoned),
		T(test_unreliable),
		T(test_unreliable_too_long),
		T(test_unreliable_purge),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
