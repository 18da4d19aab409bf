/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DEVICE_WIRE_UB_OPCODE_H
#define DEVICE_WIRE_UB_OPCODE_H

/*
 * Meaning of the opcodes of UB's transport and transaction headers: which headers follow, and which
 * parts an operation may carry. Generated from the lists of abi_ub.h; const data, any lcore.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_ub.h"

struct hca_ub_tp_info {
	const char *name; /* "TP Packet"; NULL when no opcode */
	uint8_t headers;  /* HCA_UB_TP_* */
	uint8_t len;	  /* RTPH, CETPH, SAETPH without its bitmap */
};

struct hca_ub_ta_info {
	const char *name; /* "Write"; NULL when no opcode */
	uint32_t is;	  /* HCA_UB_OP_*, and HCA_UB_EXT() of the headers that are always there */
	uint16_t by_tp;	  /* HCA_UB_EXT() of those that are there or not by TP */
	uint8_t kind;	  /* enum hca_ub_ta_kind */
};

/*
 * The headers of a packet: where each begins, in bytes from BTAH or ATAH; 0: not there. BEETAH has
 * no fixed length, so it and the payload begin at beetah.
 */
struct hca_ub_layout {
	uint16_t headers; /* HCA_UB_EXT() */
#define X(HEADER, header) uint8_t header;
	HCA_UB_EXT_LIST(X)
#undef X
	uint8_t beetah; /* never 0 */
};

extern const struct hca_ub_tp_info hca_ub_tp_ops[HCA_UB_TP_OPCODES];
extern const struct hca_ub_ta_info hca_ub_ta_ops[256];

#define HCA_UB_LAYOUT_OPCODES (HCA_UB_TA_WRITEBACK_BE + 1)
#define HCA_UB_LAYOUT_FORMS 16
extern const struct hca_ub_layout hca_ub_layouts[HCA_UB_LAYOUT_OPCODES][HCA_UB_LAYOUT_FORMS];

/*
 * Layout of an opcode that there is. flags: byte 1 of its BTAH or ATAH, which has ud_flag and tv_en
 * (responses have no such headers, whatever these bits say); form: HCA_UB_FORM_* of the TP.
 */
static inline const struct hca_ub_layout *
hca_ub_layout_of(uint8_t opcode, uint8_t flags, uint8_t form)
{
	return &hca_ub_layouts[opcode][(flags & 1) | (flags >> 2 & 2) | (form & 3) << 2];
}

/* Never NULL; "unknown" for a number that is no opcode. */
const char *hca_ub_tp_name(uint8_t opcode);
const char *hca_ub_ta_name(uint8_t opcode);

#endif
