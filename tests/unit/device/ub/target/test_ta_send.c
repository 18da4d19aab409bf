/* SPDX-License-Identifier: BSD-3-Clause */

/* Sends and immediates: receives of Jettys and JFRs, their CQEs, and messages without a TP. */

#include "tat_rig.h"

#include <errno.h>
#include <string.h>

#include "queues/rq.h"

static const struct hca_cqe_ub *
expect_cqe(struct rig *r, unsigned int i, uint32_t cq, uint8_t status, uint32_t wqe)
{
	const struct hca_cqe_ub *c = &r->cqe[i];
	bool jetty = cq == RIG_JETTY_CQ;

	assert_true(i < r->cqes);
	assert_int_equal(r->cqi[i], cq);
	assert_int_equal(c->local, HCA_CQE_UB_MAKE_LOCAL(jetty ? HCA_CQE_UB_JETTY : HCA_CQE_UB_JFR,
							 jetty ? RIG_JETTY : RIG_SRQN));
	assert_int_equal(c->status, status);
	assert_int_equal(c->wqe, wqe);
	assert_int_equal(c->is_send, HCA_CQE_UB);
	assert_int_equal(c->owner, HCA_OWNER_SW);
	return c;
}

static void
test_send(void **state)
{
	struct rig *r = *state;
	uint32_t at = rig_post_one(r, 64, 100);
	const struct hca_cqe_ub *c;

	rig_feed(r, rig_send(1, 90, 5));
	c = expect_cqe(r, 0, RIG_JETTY_CQ, HCA_UB_STATUS_OK, at);
	assert_int_equal(c->bytes, 90);
	assert_int_equal(c->rc, RIG_RC);
	assert_int_equal(c->tpn, RIG_OWN_TPN);
	assert_int_equal(c->opcode, HCA_UB_TA_SEND);
	assert_true(c->imm == 0);
	assert_false(r->solicited);
	assert_true(rig_holds(r, 64, 90, 5));
	assert_int_equal(r->mem[64 + 90], 0);
	rig_expect_taack(r, RIG_OK, 1);
}

static void
test_immediate_and_solicited(void **state)
{
	struct rig *r = *state;
	struct rig_req p = rig_send(1, 0, 5);
	const struct hca_cqe_ub *c;

	p.opcode = HCA_UB_TA_SEND_IMM;
	p.immediate = UINT64_C(0x1122334455667788);
	p.fce = true;
	p.tc = RIG_KNOWN;
	rig_post(r, NULL, 0);
	rig_feed(r, p);
	c = expect_cqe(r, 0, RIG_JETTY_CQ, HCA_UB_STATUS_OK, 0);
	assert_true(c->imm == UINT64_C(0x1122334455667788));
	assert_int_equal(c->opcode, HCA_UB_TA_SEND_IMM);
	assert_int_equal(c->bytes, 0);
	assert_true(r->solicited);
	rig_expect_taack(r, RIG_OK, 1);
}

/* Two messages whose packets are mixed, each in its receive, the later one complete first. */
static void
mixed(struct rig *r, uint32_t tc, uint32_t cq)
{
	struct rig_req p[2] = {rig_send(1, 0, 1), rig_send(2, 0, 101)};
	static const uint8_t order[8] = {7, 2, 4, 0, 6, 5, 1, 3};
	uint32_t at[2];

	for (uint32_t i = 0; i < 2; i++) {
		p[i].tc = tc;
		at[i] = tc == RIG_JETTY ? rig_post_one(r, i * 8192, 4096)
					: rig_jfr_post_one(r, i * 8192, 4096);
	}
	for (uint32_t i = 0; i < 8; i++)
		rig_feed(r, rig_part(p[order[i] / 4], order[i] / 4 * 4, order[i] % 4, 4));
	/* the first packet of the second message came first */
	assert_int_equal(expect_cqe(r, 0, cq, HCA_UB_STATUS_OK, at[0])->bytes, 4096);
	assert_int_equal(expect_cqe(r, 1, cq, HCA_UB_STATUS_OK, at[1])->bytes, 4096);
	for (uint32_t i = 0; i < 8; i++)
		assert_true(rig_holds(r, (1 - i / 4) * 8192 + i % 4 * RIG_MTU, RIG_MTU,
				      (uint8_t)(p[i / 4].seed + i % 4 * 7)));
	assert_int_equal(rig_answers(r), 2);
	assert_int_equal(rig_answer(r)->tassn, 2);
	assert_int_equal(rig_answer(r)->tassn, 1);
	rig_release(r);
}

static void
test_several_open(void **state)
{
	struct rig *r = *state;

	mixed(r, RIG_JETTY, RIG_JETTY_CQ);
	assert_int_equal(r->qp->ee.rq_consumed, 2);
}

static void
test_several_open_jfr(void **state)
{
	struct rig *r = *state;

	mixed(r, RIG_JFR, RIG_JFR_CQ);
	assert_int_equal(r->srq->consumed, 2);
}

/* Segments of the receive are no multiples of packets; the WQE may change after the first one. */
static void
test_many_segments(void **state)
{
	static const uint16_t len[] = {1, 0, 1023, 1024, 700, 1500, 2000};
	struct hca_sge sge[RTE_DIM(len)];
	struct rig_req p = rig_send(1, 0, 0);
	struct rig *r = *state;
	uint32_t off = 0;

	for (uint32_t i = 0; i < RTE_DIM(len); i++) {
		sge[i] = (struct hca_sge){RIG_VA + off + 16 * i, RIG_KEY(RIG_LOCAL), len[i]};
		off += len[i];
	}
	rig_post(r, sge, RTE_DIM(len));
	for (uint32_t i = 4; i-- != 0;) {
		struct rig_req part = rig_part(p, 0, i, 4);

		part.seed = (uint8_t)(i * RIG_MTU);
		rig_feed(r, part);
		memset(r->qp->ee.rq.base, 0xff, 512);
	}
	expect_cqe(r, 0, RIG_JETTY_CQ, HCA_UB_STATUS_OK, 0);
	off = 0;
	for (uint32_t i = 0; i < RTE_DIM(len) && off < 4096; i++) {
		uint32_t n = RTE_MIN(len[i], 4096 - off);

		assert_true(rig_holds(r, (uint32_t)(sge[i].va - RIG_VA), n, (uint8_t)off));
		off += n;
	}
	rig_expect_taack(r, RIG_OK, 1);
}

static void
refused(struct rig *r, struct rig_req p, uint8_t answer)
{
	rig_feed(r, p);
	rig_expect_taack(r, answer, p.tassn);
}

static void
test_refusals(void **state)
{
	struct rig *r = *state;
	struct rig_req p = rig_send(1, 8, 1);

	/* nothing is taken of these */
	rig_post_one(r, 0, 64);
	p.tc = RIG_JETTY + 16;
	refused(r, p, RIG_UNSUPPORTED);
	p.tc = RIG_KNOWN + 1;
	p.psn = p.tpmsn = 2;
	refused(r, p, RIG_UNSUPPORTED);
	p.tc = HCA_TC_JFR | (RIG_SRQN + 4);
	p.psn = p.tpmsn = 3;
	refused(r, p, RIG_UNSUPPORTED);
	assert_int_equal(RIG_COUNTER(r, ub_tc_unknown), 3);
	p = rig_send(4, 8, 1);
	p.tc_type = HCA_UB_TC_GROUP;
	refused(r, p, RIG_UNSUPPORTED);
	assert_int_equal(RIG_COUNTER(r, ub_ta_group), 1);
	p = rig_send(5, 8, 1);
	p.token++;
	refused(r, p, RIG_ABORT);
	assert_int_equal(RIG_COUNTER(r, ub_tc_token), 1);
	r->qp->cfg.state = HCA_QPS_RST;
	refused(r, rig_send(6, 8, 1), RIG_UNSUPPORTED);
	r->qp->cfg.state = HCA_QPS_ERR;
	refused(r, rig_send(7, 8, 1), RIG_ABORT);
	assert_int_equal(RIG_COUNTER(r, ub_tc_error), 1);
	r->qp->cfg.state = HCA_QPS_SQD;
	assert_int_equal(r->qp->ee.rq_consumed, 0);
	rig_feed(r, rig_send(8, 8, 1));
	rig_expect_taack(r, RIG_OK, 8);
	/* a queue of verbs is no TC */
	r->ub->jetty[RIG_QPI].token.flags = 0;
	refused(r, rig_send(9, 8, 1), RIG_UNSUPPORTED);
	r->ub->jfr[RIG_SRQI].token.flags = 0;
	p = rig_send(10, 8, 1);
	p.tc = RIG_JFR;
	refused(r, p, RIG_UNSUPPORTED);
	assert_int_equal(r->cqes, 1);
}

/* No answer, and nothing is left of the request. */
static void
dropped(struct rig *r, struct rig_req p)
{
	rig_feed(r, p);
	assert_int_equal(rig_answers(r), 0);
	assert_int_equal(r->tp->tat.open + r->tp->tat.owed, 0);
}

/* On a TP whose ends have not agreed to tell, a queue that is gone or in error is silent. */
static void
test_silent_queues(void **state)
{
	struct rig *r = *state;
	struct rig_req p = rig_send(1, 8, 1);

	r->tp->cfg.flags &= (uint8_t)~HCA_TP_FLAG_TELL;
	rig_post_one(r, 0, 64);
	p.tc = RIG_JETTY + 16;
	dropped(r, p);
	p.tc = HCA_TC_JFR | (RIG_SRQN + 4);
	p.psn = p.tpmsn = 2;
	dropped(r, p);
	r->qp->cfg.state = HCA_QPS_RST;
	dropped(r, rig_send(3, 8, 1));
	r->qp->cfg.state = HCA_QPS_ERR;
	dropped(r, rig_send(4, 8, 1));
	/* of several packets, in any order */
	rig_feed(r, rig_part(rig_send(5, 8, 1), 5, 1, 2));
	assert_int_equal(r->tp->tat.open, 1);
	dropped(r, rig_part(rig_send(5, 8, 1), 5, 0, 2));
	assert_int_equal(RIG_COUNTER(r, ub_requests_unanswered), 5);
	/* a request with another fault is answered */
	r->qp->cfg.state = HCA_QPS_RTS;
	p = rig_send(7, 8, 1);
	p.token++;
	refused(r, p, RIG_ABORT);
	rig_feed(r, rig_send(8, 8, 1));
	rig_expect_taack(r, RIG_OK, 8);
	/* the Jetty fails between two packets of a message */
	rig_post_one(r, 0, 4096);
	rig_feed(r, rig_part(rig_send(9, 8, 1), 9, 0, 2));
	r->qp->cfg.state = HCA_QPS_ERR;
	dropped(r, rig_part(rig_send(9, 8, 1), 9, 1, 2));
}

/* A Jetty with one peer: a request of another Jetty takes no receive. */
static void
test_one_peer(void **state)
{
	struct rig *r = *state;
	struct hca_tc *row = &r->ub->jetty[RIG_QPI];
	struct rig_req p = rig_send(1, 8, 1);

	rig_post_one(r, 0, 64);
	memcpy(row->peer_eid, r->tp->cfg.peer_eid, sizeof(row->peer_eid));
	row->peer = RIG_RC;
	row->bound = HCA_TC_ALONE; /* may be repeated */
	refused(r, p, RIG_NOT_READY(RIG_RNR));
	assert_int_equal(RIG_COUNTER(r, ub_tc_alone), 1);
	row->bound = HCA_TC_BOUND;
	row->peer = RIG_RC + 1; /* another Jetty of its host sends */
	refused(r, rig_send(2, 8, 1), RIG_ABORT);
	row->peer = RIG_RC;
	row->peer_eid[15]++; /* the same number on another host */
	refused(r, rig_send(3, 8, 1), RIG_ABORT);
	row->peer_eid[15]--;
	p = rig_send(4, 8, 1);
	p.unreliable = true;
	rig_feed(r, p);
	assert_int_equal(rig_answers(r), 0);
	assert_int_equal(RIG_COUNTER(r, ub_tc_stranger), 3);
	assert_int_equal(r->qp->ee.rq_consumed, 0);
	/* a sender without the token gets no other answer */
	row->peer = RIG_RC + 1;
	p = rig_send(5, 8, 1);
	p.token++;
	refused(r, p, RIG_ABORT);
	assert_int_equal(RIG_COUNTER(r, ub_tc_token), 1);
	/* a write takes a receive only of its peer */
	p = rig_write(6, 0, 8, 1);
	p.opcode = HCA_UB_TA_WRITE_IMM;
	p.tc = RIG_JETTY;
	p.imm_token = RIG_JETTY_VALUE;
	p.total = 8;
	refused(r, p, RIG_ABORT);
	assert_int_equal(RIG_COUNTER(r, ub_tc_stranger), 4);
	assert_int_equal(r->cqes, 0);
	/* memory asks for no Jetty */
	refused(r, rig_write(7, 0, 8, 1), RIG_OK);
	row->peer = RIG_RC;
	refused(r, rig_send(8, 8, 1), RIG_OK);
	expect_cqe(r, 0, RIG_JETTY_CQ, HCA_UB_STATUS_OK, 0);
}

static void
test_not_ready(void **state)
{
	struct rig *r = *state;
	struct rig_req p = rig_send(1, 0, 1);

	rig_feed(r, rig_part(p, 0, 1, 2));
	rig_post_one(r, 0, 4096); /* too late for this request */
	rig_feed(r, rig_part(p, 0, 0, 2));
	rig_expect_taack(r, RIG_NOT_READY(RIG_RNR), 1);
	assert_int_equal(r->cqes, 0);
	p.tpmsn = 2;
	rig_feed(r, rig_part(p, 2, 1, 2));
	rig_feed(r, rig_part(p, 2, 0, 2));
	rig_expect_taack(r, RIG_OK, 1);
	expect_cqe(r, 0, RIG_JETTY_CQ, HCA_UB_STATUS_OK, 0);
	/* a timer that the wire does not have is the longest one there is */
	p = rig_send(3, 8, 1);
	p.tc = RIG_JFR;
	rig_feed(r, p);
	rig_expect_taack(r, RIG_NOT_READY(HCA_UB_RNR_TIMER_MAX), 3);
	assert_int_equal(RIG_COUNTER(r, ub_no_receive), 2);
	assert_int_equal(RIG_COUNTER(r, ub_requests_not_ready), 2);
}

static void
test_longer_than_the_receive(void **state)
{
	struct rig *r = *state;
	struct rig_req p = rig_send(1, 0, 1);

	rig_post_one(r, 0, 2 * RIG_MTU + 1);
	rig_feed(r, rig_part(p, 0, 2, 3));
	rig_feed(r, rig_part(p, 0, 0, 3));
	assert_int_equal(r->cqes, 0);
	rig_feed(r, rig_part(p, 0, 1, 3));
	rig_expect_taack(r, RIG_UNSUPPORTED, 1);
	expect_cqe(r, 0, RIG_JETTY_CQ, HCA_UB_STATUS_LOCAL_LENGTH, 0);
	assert_true(r->solicited);
	assert_int_equal(RIG_COUNTER(r, ub_receive_too_long), 1);
	for (uint32_t i = 0; i < 4 * RIG_MTU; i++)
		assert_int_equal(r->mem[i], 0);
}

static void
test_poisoned(void **state)
{
	struct rig *r = *state;
	struct rig_req p = rig_send(1, 0, 1), bad = rig_part(p, 0, 1, 2);

	rig_post_one(r, 0, 4096);
	bad.poison = true;
	rig_feed(r, rig_part(p, 0, 0, 2));
	rig_feed(r, bad);
	rig_expect_taack(r, RIG_ABORT, 1);
	expect_cqe(r, 0, RIG_JETTY_CQ, HCA_UB_STATUS_LOCAL_POISON, 0);
}

/* A fault of the receive also completes the receive, with an error. */
static void
test_bad_receives(void **state)
{
	struct rig *r = *state;
	struct hca_sge sge = {RIG_VA, RIG_KEY(RIG_READ_ONLY), 64};

	rig_post(r, &sge, 1);
	rig_feed(r, rig_send(1, 8, 1));
	rig_expect_taack(r, RIG_ABORT, 1);
	expect_cqe(r, 0, RIG_JETTY_CQ, HCA_UB_STATUS_LOCAL_ACCESS, 0);
	sge = (struct hca_sge){RIG_VA, RIG_KEY(RIG_LOCAL), 64 | HCA_INLINE_FLAG};
	rig_post(r, &sge, 1);
	rig_feed(r, rig_send(2, 8, 1));
	rig_expect_taack(r, RIG_ABORT, 2);
	expect_cqe(r, 1, RIG_JETTY_CQ, HCA_UB_STATUS_LOCAL_ACCESS, 1u << RIG_STRIDE_LOG);
	r->rq->producer += 100;
	rig_feed(r, rig_send(3, 8, 1));
	rig_expect_taack(r, RIG_ABORT, 3);
	assert_true(rig_event(r, HCA_EVENT_WQ_CATAS, RIG_QPI));
	assert_int_equal(RIG_COUNTER(r, ub_bad_receive), 3);
	assert_int_equal(r->qp->cfg.state, HCA_QPS_RTS);
}

static void
test_jfr_events(void **state)
{
	struct rig *r = *state;
	struct rig_req p = rig_send(1, 8, 1);

	p.tc = RIG_JFR;
	rig_jfr_post_one(r, 0, 64);
	rig_jfr_post_one(r, 0, 64);
	r->srq->limit = 2;
	rig_feed(r, p);
	rig_expect_taack(r, RIG_OK, 1);
	assert_true(rig_event(r, HCA_EVENT_SRQ_LIMIT, RIG_SRQI));
	*(hca_le32 *)(void *)(r->srq->q.base + r->srq->head) = hca_cpu_to_le32(0x3fff0);
	p.psn = p.tpmsn = 2;
	rig_feed(r, p);
	rig_expect_taack(r, RIG_OK, 1);
	assert_true(rig_event(r, HCA_EVENT_SRQ_CATAS, RIG_SRQI));
	p.psn = p.tpmsn = 3;
	rig_feed(r, p);
	rig_expect_taack(r, RIG_ABORT, 1);
}

/* ---- writes with immediate ---- */

static void
test_write_with_immediate(void **state)
{
	struct rig *r = *state;
	struct rig_req p = rig_write(1, 0, 0, 1);
	const struct hca_cqe_ub *c;

	p.opcode = HCA_UB_TA_WRITE_IMM;
	p.tc = RIG_JETTY;
	p.imm_token = RIG_JETTY_VALUE;
	p.immediate = 42;
	p.total = 1000000;
	for (uint32_t i = 3; i-- != 0;) {
		struct rig_req part = rig_part(p, 0, i, 3);

		if (!part.last)
			part.opcode = HCA_UB_TA_WRITE;
		assert_int_equal(r->cqes, 0);
		if (i == 0)
			rig_post(r, NULL, 0); /* consumed at the end */
		rig_feed(r, part);
	}
	rig_expect_taack(r, RIG_OK, 1);
	c = expect_cqe(r, 0, RIG_JETTY_CQ, HCA_UB_STATUS_OK, 0);
	assert_true(c->imm == 42);
	assert_int_equal(c->bytes, 1000000);
	assert_int_equal(c->opcode, HCA_UB_TA_WRITE_IMM);
	assert_true(rig_holds(r, 2 * RIG_MTU, RIG_MTU, 15));
	/* no receive, wrong token */
	p.tpmsn = 2;
	rig_feed(r, rig_part(p, 3, 0, 1));
	rig_expect_taack(r, RIG_NOT_READY(RIG_RNR), 1);
	rig_post(r, NULL, 0);
	p.tpmsn = 3;
	p.imm_token++;
	rig_feed(r, rig_part(p, 4, 0, 1));
	rig_expect_taack(r, RIG_ABORT, 1);
	assert_int_equal(r->cqes, 1);
	assert_int_equal(r->qp->ee.rq_consumed, 1);
}

/* ---- ends ---- */

static void
tell_state(struct rig *r)
{
	hca_msg_send(r->h, HCA_STAGE_TAI, HCA_STAGE_TAT, RIG_QPI, HCA_MSG_STATE);
	rig_poll(r);
}

/* A Jetty in error: the open message and all receives, posted before or after, are flushed. */
static void
test_flush(void **state)
{
	struct rig *r = *state;
	struct rig_req p = rig_send(1, 0, 1);

	for (uint32_t i = 0; i < 3; i++)
		rig_post_one(r, 0, 4096);
	rig_feed(r, rig_part(p, 0, 0, 2));
	r->qp->cfg.state = HCA_QPS_ERR;
	tell_state(r);
	assert_int_equal(r->cqes, 3);
	for (uint32_t i = 0; i < 3; i++)
		expect_cqe(r, i, RIG_JETTY_CQ, HCA_UB_STATUS_FLUSHED, i << RIG_STRIDE_LOG);
	assert_int_equal(r->rq->notify, 1);
	rig_post_one(r, 0, 4096);
	hca_msg_send(r->h, HCA_STAGE_DOORBELL, HCA_STAGE_TAT, RIG_QPI, HCA_MSG_KICK);
	rig_poll(r);
	expect_cqe(r, 3, RIG_JETTY_CQ, HCA_UB_STATUS_FLUSHED, 3u << RIG_STRIDE_LOG);
	memset(r->mem, 0, RIG_LEN);
	rig_feed(r, rig_part(p, 0, 1, 2));
	rig_expect_taack(r, RIG_ABORT, 1);
	assert_int_equal(r->cqes, 4);
	assert_int_equal(r->mem[1], 0);
	assert_int_equal(RIG_COUNTER(r, resp_cqe_flush_error), 4);
	assert_true(hca_tat_deadline(r->h, r->now) == UINT64_MAX);
}

/* The Jetty is destroyed within a message, and its number is another one's. */
static void
test_jetty_goes_away(void **state)
{
	struct rig *r = *state;
	struct rig_req p = rig_send(1, 0, 1);

	rig_post_one(r, 0, 4096);
	rig_feed(r, rig_part(p, 0, 0, 2));
	r->h->purge_seq = 5;
	r->qp->cfg.state = HCA_QPS_RST;
	hca_msg_send(r->h, HCA_STAGE_CEU, HCA_STAGE_TAT, RIG_QPI, HCA_MSG_PURGE);
	rig_poll(r);
	assert_int_equal(r->h->line[HCA_STAGE_TAT].purge_ack, 5);
	r->qp->cfg.generation++;
	r->qp->cfg.state = HCA_QPS_RTS;
	memset(r->mem, 0, RIG_LEN);
	rig_feed(r, rig_part(p, 0, 1, 2));
	rig_expect_taack(r, RIG_UNSUPPORTED, 1);
	assert_int_equal(r->cqes, 0);
	assert_int_equal(r->mem[RIG_MTU + 1], 0);
}

static void
test_jfr_goes_away(void **state)
{
	struct rig *r = *state;
	struct rig_req p = rig_send(1, 0, 1);

	p.tc = RIG_JFR;
	rig_jfr_post_one(r, 0, 4096);
	rig_feed(r, rig_part(p, 0, 0, 2));
	r->srq->generation++;
	rig_feed(r, rig_part(p, 0, 1, 2));
	rig_expect_taack(r, RIG_UNSUPPORTED, 1);
	assert_int_equal(r->cqes, 0);
	assert_int_equal(r->mem[RIG_MTU + 1], 0);
}

/* The TP dies within a message: its receive completes. */
static void
test_tp_dies(void **state)
{
	struct rig *r = *state;

	rig_post_one(r, 0, 4096);
	rig_feed(r, rig_part(rig_send(1, 0, 1), 0, 0, 2));
	r->tp->cfg.state = HCA_TPS_ERROR;
	hca_tp_msg_send(r->h, HCA_STAGE_TPS, HCA_STAGE_TAT, RIG_TPI, HCA_MSG_DEAD);
	rig_poll(r);
	expect_cqe(r, 0, RIG_JETTY_CQ, HCA_UB_STATUS_ACK_TIMEOUT, 0);
	assert_int_equal(RIG_COUNTER(r, ub_requests_abandoned), 1);
}

/* No CQE can be written: counted where the slot is refused, the rest goes on. */
static void
test_no_room_in_the_cq(void **state)
{
	struct rig *r = *state;

	r->cq_full = true;
	rig_post_one(r, 0, 64);
	rig_feed(r, rig_send(1, 8, 1));
	rig_expect_taack(r, RIG_OK, 1);
}

/* ---- without TP ---- */

static struct rig_req
datagram(uint32_t len, bool ip6)
{
	struct rig_req p = rig_send(0, len, 1);

	p.unreliable = true;
	p.ip6 = ip6;
	p.psn = p.tpmsn = 0;
	p.opcode = HCA_UB_TA_SEND_IMM;
	p.immediate = 77;
	return p;
}

static void
test_datagrams(void **state)
{
	struct rig *r = *state;

	for (uint32_t i = 0; i < 2; i++) {
		uint32_t at = rig_post_one(r, 1024 * i, 140), from = i == 0 ? 20 : 0;
		const struct hca_cqe_ub *c;

		rig_feed(r, datagram(100, i != 0));
		c = expect_cqe(r, i, RIG_JETTY_CQ, HCA_UB_STATUS_OK, at);
		assert_int_equal(c->bytes, 140);
		assert_int_equal(c->tpn, 0);
		assert_int_equal(c->rc, RIG_RC);
		assert_true(c->imm == 77);
		assert_int_equal(r->mem[1024 * i + from], i == 0 ? 0x45 : 0x60);
		assert_true(rig_holds(r, 1024 * i + from + 1, 39 - from, 0x80 + HCA_ETH_LEN + 1));
		for (uint32_t k = 0; k < from; k++)
			assert_int_equal(r->mem[1024 * i + k], 0);
		assert_true(rig_holds(r, 1024 * i + 40, 100, 1));
	}
	assert_int_equal(rig_answers(r), 0);
	assert_int_equal(RIG_COUNTER(r, ub_requests), 0);
	assert_int_equal(RIG_COUNTER(r, ub_ta_used), 2);
}

/* Without an immediate its word has the MAC address that the frame came from. */
static void
test_datagram_station(void **state)
{
	struct rig *r = *state;

	for (uint32_t i = 0; i < 2; i++) {
		uint32_t at = rig_post_one(r, 1024 * i, 140);
		struct rig_req p = datagram(100, i != 0);
		const struct hca_cqe_ub *c;
		uint64_t mac = 0;

		p.opcode = HCA_UB_TA_SEND;
		rig_feed(r, p);
		c = expect_cqe(r, i, RIG_JETTY_CQ, HCA_UB_STATUS_OK, at);
		for (uint32_t k = 0; k < 6; k++) /* the rig's bytes in front of the IP header */
			mac = mac << 8 | (uint8_t)(0x80 + 6 + k);
		assert_true(c->imm == mac);
	}
}

/* Each is dropped and counted under its name, without an answer, and takes no receive. */
static void
test_datagrams_refused(void **state)
{
	struct rig *r = *state;
	struct rig_req p = datagram(8, false);

	rig_feed(r, p);
	assert_int_equal(RIG_COUNTER(r, ub_no_receive), 1);
	rig_post_one(r, 0, 47);
	rig_feed(r, p);
	assert_int_equal(RIG_COUNTER(r, ub_receive_too_long), 1);
	p.token++;
	rig_feed(r, p);
	p.has_token = false;
	rig_feed(r, p);
	assert_int_equal(RIG_COUNTER(r, ub_tc_token), 2);
	p = datagram(8, false);
	p.poison = true;
	rig_feed(r, p);
	assert_int_equal(RIG_COUNTER(r, ub_ta_poison), 1);
	p.poison = false;
	p.offset = 1;
	rig_feed(r, p);
	assert_int_equal(RIG_COUNTER(r, ub_ta_bad_sum), 1);
	p = datagram(8, false);
	p.tc = 0;
	rig_feed(r, p);
	assert_int_equal(RIG_COUNTER(r, ub_tc_unknown), 1);
	p = rig_write(0, 0, 8, 1);
	p.unreliable = true;
	rig_feed(r, p);
	assert_int_equal(RIG_COUNTER(r, ub_ta_bad_service), 1);
	assert_int_equal(r->cqes, 0);
	assert_int_equal(r->qp->ee.rq_consumed, 0);
	assert_int_equal(rig_answers(r), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_send),
		TEST(test_immediate_and_solicited),
		TEST(test_several_open),
		TEST(test_several_open_jfr),
		TEST(test_many_segments),
		TEST(test_refusals),
		TEST(test_silent_queues),
		TEST(test_one_peer),
		TEST(test_not_ready),
		TEST(test_longer_than_the_receive),
		TEST(test_poisoned),
		TEST(test_bad_receives),
		TEST(test_jfr_events),
		TEST(test_write_with_immediate),
		TEST(test_flush),
		TEST(test_jetty_goes_away),
		TEST(test_jfr_goes_away),
		TEST(test_tp_dies),
		TEST(test_no_room_in_the_cq),
		TEST(test_datagrams),
		TEST(test_datagram_station),
		TEST(test_datagrams_refused),
	};

	return cmocka_run_group_tests_name("ta_send", tests, NULL, NULL);
}
