/* SPDX-License-Identifier: BSD-3-Clause */

/* Begin and end, and the operations of clients. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi_ctx.h"
#include "abi_qp_attr.h"
#include "ib_impl.h"

/* ---- begin and end ---- */

static void
cm_limits(struct ibcm_limits *l)
{
#define X(name, def, text) \
	if (l->name == 0) \
		l->name = (def);
	IBCM_LIMIT_LIST(X)
#undef X
}

/* Every table with the function that frees its members: all are empty when the ids are gone. */
#define CM_TABLES(X) \
	X(users) \
	X(accounts) \
	X(channels) \
	X(ports) \
	X(comms) \
	X(remotes) \
	X(qpns) \
	X(waits) \
	X(groups) \
	X(members)

static bool
cm_tables(struct ibcm *cm)
{
	bool good = true;

#define X(name) good = ib_hash_init(&cm->name) && good;
	CM_TABLES(X)
#undef X
	return ib_half_init(cm) && good;
}

static void
cm_free(struct ibcm *cm)
{
#define X(name) ib_hash_free(&cm->name);
	CM_TABLES(X)
#undef X
	ib_heap_free(&cm->timers);
	ib_half_free(cm);
	free(cm->slot);
	free(cm->gid);
	free(cm);
}

struct ibcm *
ibcm_create(const struct ibcm_config *config)
{
	struct ibcm *cm;

	if (config->mtu < 1 || config->mtu > HCA_MTU_MAX)
		return NULL;
	cm = calloc(1, sizeof(*cm));
	if (cm == NULL)
		return NULL;
	cm->cfg = *config;
	cm_limits(&cm->cfg.limits);
	cm->seed = config->ops->random(config->arg);
	ib_node_init(&cm->all_orphans);
	if (cm_tables(cm))
		return cm;
	cm_free(cm);
	return NULL;
}

static void
cm_destroy_id(struct ibcm *cm, struct ib_id *id, uint64_t now)
{
	IB_NODE_EACH(n, &id->requests)
	cm_destroy_id(cm, IB_CONTAINER(n, struct ib_id, in_listener), now);
	ib_conn_leave(cm, id, now);
	ib_id_orphan(cm, id);
}

void
ibcm_destroy(struct ibcm *cm, uint64_t now)
{
	for (uint32_t i = 0; i < cm->slots; i++)
		if (cm->slot[i].id != NULL && cm->slot[i].id->number != 0 &&
		    cm->slot[i].id->listener == NULL)
			cm_destroy_id(cm, cm->slot[i].id, now);
	for (uint32_t i = 0; i < cm->slots; i++)
		if (cm->slot[i].id != NULL)
			ib_conn_end(cm, cm->slot[i].id);
	cm_free(cm);
}

/* The requests that wait at a listener end with it. */
static void
cm_destroy_channel(struct ibcm *cm, struct ib_channel *channel, uint64_t now)
{
	struct ib_account *account = channel->account;

	account->ids++; /* both stay until all are gone */
	channel->ids++;
	while (!ib_node_alone(&channel->members)) {
		struct ib_id *id = IB_CONTAINER(channel->members.next, struct ib_id, in_channel);

		cm_destroy_id(cm, id->listener != NULL ? id->listener : id, now);
	}
	channel->ids--;
	ib_channel_drop(cm, channel);
	account->ids--;
	ib_account_drop(cm, account);
}

void
ibcm_forget_channel(struct ibcm *cm, uint32_t owner, uint32_t number, uint64_t now)
{
	struct ib_channel *channel = ib_channel_find(cm, owner, number);

	if (channel != NULL)
		cm_destroy_channel(cm, channel, now);
}

void
ibcm_forget(struct ibcm *cm, uint32_t owner, uint64_t now)
{
	struct ib_account *account = ib_account_find(cm, owner);

	if (account == NULL)
		return;
	account->ids++; /* it stays until all are gone */
	while (!ib_node_alone(&account->channels))
		cm_destroy_channel(
			cm, IB_CONTAINER(account->channels.next, struct ib_channel, in_account),
			now);
	ib_hash_remove(&cm->accounts, &account->link);
	account->ids--;
	ib_account_drop(cm, account);
}

/* The peers are not told: no message leaves. */
void
ibcm_dead(struct ibcm *cm, uint64_t now)
{
	cm->dead = true;
	for (uint32_t i = 0; i < cm->slots; i++) {
		struct ib_id *id = cm->slot[i].id;

		if (id == NULL)
			continue;
		if (id->number == 0 || id->listener != NULL) {
			ib_request_gone(cm, id, 0, 0, now);
			continue;
		}
		ib_conn_end(cm, id);
		ib_conn_over(cm, id, HCA_CTL_CM_EV_DEVICE_REMOVAL, 0, now);
	}
}

void
ibcm_tick(struct ibcm *cm, uint64_t now)
{
	struct ib_timer *t;

	while ((t = ib_heap_first(&cm->timers)) != NULL && t->at <= now) {
		ib_heap_stop(&cm->timers, t);
		ib_conn_expired(cm, IB_CONTAINER(t, struct ib_id, timer), now);
	}
}

uint64_t
ibcm_deadline(const struct ibcm *cm)
{
	const struct ib_timer *t = ib_heap_first(&cm->timers);

	return t == NULL ? IBCM_NEVER : t->at;
}

/* ---- operations ---- */

static bool
op_is_space(const struct hca_ctl_cm_create *r)
{
	bool service = r->service == HCA_ST_RC || r->service == HCA_ST_UC ||
		       r->service == HCA_ST_UD || r->service == HCA_ST_XRC_INI ||
		       r->service == HCA_ST_XRC_TGT;

	return service && (r->space == HCA_CTL_CM_SPACE_TCP || r->space == HCA_CTL_CM_SPACE_UDP ||
			   r->space == HCA_CTL_CM_SPACE_IB || r->space == HCA_CTL_CM_SPACE_IPOIB);
}

static int
op_create(struct ib_op *op, const struct hca_ctl_cm_create *r, uint32_t *number)
{
	struct ibcm *cm = op->cm;
	struct ib_channel *channel = NULL;
	struct ib_account *account;
	struct ib_id *id = NULL;
	uint32_t has;

	if (cm->dead)
		return ib_op_fail(op, -ENODEV, IB_DEAD);
	if (!op_is_space(r))
		return ib_op_fail(
			op, -EINVAL,
			"port space %#x with service %u: expected TCP, UDP, IB or IPOIB, and RC, "
			"UC, UD or XRC",
			r->space, r->service);
	account = ib_account_get(cm, op->client);
	if (account == NULL)
		return ib_op_fail(op, -ENOMEM, IB_NO_MEMORY("a client"));
	if (ib_account_may(cm, account))
		channel = ib_channel_get(cm, account, r->channel);
	if (channel != NULL)
		id = ib_id_new(cm, account, channel, op->now);
	if (id == NULL) {
		if (channel != NULL)
			ib_channel_drop(cm, channel);
		has = account->ids;
		ib_account_drop(cm, account);
		return ib_op_fail(
			op, -ENOMEM,
			"no id is left: the client has %u, all clients %u; destroy ids, or raise "
			"[cm] ids_client, ids_user or ids, or [quota] user_share",
			has, cm->ids);
	}
	id->space = r->space;
	id->service = (uint8_t)r->service;
	*number = id->number;
	return 0;
}

static int
op_destroy(struct ib_op *op, const uint32_t *number, struct hca_ctl_none *none)
{
	struct ib_id *id = ib_id_get(op, *number);

	(void)none;
	if (id == NULL)
		return -ENOENT;
	cm_destroy_id(op->cm, id, op->now);
	return 0;
}

static int
op_bind(struct ib_op *op, const struct hca_ctl_cm_bind *r, struct hca_ctl_cm_bound *bound)
{
	struct ib_id *id = ib_id_get(op, r->id);
	int err;

	if (id == NULL)
		return -ENOENT;
	err = ib_bind(op, id, &r->addr, &r->service, r->flags);
	if (err != 0)
		return err;
	*bound = (struct hca_ctl_cm_bound){.addr = id->src, .gid_index = id->gid_index};
	return 0;
}

static int
op_resolve(struct ib_op *op, const struct hca_ctl_cm_resolve *r, struct hca_ctl_none *none)
{
	(void)none;
	return ib_resolve(op, r);
}

static int
op_route(struct ib_op *op, const struct hca_ctl_cm_route *r, struct hca_ctl_none *none)
{
	(void)none;
	return ib_route(op, r);
}

static int
op_listen(struct ib_op *op, const struct hca_ctl_cm_listen *r, struct hca_ctl_none *none)
{
	struct ib_id *id = ib_id_get(op, r->id);
	struct hca_ctl_cm_addr any = ib_ip_any(HCA_CTL_CM_IP4);
	uint32_t max = op->cm->cfg.limits.backlog;
	int err = 0;

	(void)none;
	if (id == NULL)
		return -ENOENT;
	if (id->state == HCA_CTL_CM_IDLE)
		err = ib_bind(op, id, &any, NULL, 0);
	if (err != 0)
		return err;
	if (id->state != HCA_CTL_CM_BOUND)
		return ib_op_state(op, id,
				   "an id listens once, after bind and before any destination");
	err = ib_bind_listens(op, id);
	if (err != 0)
		return err;
	id->backlog = r->backlog == 0 || r->backlog > max ? max : r->backlog;
	id->c.service_id = ib_bind_service(id);
	return 0;
}

static int
op_connect(struct ib_op *op, const struct hca_ctl_cm_param *r, struct hca_ctl_none *none)
{
	(void)none;
	return ib_connect(op, r);
}

static int
op_accept(struct ib_op *op, const struct hca_ctl_cm_param *r, struct hca_ctl_none *none)
{
	(void)none;
	return ib_accept(op, r);
}

static int
op_reject(struct ib_op *op, const struct hca_ctl_cm_reject *r, struct hca_ctl_none *none)
{
	(void)none;
	return ib_reject(op, r);
}

static int
op_disconnect(struct ib_op *op, const uint32_t *number, struct hca_ctl_none *none)
{
	(void)none;
	return ib_disconnect(op, *number);
}

static int
op_notify(struct ib_op *op, const struct hca_ctl_cm_notify *r, struct hca_ctl_none *none)
{
	(void)none;
	return ib_notify(op, r);
}

/* As Linux: when each may be set */
static int
op_option(struct ib_op *op, const struct hca_ctl_cm_option *r, struct hca_ctl_none *none)
{
	struct ib_id *id = ib_id_get(op, r->id);

	(void)none;
	if (id == NULL)
		return -ENOENT;
	switch (r->option) {
	case HCA_CTL_CM_OPTION_TOS:
		id->tos = (uint8_t)r->value;
		return 0;
	case HCA_CTL_CM_OPTION_REUSE:
		if (id->state != HCA_CTL_CM_IDLE &&
		    (r->value == 0 || id->state == HCA_CTL_CM_LISTENING))
			return ib_op_state(op, id,
					   "set REUSEADDR before bind, and do not clear it later");
		id->reuse = r->value != 0;
		return 0;
	case HCA_CTL_CM_OPTION_AF_ONLY:
		if (id->state > HCA_CTL_CM_BOUND)
			return ib_op_state(
				op, id,
				"set AFONLY before listen, or before a destination is resolved");
		id->af_only = r->value != 0;
		return 0;
	case HCA_CTL_CM_OPTION_ACK_TIMEOUT:
		if (id->service != HCA_ST_RC && id->service != HCA_ST_XRC_INI)
			return ib_op_fail(
				op, -EINVAL,
				"id %u is for a QP without acknowledgements of its sends: only RC "
				"and XRC_SEND have an ack timeout",
				id->number);
		if (r->value > HCA_ACK_TIMEOUT_MAX)
			return ib_op_fail(op, -EINVAL, "ack timeout %u: expected 0 to %u", r->value,
					  HCA_ACK_TIMEOUT_MAX);
		id->ack_timeout = (uint8_t)r->value;
		id->has_ack_timeout = true;
		return 0;
	default:
		return ib_op_fail(op, -EINVAL, "option %u: expected 0 to %u", r->option,
				  HCA_CTL_CM_OPTION_ACK_TIMEOUT);
	}
}

static int
op_move(struct ib_op *op, const struct hca_ctl_cm_move *r, struct hca_ctl_none *none)
{
	struct ib_id *id = ib_id_get(op, r->id);
	struct ib_channel *to;

	(void)none;
	if (id == NULL)
		return -ENOENT;
	to = ib_channel_get(op->cm, id->account, r->channel);
	if (to == NULL)
		return ib_op_fail(op, -ENOMEM, IB_NO_MEMORY("a channel"));
	if (to == id->channel)
		return 0;
	ib_event_move(op->cm, id, to);
	IB_NODE_EACH(n, &id->requests)
	ib_event_move(op->cm, IB_CONTAINER(n, struct ib_id, in_listener), to);
	return 0;
}

static int
op_query(struct ib_op *op, const uint32_t *number, struct hca_ctl_cm_info *info)
{
	const struct ib_id *id = ib_id_get(op, *number);
	const struct hca_ctl_gid *gid;
	uint64_t to;

	if (id == NULL)
		return -ENOENT;
	to = ib_resolve_service(id);
	*info = (struct hca_ctl_cm_info){
		.src = id->src,
		.dst = id->dst,
		.service_id = to != 0 ? to : ib_bind_service(id),
		.src_service_id = ib_bind_service(id),
		.dst_service_id = to,
		.state = id->state,
		.space = id->space,
		.gid_index = id->gid_index,
		.mtu = id->c.mtu != 0 ? id->c.mtu : op->cm->cfg.mtu,
		.vlan_id = 0xffff,
		.pkey = op->cm->cfg.pkey,
	};
	memcpy(info->dmac, id->way.dmac, sizeof(info->dmac));
	if (id->gid_index < op->cm->gids) {
		gid = &op->cm->gid[id->gid_index];
		info->vlan_id = gid->valid ? gid->vlan_id : 0xffff;
		memcpy(info->smac, gid->mac, sizeof(info->smac));
	}
	return 0;
}

static int
op_qp_attr(struct ib_op *op, const struct hca_ctl_cm_ask *r, struct hca_ctl_cm_attr *attr)
{
	return ib_qp_attr(op, r, attr);
}

static int
op_join(struct ib_op *op, const struct hca_ctl_cm_join *r, uint32_t *number)
{
	return ib_join(op, r, number);
}

static int
op_leave(struct ib_op *op, const uint32_t *number, struct hca_ctl_none *none)
{
	(void)none;
	return ib_leave(op, *number);
}

static int
op_event(struct ib_op *op, const uint32_t *channel, struct hca_ctl_cm_event *event)
{
	return ib_event_fetch(op, *channel, event);
}

/* Operations that a dead HCA also has: the others begin a request. */
static bool
op_of_the_dead(enum hca_ctl_op op)
{
	return op == HCA_CTL_CM_DESTROY || op == HCA_CTL_CM_EVENT || op == HCA_CTL_CM_QUERY ||
	       op == HCA_CTL_CM_MOVE || op == HCA_CTL_CM_LEAVE || op == HCA_CTL_CM_DISCONNECT;
}

#define CM_CALL(NAME, name) \
	case HCA_CTL_CM_##NAME: \
		err = op_##name(&call, request, answer); \
		break;

int
ibcm_call(struct ibcm *cm, const struct ibcm_client *client, enum hca_ctl_op op,
	  const void *request, void *answer, uint64_t now, const char **why)
{
	struct ib_op call = {.cm = cm, .client = client, .now = now, .why = ""};
	int err;

	if (cm->dead && !op_of_the_dead(op)) {
		err = ib_op_fail(&call, -ENODEV, IB_DEAD);
		*why = call.why;
		return err;
	}
	switch (op) {
		CM_CALL(CREATE, create)
		CM_CALL(DESTROY, destroy)
		CM_CALL(BIND, bind)
		CM_CALL(RESOLVE, resolve)
		CM_CALL(ROUTE, route)
		CM_CALL(LISTEN, listen)
		CM_CALL(CONNECT, connect)
		CM_CALL(ACCEPT, accept)
		CM_CALL(REJECT, reject)
		CM_CALL(DISCONNECT, disconnect)
		CM_CALL(NOTIFY, notify)
		CM_CALL(OPTION, option)
		CM_CALL(MOVE, move)
		CM_CALL(QUERY, query)
		CM_CALL(QP_ATTR, qp_attr)
		CM_CALL(JOIN, join)
		CM_CALL(LEAVE, leave)
		CM_CALL(EVENT, event)
	default:
		err = ib_op_fail(&call, -EOPNOTSUPP,
				 "operation %u is not one of connection management", op);
	}
	*why = call.why;
	return err;
}
