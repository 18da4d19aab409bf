/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_SIM_MIX_H
#define TESTS_SIM_SIM_MIX_H

/*
 * A random run: several pairs of random properties, thousands of mixed operations from both sides
 * over a bad link, all checked by the model.
 */

#include "sim_model.h"

struct sim_mix {
	struct sim_config cfg;
	unsigned int ops; /* total number of requests */
	unsigned int max_pairs;
	uint32_t max_len;
	struct hca_impair impair; /* both directions */
	struct hca_port_stall_rules stall;
	bool singles; /* mostly one short message for each of many QPs */
};

/* Run it; fails on any error. Returns the hash over everything. */
uint64_t sim_mix_run(const struct sim_mix *mix);

/* The standard bad link: 1 % each of loss, duplication, reordering and corruption. */
extern const struct hca_impair sim_bad_link;

#endif
