/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Counters name faults of the network: losses, reordering and its depth, duplicates; at the end
 * that receives, for requests and READ responses. A network that does none of it is accused of
 * nothing, whatever receivers, their programs and CPUs do.
 */

#include <inttypes.h>

#include "finding.h"
#include "sim_link.h"
#include "sim_test.h"

#define PROGRAM "test_network"
#define S SOFTHCA_SEND_SIGNALED
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ROUNDS 60u
#define DEPTH 16u

struct named {
	uint64_t lost, late, depth, doubled, answers;
};

static struct named
named(const struct sim *s, unsigned int side)
{
	return (struct named){
		.lost = sim_counter(s, side, "rx_missing") - sim_counter(s, side, "rx_late"),
		.late = sim_counter(s, side, "rx_late"),
		.depth = sim_counter(s, side, "rx_late_depth"),
		.doubled = sim_counter(s, side, "rx_doubled"),
		.answers = sim_counter(s, side, "answers_doubled"),
	};
}

static void
expect_nothing(struct sim *s, const char *what)
{
	for (unsigned int side = 0; side < 2; side++) {
		struct named n = named(s, side);

		sim_check(s, (n.lost | n.late | n.depth | n.doubled | n.answers) == 0,
			  "%s, side %u: lost %" PRIu64 ", late %" PRIu64 " by %" PRIu64
			  ", doubled %" PRIu64 ", answers %" PRIu64,
			  what, side, n.lost, n.late, n.depth, n.doubled, n.answers);
	}
}

/* Findings of a side; its port has no counters. */
static void
expect_well(struct sim *s, const char *what)
{
	for (unsigned int side = 0; side < 2; side++) {
		uint64_t value[FINDING_COUNTERS] = {0};
		struct finding found[FINDINGS_MAX];
		unsigned int n;

		for (unsigned int i = 0; i < FINDING_COUNTERS; i++)
			if (i != FINDING_port_rcv_missed)
				value[i] = sim_counter(s, side, finding_counter_names[i]);
		n = finding_judge(value, found);
		sim_check(s, n == 0, "%s, side %u: %s", what, side, n != 0 ? found[0].text : "");
	}
}

/* Chains of one operation from side 0, one at a time; each round waits for the last one. */
static void
traffic(struct sim_pair *p, uint32_t opcode, uint32_t len, unsigned int rounds)
{
	struct sim_req r[DEPTH];

	for (unsigned int i = 0; i < DEPTH; i++)
		r[i] = (struct sim_req){.opcode = opcode, .len = len, .flags = S};
	for (unsigned int i = 0; i < rounds; i++) {
		sim_check(p->s, sim_post(p, 0, r, DEPTH) == 0, "post");
		sim_finish(p->s, 10 * SIM_S);
	}
}

/* ---- by chance ---- */

struct chance {
	const char *what;
	struct hca_impair impair;
	uint32_t opcode;
};

/* Frames that were hit among those that side `from` sent. */
static uint64_t
hit(const struct sim *s, unsigned int from)
{
	struct hca_port_impair_stats st;

	hca_port_impair_stats(s->side[from].impair, &st);
	return st.dropped + st.duplicated + st.reordered;
}

/* After a gap all is dropped, so faults of the network there are not seen. */
static void
expect_share(struct sim *s, const struct chance *c, uint64_t got, uint64_t did)
{
	print_message("%s: %" PRIu64 " of %" PRIu64 " seen\n", c->what, got, did);
	sim_check(s, got <= did && got * 3 >= did, "%s: %" PRIu64 " seen, the link did %" PRIu64,
		  c->what, got, did);
}

/* Packets that came in order. */
static uint64_t
received(const struct sim *s, unsigned int side)
{
	return sim_requests_executed(s, side) + sim_responses_used(s, side);
}

/* Number of expected packets that did not come. */
static void
expect_rate(struct sim *s, const struct chance *c, uint64_t lost, uint64_t came)
{
	double rate = (double)lost / (double)(lost + came);

	print_message("%s: %.2f %% of %" PRIu64 "\n", c->what, rate * 100, lost + came);
	sim_check(s, rate > c->impair.drop * 0.6 && rate < c->impair.drop * 1.5,
		  "%s: %.2f %%, not %.2f", c->what, rate * 100, c->impair.drop * 100);
}

static void
check_chance(struct sim *s, const struct chance *c, unsigned int receiver)
{
	struct named n = named(s, receiver);
	uint64_t did = hit(s, 1 - receiver);

	sim_check(s, did >= 20, "%s: only %" PRIu64 " frames were hit", c->what, did);
	if (c->impair.drop != 0) {
		expect_rate(s, c, n.lost, received(s, receiver));
		sim_check(s, n.late * 20 <= n.lost, "%s: late %" PRIu64, c->what, n.late);
		sim_check(s, n.doubled == 0, "%s: doubled %" PRIu64, c->what, n.doubled);
	} else if (c->impair.reorder != 0) {
		print_message("late by %" PRIu64 ", lost %" PRIu64 ", doubled %" PRIu64 "\n",
			      n.depth, n.lost, n.doubled);
		expect_share(s, c, n.late, did);
		sim_check(s, n.depth >= n.late, "%s: depth %" PRIu64, c->what, n.depth);
		sim_check(s, n.lost < n.late, "%s: lost %" PRIu64, c->what, n.lost);
		sim_check(s, n.doubled * 10 <= n.late, "%s: doubled %" PRIu64, c->what, n.doubled);
	} else {
		expect_share(s, c, receiver == 1 ? n.doubled : n.answers, did);
		sim_check(s, (n.lost | n.late) == 0, "%s: lost %" PRIu64 ", late %" PRIu64, c->what,
			  n.lost, n.late);
	}
}

static void
by_chance_in(const struct sim_config *cfg)
{
	static const struct chance cases[] = {
		{"WRITEs lost", {.drop = 0.01}, SOFTHCA_WR_RDMA_WRITE},
		{"SENDs lost", {.drop = 0.02}, SOFTHCA_WR_SEND},
		{"READ responses lost", {.drop = 0.01}, SOFTHCA_WR_RDMA_READ},
		{"WRITEs reordered",
		 {.reorder = 0.01, .reorder_ns = 500, .delay_ns = 9000},
		 SOFTHCA_WR_RDMA_WRITE},
		{"SENDs reordered",
		 {.reorder = 0.01, .reorder_ns = 2000, .delay_ns = 9000},
		 SOFTHCA_WR_SEND},
		{"READ responses reordered",
		 {.reorder = 0.01, .reorder_ns = 500, .delay_ns = 9000},
		 SOFTHCA_WR_RDMA_READ},
		{"WRITEs far behind", {.reorder = 0.01}, SOFTHCA_WR_RDMA_WRITE},
		{"WRITEs doubled", {.dup = 0.05}, SOFTHCA_WR_RDMA_WRITE},
		{"SENDs doubled", {.dup = 0.05}, SOFTHCA_WR_SEND},
		{"READ responses doubled", {.dup = 0.05}, SOFTHCA_WR_RDMA_READ},
	};
	const struct sim_pair_attr attr = {.mtu = SOFTHCA_MTU_256, .timeout = 14};

	for (unsigned int i = 0; i < COUNT(cases); i++) {
		unsigned int receiver = cases[i].opcode == SOFTHCA_WR_RDMA_READ ? 0 : 1;
		struct sim *s = sim_open(cfg);
		struct sim_pair *p = sim_pair_open(s, &attr);

		sim_impair(s, 1 - receiver, &cases[i].impair);
		traffic(p, cases[i].opcode, 1500, ROUNDS);
		sim_impair(s, 1 - receiver, NULL);
		sim_settle(s);
		check_chance(s, &cases[i], receiver);
		sim_pair_close(p);
		sim_close(s);
	}
}
SIM_TEST(by_chance)

/* ---- one fault ---- */

/* In the middle of a stream, so that something follows. */
static struct named
after_one(const struct sim_config *cfg, enum hca_fault fault, uint32_t opcode,
	  unsigned int receiver)
{
	const struct hca_fault_rule rule = {.opcode = HCA_FAULT_ANY,
					    .psn = 40,
					    .nth = 1,
					    .count = 1,
					    .fault = fault};
	const struct sim_pair_attr attr = {.mtu = SOFTHCA_MTU_256, .psn = {1, 1}};
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, &attr);
	struct named n;

	sim_rule(s, 1 - receiver, rule);
	traffic(p, opcode, 1500, 3);
	sim_check(s, hca_port_impair_hits(s->side[1 - receiver].impair, 0) == 1, "not hit");
	n = named(s, receiver);
	sim_clear_rules(s);
	sim_pair_close(p);
	sim_close(s);
	return n;
}

static void
one_fault_in(const struct sim_config *cfg)
{
	static const uint32_t ops[] = {SOFTHCA_WR_RDMA_WRITE, SOFTHCA_WR_SEND,
				       SOFTHCA_WR_RDMA_READ};

	for (unsigned int i = 0; i < COUNT(ops); i++) {
		unsigned int receiver = ops[i] == SOFTHCA_WR_RDMA_READ ? 0 : 1;
		struct named n = after_one(cfg, HCA_FAULT_DROP, ops[i], receiver);

		print_message("op %u lost: %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", ops[i], n.lost,
			      n.late, n.doubled);
		assert_true(n.lost == 1 && n.late == 0 && n.doubled == 0);
		n = after_one(cfg, HCA_FAULT_REORDER, ops[i], receiver);
		print_message("op %u late: %" PRIu64 " %" PRIu64 " by %" PRIu64 " %" PRIu64 "\n",
			      ops[i], n.lost, n.late, n.depth, n.doubled);
		assert_true(n.lost == 0 && n.late == 1 && n.depth == 1 && n.doubled == 0);
		n = after_one(cfg, HCA_FAULT_DUP, ops[i], receiver);
		print_message("op %u doubled: %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
			      ops[i], n.lost, n.late, n.doubled, n.answers);
		assert_true(n.lost == 0 && n.late == 0);
		assert_true((receiver == 1 ? n.doubled : n.answers) == 1);
	}
}
SIM_TEST(one_fault)

/* ---- a good network ---- */

static void
clean_in(const struct sim_config *cfg)
{
	static const uint32_t ops[] = {SOFTHCA_WR_RDMA_WRITE, SOFTHCA_WR_SEND, SOFTHCA_WR_RDMA_READ,
				       SOFTHCA_WR_ATOMIC_FETCH_AND_ADD};
	static const struct hca_impair good[] = {{.drop = 0}, {.ecn = 0.3}, {.delay_ns = 20000}};

	for (unsigned int k = 0; k < COUNT(good); k++) {
		struct sim *s = sim_open(cfg);
		struct sim_pair *p = sim_pair_open(s, &(struct sim_pair_attr){.timeout = 12});

		for (unsigned int side = 0; side < 2; side++)
			sim_impair(s, side, &good[k]);
		for (unsigned int i = 0; i < COUNT(ops); i++)
			traffic(p, ops[i], ops[i] >= SOFTHCA_WR_ATOMIC_CMP_AND_SWP ? 8 : 3000, 8);
		expect_nothing(s, "good network");
		for (unsigned int side = 0; side < 2; side++)
			sim_impair(s, side, NULL);
		sim_pair_close(p);
		sim_close(s);
	}
}
SIM_TEST(clean)

/* A program that posts its receives late */
static void
not_ready_in(const struct sim_config *cfg)
{
	const struct sim_pair_attr attr = {.min_rnr_timer = 10};
	struct sim_req r[DEPTH];
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, &attr);

	for (unsigned int i = 0; i < DEPTH; i++)
		r[i] = (struct sim_req){.opcode = SOFTHCA_WR_SEND,
					.len = 2500,
					.flags = S,
					.no_recv = i > 3};
	p->hold_recvs = true;
	sim_check(s, sim_post(p, 0, r, DEPTH) == 0, "post");
	sim_run_for(s, 5000000);
	sim_check(s, sim_counter(s, 1, "rnr_nak_sent") != 0, "no RNR NAK");
	p->hold_recvs = false;
	sim_check(s, sim_post_missing(p, 1) == 0, "post_missing");
	sim_finish(s, SIM_S);
	traffic(p, SOFTHCA_WR_SEND, 2500, 3);
	expect_nothing(s, "receiver not ready");
	sim_check(s, sim_counter(s, 0, "retransmissions") != 0, "nothing is sent again");
	expect_well(s, "receiver not ready");
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(not_ready)

/* Everything stands still, on both sides, or frames of one side wait: timeouts and repetitions. */
static void
slow_peer_in(const struct sim_config *cfg)
{
	const struct hca_impair slow = {.delay_ns = 3000000};
	const struct sim_pair_attr attr = {.timeout = 8}; /* 1 ms */
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, &attr);

	for (unsigned int side = 0; side < 2; side++) {
		sim_impair(s, side, &slow);
		traffic(p, SOFTHCA_WR_RDMA_WRITE, 100, 3);
		traffic(p, SOFTHCA_WR_SEND, 3000, 3);
		traffic(p, SOFTHCA_WR_RDMA_READ, 3000, 3);
		sim_impair(s, side, NULL);
		sim_settle(s);
	}
	sim_check(s, sim_counter(s, 0, "local_ack_timeout_err") > 10, "no timeouts");
	sim_check(s, sim_counter(s, 1, "duplicate_request") > 10, "no duplicates");
	expect_nothing(s, "slow peer");
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(slow_peer)

/*
 * One request at a time: a single packet is repeated, as if the network had doubled it. Packets of
 * another QP come all the time, so that the receiver is awake. Requests take up to `jitter` ns.
 */
static void
lose_acks(const struct sim_config *cfg, uint32_t timeout, unsigned int rounds, uint64_t jitter)
{
	const struct sim_req r = {.opcode = SOFTHCA_WR_RDMA_WRITE, .len = 64, .flags = S};
	const struct sim_pair_attr attr = {.timeout = timeout};
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, &attr), *other = sim_pair_open(s, &attr);
	const struct hca_impair bad = {.drop = 0.3, .qpn = p->qp[0]->qp_num};
	const struct hca_impair late = {.jitter_ns = jitter, .qpn = p->qp[1]->qp_num};

	sim_impair(s, 0, &late);
	sim_impair(s, 1, &bad);
	for (unsigned int i = 0; i < rounds; i++) {
		sim_check(s, sim_post(p, 0, &r, 1) == 0, "post");
		while (sim_outstanding(p)) {
			if (!sim_outstanding(other))
				sim_check(s, sim_post(other, 0, &r, 1) == 0, "post");
			sim_run_for(s, 50000);
			sim_reap(s);
		}
		sim_finish(s, SIM_S);
	}
	sim_check(s, sim_counter(s, 1, "duplicate_request") > 3, "no duplicates");
	expect_nothing(s, "acknowledgements lost");
	for (unsigned int side = 0; side < 2; side++)
		sim_impair(s, side, NULL);
	sim_pair_close(p);
	sim_pair_close(other);
	sim_close(s);
}

static void
ack_lost_in(const struct sim_config *cfg)
{
	lose_acks(cfg, 10, 30, 0);
	lose_acks(cfg, 10, 20, 400000);
	lose_acks(cfg, 14, 24, 8000000);
}
SIM_TEST(ack_lost)

/* ---- round trips ---- */

static struct hca_round_trips
measured(struct sim_pair *p)
{
	struct hca_round_trips r;

	sim_check(p->s, hca_qp_round_trips(p->s->side[0].hca, p->qp[0]->qp_num, &r) == 0, "QP");
	return r;
}

static void
expect_about(struct sim *s, const struct hca_round_trips *r, uint64_t ns)
{
	sim_check(s, r->samples >= 5, "%u samples", r->samples);
	sim_check(s, r->min_ns >= ns && r->min_ns < ns + ns / 2 + 30000,
		  "min %" PRIu64 " of %" PRIu64, r->min_ns, ns);
	sim_check(s, r->p50_ns >= r->min_ns && r->p50_ns <= r->p99_ns, "p50 %" PRIu64, r->p50_ns);
	sim_check(s, r->p99_ns < ns * 2 + 400000, "p99 %" PRIu64 " of %" PRIu64, r->p99_ns, ns);
}

/* As long as the link delays, also where packets are lost: those repeated are not timed. */
static void
round_trips_in(const struct sim_config *cfg)
{
	static const uint64_t delay[] = {20000, 300000, 20000000};
	static const uint32_t ops[] = {SOFTHCA_WR_RDMA_WRITE, SOFTHCA_WR_SEND,
				       SOFTHCA_WR_RDMA_READ};

	for (unsigned int i = 0; i < COUNT(delay); i++) {
		struct hca_impair slow = {.delay_ns = delay[i], .drop = i == 2 ? 0 : 0.01};
		struct sim *s = sim_open(cfg);
		struct sim_pair *p = sim_pair_open(s, &(struct sim_pair_attr){.timeout = 16});
		struct hca_round_trips r;

		r = measured(p);
		sim_check(s, r.samples == 0, "%u samples before any packet", r.samples);
		sim_impair(s, 0, &slow);
		slow.drop = 0;
		sim_impair(s, 1, &slow);
		for (unsigned int k = 0; k < 10; k++)
			traffic(p, ops[k % COUNT(ops)], 2000, 2);
		r = measured(p);
		expect_about(s, &r, 2 * delay[i]);
		sim_pair_reset(p);
		r = measured(p);
		sim_check(s, r.samples == 0, "%u samples of the last life", r.samples);
		for (unsigned int side = 0; side < 2; side++)
			sim_impair(s, side, NULL);
		sim_pair_close(p);
		sim_close(s);
	}
}
SIM_TEST(round_trips)

/* ---- path MTU ---- */

static bool
too_long(void *arg, uint8_t *frame, uint32_t len)
{
	(void)arg;
	(void)frame;
	return len > 1514;
}

static const struct sim_pair_attr large_mtu = {.mtu = SOFTHCA_MTU_4096,
					       .timeout = 10,
					       .retry_cnt = 5};
static const struct sim_req small = {.opcode = SOFTHCA_WR_RDMA_WRITE, .len = 500, .flags = S};
static const struct sim_req big = {.opcode = SOFTHCA_WR_RDMA_WRITE, .len = 9000, .flags = S};

static void
pass(struct sim_pair *p, const struct sim_req *r, unsigned int n, unsigned int rounds)
{
	for (unsigned int i = 0; i < rounds; i++) {
		sim_check(p->s, sim_post(p, 0, r, n) == 0, "post");
		sim_check(p->s, sim_drain(p->s, SIM_S), "%u bytes do not pass", r->len);
		sim_run_for(p->s, 200000);
	}
}

/* A chain that never arrives; how many timeouts of full frames it takes. */
static uint64_t
fail_at(struct sim_pair *p, const struct sim_req *r, unsigned int n)
{
	uint64_t before = sim_counter(p->s, 0, "full_frames_timeouts");
	uint64_t timeouts = sim_counter(p->s, 0, "local_ack_timeout_err");

	sim_check(p->s, sim_post(p, 0, r, n) == 0, "post");
	sim_expect_sq_error(p, 0, p->sq[0].head->wr_id, SOFTHCA_WC_RETRY_EXC_ERR, false);
	sim_drain(p->s, 10 * SIM_S);
	sim_check(p->s, sim_counter(p->s, 0, "local_ack_timeout_err") >= timeouts + 5, "timeouts");
	return sim_counter(p->s, 0, "full_frames_timeouts") - before;
}

/* Small messages to a peer pass, then a long one of any QP does not: an MTU of 1500 on the way. */
static void
path_mtu_in(const struct sim_config *cfg)
{
	struct sim_config one = *cfg;
	struct sim_pair *p, *other, *third;
	struct sim *s;

	one.pipes = 1; /* each pipe finds the MTU of a path for itself */
	s = sim_open(&one);
	p = sim_pair_open(s, &large_mtu);
	other = sim_pair_open(s, &large_mtu);
	third = sim_pair_open(s, &large_mtu);

	for (unsigned int side = 0; side < 2; side++)
		sim_link_lose(s->side[side].wire, too_long, NULL);
	pass(other, &small, 1, 20);
	sim_check(s, fail_at(p, &big, 1) >= 5, "timeouts of full frames");
	sim_check(s, sim_counter(s, 0, "full_frames_passed") == 0, "full frames passed");
	sim_check(s, sim_counter(s, 0, "small_frames_passed") >= 10, "small frames did not pass");
	for (unsigned int side = 0; side < 2; side++)
		sim_link_lose(s->side[side].wire, NULL, NULL);
	pass(other, &big, 1, 1);
	sim_check(s, sim_counter(s, 0, "full_frames_passed") != 0, "full frames do not count");
	/* that they once passed is known when nothing does, of all QPs to that peer */
	sim_link_lose(s->side[0].wire, too_long, NULL);
	sim_check(s, fail_at(other, &big, 1) == 0, "the MTU is blamed");
	sim_check(s, fail_at(third, &big, 1) == 0, "the MTU is blamed for another QP");
	sim_link_lose(s->side[0].wire, NULL, NULL);
	sim_pair_close(p);
	sim_pair_close(other);
	sim_pair_close(third);
	sim_close(s);
}
SIM_TEST(path_mtu)

static bool
all_of(void *arg, uint8_t *frame, uint32_t len)
{
	(void)arg;
	(void)frame;
	(void)len;
	return true;
}

/* A long message and a short one behind it, always in one chain; then the peer stops. */
static void
stopped_peer_in(const struct sim_config *cfg)
{
	const struct sim_req chain[] = {
		{.opcode = SOFTHCA_WR_RDMA_WRITE, .len = 4096, .flags = S},
		{.opcode = SOFTHCA_WR_SEND, .len = 16, .flags = S},
	};
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, &large_mtu);

	pass(p, chain, COUNT(chain), 20);
	sim_check(s, sim_counter(s, 0, "full_frames_passed") != 0, "full frames do not count");
	sim_link_lose(s->side[0].wire, all_of, NULL);
	sim_check(s, fail_at(p, chain, COUNT(chain)) == 0, "the MTU is blamed");
	sim_link_lose(s->side[0].wire, NULL, NULL);
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(stopped_peer)

/* The first message to a peer is long, and the peer is dead; small ones to another one pass. */
static void
dead_peer_in(const struct sim_config *cfg)
{
	struct sim_pair_attr address = large_mtu;
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, &large_mtu), *other;
	const struct hca_impair dead = {.drop = 1, .qpn = p->qp[1]->qp_num};

	address.gid = SIM_GID_V6;
	other = sim_pair_open(s, &address);
	sim_impair(s, 0, &dead);
	pass(other, &small, 1, 20);
	sim_check(s, fail_at(p, &big, 1) == 0, "the MTU is blamed");
	pass(other, &small, 1, 1);
	sim_impair(s, 0, NULL);
	sim_pair_close(p);
	sim_pair_close(other);
	sim_close(s);
}
SIM_TEST(dead_peer)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_chance),	cmocka_unit_test(one_fault),
		cmocka_unit_test(clean),	cmocka_unit_test(not_ready),
		cmocka_unit_test(slow_peer),	cmocka_unit_test(ack_lost),
		cmocka_unit_test(round_trips),	cmocka_unit_test(path_mtu),
		cmocka_unit_test(stopped_peer), cmocka_unit_test(dead_peer),
	};

	return sim_main_of(tests, COUNT(tests));
}
