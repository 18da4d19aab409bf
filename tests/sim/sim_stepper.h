/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIM_STEPPER_H
#define SIM_STEPPER_H

/*
 * The stepped executor: one thread, a seeded generator picks the next HCA, stage and burst size,
 * time is simulated: the same seed gives the same run, bit for bit. HCAs should have layout full.
 */

#include "hca.h"

struct sim_stepper {
	struct hca *hca[4];
	unsigned int num_hca;
	uint64_t now;	  /* simulated ns */
	uint64_t tick_ns; /* time per step, at least 1 */
	uint64_t rng[2];
	uint64_t steps;
};

void sim_stepper_init(struct sim_stepper *s, struct hca **hca, unsigned int n, uint64_t seed,
		      uint64_t tick_ns);
/* One burst of one stage of one HCA; returns the work it did. */
unsigned int sim_stepper_step(struct sim_stepper *s);

#endif
