/* SPDX-License-Identifier: BSD-3-Clause */

/* The responder of UC: gaps, consequences of a lost packet, and no responses at all. */

#include "ee_rig.h"

#include <string.h>

#define RQPN 0x1234u

static int
setup(void **state)
{
	rig_setup(state);
	rig_service(*state, HCA_ST_UC);
	return 0;
}

/* Asserts that nothing was sent and the QP still receives. */
static void
alive(struct rig *r)
{
	rig_expect_silence(r);
	assert_int_equal(r->qp->cfg.state, HCA_QPS_RTS);
	assert_int_equal(r->fx->events, 0);
}

static struct rig_packet
uc_send(uint8_t opcode, uint32_t psn, uint32_t len, uint8_t seed)
{
	return rig_send(opcode, psn, len, seed);
}

static struct rig_packet
uc_write(uint8_t opcode, uint32_t psn, uint32_t off, uint32_t len, uint32_t dma_len)
{
	struct rig_packet p = rig_write(psn, off, len, (uint8_t)psn);

	p.opcode = opcode;
	p.dma_len = dma_len;
	return p;
}

static void
received(struct rig *r, unsigned int i, uint8_t opcode, uint32_t bytes, uint32_t wqe)
{
	const struct hca_cqe *c = &r->cqe[i];

	assert_int_equal(r->cqes, i + 1);
	assert_int_equal(c->my_qpn, fx_qpn(RIG_QPI));
	assert_int_equal(c->rqpn, RQPN);
	assert_int_equal(c->srqn, 0);
	assert_int_equal(c->flags, 0);
	assert_int_equal(c->opcode, opcode);
	assert_int_equal(c->byte_cnt, bytes);
	assert_int_equal(c->wqe, wqe << RIG_STRIDE_LOG);
}

static void
send_of_one_packet(void **state)
{
	struct rig *r = *state;
	struct rig_packet p = uc_send(HCA_BTH_UC_SEND_ONLY_IMM, 100, 90, 3);

	p.imm = 0x11223344;
	p.flags |= HCA_RXD_SOLICITED;
	rig_post_one(r, 64, 100);
	rig_feed(r, p);
	assert_true(rig_holds(r, 64, 90, 3));
	received(r, 0, HCA_BTH_UC_SEND_ONLY_IMM, 90, 0);
	assert_int_equal(r->cqe[0].imm, 0x11223344);
	assert_true(r->solicited);
	assert_int_equal(r->qp->ee.epsn, 101);
	alive(r);
}

static void
send_of_many_packets(void **state)
{
	struct rig *r = *state;

	rig_post_one(r, 0, 1000);
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_FIRST, 100, 256, 0));
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_MIDDLE, 101, 256, 0));
	assert_int_equal(r->cqes, 0);
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_LAST, 102, 100, 0));
	assert_true(rig_holds(r, 0, 612, 0));
	received(r, 0, HCA_BTH_UC_SEND_LAST, 612, 0);
	alive(r);
}

static void
writes(void **state)
{
	struct rig *r = *state;
	struct rig_packet last = uc_write(HCA_BTH_UC_WRITE_LAST_IMM, 103, 0, 10, 0);

	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_ONLY, 100, 8, 200, 200));
	assert_true(rig_holds(r, 8, 200, 100));
	assert_int_equal(r->cqes, 0);
	last.imm = 0x55667788;
	rig_post_one(r, 5000, 1);
	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_FIRST, 101, 300, 256, 522));
	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_MIDDLE, 102, 0, 256, 0));
	assert_int_equal(r->cqes, 0);
	rig_feed(r, last);
	assert_true(rig_holds(r, 300, 256, 101));
	assert_true(rig_holds(r, 556, 256, 102));
	assert_true(rig_holds(r, 812, 10, 103));
	received(r, 0, HCA_BTH_UC_WRITE_LAST_IMM, 522, 0);
	assert_int_equal(r->cqe[0].imm, 0x55667788);
	assert_int_equal(r->qp->ee.msn, 2);
	alive(r);
}

/* The receive of the lost message is used by the next one, from its start. */
static void
middle_lost(void **state)
{
	struct rig *r = *state;

	rig_post_one(r, 0, 1000);
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_FIRST, 100, 256, 1));
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_LAST, 102, 50, 1));
	assert_int_equal(r->cqes, 0);
	assert_int_equal(RIG_COUNTER(r, out_of_sequence), 1);
	assert_int_equal(RIG_COUNTER(r, resp_uc_dropped), 1);
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_ONLY, 103, 60, 77));
	assert_true(rig_holds(r, 0, 60, 77));
	received(r, 0, HCA_BTH_UC_SEND_ONLY, 60, 0);
	assert_int_equal(RIG_COUNTER(r, out_of_sequence), 1);
	assert_int_equal(RIG_COUNTER(r, resp_uc_dropped), 1);
	alive(r);
}

static void
first_lost(void **state)
{
	struct rig *r = *state;

	rig_post_one(r, 0, 1000);
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_MIDDLE, 101, 256, 1));
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_LAST, 102, 50, 1));
	assert_int_equal(r->cqes, 0);
	assert_int_equal(RIG_COUNTER(r, out_of_sequence), 1);
	assert_int_equal(RIG_COUNTER(r, resp_uc_dropped), 2);
	assert_int_equal(r->mem[0], 0);
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_FIRST, 103, 256, 9));
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_LAST, 104, 1, 9));
	received(r, 0, HCA_BTH_UC_SEND_LAST, 257, 0);
	alive(r);
}

/* LAST, and everything that follows up to a FIRST of any PSN. */
static void
last_lost(void **state)
{
	struct rig *r = *state;

	rig_post_one(r, 0, 1000);
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_FIRST, 100, 256, 1));
	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_FIRST, 700, 4096, 256, 300));
	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_LAST, 701, 0, 44, 0));
	assert_true(rig_holds(r, 4096 + 256, 44, (uint8_t)701));
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_ONLY, 702, 10, 33));
	received(r, 0, HCA_BTH_UC_SEND_ONLY, 10, 0);
	assert_true(rig_holds(r, 0, 10, 33));
	assert_int_equal(RIG_COUNTER(r, out_of_sequence), 1);
	assert_int_equal(RIG_COUNTER(r, resp_uc_dropped), 0);
	alive(r);
}

/*
 * Without a gap: a message that begins ends the previous one; one that continues needs its own
 * beginning.
 */
static void
wrong_sequence(void **state)
{
	struct rig *r = *state;

	rig_post_one(r, 0, 1000);
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_FIRST, 100, 256, 1));
	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_MIDDLE, 101, 0, 256, 0));
	assert_int_equal(RIG_COUNTER(r, resp_uc_dropped), 1);
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_LAST, 102, 5, 1));
	assert_int_equal(RIG_COUNTER(r, resp_uc_dropped), 2);
	assert_int_equal(r->cqes, 0);
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_FIRST, 103, 256, 1));
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_ONLY, 104, 7, 44));
	received(r, 0, HCA_BTH_UC_SEND_ONLY, 7, 0);
	assert_int_equal(RIG_COUNTER(r, out_of_sequence), 0);
	alive(r);
}

/* A message that begins is executed, even if it arrives twice or late. */
static void
repeated_and_late(void **state)
{
	struct rig *r = *state;

	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_ONLY, 100, 0, 16, 16));
	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_ONLY, 103, 16, 16, 16));
	memset(r->mem, 0, 32);
	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_ONLY, 100, 0, 16, 16));
	assert_int_equal(r->qp->ee.epsn, 101);
	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_ONLY, 102, 16, 16, 16));
	assert_true(rig_holds(r, 0, 16, 100));
	assert_true(rig_holds(r, 16, 16, 102));
	assert_int_equal(RIG_COUNTER(r, duplicate_request), 0);
	assert_int_equal(RIG_COUNTER(r, out_of_sequence), 3);
	assert_int_equal(RIG_COUNTER(r, resp_uc_dropped), 0);
	assert_int_equal(r->qp->ee.epsn, 103);
	alive(r);
}

/* A peer that restarts at a slightly lower PSN is accepted; a message's FIRST may arrive twice. */
static void
begun_again(void **state)
{
	struct rig *r = *state;

	rig_post_one(r, 0, 1000);
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_FIRST, 100, 256, 1));
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_MIDDLE, 101, 256, 1));
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_FIRST, 50, 256, 2));
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_FIRST, 50, 256, 2));
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_LAST, 51, 44, 2));
	received(r, 0, HCA_BTH_UC_SEND_LAST, 300, 0);
	assert_true(rig_holds(r, 0, 300, 2));
	alive(r);
}

/* MIDDLE and LAST continue only at the expected PSN, and only their own message. */
static void
late_parts(void **state)
{
	struct rig *r = *state;

	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_FIRST, 100, 0, 256, 768));
	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_MIDDLE, 99, 0, 256, 0));
	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_LAST, 100, 0, 256, 0));
	assert_int_equal(RIG_COUNTER(r, duplicate_request), 2);
	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_MIDDLE, 101, 0, 256, 0));
	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_LAST, 102, 0, 256, 0));
	assert_int_equal(RIG_COUNTER(r, resp_uc_dropped), 2);
	assert_int_equal(r->mem[256], 0);
	assert_int_equal(r->mem[512], 0);
	alive(r);
}

/* Ends with different initial PSNs synchronize, whichever is ahead. */
static void
any_first_psn(void **state)
{
	static const uint32_t first[] = {101, 0x7fffff, 0x800100, 0xffe000, 5000, 0xfff000};
	struct rig *r = *state;

	for (unsigned int i = 0; i < RTE_DIM(first); i++) {
		r->qp->ee.epsn = 100;
		memset(r->mem, 0, 16);
		rig_feed(r, uc_write(HCA_BTH_UC_WRITE_ONLY, first[i], 0, 16, 16));
		assert_true(rig_holds(r, 0, 16, (uint8_t)first[i]));
		assert_int_equal(r->qp->ee.epsn, first[i] + 1);
	}
	alive(r);
}

/* An error in a well-formed request affects that message only. */
static void
bad_requests(void **state)
{
	struct rig *r = *state;
	struct rig_packet p[] = {
		uc_write(HCA_BTH_UC_WRITE_ONLY, 0, 0, 16, 16),	  /* key */
		uc_write(HCA_BTH_UC_WRITE_ONLY, 0, 0, 16, 16),	  /* range */
		uc_write(HCA_BTH_UC_WRITE_ONLY, 0, 0, 16, 17),	  /* length */
		uc_write(HCA_BTH_UC_WRITE_FIRST, 0, 0, 255, 300), /* FIRST below the MTU */
		/* no bytes left for LAST */
		uc_write(HCA_BTH_UC_WRITE_FIRST, 0, 0, 256, 256),
		uc_send(HCA_BTH_UC_SEND_ONLY, 0, 257, 0), /* above the MTU */
		/* LAST without a message */
		uc_send(HCA_BTH_UC_SEND_LAST, 0, 0, 0),
		uc_write(HCA_BTH_UC_WRITE_ONLY, 0, 0, 16, 1u << 31 | 1), /* 2 GiB and one byte */
	};

	p[0].rkey = RIG_KEY_NONE;
	p[1].va = RIG_VA + RIG_LEN - 15;
	rig_post_one(r, 0, 1000);
	for (unsigned int i = 0; i < RTE_DIM(p); i++) {
		p[i].psn = 100 + i;
		rig_feed(r, p[i]);
		assert_int_equal(RIG_COUNTER(r, resp_uc_dropped), i + 1);
		assert_int_equal(r->qp->ee.epsn, 101 + i);
		alive(r);
	}
	assert_int_equal(r->cqes, 0);
	for (unsigned int i = 0; i < RIG_LEN; i++)
		assert_int_equal(r->mem[i], 0);
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_ONLY, 100 + RTE_DIM(p), 10, 5));
	received(r, 0, HCA_BTH_UC_SEND_ONLY, 10, 0);
}

/*
 * Without the right to WRITE the QP drops the message, and also a WRITE that fails in the middle.
 */
static void
rights(void **state)
{
	struct rig *r = *state;

	r->qp->cfg.access = HCA_ACCESS_REMOTE_READ;
	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_ONLY, 100, 0, 16, 16));
	assert_int_equal(RIG_COUNTER(r, resp_uc_dropped), 1);
	assert_int_equal(r->mem[0], 0);
	r->qp->cfg.access = HCA_ACCESS_REMOTE_WRITE;
	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_FIRST, 101, 0, 256, 600));
	r->h->vtp.mpt[HCA_KEY_INDEX(RIG_KEY_ALL)].state = HCA_MPT_DYING;
	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_MIDDLE, 102, 0, 256, 0));
	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_LAST, 103, 0, 88, 0));
	assert_int_equal(r->mem[256], 0);
	assert_int_equal(RIG_COUNTER(r, resp_uc_dropped), 3);
	alive(r);
}

/* Without a receive a SEND is lost, and so is a WRITE with immediate, at its end. */
static void
no_receive(void **state)
{
	struct rig *r = *state;

	rig_feed(r, uc_send(HCA_BTH_UC_SEND_ONLY, 100, 10, 1));
	assert_int_equal(RIG_COUNTER(r, out_of_buffer), 1);
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_FIRST, 101, 256, 1));
	rig_post_one(r, 0, 1000);
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_LAST, 102, 10, 1));
	assert_int_equal(r->cqes, 0);
	assert_int_equal(RIG_COUNTER(r, out_of_buffer), 2);
	assert_int_equal(RIG_COUNTER(r, resp_uc_dropped), 1); /* LAST of an abandoned message */
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_ONLY, 103, 20, 2));
	received(r, 0, HCA_BTH_UC_SEND_ONLY, 20, 0);
	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_ONLY_IMM, 104, 0, 16, 16));
	assert_int_equal(r->cqes, 1);
	assert_int_equal(RIG_COUNTER(r, out_of_buffer), 3);
	assert_int_equal(RIG_COUNTER(r, rnr_nak_sent), 0);
	alive(r);
}

/* A receive too short for the message: dropped, and the receive remains. */
static void
too_long(void **state)
{
	struct rig *r = *state;

	rig_post_one(r, 0, 300);
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_FIRST, 100, 256, 1));
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_LAST, 101, 45, 1));
	assert_int_equal(r->cqes, 0);
	assert_int_equal(RIG_COUNTER(r, resp_uc_dropped), 1);
	alive(r);
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_ONLY, 102, 44, 1));
	received(r, 0, HCA_BTH_UC_SEND_ONLY, 44, 0);
}

/* An invalid receive completes with an error, and the QP goes to ERR. */
static void
bad_receive(void **state)
{
	const struct hca_sge sge = {RIG_VA, RIG_KEY_NONE, 100};
	struct rig *r = *state;
	const struct hca_cqe_err *c = (const void *)&r->cqe[0];

	rig_post(r, &sge, 1);
	rig_post_one(r, 0, 100);
	rig_feed(r, uc_send(HCA_BTH_UC_SEND_ONLY, 100, 10, 1));
	assert_int_equal(r->qp->cfg.state, HCA_QPS_ERR);
	rig_poll(r);
	assert_int_equal(r->cqes, 2);
	assert_int_equal(c[0].opcode, HCA_CQE_OP_ERR_RECV);
	assert_int_equal(c[0].syndrome, HCA_SYND_LOCAL_PROT);
	assert_int_equal(c[1].syndrome, HCA_SYND_WR_FLUSH);
	assert_int_equal(RIG_COUNTER(r, resp_local_protection_error), 1);
	assert_int_equal(RIG_COUNTER(r, resp_uc_dropped), 1);
	rig_expect_silence(r);
}

static void
established(void **state)
{
	struct rig *r = *state;

	r->qp->cfg.state = HCA_QPS_RTR;
	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_ONLY, 100, 0, 16, 16));
	rig_feed(r, uc_write(HCA_BTH_UC_WRITE_ONLY, 101, 0, 16, 16));
	assert_int_equal(rig_events(r, HCA_EVENT_COMM_EST, RIG_QPI), 1);
	assert_int_equal(r->fx->events, 1);
	rig_expect_silence(r);
}

/* SQE concerns only the requester. */
static void
states(void **state)
{
	static const struct {
		uint32_t state;
		bool receives;
	} t[] = {{HCA_QPS_RST, false}, {HCA_QPS_INIT, false}, {HCA_QPS_RTS, true},
		 {HCA_QPS_SQE, true},  {HCA_QPS_SQD, true},   {HCA_QPS_ERR, false}};
	struct rig *r = *state;

	for (unsigned int i = 0; i < RTE_DIM(t); i++) {
		r->qp->cfg.state = t[i].state;
		memset(r->mem, 0, 16);
		rig_feed(r, uc_write(HCA_BTH_UC_WRITE_ONLY, r->qp->ee.epsn, 0, 16, 16));
		assert_int_equal(r->mem[1] != 0, t[i].receives);
		rig_expect_silence(r);
	}
	assert_int_equal(RIG_COUNTER(r, rx_qp_state), 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, rig_teardown)
		T(send_of_one_packet),
		T(send_of_many_packets),
		T(writes),
		T(middle_lost),
		T(first_lost),
		T(last_lost),
		T(wrong_sequence),
		T(repeated_and_late),
		T(begun_again),
		T(late_parts),
		T(any_first_psn),
		T(bad_requests),
		T(rights),
		T(no_receive),
		T(too_long),
		T(bad_receive),
		T(established),
		T(states),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
