/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DEVICE_WIRE_ROCE_OPCODE_H
#define DEVICE_WIRE_ROCE_OPCODE_H

/*
 * Meaning of the 8-bit BTH opcode: transport, operation, place in the message, extension headers
 * and where they are. Generated from HCA_BTH_LIST of abi_roce.h; const data, any lcore.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_roce.h"

#define HCA_ROCE_BTH_LEN 12

/* Extension headers in their order on the wire: X(NAME of HCA_EXT_NAME, field). */
#define HCA_ROCE_EXT_LIST(X) \
	X(DETH, deth) \
	X(XRCETH, xrceth) \
	X(FETH, feth) \
	X(RETH, reth) \
	X(ATOMICETH, atomiceth) \
	X(AETH, aeth) \
	X(ATOMICACKETH, atomicacketh) \
	X(IMMDT, immdt) \
	X(IETH, ieth)

struct hca_roce_opcode_info {
	const char *name;   /* "RC_SEND_FIRST"; NULL when no opcode */
	bool valid;	    /* known and supported: all of the list but reliable datagram */
	uint8_t transport;  /* HCA_TRANSPORT_* */
	uint8_t kind;	    /* enum hca_pkt_kind */
	uint8_t runs;	    /* of a request: enum hca_op_kind */
	uint8_t pos;	    /* enum hca_pkt_pos */
	bool starts;	    /* first or only packet of its message */
	bool ends;	    /* last or only */
	uint16_t ext;	    /* HCA_EXT_* */
	uint8_t header_len; /* BTH and extension headers */
	uint8_t access;	    /* HCA_ACCESS_* that the responder must allow */
	bool is_request;
	bool is_response;
	bool has_payload; /* may carry any */
	/* Offset of each extension header from the BTH; 0 = absent. */
	struct {
#define X(NAME, field) uint8_t field;
		HCA_ROCE_EXT_LIST(X)
#undef X
	} at;
};

extern const struct hca_roce_opcode_info hca_roce_opcodes[256];

/* Never NULL; "UNKNOWN" for a number that is no opcode. */
const char *hca_roce_opcode_name(uint8_t opcode);

#endif
