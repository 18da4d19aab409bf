/* SPDX-License-Identifier: BSD-3-Clause */

/* The receiving half of a TP: order, duplicates, and answers that are due to the peer. */

#include <string.h>

#include "ub/tp/tp_bits.h"
#include "ub/tp/tp_core.h"

static void
tp_owe_answer(struct hca_tp_rx *rx, enum hca_tp_debt debt)
{
	rx->debt = RTE_MAX(rx->debt, debt);
}

/* TPMSNs grow by one behind each `last`, and only there. seen: TPMSN and HCA_TP_SEEN_*. */
static bool
tp_fits_window(struct hca_tp_rx *rx, uint32_t seen)
{
	if (seen & HCA_TP_SEEN_FAKE)
		return true;
	if ((seen & HCA_PSN_MASK) != rx->msn)
		return false;
	if (seen & HCA_TP_SEEN_LAST)
		rx->msn = hca_tp_psn(rx->msn, 1);
	return true;
}

static uint32_t
seen_of(const struct hca_tp_pkt *p)
{
	return (p->tpmsn & HCA_PSN_MASK) | (p->last ? HCA_TP_SEEN_LAST : 0) |
	       (p->fake ? HCA_TP_SEEN_FAKE : 0);
}

static void
tp_is_broken(struct hca_tp *tp)
{
	tp->rx.broken++;
	hca_tp_fail(tp);
}

/* The packets behind epsn that came before it are in order now. */
static uint32_t
tp_catch_up(struct hca_tp *tp, uint32_t epsn)
{
	struct hca_tp_rx *rx = &tp->rx;
	uint32_t mask = tp->cfg.window - 1u;

	while (hca_bit_test(rx->bits, mask, epsn)) {
		if (!tp_fits_window(rx, rx->seen[epsn & mask])) {
			tp_is_broken(tp);
			break;
		}
		hca_bit_clear(rx->bits, mask, epsn);
		rx->unacked++;
		epsn = hca_tp_psn(epsn, 1);
	}
	return epsn;
}

static enum hca_tp_verdict
tp_take_good(struct hca_tp *tp, const struct hca_tp_pkt *p)
{
	if (unlikely(hca_tp_state(tp) == HCA_TPS_PASSIVE))
		hca_tp_state_cas(tp, HCA_TPS_PASSIVE, HCA_TPS_ACTIVE);
	if (likely(!p->fake))
		tp->rx.ack_msn = p->tpmsn;
	return p->fake ? HCA_TP_FAKE : HCA_TP_PASS;
}

static enum hca_tp_verdict
tp_take_in_order(struct hca_tp *tp, const struct hca_tp_pkt *p)
{
	struct hca_tp_rx *rx = &tp->rx;
	uint32_t epsn;

	if (unlikely(!tp_fits_window(rx, seen_of(p)))) {
		tp_is_broken(tp);
		return HCA_TP_INVALID;
	}
	rx->unacked++;
	epsn = tp_catch_up(tp, hca_tp_psn(rx->epsn, 1));
	__atomic_store_n(&rx->epsn, epsn, __ATOMIC_RELEASE);
	if (hca_psn_diff(rx->max_rcv, epsn) < 0)
		__atomic_store_n(&rx->max_rcv, hca_tp_psn_before(epsn), __ATOMIC_RELAXED);
	/*
	 * a NAK that is due is still sent: the peer sends a dropped packet again if it is asked to
	 */
	if (unlikely(rx->nak == HCA_TP_NAK_SENT))
		rx->nak = HCA_TP_NAK_NONE;
	tp_owe_answer(rx, p->ask || p->last || rx->unacked >= tp->cfg.ack_every
				  ? HCA_TP_OWES_NOW
				  : HCA_TP_OWES_LATER);
	return tp_take_good(tp, p);
}

/* Mode DROP: asks for epsn, once. */
static enum hca_tp_verdict
tp_refuse(struct hca_tp_rx *rx)
{
	if (rx->nak == HCA_TP_NAK_NONE) {
		rx->nak = HCA_TP_NAK_DUE;
		tp_owe_answer(rx, HCA_TP_OWES_NOW);
	}
	return HCA_TP_OUT_OF_ORDER;
}

/* Within the window, not in order. */
static enum hca_tp_verdict
tp_take_out_of_order(struct hca_tp *tp, const struct hca_tp_pkt *p)
{
	struct hca_tp_rx *rx = &tp->rx;
	uint32_t mask = tp->cfg.window - 1u;
	bool sack = tp->cfg.mode == HCA_TP_MODE_SACK;

	if (hca_bit_test(rx->bits, mask, p->psn)) {
		if (sack)
			tp_owe_answer(rx, HCA_TP_OWES_NOW);
		return HCA_TP_DUPLICATE;
	}
	hca_bit_set(rx->bits, mask, p->psn);
	rx->seen[p->psn & mask] = seen_of(p);
	if (hca_psn_diff(p->psn, rx->max_rcv) > 0)
		__atomic_store_n(&rx->max_rcv, p->psn, __ATOMIC_RELAXED);
	rx->accepted_ooo++;
	rx->ooo++;
	if (sack)
		tp_owe_answer(rx, p->ask || rx->ooo % tp->cfg.ooo_every == 0 ? HCA_TP_OWES_NOW
									     : HCA_TP_OWES_LATER);
	return tp_take_good(tp, p);
}

static enum hca_tp_verdict
tp_judge_packet(struct hca_tp *tp, const struct hca_tp_pkt *p)
{
	struct hca_tp_rx *rx = &tp->rx;
	uint32_t d = hca_tp_past(p->psn, rx->epsn);

	if (likely(d == 0))
		return tp_take_in_order(tp, p);
	if (d >= HCA_PSN_HALF) {
		tp_owe_answer(rx, HCA_TP_OWES_NOW);
		return HCA_TP_DUPLICATE;
	}
	if (d > tp->cfg.window)
		return HCA_TP_INVALID;
	if (tp->cfg.mode == HCA_TP_MODE_DROP)
		return tp_refuse(rx);
	return tp_take_out_of_order(tp, p);
}

static void
tp_count_verdict(struct hca_tp_rx *rx, enum hca_tp_verdict verdict)
{
	rx->packets++;
	switch (verdict) {
#define X(name, counter) \
	case HCA_TP_##name: \
		rx->counter++; \
		break;
		HCA_TP_VERDICT_LIST(X)
#undef X
	}
}

enum hca_tp_verdict
hca_tp_accept(struct hca_tp *tp, const struct hca_tp_pkt *p)
{
	enum hca_tp_verdict verdict = tp_judge_packet(tp, p);

	if (likely(verdict != HCA_TP_INVALID))
		tp->rx.port = p->port;
	tp_count_verdict(&tp->rx, verdict);
	return verdict;
}

/* ---- answers ---- */

/* Bit 0 is epsn - 1, which has come; bit 1 is epsn, which has not. */
static void
fill_bits(const struct hca_tp *tp, uint32_t reach, uint8_t *bits, uint32_t bytes)
{
	const struct hca_tp_rx *rx = &tp->rx;
	uint32_t mask = tp->cfg.window - 1u, base = hca_tp_psn_before(rx->epsn);

	for (uint32_t k = 0; k < bytes * 8; k += 64) {
		uint64_t word = hca_bits_at(rx->bits, mask, hca_tp_psn(base, k));

		word &= hca_bits_range(k, 2, reach + 1);
		hca_put_le64(bits + k / 8, k == 0 ? word | 1 : word);
	}
}

/* The smallest size that reaches max_rcv, at most the agreed one. */
static void
make_sack(const struct hca_tp *tp, struct hca_tp_answer *a, uint8_t *bits)
{
	uint32_t reach = hca_tp_past(tp->rx.max_rcv, a->psn), code = 0;

	while (code < tp->cfg.sack_code && HCA_TP_SACK_BITS(code) <= reach)
		code++;
	a->kind = HCA_TP_TPSACK;
	a->sack_code = (uint8_t)code;
	a->max_rcv = tp->rx.max_rcv;
	a->bits = bits;
	fill_bits(tp, reach, bits, HCA_TP_SACK_BITS(code) / 8);
}

bool
hca_tp_make_answer(struct hca_tp *tp, struct hca_tp_answer *a, uint8_t *bits)
{
	struct hca_tp_rx *rx = &tp->rx;

	if (rx->debt == HCA_TP_OWES_NOTHING)
		return false;
	*a = (struct hca_tp_answer){.psn = hca_tp_psn_before(rx->epsn),
				    .tpmsn = rx->ack_msn,
				    .port = rx->port,
				    .kind = HCA_TP_TPACK};
	if (rx->nak == HCA_TP_NAK_DUE) {
		a->kind = HCA_TP_TPNAK;
		a->psn = rx->epsn;
		rx->nak = HCA_TP_NAK_SENT;
	} else if (tp->cfg.mode == HCA_TP_MODE_SACK && hca_psn_diff(rx->max_rcv, rx->epsn) >= 0) {
		make_sack(tp, a, bits);
	}
	rx->debt = HCA_TP_OWES_NOTHING;
	rx->unacked = rx->ooo = 0;
	rx->answers++;
	return true;
}
