/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * All operations of UB at once over good and bad links, in each receive mode and rule (ub_mix.h).
 * SIM_ROUNDS: seeds of the random runs, in each layout.
 */

#include "ub_mix.h"

#define PROGRAM "sim-ub-loss"

static void
good_in(const struct sim_config *cfg)
{
	struct ub_pair_config c = {.sim = *cfg};

	ub_mix_run(&c, NULL, 200);
}

static void
bad(const struct sim_config *cfg, uint8_t mode, uint8_t rule, uint8_t flags)
{
	struct ub_pair_config c = {.sim = *cfg,
				   .tps = 2,
				   .gid = flags != 0 ? SIM_GID_V6 : SIM_GID_V4,
				   .mode = mode,
				   .rule = rule,
				   .go_back = mode == HCA_TP_MODE_DROP,
				   .small_mtu = flags == 0,
				   .flags = flags,
				   .reorder = flags != 0 ? 20 : 0,
				   .retries = 15,
				   .err_timeout = 24,
				   .min_rnr_timer = 2,
				   .rto_base = 100};

	ub_mix_run(&c, &ub_mix_bad_link, 200);
}

static void
bad_sack_in(const struct sim_config *cfg)
{
	bad(cfg, HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, 0);
}

static void
bad_spray_in(const struct sim_config *cfg)
{
	bad(cfg, HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, HCA_TP_FLAG_SPRAY);
}

static void
bad_mark_in(const struct sim_config *cfg)
{
	bad(cfg, HCA_TP_MODE_SACK, HCA_TP_RULE_MARK, 0);
}

static void
bad_high_in(const struct sim_config *cfg)
{
	bad(cfg, HCA_TP_MODE_SACK, HCA_TP_RULE_HIGH, 0);
}

static void
bad_track_in(const struct sim_config *cfg)
{
	bad(cfg, HCA_TP_MODE_TRACK, HCA_TP_RULE_NONE, 0);
}

static void
bad_drop_in(const struct sim_config *cfg)
{
	bad(cfg, HCA_TP_MODE_DROP, HCA_TP_RULE_NAK, 0);
}

/* Small limits of every kind: work without room waits, and goes on. */
static void
scarce_in(const struct sim_config *cfg)
{
	struct ub_pair_config c = {.sim = *cfg,
				   .tps = 3,
				   .gid = SIM_GID_V6_VLAN,
				   .small_mtu = true,
				   .requests = 3,
				   .min_rnr_timer = 1,
				   .err_timeout = 24,
				   .retries = 15,
				   .rto_base = 100};

	c.sim.edge_size = 64;
	c.sim.link_depth = 32;
	c.sim.mbufs = 128;
	c.sim.records = 24;
	c.sim.full_records = 16;
	c.sim.ub_ops = 8;
	ub_mix_run(&c, NULL, 100);
	ub_mix_run(&c, &ub_mix_bad_link, 100);
}

static void
mixed_in(const struct sim_config *cfg)
{
	struct sim_config c = *cfg;
	uint64_t rounds = sim_env("SIM_ROUNDS", 8);

	for (uint64_t i = 0; i < rounds; i++, c.seed++) {
		sim_set_repeat(
			"CMOCKA_TEST_FILTER=mixed SIM_ROUNDS=1 SIM_SEED=%llu SIM_LAYOUT=%s " PROGRAM
			"",
			(unsigned long long)c.seed,
			c.executor == SIM_STEPPED ? "stepped" : sim_layout_names[c.layout]);
		ub_mix_random(&c, 40);
	}
}

SIM_TEST(mixed)
SIM_TEST(good)
SIM_TEST(scarce)
SIM_TEST(bad_sack)
SIM_TEST(bad_spray)
SIM_TEST(bad_mark)
SIM_TEST(bad_high)
SIM_TEST(bad_track)
SIM_TEST(bad_drop)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),	     cmocka_unit_test(scarce),	 cmocka_unit_test(bad_sack),
		cmocka_unit_test(bad_spray), cmocka_unit_test(bad_mark), cmocka_unit_test(bad_high),
		cmocka_unit_test(bad_track), cmocka_unit_test(bad_drop), cmocka_unit_test(mixed),
	};

	return sim_main_of(tests, RTE_DIM(tests));
}
