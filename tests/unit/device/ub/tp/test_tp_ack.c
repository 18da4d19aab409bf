/* SPDX-License-Identifier: BSD-3-Clause */

/* Answers at the sender: those that are valid, and the packets that each rule sends again. */

#include "tp_rig.h"

#include "ub/tp/tp_core.h"

static struct tp_rig rig;
static uint64_t now;

static void
open_rule(enum hca_tp_mode mode, enum hca_tp_rule rule, uint32_t sent)
{
	struct hca_tp_cfg cfg;

	rig_cfg(&cfg, mode, rule);
	rig_open(&rig, &cfg, sent, 0);
	rig.tp.tx.tpmsn = hca_tp_psn(sent, 1);
	now = 1000000;
}

static int
teardown(void **state)
{
	rig_close(&rig);
	return 0;
}

/* Send all packets that may be sent, one per us; returns their number. */
static uint32_t
send_all(void)
{
	struct hca_tp_txd d;
	uint32_t n = 0;

	for (; hca_tp_pick(&rig.tp, &rig.pools, now, &d); n++) {
		rig.tp.encap.done_seq = d.seq;
		now += 1000;
	}
	return n;
}

static void
send_ops(uint32_t n)
{
	rig_ops(&rig, HCA_TP_REQUESTS, n);
	assert_int_equal(send_all(), n);
}

/* The next packet is a repetition of psn. */
static void
assert_again(uint32_t psn)
{
	struct hca_tp_txd d;

	assert_true(hca_tp_pick(&rig.tp, &rig.pools, now, &d));
	assert_int_equal(d.psn, psn & 0xffffff);
	assert_true(d.flags & HCA_TP_TXD_AGAIN);
	assert_true(d.flags & HCA_TP_TXD_ASK);
	rig.tp.encap.done_seq = d.seq;
	now += 1000;
}

static void
assert_nothing(void)
{
	struct hca_tp_txd d;

	assert_false(hca_tp_pick(&rig.tp, &rig.pools, now, &d));
}

static enum hca_tp_heard
hear(struct hca_tp_answer a)
{
	now += 10000;
	a.psn &= 0xffffff;
	a.max_rcv &= 0xffffff;
	return hca_tp_ack(&rig.tp, &rig.pools, &a, now);
}

static enum hca_tp_heard
hear_ack(uint32_t psn)
{
	return hear((struct hca_tp_answer){.kind = HCA_TP_TPACK, .psn = psn});
}

static enum hca_tp_heard
hear_nak(uint32_t psn)
{
	return hear((struct hca_tp_answer){.kind = HCA_TP_TPNAK, .psn = psn});
}

/* A TPSACK with these bits; max: MaxRcv, as a distance from psn. */
static enum hca_tp_heard
hear_sack_max(uint32_t psn, const char *bits, uint32_t max)
{
	uint8_t bytes[HCA_TP_SACK_BYTES] = {0};

	for (uint32_t k = 0; bits[k] != '\0'; k++)
		bytes[k >> 3] |= (uint8_t)((bits[k] == '1') << (k & 7));
	return hear((struct hca_tp_answer){.kind = HCA_TP_TPSACK,
					   .psn = psn,
					   .max_rcv = psn + max,
					   .sack_code = HCA_TP_SACK_CODES - 1,
					   .bits = bytes});
}

static enum hca_tp_heard
hear_sack(uint32_t psn, const char *bits)
{
	return hear_sack_max(psn, bits, (uint32_t)strlen(bits) - 1);
}

/* ---- belief ---- */

static void
test_never_sent(void **state)
{
	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, 0);
	assert_int_equal(hear_ack(0), HCA_TP_HEARD_BAD);
	assert_int_equal(hear_ack(-1u), HCA_TP_HEARD_NEWS);
	send_ops(5);
	assert_int_equal(hear_ack(5), HCA_TP_HEARD_BAD);
	assert_int_equal(hear_nak(5), HCA_TP_HEARD_BAD);
	assert_int_equal(hear_sack(5, "1"), HCA_TP_HEARD_BAD);
	assert_int_equal(hear_ack(0x7ffffe), HCA_TP_HEARD_BAD);
	assert_int_equal(rig.tp.tx.acks_bad, 5);
	assert_int_equal(rig.tp.tx.una, 0);
	assert_int_equal(hear_ack(4), HCA_TP_HEARD_NEWS);
	assert_int_equal(rig.tp.tx.una, 5);
	assert_nothing();
}

/* A status belongs to a request in flight, by its TPMSN, that the same answer acknowledges. */
static void
test_status(void **state)
{
	struct hca_tp_answer a = {.kind = HCA_TP_TPACK, .psn = 2, .tpmsn = 2, .status = 0x25};
	const struct hca_tp_slot *slot;

	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, 0);
	send_ops(4);
	slot = rig.tp.tx.slot;
	a.psn = 0; /* acknowledges the first one alone */
	assert_false(hca_tp_note_status(&rig.tp, &rig.pools, &a));
	a.psn = 4; /* was never sent */
	assert_false(hca_tp_note_status(&rig.tp, &rig.pools, &a));
	a.psn = 2;
	assert_true(hca_tp_note_status(&rig.tp, &rig.pools, &a));
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(HCA_TA_OP_TOLD(hca_ta_op_at(&rig.pools, slot[i].op)->tps.flags),
				 i == 1 ? 0x25 : 0);
	assert_int_equal(rig.tp.tx.told, 1);
	assert_int_equal(hear(a), HCA_TP_HEARD_NEWS);
	assert_false(hca_tp_note_status(&rig.tp, &rig.pools, &a)); /* too late */
}

static void
test_old(void **state)
{
	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, 0);
	send_ops(5);
	assert_int_equal(hear_ack(2), HCA_TP_HEARD_NEWS);
	assert_int_equal(hear_ack(1), HCA_TP_HEARD_OLD);
	assert_int_equal(hear_nak(2), HCA_TP_HEARD_OLD);
	assert_int_equal(hear_sack(0, "10111"), HCA_TP_HEARD_OLD);
	assert_int_equal(rig.tp.tx.acks_stale, 3);
	assert_int_equal(hear_ack(2), HCA_TP_HEARD_NEWS);
	assert_int_equal(rig.tp.tx.una, 3);
	assert_nothing();
}

/* Bits and MaxRcv of packets that were never sent say nothing. */
static void
test_sack_beyond(void **state)
{
	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_HIGH, 0);
	send_ops(5);
	assert_int_equal(hear_sack(0, "10101111111111"), HCA_TP_HEARD_NEWS);
	assert_int_equal(rig.tp.tx.una, 1);
	assert_again(1);
	assert_again(3);
	assert_nothing();
	/* when MaxRcv is beyond, only packets whose bits are clear are missing */
	rig_ops(&rig, HCA_TP_REQUESTS, 1);
	assert_int_equal(send_all(), 1);
	assert_int_equal(hear_sack_max(0, "101010", 4000), HCA_TP_HEARD_NEWS);
	assert_nothing();
	assert_int_equal(hear_sack(4, "1"), HCA_TP_HEARD_NEWS);
	assert_int_equal(rig.tp.tx.una, 5);
	rig_ops(&rig, HCA_TP_REQUESTS, 3);
	assert_int_equal(send_all(), 3);
	for (uint32_t psn = 5; psn < 8; psn++)
		assert_false(rig.tp.tx.got[0] >> psn & 1);
}

/* Bit 0 clear: that PSN is also missing, and those before it are not. */
static void
test_bit_0_clear(void **state)
{
	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_HIGH, 0);
	send_ops(6);
	assert_int_equal(hear_sack(2, "001"), HCA_TP_HEARD_NEWS);
	assert_int_equal(rig.tp.tx.una, 2);
	assert_again(2);
	assert_again(3);
	assert_nothing();
	/* but not taken back */
	assert_int_equal(hear_sack(1, "0001"), HCA_TP_HEARD_NEWS);
	assert_int_equal(rig.tp.tx.una, 2);
	assert_nothing();
}

/* A PSN that was reported once is received; later reports do not change that. */
static void
test_no_reneging(void **state)
{
	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, 0);
	send_ops(6);
	hear_sack(-1u, "10011");
	assert_again(0);
	assert_again(1);
	hear_sack(-1u, "100000");
	hear_sack(1, "1");
	assert_int_equal(rig.tp.tx.una, 4);
	assert_nothing();
}

/* The first missing one behind a.psn is found although the SACK does not begin at una. */
static void
test_sack_moves_una(void **state)
{
	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_NONE, 0);
	send_ops(100);
	assert_int_equal(hear_sack(50, "111101"), HCA_TP_HEARD_NEWS);
	assert_int_equal(rig.tp.tx.una, 54);
	assert_int_equal(hear_ack(54), HCA_TP_HEARD_NEWS);
	assert_int_equal(rig.tp.tx.una, 56);
	assert_nothing();
}

/* ---- rules ---- */

static void
test_nak(void **state)
{
	open_rule(HCA_TP_MODE_DROP, HCA_TP_RULE_NAK, 0);
	send_ops(4);
	assert_int_equal(hear_nak(1), HCA_TP_HEARD_NEWS);
	assert_int_equal(rig.tp.tx.una, 1);
	assert_again(1);
	assert_again(2);
	assert_again(3);
	assert_nothing();
	/* a copy of it changes nothing, one for another PSN does */
	hear_nak(1);
	assert_nothing();
	hear_nak(3);
	assert_int_equal(rig.tp.tx.una, 3);
	assert_again(3);
	assert_nothing();
	assert_int_equal(rig.tp.tx.resent[HCA_TP_AGAIN_NAK], 4);
}

/* An acknowledgement while going back: the packets that it names are not sent again. */
static void
test_nak_then_ack(void **state)
{
	open_rule(HCA_TP_MODE_DROP, HCA_TP_RULE_NAK, 0);
	send_ops(6);
	hear_nak(1);
	assert_again(1);
	hear_ack(3);
	assert_again(4);
	assert_again(5);
	assert_nothing();
}

static void
test_none(void **state)
{
	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_NONE, 0);
	send_ops(6);
	hear_sack(0, "10101");
	hear_nak(1);
	assert_nothing();
}

/* Once, and only packets above the highest one that was sent again. */
static void
test_high(void **state)
{
	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_HIGH, 0);
	send_ops(8);
	hear_sack(0, "101");
	assert_again(1);
	hear_sack(0, "1011");
	assert_nothing();
	hear_sack(0, "1011011");
	assert_again(4);
	hear_sack(0, "10110111");
	assert_nothing();
	assert_int_equal(rig.tp.tx.resent[HCA_TP_AGAIN_HIGH], 2);
}

/* MaxRcv without bits (a receiver without memory for them) reports losses, as far as the bitmap. */
static void
test_max_rcv(void **state)
{
	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_HIGH, 0);
	send_ops(100);
	hear(((struct hca_tp_answer){.kind = HCA_TP_TPSACK,
				     .psn = 0,
				     .max_rcv = 90,
				     .bits = (const uint8_t[8]){1}}));
	for (uint32_t psn = 1; psn <= 63; psn++)
		assert_again(psn);
	assert_nothing();
	hear_sack_max(0, "1", 70);
	for (uint32_t psn = 64; psn <= 70; psn++)
		assert_again(psn);
	assert_nothing();
}

/* A packet that is lost twice needs no timeout as soon as the first new packet arrives. */
static void
test_mark(void **state)
{
	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_MARK, 0);
	send_ops(4);
	hear_sack(0, "101");
	assert_again(1);
	hear_sack(0, "1011");
	assert_nothing();
	send_ops(2); /* 4, the mark, and 5 */
	assert_int_equal(rig.tp.tx.mark, 4);
	hear_sack(0, "1011");
	assert_nothing();
	hear_sack(0, "10111");
	assert_again(1);
	assert_int_equal(rig.tp.tx.resent[HCA_TP_AGAIN_MARK], 2);
	/* the next mark is 6 */
	hear_sack(0, "101111");
	assert_nothing();
	send_ops(1);
	hear_sack(0, "1011111");
	assert_again(1);
	hear_ack(6);
	assert_int_equal(rig.tp.tx.una, 7);
}

/* In phase NEW new packets leave before those found missing; without new ones these leave. */
static void
test_mark_phases(void **state)
{
	struct hca_tp_txd d;

	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_MARK, 0);
	send_ops(8);
	hear_sack(0, "101");
	assert_again(1);
	rig_ops(&rig, HCA_TP_REQUESTS, 1);
	hear_sack(0, "10101");
	assert_true(hca_tp_pick(&rig.tp, &rig.pools, now, &d));
	assert_int_equal(d.psn, 8);
	assert_again(3);
	assert_nothing();
}

/* With reorder 0 a packet is lost as soon as one sent after it has arrived, every time. */
static void
test_time(void **state)
{
	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, 0);
	send_ops(4);
	hear_sack(0, "101");
	assert_again(1);
	/* 3 was sent before the repetition */
	hear_sack(0, "1011");
	assert_nothing();
	send_ops(1);
	hear_sack(0, "10111");
	assert_again(1);
	send_ops(1);
	hear_sack(0, "101111");
	assert_again(1);
	hear_ack(5);
	assert_nothing();
	assert_int_equal(rig.tp.tx.resent[HCA_TP_AGAIN_TIME], 3);
}

/* Packets that left in one burst, at the same time, are told apart. */
static void
test_time_in_a_burst(void **state)
{
	struct hca_tp_txd d;

	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, 0);
	rig_ops(&rig, HCA_TP_REQUESTS, 8);
	while (hca_tp_pick(&rig.tp, &rig.pools, now, &d))
		;
	hear_sack(-1u, "100010");
	assert_again(0);
	assert_again(1);
	assert_again(2);
	assert_nothing();
}

/* Later by no more than `reorder` is not lost. */
static void
test_time_reorder(void **state)
{
	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, 0);
	rig.tp.cfg.reorder = 5000; /* packets leave 1000 ns apart */
	send_ops(20);
	hear_sack(-1u, "1000001");
	assert_nothing();
	hear_sack(-1u, "10000011");
	assert_again(0);
	assert_nothing();
	hear_sack(-1u, "100000111");
	assert_again(1);
	assert_nothing();
}

/*
 * The answer to the first sending does not show when the repetition arrived: packets that were
 * sent between the two are not lost.
 */
static void
test_time_first_sending(void **state)
{
	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, 0);
	send_ops(3);
	hear_sack(-1u, "1010"); /* 0 is late; the round trip takes 10 us or more */
	assert_again(0);
	send_ops(1);
	now -= 9000;
	hear_sack(-1u, "1111");
	assert_int_equal(rig.tp.tx.una, 3);
	assert_nothing();
}

/* ---- operations ---- */

static void
test_ops_come_back(void **state)
{
	struct hca_tp_lane_tx *l;

	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, 0);
	l = &rig.tp.tx.lane[HCA_TP_REQUESTS];
	rig_op(&rig, HCA_TP_REQUESTS, 3000); /* PSN 0..2 */
	rig_op(&rig, HCA_TP_REQUESTS, 10);
	assert_int_equal(send_all(), 4);
	rig.tp.encap.done_seq = 2;
	hear_ack(1);
	assert_int_equal(rig_release(&rig), 0);
	hear_ack(3);
	assert_int_equal(rig_release(&rig), 0);
	rig.tp.encap.done_seq = 3;
	assert_int_equal(rig_release(&rig), 1);
	rig.tp.encap.done_seq = 4;
	assert_int_equal(rig_release(&rig), 1);
	assert_int_equal(l->done, 2);
	assert_int_equal(rig.tp.tx.ops_sent, 2);
	assert_int_equal(rig.tp.tx.ops_acked, 2);
}

/* A repetition that encap still reads keeps the operation. */
static void
test_repetition_keeps_op(void **state)
{
	struct hca_tp_txd d;

	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, 0);
	send_ops(2);
	hear_sack(-1u, "101");
	assert_true(hca_tp_pick(&rig.tp, &rig.pools, now, &d));
	hear_ack(1);
	assert_int_equal(rig_release(&rig), 0);
	rig.tp.encap.done_seq = d.seq;
	assert_int_equal(rig_release(&rig), 2);
}

/* A TPACK of operations of one packet each, some of which encap still reads. */
static void
test_encap_is_behind(void **state)
{
	(void)state;
	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, 0);
	send_ops(3);
	rig.tp.encap.done_seq = 2;
	hear_ack(2);
	assert_int_equal(rig_release(&rig), 2);
	rig.tp.encap.done_seq = 3;
	assert_int_equal(rig_release(&rig), 1);
	assert_int_equal(rig.tp.tx.ops_acked, 3);
}

/* Encap reads a packet of the oldest operation again that was acknowledged before the last ones. */
static void
test_encap_reads_the_oldest(void **state)
{
	struct hca_tp_txd d;

	(void)state;
	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, 0);
	rig_op(&rig, HCA_TP_REQUESTS, 4096); /* PSN 0..3 */
	rig_ops(&rig, HCA_TP_REQUESTS, 2);
	assert_int_equal(send_all(), 6);
	hear_sack(0, "101");
	assert_true(hca_tp_pick(&rig.tp, &rig.pools, now, &d));
	assert_int_equal(d.psn, 1);
	hear_ack(2);
	hear_ack(5);
	assert_int_equal(rig_release(&rig), 0);
	rig.tp.encap.done_seq = d.seq;
	assert_int_equal(rig_release(&rig), 3);
}

/* An operation that is not next in its lane goes back with those before it. */
static void
test_order_of_lanes(void **state)
{
	const struct hca_tp_lane_tx *l = rig.tp.tx.lane;

	(void)state;
	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, 0);
	hca_ta_op_set_flag(rig_op(&rig, HCA_TP_REQUESTS, 100), HCA_TA_OP_ORPHAN);
	send_ops(2);
	hear_ack(1);
	assert_int_equal(l[HCA_TP_REQUESTS].done, 0);
	assert_int_equal(rig_release(&rig), 3);
	rig_ops(&rig, HCA_TP_RESPONSES, 2);
	rig_ops(&rig, HCA_TP_REQUESTS, 4);
	assert_int_equal(send_all(), 6);
	hear_ack(2 + 6 - 1);
	assert_int_equal(rig_release(&rig), 6);
	assert_int_equal(l[HCA_TP_REQUESTS].done, 3 + 4);
	assert_int_equal(l[HCA_TP_RESPONSES].done, 2);
	assert_int_equal(rig.tp.tx.ops_acked, 8);
}

/* Answered: its packets count as received and are not sent again. */
static void
test_answered(void **state)
{
	struct hca_ta_op *op;

	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, 0);
	send_ops(1);
	op = rig_op(&rig, HCA_TP_REQUESTS, 2000); /* PSN 1, 2 */
	rig_ops(&rig, HCA_TP_REQUESTS, 3);
	assert_int_equal(send_all(), 5);
	hear_sack(0, "10010");
	hca_ta_op_set_flag(op, HCA_TA_OP_ANSWERED);
	assert_nothing();
	assert_int_equal(rig.tp.tx.una, 4);
	assert_int_equal(rig_release(&rig), 3);
	assert_int_equal(rig.tp.tx.again_n, 0);
}

/* ---- time ---- */

static void
test_round_trips(void **state)
{
	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, 0);
	rig.tp.cfg.rto_base = 0;
	assert_true(hca_tp_rto(&rig.tp) == HCA_TP_RTO_FIRST);
	send_ops(1); /* at 1000 us; the clock is at 1001 us then */
	hear_ack(0);
	assert_int_equal(rig.tp.tx.srtt, 11000);
	assert_int_equal(rig.tp.tx.min_rtt, 11000);
	assert_true(hca_tp_rto(&rig.tp) == HCA_TP_RTO_FLOOR);
	send_ops(1);
	now += 80000;
	hear_ack(1);
	assert_int_equal(rig.tp.tx.srtt, 11000 - 11000 / 8 + 91000 / 8);
	assert_int_equal(rig.tp.tx.min_rtt, 11000);
	rig.tp.tx.srtt = 50000;
	assert_true(hca_tp_rto(&rig.tp) == 200000);
	/* a packet that was sent twice is not timed */
	send_ops(2);
	hear_sack(1, "101");
	rig.tp.tx.srtt = 50000;
	assert_again(2);
	hear_ack(3);
	assert_int_equal(rig.tp.tx.srtt, 50000);
}

/*
 * An acknowledgement of a packet that was sent once also reports an earlier one whose repetition
 * left after it: packets that left before that repetition are late from now on.
 */
static void
test_newest_was_sent_again(void **state)
{
	uint64_t again;

	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, 0);
	send_ops(4);
	hear_sack(0, "01");
	assert_again(0);
	now += 10000; /* long enough for the answer to be that to the repetition */
	hear_sack(2, "0");
	again = now;
	assert_again(2);
	assert_nothing();
	assert_int_equal(rig.tp.tx.una, 2);
	now += 10000;
	hear_ack(3);
	assert_int_equal(rig.tp.tx.newest, again);
}

/* ---- wrap ---- */

static void
test_wrap(void **state)
{
	open_rule(HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, 0xfffff0);
	for (uint32_t psn = 0xfffff0; psn < 0x1000020; psn += 4) {
		send_ops(4);
		assert_int_equal(hear_ack(psn + 4), HCA_TP_HEARD_BAD);
		assert_int_equal(hear_sack(psn, "1010111"), HCA_TP_HEARD_NEWS);
		assert_again(psn + 1);
		assert_nothing();
		assert_int_equal(hear_ack(psn + 3), HCA_TP_HEARD_NEWS);
		assert_int_equal(hear_ack(psn + 2), HCA_TP_HEARD_OLD);
	}
	assert_int_equal(rig.tp.tx.una, 0x20);
	assert_int_equal(rig.tp.tx.tpmsn, 0x21);
	assert_int_equal(rig_release(&rig), 0x30);
}

/* The PSN that a rule keeps stays in the past after PSNs have gone half way round. */
static void
test_memory_keeps_up(void **state)
{
	static const enum hca_tp_rule rules[] = {HCA_TP_RULE_HIGH, HCA_TP_RULE_MARK};

	for (size_t i = 0; i < RTE_DIM(rules); i++) {
		open_rule(HCA_TP_MODE_SACK, rules[i], 0);
		send_ops(4);
		hear_sack(0, "101");
		assert_again(1);
		hear_ack(3);
		for (uint32_t psn = 4; psn < 0x800200; psn += 64) {
			struct hca_tp_answer a = {.kind = HCA_TP_TPACK, .psn = psn + 63};

			rig_ops(&rig, HCA_TP_REQUESTS, 64);
			assert_int_equal(send_all(), 64);
			hca_tp_ack(&rig.tp, &rig.pools, &a, now);
			assert_int_equal(rig_release(&rig), psn == 4 ? 68 : 64);
		}
		send_ops(3);
		hear_sack(rig.tp.tx.una, "101");
		assert_again(rig.tp.tx.una);
		if (i == 0)
			rig_close(&rig);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_teardown(name, teardown)
		T(test_never_sent),
		T(test_status),
		T(test_old),
		T(test_sack_beyond),
		T(test_bit_0_clear),
		T(test_no_reneging),
		T(test_sack_moves_una),
		T(test_nak),
		T(test_nak_then_ack),
		T(test_none),
		T(test_high),
		T(test_max_rcv),
		T(test_mark),
		T(test_mark_phases),
		T(test_time),
		T(test_time_in_a_burst),
		T(test_time_reorder),
		T(test_time_first_sending),
		T(test_ops_come_back),
		T(test_repetition_keeps_op),
		T(test_encap_is_behind),
		T(test_encap_reads_the_oldest),
		T(test_order_of_lanes),
		T(test_answered),
		T(test_round_trips),
		T(test_newest_was_sent_again),
		T(test_wrap),
		T(test_memory_keeps_up),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
