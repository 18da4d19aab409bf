/* SPDX-License-Identifier: BSD-3-Clause */

/* The sending half of a TP: which packet is next; timeouts; which TP is next. */

#include "tp_rig.h"

#include "ub/tp/tp_core.h"

static struct tp_rig rig;
static uint64_t now;
static struct hca_tp_txd d;

static void
open_tp(enum hca_tp_mode mode, enum hca_tp_rule rule)
{
	struct hca_tp_cfg cfg;

	rig_cfg(&cfg, mode, rule);
	cfg.ack_every = 16;
	rig_open(&rig, &cfg, 0, 0);
	now = 1000000;
}

static int
setup(void **state)
{
	open_tp(HCA_TP_MODE_SACK, HCA_TP_RULE_TIME);
	return 0;
}

static int
teardown(void **state)
{
	rig_close(&rig);
	return 0;
}

static bool
pick(void)
{
	bool picked = hca_tp_pick(&rig.tp, &rig.pools, now, &d);

	if (picked)
		rig.tp.encap.done_seq = d.seq;
	return picked;
}

static void
hear_ack(uint32_t psn)
{
	struct hca_tp_answer a = {.kind = HCA_TP_TPACK, .psn = psn};

	assert_int_equal(hca_tp_ack(&rig.tp, &rig.pools, &a, now), HCA_TP_HEARD_NEWS);
}

static enum hca_tp_expiry
expire(void)
{
	return hca_tp_expire(&rig.tp, &rig.pools, now);
}

/* ---- packets ---- */

/* Responses first, then a request, in turn; an operation is never cut. */
static void
test_lanes(void **state)
{
	static const uint32_t expected[] = {
		/* lane * 100 + operation * 10 + packet */
		0, 1, 2, 100, 101, 10, 110, 20, 21, 120, 30, 130, 40, 50,
	};

	rig_op(&rig, HCA_TP_REQUESTS, 2048);
	rig_op(&rig, HCA_TP_REQUESTS, 0);
	rig_op(&rig, HCA_TP_REQUESTS, 1);
	rig_op(&rig, HCA_TP_REQUESTS, 1024);
	rig_op(&rig, HCA_TP_RESPONSES, 3000);
	rig_op(&rig, HCA_TP_RESPONSES, 0);
	rig_op(&rig, HCA_TP_RESPONSES, 1025);
	rig_ops(&rig, HCA_TP_RESPONSES, 3);
	for (uint32_t i = 0; i < RTE_DIM(expected); i++) {
		uint32_t lane = expected[i] / 100, op = expected[i] / 10 % 10;

		assert_true(pick());
		assert_int_equal(d.psn, i);
		assert_int_equal(d.op, hca_ta_opref(lane, op));
		assert_int_equal(d.packet, expected[i] % 10);
		assert_int_equal(d.generation, 7);
		assert_int_equal(d.port, 0xc000);
	}
	assert_false(pick());
}

/* A response that comes while a request is sent waits for its end. */
static void
test_response_waits_for_request(void **state)
{
	rig_op(&rig, HCA_TP_REQUESTS, 3000);
	assert_true(pick());
	rig_ops(&rig, HCA_TP_RESPONSES, 1);
	assert_true(pick());
	assert_int_equal(d.op, hca_ta_opref(HCA_TP_REQUESTS, 0));
	assert_true(pick());
	assert_true(pick());
	assert_int_equal(d.op, hca_ta_opref(HCA_TP_RESPONSES, 0));
}

static void
test_numbers(void **state)
{
	struct hca_ta_op *a = rig_op(&rig, HCA_TP_REQUESTS, 2000);
	struct hca_ta_op *b = rig_op(&rig, HCA_TP_REQUESTS, 0);

	while (pick())
		;
	assert_int_equal(a->tps.psn, 0);
	assert_int_equal(a->tps.tpmsn, 1);
	assert_int_equal(b->tps.psn, 2);
	assert_int_equal(b->tps.tpmsn, 2);
	assert_int_equal(b->tps.desc_seq, 3);
	assert_int_equal(rig.tp.tx.next, 3);
	assert_int_equal(rig.tp.tx.tpmsn, 3);
}

/* A: on `last`, on the last packet the window allows, every ack_every / 2. */
static void
test_ask(void **state)
{
	rig_op(&rig, HCA_TP_REQUESTS, 200 * 1024);
	for (uint32_t i = 0; i < 128; i++) {
		assert_true(pick());
		assert_int_equal(!!(d.flags & HCA_TP_TXD_ASK), i % 8 == 7);
	}
	assert_false(pick());
	hear_ack(0);
	assert_true(pick());
	assert_true(d.flags & HCA_TP_TXD_ASK);
	assert_false(pick());
	hear_ack(128);
	for (uint32_t i = 129; i < 200; i++)
		assert_true(pick());
	assert_true(d.flags & HCA_TP_TXD_LAST);
	assert_true(d.flags & HCA_TP_TXD_ASK);
	assert_false(pick());
}

static void
test_ask_every_packet(void **state)
{
	rig.tp.cfg.ack_every = 1;
	rig_op(&rig, HCA_TP_REQUESTS, 10 * 1024);
	for (uint32_t i = 0; i < 10; i++) {
		assert_true(pick());
		assert_true(d.flags & HCA_TP_TXD_ASK);
	}
}

static void
test_spray(void **state)
{
	rig.tp.cfg.flags = HCA_TP_FLAG_SPRAY;
	rig.tp.cfg.ports_log = 2;
	rig_ops(&rig, HCA_TP_REQUESTS, 20);
	for (uint32_t i = 0; i < 20; i++) {
		assert_true(pick());
		assert_int_equal(d.port, 0xc000 + i % 4);
		assert_int_equal(rig.tp.tx.slot[i].port, i % 4);
	}
}

static void
test_states(void **state)
{
	static const bool sends[] = {[HCA_TPS_RESET] = false,
				     [HCA_TPS_PASSIVE] = false,
				     [HCA_TPS_ACTIVE] = true,
				     [HCA_TPS_DRAIN] = true,
				     [HCA_TPS_ERROR] = false};

	rig_ops(&rig, HCA_TP_REQUESTS, 10);
	for (uint32_t i = 0; i < RTE_DIM(sends); i++) {
		rig.tp.cfg.state = i;
		assert_int_equal(pick(), sends[i]);
	}
}

/* ---- orphans ---- */

static void
test_orphans(void **state)
{
	struct hca_ta_op *op[4];

	for (uint32_t i = 0; i < 4; i++)
		op[i] = rig_op(&rig, HCA_TP_REQUESTS, 2000);
	assert_true(pick());
	/* the first has a PSN, so all of it is sent; the next two are not */
	for (uint32_t i = 0; i < 3; i++)
		hca_ta_op_set_flag(op[i], HCA_TA_OP_ORPHAN);
	assert_true(pick());
	assert_int_equal(d.op, hca_ta_opref(HCA_TP_REQUESTS, 0));
	assert_true(d.flags & HCA_TP_TXD_LAST);
	assert_true(pick());
	assert_int_equal(d.op, hca_ta_opref(HCA_TP_REQUESTS, 3));
	assert_int_equal(op[3]->tps.tpmsn, 2);
	assert_int_equal(rig_release(&rig), 0);
	hear_ack(1);
	assert_int_equal(rig_release(&rig), 3);
	assert_int_equal(rig.tp.tx.ops_skipped, 2);
	assert_int_equal(rig.tp.tx.ops_sent, 2);
}

/* An orphan with a PSN is sent again like any other. */
static void
test_orphan_again(void **state)
{
	struct hca_ta_op *op = rig_op(&rig, HCA_TP_REQUESTS, 10);

	assert_true(pick());
	hca_ta_op_set_flag(op, HCA_TA_OP_ORPHAN);
	now += 20000;
	assert_int_equal(expire(), HCA_TP_EXPIRY_AGAIN);
	assert_true(pick());
	assert_int_equal(d.psn, 0);
}

/* ---- timeouts ---- */

/* 20 us, exponent 3, 7 retries: each interval is 8 times the one before, then it is over. */
static void
test_rto_series(void **state)
{
	static const uint64_t us[] = {20, 160, 1280, 10240, 81920, 655360, 5242880};

	rig_ops(&rig, HCA_TP_REQUESTS, 1);
	assert_true(pick());
	for (size_t i = 0; i < RTE_DIM(us); i++) {
		now += us[i] * 1000 - 1;
		assert_int_equal(expire(), HCA_TP_EXPIRY_NONE);
		assert_false(pick());
		now += 1;
		assert_int_equal(expire(), HCA_TP_EXPIRY_AGAIN);
		assert_true(pick());
		assert_int_equal(d.psn, 0);
		assert_true(d.flags & HCA_TP_TXD_AGAIN);
		assert_false(pick());
	}
	now += 5242880ull * 8 * 1000 - 1;
	assert_int_equal(expire(), HCA_TP_EXPIRY_NONE);
	now += 1;
	assert_int_equal(expire(), HCA_TP_EXPIRY_DEAD);
	assert_int_equal(rig.tp.cfg.state, HCA_TPS_ERROR);
	assert_int_equal(rig.tp.tx.resent[HCA_TP_AGAIN_TIMEOUT], 7);
	assert_int_equal(rig.tp.tx.timeouts, 8);
	assert_false(pick());
	assert_int_equal(rig_release(&rig), 1);
	assert_int_equal(rig.tp.tx.ops_given_up, 1);
	now += UINT64_C(1) << 60;
	assert_int_equal(expire(), HCA_TP_EXPIRY_NONE);
}

/* Fixed times of the source: exponent 0. */
static void
test_rto_fixed(void **state)
{
	rig.tp.cfg.rto_base = 512;
	rig.tp.cfg.rto_exponent = 0;
	rig_ops(&rig, HCA_TP_REQUESTS, 1);
	assert_true(pick());
	for (uint32_t i = 0; i < 7; i++) {
		now += 512000;
		assert_int_equal(expire(), HCA_TP_EXPIRY_AGAIN);
		assert_true(pick());
	}
	now += 512000;
	assert_int_equal(expire(), HCA_TP_EXPIRY_DEAD);
}

/* No configuration overflows the clock. */
static void
test_rto_largest(void **state)
{
	rig.tp.cfg.rto_base = 2097152;
	rig.tp.cfg.rto_exponent = 15;
	rig.tp.tx.times = 15;
	assert_true(hca_tp_rto(&rig.tp) == (UINT64_C(2097152000) << 31));
	assert_true(now + hca_tp_rto(&rig.tp) > now);
}

/* The timer runs from the first packet, begins again when una moves, and stops at the end. */
static void
test_rto_moves(void **state)
{
	assert_true(rig.tp.tx.deadline == HCA_TP_NEVER);
	rig_ops(&rig, HCA_TP_REQUESTS, 3);
	while (pick())
		now += 1000;
	assert_true(rig.tp.tx.deadline == 1020000);
	now = 1010000;
	hear_ack(0);
	assert_true(rig.tp.tx.deadline == 1030000);
	now = 1015000;
	hear_ack(0);
	assert_true(rig.tp.tx.deadline == 1030000);
	now = 1030000;
	assert_int_equal(expire(), HCA_TP_EXPIRY_AGAIN);
	assert_int_equal(rig.tp.tx.times, 1);
	hear_ack(1);
	assert_int_equal(rig.tp.tx.times, 0);
	assert_true(rig.tp.tx.deadline == 1050000);
	hear_ack(2);
	assert_true(rig.tp.tx.deadline == HCA_TP_NEVER);
	assert_false(pick());
}

/* DROP and TRACK have no bitmap of received packets and go back; SACK sends the missing ones. */
static void
test_rto_modes(void **state)
{
	static const struct {
		enum hca_tp_mode mode;
		enum hca_tp_rule rule;
		const char *again;
	} row[] = {{HCA_TP_MODE_DROP, HCA_TP_RULE_NAK, "1234"},
		   {HCA_TP_MODE_TRACK, HCA_TP_RULE_NONE, "1234"},
		   {HCA_TP_MODE_SACK, HCA_TP_RULE_NONE, "134"},
		   {HCA_TP_MODE_SACK, HCA_TP_RULE_HIGH, "134"},
		   {HCA_TP_MODE_SACK, HCA_TP_RULE_MARK, "134"},
		   {HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, "134"}};

	for (size_t i = 0; i < RTE_DIM(row); i++) {
		struct hca_tp_answer a = {.kind = HCA_TP_TPSACK,
					  .max_rcv = 2,
					  .bits = (const uint8_t[8]){5}};

		rig_close(&rig);
		open_tp(row[i].mode, row[i].rule);
		rig_ops(&rig, HCA_TP_REQUESTS, 5);
		while (pick())
			;
		if (row[i].mode == HCA_TP_MODE_SACK)
			hca_tp_ack(&rig.tp, &rig.pools, &a, now);
		else
			hear_ack(0);
		now += 20000;
		assert_int_equal(expire(), HCA_TP_EXPIRY_AGAIN);
		for (const char *psn = row[i].again; *psn != '\0'; psn++) {
			assert_true(pick());
			assert_int_equal(d.psn, *psn - '0');
		}
		assert_false(pick());
	}
}

/* Operations that were answered need no timeout. */
static void
test_rto_answered(void **state)
{
	struct hca_ta_op *op = rig_op(&rig, HCA_TP_REQUESTS, 2000);

	while (pick())
		;
	hca_ta_op_set_flag(op, HCA_TA_OP_ANSWERED);
	now += 20000;
	assert_int_equal(expire(), HCA_TP_EXPIRY_NONE);
	assert_int_equal(rig.tp.tx.una, 2);
	assert_true(rig.tp.tx.deadline == HCA_TP_NEVER);
	assert_int_equal(rig.tp.tx.timeouts, 0);
	assert_int_equal(rig_release(&rig), 1);
}

/* A dead TP gives everything back as soon as encap does not read it any more. */
static void
test_dead(void **state)
{
	rig_op(&rig, HCA_TP_REQUESTS, 2000);
	rig_op(&rig, HCA_TP_REQUESTS, 2000);
	rig_ops(&rig, HCA_TP_RESPONSES, 1);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(hca_tp_pick(&rig.tp, &rig.pools, now, &d));
	hear_ack(0);
	assert_true(hca_tp_fail(&rig.tp));
	rig.tp.encap.done_seq = 1;
	assert_int_equal(rig_release(&rig), 1);
	rig.tp.encap.done_seq = 3;
	assert_int_equal(rig_release(&rig), 1);
	rig.tp.encap.done_seq = 4;
	assert_int_equal(rig_release(&rig), 1);
	/* later operations go back at once */
	rig_ops(&rig, HCA_TP_REQUESTS, 2);
	assert_int_equal(rig_release(&rig), 2);
	assert_int_equal(hca_tp_lane_room(&rig.tp, HCA_TP_REQUESTS), 128);
	assert_int_equal(rig.tp.tx.ops_sent, 3);
	assert_int_equal(rig.tp.tx.ops_acked, 1);
	assert_int_equal(rig.tp.tx.ops_given_up, 2);
	assert_int_equal(rig.tp.tx.ops_skipped, 2);
}

/* ---- many TPs ---- */

#define TPS 4u

struct many {
	struct hca_tp tp[TPS];
	struct hca_tp_sched s;
	struct hca_tp_txd d[4096], *at[4096];
	uint32_t turns[TPS]; /* that have sent something */
};

static struct many many;

static void
note_sent(void *arg, uint32_t i)
{
	assert_null(arg);
	many.turns[i]++;
}

static void
open_many(void)
{
	memset(&many, 0, sizeof(many));
	for (uint32_t i = 0; i < TPS; i++) {
		rig_cfg(&many.tp[i].cfg, HCA_TP_MODE_SACK, HCA_TP_RULE_TIME);
		many.tp[i].cfg.window = 2048;
		rig_memory(&many.tp[i], 0, 0);
	}
	hca_tp_sched_init(&many.s, many.tp, &rig.pools);
	many.s.sent = note_sent;
	for (uint32_t i = 0; i < RTE_DIM(many.d); i++)
		many.at[i] = &many.d[i];
}

static uint32_t
run_many(uint32_t room)
{
	return hca_tp_sched_run(&many.s, now, many.at, room);
}

static void
close_many(void)
{
	for (uint32_t i = 0; i < TPS; i++)
		free(many.tp[i].cfg.block);
}

static void
put(uint32_t i, uint32_t payload)
{
	uint32_t index = rig.used[HCA_TP_REQUESTS]++ % RIG_OPS;

	rig.pools.op[HCA_TP_REQUESTS][index] = (struct hca_ta_op){.payload = payload};
	hca_tp_lane_put(&many.tp[i], HCA_TP_REQUESTS, index);
	hca_tp_sched_wake(&many.s, i);
}

/* TPs with small packets get as many bytes, with the cost per packet, as TPs with large ones. */
static void
test_fair(void **state)
{
	static const uint32_t payload[TPS] = {1024, 1, 4096, 100};
	uint64_t cost[TPS] = {0}, least = UINT64_MAX, most = 0;

	open_many();
	for (uint32_t k = 0; k < 1900; k++) {
		for (uint32_t i = 0; i < TPS; i++)
			put(i, payload[i]);
	}
	for (uint32_t k = 0; k < 64; k++) {
		uint32_t n = run_many(32);

		assert_int_equal(n, 32);
		for (uint32_t j = 0; j < n; j++)
			cost[many.d[j].tp] += RTE_MIN(payload[many.d[j].tp], 1024u) + 594;
	}
	for (uint32_t i = 0; i < TPS; i++) {
		least = RTE_MIN(least, cost[i]);
		most = RTE_MAX(most, cost[i]);
	}
	assert_true(most - least <= 2 * HCA_TP_SCHED_QUANTUM);
	assert_int_equal(many.s.count, TPS);
	close_many();
}

/* One turn of a TP ends with its deficit, not with the room of a burst. */
static void
test_turn_goes_on(void **state)
{
	open_many();
	for (uint32_t k = 0; k < 50; k++) {
		put(2, 1024);
		put(0, 1024);
	}
	for (uint32_t k = 0; k < 26; k++) {
		assert_int_equal(run_many(1), 1);
		assert_int_equal(many.d[0].tp, 2);
	}
	assert_int_equal(run_many(1), 1);
	assert_int_equal(many.d[0].tp, 0);
	assert_int_equal(run_many(4096), 73);
	assert_int_equal(many.s.count, 0);
	assert_int_equal(run_many(4096), 0);
	put(1, 5);
	assert_int_equal(run_many(0), 0);
	assert_int_equal(run_many(4096), 1);
	close_many();
}

static void
test_forget(void **state)
{
	open_many();
	for (uint32_t i = 0; i < TPS; i++)
		put(i, 10);
	hca_tp_sched_forget(&many.s, 2);
	hca_tp_sched_forget(&many.s, 2);
	hca_tp_sched_forget(&many.s, 0);
	assert_int_equal(many.s.count, 2);
	assert_int_equal(run_many(4096), 2);
	assert_int_equal(many.d[0].tp, 1);
	assert_int_equal(many.d[1].tp, 3);
	assert_int_equal(many.s.count, 0);
	put(2, 10);
	assert_int_equal(run_many(4096), 2);
	close_many();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(test_lanes),
		T(test_response_waits_for_request),
		T(test_numbers),
		T(test_ask),
		T(test_ask_every_packet),
		T(test_spray),
		T(test_states),
		T(test_orphans),
		T(test_orphan_again),
		T(test_rto_series),
		T(test_rto_fixed),
		T(test_rto_largest),
		T(test_rto_moves),
		T(test_rto_modes),
		T(test_rto_answered),
		T(test_dead),
		T(test_fair),
		T(test_turn_goes_on),
		T(test_forget),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
