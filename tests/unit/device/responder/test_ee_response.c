/* SPDX-License-Identifier: BSD-3-Clause */

/* READ and ATOMIC: responses in PSN order, repeats, limits, errors, purge. */

#include "ee_rig.h"

#include <string.h>

static void
expect_read(struct rig *r, unsigned int i, uint8_t opcode, uint32_t psn, uint32_t off, uint32_t len)
{
	struct hca_txd *d = rig_response(r, i);

	assert_int_equal(d->opcode, opcode);
	assert_int_equal(d->psn, psn & HCA_PSN_MASK);
	assert_int_equal(d->len, len);
	assert_int_equal(d->nsge, len != 0);
	assert_int_equal(d->key, RIG_KEY_ALL);
	if (len != 0)
		assert_int_equal(d->va, RIG_VA + off);
	assert_int_equal(d->syndrome, RIG_ACK);
	assert_int_equal(d->generation, r->qp->cfg.generation);
}

static uint64_t
load(const struct rig *r, uint32_t off)
{
	uint64_t v;

	memcpy(&v, r->mem + off, sizeof(v));
	return v;
}

static void
read_sizes(void **state)
{
	struct rig *r = *state;

	rig_feed(r, rig_read(100, 8, 0));
	assert_int_equal(rig_responses(r), 1);
	expect_read(r, 0, HCA_BTH_RC_READ_RESP_ONLY, 100, 8, 0);
	rig_forget_responses(r);

	rig_feed(r, rig_read(101, 8, 256));
	expect_read(r, 0, HCA_BTH_RC_READ_RESP_ONLY, 101, 8, 256);
	assert_int_equal(rig_response(r, 0)->resp.msn, 2);
	rig_forget_responses(r);

	rig_feed(r, rig_read(102, 8, 513));
	assert_int_equal(rig_responses(r), 3);
	expect_read(r, 0, HCA_BTH_RC_READ_RESP_FIRST, 102, 8, 256);
	expect_read(r, 1, HCA_BTH_RC_READ_RESP_MIDDLE, 103, 264, 256);
	expect_read(r, 2, HCA_BTH_RC_READ_RESP_LAST, 104, 520, 1);
	assert_int_equal(r->qp->ee.epsn, 105);
	assert_int_equal(r->qp->ee.msn, 3);
	rig_forget_responses(r);
	rig_expect_silence(r);
}

static void
read_psns_wrap(void **state)
{
	struct rig *r = *state;

	r->qp->ee.epsn = 0xffffff;
	rig_feed(r, rig_read(0xffffff, 0, 512));
	expect_read(r, 0, HCA_BTH_RC_READ_RESP_FIRST, 0xffffff, 0, 256);
	expect_read(r, 1, HCA_BTH_RC_READ_RESP_LAST, 0, 256, 256);
	assert_int_equal(r->qp->ee.epsn, 1);
}

/* The next WRITE executes at once; its ACK and the ATOMIC's response wait for the READ. */
static void
responses_leave_in_psn_order(void **state)
{
	struct rig *r = *state;
	struct rig_packet p[4] = {rig_write(100, 0, 8, 1), rig_read(101, 0, 20 * 256),
				  rig_add(121, 8, 5), rig_write(122, 16, 8, 9)};

	rig_burst(r, p, 4);
	assert_true(rig_holds(r, 16, 8, 9));
	assert_int_equal(load(r, 8), 5);
	rig_poll(r);
	assert_int_equal(rig_responses(r), EE_CHUNK);
	rig_poll(r);
	assert_int_equal(rig_responses(r), 22);
	for (unsigned int i = 0; i < 20; i++)
		assert_int_equal(rig_response(r, i)->psn, 101 + i);
	assert_int_equal(rig_response(r, 0)->resp.msn, 2);
	rig_expect_atomic(r, 20, 121, 0);
	assert_int_equal(rig_response(r, 20)->resp.msn, 3);
	assert_int_equal(rig_response(r, 21)->opcode, HCA_BTH_RC_ACK);
	assert_int_equal(rig_response(r, 21)->psn, 122);
	assert_int_equal(rig_response(r, 21)->resp.msn, 4);
	rig_forget_responses(r);
	rig_expect_silence(r);
}

static void
nak_waits_for_the_read_before_it(void **state)
{
	struct rig *r = *state;
	struct rig_packet p[2] = {rig_read(100, 0, 20 * 256), rig_write(120, 0, 8, 1)};

	p[1].rkey = RIG_KEY_NONE;
	rig_burst(r, p, 2);
	rig_poll(r);
	rig_poll(r);
	assert_int_equal(rig_responses(r), 21);
	assert_int_equal(rig_response(r, 19)->opcode, HCA_BTH_RC_READ_RESP_LAST);
	assert_int_equal(rig_response(r, 20)->syndrome, HCA_NAK_SYNDROME(HCA_NAK_REMOTE_ACCESS));
	assert_int_equal(rig_response(r, 20)->psn, 120);
	assert_int_equal(r->qp->cfg.state, HCA_QPS_ERR);
}

/* Nothing is lost, and no poll reports work, while encap has no room or there are no mbufs. */
static void
owed_responses_wait_for_room(void **state)
{
	struct rig *r = *state;
	struct fx_edge *e = &r->fx->edge[HCA_EDGE_EE_ENCAP];

	e->room = 0;
	rig_feed(r, rig_write(100, 0, 8, 1));
	rig_feed(r, rig_read(101, 0, 600));
	rig_feed(r, rig_write(104, 8, 8, 2));
	assert_int_equal(rig_responses(r), 0);
	/* no work: the worker yields, and takes short sleeps only */
	assert_int_equal(hca_ee_poll(r->h, r->now, HCA_BURST), 0);
	assert_true(hca_ee_deadline(r->h, r->now) == HCA_DEADLINE_ROOM);
	e->room = 1;
	for (unsigned int i = 1; i <= 4; i++) {
		rig_poll(r);
		assert_int_equal(rig_responses(r), i);
	}
	assert_int_equal(rig_response(r, 0)->psn, 101);
	assert_int_equal(rig_response(r, 3)->psn, 104);
	rig_poll(r);
	assert_int_equal(rig_responses(r), 4);
	assert_true(hca_ee_deadline(r->h, r->now) == UINT64_MAX);
}

/* Where there is room for one response at a time, no QP has two before each has one. */
static void
turns_where_room_is_scarce(void **state)
{
	struct rig *r = *state;
	struct hca_resp_job jobs[2][RIG_MAX_RD];
	unsigned int sent[4] = {0};

	r->fx->edge[HCA_EDGE_EE_ENCAP].room = 0;
	rig_feed(r, rig_read(100, 0, 600));
	for (uint32_t i = 0; i < 2; i++) {
		struct hca_qp *other = &r->h->qp[RIG_QPI + 1 + i];

		other->cfg = r->qp->cfg;
		other->ee = r->qp->ee;
		memcpy(jobs[i], r->qp->ee.jobs, sizeof(jobs[i]));
		other->ee.jobs = jobs[i];
		other->ee.flags = 0;
		ee_list_ready(r->h, ee_ctx(r->h), &other->ee, RIG_QPI + 1 + i);
	}
	r->fx->edge[HCA_EDGE_EE_ENCAP].room = 1;
	for (unsigned int i = 0; i < 9; i++) {
		rig_poll(r);
		assert_int_equal(rig_responses(r), i + 1);
		sent[rig_response(r, i)->qpi]++;
		for (uint32_t qpi = RIG_QPI; qpi < RIG_QPI + 3; qpi++)
			assert_in_range(sent[qpi], i / 3, i / 3 + 1);
	}
	rig_poll(r);
	assert_int_equal(rig_responses(r), 9);
	assert_int_equal(ee_ctx(r->h)->ready_count, 0);
}

static void
owed_responses_wait_for_mbufs(void **state)
{
	struct rig *r = *state;
	struct rte_mbuf *taken[255];
	unsigned int n = 0;

	while (n < 255 && (taken[n] = rte_pktmbuf_alloc(r->h->resp_pool)) != NULL)
		n++;
	rig_feed(r, rig_read(100, 0, 600));
	assert_int_equal(rig_responses(r), 0);
	assert_true(RIG_COUNTER(r, resp_no_mbuf) > 0);
	rte_pktmbuf_free(taken[--n]);
	rig_poll(r);
	assert_int_equal(rig_responses(r), 1);
	while (n > 0)
		rte_pktmbuf_free(taken[--n]);
	rig_poll(r);
	assert_int_equal(rig_responses(r), 3);
	expect_read(r, 2, HCA_BTH_RC_READ_RESP_LAST, 102, 512, 88);
}

static void
atomics(void **state)
{
	struct rig *r = *state;
	struct rig_packet p = rig_add(100, 8, UINT64_C(0x100000001));

	rig_feed(r, p);
	assert_int_equal(load(r, 8), UINT64_C(0x100000001));
	rig_expect_atomic(r, 0, 100, 0);
	p.psn = 101;
	p.opcode = HCA_BTH_RC_CMP_SWAP;
	p.compare = 7; /* not equal: memory unchanged */
	p.swap_add = 99;
	rig_feed(r, p);
	rig_expect_atomic(r, 1, 101, UINT64_C(0x100000001));
	assert_int_equal(load(r, 8), UINT64_C(0x100000001));
	p.psn = 102;
	p.compare = UINT64_C(0x100000001);
	rig_feed(r, p);
	rig_expect_atomic(r, 2, 102, UINT64_C(0x100000001));
	assert_int_equal(load(r, 8), 99);
	assert_int_equal(r->qp->ee.msn, 3);
	assert_int_equal(RIG_COUNTER(r, rx_atomic_requests), 3);
}

/*
 * The stored result is sent, not the memory's current value; a request older than the ring is
 * dropped.
 */
static void
repeated_atomics_are_replayed(void **state)
{
	struct rig *r = *state;

	for (unsigned int i = 0; i < 10; i++)
		rig_feed(r, rig_add(100 + i, 8, 1));
	rig_forget_responses(r);
	rig_feed(r, rig_add(105, 8, 1));
	assert_int_equal(load(r, 8), 10);
	assert_int_equal(rig_responses(r), 1);
	rig_expect_atomic(r, 0, 105, 5);
	assert_int_equal(r->qp->ee.msn, 10);
	rig_forget_responses(r);
	rig_feed(r, rig_add(100, 8, 1));
	rig_expect_silence(r);
	assert_int_equal(load(r, 8), 10);
	assert_int_equal(RIG_COUNTER(r, resp_duplicate_dropped), 1);
	assert_int_equal(r->qp->ee.epsn, 110);
}

static void
repeated_read_names_its_own_range(void **state)
{
	struct rig *r = *state;

	rig_feed(r, rig_read(100, 0, 1024));
	rig_forget_responses(r);
	rig_feed(r, rig_read(102, 512, 512)); /* the rest of it */
	assert_int_equal(rig_responses(r), 2);
	expect_read(r, 0, HCA_BTH_RC_READ_RESP_FIRST, 102, 512, 256);
	expect_read(r, 1, HCA_BTH_RC_READ_RESP_LAST, 103, 768, 256);
	assert_true(rig_response(r, 0)->flags & HCA_TXD_REPEAT);
	assert_int_equal(r->qp->ee.epsn, 104);
	assert_int_equal(r->qp->ee.msn, 1);
	assert_int_equal(r->qp->ee.new_jobs, 0);
}

/*
 * A repeated READ whose memory is gone is refused; late copies of it must not move the QP to ERR,
 * nor affect later answers.
 */
static void
repeated_read_that_may_not_is_refused(void **state)
{
	struct rig *r = *state;
	struct rig_packet p = rig_read(100, 0, 512);

	rig_feed(r, p);
	rig_feed(r, rig_write(102, 0, 8, 1));
	rig_forget_responses(r);
	p.dma_len = 1024; /* exceeds the length that was executed */
	rig_feed(r, p);
	rig_expect_silence(r);
	assert_int_equal(RIG_COUNTER(r, resp_duplicate_dropped), 1);
	p = rig_read(101, 256, 256);
	p.rkey = RIG_KEY_DEAD;
	rig_feed(r, p);
	rig_expect_ack(r, HCA_NAK_SYNDROME(HCA_NAK_REMOTE_ACCESS), 101);
	p.rkey = RIG_KEY_ALL;
	r->qp->cfg.access &= ~HCA_ACCESS_REMOTE_READ;
	rig_feed(r, p);
	rig_expect_ack(r, HCA_NAK_SYNDROME(HCA_NAK_REMOTE_ACCESS), 101);
	r->qp->cfg.access |= HCA_ACCESS_REMOTE_READ;
	assert_int_equal(RIG_COUNTER(r, resp_duplicate_refused), 2);
	assert_int_equal(RIG_COUNTER(r, naks_sent), 2);
	assert_int_equal(r->qp->cfg.state, HCA_QPS_RTS);
	assert_int_equal(r->qp->ee.new_jobs, 0);
	rig_feed(r, p); /* accessible again */
	assert_int_equal(rig_responses(r), 1);
	expect_read(r, 0, HCA_BTH_RC_READ_RESP_ONLY, 101, 256, 256);
	rig_forget_responses(r);
	rig_feed(r, rig_write(103, 0, 8, 2));
	rig_expect_ack(r, RIG_ACK, 103);
}

/* A request that is repeated before it is answered is answered once. */
static void
repeats_leave_room_for_new_requests(void **state)
{
	struct rig *r = *state;
	struct fx_edge *e = &r->fx->edge[HCA_EDGE_EE_ENCAP];
	unsigned int i;

	rig_feed(r, rig_read(100, 0, 8));
	rig_forget_responses(r);
	e->room = 0;
	for (i = 0; i < 10; i++)
		rig_feed(r, rig_read(100, 0, 8));
	assert_int_equal(ee_jobs(&r->qp->ee), 1);
	for (i = 0; i < RIG_MAX_RD; i++)
		rig_feed(r, rig_add(101 + i, 8, 1));
	assert_int_equal(ee_jobs(&r->qp->ee), RIG_MAX_RD + 1);
	assert_int_equal(RIG_COUNTER(r, duplicate_request), 10);
	assert_int_equal(RIG_COUNTER(r, resp_duplicate_dropped), 0);
	e->room = 64;
	rig_poll(r);
	assert_int_equal(rig_responses(r), RIG_MAX_RD + 1);
	expect_read(r, 0, HCA_BTH_RC_READ_RESP_ONLY, 100, 0, 8);
	rig_expect_atomic(r, RIG_MAX_RD, 100 + RIG_MAX_RD, RIG_MAX_RD - 1);
	rig_forget_responses(r);
	rig_expect_silence(r);
}

/* An ACK for a duplicate must not acknowledge later READs and ATOMICs, whose data may be lost. */
static void
repeats_of_writes_before_reads(void **state)
{
	struct rig *r = *state;

	r->qp->ee.epsn = 0xfffffe;
	rig_feed(r, rig_write(0xfffffe, 0, 8, 1));
	rig_feed(r, rig_read(0xffffff, 0, 600)); /* three responses */
	rig_feed(r, rig_add(2, 8, 1));
	rig_forget_responses(r);
	rig_feed(r, rig_write(0xfffffe, 0, 8, 1));
	rig_expect_ack(r, RIG_ACK, 0xfffffe);

	/* a repeated READ ends where it ended the first time */
	rig_feed(r, rig_read(0, 256, 344));
	rig_forget_responses(r);
	rig_feed(r, rig_write(0xfffffe, 0, 8, 1));
	rig_expect_ack(r, RIG_ACK, 0xfffffe);

	rig_feed(r, rig_write(3, 0, 8, 2));
	rig_forget_responses(r);
	rig_feed(r, rig_write(0xfffffe, 0, 8, 1));
	rig_expect_ack(r, RIG_ACK, 3);

	rig_feed(r, rig_read(4, 0, 0));
	rig_forget_responses(r);
	rig_feed(r, rig_write(0xfffffe, 0, 8, 1));
	rig_expect_ack(r, RIG_ACK, 3);
	rig_feed(r, rig_write(5, 0, 8, 2));
	rig_expect_ack(r, RIG_ACK, 5);
}

/*
 * The same of a NAK that is not needed any more: the dropped ATOMIC has arrived again. Its answer
 * may come after the ACK, which must not name it.
 */
static void
closed_gap_before_an_atomic(void **state)
{
	struct rig *r = *state;
	struct rig_packet p[3] = {rig_add(101, 8, 1), rig_write(100, 0, 8, 1), rig_add(101, 8, 1)};
	unsigned int acks = 0;

	p[1].flags = 0;
	rig_burst(r, p, 3);
	for (unsigned int i = 0; i < 4; i++)
		rig_poll(r);
	assert_int_equal(RIG_COUNTER(r, seq_nak_sent), 0);
	rig_expect_atomic(r, 0, 101, 0);
	for (unsigned int i = 1; i < rig_responses(r); i++, acks++) {
		assert_int_equal(rig_response(r, i)->opcode, HCA_BTH_RC_ACK);
		assert_int_equal(rig_response(r, i)->psn, 100);
	}
	assert_true(acks <= 1);
}

/* A duplicate of a READ whose responses are being sent restarts where it asks to. */
static void
repeat_of_a_read_under_way(void **state)
{
	struct rig *r = *state;
	struct fx_edge *e = &r->fx->edge[HCA_EDGE_EE_ENCAP];

	e->room = 1;
	rig_feed(r, rig_read(100, 0, 1024));
	rig_feed(r, rig_add(104, 8, 1));
	assert_int_equal(rig_responses(r), 2);
	e->room = 0;
	rig_forget_responses(r);
	rig_feed(r, rig_read(101, 256, 768));
	assert_int_equal(r->qp->ee.new_jobs, 2);
	e->room = 64;
	rig_poll(r);
	assert_int_equal(rig_responses(r), 4);
	expect_read(r, 0, HCA_BTH_RC_READ_RESP_FIRST, 101, 256, 256);
	expect_read(r, 2, HCA_BTH_RC_READ_RESP_LAST, 103, 768, 256);
	rig_expect_atomic(r, 3, 104, 0);
	assert_int_equal(r->qp->ee.new_jobs, 0);
	rig_forget_responses(r);
	rig_expect_silence(r);
}

/*
 * Copies of a READ are answered as quickly as the READ, but packet by packet while other QPs are at
 * work, and for a millisecond after that.
 */
static void
repeats_beside_others(void **state)
{
	struct rig *r = *state;
	uint64_t *others = &r->h->line[HCA_STAGE_REQ_TX].counters[HCA_CTR_req_packets];
	const struct rig_packet read = rig_read(100, 0, 8 * RIG_MTU);

	rig_feed(r, read);
	assert_int_equal(rig_responses(r), 8);
	rig_forget_responses(r);
	rig_feed(r, read);
	assert_int_equal(rig_responses(r), 8);
	rig_forget_responses(r);
	++*others;
	rig_feed(r, read);
	assert_int_equal(rig_responses(r), 1);
	for (unsigned int i = 2; i <= 8; i++) {
		rig_poll(r);
		assert_int_equal(rig_responses(r), i);
	}
	rig_forget_responses(r);
	rig_expect_silence(r);
	assert_int_equal(RIG_COUNTER(r, resp_repeats_slowed), 7);
	r->now += EE_OTHERS_NS;
	rig_feed(r, read);
	assert_int_equal(rig_responses(r), 8);
	rig_forget_responses(r);
	/* new requests of the same QP are no others */
	rig_feed(r, rig_write(108, 0, 16, 1));
	rig_forget_responses(r);
	rig_feed(r, read);
	assert_int_equal(rig_responses(r), 8);
	rig_forget_responses(r);
}

/*
 * A new request takes the slot of the oldest, and the requester needs no repeat of that any more.
 */
static void
new_request_ends_the_oldest_repeat(void **state)
{
	struct rig *r = *state;
	struct fx_edge *e = &r->fx->edge[HCA_EDGE_EE_ENCAP];
	uint32_t ring = r->qp->ee.job_mask + 1u;

	for (uint32_t i = 0; i < ring; i++)
		rig_feed(r, rig_add(100 + i, 8, 1));
	e->room = 0;
	rig_forget_responses(r);
	rig_feed(r, rig_add(100, 8, 1));
	rig_feed(r, rig_add(100 + ring - 1, 8, 1));
	assert_int_equal(ee_jobs(&r->qp->ee), 2);
	rig_feed(r, rig_add(100 + ring, 8, 1));
	assert_int_equal(ee_jobs(&r->qp->ee), 2);
	e->room = 64;
	rig_poll(r);
	assert_int_equal(rig_responses(r), 2);
	rig_expect_atomic(r, 0, 100 + ring - 1, ring - 1);
	rig_expect_atomic(r, 1, 100 + ring, ring);
	rig_forget_responses(r);
	/* forgotten, or not an ATOMIC */
	rig_feed(r, rig_add(100, 8, 1));
	rig_feed(r, rig_read(100 + ring, 0, 8));
	rig_expect_silence(r);
	assert_int_equal(RIG_COUNTER(r, resp_duplicate_dropped), 2);
	assert_int_equal(load(r, 8), ring + 1);
}

static void
more_than_max_dest_rd_atomic(void **state)
{
	struct rig *r = *state;
	struct fx_edge *e = &r->fx->edge[HCA_EDGE_EE_ENCAP];

	e->room = 0;
	for (unsigned int i = 0; i <= RIG_MAX_RD; i++)
		rig_feed(r, rig_add(100 + i, 8, 1));
	assert_int_equal(load(r, 8), RIG_MAX_RD);
	e->room = 64;
	rig_poll(r);
	assert_int_equal(rig_responses(r), RIG_MAX_RD + 1);
	assert_int_equal(rig_response(r, RIG_MAX_RD)->syndrome,
			 HCA_NAK_SYNDROME(HCA_NAK_INVALID_REQ));
	assert_int_equal(rig_response(r, RIG_MAX_RD)->psn, 100 + RIG_MAX_RD);
	assert_true(rig_event(r, HCA_EVENT_WQ_INVAL_REQ));
}

static void
failed_gather_is_a_nak_at_its_psn(void **state)
{
	struct rig *r = *state;
	struct rig_packet p[2] = {rig_read(100, 0, 20 * 256), rig_write(120, 0, 8, 1)};

	rig_burst(r, p, 2);
	rig_poll(r);
	rig_forget_responses(r);
	r->qp->encap.resp_failed_psn = 103;
	hca_msg_send(r->h, HCA_STAGE_ENCAP, HCA_STAGE_EE, RIG_QPI, HCA_MSG_FAILED);
	rig_poll(r);
	rig_expect_fatal(r, HCA_NAK_REMOTE_ACCESS, 103, HCA_EVENT_WQ_ACCESS);
	r->qp->encap.resp_failed_psn = 110;
	hca_msg_send(r->h, HCA_STAGE_ENCAP, HCA_STAGE_EE, RIG_QPI, HCA_MSG_FAILED);
	rig_expect_silence(r);
}

/*
 * The memory of the first response was late, and answered a duplicate before EE learnt that: the
 * requester has its data, and goes on with other READs.
 */
static void
late_response_of_a_read_answered_since(void **state)
{
	struct rig *r = *state;
	uint32_t psn = 100;

	for (uint8_t i = 1; i <= RIG_MAX_RD + 1; i++, psn += 2) {
		rig_feed(r, rig_read(psn, 0, 512));
		rig_feed(r, rig_read(psn, 0, 512));
		assert_int_equal(rig_responses(r), 4);
		rig_forget_responses(r);
		r->qp->encap.resp_late_psn = psn;
		r->qp->encap.resp_late = i;
		hca_msg_send(r->h, HCA_STAGE_ENCAP, HCA_STAGE_EE, RIG_QPI, HCA_MSG_LATE);
		rig_poll(r);
		rig_expect_ack(r, HCA_RNR_SYNDROME(r->qp->cfg.min_rnr_timer), psn);
		assert_int_equal(r->qp->ee.late_seen, i);
		assert_int_equal(r->qp->ee.new_jobs, 0);
	}
	/* the last one is repeated nevertheless */
	rig_feed(r, rig_read(psn - 1, 256, 256));
	assert_int_equal(rig_responses(r), 1);
	expect_read(r, 0, HCA_BTH_RC_READ_RESP_ONLY, psn - 1, 256, 256);
	assert_int_equal(r->qp->ee.new_jobs, 0);
}

/*
 * The memory of a READ is late at one response and gone at a later one: the requester waits for the
 * late one, so that is refused. EE learns both at once, or has asked for a repetition already.
 */
static void
late_and_then_failed(void **state)
{
	for (unsigned int asked = 0; asked < 2; asked++) {
		struct rig *r = *state;

		rig_feed(r, rig_read(100, 0, 1024));
		rig_forget_responses(r);
		r->qp->encap.resp_late_psn = 101;
		r->qp->encap.resp_late = 1;
		hca_msg_send(r->h, HCA_STAGE_ENCAP, HCA_STAGE_EE, RIG_QPI, HCA_MSG_LATE);
		if (asked) {
			rig_poll(r);
			rig_expect_ack(r, HCA_RNR_SYNDROME(r->qp->cfg.min_rnr_timer), 101);
		}
		r->qp->encap.resp_failed_psn = 103;
		hca_msg_send(r->h, HCA_STAGE_ENCAP, HCA_STAGE_EE, RIG_QPI, HCA_MSG_FAILED);
		rig_poll(r);
		rig_expect_fatal(r, HCA_NAK_REMOTE_ACCESS, 101, HCA_EVENT_WQ_ACCESS);
		assert_int_equal(r->qp->ee.late_seen, 1);
		rig_teardown(state);
		rig_setup(state);
	}
}

/* One that fails before the late one is refused itself. */
static void
failed_and_then_late(void **state)
{
	struct rig *r = *state;

	rig_feed(r, rig_read(100, 0, 1024));
	rig_forget_responses(r);
	r->qp->encap.resp_failed_psn = 101;
	r->qp->encap.resp_late_psn = 103;
	r->qp->encap.resp_late = 1;
	hca_msg_send(r->h, HCA_STAGE_ENCAP, HCA_STAGE_EE, RIG_QPI, HCA_MSG_LATE | HCA_MSG_FAILED);
	rig_poll(r);
	rig_expect_fatal(r, HCA_NAK_REMOTE_ACCESS, 101, HCA_EVENT_WQ_ACCESS);
}

/* A later READ fails while the requester waits for the late one: both are refused, in order. */
static void
late_and_another_failed(void **state)
{
	struct rig *r = *state;
	struct hca_txd *d;

	rig_feed(r, rig_read(100, 0, 512));
	rig_feed(r, rig_read(102, 0, 512));
	rig_forget_responses(r);
	r->qp->encap.resp_late_psn = 101;
	r->qp->encap.resp_late = 1;
	hca_msg_send(r->h, HCA_STAGE_ENCAP, HCA_STAGE_EE, RIG_QPI, HCA_MSG_LATE);
	rig_poll(r);
	assert_int_equal(rig_responses(r), 1);
	assert_int_equal(rig_response(r, 0)->syndrome, HCA_RNR_SYNDROME(r->qp->cfg.min_rnr_timer));
	rig_forget_responses(r);
	r->qp->encap.resp_failed_psn = 103;
	hca_msg_send(r->h, HCA_STAGE_ENCAP, HCA_STAGE_EE, RIG_QPI, HCA_MSG_FAILED);
	rig_poll(r);
	assert_int_equal(rig_responses(r), 2);
	for (unsigned int i = 0; i < 2; i++) {
		d = rig_response(r, i);
		assert_int_equal(d->syndrome, HCA_NAK_SYNDROME(HCA_NAK_REMOTE_ACCESS));
		assert_int_equal(d->psn, i == 0 ? 101 : 103);
	}
	assert_int_equal(r->qp->cfg.state, HCA_QPS_ERR);
	rig_forget_responses(r);
	rig_expect_silence(r);
}

static void
error_from_elsewhere_drops_what_is_owed(void **state)
{
	struct rig *r = *state;

	r->fx->edge[HCA_EDGE_EE_ENCAP].room = 0;
	rig_feed(r, rig_read(100, 0, 600));
	rig_feed(r, rig_write(103, 0, 8, 1));
	r->fx->edge[HCA_EDGE_EE_ENCAP].room = 64;
	r->qp->cfg.state = HCA_QPS_ERR;
	rig_expect_silence(r);
	assert_int_equal(ee_jobs(&r->qp->ee), 0);
	assert_int_equal(r->qp->ee.new_jobs, 0);
}

/* QPs before and after the purged one keep their places in both lists. */
static void
purge_forgets_the_qp_only(void **state)
{
	struct rig *r = *state;
	struct ee_ctx *ctx = ee_ctx(r->h);
	struct hca_qp *other[2] = {&r->h->qp[2], &r->h->qp[3]};

	r->fx->edge[HCA_EDGE_EE_ENCAP].room = 0;
	for (unsigned int i = 0; i < 2; i++) {
		other[i]->cfg = r->qp->cfg;
		other[i]->ee.epsn = 50 + i;
	}
	other[0]->ee.flags |= EE_ACK_OWED;
	other[1]->ee.flags |= EE_ACK_OWED;
	ee_list_ready(r->h, ctx, &other[0]->ee, 2);
	rig_feed(r, rig_read(100, 0, 600));
	ee_list_ready(r->h, ctx, &other[1]->ee, 3);
	ee_list_lazy(r->h, ctx, &r->qp->ee, RIG_QPI);
	assert_int_equal(ctx->ready_count, 3);

	r->qp->cfg.state = HCA_QPS_RST;
	r->h->purge_seq = 9;
	hca_msg_send(r->h, HCA_STAGE_CEU, HCA_STAGE_EE, RIG_QPI, HCA_MSG_PURGE);
	rig_poll(r);
	assert_int_equal(r->h->line[HCA_STAGE_EE].purge_ack, 9);
	assert_int_equal(r->qp->ee.flags, 0);
	assert_int_equal(ee_jobs(&r->qp->ee), 0);
	assert_int_equal(ctx->ready_count, 2);
	assert_int_equal(ctx->lazy.head, HCA_QP_NONE);
	r->fx->edge[HCA_EDGE_EE_ENCAP].room = 64;
	rig_poll(r);
	assert_int_equal(rig_responses(r), 2);
	assert_int_equal(rig_response(r, 0)->qpi + rig_response(r, 1)->qpi, 5);
	assert_int_equal(ctx->ready_count, 0);
	assert_int_equal(ctx->ready.head, HCA_QP_NONE);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		TEST(read_sizes),
		TEST(read_psns_wrap),
		TEST(responses_leave_in_psn_order),
		TEST(nak_waits_for_the_read_before_it),
		TEST(owed_responses_wait_for_room),
		TEST(turns_where_room_is_scarce),
		TEST(owed_responses_wait_for_mbufs),
		TEST(atomics),
		TEST(repeated_atomics_are_replayed),
		TEST(repeated_read_names_its_own_range),
		TEST(repeated_read_that_may_not_is_refused),
		TEST(repeats_leave_room_for_new_requests),
		TEST(repeats_of_writes_before_reads),
		TEST(closed_gap_before_an_atomic),
		TEST(repeat_of_a_read_under_way),
		TEST(repeats_beside_others),
		TEST(new_request_ends_the_oldest_repeat),
		TEST(more_than_max_dest_rd_atomic),
		TEST(failed_gather_is_a_nak_at_its_psn),
		TEST(late_response_of_a_read_answered_since),
		TEST(late_and_then_failed),
		TEST(failed_and_then_late),
		TEST(late_and_another_failed),
		TEST(error_from_elsewhere_drops_what_is_owed),
		TEST(purge_forgets_the_qp_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
