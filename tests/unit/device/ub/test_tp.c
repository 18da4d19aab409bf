/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory, lanes and states of a TP; packets of an operation; rings of bits. */

#include "tp/tp_rig.h"

#include <string.h>

#include "ub/tp/tp_bits.h"

/* Parts of a block: each one is written completely, and none of them changes another. */
static void
fill_parts(struct hca_tp *tp, int round)
{
	uint32_t w = tp->cfg.window;
	const struct {
		void *at;
		size_t bytes;
	} part[] = {
		{tp->tx.slot, w * sizeof(struct hca_tp_slot)},
		{tp->tx.got, w / 8},
		{tp->tx.again, w / 8},
		{tp->rx.bits, w / 8},
		{tp->rx.seen, w * sizeof(uint32_t)},
		{tp->lane[HCA_TP_RESPONSES].ring, w * sizeof(uint32_t)},
		{tp->lane[HCA_TP_REQUESTS].ring, w * sizeof(uint32_t)},
		{tp->owed, (size_t)tp->cfg.requests * HCA_TP_OWED_BYTES},
		{tp->open, 2ul * w * HCA_TP_OPEN_BYTES},
		{tp->suspects, HCA_TP_SUSPECTS / 8},
	};

	for (size_t i = 0; i < RTE_DIM(part); i++) {
		assert_true((uintptr_t)part[i].at % 8 == 0);
		for (size_t k = 0; k < part[i].bytes; k++) {
			uint8_t *byte = (uint8_t *)part[i].at + k;

			if (round == 0)
				*byte = (uint8_t)(i + 1);
			else
				assert_int_equal(*byte, i + 1);
		}
	}
}

static void
test_block(void **state)
{
	for (uint32_t code = 0; code < 5u; code++) {
		struct hca_tp_cfg cfg;
		struct tp_rig rig;

		rig_cfg(&cfg, HCA_TP_MODE_SACK, HCA_TP_RULE_TIME);
		cfg.window = HCA_TP_WINDOW_PACKETS(code);
		cfg.requests = 100;
		rig_open(&rig, &cfg, 5, 6);
		fill_parts(&rig.tp, 0);
		fill_parts(&rig.tp, 1);
		rig_close(&rig);
		/* the design's size: about 120 bytes for each packet, without the suspects */
		assert_true(hca_tp_block_bytes(cfg.window, cfg.window) - HCA_TP_SUSPECTS / 8 <=
			    cfg.window * 128u);
	}
}

static void
test_begin(void **state)
{
	struct hca_tp_cfg cfg;
	struct tp_rig rig;

	rig_cfg(&cfg, HCA_TP_MODE_SACK, HCA_TP_RULE_TIME);
	rig_open(&rig, &cfg, 0, 0x123456);
	assert_int_equal(rig.tp.tx.una, 0);
	assert_int_equal(rig.tp.tx.next, 0);
	assert_int_equal(rig.tp.tx.high, 0xffffff);
	assert_int_equal(rig.tp.tx.tpmsn, 1);
	assert_true(rig.tp.tx.deadline == HCA_TP_NEVER);
	assert_int_equal(rig.tp.rx.epsn, 0x123456);
	assert_int_equal(rig.tp.rx.max_rcv, 0x123455);
	assert_int_equal(rig.tp.rx.msn, 1);
	rig_close(&rig);
}

static void
test_lane_room(void **state)
{
	struct hca_tp_cfg cfg;
	struct tp_rig rig;

	rig_cfg(&cfg, HCA_TP_MODE_SACK, HCA_TP_RULE_TIME);
	rig_open(&rig, &cfg, 0, 0);
	rig_ops(&rig, HCA_TP_REQUESTS, 127);
	assert_int_equal(hca_tp_lane_room(&rig.tp, HCA_TP_REQUESTS), 1);
	assert_int_equal(hca_tp_lane_room(&rig.tp, HCA_TP_RESPONSES), 128);
	rig_ops(&rig, HCA_TP_REQUESTS, 1);
	assert_int_equal(hca_tp_lane_room(&rig.tp, HCA_TP_REQUESTS), 0);
	rig.tp.tx.lane[HCA_TP_REQUESTS].done = 3;
	assert_int_equal(hca_tp_lane_room(&rig.tp, HCA_TP_REQUESTS), 3);
	rig_close(&rig);
}

static void
test_fail(void **state)
{
	static const bool fails[] = {[HCA_TPS_RESET] = false,
				     [HCA_TPS_PASSIVE] = true,
				     [HCA_TPS_ACTIVE] = true,
				     [HCA_TPS_DRAIN] = true,
				     [HCA_TPS_ERROR] = false};
	struct hca_tp tp = {0};

	for (uint32_t i = 0; i < RTE_DIM(fails); i++) {
		tp.cfg.state = i;
		assert_int_equal(hca_tp_fail(&tp), fails[i]);
		assert_int_equal(tp.cfg.state, fails[i] ? HCA_TPS_ERROR : i);
		assert_false(hca_tp_receives(tp.cfg.state));
	}
}

static void
test_packets(void **state)
{
	static const struct {
		uint32_t payload, packets, last;
	} row[] = {{0, 1, 0},	    {1, 1, 1},
		   {1023, 1, 1023}, {1024, 1, 1024},
		   {1025, 2, 1},    {65536, 64, 1024},
		   {65537, 65, 1},  {UINT32_C(1) << 31, UINT32_C(1) << 21, 1024}};

	for (size_t i = 0; i < RTE_DIM(row); i++) {
		struct hca_ta_op op = {.payload = row[i].payload};

		assert_int_equal(hca_ta_op_packets(&op, 10), row[i].packets);
		assert_int_equal(hca_ta_op_packet_len(&op, row[i].packets - 1, 10), row[i].last);
		if (row[i].packets > 1)
			assert_int_equal(hca_ta_op_packet_len(&op, 0, 10), 1024);
	}
}

/* Against one bit at a time, at every place of a ring. */
static void
test_bits(void **state)
{
	uint64_t ring[2] = {0x8421f00dcafe1235, 0x1234567890abcdef};

	for (uint32_t psn = 0; psn < 300; psn++) {
		uint64_t bits = hca_bits_at(ring, 127, psn);

		for (uint32_t k = 0; k < 64; k++)
			assert_int_equal(bits >> k & 1, hca_bit_test(ring, 127, psn + k));
		hca_bit_set(ring, 127, psn);
		assert_true(hca_bit_test(ring, 127, psn));
		hca_bit_clear(ring, 127, psn);
		assert_false(hca_bit_test(ring, 127, psn));
		if (bits & 1)
			hca_bit_set(ring, 127, psn);
	}
}

static void
test_range(void **state)
{
	for (uint32_t from = 0; from < 200; from += 3) {
		for (uint32_t to = 0; to < 200; to++) {
			uint64_t bits = hca_bits_range(64, from, to);

			for (uint32_t k = 0; k < 64; k++)
				assert_int_equal(bits >> k & 1, 64 + k >= from && 64 + k < to);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_block),	  cmocka_unit_test(test_begin),
		cmocka_unit_test(test_lane_room), cmocka_unit_test(test_fail),
		cmocka_unit_test(test_packets),	  cmocka_unit_test(test_bits),
		cmocka_unit_test(test_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
