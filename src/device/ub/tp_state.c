/* SPDX-License-Identifier: BSD-3-Clause */

#include <rte_bitops.h>

#include "ub/ub_stage.h"

void
hca_tp_tell(struct hca_pipe *h, enum hca_stage_id from, uint32_t tpi)
{
	/* TPR reads the state with each packet */
	uint32_t told =
		(1u << HCA_STAGE_TAI | 1u << HCA_STAGE_TAT | 1u << HCA_STAGE_TPS) & ~(1u << from);

	for (; told != 0; told &= told - 1)
		if (h->msg[from][rte_bsf32(told)] != NULL)
			hca_tp_msg_send(h, from, rte_bsf32(told), tpi, HCA_MSG_STATE);
}
