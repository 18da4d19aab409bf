/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_WIRE_ROCE_CRAFT_H
#define TESTS_WIRE_ROCE_CRAFT_H

/*
 * RoCEv2 frames for tests: written field by field, apart from encap, and read into a struct of all
 * fields. Frames are judged by code of the product: hca_wire_parse(), and decap where available.
 * Numbers in structs are in the CPU's order.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire/roce_frame.h"

/* Longest headers in front of the payload. */
#define ROCE_MAX_HEADERS (sizeof(((struct hca_udp_template *)0)->bytes) + 28)

/* A frame as hca_wire_parse() sees it, and all fields of its BTH. */
struct roce_view {
	const struct hca_roce_opcode_info *op;
	uint32_t payload_len; /* bytes, without pad and ICRC */
	uint32_t icrc;	      /* offset; payload + payload_len + pad == icrc */
	uint32_t qpn;	      /* destination */
	uint32_t psn;
	uint16_t pkey;
	uint16_t l3;
	uint16_t bth;
	uint16_t payload;
	uint8_t ip_version;
	uint8_t opcode;
	uint8_t pad;
	bool ackreq;
	bool se;
	bool migreq;
};

/* Returns as hca_wire_parse(); *v is meaningful as its view is. */
int roce_parse(const uint8_t *frame, uint32_t len, struct roce_view *v);

/* reason as returned by hca_wire_parse(), negative or not; "none" and "unknown" exist. */
const char *roce_drop_name(int reason);
const char *roce_drop_text(int reason);

/* Is the ICRC right? */
bool roce_icrc_ok(const struct hca_icrc_ops *ops, const uint8_t *frame, const struct roce_view *v);

/* Recomputes the ICRC of a frame whose headers were changed. */
void roce_seal(const struct hca_icrc_ops *ops, uint8_t *frame, const struct roce_view *v);

/* Extension headers in the CPU's order; imm is the four wire bytes, unchanged. */
struct roce_headers {
	struct {
		uint32_t qkey;
		uint32_t src_qpn;
	} deth;
	uint32_t xrceth; /* remote SRQN */
	uint32_t feth;
	struct {
		uint64_t va;
		uint32_t rkey;
		uint32_t len;
	} reth;
	struct {
		uint64_t va;
		uint32_t rkey;
		uint64_t swap_add;
		uint64_t compare;
	} atomic;
	struct {
		uint8_t syndrome;
		uint32_t msn;
	} aeth;
	uint64_t original; /* AtomicAckETH */
	uint8_t imm[4];
	uint32_t ieth; /* rkey to invalidate */
};

/* The headers that info names, at bth; the others are left as they are. */
void roce_get_headers(const uint8_t *bth, const struct hca_roce_opcode_info *info,
		      struct roce_headers *h);
void roce_put_headers(uint8_t *bth, const struct hca_roce_opcode_info *info,
		      const struct roce_headers *h);

/* Fields that differ per packet. */
struct roce_packet {
	uint8_t opcode;
	bool se;
	bool ackreq;
	uint32_t psn; /* 24 bits */
	uint32_t payload_len;
};

/* Length of the frame without ICRC and Ethernet padding, pad bytes included. */
uint32_t roce_frame_len(const struct hca_udp_template *t, uint8_t opcode, uint32_t payload_len);

/*
 * A whole frame, ICRC included. Returns its length, -EINVAL for an unknown opcode or a payload with
 * an opcode without one, or -ENOSPC.
 */
int roce_build(const struct hca_icrc_ops *ops, const struct hca_udp_template *t,
	       const struct roce_packet *p, const struct roce_headers *h, const void *payload,
	       uint8_t *out, uint32_t room);

#endif
