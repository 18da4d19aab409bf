/* SPDX-License-Identifier: BSD-3-Clause */

/* Timing wheel: ARM from RRC, EXPIRED to RRC, PURGE from the CEU. See timer.h. */

#include <errno.h>

#include <rte_malloc.h>

#include "engine/impl.h"
#include "engine/timer.h"

int
hca_timer_init(struct hca *h)
{
	struct hca_timer_ctx *t =
		rte_zmalloc_socket("timer", sizeof(*t), RTE_CACHE_LINE_SIZE, h->cfg.socket_id);

	h->stage_ctx[HCA_STAGE_TIMER] = t;
	if (t == NULL)
		return -ENOMEM;
	t->entry = rte_malloc_socket("timer", (h->qp_mask + 1) * sizeof(*t->entry),
				     RTE_CACHE_LINE_SIZE, h->cfg.socket_id);
	if (t->entry == NULL) {
		hca_timer_fini(h);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i <= h->qp_mask; i++)
		t->entry[i].slot = HCA_TIMER_NONE;
	for (uint32_t i = 0; i < HCA_TIMER_SLOTS; i++)
		t->slot[i] = HCA_TIMER_NONE;
	return 0;
}

void
hca_timer_fini(struct hca *h)
{
	struct hca_timer_ctx *t = h->stage_ctx[HCA_STAGE_TIMER];

	if (t == NULL)
		return;
	rte_free(t->entry);
	rte_free(t);
	h->stage_ctx[HCA_STAGE_TIMER] = NULL;
}

static inline struct hca_timer_ctx *
timer_ctx(const struct hca *h)
{
	return h->stage_ctx[HCA_STAGE_TIMER];
}

static void
take_out(struct hca_timer_ctx *t, uint32_t qpi)
{
	struct hca_timer_entry *e = &t->entry[qpi];

	if (e->slot == HCA_TIMER_NONE)
		return;
	if (e->prev == HCA_TIMER_NONE)
		t->slot[e->slot] = e->next;
	else
		t->entry[e->prev].next = e->next;
	if (e->next != HCA_TIMER_NONE)
		t->entry[e->next].prev = e->prev;
	if (t->slot[e->slot] == HCA_TIMER_NONE)
		t->used[e->slot / 64] &= ~(UINT64_C(1) << (e->slot % 64));
	e->slot = HCA_TIMER_NONE;
	t->count--;
}

/* Into the slot of its deadline, rounded up; what is overdue goes where poll looks next. */
static void
put_in(struct hca_timer_ctx *t, uint32_t qpi, uint64_t first)
{
	struct hca_timer_entry *e = &t->entry[qpi];
	uint64_t tick = (e->deadline >> HCA_TIMER_TICK_LOG) + 1;

	tick = RTE_MIN(RTE_MAX(tick, first), first + HCA_TIMER_SLOTS - 1);
	e->slot = tick % HCA_TIMER_SLOTS;
	e->prev = HCA_TIMER_NONE;
	e->next = t->slot[e->slot];
	if (e->next != HCA_TIMER_NONE)
		t->entry[e->next].prev = qpi;
	t->slot[e->slot] = qpi;
	t->used[e->slot / 64] |= UINT64_C(1) << (e->slot % 64);
	t->count++;
}

static void
on_arm(struct hca *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	struct hca_timer_ctx *t = timer_ctx(h);

	if (__atomic_load_n(&qp->rrc.timer_armed, __ATOMIC_ACQUIRE) == 0)
		return;
	take_out(t, qpi);
	t->entry[qpi].deadline = __atomic_load_n(&qp->rrc.timer_deadline, __ATOMIC_RELAXED);
	put_in(t, qpi, t->tick);
}

static void
on_ceu(struct hca *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags, uint64_t now)
{
	if (!(flags & HCA_MSG_PURGE))
		return;
	take_out(timer_ctx(h), qpi);
	hca_purge_ack(h, HCA_STAGE_TIMER);
}

/* Everything in one slot; entries not yet due (beyond the wheel) go round again. */
static unsigned int
run_slot(struct hca *h, struct hca_timer_ctx *t, uint32_t slot, uint64_t now, uint64_t first)
{
	uint32_t qpi = t->slot[slot], next;
	unsigned int n = 0;

	for (; qpi != HCA_TIMER_NONE; qpi = next) {
		next = t->entry[qpi].next;
		take_out(t, qpi);
		if (t->entry[qpi].deadline > now) {
			put_in(t, qpi, first);
			continue;
		}
		hca_msg_send(h, HCA_STAGE_TIMER, HCA_STAGE_RRC, qpi, HCA_MSG_EXPIRED);
		n++;
	}
	return n;
}

/* First used slot at or behind tick, as ticks from there; at least `limit`: none before. */
static uint64_t
next_used(const struct hca_timer_ctx *t, uint64_t tick, uint64_t limit)
{
	uint64_t ahead = 0;

	while (ahead < limit) {
		uint32_t slot = (tick + ahead) % HCA_TIMER_SLOTS;
		uint64_t word = t->used[slot / 64] >> (slot % 64);

		if (word != 0)
			return ahead + (uint64_t)__builtin_ctzll(word);
		ahead += 64 - slot % 64;
	}
	return ahead;
}

/* Slots up to now, until the budget is used; whole slots, because messages are never refused. */
static unsigned int
advance(struct hca *h, struct hca_timer_ctx *t, uint64_t now, unsigned int budget)
{
	uint64_t last = now >> HCA_TIMER_TICK_LOG;
	unsigned int n = 0;

	if (t->count == 0) {
		t->tick = RTE_MAX(t->tick, last + 1);
		return 0;
	}
	/* After a long pause every slot is due once. */
	if (last >= t->tick + HCA_TIMER_SLOTS)
		t->tick = last - HCA_TIMER_SLOTS + 1;
	while (t->tick <= last && n < budget) {
		uint64_t left = last + 1 - t->tick, ahead = next_used(t, t->tick, left);

		if (ahead >= left) {
			t->tick = last + 1;
			break;
		}
		t->tick += ahead + 1;
		n += run_slot(h, t, (t->tick - 1) % HCA_TIMER_SLOTS, now, t->tick);
	}
	return n;
}

unsigned int
hca_timer_poll(struct hca *h, uint64_t now, unsigned int budget)
{
	unsigned int n = advance(h, timer_ctx(h), now, budget);

	if (!hca_msg_due(h, HCA_STAGE_TIMER))
		return n;
	n += hca_msg_drain(h, HCA_STAGE_CEU, HCA_STAGE_TIMER, on_ceu, now, budget);
	return n + hca_msg_drain(h, HCA_STAGE_RRC, HCA_STAGE_TIMER, on_arm, now, budget);
}

uint64_t
hca_timer_deadline(const struct hca *h, uint64_t now)
{
	const struct hca_timer_ctx *t = timer_ctx(h);

	(void)now;
	if (t->count == 0)
		return UINT64_MAX;
	return (t->tick + next_used(t, t->tick, HCA_TIMER_SLOTS)) << HCA_TIMER_TICK_LOG;
}
