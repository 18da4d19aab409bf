/* SPDX-License-Identifier: BSD-3-Clause */

/* Addresses and routes: the owner of the CM finds the way, the id waits for it. */

#include <errno.h>
#include <string.h>

#include "ib_impl.h"

#define RESOLVE_MS UINT64_C(1000000)
/* A program that tries again and again has to fetch the outcomes. */
#define RESOLVE_EVENTS_MAX 64u

static int
resolve_judge(struct ib_op *op, const struct ib_id *id, const struct hca_ctl_cm_resolve *r)
{
	if (id->state != HCA_CTL_CM_IDLE && id->state != HCA_CTL_CM_BOUND)
		return ib_op_state(
			op, id,
			"a destination is resolved once, before listen; create another id for "
			"another destination");
	if (!ib_ip_is_good(&r->dst))
		return ib_op_family(op, &r->dst);
	if (r->dst.family == HCA_CTL_CM_IB && !ib_request_pkey_is_good(op->cm, r->dst_service.pkey))
		return ib_op_fail(op, -ENODEV,
				  "P_Key %#x of the address is not in the table of the HCA",
				  r->dst_service.pkey);
	if (id->nevents >= RESOLVE_EVENTS_MAX)
		return ib_op_fail(
			op, -ENOMEM,
			"id %u has %u events that the program has not fetched: fetch them before "
			"the next attempt",
			id->number, id->nevents);
	return 0;
}

/* The HCA itself has the address that the wildcard means. */
static bool
resolve_own(const struct ibcm *cm, uint32_t index, struct hca_ctl_cm_addr *dst)
{
	if (!ib_ip_is_any(dst))
		return true;
	if (index == HCA_CTL_CM_NO_GID)
		index = ib_gid_any(cm, dst->family);
	if (index == HCA_CTL_CM_NO_GID)
		return false;
	memcpy(dst->gid, cm->gid[index].gid, sizeof(dst->gid));
	return true;
}

/* An id without an address gets one: that of the request, or the wildcard. */
static int
resolve_bind(struct ib_op *op, struct ib_id *id, const struct hca_ctl_cm_resolve *r)
{
	struct hca_ctl_cm_addr src = r->src;

	if (id->state != HCA_CTL_CM_IDLE)
		return 0;
	if (src.family == HCA_CTL_CM_NONE)
		src = ib_ip_any(r->dst.family);
	return ib_bind(op, id, &src, &r->src_service, 0);
}

/* The destination, if the bound id can have it. */
static int
resolve_dst(struct ib_op *op, struct ib_id *id, const struct hca_ctl_cm_resolve *r)
{
	struct hca_ctl_cm_addr dst = ib_ip_meant(&r->dst);

	if (id->src.family != dst.family)
		return ib_op_fail(
			op, -EINVAL,
			"id %u is bound to family %u, its destination is of family %u: bind it to "
			"that family, or not at all",
			id->number, id->src.family, dst.family);
	if (!resolve_own(op->cm, id->gid_index, &dst))
		return ib_op_fail(
			op, -EADDRNOTAVAIL,
			"the HCA has no address of family %u for the wildcard: resolve an address, "
			"or give the port one of the family",
			dst.family);
	if (dst.family == HCA_CTL_CM_IB) {
		id->dst_service = r->dst_service.id;
		dst.port = (uint16_t)id->dst_service;
	}
	id->dst = dst;
	return 0;
}

static void
resolve_begin(struct ib_op *op, struct ib_id *id, uint32_t timeout_ms)
{
	struct ibcm *cm = op->cm;
	struct ibcm_wish wish = {
		.owner = op->client->owner,
		.fixed = id->gid_index != HCA_CTL_CM_NO_GID,
		.gid_index = id->gid_index,
	};

	memcpy(wish.own, id->src.gid, sizeof(wish.own));
	memcpy(wish.dst, id->dst.gid, sizeof(wish.dst));
	wish.scope = id->dst.scope;
	id->ticket++;
	ib_id_state(id, HCA_CTL_CM_RESOLVING, op->now);
	ib_heap_set(&cm->timers, &id->timer,
		    op->now + (timeout_ms == 0 ? 1 : timeout_ms) * RESOLVE_MS);
	cm->cfg.ops->resolve(cm->cfg.arg, (uint64_t)id->number << 32 | id->ticket, &wish);
}

int
ib_resolve(struct ib_op *op, const struct hca_ctl_cm_resolve *request)
{
	struct ib_id *id = ib_id_get(op, request->id);
	bool was_idle;
	int err;

	if (id == NULL)
		return -ENOENT;
	was_idle = id->state == HCA_CTL_CM_IDLE;
	err = resolve_judge(op, id, request);
	if (err == 0)
		err = resolve_bind(op, id, request);
	if (err != 0)
		return err;
	err = resolve_dst(op, id, request);
	if (err == 0)
		resolve_begin(op, id, request->timeout_ms);
	else if (was_idle)
		ib_bind_undo(op, id);
	return err;
}

uint64_t
ib_resolve_service(const struct ib_id *id)
{
	if (id->c.passive || id->dst.family == HCA_CTL_CM_NONE)
		return 0;
	return id->dst.family == HCA_CTL_CM_IB ? id->dst_service
					       : ib_ip_service_id(id->space, id->dst.port);
}

static struct ib_id *
resolve_of_ticket(const struct ibcm *cm, uint64_t ticket)
{
	struct ib_id *id = ib_id_by_number(cm, (uint32_t)(ticket >> 32));

	return id != NULL && id->ticket == (uint32_t)ticket && id->state == HCA_CTL_CM_RESOLVING
		       ? id
		       : NULL;
}

static void
resolve_failed(struct ibcm *cm, struct ib_id *id, int err, uint64_t now)
{
	ib_id_state(id, HCA_CTL_CM_BOUND, now);
	ib_event_simple(cm, id, HCA_CTL_CM_EV_ADDR_ERROR, err);
}

void
ib_resolve_expired(struct ibcm *cm, struct ib_id *id, uint64_t now)
{
	resolve_failed(cm, id, -ETIMEDOUT, now);
}

void
ibcm_resolved(struct ibcm *cm, uint64_t ticket, int err, const struct ibcm_way *way, uint64_t now)
{
	struct ib_id *id = resolve_of_ticket(cm, ticket);

	if (id == NULL)
		return;
	ib_heap_stop(&cm->timers, &id->timer);
	if (err != 0) {
		resolve_failed(cm, id, err, now);
		return;
	}
	id->way = *way;
	id->has_way = true;
	memcpy(id->src.gid, way->own, sizeof(id->src.gid));
	id->gid_index = way->gid_index;
	ib_id_state(id, HCA_CTL_CM_RESOLVED, now);
	ib_event_simple(cm, id, HCA_CTL_CM_EV_ADDR_RESOLVED, 0);
}

int
ib_route(struct ib_op *op, const struct hca_ctl_cm_route *request)
{
	struct ib_id *id = ib_id_get(op, request->id);

	if (id == NULL)
		return -ENOENT;
	if (id->state != HCA_CTL_CM_RESOLVED)
		return ib_op_state(op, id, "resolve its address before its route");
	ib_id_state(id, HCA_CTL_CM_ROUTED, op->now);
	ib_event_simple(op->cm, id, HCA_CTL_CM_EV_ROUTE_RESOLVED, 0);
	return 0;
}
