/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Frames forged by a hostile host, with every number of a channel at hand, while a bystander uses
 * that channel, or another one of the same HCAs where the channel is given up for what came over
 * it. Each is one counter of the end that it was sent to; no other counter of drops, refusals or
 * repetitions moves, no request more is executed, and the bystander does not notice.
 *
 * Attacks in packets that are right for the transport are in test_ub_attack.c.
 */

#include "ub_counters.h"
#include "ub_bystander.h"
#include "ub_forge.h"

#define PROGRAM "sim-ub-forged"

#define EVERY 10u /* the bystander's requests between two frames */
#define FRAMES (UB_BYSTANDER_REQUESTS / EVERY)
#define SHARED 1u /* the bystander's TP */
#define OTHER 2u  /* one of the same peer, which is given up */
#define REQUESTS 8u
#define FAR 5000u /* PSNs, beyond every window */

static struct ub_pair pair;

/* ---- frames for one end of the shared TP ---- */

struct forging {
	struct ub_bystander b;
	unsigned int victim;
	const struct forgery *what;
	uint8_t bitmap[HCA_UB_SACK_BYTES_MAX];
};

struct forgery {
	const char *name;
	void (*make)(struct forging *x, const struct hca_tp *victim, struct ub_forged *f);
	enum hca_counter counter;
};

static struct forging forging;

#define MAKE(name) \
	static void name(struct forging *x, const struct hca_tp *victim, struct ub_forged *f)

/* A TAACK that is due next, so that it would be taken. */
static struct hca_ub_headers
due(const struct hca_tp *victim)
{
	return (struct hca_ub_headers){.form = HCA_UB_FORM_DEFAULT,
				       .rtph = {.opcode = HCA_UB_TP_RTP,
						.last = 1,
						.psn = victim->rx.epsn,
						.tpmsn = victim->rx.msn},
				       .atah = {.opcode = HCA_UB_TA_TAACK}};
}

MAKE(from_another_host)
{
	f->headers = due(victim);
	f->from = 9;
}

MAKE(from_another_vlan)
{
	f->headers = due(victim);
	f->vlan = true;
}

MAKE(to_another_address)
{
	f->headers = due(victim);
	f->to = 9;
}

MAKE(other_life_of_tp)
{
	f->headers = due(victim);
	f->dst = victim->cfg.own_tpn ^ 0x800000;
}

MAKE(nobodys_tp)
{
	f->headers = due(victim);
	f->dst = victim->cfg.own_tpn ^ 8;
}

MAKE(tp_of_datagrams)
{
	f->headers = due(victim);
	f->dst = victim->cfg.own_tpn & ~15u;
}

MAKE(of_another_tp)
{
	f->headers = due(victim);
	f->src = 0x123456;
}

MAKE(damaged)
{
	f->headers = due(victim);
	f->damaged = true;
}

MAKE(with_entities)
{
	f->headers = due(victim);
	f->headers.rtph.nlp = HCA_UB_NLP_EIDH;
}

MAKE(congestion)
{
	f->headers.rtph.opcode = HCA_UB_TP_CNP;
}

MAKE(beyond_the_window)
{
	f->headers = due(victim);
	f->headers.rtph.psn = hca_tp_psn(f->headers.rtph.psn, FAR);
}

MAKE(again)
{
	f->headers = due(victim);
	f->headers.rtph.psn = hca_tp_psn_before(f->headers.rtph.psn);
	f->headers.rtph.tpmsn = hca_tp_psn_before(f->headers.rtph.tpmsn);
}

MAKE(again_of_long_ago)
{
	f->headers = due(victim);
	f->headers.rtph.psn = hca_tp_psn(f->headers.rtph.psn, (uint32_t)-FAR);
}

/* After all sent packets of the victim, except those posted just now; below 0: long before. */
static struct hca_ub_headers
answer(const struct hca_tp *victim, uint8_t opcode, int32_t beyond)
{
	return (struct hca_ub_headers){
		.rtph = {.opcode = opcode, .psn = hca_tp_psn(victim->tx.next, (uint32_t)beyond)}};
}

MAKE(ack_of_nothing)
{
	f->headers = answer(victim, HCA_UB_TP_ACK, 50);
}

MAKE(nak_of_nothing)
{
	f->headers = answer(victim, HCA_UB_TP_ACK, 50);
	f->headers.rtph.rspst = HCA_UB_ACK_ERROR;
}

MAKE(sack_of_nothing)
{
	f->headers = answer(victim, HCA_UB_TP_SACK, 50);
	f->headers.saetph.max_rcv = hca_tp_psn(f->headers.rtph.psn, 9);
	f->headers.bitmap = x->bitmap;
	memset(x->bitmap, 0xff, sizeof(x->bitmap));
}

MAKE(ack_of_long_ago)
{
	f->headers = answer(victim, HCA_UB_TP_ACK, -(int32_t)FAR);
}

/*
 * About arrived packets: accepted, except the bits and MaxRcv, which are about packets never sent.
 */
MAKE(sack_beyond)
{
	f->headers = answer(victim, HCA_UB_TP_SACK, -1);
	f->headers.saetph.max_rcv = hca_tp_psn(f->headers.rtph.psn, 60);
	f->headers.bitmap = x->bitmap;
	memset(x->bitmap, 0, sizeof(x->bitmap));
	for (uint32_t k = 40; k < 60; k++)
		hca_ub_sack_set(x->bitmap, k);
}

static const struct forgery forgeries[] = {
	{"from another host", from_another_host, HCA_CTR_ub_rx_bad_source},
	{"from another VLAN", from_another_vlan, HCA_CTR_ub_rx_bad_source},
	{"to another address", to_another_address, HCA_CTR_ub_rx_bad_destination},
	{"tag of the TPN", other_life_of_tp, HCA_CTR_ub_rx_unknown_tpn},
	{"index of the TPN", nobodys_tp, HCA_CTR_ub_rx_unknown_tpn},
	{"index 0", tp_of_datagrams, HCA_CTR_ub_rx_unknown_tpn},
	{"TPN of the peer", of_another_tp, HCA_CTR_ub_rx_bad_peer},
	{"ICRC", damaged, HCA_CTR_rx_icrc_encapsulated},
	{"EIDs", with_entities, HCA_CTR_ub_rx_bad_eid},
	{"CNP", congestion, HCA_CTR_ub_rx_cnp_ignored},
	{"PSN beyond the window", beyond_the_window, HCA_CTR_ub_tp_invalid},
	{"PSN again", again, HCA_CTR_ub_tp_duplicates},
	{"PSN of long ago", again_of_long_ago, HCA_CTR_ub_tp_duplicates},
	{"TPACK of nothing", ack_of_nothing, HCA_CTR_ub_acks_bad},
	{"TPNAK of nothing", nak_of_nothing, HCA_CTR_ub_acks_bad},
	{"TPSACK of nothing", sack_of_nothing, HCA_CTR_ub_acks_bad},
	{"TPACK of long ago", ack_of_long_ago, HCA_CTR_ub_acks_old},
	{"MaxRcv beyond", sack_beyond, HCA_CTR_ub_acks_used},
};

/* While the bystander's request is under way. */
static void
forge_one(void *arg, uint32_t i)
{
	struct forging *x = arg;
	struct ub_pair *p = x->b.p;
	struct ub_forged f = {.from = 0};
	uint8_t frame[UB_ROOM];

	if (i % EVERY != 0)
		return;
	x->what->make(x, ub_pair_tp(p, x->victim, SHARED), &f);
	ub_forge_inject(p->s, x->victim, frame,
			ub_forge(p->s, ub_pair_tp(p, 1 - x->victim, SHARED), &f, frame));
}

static void
expect_state(struct ub_pair *p, uint32_t tpi, enum hca_tp_state state)
{
	for (unsigned int side = 0; side < 2; side++)
		UB_PAIR_EQ(p, hca_tp_state(ub_pair_tp(p, side, tpi)), state);
}

static void
run_forgery(struct forging *x)
{
	struct ub_pair *p = x->b.p;
	const struct ub_expected expected = {x->victim, x->what->counter, FRAMES};
	uint64_t requests = ub_pair_counter(p, 1, HCA_CTR_ub_requests);
	uint64_t used = ub_pair_counter(p, x->victim, HCA_CTR_ub_acks_used);
	struct ub_counters counters;

	ub_counters_begin(&counters, p);
	ub_bystander_run(&x->b);
	sim_run_for(p->s, UB_PAIR_MS);
	ub_counters_check(&counters, p, x->what->name, &expected, 1);
	UB_PAIR_EQ(p, ub_pair_counter(p, 1, HCA_CTR_ub_requests), requests + UB_BYSTANDER_REQUESTS);
	if (x->what->counter == HCA_CTR_ub_acks_used)
		sim_check(p->s,
			  ub_pair_counter(p, x->victim, HCA_CTR_ub_acks_used) >= used + FRAMES,
			  "%s: it was not heard", x->what->name);
	expect_state(p, SHARED, HCA_TPS_ACTIVE);
}

static void
shared_in(const struct sim_config *cfg)
{
	struct ub_pair_config c = {.sim = *cfg, .rto_base = 100000};
	struct forging *x = &forging;

	memset(x, 0, sizeof(*x));
	ub_pair_open(&pair, &c);
	ub_bystander_open(&x->b, &pair);
	x->b.during = forge_one;
	x->b.arg = x;
	for (x->victim = 0; x->victim < 2; x->victim++)
		for (unsigned int i = 0; i < RTE_DIM(forgeries); i++) {
			x->what = &forgeries[i];
			run_forgery(x);
		}
	ub_pair_close(&pair);
}

/* ---- frames that end a TP: another one than the bystander's ---- */

struct breaker {
	struct ub_bystander b;
	const struct breach *what;
	uint32_t psn, tpmsn; /* that the other TP expected before */
};

struct breach {
	const char *name;
	/* Allowed frames; then the last one, by which the TP is given up. */
	void (*send)(struct breaker *x, bool last);
	struct ub_expected expected[3];
	uint32_t taken; /* requests before that, which are abandoned */
};

static struct breaker breaker;

/* A packet of a Write of two packets: `psn` and `tpmsn` behind those expected. */
static void
send_write(struct breaker *x, uint32_t psn, uint32_t tpmsn, bool last, uint32_t tassn)
{
	static const uint8_t payload[4096];
	struct ub_pair *p = x->b.p;
	struct ub_forged f = {.headers = {.form = HCA_UB_FORM_DEFAULT,
					  .rtph = {.opcode = HCA_UB_TP_RTP,
						   .last = last,
						   .psn = hca_tp_psn(x->psn, psn),
						   .tpmsn = hca_tp_psn(x->tpmsn, tpmsn)},
					  .btah = {.opcode = HCA_UB_TA_WRITE,
						   .ee = HCA_UB_EE_NORMAL,
						   .tv_en = 1,
						   .tassn = tassn,
						   .rc_id = p->side[0].jetty->jetty_id.id},
					  .maetah = {.address =
							     (uintptr_t)p->side[1].mem + UB_PAIR_TO,
						     .token_id = p->side[1].seg->seg.token_id,
						     .length = 2 * sizeof(payload)},
					  .tvetah = {UB_PAIR_SEG_TOKEN}},
			      .payload = payload,
			      .len = sizeof(payload)};
	uint8_t frame[UB_ROOM];

	ub_forge_inject(p->s, 1, frame, ub_forge(p->s, ub_pair_tp(p, 0, OTHER), &f, frame));
}

static void
skip_tpmsn(struct breaker *x, bool last)
{
	if (last)
		send_write(x, 0, 5, false, 0);
}

/* The TPMSN of a request that is over, for a new one. */
static void
reuse_after_end(struct breaker *x, bool last)
{
	if (!last) {
		send_write(x, 0, 0, false, 0);
		send_write(x, 1, 0, true, 0);
	} else {
		send_write(x, 2, 0, false, 1);
	}
}

/* That of one which is open. */
static void
reuse_while_open(struct breaker *x, bool last)
{
	send_write(x, last ? 2 : 0, 0, false, last);
}

/* One that has the same place in the target's ring. */
static void
reuse_place(struct breaker *x, bool last)
{
	send_write(x, last ? 2 : 0, last ? 2 * HCA_TP_WINDOW_PACKETS(1) : 0, false, last);
}

/* As many as were agreed are open, each without its second packet, and one more comes. */
static void
too_many(struct breaker *x, bool last)
{
	for (uint32_t i = last ? REQUESTS : 0; i < REQUESTS + last; i++)
		send_write(x, 2 * i, i, false, i);
}

static const struct breach breaches[] = {
	{"a TPMSN that is not due",
	 skip_tpmsn,
	 {{1, HCA_CTR_ub_tp_invalid, 1}, {1, HCA_CTR_ub_tp_broken, 1}},
	 0},
	{"the TPMSN of a request that is over",
	 reuse_after_end,
	 /* the answer has no request */
	 {{1, HCA_CTR_ub_tp_invalid, 1},
	  {1, HCA_CTR_ub_tp_broken, 1},
	  {0, HCA_CTR_ub_rsp_unknown_request, 1}},
	 0},
	{"the TPMSN of a request that is open",
	 reuse_while_open,
	 {{1, HCA_CTR_ub_ta_disagree, 1}},
	 1},
	{"a TPMSN twice the window ahead", reuse_place, {{1, HCA_CTR_ub_ta_disagree, 1}}, 1},
	{"more requests than agreed", too_many, {{1, HCA_CTR_ub_ta_too_many, 1}}, REQUESTS},
};

static void
break_other(void *arg, uint32_t i)
{
	struct breaker *x = arg;

	if (i == UB_BYSTANDER_REQUESTS / 8 || i == UB_BYSTANDER_REQUESTS / 4)
		x->what->send(x, i == UB_BYSTANDER_REQUESTS / 4);
	if (i == UB_BYSTANDER_REQUESTS / 2)
		send_write(x, 0, 0, false, 0); /* dropped at the door */
}

static void
open_other(struct breaker *x)
{
	for (unsigned int side = 0; side < 2; side++)
		ub_pair_open_tp(x->b.p, side, OTHER);
	x->psn = ub_pair_tp(x->b.p, 1, OTHER)->rx.epsn;
	x->tpmsn = ub_pair_tp(x->b.p, 1, OTHER)->rx.msn;
}

static void
close_other(struct breaker *x)
{
	for (unsigned int side = 0; side < 2; side++)
		ub_pair_close_tp(x->b.p, side, OTHER);
}

static void
run_breach(struct breaker *x)
{
	struct ub_pair *p = x->b.p;
	const struct ub_expected *why = x->what->expected;
	/* side 0 gets acknowledgements of packets it has not sent, as many as fit the polls */
	const struct ub_expected expected[] = {
		why[0],
		why[1],
		why[2],
		{0, HCA_CTR_ub_acks_bad, UB_EXPECTED_ANY},
		{1, HCA_CTR_ub_rx_tp_state, 1},
		{1, HCA_CTR_ub_requests_abandoned, x->what->taken},
	};
	uint64_t requests = ub_pair_counter(p, 1, HCA_CTR_ub_requests_done);
	struct ub_counters counters;

	open_other(x);
	ub_counters_begin(&counters, p);
	ub_bystander_run(&x->b);
	sim_run_for(p->s, UB_PAIR_MS);
	ub_counters_check(&counters, p, x->what->name, expected, RTE_DIM(expected));
	UB_PAIR_EQ(p, hca_tp_state(ub_pair_tp(p, 1, OTHER)), HCA_TPS_ERROR);
	expect_state(p, SHARED, HCA_TPS_ACTIVE);
	UB_PAIR_EQ(p, ub_pair_counter(p, 1, HCA_CTR_ub_requests_done),
		   requests + UB_BYSTANDER_REQUESTS + (x->what->send == reuse_after_end));
	close_other(x);
}

static void
given_up_in(const struct sim_config *cfg)
{
	struct ub_pair_config c = {.sim = *cfg, .rto_base = 100000, .requests = REQUESTS};
	struct breaker *x = &breaker;

	memset(x, 0, sizeof(*x));
	ub_pair_open(&pair, &c);
	ub_bystander_open(&x->b, &pair);
	x->b.during = break_other;
	x->b.arg = x;
	for (unsigned int i = 0; i < RTE_DIM(breaches); i++) {
		x->what = &breaches[i];
		run_breach(x);
	}
	ub_pair_close(&pair);
}

SIM_TEST(shared)
SIM_TEST(given_up)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared),
		cmocka_unit_test(given_up),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
