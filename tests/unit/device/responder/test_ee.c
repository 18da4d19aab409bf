/* SPDX-License-Identifier: BSD-3-Clause */

/* The checks of the responder, each passed and failed; WRITE, PSN regions, acknowledgement. */

#include "ee_rig.h"

#include <string.h>

static void
write_is_executed_and_acknowledged(void **state)
{
	struct rig *r = *state;

	rig_feed(r, rig_write(100, 8, 200, 5));
	assert_true(rig_holds(r, 8, 200, 5));
	assert_int_equal(r->mem[7], 0);
	assert_int_equal(r->mem[208], 0);
	assert_int_equal(r->qp->ee.msn, 1);
	assert_int_equal(RIG_COUNTER(r, rx_write_requests), 1);
	rig_expect_ack(r, RIG_ACK, 100);
	rig_expect_silence(r);
}

static void
write_of_nothing_checks_no_key(void **state)
{
	struct rig *r = *state;
	struct rig_packet p = rig_write(100, 0, 0, 0);

	p.rkey = 0;
	p.va = UINT64_MAX;
	rig_feed(r, p);
	rig_expect_ack(r, RIG_ACK, 100);
	assert_int_equal(r->qp->ee.epsn, 101);
	assert_int_equal(r->qp->ee.msn, 1);
}

static struct rig_packet
part(uint8_t opcode, uint32_t psn, uint32_t len, uint8_t seed)
{
	struct rig_packet p = rig_write(psn, 32, len, seed);

	p.opcode = opcode;
	p.flags = 0;
	return p;
}

static void
write_of_many_packets(void **state)
{
	struct rig *r = *state;
	struct rig_packet p[3] = {
		part(HCA_BTH_RC_WRITE_FIRST, 100, 256, 0),
		part(HCA_BTH_RC_WRITE_MIDDLE, 101, 256, 0),
		part(HCA_BTH_RC_WRITE_LAST, 102, 17, 0),
	};

	p[0].dma_len = 256 + 256 + 17;
	p[2].flags = HCA_RXD_ACKREQ;
	rig_burst(r, p, 3);
	rig_poll(r);
	assert_true(rig_holds(r, 32, 529, 0));
	assert_int_equal(r->mem[32 + 529], 0);
	assert_int_equal(r->qp->ee.msn, 1);
	assert_int_equal(r->qp->ee.msg_kind, EE_MSG_NONE);
	rig_expect_ack(r, RIG_ACK, 102);
}

static void
one_ack_per_burst(void **state)
{
	struct rig *r = *state;
	struct rig_packet p[HCA_BURST];

	for (unsigned int i = 0; i < HCA_BURST; i++)
		p[i] = rig_write(100 + i, i * 16, 16, (uint8_t)i);
	rig_burst(r, p, HCA_BURST);
	assert_int_equal(rig_responses(r), 0);
	rig_poll(r);
	assert_int_equal(r->qp->ee.msn, HCA_BURST);
	rig_expect_ack(r, RIG_ACK, 100 + HCA_BURST - 1);
}

/*
 * A run of WRITEs and one of SENDs in a burst, then a WRITE that its key does not grant, by range
 * or rights, and one that would be good.
 */
static void
runs_end_at_a_refusal(void **state)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct rig *r = *state;
		struct rig_packet p[7] = {
			rig_write(100, 0, 16, 1),
			rig_write(101, 16, 64, 2),
			rig_send(HCA_BTH_RC_SEND_ONLY, 102, 40, 3),
			rig_send(HCA_BTH_RC_SEND_ONLY, 103, 20, 4),
			rig_write(104, 200, 33, 5),
			rig_write(105, 300, 16, 6),
			rig_write(106, 400, 16, 7),
		};

		if (i == 0)
			p[5].va = RIG_VA + RIG_LEN - 15;
		else
			p[5].rkey = RIG_KEY_NONE;
		rig_post_one(r, 512, 64);
		rig_post_one(r, 640, 64);
		rig_burst(r, p, 7);
		rig_poll(r);
		assert_true(rig_holds(r, 0, 16, 1) && rig_holds(r, 16, 64, 2));
		assert_true(rig_holds(r, 512, 40, 3) && rig_holds(r, 640, 20, 4));
		assert_true(rig_holds(r, 200, 33, 5));
		assert_int_equal(r->mem[300], 0);
		assert_int_equal(r->mem[400], 0);
		assert_int_equal(r->qp->ee.msn, 5);
		assert_int_equal(r->qp->ee.epsn, 105);
		assert_int_equal(r->qp->ee.rx_bytes, 16 + 64 + 40 + 20 + 33 + 16);
		assert_int_equal(RIG_COUNTER(r, rx_write_requests), 3);
		assert_int_equal(RIG_COUNTER(r, rx_send_requests), 2);
		rig_expect_fatal(r, HCA_NAK_REMOTE_ACCESS, 105, HCA_EVENT_WQ_ACCESS);
		rig_teardown(state);
		rig_setup(state);
	}
}

/* The receives of a run are those that are there; a receive with another key is judged by it. */
static void
sends_end_at_the_last_receive(void **state)
{
	struct rig *r = *state;
	struct hca_sge odd = {.va = RIG_VA + 700, .lkey = RIG_KEY_DEAD, .len = 64};
	struct rig_packet p[5] = {
		rig_send(HCA_BTH_RC_SEND_ONLY, 100, 40, 3),
		rig_send(HCA_BTH_RC_SEND_ONLY, 101, 20, 4),
		rig_send(HCA_BTH_RC_SEND_ONLY, 102, 20, 5),
		rig_send(HCA_BTH_RC_SEND_ONLY, 103, 20, 6),
		rig_send(HCA_BTH_RC_SEND_ONLY, 104, 20, 7),
	};

	rig_post_one(r, 512, 64);
	rig_post_one(r, 640, 64);
	rig_burst(r, p, 3);
	assert_true(rig_holds(r, 512, 40, 3) && rig_holds(r, 640, 20, 4));
	assert_int_equal(r->qp->ee.msn, 2);
	assert_int_equal(r->qp->ee.epsn, 102);
	assert_int_equal(r->cqes, 2);
	rig_poll(r);
	assert_int_equal(RIG_COUNTER(r, rnr_nak_sent), 1);
	rig_forget_responses(r);

	/* the first one ends the wait for a receive, so the run begins with the second */
	rig_post_one(r, 800, 64);
	rig_post_one(r, 900, 64);
	rig_post(r, &odd, 1);
	rig_burst(r, p + 2, 3);
	rig_poll(r);
	assert_true(rig_holds(r, 800, 20, 5) && rig_holds(r, 900, 20, 6));
	assert_int_equal(r->mem[700], 0);
	assert_int_equal(r->qp->ee.msn, 4);
	assert_int_equal(RIG_COUNTER(r, resp_local_protection_error), 1);
}

/* Without AckReq, ACKs are sent when idle, after ack_every packets, and eventually while busy. */
static void
unasked_packets_are_acknowledged(void **state)
{
	struct rig *r = *state;
	struct rig_packet p = rig_write(100, 0, 16, 1);
	unsigned int i;

	p.flags = 0;
	rig_feed(r, p);
	assert_int_equal(rig_responses(r), 0);
	rig_poll(r);
	rig_expect_ack(r, RIG_ACK, 100);

	for (i = 0; rig_responses(r) == 0 && i < 100; i++) {
		p.psn++;
		rig_feed(r, p);
	}
	assert_in_range(i, 2, 31);
	rig_expect_ack(r, RIG_ACK, p.psn);

	for (i = 0; i < HCA_BURST; i++) {
		struct rig_packet q = p;

		q.psn = p.psn + 1 + i;
		rig_burst(r, &q, 1);
	}
	rig_poll(r);
	rig_expect_ack(r, RIG_ACK, p.psn + HCA_BURST);
}

static void
psn_wraps(void **state)
{
	struct rig *r = *state;

	r->qp->ee.epsn = 0xffffff;
	r->qp->ee.msn = 0xffffff;
	rig_feed(r, rig_write(0xffffff, 0, 16, 1));
	rig_expect_ack(r, RIG_ACK, 0xffffff);
	assert_int_equal(r->qp->ee.epsn, 0);
	assert_int_equal(r->qp->ee.msn, 0);
	rig_feed(r, rig_write(0, 16, 16, 2));
	rig_expect_ack(r, RIG_ACK, 0);
	rig_feed(r, rig_write(0xffffff, 0, 16, 9)); /* before the wrap: a duplicate */
	assert_true(rig_holds(r, 0, 16, 1));
	rig_expect_ack(r, RIG_ACK, 0);
	assert_int_equal(r->qp->ee.msn, 1);
}

static void
states(void **state)
{
	static const uint8_t receives[] = {HCA_QPS_RTR, HCA_QPS_RTS, HCA_QPS_SQE, HCA_QPS_SQD};
	static const uint8_t deaf[] = {HCA_QPS_RST, HCA_QPS_INIT, HCA_QPS_ERR};
	struct rig *r = *state;

	for (unsigned int i = 0; i < RTE_DIM(receives); i++) {
		r->qp->cfg.state = receives[i];
		rig_feed(r, rig_write(100 + i, 0, 16, 1));
		rig_expect_ack(r, RIG_ACK, 100 + i);
	}
	assert_int_equal(r->fx->events, 1);
	assert_true(rig_event(r, HCA_EVENT_COMM_EST));
	for (unsigned int i = 0; i < RTE_DIM(deaf); i++) {
		r->qp->cfg.state = deaf[i];
		rig_feed(r, rig_write(104, 0, 16, 99));
		rig_expect_silence(r);
	}
	assert_true(rig_holds(r, 0, 16, 1));
	assert_int_equal(RIG_COUNTER(r, rx_qp_state), RTE_DIM(deaf));
	assert_int_equal(r->qp->ee.epsn, 104);
}

/* In RTR the first request raises COMM_EST once; the second takes the fast path. */
static void
communication_is_established_once(void **state)
{
	struct rig *r = *state;

	r->qp->cfg.state = HCA_QPS_RTR;
	rig_feed(r, rig_write(100, 0, 16, 1));
	rig_feed(r, rig_write(101, 0, 16, 1));
	assert_int_equal(r->fx->events, 1);
	assert_int_equal(r->qp->ee.epsn, 102);
}

static void
another_life_and_responses_are_dropped(void **state)
{
	struct rig *r = *state;
	struct rig_packet p = rig_write(100, 0, 16, 1);

	p.generation = 1;
	rig_feed(r, p);
	p = rig_write(100, 0, 16, 1);
	p.opcode = HCA_BTH_RC_ACK;
	rig_feed(r, p);
	rig_expect_silence(r);
	assert_int_equal(r->mem[0], 0);
	assert_int_equal(r->qp->ee.epsn, 100);
	assert_int_equal(RIG_COUNTER(r, rx_stale_generation), 1);
	assert_int_equal(RIG_COUNTER(r, rx_bad_service), 1);
}

static void
one_nak_per_gap(void **state)
{
	struct rig *r = *state;

	rig_feed(r, rig_write(101, 0, 16, 1));
	rig_expect_ack(r, HCA_NAK_SYNDROME(HCA_NAK_PSN_SEQ), 100);
	rig_feed(r, rig_write(102, 0, 16, 1));
	rig_feed(r, rig_write(100 + 0x7fffff, 0, 16, 1));
	rig_expect_silence(r);
	assert_int_equal(r->mem[0], 0);
	rig_feed(r, rig_write(100, 0, 16, 2));
	rig_expect_ack(r, RIG_ACK, 100);
	rig_feed(r, rig_write(102, 0, 16, 1)); /* another gap */
	rig_expect_ack(r, HCA_NAK_SYNDROME(HCA_NAK_PSN_SEQ), 101);
	assert_int_equal(RIG_COUNTER(r, seq_nak_sent), 2);
	assert_int_equal(RIG_COUNTER(r, out_of_seq_request), 4);
	assert_int_equal(r->qp->cfg.state, HCA_QPS_RTS);
}

/*
 * Reordering in a burst: the expected packet arrives before the NAK is sent, the other was dropped.
 */
/* An ACK, and behind it the NAK of a gap */
static void
expect_ack_and_nak(struct rig *r, uint32_t acked, uint32_t missing)
{
	const struct hca_txd *ack = rig_response(r, 0), *nak = rig_response(r, 1);

	assert_int_equal(rig_responses(r), 2);
	assert_int_equal(ack->syndrome, RIG_ACK);
	assert_int_equal(ack->psn, acked);
	assert_int_equal(nak->syndrome, HCA_NAK_SYNDROME(HCA_NAK_PSN_SEQ));
	assert_int_equal(nak->psn, missing);
	rig_forget_responses(r);
	rig_expect_silence(r);
}

/*
 * A packet of a PSN to come, in the burst of the last one that was sent: its requester ignores a
 * NAK of a PSN that it has not sent, and would wait for its ACK until its timer runs out. Asked
 * for or not, and for a duplicate.
 */
static void
future_psn_keeps_the_ack(void **state)
{
	struct rig *r = *state;
	struct rig_packet p[3] = {rig_write(100, 0, 16, 1), rig_write(140, 0, 16, 2),
				  rig_write(141, 0, 16, 2)};

	rig_burst(r, p, 3);
	rig_poll(r);
	expect_ack_and_nak(r, 100, 101);
	p[0] = rig_write(101, 0, 16, 1);
	p[0].flags = 0;
	rig_burst(r, p, 2);
	rig_poll(r);
	expect_ack_and_nak(r, 101, 102);
	rig_feed(r, rig_write(102, 0, 16, 1));
	rig_expect_ack(r, RIG_ACK, 102);
	p[0] = rig_write(102, 0, 16, 1);
	rig_burst(r, p, 2);
	rig_poll(r);
	expect_ack_and_nak(r, 102, 103);
	assert_int_equal(RIG_COUNTER(r, seq_nak_sent), 3);
}

static void
nak_for_what_was_dropped(void **state)
{
	struct rig *r = *state;
	struct rig_packet p[2] = {rig_write(101, 0, 16, 1), rig_write(100, 0, 16, 2)};

	rig_burst(r, p, 2);
	rig_poll(r);
	expect_ack_and_nak(r, 100, 101);
	assert_int_equal(RIG_COUNTER(r, seq_nak_sent), 1);
	rig_feed(r, rig_write(101, 0, 16, 1));
	rig_expect_ack(r, RIG_ACK, 101);
	assert_int_equal(r->qp->ee.msn, 2);
}

/* The same with packets on both sides of the closed gap. */
static void
nak_names_the_first_missing(void **state)
{
	struct rig *r = *state;
	struct rig_packet p[5] = {rig_write(103, 0, 16, 1), rig_write(100, 0, 16, 2),
				  rig_write(102, 0, 16, 1), rig_write(101, 0, 16, 1),
				  rig_write(102, 0, 16, 1)};

	rig_burst(r, p, 5);
	rig_poll(r);
	expect_ack_and_nak(r, 102, 103);
	assert_int_equal(RIG_COUNTER(r, seq_nak_sent), 1);
	assert_int_equal(RIG_COUNTER(r, naks_sent), 1);
}

/* All dropped packets arrive again before the NAK is sent. */
static void
closed_gap_needs_no_nak(void **state)
{
	struct rig *r = *state;
	struct rig_packet p[3] = {rig_write(101, 0, 16, 1), rig_write(100, 0, 16, 2),
				  rig_write(101, 0, 16, 1)};

	p[1].flags = p[2].flags = 0;
	rig_burst(r, p, 3);
	rig_poll(r);
	rig_expect_ack(r, RIG_ACK, 101);
	assert_int_equal(RIG_COUNTER(r, seq_nak_sent), 0);
	assert_int_equal(RIG_COUNTER(r, naks_sent), 0);
	assert_int_equal(RIG_COUNTER(r, acks_sent), 1);
}

static void
duplicate_writes_are_acknowledged_not_executed(void **state)
{
	struct rig *r = *state;
	struct rig_packet p;

	rig_feed(r, rig_write(100, 0, 16, 1));
	rig_feed(r, rig_write(101, 0, 16, 2));
	rig_forget_responses(r);
	p = rig_write(100, 0, 16, 77);
	p.flags = 0;
	rig_feed(r, p);
	assert_true(rig_holds(r, 0, 16, 2));
	rig_expect_ack(r, RIG_ACK, 101);
	rig_feed(r, rig_write(100 - 0x7ffff0, 0, 16, 77));
	rig_expect_ack(r, RIG_ACK, 101);
	assert_int_equal(RIG_COUNTER(r, duplicate_request), 2);
	assert_int_equal(r->qp->ee.msn, 2);
}

/* ---- fatal NAKs: one table ---- */

struct refusal {
	const char *name;
	struct rig_packet first[2]; /* accepted before; opcode of unused ones is RC_ACK */
	struct rig_packet p;
	uint8_t nak;
};

#define AT(op, n, l, dma, address, key) \
	{ \
		.opcode = HCA_BTH_RC_##op, .psn = (n), .len = (l), .dma_len = (dma), \
		.va = (address), .rkey = (key) \
	}
#define PART(op, n, l, dma) AT(op, n, l, dma, RIG_VA, RIG_KEY_ALL)
#define UNUSED \
	{ \
		.opcode = HCA_BTH_RC_ACK \
	}
#define NOTHING \
	{ \
		UNUSED, UNUSED \
	}
#define WFIRST(dma) \
	{ \
		PART(WRITE_FIRST, 100, 256, dma), UNUSED \
	}

static const struct refusal refusals[] = {
	{"middle without first", NOTHING, PART(WRITE_MIDDLE, 100, 256, 0), HCA_NAK_INVALID_REQ},
	{"last without first", NOTHING, PART(WRITE_LAST, 100, 10, 0), HCA_NAK_INVALID_REQ},
	{"send middle without first", NOTHING, PART(SEND_MIDDLE, 100, 256, 0), HCA_NAK_INVALID_REQ},
	{"first in a message", WFIRST(600), PART(WRITE_FIRST, 101, 256, 600), HCA_NAK_INVALID_REQ},
	{"only in a message", WFIRST(600), PART(WRITE_ONLY, 101, 10, 10), HCA_NAK_INVALID_REQ},
	{"read in a message", WFIRST(600), PART(READ_REQ, 101, 0, 10), HCA_NAK_INVALID_REQ},
	{"send in a write", WFIRST(600), PART(SEND_MIDDLE, 101, 256, 0), HCA_NAK_INVALID_REQ},
	{"unknown opcode", NOTHING, {.opcode = 0x1f, .psn = 100}, HCA_NAK_INVALID_REQ},
	{"first too short", NOTHING, PART(WRITE_FIRST, 100, 255, 600), HCA_NAK_INVALID_REQ},
	{"first too long", NOTHING, PART(WRITE_FIRST, 100, 257, 600), HCA_NAK_INVALID_REQ},
	{"first is all", NOTHING, PART(WRITE_FIRST, 100, 256, 256), HCA_NAK_INVALID_REQ},
	{"middle too short", WFIRST(700), PART(WRITE_MIDDLE, 101, 255, 0), HCA_NAK_INVALID_REQ},
	{"middle is all", WFIRST(512), PART(WRITE_MIDDLE, 101, 256, 0), HCA_NAK_INVALID_REQ},
	{"last empty", WFIRST(257), PART(WRITE_LAST, 101, 0, 0), HCA_NAK_INVALID_REQ},
	{"last too long", WFIRST(513), PART(WRITE_LAST, 101, 257, 0), HCA_NAK_INVALID_REQ},
	{"sum too small", WFIRST(300), PART(WRITE_LAST, 101, 43, 0), HCA_NAK_INVALID_REQ},
	{"sum too large", WFIRST(300), PART(WRITE_LAST, 101, 45, 0), HCA_NAK_INVALID_REQ},
	{"only too long", NOTHING, PART(WRITE_ONLY, 100, 257, 257), HCA_NAK_INVALID_REQ},
	{"only, wrong length", NOTHING, PART(WRITE_ONLY, 100, 10, 11), HCA_NAK_INVALID_REQ},
	{"more than 2^31", NOTHING, PART(WRITE_FIRST, 100, 256, 0x80000001), HCA_NAK_INVALID_REQ},
	{"read of more than 2^31", NOTHING, PART(READ_REQ, 100, 0, 0x80000001),
	 HCA_NAK_INVALID_REQ},
	{"unaligned atomic", NOTHING, AT(FETCH_ADD, 100, 0, 0, RIG_VA + 4, RIG_KEY_ALL),
	 HCA_NAK_INVALID_REQ},
	{"atomic at odd memory", NOTHING, AT(FETCH_ADD, 100, 0, 0, RIG_VA, RIG_KEY_ODD),
	 HCA_NAK_REMOTE_ACCESS},
	{"2^31 is more than the region", NOTHING, PART(WRITE_FIRST, 100, 256, 0x80000000),
	 HCA_NAK_REMOTE_ACCESS},
	{"range checked at first", NOTHING, PART(WRITE_FIRST, 100, 256, RIG_LEN + 1),
	 HCA_NAK_REMOTE_ACCESS},
	{"before the region", NOTHING, AT(WRITE_ONLY, 100, 8, 8, RIG_VA - 1, RIG_KEY_ALL),
	 HCA_NAK_REMOTE_ACCESS},
	{"va overflows", NOTHING, AT(WRITE_ONLY, 100, 8, 8, UINT64_MAX - 3, RIG_KEY_ALL),
	 HCA_NAK_REMOTE_ACCESS},
	{"no right", NOTHING, AT(WRITE_ONLY, 100, 8, 8, RIG_VA, RIG_KEY_NONE),
	 HCA_NAK_REMOTE_ACCESS},
	{"another domain", NOTHING, AT(WRITE_ONLY, 100, 8, 8, RIG_VA, RIG_KEY_FOREIGN),
	 HCA_NAK_REMOTE_ACCESS},
	{"dying region", NOTHING, AT(WRITE_ONLY, 100, 8, 8, RIG_VA, RIG_KEY_DEAD),
	 HCA_NAK_REMOTE_ACCESS},
	{"old tag", NOTHING, AT(WRITE_ONLY, 100, 8, 8, RIG_VA, RIG_KEY_STALE),
	 HCA_NAK_REMOTE_ACCESS},
	{"read without right", NOTHING, AT(READ_REQ, 100, 0, 8, RIG_VA, RIG_KEY_NONE),
	 HCA_NAK_REMOTE_ACCESS},
	{"atomic without right", NOTHING, AT(CMP_SWAP, 100, 0, 0, RIG_VA, RIG_KEY_NONE),
	 HCA_NAK_REMOTE_ACCESS},
};

static void
refusals_are_fatal_and_change_nothing(void **state)
{
	for (unsigned int i = 0; i < RTE_DIM(refusals); i++) {
		const struct refusal *f = &refusals[i];
		uint8_t event = f->nak == HCA_NAK_INVALID_REQ ? HCA_EVENT_WQ_INVAL_REQ
							      : HCA_EVENT_WQ_ACCESS;
		uint8_t before[RIG_LEN + 8];
		struct rig *r;
		uint32_t msn;

		print_message("%s\n", f->name);
		rig_setup((void **)&r);
		for (unsigned int k = 0; k < 2; k++)
			if (f->first[k].opcode != HCA_BTH_RC_ACK)
				rig_feed(r, f->first[k]);
		rig_forget_responses(r);
		memcpy(before, r->mem, sizeof(before));
		msn = r->qp->ee.msn;
		rig_feed(r, f->p);
		rig_expect_fatal(r, f->nak, f->p.psn, event);
		assert_memory_equal(before, r->mem, sizeof(before));
		assert_int_equal(r->qp->ee.msn, msn);
		rig_teardown((void **)&r);
	}
}

static void
operations_not_enabled_are_invalid(void **state)
{
	static const struct {
		uint8_t right, opcode;
	} row[] = {
		{HCA_ACCESS_REMOTE_WRITE, HCA_BTH_RC_WRITE_ONLY},
		{HCA_ACCESS_REMOTE_READ, HCA_BTH_RC_READ_REQ},
		{HCA_ACCESS_REMOTE_ATOMIC, HCA_BTH_RC_CMP_SWAP},
		{HCA_ACCESS_REMOTE_ATOMIC, HCA_BTH_RC_FETCH_ADD},
		{HCA_ACCESS_REMOTE_WRITE, HCA_BTH_RC_ATOMIC_WRITE},
	};

	for (unsigned int i = 0; i < RTE_DIM(row); i++) {
		struct rig_packet p = rig_write(100, 0, 0, 0);
		struct rig *r;

		p.opcode = row[i].opcode;
		rig_setup((void **)&r);
		r->qp->cfg.access &= ~row[i].right;
		rig_feed(r, p);
		rig_expect_fatal(r, HCA_NAK_INVALID_REQ, 100, HCA_EVENT_WQ_INVAL_REQ);
		rig_teardown((void **)&r);
	}
}

/* The key is checked at each packet, because it may have become invalid since FIRST. */
static void
key_is_checked_at_each_use(void **state)
{
	struct rig *r = *state;
	struct rig_packet p = part(HCA_BTH_RC_WRITE_FIRST, 100, 256, 1);

	p.dma_len = 300;
	rig_feed(r, p);
	rig_poll(r);
	rig_expect_ack(r, RIG_ACK, 100);
	r->h->vtp.mpt[HCA_KEY_INDEX(RIG_KEY_ALL)].state = HCA_MPT_DYING;
	rig_feed(r, part(HCA_BTH_RC_WRITE_LAST, 101, 44, 1));
	rig_expect_fatal(r, HCA_NAK_REMOTE_ACCESS, 101, HCA_EVENT_WQ_ACCESS);
}

/* Commands of the CEU while a run is executed: after its first copy. */
static struct {
	const struct hca_icrc_ops *ops;
	struct hca_qp *qp;
	uint32_t state;
	uint8_t lost; /* access rights */
} command;

static void
copy_and_command(void *dst, const void *src, size_t n)
{
	command.ops->copy(dst, src, n);
	command.qp->cfg.state = command.state;
	command.qp->cfg.access &= (uint8_t)~command.lost;
}

/* Two WRITEs in a burst: the second one comes after the command. */
static void
run_with_command(struct rig *r, uint32_t state, uint8_t lost)
{
	struct rig_packet p[2] = {rig_write(100, 0, 200, 1), rig_write(101, 200, 200, 2)};
	struct hca_icrc_ops ops = *r->h->icrc;

	command.ops = r->h->icrc;
	command.qp = r->qp;
	command.state = state;
	command.lost = lost;
	ops.copy = copy_and_command;
	r->h->icrc = &ops;
	rig_burst(r, p, 2);
	r->h->icrc = command.ops;
	assert_true(rig_holds(r, 0, 200, 1));
	assert_int_equal(r->mem[200], 0);
	assert_int_equal(r->qp->ee.epsn, 101);
}

static void
run_ends_at_a_change_of_state(void **state)
{
	struct rig *r = *state;

	run_with_command(r, HCA_QPS_ERR, 0);
	assert_int_equal(RIG_COUNTER(r, rx_qp_state), 1);
}

static void
run_ends_when_writes_are_disabled(void **state)
{
	struct rig *r = *state;

	run_with_command(r, HCA_QPS_RTS, HCA_ACCESS_REMOTE_WRITE);
	rig_poll(r);
	rig_expect_fatal(r, HCA_NAK_INVALID_REQ, 101, HCA_EVENT_WQ_INVAL_REQ);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		TEST(write_is_executed_and_acknowledged),
		TEST(write_of_nothing_checks_no_key),
		TEST(write_of_many_packets),
		TEST(one_ack_per_burst),
		TEST(runs_end_at_a_refusal),
		TEST(sends_end_at_the_last_receive),
		TEST(unasked_packets_are_acknowledged),
		TEST(psn_wraps),
		TEST(states),
		TEST(communication_is_established_once),
		TEST(another_life_and_responses_are_dropped),
		TEST(one_nak_per_gap),
		TEST(future_psn_keeps_the_ack),
		TEST(nak_for_what_was_dropped),
		TEST(nak_names_the_first_missing),
		TEST(closed_gap_needs_no_nak),
		TEST(duplicate_writes_are_acknowledged_not_executed),
		cmocka_unit_test(refusals_are_fatal_and_change_nothing),
		cmocka_unit_test(operations_not_enabled_are_invalid),
		TEST(key_is_checked_at_each_use),
		TEST(run_ends_at_a_change_of_state),
		TEST(run_ends_when_writes_are_disabled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
