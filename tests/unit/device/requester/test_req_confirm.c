/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The requester's side of requests that a READ response without data answers: ATOMIC WRITE, FLUSH.
 */

#include "req_rig.h"

#include <string.h>

#define SIG HCA_REC_SIGNALED
#define WRITE HCA_OP_RDMA_WRITE
#define READ HCA_OP_RDMA_READ
#define ATOMIC_WRITE HCA_OP_ATOMIC_WRITE
#define ONLY HCA_BTH_RC_READ_RESP_ONLY

static void
confirm(struct rig *r, uint32_t n)
{
	rig_response(r, ONLY, rig_psn(n), 0, 0);
}

/* From memory, of two segments, and inline. */
static void
test_sends_8_bytes(void **state)
{
	struct rig *r = *state;

	rig_post(r, ATOMIC_WRITE, 8, SIG);
	rig_post_full(r, ATOMIC_WRITE, 8, SIG, 2);
	rig_post_full(r, ATOMIC_WRITE, 8, SIG | HCA_REC_INLINE, 0);
	assert_int_equal(rig_send(r, 1), 3);
	for (unsigned int i = 0; i < 3; i++) {
		const struct hca_txd *d = &r->txd[i];

		assert_int_equal(d->opcode, HCA_BTH_RC_ATOMIC_WRITE);
		assert_int_equal(d->psn, rig_psn(i));
		assert_int_equal(d->len, 8);
		assert_int_equal(d->reth.raddr, RIG_RADDR);
		assert_int_equal(d->reth.rkey, RIG_RKEY);
		assert_int_equal(d->reth.dma_len, 8);
		assert_int_equal(d->nsge, i == 2 ? 0 : i + 1);
		assert_int_equal(d->flags & HCA_TXD_INLINE, i == 2 ? HCA_TXD_INLINE : 0);
	}
	assert_int_equal(r->txd[0].va, RIG_VA);
	assert_int_equal(r->txd[0].key, RIG_KEY);
	for (unsigned int i = 0; i < 3; i++) {
		confirm(r, i);
		rig_expect_ok(r, i, i, ATOMIC_WRITE, 8);
	}
	assert_int_equal(r->mem[0], 0);
}

/* One packet without payload and one PSN, however long the range is. */
static void
test_flush(void **state)
{
	struct rig *r = *state;
	struct hca_record *rec = rig_post(r, HCA_OP_FLUSH, 100 * RIG_MTU, SIG);
	uint32_t feth;

	rec->nsge = 0;
	rec->imm = feth = hca_cpu_to_be32(HCA_FETH_MAKE(HCA_FETH_GLOBAL, HCA_FETH_MR));
	rig_post(r, WRITE, 8, SIG);
	for (unsigned int again = 0; again < 2; again++) {
		assert_int_equal(rig_send(r, 2), 2);
		assert_int_equal(r->txd[0].opcode, HCA_BTH_RC_FLUSH);
		assert_int_equal(r->txd[0].psn, rig_psn(0));
		assert_int_equal(r->txd[0].len, 0);
		assert_int_equal(r->txd[0].nsge, 0);
		assert_int_equal(r->txd[0].imm, feth);
		assert_int_equal(r->txd[0].reth.raddr, RIG_RADDR);
		assert_int_equal(r->txd[0].reth.rkey, RIG_RKEY);
		assert_int_equal(r->txd[0].reth.dma_len, 100 * RIG_MTU);
		assert_int_equal(r->txd[1].psn, rig_psn(1));
		/* the WRITE behind it does not answer it */
		if (again == 0)
			rig_ack(r, rig_psn(1), HCA_AETH_ACK);
		assert_int_equal(rig_cqes(r), 0);
	}
	confirm(r, 0);
	rig_expect_ok(r, 0, 0, HCA_OP_FLUSH, 100 * RIG_MTU);
	rig_ack(r, rig_psn(1), HCA_AETH_ACK);
	rig_expect_ok(r, 1, 1, WRITE, 8);
}

/* It acknowledges what is before it; an ACK of something later does not answer it. */
static void
test_confirmed_in_order(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 8, SIG);
	rig_post(r, ATOMIC_WRITE, 8, SIG);
	rig_post(r, READ, 4, SIG);
	rig_post(r, WRITE, 8, SIG);
	rig_send(r, 1);
	confirm(r, 1);
	assert_int_equal(rig_cqes(r), 2);
	rig_expect_ok(r, 0, 0, WRITE, 8);
	rig_expect_ok(r, 1, 1, ATOMIC_WRITE, 8);
	rig_response(r, ONLY, rig_psn(2), 4, 7);
	rig_ack(r, rig_psn(3), HCA_AETH_ACK);
	assert_int_equal(rig_cqes(r), 4);
	assert_int_equal(rig_una(r), rig_psn(4));
}

static void
test_confirmation_lost(void **state)
{
	struct rig *r = *state;

	rig_post(r, ATOMIC_WRITE, 8, SIG);
	rig_post(r, WRITE, 8, SIG);
	rig_send(r, 1);
	rig_ack(r, rig_psn(1), HCA_AETH_ACK);
	assert_int_equal(rig_cqes(r), 0);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, implied_nak_seq_err), 1);
	assert_int_equal(rig_send(r, 2), 2);
	assert_int_equal(r->txd[0].opcode, HCA_BTH_RC_ATOMIC_WRITE);
	assert_int_equal(r->txd[0].len, 8);
	assert_true(r->txd[0].flags & HCA_TXD_REPEAT);
	confirm(r, 0);
	rig_ack(r, rig_psn(1), HCA_AETH_ACK);
	assert_int_equal(rig_cqes(r), 2);
	/* the first answer comes late */
	confirm(r, 0);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, req_stale_response), 1);
	assert_int_equal(rig_state(r), HCA_QPS_RTS);
}

static void
test_bad_confirmations(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t len;
	} bad[] = {
		{ONLY, 8},
		{ONLY, 1},
		{HCA_BTH_RC_READ_RESP_FIRST, 0},
		{HCA_BTH_RC_READ_RESP_LAST, 0},
		{HCA_BTH_RC_READ_RESP_MIDDLE, 0},
		{HCA_BTH_RC_ATOMIC_ACK, 0},
	};

	for (unsigned int i = 0; i < RTE_DIM(bad); i++) {
		struct rig *r = *state;

		rig_post(r, ATOMIC_WRITE, 8, SIG);
		rig_send(r, 1);
		if (bad[i].opcode == HCA_BTH_RC_ATOMIC_ACK)
			rig_atomic(r, rig_psn(0), 1);
		else
			rig_response(r, bad[i].opcode, rig_psn(0), bad[i].len, 0xee);
		rig_expect_error(r, 0, 0, HCA_SYND_BAD_RESP);
		assert_int_equal(r->mem[0], 0);
		rig_teardown(state);
		rig_setup(state);
	}
}

/* max_rd_atomic is 4 */
static void
test_counts_against_max_rd_atomic(void **state)
{
	struct rig *r = *state;

	for (unsigned int i = 0; i < 6; i++)
		rig_post(r, i % 2 ? READ : ATOMIC_WRITE, 8, SIG);
	assert_int_equal(rig_send(r, 2), 4);
	confirm(r, 0);
	assert_int_equal(rig_send(r, 2), 1);
	assert_int_equal(r->txd[0].opcode, HCA_BTH_RC_ATOMIC_WRITE);
}

static void
test_naks(void **state)
{
	struct rig *r = *state;

	rig_post(r, ATOMIC_WRITE, 8, SIG);
	rig_post(r, ATOMIC_WRITE, 8, SIG);
	rig_send(r, 1);
	confirm(r, 0);
	rig_ack(r, rig_psn(1), HCA_NAK_SYNDROME(HCA_NAK_INVALID_REQ));
	rig_expect_ok(r, 0, 0, ATOMIC_WRITE, 8);
	rig_expect_error(r, 1, 1, HCA_SYND_REMOTE_INVAL_REQ);
	assert_int_equal(rig_state(r), HCA_QPS_ERR);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(test_sends_8_bytes),
		T(test_flush),
		T(test_confirmed_in_order),
		T(test_confirmation_lost),
		T(test_bad_confirmations),
		T(test_counts_against_max_rd_atomic),
		T(test_naks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
