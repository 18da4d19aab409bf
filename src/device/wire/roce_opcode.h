/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the 8-bit BTH opcode says: service, operation, place in the message, extension headers.
 *
 * One list; the enum, the names, header lengths and header offsets are generated from it. Const
 * data, readable from any lcore.
 */
#ifndef DEVICE_WIRE_ROCE_OPCODE_H
#define DEVICE_WIRE_ROCE_OPCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HCA_ROCE_BTH_LEN	12

/* Extension headers in their order on the wire: X(NAME, field, bytes). */
#define HCA_ROCE_EXT_LIST(X) \
	X(DETH, deth, 8) \
	X(XRCETH, xrceth, 4) \
	X(RETH, reth, 16) \
	X(ATOMICETH, atomiceth, 28) \
	X(AETH, aeth, 4) \
	X(ATOMICACKETH, atomicacketh, 8) \
	X(IMM, imm, 4) \
	X(IETH, ieth, 4) \
	X(CNP, cnp, 16)

enum hca_roce_ext_bit {
#define X(NAME, field, bytes) HCA_ROCE_EXT_BIT_##NAME,
	HCA_ROCE_EXT_LIST(X)
#undef X
};

enum hca_roce_ext {
	HCA_ROCE_HAS_NONE = 0,
#define X(NAME, field, bytes) HCA_ROCE_HAS_##NAME = 1 << HCA_ROCE_EXT_BIT_##NAME,
	HCA_ROCE_EXT_LIST(X)
#undef X
};

/* Top three bits of the opcode. */
enum hca_roce_service {
	HCA_ROCE_RC = 0,
	HCA_ROCE_UC = 1,
	HCA_ROCE_RD = 2,	/* not supported: no opcode of it is valid */
	HCA_ROCE_UD = 3,
	HCA_ROCE_CNP = 4,
	HCA_ROCE_XRC = 5,
};

/* X(KIND, is_request, is_response, has_payload) */
#define HCA_ROCE_KIND_LIST(X) \
	X(NONE, 0, 0, 0) \
	X(SEND, 1, 0, 1) \
	X(WRITE, 1, 0, 1) \
	X(READ_REQ, 1, 0, 0) \
	X(CAS, 1, 0, 0) \
	X(FADD, 1, 0, 0) \
	X(READ_RESP, 0, 1, 1) \
	X(ACK, 0, 1, 0) \
	X(ATOMIC_ACK, 0, 1, 0) \
	X(CNP, 0, 0, 0)

enum hca_roce_kind {
#define X(KIND, request, response, payload) HCA_ROCE_KIND_##KIND,
	HCA_ROCE_KIND_LIST(X)
#undef X
};

/* Place of the packet in its message. */
enum hca_roce_place {
	HCA_ROCE_FIRST = 1 << 0,
	HCA_ROCE_MIDDLE = 1 << 1,
	HCA_ROCE_LAST = 1 << 2,
	HCA_ROCE_ONLY = 1 << 3,
	HCA_ROCE_STARTS = HCA_ROCE_FIRST | HCA_ROCE_ONLY,
	HCA_ROCE_ENDS = HCA_ROCE_LAST | HCA_ROCE_ONLY,
};

/* Operations of the connected services: X(SERVICE, NAME, low five bits, KIND, PLACE, headers). */
#define HCA_ROCE_SEND_WRITE_LIST(X, SERVICE, XE) \
	X(SERVICE, SEND_FIRST, 0x00, SEND, FIRST, XE) \
	X(SERVICE, SEND_MIDDLE, 0x01, SEND, MIDDLE, XE) \
	X(SERVICE, SEND_LAST, 0x02, SEND, LAST, XE) \
	X(SERVICE, SEND_LAST_IMM, 0x03, SEND, LAST, XE | HCA_ROCE_HAS_IMM) \
	X(SERVICE, SEND_ONLY, 0x04, SEND, ONLY, XE) \
	X(SERVICE, SEND_ONLY_IMM, 0x05, SEND, ONLY, XE | HCA_ROCE_HAS_IMM) \
	X(SERVICE, WRITE_FIRST, 0x06, WRITE, FIRST, XE | HCA_ROCE_HAS_RETH) \
	X(SERVICE, WRITE_MIDDLE, 0x07, WRITE, MIDDLE, XE) \
	X(SERVICE, WRITE_LAST, 0x08, WRITE, LAST, XE) \
	X(SERVICE, WRITE_LAST_IMM, 0x09, WRITE, LAST, XE | HCA_ROCE_HAS_IMM) \
	X(SERVICE, WRITE_ONLY, 0x0a, WRITE, ONLY, XE | HCA_ROCE_HAS_RETH) \
	X(SERVICE, WRITE_ONLY_IMM, 0x0b, WRITE, ONLY, \
	  XE | HCA_ROCE_HAS_RETH | HCA_ROCE_HAS_IMM)

#define HCA_ROCE_RELIABLE_LIST(X, SERVICE, XE) \
	X(SERVICE, READ_REQUEST, 0x0c, READ_REQ, ONLY, XE | HCA_ROCE_HAS_RETH) \
	X(SERVICE, READ_RESPONSE_FIRST, 0x0d, READ_RESP, FIRST, HCA_ROCE_HAS_AETH) \
	X(SERVICE, READ_RESPONSE_MIDDLE, 0x0e, READ_RESP, MIDDLE, HCA_ROCE_HAS_NONE) \
	X(SERVICE, READ_RESPONSE_LAST, 0x0f, READ_RESP, LAST, HCA_ROCE_HAS_AETH) \
	X(SERVICE, READ_RESPONSE_ONLY, 0x10, READ_RESP, ONLY, HCA_ROCE_HAS_AETH) \
	X(SERVICE, ACKNOWLEDGE, 0x11, ACK, ONLY, HCA_ROCE_HAS_AETH) \
	X(SERVICE, ATOMIC_ACKNOWLEDGE, 0x12, ATOMIC_ACK, ONLY, \
	  HCA_ROCE_HAS_AETH | HCA_ROCE_HAS_ATOMICACKETH) \
	X(SERVICE, COMPARE_SWAP, 0x13, CAS, ONLY, XE | HCA_ROCE_HAS_ATOMICETH) \
	X(SERVICE, FETCH_ADD, 0x14, FADD, ONLY, XE | HCA_ROCE_HAS_ATOMICETH) \
	X(SERVICE, SEND_LAST_INV, 0x16, SEND, LAST, XE | HCA_ROCE_HAS_IETH) \
	X(SERVICE, SEND_ONLY_INV, 0x17, SEND, ONLY, XE | HCA_ROCE_HAS_IETH)

#define HCA_ROCE_OPCODE_LIST(X) \
	HCA_ROCE_SEND_WRITE_LIST(X, RC, HCA_ROCE_HAS_NONE) \
	HCA_ROCE_RELIABLE_LIST(X, RC, HCA_ROCE_HAS_NONE) \
	HCA_ROCE_SEND_WRITE_LIST(X, UC, HCA_ROCE_HAS_NONE) \
	X(UD, SEND_ONLY, 0x04, SEND, ONLY, HCA_ROCE_HAS_DETH) \
	X(UD, SEND_ONLY_IMM, 0x05, SEND, ONLY, HCA_ROCE_HAS_DETH | HCA_ROCE_HAS_IMM) \
	X(CNP, CONGESTION, 0x01, CNP, ONLY, HCA_ROCE_HAS_CNP) \
	HCA_ROCE_SEND_WRITE_LIST(X, XRC, HCA_ROCE_HAS_XRCETH) \
	HCA_ROCE_RELIABLE_LIST(X, XRC, HCA_ROCE_HAS_XRCETH)

#define HCA_ROCE_OPCODE(service, low)	((service) << 5 | (low))

/* HCA_ROCE_OP_RC_SEND_FIRST and so on. */
enum hca_roce_op {
#define X(SERVICE, NAME, low, KIND, PLACE, ext) \
	HCA_ROCE_OP_##SERVICE##_##NAME = HCA_ROCE_OPCODE(HCA_ROCE_##SERVICE, low),
	HCA_ROCE_OPCODE_LIST(X)
#undef X
};

struct hca_roce_opcode_info {
	const char *name;	/* "RC_SEND_FIRST"; NULL when not valid */
	bool valid;
	uint8_t service;	/* enum hca_roce_service */
	uint8_t kind;		/* enum hca_roce_kind */
	uint8_t place;		/* enum hca_roce_place */
	uint16_t ext;		/* enum hca_roce_ext */
	uint8_t header_len;	/* BTH and extension headers */
	bool is_request;
	bool is_response;
	bool has_payload;	/* may carry any */
	/* Offset of each extension header from the BTH; 0 = absent. */
	struct {
#define X(NAME, field, bytes) uint8_t field;
		HCA_ROCE_EXT_LIST(X)
#undef X
	} at;
};

extern const struct hca_roce_opcode_info hca_roce_opcodes[256];

/* Never NULL; "UNKNOWN" for opcodes that are not valid. */
const char *hca_roce_opcode_name(uint8_t opcode);

#endif
