/* SPDX-License-Identifier: BSD-3-Clause */

/* Configurations and faults of random runs. */

#include "ub_mix.h"

const struct hca_impair ub_mix_bad_link = {.drop = 0.01,
					   .dup = 0.02,
					   .reorder = 0.03,
					   .reorder_ns = 20000,
					   .corrupt = 0.01,
					   .truncate = 0.005};

/* Modes and rules that fit, and whether packets take several paths. */
static const struct {
	uint8_t mode, rule;
	bool go_back;
	uint8_t flags;
} kinds_of_tp[] = {
	{HCA_TP_MODE_DROP, HCA_TP_RULE_NAK, true, 0},
	{HCA_TP_MODE_TRACK, HCA_TP_RULE_NONE, false, 0},
	{HCA_TP_MODE_SACK, HCA_TP_RULE_NONE, false, HCA_TP_FLAG_SPRAY},
	{HCA_TP_MODE_SACK, HCA_TP_RULE_HIGH, false, 0},
	{HCA_TP_MODE_SACK, HCA_TP_RULE_MARK, false, 0},
	{HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, false, 0},
	{HCA_TP_MODE_SACK, HCA_TP_RULE_TIME, false, HCA_TP_FLAG_SPRAY},
};

/* A few packets of their own fate, chosen by TP opcode, PSN and number: PSNs wrap among them. */
static void
add_rules(struct ub_pair *p)
{
	static const uint32_t opcodes[] = {HCA_FAULT_ANY, HCA_UB_TP_RTP, HCA_UB_TP_ACK,
					   HCA_UB_TP_SACK};

	for (unsigned int side = 0; side < 2; side++) {
		for (uint32_t n = sim_below(&p->rng, 4); n > 0; n--) {
			bool by_psn = sim_below(&p->rng, 2) != 0;
			uint32_t psn = 0xfffff0 + sim_below(&p->rng, 64);
			struct hca_fault_rule rule = {
				.opcode = opcodes[sim_below(&p->rng, RTE_DIM(opcodes))],
				.psn = by_psn ? psn & 0xffffff : HCA_FAULT_ANY,
				.nth = by_psn ? 1 : 1 + sim_below(&p->rng, 60),
				.count = 1 + sim_below(&p->rng, 3),
				.fault = (enum hca_fault)sim_below(&p->rng, HCA_FAULT_KINDS),
			};

			rule.arg = rule.fault == HCA_FAULT_DELAY ? 50000 : 0;
			sim_rule(p->s, side, rule);
		}
	}
}

static bool
nothing_more(struct ub_pair *p)
{
	return false;
}

static void
clear_rules(struct ub_pair *p)
{
	sim_clear_rules(p->s);
}

static const struct ub_mix_beside single_faults = {add_rules, nothing_more, clear_rules};

uint64_t
ub_mix_random(const struct sim_config *cfg, uint32_t n)
{
	static const enum sim_gid gids[] = {SIM_GID_V4, SIM_GID_V6, SIM_GID_V4_VLAN,
					    SIM_GID_V6_VLAN};
	struct sim_rng rng = {cfg->seed};
	uint32_t kind = sim_below(&rng, RTE_DIM(kinds_of_tp));
	struct hca_impair bad = {.drop = 0.001 * sim_below(&rng, 30),
				 .dup = 0.001 * sim_below(&rng, 30),
				 .reorder = 0.001 * sim_below(&rng, 50),
				 .reorder_ns = 1000 * (1 + sim_below(&rng, 40)),
				 .corrupt = 0.001 * sim_below(&rng, 15),
				 .truncate = 0.001 * sim_below(&rng, 10),
				 .delay_ns = 1000 * sim_below(&rng, 20)};
	struct ub_pair_config c = {.sim = *cfg,
				   .tps = 3,
				   .gid = gids[sim_below(&rng, RTE_DIM(gids))],
				   .mode = kinds_of_tp[kind].mode,
				   .rule = kinds_of_tp[kind].rule,
				   .go_back = kinds_of_tp[kind].go_back,
				   .flags = kinds_of_tp[kind].flags,
				   .old_value_le = kind % 2 == 0,
				   .small_mtu = sim_below(&rng, 2),
				   .passive = sim_below(&rng, 2),
				   .reorder = kinds_of_tp[kind].flags & HCA_TP_FLAG_SPRAY ? 20 : 0,
				   .requests = 2 + sim_below(&rng, 60),
				   .retries = 15,
				   .err_timeout = 24,
				   .min_rnr_timer = 2,
				   .rto_base = 100};

	return ub_mix_beside(&c, &bad, n, &single_faults);
}
