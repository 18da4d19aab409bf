/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Multicast groups. RoCE has nothing to ask: the MGID is the IP address, the owner of the CM
 * announces the group on the wire while the HCA has members that receive.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi_ctx.h"
#include "ib_impl.h"

#define GROUP_SEND_ONLY 1u
#define GROUP_QKEY 0x01234567u
#define GROUP_QPN 0xffffffu
#define GROUP_HOP_LIMIT 1u

static uint64_t
group_key(const struct ibcm *cm, uint32_t gid_index, const uint8_t mgid[16])
{
	return ib_hash_key(cm->seed ^ gid_index, mgid, 16);
}

static struct ib_group *
group_get(struct ibcm *cm, uint32_t gid_index, const uint8_t mgid[16])
{
	uint64_t key = group_key(cm, gid_index, mgid);
	struct ib_group *g;

	for (struct ib_link *l = ib_hash_next(&cm->groups, key, NULL); l != NULL;
	     l = ib_hash_next(&cm->groups, key, l)) {
		g = IB_CONTAINER(l, struct ib_group, link);
		if (g->gid_index == gid_index && memcmp(g->mgid, mgid, sizeof(g->mgid)) == 0)
			return g;
	}
	g = calloc(1, sizeof(*g));
	if (g == NULL)
		return NULL;
	memcpy(g->mgid, mgid, sizeof(g->mgid));
	g->gid_index = gid_index;
	ib_hash_add(&cm->groups, &g->link, key);
	return g;
}

static void
group_enter(struct ibcm *cm, struct ib_group *g, bool receives)
{
	g->members++;
	if (receives && g->receivers++ == 0)
		cm->cfg.ops->group(cm->cfg.arg, g->gid_index, g->mgid, true);
}

static void
group_exit(struct ibcm *cm, struct ib_group *g, bool receives)
{
	if (receives && --g->receivers == 0)
		cm->cfg.ops->group(cm->cfg.arg, g->gid_index, g->mgid, false);
	if (--g->members > 0)
		return;
	ib_hash_remove(&cm->groups, &g->link);
	free(g);
}

static bool
group_receives(const struct ib_member *m)
{
	return (m->flags & GROUP_SEND_ONLY) == 0;
}

/* A user has a share of the memberships. */
static bool
group_may(const struct ibcm *cm, const struct ib_id *id)
{
	uint32_t left = cm->cfg.limits.groups - cm->memberships;

	return ib_user_may(cm, id->account->user->memberships, left);
}

static int
group_judge(struct ib_op *op, const struct ib_id *id, const struct hca_ctl_cm_join *request)
{
	if (id->service != HCA_ST_UD)
		return ib_op_fail(op, -EINVAL,
				  "id %u is not for a UD QP: only datagrams are sent to groups",
				  id->number);
	if (id->gid_index == HCA_CTL_CM_NO_GID || id->state < HCA_CTL_CM_BOUND ||
	    id->state == HCA_CTL_CM_RESOLVING || id->state == HCA_CTL_CM_LISTENING)
		return ib_op_state(
			op, id,
			"bind it to an address of this HCA, or resolve a destination, before it "
			"joins a group");
	if (!ib_ip_is_good(&request->addr) || !ib_ip_is_multicast(&request->addr))
		return ib_op_address(
			op, -EINVAL, &request->addr,
			"is no multicast address: join 224.0.0.0/4, ff00::/8 or a multicast GID");
	if (!group_may(op->cm, id))
		return ib_op_fail(
			op, -ENOMEM,
			"the user has %u memberships of groups, which is its share: leave groups, "
			"or raise [cm] groups or [quota] user_share",
			id->account->user->memberships);
	return 0;
}

/* As Linux: an id cannot use two Q_Keys, and needs its address. The program leaves the group. */
static int
group_fault(const struct ibcm *cm, const struct ib_id *id)
{
	if (id->space == HCA_CTL_CM_SPACE_UDP && id->qkey != 0 && id->qkey != GROUP_QKEY)
		return -EINVAL;
	return id->gid_index < cm->gids && cm->gid[id->gid_index].valid ? 0 : -EADDRNOTAVAIL;
}

static void
group_tell(struct ibcm *cm, struct ib_id *id, const struct ib_member *m)
{
	int err = group_fault(cm, id);
	struct ib_event *e = ib_event_new(cm, id,
					  err == 0 ? HCA_CTL_CM_EV_MULTICAST_JOIN
						   : HCA_CTL_CM_EV_MULTICAST_ERROR,
					  err);

	if (e == NULL)
		return;
	e->event.group = m->number;
	if (err != 0) {
		ib_event_post(cm, e);
		return;
	}
	e->event.param.id = id->number;
	e->event.param.qpn = GROUP_QPN;
	e->event.param.qkey = id->qkey != 0 ? id->qkey : GROUP_QKEY;
	memcpy(e->event.dgid, m->group->mgid, sizeof(e->event.dgid));
	e->event.hop_limit = GROUP_HOP_LIMIT;
	e->event.traffic_class = id->tos;
	ib_event_post(cm, e);
}

int
ib_join(struct ib_op *op, const struct hca_ctl_cm_join *request, uint32_t *number)
{
	struct ibcm *cm = op->cm;
	struct ib_id *id = ib_id_get(op, request->id);
	struct ib_member *m;
	int err;

	if (id == NULL)
		return -ENOENT;
	err = group_judge(op, id, request);
	if (err != 0)
		return err;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return ib_op_fail(op, -ENOMEM, IB_NO_MEMORY("a membership"));
	m->group = group_get(cm, id->gid_index, request->addr.gid);
	if (m->group == NULL) {
		free(m);
		return ib_op_fail(op, -ENOMEM, IB_NO_MEMORY("a group"));
	}
	if (++cm->next_member == 0)
		cm->next_member = 1;
	m->number = *number = cm->next_member;
	m->flags = request->flags;
	ib_node_push(&id->members, &m->in_id);
	ib_hash_add(&cm->members, &m->link, m->number);
	m->id = id;
	cm->memberships++;
	id->account->user->memberships++;
	group_enter(cm, m->group, group_receives(m));
	group_tell(cm, id, m);
	return 0;
}

static void
group_member_free(struct ibcm *cm, struct ib_member *m)
{
	group_exit(cm, m->group, group_receives(m));
	ib_node_pull(&m->in_id);
	ib_hash_remove(&cm->members, &m->link);
	cm->memberships--;
	m->id->account->user->memberships--;
	free(m);
}

int
ib_leave(struct ib_op *op, uint32_t number)
{
	struct ib_link *link = ib_hash_next(&op->cm->members, number, NULL);
	struct ib_member *m = link == NULL ? NULL : IB_CONTAINER(link, struct ib_member, link);

	if (m == NULL || m->id->account->client.owner != op->client->owner)
		return ib_op_fail(
			op, -ENOENT,
			"membership %u does not exist: its id has left the group or was destroyed, "
			"or another client has it",
			number);
	ib_event_clear_group(m->id, number);
	group_member_free(op->cm, m);
	return 0;
}

void
ib_group_forget(struct ibcm *cm, struct ib_id *id)
{
	IB_NODE_EACH(n, &id->members)
	group_member_free(cm, IB_CONTAINER(n, struct ib_member, in_id));
}
