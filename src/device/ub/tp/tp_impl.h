/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_TP_TP_IMPL_H
#define UB_TP_TP_IMPL_H

/* Shared by the sending half of the transport: tp_ack.c, tp_rule.c, tp_send.c, tp_timer.c. */

#include "engine/short_ways.h"
#include "ub/tp/tp_bits.h"
#include "ub/tp/tp_core.h"

static inline uint32_t
tp_mask(const struct hca_tp *tp)
{
	return tp->cfg.window - 1u;
}

static inline struct hca_tp_slot *
tp_slot(const struct hca_tp *tp, uint32_t psn)
{
	return &tp->tx.slot[psn & tp_mask(tp)];
}

/* Packets that were sent and are not acknowledged. */
static inline uint32_t
tp_in_flight(const struct hca_tp *tp)
{
	return hca_tp_past(tp->tx.next, tp->tx.una);
}

/* ---- tp_rule.c: the resend set ---- */

void hca_tp_again_add(struct hca_tp *tp, uint32_t psn, enum hca_tp_again why);
void hca_tp_again_drop(struct hca_tp *tp, uint32_t psn);
/* Everything from una on that has not arrived. */
void hca_tp_again_all(struct hca_tp *tp, enum hca_tp_again why);
/* The lowest PSN of the set, which is not empty. */
uint32_t hca_tp_again_first(const struct hca_tp *tp);
/*
 * An answer showed that top, and nothing above it, has arrived; the packets from..to that have not
 * are missing. from > to: no packet is missing.
 */
void hca_tp_judge(struct hca_tp *tp, uint32_t from, uint32_t to, uint32_t top);
/* MARK: end a phase RTX that has nothing left to send. */
void hca_tp_mark_settle(struct hca_tp *tp);

/* ---- tp_ack.c ---- */

/* Move una over packets that have arrived. */
void hca_tp_advance(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint64_t now);
/* The packet's operation was answered: true, and it counts as received from now on. */
bool hca_tp_answered(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint32_t psn);

#endif
