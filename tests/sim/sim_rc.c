/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim.h"

void
sim_connect_rc(struct sim *s, unsigned int side, struct softhca_qp *qp, uint32_t peer,
	       uint32_t access)
{
	struct softhca_qp_attr q = {
		.qp_state = SOFTHCA_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = access,
		.path_mtu = SOFTHCA_MTU_1024,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 16,
		.max_rd_atomic = 16,
		.min_rnr_timer = 1,
		.timeout = 19,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.port_num = 1, .is_global = 1, .hop_limit = 64},
	};
	static const uint32_t mask[] = {
		SOFTHCA_QP_STATE | SOFTHCA_QP_PKEY_INDEX | SOFTHCA_QP_PORT |
			SOFTHCA_QP_ACCESS_FLAGS,
		SOFTHCA_QP_STATE | SOFTHCA_QP_AV | SOFTHCA_QP_PATH_MTU | SOFTHCA_QP_DEST_QPN |
			SOFTHCA_QP_RQ_PSN | SOFTHCA_QP_MAX_DEST_RD_ATOMIC |
			SOFTHCA_QP_MIN_RNR_TIMER,
		SOFTHCA_QP_STATE | SOFTHCA_QP_TIMEOUT | SOFTHCA_QP_RETRY_CNT |
			SOFTHCA_QP_RNR_RETRY | SOFTHCA_QP_SQ_PSN | SOFTHCA_QP_MAX_QP_RD_ATOMIC,
	};

	sim_gid(1 - side, SIM_GID_V4, q.ah_attr.dgid.raw);
	for (unsigned int k = 0; k < 3; k++, q.qp_state++)
		sim_check(s, softhca_modify_qp(qp, &q, mask[k]) == 0, "modify_qp: %s",
			  softhca_last_error(qp->context));
}
