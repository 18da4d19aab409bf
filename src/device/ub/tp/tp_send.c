/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The sending half of a TP: which packet leaves next. Packets to be sent again go first; then the
 * two lanes in turn, by operation, responses first. An operation is never cut.
 */

#include "ub/tp/tp_impl.h"

/* ---- lanes ---- */

static inline uint32_t
lane_head(const struct hca_tp *tp, uint32_t lane)
{
	return __atomic_load_n(&tp->lane[lane].head, __ATOMIC_ACQUIRE);
}

static inline uint32_t
lane_ref(const struct hca_tp *tp, uint32_t lane, uint32_t position)
{
	return hca_ta_opref(lane, tp->lane[lane].ring[position & tp_mask(tp)]);
}

/* Skip operations that were given up and have no PSN. */
static __rte_noinline bool
skip_orphans(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint32_t lane)
{
	struct hca_tp_lane_tx *l = &tp->tx.lane[lane];
	uint32_t head = lane_head(tp, lane);

	while (l->next != head) {
		struct hca_ta_op *op = hca_ta_op_at(pools, lane_ref(tp, lane, l->next));

		if (l->sent != 0 || !(hca_ta_op_flags(op) & HCA_TA_OP_ORPHAN))
			return true;
		op->tps.flags = HCA_TA_OP_SKIPPED;
		tp->tx.ops_skipped++;
		l->next++;
	}
	return false;
}

static inline bool
lane_has_op(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint32_t lane)
{
	const struct hca_tp_lane_tx *l = &tp->tx.lane[lane];
	const struct hca_ta_op *op;

	if (l->next == lane_head(tp, lane))
		return false;
	op = hca_ta_op_at(pools, lane_ref(tp, lane, l->next));
	if (likely(l->sent != 0 || !(hca_ta_op_flags(op) & HCA_TA_OP_ORPHAN)))
		return true;
	return skip_orphans(tp, pools, lane);
}

/* The lane that the next new packet comes from; HCA_TP_LANES: no lane has a packet. */
static inline uint32_t
choose_lane(struct hca_tp *tp, const struct hca_ta_op_pools *pools)
{
	uint32_t lane = tp->tx.turn;

	if (lane_has_op(tp, pools, lane))
		return lane;
	if (lane_has_op(tp, pools, lane ^ 1))
		return lane ^ 1;
	return HCA_TP_LANES;
}

/* ---- packets ---- */

/* No two packets of a TP leave at the same time, so the order of their times is that of sending. */
static inline uint64_t
tp_stamp(struct hca_tp_tx *tx, uint64_t now)
{
	tx->sent_at = RTE_MAX(now, tx->sent_at + 1);
	return tx->sent_at;
}

static inline uint16_t
choose_port(struct hca_tp *tp)
{
	if (!(tp->cfg.flags & HCA_TP_FLAG_SPRAY))
		return 0;
	return tp->tx.spray++ & (uint16_t)((1u << tp->cfg.ports_log) - 1);
}

/* Send the packet of a slot now; its operation and flags are set. */
static inline void
tp_send_slot(struct hca_tp *tp, struct hca_ta_op *op, uint32_t psn, bool ask, uint64_t now,
	     struct hca_tp_txd *d)
{
	struct hca_tp_slot *slot = tp_slot(tp, psn);
	struct hca_tp_tx *tx = &tp->tx;

	slot->port = choose_port(tp);
	slot->sent_at = tp_stamp(tx, now);
	op->tps.desc_seq = ++tx->desc_seq;
	tx->since_ask = ask ? 0 : tx->since_ask + 1;
	if (tx->deadline == HCA_TP_NEVER)
		tx->deadline = now + hca_tp_rto(tp);
	*d = (struct hca_tp_txd){.generation = tp->cfg.generation,
				 .op = slot->op,
				 .packet = hca_tp_past(psn, op->tps.psn),
				 .psn = psn,
				 .seq = op->tps.desc_seq,
				 .port = (uint16_t)(tp->cfg.port + slot->port)};
	d->flags = (slot->flags & HCA_TP_SLOT_LAST ? HCA_TP_TXD_LAST : 0) |
		   (slot->flags & HCA_TP_SLOT_RESENT ? HCA_TP_TXD_AGAIN : 0) |
		   (ask ? HCA_TP_TXD_ASK : 0);
}

static inline void
begin_op(struct hca_tp *tp, struct hca_ta_op *op)
{
	struct hca_tp_tx *tx = &tp->tx;

	op->tps.psn = tx->next;
	op->tps.tpmsn = tx->tpmsn;
	op->tps.flags = HCA_TA_OP_SENT;
	tx->tpmsn = hca_tp_psn(tx->tpmsn, 1);
	tx->ops_sent++;
}

/* A packet of the lane has its PSN. Returns whether it was the last of its operation. */
static inline bool
step_lane(struct hca_tp *tp, uint32_t lane, const struct hca_ta_op *op)
{
	struct hca_tp_lane_tx *l = &tp->tx.lane[lane];
	bool last = ++l->sent == hca_ta_op_packets(op, tp->cfg.mtu_log);

	tp->tx.turn = last ? lane ^ 1 : lane;
	if (last) {
		l->sent = 0;
		l->next++;
	}
	return last;
}

/* An answer is wanted: at the end of an operation or of the window, and often enough between. */
static inline bool
tp_asks(const struct hca_tp *tp, bool last)
{
	uint32_t every = RTE_MAX(tp->cfg.ack_every / 2u, 1u);

	return last || tp_in_flight(tp) + 1 == tp->cfg.window || tp->tx.since_ask + 1u >= every;
}

static inline void
tp_send_new(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint32_t lane, uint64_t now,
	    struct hca_tp_txd *d)
{
	struct hca_tp_tx *tx = &tp->tx;
	uint32_t ref = lane_ref(tp, lane, tx->lane[lane].next), psn = tx->next;
	struct hca_ta_op *op = hca_ta_op_at(pools, ref);
	bool last;

	if (tx->lane[lane].sent == 0)
		begin_op(tp, op);
	last = step_lane(tp, lane, op);
	*tp_slot(tp, psn) = (struct hca_tp_slot){.op = ref, .flags = last ? HCA_TP_SLOT_LAST : 0};
	tp_send_slot(tp, op, psn, tp_asks(tp, last), now, d);
	tx->packets++;
	__atomic_store_n(&tx->next, hca_tp_psn(psn, 1), __ATOMIC_RELEASE);
}

static void
tp_send_again(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint32_t psn, uint64_t now,
	      struct hca_tp_txd *d)
{
	struct hca_tp_slot *slot = tp_slot(tp, psn);
	struct hca_tp_tx *tx = &tp->tx;

	hca_tp_again_drop(tp, psn);
	tx->again_at = hca_tp_psn(psn, 1);
	if (hca_psn_diff(psn, tx->high) > 0)
		tx->high = psn;
	tx->resent[slot->why]++;
	slot->flags |= HCA_TP_SLOT_RESENT;
	tp_send_slot(tp, hca_ta_op_at(pools, slot->op), psn, true, now, d);
	hca_tp_mark_settle(tp);
}

/* ---- the next packet ---- */

/* Whether the resend set may be sent from; rule MARK waits while there are new packets. */
static bool
may_resend(const struct hca_tp *tp, bool fresh)
{
	if (tp->tx.again_n == 0)
		return false;
	return tp->cfg.rule != HCA_TP_RULE_MARK || tp->tx.phase == HCA_TP_PHASE_RTX || !fresh;
}

enum pick {
	PICK_NONE, /* no packet may leave */
	PICK_DONE,
	PICK_HELD, /* congestion control does not allow it */
};

/* Whether congestion control allows a packet of an operation. */
static inline bool
tp_fits(const struct hca_tp *tp, const struct hca_ta_op *op, uint32_t packet, uint32_t leave)
{
	return likely(leave == UINT32_MAX) ||
	       hca_ta_op_packet_len(op, packet, tp->cfg.mtu_log) + HCA_CC_FRAME_OVERHEAD <= leave;
}

/* A packet whose operation was answered is received and is not sent again. */
static enum pick
tp_pick_again(struct hca_tp *tp, const struct hca_ta_op_pools *pools, bool fresh, uint64_t now,
	      uint32_t leave, struct hca_tp_txd *d)
{
	while (may_resend(tp, fresh)) {
		uint32_t psn = hca_tp_again_first(tp);
		const struct hca_tp_slot *slot = tp_slot(tp, psn);
		const struct hca_ta_op *op = hca_ta_op_at(pools, slot->op);

		tp->tx.phase = HCA_TP_PHASE_RTX;
		if (likely(!hca_tp_answered(tp, pools, psn))) {
			if (!tp_fits(tp, op, hca_tp_past(psn, op->tps.psn), leave))
				return PICK_HELD;
			tp_send_again(tp, pools, psn, now, d);
			return PICK_DONE;
		}
		hca_tp_advance(tp, pools, now);
		hca_tp_mark_settle(tp);
	}
	return PICK_NONE;
}

/*
 * Unreliable packets: operations of one packet each, without PSN. They count as acknowledged, so
 * they go back when encap has finished them.
 */
static bool
tp_pick_unreliable(struct hca_tp *tp, const struct hca_ta_op_pools *pools, struct hca_tp_txd *d)
{
	struct hca_tp_lane_tx *l = &tp->tx.lane[HCA_TP_REQUESTS];
	struct hca_ta_op *op;
	uint32_t ref;

	if (!lane_has_op(tp, pools, HCA_TP_REQUESTS))
		return false;
	ref = lane_ref(tp, HCA_TP_REQUESTS, l->next++);
	op = hca_ta_op_at(pools, ref);
	op->tps.desc_seq = ++tp->tx.desc_seq;
	op->tps.flags = HCA_TA_OP_SENT | HCA_TA_OP_ACKED;
	tp->tx.packets++;
	*d = (struct hca_tp_txd){.generation = tp->cfg.generation,
				 .op = ref,
				 .seq = op->tps.desc_seq,
				 .port = tp->cfg.port,
				 .flags = HCA_TP_TXD_LAST};
	return true;
}

/* leave: bytes that congestion control allows, UINT32_MAX: any number. */
static enum pick
tp_pick_within(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint64_t now, uint32_t leave,
	       struct hca_tp_txd *d)
{
	uint32_t lane = HCA_TP_LANES;
	const struct hca_ta_op *op;
	enum pick again;

	if (unlikely(!hca_tp_sends(hca_tp_state(tp))))
		return PICK_NONE;
	if (unlikely(tp->cfg.mode == HCA_TP_MODE_UNRELIABLE))
		return tp_pick_unreliable(tp, pools, d) ? PICK_DONE : PICK_NONE;
	if (tp_in_flight(tp) < tp->cfg.window)
		lane = choose_lane(tp, pools);
	if (unlikely(tp->tx.again_n != 0)) {
		again = tp_pick_again(tp, pools, lane != HCA_TP_LANES, now, leave, d);
		if (again != PICK_NONE)
			return again;
	}
	if (lane == HCA_TP_LANES)
		return PICK_NONE;
	op = hca_ta_op_at(pools, lane_ref(tp, lane, tp->tx.lane[lane].next));
	if (!tp_fits(tp, op, tp->tx.lane[lane].sent, leave))
		return PICK_HELD;
	tp_send_new(tp, pools, lane, now, d);
	return PICK_DONE;
}

bool
hca_tp_pick(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint64_t now,
	    struct hca_tp_txd *d)
{
	return tp_pick_within(tp, pools, now, UINT32_MAX, d) == PICK_DONE;
}

static inline void
tp_charge(struct hca_tp *tp, const struct hca_ta_op_pools *pools, const struct hca_tp_txd *d)
{
	const struct hca_ta_op *op = hca_ta_op_at(pools, d->op);

	tp->tx.deficit -= (int32_t)hca_ta_op_packet_len(op, d->packet, tp->cfg.mtu_log) +
			  HCA_TP_SCHED_OVERHEAD;
}

/*
 * New packets of a reliable TP, as hca_tp_pick() gives them when nothing is to be sent again.
 * d->tp is left to the caller.
 */
static inline uint32_t
tp_pick_new(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint64_t now,
	    struct hca_tp_txd *const *d, uint32_t room)
{
	uint32_t n = 0, lane;

	while (n < room && tp->tx.deficit > 0 && tp_in_flight(tp) < tp->cfg.window &&
	       (lane = choose_lane(tp, pools)) != HCA_TP_LANES) {
		tp_send_new(tp, pools, lane, now, d[n]);
		tp_charge(tp, pools, d[n++]);
	}
	return n;
}

/* The lane with a new operation, if only one has some and no operation is half sent. */
static inline uint32_t
only_lane(const struct hca_tp *tp)
{
	const struct hca_tp_lane_tx *l = tp->tx.lane;
	bool responses = l[HCA_TP_RESPONSES].next != lane_head(tp, HCA_TP_RESPONSES);
	bool requests = l[HCA_TP_REQUESTS].next != lane_head(tp, HCA_TP_REQUESTS);

	if (responses == requests || (l[HCA_TP_RESPONSES].sent | l[HCA_TP_REQUESTS].sent) != 0)
		return HCA_TP_LANES;
	return responses ? HCA_TP_RESPONSES : HCA_TP_REQUESTS;
}

/*
 * A run of operations of one packet each, as tp_pick_new() sends them, with changing values in
 * locals. Ends before the first other operation.
 */
static inline uint32_t
tp_pick_run(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint64_t now,
	    struct hca_tp_txd *const *d, uint32_t room)
{
	uint32_t lane = only_lane(tp), n, psn, tpmsn, seq, next, mask = tp_mask(tp);
	uint32_t generation = tp->cfg.generation, mtu = UINT32_C(1) << tp->cfg.mtu_log;
	struct hca_tp_slot *slots = tp->tx.slot;
	struct hca_tp_tx *tx = &tp->tx;
	int32_t deficit = tx->deficit;
	uint16_t port = tp->cfg.port;
	struct hca_ta_op *ops;
	const uint32_t *ring;
	uint64_t at;

	if (lane == HCA_TP_LANES || tp->cfg.flags & HCA_TP_FLAG_SPRAY)
		return 0;
	next = tx->lane[lane].next;
	room = RTE_MIN(room, lane_head(tp, lane) - next);
	room = RTE_MIN(room, tp->cfg.window - tp_in_flight(tp));
	ring = tp->lane[lane].ring;
	ops = pools->op[lane];
	psn = tx->next;
	tpmsn = tx->tpmsn;
	seq = tx->desc_seq + 1;
	/* that of each is one higher than that of the one before */
	at = RTE_MAX(now, tx->sent_at + 1);
	for (n = 0; n < room && deficit > 0; n++) {
		uint32_t index = ring[(next + n) & mask], number = hca_tp_psn(psn, n);
		struct hca_ta_op *op = &ops[index];

		if (unlikely(op->payload > mtu || hca_ta_op_flags(op) & HCA_TA_OP_ORPHAN))
			break;
		op->tps.psn = number;
		op->tps.tpmsn = hca_tp_psn(tpmsn, n);
		op->tps.desc_seq = seq + n;
		op->tps.flags = HCA_TA_OP_SENT;
		slots[number & mask] = (struct hca_tp_slot){.op = hca_ta_opref(lane, index),
							    .flags = HCA_TP_SLOT_LAST,
							    .sent_at = at + n};
		*d[n] = (struct hca_tp_txd){.generation = generation,
					    .op = hca_ta_opref(lane, index),
					    .psn = number,
					    .seq = seq + n,
					    .port = port,
					    .flags = HCA_TP_TXD_LAST | HCA_TP_TXD_ASK};
		deficit -= (int32_t)op->payload + HCA_TP_SCHED_OVERHEAD;
	}
	if (n == 0)
		return 0;
	tx->sent_at = at + n - 1;
	tx->lane[lane].next = next + n;
	tx->tpmsn = hca_tp_psn(tpmsn, n);
	tx->desc_seq = seq + n - 1;
	tx->deficit = deficit;
	tx->turn = (uint8_t)(lane ^ 1);
	tx->since_ask = 0;
	tx->packets += n;
	tx->ops_sent += n;
	if (tx->deadline == HCA_TP_NEVER)
		tx->deadline = now + hca_tp_rto(tp);
	__atomic_store_n(&tx->next, hca_tp_psn(psn, n), __ATOMIC_RELEASE);
	return n;
}

uint32_t
hca_tp_pick_burst(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint64_t now,
		  struct hca_tp_txd *const *d, uint32_t room)
{
	uint32_t n = 0;

	if (HCA_SHORT_WAYS && likely(hca_tp_sends(hca_tp_state(tp)) && tp->tx.again_n == 0 &&
				     tp->cfg.mode != HCA_TP_MODE_UNRELIABLE)) {
		n = tp_pick_run(tp, pools, now, d, room);
		return n + tp_pick_new(tp, pools, now, d + n, room - n);
	}
	while (n < room && tp->tx.deficit > 0 && hca_tp_pick(tp, pools, now, d[n]))
		tp_charge(tp, pools, d[n++]);
	return n;
}

uint32_t
hca_tp_pick_allowed(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint64_t now,
		    struct hca_tp_leave *leave, struct hca_tp_txd *const *d, uint32_t room)
{
	uint32_t largest = (UINT32_C(1) << tp->cfg.mtu_log) + HCA_CC_FRAME_OVERHEAD, n = 0, bytes;

	while (n < room && tp->tx.deficit > 0) {
		enum pick picked = tp_pick_within(tp, pools, now, leave->bytes, d[n]);

		leave->held = picked == PICK_HELD;
		if (picked != PICK_DONE)
			break;
		tp_charge(tp, pools, d[n]);
		bytes = hca_ta_op_packet_len(hca_ta_op_at(pools, d[n]->op), d[n]->packet,
					     tp->cfg.mtu_log) +
			HCA_CC_FRAME_OVERHEAD;
		leave->bytes -= bytes;
		leave->sent += bytes;
		leave->fresh += !(d[n++]->flags & HCA_TP_TXD_AGAIN);
	}
	leave->frames = n;
	/* the next packet may wait for the answer to the last one */
	if (n != 0 && leave->bytes < largest) {
		d[n - 1]->flags |= HCA_TP_TXD_ASK;
		tp->tx.since_ask = 0;
	}
	return n;
}

/* ---- operations go back to their owners ---- */

/* TPS needs the operation no more; dead: its TP is given up. */
static inline bool
tp_op_is_over(uint32_t done_seq, const struct hca_ta_op *op, bool dead)
{
	if (!(op->tps.flags & HCA_TA_OP_SENT))
		return dead || op->tps.flags & HCA_TA_OP_SKIPPED;
	return (dead || op->tps.flags & HCA_TA_OP_ACKED) &&
	       (int32_t)(done_seq - op->tps.desc_seq) >= 0;
}

static void
release_lane(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint32_t lane, bool dead)
{
	struct hca_tp_lane_tx *l = &tp->tx.lane[lane];
	uint32_t end = dead ? lane_head(tp, lane) : l->next, done = l->done;
	uint32_t done_seq = __atomic_load_n(&tp->encap.done_seq, __ATOMIC_ACQUIRE);

	for (; done != end; done++) {
		const struct hca_ta_op *op = hca_ta_op_at(pools, lane_ref(tp, lane, done));
		uint32_t flags = op->tps.flags;

		if (!tp_op_is_over(done_seq, op, dead))
			break;
		tp->tx.ops_given_up += (flags & HCA_TA_OP_SENT) && !(flags & HCA_TA_OP_ACKED);
		tp->tx.ops_skipped += flags == 0;
	}
	if ((int32_t)(done - l->next) > 0) {
		l->next = done;
		l->sent = 0;
	}
	__atomic_store_n(&l->done, done, __ATOMIC_RELEASE);
}

void
hca_tp_release(struct hca_tp *tp, const struct hca_ta_op_pools *pools)
{
	bool dead = hca_tp_state(tp) == HCA_TPS_ERROR;

	release_lane(tp, pools, HCA_TP_RESPONSES, dead);
	release_lane(tp, pools, HCA_TP_REQUESTS, dead);
}
