/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_DEVICE_UB_TP_TP_RIG_H
#define TESTS_UNIT_DEVICE_UB_TP_TP_RIG_H

/* One TP with its memory and pools of operations. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ub/tp/tp_core.h"

#define RIG_OPS 8192u /* of each lane */

struct tp_rig {
	struct hca_tp tp;
	struct hca_ta_op_pools pools;
	uint32_t used[HCA_TP_LANES]; /* operations taken, in order */
	uint32_t back;		     /* operations that rig_release() has seen come back */
};

/* The configuration with which tests begin: W 128, 1 KiB packets, every packet acknowledged. */
static inline void
rig_cfg(struct hca_tp_cfg *cfg, enum hca_tp_mode mode, enum hca_tp_rule rule)
{
	*cfg = (struct hca_tp_cfg){.state = HCA_TPS_ACTIVE,
				   .own_tpn = 0x11,
				   .peer_tpn = 0x22,
				   .generation = 7,
				   .mode = mode,
				   .rule = rule,
				   .mtu_log = 10,
				   .sack_code = HCA_TP_SACK_CODES - 1,
				   .ack_every = 1,
				   .ooo_every = 1,
				   .window = 128,
				   .requests = 128,
				   .rto_base = 20,
				   .rto_exponent = 3,
				   .retries = 7,
				   .port = 0xc000};
}

static inline void
rig_memory(struct hca_tp *tp, uint32_t sent, uint32_t expected)
{
	size_t bytes = hca_tp_block_bytes(tp->cfg.window, tp->cfg.requests);
	void *block = aligned_alloc(RTE_CACHE_LINE_SIZE, bytes);

	memset(block, 0, bytes);
	hca_tp_begin(tp, block, sent, expected);
}

static inline void
rig_open(struct tp_rig *rig, const struct hca_tp_cfg *cfg, uint32_t sent, uint32_t expected)
{
	memset(rig, 0, sizeof(*rig));
	rig->tp.cfg = *cfg;
	rig_memory(&rig->tp, sent, expected);
	for (uint32_t lane = 0; lane < HCA_TP_LANES; lane++)
		rig->pools.op[lane] = calloc(RIG_OPS, sizeof(struct hca_ta_op));
}

static inline void
rig_close(struct tp_rig *rig)
{
	free(rig->tp.cfg.block);
	for (uint32_t lane = 0; lane < HCA_TP_LANES; lane++)
		free(rig->pools.op[lane]);
}

/* Put an operation with this number of payload bytes into a lane. */
static inline struct hca_ta_op *
rig_op(struct tp_rig *rig, uint32_t lane, uint32_t payload)
{
	uint32_t index = rig->used[lane]++ % RIG_OPS;
	struct hca_ta_op *op = &rig->pools.op[lane][index];

	*op = (struct hca_ta_op){.payload = payload};
	assert_true(hca_tp_lane_room(&rig->tp, lane) > 0);
	hca_tp_lane_put(&rig->tp, lane, index);
	return op;
}

/* How many operations have come back since the last call, by an answer or now. */
static inline uint32_t
rig_release(struct tp_rig *rig)
{
	uint32_t before = rig->back;

	hca_tp_release(&rig->tp, &rig->pools);
	rig->back = 0;
	for (uint32_t lane = 0; lane < HCA_TP_LANES; lane++)
		rig->back += rig->tp.tx.lane[lane].done;
	return rig->back - before;
}

/* That many operations of one packet each. */
static inline void
rig_ops(struct tp_rig *rig, uint32_t lane, uint32_t n)
{
	while (n-- > 0)
		rig_op(rig, lane, 100);
}

#endif
