/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The goodput of the rules, in simulated time: 100 Gb/s, 100 us round trip, MTU 4096, W 1024,
 * losses in both directions. Writes in segments of 64 KiB go one way; each is answered by a TAACK,
 * which is a TP packet of the other direction. Medians of 5 seeds.
 */

#include "tp_rig.h"
#include "tp_sim.h"

#include <stdio.h>

#define SEGMENT 65536u
#define SEGMENTS 2500u
#define OPEN 256u /* segments at a time */
#define SEEDS 5u
#define MS UINT64_C(1000000)

enum {
	TO_PUT,	  /* segments */
	IN_LANES, /* not completed */
	TO_ANSWER,
	ENDED, /* when SEGMENTS - OPEN were completed, ns */
	COMPLETED,
	NEXT_AT, /* ns */
};

/* ---- a stream of large writes ---- */

static void
answer_some(struct tp_sim *s)
{
	while (s->user[TO_ANSWER] > 0 && tp_sim_room(s, 1, 0, HCA_TP_RESPONSES) > 0) {
		tp_sim_put(s, 1, 0, HCA_TP_RESPONSES, 0, 0);
		s->user[TO_ANSWER]--;
	}
}

static void
stream_fill(struct tp_sim *s, uint32_t end)
{
	if (end == 1) {
		answer_some(s);
		return;
	}
	while (s->user[TO_PUT] > 0 && s->user[IN_LANES] < OPEN &&
	       tp_sim_room(s, 0, 0, HCA_TP_REQUESTS) > 0) {
		tp_sim_put(s, 0, 0, HCA_TP_REQUESTS, SEGMENT, 0);
		s->user[TO_PUT]--;
		s->user[IN_LANES]++;
	}
}

static void
stream_complete(struct tp_sim *s, uint32_t from, uint32_t tp, uint32_t lane, uint64_t tag)
{
	if (lane == HCA_TP_REQUESTS) {
		s->user[TO_ANSWER]++;
		return;
	}
	s->user[IN_LANES]--;
	if (++s->user[COMPLETED] == SEGMENTS - OPEN)
		s->user[ENDED] = s->now;
}

static bool
stream_finished(const struct tp_sim *s)
{
	return s->user[TO_PUT] == 0 && s->user[TO_ANSWER] == 0;
}

static const struct sim_app stream = {.fill = stream_fill,
				      .complete = stream_complete,
				      .finished = stream_finished};

struct result {
	double gbps;
	uint64_t lost, resent, timeouts;
};

static void
network(struct sim_cfg *cfg, enum hca_tp_rule rule, uint32_t loss)
{
	bool drop = rule == HCA_TP_RULE_NAK;

	*cfg = (struct sim_cfg){.tps = 1, .poll = 1000, .app = &stream};
	rig_cfg(&cfg->tp, drop ? HCA_TP_MODE_DROP : HCA_TP_MODE_SACK, rule);
	cfg->tp.window = 1024;
	cfg->tp.mtu_log = 12;
	cfg->tp.ack_every = 16;
	cfg->tp.rto_base = 0;
	cfg->tp.rto_exponent = 1;
	for (uint32_t end = 0; end < 2; end++)
		cfg->link[end] = (struct sim_link){.delay = 50000, .gbps = 100, .loss = loss};
}

static struct result
run(const struct sim_cfg *cfg, uint64_t seed)
{
	struct sim_cfg seeded = *cfg;
	struct tp_sim s;
	struct result r;

	seeded.seed = seed;
	tp_sim_open(&s, &seeded);
	s.user[TO_PUT] = SEGMENTS;
	assert_true(tp_sim_run(&s, 10000 * MS));
	tp_sim_check(&s);
	r.gbps = (double)(SEGMENTS - OPEN) * SEGMENT * 8 / (double)(s.user[ENDED] - MS);
	r.lost = s.flow[0].lost + s.flow[1].lost;
	r.resent = s.flow[0].resent + s.flow[1].resent;
	r.timeouts = tp_sim_tp(&s, 0, 0)->tx.timeouts + tp_sim_tp(&s, 1, 0)->tx.timeouts;
	tp_sim_close(&s);
	return r;
}

static int
by_gbps(const void *a, const void *b)
{
	const struct result *x = a, *y = b;

	return (x->gbps > y->gbps) - (x->gbps < y->gbps);
}

/* lost, resent, timeouts: of all seeds. */
static struct result
median(const struct sim_cfg *cfg)
{
	struct result r[SEEDS], m;

	for (uint32_t i = 0; i < SEEDS; i++)
		r[i] = run(cfg, 1 + i);
	qsort(r, SEEDS, sizeof(r[0]), by_gbps);
	m = (struct result){.gbps = r[SEEDS / 2].gbps};
	for (uint32_t i = 0; i < SEEDS; i++) {
		m.lost += r[i].lost;
		m.resent += r[i].resent;
		m.timeouts += r[i].timeouts;
	}
	return m;
}

static void
print_row(const char *name, uint32_t loss, const struct result *r, double share)
{
	print_message("%-24s loss %6u ppm: %5.1f Gb/s, %5.1f %%; lost %llu, resent %llu, "
		      "timeouts %llu\n",
		      name, loss, r->gbps, 100 * share, (unsigned long long)r->lost,
		      (unsigned long long)r->resent, (unsigned long long)r->timeouts);
}

/* Shares of the goodput without loss; 0: a figure, no bar. */
static const struct {
	enum hca_tp_rule rule;
	const char *name;
	double bar[3];
} rules[] = {
	{HCA_TP_RULE_TIME, "TIME", {0.98, 0.97, 0.90}},
	{HCA_TP_RULE_MARK, "MARK", {0.97, 0.95, 0.85}},
	{HCA_TP_RULE_HIGH, "HIGH", {0}},
	{HCA_TP_RULE_NAK, "NAK", {0}},
};

static void
test_loss(void **state)
{
	static const uint32_t loss[] = {100, 1000, 10000};

	for (size_t k = 0; k < RTE_DIM(rules); k++) {
		struct sim_cfg cfg;
		struct result none;

		network(&cfg, rules[k].rule, 0);
		none = run(&cfg, 1);
		print_row(rules[k].name, 0, &none, 1);
		assert_int_equal(none.resent, 0);
		for (size_t i = 0; i < RTE_DIM(loss); i++) {
			struct result r;

			network(&cfg, rules[k].rule, loss[i]);
			r = median(&cfg);
			print_row(rules[k].name, loss[i], &r, r.gbps / none.gbps);
			assert_true(r.gbps >= rules[k].bar[i] * none.gbps);
			if (rules[k].rule == HCA_TP_RULE_TIME)
				assert_true((double)r.resent <= 1.05 * (double)r.lost);
		}
	}
}

/* ---- eight paths, up to 20 us apart ---- */

static void
paths(struct sim_cfg *cfg, uint32_t loss, uint32_t loss0)
{
	network(cfg, HCA_TP_RULE_TIME, loss);
	cfg->tp.flags = HCA_TP_FLAG_SPRAY;
	cfg->tp.ports_log = 3;
	cfg->tp.reorder = 25000;
	cfg->tp.ooo_every = 4;
	for (uint32_t end = 0; end < 2; end++) {
		cfg->link[end].paths = 8;
		cfg->link[end].skew = 20000;
		cfg->link[end].loss0 = loss0;
	}
}

static void
test_paths(void **state)
{
	struct result none, r;
	struct sim_cfg cfg;

	paths(&cfg, 0, 0);
	none = median(&cfg);
	print_row("8 paths, TIME", 0, &none, none.gbps / 100);
	assert_true(none.gbps >= 95);
	assert_int_equal(none.resent, 0);
	paths(&cfg, 1000, 0);
	r = median(&cfg);
	print_row("8 paths, TIME", 1000, &r, r.gbps / none.gbps);
	assert_true(r.gbps >= 0.95 * none.gbps);
	paths(&cfg, 0, 100000);
	r = median(&cfg);
	print_row("one of 8 loses 10 %", 0, &r, r.gbps / none.gbps);
	assert_true(r.gbps >= 0.80 * none.gbps);
}

/* ---- latency of 4 KiB writes at 30 % load ---- */

#define WRITES 200000u

static uint32_t latency[WRITES];

static void
load_fill(struct tp_sim *s, uint32_t end)
{
	if (end == 1)
		return;
	/* 4096 bytes at 30 Gb/s take 1092 ns; one poll is 1000 */
	while (s->user[TO_PUT] > 0 && s->user[NEXT_AT] <= s->now &&
	       tp_sim_room(s, 0, 0, HCA_TP_REQUESTS) > 0) {
		s->user[NEXT_AT] += 1 + tp_sim_random(s, 2 * 1092);
		tp_sim_put(s, 0, 0, HCA_TP_REQUESTS, 4096, s->now);
		s->user[TO_PUT]--;
	}
}

static void
load_complete(struct tp_sim *s, uint32_t from, uint32_t tp, uint32_t lane, uint64_t tag)
{
	if (lane == HCA_TP_REQUESTS)
		tp_sim_put(s, 1, 0, HCA_TP_RESPONSES, 0, tag);
	else
		latency[s->user[COMPLETED]++] = (uint32_t)(s->now - tag);
}

static bool
load_finished(const struct tp_sim *s)
{
	return s->user[COMPLETED] == WRITES;
}

static const struct sim_app load = {.fill = load_fill,
				    .complete = load_complete,
				    .finished = load_finished};

static int
by_value(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* us */
static double
percentile_999(enum hca_tp_rule rule, uint32_t loss)
{
	struct sim_cfg cfg;
	struct tp_sim s;

	network(&cfg, rule, loss);
	cfg.app = &load;
	cfg.seed = 1;
	tp_sim_open(&s, &cfg);
	s.user[TO_PUT] = WRITES;
	s.user[NEXT_AT] = s.now;
	assert_true(tp_sim_run(&s, 10000 * MS));
	tp_sim_check(&s);
	tp_sim_close(&s);
	qsort(latency, WRITES, sizeof(latency[0]), by_value);
	return latency[WRITES - WRITES / 1000] / 1000.0;
}

static void
test_latency(void **state)
{
	for (size_t k = 0; k < RTE_DIM(rules); k++) {
		double none = percentile_999(rules[k].rule, 0);
		double lossy = percentile_999(rules[k].rule, 1000);

		print_message("%s: p99.9 of 4 KiB writes %.0f us, with 1e-3 loss %.0f us\n",
			      rules[k].name, none, lossy);
		if (rules[k].rule == HCA_TP_RULE_TIME)
			assert_true(lossy <= 2.5 * none);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_latency),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
