/* SPDX-License-Identifier: BSD-3-Clause */

/* Packets that a TP sends, byte for byte as in the vectors of the wire, and those it accepts. */

#include "tp_rig.h"

#include "ub/tp/tp_wire.h"

#include "../../wire/ub_vectors.h"

#define IP4_UDP 28u /* in front of the transport header of a vector */

static struct tp_rig rig;
static uint8_t frame[512];
static uint8_t bits[HCA_TP_SACK_BYTES];

static int
teardown(void **state)
{
	rig_close(&rig);
	return 0;
}

/* own: the TP that the vectors call 0x11 or 0x22. */
static void
open_end(uint32_t own, enum hca_tp_mode mode, uint32_t sent, uint32_t expected)
{
	struct hca_tp_cfg cfg;

	rig_cfg(&cfg, mode, HCA_TP_RULE_NONE);
	cfg.own_tpn = own;
	cfg.peer_tpn = 0x33 - own;
	rig_open(&rig, &cfg, sent, expected);
}

/* The transport header of vector i, from 0; n: bytes behind it up to the ICRC, header included. */
static const uint8_t *
vector(uint32_t i, uint32_t *n)
{
	const char *hex = ub_vectors[i].hex;
	uint32_t at = 0;

	for (; *hex != '\0'; hex++) {
		if (*hex == ' ')
			continue;
		frame[at++] = (uint8_t)strtoul((char[]){hex[0], hex[1], '\0'}, NULL, 16);
		hex++;
	}
	*n = at - IP4_UDP - 4;
	return frame + IP4_UDP;
}

static void
assert_headers(uint32_t i, const struct hca_ub_headers *h)
{
	uint8_t tph[HCA_UB_HEADERS_MAX + HCA_TP_SACK_BYTES];
	uint32_t n;
	const uint8_t *expected = vector(i, &n);

	assert_int_equal(hca_ub_put_headers(tph, h), n);
	assert_memory_equal(tph, expected, n);
}

static void
assert_answer(uint32_t i)
{
	struct hca_tp_answer a;
	struct hca_ub_headers h;

	assert_true(hca_tp_make_answer(&rig.tp, &a, bits));
	assert_int_equal(a.port, ub_vectors[i].sport);
	hca_tp_write_answer(&rig.tp, &a, &h);
	assert_headers(i, &h);
}

static void
take(uint32_t psn, uint32_t tpmsn, uint16_t port)
{
	struct hca_tp_pkt p = {.psn = psn, .tpmsn = tpmsn, .port = port, .last = true};

	hca_tp_accept(&rig.tp, &p);
}

/* ---- sent ---- */

static void
test_tpack(void **state)
{
	struct hca_ub_tp_view v;
	struct hca_tp_pkt p;
	uint32_t n;
	const uint8_t *tph = vector(1, &n);

	open_end(0x22, HCA_TP_MODE_SACK, 0, 0xabcdef);
	assert_int_equal(hca_ub_parse_tp(tph, n, &v), 0);
	hca_tp_read_packet(&v, 0xc002, &p);
	assert_true(p.last && p.ask && !p.fake);
	assert_int_equal(hca_tp_accept(&rig.tp, &p), HCA_TP_PASS);
	assert_answer(2);
}

static void
test_tpsack(void **state)
{
	open_end(0x22, HCA_TP_MODE_SACK, 0, 0);
	take(0, 1, 0xc002);
	take(2, 2, 0xc002);
	take(3, 3, 0xc002);
	take(9, 4, 0xc002);
	assert_answer(4);
}

static void
test_tpnak(void **state)
{
	open_end(0x22, HCA_TP_MODE_DROP, 0, 0);
	rig.tp.rx.msn = 4;
	take(0, 4, 0xc002);
	take(2, 5, 0xc002);
	assert_answer(7);
}

static void
assert_rtph(uint32_t i, uint32_t payload)
{
	struct hca_ta_op *op = rig_op(&rig, HCA_TP_RESPONSES, payload);
	struct hca_tp_txd d;
	uint8_t bytes[HCA_UB_RTPH_LEN];
	uint32_t n;

	assert_true(hca_tp_pick(&rig.tp, &rig.pools, 1000, &d));
	hca_tp_write_packet(&rig.tp, op, &d, payload, bytes);
	assert_memory_equal(bytes, vector(i, &n), sizeof(bytes));
}

static void
test_packets(void **state)
{
	open_end(0x11, HCA_TP_MODE_SACK, 0xabcdef, 0);
	assert_rtph(1, 16);
	rig_close(&rig);
	open_end(0x22, HCA_TP_MODE_SACK, 0, 0);
	assert_rtph(3, 0);
}

static void
test_pad_and_nlp(void **state)
{
	uint8_t bytes[HCA_UB_RTPH_LEN];
	struct hca_ub_rtph h;
	struct hca_tp_txd d;

	open_end(0x11, HCA_TP_MODE_SACK, 5, 0);
	rig.tp.cfg.flags = HCA_TP_FLAG_EIDH;
	rig.tp.cfg.ack_every = 16;
	rig_op(&rig, HCA_TP_REQUESTS, 1024 + 5);
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(hca_tp_pick(&rig.tp, &rig.pools, 1000, &d));
		hca_tp_write_packet(&rig.tp, hca_ta_op_at(&rig.pools, d.op), &d, i == 0 ? 1024 : 5,
				    bytes);
		hca_ub_rtph_get(bytes, &h);
		assert_int_equal(h.pad, i == 0 ? 0 : 3);
		assert_int_equal(h.last, i);
		assert_int_equal(h.ack, i);
		assert_int_equal(h.nlp, HCA_UB_NLP_EIDH);
		assert_int_equal(h.psn, 5 + i);
		assert_int_equal(h.tpmsn, 1);
	}
}

/* ---- taken ---- */

static bool
read_vector(uint32_t i, struct hca_tp_answer *a)
{
	struct hca_ub_tp_view v;
	uint32_t n;
	const uint8_t *tph = vector(i, &n);

	assert_int_equal(hca_ub_parse_tp(tph, n, &v), 0);
	return hca_tp_read_answer(tph, &v, 0xc002, a);
}

/* TP 0x11 has sent 10 packets; the answers of the vectors name those that arrived. */
static void
test_answers(void **state)
{
	struct hca_tp_answer a;
	struct hca_tp_txd d;

	open_end(0x11, HCA_TP_MODE_SACK, 0, 0);
	rig_ops(&rig, HCA_TP_REQUESTS, 10);
	while (hca_tp_pick(&rig.tp, &rig.pools, 1000, &d))
		;
	assert_true(read_vector(4, &a));
	assert_int_equal(a.kind, HCA_TP_TPSACK);
	assert_int_equal(a.max_rcv, 9);
	assert_int_equal(a.sack_code, 0);
	assert_int_equal(hca_tp_ack(&rig.tp, &rig.pools, &a, 2000), HCA_TP_HEARD_NEWS);
	assert_int_equal(rig.tp.tx.una, 1);
	assert_true(rig.tp.tx.got[0] == 0x20c);
	assert_true(read_vector(7, &a));
	assert_int_equal(a.kind, HCA_TP_TPNAK);
	assert_int_equal(a.psn, 1);
	assert_true(read_vector(2, &a));
	assert_int_equal(a.kind, HCA_TP_TPACK);
	assert_int_equal(hca_tp_ack(&rig.tp, &rig.pools, &a, 2000), HCA_TP_HEARD_OLD);
	assert_false(read_vector(1, &a));
}

/* Only RSPST 3 with RSPINFO 0 is negative: every other status acknowledges. */
static void
test_status(void **state)
{
	open_end(0x11, HCA_TP_MODE_SACK, 0, 0);
	for (uint32_t word = 0; word < 256; word++) {
		struct hca_ub_tp_view v;
		struct hca_tp_answer a;
		uint32_t n;
		uint8_t *tph = frame + IP4_UDP;

		vector(7, &n);
		tph[12] = (uint8_t)word;
		if (hca_ub_parse_tp(tph, n, &v) != 0)
			continue;
		assert_true(hca_tp_read_answer(tph, &v, 0, &a));
		assert_int_equal(a.kind, word == 0x60 ? HCA_TP_TPNAK : HCA_TP_TPACK);
		assert_int_equal(a.status, word == 0x60 ? 0 : word);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_teardown(name, teardown)
		T(test_tpack),	     T(test_tpsack),  T(test_tpnak),  T(test_packets),
		T(test_pad_and_nlp), T(test_answers), T(test_status),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
