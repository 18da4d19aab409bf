/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_UB_COUNTERS_H
#define TESTS_SIM_UB_COUNTERS_H

/*
 * The counters of drops, refusals, errors and repetitions of both sides after an attack: the named
 * ones have moved by exactly these numbers, and no other one.
 */

#include "ub_pair.h"

#define UB_COUNTERS_MAX 160u
#define UB_EXPECTED_ANY UINT64_MAX

struct ub_counters {
	uint64_t before[2][UB_COUNTERS_MAX];
};

/* n 0: nothing, an empty place in a table. */
struct ub_expected {
	unsigned int side;
	enum hca_counter counter;
	uint64_t n; /* or UB_EXPECTED_ANY */
};

void ub_counters_begin(struct ub_counters *b, const struct ub_pair *p);
void ub_counters_check(const struct ub_counters *b, struct ub_pair *p, const char *what,
		       const struct ub_expected *expected, unsigned int n);

#endif
