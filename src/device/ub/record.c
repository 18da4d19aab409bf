/* SPDX-License-Identifier: BSD-3-Clause */

#include "ub/record.h"

const struct hca_ub_wr hca_ub_wrs[32] = {
#define X(op, flags, opcode, last_opcode) \
	[HCA_OP_##op] = {1, flags, HCA_UB_TA_##opcode, HCA_UB_TA_##last_opcode},
	HCA_UB_WR_LIST(X)
#undef X
};
