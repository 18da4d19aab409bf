/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_STAGE_H
#define CORE_STAGE_H

/* The stages by name and number. Their contract is engine/stage.h. */

#include <stdint.h>

#include "core/wires.h"

/*
 * X(ENUM, name, wires): in the order in which a worker polls them. wires: those that need the
 * stage, a set of HCA_WIRE_BIT(). On a device without one of these its poll returns at once.
 */
#define HCA_STAGE_LIST(X) \
	X(DOORBELL, doorbell, HCA_WIRES_ALL) \
	X(PARSER, parser, HCA_WIRES_ALL) \
	X(REQ_TX, req_tx, HCA_WIRES_ALL) \
	X(TAI, tai, HCA_WIRE_BIT(HCA_WIRE_UB)) \
	X(DECAP, decap, HCA_WIRES_ALL) \
	X(TPR, tpr, HCA_WIRE_BIT(HCA_WIRE_UB)) \
	X(TAT, tat, HCA_WIRE_BIT(HCA_WIRE_UB)) \
	X(EE, ee, HCA_WIRES_ALL) \
	X(REQ_RX, req_rx, HCA_WIRES_ALL) \
	X(TIMER, timer, HCA_WIRES_ALL) \
	X(TPS, tps, HCA_WIRE_BIT(HCA_WIRE_UB)) \
	X(ENCAP, encap, HCA_WIRES_ALL) \
	X(CEU, ceu, HCA_WIRES_ALL)

enum hca_stage_id {
#define X(e, n, wires) HCA_STAGE_##e,
	HCA_STAGE_LIST(X)
#undef X
	HCA_STAGE_N
};

/* The stages that a set of wires needs, a bit each. */
static inline uint32_t
hca_stages_of(uint32_t wires)
{
	uint32_t stages = 0;

#define X(e, n, of) stages |= wires & (of) ? 1u << HCA_STAGE_##e : 0;
	HCA_STAGE_LIST(X)
#undef X
	return stages;
}

/* A stage's deadline: it waits for room, and no message announces room. */
#define HCA_DEADLINE_ROOM (UINT64_MAX - 1)

#endif
