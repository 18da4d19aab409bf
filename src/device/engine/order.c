/* SPDX-License-Identifier: BSD-3-Clause */

#include "engine/order.h"

/* Is `missing` a packet that was dropped here because a late packet was missing? */
static bool
order_is_own(const struct hca_order *o, uint32_t missing)
{
	return o->late && hca_psn_diff(missing, o->gap.psn) > 0 &&
	       hca_psn_diff(o->newest, missing) >= 0;
}

bool
hca_order_ahead(struct hca_order *o, uint32_t missing, uint32_t psn, bool begins, uint32_t count)
{
	if (begins) {
		o->own = order_is_own(o, missing);
		o->gap = (struct hca_order_gap){.psn = missing, .at = count};
		o->late = false;
	}
	if (!o->known || hca_psn_diff(psn, o->newest) > 0)
		o->newest = psn;
	o->known = true;
	return begins && !o->own;
}

bool
hca_order_filled(struct hca_order *o, bool asked, uint32_t count, bool *open)
{
	*open = false;
	if (o->own || !o->known)
		return false;
	o->depth = count - o->gap.at;
	*open = asked;
	o->late = !asked;
	return o->late;
}

bool
hca_order_next(struct hca_order *o, uint32_t psn)
{
	if (!o->known)
		return false; /* another QP uses the entry now */
	o->late = psn == o->gap.psn || hca_psn_diff(psn, o->newest) > 0;
	if (!o->late)
		o->past[o->past_at++ & (HCA_ORDER_PAST - 1)] = o->gap;
	return o->late;
}

bool
hca_order_was_missing(struct hca_order *o, uint32_t psn, uint32_t count)
{
	for (unsigned int i = 0; i < HCA_ORDER_PAST; i++) {
		struct hca_order_gap *g = &o->past[i];

		if (g->at == 0 || g->psn != psn)
			continue;
		o->depth = count - g->at;
		g->at = 0;
		return true;
	}
	return false;
}

void
hca_order_duplicate(struct hca_order *o, uint32_t psn, bool judged)
{
	o->twice = psn;
	o->judged = judged;
}

bool
hca_order_after_duplicate(struct hca_order *o, uint32_t psn, bool again)
{
	bool alone = !o->run && !o->judged;
	bool next = again && psn == ((o->twice + 1) & HCA_PSN_MASK);

	o->run = next;
	return !next && alone;
}
