/* SPDX-License-Identifier: BSD-3-Clause */

/* req_tx: the turn of a QP with one message, by the short way and by the general one. */

#include "req_rig.h"

#include "../cc/told.h"
#include "requester/record_pool.h"
#include "requester/rtt.h"

#define WRITE HCA_OP_RDMA_WRITE
#define PACE 1000000u /* ps per byte; a frame takes longer than HCA_REQ_TX_PACE_SLACK */

/* No sample of the RTT is due, as between two of a QP. */
static int
setup(void **state)
{
	struct rig *r;

	rig_setup(state);
	r = *state;
	r->h->rtt->next_at = UINT64_MAX;
	return 0;
}

static struct hca_req_tx_ctx *
ctx_of(const struct rig *r)
{
	return r->h->stage_ctx[HCA_STAGE_REQ_TX];
}

/* All messages up to the window's position `tail` are acknowledged. */
static void
release(struct rig *r, uint32_t tail)
{
	r->qp->sq_una = (uint64_t)tail << 32 | rig_psn(tail);
	hca_msg_send(r->h, HCA_STAGE_REQ_RX, HCA_STAGE_REQ_TX, RIG_QPI, HCA_MSG_RELEASE);
}

/* Post one message, and let the short way have a turn; it is not sent. */
static bool
short_turn(struct rig *r)
{
	struct hca_req_tx_ctx *ctx = ctx_of(r);
	bool taken;

	rig_post(r, WRITE, 8, 0);
	ctx->now = r->now;
	ctx->count = ctx->room = 1;
	ctx->n_out = ctx->n_spare = 0;
	taken = hca_req_tx_single(r->h, ctx, RIG_QPI);
	assert_int_equal(ctx->n_out, taken);
	rte_pktmbuf_free_bulk(ctx->out, ctx->n_out);
	ctx->count = ctx->n_out = 0;
	return taken;
}

/* ---- taken ---- */

static void
test_taken(void **state)
{
	struct rig *r = *state;

	assert_true(short_turn(r));
	assert_int_equal(r->qp->sq_next, 1);
	assert_int_equal(r->qp->req_tx.next_psn, rig_psn(1));
	assert_int_equal(r->qp->req_tx.max_psn, rig_psn(1));
	/* two messages are a visit */
	rig_post(r, WRITE, 8, 0);
	assert_false(short_turn(r));
	assert_int_equal(r->qp->sq_next, 1);
}

/* Each is sent alone; the next one is posted before the ACK. */
static void
test_descriptors(void **state)
{
	static const struct {
		uint8_t op, bth;
	} c[] = {{HCA_OP_SEND, HCA_BTH_RC_SEND_ONLY},
		 {HCA_OP_SEND_IMM, HCA_BTH_RC_SEND_ONLY_IMM},
		 {WRITE, HCA_BTH_RC_WRITE_ONLY},
		 {HCA_OP_RDMA_WRITE_IMM, HCA_BTH_RC_WRITE_ONLY_IMM}};
	static const uint32_t len[] = {1, RIG_MTU, 0};
	struct rig *r = *state;

	for (unsigned int i = 0; i < RTE_DIM(c) * RTE_DIM(len); i++) {
		uint32_t n = len[i / RTE_DIM(c)];
		const struct hca_record *rec =
			rig_post(r, c[i % RTE_DIM(c)].op, n, HCA_REC_SIGNALED);
		const struct hca_txd *d = r->txd;

		assert_int_equal(rig_send(r, 1), 1);
		assert_int_equal(d->opcode, c[i % RTE_DIM(c)].bth);
		assert_int_equal(d->flags, HCA_TXD_LAST_OF_RECORD | HCA_TXD_ACKREQ);
		assert_int_equal(d->psn, rig_psn(i));
		assert_int_equal(d->len, n);
		assert_int_equal(d->off, 0);
		assert_int_equal(d->nsge, n != 0);
		assert_int_equal(d->reth.dma_len, n);
		assert_int_equal(d->generation, r->qp->cfg.generation);
		assert_int_equal(rec->npsn, 1);
		assert_int_equal(rec->psn, rig_psn(i));
		assert_true(rec->flags & HCA_REC_SENT);
	}
}

/* Without bytes, but with a segment. */
static void
test_zero_length(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 0, 0)->nsge = 1;
	assert_int_equal(rig_send(r, 1), 1);
	assert_int_equal(r->txd[0].len, 0);
	assert_int_equal(r->txd[0].opcode, HCA_BTH_RC_WRITE_ONLY);
	assert_int_equal(RIG_COUNTER(r, REQ_TX, req_packets), 1);
}

/* The timer is armed if it is not running and the QP has a timeout. */
static void
test_arm(void **state)
{
	struct rig *r = *state;

	for (unsigned int i = 0; i < 4; i++) {
		unsigned int msgs;

		r->qp->req_rx.timer_armed = i == 1;
		r->qp->cfg.ack_timeout = i == 2 ? 0 : RIG_TIMEOUT;
		rig_post(r, WRITE, 8, 0);
		assert_int_equal(rig_send(r, 1), 1);
		msgs = fx_take_msgs(r->fx, HCA_STAGE_REQ_TX, HCA_STAGE_REQ_RX, RIG_QPI);
		assert_int_equal(msgs, i == 1 || i == 2 ? 0 : HCA_MSG_ARM);
	}
}

/* ---- refused ---- */

/* A sample of the RTT is due, or the peer has no receive. */
static void
test_refused(void **state)
{
	struct rig *r = *state;

	r->h->rtt->next_at = r->now;
	assert_false(short_turn(r));
	assert_int_equal(rig_send(r, 1), 1);
	assert_int_equal(r->h->rtt->begun, 1);
	r->qp->req_rx.flags = HCA_REQ_RX_HOLD;
	assert_false(short_turn(r));
	assert_int_equal(rig_send(r, 2), 0);
}

/* One byte more than a packet holds. */
static void
test_two_packets(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, RIG_MTU + 1, 0);
	assert_int_equal(rig_send(r, 1), 2);
	assert_int_equal(r->txd[0].opcode, HCA_BTH_RC_WRITE_FIRST);
	assert_int_equal(r->txd[1].opcode, HCA_BTH_RC_WRITE_LAST);
}

/* Each frame waits for the time that the one before it takes at the QP's rate. */
static void
test_pace(void **state)
{
	struct rig *r = *state;
	uint64_t at;

	r->qp->req_tx.pace = PACE;
	assert_false(short_turn(r));
	assert_int_equal(rig_send(r, 1), 1);
	at = r->qp->addr.pace_at;
	assert_true(at > r->now);
	rig_post(r, WRITE, 8, 0);
	assert_int_equal(rig_send(r, 2), 0);
	assert_int_equal(RIG_COUNTER(r, REQ_TX, req_paced), 1);
	r->now = at;
	assert_int_equal(rig_send(r, 2), 1);
	assert_true(r->qp->addr.pace_at >= at + 8 * PACE / 1000);
}

/* Congestion control gives leave for the frame, and is told that it has left. */
static void
test_congestion_control(void **state)
{
	struct rig *r = *state;
	struct told *t;

	told_open(r->h, RIG_QPI);
	t = hca_cc_state(r->h, RIG_QPI);
	t->leave = UINT32_MAX;
	assert_false(short_turn(r));
	assert_int_equal(t->asked, 0);
	assert_int_equal(rig_send(r, 1), 1);
	assert_int_equal(t->asked, 1);
	assert_int_equal(t->frames, 1);
	assert_int_equal(t->psns, 1);
	/* no leave, until then */
	t->again = r->now + 1000;
	rig_post(r, WRITE, 8, 0);
	assert_int_equal(rig_send(r, 2), 0);
	assert_true(r->qp->req_tx.flags & HCA_REQ_TX_HELD);
	t->leave = UINT32_MAX;
	r->now += 1000;
	assert_int_equal(rig_send(r, 2), 1);
	assert_int_equal(t->frames, 2);
	hca_cc_fini(r->h);
}

/* A READ has taken all PSNs that may be outstanding. */
static void
test_psn_window(void **state)
{
	struct rig *r = *state;

	rig_post(r, HCA_OP_RDMA_READ, 0x7fffffff, 0);
	assert_int_equal(rig_send(r, 2), 1);
	rig_post(r, WRITE, 8, 0);
	assert_int_equal(rig_send(r, 3), 0);
	r->qp->sq_una = rig_psn(1);
	hca_msg_send(r->h, HCA_STAGE_REQ_RX, HCA_STAGE_REQ_TX, RIG_QPI, HCA_MSG_RELEASE);
	assert_int_equal(rig_send(r, 3), 1);
	assert_int_equal(r->txd[0].psn, rig_psn(1u << 23));
}

/* The state changes while the QP has its place in the list, before req_tx gets the message. */
static void
test_states(void **state)
{
	static const uint8_t to[] = {HCA_QPS_SQD, HCA_QPS_SQE, HCA_QPS_ERR};
	struct rig *r = *state;

	for (unsigned int i = 0; i < RTE_DIM(to); i++) {
		unsigned int msgs;

		r->qp->cfg.state = HCA_QPS_RTS;
		r->fx->edge[HCA_EDGE_REQ_TX_ENCAP].room = 0;
		rig_post(r, WRITE, 8, 0);
		assert_int_equal(rig_send(r, 1), 0);
		assert_true(r->qp->req_tx.flags & HCA_REQ_TX_READY);
		r->qp->cfg.state = to[i];
		r->fx->edge[HCA_EDGE_REQ_TX_ENCAP].room = FX_OBJECTS;
		assert_int_equal(rig_send(r, 2), 0);
		assert_int_equal(r->qp->req_tx.max_psn, RIG_PSN);
		/* in SQD it waits, else it goes to req_rx unsent */
		assert_int_equal(r->qp->sq_next, to[i] == HCA_QPS_SQD ? 0 : i + 1);
		msgs = fx_take_msgs(r->fx, HCA_STAGE_REQ_TX, HCA_STAGE_REQ_RX, RIG_QPI);
		assert_int_equal(msgs, to[i] == HCA_QPS_SQD ? 0 : HCA_MSG_BAD);
	}
}

/* ---- releases ---- */

static void
test_release_at_rest(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 8, 0);
	assert_int_equal(rig_send(r, 1), 1);
	release(r, 1);
	assert_int_equal(rig_send(r, 1), 0);
	assert_int_equal(r->qp->sq_freed, 1);
	assert_int_equal(hca_record_pool_in_use(&r->h->records[HCA_WIRE_ROCE].small), 0);
	assert_int_equal(fx_take_msgs(r->fx, HCA_STAGE_REQ_TX, HCA_STAGE_PARSER, RIG_QPI),
			 HCA_MSG_FREED);
}

/* The QP was drained and is back in RTS: the next time that it is drained raises an event again. */
static void
test_release_drained(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 8, 0);
	assert_int_equal(rig_send(r, 1), 1);
	r->qp->req_tx.flags |= HCA_REQ_TX_DRAINED;
	release(r, 1);
	assert_int_equal(rig_send(r, 1), 0);
	assert_int_equal(r->qp->req_tx.flags & HCA_REQ_TX_DRAINED, 0);
	assert_int_equal(r->qp->sq_freed, 1);
}

/* A release ends the wait for congestion control, which may answer otherwise. */
static void
test_release_held(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 8, 0);
	assert_int_equal(rig_send(r, 1), 1);
	r->qp->req_tx.flags |= HCA_REQ_TX_PACED | HCA_REQ_TX_HELD;
	hca_pace_put(&ctx_of(r)->pace, RIG_QPI, r->now + 1000000);
	release(r, 1);
	assert_int_equal(rig_send(r, 1), 0);
	assert_int_equal(r->qp->req_tx.flags, 0);
	assert_int_equal(r->qp->sq_freed, 1);
	rig_post(r, WRITE, 8, 0);
	assert_int_equal(rig_send(r, 1), 1);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(test_taken),
		T(test_descriptors),
		T(test_zero_length),
		T(test_arm),
		T(test_refused),
		T(test_two_packets),
		T(test_pace),
		T(test_congestion_control),
		T(test_psn_window),
		T(test_states),
		T(test_release_at_rest),
		T(test_release_drained),
		T(test_release_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
