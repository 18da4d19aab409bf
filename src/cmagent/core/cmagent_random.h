/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CMAGENT_CORE_CMAGENT_RANDOM_H
#define CMAGENT_CORE_CMAGENT_RANDOM_H

/* Random numbers of an agent: those of the kernel, or with a seed a repeatable sequence. */

#include <stdint.h>

struct cmagent_random {
	uint64_t seed; /* 0: those of the kernel */
	uint64_t state;
};

/* The caller serializes. */
uint64_t cmagent_random(struct cmagent_random *r);

#endif
