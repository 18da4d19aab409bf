/* SPDX-License-Identifier: BSD-3-Clause */

/* Requests of peers, REQ and SIDR_REQ, at listeners: a new id of the listener's client each. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ib_impl.h"

#define REQUEST_PKEY_MASK 0x7fffu /* without the bit of membership */

static void
request_evict(struct ibcm *cm, struct ib_id *oldest, uint64_t now)
{
	cm->counters.evicted++;
	ib_request_gone(cm, oldest, HCA_CTL_CM_EV_UNREACHABLE, -ECONNABORTED, now);
}

/*
 * Room at the listener, among the halves and among the ids of the client. A new request that is
 * dropped ends no other one.
 */
static enum ib_drop
request_room(const struct ib_in *in, struct ib_id *listener)
{
	struct ib_id *oldest = ib_wait_victim(in->cm, listener, in->from->peer);
	uint32_t user = listener->account->client.user;
	bool full = listener->waiting >= listener->backlog;

	if ((full && oldest == NULL) || !ib_half_may(in->cm, in->from->peer, user))
		return IB_DROP_backlog;
	full = full || !ib_account_may(in->cm, listener->account);
	if (full && oldest == NULL) {
		in->cm->counters.refused_limit++;
		return IB_DROP_backlog;
	}
	if (full)
		request_evict(in->cm, oldest, in->now); /* its id is free for the new one */
	return ib_half_room(in->cm, in->from->peer, user, in->now) ? IB_DROP_NONE : IB_DROP_backlog;
}

bool
ib_request_pkey_is_good(const struct ibcm *cm, uint16_t pkey)
{
	return (pkey & REQUEST_PKEY_MASK) == (cm->cfg.pkey & REQUEST_PKEY_MASK);
}

/* The addresses of the datagram */
static struct ib_ip
request_gids(const struct ib_in *in, uint16_t port)
{
	struct ib_ip ip = {.src = ib_ip_any(HCA_CTL_CM_IB), .dst = ib_ip_any(HCA_CTL_CM_IB)};

	memcpy(ip.src.gid, in->from->peer, sizeof(ip.src.gid));
	memcpy(ip.dst.gid, in->from->own, sizeof(ip.dst.gid));
	ip.dst.port = port;
	return ip;
}

struct ib_id *
ib_request_listener(const struct ib_in *in, uint64_t service_id, const uint8_t *private,
		    struct ib_ip *ip)
{
	struct ib_id *listener = NULL;
	uint32_t space;
	uint16_t port;

	if (!ib_ip_service(service_id, &space, &port))
		return NULL;
	if (ib_ip_parse(private, ip) &&
	    memcmp(ip->dst.gid, in->from->own, sizeof(ip->dst.gid)) == 0) {
		ip->dst.port = port;
		listener = ib_bind_listener(in->cm, space, &ip->dst);
	}
	if (listener != NULL)
		return listener;
	*ip = request_gids(in, port);
	return ib_bind_listener(in->cm, space, &ip->dst);
}

static struct ib_id *
request_new(const struct ib_in *in, struct ib_id *listener, const struct ib_ip *ip,
	    enum ib_phase phase, enum ib_drop *drop)
{
	struct ib_id *id;

	*drop = request_room(in, listener);
	if (*drop != IB_DROP_NONE)
		return NULL;
	*drop = IB_DROP_memory;
	id = ib_id_new(in->cm, listener->account, listener->channel, in->now);
	if (id == NULL)
		return NULL;
	ib_half_add(in->cm, id, in->from->peer);
	if (!ib_wait_add(in->cm, listener, id, in->from->peer)) {
		ib_half_drop(in->cm, id);
		ib_id_orphan(in->cm, id);
		return NULL;
	}
	id->space = listener->space;
	id->port_space = listener->port_space;
	id->service = listener->service;
	id->tos = listener->tos;
	id->src = ip->dst;
	id->dst = ip->src;
	id->way = *in->from;
	id->has_way = true;
	id->gid_index = in->from->gid_index;
	id->has_ack_timeout = listener->has_ack_timeout;
	id->ack_timeout = listener->ack_timeout;
	id->phase = phase;
	id->c.passive = true;
	id->c.transaction = in->mad->transaction;
	ib_id_state(id, HCA_CTL_CM_REQUESTED, in->now);
	return id;
}

enum ib_drop
ib_request_take(const struct ib_in *in, struct ib_id *listener, const struct ib_ip *ip,
		enum ib_phase phase,
		void (*begin)(const struct ib_in *in, struct ib_id *id, struct ib_event *e))
{
	enum ib_drop drop;
	struct ib_id *id = request_new(in, listener, ip, phase, &drop);
	struct ib_event *e;

	if (id == NULL)
		return drop;
	e = ib_event_new(in->cm, id, HCA_CTL_CM_EV_CONNECT_REQUEST, 0);
	if (e == NULL) {
		ib_request_gone(in->cm, id, 0, 0, in->now);
		return IB_DROP_memory;
	}
	begin(in, id, e);
	e->event.param.id = id->number;
	e->event.listener = listener->number;
	ib_event_post(in->cm, e);
	return IB_DROP_NONE;
}

void
ib_request_gone(struct ibcm *cm, struct ib_id *id, uint32_t type, int32_t status, uint64_t now)
{
	if (id->number == 0) {
		ib_conn_end(cm, id);
		return;
	}
	if (id->listener != NULL) {
		ib_conn_end(cm, id);
		ib_id_orphan(cm, id); /* nothing is left of it: free */
		return;
	}
	if (id->phase == IB_PHASE_REQ_RCVD || id->phase == IB_PHASE_REP_SENT ||
	    id->phase == IB_PHASE_SIDR_RCVD)
		ib_conn_over(cm, id, type, status, now);
	ib_conn_end(cm, id);
}
