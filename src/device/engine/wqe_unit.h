/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_WQE_UNIT_H
#define ENGINE_WQE_UNIT_H

/*
 * Send WQEs decoded (tables 3-4-1 .. 3-4-13, rules in interface.md "Work queues"). Works on the
 * device's private copy of a WQE and changes nothing else; structure only: keys, domains and ranges
 * are judged at the copy of the data.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_wqe.h"
#include "engine/record.h"

/* Numbers in host order. Valid without a syndrome: everything; with one: nothing else. */
struct hca_wqe {
	uint8_t syndrome; /* 0 or HCA_SYND_* */
	bool is_inline;   /* data: len bytes of inline data */
	bool is_rd;       /* READ or ATOMIC */
	bool is_atomic;
	uint8_t nsge;   /* SGEs of non-zero length */
	uint8_t nunits; /* data units, zero-length ones among them */
	uint32_t len;   /* message bytes */
	uint32_t rkey;
	uint64_t raddr;
	uint64_t swap_add, compare;
	const uint8_t *data;  /* in the copy: first data unit, or inline bytes */
	struct hca_sge first; /* first SGE of non-zero length, when nsge != 0 */
};

/* A send opcode the doorbell and the parser let pass: built ones and reserved ones. */
bool hca_wqe_op_known(uint8_t op);

/*
 * wqe: the copy, 8-byte aligned, size bytes announced for it (any value), of which no more than
 * stride exist. op, service: HCA_OP_*, HCA_ST_*.
 */
void hca_wqe_decode(const uint8_t *wqe, uint32_t size, uint32_t stride, uint8_t op, uint8_t service,
		struct hca_wqe *out);

/* The SGEs of non-zero length of a decoded WQE, out->nsge of them. */
void hca_wqe_sges(const struct hca_wqe *w, struct hca_sge *sge);

#endif
