/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Losses and reordering at the end of a message, with no later packets that would reveal them: the
 * time until the message completes, with and without ack timeouts. And the counters of
 * acknowledgements compared with the frames on the link.
 */

#include "sim_duo.h"
#include "sim_fault.h"
#include "sim_strict.h"
#include "sim_tagged.h"
#include "sim_test.h"

#define PROGRAM "test_recover"
#define S SOFTHCA_SEND_SIGNALED
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define PSN0 0xfffffdu
#define MTU 256u
#define PACKETS 6u
/* while everything waits, time advances in jumps: allowance for a NAK and its consequences */
#define SLACK_NS 100000u
#define TIMEOUT_NS (4096ull << 8)

struct
try {
	uint32_t opcode, len;
	bool timeout; /* with an ack timeout */
	enum hca_fault fault;
	unsigned int side; /* sender of the packet */
	uint32_t place;	   /* of the packet that is hit; PACKETS: none */
};

static bool
idle(struct sim *s, void *arg)
{
	sim_reap(s);
	return !sim_outstanding(arg);
}

/* The time that the message took. */
static uint64_t
one(struct sim *s, const struct try *t)
{
	const struct sim_pair_attr attr = {
		.mtu = SOFTHCA_MTU_256,
		.region = 32768,
		.sq_depth = 8,
		.rq_depth = 8,
		.psn = {PSN0, PSN0},
		.no_timeout = !t->timeout,
	};
	const struct sim_req r = {.opcode = t->opcode, .len = t->len, .flags = S};
	struct hca_fault_rule rule = sim_fault_rule(t->fault, 1);
	struct sim_pair *p = sim_pair_open(s, &attr);
	uint64_t start;

	rule.psn = (PSN0 + t->place) & 0xffffff;
	sim_clear_rules(s);
	if (t->place < PACKETS)
		sim_rule(s, t->side, rule);
	start = s->now;
	sim_check(s, sim_post(p, 0, &r, 1) == 0, "post");
	sim_check(s, sim_run_until(s, idle, p, SIM_S),
		  "op %u, fault %u of packet %u of side %u, %s: not finished", t->opcode, t->fault,
		  t->place, t->side, t->timeout ? "timeout" : "no timeout");
	start = s->now - start;
	sim_finish(s, SIM_S);
	sim_clear_rules(s);
	sim_pair_close(p);
	return start;
}

/* limit: in addition to two round trips */
static void
recovers(struct sim *s, struct try t, uint64_t limit)
{
	struct try clean = t;
	uint64_t rtt, took;

	clean.place = PACKETS;
	rtt = one(s, &clean);
	took = one(s, &t);
	sim_check(s, took <= 3 * rtt + SLACK_NS + limit,
		  "op %u, fault %u of packet %u of side %u: %llu ns, a round trip is %llu",
		  t.opcode, t.fault, t.place, t.side, (unsigned long long)took,
		  (unsigned long long)rtt);
}

static const uint32_t ops[] = {SOFTHCA_WR_SEND, SOFTHCA_WR_SEND_WITH_IMM, SOFTHCA_WR_RDMA_WRITE,
			       SOFTHCA_WR_RDMA_WRITE_WITH_IMM, SOFTHCA_WR_RDMA_READ};

/*
 * A packet other than the last is reordered or lost: the next one reveals it. For a READ, the
 * responses are meant.
 */
static void
noticed_in(const struct sim_config *cfg)
{
	static const enum hca_fault faults[] = {HCA_FAULT_DROP, HCA_FAULT_REORDER,
						HCA_FAULT_CORRUPT_ICRC};
	struct sim *s = sim_open(cfg);

	for (unsigned int i = 0; i < COUNT(ops) * COUNT(faults); i++) {
		struct try t = {.opcode = ops[i % COUNT(ops)],
				.len = (PACKETS - 1) * MTU + 1,
				.fault = faults[i / COUNT(ops)]};

		t.side = t.opcode == SOFTHCA_WR_RDMA_READ;
		for (t.place = 0; t.place < PACKETS - 1; t.place++) {
			t.timeout = true;
			recovers(s, t, 0);
			t.timeout = false;
			recovers(s, t, 0);
		}
	}
	sim_check(s, sim_counter(s, 0, "local_ack_timeout_err") == 0, "timeouts");
	sim_close(s);
}
SIM_TEST(noticed)

/*
 * The last packet, or the only response: only the timeout reveals it, and this is the whole cost.
 */
static void
unnoticed_in(const struct sim_config *cfg)
{
	struct sim *s = sim_open(cfg);

	for (unsigned int i = 0; i < COUNT(ops); i++) {
		struct try t = {.opcode = ops[i],
				.len = (PACKETS - 1) * MTU + 1,
				.timeout = true,
				.fault = HCA_FAULT_DROP,
				.side = ops[i] == SOFTHCA_WR_RDMA_READ,
				.place = PACKETS - 1};

		recovers(s, t, 2 * TIMEOUT_NS);
		t.len = MTU;
		t.place = 0;
		t.side = 0;
		recovers(s, t, 2 * TIMEOUT_NS);
		t.side = 1;
		recovers(s, t, 2 * TIMEOUT_NS);
	}
	sim_close(s);
}
SIM_TEST(unnoticed)

/*
 * The receive is posted while the SEND before the last request is refused, duplicated, or being
 * repeated.
 */
static void
not_ready_in(const struct sim_config *cfg)
{
	/* code 1: 10 us */
	const struct sim_pair_attr attr = {.no_timeout = true, .min_rnr_timer = 1};
	const struct sim_req r[] = {
		{.opcode = SOFTHCA_WR_SEND, .len = 300, .flags = S, .no_recv = true},
		{.opcode = SOFTHCA_WR_RDMA_WRITE, .len = 50, .flags = S},
		{.opcode = SOFTHCA_WR_RDMA_WRITE, .len = 50, .flags = S},
	};
	struct sim *s = sim_open(cfg);

	for (unsigned int i = 0; i < 80; i++) {
		struct sim_pair *p = sim_pair_open(s, &attr);
		struct hca_fault_rule rule = sim_fault_rule(HCA_FAULT_DUP, 1 + i % 3);

		p->hold_recvs = true;
		rule.psn = i & 1 ? 0 : HCA_FAULT_ANY;
		sim_rule(s, 0, rule);
		sim_check(s, sim_post(p, 0, r, COUNT(r)) == 0, "post");
		for (unsigned int k = i / 2; k > 0; k--)
			sim_poll(s);
		sim_check(s, sim_post_recv(p, 1, 300, 1) == 0, "post_recv");
		sim_check(s, sim_run_until(s, idle, p, 10 * SLACK_NS), "not finished, try %u", i);
		sim_finish(s, SIM_S);
		sim_clear_rules(s);
		sim_pair_close(p);
	}
	sim_close(s);
}
SIM_TEST(not_ready)

/* --- counters -------------------- */

#define SAME(s, counted, seen) \
	sim_check((s), (counted) == (seen), #counted ": %llu, " #seen ": %llu", \
		  (unsigned long long)(counted), (unsigned long long)(seen))

static void
check_counted(struct sim *s, const struct sim_strict *x)
{
	sim_settle(s);
	for (unsigned int i = 0; i < 2; i++) {
		const struct sim_strict_side *d = &x->side[i];

		SAME(s, sim_counter(s, i, "acks_sent"), d->acks);
		SAME(s, sim_counter(s, i, "seq_nak_sent"), d->seq_naks);
		SAME(s, sim_counter(s, i, "rnr_nak_sent"), d->rnr_naks);
		SAME(s, sim_counter(s, i, "naks_sent"), d->seq_naks + d->rnr_naks + d->other_naks);
		SAME(s, sim_counter(s, i, "np_cnp_sent"), d->cnps);
	}
}

/* Only frames of side 0 are hit, so all answers of side 1 are on the link. */
static void
counters_in(const struct sim_config *cfg)
{
	static const struct hca_impair bad = {.dup = 0.03,
					      .reorder = 0.05,
					      .reorder_ns = 2000,
					      .ecn = 0.2};
	struct hca_fault_rule refuse = sim_fault_rule(HCA_FAULT_CORRUPT_ICRC, 1);
	const struct sim_pair_attr attr = {.mtu = SOFTHCA_MTU_256, .region = 4u << 20};
	struct sim *s = sim_open(cfg);
	struct sim_strict x;
	struct sim_pair *p;

	sim_strict_open(s, &x, false);
	p = sim_pair_open(s, &attr);
	for (unsigned int round = 0; round < 60; round++) {
		struct sim_req r[16];

		for (unsigned int i = 0; i < COUNT(r); i++) {
			r[i] = sim_random_req(p, 3000);
			r[i].no_recv = round % 4 == 3;
		}
		r[COUNT(r) - 1].flags |= S;
		sim_impair(s, 0, &bad);
		if (round % 5 == 0)
			sim_rule(s, 0, refuse);
		sim_check(s, sim_post(p, 0, r, COUNT(r)) == 0, "post");
		for (unsigned int k = 0; k < 100; k++)
			sim_poll(s);
		sim_check(s, sim_post_missing(p, 1) == 0, "post_recv");
		sim_finish(s, SIM_S);
		sim_clear_rules(s);
	}
	sim_impair(s, 0, NULL);
	sim_check(s, x.side[1].seq_naks != 0 && x.side[1].rnr_naks != 0, "no NAKs");
	sim_check(s, sim_counter(s, 1, "np_ecn_marked_roce_packets") != 0, "no CE marks");
	check_counted(s, &x);
	sim_pair_close(p);
	sim_strict_close(&x);
	sim_close(s);
}
SIM_TEST(counters)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(noticed),
		cmocka_unit_test(unnoticed),
		cmocka_unit_test(not_ready),
		cmocka_unit_test(counters),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
