/* SPDX-License-Identifier: BSD-3-Clause */

/* Which TP sends: deficit round robin over those that may have something to send. */

#include "ub/tp/tp_core.h"

static struct hca_cc *const asks_nothing = NULL;

void
hca_tp_sched_init(struct hca_tp_sched *s, struct hca_tp *tp, const struct hca_ta_op_pools *pools)
{
	*s = (struct hca_tp_sched){.tp = tp,
				   .pools = *pools,
				   .asks = &asks_nothing,
				   .pace.next = UINT64_MAX,
				   .head = HCA_TP_SCHED_NONE,
				   .tail = HCA_TP_SCHED_NONE};
}

static void
sched_append(struct hca_tp_sched *s, uint32_t i)
{
	s->tp[i].tx.list_next = HCA_TP_SCHED_NONE;
	if (s->head == HCA_TP_SCHED_NONE)
		s->head = i;
	else
		s->tp[s->tail].tx.list_next = i;
	s->tail = i;
}

static uint32_t
sched_pop(struct hca_tp_sched *s)
{
	uint32_t i = s->head;

	s->head = s->tp[i].tx.list_next;
	return i;
}

static void
sched_leave(struct hca_tp_sched *s, uint32_t i)
{
	s->tp[i].tx.ready = false;
	s->tp[i].tx.deficit = 0;
	s->count--;
}

void
hca_tp_sched_wake(struct hca_tp_sched *s, uint32_t i)
{
	if (s->tp[i].tx.ready)
		return;
	s->tp[i].tx.ready = true;
	s->count++;
	sched_append(s, i);
}

/* ---- congestion control ---- */

/* It leaves the list; before its time only an answer or a loss wakes it. */
static void
sched_hold(struct hca_tp_sched *s, uint32_t i, uint64_t until)
{
	s->tp[i].tx.held = true;
	s->tp[i].tx.deficit = 0;
	s->count--;
	hca_pace_put(&s->pace, i, until);
}

static void
sched_release(struct hca_tp_sched *s, uint32_t i)
{
	s->tp[i].tx.held = false;
	s->count++;
	sched_append(s, i);
}

void
hca_tp_sched_due(struct hca_tp_sched *s, uint64_t now)
{
	uint32_t i;

	while ((i = hca_pace_take(&s->pace, now)) != HCA_PACE_NONE)
		sched_release(s, i);
}

void
hca_tp_sched_heard(struct hca_tp_sched *s, uint32_t i)
{
	if (unlikely(s->tp[i].tx.held)) {
		hca_pace_drop(&s->pace, i);
		sched_release(s, i);
	} else {
		hca_tp_sched_wake(s, i);
	}
}

void
hca_tp_sched_forget(struct hca_tp_sched *s, uint32_t i)
{
	uint32_t n = s->count;

	if (!s->tp[i].tx.ready)
		return;
	if (s->tp[i].tx.held) {
		hca_pace_drop(&s->pace, i);
		s->tp[i].tx.held = s->tp[i].tx.ready = false;
		return;
	}
	while (n-- > 0) {
		uint32_t at = sched_pop(s);

		if (at == i)
			sched_leave(s, at);
		else
			sched_append(s, at);
	}
}

/*
 * *until: the TP is held, and for how long at most; UINT64_MAX: it is not, or for any time. Packets
 * of operations that the transaction layer has answered are acknowledged while the next one is
 * looked for: congestion control may answer otherwise then, and no answer would end the wait.
 */
static __rte_noinline uint32_t
sched_pick_allowed(struct hca_tp_sched *s, uint32_t i, uint64_t now, uint64_t *until,
		   struct hca_tp_txd *const *d, uint32_t room)
{
	struct hca_tp_leave allowed;
	uint64_t again;
	uint32_t n = 0;
	bool acked;

	do {
		allowed = (struct hca_tp_leave){0};
		again = UINT64_MAX;
		allowed.bytes = s->allow(s->arg, i, now, &again);
		if (allowed.bytes == UINT32_MAX)
			return n + hca_tp_pick_burst(&s->tp[i], &s->pools, now, d + n, room - n);
		n += hca_tp_pick_allowed(&s->tp[i], &s->pools, now, &allowed, d + n, room - n);
		acked = s->left(s->arg, i, &allowed, now);
	} while (allowed.held && acked);
	if (allowed.held)
		*until = again;
	return n;
}

/*
 * One turn of TP i: as much as its deficit, the room and congestion control allow. Returns the
 * number of packets; *until: as of sched_pick_allowed().
 */
static inline uint32_t
sched_turn(struct hca_tp_sched *s, uint32_t i, uint64_t now, uint64_t *until,
	   struct hca_tp_txd *const *d, uint32_t room)
{
	uint32_t n = unlikely(__atomic_load_n(s->asks, __ATOMIC_RELAXED) != NULL)
			     ? sched_pick_allowed(s, i, now, until, d, room)
			     : hca_tp_pick_burst(&s->tp[i], &s->pools, now, d, room);

	for (uint32_t k = 0; k < n; k++)
		d[k]->tp = i;
	if (n != 0 && s->sent != NULL)
		s->sent(s->arg, i);
	return n;
}

uint32_t
hca_tp_sched_run(struct hca_tp_sched *s, uint64_t now, struct hca_tp_txd *const *d, uint32_t room)
{
	uint32_t n = 0;

	while (n < room && s->count != 0) {
		uint32_t i = sched_pop(s);
		struct hca_tp_tx *tx = &s->tp[i].tx;
		uint64_t until = UINT64_MAX;

		if (tx->deficit <= 0)
			tx->deficit += HCA_TP_SCHED_QUANTUM;
		n += sched_turn(s, i, now, &until, d + n, room - n);
		if (unlikely(until != UINT64_MAX)) {
			sched_hold(s, i, until);
			if (s->idle != NULL)
				s->idle(s->arg, i);
		} else if (tx->deficit > 0 && n < room) {
			sched_leave(s, i);
			if (s->idle != NULL)
				s->idle(s->arg, i);
		} else if (tx->deficit > 0) {
			/* it goes on where the room ended */
			tx->list_next = s->head;
			s->head = i;
			if (tx->list_next == HCA_TP_SCHED_NONE)
				s->tail = i;
		} else {
			sched_append(s, i);
		}
	}
	return n;
}
