/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_INITIATOR_PARSE_JETTY_H
#define UB_INITIATOR_PARSE_JETTY_H

/* The parser's functions for Jettys, as the row of UB names them (engine/wire_ops.h). */

#include <stdint.h>

#include "ub/record.h"

struct hca_parser_visit;

/* The opcodes of their WQEs, a bit each. */
#define X(op, flags, opcode, last_opcode) | 1u << HCA_OP_##op
enum {
	HCA_JETTY_WQE_OPS = 0 HCA_UB_WR_LIST(X)
};
#undef X

uint32_t hca_jetty_parse(struct hca_pipe *h, struct hca_parser_visit *v, const uint8_t *copy);
unsigned int hca_jetty_parse_run(struct hca_pipe *h, struct hca_parser_visit *v,
				 unsigned int quota);

#endif
