/* SPDX-License-Identifier: BSD-3-Clause */

/* UB's transport from stage to stage, over a bad link; attacks of a lying peer. */

#include "ub_forge.h"
#include "ub_rig.h"

#include "ub/record.h"
#include "sim_link.h"
#include "wire/ub_frame.h"

#define PROGRAM "sim-ub-tp"
#define MS 1000000ull

static struct ub_rig rig;

/* Writes of all sizes and TAACKs both ways over all TPs, until `n` operations were put. */
static void
traffic(struct ub_rig *r, unsigned int n)
{
	static const uint32_t sizes[] = {0, 1, 3, 64, 1000, 1024, 4095, 4096, 4097, 9000, 20000};

	for (unsigned int i = 0; i < n;) {
		unsigned int side = sim_below(&r->rng, 2);
		uint32_t tpi = 1 + sim_below(&r->rng, r->cfg.tps);
		uint32_t len = sizes[sim_below(&r->rng, RTE_DIM(sizes))];

		/* the passive end sends when a good packet has come */
		if (hca_tp_sends(hca_tp_state(ub_rig_tp(r, side, tpi))))
			i += sim_below(&r->rng, 4) == 0 ? ub_rig_taack(r, side, tpi)
							: ub_rig_write(r, side, tpi, len);
		ub_rig_poll(r);
	}
	ub_rig_settle(r, 60000 * MS);
	ub_rig_check(r);
}

static void
good_link_in(const struct sim_config *cfg)
{
	struct ub_rig_config c = {.sim = *cfg,
				  .tps = 4,
				  .gid = {SIM_GID_V4, SIM_GID_V6, SIM_GID_V4_VLAN, SIM_GID_V6_VLAN},
				  .mode = HCA_TP_MODE_SACK,
				  .rule = HCA_TP_RULE_TIME};
	struct ub_rig *r = &rig;

	ub_rig_open(r, &c);
	traffic(r, 300);
	for (unsigned int i = 0; i < 2; i++) {
		CHECK_EQ(r, ub_rig_counter(r, i, HCA_CTR_ub_tp_timeouts), 0);
		CHECK_EQ(r, ub_rig_counter(r, i, HCA_CTR_ub_tp_duplicates), 0);
		CHECK_EQ(r, ub_rig_counter(r, i, HCA_CTR_ub_rx_tp_packets),
			 r->side[i].requests + r->side[i].responses);
		CHECK_EQ(r, ub_rig_counter(r, i, HCA_CTR_ub_ops_sent),
			 r->side[i].tp[1].ops_put + r->side[i].tp[2].ops_put +
				 r->side[i].tp[3].ops_put + r->side[i].tp[4].ops_put);
	}
	ub_rig_close(r);
}

static void
bad_link(const struct sim_config *cfg, uint8_t mode, uint8_t rule, uint8_t flags)
{
	struct ub_rig_config c = {.sim = *cfg,
				  .tps = 2,
				  .gid = {SIM_GID_V4, SIM_GID_V6},
				  .mode = mode,
				  .rule = rule,
				  .flags = flags,
				  .ports_log = 3,
				  .mtu_log = 10,
				  .retries = 15,
				  .rto_base = 100};
	struct hca_impair bad = {.drop = 0.02,
				 .dup = 0.02,
				 .reorder = 0.03,
				 .reorder_ns = 20000,
				 .corrupt = 0.02,
				 .truncate = 0.01};
	struct ub_rig *r = &rig;

	ub_rig_open(r, &c);
	for (unsigned int i = 0; i < 2; i++)
		sim_impair(r->s, i, &bad);
	traffic(r, 200);
	for (unsigned int i = 0; i < 2; i++) {
		sim_impair(r->s, i, NULL);
		sim_check(r->s, ub_rig_counter(r, i, HCA_CTR_rx_icrc_encapsulated) != 0,
			  "nothing was damaged");
		CHECK_EQ(r, ub_rig_counter(r, i, HCA_CTR_ub_tp_broken), 0);
		CHECK_EQ(r, ub_rig_counter(r, i, HCA_CTR_ub_tp_passed),
			 r->side[i].requests + r->side[i].responses);
	}
	ub_rig_close(r);
}

static void
bad_link_sack_in(const struct sim_config *cfg)
{
	bad_link(cfg, HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, 0);
}

static void
bad_link_spray_in(const struct sim_config *cfg)
{
	bad_link(cfg, HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, HCA_TP_FLAG_SPRAY | HCA_TP_FLAG_EIDH);
}

static void
bad_link_mark_in(const struct sim_config *cfg)
{
	bad_link(cfg, HCA_TP_MODE_SACK, HCA_TP_RULE_MARK, 0);
}

static void
bad_link_track_in(const struct sim_config *cfg)
{
	bad_link(cfg, HCA_TP_MODE_TRACK, HCA_TP_RULE_NONE, 0);
}

static void
bad_link_drop_in(const struct sim_config *cfg)
{
	bad_link(cfg, HCA_TP_MODE_DROP, HCA_TP_RULE_NAK, 0);
}

/* One TP of the usual kind, with a packet each way, so that both ends are active. */
static struct ub_rig *
open_one(const struct sim_config *cfg)
{
	struct ub_rig_config c = {.sim = *cfg,
				  .mode = HCA_TP_MODE_SACK,
				  .rule = HCA_TP_RULE_TIME,
				  .rto_base = 100,
				  .retries = 3};

	ub_rig_open(&rig, &c);
	ub_rig_write(&rig, 0, 1, 100);
	ub_rig_settle(&rig, 1000 * MS);
	ub_rig_write(&rig, 1, 1, 100);
	ub_rig_settle(&rig, 1000 * MS);
	CHECK_EQ(&rig, hca_tp_state(ub_rig_tp(&rig, 1, 1)), HCA_TPS_ACTIVE);
	return &rig;
}

static bool
lose_all(void *arg, uint8_t *frame, uint32_t len)
{
	(void)arg;
	(void)frame;
	(void)len;
	return true;
}

/* A packet of side 0 that has come to side 1, which has not looked. */
static void
give_packet(struct ub_rig *r)
{
	uint64_t frames = r->side[0].frames;

	ub_rig_write(r, 0, 1, 100);
	while (r->side[0].frames == frames) {
		ub_rig_poll_side(r, 0);
		r->now += 100;
	}
	r->now += 20000;
}

/*
 * An acknowledgement leaves in the loop that has received the packet, and with the packets of that
 * loop, in front of them; in the same loop behind them where it alone comes from another worker.
 */
static void
bursts_in(const struct sim_config *cfg)
{
	struct ub_rig *r;
	uint64_t bursts;
	bool alone;

	if (cfg->executor == SIM_STEPPED)
		return;
	r = open_one(cfg);
	bursts = r->side[1].bursts;
	give_packet(r);
	ub_rig_poll_side(r, 1);
	CHECK_EQ(r, r->side[1].bursts, bursts + 1);
	CHECK_EQ(r, r->side[1].first_answers, 1);
	CHECK_EQ(r, r->side[1].behind, 0);
	ub_rig_settle(r, 1000 * MS);
	bursts = r->side[1].bursts;
	give_packet(r);
	for (unsigned int i = 0; i < 5; i++)
		ub_rig_write(r, 1, 1, 4096);
	ub_rig_poll_side(r, 1);
	alone = cfg->layout == HCA_LAYOUT_TXRX;
	CHECK_EQ(r, r->side[1].bursts, bursts + (alone ? 2 : 1));
	CHECK_EQ(r, r->side[1].first_answers, 1);
	CHECK_EQ(r, r->side[1].behind, alone ? 0 : 5);
	ub_rig_settle(r, 1000 * MS);
	ub_rig_check(r);
	ub_rig_close(r);
}

/* The peer is gone: after the last retry the TP is in ERROR and everything goes back. */
static void
peer_gone_in(const struct sim_config *cfg)
{
	struct ub_rig *r = open_one(cfg);

	sim_link_lose(r->s->side[0].wire, lose_all, NULL);
	for (unsigned int i = 0; i < 10; i++)
		ub_rig_write(r, 0, 1, 9000);
	ub_rig_settle(r, 10000 * MS);
	CHECK_EQ(r, hca_tp_state(ub_rig_tp(r, 0, 1)), HCA_TPS_ERROR);
	CHECK_EQ(r, ub_rig_counter(r, 0, HCA_CTR_ub_tp_retries_exceeded), 1);
	CHECK_EQ(r, ub_rig_counter(r, 0, HCA_CTR_ub_tp_timeouts), 4);
	CHECK_EQ(r, ub_rig_counter(r, 0, HCA_CTR_ub_ops_given_up), 10);
	sim_check(r->s, r->side[0].dead != 0, "TAI and TAT were not told");
	CHECK_EQ(r, r->side[0].tp[1].ops_back, 11);
	/* nothing leaves afterwards */
	ub_rig_write(r, 0, 1, 10);
	ub_rig_settle(r, 1000 * MS);
	CHECK_EQ(r, ub_rig_counter(r, 0, HCA_CTR_ub_ops_sent), 11);
	sim_link_lose(r->s->side[0].wire, NULL, NULL);
	ub_rig_close(r);
}

/* ---- attacks ---- */

/* Frames of a hostile peer to side 1. */
static void
inject(struct ub_rig *r, const struct ub_forged *f)
{
	uint8_t frame[UB_ROOM];

	ub_forge_inject(r->s, 1, frame, ub_forge(r->s, ub_rig_tp(r, 0, 1), f, frame));
}

/* A TAACK that is in order, so that it would be taken. */
static struct hca_ub_headers
next_packet(struct ub_rig *r)
{
	const struct hca_tp *tp = ub_rig_tp(r, 1, 1);

	return (struct hca_ub_headers){.form = 3,
				       .rtph = {.opcode = HCA_UB_TP_RTP,
						.last = 1,
						.psn = tp->rx.epsn,
						.tpmsn = tp->rx.msn},
				       .atah = {.opcode = HCA_UB_TA_TAACK}};
}

/* An answer to all that side 1 has sent. */
static struct hca_ub_headers
an_answer(struct ub_rig *r, uint8_t opcode, int32_t beyond)
{
	static const uint8_t bits[HCA_TP_SACK_BYTES] = {0xff};
	const struct hca_tp *tp = ub_rig_tp(r, 1, 1);

	return (struct hca_ub_headers){
		.rtph = {.opcode = opcode, .psn = hca_tp_psn(tp->tx.next, (uint32_t)(beyond - 1))},
		.saetph = {.max_rcv = hca_tp_psn(tp->tx.next, 9)},
		.bitmap = bits};
}

/* The frame changes only a counter of side 1. */
static void
attack(struct ub_rig *r, struct ub_forged f, enum hca_counter why)
{
	struct hca_tp *tp = ub_rig_tp(r, 1, 1);
	struct hca_tp_rx rx = tp->rx;
	struct hca_tp_tx tx = tp->tx;
	uint64_t before = ub_rig_counter(r, 1, why), passed = r->side[1].responses;

	inject(r, &f);
	ub_rig_settle(r, 1000 * MS);
	CHECK_EQ(r, ub_rig_counter(r, 1, why), before + 1);
	CHECK_EQ(r, r->side[1].responses, passed);
	CHECK_EQ(r, tp->rx.epsn, rx.epsn);
	CHECK_EQ(r, tp->rx.max_rcv, rx.max_rcv);
	CHECK_EQ(r, tp->tx.una, tx.una);
	CHECK_EQ(r, tp->tx.next, tx.next);
	CHECK_EQ(r, hca_tp_state(tp), HCA_TPS_ACTIVE);
}

static void
attacks_in(const struct sim_config *cfg)
{
	struct ub_rig *r = open_one(cfg);
	uint32_t right = ub_rig_tp(r, 1, 1)->cfg.own_tpn;
	struct hca_ub_headers h = next_packet(r), cnp = {.rtph = {.opcode = HCA_UB_TP_CNP}};

	attack(r, (struct ub_forged){.from = 9, .headers = h}, HCA_CTR_ub_rx_bad_source);
	attack(r, (struct ub_forged){.vlan = true, .headers = h}, HCA_CTR_ub_rx_bad_source);
	attack(r, (struct ub_forged){.dst = right ^ 0x800000, .headers = h},
	       HCA_CTR_ub_rx_unknown_tpn);
	attack(r, (struct ub_forged){.dst = right ^ 2, .headers = h}, HCA_CTR_ub_rx_unknown_tpn);
	attack(r, (struct ub_forged){.dst = right & ~15u, .headers = h}, HCA_CTR_ub_rx_unknown_tpn);
	attack(r, (struct ub_forged){.src = 0x123456, .headers = h}, HCA_CTR_ub_rx_bad_peer);
	attack(r, (struct ub_forged){.headers = cnp}, HCA_CTR_ub_rx_cnp_ignored);
	h.rtph.nlp = HCA_UB_NLP_EIDH;
	attack(r, (struct ub_forged){.headers = h}, HCA_CTR_ub_rx_bad_eid);
	/* acknowledgements of packets never sent */
	attack(r, (struct ub_forged){.headers = an_answer(r, HCA_UB_TP_ACK, 1)},
	       HCA_CTR_ub_acks_bad);
	attack(r, (struct ub_forged){.headers = an_answer(r, HCA_UB_TP_SACK, 5)},
	       HCA_CTR_ub_acks_bad);
	attack(r, (struct ub_forged){.headers = an_answer(r, HCA_UB_TP_SACK, 0)},
	       HCA_CTR_ub_acks_used);
	/* far beyond the window: no answer either */
	h = next_packet(r);
	h.rtph.psn = hca_tp_psn(h.rtph.psn, 5000);
	attack(r, (struct ub_forged){.headers = h}, HCA_CTR_ub_tp_invalid);
	ub_rig_close(r);
}

/*
 * Each wrong frame between good ones in one burst, so that it is like the frame before except for
 * the error. The good ones are copies of a packet that has come.
 */
static void
attacks_among_others_in(const struct sim_config *cfg)
{
	struct ub_rig *r = open_one(cfg);
	uint32_t right = ub_rig_tp(r, 1, 1)->cfg.own_tpn;
	struct hca_ub_headers h = next_packet(r);
	struct ub_forged good, bad[] = {
				       {.from = 9},	   {.dst = right ^ 0x800000},
				       {.dst = right ^ 2}, {.src = 0x123456},
				       {.vlan = true},	   {.headers.rtph.fake = 1},
			       };

	h.rtph.psn = hca_tp_psn_before(h.rtph.psn);
	good = (struct ub_forged){.headers = h};
	for (unsigned int i = 0; i < RTE_DIM(bad); i++) {
		bool fake = bad[i].headers.rtph.fake;

		bad[i].headers = h;
		bad[i].headers.rtph.fake = fake;
		inject(r, &good);
		inject(r, &good);
		inject(r, &bad[i]);
	}
	inject(r, &good);
	ub_rig_settle(r, 1000 * MS);
	CHECK_EQ(r, ub_rig_counter(r, 1, HCA_CTR_ub_rx_bad_source), 2);
	CHECK_EQ(r, ub_rig_counter(r, 1, HCA_CTR_ub_rx_unknown_tpn), 2);
	CHECK_EQ(r, ub_rig_counter(r, 1, HCA_CTR_ub_rx_bad_peer), 1);
	CHECK_EQ(r, ub_rig_counter(r, 1, HCA_CTR_ub_tp_duplicates), 2 * RTE_DIM(bad) + 2);
	ub_rig_close(r);
}

/* A peer whose TPMSNs disagree with its PSNs loses its TP, and only that. */
static void
broken_numbers_in(const struct sim_config *cfg)
{
	struct ub_rig *r = open_one(cfg);
	struct ub_forged f = {.headers = next_packet(r)};

	f.headers.rtph.tpmsn += 5;
	inject(r, &f);
	ub_rig_settle(r, 1000 * MS);
	CHECK_EQ(r, hca_tp_state(ub_rig_tp(r, 1, 1)), HCA_TPS_ERROR);
	CHECK_EQ(r, ub_rig_counter(r, 1, HCA_CTR_ub_tp_broken), 1);
	CHECK_EQ(r, ub_rig_counter(r, 1, HCA_CTR_ub_tp_invalid), 1);
	sim_check(r->s, r->side[1].dead != 0, "TAI and TAT were not told");
	/* the next one is dropped at the door */
	inject(r, &f);
	ub_rig_settle(r, 1000 * MS);
	CHECK_EQ(r, ub_rig_counter(r, 1, HCA_CTR_ub_rx_tp_state), 1);
	ub_rig_close(r);
}

/* ---- payload that cannot be read ---- */

static struct hca_ta_op *
last_op(struct ub_rig *r)
{
	const struct hca_tp *tp = ub_rig_tp(r, 0, 1);
	uint32_t head = tp->lane[HCA_TP_REQUESTS].head - 1;

	return ub_rig_op(r, 0, HCA_TP_REQUESTS, tp->lane[HCA_TP_REQUESTS].ring[head & 127]);
}

/* It goes out as zeros with Poison, under its PSN, and the channel goes on. */
static void
poison_in(const struct sim_config *cfg)
{
	struct ub_rig *r = open_one(cfg);
	uint64_t requests = r->side[1].requests;
	struct hca_ta_op *op;

	ub_rig_write(r, 0, 1, 9000);
	op = last_op(r);
	op->key ^= 0x100;
	r->side[0].at -= 9000; /* it does not arrive */
	ub_rig_write(r, 0, 1, 500);
	ub_rig_settle(r, 1000 * MS);
	CHECK_EQ(r, r->side[1].requests, requests + 4);
	CHECK_EQ(r, r->side[1].poisoned, 3);
	CHECK_EQ(r, ub_rig_counter(r, 0, HCA_CTR_ub_poisoned), 3);
	CHECK_EQ(r, op->encap, HCA_TA_OP_POISONED);
	ub_rig_check(r);
	ub_rig_close(r);
}

/* Its Jetty is gone: packets without a PSN are skipped. */
static void
orphans_in(const struct sim_config *cfg)
{
	struct ub_rig *r = open_one(cfg);
	uint64_t requests = r->side[1].requests, back = r->side[0].tp[1].ops_back;

	ub_rig_write(r, 0, 1, 5000);
	hca_ta_op_set_flag(last_op(r), HCA_TA_OP_ORPHAN);
	r->side[0].at -= 5000;
	ub_rig_settle(r, 1000 * MS);
	CHECK_EQ(r, r->side[1].requests, requests);
	CHECK_EQ(r, r->side[0].tp[1].ops_back, back + 1);
	CHECK_EQ(r, ub_rig_tp(r, 0, 1)->tx.ops_skipped, 1);
	ub_rig_check(r);
	ub_rig_close(r);
}

struct loser {
	unsigned int nth, seen;
};

static bool
lose_nth(void *arg, uint8_t *frame, uint32_t len)
{
	struct loser *l = arg;

	(void)frame;
	(void)len;
	return ++l->seen == l->nth;
}

/* The Jetty goes after its packets were sent: those that are sent again carry zeros. */
static void
orphan_again_in(const struct sim_config *cfg)
{
	struct ub_rig *r = open_one(cfg);
	struct loser l = {.nth = 2};
	struct hca_ta_op *op;

	sim_link_lose(r->s->side[0].wire, lose_nth, &l);
	ub_rig_write(r, 0, 1, 12288);
	op = last_op(r);
	while (l.seen < 3)
		ub_rig_poll(r);
	hca_ta_op_set_flag(op, HCA_TA_OP_ORPHAN);
	r->side[0].at -= 12288;
	ub_rig_settle(r, 1000 * MS);
	CHECK_EQ(r, r->side[1].poisoned, 1);
	CHECK_EQ(r, ub_rig_tp(r, 0, 1)->tx.una, ub_rig_tp(r, 0, 1)->tx.next);
	sim_link_lose(r->s->side[0].wire, NULL, NULL);
	ub_rig_close(r);
}

/* A request that was answered has arrived, whatever became of the acknowledgement. */
static void
answered_in(const struct sim_config *cfg)
{
	struct ub_rig *r = open_one(cfg);
	uint64_t requests = r->side[1].requests;

	sim_link_lose(r->s->side[1].wire, lose_all, NULL);
	ub_rig_write(r, 0, 1, 9000);
	while (r->side[1].requests < requests + 3)
		ub_rig_poll(r);
	hca_ta_op_set_flag(last_op(r), HCA_TA_OP_ANSWERED);
	ub_rig_settle(r, 1000 * MS);
	CHECK_EQ(r, ub_rig_counter(r, 0, HCA_CTR_ub_resent_timeout), 0);
	CHECK_EQ(r, hca_tp_state(ub_rig_tp(r, 0, 1)), HCA_TPS_ACTIVE);
	sim_link_lose(r->s->side[1].wire, NULL, NULL);
	ub_rig_check(r);
	ub_rig_close(r);
}

/*
 * The answer comes while packets that are sent again wait for encap: they do not leave, since their
 * payload may be in other use.
 */
static void
answered_in_time_in(const struct sim_config *cfg)
{
	struct sim_config full = *cfg;
	struct ub_rig *r;
	uint64_t frames;

	full.layout = HCA_LAYOUT_FULL; /* in which descriptors wait on an edge */
	r = open_one(&full);
	sim_link_lose(r->s->side[1].wire, lose_all, NULL);
	ub_rig_write(r, 0, 1, 9000);
	while (r->side[1].requests < 3)
		ub_rig_poll(r);
	ub_rig_run(r, 10000);
	while (ub_rig_counter(r, 0, HCA_CTR_ub_resent_timeout) < 3) {
		r->now += 1000;
		hca_poll_stage(r->side[0].h->hca, 0, HCA_STAGE_TIMER, r->now, HCA_BURST);
		hca_poll_stage(r->side[0].h->hca, 0, HCA_STAGE_TPS, r->now, HCA_BURST);
	}
	frames = r->side[0].frames;
	hca_ta_op_set_flag(last_op(r), HCA_TA_OP_ANSWERED);
	ub_rig_settle(r, 1000 * MS);
	CHECK_EQ(r, r->side[0].frames, frames);
	CHECK_EQ(r, ub_rig_counter(r, 0, HCA_CTR_ub_dropped_answered), 3);
	sim_link_lose(r->s->side[1].wire, NULL, NULL);
	ub_rig_check(r);
	ub_rig_close(r);
}

/* ---- rounds ---- */

/* A TP goes while it sends; the other one of the device does not notice. */
static void
sender_goes_in(const struct sim_config *cfg)
{
	struct ub_rig_config c = {.sim = *cfg,
				  .tps = 2,
				  .mode = HCA_TP_MODE_SACK,
				  .rule = HCA_TP_RULE_TIME,
				  .rto_base = 100,
				  .retries = 3};
	struct ub_rig *r = &rig;
	uint64_t given_up;

	ub_rig_open(r, &c);
	ub_rig_write(r, 0, 2, 20000);
	for (unsigned int i = 0; i < 20; i++)
		ub_rig_write(r, 0, 1, 40000);
	while (ub_rig_counter(r, 0, HCA_CTR_ub_packets) < 40)
		ub_rig_poll(r);
	ub_rig_close_tp(r, 0, 1);
	given_up = ub_rig_counter(r, 0, HCA_CTR_ub_ops_given_up);
	sim_check(r->s, given_up != 0, "it had sent nothing");
	ub_rig_write(r, 0, 2, 20000);
	ub_rig_settle(r, 1000 * MS);
	CHECK_EQ(r, ub_rig_tp(r, 0, 2)->tx.ops_acked, 2);
	/* a new life at the same place, of both ends */
	ub_rig_close_tp(r, 1, 1);
	ub_rig_open_tp(r, 0, 1);
	ub_rig_open_tp(r, 1, 1);
	ub_rig_write(r, 0, 1, 9000);
	ub_rig_settle(r, 1000 * MS);
	CHECK_EQ(r, ub_rig_tp(r, 0, 1)->tx.ops_acked, 1);
	CHECK_EQ(r, ub_rig_counter(r, 0, HCA_CTR_ub_ops_given_up), given_up);
	ub_rig_close(r);
}

/* The receiver goes: the sender runs into its retries. */
static void
receiver_goes_in(const struct sim_config *cfg)
{
	struct ub_rig *r = open_one(cfg);

	for (unsigned int i = 0; i < 10; i++)
		ub_rig_write(r, 0, 1, 40000);
	ub_rig_run(r, 1000);
	ub_rig_close_tp(r, 1, 1);
	ub_rig_write(r, 0, 1, 100);
	ub_rig_settle(r, 10000 * MS);
	CHECK_EQ(r, hca_tp_state(ub_rig_tp(r, 0, 1)), HCA_TPS_ERROR);
	sim_check(r->s, ub_rig_counter(r, 1, HCA_CTR_ub_rx_unknown_tpn) != 0, "nobody sent");
	ub_rig_close(r);
}

/* ---- unreliable packets ---- */

/* A Send in the lane of TP 0, to the address in its record. */
static void
put_datagram(struct ub_rig *r, enum sim_gid gid, uint32_t len)
{
	struct hca_pipe *h = r->side[0].h;
	struct hca_ub_record_full *rec = (void *)hca_ub_record(h, HCA_RECREF_FULL | 1);
	uint32_t index = ub_rig_take(r, 0, HCA_TP_UNRELIABLE, HCA_TP_REQUESTS);

	*rec = (struct hca_ub_record_full){
		.r = {.op = HCA_OP_SEND, .flags = HCA_REC_FULL, .nsge = 1, .len = len},
		.av = {.dmac = {2, 0, 0, 0, 0, 2}, .sgid_index = (uint8_t)gid, .hop_limit = 64},
		.body = {.sge = {{.va = (uint64_t)(uintptr_t)r->side[0].mem,
				  .len = len,
				  .lkey = r->side[0].mr->lkey}}}};
	sim_gid(1, gid % SIM_GIDS, rec->av.dgid);
	*ub_rig_op(r, 0, HCA_TP_REQUESTS, index) =
		(struct hca_ta_op){.object = UB_RIG_QPI,
				   .opcode = HCA_UB_TA_SEND,
				   .last_opcode = HCA_UB_TA_SEND,
				   .ta1 = HCA_UB_EE_NORMAL << 4,
				   .source = HCA_TA_OP_RECORD,
				   .rc = 0x12345,
				   .payload = len,
				   .length = len,
				   .req = {.record = HCA_RECREF_FULL | 1}};
	ub_rig_put(r, 0, HCA_TP_UNRELIABLE, HCA_TP_REQUESTS, index);
	ub_rig_settle(r, 1000 * MS);
}

static void
datagrams_in(const struct sim_config *cfg)
{
	struct ub_rig *r = open_one(cfg);
	uint64_t requests = r->side[1].requests;

	for (unsigned int gid = 0; gid < SIM_GIDS; gid++)
		put_datagram(r, gid, 100 * gid);
	CHECK_EQ(r, r->side[1].requests, requests + SIM_GIDS);
	CHECK_EQ(r, ub_rig_counter(r, 0, HCA_CTR_ub_utp_packets), SIM_GIDS);
	CHECK_EQ(r, ub_rig_counter(r, 1, HCA_CTR_ub_rx_utp), SIM_GIDS);
	CHECK_EQ(r, r->side[0].tp[HCA_TP_UNRELIABLE].ops_back, SIM_GIDS);
	CHECK_EQ(r, ub_rig_counter(r, 1, HCA_CTR_ub_answers), 1);
	/* from an address that is none */
	put_datagram(r, SIM_GIDS, 10);
	CHECK_EQ(r, ub_rig_counter(r, 0, HCA_CTR_ub_bad_av), 1);
	ub_rig_close(r);
}

/* ---- repeatability ---- */

static uint64_t
hash_of(uint64_t seed)
{
	struct ub_rig_config c = {
		.sim = {.layout = HCA_LAYOUT_FULL, .executor = SIM_STEPPED, .seed = seed},
		.tps = 2,
		.gid = {SIM_GID_V4, SIM_GID_V6},
		.mode = HCA_TP_MODE_SACK,
		.rule = HCA_TP_RULE_TIME,
		.retries = 15};
	struct hca_impair bad = {.drop = 0.03, .dup = 0.03};
	uint64_t hash;

	ub_rig_open(&rig, &c);
	sim_impair(rig.s, 0, &bad);
	sim_impair(rig.s, 1, &bad);
	traffic(&rig, 60);
	hash = rig.hash;
	sim_impair(rig.s, 0, NULL);
	sim_impair(rig.s, 1, NULL);
	ub_rig_close(&rig);
	return hash;
}

static void
repeatable(void **state)
{
	uint64_t one = hash_of(5);

	(void)state;
	assert_true(one == hash_of(5));
	assert_true(one != hash_of(6));
}

SIM_TEST(good_link)
SIM_TEST(bad_link_sack)
SIM_TEST(bad_link_spray)
SIM_TEST(bad_link_mark)
SIM_TEST(bad_link_track)
SIM_TEST(bad_link_drop)
SIM_TEST(bursts)
SIM_TEST(peer_gone)
SIM_TEST(attacks)
SIM_TEST(attacks_among_others)
SIM_TEST(broken_numbers)
SIM_TEST(poison)
SIM_TEST(orphans)
SIM_TEST(orphan_again)
SIM_TEST(answered)
SIM_TEST(answered_in_time)
SIM_TEST(sender_goes)
SIM_TEST(receiver_goes)
SIM_TEST(datagrams)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_link),	  cmocka_unit_test(bad_link_sack),
		cmocka_unit_test(bad_link_spray), cmocka_unit_test(bad_link_mark),
		cmocka_unit_test(bad_link_track), cmocka_unit_test(bad_link_drop),
		cmocka_unit_test(bursts),	  cmocka_unit_test(peer_gone),
		cmocka_unit_test(attacks),	  cmocka_unit_test(attacks_among_others),
		cmocka_unit_test(broken_numbers), cmocka_unit_test(poison),
		cmocka_unit_test(orphans),	  cmocka_unit_test(orphan_again),
		cmocka_unit_test(answered),	  cmocka_unit_test(sender_goes),
		cmocka_unit_test(receiver_goes),  cmocka_unit_test(datagrams),
		cmocka_unit_test(repeatable),	  cmocka_unit_test(answered_in_time),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
