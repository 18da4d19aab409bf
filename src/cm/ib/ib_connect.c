/* SPDX-License-Identifier: BSD-3-Clause */

/* Operations of programs on connections: connect, accept, establish, reject, disconnect. */

#include <errno.h>
#include <string.h>

#include "abi_cqe.h"
#include "abi_ctx.h"
#include "abi_roce.h"
#include "ib_impl.h"

/* Values of a REQ, as in Linux: 4.3 s, 15 repetitions, a packet lives at most 1.07 s */
#define CONNECT_TIMEOUT 20u
#define CONNECT_RETRIES 15u
#define CONNECT_LIFETIME 18u
#define CONNECT_LID 0xffffu
#define CONNECT_NUMBER_MASK 0xffffffu /* of a QPN, a PSN */
#define CONNECT_REP_PRIVATE IB_MAD_REP_PRIVATE

static uint32_t
connect_psn(struct ibcm *cm)
{
	return (uint32_t)cm->cfg.ops->random(cm->cfg.arg) & CONNECT_NUMBER_MASK;
}

static uint8_t
connect_retry(uint8_t count)
{
	return count < HCA_RETRY_MAX ? count : HCA_RETRY_MAX;
}

/* ---- the active end ---- */

static void
connect_begin(struct ibcm *cm, struct ib_id *id, const struct hca_ctl_cm_param *param)
{
	struct ib_connection *c = &id->c;

	memset(c, 0, sizeof(*c));
	ib_conn_number(cm, id);
	c->transaction = cm->cfg.ops->random(cm->cfg.arg);
	c->service_id = ib_resolve_service(id);
	c->local_qpn = param->qpn & CONNECT_NUMBER_MASK;
	c->local_psn = connect_psn(cm);
	c->transport = id->service;
	c->responder_resources = param->responder_resources;
	c->initiator_depth = param->initiator_depth;
	c->retry_count = connect_retry(param->retry_count);
	c->rnr_retry_count = connect_retry(param->rnr_retry_count);
	c->mtu = (uint8_t)cm->cfg.mtu;
	c->ack_timeout = id->has_ack_timeout ? id->ack_timeout
					     : ib_ack_timeout(cm->cfg.ack_delay, CONNECT_LIFETIME);
	c->own_timeout = c->peer_timeout = CONNECT_TIMEOUT;
	c->max_retries = CONNECT_RETRIES;
}

static void
connect_transport(const struct ib_id *id, struct ib_mad_req *req)
{
	req->transport = id->service == HCA_ST_RC   ? IB_MAD_RC
			 : id->service == HCA_ST_UC ? IB_MAD_UC
						    : IB_MAD_EXTENDED;
	req->extended_transport = req->transport == IB_MAD_EXTENDED ? IB_MAD_EXTENDED_XRC : 0;
}

static void
connect_path(const struct ib_id *id, struct ib_mad_req *req)
{
	req->primary_local_lid = req->primary_remote_lid = CONNECT_LID;
	memcpy(req->primary_local_gid, id->way.own, sizeof(req->primary_local_gid));
	memcpy(req->primary_remote_gid, id->way.peer, sizeof(req->primary_remote_gid));
	req->primary_traffic_class = id->tos;
	req->primary_hop_limit = id->way.hop_limit != 0 ? id->way.hop_limit : HCA_HOP_LIMIT;
	req->primary_ack_timeout = id->c.ack_timeout;
}

static struct ib_mad
connect_req(const struct ibcm *cm, const struct ib_id *id, const struct hca_ctl_cm_param *param)
{
	const struct ib_connection *c = &id->c;
	struct ib_mad mad = {.type = IB_MAD_REQ, .transaction = c->transaction};
	struct ib_mad_req *req = &mad.req;
	struct ib_ip ip = {.src = id->src, .dst = id->dst};
	uint32_t header = ib_ip_header(id->dst.family);

	req->local_comm = c->local_comm;
	req->service_id = c->service_id;
	req->ca_guid = cm->cfg.node_guid;
	req->qpn = c->local_qpn;
	req->responder_resources = c->responder_resources;
	req->initiator_depth = c->initiator_depth;
	req->remote_timeout = c->peer_timeout;
	req->local_timeout = c->own_timeout;
	req->flow_control = param->flow_control != 0;
	req->psn = c->local_psn;
	req->retry_count = c->retry_count;
	req->rnr_retry_count = c->rnr_retry_count;
	req->pkey = cm->cfg.pkey;
	req->mtu = c->mtu;
	req->max_retries = c->max_retries;
	req->srq = param->srq != 0;
	connect_transport(id, req);
	connect_path(id, req);
	if (header != 0)
		ib_ip_build(&ip, req->private);
	memcpy(req->private + header, param->private, param->private_len);
	return mad;
}

int
ib_connect(struct ib_op *op, const struct hca_ctl_cm_param *param)
{
	struct ib_id *id = ib_id_get(op, param->id);
	struct ib_mad mad;
	int err;

	if (id == NULL)
		return -ENOENT;
	if (id->state != HCA_CTL_CM_ROUTED)
		return ib_op_state(op, id,
				   "resolve its address, then its route, before it connects");
	if (id->service == HCA_ST_UD)
		return ib_sidr_connect(op, id, param);
	if (id->service == HCA_ST_XRC_TGT)
		return ib_op_fail(
			op, -EINVAL,
			"id %u is for an XRC_RECV QP, which accepts only: connect an id for an "
			"XRC_SEND QP",
			id->number);
	err = ib_op_private(op, param->private_len,
			    IB_MAD_REQ_PRIVATE - ib_ip_header(id->dst.family));
	if (err != 0)
		return err;
	connect_begin(op->cm, id, param);
	mad = connect_req(op->cm, id, param);
	ib_conn_phase(op->cm, id, IB_PHASE_REQ_SENT);
	ib_id_state(id, HCA_CTL_CM_CONNECTING, op->now);
	ib_conn_ask(op->cm, id, &mad, op->now);
	return 0;
}

/* ---- the passive end ---- */

static struct ib_mad
connect_rep(const struct ibcm *cm, const struct ib_id *id, const struct hca_ctl_cm_param *param)
{
	const struct ib_connection *c = &id->c;
	struct ib_mad mad = {.type = IB_MAD_REP, .transaction = c->transaction};
	struct ib_mad_rep *rep = &mad.rep;

	rep->local_comm = c->local_comm;
	rep->remote_comm = c->remote_comm;
	rep->psn = c->local_psn;
	rep->responder_resources = c->responder_resources;
	rep->ack_delay = cm->cfg.ack_delay;
	rep->rnr_retry_count = connect_retry(param->rnr_retry_count);
	rep->ca_guid = cm->cfg.node_guid;
	rep->srq = 1;
	if (id->service == HCA_ST_XRC_TGT) {
		rep->eecn = c->local_qpn;
	} else {
		rep->qpn = c->local_qpn;
		rep->initiator_depth = c->initiator_depth;
		rep->flow_control = param->flow_control != 0;
		rep->srq = param->srq != 0;
	}
	memcpy(rep->private, param->private, param->private_len);
	return mad;
}

static int
accept_request(struct ib_op *op, struct ib_id *id, const struct hca_ctl_cm_param *param)
{
	struct ib_connection *c = &id->c;
	struct ib_mad mad;
	int err = ib_op_private(op, param->private_len, CONNECT_REP_PRIVATE);

	if (err != 0)
		return err;
	c->local_qpn = param->qpn & CONNECT_NUMBER_MASK;
	c->responder_resources = param->responder_resources;
	c->initiator_depth = param->initiator_depth;
	mad = connect_rep(op->cm, id, param);
	ib_conn_phase(op->cm, id, IB_PHASE_REP_SENT);
	ib_id_state(id, HCA_CTL_CM_ACCEPTED, op->now);
	ib_conn_ask(op->cm, id, &mad, op->now);
	return 0;
}

void
ib_established(struct ibcm *cm, struct ib_id *id, bool tell, uint64_t now)
{
	ib_conn_phase(cm, id, IB_PHASE_ESTABLISHED);
	ib_id_state(id, HCA_CTL_CM_ESTABLISHED, now);
	cm->counters.opened++;
	if (tell)
		ib_event_simple(cm, id, HCA_CTL_CM_EV_ESTABLISHED, 0);
}

/* The program's QP is ready: the peer may send. */
static int
accept_establish(struct ib_op *op, struct ib_id *id)
{
	if (id->phase != IB_PHASE_REP_RCVD)
		return ib_op_state(op, id,
				   "it can be established once, after the event CONNECT_RESPONSE");
	ib_send_rtu(op->cm, id);
	ib_established(op->cm, id, false, op->now);
	return 0;
}

int
ib_accept(struct ib_op *op, const struct hca_ctl_cm_param *param)
{
	struct ib_id *id = ib_id_get(op, param->id);

	if (id == NULL)
		return -ENOENT;
	if (id->phase == IB_PHASE_SIDR_RCVD)
		return ib_sidr_answer(op, id, (uint8_t)param->sidr_status,
				      param->valid ? param : NULL);
	if (!param->valid)
		return accept_establish(op, id);
	if (id->phase != IB_PHASE_REQ_RCVD)
		return ib_op_state(
			op, id,
			"only an id that came with the event CONNECT_REQUEST accepts, and only "
			"once");
	return accept_request(op, id, param);
}

/* ---- both ---- */

static int
reject_sidr(struct ib_op *op, struct ib_id *id, const struct hca_ctl_cm_reject *request)
{
	struct hca_ctl_cm_param param = {.private_len = request->private_len};

	memcpy(param.private, request->private, sizeof(param.private));
	return ib_sidr_answer(op, id, IB_MAD_SIDR_REJECTED, &param);
}

int
ib_reject(struct ib_op *op, const struct hca_ctl_cm_reject *request)
{
	struct ib_id *id = ib_id_get(op, request->id);
	uint16_t reason = request->reason != 0 ? request->reason : IB_MAD_REASON_CONSUMER;
	int err;

	if (id == NULL)
		return -ENOENT;
	if (id->phase == IB_PHASE_SIDR_RCVD)
		return reject_sidr(op, id, request);
	if (id->phase != IB_PHASE_REQ_RCVD && id->phase != IB_PHASE_REP_RCVD)
		return ib_op_state(
			op, id,
			"reject answers the event CONNECT_REQUEST or CONNECT_RESPONSE, once");
	err = ib_op_private(op, request->private_len, IB_MAD_REJ_PRIVATE);
	if (err != 0)
		return err;
	if (id->phase == IB_PHASE_REQ_RCVD) {
		ib_conn_refuse(op->cm, id, reason, request->private, request->private_len, op->now);
	} else {
		ib_send_rej(op->cm, id, reason, request->private, request->private_len);
		ib_conn_timewait(op->cm, id, op->now);
	}
	ib_id_state(id, HCA_CTL_CM_ENDED, op->now);
	return 0;
}

int
ib_disconnect(struct ib_op *op, uint32_t number)
{
	struct ib_id *id = ib_id_get(op, number);

	if (id == NULL)
		return -ENOENT;
	if (id->state < HCA_CTL_CM_CONNECTING)
		return ib_op_state(op, id, "connect or accept comes before disconnect");
	if (id->phase == IB_PHASE_ESTABLISHED || id->phase == IB_PHASE_REP_SENT) {
		ib_conn_leave(op->cm, id, op->now);
		ib_id_state(id, HCA_CTL_CM_DISCONNECTING, op->now);
	} else if (id->phase == IB_PHASE_REP_RCVD) {
		ib_conn_leave(op->cm, id, op->now);
		ib_conn_over(op->cm, id, HCA_CTL_CM_EV_DISCONNECTED, 0, op->now);
	}
	return 0;
}

int
ib_notify(struct ib_op *op, const struct hca_ctl_cm_notify *request)
{
	struct ib_id *id = ib_id_get(op, request->id);

	if (id == NULL)
		return -ENOENT;
	if (request->event != HCA_EVENT_COMM_EST)
		return ib_op_fail(op, -EINVAL, "event %u: an id is notified of COMM_EST (%u) only",
				  request->event, HCA_EVENT_COMM_EST);
	if (id->phase == IB_PHASE_ESTABLISHED)
		return ib_op_fail(op, -EISCONN, "id %u is established: it needs no notification",
				  id->number);
	if (id->phase != IB_PHASE_REP_SENT)
		return ib_op_state(
			op, id,
			"only an id that has accepted, and waits for the peer, is notified");
	ib_established(op->cm, id, true, op->now);
	return 0;
}
