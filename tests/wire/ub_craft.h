/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_WIRE_UB_CRAFT_H
#define TESTS_WIRE_UB_CRAFT_H

/*
 * UB frames for tests: whole frames from a struct of all fields and back, and random legal packets.
 * Headers are written and read by code of the product.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire/ub_frame.h"

/* Longest frame without its payload. */
#define UB_MAX_HEADERS (sizeof(((struct hca_udp_template *)0)->bytes) + HCA_UB_HEADERS_MAX + 8)
#define UB_ROOM (UB_MAX_HEADERS + HCA_UB_MTU_MAX)

/* A frame as the product sees it. */
struct ub_view {
	struct hca_wire_view w;
	struct hca_ub_tp_view tp;
	struct hca_ub_ta_view ta; /* when tp.ta != 0 */
};

/*
 * Judges all of a frame. Returns 0, -enum hca_wire_drop from Ethernet to UDP, or UB_REASON() of the
 * refusal after them.
 */
int ub_parse(const uint8_t *frame, uint32_t len, uint8_t form, struct ub_view *v);
#define UB_REASON(rc) ((rc)-1000)

/* Name and text of a result of ub_parse(). */
const char *ub_drop_name(int reason);
const char *ub_drop_text(int reason);

bool ub_icrc_ok(const struct hca_icrc_ops *ops, const uint8_t *frame,
		const struct hca_wire_view *v);
/* Recomputes the ICRC of a frame that was changed. */
void ub_seal(const struct hca_icrc_ops *ops, uint8_t *frame, const struct hca_wire_view *v);

/*
 * A whole frame, ICRC included; the pad count is set. Returns its length, -EINVAL or -ENOSPC.
 */
int ub_build(const struct hca_icrc_ops *ops, const struct hca_udp_template *t,
	     struct hca_ub_headers *h, const void *payload, uint32_t payload_len, uint8_t *out,
	     uint32_t room);

/* A random legal packet; headers point into it. Its payload is any bytes. */
struct ub_packet {
	struct hca_ub_headers h;
	uint8_t bitmap[HCA_UB_SACK_BYTES_MAX];
	uint8_t enables[HCA_UB_BE_MAX / 8];
	uint32_t payload_len;
};

/* mtu: largest payload, a multiple of 1024 for packets that are not the last. */
void ub_random(uint64_t (*rng)(void), uint32_t mtu, struct ub_packet *p);
/* The same with a given opcode of the transport, and of the transaction where there is one. */
void ub_random_of(uint64_t (*rng)(void), uint32_t mtu, uint8_t tp_opcode, uint8_t ta_opcode,
		  struct ub_packet *p);

/* Whether all fields that the packet has are the same. */
bool ub_same_headers(const struct hca_ub_headers *a, const struct hca_ub_headers *b,
		     const struct ub_view *v);

#endif
