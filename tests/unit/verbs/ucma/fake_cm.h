/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_VERBS_UCMA_FAKE_CM_H
#define TESTS_UNIT_VERBS_UCMA_FAKE_CM_H

/*
 * <softhca/cm.h> made of lists, with the devices of verbs: HCA i (0, 1) has the addresses
 * 10.0.0.(i + 1) and fd00::(i + 1). Both reach 10.0.0.0/24 and fd00::/64, HCA 1 also 10.1.0.0/24.
 * Events are there at once. HCA 0 chooses port 40000 first, which is in use at HCA 1.
 */

#include <stdbool.h>
#include <stdint.h>

#define FAKE_HCAS 2

struct fake_counts {
	int contexts, channels, ids, groups; /* that there are */
	int opened;			     /* contexts that were opened in all */
	int queries;			     /* softhca_cm_query() in all */
};

/* The list has `hcas` HCAs from now on; counts are of all. */
void fake_begin(int hcas);
struct fake_counts fake_counts(void);
/* The daemon of an HCA is of a release without AF_IB. */
void fake_set_older(int hca, bool is);
/* The daemon of an HCA ends, and another one begins with the next open. */
void fake_die(int hca);

#endif
