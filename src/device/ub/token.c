/* SPDX-License-Identifier: BSD-3-Clause */

#include "ub/token.h"

#include "core/core.h"

enum hca_counter
hca_token_counter(enum hca_token_verdict verdict)
{
	static const enum hca_counter counter[HCA_TOKEN_VERDICTS] = {
#define X(NAME, counter, text) [HCA_TOKEN_BAD_##NAME] = HCA_CTR_##counter,
		HCA_TOKEN_VERDICT_LIST(X)
#undef X
	};

	return counter[verdict];
}

enum hca_token_verdict
hca_token_check(const struct hca_core *h, const struct hca_token_access *a,
		const struct hca_mpt_entry **entry)
{
	return hca_token_judge(h, a, true, entry);
}

enum hca_token_verdict
hca_token_check_again(const struct hca_core *h, const struct hca_token_access *a,
		      const struct hca_mpt_entry **entry)
{
	return hca_token_judge(h, a, false, entry);
}

void
hca_token_store(struct hca_token *row, uint32_t flags, const uint32_t value[2])
{
	/* a value is there before the flag that makes it valid, and stays until that is gone */
	__atomic_store_n(&row->value[0], value[0], __ATOMIC_RELAXED);
	if (flags & HCA_TOKEN_SECOND)
		__atomic_store_n(&row->value[1], value[1], __ATOMIC_RELAXED);
	__atomic_store_n(&row->flags, flags, __ATOMIC_RELEASE);
}

_Static_assert(HCA_TOKEN_ID_MASK == HCA_MASK(19, 0) && HCA_KEY_INDEX_BITS == 17,
	       "a TokenID is an index and three bits");
