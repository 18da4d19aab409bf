/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_TOKEN_H
#define UB_TOKEN_H

/*
 * Tokens: the secret that a request of UB must have for the memory or queue that it names. A
 * segment is a memory region with a token row (ub.h) that says EXPORTED; a region of the verbs
 * calls has no such row, so no request of UB reaches it.
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

/* Results of a check: X(NAME, counter, meaning), in the order of the checks. */
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
	uint64_t len;	   /* not 0: an access to zero bytes needs no token */
	uint32_t token_id; /* 20 bits */
	uint32_t value;
	uint32_t right; /* HCA_ACCESS_REMOTE_* */
	bool has_value;
};

/* Whether the row of a segment or TC is content with this value, or with none. */
static inline bool
hca_token_fits(const struct hca_token *row, bool has_value, uint32_t value)
{
	uint32_t flags = __atomic_load_n(&row->flags, __ATOMIC_ACQUIRE);

	if (!(flags & HCA_TOKEN_CHECK))
		return true;
	if (!has_value)
		return false;
	if (value == __atomic_load_n(&row->value[0], __ATOMIC_RELAXED))
		return true;
	return (flags & HCA_TOKEN_SECOND) &&
	       value == __atomic_load_n(&row->value[1], __ATOMIC_RELAXED);
}

/* The live region with all 20 bits of the TokenID; the entry is not read before its state. */
static inline const struct hca_mpt_entry *
hca_token_region(const struct hca_vtp *v, uint32_t index, uint32_t token_id)
{
	const struct hca_mpt_entry *e = &v->mpt[index];
	uint32_t state = hca_mpt_state(e);

	if (state != HCA_MPT_VALID && state != HCA_MPT_FOREIGN)
		return NULL;
	return HCA_KEY_TOKEN_ID(e->key) == token_id && (e->flags & HCA_MPT_FLAG_REGION) ? e : NULL;
}

/*
 * hca_token_check(), inlined where a call costs more than the check; value: also judge the value.
 */
static inline enum hca_token_verdict
hca_token_judge(const struct hca_core *h, const struct hca_token_access *a, bool value,
		const struct hca_mpt_entry **entry)
{
	uint32_t index = HCA_BITS(a->token_id, HCA_KEY_INDEX_BITS - 1, 0);
	const struct hca_mpt_entry *e;
	const struct hca_token *row;

	if (unlikely(index > h->vtp.mpt_mask))
		return HCA_TOKEN_BAD_UNKNOWN;
	e = hca_token_region(&h->vtp, index, a->token_id);
	if (unlikely(e == NULL))
		return HCA_TOKEN_BAD_UNKNOWN;
	row = &h->ub->token[index];
	if (unlikely(!(__atomic_load_n(&row->flags, __ATOMIC_ACQUIRE) & HCA_TOKEN_EXPORTED)))
		return HCA_TOKEN_BAD_VERBS;
	if (unlikely(a->len > e->length || a->va - e->start > e->length - a->len))
		return HCA_TOKEN_BAD_RANGE;
	if (unlikely((e->flags & a->right) != a->right))
		return HCA_TOKEN_BAD_RIGHT;
	if (unlikely(value && !hca_token_fits(row, a->has_value, a->value)))
		return HCA_TOKEN_BAD_VALUE;
	*entry = e;
	return HCA_TOKEN_OK;
}

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

/*
 * CEU: change a row. Set SECOND with value[1] to begin a rotation; to promote, leave it out and
 * give the new value as value[0]. At no time is a value refused that holds before and after.
 */
void hca_token_store(struct hca_token *row, uint32_t flags, const uint32_t value[2]);

#endif
