/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The timing wheel alone: timers never expire early, and at most two ticks late; one entry per QP.
 */

#include "fixture.h"

#include "engine/timer.h"

#define TICK (UINT64_C(1) << HCA_TIMER_TICK_LOG)
#define TURN (TICK * HCA_TIMER_SLOTS)

static struct fx *fx;
static uint64_t now;

static int
setup(void **state)
{
	fx = fx_create(NULL);
	now = 1234567;
	return hca_timer_init(fx->h);
}

static int
teardown(void **state)
{
	hca_timer_fini(fx->h);
	fx_destroy(fx);
	return 0;
}

static struct hca_timer_ctx *
wheel(void)
{
	return fx->h->stage_ctx[HCA_STAGE_TIMER];
}

static void
arm(uint32_t qpi, uint64_t deadline)
{
	fx->h->qp[qpi].req_rx.timer_deadline = deadline;
	fx->h->qp[qpi].req_rx.timer_armed = 1;
	hca_msg_send(fx->h, HCA_STAGE_REQ_RX, HCA_STAGE_TIMER, qpi, HCA_MSG_ARM);
}

static bool
expired(uint32_t qpi)
{
	return fx_take_msgs(fx, HCA_STAGE_TIMER, HCA_STAGE_REQ_RX, qpi) & HCA_MSG_EXPIRED;
}

static void
poll_at(uint64_t t)
{
	now = t;
	hca_timer_poll(fx->h, now, HCA_BURST);
}

/* The time at which qpi's entry expires, if polled every `step` ns. */
static uint64_t
expiry(uint32_t qpi, uint64_t step)
{
	uint64_t end = now + 100 * TURN;

	while (now < end) {
		if (expired(qpi))
			return now;
		poll_at(now + step);
	}
	fail_msg("never expired");
	return 0;
}

static void
test_deadlines(void **state)
{
	/* past, now, near, close to one turn, several turns */
	static const int64_t delta[] = {
		-1000000,    0,	   1,	     TICK - 1,	      TICK, 10 * TICK + 7, TURN - 2 * TICK,
		TURN - TICK, TURN, TURN + 1, 7 * TURN + 12345};
	static const uint64_t step[] = {500, TICK, 3 * TICK + 1};

	for (unsigned int s = 0; s < RTE_DIM(step); s++) {
		for (unsigned int i = 0; i < RTE_DIM(delta); i++) {
			uint64_t deadline = now + (uint64_t)delta[i], start = now, at;

			arm(2, deadline);
			poll_at(now);
			at = expiry(2, step[s]);
			assert_true(at >= deadline);
			assert_true(at <= RTE_MAX(deadline, start) + 2 * TICK + step[s]);
			assert_int_equal(wheel()->count, 0);
		}
	}
}

/* Rearmed before it expired: one entry, and the last deadline counts, earlier or later. */
static void
test_relocate(void **state)
{
	uint64_t base;

	poll_at(now);
	base = now;
	arm(1, base + 50 * TICK);
	poll_at(now);
	arm(1, base + 10 * TICK);
	poll_at(now);
	assert_int_equal(wheel()->count, 1);
	assert_true(expiry(1, 100) < base + 13 * TICK);
	base = now;
	arm(1, base + 10 * TICK);
	poll_at(now);
	arm(1, base + 3 * TURN);
	assert_true(expiry(1, TICK) >= base + 3 * TURN);
	assert_int_equal(wheel()->count, 0);
	poll_at(now + 10 * TURN);
	assert_false(expired(1));
}

/* Several entries in one slot; one is removed from the middle. */
static void
test_chain(void **state)
{
	poll_at(now);
	for (uint32_t i = 0; i < 6; i++)
		arm(i, now + 5 * TICK);
	poll_at(now);
	fx->h->purge_seq = 9;
	hca_msg_send(fx->h, HCA_STAGE_CEU, HCA_STAGE_TIMER, 3, HCA_MSG_PURGE);
	poll_at(now);
	assert_int_equal(fx->h->line[HCA_STAGE_TIMER].purge_ack, 9);
	assert_int_equal(wheel()->count, 5);
	poll_at(now + 8 * TICK);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(expired(i), i != 3);
	/* not in the wheel: a purge is acknowledged nevertheless */
	fx->h->purge_seq = 10;
	hca_msg_send(fx->h, HCA_STAGE_CEU, HCA_STAGE_TIMER, 3, HCA_MSG_PURGE);
	poll_at(now);
	assert_int_equal(fx->h->line[HCA_STAGE_TIMER].purge_ack, 10);
}

/* The clock jumps over several turns: due entries expire, the others stay. */
static void
test_jump(void **state)
{
	poll_at(now);
	arm(0, now + TICK);
	arm(1, now + TURN / 2);
	arm(2, now + 500 * TURN);
	poll_at(now);
	poll_at(now + 100 * TURN);
	assert_true(expired(0));
	assert_true(expired(1));
	assert_false(expired(2));
	assert_int_equal(wheel()->count, 1);
	poll_at(now + 400 * TURN + 2 * TICK);
	assert_true(expired(2));
}

/* Disarmed before the timer has read the message. */
static void
test_disarmed(void **state)
{
	arm(0, now);
	fx->h->qp[0].req_rx.timer_armed = 0;
	poll_at(now);
	assert_int_equal(wheel()->count, 0);
}

/* A budget smaller than the number of due entries: the rest expires later. */
static void
test_budget(void **state)
{
	poll_at(now);
	for (uint32_t i = 0; i < 8; i++)
		arm(i, now + (2 * i + 1) * TICK);
	poll_at(now);
	now += 30 * TICK;
	for (uint32_t i = 0; i < 4; i++)
		hca_timer_poll(fx->h, now, 2);
	for (uint32_t i = 0; i < 8; i++)
		assert_true(expired(i));
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_deadlines), T(test_relocate), T(test_chain),
		T(test_jump),	   T(test_disarmed), T(test_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
