/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Answers of the peer. They are ignored where they concern a packet that was not sent, and an
 * acknowledgement is never taken back.
 */

#include "ub/tp/tp_impl.h"

/* One answer, while it is worked on. */
struct hearing {
	struct hca_tp *tp;
	uint64_t now;
	uint32_t top;	/* highest PSN that it says has arrived */
	uint64_t timed; /* latest sending of a packet sent once that it reports; 0: none */
};

/* A packet sent once says how long it took; another one may have been answered before that. */
static inline void
tp_note_arrival(struct hearing *hear, const struct hca_tp_slot *slot)
{
	struct hca_tp_tx *tx = &hear->tp->tx;
	uint64_t rtt = hear->now > slot->sent_at ? hear->now - slot->sent_at : 0;

	if (!(slot->flags & HCA_TP_SLOT_RESENT)) {
		hear->timed = RTE_MAX(hear->timed, slot->sent_at);
		tx->min_rtt = RTE_MIN(tx->min_rtt, rtt);
	}
	if (rtt >= tx->min_rtt)
		tx->newest = RTE_MAX(tx->newest, slot->sent_at);
}

static void
mark_got(struct hca_tp *tp, uint32_t psn)
{
	tp->tx.got_n += !hca_bit_test(tp->tx.got, tp_mask(tp), psn);
	hca_bit_set(tp->tx.got, tp_mask(tp), psn);
	hca_tp_again_drop(tp, psn);
}

static void
tp_arrived(struct hearing *hear, uint32_t psn)
{
	struct hca_tp *tp = hear->tp;

	if (hca_bit_test(tp->tx.got, tp_mask(tp), psn))
		return;
	mark_got(tp, psn);
	tp_note_arrival(hear, tp_slot(tp, psn));
}

/* Everything before psn. */
static void
tp_arrived_before(struct hearing *hear, uint32_t psn)
{
	for (uint32_t i = hear->tp->tx.una; hca_psn_diff(i, psn) < 0; i = hca_tp_psn(i, 1))
		tp_arrived(hear, i);
}

/* ---- una ---- */

static inline void
tp_op_acked(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint32_t ref)
{
	struct hca_ta_op *op = hca_ta_op_at(pools, ref);

	op->tps.flags |= HCA_TA_OP_ACKED;
	tp->tx.ops_acked++;
}

/* PSNs that are kept are compared with una: each stays within half of the PSN space of it. */
static void
keep_up(struct hca_tp_tx *tx)
{
	if (hca_psn_diff(tx->high, tx->una) < 0)
		tx->high = hca_tp_psn_before(tx->una);
	if (hca_psn_diff(tx->mark, tx->una) < 0)
		tx->mark = tx->una;
}

static inline void
move_una(struct hca_tp *tp, uint32_t una, uint64_t now)
{
	struct hca_tp_tx *tx = &tp->tx;

	__atomic_store_n(&tx->una, una, __ATOMIC_RELEASE);
	tx->times = 0;
	tx->nak = 0;
	tx->excused = false;
	tx->deadline = una == tx->next ? HCA_TP_NEVER : now + hca_tp_rto(tp);
	keep_up(tx);
}

void
hca_tp_advance(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint64_t now)
{
	struct hca_tp_tx *tx = &tp->tx;
	uint32_t una = tx->una;

	while (una != tx->next && hca_bit_test(tx->got, tp_mask(tp), una)) {
		const struct hca_tp_slot *slot = tp_slot(tp, una);

		hca_bit_clear(tx->got, tp_mask(tp), una);
		tx->got_n--;
		if (slot->flags & HCA_TP_SLOT_LAST)
			tp_op_acked(tp, pools, slot->op);
		una = hca_tp_psn(una, 1);
	}
	if (una != tx->una)
		move_una(tp, una, now);
}

bool
hca_tp_answered(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint32_t psn)
{
	const struct hca_ta_op *op = hca_ta_op_at(pools, tp_slot(tp, psn)->op);

	if (!(hca_ta_op_flags(op) & HCA_TA_OP_ANSWERED))
		return false;
	mark_got(tp, psn);
	return true;
}

bool
hca_tp_note_status(struct hca_tp *tp, const struct hca_ta_op_pools *pools,
		   const struct hca_tp_answer *a)
{
	struct hca_tp_tx *tx = &tp->tx;
	uint32_t n = hca_tp_past(a->psn, tx->una) + 1;

	if (n > tp_in_flight(tp))
		return false;
	while (n-- != 0) {
		const struct hca_tp_slot *slot = tp_slot(tp, hca_tp_psn(tx->una, n));
		struct hca_ta_op *op = hca_ta_op_at(pools, slot->op);

		if (!(slot->flags & HCA_TP_SLOT_LAST) || op->tps.tpmsn != a->tpmsn)
			continue;
		if (slot->op >> HCA_TA_OPREF_LANE_SHIFT != HCA_TP_REQUESTS)
			return false;
		op->tps.flags |= HCA_TA_OP_MAKE_TOLD(a->status);
		__atomic_store_n(&tx->told, tx->told + 1, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

/* ---- kinds of answers ---- */

static void
tp_hear_nak(struct hearing *hear, const struct hca_tp_answer *a)
{
	tp_arrived_before(hear, a->psn);
	hear->top = hca_tp_psn_before(a->psn);
}

/* After una is at the PSN that the peer asks for. */
static void
go_back(struct hca_tp *tp, const struct hca_tp_answer *a)
{
	struct hca_tp_tx *tx = &tp->tx;
	uint32_t nak = a->psn | UINT32_C(1) << 31;

	if (tp->cfg.rule == HCA_TP_RULE_NONE || tx->nak == nak || a->psn != tx->una)
		return;
	tx->nak = nak;
	hca_tp_again_all(tp, HCA_TP_AGAIN_NAK);
}

/* Bits from k on: packets that were sent and are not acknowledged yet. */
static void
tp_hear_word(struct hearing *hear, uint32_t psn, uint64_t word)
{
	const struct hca_tp *tp = hear->tp;

	for (word &= ~hca_bits_at(tp->tx.got, tp_mask(tp), psn); word != 0; word &= word - 1)
		tp_arrived(hear, hca_tp_psn(psn, (uint32_t)__builtin_ctzll(word)));
}

/* The bits between una and next - 1 count; before the first of them everything has arrived. */
static void
tp_hear_sack(struct hearing *hear, const struct hca_tp_answer *a)
{
	const struct hca_tp_tx *tx = &hear->tp->tx;
	uint32_t end = RTE_MIN(HCA_TP_SACK_BITS(a->sack_code), hca_tp_past(tx->next, a->psn));
	uint32_t begin = hca_psn_diff(a->psn, tx->una) < 0 ? 1 : 0;

	tp_arrived_before(hear, a->psn);
	hear->top = hca_tp_psn_before(a->psn);
	for (uint32_t k = 0; k < end; k += 64) {
		uint64_t word = hca_get_le64(a->bits + k / 8) & hca_bits_range(k, begin, end);

		if (word == 0)
			continue;
		tp_hear_word(hear, hca_tp_psn(a->psn, k), word);
		hear->top = hca_tp_psn(a->psn, k + 63 - (uint32_t)__builtin_clzll(word));
	}
}

/*
 * The last PSN that a TPSACK says something of: MaxRcv, as far as the bitmap reaches. If it is
 * beyond the last PSN sent, the bits alone count.
 */
static uint32_t
reach_of(const struct hearing *hear, const struct hca_tp_answer *a)
{
	uint32_t reach = hca_tp_past(a->max_rcv, a->psn);
	uint32_t sent = hca_tp_past(hear->tp->tx.next, a->psn);

	if (reach >= sent)
		return hear->top;
	return hca_tp_psn(a->psn, RTE_MIN(reach, HCA_TP_SACK_BITS(a->sack_code) - 1));
}

/* ---- */

/* An answer names the last packet in order; a TPNAK the one behind it, which was sent. */
static enum hca_tp_heard
tp_judge_answer(const struct hca_tp *tp, const struct hca_tp_answer *a)
{
	bool nak = a->kind == HCA_TP_TPNAK;
	uint32_t from = nak ? tp->tx.una : hca_tp_psn_before(tp->tx.una);
	uint32_t d = hca_tp_past(a->psn, from);

	if (d >= HCA_PSN_HALF)
		return HCA_TP_HEARD_OLD;
	return d < tp_in_flight(tp) + (nak ? 0 : 1) ? HCA_TP_HEARD_NEWS : HCA_TP_HEARD_BAD;
}

/* Smoothed by an eighth. */
static void
time_round_trip(struct hca_tp_tx *tx, const struct hearing *hear)
{
	uint64_t rtt = hear->now > hear->timed ? hear->now - hear->timed : 0;

	tx->rtt = hear->timed != 0 ? rtt : 0;
	if (hear->timed == 0)
		return;
	tx->srtt = tx->srtt == 0 ? RTE_MAX(rtt, 1u) : tx->srtt - tx->srtt / 8 + rtt / 8;
}

static void
tp_hear_kind(struct hearing *hear, const struct hca_tp_answer *a)
{
	switch (a->kind) {
	case HCA_TP_TPNAK:
		tp_hear_nak(hear, a);
		break;
	case HCA_TP_TPSACK:
		tp_hear_sack(hear, a);
		break;
	default:
		hear->top = a->psn;
		tp_arrived_before(hear, hca_tp_psn(a->psn, 1));
		break;
	}
}

/* ---- the usual answer ---- */

static inline bool
tp_op_is_finished(const struct hca_ta_op_pools *pools, const struct hca_tp_slot *slot,
		  uint32_t done_seq)
{
	return (int32_t)(done_seq - hca_ta_op_at(pools, slot->op)->tps.desc_seq) >= 0;
}

/*
 * n packets from una on are acknowledged, none of them was sent again. If encap has finished the
 * operations of the first and the last one, it also has those between them: as far as they have one
 * packet each, the first one perhaps more before una, and are the next ones of a lane, they go back
 * at once and are not looked at.
 */
static inline void
tp_ops_acked(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint32_t una, uint32_t n)
{
	uint32_t seq = __atomic_load_n(&tp->encap.done_seq, __ATOMIC_ACQUIRE), mask = tp_mask(tp);
	const struct hca_tp_slot *slot = tp_slot(tp, una);
	uint32_t lane = slot->op >> HCA_TA_OPREF_LANE_SHIFT, mark = hca_ta_opref(lane, 0), i = 0;
	uint32_t done = tp->tx.lane[lane].done;

	if (tp_op_is_finished(pools, slot, seq) &&
	    tp_op_is_finished(pools, tp_slot(tp, una + n - 1), seq))
		while (i < n && slot->flags & HCA_TP_SLOT_LAST &&
		       slot->op == (tp->lane[lane].ring[done & mask] | mark)) {
			done++;
			slot = tp_slot(tp, una + ++i);
		}
	tp->tx.ops_acked += i;
	__atomic_store_n(&tp->tx.lane[lane].done, done, __ATOMIC_RELEASE);
	for (; i < n; slot = tp_slot(tp, una + ++i))
		if (slot->flags & HCA_TP_SLOT_LAST)
			tp_op_acked(tp, pools, slot->op);
}

/*
 * A TPACK while nothing is missing and nothing was sent again: of the packets that it is the first
 * to report only the latest one says more than the others, because they left in this order. False:
 * it is not so, and the TP is unchanged.
 */
static inline bool
tp_hear_usual(struct hearing *hear, const struct hca_ta_op_pools *pools,
	      const struct hca_tp_answer *a)
{
	struct hca_tp *tp = hear->tp;
	struct hca_tp_tx *tx = &tp->tx;
	uint32_t una = tx->una, n = hca_tp_past(a->psn, una) + 1;

	/* high: none of those that are not acknowledged was sent again */
	if (a->kind != HCA_TP_TPACK || tx->got_n != 0 || tx->again_n != 0 ||
	    tx->phase != HCA_TP_PHASE_NEW || n > tp->cfg.window ||
	    tx->high != hca_tp_psn_before(una))
		return false;
	tp_note_arrival(hear, tp_slot(tp, a->psn));
	time_round_trip(tx, hear);
	tp_ops_acked(tp, pools, una, n);
	move_una(tp, hca_tp_psn(a->psn, 1), hear->now);
	return true;
}

enum hca_tp_heard
hca_tp_ack(struct hca_tp *tp, const struct hca_ta_op_pools *pools, const struct hca_tp_answer *a,
	   uint64_t now)
{
	struct hearing hear = {.tp = tp, .now = now};
	enum hca_tp_heard heard = tp_judge_answer(tp, a);
	struct hca_tp_tx *tx = &tp->tx;
	uint32_t from;

	if (unlikely(heard != HCA_TP_HEARD_NEWS)) {
		tx->acks_stale += heard == HCA_TP_HEARD_OLD;
		tx->acks_bad += heard == HCA_TP_HEARD_BAD;
		return heard;
	}
	if (HCA_SHORT_WAYS && likely(tp_hear_usual(&hear, pools, a)))
		return heard;
	tp_hear_kind(&hear, a);
	time_round_trip(tx, &hear);
	hca_tp_advance(tp, pools, now);
	from = hca_psn_diff(a->psn, tx->una) < 0 ? tx->una : a->psn;
	if (a->kind == HCA_TP_TPNAK)
		go_back(tp, a);
	else
		hca_tp_judge(tp, from,
			     a->kind == HCA_TP_TPSACK ? reach_of(&hear, a)
						      : hca_tp_psn_before(from),
			     hear.top);
	hca_tp_mark_settle(tp);
	return heard;
}
