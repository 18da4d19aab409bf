/* SPDX-License-Identifier: BSD-3-Clause */

/* Writes, Reads and atomics: their effects, the orders of packets, and refusals. */

#include "tat_rig.h"

#include <string.h>

#include <errno.h>
#include <stdlib.h>

#include "ub/target/ta_atomic.h"

/* ---- writes ---- */

static void
test_write(void **state)
{
	struct rig *r = *state;

	rig_feed(r, rig_write(1, 100, 333, 9));
	assert_true(rig_holds(r, 100, 333, 9));
	assert_int_equal(r->mem[433], 0);
	rig_expect_taack(r, RIG_OK, 1);
	rig_feed(r, rig_write(2, 0, 0, 0));
	rig_expect_taack(r, RIG_OK, 2);
	assert_int_equal(RIG_COUNTER(r, ub_ta_used), 2);
}

/* Every order of the packets of two requests; the answer comes with the last one, not before. */
static void
shuffled(struct rig *r, uint32_t base, unsigned int *seed)
{
	uint8_t order[8] = {0, 1, 2, 3, 4, 5, 6, 7}, left[2] = {4, 4};

	memset(r->mem, 0, RIG_LEN);
	for (uint32_t i = 7; i > 0; i--) {
		uint32_t k = (uint32_t)rand_r(seed) % (i + 1);
		uint8_t t = order[i];

		order[i] = order[k];
		order[k] = t;
	}
	for (uint32_t i = 0; i < 8; i++) {
		uint32_t which = order[i] / 4;
		struct rig_req p = rig_write(base + which, which * 8192, 0, 1);

		rig_feed(r, rig_part(p, base * 8 + which * 4, order[i] % 4, 4));
		if (--left[which] == 0)
			rig_expect_taack(r, RIG_OK, (uint16_t)(base + which));
		assert_int_equal(rig_answers(r), 0);
	}
	for (uint32_t i = 0; i < 8; i++)
		assert_true(rig_holds(r, i / 4 * 8192 + i % 4 * RIG_MTU, RIG_MTU,
				      (uint8_t)(1 + i % 4 * 7)));
}

static void
test_packets_in_any_order(void **state)
{
	struct rig *r = *state;
	unsigned int seed = 1;

	for (uint32_t i = 0; i < 400; i++)
		shuffled(r, 2 * i + 1, &seed);
	assert_int_equal(r->tp->tat.open, 0);
}

/* PSN and TPMSN wrap within a request and between requests. */
static void
test_wrap(void **state)
{
	struct rig *r = *state;
	struct rig_req p = rig_write(0xffffff, 0, 0, 1);

	rig_feed(r, rig_part(p, 0xfffffe, 3, 4));
	rig_feed(r, rig_part(p, 0xfffffe, 1, 4));
	p.tpmsn = 0;
	p.tassn = 0x1000;
	rig_feed(r, rig_part(p, 2, 1, 2));
	rig_feed(r, rig_part(p, 2, 0, 2));
	rig_expect_taack(r, RIG_OK, 0x1000);
	p.tpmsn = 0xffffff;
	p.tassn = 0xffff;
	rig_feed(r, rig_part(p, 0xfffffe, 0, 4));
	rig_feed(r, rig_part(p, 0xfffffe, 2, 4));
	rig_expect_taack(r, RIG_OK, 0xffff);
}

static void
fails(struct rig *r, struct rig_req p, uint64_t *counter)
{
	uint64_t before = *counter;

	rig_give(r, p);
	assert_int_equal(r->tp->cfg.state, HCA_TPS_ERROR);
	assert_int_equal(*counter, before + 1);
	assert_true(
		fx_take_msgs(r->fx, HCA_STAGE_TAT, HCA_STAGE_TPS, hca_tp_object(r->h, RIG_TPI)) &
		HCA_MSG_STATE);
	assert_int_equal(r->tp->tat.open, 0);
	/* it takes nothing any more */
	rig_give(r, rig_write(77, 0, 4, 0));
	assert_int_equal(RIG_COUNTER(r, ub_ta_stale), 1);
	rig_poll(r);
	assert_int_equal(rig_answers(r), 0);
}

/* Packets that say that they belong together and do not: a row each. */
static void
disagrees(void **state, uint32_t which)
{
	struct rig *r = *state;
	struct rig_req p = rig_write(9, 0, 0, 1), other;
	uint64_t *counter = &r->h->line[HCA_STAGE_TAT].counters[HCA_CTR_ub_ta_disagree];

	rig_feed(r, rig_part(p, 100, 1, 4));
	rig_feed(r, rig_part(p, 100, 3, 4));
	other = rig_part(p, 100, 2, 4);
	switch (which) {
	case 0:
		other.opcode = HCA_UB_TA_SEND;
		break;
	case 1:
		other.rc = RIG_RC ^ 1;
		break;
	case 2:
		other.rc_type = 1;
		break;
	case 3:
		other.tassn++;
		break;
	case 4: /* another one at its place of the ring */
		other.tpmsn += 2 * RIG_W;
		break;
	case 5: /* two last packets */
		other.last = true;
		other.psn += 4;
		break;
	default: /* behind the last one */
		other.psn += 4;
		break;
	}
	fails(r, other, counter);
	assert_int_equal(RIG_COUNTER(r, ub_requests_abandoned), 1);
}

static void
test_disagree_class(void **state)
{
	disagrees(state, 0);
}

static void
test_disagree_rc(void **state)
{
	disagrees(state, 1);
}

static void
test_disagree_rc_type(void **state)
{
	disagrees(state, 2);
}

static void
test_disagree_tassn(void **state)
{
	disagrees(state, 3);
}

static void
test_disagree_ring(void **state)
{
	disagrees(state, 4);
}

static void
test_two_ends(void **state)
{
	disagrees(state, 5);
}

static void
test_behind_the_end(void **state)
{
	disagrees(state, 6);
}

/* The same place of the ring serves again, and a complete request leaves nothing behind. */
static void
test_tpmsn_is_used_again(void **state)
{
	struct rig *r = *state;

	for (uint32_t i = 0; i < 5; i++) {
		struct rig_req p = rig_write(3 + i * 2 * RIG_W, 0, 0, 1);

		rig_feed(r, rig_part(p, 10 + i * 2, 1, 2));
		rig_feed(r, rig_part(p, 10 + i * 2, 0, 2));
		rig_expect_taack(r, RIG_OK, (uint16_t)p.tassn);
	}
}

static void
test_write_refusals(void **state)
{
	struct rig *r = *state;
	struct rig_req p = rig_write(1, 0, 100, 1);
	const struct hca_ta_op *op;

	p.poison = true;
	rig_feed(r, p);
	rig_expect_taack(r, RIG_ABORT, 1);
	assert_int_equal(RIG_COUNTER(r, ub_ta_poison), 1);
	p = rig_write(3, 0, 100, 1);
	p.length = 101; /* the only packet does not have all of it */
	rig_feed(r, p);
	rig_expect_taack(r, RIG_UNSUPPORTED, 3);
	assert_int_equal(RIG_COUNTER(r, ub_ta_bad_sum), 1);
	p = rig_write(4, 0, 2000, 1); /* longer than the TP's MTU */
	rig_feed(r, p);
	p.psn++;
	assert_int_equal(RIG_COUNTER(r, ub_ta_bad_sum), 2);
	p.last = false;
	p.psn = 3;
	p.len = RIG_MTU;
	rig_feed(r, p);
	rig_expect_taack(r, RIG_UNSUPPORTED, 4);
	p = rig_write(5, 0, 100, 1);
	p.rc_type = HCA_UB_RC_SEQUENCE;
	rig_feed(r, p);
	rig_expect_taack(r, RIG_UNSUPPORTED, 5);
	assert_int_equal(RIG_COUNTER(r, ub_ta_sequence), 1);
	p = rig_write(9, 0, 100, 1);
	p.rc_type = HCA_UB_CODE_RESERVED; /* the answer repeats it */
	rig_feed(r, p);
	op = rig_expect(r, HCA_UB_TA_TAACK, RIG_UNSUPPORTED, 9);
	assert_int_equal(op->rc >> HCA_UB_RC_ID_BITS, HCA_UB_CODE_RESERVED);
	assert_int_equal(RIG_COUNTER(r, ub_ta_bad_code), 1);
	p = rig_write(6, RIG_LEN - 10, 11, 1);
	rig_feed(r, p);
	rig_expect_taack(r, RIG_ABORT, 6);
	assert_int_equal(RIG_COUNTER(r, ub_token_range), 1);
	p = rig_write(7, 0, 11, 1);
	p.token_id = RIG_ID(RIG_READ_ONLY);
	rig_feed(r, p);
	rig_expect_taack(r, RIG_ABORT, 7);
	assert_int_equal(RIG_COUNTER(r, ub_token_right), 1);
	p = rig_write(8, 0, 11, 1);
	p.token_id = RIG_ID(RIG_DYING);
	rig_feed(r, p);
	rig_expect_taack(r, RIG_ABORT, 8);
	assert_int_equal(RIG_COUNTER(r, ub_token_unknown), 1);
	assert_true(rig_holds(r, 0, 1, 0) && rig_holds(r, 1, 1, 0));
}

/* No TAACK answers a Prefetch or Management request, also over a reliable channel. */
static void
test_unanswered(void **state)
{
	static const uint8_t opcodes[] = {HCA_UB_TA_PREFETCH, HCA_UB_TA_MANAGEMENT};
	struct rig *r = *state;
	struct rig_req p = rig_write(1, 0, 0, 0);

	for (uint32_t i = 0; i < RTE_DIM(opcodes); i++) {
		p.opcode = opcodes[i];
		p.psn = p.tpmsn = i + 1;
		rig_feed(r, p);
		assert_int_equal(rig_answers(r), 0);
		assert_int_equal(RIG_COUNTER(r, ub_ta_not_offered), i + 1);
	}
	rig_feed(r, rig_write(3, 0, 16, 1));
	rig_expect_taack(r, RIG_OK, 3);
}

/* EE = 11 and responses that stray here are no requests: no answer, no entry, no effect. */
static void
test_dropped_without_answer(void **state)
{
	struct rig *r = *state;
	struct rig_req p = rig_write(1, 0, 100, 1);

	p.ee = HCA_UB_EE_TRUSTED;
	rig_feed(r, p);
	assert_int_equal(RIG_COUNTER(r, ub_ta_bad_ee), 1);
	p = rig_write(2, 0, 0, 1);
	p.opcode = HCA_UB_TA_TAACK;
	rig_feed(r, p);
	p = rig_write(2, 0, 100, 1);
	p.generation = 1;
	rig_feed(r, p);
	assert_int_equal(RIG_COUNTER(r, ub_ta_stale), 1);
	assert_int_equal(rig_answers(r), 0);
	assert_int_equal(RIG_COUNTER(r, ub_requests), 0);
}

/* A refused request is answered when all of its packets have come: an answer acknowledges them. */
static void
test_refused_ones_wait_for_all(void **state)
{
	struct rig *r = *state;
	struct rig_req p = rig_write(1, 0, 0, 1), bad;

	bad = rig_part(p, 0, 2, 4);
	bad.token++;
	rig_feed(r, bad);
	rig_feed(r, rig_part(p, 0, 3, 4));
	rig_feed(r, rig_part(p, 0, 0, 4));
	assert_int_equal(rig_answers(r), 0);
	rig_feed(r, rig_part(p, 0, 1, 4));
	rig_expect_taack(r, RIG_ABORT, 1);
	assert_int_equal(RIG_COUNTER(r, ub_ta_after_refusal), 3);
	assert_true(rig_holds(r, 0, 1, 0));
	assert_int_equal(r->mem[1], 0);
}

/* An unknown opcode has no length: the request ends with its last packet. */
static void
test_unknown_opcodes_end_with_their_last_packet(void **state)
{
	struct rig *r = *state;
	struct rte_mbuf *m[3];

	for (uint32_t i = 0; i < 3; i++) {
		struct rig_req p = rig_part(rig_write(1, 0, 0, 1), 0, i, 3);

		m[i] = rig_packet(r, &p);
		rte_pktmbuf_mtod_offset(m[i], uint8_t *, hca_ub_rxd(m[i])->tph)[16] = 0x7f;
	}
	hca_tat_process(r->h, (void **)&m[0], 1, r->now);
	hca_tat_process(r->h, (void **)&m[2], 1, r->now);
	rig_poll(r);
	rig_expect_taack(r, RIG_UNSUPPORTED, 1);
	hca_tat_process(r->h, (void **)&m[1], 1, r->now);
	rig_poll(r);
	assert_int_equal(rig_answers(r), 0);
	assert_int_equal(r->tp->tat.open, 0);
	assert_int_equal(RIG_COUNTER(r, ub_ta_after_refusal), 2);
	assert_int_equal(r->tp->cfg.state, HCA_TPS_ACTIVE);
}

static void
test_truncated(void **state)
{
	struct rig *r = *state;
	struct rig_req p = rig_write(1, 0, 0, 1);

	p.cut = 8;
	rig_feed(r, p);
	rig_expect_taack(r, RIG_UNSUPPORTED, 1);
	assert_int_equal(RIG_COUNTER(r, ub_ta_short), 1);
}

/* ---- byte enables ---- */

static void
test_enables(void **state)
{
	struct rig *r = *state;
	uint8_t enables[16];
	uint32_t n = 1;

	for (uint32_t len = 64; len <= 128; len *= 2, n++) {
		struct rig_req p = rig_write(n, 32, len, 1);

		memset(r->mem, 0xee, 256);
		for (uint32_t i = 0; i < len / 8; i++)
			enables[i] = (uint8_t)(i * 37 + 1);
		p.opcode = HCA_UB_TA_WRITE_BE;
		p.enables = enables;
		rig_feed(r, p);
		rig_expect_taack(r, RIG_OK, (uint16_t)n);
		for (uint32_t i = 0; i < len; i++) {
			bool on = enables[len / 8 - 1 - i / 8] >> (i % 8) & 1;

			assert_int_equal(r->mem[32 + i], on ? (uint8_t)(1 + i) : 0xee);
		}
		assert_int_equal(r->mem[31], 0xee);
		assert_int_equal(r->mem[32 + len], 0xee);
	}
}

/* ---- notify ---- */

static struct rig_req
notify(uint32_t n, uint32_t off, uint64_t data)
{
	struct rig_req p = rig_write(n, 0, 0, 1);

	p.opcode = HCA_UB_TA_WRITE_NOTIFY;
	p.notify = RIG_VA + off;
	p.notify_data = data;
	p.notify_id = RIG_ID(RIG_SEGMENT);
	p.notify_token = RIG_VALUE;
	return p;
}

static uint64_t
word(const struct rig *r, uint32_t off)
{
	uint64_t w;

	memcpy(&w, r->mem + off, sizeof(w));
	return w;
}

/* In every order of the packets the word changes with the last byte of the data, not before. */
static void
test_notify_never_before_data(void **state)
{
	struct rig *r = *state;
	uint32_t n = 0;

	for (uint32_t code = 0; code < 256; code++) {
		uint32_t o[4] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6};

		if ((1u << o[0] | 1u << o[1] | 1u << o[2] | 1u << o[3]) != 15)
			continue;
		n++;
		memset(r->mem, 0, RIG_LEN);
		for (uint32_t i = 0; i < 4; i++) {
			struct rig_req p = rig_part(notify(n, 8192, UINT64_C(0x1122334455667788)),
						    n * 4, o[i], 4);

			if (!p.last)
				p.opcode = HCA_UB_TA_WRITE;
			assert_int_equal(word(r, 8192), 0);
			rig_feed(r, p);
		}
		assert_true(word(r, 8192) == UINT64_C(0x1122334455667788));
		assert_true(rig_holds(r, 3 * RIG_MTU, RIG_MTU, 22));
		rig_expect_taack(r, RIG_OK, (uint16_t)n);
	}
	assert_int_equal(n, 24);
}

static void
refused_notify(struct rig *r, struct rig_req p, uint8_t answer)
{
	memset(r->mem, 0, RIG_LEN);
	rig_feed(r, p);
	rig_expect_taack(r, answer, p.tassn);
	assert_true(word(r, 8192) == 0);
	/* the bytes of the Write stay */
	assert_true(rig_holds(r, 0, 16, 1));
}

static void
test_notify_refusals(void **state)
{
	struct rig *r = *state;
	struct rig_req p[5];

	for (uint32_t i = 0; i < RTE_DIM(p); i++) {
		p[i] = notify(i + 1, 8192, 7);
		p[i].length = p[i].len = 16;
	}
	p[0].notify += 4;
	p[1].notify_token++;
	p[2].notify_id = RIG_ID(RIG_READ_ONLY);
	p[3].notify = RIG_VA + RIG_LEN;
	p[4].notify_id = RIG_ID(RIG_ODD);
	refused_notify(r, p[0], RIG_UNSUPPORTED);
	refused_notify(r, p[1], RIG_ABORT);
	refused_notify(r, p[2], RIG_ABORT);
	refused_notify(r, p[3], RIG_ABORT);
	refused_notify(r, p[4], RIG_UNSUPPORTED);
	assert_int_equal(RIG_COUNTER(r, ub_ta_bad_alignment), 2);
}

/* Without TV_EN the field for the value is reserved: whatever it has is no value. */
static void
test_notify_without_token(void **state)
{
	struct rig *r = *state;
	struct rig_req p[3];

	for (uint32_t i = 0; i < RTE_DIM(p); i++) {
		p[i] = notify(i + 1, 8192, 7);
		p[i].length = p[i].len = 16;
		p[i].token_id = RIG_ID(RIG_FREE);
		p[i].has_token = false;
	}
	refused_notify(r, p[0], RIG_ABORT);
	assert_int_equal(RIG_COUNTER(r, ub_token_mismatch), 1);
	p[1].notify_id = RIG_ID(RIG_FREE);
	rig_feed(r, p[1]);
	rig_expect_taack(r, RIG_OK, p[1].tassn);
	assert_true(word(r, 8192) == 7);
	/* also in a packet that is not the last to come */
	p[2] = notify(4, 8192, 7);
	p[2].token_id = RIG_ID(RIG_FREE);
	p[2].has_token = false;
	memset(r->mem, 0, RIG_LEN);
	rig_feed(r, rig_part(p[2], 4, 1, 2));
	p[2].opcode = HCA_UB_TA_WRITE;
	rig_feed(r, rig_part(p[2], 4, 0, 2));
	rig_expect_taack(r, RIG_ABORT, p[2].tassn);
	assert_true(word(r, 8192) == 0);
}

/* ---- Reads ---- */

static void
test_read(void **state)
{
	struct rig *r = *state;
	struct rig_req p = rig_read(1, 100, 5000);
	const struct hca_ta_op *op;

	p.offset = 64;
	rig_feed(r, p);
	op = rig_expect(r, HCA_UB_TA_READ_RESPONSE, RIG_OK, 1);
	assert_int_equal(op->source, HCA_TA_OP_TOKEN);
	assert_int_equal(op->payload, 5000);
	assert_int_equal(op->key, RIG_ID(RIG_SEGMENT));
	assert_int_equal(op->offset, 64);
	assert_true(op->read.va == RIG_VA + 100);
	assert_int_equal(op->read.token, RIG_VALUE);
	rig_feed(r, rig_read(2, 0, 0));
	op = rig_expect(r, HCA_UB_TA_READ_RESPONSE, RIG_OK, 2);
	assert_int_equal(op->source, HCA_TA_OP_NO_PAYLOAD);
	assert_int_equal(op->payload, 0);
	rig_feed(r, rig_read(3, 0, RIG_LEN + 1));
	rig_expect(r, HCA_UB_TA_READ_RESPONSE, RIG_ABORT, 3);
	rig_feed(r, rig_read(4, 0, 0x80000001));
	rig_expect(r, HCA_UB_TA_READ_RESPONSE, RIG_UNSUPPORTED, 4);
}

/* ---- atomics ---- */

static const uint8_t atomics[] = {
	HCA_UB_TA_COMPARE_SWAP, HCA_UB_TA_SWAP,	     HCA_UB_TA_STORE,
	HCA_UB_TA_LOAD,		HCA_UB_TA_FETCH_ADD, HCA_UB_TA_FETCH_SUB,
	HCA_UB_TA_FETCH_AND,	HCA_UB_TA_FETCH_OR,  HCA_UB_TA_FETCH_XOR,
};

static void
one_atomic(struct rig *r, uint32_t n, uint8_t opcode, uint8_t ud_op, uint8_t len)
{
	uint8_t operands[2 * HCA_UB_ATOMIC_MAX], old[HCA_UB_ATOMIC_MAX], value[HCA_UB_ATOMIC_MAX];
	const struct hca_ub_atomic a = {{operands, operands + len}, opcode, ud_op, len};
	struct rig_req p = rig_atomic(n, opcode, 256, len, operands);
	const struct hca_ta_op *op;

	for (uint32_t i = 0; i < sizeof(operands); i++)
		operands[i] = (uint8_t)(n * 31 + i * 7);
	for (uint32_t i = 0; i < len; i++)
		old[i] = n % 3 == 0 ? operands[i] : (uint8_t)(n + i * 11);
	memcpy(r->mem + 256, old, len);
	r->mem[256 + len] = 0x99;
	p.ud_op = ud_op;
	rig_feed(r, p);
	op = rig_expect(r, HCA_UB_TA_ATOMIC_RESPONSE, RIG_OK, (uint16_t)n);
	hca_ub_atomic_apply(&a, old, value);
	assert_memory_equal(r->mem + 256, value, len);
	assert_int_equal(r->mem[256 + len], 0x99);
	assert_int_equal(op->payload, opcode == HCA_UB_TA_STORE ? 0 : len);
	if (opcode != HCA_UB_TA_STORE)
		assert_memory_equal(op->result, old, len);
}

static void
test_atomics(void **state)
{
	struct rig *r = *state;
	uint32_t n = 0;

	for (uint32_t i = 0; i < RTE_DIM(atomics); i++)
		for (uint8_t ud = 0; ud < HCA_UB_UD_OPS; ud++)
			for (uint32_t len = 1; len <= HCA_UB_ATOMIC_MAX; len *= 2)
				one_atomic(r, ++n, atomics[i], ud, (uint8_t)len);
}

/* The text of the source exchanges the codes of CLR and EOR. */
static void
test_clr_eor_text(void **state)
{
	static const uint8_t operands[2] = {0x0f}, expected[2][2] = {{0x30, 0x3c}, {0x3c, 0x30}};
	struct rig *r = *state;
	uint32_t n = 0;

	for (int text = 0; text < 2; text++) {
		r->h->cfg.ub_choices = text != 0 ? HCA_UB_SWITCH_CLR_EOR_TEXT : 0;
		for (uint8_t code = 1; code <= 2; code++) {
			struct rig_req p = rig_atomic(++n, HCA_UB_TA_STORE, 256, 1, operands);

			r->mem[256] = 0x33;
			p.ud_op = code;
			rig_feed(r, p);
			rig_expect(r, HCA_UB_TA_ATOMIC_RESPONSE, RIG_OK, (uint16_t)n);
			assert_int_equal(r->mem[256], expected[text][code - 1]);
		}
	}
}

/* E_bit = 1 allows all that 0 allows, S9.4.4.3.3, as no segment is exclusive. */
static void
test_e_bit(void **state)
{
	struct rig *r = *state;
	struct rig_req p = rig_write(1, 0, 100, 1);

	p.e_bit = true;
	rig_feed(r, p);
	rig_expect_taack(r, RIG_OK, 1);
	assert_true(rig_holds(r, 0, 100, 1));
	p = rig_read(2, 0, 100);
	p.e_bit = true;
	rig_feed(r, p);
	rig_expect(r, HCA_UB_TA_READ_RESPONSE, RIG_OK, 2);
}

/* At the edge of a domain: whatever comes without a token, or with E_bit. */
static void
test_edge(void **state)
{
	struct rig *r = *state;
	struct rig_req p = rig_write(1, 0, 100, 1);

	r->h->cfg.ub_choices = HCA_UB_SWITCH_EDGE;
	rig_feed(r, p);
	rig_expect_taack(r, RIG_OK, 1);
	p = rig_write(2, 0, 100, 1);
	p.e_bit = true;
	rig_feed(r, p);
	rig_expect_taack(r, RIG_ABORT, 2);
	p = rig_write(3, 0, 100, 1);
	p.token_id = RIG_ID(RIG_FREE);
	p.has_token = false;
	rig_feed(r, p);
	rig_expect_taack(r, RIG_ABORT, 3);
	p = rig_read(4, 0, 100);
	p.token_id = RIG_ID(RIG_FREE);
	p.has_token = false;
	rig_feed(r, p);
	rig_expect(r, HCA_UB_TA_READ_RESPONSE, RIG_ABORT, 4);
	assert_int_equal(RIG_COUNTER(r, ub_ta_edge), 3);
}

static void
test_misaligned_atomics(void **state)
{
	static const uint8_t operands[2 * HCA_UB_ATOMIC_MAX];
	struct rig *r = *state;
	uint32_t n = 0;

	for (uint32_t len = 2; len <= HCA_UB_ATOMIC_MAX; len *= 2) {
		rig_feed(r, rig_atomic(++n, HCA_UB_TA_SWAP, 256 + len / 2, len, operands));
		rig_expect(r, HCA_UB_TA_ATOMIC_RESPONSE, RIG_UNSUPPORTED, (uint16_t)n);
	}
	assert_int_equal(RIG_COUNTER(r, ub_ta_bad_atomic), n);
	/* aligned addresses, odd memory: only lengths without an instruction work */
	for (uint32_t len = 8; len <= HCA_UB_ATOMIC_MAX; len *= 2) {
		struct rig_req p = rig_atomic(++n, HCA_UB_TA_SWAP, 256, len, operands);

		p.token_id = RIG_ID(RIG_ODD);
		rig_feed(r, p);
		rig_expect(r, HCA_UB_TA_ATOMIC_RESPONSE,
			   len <= HCA_UB_ATOMIC_CPU_MAX ? RIG_UNSUPPORTED : RIG_OK, (uint16_t)n);
	}
	assert_int_equal(RIG_COUNTER(r, ub_ta_bad_alignment), 2);
}

/* ---- foreign memory ---- */

static int foreign_rc;

static int
foreign(void *arg, uint32_t domain, bool write, uint64_t at, void *bytes, uint32_t len)
{
	uint8_t *mem = arg;

	if (foreign_rc != 0)
		return foreign_rc;
	if (write)
		memcpy(mem + at, bytes, len);
	else
		memcpy(bytes, mem + at, len);
	return 0;
}

static void
test_foreign(void **state)
{
	struct rig *r = *state;
	struct hca_mpt_entry *e = &r->h->vtp.mpt[RIG_SEGMENT];
	const uint8_t operands[128] = {5};
	uint64_t mtt[8];
	const struct hca_ta_op *op;

	for (uint32_t i = 0; i < RTE_DIM(mtt); i++)
		mtt[i] = HCA_BUS_FOREIGN | i * 4096;
	r->h->vtp.mtt = mtt;
	r->h->cfg.foreign = foreign;
	r->h->cfg.foreign_arg = r->mem;
	e->base = NULL;
	e->page_shift = 12;
	e->foreign = 1;
	e->state = HCA_MPT_FOREIGN;
	foreign_rc = 0;
	rig_feed(r, rig_write(1, 4000, 200, 7));
	rig_expect_taack(r, RIG_OK, 1);
	assert_true(rig_holds(r, 4000, 200, 7));
	memset(r->mem + 512, 1, 64);
	for (uint32_t n = 2, len = 1; len <= 64; len *= 2, n++) {
		rig_feed(r, rig_atomic(n, HCA_UB_TA_FETCH_ADD, 512, len, operands));
		op = rig_expect(r, HCA_UB_TA_ATOMIC_RESPONSE, RIG_OK, (uint16_t)n);
		assert_int_equal(op->result[0], 1 + 5 * (n - 2));
	}
	foreign_rc = -EAGAIN;
	rig_feed(r, rig_write(20, 4000, 200, 7));
	rig_expect_taack(r, HCA_UB_RSP_PAGE_FAULT << 5 | TAT_TIMER_LATE, 20);
	rig_feed(r, rig_atomic(21, HCA_UB_TA_FETCH_ADD, 512, 8, operands));
	rig_expect(r, HCA_UB_TA_ATOMIC_RESPONSE, HCA_UB_RSP_PAGE_FAULT << 5 | TAT_TIMER_LATE, 21);
	foreign_rc = -EFAULT;
	rig_feed(r, rig_write(22, 4000, 200, 7));
	rig_expect_taack(r, RIG_ABORT, 22);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_write),
		TEST(test_packets_in_any_order),
		TEST(test_wrap),
		TEST(test_disagree_class),
		TEST(test_disagree_rc),
		TEST(test_disagree_rc_type),
		TEST(test_disagree_tassn),
		TEST(test_disagree_ring),
		TEST(test_two_ends),
		TEST(test_behind_the_end),
		TEST(test_tpmsn_is_used_again),
		TEST(test_write_refusals),
		TEST(test_unanswered),
		TEST(test_dropped_without_answer),
		TEST(test_refused_ones_wait_for_all),
		TEST(test_unknown_opcodes_end_with_their_last_packet),
		TEST(test_truncated),
		TEST(test_enables),
		TEST(test_notify_never_before_data),
		TEST(test_notify_refusals),
		TEST(test_notify_without_token),
		TEST(test_read),
		TEST(test_atomics),
		TEST(test_misaligned_atomics),
		TEST(test_clr_eor_text),
		TEST(test_e_bit),
		TEST(test_edge),
		TEST(test_foreign),
	};

	return cmocka_run_group_tests_name("ta_target", tests, NULL, NULL);
}
