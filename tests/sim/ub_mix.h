/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_UB_MIX_H
#define TESTS_SIM_UB_MIX_H

/*
 * All operations of UB at once, both ways, between two HCAs: data is intact, each request is
 * executed once (fetch-adds and swaps of one value return each value once, atomics on others leave
 * the result of one execution), completions come once and in order, sums of counters hold, nothing
 * is left. Any executor.
 */

#include "ub_pair.h"

#define UB_MIX_REQUESTS 1024u /* at most, of each side */

extern const struct hca_impair ub_mix_bad_link;

/*
 * n requests of each side over links that are so bad, or good if NULL. Returns a hash of frames,
 * completions and counters, which equal seeds of stepped runs share.
 */
uint64_t ub_mix_run(const struct ub_pair_config *c, const struct hca_impair *bad, uint32_t n);

/*
 * Additional work over the same HCAs: at the begin; in each turn, true: there is more to do; at the
 * end, over links that are good again.
 */
struct ub_mix_beside {
	void (*begin)(struct ub_pair *p);
	bool (*turn)(struct ub_pair *p);
	void (*end)(struct ub_pair *p);
};
uint64_t ub_mix_beside(const struct ub_pair_config *c, const struct hca_impair *bad, uint32_t n,
		       const struct ub_mix_beside *beside);

/*
 * Over three TPs; their modes, rules, addresses, MTU and limits, and faults come from the seed:
 * odds for all frames, and rules for a few.
 */
uint64_t ub_mix_random(const struct sim_config *cfg, uint32_t n);

#endif
