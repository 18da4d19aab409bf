/* SPDX-License-Identifier: BSD-3-Clause */

/* req_rx with req_tx and timer: release, retries, responses, errors, flush. */

#include "req_rig.h"

#include <string.h>

#include "requester/record_pool.h"

#define WRITE HCA_OP_RDMA_WRITE
#define SEND HCA_OP_SEND
#define READ HCA_OP_RDMA_READ
#define SIG HCA_REC_SIGNALED
#define ACK (HCA_AETH_ACK | HCA_AETH_CREDITS_NONE)
#define SEQ HCA_NAK_SYNDROME(HCA_NAK_PSN_SEQ)
#define RNR_CODE 1u /* 10 us */
#define FIRST HCA_BTH_RC_READ_RESP_FIRST
#define MIDDLE HCA_BTH_RC_READ_RESP_MIDDLE
#define LAST HCA_BTH_RC_READ_RESP_LAST
#define ONLY HCA_BTH_RC_READ_RESP_ONLY

static void
post_writes(struct rig *r, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		rig_post(r, WRITE, 8, SIG);
}

/* Asserts that every record is free after req_tx has seen the release. */
static void
expect_empty(struct rig *r)
{
	rig_send(r, 2);
	assert_int_equal(r->qp->sq_freed, r->qp->parser.head);
	assert_int_equal(hca_record_pool_in_use(&r->h->records[HCA_WIRE_ROCE].small), 0);
	assert_int_equal(hca_record_pool_in_use(&r->h->records[HCA_WIRE_ROCE].full), 0);
}

/* Asserts that request `first` failed with this syndrome, and the rest up to n were flushed. */
static void
expect_failed(struct rig *r, uint32_t first, uint8_t syndrome, uint32_t n)
{
	for (unsigned int i = 0; i < 4; i++) {
		rig_send(r, 1);
		rig_pass(r, 0);
	}
	assert_int_equal(rig_state(r), HCA_QPS_ERR);
	assert_int_equal(rig_cqes(r), n);
	rig_expect_error(r, first, first, syndrome);
	for (uint32_t i = first + 1; i < n; i++)
		rig_expect_error(r, i, i, HCA_SYND_WR_FLUSH);
	expect_empty(r);
}

/* ---- release ---- */

static void
test_coalesced_ack(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 8, SIG);
	rig_post(r, SEND, 0, 0);
	rig_post(r, SEND, 2 * RIG_MTU, SIG);
	rig_post(r, WRITE, 8, SIG);
	assert_int_equal(rig_send(r, 1), 5);
	rig_ack(r, rig_psn(3), ACK);
	assert_int_equal(rig_cqes(r), 2);
	rig_expect_ok(r, 0, 0, WRITE, 8);
	rig_expect_ok(r, 1, 2, SEND, 2 * RIG_MTU);
	assert_int_equal(rig_tail(r), 3);
	assert_int_equal(rig_una(r), rig_psn(4));
	rig_ack(r, rig_psn(4), ACK);
	rig_expect_ok(r, 2, 3, WRITE, 8);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, req_completions), 4);
	expect_empty(r);
}

static void
test_ack_within_message(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 4 * RIG_MTU, SIG);
	rig_send(r, 1);
	for (uint32_t i = 0; i < 3; i++) {
		rig_ack(r, rig_psn(i), ACK);
		assert_int_equal(rig_una(r), rig_psn(i + 1));
		assert_int_equal(rig_tail(r), 0);
		assert_int_equal(rig_cqes(r), 0);
	}
	rig_ack(r, rig_psn(3), ACK);
	rig_expect_ok(r, 0, 0, WRITE, 4 * RIG_MTU);
	expect_empty(r);
}

static void
test_ghosts(void **state)
{
	struct rig *r = *state;
	static const uint32_t far[] = {3, 4, 1000, 0x7fffff, 0x800000, 0xfffff0};
	uint64_t una;

	post_writes(r, 4);
	rig_send(r, 1);
	rig_ack(r, rig_psn(0), ACK);
	una = r->qp->sq_una;
	rig_ack(r, rig_psn(0), ACK);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, req_duplicate_ack), 1);
	for (unsigned int i = 0; i < RTE_DIM(far); i++) {
		uint32_t psn = (rig_psn(1) + far[i]) & HCA_PSN_MASK;

		rig_ack(r, psn, ACK);
		rig_ack(r, psn, SEQ);
		rig_ack(r, psn, HCA_NAK_SYNDROME(HCA_NAK_REMOTE_OP));
		rig_ack(r, psn, HCA_RNR_SYNDROME(RNR_CODE));
		rig_response(r, ONLY, psn, 8, 1);
		rig_atomic(r, psn, 1);
	}
	assert_int_equal(RIG_COUNTER(r, REQ_RX, req_stale_response), 6 * RTE_DIM(far));
	/* Reserved syndromes are ignored. */
	rig_ack(r, rig_psn(1), 0x40);
	rig_ack(r, rig_psn(1), 0x80);
	rig_ack(r, rig_psn(1), HCA_NAK_SYNDROME(5));
	rig_ack(r, rig_psn(1), HCA_NAK_SYNDROME(HCA_NAK_INVALID_RD_REQ));
	assert_int_equal(RIG_COUNTER(r, REQ_RX, req_bad_response), 4);
	assert_int_equal(r->qp->sq_una, una);
	assert_int_equal(rig_cqes(r), 1);
	assert_int_equal(rig_state(r), HCA_QPS_RTS);
	assert_int_equal(rig_send(r, 2), 0);
}

static void
test_other_life(void **state)
{
	struct rig *r = *state;

	post_writes(r, 1);
	rig_send(r, 1);
	r->age = 1;
	rig_ack(r, rig_psn(0), ACK);
	assert_int_equal(rig_cqes(r), 0);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, rx_stale_generation), 1);
	r->age = 0;
	r->qp->cfg.state = HCA_QPS_RST;
	rig_ack(r, rig_psn(0), ACK);
	assert_int_equal(rig_cqes(r), 0);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, rx_qp_state), 1);
}

/* Enough packets to pass the end of the PSN space and of the window several times. */
static void
test_many(void **state)
{
	struct rig *r = *state;
	uint32_t psn = RIG_PSN;

	for (unsigned int k = 0; k < 10; k++) {
		post_writes(r, 40);
		assert_int_equal(rig_send(r, 3), 40);
		assert_int_equal(r->txd[0].psn, psn);
		psn = (psn + 40) & HCA_PSN_MASK;
		rig_ack(r, (psn - 1) & HCA_PSN_MASK, ACK);
		assert_int_equal(rig_una(r), psn);
		expect_empty(r);
	}
	assert_int_equal(rig_cqes(r), 400);
	for (unsigned int i = 0; i < 400; i++)
		rig_expect_ok(r, i, i, WRITE, 8);
}

static void
test_cq_overrun(void **state)
{
	struct rig *r = *state;

	r->h->cq[RIG_CQ].buf[0].mask = 3;
	r->h->cq[RIG_CQ].buf[0].record_off = 4 * HCA_CQE_SIZE;
	memset(&r->cqe[4], 0, sizeof(struct hca_cq_record));
	post_writes(r, 6);
	rig_send(r, 1);
	rig_ack(r, rig_psn(5), ACK);
	assert_int_equal(rig_cqes(r), 4);
	rig_expect_ok(r, 3, 3, WRITE, 8);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, cqe_overrun) + RIG_COUNTER(r, REQ_RX, cqe_dead_cq),
			 2);
	expect_empty(r);
}

/* ---- losses ---- */

static void
test_sequence_nak(void **state)
{
	struct rig *r = *state;

	post_writes(r, 6);
	rig_send(r, 1);
	rig_ack(r, rig_psn(2), SEQ);
	assert_int_equal(rig_cqes(r), 2);
	assert_int_equal(rig_send(r, 2), 4);
	assert_int_equal(r->txd[0].psn, rig_psn(2));
	assert_true(r->txd[3].flags & HCA_TXD_ACKREQ);
	rig_ack(r, rig_psn(5), ACK);
	assert_int_equal(rig_cqes(r), 6);
	assert_int_equal(r->qp->req_rx.retries, 0);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, packet_seq_err), 1);
	expect_empty(r);
}

static void
test_sequence_nak_exhausted(void **state)
{
	struct rig *r = *state;

	post_writes(r, 2);
	rig_post(r, SEND, 8, 0);
	rig_post(r, SEND, 8, 0);
	rig_send(r, 1);
	rig_ack(r, rig_psn(0), ACK);
	for (unsigned int i = 0; i < 3; i++) {
		rig_ack(r, rig_psn(1), SEQ);
		assert_int_equal(rig_send(r, 2), 3);
	}
	rig_ack(r, rig_psn(1), SEQ);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, req_transport_retries_exceeded), 1);
	rig_expect_ok(r, 0, 0, WRITE, 8);
	expect_failed(r, 1, HCA_SYND_RETRY_EXC, 4);
}

static void
test_timeout(void **state)
{
	struct rig *r = *state;

	post_writes(r, 3);
	rig_send(r, 1);
	rig_pass(r, 0);
	assert_int_equal(r->qp->req_rx.timer_armed, 1);
	rig_pass(r, RIG_TIMEOUT_NS / 2);
	rig_ack(r, rig_psn(0), ACK);
	/* progress has moved the deadline: the old one passes without a retry */
	rig_pass(r, RIG_TIMEOUT_NS / 2 + 10000);
	assert_int_equal(rig_send(r, 2), 0);
	rig_pass(r, RIG_TIMEOUT_NS / 2);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, local_ack_timeout_err), 1);
	assert_int_equal(rig_send(r, 2), 2);
	assert_int_equal(r->txd[0].psn, rig_psn(1));
	rig_ack(r, rig_psn(2), ACK);
	assert_int_equal(rig_cqes(r), 3);
	/* nothing is outstanding: the next expiry stops the timer, new packets start it again */
	rig_pass(r, RIG_TIMEOUT_NS + 10000);
	assert_int_equal(r->qp->req_rx.timer_armed, 0);
	rig_pass(r, 100 * RIG_TIMEOUT_NS);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, local_ack_timeout_err), 1);
	post_writes(r, 1);
	rig_send(r, 1);
	rig_pass(r, 0);
	assert_int_equal(r->qp->req_rx.timer_armed, 1);
	rig_pass(r, RIG_TIMEOUT_NS + 10000);
	assert_int_equal(rig_send(r, 1), 1);
}

/*
 * Idle with the timer still in the wheel: a packet sent just before it expires gets the whole
 * timeout.
 */
static void
test_timeout_after_idle(void **state)
{
	struct rig *r = *state;

	post_writes(r, 1);
	rig_send(r, 1);
	rig_pass(r, 0);
	rig_ack(r, rig_psn(0), ACK);
	rig_pass(r, RIG_TIMEOUT_NS - 8192);
	post_writes(r, 1);
	rig_send(r, 1);
	rig_pass(r, 20000);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, local_ack_timeout_err), 0);
	rig_pass(r, RIG_TIMEOUT_NS + 8192);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, local_ack_timeout_err), 1);
	assert_int_equal(rig_send(r, 1), 1);
}

static void
test_timeout_exhausted(void **state)
{
	struct rig *r = *state;

	post_writes(r, 3);
	rig_send(r, 1);
	rig_pass(r, 0);
	for (unsigned int i = 0; i < 3; i++) {
		rig_pass(r, RIG_TIMEOUT_NS + 10000);
		assert_int_equal(rig_send(r, 2), 3);
		rig_pass(r, 0);
	}
	assert_int_equal(rig_cqes(r), 0);
	rig_pass(r, RIG_TIMEOUT_NS + 10000);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, local_ack_timeout_err), 4);
	expect_failed(r, 0, HCA_SYND_RETRY_EXC, 3);
	rig_pass(r, 10 * RIG_TIMEOUT_NS);
	assert_int_equal(r->qp->req_rx.timer_armed, 0);
}

static void
test_no_timeout(void **state)
{
	struct rig *r = *state;

	r->qp->cfg.ack_timeout = 0;
	post_writes(r, 1);
	rig_send(r, 1);
	rig_pass(r, 0);
	rig_pass(r, UINT64_C(1) << 40);
	assert_int_equal(rig_send(r, 1), 0);
	assert_int_equal(rig_state(r), HCA_QPS_RTS);
}

static void
test_rnr(void **state)
{
	struct rig *r = *state;

	for (unsigned int i = 0; i < 4; i++)
		rig_post(r, SEND, 8, SIG);
	rig_send(r, 1);
	rig_pass(r, 0);
	rig_ack(r, rig_psn(1), HCA_RNR_SYNDROME(RNR_CODE));
	rig_expect_ok(r, 0, 0, SEND, 8);
	/* another RNR NAK and a sequence NAK: the QP is waiting already */
	rig_ack(r, rig_psn(1), HCA_RNR_SYNDROME(RNR_CODE));
	rig_ack(r, rig_psn(1), SEQ);
	rig_post(r, SEND, 8, SIG);
	rig_pass(r, 9000);
	assert_int_equal(rig_send(r, 2), 0);
	rig_pass(r, 10000);
	assert_int_equal(rig_send(r, 2), 4);
	assert_int_equal(r->txd[0].psn, rig_psn(1));
	assert_int_equal(r->qp->req_rx.rnr_retries, 1);
	assert_int_equal(r->qp->req_rx.retries, 0);
	rig_ack(r, rig_psn(4), ACK);
	assert_int_equal(rig_cqes(r), 5);
	assert_int_equal(r->qp->req_rx.rnr_retries, 0);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, rnr_nak_received), 2);
	expect_empty(r);
}

static void
test_rnr_exhausted(void **state)
{
	struct rig *r = *state;

	for (unsigned int i = 0; i < 3; i++)
		rig_post(r, SEND, 8, SIG);
	rig_send(r, 1);
	for (unsigned int i = 0; i < 2; i++) {
		rig_ack(r, rig_psn(0), HCA_RNR_SYNDROME(RNR_CODE));
		rig_pass(r, 0);
		rig_pass(r, 30000);
		assert_int_equal(rig_send(r, 2), 3);
	}
	rig_ack(r, rig_psn(0), HCA_RNR_SYNDROME(RNR_CODE));
	expect_failed(r, 0, HCA_SYND_RNR_RETRY_EXC, 3);
}

static void
test_rnr_forever(void **state)
{
	struct rig *r = *state;

	r->qp->cfg.rnr_retry = HCA_RNR_RETRY_FOREVER;
	/* the wait does not depend on the ack timeout */
	r->qp->cfg.ack_timeout = 0;
	rig_post(r, SEND, 8, SIG);
	rig_send(r, 1);
	for (unsigned int i = 0; i < 100; i++) {
		rig_ack(r, rig_psn(0), HCA_RNR_SYNDROME(RNR_CODE));
		rig_pass(r, 0);
		rig_pass(r, 30000);
		assert_int_equal(rig_send(r, 2), 1);
	}
	rig_ack(r, rig_psn(0), ACK);
	assert_int_equal(rig_cqes(r), 1);
	expect_empty(r);
}

/* Late memory of the peer: the RNR NAK is of a packet that takes no receive and does not count. */
static void
test_rnr_without_receive(void **state)
{
	static const uint32_t psn[] = {0, 0, 2, 2, 3};
	struct rig *r = *state;

	r->qp->cfg.rnr_retry = 0;
	rig_post(r, WRITE, 8, SIG);
	rig_post(r, SEND, RIG_MTU + 1, SIG);
	rig_post(r, HCA_OP_RDMA_WRITE_IMM, RIG_MTU + 1, SIG);
	rig_send(r, 1);
	for (unsigned int i = 0; i < RTE_DIM(psn); i++) {
		rig_ack(r, rig_psn(psn[i]), HCA_RNR_SYNDROME(RNR_CODE));
		rig_pass(r, 0);
		rig_pass(r, 30000);
		assert_int_equal(rig_send(r, 2), 5 - psn[i]);
	}
	rig_ack(r, rig_psn(4), HCA_RNR_SYNDROME(RNR_CODE));
	expect_failed(r, 2, HCA_SYND_RNR_RETRY_EXC, 3);
}

/* ---- READ and ATOMIC ---- */

static void
test_read(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 8, SIG);
	rig_post(r, READ, 2 * RIG_MTU + 10, SIG);
	rig_post(r, READ, 0, SIG);
	rig_post(r, WRITE, 8, SIG);
	assert_int_equal(rig_send(r, 1), 4);
	/* FIRST acknowledges the previous WRITE. */
	rig_response(r, FIRST, rig_psn(1), RIG_MTU, 0x11);
	assert_int_equal(rig_cqes(r), 1);
	rig_response(r, MIDDLE, rig_psn(2), RIG_MTU, 0x22);
	rig_response(r, LAST, rig_psn(3), 10, 0x33);
	assert_int_equal(rig_cqes(r), 2);
	rig_expect_ok(r, 1, 1, READ, 2 * RIG_MTU + 10);
	rig_response(r, ONLY, rig_psn(4), 0, 0);
	rig_expect_ok(r, 2, 2, READ, 0);
	rig_ack(r, rig_psn(5), ACK);
	rig_expect_ok(r, 3, 3, WRITE, 8);
	assert_int_equal(r->mem[0], 0x11);
	assert_int_equal(r->mem[RIG_MTU - 1], 0x11);
	assert_int_equal(r->mem[RIG_MTU], 0x22);
	assert_int_equal(r->mem[2 * RIG_MTU + 9], 0x33);
	assert_int_equal(r->mem[2 * RIG_MTU + 10], 0);
	assert_int_equal(r->qp->req_rx.rd_done, 2);
	expect_empty(r);
}

static void
test_read_scatter_list(void **state)
{
	struct rig *r = *state;
	struct hca_record_full *f = rig_post_full(r, READ, 2 * RIG_MTU + 1, SIG, 5);
	uint32_t off = 0;

	rig_send(r, 1);
	rig_response(r, FIRST, rig_psn(0), RIG_MTU, 0x41);
	rig_response(r, MIDDLE, rig_psn(1), RIG_MTU, 0x42);
	rig_response(r, LAST, rig_psn(2), 1, 0x43);
	rig_expect_ok(r, 0, 0, READ, 2 * RIG_MTU + 1);
	for (unsigned int s = 0; s < 5; s++) {
		const uint8_t *at = r->mem + (f->body.sge[s].va - RIG_VA);

		for (uint32_t i = 0; i < f->body.sge[s].len; i++, off++)
			assert_int_equal(at[i], 0x41 + off / RIG_MTU);
		assert_int_equal(at[f->body.sge[s].len], 0);
	}
	expect_empty(r);
}

static void
test_atomic(void **state)
{
	struct rig *r = *state;
	uint64_t value = 0x0102030405060708ull;

	rig_post(r, WRITE, 8, 0);
	rig_post_full(r, HCA_OP_ATOMIC_FA, 8, SIG, 1);
	rig_post_full(r, HCA_OP_ATOMIC_CS, 8, SIG, 2);
	rig_send(r, 1);
	rig_atomic(r, rig_psn(1), value);
	rig_expect_ok(r, 0, 1, HCA_OP_ATOMIC_FA, 8);
	assert_memory_equal(r->mem, &value, 8);
	memset(r->mem, 0, 8);
	rig_atomic(r, rig_psn(2), value);
	rig_expect_ok(r, 1, 2, HCA_OP_ATOMIC_CS, 8);
	assert_memory_equal(r->mem, &value, 4);
	assert_memory_equal(r->mem + 20, (uint8_t *)&value + 4, 4);
	expect_empty(r);
}

/*
 * An ACK beyond a READ without response: everything before it completes, and the READ is repeated
 * once.
 */
static void
test_implied_nak(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 8, SIG);
	rig_post(r, READ, 2 * RIG_MTU, SIG);
	post_writes(r, 2);
	rig_send(r, 1);
	rig_ack(r, rig_psn(3), ACK);
	assert_int_equal(rig_cqes(r), 1);
	assert_int_equal(rig_una(r), rig_psn(1));
	rig_ack(r, rig_psn(4), ACK);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, implied_nak_seq_err), 1);
	assert_int_equal(r->qp->req_rx.retries, 1);
	assert_int_equal(rig_send(r, 2), 3);
	assert_int_equal(r->txd[0].opcode, HCA_BTH_RC_READ_REQ);
	rig_response(r, FIRST, rig_psn(1), RIG_MTU, 1);
	rig_response(r, LAST, rig_psn(2), RIG_MTU, 2);
	rig_ack(r, rig_psn(4), ACK);
	assert_int_equal(rig_cqes(r), 4);
	expect_empty(r);
}

/* A response in the middle is lost: the READ is resumed there. */
static void
test_read_resumed(void **state)
{
	struct rig *r = *state;

	rig_post(r, READ, 5 * RIG_MTU, SIG);
	rig_send(r, 1);
	rig_response(r, FIRST, rig_psn(0), RIG_MTU, 0x10);
	rig_response(r, MIDDLE, rig_psn(1), RIG_MTU, 0x11);
	rig_response(r, MIDDLE, rig_psn(3), RIG_MTU, 0xee);
	rig_response(r, LAST, rig_psn(4), RIG_MTU, 0xee);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, implied_nak_seq_err), 1);
	assert_int_equal(r->mem[3 * RIG_MTU], 0);
	assert_int_equal(rig_send(r, 2), 1);
	assert_int_equal(r->txd[0].psn, rig_psn(2));
	assert_int_equal(r->txd[0].reth.raddr, RIG_RADDR + 2 * RIG_MTU);
	assert_int_equal(r->txd[0].reth.dma_len, 3 * RIG_MTU);
	rig_response(r, FIRST, rig_psn(2), RIG_MTU, 0x12);
	rig_response(r, MIDDLE, rig_psn(3), RIG_MTU, 0x13);
	rig_response(r, LAST, rig_psn(4), RIG_MTU, 0x14);
	rig_expect_ok(r, 0, 0, READ, 5 * RIG_MTU);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(r->mem[i * RIG_MTU], 0x10 + i);
	expect_empty(r);
}

static void
test_bad_responses(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t psn, len;
	} bad[] = {
		{FIRST, 0, RIG_MTU - 1},
		{FIRST, 0, RIG_MTU + 1},
		{MIDDLE, 0, RIG_MTU},
		{LAST, 0, RIG_MTU},
		{ONLY, 0, 3},
		{HCA_BTH_RC_ATOMIC_ACK, 0, 0},
	};

	for (unsigned int i = 0; i < RTE_DIM(bad); i++) {
		struct rig *r = *state;

		rig_post(r, READ, RIG_MTU + 3, SIG);
		post_writes(r, 1);
		rig_send(r, 1);
		rig_response(r, bad[i].opcode, rig_psn(bad[i].psn), bad[i].len, 0xee);
		assert_int_equal(r->mem[0], 0);
		expect_failed(r, 0, HCA_SYND_BAD_RESP, 2);
		rig_teardown(state);
		rig_setup(state);
	}
}

static void
test_bad_last(void **state)
{
	struct rig *r = *state;

	rig_post(r, READ, RIG_MTU + 3, SIG);
	rig_send(r, 1);
	rig_response(r, FIRST, rig_psn(0), RIG_MTU, 1);
	rig_response(r, LAST, rig_psn(1), 4, 0xee);
	assert_int_equal(r->mem[RIG_MTU], 0);
	expect_failed(r, 0, HCA_SYND_BAD_RESP, 1);
}

/* FIRST in the middle, without a resume. */
static void
test_bad_restart(void **state)
{
	struct rig *r = *state;

	rig_post(r, READ, 3 * RIG_MTU, SIG);
	rig_send(r, 1);
	rig_response(r, FIRST, rig_psn(0), RIG_MTU, 1);
	rig_response(r, FIRST, rig_psn(1), RIG_MTU, 2);
	expect_failed(r, 0, HCA_SYND_BAD_RESP, 1);
}

/* Nor in a READ after one that was resumed. */
static void
test_bad_restart_later(void **state)
{
	struct rig *r = *state;

	rig_post(r, READ, 3 * RIG_MTU, SIG);
	rig_post(r, READ, 3 * RIG_MTU, SIG);
	rig_send(r, 1);
	rig_response(r, FIRST, rig_psn(0), RIG_MTU, 1);
	rig_response(r, LAST, rig_psn(2), RIG_MTU, 1);
	rig_send(r, 1);
	rig_response(r, FIRST, rig_psn(1), RIG_MTU, 2);
	rig_response(r, LAST, rig_psn(2), RIG_MTU, 3);
	rig_expect_ok(r, 0, 0, READ, 3 * RIG_MTU);
	rig_response(r, FIRST, rig_psn(3), RIG_MTU, 4);
	rig_response(r, FIRST, rig_psn(4), RIG_MTU, 0xee);
	assert_int_equal(r->mem[RIG_MTU], 2);
	rig_expect_error(r, 1, 1, HCA_SYND_BAD_RESP);
}

static void
test_response_to_write(void **state)
{
	struct rig *r = *state;

	post_writes(r, 2);
	rig_send(r, 1);
	rig_response(r, ONLY, rig_psn(0), 8, 1);
	expect_failed(r, 0, HCA_SYND_BAD_RESP, 2);
}

static void
test_scatter_error(void **state)
{
	struct rig *r = *state;

	post_writes(r, 1);
	rig_post(r, READ, 8, SIG)->sge.lkey = RIG_KEY_RO;
	post_writes(r, 1);
	rig_send(r, 1);
	rig_response(r, ONLY, rig_psn(1), 8, 0xee);
	assert_int_equal(r->mem[0], 0);
	rig_expect_ok(r, 0, 0, WRITE, 8);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, req_scatter_error), 1);
	expect_failed(r, 1, HCA_SYND_LOCAL_PROT, 3);
}

/* ---- errors ---- */

static void
test_fatal_naks(void **state)
{
	static const struct {
		uint8_t nak, syndrome;
	} c[] = {{HCA_NAK_INVALID_REQ, 0x12},
		 {HCA_NAK_REMOTE_ACCESS, 0x13},
		 {HCA_NAK_REMOTE_OP, 0x14}};

	for (unsigned int i = 0; i < RTE_DIM(c); i++) {
		struct rig *r = *state;

		rig_post(r, WRITE, 8, SIG);
		rig_post(r, WRITE, 3 * RIG_MTU, 0);
		rig_post(r, SEND, 8, 0);
		rig_send(r, 1);
		rig_ack(r, rig_psn(2), HCA_NAK_SYNDROME(c[i].nak));
		rig_expect_ok(r, 0, 0, WRITE, 8);
		expect_failed(r, 1, c[i].syndrome, 3);
		rig_teardown(state);
		rig_setup(state);
	}
}

static void
test_bad_record(void **state)
{
	struct rig *r = *state;

	post_writes(r, 2);
	rig_post(r, WRITE, 8, 0)->syndrome = HCA_SYND_LOCAL_LENGTH;
	post_writes(r, 2);
	assert_int_equal(rig_send(r, 2), 2);
	rig_pass(r, 0);
	assert_int_equal(rig_cqes(r), 0);
	rig_ack(r, rig_psn(0), ACK);
	assert_int_equal(rig_state(r), HCA_QPS_RTS);
	rig_ack(r, rig_psn(1), ACK);
	expect_failed(r, 2, HCA_SYND_LOCAL_LENGTH, 5);
}

static void
test_bad_record_first(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 8, 0)->syndrome = HCA_SYND_LOCAL_QP_OP;
	post_writes(r, 3);
	expect_failed(r, 0, HCA_SYND_LOCAL_QP_OP, 4);
}

/* gathering the second packet fails; the peer detects a gap and reports it */
static void
test_gather_failed(void **state)
{
	struct rig *r = *state;

	post_writes(r, 3);
	rig_send(r, 1);
	r->qp->encap.req_failed_psn = rig_psn(1);
	r->qp->encap.req_failed_syndrome = HCA_SYND_LOCAL_PROT;
	hca_msg_send(r->h, HCA_STAGE_ENCAP, HCA_STAGE_REQ_TX, RIG_QPI, HCA_MSG_FAILED);
	rig_send(r, 1);
	rig_pass(r, 0);
	assert_int_equal(rig_state(r), HCA_QPS_RTS);
	rig_ack(r, rig_psn(1), SEQ);
	rig_expect_ok(r, 0, 0, WRITE, 8);
	expect_failed(r, 1, HCA_SYND_LOCAL_PROT, 3);
}

/* Moved to ERR by another stage: all requests are flushed, sent or not, and also later ones. */
static void
test_flush(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 40 * RIG_MTU, 0);
	post_writes(r, 3);
	rig_send(r, 1);
	hca_qp_to_error(r->h, HCA_STAGE_EE, RIG_QPI);
	expect_failed(r, 0, HCA_SYND_WR_FLUSH, 4);
	rig_post(r, SEND, 8, 0)->syndrome = HCA_SYND_WR_FLUSH;
	expect_failed(r, 0, HCA_SYND_WR_FLUSH, 5);
	rig_ack(r, rig_psn(0), ACK);
	assert_int_equal(rig_cqes(r), 5);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, req_cqe_flush_error), 5);
}

static void
test_flush_in_rnr_wait(void **state)
{
	struct rig *r = *state;

	rig_post(r, SEND, 8, 0);
	rig_send(r, 1);
	rig_ack(r, rig_psn(0), HCA_RNR_SYNDROME(RNR_CODE));
	rig_post(r, SEND, 8, 0);
	hca_qp_to_error(r->h, HCA_STAGE_EE, RIG_QPI);
	expect_failed(r, 0, HCA_SYND_WR_FLUSH, 2);
	rig_pass(r, 100000);
	assert_int_equal(rig_send(r, 1), 0);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(test_coalesced_ack),
		T(test_ack_within_message),
		T(test_ghosts),
		T(test_other_life),
		T(test_many),
		T(test_cq_overrun),
		T(test_sequence_nak),
		T(test_sequence_nak_exhausted),
		T(test_timeout),
		T(test_timeout_after_idle),
		T(test_timeout_exhausted),
		T(test_no_timeout),
		T(test_rnr),
		T(test_rnr_exhausted),
		T(test_rnr_forever),
		T(test_rnr_without_receive),
		T(test_read),
		T(test_read_scatter_list),
		T(test_atomic),
		T(test_implied_nak),
		T(test_read_resumed),
		T(test_bad_responses),
		T(test_bad_last),
		T(test_bad_restart),
		T(test_bad_restart_later),
		T(test_response_to_write),
		T(test_scatter_error),
		T(test_fatal_naks),
		T(test_bad_record),
		T(test_bad_record_first),
		T(test_gather_failed),
		T(test_flush),
		T(test_flush_in_rnr_wait),
	};

	int failed = cmocka_run_group_tests_name("one writer", tests, NULL, NULL);

	rig_shared_cq = true;
	return failed + cmocka_run_group_tests_name("shared CQ", tests, NULL, NULL);
}
