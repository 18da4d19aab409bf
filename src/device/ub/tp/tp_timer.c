/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The retransmission timer of a TP. It runs while packets are unacknowledged, from the sending of
 * the first one or the last move of una.
 */

#include "ub/tp/tp_impl.h"

#define RTO_SHIFT_MAX 31u /* base has 31 bits of ns */

/* base * 2^(exponent * times) */
uint64_t
hca_tp_rto(const struct hca_tp *tp)
{
	uint64_t base = tp->cfg.rto_base * UINT64_C(1000);
	uint32_t shift = (uint32_t)tp->cfg.rto_exponent * tp->tx.times;

	if (base == 0)
		base = tp->tx.srtt == 0 ? HCA_TP_RTO_FIRST
					: RTE_MAX(4 * tp->tx.srtt, HCA_TP_RTO_FLOOR);
	return base << RTE_MIN(shift, RTO_SHIFT_MAX);
}

/* Packets of operations that were answered have arrived. */
static void
pass_answered(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint64_t now)
{
	struct hca_tp_tx *tx = &tp->tx;

	for (uint32_t psn = tx->una; psn != tx->next; psn = hca_tp_psn(psn, 1)) {
		if (!hca_bit_test(tx->got, tp_mask(tp), psn))
			hca_tp_answered(tp, pools, psn);
	}
	hca_tp_advance(tp, pools, now);
}

enum hca_tp_expiry
hca_tp_expire(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint64_t now)
{
	struct hca_tp_tx *tx = &tp->tx;

	if (now < tx->deadline)
		return HCA_TP_EXPIRY_NONE;
	pass_answered(tp, pools, now);
	if (now < tx->deadline)
		return HCA_TP_EXPIRY_NONE;
	tx->timeouts++;
	tx->nak = 0;
	tx->excused = false;
	if (++tx->times > tp->cfg.retries) {
		tx->deadline = HCA_TP_NEVER;
		hca_tp_fail(tp);
		return HCA_TP_EXPIRY_DEAD;
	}
	hca_tp_again_all(tp, HCA_TP_AGAIN_TIMEOUT);
	tx->deadline = now + hca_tp_rto(tp);
	return HCA_TP_EXPIRY_AGAIN;
}
