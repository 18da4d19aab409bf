/* SPDX-License-Identifier: BSD-3-Clause */

/* req_tx asks congestion control before it sends; req_rx tells it; the end of a QP's wait. */

#include "../requester/req_rig.h"
#include "told.h"

#define FRAME (RIG_MTU + HCA_CC_FRAME_OVERHEAD)
#define LATE 1000000000u /* ns: no test waits so long */
#define SOON 30000u

static struct told *told;

static int
setup(void **state)
{
	struct rig *r;

	assert_int_equal(rig_setup(state), 0);
	r = *state;
	told_open(r->h, RIG_QPI);
	told = hca_cc_state(r->h, RIG_QPI);
	return 0;
}

static int
teardown(void **state)
{
	struct rig *r = *state;

	hca_cc_fini(r->h);
	return rig_teardown(state);
}

/* The next answer: bytes, and ns until it may be asked again. */
static void
answer(const struct rig *r, uint32_t leave, uint64_t after)
{
	told->leave = leave;
	told->again = after != 0 ? r->now + after : 0;
}

static void
post(struct rig *r, unsigned int n)
{
	while (n-- > 0)
		rig_post(r, HCA_OP_RDMA_WRITE, RIG_MTU, HCA_REC_SIGNALED);
}

static void
asks_and_tells(void **state)
{
	struct rig *r = *state;

	post(r, 4);
	answer(r, 2 * FRAME + FRAME / 2, 0);
	assert_int_equal(rig_send(r, 1), 2);
	assert_true(r->txd[1].flags & HCA_TXD_ACKREQ);
	assert_int_equal(told->begun, 1);
	assert_int_equal(told->frames, 2);
	assert_int_equal(told->bytes, 2 * FRAME);
	/* without a time it is not asked before the ACK */
	assert_int_equal(rig_send(r, 3), 0);
	assert_int_equal(told->asked, 1);
	r->now += SOON;
	rig_ack(r, rig_psn(1), HCA_AETH_ACK);
	assert_int_equal(told->acked, 2);
	assert_int_equal(told->timed, 1);
	assert_int_equal(told->rtt, SOON);
	answer(r, 2 * FRAME, 0);
	assert_int_equal(rig_send(r, 1), 2);
	assert_int_equal(told->unanswered, 0);
	rig_ack(r, rig_psn(3), HCA_AETH_ACK);
	assert_int_equal(told->acked, 4);
	assert_int_equal(rig_cqes(r), 4);
}

/* A READ counts with its responses, also where it asks for more than the answer allows. */
static void
reads_with_responses(void **state)
{
	struct rig *r = *state;

	rig_post(r, HCA_OP_RDMA_READ, 4 * RIG_MTU, HCA_REC_SIGNALED);
	post(r, 1);
	answer(r, 2 * FRAME, 0);
	assert_int_equal(rig_send(r, 1), 1);
	assert_int_equal(told->frames, 1);
	assert_int_equal(told->psns, 4);
}

static void
time_ends_wait(void **state)
{
	struct rig *r = *state;

	post(r, 2);
	answer(r, FRAME, SOON);
	assert_int_equal(rig_send(r, 2), 1);
	assert_true(hca_req_tx_deadline(r->h, r->now) <= r->now + SOON);
	r->now += SOON - 1;
	answer(r, FRAME, 0);
	assert_int_equal(rig_send(r, 2), 0);
	r->now += 1;
	assert_int_equal(rig_send(r, 1), 1);
	rig_ack(r, rig_psn(1), HCA_AETH_ACK);
	assert_int_equal(rig_send(r, 1), 0);
}

/* An ACK ends the wait before its time. */
static void
ack_ends_wait(void **state)
{
	struct rig *r = *state;

	post(r, 3);
	answer(r, FRAME, LATE);
	assert_int_equal(rig_send(r, 2), 1);
	answer(r, FRAME, LATE);
	/* a new request does not: it waits behind the others */
	post(r, 1);
	assert_int_equal(rig_send(r, 2), 0);
	rig_ack(r, rig_psn(0), HCA_AETH_ACK);
	assert_int_equal(rig_send(r, 1), 1);
	assert_int_equal(r->txd[0].psn, rig_psn(1));
}

static void
loss_ends_wait(void **state)
{
	struct rig *r = *state;

	post(r, 2);
	answer(r, FRAME, LATE);
	assert_int_equal(rig_send(r, 2), 1);
	answer(r, FRAME, LATE);
	rig_pass(r, RIG_TIMEOUT_NS + 1000);
	rig_pass(r, RIG_TIMEOUT_NS);
	assert_int_equal(told->lost[HCA_CC_TIMEOUT], 1);
	assert_int_equal(rig_send(r, 1), 1);
	assert_int_equal(r->txd[0].psn, rig_psn(0));
	assert_true(r->txd[0].flags & HCA_TXD_REPEAT);
	assert_int_equal(told->unanswered, 0);
}

/* A QP that waits is reset: it leaves the heap. */
static void
purge_ends_wait(void **state)
{
	struct rig *r = *state;
	struct hca_req_tx_ctx *ctx = hca_req_tx_ctx(r->h);

	post(r, 2);
	answer(r, FRAME, LATE);
	assert_int_equal(rig_send(r, 2), 1);
	assert_int_equal(ctx->pace.n, 1);
	r->qp->cfg.state = HCA_QPS_RST;
	hca_msg_send(r->h, HCA_STAGE_CEU, HCA_STAGE_REQ_TX, RIG_QPI, HCA_MSG_PURGE);
	assert_int_equal(rig_send(r, 1), 0);
	assert_int_equal(ctx->pace.n, 0);
	assert_int_equal(hca_req_tx_deadline(r->h, r->now), UINT64_MAX);
}

#define SENT 31u /* in one turn of RIG_MTU each: none of them asks for an ACK */

/*
 * The QP's turn ended without a request for an ACK, and congestion control allows no more: the last
 * packet is repeated with one, once. Without mbufs for it the QP does not go back, turn by turn.
 */
static void
repeats_one_when_there_are_mbufs(void **state)
{
	struct rig *r = *state;
	unsigned int spare = rte_mempool_avail_count(r->h->tx_pool) - SENT;
	struct rte_mbuf *kept[256];

	assert_int_equal(rte_mempool_get_bulk(r->h->tx_pool, (void **)kept, spare), 0);
	post(r, SENT + 9);
	answer(r, UINT32_MAX - 1, 0);
	hca_req_tx_poll(r->h, r->now, HCA_BURST);
	assert_int_equal(r->fx->edge[HCA_EDGE_REQ_TX_ENCAP].n, SENT);
	for (unsigned int i = 0; i < 5; i++)
		hca_req_tx_poll(r->h, r->now, HCA_BURST);
	assert_int_equal(r->fx->edge[HCA_EDGE_REQ_TX_ENCAP].n, SENT);
	assert_int_equal(r->qp->req_tx.next_psn, rig_psn(SENT));
	assert_int_equal(told->unanswered, SENT);
	rte_mempool_put_bulk(r->h->tx_pool, (void *const *)kept, spare);
	assert_int_equal(rig_send(r, 3), SENT + 1);
	assert_int_equal(r->txd[SENT].psn, rig_psn(SENT - 1));
	assert_true(r->txd[SENT].flags & HCA_TXD_ACKREQ);
	for (unsigned int i = 0; i < SENT; i++)
		assert_false(r->txd[i].flags & HCA_TXD_ACKREQ);
	rig_ack(r, rig_psn(SENT - 1), HCA_AETH_ACK);
	assert_int_equal(told->acked, SENT);
}

/* Before RTS a CNP is about READ responses: EE is told, the requester is not. */
static void
before_rts(void **state)
{
	struct rig *r = *state;

	r->qp->cfg.state = HCA_QPS_RTR;
	rig_response(r, HCA_BTH_CNP, 0, HCA_CNP_PAYLOAD_LEN, 0);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, rp_cnp_handled), 1);
	assert_int_equal(told->cnps, 0);
	assert_int_equal(fx_take_msgs(r->fx, HCA_STAGE_REQ_RX, HCA_STAGE_EE, RIG_QPI), HCA_MSG_CNP);
	rig_ack(r, rig_psn(0), HCA_AETH_ACK);
	assert_int_equal(RIG_COUNTER(r, REQ_RX, rx_qp_state), 1);
	r->qp->cfg.state = HCA_QPS_RTS;
	rig_response(r, HCA_BTH_CNP, 0, HCA_CNP_PAYLOAD_LEN, 0);
	assert_int_equal(told->cnps, 1);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(asks_and_tells),
		T(reads_with_responses),
		T(time_ends_wait),
		T(ack_ends_wait),
		T(loss_ends_wait),
		T(purge_ends_wait),
		T(repeats_one_when_there_are_mbufs),
		T(before_rts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
