/* SPDX-License-Identifier: BSD-3-Clause */

/* The receiving half of a TP: verdicts, debts and answers, packet by packet. */

#include "tp_rig.h"

#include "ub/tp/tp_core.h"

static struct tp_rig rig;

static void
open_mode(enum hca_tp_mode mode, uint32_t expected)
{
	struct hca_tp_cfg cfg;

	rig_cfg(&cfg, mode, HCA_TP_RULE_NONE);
	cfg.ack_every = 16;
	rig_open(&rig, &cfg, 0, expected);
}

static int
teardown(void **state)
{
	rig_close(&rig);
	return 0;
}

/* A packet of an operation of its own: its TPMSN is 1 + its distance from the first PSN, 0. */
static enum hca_tp_verdict
take(uint32_t psn)
{
	struct hca_tp_pkt p = {.psn = psn & 0xffffff, .tpmsn = (psn + 1) & 0xffffff, .last = true};

	return hca_tp_accept(&rig.tp, &p);
}

static uint8_t bits[HCA_TP_SACK_BYTES];
static struct hca_tp_answer answer;

static bool
answers(void)
{
	return hca_tp_make_answer(&rig.tp, &answer, bits);
}

static void
assert_answer(enum hca_tp_answer_kind kind, uint32_t psn)
{
	assert_true(answers());
	assert_int_equal(answer.kind, kind);
	assert_int_equal(answer.psn, psn & 0xffffff);
	assert_false(answers());
}

/* A TPSACK of that size whose set bits are these and no others. */
static void
assert_sack(uint32_t psn, uint32_t code, uint32_t max_rcv, const char *expected)
{
	assert_answer(HCA_TP_TPSACK, psn);
	assert_int_equal(answer.sack_code, code);
	assert_int_equal(answer.max_rcv, max_rcv & 0xffffff);
	for (uint32_t k = 0; k < HCA_TP_SACK_BITS(code); k++) {
		bool set = *expected != '\0' && *expected++ == '1';

		assert_int_equal(bits[k >> 3] >> (k & 7) & 1, set);
	}
}

/* ---- in order ---- */

static void
test_in_order(void **state)
{
	open_mode(HCA_TP_MODE_SACK, 0);
	assert_false(answers());
	assert_int_equal(take(0), HCA_TP_PASS);
	assert_int_equal(rig.tp.rx.debt, HCA_TP_OWES_NOW);
	assert_answer(HCA_TP_TPACK, 0);
	assert_int_equal(answer.tpmsn, 1);
	assert_int_equal(take(1), HCA_TP_PASS);
	assert_int_equal(take(2), HCA_TP_PASS);
	assert_answer(HCA_TP_TPACK, 2);
	assert_int_equal(answer.tpmsn, 3);
	assert_int_equal(rig.tp.rx.epsn, 3);
	assert_int_equal(rig.tp.rx.max_rcv, 2);
}

/* An answer is due at once with A, `last`, or every 16th packet; otherwise some time. */
static void
test_debts(void **state)
{
	struct hca_tp_pkt p = {.tpmsn = 1};

	open_mode(HCA_TP_MODE_SACK, 0);
	for (; p.psn < 15; p.psn++) {
		assert_int_equal(hca_tp_accept(&rig.tp, &p), HCA_TP_PASS);
		assert_int_equal(rig.tp.rx.debt, HCA_TP_OWES_LATER);
	}
	hca_tp_accept(&rig.tp, &p);
	assert_int_equal(rig.tp.rx.debt, HCA_TP_OWES_NOW);
	assert_answer(HCA_TP_TPACK, p.psn++);
	p.ask = true;
	hca_tp_accept(&rig.tp, &p);
	assert_int_equal(rig.tp.rx.debt, HCA_TP_OWES_NOW);
	assert_answer(HCA_TP_TPACK, p.psn++);
	p.ask = false;
	hca_tp_accept(&rig.tp, &p);
	assert_int_equal(rig.tp.rx.debt, HCA_TP_OWES_LATER);
	assert_answer(HCA_TP_TPACK, p.psn++);
	p.last = true;
	hca_tp_accept(&rig.tp, &p);
	assert_int_equal(rig.tp.rx.debt, HCA_TP_OWES_NOW);
}

/* Answers go to the port that the packet they answer came from. */
static void
test_port(void **state)
{
	struct hca_tp_pkt p = {.tpmsn = 1, .ask = true, .port = 0xc123};

	open_mode(HCA_TP_MODE_SACK, 0);
	hca_tp_accept(&rig.tp, &p);
	p = (struct hca_tp_pkt){.psn = 4000, .tpmsn = 1, .port = 0xc456};
	assert_int_equal(hca_tp_accept(&rig.tp, &p), HCA_TP_INVALID);
	assert_true(answers());
	assert_int_equal(answer.port, 0xc123);
}

static void
test_passive_becomes_active(void **state)
{
	open_mode(HCA_TP_MODE_SACK, 0);
	rig.tp.cfg.state = HCA_TPS_PASSIVE;
	assert_int_equal(take(200), HCA_TP_INVALID);
	assert_int_equal(rig.tp.cfg.state, HCA_TPS_PASSIVE);
	assert_int_equal(take(1), HCA_TP_PASS);
	assert_int_equal(rig.tp.cfg.state, HCA_TPS_ACTIVE);
}

/* ---- duplicates ---- */

static void
test_duplicates(void **state)
{
	static const enum hca_tp_mode modes[] = {HCA_TP_MODE_DROP, HCA_TP_MODE_TRACK,
						 HCA_TP_MODE_SACK};

	for (size_t i = 0; i < RTE_DIM(modes); i++) {
		open_mode(modes[i], 0);
		take(0);
		take(1);
		assert_answer(HCA_TP_TPACK, 1);
		assert_int_equal(take(0), HCA_TP_DUPLICATE);
		assert_answer(HCA_TP_TPACK, 1);
		/* half of the space before epsn is a duplicate as well */
		assert_int_equal(take(2 + 0x800000), HCA_TP_DUPLICATE);
		assert_int_equal(rig.tp.rx.duplicates, 2);
		assert_int_equal(rig.tp.rx.epsn, 2);
		if (i + 1 < RTE_DIM(modes))
			rig_close(&rig);
	}
}

static void
test_duplicate_in_window(void **state)
{
	open_mode(HCA_TP_MODE_SACK, 0);
	take(2);
	answers();
	assert_int_equal(take(2), HCA_TP_DUPLICATE);
	assert_int_equal(rig.tp.rx.debt, HCA_TP_OWES_NOW);
	assert_sack(-1u, 0, 2, "1001");
	rig_close(&rig);
	open_mode(HCA_TP_MODE_TRACK, 0);
	take(2);
	assert_int_equal(take(2), HCA_TP_DUPLICATE);
	assert_false(answers());
}

/* ---- out of order ---- */

/* DROP: one TPNAK until the expected packet comes; a duplicate is acknowledged meanwhile. */
static void
test_drop(void **state)
{
	open_mode(HCA_TP_MODE_DROP, 0);
	take(0);
	answers();
	assert_int_equal(take(2), HCA_TP_OUT_OF_ORDER);
	assert_answer(HCA_TP_TPNAK, 1);
	assert_int_equal(take(3), HCA_TP_OUT_OF_ORDER);
	assert_false(answers());
	assert_int_equal(take(0), HCA_TP_DUPLICATE);
	assert_answer(HCA_TP_TPACK, 0);
	assert_int_equal(take(1), HCA_TP_PASS);
	assert_answer(HCA_TP_TPACK, 1);
	assert_int_equal(take(3), HCA_TP_OUT_OF_ORDER);
	assert_answer(HCA_TP_TPNAK, 2);
	assert_int_equal(rig.tp.rx.out_of_order, 3);
	assert_int_equal(rig.tp.rx.max_rcv, 1);
}

/* DROP: packets beyond the window are dropped without an answer. */
static void
test_drop_beyond_the_window(void **state)
{
	open_mode(HCA_TP_MODE_DROP, 0);
	take(0);
	answers();
	assert_int_equal(take(1 + 128 + 1), HCA_TP_INVALID);
	assert_int_equal(take(5000000), HCA_TP_INVALID);
	assert_false(answers());
	assert_int_equal(take(1 + 128), HCA_TP_OUT_OF_ORDER);
	assert_answer(HCA_TP_TPNAK, 1);
	assert_int_equal(rig.tp.rx.invalid, 2);
}

static void
test_track(void **state)
{
	open_mode(HCA_TP_MODE_TRACK, 0);
	take(0);
	answers();
	assert_int_equal(take(2), HCA_TP_PASS);
	assert_int_equal(take(3), HCA_TP_PASS);
	assert_false(answers());
	assert_int_equal(take(1), HCA_TP_PASS);
	assert_answer(HCA_TP_TPACK, 3);
	assert_int_equal(rig.tp.rx.accepted_ooo, 2);
}

static void
test_sack(void **state)
{
	open_mode(HCA_TP_MODE_SACK, 0);
	take(0);
	answers();
	assert_int_equal(take(2), HCA_TP_PASS);
	assert_sack(0, 0, 2, "101");
	assert_int_equal(take(4), HCA_TP_PASS);
	assert_sack(0, 0, 4, "10101");
	/* one hole is closed, the other is left */
	assert_int_equal(take(1), HCA_TP_PASS);
	assert_sack(2, 0, 4, "101");
	assert_int_equal(take(3), HCA_TP_PASS);
	assert_answer(HCA_TP_TPACK, 4);
}

/* Every fourth packet out of order is reported at once, the others before the stage is idle. */
static void
test_ooo_every(void **state)
{
	open_mode(HCA_TP_MODE_SACK, 0);
	rig.tp.cfg.ooo_every = 4;
	for (uint32_t psn = 1; psn <= 9; psn++) {
		struct hca_tp_pkt p = {.psn = psn, .tpmsn = 1};
		bool now = psn % 4 == 0;

		assert_int_equal(hca_tp_accept(&rig.tp, &p), HCA_TP_PASS);
		assert_int_equal(rig.tp.rx.debt, now ? HCA_TP_OWES_NOW : HCA_TP_OWES_LATER);
		if (now)
			assert_true(answers());
	}
	assert_sack(-1u, 0, 9, "10111111111");
}

/* The smallest bitmap that reaches the highest packet, at most the agreed one. */
static void
test_sack_sizes(void **state)
{
	static const struct {
		uint32_t psn, limit, code;
	} row[] = {
		{62, 4, 0},  {63, 4, 1},  {126, 4, 1},	{127, 4, 2},  {254, 4, 2}, {255, 4, 3},
		{510, 4, 3}, {511, 4, 4}, {2047, 4, 4}, {2047, 0, 0}, {100, 0, 0}, {2048, 2, 2},
	};

	for (size_t i = 0; i < RTE_DIM(row); i++) {
		struct hca_tp_cfg cfg;

		rig_cfg(&cfg, HCA_TP_MODE_SACK, HCA_TP_RULE_NONE);
		cfg.window = 2048;
		cfg.sack_code = (uint8_t)row[i].limit;
		rig_open(&rig, &cfg, 0, 0);
		assert_int_equal(take(row[i].psn), HCA_TP_PASS);
		assert_answer(HCA_TP_TPSACK, -1u);
		assert_int_equal(answer.sack_code, row[i].code);
		assert_int_equal(answer.max_rcv, row[i].psn);
		for (uint32_t k = 1; k < HCA_TP_SACK_BITS(row[i].code); k++)
			assert_int_equal(bits[k >> 3] >> (k & 7) & 1, k == row[i].psn + 1);
		if (i + 1 < RTE_DIM(row))
			rig_close(&rig);
	}
}

/* W behind the expected packet is accepted, one more is not; nothing is taken for another. */
static void
test_window_end(void **state)
{
	open_mode(HCA_TP_MODE_SACK, 0);
	assert_int_equal(take(129), HCA_TP_INVALID);
	assert_false(answers());
	assert_int_equal(rig.tp.rx.max_rcv, 0xffffff);
	assert_int_equal(take(128), HCA_TP_PASS);
	assert_true(answers());
	assert_int_equal(answer.sack_code, 2);
	for (uint32_t k = 0; k < 256; k++)
		assert_int_equal(bits[k >> 3] >> (k & 7) & 1, k == 0 || k == 129);
	for (uint32_t psn = 0; psn < 128; psn++)
		assert_int_equal(take(psn), HCA_TP_PASS);
	assert_int_equal(rig.tp.rx.epsn, 129);
	assert_answer(HCA_TP_TPACK, 128);
	assert_int_equal(take(129 + 128), HCA_TP_PASS);
	assert_int_equal(rig.tp.rx.invalid, 1);
}

/* ---- TPMSN ---- */

static enum hca_tp_verdict
take_op(uint32_t psn, uint32_t tpmsn, bool last)
{
	struct hca_tp_pkt p = {.psn = psn, .tpmsn = tpmsn, .last = last};

	return hca_tp_accept(&rig.tp, &p);
}

static void
test_tpmsn(void **state)
{
	open_mode(HCA_TP_MODE_SACK, 0);
	assert_int_equal(take_op(0, 1, false), HCA_TP_PASS);
	assert_int_equal(take_op(2, 2, false), HCA_TP_PASS);
	assert_int_equal(take_op(1, 1, true), HCA_TP_PASS);
	assert_int_equal(take_op(3, 2, true), HCA_TP_PASS);
	assert_int_equal(take_op(4, 3, true), HCA_TP_PASS);
	assert_int_equal(rig.tp.cfg.state, HCA_TPS_ACTIVE);
	assert_int_equal(rig.tp.rx.epsn, 5);
}

/* The same TPMSN behind a `last`, another one before it, one that is left out: each is the end. */
static void
test_tpmsn_wrong(void **state)
{
	static const struct {
		uint32_t tpmsn;
		bool last_before;
	} row[] = {{1, true}, {2, false}, {3, true}, {0, true}};

	for (size_t i = 0; i < 2 * RTE_DIM(row); i++) {
		bool late = i >= RTE_DIM(row);
		uint32_t tpmsn = row[i % RTE_DIM(row)].tpmsn;
		bool last = row[i % RTE_DIM(row)].last_before;

		open_mode(HCA_TP_MODE_SACK, 0);
		if (late) {
			/* known only when the packet before it comes */
			assert_int_equal(take_op(1, tpmsn, true), HCA_TP_PASS);
			assert_int_equal(rig.tp.cfg.state, HCA_TPS_ACTIVE);
			assert_int_equal(take_op(0, 1, last), HCA_TP_PASS);
		} else {
			assert_int_equal(take_op(0, 1, last), HCA_TP_PASS);
			assert_int_equal(take_op(1, tpmsn, true), HCA_TP_INVALID);
		}
		assert_int_equal(rig.tp.cfg.state, HCA_TPS_ERROR);
		assert_int_equal(rig.tp.rx.broken, 1);
		assert_int_equal(rig.tp.rx.epsn, 1);
		if (i + 1 < 2 * RTE_DIM(row))
			rig_close(&rig);
	}
}

/* F: only a PSN. */
static void
test_fake(void **state)
{
	struct hca_tp_pkt fake = {.psn = 1, .tpmsn = 77, .fake = true, .ask = true, .last = true};

	open_mode(HCA_TP_MODE_SACK, 0);
	assert_int_equal(take_op(0, 1, false), HCA_TP_PASS);
	assert_int_equal(hca_tp_accept(&rig.tp, &fake), HCA_TP_FAKE);
	assert_answer(HCA_TP_TPACK, 1);
	fake.psn = 3;
	assert_int_equal(hca_tp_accept(&rig.tp, &fake), HCA_TP_FAKE);
	assert_int_equal(hca_tp_accept(&rig.tp, &fake), HCA_TP_DUPLICATE);
	assert_int_equal(take_op(2, 1, true), HCA_TP_PASS);
	assert_int_equal(take_op(4, 2, true), HCA_TP_PASS);
	assert_int_equal(rig.tp.rx.epsn, 5);
	assert_int_equal(rig.tp.rx.fake, 2);
	assert_int_equal(rig.tp.cfg.state, HCA_TPS_ACTIVE);
}

/* ---- wrap ---- */

static void
test_wrap(void **state)
{
	open_mode(HCA_TP_MODE_SACK, 0xfffff0);
	rig.tp.rx.msn = 0xfffff1;
	for (uint32_t psn = 0xfffff0; psn < 0x1000010; psn += 2) {
		assert_int_equal(take(psn + 1), HCA_TP_PASS);
		assert_sack(psn - 1, 0, psn + 1, "101");
		assert_int_equal(take(psn), HCA_TP_PASS);
		assert_answer(HCA_TP_TPACK, psn + 1);
		assert_int_equal(take(psn), HCA_TP_DUPLICATE);
		assert_answer(HCA_TP_TPACK, psn + 1);
		assert_int_equal(take(psn + 2 + 129), HCA_TP_INVALID);
	}
	assert_int_equal(rig.tp.rx.epsn, 0x10);
	assert_int_equal(rig.tp.rx.msn, 0x11);
}

/* Every packet is counted under one name. */
static void
test_sums(void **state)
{
	const struct hca_tp_rx *rx = &rig.tp.rx;

	open_mode(HCA_TP_MODE_SACK, 0);
	for (uint32_t i = 0; i < 400; i++)
		take(i * 7 % 200);
	assert_int_equal(rx->packets, 400);
	assert_int_equal(rx->passed + rx->fake + rx->duplicates + rx->out_of_order + rx->invalid,
			 400);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_teardown(name, teardown)
		T(test_in_order),    T(test_debts),
		T(test_port),	     T(test_passive_becomes_active),
		T(test_duplicates),  T(test_duplicate_in_window),
		T(test_drop),	     T(test_drop_beyond_the_window),
		T(test_track),	     T(test_sack),
		T(test_ooo_every),   T(test_sack_sizes),
		T(test_window_end),  T(test_tpmsn),
		T(test_tpmsn_wrong), T(test_fake),
		T(test_wrap),	     T(test_sums),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
