/* SPDX-License-Identifier: BSD-3-Clause */

/* The responder of an XRC target: every request names an SRQ of its domain. */

#include "ee_rig.h"

#define A 1u
#define B 2u /* its keys belong to another PD */

static int
setup(void **state)
{
	struct rig *r;

	rig_setup(state);
	r = *state;
	rig_service(r, HCA_ST_XRC_TGT);
	rig_share_xrc(r, A, RIG_PD);
	rig_share_xrc(r, B, RIG_PD + 1);
	r->qp->cfg.rcqn = UINT32_MAX; /* it has none */
	r->qp->cfg.pd = RIG_PD + 7;   /* not used by XRC */
	return 0;
}

static struct rig_packet
to(unsigned int srq, struct rig_packet p)
{
	p.opcode |= HCA_TRANSPORT_XRC << 5;
	p.srqn = RIG_SRQN(srq);
	return p;
}

static void
received(struct rig *r, unsigned int i, unsigned int srq, uint8_t opcode, uint32_t bytes,
	 uint32_t wqe)
{
	const struct hca_cqe *c = &r->cqe[i];

	assert_true(i < r->cqes);
	assert_int_equal(r->cqi[i], RIG_XRC_CQ);
	assert_int_equal(c->my_qpn, fx_qpn(RIG_QPI));
	assert_int_equal(c->srqn, RIG_SRQN(srq));
	assert_int_equal(c->wqe, wqe);
	assert_int_equal(c->byte_cnt, bytes);
	assert_int_equal(c->opcode, opcode);
}

static void
sends_to_two(void **state)
{
	const struct hca_sge sge = {RIG_VA + 1000, RIG_KEY_FOREIGN, 100};
	struct rig *r = *state;
	uint32_t a = rig_srq_post_one(r, A, 0, 100), b = rig_srq_post(r, B, &sge, 1);

	rig_feed(r, to(A, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 16, 1)));
	rig_expect_ack(r, RIG_ACK, 100);
	rig_feed(r, to(B, rig_send(HCA_BTH_RC_SEND_ONLY, 101, 17, 2)));
	rig_expect_ack(r, RIG_ACK, 101);
	received(r, 0, A, HCA_BTH_XRC_SEND_ONLY, 16, a);
	received(r, 1, B, HCA_BTH_XRC_SEND_ONLY, 17, b);
	assert_true(rig_holds(r, 0, 16, 1));
	assert_true(rig_holds(r, 1000, 17, 2));
	assert_int_equal(r->qp->ee.msn, 2);
}

static void
immediates(void **state)
{
	struct rig *r = *state;
	struct rig_packet s = to(A, rig_send(HCA_BTH_RC_SEND_ONLY_IMM, 100, 16, 1));
	struct rig_packet w = to(A, rig_write(101, 500, 20, 3));
	uint32_t first = rig_srq_post_one(r, A, 0, 100), second = rig_srq_post_one(r, A, 0, 100);

	s.imm = 0x01020304;
	w.opcode = HCA_BTH_XRC_WRITE_ONLY_IMM;
	w.imm = 0x05060708;
	rig_feed(r, s);
	rig_feed(r, w);
	received(r, 0, A, HCA_BTH_XRC_SEND_ONLY_IMM, 16, first);
	received(r, 1, A, HCA_BTH_XRC_WRITE_ONLY_IMM, 20, second);
	assert_int_equal(r->cqe[0].imm, 0x01020304);
	assert_int_equal(r->cqe[1].imm, 0x05060708);
	assert_true(rig_holds(r, 500, 20, 3));
}

static void
several_packets(void **state)
{
	struct rig *r = *state;
	uint32_t at = rig_srq_post_one(r, A, 0, 1000);
	struct rig_packet w = to(A, rig_write(102, 2000, 256, 8));

	rig_srq_post_one(r, B, 5000, 1000);
	rig_feed(r, to(A, rig_send(HCA_BTH_RC_SEND_FIRST, 100, 256, 0)));
	rig_feed(r, to(A, rig_send(HCA_BTH_RC_SEND_LAST, 101, 44, 0)));
	assert_true(rig_holds(r, 0, 300, 0));
	received(r, 0, A, HCA_BTH_XRC_SEND_LAST, 300, at);
	w.opcode = HCA_BTH_XRC_WRITE_FIRST;
	w.dma_len = 300;
	rig_feed(r, w);
	rig_forget_responses(r);
	w = to(A, rig_write(103, 0, 44, 8));
	w.opcode = HCA_BTH_XRC_WRITE_LAST;
	rig_feed(r, w);
	assert_true(rig_holds(r, 2000, 256, 8));
	assert_true(rig_holds(r, 2256, 44, 8));
	rig_expect_ack(r, RIG_ACK, 103);
	assert_int_equal(r->cqes, 1);
}

/* Responses to READ and ATOMIC have opcodes of XRC, and keys belong to the SRQ's PD. */
static void
read_and_atomic(void **state)
{
	static const uint8_t op[] = {HCA_BTH_XRC_READ_RESP_FIRST, HCA_BTH_XRC_READ_RESP_LAST,
				     HCA_BTH_XRC_READ_RESP_ONLY, HCA_BTH_XRC_ATOMIC_ACK};
	struct rig *r = *state;
	struct rig_packet foreign = to(B, rig_read(102, 0, 10));

	foreign.rkey = RIG_KEY_FOREIGN;
	*(uint64_t *)(void *)(r->mem + 64) = 5;
	rig_feed(r, to(A, rig_read(100, 0, 300)));
	rig_feed(r, foreign);
	rig_feed(r, to(A, rig_add(103, 64, 7)));
	assert_int_equal(rig_responses(r), RTE_DIM(op));
	for (unsigned int i = 0; i < RTE_DIM(op); i++) {
		assert_int_equal(rig_response(r, i)->opcode, op[i]);
		assert_int_equal(rig_response(r, i)->psn, 100 + i);
	}
	assert_int_equal(rig_response(r, 0)->imm, RIG_PD);
	assert_int_equal(rig_response(r, 2)->imm, RIG_PD + 1);
	assert_int_equal(rig_response(r, 3)->resp.result, 5);
	assert_int_equal(*(uint64_t *)(void *)(r->mem + 64), 12);
	/* repeated: the same answer */
	rig_forget_responses(r);
	rig_feed(r, to(A, rig_add(103, 64, 7)));
	assert_int_equal(rig_response(r, 0)->opcode, HCA_BTH_XRC_ATOMIC_ACK);
	assert_int_equal(rig_response(r, 0)->resp.result, 5);
	assert_int_equal(*(uint64_t *)(void *)(r->mem + 64), 12);
}

/* A key of one PD cannot be used with an SRQ of another. */
static void
key_of_another_pd(void **state)
{
	struct rig *r = *state;

	rig_feed(r, to(B, rig_write(100, 0, 16, 1)));
	assert_int_equal(r->mem[0], 0);
	rig_expect_ack(r, HCA_NAK_SYNDROME(HCA_NAK_REMOTE_ACCESS), 100);
	assert_int_equal(r->qp->cfg.state, HCA_QPS_ERR);
}

static void
expect_srq_error(struct rig *r, struct rig_packet p)
{
	rig_feed(r, p);
	assert_int_equal(RIG_COUNTER(r, resp_xrc_srq_error), 1);
	rig_expect_ack(r, HCA_NAK_SYNDROME(HCA_NAK_INVALID_REQ), p.psn);
	assert_int_equal(r->qp->cfg.state, HCA_QPS_ERR);
	assert_int_equal(rig_events(r, HCA_EVENT_LAST_WQE, RIG_QPI), 0);
}

static void
no_such_srq(void **state)
{
	struct rig_packet p = to(A, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 16, 1));

	p.srqn ^= 0x100; /* right index, wrong tag */
	expect_srq_error(*state, p);
}

static void
no_srq(void **state)
{
	struct rig_packet p = to(A, rig_read(100, 0, 16));

	p.srqn = 0;
	expect_srq_error(*state, p);
}

static void
srq_of_another_domain(void **state)
{
	struct rig *r = *state;

	r->srq[A].s->xrcd ^= 1;
	rig_srq_post_one(r, A, 0, 16);
	expect_srq_error(r, to(A, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 16, 1)));
	assert_int_equal(r->srq[A].s->consumed, 0);
}

static void
srq_of_no_domain(void **state)
{
	struct rig *r = *state;

	r->srq[A].s->xrcd = 0;
	r->qp->addr.xrcd = 0;
	rig_srq_post_one(r, A, 0, 16);
	expect_srq_error(r, to(A, rig_write(100, 0, 16, 1)));
	assert_int_equal(r->mem[0], 0);
}

/* A message must not change its SRQ; the WQE it had is flushed. */
static void
changes_srq(void **state)
{
	struct rig *r = *state;
	uint32_t at = rig_srq_post_one(r, A, 0, 1000);

	rig_srq_post_one(r, B, 0, 1000);
	rig_feed(r, to(A, rig_send(HCA_BTH_RC_SEND_FIRST, 100, 256, 1)));
	rig_forget_responses(r);
	expect_srq_error(r, to(B, rig_send(HCA_BTH_RC_SEND_LAST, 101, 10, 1)));
	assert_int_equal(r->cqes, 1);
	assert_int_equal(r->cqi[0], RIG_XRC_CQ);
	assert_int_equal(r->cqe[0].opcode, HCA_CQE_OP_ERR_RECV);
	assert_int_equal(r->cqe[0].wqe, at);
	assert_int_equal(r->cqe[0].srqn, RIG_SRQN(A));
}

/* The SRQ is destroyed during a message: its CQ may not exist any more and gets nothing. */
static void
srq_goes_within_a_message(void **state)
{
	struct rig *r = *state;

	rig_srq_post_one(r, A, 0, 1000);
	rig_feed(r, to(A, rig_send(HCA_BTH_RC_SEND_FIRST, 100, 256, 1)));
	rig_forget_responses(r);
	r->srq[A].s->state = HCA_SRQ_DYING;
	expect_srq_error(r, to(A, rig_send(HCA_BTH_RC_SEND_LAST, 101, 10, 1)));
	assert_int_equal(r->cqes, 0);
}

/* The SRQ was destroyed, and another client's has its number: A's message must not use that one. */
static void
replace(struct rig *r, uint32_t xrcd)
{
	struct hca_srq *s = r->srq[A].s;

	s->generation++;
	s->pd = RIG_PD + 1;
	s->xrcd = HCA_SRQC_XRCD_VALID | xrcd;
	s->cqn = RIG_XRC_CQ + 1;
}

static void
begin_message(struct rig *r, uint32_t xrcd)
{
	rig_srq_post_one(r, A, 0, 1000);
	rig_srq_post_one(r, A, 0, 1000);
	rig_feed(r, to(A, rig_send(HCA_BTH_RC_SEND_FIRST, 100, 256, 1)));
	rig_forget_responses(r);
	replace(r, xrcd);
}

/* It takes no receive of the new SRQ, and neither its CQ nor the old one gets a completion. */
static void
srq_number_is_reused_within_a_message(void **state)
{
	struct rig *r = *state;

	begin_message(r, RIG_XRCD);
	expect_srq_error(r, to(A, rig_send(HCA_BTH_RC_SEND_LAST, 101, 10, 1)));
	assert_int_equal(r->cqes, 0);
	assert_int_equal(r->srq[A].s->consumed, 1);
	assert_false(rig_holds(r, 256, 10, 1));
}

/* The same if the QP ends: the WQE that its message holds is not flushed. */
static void
srq_number_is_reused_before_the_flush(void **state)
{
	static const uint32_t xrcd[] = {RIG_XRCD, RIG_XRCD + 1};

	for (unsigned int i = 0; i < RTE_DIM(xrcd); i++) {
		struct rig *r = *state;

		begin_message(r, xrcd[i]);
		r->qp->cfg.state = HCA_QPS_ERR;
		hca_msg_send(r->h, HCA_STAGE_CEU, HCA_STAGE_EE, RIG_QPI, HCA_MSG_STATE);
		rig_poll(r);
		assert_int_equal(r->cqes, 0);
		assert_int_equal(r->qp->ee.flags & EE_RECV_HELD, 0);
		rig_teardown(state);
		setup(state);
	}
}

/* Packets of a WRITE are judged by the SRQ that they name: the new one's PD, receives and CQ. */
static void
srq_number_is_reused_within_a_write(void **state)
{
	struct rig *r = *state;
	struct rig_packet w = to(A, rig_write(100, 0, 256, 8));

	w.opcode = HCA_BTH_XRC_WRITE_FIRST;
	w.dma_len = 300;
	rig_feed(r, w);
	rig_forget_responses(r);
	replace(r, RIG_XRCD);
	w = to(A, rig_write(101, 0, 44, 8));
	w.opcode = HCA_BTH_XRC_WRITE_LAST;
	rig_feed(r, w);
	rig_expect_ack(r, HCA_NAK_SYNDROME(HCA_NAK_REMOTE_ACCESS), 101);
	assert_false(rig_holds(r, 256, 44, 8));
}

/* A message that begins after it is the new SRQ's. */
static void
srq_number_is_reused_between_messages(void **state)
{
	const struct hca_sge sge = {RIG_VA, RIG_KEY_FOREIGN, 100};
	struct rig *r = *state;
	uint32_t at;

	rig_srq_post_one(r, A, 0, 100);
	rig_feed(r, to(A, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 16, 1)));
	replace(r, RIG_XRCD);
	at = rig_srq_post(r, A, &sge, 1);
	rig_feed(r, to(A, rig_send(HCA_BTH_RC_SEND_ONLY, 101, 16, 2)));
	assert_int_equal(r->cqes, 2);
	assert_int_equal(r->cqi[0], RIG_XRC_CQ);
	assert_int_equal(r->cqi[1], RIG_XRC_CQ + 1);
	assert_int_equal(r->cqe[1].wqe, at);
}

/* A READ that is repeated is judged by the SRQ as it is now. */
static void
srq_number_is_reused_before_a_repeat(void **state)
{
	struct rig *r = *state;

	rig_feed(r, to(A, rig_read(100, 0, 16)));
	assert_int_equal(rig_responses(r), 1);
	rig_forget_responses(r);
	replace(r, RIG_XRCD);
	rig_feed(r, to(A, rig_read(100, 0, 16)));
	assert_int_equal(rig_responses(r), 1);
	assert_int_not_equal(rig_response(r, 0)->opcode, HCA_BTH_XRC_READ_RESP_ONLY);
}

static void
empty(void **state)
{
	struct rig *r = *state;

	rig_feed(r, to(A, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 16, 1)));
	rig_expect_ack(r, HCA_RNR_SYNDROME(12), 100);
	rig_srq_post_one(r, A, 0, 16);
	rig_feed(r, to(A, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 16, 1)));
	assert_int_equal(r->cqes, 1);
}

/* The SRQ's owner made an error: the WQE completes with it, and the QP goes to ERR. */
static void
malformed_for_a_write(void **state)
{
	struct rig *r = *state;
	struct rig_packet w = to(A, rig_write(100, 500, 20, 3));
	uint32_t at = rig_srq_post_one(r, A, 0, 16);
	struct hca_data_unit *unit = (void *)(r->srq[A].s->q.base + at + HCA_WQE_UNIT);

	unit->byte_cnt = hca_cpu_to_le32(HCA_INLINE_FLAG | 16);
	w.opcode = HCA_BTH_XRC_WRITE_ONLY_IMM;
	rig_feed(r, w);
	rig_expect_ack(r, HCA_NAK_SYNDROME(HCA_NAK_REMOTE_OP), 100);
	assert_int_equal(r->cqes, 1);
	assert_int_equal(r->cqi[0], RIG_XRC_CQ);
	assert_int_equal(r->cqe[0].opcode, HCA_CQE_OP_ERR_RECV);
	assert_int_equal(r->cqe[0].srqn, RIG_SRQN(A));
	assert_int_equal(r->cqe[0].wqe, at);
}

static void
gap_and_duplicate(void **state)
{
	struct rig *r = *state;

	rig_feed(r, to(A, rig_write(101, 0, 16, 1)));
	rig_expect_ack(r, HCA_NAK_SYNDROME(HCA_NAK_PSN_SEQ), 100);
	rig_feed(r, to(A, rig_write(100, 0, 16, 1)));
	rig_expect_ack(r, RIG_ACK, 100);
	rig_feed(r, to(A, rig_write(100, 0, 16, 9)));
	rig_expect_ack(r, RIG_ACK, 100);
	assert_true(rig_holds(r, 0, 16, 1));
}

/* The key follows XRCETH. */
static void
invalidates_what_it_names(void **state)
{
	const uint32_t key = HCA_KEY_MAKE(0x21, 7, 5), region = HCA_KEY_INDEX(RIG_KEY_ALL);
	struct rig *r = *state;
	struct rig_packet p = to(A, rig_send(HCA_BTH_RC_SEND_ONLY_INV, 100, 16, 1));
	uint32_t at = rig_srq_post_one(r, A, 0, 16);

	r->h->vtp.mpt[region].windows++;
	r->h->vtp.mpt[7] = (struct hca_mpt_entry){
		.start = RIG_VA,
		.length = 64,
		.base = r->mem,
		.key = key,
		.pd = r->qp->cfg.pd,
		.state = HCA_MPT_BOUND,
		.flags = HCA_MPT_FLAG_WINDOW2 | HCA_ACCESS_REMOTE_WRITE,
		.qpn = r->qp->cfg.local_qpn,
		.generation = r->qp->cfg.generation,
		.parent = region,
	};
	p.imm = hca_cpu_to_be32(key);
	rig_feed(r, p);
	assert_int_equal(r->h->vtp.mpt[7].state, HCA_MPT_UNBOUND);
	assert_int_equal(RIG_COUNTER(r, resp_invalidations), 1);
	received(r, 0, A, HCA_BTH_XRC_SEND_ONLY_INV, 16, at);
	assert_int_equal(r->cqe[0].imm, hca_cpu_to_le32(key));
	rig_expect_ack(r, RIG_ACK, 100);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, rig_teardown)
		T(sends_to_two),
		T(immediates),
		T(several_packets),
		T(read_and_atomic),
		T(key_of_another_pd),
		T(no_such_srq),
		T(no_srq),
		T(srq_of_another_domain),
		T(srq_of_no_domain),
		T(changes_srq),
		T(srq_goes_within_a_message),
		T(srq_number_is_reused_within_a_message),
		T(srq_number_is_reused_before_the_flush),
		T(srq_number_is_reused_within_a_write),
		T(srq_number_is_reused_between_messages),
		T(srq_number_is_reused_before_a_repeat),
		T(empty),
		T(malformed_for_a_write),
		T(gap_and_duplicate),
		T(invalidates_what_it_names),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
