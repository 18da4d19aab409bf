/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FRAME_ENCAP_UB_H
#define FRAME_ENCAP_UB_H

/* Internal to UB in encap: a packet being built (encap_ub.c), its payload (encap_ub_payload.c). */

#include "frame/encap.h"
#include "ub/ub_stage.h"

#define HCA_ENCAP_UB_POISON 0x04u /* in byte 1 of BTAH and ATAH */

struct hca_encap_ub_packet {
	struct hca *h;
	const struct hca_tp *tp;
	struct hca_ta_op *op;
	uint32_t displacement; /* of its payload in that of the operation */
	uint32_t len;
};

/* Where the payload lies, if it may be read and lies in one run of memory; else NULL. */
const uint8_t *hca_encap_ub_find(const struct hca_encap_ub_packet *k);

/*
 * Payload of the packet to dst; tah: its BTAH or ATAH. False: it is late for the first time, and
 * the packet counts as lost on the wire. What is late again, or gone, becomes zeros, and the packet
 * says so.
 */
bool hca_encap_ub_gather(const struct hca_encap_ub_packet *k, uint8_t *tah, uint8_t *dst);

#endif
