/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * TPNs: a random tag above an index. An index whose TP may have been used rests, so that late
 * packets find no TP at all. If no other index is free, the one that has rested longest is used
 * before its time, with another tag: a late packet then names another TPN. So peers that make many
 * indexes rest cannot block others.
 */

#include "ubcm_impl.h"

static uint32_t
nnumbers(const struct ubcm *cm)
{
	return 1u << cm->cfg.log_tps;
}

/* Index 0 is not given away, so a TPN is never 0. */
uint32_t
ubcm_all_numbers(const struct ubcm *cm)
{
	return nnumbers(cm) - 1;
}

uint32_t
ubcm_free_numbers(const struct ubcm *cm)
{
	return ubcm_all_numbers(cm) - cm->used;
}

uint32_t
ubcm_resting_numbers(const struct ubcm *cm, uint64_t now)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i < nnumbers(cm); i++)
		n += cm->number[i].link == 0 && cm->number[i].rests > now;
	return n;
}

static uint32_t
free_index(struct ubcm *cm, uint64_t now)
{
	uint32_t best = 0;

	for (uint32_t tried = 1; tried < nnumbers(cm); tried++) {
		uint32_t i = cm->next;

		cm->next = i + 1 == nnumbers(cm) ? 1 : i + 1;
		if (cm->number[i].link != 0)
			continue;
		if (cm->number[i].rests <= now)
			return i;
		if (best == 0 || cm->number[i].rests < cm->number[best].rests)
			best = i;
	}
	return best;
}

/* With another tag than the last TPN of the index had. Returns more random bits. */
static uint32_t
draw_tpn(struct ubcm *cm, uint32_t i)
{
	uint32_t last = cm->number[i].tpn, tpn;
	uint64_t random;

	do {
		random = cm->cfg.ops->random(cm->cfg.arg);
		tpn = ((uint32_t)random << cm->cfg.log_tps | i) & HCA_TPN_MASK;
	} while (tpn == last);
	cm->number[i].tpn = tpn;
	return (uint32_t)(random >> 32);
}

uint32_t
ubcm_take_numbers(struct ubcm *cm, struct ubcm_link *l, uint32_t n, uint64_t now)
{
	for (l->ntps = 0; l->ntps < n; l->ntps++) {
		uint32_t i = free_index(cm, now);
		uint32_t random;

		if (i == 0)
			break;
		random = draw_tpn(cm, i);
		cm->number[i].link = (uint32_t)(l - cm->link) + 1;
		cm->used++;
		l->tp[l->ntps] = (struct ubcm_tp){
			.tpn = cm->number[i].tpn,
			.psn = random & HCA_TPN_MASK,
			.limits = cm->cfg.limits,
		};
	}
	return l->ntps;
}

void
ubcm_drop_numbers(struct ubcm *cm, struct ubcm_link *l, uint32_t from, uint64_t now)
{
	uint64_t rest = l->confirmed ? UBCM_REST_RTOS * ubcm_rto_largest(&cm->cfg.timer) : 0;

	for (uint32_t i = from; i < l->ntps; i++) {
		struct ubcm_number *n = &cm->number[l->tp[i].tpn & (nnumbers(cm) - 1)];

		n->link = 0;
		n->rests = now + rest;
		cm->used--;
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
