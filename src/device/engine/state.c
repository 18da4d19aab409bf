/* SPDX-License-Identifier: BSD-3-Clause */

/* Changes of QP states by stages. */

#include "abi_ctx.h"
#include "engine/impl.h"

void
hca_tell_state(struct hca *h, enum hca_stage_id from, uint32_t qpi)
{
	static const uint8_t told[] = {HCA_STAGE_PARSER, HCA_STAGE_RTC, HCA_STAGE_RRC,
				       HCA_STAGE_EE};

	for (unsigned int i = 0; i < RTE_DIM(told); i++)
		if (told[i] != from && h->msg[from][told[i]] != NULL)
			hca_msg_send(h, from, told[i], qpi, HCA_MSG_STATE);
}

bool
hca_qp_to_error(struct hca *h, enum hca_stage_id from, uint32_t qpi)
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
hca_qp_to_sq_error(struct hca *h, enum hca_stage_id from, uint32_t qpi)
{
	struct hca_qp *qp = &h->qp[qpi];

	if (!hca_qp_state_cas(qp, HCA_QPS_RTS, HCA_QPS_SQE) &&
	    !hca_qp_state_cas(qp, HCA_QPS_SQD, HCA_QPS_SQE))
		return false;
	hca_tell_state(h, from, qpi);
	return true;
}
