/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * UB in encap: frames of packets and answers are those that the codec builds from the same fields;
 * what cannot be read leaves with Poison; descriptors of dead TPs and arrived packets are dropped.
 */

#include "ub_frame_rig.h"

#include "frame/encap.h"
#include "ub/frame/frame.h"
#include "ub/record.h"

#define JETTY FR_QPI
#define REQUEST(index) hca_ta_opref(HCA_TP_REQUESTS, index)
#define RESPONSE(index) hca_ta_opref(HCA_TP_RESPONSES, index)
#define NOW 1000u

static int
setup(void **state)
{
	*state = uf_new();
	return 0;
}

static int
teardown(void **state)
{
	uf_free(*state);
	return 0;
}

static uint64_t
counted(const struct frame_rig *r, enum hca_counter c)
{
	return fx_counter(r->fx, HCA_STAGE_ENCAP, c);
}

/* A Write of the Jetty from offset 100 of the memory. */
static struct hca_ta_op *
make_write(struct frame_rig *r, uint32_t index, uint32_t len)
{
	struct hca_ta_op *op = hca_ta_op_at(&r->h->ub->ops, REQUEST(index));

	*op = (struct hca_ta_op){
		.object = JETTY,
		.generation = r->qp->cfg.generation,
		.opcode = HCA_UB_TA_WRITE,
		.last_opcode = HCA_UB_TA_WRITE,
		.tassn = (uint16_t)(0x700 + index),
		.source = HCA_TA_OP_LOCAL,
		.rc = 5,
		.payload = len,
		.length = len,
		.key = FR_KEY,
		.req = {.address = 0x112233445566, .va = FR_VA + 100, .token_id = 0x345},
		.tps = {.tpmsn = 0x50 + index},
	};
	return op;
}

/* The descriptor of a packet; the last one if the operation ends with it. */
static struct rte_mbuf *
txd(struct frame_rig *r, uint32_t ref, uint32_t packet, uint32_t psn)
{
	const struct hca_ta_op *op = hca_ta_op_at(&r->h->ub->ops, ref);
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->pool);

	assert_non_null(m);
	*hca_ub_txd(m) = (struct hca_tp_txd){
		.tp = UF_TPI,
		.generation = UF_GENERATION,
		.op = ref,
		.packet = packet,
		.psn = psn,
		.seq = psn,
		.port = UF_PORT,
		.flags = packet + 1 == hca_ta_op_packets(op, UF_MTU_LOG) ? HCA_TP_TXD_LAST : 0,
	};
	return m;
}

static void
send(struct frame_rig *r, struct rte_mbuf *m)
{
	void *obj = m;

	hca_encap_process_tps(r->h, &obj, 1, NOW);
}

/* The frame that the codec makes of a packet of a Write. */
static uint32_t
expect(struct frame_rig *r, const struct hca_ta_op *op, uint32_t packet, uint32_t psn, bool poison,
       const void *payload, uint8_t *out)
{
	struct hca_ub_path path = uf_path(true);
	bool last = packet + 1 == hca_ta_op_packets(op, UF_MTU_LOG);
	struct hca_ub_headers h = {
		.rtph = {.last = last,
			 .opcode = HCA_UB_TP_RTP,
			 .nlp = HCA_UB_NLP_TA,
			 .src_tpn = UF_OWN_TPN,
			 .dst_tpn = UF_PEER_TPN,
			 .psn = psn,
			 .tpmsn = op->tps.tpmsn},
		.btah = {.opcode = op->opcode,
			 .poison = poison,
			 .tassn = op->tassn,
			 .rc_id = op->rc},
		.maetah = {.address = op->req.address + (packet << UF_MTU_LOG),
			   .token_id = op->req.token_id,
			   .length = op->length},
	};
	struct hca_udp_template t;
	int n;

	assert_int_equal(hca_ub_template_fill(&path, &t), 0);
	n = ub_build(r->h->icrc, &t, &h, payload, hca_ta_op_packet_len(op, packet, UF_MTU_LOG), out,
		     FR_FRAME_MAX);
	assert_true(n > 0);
	return (uint32_t)n;
}

static void
check(const struct frame_rig *r, unsigned int i, const uint8_t *expected, uint32_t len)
{
	assert_true(i < r->frames);
	assert_int_equal(r->len[i], len);
	assert_memory_equal(r->frame[i], expected, len);
}

/* ---- packets ---- */

/* Lengths with each pad, beyond the length of fused copies, and of several packets. */
static void
writes(void **state)
{
	static const uint32_t lengths[] = {1, 2, 3, 4, 64, 255, 256, 257, 1024, 1025, 4000};
	struct frame_rig *r = *state;
	uint8_t expected[FR_FRAME_MAX];
	uint32_t psn = UF_PSN;

	for (unsigned int i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		const struct hca_ta_op *op = make_write(r, i % UF_OPS, lengths[i]);

		for (uint32_t p = 0; p < hca_ta_op_packets(op, UF_MTU_LOG); p++, psn++) {
			uint32_t n = expect(r, op, p, psn, false, r->mem + 100 + (p << UF_MTU_LOG),
					    expected);

			send(r, txd(r, REQUEST(i % UF_OPS), p, psn));
			check(r, r->frames - 1, expected, n);
			assert_int_equal(uf_tp(r)->encap.done_seq, psn);
		}
	}
	assert_int_equal(uf_tp(r)->encap.tx_packets, r->frames);
}

/* Packets of a burst that differ in their numbers only are copied from the one before. */
static void
run(void **state)
{
	struct frame_rig *r = *state;
	uint8_t expected[FR_FRAME_MAX];
	void *obj[UF_OPS];

	for (uint32_t i = 0; i < UF_OPS; i++) {
		make_write(r, i, i < 6 ? 64 : 63);
		obj[i] = txd(r, REQUEST(i), 0, UF_PSN + i);
	}
	hca_encap_process_tps(r->h, obj, UF_OPS, NOW);
	assert_int_equal(r->frames, UF_OPS);
	assert_int_equal(r->tx_calls, 1);
	for (uint32_t i = 0; i < UF_OPS; i++)
		check(r, i, expected,
		      expect(r, hca_ta_op_at(&r->h->ub->ops, REQUEST(i)), 0, UF_PSN + i, false,
			     r->mem + 100, expected));
	assert_int_equal(uf_tp(r)->encap.done_seq, UF_PSN + UF_OPS - 1);
}

/* A region of pages in reverse order is gathered page by page. */
static void
pages(void **state)
{
	struct frame_rig *r = *state;
	uint8_t expected[FR_FRAME_MAX], payload[1000];
	struct hca_ta_op *op = make_write(r, 0, sizeof(payload));

	op->key = FR_PAGED_KEY;
	op->req.va = FR_VA + 4096 - 500;
	for (uint32_t i = 0; i < sizeof(payload); i++)
		payload[i] = *frame_rig_paged(r, 4096 - 500 + i);
	send(r, txd(r, REQUEST(0), 0, UF_PSN));
	check(r, 0, expected, expect(r, op, 0, UF_PSN, false, payload, expected));
}

/* The result of an atomic: in the order of the TP. */
static void
result(void **state)
{
	struct frame_rig *r = *state;
	struct hca_ta_op *op = hca_ta_op_at(&r->h->ub->ops, RESPONSE(0));
	const uint8_t value[8] = {1, 2, 3, 4, 5, 6, 7, 8};

	*op = (struct hca_ta_op){.opcode = HCA_UB_TA_ATOMIC_RESPONSE,
				 .last_opcode = HCA_UB_TA_ATOMIC_RESPONSE,
				 .source = HCA_TA_OP_RESULT,
				 .payload = sizeof(value)};
	memcpy(op->result, value, sizeof(value));
	for (unsigned int turned = 0; turned < 2; turned++) {
		const uint8_t *payload;

		uf_tp(r)->cfg.flags = turned ? HCA_TP_FLAG_RSP_BE : 0;
		send(r, txd(r, RESPONSE(0), 0, UF_PSN + turned));
		assert_int_equal(r->frames, turned + 1);
		payload = r->frame[turned] + r->len[turned] - HCA_ICRC_LEN - sizeof(value);
		for (unsigned int i = 0; i < sizeof(value); i++)
			assert_int_equal(payload[i], value[turned ? 7 - i : i]);
	}
}

/* ---- payloads that cannot be read ---- */

/* The packet has zeros and Poison, and so have all later ones of the operation. */
static void
poisoned(struct frame_rig *r, struct hca_ta_op *op)
{
	static const uint8_t zeros[1024];
	uint8_t expected[FR_FRAME_MAX];

	send(r, txd(r, REQUEST(0), 0, UF_PSN));
	check(r, 0, expected, expect(r, op, 0, UF_PSN, true, zeros, expected));
	assert_true(hca_ta_op_poisoned(op));
	op->key = FR_KEY;
	send(r, txd(r, REQUEST(0), 1, UF_PSN + 1));
	check(r, 1, expected, expect(r, op, 1, UF_PSN + 1, true, zeros, expected));
	assert_int_equal(counted(r, HCA_CTR_ub_poisoned), 2);
}

static void
bad_key(void **state)
{
	struct frame_rig *r = *state;
	struct hca_ta_op *op = make_write(r, 0, 1500);

	op->key = FR_KEY ^ 0x7;
	poisoned(r, op);
}

static void
bad_range(void **state)
{
	struct frame_rig *r = *state;
	struct hca_ta_op *op = make_write(r, 0, 1500);

	op->req.va = FR_VA + FR_MEM - 1000;
	poisoned(r, op);
}

/* Its Jetty was given to another client, or the request is given up. */
static void
jetty_gone(void **state)
{
	struct frame_rig *r = *state;
	struct hca_ta_op *op = make_write(r, 0, 1500);

	op->generation++;
	poisoned(r, op);
}

static void
orphan(void **state)
{
	struct frame_rig *r = *state;
	struct hca_ta_op *op = make_write(r, 0, 1500);

	hca_ta_op_set_flag(op, HCA_TA_OP_ORPHAN);
	poisoned(r, op);
}

enum refused {
	BAD_KEY,
	BAD_RANGE,
	BAD_JETTY,
	BAD_GENERATION,
	BAD_ORPHAN,
	BAD_SEGMENT,
	REFUSED
};

static void
spoil(struct hca_ta_op *op, enum refused why)
{
	op->key ^= why == BAD_KEY ? 0x7 : 0;
	op->object ^= why == BAD_JETTY;
	op->generation += why == BAD_GENERATION;
	if (why == BAD_RANGE)
		op->req.va = FR_VA + FR_MEM - 63;
	if (why == BAD_ORPHAN)
		hca_ta_op_set_flag(op, HCA_TA_OP_ORPHAN);
	if (why == BAD_SEGMENT) {
		op->source = HCA_TA_OP_TOKEN;
		op->read.va = FR_VA + 100;
	}
}

/* The one in the middle of a burst is judged, although the one before it was allowed. */
static void
refused_between(void **state)
{
	static const uint8_t zeros[64];
	struct frame_rig *r = *state;
	uint8_t expected[FR_FRAME_MAX];
	uint32_t psn = UF_PSN;

	for (unsigned int why = 0; why < REFUSED; why++) {
		void *obj[3];

		for (uint32_t i = 0; i < 3; i++) {
			struct hca_ta_op *op = make_write(r, i, sizeof(zeros));

			if (i == 1)
				spoil(op, why);
			obj[i] = txd(r, REQUEST(i), 0, psn + i);
		}
		hca_encap_process_tps(r->h, obj, 3, NOW);
		for (uint32_t i = 0; i < 3; i++, psn++) {
			const struct hca_ta_op *op = hca_ta_op_at(&r->h->ub->ops, REQUEST(i));
			const void *payload = i == 1 ? zeros : r->mem + 100;
			uint32_t n = expect(r, op, 0, psn, i == 1, payload, expected);

			check(r, 3 * why + i, expected, n);
		}
	}
	assert_int_equal(counted(r, HCA_CTR_ub_poisoned), REFUSED);
}

/* ---- descriptors without a frame ---- */

static void
dropped(struct frame_rig *r, enum hca_counter why)
{
	unsigned int frames = r->frames;
	uint64_t before = counted(r, why);

	send(r, txd(r, REQUEST(0), 0, UF_PSN));
	assert_int_equal(r->frames, frames);
	assert_int_equal(counted(r, why), before + 1);
	assert_int_equal(frame_rig_in_use(r), 0);
}

/* done_seq advances, except for a TP that lives again. */
static void
no_frame(void **state)
{
	struct frame_rig *r = *state;
	struct hca_ta_op *op = make_write(r, 0, 64);
	struct hca_tp *tp = uf_tp(r);

	tp->cfg.generation++;
	dropped(r, HCA_CTR_stale_descriptors);
	tp->cfg.generation--;
	tp->cfg.state = HCA_TPS_RESET;
	dropped(r, HCA_CTR_stale_descriptors);
	assert_int_equal(tp->encap.done_seq, 0);
	tp->cfg.state = HCA_TPS_ERROR;
	dropped(r, HCA_CTR_ub_dropped_dead);
	assert_int_equal(tp->encap.done_seq, UF_PSN);
	tp->cfg.state = HCA_TPS_ACTIVE;
	tp->tx.una = UF_PSN + 1;
	dropped(r, HCA_CTR_ub_dropped_answered);
	tp->tx.una = UF_PSN;
	hca_ta_op_set_flag(op, HCA_TA_OP_ANSWERED);
	dropped(r, HCA_CTR_ub_dropped_answered);
}

/* An unreliable packet whose record may be another client's. */
static void
datagram_orphan(void **state)
{
	struct frame_rig *r = *state;
	struct hca_ta_op *op = make_write(r, 0, 64);
	struct rte_mbuf *m = txd(r, REQUEST(0), 0, UF_PSN);
	struct hca_tp *tp = &r->h->ub->tp[HCA_TP_UNRELIABLE];
	void *obj = m;

	tp->cfg = uf_tp(r)->cfg;
	tp->cfg.mode = HCA_TP_MODE_UNRELIABLE;
	hca_ta_op_set_flag(op, HCA_TA_OP_ORPHAN);
	hca_ub_txd(m)->tp = HCA_TP_UNRELIABLE;
	hca_encap_process_tps(r->h, &obj, 1, NOW);
	assert_int_equal(r->frames, 0);
	assert_int_equal(counted(r, HCA_CTR_ub_bad_av), 1);
}

/* ---- answers ---- */

static struct rte_mbuf *
make_answer(struct frame_rig *r, uint8_t kind)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->pool);
	uint8_t *bits = hca_ub_answer_bits(m);

	memset(bits, 0xa5, HCA_TP_SACK_BYTES);
	*hca_ub_answer(m) = (struct hca_ub_answer){
		.tp = UF_TPI,
		.generation = UF_GENERATION,
		.answer = {.psn = 0x77,
			   .tpmsn = 0x66,
			   .max_rcv = 0x99,
			   .port = UF_PORT,
			   .kind = kind,
			   .sack_code = 1,
			   .bits = bits},
	};
	return m;
}

static uint32_t
expect_answer(struct frame_rig *r, uint8_t kind, const uint8_t *bits, uint8_t *out)
{
	struct hca_ub_path path = uf_path(true);
	struct hca_ub_headers h = {
		.rtph = {.opcode = kind == HCA_TP_TPSACK ? HCA_UB_TP_SACK : HCA_UB_TP_ACK,
			 .rspst = kind == HCA_TP_TPNAK ? HCA_UB_ACK_ERROR : HCA_UB_ACK_OK,
			 .rspinfo = kind == HCA_TP_TPNAK ? HCA_UB_ERROR_PSN : 0,
			 .src_tpn = UF_OWN_TPN,
			 .dst_tpn = UF_PEER_TPN,
			 .psn = 0x77,
			 .tpmsn = 0x66},
		.saetph = {.size = 1, .max_rcv = 0x99},
		.bitmap = bits,
	};
	struct hca_udp_template t;

	assert_int_equal(hca_ub_template_fill(&path, &t), 0);
	return (uint32_t)ub_build(r->h->icrc, &t, &h, NULL, 0, out, FR_FRAME_MAX);
}

/* They wait for the end of the poll. */
static void
answers(void **state)
{
	static const uint8_t kinds[] = {HCA_TP_TPACK, HCA_TP_TPNAK, HCA_TP_TPSACK};
	struct frame_rig *r = *state;
	uint8_t expected[FR_FRAME_MAX], bits[HCA_TP_SACK_BYTES];
	void *obj[3];

	memset(bits, 0xa5, sizeof(bits));
	for (unsigned int i = 0; i < 3; i++)
		obj[i] = make_answer(r, kinds[i]);
	hca_encap_process_tpr(r->h, obj, 3, NOW);
	assert_int_equal(r->frames, 0);
	hca_encap_transmit_open(r->h, NOW);
	assert_int_equal(r->frames, 3);
	assert_int_equal(r->tx_calls, 1);
	for (unsigned int i = 0; i < 3; i++)
		check(r, i, expected, expect_answer(r, kinds[i], bits, expected));
}

/* Its own DSCP, and not for marks. */
static void
notifications(void **state)
{
	struct frame_rig *r = *state;
	uint8_t expected[FR_FRAME_MAX];

	for (unsigned int i = 0; i < 2; i++) {
		struct hca_ub_path path = uf_path(true);
		struct hca_ub_headers h = {.rtph = {.opcode = HCA_UB_TP_CNP,
						    .src_tpn = UF_OWN_TPN,
						    .dst_tpn = UF_PEER_TPN},
					   .cetph_cnp.ecn = 3};
		void *obj = make_answer(r, HCA_TP_CNP);
		struct hca_udp_template t;

		r->h->cfg.cnp_dscp = 40;
		if (i == 1) {
			path.udp.ip_version = 6;
			path.udp.flow_label = hca_ub_flow_label(UF_PORT);
		}
		path.udp.tclass = 0x6a;
		assert_int_equal(hca_ub_template_fill(&path, &uf_tp(r)->encap.tmpl), 0);
		path.udp.tclass = 40 << 2;
		assert_int_equal(hca_ub_template_fill(&path, &t), 0);
		hca_encap_process_tpr(r->h, &obj, 1, NOW);
		hca_encap_transmit_open(r->h, NOW);
		check(r, i, expected,
		      (uint32_t)ub_build(r->h->icrc, &t, &h, NULL, 0, expected, FR_FRAME_MAX));
	}
}

static void
answer_stale(void **state)
{
	struct frame_rig *r = *state;
	void *obj = make_answer(r, HCA_TP_TPACK);

	uf_tp(r)->cfg.generation++;
	hca_encap_process_tpr(r->h, &obj, 1, NOW);
	assert_int_equal(frame_rig_in_use(r), 0);
	assert_int_equal(counted(r, HCA_CTR_stale_descriptors), 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(writes),	    T(run),	   T(pages),	    T(result),		T(bad_key),
		T(bad_range),	    T(jetty_gone), T(orphan),	    T(refused_between), T(no_frame),
		T(datagram_orphan), T(answers),	   T(answer_stale), T(notifications),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
