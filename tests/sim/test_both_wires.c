/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * RoCE and UB at once on the same two HCAs: all operations of both, both ways, over good and bad
 * links. Each has its own judge, sim_model.h and ub_mix.h: data, order, executed once.
 */

#include "ub_mix.h"

#define PROGRAM "sim-both-wires"

#define PAIRS 2u
#define REQUESTS 300u /* of RoCE, of both sides together */
#define LENGTH 9000u
#define CHAIN 4u

static struct {
	struct sim_pair *pair[PAIRS];
	unsigned int posted;
} roce;

static enum sim_gid gid;

static void
begin(struct ub_pair *p)
{
	const struct sim_pair_attr attr[PAIRS] = {
		{.gid = gid, .max_sge = 4, .region = 4u << 20, .max_inline = 64},
		{.gid = gid, .mtu = SOFTHCA_MTU_4096, .region = 4u << 20, .srq = true},
	};

	memset(&roce, 0, sizeof(roce));
	for (unsigned int i = 0; i < PAIRS; i++)
		roce.pair[i] = sim_pair_open(p->s, &attr[i]);
}

/* A chain now and then, on either side of either pair; while there is no room, completions. */
static bool
turn(struct ub_pair *p)
{
	struct sim_rng *r = &p->s->model->rng;
	struct sim_pair *pair = roce.pair[sim_below(r, PAIRS)];
	unsigned int side = sim_below(r, 2), n = 1 + sim_below(r, CHAIN);
	struct sim_req req[CHAIN];
	bool more = roce.posted < REQUESTS;

	sim_reap(p->s);
	if (!more) {
		for (unsigned int i = 0; i < PAIRS; i++)
			more |= sim_outstanding(roce.pair[i]);
		return more;
	}
	for (unsigned int i = 0; i < n; i++)
		req[i] = sim_random_req(pair, LENGTH);
	req[n - 1].flags |= SOFTHCA_SEND_SIGNALED;
	if (sim_below(r, 4) == 0 && sim_post(pair, side, req, n) == 0)
		roce.posted += n;
	return true;
}

static uint64_t
resent(struct ub_pair *p)
{
	return sim_counter(p->s, 0, "retransmissions") + sim_counter(p->s, 1, "retransmissions");
}

/* The links are good by now. */
static void
end(struct ub_pair *p)
{
	bool bad = sim_faults(p->s) != 0;

	sim_finish(p->s, 60 * SIM_S);
	for (unsigned int i = 0; i < 2; i++) {
		UB_PAIR_EQ(p, sim_counter(p->s, i, "req_transport_retries_exceeded"), 0);
		sim_check(p->s,
			  sim_counter(p->s, i, "rcvd_requests") != 0 &&
				  ub_pair_counter(p, i, HCA_CTR_ub_rx_tp_packets) != 0,
			  "side %u: a wire was silent", i);
	}
	sim_check(p->s, (resent(p) != 0) == bad && (ub_pair_again(p) != 0) == bad,
		  "sent again: RoCE %lu, UB %lu", (unsigned long)resent(p),
		  (unsigned long)ub_pair_again(p));
	for (unsigned int i = 0; i < PAIRS; i++)
		sim_pair_close(roce.pair[i]);
}

static const struct ub_mix_beside beside = {begin, turn, end};

static void
run(const struct sim_config *cfg, const struct hca_impair *bad)
{
	static const enum sim_gid gids[] = {SIM_GID_V4, SIM_GID_V6_VLAN};

	for (unsigned int i = 0; i < RTE_DIM(gids); i++) {
		struct ub_pair_config c = {.sim = *cfg,
					   .gid = gids[i],
					   .small_mtu = i == 0,
					   .tps = 2,
					   .retries = 15,
					   .err_timeout = 24,
					   .rto_base = 100};

		gid = gids[i];
		ub_mix_beside(&c, bad, 150, &beside);
	}
}

static void
good_in(const struct sim_config *cfg)
{
	run(cfg, NULL);
}

static void
bad_in(const struct sim_config *cfg)
{
	run(cfg, &ub_mix_bad_link);
}

SIM_TEST(good)
SIM_TEST(bad)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),
		cmocka_unit_test(bad),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
