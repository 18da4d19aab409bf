/* SPDX-License-Identifier: BSD-3-Clause */

/* The scheduler of TPs asks congestion control before it lets one send; the end of a TP's wait. */

#include "../ub/tp/tp_rig.h"
#include "ub/tp/tp_impl.h"

#define TPS 3u
#define FRAME (100u + HCA_CC_FRAME_OVERHEAD) /* rig_ops() makes packets of 100 bytes */
#define LATE 1000000000u
#define SOON 30000u

static struct tp_rig rig;
static struct hca_tp tp[TPS];
static struct hca_tp_sched sched;
static uint64_t now;
static struct hca_cc *asks;
static char algorithm;
static struct hca_tp_txd d[32], *at[32];

/* The answers of the algorithm, and its calls. */
static uint32_t leave[TPS], asked, frames, fresh;
static uint64_t after, bytes;
static uint32_t grant;	   /* with the next acknowledgement: bytes */
static uint32_t open[TPS]; /* packets unanswered, as it was told */

static uint32_t
allow(void *arg, uint32_t i, uint64_t t, uint64_t *again)
{
	uint32_t n = leave[i];

	assert_int_equal(*again, UINT64_MAX);
	asked++;
	leave[i] = 0;
	if (after != 0)
		*again = t + after;
	return n;
}

static bool
left(void *arg, uint32_t i, const struct hca_tp_leave *l, uint64_t t)
{
	uint32_t acked = open[i] + l->fresh - hca_tp_unanswered(&tp[i]);

	open[i] = hca_tp_unanswered(&tp[i]);
	frames += l->frames;
	fresh += l->fresh;
	bytes += l->sent;
	if (acked != 0 && grant != 0) {
		leave[i] = grant;
		grant = 0;
	}
	return acked != 0;
}

static int
setup(void **state)
{
	struct hca_tp_cfg cfg;

	rig_cfg(&cfg, HCA_TP_MODE_SACK, HCA_TP_RULE_TIME);
	rig_open(&rig, &cfg, 0, 0);
	memset(tp, 0, sizeof(tp));
	for (uint32_t i = 0; i < TPS; i++) {
		tp[i].cfg = cfg;
		rig_memory(&tp[i], 0, 0);
	}
	hca_tp_sched_init(&sched, tp, &rig.pools);
	asks = (void *)&algorithm;
	sched.asks = &asks;
	sched.allow = allow;
	sched.left = left;
	sched.pace.slot = calloc(TPS, sizeof(*sched.pace.slot));
	for (uint32_t i = 0; i < RTE_DIM(d); i++)
		at[i] = &d[i];
	memset(leave, 0, sizeof(leave));
	asked = frames = fresh = 0;
	bytes = after = 0;
	grant = 0;
	memset(open, 0, sizeof(open));
	now = 1000000;
	return 0;
}

static int
teardown(void **state)
{
	for (uint32_t i = 0; i < TPS; i++)
		free(tp[i].cfg.block);
	free(sched.pace.slot);
	rig_close(&rig);
	return 0;
}

static void
ops(uint32_t i, uint32_t n)
{
	while (n-- > 0) {
		uint32_t index = rig.used[HCA_TP_REQUESTS]++;

		rig.pools.op[HCA_TP_REQUESTS][index] = (struct hca_ta_op){.payload = 100};
		hca_tp_lane_put(&tp[i], HCA_TP_REQUESTS, index);
	}
	hca_tp_sched_wake(&sched, i);
}

/* As TPS polls */
static uint32_t
run(void)
{
	if (now >= sched.pace.next)
		hca_tp_sched_due(&sched, now);
	return hca_tp_sched_run(&sched, now, at, RTE_DIM(d));
}

static void
hear_ack(uint32_t i, uint32_t psn)
{
	struct hca_tp_answer a = {.kind = HCA_TP_TPACK, .psn = psn};

	assert_int_equal(hca_tp_ack(&tp[i], &rig.pools, &a, now), HCA_TP_HEARD_NEWS);
	hca_tp_sched_heard(&sched, i);
}

/* As many packets as fit; the last one asks for an answer. */
static void
asks_and_tells(void **state)
{
	ops(0, 5);
	leave[0] = 2 * FRAME + FRAME - 1;
	assert_int_equal(run(), 2);
	assert_true(d[1].flags & HCA_TP_TXD_ASK);
	assert_int_equal(frames, 2);
	assert_int_equal(fresh, 2);
	assert_int_equal(bytes, 2 * FRAME);
	assert_int_equal(hca_tp_unanswered(&tp[0]), 2);
	leave[0] = 10 * FRAME;
	hear_ack(0, 1);
	assert_int_equal(hca_tp_unanswered(&tp[0]), 0);
	assert_int_equal(run(), 3);
	assert_int_equal(asked, 2);
}

static void
time_ends_wait(void **state)
{
	after = SOON;
	ops(0, 2);
	ops(1, 1);
	leave[0] = leave[1] = FRAME;
	assert_int_equal(run(), 2);
	assert_int_equal(sched.pace.n, 1);
	leave[0] = FRAME;
	now += SOON - 1;
	assert_int_equal(run(), 0);
	now += 1;
	assert_int_equal(run(), 1);
	assert_int_equal(d[0].tp, 0);
	assert_int_equal(d[0].psn, 1);
	assert_int_equal(sched.pace.n, 0);
}

/* New operations do not end it: the algorithm has said when. */
static void
answer_ends_wait(void **state)
{
	after = LATE;
	ops(0, 2);
	leave[0] = FRAME;
	assert_int_equal(run(), 1);
	leave[0] = FRAME;
	ops(0, 1);
	assert_int_equal(run(), 0);
	hear_ack(0, 0);
	assert_int_equal(run(), 1);
	assert_int_equal(d[0].psn, 1);
}

/* A lost packet is not unanswered; its repetition is subject to the answer, as a new packet. */
static void
loss_ends_wait(void **state)
{
	after = LATE;
	ops(0, 2);
	leave[0] = FRAME;
	assert_int_equal(run(), 1);
	now = tp[0].tx.deadline;
	assert_int_equal(hca_tp_expire(&tp[0], &rig.pools, now), HCA_TP_EXPIRY_AGAIN);
	hca_tp_sched_heard(&sched, 0);
	leave[0] = FRAME - 1;
	assert_int_equal(run(), 0);
	leave[0] = FRAME;
	hca_tp_sched_heard(&sched, 0);
	assert_int_equal(run(), 1);
	assert_int_equal(d[0].psn, 0);
	assert_true(d[0].flags & HCA_TP_TXD_AGAIN);
	assert_int_equal(frames, 2);
	assert_int_equal(fresh, 1);
}

/* A purge finds a TP that waits, and others go on. */
static void
forget_ends_wait(void **state)
{
	after = LATE;
	ops(0, 2);
	ops(2, 2);
	leave[0] = leave[2] = FRAME;
	assert_int_equal(run(), 2);
	assert_int_equal(sched.pace.n, 2);
	hca_tp_sched_forget(&sched, 0);
	assert_int_equal(sched.pace.n, 1);
	assert_false(tp[0].tx.ready);
	now += LATE;
	leave[2] = FRAME;
	assert_int_equal(run(), 1);
	assert_int_equal(d[0].tp, 2);
	assert_int_equal(sched.count, 0);
}

/* Packets turn out to be acknowledged when they are to be sent again: it is asked once more. */
static void
answered_ends_wait(void **state)
{
	after = LATE;
	ops(0, 2);
	leave[0] = FRAME;
	assert_int_equal(run(), 1);
	now = tp[0].tx.deadline;
	hca_ta_op_set_flag(&rig.pools.op[HCA_TP_REQUESTS][0], HCA_TA_OP_ANSWERED);
	hca_tp_again_all(&tp[0], HCA_TP_AGAIN_TIMEOUT);
	hca_tp_sched_heard(&sched, 0);
	grant = FRAME;
	assert_int_equal(run(), 1);
	assert_int_equal(d[0].psn, 1);
	assert_int_equal(sched.pace.n, 0);
}

/* One missing packet is reported and another one found: a loss, although their number is equal. */
static void
losses_are_counted(void **state)
{
	uint8_t bits[HCA_TP_SACK_BYTES] = {0x0d};
	struct hca_tp_answer a = {.kind = HCA_TP_TPSACK, .psn = 0, .max_rcv = 3, .bits = bits};

	ops(0, 4);
	leave[0] = 4 * FRAME;
	assert_int_equal(run(), 4);
	hca_tp_again_add(&tp[0], 0, HCA_TP_AGAIN_TIME);
	assert_int_equal(tp[0].tx.lost, 1);
	now += SOON;
	assert_int_equal(hca_tp_ack(&tp[0], &rig.pools, &a, now), HCA_TP_HEARD_NEWS);
	assert_int_equal(tp[0].tx.again_n, 1);
	assert_int_equal(tp[0].tx.lost, 2);
}

/* Without a time an answer or a new operation lets the algorithm be asked. */
static void
waits_without_time(void **state)
{
	ops(0, 2);
	leave[0] = FRAME;
	assert_int_equal(run(), 1);
	assert_int_equal(sched.pace.n, 0);
	assert_int_equal(sched.count, 0);
	leave[0] = FRAME;
	hear_ack(0, 0);
	assert_int_equal(run(), 1);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(asks_and_tells),     T(time_ends_wait),     T(answer_ends_wait),
		T(loss_ends_wait),     T(forget_ends_wait),   T(waits_without_time),
		T(answered_ends_wait), T(losses_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
