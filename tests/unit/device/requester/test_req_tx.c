/* SPDX-License-Identifier: BSD-3-Clause */

/* req_tx alone: segmentation, AckReq, parking, rewinds, errors. */

#include "req_rig.h"

#include <string.h>

#include "requester/record_pool.h"

#define WRITE HCA_OP_RDMA_WRITE

static bool
ackreq(const struct rig *r, unsigned int i)
{
	return r->txd[i].flags & HCA_TXD_ACKREQ;
}

/* Update the state as req_rx would. */
static void
set_una(struct rig *r, uint32_t tail, uint32_t psn)
{
	r->qp->sq_una = (uint64_t)tail << 32 | psn;
	hca_msg_send(r->h, HCA_STAGE_REQ_RX, HCA_STAGE_REQ_TX, RIG_QPI, HCA_MSG_RELEASE);
}

static void
rewind_to(struct rig *r, uint32_t psn)
{
	uint64_t epoch = (r->qp->req_rx.rewind >> 32) + 1;

	r->qp->req_rx.rewind = epoch << 32 | psn;
	hca_msg_send(r->h, HCA_STAGE_REQ_RX, HCA_STAGE_REQ_TX, RIG_QPI, HCA_MSG_REWIND);
}

/* ---- segmentation ---- */

static void
test_boundaries(void **state)
{
	static const struct {
		uint32_t len, packets;
	} c[] = {{0, 1},	   {1, 1},	     {RIG_MTU - 1, 1},	  {RIG_MTU, 1},
		 {RIG_MTU + 1, 2}, {3 * RIG_MTU, 3}, {3 * RIG_MTU + 1, 4}};
	static const uint8_t op[][4] = {
		{HCA_BTH_RC_WRITE_ONLY, HCA_BTH_RC_WRITE_FIRST, HCA_BTH_RC_WRITE_MIDDLE,
		 HCA_BTH_RC_WRITE_LAST},
		{HCA_BTH_RC_SEND_ONLY_IMM, HCA_BTH_RC_SEND_FIRST, HCA_BTH_RC_SEND_MIDDLE,
		 HCA_BTH_RC_SEND_LAST_IMM},
	};
	struct rig *r = *state;
	uint32_t psn = RIG_PSN;

	for (unsigned int k = 0; k < 2 * RTE_DIM(c); k++) {
		uint32_t len = c[k / 2].len, n = c[k / 2].packets;

		rig_post(r, k & 1 ? HCA_OP_SEND_IMM : WRITE, len, HCA_REC_SOLICITED);
		assert_int_equal(rig_send(r, 1), n);
		for (uint32_t i = 0; i < n; i++) {
			const struct hca_txd *d = &r->txd[i];
			bool last = i + 1 == n;

			assert_int_equal(d->psn, psn);
			assert_int_equal(d->opcode, op[k & 1][n == 1   ? 0
							      : i == 0 ? 1
							      : last   ? 3
								       : 2]);
			assert_int_equal(d->len, last ? len - i * RIG_MTU : RIG_MTU);
			assert_int_equal(d->off, i * RIG_MTU);
			assert_int_equal(d->nsge, len != 0);
			if (len != 0) {
				assert_int_equal(d->va, RIG_VA + i * RIG_MTU);
				assert_int_equal(d->key, RIG_KEY);
			}
			assert_int_equal(d->reth.dma_len, len);
			assert_int_equal(d->reth.raddr, RIG_RADDR);
			assert_int_equal(d->imm, 0x11223344);
			assert_int_equal(!!(d->flags & HCA_TXD_LAST_OF_RECORD), last);
			assert_int_equal(!!(d->flags & HCA_TXD_SOLICITED), last && (k & 1));
			assert_int_equal(ackreq(r, i), last);
			psn = (psn + 1) & HCA_PSN_MASK;
		}
		assert_int_equal(r->qp->req_tx.max_psn, psn);
		assert_int_equal(r->qp->req_tx.next_psn, psn);
	}
}

/*
 * Only the PSNs count: 2^31 - 1 bytes at MTU 256 are 2^23 of them, the most that may be
 * outstanding.
 */
static void
test_largest_read(void **state)
{
	struct rig *r = *state;
	struct hca_record *rec = rig_post(r, HCA_OP_RDMA_READ, 0x7fffffff, 0);

	rig_post(r, WRITE, 1, 0);
	assert_int_equal(rig_send(r, 3), 1);
	assert_int_equal(rec->npsn, 1u << 23);
	assert_int_equal(r->qp->req_tx.max_psn, (RIG_PSN + (1u << 23)) & HCA_PSN_MASK);
	/* room for one as soon as one PSN is acknowledged */
	set_una(r, 0, rig_psn(1));
	assert_int_equal(rig_send(r, 3), 1);
	assert_int_equal(r->txd[0].opcode, HCA_BTH_RC_WRITE_ONLY);
	assert_int_equal(r->txd[0].psn, rig_psn(1u << 23));
}

/* A READ that does not fit after the outstanding PSNs is sent alone. */
static void
test_large_read_waits(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 1, 0);
	rig_post(r, HCA_OP_RDMA_READ, 0x7fffffff, 0);
	assert_int_equal(rig_send(r, 3), 1);
	assert_true(ackreq(r, 0));
	set_una(r, 1, rig_psn(1));
	assert_int_equal(rig_send(r, 3), 1);
	assert_int_equal(r->txd[0].opcode, HCA_BTH_RC_READ_REQ);
}

static void
test_gather_list_and_inline(void **state)
{
	struct rig *r = *state;
	struct hca_record_full *f;

	rig_post_full(r, WRITE, RIG_MTU + 5, 0, 3);
	f = rig_post_full(r, HCA_OP_SEND, 40, HCA_REC_INLINE, 0);
	rig_post_full(r, HCA_OP_SEND, 8, 0, 1);
	assert_int_equal(rig_send(r, 1), 4);
	assert_int_equal(r->txd[0].nsge, 3);
	assert_int_equal(r->txd[1].nsge, 3);
	assert_int_equal(r->txd[1].off, RIG_MTU);
	assert_int_equal(r->txd[1].len, 5);
	assert_ptr_equal(hca_record(r->h, r->txd[2].rec), &f->r);
	assert_true(r->txd[2].flags & HCA_TXD_INLINE);
	assert_int_equal(r->txd[2].len, 40);
	assert_int_equal(r->txd[3].va, RIG_VA);
	assert_int_equal(r->txd[3].nsge, 1);
}

static void
test_atomic(void **state)
{
	struct rig *r = *state;
	struct hca_record_full *f = rig_post_full(r, HCA_OP_ATOMIC_CS, 8, 0, 1);

	rig_post_full(r, HCA_OP_ATOMIC_FA, 8, 0, 1);
	assert_int_equal(rig_send(r, 1), 2);
	assert_int_equal(r->txd[0].opcode, HCA_BTH_RC_CMP_SWAP);
	assert_int_equal(r->txd[1].opcode, HCA_BTH_RC_FETCH_ADD);
	assert_ptr_equal(hca_record(r->h, r->txd[0].rec), &f->r);
	assert_int_equal(r->txd[0].len, 0);
	assert_int_equal(r->txd[0].reth.rkey, RIG_RKEY);
	assert_int_equal(r->qp->req_tx.max_psn, rig_psn(2));
}

/* ---- AckReq ---- */

static void
test_ack_every(void **state)
{
	struct rig *r = *state;

	r->h->cfg.ack_every = 4;
	for (unsigned int i = 0; i < 10; i++)
		rig_post(r, WRITE, 8, 0);
	assert_int_equal(rig_send(r, 1), 10);
	for (unsigned int i = 0; i < 10; i++)
		assert_int_equal(ackreq(r, i), i % 4 == 3 || i == 9);
}

static void
test_ack_at_half_window(void **state)
{
	struct rig *r = *state;

	r->h->cfg.ack_every = 1000;
	for (unsigned int i = 0; i < RIG_WINDOW; i++)
		rig_post(r, WRITE, 8, 0);
	assert_int_equal(rig_send(r, 4), RIG_WINDOW);
	for (unsigned int i = 0; i < RIG_WINDOW; i++)
		assert_int_equal(ackreq(r, i), i == RIG_WINDOW / 2 - 1 || i == RIG_WINDOW - 1);
}

/* A turn ends before a request that must wait: no later packet of the turn would request an ACK. */
static void
test_ack_before_wait(void **state)
{
	struct rig *r = *state;

	r->h->cfg.ack_every = 1000;
	for (unsigned int i = 0; i < 8; i++)
		rig_post(r, WRITE, 8, 0);
	rig_post(r, WRITE, 8, HCA_REC_FENCE);
	hca_req_tx_poll(r->h, r->now, 8);
	assert_int_equal(rig_send(r, 0), 8);
	assert_true(ackreq(r, 7));
	assert_false(ackreq(r, 6));
}

/* A turn ends before a request that sends nothing. */
static void
test_ack_before_local(void **state)
{
	struct rig *r = *state;

	r->h->cfg.ack_every = 1000;
	for (unsigned int i = 0; i < 8; i++)
		rig_post(r, WRITE, 8, 0);
	rig_post(r, HCA_OP_LOCAL_INV, 0, HCA_REC_LOCAL);
	hca_req_tx_poll(r->h, r->now, 8);
	assert_int_equal(rig_send(r, 0), 8);
	assert_true(ackreq(r, 7));
	assert_false(ackreq(r, 6));
}

/* A turn ends before requests that could be sent, and then they are not. */
static void
ask_again(struct rig *r, void (*until)(struct rig *r))
{
	r->h->cfg.ack_every = 1000;
	for (unsigned int i = 0; i < 10; i++)
		rig_post(r, WRITE, 2 * RIG_MTU, 0);
	hca_req_tx_poll(r->h, r->now, 8);
	assert_int_equal(rig_send(r, 0), 8);
	assert_false(ackreq(r, 7));
	until(r);
	assert_int_equal(rig_send(r, 3), 1);
	assert_int_equal(r->txd[0].psn, rig_psn(7));
	assert_int_equal(r->txd[0].opcode, HCA_BTH_RC_WRITE_LAST);
	assert_true(ackreq(r, 0));
	assert_true(r->txd[0].flags & HCA_TXD_REPEAT);
	assert_int_equal(RIG_COUNTER(r, REQ_TX, again_ask), 1);
	assert_int_equal(rig_send(r, 3), 0);
}

static void
begin_sqd(struct rig *r)
{
	r->qp->cfg.state = HCA_QPS_SQD;
	r->qp->cfg.draining = r->qp->cfg.sqd_notify = 1;
	hca_msg_send(r->h, HCA_STAGE_CEU, HCA_STAGE_REQ_TX, RIG_QPI, HCA_MSG_STATE);
}

static void
turn_bad(struct rig *r)
{
	hca_record(r->h, r->qp->req_tx.window[4])->op = HCA_OP_NOP;
}

static void
test_ask_in_sqd(void **state)
{
	ask_again(*state, begin_sqd);
}

static void
test_ask_before_bad(void **state)
{
	ask_again(*state, turn_bad);
}

/* ---- parking ---- */

static void
test_fence(void **state)
{
	struct rig *r = *state;

	rig_post(r, HCA_OP_RDMA_READ, 8, 0);
	rig_post(r, WRITE, 8, 0);
	rig_post(r, WRITE, 8, HCA_REC_FENCE);
	assert_int_equal(rig_send(r, 3), 2);
	assert_true(ackreq(r, 1));
	r->qp->req_rx.rd_done = 1;
	set_una(r, 1, rig_psn(1));
	assert_int_equal(rig_send(r, 3), 1);
}

static void
test_rd_atomic_limit(void **state)
{
	struct rig *r = *state;

	for (unsigned int i = 0; i < 6; i++)
		rig_post(r, HCA_OP_RDMA_READ, 8, 0);
	assert_int_equal(rig_send(r, 3), 4);
	r->qp->req_rx.rd_done = 1;
	set_una(r, 1, rig_psn(1));
	assert_int_equal(rig_send(r, 3), 1);
	assert_int_equal(r->txd[0].psn, rig_psn(4));
	assert_int_equal(((struct hca_req_tx_ctx *)r->h->stage_ctx[HCA_STAGE_REQ_TX])->count, 0);
}

static void
test_no_credit(void **state)
{
	struct rig *r = *state;
	struct rte_mbuf *hog[255];

	for (unsigned int i = 0; i < 8; i++)
		rig_post(r, WRITE, 8, 0);
	r->fx->edge[HCA_EDGE_REQ_TX_ENCAP].room = 3;
	assert_int_equal(rig_send(r, 1), 3);
	r->fx->edge[HCA_EDGE_REQ_TX_ENCAP].room = FX_OBJECTS;
	assert_int_equal(rte_pktmbuf_alloc_bulk(r->h->tx_pool, hog, 253), 0);
	assert_int_equal(rig_send(r, 1), 2);
	assert_int_equal(r->txd[0].psn, rig_psn(3));
	assert_int_equal(rte_pktmbuf_alloc_bulk(r->h->tx_pool, &hog[253], 2), 0);
	assert_int_equal(rig_send(r, 1), 0);
	assert_true(RIG_COUNTER(r, REQ_TX, req_no_mbuf) > 0);
	rte_pktmbuf_free_bulk(hog, 255);
	assert_int_equal(rig_send(r, 1), 3);
	assert_int_equal(r->txd[2].psn, rig_psn(7));
}

static void
test_sqd(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 40 * RIG_MTU, 0);
	rig_post(r, WRITE, 8, 0);
	assert_int_equal(rig_send(r, 1), 32);
	r->qp->cfg.state = HCA_QPS_SQD;
	r->qp->cfg.draining = r->qp->cfg.sqd_notify = 1;
	hca_msg_send(r->h, HCA_STAGE_CEU, HCA_STAGE_REQ_TX, RIG_QPI, HCA_MSG_STATE);
	/* a message that has begun continues, one that has not waits */
	assert_int_equal(rig_send(r, 3), 8);
	assert_true(ackreq(r, 7));
	assert_int_equal(r->fx->events, 0);
	set_una(r, 1, rig_psn(40));
	assert_int_equal(rig_send(r, 3), 0);
	assert_int_equal(r->fx->events, 1);
	assert_int_equal(r->fx->event[0].type, HCA_EVENT_SQ_DRAINED);
	rig_send(r, 1);
	set_una(r, 1, rig_psn(40));
	rig_send(r, 1);
	assert_int_equal(r->fx->events, 1);
	r->qp->cfg.state = HCA_QPS_RTS;
	hca_msg_send(r->h, HCA_STAGE_CEU, HCA_STAGE_REQ_TX, RIG_QPI, HCA_MSG_STATE);
	assert_int_equal(rig_send(r, 3), 1);
}

/* ---- rewinds ---- */

static void
test_rewind_in_write(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 8, 0);
	rig_post(r, WRITE, 5 * RIG_MTU, 0);
	rig_post(r, HCA_OP_SEND, 8, 0);
	assert_int_equal(rig_send(r, 1), 7);
	set_una(r, 1, rig_psn(3));
	rewind_to(r, rig_psn(3));
	assert_int_equal(rig_send(r, 1), 4);
	assert_int_equal(r->txd[0].psn, rig_psn(3));
	assert_int_equal(r->txd[0].opcode, HCA_BTH_RC_WRITE_MIDDLE);
	assert_int_equal(r->txd[0].off, 2 * RIG_MTU);
	assert_int_equal(r->txd[0].va, RIG_VA + 2 * RIG_MTU);
	assert_int_equal(r->txd[3].opcode, HCA_BTH_RC_SEND_ONLY);
	assert_true(ackreq(r, 3));
	assert_int_equal(r->qp->req_tx.max_psn, rig_psn(7));
	assert_int_equal(RIG_COUNTER(r, REQ_TX, retransmissions), 4);
	assert_int_equal(RIG_COUNTER(r, REQ_TX, req_packets), 11);
	assert_int_equal(RIG_COUNTER(r, REQ_TX, req_rewinds), 1);
}

static void
test_rewind_in_read(void **state)
{
	struct rig *r = *state;

	rig_post(r, HCA_OP_RDMA_READ, 10 * RIG_MTU + 1, 0);
	rig_post(r, WRITE, 8, 0);
	assert_int_equal(rig_send(r, 1), 2);
	assert_int_equal(r->txd[1].psn, rig_psn(11));
	set_una(r, 0, rig_psn(4));
	rewind_to(r, rig_psn(4));
	assert_int_equal(rig_send(r, 1), 2);
	assert_int_equal(r->txd[0].opcode, HCA_BTH_RC_READ_REQ);
	assert_int_equal(r->txd[0].psn, rig_psn(4));
	assert_int_equal(r->txd[0].reth.raddr, RIG_RADDR + 4 * RIG_MTU);
	assert_int_equal(r->txd[0].reth.dma_len, 6 * RIG_MTU + 1);
	assert_int_equal(r->txd[1].psn, rig_psn(11));
}

/* Old packets are acknowledged before the rewind is executed, or during it. */
static void
test_release_overtakes(void **state)
{
	struct rig *r = *state;

	for (unsigned int i = 0; i < 4; i++)
		rig_post(r, WRITE, 2 * RIG_MTU, 0);
	assert_int_equal(rig_send(r, 1), 8);
	rewind_to(r, rig_psn(0));
	hca_req_tx_poll(r->h, r->now, 1);
	set_una(r, 2, rig_psn(5));
	assert_int_equal(rig_send(r, 1), 4);
	assert_int_equal(r->txd[0].psn, rig_psn(0));
	assert_int_equal(r->txd[1].psn, rig_psn(5));
	assert_int_equal(r->txd[1].opcode, HCA_BTH_RC_WRITE_LAST);
	/*
	 * A rewind to a released PSN starts at the oldest unreleased one; if all are released it
	 * does nothing.
	 */
	set_una(r, 4, rig_psn(8));
	rewind_to(r, rig_psn(2));
	assert_int_equal(rig_send(r, 2), 0);
	assert_int_equal(r->qp->sq_next, 4);
	rig_post(r, WRITE, 8, 0);
	assert_int_equal(rig_send(r, 1), 1);
	assert_int_equal(r->txd[0].psn, rig_psn(8));
}

static void
test_hold(void **state)
{
	struct rig *r = *state;

	rig_post(r, HCA_OP_SEND, 8, 0);
	rig_send(r, 1);
	r->qp->req_rx.flags |= HCA_REQ_RX_HOLD;
	hca_msg_send(r->h, HCA_STAGE_REQ_RX, HCA_STAGE_REQ_TX, RIG_QPI, HCA_MSG_HOLD);
	rig_post(r, HCA_OP_SEND, 8, 0);
	assert_int_equal(rig_send(r, 3), 0);
	r->qp->req_rx.flags &= ~HCA_REQ_RX_HOLD;
	rewind_to(r, rig_psn(0));
	assert_int_equal(rig_send(r, 3), 2);
	assert_int_equal(r->txd[0].psn, rig_psn(0));
}

/* ---- errors ---- */

static void
test_bad_record(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 8, 0);
	rig_post(r, WRITE, 8, 0)->syndrome = HCA_SYND_LOCAL_LENGTH;
	rig_post(r, WRITE, 8, 0);
	assert_int_equal(rig_send(r, 3), 1);
	assert_true(ackreq(r, 0));
	assert_int_equal(r->qp->req_tx.bad, 1);
	assert_int_equal(fx_take_msgs(r->fx, HCA_STAGE_REQ_TX, HCA_STAGE_REQ_RX, RIG_QPI) &
				 HCA_MSG_BAD,
			 HCA_MSG_BAD);
	/* the earlier one may still be lost */
	rewind_to(r, rig_psn(0));
	assert_int_equal(rig_send(r, 3), 1);
}

static void
test_unknown_op(void **state)
{
	static const uint8_t op[] = {HCA_OP_NOP, HCA_OP_BIND_MW, 0x1f, 0x40, 0xff};
	struct rig *r = *state;
	struct hca_record *rec = rig_post(r, WRITE, 8, 0);

	for (unsigned int i = 0; i < RTE_DIM(op); i++) {
		rec->op = op[i];
		rec->syndrome = 0;
		hca_msg_send(r->h, HCA_STAGE_PARSER, HCA_STAGE_REQ_TX, RIG_QPI, HCA_MSG_NEW);
		assert_int_equal(rig_send(r, 1), 0);
		assert_int_equal(rec->syndrome, HCA_SYND_LOCAL_QP_OP);
	}
}

static void
test_gather_failed(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 8, 0);
	struct hca_record *bad = rig_post(r, WRITE, 3 * RIG_MTU, 0);
	rig_post(r, WRITE, 8, 0);
	assert_int_equal(rig_send(r, 1), 5);
	r->qp->encap.req_failed_psn = rig_psn(2);
	r->qp->encap.req_failed_syndrome = HCA_SYND_LOCAL_PROT;
	hca_msg_send(r->h, HCA_STAGE_ENCAP, HCA_STAGE_REQ_TX, RIG_QPI, HCA_MSG_FAILED);
	/* the packet with the request for an ACK may not have been sent */
	assert_int_equal(rig_send(r, 2), 1);
	assert_int_equal(r->txd[0].psn, rig_psn(0));
	assert_true(ackreq(r, 0));
	assert_int_equal(RIG_COUNTER(r, REQ_TX, again_ask), 1);
	assert_int_equal(bad->syndrome, HCA_SYND_LOCAL_PROT);
	assert_int_equal(r->qp->req_tx.bad, 1);
	rewind_to(r, rig_psn(0));
	assert_int_equal(rig_send(r, 2), 1);
	assert_int_equal(r->txd[0].psn, rig_psn(0));
	rig_post(r, WRITE, 8, 0);
	assert_int_equal(rig_send(r, 2), 0);
}

static void
test_flush_and_return(void **state)
{
	struct rig *r = *state;

	for (unsigned int i = 0; i < 3; i++)
		rig_post(r, WRITE, 8, 0);
	rig_post_full(r, WRITE, 8, 0, 2);
	hca_req_tx_poll(r->h, r->now, 2);
	r->qp->cfg.state = HCA_QPS_ERR;
	hca_msg_send(r->h, HCA_STAGE_EE, HCA_STAGE_REQ_TX, RIG_QPI, HCA_MSG_STATE);
	hca_req_tx_poll(r->h, r->now, 32);
	assert_int_equal(r->qp->sq_next, 4);
	assert_true(fx_take_msgs(r->fx, HCA_STAGE_REQ_TX, HCA_STAGE_REQ_RX, RIG_QPI) & HCA_MSG_BAD);
	/* req_rx is done, but encap has not finished the two descriptors: no record is freed yet */
	set_una(r, 4, rig_psn(2));
	hca_req_tx_poll(r->h, r->now, 32);
	assert_int_equal(r->qp->sq_freed, 0);
	assert_int_equal(hca_record_pool_in_use(&r->h->records[HCA_WIRE_ROCE].small), 3);
	assert_int_equal(rig_send(r, 0), 2);
	hca_msg_send(r->h, HCA_STAGE_ENCAP, HCA_STAGE_REQ_TX, RIG_QPI, HCA_MSG_COPIED);
	hca_req_tx_poll(r->h, r->now, 32);
	assert_int_equal(r->qp->sq_freed, 4);
	assert_int_equal(hca_record_pool_in_use(&r->h->records[HCA_WIRE_ROCE].small), 0);
	assert_int_equal(hca_record_pool_in_use(&r->h->records[HCA_WIRE_ROCE].full), 0);
	assert_true(fx_take_msgs(r->fx, HCA_STAGE_REQ_TX, HCA_STAGE_PARSER, RIG_QPI) &
		    HCA_MSG_FREED);
}

static void
test_purge(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 8, 0);
	rig_post_full(r, WRITE, 8, 0, 2);
	r->fx->edge[HCA_EDGE_REQ_TX_ENCAP].room = 1;
	rig_send(r, 1);
	assert_true(r->qp->req_tx.flags & HCA_REQ_TX_READY);
	r->qp->cfg.state = HCA_QPS_RST;
	r->h->purge_seq = 77;
	hca_msg_send(r->h, HCA_STAGE_CEU, HCA_STAGE_REQ_TX, RIG_QPI, HCA_MSG_PURGE);
	assert_int_equal(rig_send(r, 1), 0);
	assert_int_equal(r->h->line[HCA_STAGE_REQ_TX].purge_ack, 77);
	assert_int_equal(hca_record_pool_in_use(&r->h->records[HCA_WIRE_ROCE].small), 0);
	assert_int_equal(hca_record_pool_in_use(&r->h->records[HCA_WIRE_ROCE].full), 0);
	assert_int_equal(((struct hca_req_tx_ctx *)r->h->stage_ctx[HCA_STAGE_REQ_TX])->count, 0);
}

/* The timer is armed if it is not running. */
static void
test_arm(void **state)
{
	struct rig *r = *state;

	rig_post(r, WRITE, 8, 0);
	rig_send(r, 1);
	assert_true(fx_take_msgs(r->fx, HCA_STAGE_REQ_TX, HCA_STAGE_REQ_RX, RIG_QPI) & HCA_MSG_ARM);
	r->qp->req_rx.timer_armed = 1;
	rig_post(r, WRITE, 8, 0);
	rig_send(r, 1);
	assert_int_equal(fx_take_msgs(r->fx, HCA_STAGE_REQ_TX, HCA_STAGE_REQ_RX, RIG_QPI), 0);
	r->qp->req_rx.timer_armed = r->qp->cfg.ack_timeout = 0;
	rig_post(r, WRITE, 8, 0);
	rig_send(r, 1);
	assert_int_equal(fx_take_msgs(r->fx, HCA_STAGE_REQ_TX, HCA_STAGE_REQ_RX, RIG_QPI), 0);
}

/* Two QPs, one with long messages: both get their share of bytes. */
static void
test_fair(void **state)
{
	struct rig *r = *state;
	struct hca_qp *other = fx_qp(r->fx, 4, 1, 6, RIG_STRIDE_LOG, RIG_WINDOW);
	unsigned int mine = 0, packets;

	other->req_tx.mtu_log = RIG_MTU_LOG;
	rig_post(r, WRITE, 200 * RIG_MTU, 0);
	other->parser.window[0] = r->qp->parser.window[0] + 64;
	*hca_record(r->h, other->parser.window[0]) = *hca_record(r->h, r->qp->parser.window[0]);
	other->parser.head = 1;
	hca_msg_send(r->h, HCA_STAGE_PARSER, HCA_STAGE_REQ_TX, 4, HCA_MSG_NEW);
	for (unsigned int i = 0; i < 6; i++)
		hca_req_tx_poll(r->h, r->now, 32);
	packets = r->fx->edge[HCA_EDGE_REQ_TX_ENCAP].n;
	for (unsigned int i = 0; i < packets; i++) {
		struct rte_mbuf *m = r->fx->edge[HCA_EDGE_REQ_TX_ENCAP].obj[i];

		mine += hca_txd(m)->qpi == RIG_QPI;
		rte_pktmbuf_free(m);
	}
	r->fx->edge[HCA_EDGE_REQ_TX_ENCAP].n = 0;
	assert_int_equal(packets, 192);
	assert_in_range(mine, 80, 112);
}

/* The CEU owns the line until RTS: a late message of an earlier transition must not write to it. */
static void
test_not_before_rts(void **state)
{
	struct rig *r = *state;
	static const uint8_t states[] = {HCA_QPS_RST, HCA_QPS_INIT, HCA_QPS_RTR};

	for (unsigned int i = 0; i < sizeof(states); i++) {
		struct hca_qp_req_tx was;

		r->qp->cfg.state = states[i];
		r->qp->req_tx.flags |= HCA_REQ_TX_DRAINED;
		was = r->qp->req_tx;
		hca_msg_send(r->h, HCA_STAGE_CEU, HCA_STAGE_REQ_TX, RIG_QPI, HCA_MSG_STATE);
		assert_int_equal(rig_send(r, 2), 0);
		assert_memory_equal(&r->qp->req_tx, &was, sizeof(was));
	}
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		T(test_boundaries),
		T(test_largest_read),
		T(test_large_read_waits),
		T(test_gather_list_and_inline),
		T(test_atomic),
		T(test_ack_every),
		T(test_ack_at_half_window),
		T(test_ack_before_wait),
		T(test_ack_before_local),
		T(test_ask_in_sqd),
		T(test_ask_before_bad),
		T(test_fence),
		T(test_rd_atomic_limit),
		T(test_no_credit),
		T(test_sqd),
		T(test_not_before_rts),
		T(test_rewind_in_write),
		T(test_rewind_in_read),
		T(test_release_overtakes),
		T(test_hold),
		T(test_bad_record),
		T(test_unknown_op),
		T(test_gather_failed),
		T(test_flush_and_return),
		T(test_purge),
		T(test_arm),
		T(test_fair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
