/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_STAGE_H
#define CORE_STAGE_H

/* The stages by name and number. Their contract is engine/stage.h. */

#include <stdint.h>

/* X(ENUM, name): in the order in which a worker polls them. */
#define HCA_STAGE_LIST(X) \
	X(DOORBELL, doorbell) \
	X(PARSER, parser) \
	X(REQ_TX, req_tx) \
	X(TAI, tai) \
	X(DECAP, decap) \
	X(TPR, tpr) \
	X(TAT, tat) \
	X(EE, ee) \
	X(REQ_RX, req_rx) \
	X(TIMER, timer) \
	X(TPS, tps) \
	X(ENCAP, encap) \
	X(CEU, ceu)

enum hca_stage_id {
#define X(e, n) HCA_STAGE_##e,
	HCA_STAGE_LIST(X)
#undef X
	HCA_STAGE_N
};

/* Those of UB, a bit each: on a device without that wire their polls return at once. */
#define HCA_UB_STAGES \
	(1u << HCA_STAGE_TAI | 1u << HCA_STAGE_TPR | 1u << HCA_STAGE_TAT | 1u << HCA_STAGE_TPS)

/* A stage's deadline: it waits for room, and no message announces room. */
#define HCA_DEADLINE_ROOM (UINT64_MAX - 1)

#endif
