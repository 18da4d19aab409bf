/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * TPNs: a random tag above an index. An index that was used rests, so that late packets of its
 * former TP find nobody; the one that has rested longest is next.
 */

#include "ubcm_impl.h"

static uint32_t
nnumbers(const struct ubcm *cm)
{
	return 1u << cm->cfg.log_tps;
}

/* Index 0 is not given away, so a TPN is never 0. */
static uint32_t
free_index(struct ubcm *cm, uint64_t now)
{
	for (uint32_t tried = 1; tried < nnumbers(cm); tried++) {
		uint32_t i = cm->next;

		cm->next = i + 1 == nnumbers(cm) ? 1 : i + 1;
		if (cm->number[i].link == 0 && cm->number[i].rests <= now)
			return i;
	}
	return 0;
}

uint32_t
ubcm_take_numbers(struct ubcm *cm, struct ubcm_link *l, uint32_t n, uint64_t now)
{
	for (l->ntps = 0; l->ntps < n; l->ntps++) {
		uint32_t i = free_index(cm, now);
		uint64_t random;

		if (i == 0)
			break;
		random = cm->cfg.ops->random(cm->cfg.arg);
		cm->number[i].link = (uint32_t)(l - cm->link) + 1;
		cm->number[i].tpn = ((uint32_t)random << cm->cfg.log_tps | i) & HCA_TPN_MASK;
		l->tp[l->ntps] = (struct ubcm_tp){
			.tpn = cm->number[i].tpn,
			.psn = (uint32_t)(random >> 32) & HCA_TPN_MASK,
			.limits = cm->cfg.limits,
		};
	}
	return l->ntps;
}

void
ubcm_drop_numbers(struct ubcm *cm, struct ubcm_link *l, uint32_t from, uint64_t now)
{
	uint64_t rests = now + UBCM_REST_RTOS * ubcm_rto_largest(&l->timer);

	for (uint32_t i = from; i < l->ntps; i++) {
		struct ubcm_number *n = &cm->number[l->tp[i].tpn & (nnumbers(cm) - 1)];

		n->link = 0;
		n->rests = rests;
	}
	if (l->ntps > from)
		l->ntps = from;
}

struct ubcm_link *
ubcm_link_of_tpn(struct ubcm *cm, uint32_t tpn, uint32_t *which)
{
	const struct ubcm_number *n = &cm->number[tpn & (nnumbers(cm) - 1)];
	struct ubcm_link *l;

	if (n->link == 0 || n->tpn != tpn)
		return NULL;
	l = &cm->link[n->link - 1];
	for (*which = 0; l->tp[*which].tpn != tpn; (*which)++)
		;
	return l;
}
