/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * 1,000 QPs created, connected, used and destroyed while others keep working, ten times. Everything
 * that could leak is counted. SIM_STORM_QPS and SIM_STORM_ROUNDS change the size.
 */

#include <dirent.h>

#include "sim_test.h"

#define PROGRAM "test_storm"
#define BATCH 500u
#define S SOFTHCA_SEND_SIGNALED

static unsigned int
open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (d != NULL && readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

/* Keep the lasting pair busy in both directions. */
static void
traffic(struct sim *s, struct sim_pair *lasting)
{
	for (unsigned int side = 0; side < 2; side++) {
		struct sim_req r[4];

		for (unsigned int i = 0; i < 4; i++) {
			r[i] = sim_random_req(lasting, 4000);
			r[i].flags |= S;
		}
		sim_post(lasting, side, r, 4);
	}
	sim_poll(s);
	sim_reap(s);
}

/* Pairs destroyed while idle, busy, in error, or with everything outstanding. */
static void
batch(struct sim *s, struct sim_pair *lasting, unsigned int round)
{
	const struct sim_pair_attr attr = {.sq_depth = 8,
					   .rq_depth = 8,
					   .region = 32768,
					   .mtu = SOFTHCA_MTU_512};
	struct sim_pair *p[BATCH];

	for (unsigned int i = 0; i < BATCH; i++) {
		p[i] = sim_pair_open(s, &attr);
		traffic(s, lasting);
	}
	for (unsigned int i = 0; i < BATCH; i++) {
		struct sim_req r[4];

		for (unsigned int k = 0; k < 4; k++)
			r[k] = sim_random_req(p[i], 3000);
		r[3].flags |= S;
		sim_post(p[i], (i + round) & 1, r, 4);
		if (i % 3 == 0)
			traffic(s, lasting);
	}
	for (unsigned int i = 0; i < BATCH; i++) {
		/* every fourth pair may finish */
		if (i % 4 == 0)
			for (unsigned int k = 0; k < 20 && sim_outstanding(p[i]); k++)
				traffic(s, lasting);
		sim_pair_close(p[i]);
	}
	sim_finish(s, 10 * SIM_S);
}

static void
storm_in(const struct sim_config *cfg)
{
	unsigned int qps = (unsigned int)sim_env("SIM_STORM_QPS", 1000);
	unsigned int rounds = (unsigned int)sim_env("SIM_STORM_ROUNDS", 10);
	const struct sim_pair_attr attr = {.region = 4 << 20};
	const struct hca_impair lossy = {.drop = 0.01, .dup = 0.01, .reorder = 0.01};
	struct sim_config c = *cfg;
	struct sim *s;
	struct sim_pair *lasting;
	unsigned int fds;

	c.log_num_qps = 10;
	s = sim_open(&c);
	lasting = sim_pair_open(s, &attr);
	sim_impair(s, 0, &lossy);
	sim_impair(s, 1, &lossy);
	fds = open_fds();
	for (unsigned int round = 0; round < rounds; round++) {
		for (unsigned int done = 0; done < qps; done += 2 * BATCH)
			batch(s, lasting, round);
		sim_check_usage(s, false);
		for (unsigned int i = 0; i < 2; i++) {
			struct hca_driver_usage d;
			struct hca_usage u;

			hca_usage(s->side[i].hca, &u);
			hca_driver_usage(s->side[i].drv, &d);
			sim_check(s, u.qps == s->side[i].base.qps + 1, "%u QPs", u.qps);
			sim_check(s, u.cqs == s->side[i].base.cqs + 1, "%u CQs", u.cqs);
			sim_check(s, d.qps == 1 && d.cqs == 1, "driver: %u QPs, %u CQs", d.qps,
				  d.cqs);
		}
		sim_check(s, open_fds() == fds, "%u open files, %u before", open_fds(), fds);
	}
	sim_pair_close(lasting);
	sim_close(s);
}
SIM_TEST(storm)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(storm),
	};

	return sim_main_of(tests, sizeof(tests) / sizeof(tests[0]));
}
