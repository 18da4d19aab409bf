/* SPDX-License-Identifier: BSD-3-Clause */

/* SEND and WRITE with immediate: receive WQEs, SGEs, completions, RNR, flush. */

#include "ee_rig.h"

#include <string.h>

static void
expect_receive(struct rig *r, unsigned int i, uint8_t opcode, uint32_t bytes, uint32_t wqe)
{
	const struct hca_cqe *c = &r->cqe[i];

	assert_true(i < r->cqes);
	assert_int_equal(c->my_qpn, fx_qpn(RIG_QPI));
	assert_int_equal(c->srqn, 0);
	assert_int_equal(c->rqpn, 0x1234);
	assert_int_equal(c->flags, 0);
	assert_int_equal(c->byte_cnt, bytes);
	assert_int_equal(c->wqe, wqe << RIG_STRIDE_LOG);
	assert_int_equal(c->opcode, opcode);
	assert_int_equal(c->is_send, 0);
	assert_int_equal(c->owner, HCA_OWNER_SW);
}

static void
expect_error(struct rig *r, unsigned int i, uint8_t syndrome, uint32_t wqe)
{
	const struct hca_cqe_err *c = (const void *)&r->cqe[i];

	assert_true(i < r->cqes);
	assert_int_equal(c->my_qpn, fx_qpn(RIG_QPI));
	assert_int_equal(c->syndrome, syndrome);
	assert_int_equal(c->opcode, HCA_CQE_OP_ERR_RECV);
	assert_int_equal(c->is_send, 0);
	assert_int_equal(c->wqe, wqe << RIG_STRIDE_LOG);
}

static void
send_fills_a_receive(void **state)
{
	struct rig *r = *state;

	rig_post_one(r, 64, 100);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 90, 3));
	assert_true(rig_holds(r, 64, 90, 3));
	assert_int_equal(r->mem[64 + 90], 0);
	expect_receive(r, 0, HCA_BTH_RC_SEND_ONLY, 90, 0);
	assert_false(r->solicited);
	assert_int_equal(r->qp->ee.msn, 1);
	rig_expect_ack(r, RIG_ACK, 100);
}

static void
send_with_immediate_and_solicited_event(void **state)
{
	struct rig *r = *state;
	struct rig_packet p = rig_send(HCA_BTH_RC_SEND_ONLY_IMM, 100, 5, 3);

	p.imm = 0x11223344;
	p.flags |= HCA_RXD_SOLICITED;
	rig_post_one(r, 64, 5);
	rig_feed(r, p);
	expect_receive(r, 0, HCA_BTH_RC_SEND_ONLY_IMM, 5, 0);
	assert_int_equal(r->cqe[0].imm, 0x11223344);
	assert_true(r->solicited);
	assert_true(rig_holds(r, 64, 5, 3));
}

static void
empty_send_takes_a_receive_without_sges(void **state)
{
	struct rig *r = *state;

	rig_post(r, NULL, 0);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 0, 0));
	expect_receive(r, 0, HCA_BTH_RC_SEND_ONLY, 0, 0);
	rig_expect_ack(r, RIG_ACK, 100);
}

/* Packets begin and end inside SGEs, some SGEs are empty, and each key covers only its SGE. */
static void
send_over_many_sges(void **state)
{
	static const uint16_t len[] = {1, 0, 255, 256, 3, 0, 250, 7, 1000};
	struct hca_sge sge[RTE_DIM(len)];
	struct rig *r = *state;
	uint32_t off = 0;

	for (unsigned int i = 0; i < RTE_DIM(len); i++) {
		sge[i] = (struct hca_sge){RIG_VA + off + 16 * i, RIG_KEY_ALL, len[i]};
		if (len[i] == 0)
			sge[i].lkey = RIG_KEY_DEAD; /* not accessed, so not checked */
		off += len[i];
	}
	rig_post(r, sge, RTE_DIM(len));
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_FIRST, 100, 256, 0));
	/* the WQE was copied, so the owner may overwrite it */
	memset(r->qp->ee.rq.base, 0xff, 512);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_MIDDLE, 101, 256, 0));
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_MIDDLE, 102, 256, 0));
	assert_int_equal(r->cqes, 0);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_LAST, 103, 9, 0));
	expect_receive(r, 0, HCA_BTH_RC_SEND_LAST, 777, 0);
	off = 0;
	for (unsigned int i = 0; i < RTE_DIM(len); i++) {
		uint32_t n = RTE_MIN(len[i], 777 - off);

		assert_true(rig_holds(r, (uint32_t)(sge[i].va - RIG_VA), n, (uint8_t)off));
		off += n;
	}
	assert_int_equal(r->mem[sge[8].va - RIG_VA + 5], 0);
	assert_int_equal(r->qp->ee.msn, 1);
}

static void
sixteen_sges_at_most(void **state)
{
	struct hca_sge sge[20];
	struct rig *r = *state;

	for (unsigned int i = 0; i < 20; i++)
		sge[i] = (struct hca_sge){RIG_VA + 32 * i, RIG_KEY_ALL, 4};
	rig_post(r, sge, 20);
	rig_post(r, sge, 20);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 64, 0));
	expect_receive(r, 0, HCA_BTH_RC_SEND_ONLY, 64, 0);
	rig_forget_responses(r);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 101, 65, 0));
	rig_expect_ack(r, HCA_NAK_SYNDROME(HCA_NAK_INVALID_REQ), 101);
	expect_error(r, 1, HCA_SYND_LOCAL_LENGTH, 1);
}

static void
receives_go_round_the_queue(void **state)
{
	struct rig *r = *state;

	r->record->producer = UINT32_MAX - 2;
	r->qp->ee.rq_consumed = r->qp->ee.rq_producer = UINT32_MAX - 2;
	for (unsigned int i = 0; i < 20; i++) {
		rig_post_one(r, 16 * i, 16);
		rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100 + i, 16, (uint8_t)i));
		assert_true(rig_holds(r, 16 * i, 16, (uint8_t)i));
		expect_receive(r, i, HCA_BTH_RC_SEND_ONLY, 16, (UINT32_MAX - 2 + i) & 7);
	}
}

static void
write_with_immediate_takes_a_receive(void **state)
{
	struct rig *r = *state;
	struct rig_packet p[2] = {rig_write(100, 0, 256, 0), rig_write(101, 0, 44, 0)};

	p[0].opcode = HCA_BTH_RC_WRITE_FIRST;
	p[0].dma_len = 300;
	p[1].opcode = HCA_BTH_RC_WRITE_LAST_IMM;
	p[1].imm = 0xa1b2c3d4;
	rig_post_one(r, 8192, 1);
	rig_burst(r, p, 2);
	rig_poll(r);
	assert_true(rig_holds(r, 0, 300, 0));
	assert_int_equal(r->mem[8192], 0);
	expect_receive(r, 0, HCA_BTH_RC_WRITE_LAST_IMM, 300, 0);
	assert_int_equal(r->cqe[0].imm, 0xa1b2c3d4);
	rig_expect_ack(r, RIG_ACK, 101);

	p[0] = rig_write(102, 512, 10, 7);
	p[0].opcode = HCA_BTH_RC_WRITE_ONLY_IMM;
	p[0].imm = 9;
	rig_post(r, NULL, 0);
	rig_feed(r, p[0]);
	assert_true(rig_holds(r, 512, 10, 7));
	expect_receive(r, 1, HCA_BTH_RC_WRITE_ONLY_IMM, 10, 1);
	assert_int_equal(r->cqe[1].imm, 9);
}

static void
no_receive_is_rnr_until_one_is_posted(void **state)
{
	struct rig *r = *state;

	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 10, 1));
	rig_expect_ack(r, HCA_RNR_SYNDROME(12), 100);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 101, 10, 2)); /* the next one gets no NAK */
	rig_feed(r, rig_write(102, 0, 10, 2));
	rig_expect_silence(r);
	assert_int_equal(r->mem[0], 0);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 10, 1)); /* again too early */
	rig_expect_ack(r, HCA_RNR_SYNDROME(12), 100);
	rig_post_one(r, 64, 10);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 10, 1));
	rig_expect_ack(r, RIG_ACK, 100);
	assert_true(rig_holds(r, 64, 10, 1));
	rig_feed(r, rig_write(101, 0, 10, 2));
	rig_expect_ack(r, RIG_ACK, 101);
	assert_int_equal(RIG_COUNTER(r, rnr_nak_sent), 2);
	assert_int_equal(RIG_COUNTER(r, out_of_buffer), 2);
	assert_int_equal(r->qp->cfg.state, HCA_QPS_RTS);
}

/*
 * A receive is posted while the RNR NAK is still pending: the packets dropped after the SEND are
 * requested again.
 */
static void
rnr_that_ends_leaves_a_gap(void **state)
{
	struct rig *r = *state;
	struct rig_packet p[2] = {rig_send(HCA_BTH_RC_SEND_ONLY, 100, 10, 1),
				  rig_send(HCA_BTH_RC_SEND_ONLY, 101, 10, 2)};

	p[0].flags = 0;
	rig_burst(r, p, 2);
	rig_post_one(r, 64, 10);
	rig_burst(r, p, 1);
	rig_poll(r);
	rig_expect_ack(r, HCA_NAK_SYNDROME(HCA_NAK_PSN_SEQ), 101);
	assert_int_equal(RIG_COUNTER(r, rnr_nak_sent), 0);
	assert_int_equal(RIG_COUNTER(r, seq_nak_sent), 1);
}

/* The message stays open: only its last packet is repeated. */
static void
write_with_immediate_waits_at_its_last_packet(void **state)
{
	struct rig *r = *state;
	struct rig_packet first = rig_write(100, 0, 256, 0), last = rig_write(101, 0, 44, 0);

	first.opcode = HCA_BTH_RC_WRITE_FIRST;
	first.dma_len = 300;
	last.opcode = HCA_BTH_RC_WRITE_LAST_IMM;
	rig_feed(r, first);
	rig_forget_responses(r);
	rig_feed(r, last);
	rig_expect_ack(r, HCA_RNR_SYNDROME(12), 101);
	assert_false(rig_holds(r, 256, 44, 0));
	rig_post(r, NULL, 0);
	rig_feed(r, last);
	rig_expect_ack(r, RIG_ACK, 101);
	assert_true(rig_holds(r, 0, 300, 0));
	expect_receive(r, 0, HCA_BTH_RC_WRITE_LAST_IMM, 300, 0);
}

static void
send_longer_than_the_receive(void **state)
{
	struct rig *r = *state;

	rig_post_one(r, 0, 9);
	rig_post_one(r, 64, 9);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 10, 1));
	assert_int_equal(r->mem[0], 0);
	expect_error(r, 0, HCA_SYND_LOCAL_LENGTH, 0);
	rig_expect_fatal(r, HCA_NAK_INVALID_REQ, 100, 0);
	expect_error(r, 1, HCA_SYND_WR_FLUSH, 1);
	assert_int_equal(r->cqes, 2);
	assert_int_equal(r->record->notify, 1);
	assert_int_equal(RIG_COUNTER(r, resp_local_length_error), 1);
}

static void
send_grows_longer_than_the_receive(void **state)
{
	struct rig *r = *state;

	rig_post_one(r, 0, 260);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_FIRST, 100, 256, 1));
	rig_forget_responses(r);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_LAST, 101, 5, 1));
	expect_error(r, 0, HCA_SYND_LOCAL_LENGTH, 0);
	rig_expect_fatal(r, HCA_NAK_INVALID_REQ, 101, 0);
	assert_int_equal(r->cqes, 1);
}

/* The first SGE is valid, but nothing is written to it either. */
static void
receive_sge_that_fails_its_key(void **state)
{
	static const uint32_t key[] = {RIG_KEY_NONE, RIG_KEY_FOREIGN, RIG_KEY_DEAD, 0};

	for (unsigned int i = 0; i < RTE_DIM(key); i++) {
		struct hca_sge sge[2] = {{RIG_VA, RIG_KEY_ALL, 8}, {RIG_VA + 64, key[i], 8}};
		struct rig *r;

		rig_setup((void **)&r);
		rig_post(r, sge, 2);
		rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 16, 1));
		assert_int_equal(r->mem[0], 0);
		expect_error(r, 0, HCA_SYND_LOCAL_PROT, 0);
		rig_expect_fatal(r, HCA_NAK_REMOTE_OP, 100, 0);
		assert_int_equal(r->qp->ee.msn, 0);
		rig_teardown((void **)&r);
	}
}

static void
malformed_receive(void **state)
{
	struct rig *r = *state;
	struct hca_sge sge = {RIG_VA, RIG_KEY_ALL, HCA_INLINE_FLAG | 8};

	rig_post(r, &sge, 1);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 8, 1));
	expect_error(r, 0, HCA_SYND_LOCAL_QP_OP, 0);
	rig_expect_fatal(r, HCA_NAK_REMOTE_OP, 100, 0);
}

static void
producer_that_lies(void **state)
{
	struct rig *r = *state;

	r->record->producer = (1u << RIG_RQ_LOG) + 1;
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 8, 1));
	assert_true(rig_event(r, HCA_EVENT_WQ_CATAS));
	rig_expect_fatal(r, HCA_NAK_REMOTE_OP, 100, HCA_EVENT_WQ_CATAS);
	assert_int_equal(r->cqes, 0);
	assert_int_equal(r->qp->ee.rq_consumed, 0);
}

static void
full_cq_loses_the_completion_only(void **state)
{
	struct rig *r = *state;

	r->cq_full = true;
	rig_post_one(r, 0, 16);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 16, 1));
	rig_expect_ack(r, RIG_ACK, 100);
	assert_true(rig_holds(r, 0, 16, 1));
	assert_int_equal(RIG_COUNTER(r, resp_cqe_error), 0);
	assert_int_equal(r->qp->ee.rq_consumed, 1);
}

static void
go_to_error(struct rig *r)
{
	r->qp->cfg.state = HCA_QPS_ERR;
	hca_msg_send(r->h, HCA_STAGE_CEU, HCA_STAGE_EE, RIG_QPI, HCA_MSG_STATE);
	rig_poll(r);
}

/* The receive of the unfinished SEND is flushed first. */
static void
error_flushes_in_order_and_kick_flushes_more(void **state)
{
	struct rig *r = *state;

	for (unsigned int i = 0; i < 5; i++)
		rig_post_one(r, 512 * i, 512);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 10, 1));
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_FIRST, 101, 256, 1));
	rig_forget_responses(r);
	go_to_error(r);
	assert_int_equal(r->record->notify, 1);
	assert_int_equal(r->cqes, 5);
	for (unsigned int i = 1; i < 5; i++)
		expect_error(r, i, HCA_SYND_WR_FLUSH, i);
	assert_true(r->solicited);

	rig_post_one(r, 0, 16);
	rig_post_one(r, 0, 16);
	rig_poll(r);
	assert_int_equal(r->cqes, 5);
	hca_msg_send(r->h, HCA_STAGE_DOORBELL, HCA_STAGE_EE, RIG_QPI, HCA_MSG_KICK);
	rig_poll(r);
	assert_int_equal(r->cqes, 7);
	expect_error(r, 6, HCA_SYND_WR_FLUSH, 6);
	assert_int_equal(RIG_COUNTER(r, resp_cqe_flush_error), 6);
	rig_expect_silence(r);
}

static void
kick_of_a_live_qp_is_ignored(void **state)
{
	struct rig *r = *state;

	rig_post_one(r, 0, 16);
	hca_msg_send(r->h, HCA_STAGE_DOORBELL, HCA_STAGE_EE, RIG_QPI, HCA_MSG_KICK);
	rig_poll(r);
	assert_int_equal(r->cqes, 0);
	assert_int_equal(r->record->notify, 0);
}

/* The owner changes a WQE between two packets, or its length after the check: the copy is used. */
static void
receive_is_read_once(void **state)
{
	struct rig *r = *state;
	struct hca_data_unit *unit = (void *)(r->qp->ee.rq.base + HCA_WQE_UNIT);

	rig_post_one(r, 0, 300);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_FIRST, 100, 256, 1));
	unit->byte_cnt = hca_cpu_to_le32(4096);
	unit->addr = hca_cpu_to_le64(RIG_VA + 8192);
	r->record->producer = 0;
	rig_forget_responses(r);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_LAST, 101, 44, 1));
	assert_true(rig_holds(r, 0, 256, 1));
	assert_true(rig_holds(r, 256, 44, 1));
	assert_int_equal(r->mem[8192], 0);
	expect_receive(r, 0, HCA_BTH_RC_SEND_LAST, 300, 0);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		TEST(send_fills_a_receive),
		TEST(send_with_immediate_and_solicited_event),
		TEST(empty_send_takes_a_receive_without_sges),
		TEST(send_over_many_sges),
		TEST(sixteen_sges_at_most),
		TEST(receives_go_round_the_queue),
		TEST(write_with_immediate_takes_a_receive),
		TEST(no_receive_is_rnr_until_one_is_posted),
		TEST(rnr_that_ends_leaves_a_gap),
		TEST(write_with_immediate_waits_at_its_last_packet),
		TEST(send_longer_than_the_receive),
		TEST(send_grows_longer_than_the_receive),
		cmocka_unit_test(receive_sge_that_fails_its_key),
		TEST(malformed_receive),
		TEST(producer_that_lies),
		TEST(full_cq_loses_the_completion_only),
		TEST(error_flushes_in_order_and_kick_flushes_more),
		TEST(kick_of_a_live_qp_is_ignored),
		TEST(receive_is_read_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
