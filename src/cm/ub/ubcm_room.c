/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Room for one more link: which link is evicted, and for which. A half is evicted for a newer half.
 * An open link without local users is evicted if it carries no packets, without the peer's consent:
 * peers get the place of a peer's link, local users also that of one of their own.
 */

#include "ubcm_impl.h"

static void
room_sample(const struct ubcm *cm, struct ubcm_link *l, uint64_t now)
{
	uint64_t traffic = cm->cfg.ops->traffic(cm->cfg.arg, l->tp, l->ntps);

	if (traffic != l->traffic)
		l->seen = now;
	l->traffic = traffic;
}

static bool
room_is_unused(const struct ubcm_link *l)
{
	return (l->state == LINK_OPEN || l->state == LINK_LEAVING) && l->users == 0;
}

void
ubcm_room_look(struct ubcm *cm, struct ubcm_link *l, uint64_t now)
{
	if (room_is_unused(l))
		room_sample(cm, l, now);
}

/* To ask for the traffic of a link takes a command for each TP. */
static void
room_sample_all(struct ubcm *cm, uint64_t now)
{
	if (cm->sampled != 0 && now - cm->sampled < UBCM_SAMPLE_EVERY)
		return;
	cm->sampled = now;
	for (uint32_t i = 0; i < cm->nlinks; i++)
		ubcm_room_look(cm, &cm->link[i], now);
}

static bool
room_is_quiet(const struct ubcm_link *l, uint64_t now)
{
	if (now - l->opened < UBCM_YOUNG)
		return false;
	return l->traffic == 0 || now - l->seen >= UBCM_IDLE;
}

/* Links that may be evicted: a peer's, also an own one, or that of a certain address. */
struct room_from {
	bool own;
	const uint8_t *address; /* NULL: any */
};

static bool
room_is_from(const struct ubcm_link *l, const struct room_from *from)
{
	if (l->active && !from->own)
		return false;
	return from->address == NULL || memcmp(l->peer, from->address, sizeof(l->peer)) == 0;
}

/* Of the quiet links that which carried something longest ago. */
static struct ubcm_link *
room_quietest(struct ubcm *cm, const struct room_from *from, uint64_t now)
{
	struct ubcm_link *best = NULL;

	for (uint32_t i = 0; i < cm->nlinks; i++) {
		struct ubcm_link *l = &cm->link[i];

		if (room_is_unused(l) && room_is_quiet(l, now) && room_is_from(l, from) &&
		    (best == NULL || l->seen < best->seen))
			best = l;
	}
	return best;
}

static bool
room_reclaim(struct ubcm *cm, struct room_from from, uint64_t now)
{
	struct ubcm_link *l;

	room_sample_all(cm, now);
	l = room_quietest(cm, &from, now);
	if (l == NULL)
		return false;
	cm->counters.reclaimed++;
	ubcm_link_end(cm, l, UBCM_STATUS_NO_RESOURCES, true, now);
	return true;
}

/* The oldest half, but for those that local users have joined */
static bool
room_evict(struct ubcm *cm, uint64_t now)
{
	struct ubcm_link *oldest = NULL;

	for (uint32_t i = 0; i < cm->nlinks; i++) {
		struct ubcm_link *l = &cm->link[i];

		if (l->state == LINK_ANSWERED && l->users == 0 &&
		    (oldest == NULL || l->born < oldest->born))
			oldest = l;
	}
	if (oldest == NULL)
		return false;
	ubcm_room_end_half(cm, oldest, now);
	return true;
}

void
ubcm_room_end_half(struct ubcm *cm, struct ubcm_link *l, uint64_t now)
{
	cm->counters.evicted++;
	ubcm_link_end(cm, l, UBCM_STATUS_RESTARTED, false, now);
}

static bool
room_make(struct ubcm *cm, const uint8_t *peer, enum cm_share_full full, uint64_t now)
{
	switch (full) {
	case CM_SHARE_FULL_ADDRESS:
		return room_reclaim(cm, (struct room_from){.address = peer}, now);
	case CM_SHARE_FULL_HALF:
		return room_evict(cm, now);
	default:
		return room_reclaim(cm, (struct room_from){.address = NULL}, now);
	}
}

uint32_t
ubcm_room_for_peer(struct ubcm *cm, const uint8_t *peer, uint32_t want, uint64_t now)
{
	enum cm_share_full full;
	uint32_t left = cm_share_left(&cm->share, peer, 0, &full);

	while (left < want && room_make(cm, peer, full, now))
		left = cm_share_left(&cm->share, peer, 0, &full);
	want = left < want ? left : want;
	/* local users may have more than their reserve */
	while (ubcm_free_numbers(cm) < want &&
	       room_reclaim(cm, (struct room_from){.own = true}, now))
		;
	if (left == 0 && full == CM_SHARE_FULL_ADDRESS)
		cm->counters.refused_address++;
	else if (left == 0 || ubcm_free_numbers(cm) == 0)
		cm->counters.refused_peers++;
	return want;
}

void
ubcm_room_for_own(struct ubcm *cm, uint64_t now)
{
	while ((ubcm_free_numbers(cm) < cm->cfg.tps || !ubcm_link_is_free(cm)) &&
	       room_reclaim(cm, (struct room_from){.own = true}, now))
		;
}
