/* SPDX-License-Identifier: BSD-3-Clause */

#include <rte_common.h>

#include "engine/stage.h"
#include "sim_stepper.h"

static uint64_t
next_random(struct sim_stepper *s)
{
	uint64_t a = s->rng[0], b = s->rng[1], r = a + b;

	/* xoroshiro128+ */
	b ^= a;
	s->rng[0] = ((a << 24) | (a >> 40)) ^ b ^ (b << 16);
	s->rng[1] = (b << 37) | (b >> 27);
	return r;
}

void
sim_stepper_init(struct sim_stepper *s, struct hca **hca, unsigned int n, uint64_t seed,
		 uint64_t tick_ns)
{
	*s = (struct sim_stepper){.num_hca = n, .tick_ns = tick_ns ? tick_ns : 1};
	for (unsigned int i = 0; i < n && i < RTE_DIM(s->hca); i++)
		s->hca[i] = hca[i];
	s->rng[0] = seed * 0x9e3779b97f4a7c15ull + 1;
	s->rng[1] = seed ^ 0xd1b54a32d192ed03ull;
	for (unsigned int i = 0; i < 16; i++)
		next_random(s);
}

unsigned int
sim_stepper_step(struct sim_stepper *s)
{
	uint64_t r = next_random(s) >> 8;
	struct hca *h = s->hca[r % s->num_hca];
	unsigned int pipes = hca_pipelines(h);
	unsigned int stage = (r >> 8) % (pipes * HCA_STAGE_N);
	unsigned int budget = 1 + (r >> 24) % HCA_BURST;

	s->now += s->tick_ns;
	s->steps++;
	return hca_poll_stage(h, stage / HCA_STAGE_N, stage % HCA_STAGE_N, s->now, budget);
}
