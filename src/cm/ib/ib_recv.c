/* SPDX-License-Identifier: BSD-3-Clause */

/* Messages that come: which function takes them, and those about connections that exist. */

#include <errno.h>
#include <string.h>

#include "ib_impl.h"

#define TAKE_TYPE(NAME, name, attribute) ib_recv_##name,

void
ibcm_input(struct ibcm *cm, const struct ibcm_way *from, const uint8_t *mad, size_t len,
	   uint64_t now)
{
	static enum ib_drop (*const take[IB_MAD_TYPES])(const struct ib_in *in) = {
		IB_MAD_LIST(TAKE_TYPE)};
	struct ib_mad parsed;
	struct ib_in in = {.cm = cm, .from = from, .mad = &parsed, .now = now};
	enum ib_mad_fault fault = ib_mad_parse(mad, len, &parsed);
	enum ib_drop drop;

	cm->counters.received++;
	if (fault != IB_MAD_GOOD) {
		cm->counters.fault[fault]++;
		return;
	}
	drop = cm->dead ? IB_DROP_unknown : take[parsed.type](&in);
	if (drop == IB_DROP_NONE)
		cm->counters.handled[parsed.type]++;
	else
		cm->counters.drop[drop]++;
}

enum ib_drop
ib_recv_find(const struct ib_in *in, uint32_t local_comm, struct ib_id **id)
{
	*id = ib_conn_find(in->cm, local_comm);
	if (*id == NULL)
		return IB_DROP_unknown;
	if (memcmp((*id)->way.own, in->from->own, sizeof(in->from->own)) != 0 ||
	    memcmp((*id)->way.peer, in->from->peer, sizeof(in->from->peer)) != 0) {
		*id = NULL;
		return IB_DROP_address;
	}
	return IB_DROP_NONE;
}

/* Both ends' numbers fit; while this end has not got the peer's, any does. */
static enum ib_drop
recv_find_pair(const struct ib_in *in, uint32_t local_comm, uint32_t remote_comm, struct ib_id **id)
{
	enum ib_drop drop = ib_recv_find(in, local_comm, id);

	if (drop != IB_DROP_NONE)
		return drop;
	if ((*id)->c.remote_comm != 0 && (*id)->c.remote_comm != remote_comm)
		return IB_DROP_unknown;
	ib_conn_follow(*id, in->from);
	return IB_DROP_NONE;
}

static enum ib_drop
recv_duplicate(const struct ib_in *in)
{
	in->cm->counters.duplicates++;
	return IB_DROP_NONE;
}

/* ---- REP, RTU, MRA ---- */

static void
rep_learn(struct ibcm *cm, struct ib_id *id, const struct ib_mad_rep *rep, uint32_t qpn)
{
	struct ib_connection *c = &id->c;

	c->remote_comm = rep->local_comm;
	c->remote_guid = rep->ca_guid;
	c->remote_qpn = qpn;
	c->remote_psn = rep->psn;
	c->initiator_depth = rep->responder_resources;
	c->responder_resources = rep->initiator_depth;
	c->rnr_retry_count = rep->rnr_retry_count;
	if (!id->has_ack_timeout)
		c->ack_timeout = ib_ack_timeout(rep->ack_delay, (uint8_t)(c->ack_timeout - 1));
	ib_conn_know_remote(cm, id);
}

static void
rep_tell(struct ibcm *cm, struct ib_id *id, const struct ib_mad_rep *rep)
{
	struct ib_event *e = ib_event_new(cm, id, HCA_CTL_CM_EV_CONNECT_RESPONSE, 0);

	if (e == NULL)
		return;
	e->event.param = (struct hca_ctl_cm_param){
		.id = id->number,
		.qpn = id->c.remote_qpn,
		.srq = rep->srq,
		.responder_resources = rep->initiator_depth,
		.initiator_depth = rep->responder_resources,
		.flow_control = rep->flow_control,
		.rnr_retry_count = rep->rnr_retry_count,
		.private_len = IB_MAD_REP_PRIVATE,
		.valid = 1,
	};
	memcpy(e->event.param.private, rep->private, IB_MAD_REP_PRIVATE);
	ib_event_post(cm, e);
}

/* The peer's QP is in a connection already, which the peer has lost. */
static bool
rep_is_stale(const struct ib_in *in, uint32_t qpn)
{
	struct ib_id *old = ib_conn_of_qpn(in->cm, in->from->peer, in->mad->rep.ca_guid, qpn);

	if (old == NULL || ib_conn_forgotten(in->cm, old, in->now))
		return false;
	in->cm->counters.stale++;
	ib_send_rej_of(in->cm, in->from, in->mad->transaction, in->mad->rep.remote_comm,
		       in->mad->rep.local_comm, IB_MAD_OF_REP, IB_MAD_REASON_STALE, NULL, 0);
	if (old->phase == IB_PHASE_ESTABLISHED) {
		ib_conn_dreq(in->cm, old, in->now);
		ib_id_state(old, HCA_CTL_CM_DISCONNECTING, in->now);
	}
	return true;
}

static enum ib_drop
rep_again(const struct ib_in *in, struct ib_id *id)
{
	if (id->phase == IB_PHASE_REP_RCVD)
		ib_send_mra(in->cm, id);
	else if (id->phase == IB_PHASE_ESTABLISHED && !id->c.passive)
		ib_send_rtu(in->cm, id);
	else if (id->phase == IB_PHASE_DREQ_SENT)
		ib_conn_repeat(in->cm, id);
	else
		return IB_DROP_state;
	return recv_duplicate(in);
}

enum ib_drop
ib_recv_rep(const struct ib_in *in)
{
	const struct ib_mad_rep *rep = &in->mad->rep;
	struct ib_id *id;
	enum ib_drop drop = recv_find_pair(in, rep->remote_comm, rep->local_comm, &id);
	uint32_t qpn;

	if (drop == IB_DROP_address)
		return drop;
	if (drop != IB_DROP_NONE) {
		ib_send_rej_of(in->cm, in->from, in->mad->transaction, rep->remote_comm,
			       rep->local_comm, IB_MAD_OF_REP, IB_MAD_REASON_COMM_ID, NULL, 0);
		return drop;
	}
	if (id->phase != IB_PHASE_REQ_SENT)
		return rep_again(in, id);
	qpn = id->service == HCA_ST_XRC_INI ? rep->eecn : rep->qpn;
	if (rep_is_stale(in, qpn))
		return IB_DROP_NONE;
	rep_learn(in->cm, id, rep, qpn);
	ib_conn_phase(in->cm, id, IB_PHASE_REP_RCVD);
	ib_id_state(id, HCA_CTL_CM_ANSWERED, in->now);
	ib_conn_await_program(in->cm, id, in->now);
	rep_tell(in->cm, id, rep);
	return IB_DROP_NONE;
}

enum ib_drop
ib_recv_rtu(const struct ib_in *in)
{
	const struct ib_mad_rtu *rtu = &in->mad->rtu;
	struct ib_id *id;
	enum ib_drop drop = recv_find_pair(in, rtu->remote_comm, rtu->local_comm, &id);

	if (drop != IB_DROP_NONE)
		return drop;
	if (id->phase == IB_PHASE_ESTABLISHED)
		return recv_duplicate(in);
	if (id->phase != IB_PHASE_REP_SENT)
		return IB_DROP_state;
	ib_established(in->cm, id, true, in->now);
	return IB_DROP_NONE;
}

enum ib_drop
ib_recv_mra(const struct ib_in *in)
{
	const struct ib_mad_mra *mra = &in->mad->mra;
	struct ib_id *id;
	enum ib_drop drop = recv_find_pair(in, mra->remote_comm, mra->local_comm, &id);

	if (drop != IB_DROP_NONE)
		return drop;
	if (!(id->phase == IB_PHASE_REQ_SENT && mra->message == IB_MAD_OF_REQ) &&
	    !(id->phase == IB_PHASE_REP_SENT && mra->message == IB_MAD_OF_REP))
		return IB_DROP_state;
	ib_conn_extend(in->cm, id, mra->service_timeout, in->now);
	return IB_DROP_NONE;
}

/* ---- REJ ---- */

static enum ib_drop
rej_find(const struct ib_in *in, struct ib_id **id)
{
	const struct ib_mad_rej *rej = &in->mad->rej;

	if (rej->reason == IB_MAD_REASON_TIMEOUT && rej->info_len >= 8) {
		*id = ib_conn_of_remote(in->cm, in->from->peer, hca_get_be64(rej->info),
					rej->local_comm);
		if (*id != NULL)
			return IB_DROP_NONE;
	}
	return recv_find_pair(in, rej->remote_comm, rej->local_comm, id);
}

static void
rej_tell(struct ibcm *cm, struct ib_id *id, const struct ib_mad_rej *rej, uint64_t now)
{
	struct ib_event *e = ib_event_new(cm, id, HCA_CTL_CM_EV_REJECTED, rej->reason);

	if (e == NULL)
		return;
	ib_id_state(id, HCA_CTL_CM_ENDED, now);
	e->event.param.id = id->number;
	e->event.param.private_len = IB_MAD_REJ_PRIVATE;
	memcpy(e->event.param.private, rej->private, IB_MAD_REJ_PRIVATE);
	ib_event_post(cm, e);
}

/* The port of the peer has a smaller MTU, which it names: ask again with that. */
static bool
rej_asks_again(const struct ib_in *in, struct ib_id *id)
{
	const struct ib_mad_rej *rej = &in->mad->rej;
	struct ib_mad req;

	if (id->phase != IB_PHASE_REQ_SENT || rej->reason != IB_MAD_REASON_MTU ||
	    rej->info_len < 1 || rej->info[0] < 1 || rej->info[0] >= id->c.mtu ||
	    ib_mad_parse(id->c.mad, sizeof(id->c.mad), &req) != IB_MAD_GOOD)
		return false;
	id->c.mtu = req.req.mtu = rej->info[0];
	ib_conn_ask(in->cm, id, &req, in->now);
	return true;
}

enum ib_drop
ib_recv_rej(const struct ib_in *in)
{
	const struct ib_mad_rej *rej = &in->mad->rej;
	struct ib_id *id;
	enum ib_drop drop = rej_find(in, &id);

	if (drop != IB_DROP_NONE || rej_asks_again(in, id))
		return drop;
	switch (id->phase) {
	case IB_PHASE_REQ_SENT:
	case IB_PHASE_REP_SENT:
		rej_tell(in->cm, id, rej, in->now);
		ib_conn_end(in->cm, id);
		break;
	case IB_PHASE_REQ_RCVD:
		ib_request_gone(in->cm, id, HCA_CTL_CM_EV_REJECTED, rej->reason, in->now);
		break;
	case IB_PHASE_REP_RCVD:
		rej_tell(in->cm, id, rej, in->now);
		ib_conn_timewait(in->cm, id, in->now);
		break;
	case IB_PHASE_ESTABLISHED:
		/* of the REQ: a late one, the peer has answered otherwise since */
		if (rej->message == IB_MAD_OF_REQ)
			return IB_DROP_state;
		ib_conn_over(in->cm, id, HCA_CTL_CM_EV_DISCONNECTED, 0, in->now);
		ib_conn_timewait(in->cm, id, in->now);
		break;
	case IB_PHASE_DREQ_SENT:
		if (id->state == HCA_CTL_CM_DISCONNECTING)
			ib_conn_over(in->cm, id, HCA_CTL_CM_EV_DISCONNECTED, 0, in->now);
		ib_conn_timewait(in->cm, id, in->now);
		break;
	default:
		return IB_DROP_state;
	}
	return IB_DROP_NONE;
}

/* ---- DREQ, DREP ---- */

static void
dreq_ends(const struct ib_in *in, struct ib_id *id)
{
	struct ibcm *cm = in->cm;

	/* the peer was established, so this end also was */
	if (id->phase == IB_PHASE_REP_SENT)
		ib_established(cm, id, true, in->now);
	if (id->phase == IB_PHASE_REQ_SENT) {
		ib_conn_over(cm, id, HCA_CTL_CM_EV_REJECTED, IB_MAD_REASON_CONSUMER, in->now);
		ib_conn_end(cm, id);
		return;
	}
	if (id->phase != IB_PHASE_DREQ_SENT || id->state == HCA_CTL_CM_DISCONNECTING)
		ib_conn_over(cm, id, HCA_CTL_CM_EV_DISCONNECTED, 0, in->now);
	ib_conn_timewait(cm, id, in->now);
}

enum ib_drop
ib_recv_dreq(const struct ib_in *in)
{
	const struct ib_mad_dreq *dreq = &in->mad->dreq;
	struct ib_id *id;
	enum ib_drop drop = recv_find_pair(in, dreq->remote_comm, dreq->local_comm, &id);

	if (drop == IB_DROP_address)
		return drop;
	if (drop == IB_DROP_unknown) {
		/* its end is over here: the peer need not repeat it */
		ib_send_drep(in->cm, in->from, in->mad->transaction, dreq->remote_comm,
			     dreq->local_comm);
		return recv_duplicate(in);
	}
	if (dreq->remote_qpn != id->c.local_qpn)
		return IB_DROP_qpn;
	if (id->phase == IB_PHASE_REQ_RCVD || id->phase == IB_PHASE_REFUSED ||
	    id->phase == IB_PHASE_SIDR_SENT)
		return IB_DROP_state;
	ib_send_drep(in->cm, in->from, in->mad->transaction, id->c.local_comm, dreq->local_comm);
	if (id->phase == IB_PHASE_TIMEWAIT)
		return recv_duplicate(in);
	dreq_ends(in, id);
	return IB_DROP_NONE;
}

enum ib_drop
ib_recv_drep(const struct ib_in *in)
{
	const struct ib_mad_drep *drep = &in->mad->drep;
	struct ib_id *id;
	enum ib_drop drop = recv_find_pair(in, drep->remote_comm, drep->local_comm, &id);

	if (drop != IB_DROP_NONE)
		return drop;
	if (id->phase == IB_PHASE_TIMEWAIT)
		return recv_duplicate(in);
	if (id->phase != IB_PHASE_DREQ_SENT)
		return IB_DROP_state;
	if (id->state == HCA_CTL_CM_DISCONNECTING)
		ib_conn_over(in->cm, id, HCA_CTL_CM_EV_DISCONNECTED, 0, in->now);
	ib_conn_timewait(in->cm, id, in->now);
	return IB_DROP_NONE;
}

/* ---- LAP, APR: RoCE has no alternate paths in Linux, and programs no call for them ---- */

enum ib_drop
ib_recv_lap(const struct ib_in *in)
{
	const struct ib_mad_lap *lap = &in->mad->lap;
	struct ib_mad apr = {
		.type = IB_MAD_APR,
		.transaction = in->mad->transaction,
		.apr = {.local_comm = lap->remote_comm,
			.remote_comm = lap->local_comm,
			.status = IB_MAD_APR_UNSUPPORTED},
	};
	struct ib_id *id;
	enum ib_drop drop = recv_find_pair(in, lap->remote_comm, lap->local_comm, &id);

	if (drop == IB_DROP_address)
		return drop;
	if (drop == IB_DROP_unknown || id->phase != IB_PHASE_ESTABLISHED)
		apr.apr.status = IB_MAD_APR_COMM_ID;
	ib_send(in->cm, in->from, &apr);
	return IB_DROP_NONE;
}

enum ib_drop
ib_recv_apr(const struct ib_in *in)
{
	(void)in;
	return IB_DROP_service; /* this end sends no LAP */
}
