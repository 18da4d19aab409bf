/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A peer that sends random frames: answers of random PSNs, bitmaps and sizes, packets of random
 * PSNs. After each of them the TP's own numbers agree. TP_SEED=N begins with another seed.
 */

#include "tp_rig.h"

#include "ub/tp/tp_bits.h"
#include "ub/tp/tp_core.h"

#define STEPS 20000u

static struct tp_rig rig;
static uint64_t seed, now;
static struct hca_tp_txd d;

static uint32_t
random_below(uint32_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((seed >> 33) % n);
}

static void
open_random(enum hca_tp_mode mode, enum hca_tp_rule rule)
{
	uint32_t psn = random_below(2) ? 0xffff00 : random_below(1u << 24);
	struct hca_tp_cfg cfg;

	rig_cfg(&cfg, mode, rule);
	cfg.window = (uint16_t)HCA_TP_WINDOW_PACKETS(random_below(3));
	cfg.sack_code = (uint8_t)random_below(HCA_TP_SACK_CODES);
	cfg.ack_every = (uint8_t)(1 + random_below(32));
	cfg.ooo_every = (uint8_t)(1 + random_below(8));
	cfg.reorder = random_below(2) * 5000;
	rig_open(&rig, &cfg, psn, psn);
	now = 1000000;
}

/* ---- the sender ---- */

static uint32_t
count_bits(const uint64_t *ring)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < rig.tp.cfg.window / 64u; i++)
		n += (uint32_t)__builtin_popcountll(ring[i]);
	return n;
}

static void
check_sender(uint32_t una_before)
{
	const struct hca_tp_tx *tx = &rig.tp.tx;
	uint32_t mask = rig.tp.cfg.window - 1u, flight = hca_tp_past(tx->next, tx->una), got = 0;

	assert_true(flight <= rig.tp.cfg.window);
	assert_true(hca_psn_diff(tx->una, una_before) >= 0);
	assert_int_equal(count_bits(tx->again), tx->again_n);
	for (uint32_t k = 0; k < flight; k++) {
		uint32_t psn = hca_tp_psn(tx->una, k);
		bool has = hca_bit_test(tx->got, mask, psn);

		got += has;
		assert_false(has && hca_bit_test(tx->again, mask, psn));
		assert_false(k == 0 && has);
	}
	assert_int_equal(count_bits(tx->got), got);
	assert_int_equal(tx->deadline == HCA_TP_NEVER, flight == 0);
	for (uint32_t lane = 0; lane < HCA_TP_LANES; lane++)
		assert_true((int32_t)(tx->lane[lane].next - tx->lane[lane].done) >= 0);
}

static void
hear_something(void)
{
	const struct hca_tp_tx *tx = &rig.tp.tx;
	uint32_t flight = hca_tp_past(tx->next, tx->una);
	struct hca_tp_answer a = {.psn = hca_tp_psn(tx->una - 4, random_below(flight + 8)),
				  .kind = (uint8_t)random_below(3),
				  .sack_code = (uint8_t)random_below(HCA_TP_SACK_CODES)};
	uint32_t bytes = HCA_TP_SACK_BITS(a.sack_code) / 8;
	/* of exactly that size, so that tools report reads behind it */
	uint8_t *bits = malloc(bytes);

	for (uint32_t i = 0; i < bytes; i++)
		bits[i] = (uint8_t)(random_below(256) & random_below(256));
	a.bits = bits;
	a.max_rcv = hca_tp_psn(a.psn, random_below(2 * HCA_TP_SACK_BITS(a.sack_code)));
	if (random_below(50) == 0)
		a.psn = random_below(1u << 24);
	if (random_below(50) == 0)
		a.max_rcv = random_below(1u << 24);
	hca_tp_ack(&rig.tp, &rig.pools, &a, now);
	free(bits);
}

static void
step_sender(void)
{
	uint32_t lane = random_below(HCA_TP_LANES);

	switch (random_below(5)) {
	case 0:
		if (hca_tp_lane_room(&rig.tp, lane) > 0)
			rig_op(&rig, lane, random_below(5000));
		break;
	case 1:
		hear_something();
		break;
	case 2:
		if (random_below(20) == 0 && hca_tp_expire(&rig.tp, &rig.pools, now) != 0)
			rig.tp.tx.times = 0;
		break;
	default:
		if (hca_tp_pick(&rig.tp, &rig.pools, now, &d))
			rig.tp.encap.done_seq = d.seq;
		break;
	}
	hca_tp_release(&rig.tp, &rig.pools);
	now += random_below(2000);
}

/* At the end a good answer still ends everything. */
static void
end_sender(void)
{
	while (rig.tp.tx.una != rig.tp.tx.next || hca_tp_pick(&rig.tp, &rig.pools, now, &d)) {
		struct hca_tp_answer a = {.kind = HCA_TP_TPACK,
					  .psn = hca_tp_psn_before(rig.tp.tx.next)};

		rig.tp.encap.done_seq = rig.tp.tx.desc_seq;
		hca_tp_ack(&rig.tp, &rig.pools, &a, now);
	}
	hca_tp_release(&rig.tp, &rig.pools);
	assert_int_equal(rig.tp.tx.lane[0].done, rig.tp.lane[0].head);
	assert_int_equal(rig.tp.tx.lane[1].done, rig.tp.lane[1].head);
	assert_int_equal(rig.tp.tx.ops_acked, rig.used[0] + rig.used[1]);
	assert_int_equal(rig.tp.tx.again_n, 0);
}

static void
test_answers(void **state)
{
	static const struct {
		enum hca_tp_mode mode;
		enum hca_tp_rule rule;
	} row[] = {{HCA_TP_MODE_DROP, HCA_TP_RULE_NAK},	 {HCA_TP_MODE_TRACK, HCA_TP_RULE_NONE},
		   {HCA_TP_MODE_SACK, HCA_TP_RULE_NONE}, {HCA_TP_MODE_SACK, HCA_TP_RULE_HIGH},
		   {HCA_TP_MODE_SACK, HCA_TP_RULE_MARK}, {HCA_TP_MODE_SACK, HCA_TP_RULE_TIME}};

	for (size_t i = 0; i < RTE_DIM(row); i++) {
		open_random(row[i].mode, row[i].rule);
		for (uint32_t step = 0; step < STEPS; step++) {
			uint32_t una = rig.tp.tx.una;

			step_sender();
			check_sender(una);
		}
		end_sender();
		rig_close(&rig);
	}
}

/* ---- the receiver ---- */

static uint8_t passed[1u << 16]; /* by distance from the first PSN */

/* Every packet an operation of its own; one in some thousands lies about it. */
static void
take_something(uint32_t first)
{
	const struct hca_tp_rx *rx = &rig.tp.rx;
	uint32_t psn = hca_tp_psn(rx->epsn - 20, random_below(random_below(4) ? 40 : 700));
	struct hca_tp_pkt p = {.psn = psn,
			       .tpmsn = hca_tp_past(psn, first) + 1,
			       .last = true,
			       .ask = random_below(4) == 0};
	enum hca_tp_verdict verdict;

	if (random_below(3000) == 0)
		p.tpmsn = random_below(1u << 24);
	verdict = hca_tp_accept(&rig.tp, &p);
	if (verdict == HCA_TP_PASS) {
		uint32_t at = hca_tp_past(psn, first);

		assert_true(at < sizeof(passed));
		assert_int_equal(passed[at]++, 0);
	}
}

static void
check_receiver(uint32_t epsn_before)
{
	const struct hca_tp_rx *rx = &rig.tp.rx;
	uint32_t mask = rig.tp.cfg.window - 1u, holes = 0;

	assert_true(hca_psn_diff(rx->epsn, epsn_before) >= 0);
	for (uint32_t k = 1; k <= rig.tp.cfg.window; k++)
		holes += hca_bit_test(rx->bits, mask, hca_tp_psn(rx->epsn, k));
	assert_int_equal(count_bits(rx->bits), holes);
	assert_int_equal(hca_psn_diff(rx->max_rcv, rx->epsn) >= 0, holes != 0);
	assert_true(rx->packets ==
		    rx->passed + rx->fake + rx->duplicates + rx->out_of_order + rx->invalid);
}

static void
test_packets(void **state)
{
	for (uint32_t round = 0; round < 12; round++) {
		uint8_t bits[HCA_TP_SACK_BYTES];
		struct hca_tp_answer a;
		uint32_t first;

		open_random(round % HCA_TP_MODES, HCA_TP_RULE_NONE);
		memset(passed, 0, sizeof(passed));
		first = rig.tp.rx.epsn;
		for (uint32_t n = 0; n < STEPS && hca_tp_receives(rig.tp.cfg.state); n++) {
			uint32_t epsn = rig.tp.rx.epsn;

			take_something(first);
			/* after an error of the TP its state is not checked */
			if (hca_tp_receives(rig.tp.cfg.state))
				check_receiver(epsn);
			if (random_below(3) == 0)
				hca_tp_make_answer(&rig.tp, &a, bits);
		}
		rig_close(&rig);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_packets),
	};
	const char *text = getenv("TP_SEED");

	seed = text != NULL ? strtoull(text, NULL, 0) : 1;
	print_message("seed %llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
