/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_UB_SUMS_H
#define TESTS_SIM_UB_SUMS_H

/*
 * The sums of UB's counters that hold while nothing is in progress (core/counters.h).
 */

#include <stddef.h>
#include <stdint.h>

#include "core/counters.h"
#include "hca.h"

/* A sum that does not hold: its text and both sides; a NULL text: all hold. */
struct ub_sum {
	const char *what;
	uint64_t left, right;
};

static inline uint64_t
ub_sum_of(const struct hca *h, const uint16_t *c, size_t n)
{
	uint64_t total = 0;

	for (size_t i = 0; i < n; i++)
		total += hca_counter_value(h, c[i]);
	return total;
}

static inline struct ub_sum
ub_sums_broken(const struct hca *h)
{
#define X(n) HCA_CTR_##n,
	static const uint16_t tp_drops[] = { HCA_UB_TP_DROP_LIST(X) };
	static const uint16_t heard[] = { HCA_UB_HEARD_LIST(X) };
	static const uint16_t response_drops[] = { HCA_UB_RESPONSE_DROP_LIST(X) };
	static const uint16_t request_drops[] = { HCA_UB_REQUEST_DROP_LIST(X) };
#undef X
#define COUNT(name) hca_counter_value(h, HCA_CTR_##name)
#define SUM(list) ub_sum_of(h, list, sizeof(list) / sizeof((list)[0]))
#define SAME(l, r) \
	{ \
#l " == " #r, (l), (r) \
	}
	const struct ub_sum sums[] = {
		/* transport */
		SAME(COUNT(ub_rx_tp_packets), COUNT(ub_tp_passed) + SUM(tp_drops)),
		SAME(COUNT(ub_rx_acks), SUM(heard)),
		SAME(COUNT(ub_rx_ecn_marked), COUNT(ub_cnp_sent) + COUNT(ub_cnp_suppressed) +
						      COUNT(ub_ecn_marked_unanswered)),
		SAME(COUNT(ub_ops_sent), COUNT(ub_ops_acked) + COUNT(ub_ops_given_up)),
		/* transactions */
		SAME(COUNT(ub_tp_passed) + COUNT(ub_rx_utp),
		     COUNT(ub_responses) + COUNT(ub_ta_used) + SUM(response_drops) +
			     SUM(request_drops)),
		SAME(COUNT(ub_segments), COUNT(ub_segments_done) + COUNT(ub_segments_failed) +
						 COUNT(ub_segments_not_ready)),
		SAME(COUNT(ub_requests),
		     COUNT(ub_requests_done) + COUNT(ub_requests_not_ready) +
			     COUNT(ub_requests_late) + COUNT(ub_requests_refused) +
			     COUNT(ub_requests_unanswered) + COUNT(ub_requests_abandoned)),
		SAME(COUNT(ub_requests),
		     COUNT(ub_requests_abandoned) + COUNT(ub_requests_unanswered) +
			     COUNT(ub_answers_abandoned) + COUNT(ub_taacks) +
			     COUNT(ub_taacks_merged) + COUNT(ub_read_responses) +
			     COUNT(ub_atomic_responses)),
	};
#undef SAME
#undef SUM
#undef COUNT

	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
		if (sums[i].left != sums[i].right)
			return sums[i];
	return (struct ub_sum){NULL, 0, 0};
}

#endif
