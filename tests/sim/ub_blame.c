/* SPDX-License-Identifier: BSD-3-Clause */

#include "ub_blame.h"

static const enum hca_counter blamed[] = {
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

_Static_assert(RTE_DIM(blamed) <= UB_BLAME_MAX, "UB_BLAME_MAX");

void
ub_blame_begin(struct ub_blame *b, const struct ub_pair *p)
{
	for (unsigned int side = 0; side < 2; side++)
		for (unsigned int i = 0; i < RTE_DIM(blamed); i++)
			b->before[side][i] = ub_pair_counter(p, side, blamed[i]);
}

/* More than one row may name the same counter. */
static uint64_t
owed_of(const struct ub_owed *owed, unsigned int n, unsigned int side, enum hca_counter counter)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (owed[i].n == 0 || owed[i].side != side || owed[i].counter != counter)
			continue;
		if (owed[i].n == UB_OWED_ANY)
			return UB_OWED_ANY;
		sum += owed[i].n;
	}
	return sum;
}

void
ub_blame_check(const struct ub_blame *b, struct ub_pair *p, const char *what,
	       const struct ub_owed *owed, unsigned int n)
{
	for (unsigned int side = 0; side < 2; side++)
		for (unsigned int i = 0; i < RTE_DIM(blamed); i++) {
			uint64_t want = owed_of(owed, n, side, blamed[i]);
			uint64_t have = ub_pair_counter(p, side, blamed[i]) - b->before[side][i];

			sim_check(p->s, want == UB_OWED_ANY || have == want,
				  "%s: %s of side %u has moved by %lu, not by %lu", what,
				  hca_counter_name(blamed[i]), side, (unsigned long)have,
				  (unsigned long)want);
		}
}
