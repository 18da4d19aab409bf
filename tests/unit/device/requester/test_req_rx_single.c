/* SPDX-License-Identifier: BSD-3-Clause */

/* req_rx: the ACK of a QP with one message, alone and among other packets of a burst. */

#include "req_rig.h"

#include "../cc/told.h"
#include "requester/rtt.h"

#define WRITE HCA_OP_RDMA_WRITE
#define SIG HCA_REC_SIGNALED
#define ACK (HCA_AETH_ACK | HCA_AETH_CREDITS_NONE)
#define SEQ HCA_NAK_SYNDROME(HCA_NAK_PSN_SEQ)
#define RNR HCA_RNR_SYNDROME(1u)
#define CQ_B (RIG_CQ + 1)
#define QPS 24u

/* QPs from 0 on, all with RIG_CQ; none takes a sample of the RTT, which a single never ends. */
static int
setup(void **state)
{
	struct rig *r;

	rig_setup(state);
	r = *state;
	r->h->rtt->next_at = UINT64_MAX;
	for (unsigned int i = 0; i < QPS; i++)
		if (i != RIG_QPI)
			rig_make_qp(r, i, RIG_CQ);
	return 0;
}

/* n messages of QP qpi, posted and sent. */
static void
send_on(struct rig *r, uint32_t qpi, unsigned int n)
{
	r->qp = &r->h->qp[qpi];
	for (unsigned int i = 0; i < n; i++)
		rig_post(r, WRITE, 8, SIG);
	assert_int_equal(rig_send(r, n), n);
}

/* The ACK of the n-th packet of QP qpi joins the burst. */
static void
queue_on(struct rig *r, uint32_t qpi, uint32_t n)
{
	r->qp = &r->h->qp[qpi];
	rig_queue_ack(r, rig_psn(n), ACK);
}

/* CQE i of the CQ is a success of QP qpi; wqe counts the messages of all QPs. */
static void
expect_on(const struct rig *r, uint32_t cqn, unsigned int i, uint32_t qpi, uint32_t wqe)
{
	const struct hca_cqe *c = &r->cqes[cqn][i];

	assert_true(i < (uint32_t)r->h->cq[cqn].reserve);
	assert_int_equal(c->owner, HCA_OWNER_SW);
	assert_int_equal(c->opcode, WRITE);
	assert_int_equal(c->is_send, 1);
	assert_int_equal(hca_le32_to_cpu(c->my_qpn), fx_qpn(qpi));
	assert_int_equal(hca_le32_to_cpu(c->wqe), wqe << RIG_STRIDE_LOG);
	assert_int_equal(hca_le32_to_cpu(c->byte_cnt), 8);
}

/* The CQ has n CQEs, and the slots after them are untouched. */
static void
expect_count(const struct rig *r, uint32_t cqn, unsigned int n)
{
	assert_int_equal((uint32_t)r->h->cq[cqn].reserve, n);
	assert_int_equal(r->cqes[cqn][n].owner, HCA_OWNER_HW);
}

static void
expect_released(const struct rig *r, uint32_t qpi, uint32_t n)
{
	assert_int_equal(r->h->qp[qpi].sq_una, (uint64_t)n << 32 | rig_psn(n));
}

/* ---- alone ---- */

/* CQEs are published at the end of the burst, una moves before. */
static void
test_taken(void **state)
{
	struct rig *r = *state;
	struct hca_cq_batch batch = {.n = 0};
	struct hca_req_rx_singles s = {.batch = &batch};

	send_on(r, 0, 1);
	queue_on(r, 0, 0);
	assert_true(hca_req_rx_single(&s, r->h, r->queued[0]));
	expect_released(r, 0, 1);
	assert_int_equal(r->cqe[0].owner, HCA_OWNER_HW);
	hca_req_rx_singles_end(&s, r->h);
	expect_on(r, RIG_CQ, 0, 0, 0);
	expect_count(r, RIG_CQ, 1);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, req_completions), 1);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, rcvd_responses), 1);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, rdma_sends), 0);
	/* the same ACK again is a duplicate */
	assert_false(hca_req_rx_single(&s, r->h, r->queued[0]));
	rig_deliver(r);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, req_duplicate_ack), 1);
	expect_count(r, RIG_CQ, 1);
}

static void
expect_refused(struct rig *r)
{
	struct hca_cq_batch batch = {.n = 0};
	struct hca_req_rx_singles s = {.batch = &batch};
	uint64_t una = r->qp->sq_una;

	assert_false(hca_req_rx_single(&s, r->h, r->queued[r->n_queued - 1]));
	assert_int_equal(r->qp->sq_una, una);
	assert_int_equal(batch.n, 0);
	assert_int_equal(s.packets, 0);
}

/* Other syndromes, an earlier life of the QP, other states and pending work. */
static void
test_refused(void **state)
{
	static const uint8_t syndrome[] = {SEQ, RNR, HCA_NAK_SYNDROME(HCA_NAK_REMOTE_OP),
					   ACK, ACK, ACK};
	struct rig *r = *state;

	send_on(r, 0, 1);
	for (unsigned int i = 0; i < RTE_DIM(syndrome); i++) {
		rig_queue_ack(r, rig_psn(0), syndrome[i]);
		hca_rxd(r->queued[i])->generation -= i == 3;
		r->qp->cfg.state = i == 4 ? HCA_QPS_SQD : HCA_QPS_RTS;
		r->qp->req_rx.flags = i == 5 ? HCA_REQ_RX_LOCAL : 0;
		expect_refused(r);
	}
}

/* The ACK of one of two packets, of the second one, and one that ends a sample of the RTT. */
static void
test_refused_path(void **state)
{
	struct rig *r = *state;

	send_on(r, 0, 2);
	queue_on(r, 0, 0);
	expect_refused(r);
	queue_on(r, 0, 1);
	expect_refused(r);
	rig_deliver(r);
	expect_count(r, RIG_CQ, 2);
	r->h->rtt->next_at = 0;
	send_on(r, 0, 1);
	queue_on(r, 0, 2);
	assert_int_not_equal(r->h->rtt->begun, r->h->rtt->ended);
	expect_refused(r);
	rig_deliver(r);
	assert_int_equal(r->h->rtt->begun, r->h->rtt->ended);
	expect_count(r, RIG_CQ, 3);
}

/* Congestion control is told of the ACK. */
static void
test_congestion_control(void **state)
{
	struct rig *r = *state;
	struct told *t;

	told_open(r->h, RIG_QPI);
	t = hca_cc_state(r->h, RIG_QPI);
	t->leave = UINT32_MAX;
	send_on(r, RIG_QPI, 1);
	rig_ack(r, rig_psn(0), ACK);
	assert_int_equal(t->acked, 1);
	expect_on(r, RIG_CQ, 0, RIG_QPI, 0);
	hca_cc_fini(r->h);
}

/* The timer is in the wheel still: a message sent just before it expires gets the whole timeout. */
static void
test_timeout_after_idle(void **state)
{
	struct rig *r = *state;

	send_on(r, 0, 1);
	rig_pass(r, 0);
	rig_ack(r, rig_psn(0), ACK);
	rig_pass(r, RIG_TIMEOUT_NS - 8192);
	send_on(r, 0, 1);
	rig_pass(r, 20000);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, local_ack_timeout_err), 0);
	rig_pass(r, RIG_TIMEOUT_NS + 8192);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, local_ack_timeout_err), 1);
	assert_int_equal(rig_send(r, 1), 1);
}

static void
test_rnr_nak(void **state)
{
	struct rig *r = *state;

	send_on(r, 0, 1);
	rig_ack(r, rig_psn(0), RNR);
	expect_count(r, RIG_CQ, 0);
	expect_released(r, 0, 0);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, rnr_nak_received), 1);
	rig_pass(r, 0);
	rig_pass(r, 30000);
	assert_int_equal(rig_send(r, 2), 1);
	rig_ack(r, rig_psn(0), ACK);
	expect_on(r, RIG_CQ, 0, 0, 0);
	expect_count(r, RIG_CQ, 1);
}

static void
test_sequence_nak(void **state)
{
	struct rig *r = *state;

	send_on(r, 0, 1);
	rig_ack(r, rig_psn(0), SEQ);
	expect_count(r, RIG_CQ, 0);
	expect_released(r, 0, 0);
	assert_int_equal(r->qp->req_rx.retries, 1);
	assert_int_equal(rig_send(r, 2), 1);
	rig_ack(r, rig_psn(0), ACK);
	expect_on(r, RIG_CQ, 0, 0, 0);
	expect_count(r, RIG_CQ, 1);
	assert_int_equal(r->qp->req_rx.retries, 0);
}

static void
test_fatal_nak(void **state)
{
	struct rig *r = *state;

	send_on(r, RIG_QPI, 1);
	rig_ack(r, rig_psn(0), HCA_NAK_SYNDROME(HCA_NAK_REMOTE_ACCESS));
	assert_int_equal(rig_state(r), HCA_QPS_ERR);
	rig_expect_error(r, 0, 0, HCA_SYND_REMOTE_ACCESS);
	expect_count(r, RIG_CQ, 1);
}

/* ---- bursts ---- */

/* Singles and runs write the CQ in the order of the packets. */
static void
test_among_runs(void **state)
{
	struct rig *r = *state;

	send_on(r, 0, 1);
	send_on(r, 1, 1);
	send_on(r, 2, 3);
	send_on(r, 4, 1);
	send_on(r, 5, 2);
	send_on(r, 6, 1);
	queue_on(r, 0, 0);
	queue_on(r, 1, 0);
	queue_on(r, 2, 2);
	queue_on(r, 4, 0);
	queue_on(r, 5, 0);
	queue_on(r, 5, 1);
	queue_on(r, 6, 0);
	rig_deliver(r);
	expect_on(r, RIG_CQ, 0, 0, 0);
	expect_on(r, RIG_CQ, 1, 1, 1);
	for (unsigned int i = 0; i < 3; i++)
		expect_on(r, RIG_CQ, 2 + i, 2, 2 + i);
	expect_on(r, RIG_CQ, 5, 4, 5);
	expect_on(r, RIG_CQ, 6, 5, 6);
	expect_on(r, RIG_CQ, 7, 5, 7);
	expect_on(r, RIG_CQ, 8, 6, 8);
	expect_count(r, RIG_CQ, 9);
	expect_released(r, 2, 3);
	expect_released(r, 5, 2);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, req_completions), 9);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, rcvd_responses), 7);
}

/* A NAK between singles: its CQE is written by the general way. */
static void
test_among_errors(void **state)
{
	struct rig *r = *state;

	for (unsigned int i = 2; i < 5; i++)
		send_on(r, i, 1);
	queue_on(r, 2, 0);
	r->qp = &r->h->qp[RIG_QPI];
	rig_queue_ack(r, rig_psn(0), HCA_NAK_SYNDROME(HCA_NAK_REMOTE_OP));
	queue_on(r, 4, 0);
	rig_deliver(r);
	expect_on(r, RIG_CQ, 0, 2, 0);
	rig_expect_error(r, 1, 1, HCA_SYND_REMOTE_OP);
	expect_on(r, RIG_CQ, 2, 4, 2);
	expect_count(r, RIG_CQ, 3);
}

static void
test_two_cqs(void **state)
{
	struct rig *r = *state;

	rig_make_cq(r, CQ_B, 8);
	r->h->qp[1].cfg.scqn = CQ_B;
	r->h->qp[4].cfg.scqn = CQ_B;
	send_on(r, 0, 1);
	send_on(r, 1, 1);
	send_on(r, 2, 1);
	send_on(r, 4, 2);
	send_on(r, 5, 1);
	queue_on(r, 0, 0);
	queue_on(r, 1, 0);
	queue_on(r, 2, 0);
	queue_on(r, 4, 1);
	queue_on(r, 5, 0);
	rig_deliver(r);
	expect_on(r, RIG_CQ, 0, 0, 0);
	expect_on(r, CQ_B, 0, 1, 1);
	expect_on(r, RIG_CQ, 1, 2, 2);
	expect_on(r, CQ_B, 1, 4, 3);
	expect_on(r, CQ_B, 2, 4, 4);
	expect_on(r, RIG_CQ, 2, 5, 5);
	expect_count(r, RIG_CQ, 3);
	expect_count(r, CQ_B, 3);
}

/* A QP's own CQ each: every one is written and raises its event once. */
static void
test_many_cqs(void **state)
{
	static const uint32_t arm = HCA_CQ_ARM_MAKE(1u, HCA_CQ_ARM_NEXT);
	struct rig *r = *state;

	assert_true(QPS > HCA_CQ_BATCH);
	for (unsigned int i = 0; i < QPS; i++) {
		if (i != RIG_CQ)
			rig_make_cq(r, i, 8);
		r->h->qp[i].cfg.scqn = i;
		((struct hca_cq_record *)(void *)((uint8_t *)r->cqes[i] +
						  r->h->cq[i].buf[0].record_off))
			->arm = hca_cpu_to_le32(arm);
		send_on(r, i, 1);
	}
	for (unsigned int i = 0; i < QPS; i++)
		queue_on(r, i, 0);
	rig_deliver(r);
	assert_int_equal(r->fx->events, QPS);
	for (unsigned int i = 0, seen = 0; i < QPS; i++) {
		expect_on(r, i, 0, i, i);
		expect_count(r, i, 1);
		assert_int_equal(r->fx->event[i].type, HCA_EVENT_COMP);
		assert_false(seen & 1u << r->fx->event[i].index);
		seen |= 1u << r->fx->event[i].index;
	}
}

/* The CQ has 4 slots for 6 singles. */
static void
test_full_cq(void **state)
{
	struct rig *r = *state;

	rig_make_cq(r, CQ_B, 4);
	for (unsigned int i = 4; i < 10; i++) {
		r->h->qp[i].cfg.scqn = CQ_B;
		send_on(r, i, 1);
		queue_on(r, i, 0);
	}
	rig_deliver(r);
	for (unsigned int i = 0; i < 4; i++)
		expect_on(r, CQ_B, i, 4 + i, i);
	assert_int_equal((uint32_t)r->h->cq[CQ_B].reserve, 4);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, cqe_overrun), 1);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, cqe_dead_cq), 1);
	assert_int_equal(r->fx->events, 1);
	assert_int_equal(r->fx->event[0].type, HCA_EVENT_CQ_ERROR);
	/* the requests are done */
	for (unsigned int i = 4; i < 10; i++)
		expect_released(r, i, 1);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, req_completions), 6);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(test_taken),
		T(test_refused),
		T(test_refused_path),
		T(test_congestion_control),
		T(test_timeout_after_idle),
		T(test_rnr_nak),
		T(test_sequence_nak),
		T(test_fatal_nak),
		T(test_among_runs),
		T(test_among_errors),
		T(test_two_cqs),
		T(test_many_cqs),
		T(test_full_cq),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
