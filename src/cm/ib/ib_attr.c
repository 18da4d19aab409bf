/* SPDX-License-Identifier: BSD-3-Clause */

/* Attributes of a QP on its way to INIT, RTR and RTS, as the connection has them. */

#include <errno.h>
#include <string.h>

#include "abi_qp_attr.h"
#include "abi_roce.h"
#include "ib_impl.h"

#define ATTR_QKEY 0x01234567u
#define ATTR_NEEDS_PEER \
	"the QP goes to RTR and RTS after the request or answer of the peer, and before the end"

uint8_t
ib_ack_timeout(uint8_t ack_delay, uint8_t lifetime)
{
	/* 4.096 us * (2 * 2^lifetime + 2^ack_delay), in a power of two that is not less */
	uint32_t there_and_back = lifetime + 1u;
	uint32_t sum = there_and_back >= ack_delay
			       ? there_and_back + (ack_delay + 1u >= there_and_back ? 1u : 0u)
			       : ack_delay + (there_and_back + 1u >= ack_delay ? 1u : 0u);

	return (uint8_t)(sum < HCA_ACK_TIMEOUT_MAX ? sum : HCA_ACK_TIMEOUT_MAX);
}

static uint8_t
attr_min(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static bool
attr_is_reliable(uint8_t service)
{
	return service != HCA_ST_UC && service != HCA_ST_UD;
}

/* The peer of the connection is known. */
static bool
attr_has_peer(const struct ib_id *id)
{
	return id->phase == IB_PHASE_REQ_RCVD || id->phase == IB_PHASE_REP_RCVD ||
	       id->phase == IB_PHASE_REP_SENT || id->phase == IB_PHASE_ESTABLISHED;
}

static int
attr_init(struct ib_op *op, const struct ib_id *id, struct hca_ctl_cm_attr *out)
{
	if (id->gid_index == HCA_CTL_CM_NO_GID)
		return ib_op_fail(
			op, -EINVAL,
			"id %u has no address of this HCA: bind it to one, or resolve its "
			"destination, before the QP goes to INIT",
			id->number);
	out->mask = HCA_QP_ATTR_STATE | HCA_QP_ATTR_PKEY_INDEX | HCA_QP_ATTR_PORT;
	if (id->service == HCA_ST_UD) {
		out->mask |= HCA_QP_ATTR_QKEY;
		out->qkey = id->qkey != 0 ? id->qkey : ATTR_QKEY;
		return 0;
	}
	out->mask |= HCA_QP_ATTR_ACCESS_FLAGS;
	if (id->phase == IB_PHASE_REQ_SENT || attr_has_peer(id))
		out->access = HCA_ACCESS_REMOTE_WRITE;
	if (out->access != 0 && id->c.responder_resources != 0)
		out->access |= HCA_ACCESS_REMOTE_READ | HCA_ACCESS_REMOTE_ATOMIC;
	return 0;
}

static int
attr_rtr(struct ib_op *op, const struct ib_id *id, struct hca_ctl_cm_attr *out)
{
	const struct ib_connection *c = &id->c;

	out->mask = HCA_QP_ATTR_STATE;
	if (id->service == HCA_ST_UD)
		return 0;
	if (!attr_has_peer(id))
		return ib_op_state(op, id, ATTR_NEEDS_PEER);
	out->mask |=
		HCA_QP_ATTR_AV | HCA_QP_ATTR_PATH_MTU | HCA_QP_ATTR_DEST_QPN | HCA_QP_ATTR_RQ_PSN;
	out->path_mtu = attr_min(c->mtu, (uint8_t)op->cm->cfg.mtu);
	out->dest_qpn = c->remote_qpn;
	out->rq_psn = c->local_psn;
	if (id->service == HCA_ST_RC || id->service == HCA_ST_XRC_TGT) {
		out->mask |= HCA_QP_ATTR_MAX_DEST_RD_ATOMIC | HCA_QP_ATTR_MIN_RNR_TIMER;
		out->max_dest_rd_atomic =
			attr_min(c->responder_resources, op->cm->cfg.max_rd_atomic);
	}
	return 0;
}

static int
attr_rts(struct ib_op *op, const struct ib_id *id, struct hca_ctl_cm_attr *out)
{
	const struct ib_connection *c = &id->c;

	out->mask = HCA_QP_ATTR_STATE | HCA_QP_ATTR_SQ_PSN;
	if (id->service == HCA_ST_UD)
		return 0;
	if (!attr_has_peer(id))
		return ib_op_state(op, id, ATTR_NEEDS_PEER);
	out->sq_psn = c->remote_psn;
	if (attr_is_reliable(id->service)) {
		out->mask |= HCA_QP_ATTR_TIMEOUT;
		out->timeout = c->ack_timeout;
	}
	if (id->service == HCA_ST_RC || id->service == HCA_ST_XRC_INI) {
		out->mask |= HCA_QP_ATTR_RETRY_CNT | HCA_QP_ATTR_RNR_RETRY |
			     HCA_QP_ATTR_MAX_QP_RD_ATOMIC;
		out->retry_count = c->retry_count;
		out->rnr_retry_count = c->rnr_retry_count;
		out->max_rd_atomic = attr_min(c->initiator_depth, op->cm->cfg.max_rd_atomic);
	}
	return 0;
}

static void
attr_path(const struct ib_id *id, struct hca_ctl_cm_attr *out)
{
	out->gid_index = id->gid_index;
	memcpy(out->dgid, id->way.peer, sizeof(out->dgid));
	out->hop_limit = id->way.hop_limit != 0 ? id->way.hop_limit : HCA_HOP_LIMIT;
	out->traffic_class = id->tos != 0 ? id->tos : id->way.traffic_class;
}

int
ib_qp_attr(struct ib_op *op, const struct hca_ctl_cm_ask *ask, struct hca_ctl_cm_attr *out)
{
	const struct ib_id *id = ib_id_get(op, ask->id);

	if (id == NULL)
		return -ENOENT;
	*out = (struct hca_ctl_cm_attr){.qp_state = ask->qp_state};
	attr_path(id, out);
	switch (ask->qp_state) {
	case HCA_QPS_INIT:
		return attr_init(op, id, out);
	case HCA_QPS_RTR:
		return attr_rtr(op, id, out);
	case HCA_QPS_RTS:
		return attr_rts(op, id, out);
	default:
		return ib_op_fail(op, -EINVAL,
				  "QP state %u: a connection has attributes for INIT, RTR and RTS",
				  ask->qp_state);
	}
}
