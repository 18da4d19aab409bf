/* SPDX-License-Identifier: BSD-3-Clause */

/* Requests of peers, REQ and SIDR_REQ, at listeners: a new id of the listener's client each. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ib_impl.h"

#define REQUEST_PKEY_MASK 0x7fffu /* without the bit of membership */

/*
 * A full backlog: the oldest request of the address with the most halves gives way, unless this is
 * the new one's. false: the new one has to.
 */
static bool
request_gives_way(struct ibcm *cm, struct ib_id *listener, const uint8_t gid[16], uint64_t now)
{
	struct ib_id *worst = NULL;

	for (struct ib_node *n = listener->requests.next; n != &listener->requests; n = n->next) {
		struct ib_id *id = IB_CONTAINER(n, struct ib_id, in_listener);

		if (id->half != NULL && (worst == NULL || id->half->count > worst->half->count))
			worst = id;
	}
	if (worst == NULL ||
	    worst->half->count <= ib_half_count(cm, gid, listener->account->client.user))
		return false;
	cm->counters.evicted++;
	ib_request_gone(cm, worst, HCA_CTL_CM_EV_UNREACHABLE, -ECONNABORTED, now);
	return true;
}

static enum ib_drop
request_room(const struct ib_in *in, struct ib_id *listener)
{
	struct ibcm *cm = in->cm;

	if (listener->waiting >= listener->backlog &&
	    !request_gives_way(cm, listener, in->from->peer, in->now))
		return IB_DROP_backlog;
	if (!ib_half_room(cm, in->from->peer, listener->account->client.user, in->now))
		return IB_DROP_backlog;
	if (!ib_account_may(cm, listener->account)) {
		cm->counters.refused_limit++;
		return IB_DROP_backlog;
	}
	return IB_DROP_NONE;
}

bool
ib_request_pkey_is_good(const struct ibcm *cm, uint16_t pkey)
{
	return (pkey & REQUEST_PKEY_MASK) == (cm->cfg.pkey & REQUEST_PKEY_MASK);
}

struct ib_id *
ib_request_new(const struct ib_in *in, struct ib_id *listener, const struct ib_ip *ip,
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
	if (!ib_half_add(in->cm, id, in->from->peer)) {
		ib_id_orphan(in->cm, id);
		return NULL;
	}
	id->space = listener->space;
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
	id->listener = listener;
	ib_node_push(&listener->requests, &id->in_listener);
	listener->waiting++;
	ib_id_state(id, HCA_CTL_CM_REQUESTED, in->now);
	return id;
}

void
ib_request_post(struct ibcm *cm, struct ib_id *id, struct ib_event *event)
{
	event->event.listener = id->listener->number;
	ib_event_post(cm, event);
}

void
ib_request_fetched(struct ib_id *id)
{
	if (id->listener == NULL)
		return;
	id->listener->waiting--;
	id->listener = NULL;
	ib_node_pull(&id->in_listener);
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
