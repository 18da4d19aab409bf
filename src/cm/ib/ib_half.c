/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Halves: requests of peers from their REQ until they are established. Who floods a listener must
 * not keep others out, so each address has an account at the listeners of each user, and when there
 * is no room the oldest half of the account with the most of them gives way.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ib_impl.h"

static uint64_t
half_key(const struct ibcm *cm, const uint8_t gid[16], uint32_t user)
{
	return ib_hash_key(cm->seed ^ user, gid, 16);
}

static struct ib_peer *
half_find(const struct ibcm *cm, const uint8_t gid[16], uint32_t user)
{
	uint64_t key = half_key(cm, gid, user);

	for (struct ib_link *l = ib_hash_next(&cm->peers, key, NULL); l != NULL;
	     l = ib_hash_next(&cm->peers, key, l)) {
		struct ib_peer *p = IB_CONTAINER(l, struct ib_peer, link);

		if (p->user == user && memcmp(p->gid, gid, sizeof(p->gid)) == 0)
			return p;
	}
	return NULL;
}

static void
half_count(struct ibcm *cm, struct ib_peer *peer, uint32_t count)
{
	ib_node_pull(&peer->same);
	peer->count = count;
	if (count > 0)
		ib_node_push(&cm->by_count[count], &peer->same);
	if (count > cm->most)
		cm->most = count;
	while (cm->most > 0 && ib_node_alone(&cm->by_count[cm->most]))
		cm->most--;
}

static void
half_gives_way(struct ibcm *cm, struct ib_node *half, uint64_t now)
{
	cm->counters.evicted++;
	ib_request_gone(cm, IB_CONTAINER(half, struct ib_id, in_half), HCA_CTL_CM_EV_UNREACHABLE,
			-ECONNABORTED, now);
}

/* What the address has in answered ones costs it nothing. */
static bool
half_held_gives_way(struct ibcm *cm, struct ib_peer *peer, uint64_t now)
{
	if (peer == NULL || ib_node_alone(&peer->held))
		return false;
	half_gives_way(cm, peer->held.next, now);
	return true;
}

bool
ib_half_room(struct ibcm *cm, const uint8_t gid[16], uint32_t user, uint64_t now)
{
	struct ib_peer *peer = half_find(cm, gid, user);
	uint32_t count = peer == NULL ? 0 : peer->count;
	bool full = cm->halves >= cm->cfg.limits.pending;

	if (count < cm->cfg.limits.pending_address && !full)
		return true;
	if (half_held_gives_way(cm, peer, now))
		return true;
	if (count >= cm->cfg.limits.pending_address || count >= cm->most)
		return false;
	peer = IB_CONTAINER(cm->by_count[cm->most].next, struct ib_peer, same);
	if (!half_held_gives_way(cm, peer, now))
		half_gives_way(cm, peer->halves.next, now);
	return true;
}

bool
ib_half_add(struct ibcm *cm, struct ib_id *id, const uint8_t gid[16])
{
	uint32_t user = id->account->client.user;
	struct ib_peer *p = half_find(cm, gid, user);

	if (p == NULL) {
		p = calloc(1, sizeof(*p));
		if (p == NULL)
			return false;
		memcpy(p->gid, gid, sizeof(p->gid));
		p->user = user;
		ib_node_init(&p->same);
		ib_node_init(&p->halves);
		ib_node_init(&p->held);
		ib_hash_add(&cm->peers, &p->link, half_key(cm, gid, user));
	}
	id->half = p;
	ib_node_push(&p->halves, &id->in_half);
	half_count(cm, p, p->count + 1);
	cm->halves++;
	return true;
}

void
ib_half_hold(struct ib_id *id)
{
	if (id->half == NULL)
		return;
	ib_node_pull(&id->in_half);
	ib_node_push(&id->half->held, &id->in_half);
}

void
ib_half_drop(struct ibcm *cm, struct ib_id *id)
{
	struct ib_peer *p = id->half;

	if (p == NULL)
		return;
	id->half = NULL;
	ib_node_pull(&id->in_half);
	half_count(cm, p, p->count - 1);
	cm->halves--;
	if (p->count > 0)
		return;
	ib_hash_remove(&cm->peers, &p->link);
	free(p);
}
