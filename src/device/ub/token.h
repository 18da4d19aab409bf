/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_TOKEN_H
#define UB_TOKEN_H

/*
 * Tokens: what a request of UB must know of the memory or queue that it names. A segment is a
 * memory region with a token row (ub.h) that says EXPORTED; a region of the verbs calls has none,
 * so no request of UB reaches it.
 *
 * Any lcore may check; the entry that a check returns is valid until the end of the caller's poll.
 * The CEU changes rows while they are in use: both values of a rotation are accepted until the
 * second one has been promoted. Taking a segment away is HW2SW_MPT, with its round.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/counters.h"
#include "ub/ub.h"
#include "vtp/vtp.h"

/* What a check says: X(NAME, counter, meaning). In the order in which it looks. */
#define HCA_TOKEN_VERDICT_LIST(X) \
	X(UNKNOWN, ub_token_unknown, "no live region has that TokenID") \
	X(VERBS, ub_token_not_exported, "a region that UB may not reach") \
	X(RANGE, ub_token_range, "not all of it is in the segment") \
	X(RIGHT, ub_token_right, "the segment does not grant the right") \
	X(VALUE, ub_token_mismatch, "the TokenValue is missing or wrong")

enum hca_token_verdict {
	HCA_TOKEN_OK,
#define X(NAME, counter, text) HCA_TOKEN_BAD_##NAME,
	HCA_TOKEN_VERDICT_LIST(X)
#undef X
	HCA_TOKEN_VERDICTS
};

/* Counter of a refusal. */
enum hca_counter hca_token_counter(enum hca_token_verdict verdict);

/* An access, as a request asks for it. */
struct hca_token_access {
	uint64_t va;
	uint64_t len;	   /* not 0: an access to nothing needs no token */
	uint32_t token_id; /* 20 bits */
	uint32_t value;
	uint32_t right; /* HCA_ACCESS_REMOTE_* */
	bool has_value;
};

/*
 * Judge an access. *entry is set on HCA_TOKEN_OK: the region, whose memory may be foreign
 * (entry->foreign: vtp/foreign.h).
 */
enum hca_token_verdict hca_token_check(const struct hca_core *h, const struct hca_token_access *a,
				       const struct hca_mpt_entry **entry);
/*
 * The same but for the value, which was right when the request came: for the payload of a
 * Read_response, which may be gathered after the value was changed.
 */
enum hca_token_verdict hca_token_check_again(const struct hca_core *h,
					     const struct hca_token_access *a,
					     const struct hca_mpt_entry **entry);

/* Whether the row of a segment or TC is content with this value, or with none. */
bool hca_token_fits(const struct hca_token *row, bool has_value, uint32_t value);

/*
 * CEU: change a row. Set SECOND with value[1] to begin a rotation; to promote, leave it out and
 * give the new value as value[0]. At no time is a value refused that holds before and after.
 */
void hca_token_store(struct hca_token *row, uint32_t flags, const uint32_t value[2]);

#endif
