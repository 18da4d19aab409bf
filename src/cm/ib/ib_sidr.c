/* SPDX-License-Identifier: BSD-3-Clause */

/* Datagrams: a SIDR_REQ asks a service for its QP, a SIDR_REP tells it. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi_ctx.h"
#include "ib_impl.h"

#define SIDR_TIMEOUT 20u
#define SIDR_RETRIES 15u
#define SIDR_QKEY 0x01234567u

static uint32_t
sidr_qkey(uint32_t qkey)
{
	return qkey != 0 ? qkey : SIDR_QKEY;
}

int
ib_sidr_connect(struct ib_op *op, struct ib_id *id, const struct hca_ctl_cm_param *param)
{
	struct ibcm *cm = op->cm;
	struct ib_ip ip = {.src = id->src, .dst = id->dst};
	uint32_t header = ib_ip_header(id->dst.family);
	struct ib_mad mad = {.type = IB_MAD_SIDR_REQ,
			     .transaction = cm->cfg.ops->random(cm->cfg.arg)};
	int err = ib_op_private(op, param->private_len, IB_MAD_SIDR_REQ_PRIVATE - header);

	if (err != 0)
		return err;
	memset(&id->c, 0, sizeof(id->c));
	ib_conn_number(cm, id);
	id->c.service_id = ib_resolve_service(id);
	id->c.local_qpn = param->qpn;
	id->c.peer_timeout = SIDR_TIMEOUT;
	id->c.max_retries = SIDR_RETRIES;
	mad.sidr_req.request = id->c.local_comm;
	mad.sidr_req.pkey = cm->cfg.pkey;
	mad.sidr_req.service_id = id->c.service_id;
	if (header != 0)
		ib_ip_build(&ip, mad.sidr_req.private);
	memcpy(mad.sidr_req.private + header, param->private, param->private_len);
	ib_conn_phase(cm, id, IB_PHASE_SIDR_SENT);
	ib_id_state(id, HCA_CTL_CM_CONNECTING, op->now);
	ib_conn_ask(cm, id, &mad, op->now);
	return 0;
}

/* Kept for repetitions of the request, as long as the id or the time for them lasts. */
int
ib_sidr_answer(struct ib_op *op, struct ib_id *id, uint8_t status,
	       const struct hca_ctl_cm_param *param)
{
	struct ibcm *cm = op->cm;
	struct ib_mad mad = {
		.type = IB_MAD_SIDR_REP,
		.transaction = id->c.transaction,
		.sidr_rep = {.request = id->c.remote_comm,
			     .status = status,
			     .service_id = id->c.service_id},
	};
	int err =
		param == NULL ? 0 : ib_op_private(op, param->private_len, IB_MAD_SIDR_REP_PRIVATE);

	if (err != 0)
		return err;
	if (param != NULL && status == IB_MAD_SIDR_OK) {
		mad.sidr_rep.qpn = param->qpn;
		mad.sidr_rep.qkey = id->qkey = sidr_qkey(param->qkey);
	}
	if (param != NULL)
		memcpy(mad.sidr_rep.private, param->private, param->private_len);
	ib_mad_build(&mad, id->c.mad);
	ib_send_bytes(cm, &id->way, IB_MAD_SIDR_REP, id->c.mad);
	ib_conn_phase(cm, id, IB_PHASE_SIDR_DONE);
	ib_half_hold(id);
	ib_heap_set(&cm->timers, &id->timer, op->now + 2 * ib_time(SIDR_TIMEOUT));
	ib_id_state(id, status == IB_MAD_SIDR_OK ? HCA_CTL_CM_ESTABLISHED : HCA_CTL_CM_ENDED,
		    op->now);
	return 0;
}

/* ---- the passive end ---- */

static void
sidr_refuse(const struct ib_in *in, uint8_t status)
{
	struct ib_mad mad = {
		.type = IB_MAD_SIDR_REP,
		.transaction = in->mad->transaction,
		.sidr_rep = {.request = in->mad->sidr_req.request,
			     .status = status,
			     .service_id = in->mad->sidr_req.service_id},
	};

	ib_send(in->cm, in->from, &mad);
}

static struct ib_id *
sidr_listener(const struct ib_in *in, struct ib_ip *ip)
{
	const struct ib_mad_sidr_req *req = &in->mad->sidr_req;
	struct ib_id *id = ib_request_listener(in, req->service_id, req->private, ip);

	return id != NULL && id->service == HCA_ST_UD ? id : NULL;
}

static void
sidr_begin(const struct ib_in *in, struct ib_id *id, struct ib_event *e)
{
	const struct ib_mad_sidr_req *req = &in->mad->sidr_req;
	uint32_t header = ib_ip_header(id->src.family);

	id->c.remote_comm = req->request;
	id->c.service_id = req->service_id;
	ib_conn_know_remote(in->cm, id);
	e->event.param.qkey = SIDR_QKEY;
	e->event.param.private_len = (uint8_t)(IB_MAD_SIDR_REQ_PRIVATE - header);
	e->event.param.valid = 1;
	memcpy(e->event.param.private, req->private + header, IB_MAD_SIDR_REQ_PRIVATE - header);
}

enum ib_drop
ib_recv_sidr_req(const struct ib_in *in)
{
	/* by the address and the number of the request: it has no GUID */
	struct ib_id *old = ib_conn_of_remote(in->cm, in->from->peer, 0, in->mad->sidr_req.request);
	struct ib_id *listener;
	struct ib_ip ip;

	if (old != NULL) {
		in->cm->counters.duplicates++;
		ib_conn_follow(old, in->from);
		if (old->phase == IB_PHASE_SIDR_DONE)
			ib_conn_repeat(in->cm, old);
		return IB_DROP_NONE;
	}
	/* no status of a SIDR_REP names the P_Key: in another partition there is no such service */
	listener = ib_request_pkey_is_good(in->cm, in->mad->sidr_req.pkey) ? sidr_listener(in, &ip)
									   : NULL;
	if (listener != NULL)
		return ib_request_take(in, listener, &ip, IB_PHASE_SIDR_RCVD, sidr_begin);
	sidr_refuse(in, IB_MAD_SIDR_SERVICE_ID);
	return IB_DROP_NONE;
}

/* ---- the active end ---- */

static void
sidr_tell(const struct ib_in *in, struct ib_id *id)
{
	const struct ib_mad_sidr_rep *rep = &in->mad->sidr_rep;
	bool good = rep->status == IB_MAD_SIDR_OK;
	struct ib_event *e =
		ib_event_new(in->cm, id,
			     good ? HCA_CTL_CM_EV_ESTABLISHED : HCA_CTL_CM_EV_UNREACHABLE,
			     good ? 0 : rep->status);

	if (e == NULL)
		return;
	id->qkey = rep->qkey;
	e->event.param.id = id->number;
	e->event.param.qpn = rep->qpn;
	e->event.param.qkey = rep->qkey;
	e->event.param.sidr_status = rep->status;
	e->event.param.private_len = IB_MAD_SIDR_REP_PRIVATE;
	memcpy(e->event.param.private, rep->private, IB_MAD_SIDR_REP_PRIVATE);
	memcpy(e->event.dgid, id->way.peer, sizeof(e->event.dgid));
	e->event.gid_index = id->gid_index;
	e->event.hop_limit = id->way.hop_limit;
	e->event.traffic_class = id->tos;
	ib_event_post(in->cm, e);
}

enum ib_drop
ib_recv_sidr_rep(const struct ib_in *in)
{
	struct ib_id *id;
	enum ib_drop drop = ib_recv_find(in, in->mad->sidr_rep.request, &id);

	if (drop != IB_DROP_NONE)
		return drop;
	if (id->phase != IB_PHASE_SIDR_SENT || in->mad->sidr_rep.service_id != id->c.service_id)
		return IB_DROP_state;
	ib_id_state(id,
		    in->mad->sidr_rep.status == IB_MAD_SIDR_OK ? HCA_CTL_CM_ESTABLISHED
							       : HCA_CTL_CM_ENDED,
		    in->now);
	sidr_tell(in, id);
	ib_conn_end(in->cm, id);
	return IB_DROP_NONE;
}
