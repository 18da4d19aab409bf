/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory and life of a TP. */

#include "ub/tp.h"

bool
hca_tp_fail(struct hca_tp *tp)
{
	uint32_t state = hca_tp_state(tp);

	while (state != HCA_TPS_RESET && state != HCA_TPS_ERROR) {
		if (hca_tp_state_cas(tp, state, HCA_TPS_ERROR))
			return true;
		state = hca_tp_state(tp);
	}
	return false;
}

/* The parts of a block, in its order: bytes for each packet of the window, and for each request. */
#define BLOCK_LIST(X) \
	X(slot, window * sizeof(struct hca_tp_slot)) \
	X(got, window / 8) \
	X(again, window / 8) \
	X(bits, window / 8) \
	X(seen, window * sizeof(uint32_t)) \
	X(responses, window * sizeof(uint32_t)) \
	X(requests_lane, window * sizeof(uint32_t)) \
	X(owed, (size_t)requests *HCA_TP_OWED_BYTES) \
	X(open, 2 * window * HCA_TP_OPEN_BYTES) \
	X(suspects, HCA_TP_SUSPECTS / 8)

/* Offsets of the parts from the start of the block. */
struct layout {
#define X(name, bytes) size_t name;
	BLOCK_LIST(X)
#undef X
	size_t end;
};

static struct layout
layout_of(size_t window, uint32_t requests)
{
	struct layout l;
	size_t at = 0;

#define X(name, bytes) \
	l.name = at; \
	at += RTE_ALIGN_CEIL((bytes), (size_t)RTE_CACHE_LINE_SIZE);
	BLOCK_LIST(X)
#undef X
	l.end = at;
	return l;
}

size_t
hca_tp_block_bytes(uint32_t window, uint32_t requests)
{
	return layout_of(window, requests).end;
}

static void
point_into(struct hca_tp *tp, uint8_t *block)
{
	struct layout l = layout_of(tp->cfg.window, tp->cfg.requests);

	tp->cfg.block = block;
	tp->tx.slot = (void *)(block + l.slot);
	tp->tx.got = (void *)(block + l.got);
	tp->tx.again = (void *)(block + l.again);
	tp->rx.bits = (void *)(block + l.bits);
	tp->rx.seen = (void *)(block + l.seen);
	tp->lane[HCA_TP_RESPONSES].ring = (void *)(block + l.responses);
	tp->lane[HCA_TP_REQUESTS].ring = (void *)(block + l.requests_lane);
	tp->owed = block + l.owed;
	tp->open = block + l.open;
	tp->suspects = (void *)(block + l.suspects);
}

void
hca_tp_begin(struct hca_tp *tp, void *block, uint32_t sent, uint32_t expected)
{
	tp->tx = (struct hca_tp_tx){.una = sent,
				    .next = sent,
				    .tpmsn = 1,
				    .again_at = sent,
				    .high = hca_tp_psn_before(sent),
				    .mark = sent,
				    .deadline = HCA_TP_NEVER,
				    .min_rtt = HCA_TP_NEVER,
				    .turn = HCA_TP_RESPONSES};
	tp->rx = (struct hca_tp_rx){.epsn = expected,
				    .max_rcv = hca_tp_psn_before(expected),
				    .msn = 1};
	tp->lane[HCA_TP_RESPONSES].head = tp->lane[HCA_TP_REQUESTS].head = 0;
	tp->tai = (struct hca_tp_tai){0};
	tp->tat = (struct hca_tp_tat){0};
	tp->encap.done_seq = 0;
	point_into(tp, block);
}
