/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sets of packets by the names of their opcodes, as operators write them: "read-response",
 * "rc-send-only", "ack"; of UB "tpack", "read-response". For impairment; const data and the
 * caller's memory, any thread.
 */
#ifndef DEVICE_WIRE_OPCODE_SET_H
#define DEVICE_WIRE_OPCODE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire_view.h"

/* Zeroed: no opcode. */
struct hca_opcode_set {
	uint64_t bth[4]; /* opcodes of BTH */
	uint32_t tp;	 /* UB: opcodes of RTPH */
	uint64_t ta;	 /* UB: opcodes of BTAH and ATAH */
};

/* Names that hca_opcode_set_add() accepts, for messages. */
#define HCA_OPCODE_NAMES \
	"send, send-only, rc-write-first, read-request, read-response, ack, atomic-ack, cnp, of UB " \
	"tpack, taack, ... or a number"

/**
 * Add all opcodes whose names begin with the words of `name`, of both wires, or the opcode of BTH
 * and RTPH of that number.
 *
 * Case and '_', '-' and ' ' do not matter, nor do "rdma" and "with"; a transport (rc, uc, ud, xrc)
 * or, of UB, "atomic" may be left out; a word may be cut off or written out ("resp", "response").
 *
 * @param name  up to 63 characters
 * @return  0, or -EINVAL: there is no such opcode
 */
int hca_opcode_set_add(struct hca_opcode_set *set, const char *name);

/* Whether a frame that hca_wire_parse() has taken has one of these opcodes. */
bool hca_opcode_set_has(const struct hca_opcode_set *set, const uint8_t *frame,
			const struct hca_wire_view *v);

/*
 * The name of the opcode of the frame, as above ("rc-send-only", "rc-read-response-middle");
 * of UB that of its operation, if it has one.
 */
void hca_opcode_name(const uint8_t *frame, const struct hca_wire_view *v, char *text, size_t size);

#endif
