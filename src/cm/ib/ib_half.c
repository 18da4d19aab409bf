/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Halves: requests of peers from their REQ until they are established. A flood of a listener must
 * not keep others out, so each address has an account at the listeners of each user. When there is
 * no room, the oldest half of the account with the most halves is evicted; when the account has as
 * many as it may have, its own oldest one.
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
half_peer(const struct ibcm *cm, const struct cm_share_row *row)
{
	return row == NULL ? NULL : &cm->peer[row - cm->share.row];
}

/* The oldest answered half of an account, or else its oldest one. */
static struct ib_node *
half_oldest(const struct ib_peer *peer)
{
	return ib_node_alone(&peer->held) ? peer->halves.next : peer->held.next;
}

/*
 * The half to evict for one more of the address at listeners of the user, if there is no room;
 * NULL: the address has the most halves of all, and no answered one.
 */
static struct ib_node *
half_victim(const struct ibcm *cm, const struct cm_share_row *own, enum cm_share_full full)
{
	const struct cm_share_row *most = cm_share_most(&cm->share);

	if (own != NULL &&
	    (full == CM_SHARE_FULL_ADDRESS || !ib_node_alone(&half_peer(cm, own)->held)))
		return half_oldest(half_peer(cm, own));
	if (most == NULL || (own != NULL && own->used[CM_SHARE_half] >= most->used[CM_SHARE_half]))
		return NULL;
	return half_oldest(half_peer(cm, most));
}

/* The peer waits for nothing more, if it may have the REP. */
static void
half_evict(struct ibcm *cm, struct ib_node *half, uint64_t now)
{
	struct ib_id *id = IB_CONTAINER(half, struct ib_id, in_half);

	cm->counters.evicted++;
	if (id->phase == IB_PHASE_REP_SENT)
		ib_send_rej_timeout(cm, id);
	ib_request_gone(cm, id, HCA_CTL_CM_EV_UNREACHABLE, -ECONNABORTED, now);
}

bool
ib_half_may(const struct ibcm *cm, const uint8_t gid[16], uint32_t user)
{
	enum cm_share_full full;

	return cm_share_left(&cm->share, gid, user, &full) != 0 ||
	       half_victim(cm, cm_share_find(&cm->share, gid, user), full) != NULL;
}

bool
ib_half_room(struct ibcm *cm, const uint8_t gid[16], uint32_t user, uint64_t now)
{
	enum cm_share_full full;
	struct ib_node *half;

	if (cm_share_left(&cm->share, gid, user, &full) != 0)
		return true;
	half = half_victim(cm, cm_share_find(&cm->share, gid, user), full);
	if (half != NULL)
		half_evict(cm, half, now);
	return half != NULL;
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
