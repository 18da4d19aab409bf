/* SPDX-License-Identifier: BSD-3-Clause */

/* The QP of a connection: its attributes as the connection manager has negotiated them. */

#include <errno.h>
#include <string.h>

#include "lib_cm.h"

_Static_assert((uint32_t)SOFTHCA_QPS_INIT == (uint32_t)HCA_QPS_INIT &&
		       (uint32_t)SOFTHCA_QPS_RTR == (uint32_t)HCA_QPS_RTR &&
		       (uint32_t)SOFTHCA_QPS_RTS == (uint32_t)HCA_QPS_RTS,
	       "states of struct hca_ctl_cm_ask");

static void
cm_fill_attr(const struct hca_ctl_cm_attr *from, struct softhca_qp_attr *to)
{
	*to = (struct softhca_qp_attr){
		.qp_state = from->qp_state,
		.path_mtu = from->path_mtu,
		.qkey = from->qkey,
		.rq_psn = from->rq_psn,
		.sq_psn = from->sq_psn,
		.dest_qp_num = from->dest_qpn,
		.qp_access_flags = from->access,
		.pkey_index = from->pkey_index,
		.max_rd_atomic = from->max_rd_atomic,
		.max_dest_rd_atomic = from->max_dest_rd_atomic,
		.min_rnr_timer = from->min_rnr_timer,
		.port_num = 1,
		.timeout = from->timeout,
		.retry_cnt = from->retry_count,
		.rnr_retry = from->rnr_retry_count,
		.ah_attr =
			{
				.flow_label = from->flow_label,
				.sgid_index = (uint8_t)from->gid_index,
				.hop_limit = from->hop_limit,
				.traffic_class = from->traffic_class,
				.sl = from->sl,
				.port_num = 1,
				.is_global = 1,
			},
	};
	memcpy(to->ah_attr.dgid.raw, from->dgid, sizeof(from->dgid));
}

int
softhca_cm_init_qp_attr(struct softhca_cm_id *pub, uint32_t qp_state, struct softhca_qp_attr *attr,
			uint32_t *attr_mask)
{
	struct hca_ctl_cm_ask request = {.id = lib_cm_id(pub)->number, .qp_state = qp_state};
	struct hca_ctl_cm_attr answer;
	int err;

	if (qp_state < SOFTHCA_QPS_INIT || qp_state > SOFTHCA_QPS_RTS)
		return lib_fail(-EINVAL,
				"QP state %u (%s): a connection has attributes for INIT, RTR, RTS",
				qp_state, softhca_qp_state_str(qp_state));
	err = LIB_CALL(lib_cm_ctx(pub), CM_QP_ATTR, &request, &answer);
	if (err != 0)
		return err;
	cm_fill_attr(&answer, attr);
	*attr_mask = answer.mask;
	return 0;
}

/* A QP of datagrams needs no attribute of its peer. */
static int
cm_step(struct softhca_cm_id *pub, struct softhca_qp *qp, uint32_t qp_state)
{
	struct softhca_qp_attr attr = {.qp_state = qp_state};
	uint32_t mask = SOFTHCA_QP_STATE;
	int err = 0;

	if (qp->qp_type != SOFTHCA_QPT_UD || qp_state == SOFTHCA_QPS_INIT)
		err = softhca_cm_init_qp_attr(pub, qp_state, &attr, &mask);
	else if (qp_state == SOFTHCA_QPS_RTS)
		mask |= SOFTHCA_QP_SQ_PSN;
	return err != 0 ? err : softhca_modify_qp(qp, &attr, mask);
}

int
softhca_cm_modify_qp(struct softhca_cm_id *pub, struct softhca_qp *qp, uint32_t qp_state)
{
	uint32_t state = qp->state;
	int err = 0;

	if (qp_state < SOFTHCA_QPS_INIT || qp_state > SOFTHCA_QPS_RTS || state >= qp_state)
		return lib_fail(-EINVAL, "a QP in state %s cannot be brought to %s",
				softhca_qp_state_str(state), softhca_qp_state_str(qp_state));
	while (err == 0 && state < qp_state)
		err = cm_step(pub, qp, ++state);
	return err;
}
