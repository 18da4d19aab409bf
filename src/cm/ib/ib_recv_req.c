/* SPDX-License-Identifier: BSD-3-Clause */

/* REQ: duplicates, stale connections, requests that this end cannot serve, and new requests. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi_ctx.h"
#include "ib_impl.h"

static void
req_reject(const struct ib_in *in, uint16_t reason, const void *info, uint32_t len)
{
	ib_send_rej_of(in->cm, in->from, in->mad->transaction, 0, in->mad->req.local_comm,
		       IB_MAD_OF_REQ, reason, info, len);
}

/* It is answered from the state of the connection that it has begun. */
static void
req_again(const struct ib_in *in, struct ib_id *id)
{
	in->cm->counters.duplicates++;
	ib_conn_follow(id, in->from);
	switch (id->phase) {
	case IB_PHASE_REQ_RCVD:
		ib_send_mra(in->cm, id);
		break;
	case IB_PHASE_REP_SENT:
	case IB_PHASE_REFUSED:
		ib_conn_repeat(in->cm, id);
		break;
	case IB_PHASE_DREQ_SENT:
		if (id->c.leaving)
			req_reject(in, IB_MAD_REASON_CONSUMER, NULL, 0);
		break;
	case IB_PHASE_TIMEWAIT:
		req_reject(in, IB_MAD_REASON_STALE, NULL, 0);
		break;
	default:
		break;
	}
}

/*
 * The peer uses the QP of a connection for another one, so it has lost that one: it ends here, and
 * the peer has to begin again.
 */
static void
req_stale(const struct ib_in *in, struct ib_id *old)
{
	in->cm->counters.stale++;
	req_reject(in, IB_MAD_REASON_STALE, NULL, 0);
	if (old->phase != IB_PHASE_ESTABLISHED)
		return;
	ib_conn_dreq(in->cm, old, in->now);
	if (old->number != 0)
		ib_id_state(old, HCA_CTL_CM_DISCONNECTING, in->now);
}

/* It has begun again before this one was established, or after it was ended: that one is over. */
static bool
req_replaces(const struct ib_in *in, struct ib_id *old)
{
	struct ibcm *cm = in->cm;

	switch (old->phase) {
	case IB_PHASE_REQ_RCVD:
	case IB_PHASE_REP_SENT:
		ib_request_gone(cm, old, HCA_CTL_CM_EV_REJECTED, IB_MAD_REASON_STALE, in->now);
		return true;
	default:
		return ib_conn_forgotten(cm, old, in->now);
	}
}

static uint8_t
req_service(const struct ib_mad_req *req)
{
	static const uint8_t service[] =
		{[IB_MAD_RC] = HCA_ST_RC, [IB_MAD_UC] = HCA_ST_UC, [IB_MAD_RD] = HCA_ST_RD};

	if (req->transport != IB_MAD_EXTENDED)
		return service[req->transport];
	return req->extended_transport == IB_MAD_EXTENDED_XRC ? HCA_ST_XRC_TGT : HCA_ST_RD;
}

/* Reason why no listener can take it; 0: none. *info has a byte for the peer. */
static uint16_t
req_judge(const struct ib_in *in, uint8_t *info)
{
	const struct ib_mad_req *req = &in->mad->req;

	if (memcmp(req->primary_local_gid, in->from->peer, 16) != 0 ||
	    memcmp(req->primary_remote_gid, in->from->own, 16) != 0)
		return IB_MAD_REASON_GID;
	if (!ib_request_pkey_is_good(in->cm, req->pkey))
		return IB_MAD_REASON_UNSUPPORTED;
	*info = (uint8_t)in->cm->cfg.mtu;
	if (req->mtu < 1 || req->mtu > HCA_MTU_MAX || req->mtu > in->cm->cfg.mtu)
		return IB_MAD_REASON_MTU;
	return 0;
}

static void
req_learn(struct ibcm *cm, struct ib_id *id, const struct ib_mad_req *req)
{
	struct ib_connection *c = &id->c;

	ib_conn_number(cm, id);
	c->remote_comm = req->local_comm;
	c->remote_guid = req->ca_guid;
	c->service_id = req->service_id;
	c->remote_qpn = req->qpn;
	c->remote_psn = req->psn;
	c->local_psn = (uint32_t)cm->cfg.ops->random(cm->cfg.arg) & 0xffffff;
	c->transport = id->service;
	c->responder_resources = req->initiator_depth;
	c->initiator_depth = req->responder_resources;
	c->retry_count = req->retry_count;
	c->rnr_retry_count = req->rnr_retry_count;
	c->mtu = req->mtu;
	c->ack_timeout = id->has_ack_timeout ? id->ack_timeout : req->primary_ack_timeout;
	id->way.traffic_class = req->primary_traffic_class;
	c->own_timeout = req->remote_timeout;
	c->peer_timeout = req->local_timeout;
	c->max_retries = req->max_retries;
	ib_conn_know_remote(cm, id);
}

static void
req_fill(struct ib_event *e, const struct ib_mad_req *req, uint32_t header)
{
	struct hca_ctl_cm_param *p = &e->event.param;

	p->qpn = req->qpn;
	p->qkey = req->qkey;
	p->srq = req->srq;
	p->responder_resources = req->initiator_depth;
	p->initiator_depth = req->responder_resources;
	p->flow_control = req->flow_control;
	p->retry_count = req->retry_count;
	p->rnr_retry_count = req->rnr_retry_count;
	p->private_len = (uint8_t)(IB_MAD_REQ_PRIVATE - header);
	p->valid = 1;
	memcpy(p->private, req->private + header, IB_MAD_REQ_PRIVATE - header);
}

static void
req_begin(const struct ib_in *in, struct ib_id *id, struct ib_event *e)
{
	req_learn(in->cm, id, &in->mad->req);
	ib_conn_await_program(in->cm, id, in->now);
	req_fill(e, &in->mad->req, ib_ip_header(id->src.family));
}

enum ib_drop
ib_recv_req(const struct ib_in *in)
{
	const struct ib_mad_req *req = &in->mad->req;
	struct ib_id *old =
		ib_conn_of_remote(in->cm, in->from->peer, req->ca_guid, req->local_comm);
	struct ib_id *listener;
	struct ib_ip ip;
	uint8_t info = 0;
	uint16_t reason;

	if (old != NULL) {
		req_again(in, old);
		return IB_DROP_NONE;
	}
	old = ib_conn_of_qpn(in->cm, in->from->peer, req->ca_guid, req->qpn);
	if (old != NULL && !req_replaces(in, old)) {
		req_stale(in, old);
		return IB_DROP_NONE;
	}
	reason = req_judge(in, &info);
	listener = reason != 0 ? NULL : ib_request_listener(in, req->service_id, req->private, &ip);
	if (reason == 0 && (listener == NULL || listener->service == HCA_ST_UD))
		reason = IB_MAD_REASON_SERVICE_ID;
	else if (reason == 0 && listener->service != req_service(req))
		reason = IB_MAD_REASON_TRANSPORT;
	if (reason != 0) {
		req_reject(in, reason, &info, reason == IB_MAD_REASON_MTU ? 1 : 0);
		return IB_DROP_NONE;
	}
	return ib_request_take(in, listener, &ip, IB_PHASE_REQ_RCVD, req_begin);
}
