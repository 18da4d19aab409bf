/* SPDX-License-Identifier: BSD-3-Clause */

/* Timing wheel: ARM and EXPIRED from and to the stage of each kind, PURGE from the CEU. */

#include <errno.h>

#include <rte_malloc.h>

#include "core/table.h"
#include "engine/impl.h"
#include "engine/timer.h"
#include "engine/wire_ops.h"

void
hca_timer_watch(struct hca_pipe *h, enum hca_object_kind kind, enum hca_stage_id stage,
		const uint16_t *armed, const uint64_t *deadline, size_t stride)
{
	struct hca_timer_ctx *t = h->stage_ctx[HCA_STAGE_TIMER];

	t->words[kind] = (struct hca_timer_words){(const uint8_t *)armed, (const uint8_t *)deadline,
						  stride, stage};
}

/* The channels that the device has; that of the CEU is the last one. */
static void
list_channels(struct hca_pipe *h, struct hca_timer_ctx *t)
{
	for (unsigned int from = 0; from < HCA_STAGE_N; from++)
		if (h->msg[from][HCA_STAGE_TIMER] != NULL)
			t->in[t->n_in++] = h->msg[from][HCA_STAGE_TIMER];
}

int
hca_timer_init(struct hca_pipe *h)
{
	struct hca_timer_ctx *t =
		rte_zmalloc_socket("timer", sizeof(*t), RTE_CACHE_LINE_SIZE, h->cfg.socket_id);
	uint32_t objects;

	h->stage_ctx[HCA_STAGE_TIMER] = t;
	if (t == NULL)
		return -ENOMEM;
	objects = h->object[HCA_OBJECT_ANY].count;
	t->entry = hca_table_alloc(objects, sizeof(*t->entry), h->cfg.socket_id);
	if (t->entry == NULL) {
		hca_timer_fini(h);
		return -ENOMEM;
	}
	list_channels(h, t);
	hca_timer_watch(h, HCA_OBJECT_QP, HCA_STAGE_REQ_RX, &h->qp[0].req_rx.timer_armed,
			&h->qp[0].req_rx.timer_deadline, sizeof(h->qp[0]));
	for (uint32_t i = 0; i < objects; i++)
		t->entry[i].slot = HCA_TIMER_NONE;
	for (uint32_t i = 0; i < HCA_TIMER_SLOTS; i++)
		t->slot[i] = HCA_TIMER_NONE;
	return 0;
}

void
hca_timer_fini(struct hca_pipe *h)
{
	struct hca_timer_ctx *t = h->stage_ctx[HCA_STAGE_TIMER];

	if (t == NULL)
		return;
	hca_table_free(t->entry);
	rte_free(t);
	h->stage_ctx[HCA_STAGE_TIMER] = NULL;
}

static inline struct hca_timer_ctx *
timer_ctx(const struct hca_pipe *h)
{
	return h->stage_ctx[HCA_STAGE_TIMER];
}

static void
take_out(struct hca_timer_ctx *t, uint32_t obj)
{
	struct hca_timer_entry *e = &t->entry[obj];

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

/*
 * Inserts into the slot of its deadline, rounded up; an overdue entry goes to the next slot that
 * poll checks.
 */
static void
put_in(struct hca_timer_ctx *t, uint32_t obj, uint64_t first)
{
	struct hca_timer_entry *e = &t->entry[obj];
	uint64_t tick = (e->deadline >> HCA_TIMER_TICK_LOG) + 1;

	tick = RTE_MIN(RTE_MAX(tick, first), first + HCA_TIMER_SLOTS - 1);
	e->slot = tick % HCA_TIMER_SLOTS;
	e->prev = HCA_TIMER_NONE;
	e->next = t->slot[e->slot];
	if (e->next != HCA_TIMER_NONE)
		t->entry[e->next].prev = obj;
	t->slot[e->slot] = obj;
	t->used[e->slot / 64] |= UINT64_C(1) << (e->slot % 64);
	t->count++;
}

/* False: the object's timeout is not running. */
static bool
deadline_of(const struct hca_pipe *h, uint32_t obj, uint64_t *deadline)
{
	enum hca_object_kind kind = hca_object_kind(h, obj);
	const struct hca_timer_words *w = &timer_ctx(h)->words[kind];
	size_t at = (obj - h->object[kind].first) * w->stride;

	if (__atomic_load_n((const uint16_t *)(const void *)(w->armed + at), __ATOMIC_ACQUIRE) == 0)
		return false;
	*deadline = __atomic_load_n((const uint64_t *)(const void *)(w->deadline + at),
				    __ATOMIC_RELAXED);
	return true;
}

/* The stage that arms the timer and gets expiries. */
static enum hca_stage_id
stage_of(const struct hca_pipe *h, uint32_t obj)
{
	enum hca_object_kind kind = hca_object_kind(h, obj);

	return kind == HCA_OBJECT_QP ? hca_wire_of_qp(&h->core, &h->qp[obj])->timeouts_to
				     : timer_ctx(h)->words[kind].stage;
}

static void
arm(struct hca_pipe *h, uint32_t obj)
{
	struct hca_timer_ctx *t = timer_ctx(h);
	uint64_t deadline;

	if (!deadline_of(h, obj, &deadline))
		return;
	take_out(t, obj);
	t->entry[obj].deadline = deadline;
	put_in(t, obj, t->tick);
}

static unsigned int
messages(struct hca_pipe *h, struct hca_msg_channel *c, unsigned int budget)
{
	unsigned int n = 0;
	uint8_t flags;
	uint32_t obj;

	for (; n < budget && (flags = hca_msg_take(c, &obj)) != 0; n++) {
		if (flags & HCA_MSG_ARM) {
			arm(h, obj);
		} else if (flags & HCA_MSG_PURGE) {
			take_out(timer_ctx(h), obj);
			hca_purge_ack(h, HCA_STAGE_TIMER);
		}
	}
	return n;
}

/* Handle a slot; entries beyond the wheel's range are inserted again. */
static unsigned int
run_slot(struct hca_pipe *h, struct hca_timer_ctx *t, uint32_t slot, uint64_t now, uint64_t first)
{
	uint32_t obj = t->slot[slot], next;
	unsigned int n = 0;

	for (; obj != HCA_TIMER_NONE; obj = next) {
		next = t->entry[obj].next;
		take_out(t, obj);
		if (t->entry[obj].deadline > now) {
			put_in(t, obj, first);
			continue;
		}
		hca_msg_send(h, HCA_STAGE_TIMER, stage_of(h, obj), obj, HCA_MSG_EXPIRED);
		n++;
	}
	return n;
}

/* Distance from tick to the first used slot at or after it, or at least `limit`. */
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

/*
 * Handle slots up to now until the budget is used, but always whole slots, because messages are
 * never refused.
 */
static unsigned int
advance(struct hca_pipe *h, struct hca_timer_ctx *t, uint64_t now, unsigned int budget)
{
	uint64_t last = now >> HCA_TIMER_TICK_LOG;
	unsigned int n = 0;

	if (t->count == 0) {
		t->tick = RTE_MAX(t->tick, last + 1);
		return 0;
	}
	/* after a long pause every slot is handled once */
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
hca_timer_poll(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	struct hca_timer_ctx *t = timer_ctx(h);
	unsigned int n = advance(h, t, now, budget);

	if (!hca_msg_due(h, HCA_STAGE_TIMER))
		return n;
	for (unsigned int i = t->n_in; i-- > 0;)
		n += messages(h, t->in[i], budget);
	return n;
}

uint64_t
hca_timer_deadline(const struct hca_pipe *h, uint64_t now)
{
	const struct hca_timer_ctx *t = timer_ctx(h);

	(void)now;
	if (t->count == 0)
		return UINT64_MAX;
	return (t->tick + next_used(t, t->tick, HCA_TIMER_SLOTS)) << HCA_TIMER_TICK_LOG;
}
