/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_UB_BLAME_H
#define TESTS_SIM_UB_BLAME_H

/*
 * The counters of drops, refusals, errors and repetitions of both sides after an attack: the named
 * ones have moved by exactly these numbers, and no other one.
 */

#include "ub_pair.h"

#define UB_BLAME_MAX 160u
#define UB_OWED_ANY UINT64_MAX

struct ub_blame {
	uint64_t before[2][UB_BLAME_MAX];
};

/* n 0: nothing, an empty place in a table. */
struct ub_owed {
	unsigned int side;
	enum hca_counter counter;
	uint64_t n; /* or UB_OWED_ANY */
};

void ub_blame_begin(struct ub_blame *b, const struct ub_pair *p);
void ub_blame_check(const struct ub_blame *b, struct ub_pair *p, const char *what,
		    const struct ub_owed *owed, unsigned int n);

#endif
