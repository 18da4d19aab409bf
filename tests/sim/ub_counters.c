/* SPDX-License-Identifier: BSD-3-Clause */

#include "ub_counters.h"

static const enum hca_counter watched[] = {
#define X(n) HCA_CTR_##n,
	HCA_TX_DROP_LIST(X) HCA_RX_DROP_LIST(X) HCA_DOORBELL_DROP_LIST(X)
		HCA_DESCRIPTOR_DROP_LIST(X) HCA_UB_TP_DROP_LIST(X) HCA_UB_AGAIN_LIST(X)
			HCA_UB_RESPONSE_DROP_LIST(X) HCA_UB_REQUEST_DROP_LIST(X)
#undef X
				HCA_CTR_ub_acks_old,
	HCA_CTR_ub_acks_bad,
	HCA_CTR_ub_acks_stale,
	HCA_CTR_ub_tp_broken,
	HCA_CTR_ub_tp_timeouts,
	HCA_CTR_ub_tp_retries_exceeded,
	HCA_CTR_ub_no_mbuf,
	HCA_CTR_ub_poisoned,
	HCA_CTR_ub_ops_given_up,
	HCA_CTR_ub_segments_reissued,
	HCA_CTR_ub_requests_timed_out,
	HCA_CTR_ub_suspended,
	HCA_CTR_ub_not_for_peer,
	HCA_CTR_ub_not_imported,
	HCA_CTR_ub_places_lapsed,
	HCA_CTR_ub_requests_abandoned,
	HCA_CTR_ub_answers_abandoned,
	HCA_CTR_ub_token_floods,
	HCA_CTR_sq_bad_wqe,
	HCA_CTR_sq_management_refused,
	HCA_CTR_sq_catas,
	HCA_CTR_rq_catas,
	HCA_CTR_srq_catas,
	HCA_CTR_cqe_overrun,
	HCA_CTR_cqe_dead_cq,
	HCA_CTR_hcr_errors,
};

_Static_assert(RTE_DIM(watched) <= UB_COUNTERS_MAX, "UB_COUNTERS_MAX");

void
ub_counters_begin(struct ub_counters *b, const struct ub_pair *p)
{
	for (unsigned int side = 0; side < 2; side++)
		for (unsigned int i = 0; i < RTE_DIM(watched); i++)
			b->before[side][i] = ub_pair_counter(p, side, watched[i]);
}

/* More than one row may name the same counter. */
static uint64_t
expected_of(const struct ub_expected *expected, unsigned int n, unsigned int side,
	    enum hca_counter counter)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (expected[i].n == 0 || expected[i].side != side ||
		    expected[i].counter != counter)
			continue;
		if (expected[i].n == UB_EXPECTED_ANY)
			return UB_EXPECTED_ANY;
		sum += expected[i].n;
	}
	return sum;
}

void
ub_counters_check(const struct ub_counters *b, struct ub_pair *p, const char *what,
		  const struct ub_expected *expected, unsigned int n)
{
	for (unsigned int side = 0; side < 2; side++)
		for (unsigned int i = 0; i < RTE_DIM(watched); i++) {
			uint64_t want = expected_of(expected, n, side, watched[i]);
			uint64_t have = ub_pair_counter(p, side, watched[i]) - b->before[side][i];

			sim_check(p->s, want == UB_EXPECTED_ANY || have == want,
				  "%s: %s of side %u has moved by %lu, not by %lu", what,
				  hca_counter_name(watched[i]), side, (unsigned long)have,
				  (unsigned long)want);
		}
}
