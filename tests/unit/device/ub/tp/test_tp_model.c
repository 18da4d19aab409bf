/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Random operations over random networks: every packet is passed on exactly once, all sums hold and
 * nothing is left, in every mode and by every rule. TP_SEED=N runs one seed, TP_RUNS=N N seeds.
 */

#include "tp_rig.h"
#include "tp_sim.h"

#define SECOND UINT64_C(1000000000)

static const struct {
	enum hca_tp_mode mode;
	enum hca_tp_rule rule;
} kinds[] = {
	{HCA_TP_MODE_DROP, HCA_TP_RULE_NAK},  {HCA_TP_MODE_TRACK, HCA_TP_RULE_NONE},
	{HCA_TP_MODE_SACK, HCA_TP_RULE_NONE}, {HCA_TP_MODE_SACK, HCA_TP_RULE_HIGH},
	{HCA_TP_MODE_SACK, HCA_TP_RULE_MARK}, {HCA_TP_MODE_SACK, HCA_TP_RULE_TIME},
	{HCA_TP_MODE_DROP, HCA_TP_RULE_NONE},
};

static uint32_t
random_payload(struct tp_sim *s)
{
	switch (tp_sim_random(s, 4)) {
	case 0:
		return 0;
	case 1:
		return 1 + tp_sim_random(s, 100);
	case 2:
		return tp_sim_random(s, 20000);
	default:
		return tp_sim_random(s, 66000);
	}
}

/* Some operations at a time, in bursts; user[end]: how many are still to come. */
static void
fill(struct tp_sim *s, uint32_t end)
{
	if (s->user[end] == 0 || tp_sim_random(s, 8) != 0)
		return;
	for (uint32_t n = 1 + tp_sim_random(s, 8); n > 0 && s->user[end] > 0; n--) {
		uint32_t tp = tp_sim_random(s, s->cfg.tps), lane = tp_sim_random(s, HCA_TP_LANES);

		if (tp_sim_room(s, end, tp, lane) == 0)
			continue;
		tp_sim_put(s, end, tp, lane, random_payload(s), 0);
		s->user[end]--;
	}
}

static bool
finished(const struct tp_sim *s)
{
	return s->user[0] == 0 && s->user[1] == 0;
}

static const struct sim_app app = {.fill = fill, .finished = finished};

static void
random_link(struct tp_sim *s, struct sim_link *l)
{
	static const uint32_t odds[] = {0, 0, 1000, 10000, 50000, 100000};

	*l = (struct sim_link){.delay = tp_sim_random(s, 20000),
			       .paths = 1u << tp_sim_random(s, 4),
			       .gbps = 1 + tp_sim_random(s, 100),
			       .loss = odds[tp_sim_random(s, RTE_DIM(odds))],
			       .copy = odds[tp_sim_random(s, RTE_DIM(odds))],
			       .late = odds[tp_sim_random(s, RTE_DIM(odds))],
			       .late_by = 1 + tp_sim_random(s, 200000),
			       .skew = tp_sim_random(s, 20000)};
}

static void
random_cfg(struct tp_sim *s, struct sim_cfg *cfg, uint64_t seed)
{
	uint32_t kind = (uint32_t)(seed % RTE_DIM(kinds));

	*cfg = (struct sim_cfg){.seed = seed,
				.app = &app,
				.tps = 1 + tp_sim_random(s, SIM_TPS),
				.poll = 100 + tp_sim_random(s, 3000),
				.lazy_encap = tp_sim_random(s, 2),
				.answered = tp_sim_random(s, 2) * 200000,
				.orphans = tp_sim_random(s, 3) == 0 ? 50000 : 0};
	rig_cfg(&cfg->tp, kinds[kind].mode, kinds[kind].rule);
	cfg->tp.window = (uint16_t)HCA_TP_WINDOW_PACKETS(tp_sim_random(s, 5));
	cfg->tp.sack_code = (uint8_t)tp_sim_random(s, HCA_TP_SACK_CODES);
	cfg->tp.mtu_log = tp_sim_random(s, 2) ? 10 : 12;
	cfg->tp.ack_every = (uint8_t)(1 + tp_sim_random(s, 32));
	cfg->tp.ooo_every = (uint8_t)(1 + tp_sim_random(s, 8));
	cfg->tp.flags = tp_sim_random(s, 2) ? HCA_TP_FLAG_SPRAY : 0;
	cfg->tp.ports_log = (uint8_t)tp_sim_random(s, 5);
	cfg->tp.reorder = tp_sim_random(s, 2) * tp_sim_random(s, 50000);
	cfg->tp.rto_base = tp_sim_random(s, 2) * (4 + tp_sim_random(s, 1000));
	cfg->tp.rto_exponent = 1;
	cfg->tp.retries = 15;
	for (uint32_t end = 0; end < 2; end++)
		random_link(s, &cfg->link[end]);
}

static uint64_t
number_of(const char *name, uint64_t def)
{
	const char *text = getenv(name);

	return text != NULL ? strtoull(text, NULL, 0) : def;
}

static void
run(uint64_t seed)
{
	struct tp_sim draw = {.random = seed * 77}, s;
	struct sim_cfg cfg;

	random_cfg(&draw, &cfg, seed);
	tp_sim_open(&s, &cfg);
	s.user[0] = s.user[1] = 150;
	if (!tp_sim_run(&s, 1000 * SECOND))
		fail_msg("seed %llu does not end", (unsigned long long)seed);
	tp_sim_check(&s);
	for (uint32_t i = 0; i < 2 * cfg.tps; i++)
		assert_int_equal(hca_tp_state(tp_sim_tp(&s, i & 1, i >> 1)), HCA_TPS_ACTIVE);
	tp_sim_close(&s);
}

static void
test_random(void **state)
{
	uint64_t first = number_of("TP_SEED", 1),
		 n = getenv("TP_SEED") ? 1 : number_of("TP_RUNS", 70);

	for (uint64_t seed = first; seed < first + n; seed++) {
		if (n <= 70)
			print_message("seed %llu\n", (unsigned long long)seed);
		run(seed);
	}
}

/* The network does not come back: both ends give up, and everything goes back to its owners. */
static void
test_cut(void **state)
{
	for (uint64_t seed = 1; seed <= RTE_DIM(kinds); seed++) {
		struct tp_sim draw = {.random = seed}, s;
		struct sim_cfg cfg;

		random_cfg(&draw, &cfg, seed);
		cfg.answered = 0; /* or an end may have nothing to wait for */
		for (uint32_t end = 0; end < 2; end++)
			cfg.link[end].cut_at = 1000000 + 200000;
		cfg.tp.retries = 7;
		tp_sim_open(&s, &cfg);
		s.user[0] = s.user[1] = 1000;
		assert_true(tp_sim_run(&s, 10000 * SECOND));
		tp_sim_check(&s);
		for (uint32_t i = 0; i < 2 * cfg.tps; i++)
			assert_int_equal(hca_tp_state(tp_sim_tp(&s, i & 1, i >> 1)), HCA_TPS_ERROR);
		tp_sim_close(&s);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
