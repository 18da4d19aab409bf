/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim_mix.h"

#define MAX_PAIRS 8u
#define EPOCH_OPS 400u
#define CHAIN 16u

const struct hca_impair sim_bad_link = {
	.drop = 0.01,
	.dup = 0.01,
	.reorder = 0.01,
	.corrupt = 0.01,
	.truncate = 0.002,
	.ecn = 0.01,
};

static struct sim_pair_attr
random_attr(struct sim_rng *r)
{
	return (struct sim_pair_attr){
		.mtu = SOFTHCA_MTU_256 + sim_below(r, 5),
		.sq_depth = 4u << sim_below(r, 6),
		.rq_depth = 4u << sim_below(r, 6),
		.max_sge = 1 + sim_below(r, 16),
		.max_inline = sim_below(r, 2) * (16 + sim_below(r, 385)),
		.region = 2u << 20,
		.timeout = 5 + sim_below(r, 4),
		.max_rd_atomic = 1 + sim_below(r, 32),
		.psn = {(uint32_t)sim_random(r) & 0xffffff, 0xffffff - sim_below(r, 300)},
		.gid = sim_below(r, SIM_GIDS),
		.xrc = sim_below(r, 4) == 0,
		.srq = sim_below(r, 3) == 0,
	};
}

/* A SEND or WRITE of one packet and one SGE. */
static struct sim_req
random_single(struct sim_rng *r)
{
	return (struct sim_req){
		.opcode = sim_below(r, SOFTHCA_WR_SEND_WITH_IMM + 1),
		.len = 1 + sim_below(r, 200),
		.nsge = 1,
		.flags = sim_below(r, 8) != 0 ? SOFTHCA_SEND_SIGNALED : 0,
	};
}

/* Length of the next chain. */
static unsigned int
random_chain(struct sim_rng *r, const struct sim_mix *mix)
{
	return mix->singles && sim_below(r, 6) != 0 ? 1 : 1 + sim_below(r, CHAIN);
}

/* Number of polls until the next chain is posted; singles of many QPs are in one burst. */
static unsigned int
random_polls(struct sim_rng *r, const struct sim_mix *mix)
{
	if (!mix->singles)
		return sim_below(r, 12);
	return sim_below(r, 3) != 0 ? 0 : sim_below(r, 16);
}

/* Post one chain on a random side of a random pair. Returns the number of requests posted. */
static unsigned int
post_some(struct sim *s, struct sim_pair **p, unsigned int pairs, const struct sim_mix *mix)
{
	struct sim_rng *r = &s->model->rng;
	struct sim_pair *pair = p[sim_below(r, pairs)];
	unsigned int side = sim_below(r, 2), n = random_chain(r, mix);
	bool no_recv = sim_below(r, 12) == 0;
	struct sim_req req[CHAIN];

	n = n < pair->attr.sq_depth ? n : pair->attr.sq_depth;
	for (unsigned int i = 0; i < n; i++) {
		req[i] = mix->singles && sim_below(r, 5) != 0 ? random_single(r)
							      : sim_random_req(pair, mix->max_len);
		req[i].no_recv = no_recv;
		/* with only unsignalled requests a queue would never be known to be empty */
		if (i + 1 == n)
			req[i].flags |= SOFTHCA_SEND_SIGNALED;
	}
	return sim_post(pair, side, req, n) == 0 ? n : 0;
}

static void
post_missing(struct sim_pair **p, unsigned int pairs)
{
	for (unsigned int i = 0; i < pairs; i++) {
		sim_post_missing(p[i], 0);
		sim_post_missing(p[i], 1);
	}
}

static bool
missing_posted(struct sim *s, void *arg)
{
	bool all = true;

	(void)arg;
	sim_reap(s);
	for (struct sim_pair *p = s->model->pairs; p != NULL; p = p->next)
		for (unsigned int i = 0; i < 2; i++)
			all &= sim_post_missing(p, i) == 0;
	return all;
}

static void
epoch(struct sim *s, struct sim_pair **p, unsigned int pairs, const struct sim_mix *mix,
      unsigned int ops)
{
	struct sim_rng *r = &s->model->rng;
	unsigned int done = 0, dry = 0;

	while (done < ops && dry < 2000) {
		unsigned int n = post_some(s, p, pairs, mix);

		done += n;
		dry = n != 0 ? 0 : dry + 1;
		for (unsigned int k = random_polls(r, mix); k > 0; k--) {
			sim_poll(s);
			sim_reap(s);
		}
		if (sim_below(r, 20) == 0)
			post_missing(p, pairs);
	}
	sim_check(s, sim_run_until(s, missing_posted, NULL, 60 * SIM_S), "no room for receives");
	sim_finish(s, 60 * SIM_S);
}

/* Retransmissions must have a reason. */
static void
check_counters(struct sim *s, const struct sim_mix *mix)
{
	uint64_t again =
		sim_counter(s, 0, "retransmissions") + sim_counter(s, 1, "retransmissions");
	uint64_t rnr = sim_counter(s, 0, "rnr_nak_sent") + sim_counter(s, 1, "rnr_nak_sent");
	uint64_t lost = 0;

	for (unsigned int i = 0; i < 2; i++) {
		struct hca_port_impair_stats st;

		/* whatever happened to them, requests were executed once */
		sim_check(s,
			  sim_requests_executed(s, 1 - i) ==
				  sim_counter(s, i, "req_packets") -
					  sim_counter(s, i, "retransmissions"),
			  "requests sent and executed");
		hca_port_impair_stats(s->side[i].impair, &st);
		lost += st.dropped + st.corrupted + st.truncated;
		sim_check(s,
			  sim_counter(s, 1 - i, "rcvd_pkts") +
						  sim_counter(s, 1 - i, "rx_icrc_encapsulated") !=
					  0 ||
				  sim_counter(s, i, "sent_pkts") == 0,
			  "sent but nothing received");
		sim_check(s,
			  sim_counter(s, i, "req_transport_retries_exceeded") == 0 &&
				  sim_counter(s, i, "req_rnr_retries_exceeded") == 0,
			  "retries exceeded");
	}
	sim_check(s, again == 0 || sim_faults(s) + rnr != 0, "%llu retransmissions on a clean link",
		  (unsigned long long)again);
	sim_check(s, again != 0 || lost < 50 || mix->ops < 1000,
		  "no retransmission although %llu packets were lost", (unsigned long long)lost);
}

uint64_t
sim_mix_run(const struct sim_mix *mix)
{
	struct sim *s = sim_open(&mix->cfg);
	struct sim_rng r = {.s = mix->cfg.seed * 77 + 5};
	struct sim_pair *p[MAX_PAIRS];
	unsigned int most = mix->max_pairs < MAX_PAIRS ? mix->max_pairs : MAX_PAIRS;
	unsigned int pairs = mix->singles ? most : 1 + sim_below(&r, most);
	uint64_t hash;

	for (unsigned int i = 0; i < pairs; i++) {
		struct sim_pair_attr attr = random_attr(&r);

		/* in real time a thread may have to wait for a CPU */
		if (mix->cfg.executor == SIM_THREADS)
			attr.timeout = 16;
		p[i] = sim_pair_open(s, &attr);
	}
	for (unsigned int i = 0; i < 2; i++) {
		sim_impair(s, i, &mix->impair);
		hca_port_stall_set(s->side[i].stall, &mix->stall);
	}
	for (unsigned int done = 0; done < mix->ops; done += EPOCH_OPS)
		epoch(s, p, pairs, mix, mix->ops - done < EPOCH_OPS ? mix->ops - done : EPOCH_OPS);
	sim_check_usage(s, false);
	check_counters(s, mix);
	hash = sim_hash_all(s);
	if (sim_env("SIM_VERBOSE", 0) != 0)
		sim_summary(s);
	for (unsigned int i = 0; i < pairs; i++)
		sim_pair_close(p[i]);
	sim_close(s);
	return hash;
}
