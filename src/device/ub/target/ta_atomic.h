/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_TARGET_TA_ATOMIC_H
#define UB_TARGET_TA_ATOMIC_H

/*
 * Atomics of UB: values of 1, 2, 4, 8, 16, 32 or 64 bytes, least significant byte first, as on the
 * wire. No state; any lcore.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_ub.h"

#define HCA_UB_ATOMIC_CPU_MAX 16u /* bytes of the CPU's largest compare-and-swap */

struct hca_ub_atomic {
	const uint8_t *operand[2]; /* any alignment */
	uint8_t opcode;		   /* HCA_UB_TA_COMPARE_SWAP .. HCA_UB_TA_FETCH_XOR */
	uint8_t ud_op;		   /* enum hca_ub_ud_op: of Atomic_store and Atomic_load */
	uint8_t len;
};

/* The new value; both have a->len bytes and do not overlap. */
void hca_ub_atomic_apply(const struct hca_ub_atomic *a, const uint8_t *old, uint8_t *value);

/*
 * Execute at p, which is aligned to a->len, at most HCA_UB_ATOMIC_CPU_MAX: atomic with respect to
 * everything on the host. old: the previous value, a->len bytes.
 */
void hca_ub_atomic_execute(const struct hca_ub_atomic *a, void *p, uint8_t *old);

/* Whether the response carries the previous value. */
static inline bool
hca_ub_atomic_fetches(uint8_t opcode)
{
	return opcode != HCA_UB_TA_STORE;
}

#endif
