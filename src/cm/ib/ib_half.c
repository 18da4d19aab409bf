/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Halves: requests of peers from their REQ until they are established. A flood of a listener must
 * not keep others out, so each address has an account at the listeners of each user, and when there
 * is no room the oldest half of the account with the most of them gives way.
 */

#include <errno.h>
#include <stdlib.h>

#include "ib_impl.h"

bool
ib_half_init(struct ibcm *cm)
{
	const struct ibcm_limits *l = &cm->cfg.limits;
	const struct cm_share_limits limits = {
		.peers = l->pending,
		.half = l->pending,
		.address = l->pending_address < l->pending ? l->pending_address : l->pending,
	};
	const uint64_t key[2] = {cm->cfg.ops->random(cm->cfg.arg),
				 cm->cfg.ops->random(cm->cfg.arg)};

	cm->shares = calloc(1, cm_share_bytes(&limits));
	cm->peer = calloc(limits.peers, sizeof(*cm->peer));
	if (cm->shares == NULL || cm->peer == NULL)
		return false;
	cm_share_init(&cm->share, &limits, key, cm->shares);
	return true;
}

void
ib_half_free(struct ibcm *cm)
{
	free(cm->shares);
	free(cm->peer);
}

static struct ib_peer *
half_peer(struct ibcm *cm, const struct cm_share_row *row)
{
	return row == NULL ? NULL : &cm->peer[row - cm->share.row];
}

static void
half_gives_way(struct ibcm *cm, struct ib_node *half, uint64_t now)
{
	cm->counters.evicted++;
	ib_request_gone(cm, IB_CONTAINER(half, struct ib_id, in_half), HCA_CTL_CM_EV_UNREACHABLE,
			-ECONNABORTED, now);
}

/* Room by the oldest answered half of the address, which gives way. False: it has none. */
static bool
half_held_gives_way(struct ibcm *cm, struct ib_peer *peer, uint64_t now)
{
	if (peer == NULL || ib_node_alone(&peer->held))
		return false;
	half_gives_way(cm, peer->held.next, now);
	return true;
}

bool
ib_half_may(const struct ibcm *cm, const uint8_t gid[16], uint32_t user)
{
	const struct cm_share_row *own = cm_share_find(&cm->share, gid, user);
	enum cm_share_full full;

	return cm_share_left(&cm->share, gid, user, &full) != 0 || full != CM_SHARE_FULL_ADDRESS ||
	       (own != NULL && !ib_node_alone(&cm->peer[own - cm->share.row].held));
}

bool
ib_half_room(struct ibcm *cm, const uint8_t gid[16], uint32_t user, uint64_t now)
{
	const struct cm_share_row *own = cm_share_find(&cm->share, gid, user), *most;
	enum cm_share_full full;

	if (cm_share_left(&cm->share, gid, user, &full) != 0)
		return true;
	if (half_held_gives_way(cm, half_peer(cm, own), now))
		return true;
	most = cm_share_most(&cm->share);
	if (full == CM_SHARE_FULL_ADDRESS || most == NULL ||
	    (own != NULL && own->used[CM_SHARE_half] >= most->used[CM_SHARE_half]))
		return false;
	if (!half_held_gives_way(cm, half_peer(cm, most), now))
		half_gives_way(cm, half_peer(cm, most)->halves.next, now);
	return true;
}

void
ib_half_add(struct ibcm *cm, struct ib_id *id, const uint8_t gid[16])
{
	struct cm_share_row *row =
		cm_share_take(&cm->share, gid, id->account->client.user, CM_SHARE_half, 1);

	id->half = half_peer(cm, row);
	if (row->used[CM_SHARE_half] == 1) {
		ib_node_init(&id->half->halves);
		ib_node_init(&id->half->held);
	}
	ib_node_push(&id->half->halves, &id->in_half);
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
	const struct cm_share_row *row;

	if (id->half == NULL)
		return;
	row = &cm->share.row[id->half - cm->peer];
	id->half = NULL;
	ib_node_pull(&id->in_half);
	cm_share_give(&cm->share, row->address, row->user, CM_SHARE_half, 1);
}
