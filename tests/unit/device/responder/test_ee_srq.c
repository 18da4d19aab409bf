/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * RC receives from an SRQ, by the complete checks and by the fast path: order of WQEs, PD, limit,
 * end of a QP, and owners that write invalid lists.
 */

#include "ee_rig.h"

#include <errno.h>
#include <string.h>

#define SRQ 1u

static int
setup(void **state)
{
	rig_setup(state);
	rig_share(*state, SRQ, RIG_PD);
	return 0;
}

static struct hca_srq *
srq(struct rig *r)
{
	return r->srq[SRQ].s;
}

static void
received(struct rig *r, unsigned int i, uint8_t opcode, uint32_t bytes, uint32_t wqe)
{
	const struct hca_cqe *c = &r->cqe[i];

	assert_true(i < r->cqes);
	assert_int_equal(c->my_qpn, fx_qpn(RIG_QPI));
	assert_int_equal(c->srqn, RIG_SRQN(SRQ));
	assert_int_equal(c->wqe, wqe);
	assert_int_equal(c->byte_cnt, bytes);
	assert_int_equal(c->opcode, opcode);
}

static void
failed(struct rig *r, unsigned int i, uint8_t syndrome, uint32_t wqe)
{
	const struct hca_cqe_err *c = (const void *)&r->cqe[i];

	assert_true(i < r->cqes);
	assert_int_equal(c->my_qpn, fx_qpn(RIG_QPI));
	assert_int_equal(c->srqn, RIG_SRQN(SRQ));
	assert_int_equal(c->wqe, wqe);
	assert_int_equal(c->opcode, HCA_CQE_OP_ERR_RECV);
	assert_int_equal(c->syndrome, syndrome);
}

/* WQEs are taken in the order of nda, not of their addresses. */
static void
follows_the_links(void **state)
{
	struct rig *r = *state;
	uint32_t psn = 100;

	for (unsigned int i = 0; i < 20; i++) {
		uint32_t at = rig_srq_post_one(r, SRQ, 16 * i, 16);

		assert_int_equal(at, rig_srq_offset(i));
		rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, psn, 16, (uint8_t)i));
		assert_true(rig_holds(r, 16 * i, 16, (uint8_t)i));
		received(r, i, HCA_BTH_RC_SEND_ONLY, 16, at);
		assert_int_equal(r->qp->ee.msn, i + 1);
		rig_expect_ack(r, RIG_ACK, psn++);
	}
	assert_int_equal(srq(r)->consumed, 20);
	assert_int_equal(RIG_COUNTER(r, rx_send_requests), 20);
	assert_int_equal(RIG_COUNTER(r, resp_completions), 20);
	assert_int_equal(r->fx->events, 0);
}

/* Requests that the fast path does not handle: several SGEs, empty SENDs, immediates. */
static void
by_the_ladder(void **state)
{
	const struct hca_sge sge[2] = {{RIG_VA, RIG_KEY_ALL, 10}, {RIG_VA + 100, RIG_KEY_ALL, 90}};
	struct rig *r = *state;
	struct rig_packet imm = rig_send(HCA_BTH_RC_SEND_ONLY_IMM, 102, 4, 9);
	uint32_t at[4];

	imm.imm = 0x01020304;
	at[0] = rig_srq_post(r, SRQ, sge, 2);
	at[1] = rig_srq_post(r, SRQ, NULL, 0);
	at[2] = rig_srq_post_one(r, SRQ, 500, 4);
	at[3] = rig_srq_post_one(r, SRQ, 600, 4);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 50, 1));
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 101, 0, 0));
	rig_feed(r, imm);
	assert_true(rig_holds(r, 0, 10, 1));
	assert_true(rig_holds(r, 100, 40, 11));
	received(r, 0, HCA_BTH_RC_SEND_ONLY, 50, at[0]);
	received(r, 1, HCA_BTH_RC_SEND_ONLY, 0, at[1]);
	received(r, 2, HCA_BTH_RC_SEND_ONLY_IMM, 4, at[2]);
	assert_int_equal(r->cqe[2].imm, 0x01020304);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 103, 4, 8));
	received(r, 3, HCA_BTH_RC_SEND_ONLY, 4, at[3]);
}

/* A message of several packets keeps its WQE while others take the next ones. */
static void
message_owns_its_wqe(void **state)
{
	struct rig *r = *state;
	uint32_t first = rig_srq_post_one(r, SRQ, 0, 1000);
	uint64_t next;

	rig_srq_post_one(r, SRQ, 2000, 100);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_FIRST, 100, 256, 0));
	assert_int_equal(srq(r)->consumed, 1);
	/* another QP takes the second one */
	assert_int_equal(hca_srq_available(srq(r), &next), 1);
	assert_int_equal(HCA_SRQ_HEAD(next), rig_srq_offset(1));
	assert_int_equal(hca_srq_take(srq(r), next, rig_srq_offset(2)), 0);
	/* the owner may overwrite its memory */
	memset(srq(r)->q.base + first, 0xff, 128);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_LAST, 101, 100, 0));
	assert_true(rig_holds(r, 0, 356, 0));
	received(r, 0, HCA_BTH_RC_SEND_LAST, 356, first);
	assert_int_equal(r->cqes, 1);
}

static void
write_with_immediate(void **state)
{
	struct rig *r = *state;
	struct rig_packet p = rig_write(100, 0, 16, 1);
	uint32_t at = rig_srq_post_one(r, SRQ, 2000, 16);

	p.opcode = HCA_BTH_RC_WRITE_ONLY_IMM;
	p.imm = 0x0a0b0c0d;
	rig_feed(r, p);
	assert_true(rig_holds(r, 0, 16, 1));
	assert_int_equal(r->mem[2000], 0);
	received(r, 0, HCA_BTH_RC_WRITE_ONLY_IMM, 16, at);
	assert_int_equal(srq(r)->consumed, 1);
	assert_int_equal(srq(r)->head, rig_srq_offset(1));
}

static void
empty(void **state)
{
	struct rig *r = *state;

	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 16, 1));
	rig_expect_ack(r, HCA_RNR_SYNDROME(12), 100);
	assert_int_equal(RIG_COUNTER(r, out_of_buffer), 1);
	rig_srq_post_one(r, SRQ, 0, 16);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 16, 1));
	received(r, 0, HCA_BTH_RC_SEND_ONLY, 16, 0);
}

/* Keys of receives belong to the SRQ's PD, not to the QP's. */
static void
protection_domain(void **state)
{
	const struct hca_sge foreign = {RIG_VA, RIG_KEY_FOREIGN, 100};
	const struct hca_sge cut[2] = {{RIG_VA, RIG_KEY_FOREIGN, 1}, foreign};
	struct rig *r = *state;

	srq(r)->pd = RIG_PD + 1;
	rig_srq_post(r, SRQ, &foreign, 1);
	rig_srq_post(r, SRQ, cut, 2);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 16, 1));
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 101, 16, 1));
	assert_int_equal(r->cqes, 2);
	/* the WRITE is checked in the QP's PD */
	rig_feed(r, rig_write(102, 200, 16, 7));
	assert_true(rig_holds(r, 200, 16, 7));
	rig_srq_post_one(r, SRQ, 0, 16);
	rig_forget_responses(r);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 103, 16, 1));
	failed(r, 2, HCA_SYND_LOCAL_PROT, rig_srq_offset(2));
	rig_expect_ack(r, HCA_NAK_SYNDROME(HCA_NAK_REMOTE_OP), 103);
}

/* ---- the limit ---- */

static void
limit_fires_once(void **state)
{
	struct rig *r = *state;

	for (unsigned int i = 0; i < 5; i++)
		rig_srq_post_one(r, SRQ, 0, 16);
	srq(r)->limit = 3;
	for (unsigned int i = 0; i < 5; i++) {
		unsigned int events = i < 2 ? 0 : 1; /* 4, 3, 2 are left */

		rig_feed(r, rig_send(i & 1 ? HCA_BTH_RC_SEND_ONLY : HCA_BTH_RC_SEND_ONLY_IMM,
				     100 + i, 16, 1));
		assert_int_equal(r->cqes, i + 1);
		assert_int_equal(rig_events(r, HCA_EVENT_SRQ_LIMIT, SRQ), events);
		assert_int_equal(srq(r)->limit, events ? 0 : 3);
	}
	assert_int_equal(RIG_COUNTER(r, srq_limit_events), 1);
	assert_int_equal(r->fx->events, 1);
}

/* WQEs posted since the device last looked count. */
static void
limit_knows_new_wqes(void **state)
{
	struct rig *r = *state;

	rig_srq_post_one(r, SRQ, 0, 16);
	rig_srq_post_one(r, SRQ, 0, 16);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 16, 1));
	for (unsigned int i = 0; i < 4; i++)
		rig_srq_post_one(r, SRQ, 0, 16);
	srq(r)->limit = 4;
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 101, 16, 1));
	assert_int_equal(r->fx->events, 0);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 102, 16, 1));
	assert_int_equal(rig_events(r, HCA_EVENT_SRQ_LIMIT, SRQ), 1);
}

/* A message that finds no receive is below every limit. */
static void
limit_of_an_empty_srq(void **state)
{
	struct rig *r = *state;

	srq(r)->limit = 1;
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 16, 1));
	assert_int_equal(rig_events(r, HCA_EVENT_SRQ_LIMIT, SRQ), 1);
	assert_int_equal(srq(r)->limit, 0);
}

/* ---- the end of a QP ---- */

static void
to_error(struct rig *r)
{
	r->qp->cfg.state = HCA_QPS_ERR;
	hca_msg_send(r->h, HCA_STAGE_CEU, HCA_STAGE_EE, RIG_QPI, HCA_MSG_STATE);
	rig_poll(r);
}

/* WQEs in the SRQ stay for other QPs; LAST_WQE is reported once. */
static void
end_without_message(void **state)
{
	struct rig *r = *state;

	rig_srq_post_one(r, SRQ, 0, 16);
	to_error(r);
	to_error(r);
	assert_int_equal(r->cqes, 0);
	assert_int_equal(srq(r)->consumed, 0);
	assert_int_equal(rig_events(r, HCA_EVENT_LAST_WQE, RIG_QPI), 1);
	assert_int_equal(r->fx->events, 1);
}

static void
end_within_a_message(void **state)
{
	struct rig *r = *state;
	uint32_t at = rig_srq_post_one(r, SRQ, 0, 1000);

	rig_srq_post_one(r, SRQ, 0, 1000);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_FIRST, 100, 256, 1));
	to_error(r);
	failed(r, 0, HCA_SYND_WR_FLUSH, at);
	assert_int_equal(r->cqes, 1);
	assert_int_equal(rig_events(r, HCA_EVENT_LAST_WQE, RIG_QPI), 1);
	to_error(r);
	assert_int_equal(r->cqes, 1);
}

/* A SEND longer than the receive consumes it with an error, and the QP goes to ERR. */
static void
too_long(void **state)
{
	struct rig *r = *state;
	uint32_t at = rig_srq_post_one(r, SRQ, 0, 15);

	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 16, 1));
	failed(r, 0, HCA_SYND_LOCAL_LENGTH, at);
	assert_int_equal(r->cqes, 1);
	assert_int_equal(srq(r)->consumed, 1);
	assert_int_equal(rig_events(r, HCA_EVENT_LAST_WQE, RIG_QPI), 1);
	assert_int_equal(RIG_COUNTER(r, resp_local_length_error), 1);
	rig_expect_fatal(r, HCA_NAK_INVALID_REQ, 100, HCA_EVENT_LAST_WQE);
}

static void
too_long_at_last(void **state)
{
	struct rig *r = *state;
	uint32_t at = rig_srq_post_one(r, SRQ, 0, 256);

	rig_srq_post_one(r, SRQ, 0, 256);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_FIRST, 100, 256, 1));
	rig_forget_responses(r);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_LAST, 101, 1, 1));
	failed(r, 0, HCA_SYND_LOCAL_LENGTH, at);
	assert_int_equal(r->cqes, 1);
	assert_int_equal(srq(r)->consumed, 1);
	rig_expect_fatal(r, HCA_NAK_INVALID_REQ, 101, HCA_EVENT_LAST_WQE);
}

/*
 * A refused request that needs no receive consumes none; a WRITE with immediate completes the one
 * that it needs with an error.
 */
static void
access_error(void **state)
{
	struct rig *r = *state;
	struct rig_packet p = rig_write(100, 0, 16, 1);
	uint32_t at;

	rig_srq_post_one(r, SRQ, 0, 16);
	p.rkey = RIG_KEY_NONE;
	rig_feed(r, p);
	assert_int_equal(r->cqes, 0);
	assert_int_equal(srq(r)->consumed, 0);
	rig_expect_fatal(r, HCA_NAK_REMOTE_ACCESS, 100, HCA_EVENT_LAST_WQE);
	assert_int_equal(rig_teardown(state), 0);
	assert_int_equal(setup(state), 0);
	r = *state;
	at = rig_srq_post_one(r, SRQ, 0, 16);
	p.opcode = HCA_BTH_RC_WRITE_ONLY_IMM;
	rig_feed(r, p);
	failed(r, 0, HCA_SYND_LOCAL_ACCESS, at);
	assert_int_equal(r->cqes, 1);
	assert_int_equal(srq(r)->consumed, 1);
	rig_expect_fatal(r, HCA_NAK_REMOTE_ACCESS, 100, HCA_EVENT_LAST_WQE);
}

/* ---- owners that lie ---- */

static void
inline_receive(struct rig *r, struct rig_packet p)
{
	uint32_t at = rig_srq_post_one(r, SRQ, 0, 16);
	struct hca_data_unit *unit = (void *)(srq(r)->q.base + at + HCA_WQE_UNIT);

	unit->byte_cnt = hca_cpu_to_le32(HCA_INLINE_FLAG | 16);
	rig_feed(r, p);
	failed(r, 0, HCA_SYND_LOCAL_QP_OP, at);
	assert_int_equal(r->cqes, 1);
	assert_int_equal(srq(r)->consumed, 1);
	rig_expect_fatal(r, HCA_NAK_REMOTE_OP, p.psn, HCA_EVENT_LAST_WQE);
}

static void
malformed_for_a_send(void **state)
{
	inline_receive(*state, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 16, 1));
}

/* The SRQ's WQE completes with the error, although a WRITE has no open message. */
static void
malformed_for_a_write(void **state)
{
	struct rig_packet p = rig_write(100, 0, 16, 1);

	p.opcode = HCA_BTH_RC_WRITE_ONLY_IMM;
	inline_receive(*state, p);
}

static void
malformed_for_the_last_of_a_write(void **state)
{
	struct rig_packet p = rig_write(100, 0, 256, 1);

	p.opcode = HCA_BTH_RC_WRITE_FIRST;
	p.dma_len = 266;
	rig_feed(*state, p);
	rig_forget_responses(*state);
	p = rig_write(101, 0, 10, 1);
	p.opcode = HCA_BTH_RC_WRITE_LAST_IMM;
	inline_receive(*state, p);
}

static void
catas(struct rig *r)
{
	assert_int_equal(srq(r)->state, HCA_SRQ_ERROR);
	assert_int_equal(rig_events(r, HCA_EVENT_SRQ_CATAS, SRQ), 1);
	assert_int_equal(RIG_COUNTER(r, srq_catas), 1);
}

static void
count_that_cannot_be(void **state)
{
	struct rig *r = *state;

	r->srq[SRQ].record->producer = hca_cpu_to_le32(9);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100, 16, 1));
	catas(r);
	assert_int_equal(r->cqes, 0);
	assert_int_equal(RIG_COUNTER(r, rq_catas), 0);
	rig_expect_fatal(r, HCA_NAK_REMOTE_OP, 100, HCA_EVENT_LAST_WQE);
}

/* The current WQE is valid; those after the invalid link are lost. */
static void
link_that_leads_nowhere(void **state)
{
	static const uint32_t link[] = {1u << (RIG_SRQ_LOG + RIG_SRQ_STRIDE_LOG), 0xffffffc0, 64};
	struct rig *r = *state;

	for (unsigned int i = 0; i < 2 * RTE_DIM(link); i++) {
		bool ladder = i & 1;
		uint32_t at, psn = r->qp->ee.epsn;

		srq(r)->state = HCA_SRQ_LIVE;
		srq(r)->told = false;
		srq(r)->head = rig_srq_offset(r->srq[SRQ].slot);
		at = rig_srq_post_one(r, SRQ, 0, 16);
		*(hca_le32 *)(void *)(srq(r)->q.base + at) = hca_cpu_to_le32(link[i / 2]);
		rig_feed(r, rig_send(ladder ? HCA_BTH_RC_SEND_ONLY_IMM : HCA_BTH_RC_SEND_ONLY, psn,
				     16, (uint8_t)i));
		assert_int_equal(r->cqes, i + 1);
		received(r, i, ladder ? HCA_BTH_RC_SEND_ONLY_IMM : HCA_BTH_RC_SEND_ONLY, 16, at);
		rig_expect_ack(r, RIG_ACK, psn);
		assert_int_equal(srq(r)->state, HCA_SRQ_ERROR);
		assert_int_equal(rig_events(r, HCA_EVENT_SRQ_CATAS, SRQ), i + 1);
	}
	rig_srq_post_one(r, SRQ, 0, 16);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, r->qp->ee.epsn, 16, 1));
	assert_int_equal(rig_events(r, HCA_EVENT_SRQ_CATAS, SRQ), 2 * RTE_DIM(link));
	assert_int_equal(r->qp->cfg.state, HCA_QPS_ERR);
}

/* A loop in the list is followed only for as many WQEs as were announced. */
static void
loop(void **state)
{
	struct rig *r = *state;

	for (unsigned int i = 0; i < 4; i++)
		rig_srq_post_one(r, SRQ, 0, 16);
	*(hca_le32 *)(void *)srq(r)->q.base = 0;
	for (unsigned int i = 0; i < 4; i++)
		rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 100 + i, 16, 1));
	assert_int_equal(r->cqes, 4);
	rig_forget_responses(r);
	rig_feed(r, rig_send(HCA_BTH_RC_SEND_ONLY, 104, 16, 1));
	rig_expect_ack(r, HCA_RNR_SYNDROME(12), 104);
	assert_int_equal(srq(r)->state, HCA_SRQ_LIVE);
}

/* UD drops the datagram where RC would go to ERR. */
static void
unreliable_survives(void **state)
{
	struct rig *r = *state;

	rig_service(r, HCA_ST_UD);
	r->srq[SRQ].record->producer = hca_cpu_to_le32(9);
	for (unsigned int i = 0; i < 3; i++)
		rig_feed(r, rig_send(HCA_BTH_UD_SEND_ONLY, 0, 16, 1));
	catas(r);
	assert_int_equal(RIG_COUNTER(r, resp_ud_dropped), 3);
	assert_int_equal(r->qp->cfg.state, HCA_QPS_RTS);
	rig_expect_silence(r);
}

/* An SRQ that is being destroyed does not change to the error state. */
static void
dying_stays_dying(void **state)
{
	struct rig *r = *state;
	uint64_t next;

	rig_srq_post_one(r, SRQ, 0, 16);
	srq(r)->state = HCA_SRQ_DYING;
	r->srq[SRQ].record->producer = hca_cpu_to_le32(20);
	assert_int_equal(hca_srq_available(srq(r), &next), -1);
	assert_int_equal(srq(r)->state, HCA_SRQ_DYING);
	assert_int_equal(hca_srq_take(srq(r), next, 64), -EINVAL);
	assert_int_equal(srq(r)->state, HCA_SRQ_DYING);
	assert_null(hca_srq_find(&r->h->core, RIG_SRQN(SRQ)));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, rig_teardown)
		T(follows_the_links),
		T(by_the_ladder),
		T(message_owns_its_wqe),
		T(write_with_immediate),
		T(empty),
		T(protection_domain),
		T(limit_fires_once),
		T(limit_knows_new_wqes),
		T(limit_of_an_empty_srq),
		T(end_without_message),
		T(end_within_a_message),
		T(too_long),
		T(too_long_at_last),
		T(access_error),
		T(malformed_for_a_send),
		T(malformed_for_a_write),
		T(malformed_for_the_last_of_a_write),
		T(count_that_cannot_be),
		T(link_that_leads_nowhere),
		T(loop),
		T(unreliable_survives),
		T(dying_stays_dying),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
