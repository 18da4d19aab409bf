/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The resend set of a TP, and the rules by which a missing packet enters it.
 *
 * HIGH: above the highest PSN ever sent again. MARK: the same; and as soon as the first packet sent
 * after the last repetition, or one behind it, has arrived, all that is missing before it. MARK
 * collects in phase NEW, in which only new packets leave, and sends the set in phase RTX. TIME:
 * when a packet sent more than cfg.reorder later has arrived.
 */

#include "ub/tp/tp_impl.h"

void
hca_tp_again_add(struct hca_tp *tp, uint32_t psn, enum hca_tp_again why)
{
	struct hca_tp_tx *tx = &tp->tx;

	if (hca_bit_test(tx->again, tp_mask(tp), psn))
		return;
	hca_bit_set(tx->again, tp_mask(tp), psn);
	tp_slot(tp, psn)->why = why;
	tx->lost++;
	if (tx->again_n++ == 0 || hca_psn_diff(psn, tx->again_at) < 0)
		tx->again_at = psn;
}

void
hca_tp_again_drop(struct hca_tp *tp, uint32_t psn)
{
	struct hca_tp_tx *tx = &tp->tx;

	if (!hca_bit_test(tx->again, tp_mask(tp), psn))
		return;
	hca_bit_clear(tx->again, tp_mask(tp), psn);
	tx->again_n--;
}

void
hca_tp_again_all(struct hca_tp *tp, enum hca_tp_again why)
{
	struct hca_tp_tx *tx = &tp->tx;

	for (uint32_t psn = tx->una; psn != tx->next; psn = hca_tp_psn(psn, 1)) {
		if (!hca_bit_test(tx->got, tp_mask(tp), psn))
			hca_tp_again_add(tp, psn, why);
	}
	tx->phase = HCA_TP_PHASE_RTX;
}

uint32_t
hca_tp_again_first(const struct hca_tp *tp)
{
	const struct hca_tp_tx *tx = &tp->tx;
	uint32_t psn = hca_psn_diff(tx->again_at, tx->una) < 0 ? tx->una : tx->again_at;
	uint64_t word;

	while ((word = hca_bits_at(tx->again, tp_mask(tp), psn)) == 0)
		psn = hca_tp_psn(psn, 64);
	return hca_tp_psn(psn, (uint32_t)__builtin_ctzll(word));
}

static bool
tp_is_lost(const struct hca_tp *tp, uint32_t psn, bool marked)
{
	const struct hca_tp_tx *tx = &tp->tx;

	switch (tp->cfg.rule) {
	case HCA_TP_RULE_TIME:
		return tx->newest > tp_slot(tp, psn)->sent_at + tp->cfg.reorder;
	case HCA_TP_RULE_HIGH:
		return hca_psn_diff(psn, tx->high) > 0;
	default:
		return marked || hca_psn_diff(psn, tx->high) > 0;
	}
}

/* Packets from..from + 63 whose bits are set in `missing`. */
static void
judge_word(struct hca_tp *tp, uint32_t from, uint64_t missing, bool marked)
{
	static const uint8_t why[HCA_TP_RULES] = {[HCA_TP_RULE_HIGH] = HCA_TP_AGAIN_HIGH,
						  [HCA_TP_RULE_MARK] = HCA_TP_AGAIN_MARK,
						  [HCA_TP_RULE_TIME] = HCA_TP_AGAIN_TIME};

	for (; missing != 0; missing &= missing - 1) {
		uint32_t psn = hca_tp_psn(from, (uint32_t)__builtin_ctzll(missing));

		if (tp_is_lost(tp, psn, marked))
			hca_tp_again_add(tp, psn, why[tp->cfg.rule]);
	}
}

void
hca_tp_judge(struct hca_tp *tp, uint32_t from, uint32_t to, uint32_t top)
{
	struct hca_tp_tx *tx = &tp->tx;
	bool mark = tp->cfg.rule == HCA_TP_RULE_MARK;
	bool marked = mark && tx->phase == HCA_TP_PHASE_NEW && hca_psn_diff(top, tx->mark) >= 0;
	uint32_t n = hca_psn_diff(to, from) < 0 ? 0 : hca_tp_past(to, from) + 1;

	if (tp->cfg.rule == HCA_TP_RULE_NAK || tp->cfg.rule == HCA_TP_RULE_NONE)
		return;
	for (uint32_t k = 0; k < n; k += 64) {
		uint32_t psn = hca_tp_psn(from, k);
		uint64_t got = hca_bits_at(tx->got, tp_mask(tp), psn);

		judge_word(tp, psn, ~got & hca_bits_range(k, 0, n), marked);
	}
	if (marked && tx->again_n != 0)
		tx->phase = HCA_TP_PHASE_RTX;
}

void
hca_tp_mark_settle(struct hca_tp *tp)
{
	struct hca_tp_tx *tx = &tp->tx;

	if (tx->phase != HCA_TP_PHASE_RTX || tx->again_n != 0)
		return;
	tx->phase = HCA_TP_PHASE_NEW;
	tx->mark = tx->next;
}
