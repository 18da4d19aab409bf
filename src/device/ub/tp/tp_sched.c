/* SPDX-License-Identifier: BSD-3-Clause */

/* Which TP sends: deficit round robin over those that may have something to send. */

#include "ub/tp/tp_core.h"

#define ALONE (4 * HCA_TP_SCHED_QUANTUM) /* bytes added while no other TP wants to send */

void
hca_tp_sched_init(struct hca_tp_sched *s, struct hca_tp *tp, const struct hca_ta_op_pools *pools)
{
	*s = (struct hca_tp_sched){.tp = tp,
				   .pools = *pools,
				   .head = HCA_TP_SCHED_NONE,
				   .tail = HCA_TP_SCHED_NONE};
}

static void
append(struct hca_tp_sched *s, uint32_t i)
{
	s->tp[i].tx.list_next = HCA_TP_SCHED_NONE;
	if (s->head == HCA_TP_SCHED_NONE)
		s->head = i;
	else
		s->tp[s->tail].tx.list_next = i;
	s->tail = i;
}

static uint32_t
pop(struct hca_tp_sched *s)
{
	uint32_t i = s->head;

	s->head = s->tp[i].tx.list_next;
	return i;
}

static void
leave(struct hca_tp_sched *s, uint32_t i)
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
	append(s, i);
}

void
hca_tp_sched_forget(struct hca_tp_sched *s, uint32_t i)
{
	uint32_t n = s->count;

	if (!s->tp[i].tx.ready)
		return;
	while (n-- > 0) {
		uint32_t at = pop(s);

		if (at == i)
			leave(s, at);
		else
			append(s, at);
	}
}

/* One turn of TP i: as much as its deficit and the room allow. Returns the number of packets. */
static inline uint32_t
turn(struct hca_tp_sched *s, uint32_t i, uint64_t now, struct hca_tp_txd *const *d, uint32_t room)
{
	uint32_t n = hca_tp_pick_burst(&s->tp[i], &s->pools, now, d, room);

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
		uint32_t i = pop(s);
		struct hca_tp_tx *tx = &s->tp[i].tx;

		if (tx->deficit <= 0)
			tx->deficit += s->head == HCA_TP_SCHED_NONE ? ALONE : HCA_TP_SCHED_QUANTUM;
		n += turn(s, i, now, d + n, room - n);
		/* those that come have no part in what nobody wanted */
		tx->deficit = RTE_MIN(tx->deficit, HCA_TP_SCHED_QUANTUM);
		if (tx->deficit > 0 && n < room) {
			leave(s, i);
			if (s->idle != NULL)
				s->idle(s->arg, i);
		} else if (tx->deficit > 0) {
			/* it goes on where the room ended */
			tx->list_next = s->head;
			s->head = i;
			if (tx->list_next == HCA_TP_SCHED_NONE)
				s->tail = i;
		} else {
			append(s, i);
		}
	}
	return n;
}
