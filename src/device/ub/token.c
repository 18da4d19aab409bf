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

bool
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

/* The live region with all 20 bits of the TokenID; nothing of it is read before its state. */
static const struct hca_mpt_entry *
find(const struct hca_vtp *v, uint32_t index, uint32_t token_id)
{
	const struct hca_mpt_entry *e = &v->mpt[index];
	uint32_t state = hca_mpt_state(e);

	if (state != HCA_MPT_VALID && state != HCA_MPT_FOREIGN)
		return NULL;
	return HCA_KEY_TOKEN_ID(e->key) == token_id && (e->flags & HCA_MPT_FLAG_REGION) ? e : NULL;
}

static enum hca_token_verdict
check(const struct hca_core *h, const struct hca_token_access *a, bool value,
      const struct hca_mpt_entry **entry)
{
	uint32_t index = HCA_BITS(a->token_id, HCA_KEY_INDEX_BITS - 1, 0);
	const struct hca_mpt_entry *e;
	const struct hca_token *row;

	if (unlikely(index > h->vtp.mpt_mask))
		return HCA_TOKEN_BAD_UNKNOWN;
	e = find(&h->vtp, index, a->token_id);
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

enum hca_token_verdict
hca_token_check(const struct hca_core *h, const struct hca_token_access *a,
		const struct hca_mpt_entry **entry)
{
	return check(h, a, true, entry);
}

enum hca_token_verdict
hca_token_check_again(const struct hca_core *h, const struct hca_token_access *a,
		      const struct hca_mpt_entry **entry)
{
	return check(h, a, false, entry);
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
