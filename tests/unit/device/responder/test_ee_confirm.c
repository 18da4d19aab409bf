/* SPDX-License-Identifier: BSD-3-Clause */

/* Requests that a READ response without data answers: ATOMIC WRITE, FLUSH. */

#include "ee_rig.h"

#include <string.h>

#define GLOBAL HCA_FETH_MAKE(HCA_FETH_GLOBAL, HCA_FETH_RANGE)
#define OF_MR HCA_FETH_MAKE(HCA_FETH_GLOBAL, HCA_FETH_MR)
#define PERSISTENT HCA_FETH_MAKE(HCA_FETH_PERSISTENT, HCA_FETH_RANGE)
#define BOTH HCA_FETH_MAKE(HCA_FETH_GLOBAL | HCA_FETH_PERSISTENT, HCA_FETH_RANGE)

/* Its response is its acknowledgement, and that of the WRITE before it. */
static void
atomic_write(void **state)
{
	struct rig *r = *state;
	struct rig_packet p[3] = {rig_write(100, 0, 16, 1), rig_atomic_write(101, 8, 50),
				  rig_write(102, 16, 4, 9)};

	rig_burst(r, p, 2);
	assert_true(rig_holds(r, 0, 8, 1));
	assert_true(rig_holds(r, 8, 8, 50));
	rig_poll(r);
	assert_int_equal(rig_responses(r), 1);
	rig_expect_confirmed(r, 0, 101, 2);
	rig_forget_responses(r);
	rig_feed(r, p[2]);
	rig_expect_ack(r, RIG_ACK, 102);
	assert_int_equal(r->qp->ee.msn, 3);
	assert_int_equal(RIG_COUNTER(r, rx_atomic_writes), 1);
	assert_int_equal(r->qp->ee.new_jobs, 0);
}

/* A copy is answered again and stores nothing: another request may have written there since. */
static void
atomic_write_is_executed_once(void **state)
{
	struct rig *r = *state;

	rig_feed(r, rig_atomic_write(100, 8, 50));
	rig_feed(r, rig_write(101, 8, 8, 70));
	rig_forget_responses(r);
	for (unsigned int i = 0; i < 3; i++) {
		rig_feed(r, rig_atomic_write(100, 8, 50));
		assert_int_equal(rig_responses(r), 1);
		rig_expect_confirmed(r, 0, 100, 2);
		rig_forget_responses(r);
	}
	assert_true(rig_holds(r, 8, 8, 70));
	assert_int_equal(RIG_COUNTER(r, rx_atomic_writes), 1);
	assert_int_equal(RIG_COUNTER(r, resp_repeated), 3);
	/* an ACK of a copy of something before it does not name it */
	rig_feed(r, rig_atomic_write(102, 16, 1));
	rig_forget_responses(r);
	rig_feed(r, rig_write(101, 8, 8, 70));
	rig_expect_ack(r, RIG_ACK, 101);
	assert_true(rig_holds(r, 8, 8, 70));
}

/* Copies of another kind, and older than the places for answers. */
static void
copies_that_fit_nothing(void **state)
{
	struct rig *r = *state;
	uint32_t ring = r->qp->ee.job_mask + 1u;

	rig_feed(r, rig_atomic_write(100, 8, 50));
	rig_forget_responses(r);
	rig_feed(r, rig_add(100, 8, 1));
	rig_feed(r, rig_read(100, 8, 8));
	rig_expect_silence(r);
	for (uint32_t i = 1; i <= ring; i++)
		rig_feed(r, rig_atomic_write(100 + i, 16, 1));
	rig_forget_responses(r);
	rig_feed(r, rig_atomic_write(100, 8, 60));
	rig_expect_silence(r);
	assert_true(rig_holds(r, 8, 8, 50));
	assert_int_equal(RIG_COUNTER(r, resp_duplicate_dropped), 3);
}

/* Answers leave in the order of their requests, with those of READs and ATOMICs. */
static void
answers_in_order(void **state)
{
	struct rig *r = *state;
	struct rig_packet p[4] = {rig_read(100, 0, 600), rig_atomic_write(103, 8, 50),
				  rig_add(104, 16, 1), rig_atomic_write(105, 24, 60)};

	rig_burst(r, p, 4);
	rig_poll(r);
	assert_int_equal(rig_responses(r), 6);
	rig_expect_confirmed(r, 3, 103, 2);
	rig_expect_atomic(r, 4, 104, 0);
	rig_expect_confirmed(r, 5, 105, 4);
	rig_forget_responses(r);
	rig_expect_silence(r);
}

/* They take places as READs and ATOMICs do. */
static void
more_than_max_dest_rd_atomic(void **state)
{
	struct rig *r = *state;

	r->fx->edge[HCA_EDGE_EE_ENCAP].room = 0;
	for (unsigned int i = 0; i <= RIG_MAX_RD; i++)
		rig_feed(r, rig_atomic_write(100 + i, 8 * i, 1));
	assert_false(rig_holds(r, 8 * RIG_MAX_RD, 8, 1));
	r->fx->edge[HCA_EDGE_EE_ENCAP].room = 64;
	rig_poll(r);
	assert_int_equal(rig_responses(r), RIG_MAX_RD + 1);
	assert_int_equal(rig_response(r, RIG_MAX_RD)->syndrome,
			 HCA_NAK_SYNDROME(HCA_NAK_INVALID_REQ));
	assert_int_equal(rig_response(r, RIG_MAX_RD)->psn, 100 + RIG_MAX_RD);
}

/* What is stored before is stored when it is answered, one answer for all. */
static void
flush(void **state)
{
	struct rig *r = *state;
	struct rig_packet p[4] = {rig_write(100, 0, 64, 1), rig_atomic_write(101, 64, 5),
				  rig_flush(102, 0, 72, GLOBAL), rig_write(103, 0, 8, 90)};

	rig_burst(r, p, 4);
	rig_poll(r);
	assert_int_equal(rig_responses(r), 3);
	rig_expect_confirmed(r, 0, 101, 2);
	rig_expect_confirmed(r, 1, 102, 3);
	rig_forget_responses(r);
	assert_true(rig_holds(r, 8, 56, 9));
	assert_int_equal(r->qp->ee.msn, 4);
	assert_int_equal(r->qp->ee.epsn, 104);
	assert_int_equal(RIG_COUNTER(r, rx_flush_requests), 1);
	/* one PSN, however long the range; none of it; bits that mean nothing */
	rig_feed(r, rig_flush(104, 0, 8 * RIG_MTU, GLOBAL | 0xffffffc0));
	rig_feed(r, rig_flush(105, 8, 0, GLOBAL));
	rig_expect_confirmed(r, 0, 104, 5);
	rig_expect_confirmed(r, 1, 105, 6);
	rig_forget_responses(r);
	assert_int_equal(r->qp->ee.epsn, 106);
}

/* Of a region the address and the length mean nothing; of a key without a region it is refused. */
static void
flush_of_a_region(void **state)
{
	struct rig *r = *state;
	struct rig_packet p = rig_flush(100, 0, 12345678, OF_MR);

	p.va = 7;
	rig_feed(r, p);
	assert_int_equal(rig_responses(r), 1);
	rig_expect_confirmed(r, 0, 100, 1);
	rig_forget_responses(r);
	p.psn = 101;
	p.rkey = RIG_KEY_DEAD;
	rig_feed(r, p);
	rig_expect_fatal(r, HCA_NAK_REMOTE_ACCESS, 101, HCA_EVENT_WQ_ACCESS);
}

static void
flush_again(void **state)
{
	struct rig *r = *state;
	struct rig_packet p = rig_flush(100, 0, 8, GLOBAL);

	rig_feed(r, p);
	rig_feed(r, rig_write(101, 0, 8, 1));
	rig_forget_responses(r);
	/* the region may be gone meanwhile */
	r->h->vtp.mpt[HCA_KEY_INDEX(RIG_KEY_ALL)].state = HCA_MPT_DYING;
	rig_feed(r, p);
	assert_int_equal(rig_responses(r), 1);
	rig_expect_confirmed(r, 0, 100, 2);
	assert_int_equal(RIG_COUNTER(r, rx_flush_requests), 1);
	assert_int_equal(r->qp->cfg.state, HCA_QPS_RTS);
}

/* One that finds no place is dropped as if it were lost; a QP without places refuses it. */
static void
flush_without_a_place(void **state)
{
	struct rig *r = *state;

	r->fx->edge[HCA_EDGE_EE_ENCAP].room = 0;
	for (unsigned int i = 0; i <= RIG_MAX_RD; i++)
		rig_feed(r, rig_flush(100 + i, 0, 8, GLOBAL));
	rig_feed(r, rig_flush(101 + RIG_MAX_RD, 0, 8, GLOBAL));
	assert_int_equal(RIG_COUNTER(r, resp_flush_dropped), 1);
	r->fx->edge[HCA_EDGE_EE_ENCAP].room = 64;
	rig_poll(r);
	assert_int_equal(rig_responses(r), RIG_MAX_RD + 1);
	assert_int_equal(rig_response(r, RIG_MAX_RD)->syndrome, HCA_NAK_SYNDROME(HCA_NAK_PSN_SEQ));
	assert_int_equal(rig_response(r, RIG_MAX_RD)->psn, 100 + RIG_MAX_RD);
	rig_forget_responses(r);
	rig_feed(r, rig_flush(100 + RIG_MAX_RD, 0, 8, GLOBAL));
	rig_expect_confirmed(r, 0, 100 + RIG_MAX_RD, RIG_MAX_RD + 1);
	rig_forget_responses(r);
	r->qp->cfg.max_dest_rd_atomic = 0;
	rig_feed(r, rig_flush(101 + RIG_MAX_RD, 0, 8, GLOBAL));
	rig_expect_fatal(r, HCA_NAK_INVALID_REQ, 101 + RIG_MAX_RD, HCA_EVENT_WQ_INVAL_REQ);
}

static void
refused(struct rig_packet p, uint8_t nak, uint8_t event)
{
	struct rig *r;

	rig_setup((void **)&r);
	rig_feed(r, p);
	rig_expect_fatal(r, nak, 100, event);
	assert_int_equal(RIG_COUNTER(r, rx_atomic_writes), 0);
	assert_int_equal(RIG_COUNTER(r, rx_flush_requests), 0);
	rig_teardown((void **)&r);
}

static void
bad_atomic_writes(void **state)
{
	static const struct {
		int va, len, dma_len;
		uint32_t rkey;
		uint8_t nak, event;
	} bad[] = {
		{4, 8, 8, RIG_KEY_ALL, HCA_NAK_INVALID_REQ, HCA_EVENT_WQ_INVAL_REQ},
		{1, 8, 8, RIG_KEY_ALL, HCA_NAK_INVALID_REQ, HCA_EVENT_WQ_INVAL_REQ},
		{0, 4, 4, RIG_KEY_ALL, HCA_NAK_INVALID_REQ, HCA_EVENT_WQ_INVAL_REQ},
		{0, 8, 16, RIG_KEY_ALL, HCA_NAK_INVALID_REQ, HCA_EVENT_WQ_INVAL_REQ},
		{0, 16, 16, RIG_KEY_ALL, HCA_NAK_INVALID_REQ, HCA_EVENT_WQ_INVAL_REQ},
		{0, 0, 0, RIG_KEY_ALL, HCA_NAK_INVALID_REQ, HCA_EVENT_WQ_INVAL_REQ},
		{0, 8, 8, RIG_KEY_NONE, HCA_NAK_REMOTE_ACCESS, HCA_EVENT_WQ_ACCESS},
		{0, 8, 8, RIG_KEY_FOREIGN, HCA_NAK_REMOTE_ACCESS, HCA_EVENT_WQ_ACCESS},
		{0, 8, 8, RIG_KEY_STALE, HCA_NAK_REMOTE_ACCESS, HCA_EVENT_WQ_ACCESS},
		{0, 8, 8, RIG_KEY_ODD, HCA_NAK_REMOTE_ACCESS, HCA_EVENT_WQ_ACCESS},
		{RIG_LEN, 8, 8, RIG_KEY_ALL, HCA_NAK_REMOTE_ACCESS, HCA_EVENT_WQ_ACCESS},
		{-8, 8, 8, RIG_KEY_ALL, HCA_NAK_REMOTE_ACCESS, HCA_EVENT_WQ_ACCESS},
	};

	for (unsigned int i = 0; i < RTE_DIM(bad); i++) {
		struct rig_packet p = rig_atomic_write(100, 0, 1);

		p.va += (uint64_t)(int64_t)bad[i].va;
		p.len = (uint32_t)bad[i].len;
		p.dma_len = (uint32_t)bad[i].dma_len;
		p.rkey = bad[i].rkey;
		refused(p, bad[i].nak, bad[i].event);
	}
}

static void
bad_flushes(void **state)
{
	static const struct {
		uint32_t len, feth, rkey;
		uint8_t nak, event;
	} bad[] = {
		/* placement types: none, unknown ones; selectivity */
		{8, 0, RIG_KEY_ALL, HCA_NAK_INVALID_REQ, HCA_EVENT_WQ_INVAL_REQ},
		{8, 4, RIG_KEY_ALL, HCA_NAK_INVALID_REQ, HCA_EVENT_WQ_INVAL_REQ},
		{8, 9, RIG_KEY_ALL, HCA_NAK_INVALID_REQ, HCA_EVENT_WQ_INVAL_REQ},
		{8, 0x21, RIG_KEY_ALL, HCA_NAK_INVALID_REQ, HCA_EVENT_WQ_INVAL_REQ},
		{8, 0x31, RIG_KEY_ALL, HCA_NAK_INVALID_REQ, HCA_EVENT_WQ_INVAL_REQ},
		{0x80000001, GLOBAL, RIG_KEY_ALL, HCA_NAK_INVALID_REQ, HCA_EVENT_WQ_INVAL_REQ},
		/* no memory is persistent */
		{8, PERSISTENT, RIG_KEY_ALL, HCA_NAK_REMOTE_ACCESS, HCA_EVENT_WQ_ACCESS},
		{8, BOTH, RIG_KEY_ALL, HCA_NAK_REMOTE_ACCESS, HCA_EVENT_WQ_ACCESS},
		{RIG_LEN + 1, GLOBAL, RIG_KEY_ALL, HCA_NAK_REMOTE_ACCESS, HCA_EVENT_WQ_ACCESS},
		{8, GLOBAL, RIG_KEY_NONE, HCA_NAK_REMOTE_ACCESS, HCA_EVENT_WQ_ACCESS},
		{0, GLOBAL, RIG_KEY_NONE, HCA_NAK_REMOTE_ACCESS, HCA_EVENT_WQ_ACCESS},
		{8, OF_MR, RIG_KEY_NONE, HCA_NAK_REMOTE_ACCESS, HCA_EVENT_WQ_ACCESS},
		{8, GLOBAL, RIG_KEY_FOREIGN, HCA_NAK_REMOTE_ACCESS, HCA_EVENT_WQ_ACCESS},
		{8, OF_MR, RIG_KEY_FOREIGN, HCA_NAK_REMOTE_ACCESS, HCA_EVENT_WQ_ACCESS},
		{8, OF_MR, RIG_KEY_STALE, HCA_NAK_REMOTE_ACCESS, HCA_EVENT_WQ_ACCESS},
	};

	for (unsigned int i = 0; i < RTE_DIM(bad); i++) {
		struct rig_packet p = rig_flush(100, 0, bad[i].len, bad[i].feth);

		p.rkey = bad[i].rkey;
		refused(p, bad[i].nak, bad[i].event);
	}
}

/* The QP must grant each placement type. */
static void
flush_rights_of_the_qp(void **state)
{
	static const struct {
		uint32_t granted, feth;
		uint8_t nak;
	} row[] = {
		{0, GLOBAL, HCA_NAK_INVALID_REQ},
		{HCA_FETH_PERSISTENT, GLOBAL, HCA_NAK_INVALID_REQ},
		{HCA_FETH_GLOBAL, PERSISTENT, HCA_NAK_INVALID_REQ},
		{HCA_FETH_GLOBAL, BOTH, HCA_NAK_INVALID_REQ},
		{HCA_FETH_GLOBAL | HCA_FETH_PERSISTENT, BOTH, HCA_NAK_REMOTE_ACCESS},
	};

	for (unsigned int i = 0; i < RTE_DIM(row); i++) {
		bool invalid = row[i].nak == HCA_NAK_INVALID_REQ;
		struct rig *r;

		rig_setup((void **)&r);
		r->qp->cfg.access =
			(uint8_t)((r->qp->cfg.access & 0xf) | HCA_QP_RIGHT_FLUSH(row[i].granted));
		rig_feed(r, rig_flush(100, 0, 8, row[i].feth));
		rig_expect_fatal(r, row[i].nak, 100,
				 invalid ? HCA_EVENT_WQ_INVAL_REQ : HCA_EVENT_WQ_ACCESS);
		rig_teardown((void **)&r);
	}
}

/* Within a message of several packets. */
static void
inside_a_message(void **state)
{
	struct rig *r = *state;
	struct rig_packet p = rig_write(100, 0, RIG_MTU, 1);

	p.opcode = HCA_BTH_RC_WRITE_FIRST;
	p.dma_len = RIG_MTU + 8;
	rig_feed(r, p);
	rig_forget_responses(r);
	rig_feed(r, rig_atomic_write(101, 8, 50));
	rig_expect_fatal(r, HCA_NAK_INVALID_REQ, 101, HCA_EVENT_WQ_INVAL_REQ);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		TEST(atomic_write),
		TEST(atomic_write_is_executed_once),
		TEST(copies_that_fit_nothing),
		TEST(answers_in_order),
		TEST(more_than_max_dest_rd_atomic),
		TEST(flush),
		TEST(flush_of_a_region),
		TEST(flush_again),
		TEST(flush_without_a_place),
		cmocka_unit_test(bad_atomic_writes),
		cmocka_unit_test(bad_flushes),
		cmocka_unit_test(flush_rights_of_the_qp),
		TEST(inside_a_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
