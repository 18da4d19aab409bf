/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Static rates and rate limits: a QP with one reaches it and does not exceed it, and other QPs are
 * not slowed down.
 */

#include "sim_tagged.h"
#include "sim_test.h"

#define PROGRAM "test_rate"
#define FRAME_OVERHEAD 82u
#define MESSAGES 32u
#define BYTES 8192u
#define SLACK_NS 25000.0 /* time that may be caught up */

static bool
all_done(struct sim *s, void *arg)
{
	(void)arg;
	sim_reap(s);
	return !sim_outstanding(s->model->pairs);
}

static void
post(struct sim_pair *p)
{
	const struct sim_req write = {
		.opcode = SOFTHCA_WR_RDMA_WRITE,
		.len = BYTES,
		.flags = SOFTHCA_SEND_SIGNALED,
	};

	for (unsigned int i = 0; i < MESSAGES; i++)
		sim_check(p->s, sim_post(p, 0, &write, 1) == 0, "post");
}

/* The messages take as long as the rate says; least: a part of it that is reached at the least. */
static void
takes(struct sim *s, struct sim_pair *p, uint32_t mbps, double least)
{
	uint64_t bytes = (uint64_t)MESSAGES * BYTES / 1024 * (1024 + FRAME_OVERHEAD), start, took;
	double got;

	start = s->now;
	post(p);
	sim_check(s, sim_run_until(s, all_done, NULL, SIM_S), "does not end");
	took = s->now - start;
	got = (double)bytes * 8000 / ((double)took + SLACK_NS);
	sim_check(s, sim_counter(s, 0, "req_paced") != 0, "%u Mb/s: never paced", mbps);
	sim_check(s, got < 1.02 * mbps && got > least * mbps, "%.0f Mb/s instead of %u", got, mbps);
	sim_finish(s, SIM_S);
}

static void
limit(struct sim_pair *p, uint32_t kbps, int expected)
{
	const struct softhca_qp_attr attr = {.rate_limit = kbps};

	sim_check(p->s, softhca_modify_qp(p->qp[0], &attr, SOFTHCA_QP_RATE_LIMIT) == expected,
		  "rate limit %u kb/s", kbps);
}

/* A limit counts where it is less than the static rate; it changes in RTS, and 0 takes it away. */
static void
limited_in(const struct sim_config *cfg)
{
	const struct sim_pair_attr a = {.static_rate = SOFTHCA_RATE_5_GBPS, .timeout = 14};
	struct softhca_qp_attr attr;
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, &a);

	takes(s, p, 5000, 0.9);
	limit(p, 1500000, 0);
	takes(s, p, 1500, 0.9);
	limit(p, SOFTHCA_RATE_LIMIT_LEAST - 1, -EINVAL);
	limit(p, SOFTHCA_RATE_LIMIT_MOST + 1, -EINVAL);
	takes(s, p, 1500, 0.9);
	limit(p, 20000000, 0);
	takes(s, p, 5000, 0.9);
	limit(p, 2500000, 0);
	takes(s, p, 2500, 0.9);
	sim_check(s,
		  softhca_query_qp(p->qp[0], &attr, SOFTHCA_QP_RATE_LIMIT, NULL) == 0 &&
			  attr.rate_limit == 2500000,
		  "rate limit %u", attr.rate_limit);
	limit(p, 0, 0);
	takes(s, p, 5000, 0.9);
	sim_check(s, sim_counter(s, 0, "retransmissions") == 0, "retransmissions");
	sim_pair_close(p);
	sim_close(s);
}
SIM_TEST(limited)

static void
run_rate(const struct sim_config *cfg, uint8_t code, uint32_t mbps)
{
	const struct sim_pair_attr a = {.static_rate = code, .timeout = 14};
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, &a);

	takes(s, p, mbps, 0.95);
	sim_check(s, sim_counter(s, 0, "retransmissions") == 0, "retransmissions");
	sim_pair_close(p);
	sim_close(s);
}

static void
holds_in(const struct sim_config *cfg)
{
	run_rate(cfg, SOFTHCA_RATE_2_5_GBPS, 2500);
	run_rate(cfg, SOFTHCA_RATE_5_GBPS, 5000);
}
SIM_TEST(holds)

struct first {
	struct sim_pair *slow, *fast;
	uint64_t fast_done;
};

static bool
both_done(struct sim *s, void *arg)
{
	struct first *f = arg;

	sim_reap(s);
	if (f->fast_done == 0 && !sim_outstanding(f->fast))
		f->fast_done = s->now;
	return f->fast_done != 0 && !sim_outstanding(f->slow);
}

static void
others_are_not_paced_in(const struct sim_config *cfg)
{
	const struct sim_pair_attr slow = {.static_rate = SOFTHCA_RATE_2_5_GBPS, .timeout = 14};
	const struct sim_pair_attr fast = {.timeout = 14};
	struct sim *s = sim_open(cfg);
	struct first f = {.slow = sim_pair_open(s, &slow), .fast = sim_pair_open(s, &fast)};
	uint64_t start = s->now;

	post(f.slow);
	post(f.fast);
	sim_check(s, sim_run_until(s, both_done, &f, SIM_S), "does not end");
	sim_check(s, 2 * (f.fast_done - start) < s->now - start,
		  "the QP without a rate took %llu of %llu ns",
		  (unsigned long long)(f.fast_done - start), (unsigned long long)(s->now - start));
	sim_finish(s, SIM_S);
	sim_pair_close(f.slow);
	sim_pair_close(f.fast);
	sim_close(s);
}
SIM_TEST(others_are_not_paced)

/*
 * A QP that waits because of its rate is reset, moved to ERR and destroyed; it works again
 * afterwards.
 */
static void
ends_while_it_waits_in(const struct sim_config *cfg)
{
	const struct sim_pair_attr a = {.static_rate = SOFTHCA_RATE_2_5_GBPS, .timeout = 14};
	struct sim *s = sim_open(cfg);
	struct sim_pair *p = sim_pair_open(s, &a), *q = sim_pair_open(s, &a);

	for (unsigned int i = 0; i < 5; i++) {
		post(p);
		post(q);
		sim_run_for(s, 20000 * (i + 1));
		sim_pair_reset(p);
		if (i < 4)
			sim_finish(s, SIM_S);
	}
	post(p);
	sim_run_for(s, 50000);
	sim_pair_close(p);
	sim_finish(s, SIM_S);
	sim_pair_close(q);
	sim_close(s);
}
SIM_TEST(ends_while_it_waits)

/* A datagram has the rate of its address handle. */
static void
datagrams_in(const struct sim_config *cfg)
{
	const struct sim_tagged_attr a = {
		.service = SIM_UD,
		.max_len = 1024,
		.static_rate = SOFTHCA_RATE_2_5_GBPS,
	};
	struct sim *s = sim_open(cfg);
	struct sim_tagged *t = sim_tagged_open(s, &a);
	uint64_t start = s->now;

	t->lossless = true;
	sim_tagged_fill(t);
	for (unsigned int sent = 0; sent < 300;) {
		if (sim_tagged_send(t, 0, 0)) {
			sent++;
			continue;
		}
		sim_poll(s);
		sim_tagged_reap(t);
		sim_tagged_fill(t);
	}
	sim_tagged_finish(t);
	sim_check(s, sim_counter(s, 0, "req_paced") != 0, "never paced");
	/* at least 300 frames of headers only */
	sim_check(s, s->now - start > 300ull * FRAME_OVERHEAD * 8 * 1000 / 2500, "too fast");
	sim_tagged_close(t);
	sim_close(s);
}
SIM_TEST(datagrams)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds),
		cmocka_unit_test(limited),
		cmocka_unit_test(others_are_not_paced),
		cmocka_unit_test(ends_while_it_waits),
		cmocka_unit_test(datagrams),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
