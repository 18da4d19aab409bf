/* SPDX-License-Identifier: BSD-3-Clause */

/* READ responses under congestion control: EE asks and tells, waits, and a CNP is told. */

#include "../cc/told.h"
#include "ee_rig.h"

#define FRAME (RIG_MTU + HCA_CC_FRAME_OVERHEAD)
#define SOON 30000u

static struct told *told;

static int
setup(void **state)
{
	struct rig *r;

	if (rig_setup(state) != 0)
		return -1;
	r = *state;
	told_open(r->h, RIG_QPI);
	told = hca_cc_state(r->h, hca_cc_responses(r->h, RIG_QPI));
	assert_int_equal(told->begun, 1);
	return 0;
}

static int
teardown(void **state)
{
	struct rig *r = *state;

	hca_cc_fini(r->h);
	return rig_teardown(state);
}

static void
answer(const struct rig *r, uint32_t leave, uint64_t after)
{
	told->leave = leave;
	told->again = after != 0 ? r->now + after : 0;
}

static void
asks_and_tells(void **state)
{
	struct rig *r = *state;

	answer(r, 2 * FRAME + FRAME - 1, SOON);
	rig_feed(r, rig_read(100, 8, 5 * RIG_MTU));
	assert_int_equal(rig_responses(r), 2);
	assert_int_equal(told->frames, 2);
	assert_int_equal(told->bytes, 2 * FRAME);
	assert_int_equal(told->unanswered, 0);
	/* it is asked again, and told to wait */
	rig_poll(r);
	assert_int_equal(told->asked, 2);
	assert_int_equal(rig_responses(r), 2);
	assert_true(hca_ee_deadline(r->h, r->now) <= r->now + SOON);
	answer(r, 10 * FRAME, 0);
	rig_poll(r);
	assert_int_equal(told->asked, 2);
	r->now += SOON;
	rig_poll(r);
	assert_int_equal(rig_responses(r), 5);
	assert_int_equal(told->frames, 5);
	assert_int_equal(hca_ee_deadline(r->h, r->now), UINT64_MAX);
}

/* Acknowledgements of other requests are not asked for; they wait behind a READ. */
static void
others_do_not_ask(void **state)
{
	struct rig *r = *state;

	rig_feed(r, rig_write(100, 0, 8, 1));
	assert_int_equal(rig_responses(r), 1);
	assert_int_equal(told->asked, 0);
	rig_forget_responses(r);
	answer(r, 0, SOON);
	rig_feed(r, rig_read(101, 8, 8));
	rig_feed(r, rig_write(102, 0, 8, 1));
	assert_int_equal(rig_responses(r), 0);
	answer(r, FRAME, 0);
	r->now += SOON;
	rig_poll(r);
	rig_poll(r);
	assert_int_equal(rig_responses(r), 2);
	assert_int_equal(rig_response(r, 0)->opcode, HCA_BTH_RC_READ_RESP_ONLY);
	assert_int_equal(rig_response(r, 1)->opcode, HCA_BTH_RC_ACK);
	assert_int_equal(told->frames, 1);
}

/* Nothing would end a wait without a time. */
static void
no_time(void **state)
{
	struct rig *r = *state;

	answer(r, 0, 0);
	rig_feed(r, rig_read(100, 8, 2 * RIG_MTU));
	rig_poll(r);
	assert_int_equal(rig_responses(r), 2);
}

static void
notified(void **state)
{
	struct rig *r = *state;

	hca_msg_send(r->h, HCA_STAGE_REQ_RX, HCA_STAGE_EE, RIG_QPI, HCA_MSG_CNP);
	rig_poll(r);
	assert_int_equal(told->cnps, 1);
}

/* A QP that waits is reset. */
static void
purge_ends_wait(void **state)
{
	struct rig *r = *state;

	answer(r, 0, SOON);
	rig_feed(r, rig_read(100, 8, RIG_MTU));
	assert_int_equal(ee_ctx(r->h)->pace.n, 1);
	r->qp->cfg.state = HCA_QPS_RST;
	hca_msg_send(r->h, HCA_STAGE_CEU, HCA_STAGE_EE, RIG_QPI, HCA_MSG_PURGE);
	rig_poll(r);
	assert_int_equal(ee_ctx(r->h)->pace.n, 0);
	assert_int_equal(r->h->inbox[HCA_STAGE_EE].waiting, 0);
	r->now += SOON;
	rig_expect_silence(r);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(asks_and_tells), T(others_do_not_ask), T(no_time),
		T(notified),	   T(purge_ends_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
