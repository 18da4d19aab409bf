/* SPDX-License-Identifier: BSD-3-Clause */

/* Changes of QP states by stages. */

#include <rte_bitops.h>

#include "abi_ctx.h"
#include "engine/impl.h"
#include "engine/wire_ops.h"

void
hca_tell_state(struct hca_pipe *h, enum hca_stage_id from, uint32_t qpi)
{
	uint32_t told = hca_qp_stages(h, &h->qp[qpi]) & ~(1u << HCA_STAGE_TIMER | 1u << from);

	for (; told != 0; told &= told - 1)
		if (h->msg[from][rte_bsf32(told)] != NULL)
			hca_msg_send(h, from, rte_bsf32(told), qpi, HCA_MSG_STATE);
}

uint32_t
hca_qp_stages(const struct hca_pipe *h, const struct hca_qp *qp)
{
	return hca_wire_of_qp(&h->core, qp)->qp_stages | 1u << HCA_STAGE_PARSER |
	       1u << HCA_STAGE_TIMER;
}

bool
hca_qp_to_error(struct hca_pipe *h, enum hca_stage_id from, uint32_t qpi)
{
	struct hca_qp *qp = &h->qp[qpi];
	uint32_t state;

	do {
		state = hca_qp_state(qp);
		if (state == HCA_QPS_ERR || state == HCA_QPS_RST)
			return false;
	} while (!hca_qp_state_cas(qp, state, HCA_QPS_ERR));

	hca_tell_state(h, from, qpi);
	return true;
}

bool
hca_qp_to_sq_error(struct hca_pipe *h, enum hca_stage_id from, uint32_t qpi)
{
	struct hca_qp *qp = &h->qp[qpi];

	if (!hca_qp_state_cas(qp, HCA_QPS_RTS, HCA_QPS_SQE) &&
	    !hca_qp_state_cas(qp, HCA_QPS_SQD, HCA_QPS_SQE))
		return false;
	hca_tell_state(h, from, qpi);
	return true;
}
