/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_UB_ATOMIC_H
#define TESTS_SIM_UB_ATOMIC_H

/*
 * Every atomic of UB as a program posts it, and its required result: an independent model, byte by
 * byte, least significant first. And Writes of some bytes of a range.
 */

#include "ub_pair.h"

#define UB_ATOMIC_MAX 64u

/* X(opcode of the API, operation of ATOMIC_LOAD and ATOMIC_STORE) */
#define UB_ATOMIC_OPS(X, opcode) \
	X(opcode, SOFTHCA_URMA_ATOMIC_ADD) \
	X(opcode, SOFTHCA_URMA_ATOMIC_CLR) \
	X(opcode, SOFTHCA_URMA_ATOMIC_EOR) \
	X(opcode, SOFTHCA_URMA_ATOMIC_SET) \
	X(opcode, SOFTHCA_URMA_ATOMIC_SMAX) \
	X(opcode, SOFTHCA_URMA_ATOMIC_SMIN) \
	X(opcode, SOFTHCA_URMA_ATOMIC_UMAX) \
	X(opcode, SOFTHCA_URMA_ATOMIC_UMIN)
#define UB_ATOMIC_LIST(X) \
	X(URMA_OPC_CAS, 0) \
	X(URMA_OPC_SWAP, 0) \
	X(URMA_OPC_FADD, 0) \
	X(URMA_OPC_FSUB, 0) \
	X(URMA_OPC_FAND, 0) \
	X(URMA_OPC_FOR, 0) \
	X(URMA_OPC_FXOR, 0) \
	UB_ATOMIC_OPS(X, SOFTHCA_URMA_OPC_ATOMIC_LOAD) \
	UB_ATOMIC_OPS(X, SOFTHCA_URMA_OPC_ATOMIC_STORE)

enum {
#define X(opcode, op) +1
	UB_ATOMIC_KINDS = UB_ATOMIC_LIST(X)
#undef X
};

struct ub_atomic {
	urma_opcode_t opcode;
	uint32_t op, len;
	uint8_t operand[UB_ATOMIC_MAX]; /* of CAS: the compared value */
	uint8_t swap[UB_ATOMIC_MAX];	/* of CAS */
};

/*
 * The atomic of that kind, 0 .. UB_ATOMIC_KINDS - 1, and length with random operands, often all
 * zeros or ones; a CAS compares with `old` every other time.
 */
struct ub_atomic ub_atomic_draw(unsigned int kind, uint32_t len, const uint8_t *old,
				struct sim_rng *rng);
/* Whether the old value comes back. */
bool ub_atomic_returns(const struct ub_atomic *a);
void ub_atomic_model(const struct ub_atomic *a, uint8_t *value);
/* A request of the side's Jetty; local, remote: offsets in the memories. */
void ub_atomic_post(struct ub_pair *p, unsigned int side, struct ub_atomic *a, uint32_t local,
		    uint32_t remote, uint64_t id);
/*
 * One of each kind and length from side 0, one after the other: local and remote are 64 bytes each.
 * Fails unless old values and results are those of the model and no other byte is touched.
 */
void ub_atomic_all(struct ub_pair *p, uint32_t local, uint32_t remote);
/* Writes with byte enables of each length from side 0, one after the other, in the same way. */
void ub_enables_all(struct ub_pair *p, uint32_t local, uint32_t remote);

#endif
