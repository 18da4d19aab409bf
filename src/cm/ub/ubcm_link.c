/* SPDX-License-Identifier: BSD-3-Clause */

#include "ubcm_impl.h"

const struct cm_repeat_rule ubcm_repeats = {.first = UBCM_FIRST_WAIT,
					    .longest = CM_REPEAT_UNBOUNDED,
					    .repeats = UBCM_REPEATS};

uint32_t
ubcm_link_handle(const struct ubcm *cm, const struct ubcm_link *l)
{
	return HCA_FIELD(31, 16, l->generation) | HCA_FIELD(15, 0, l - cm->link);
}

struct ubcm_link *
ubcm_link_get(const struct ubcm *cm, uint32_t handle)
{
	uint32_t index = UBCM_LINK_TPG(handle);
	struct ubcm_link *l;

	if (index >= cm->nlinks)
		return NULL;
	l = &cm->link[index];
	return l->state != LINK_FREE && ubcm_link_handle(cm, l) == handle ? l : NULL;
}

int
ubcm_link_act(struct ubcm *cm, const struct ubcm_link *l, struct ubcm_action action)
{
	action.link = ubcm_link_handle(cm, l);
	action.own = l->own;
	action.peer = l->peer;
	action.ntps = l->ntps;
	action.tp = l->tp;
	action.timer = &l->timer;
	return cm->cfg.ops->act(cm->cfg.arg, &action);
}

static void
act(struct ubcm *cm, const struct ubcm_link *l, enum ubcm_act type)
{
	(void)ubcm_link_act(cm, l, (struct ubcm_action){.type = type});
}

static struct ubcm_link *
free_link(struct ubcm *cm)
{
	for (uint32_t i = 0; i < cm->nlinks; i++)
		if (cm->link[i].state == LINK_FREE)
			return &cm->link[i];
	return NULL;
}

bool
ubcm_link_is_free(const struct ubcm *cm)
{
	for (uint32_t i = 0; i < cm->nlinks; i++)
		if (cm->link[i].state == LINK_FREE)
			return true;
	return false;
}

void
ubcm_link_charge(struct ubcm *cm, struct ubcm_link *l, enum cm_share_kind kind)
{
	cm_share_give(&cm->share, l->peer, 0, l->kind, l->charged);
	l->kind = kind;
	l->charged = l->ntps;
	cm_share_take(&cm->share, l->peer, 0, l->kind, l->charged);
}

static void
link_discharge(struct ubcm *cm, struct ubcm_link *l)
{
	cm_share_give(&cm->share, l->peer, 0, l->kind, l->charged);
	l->charged = 0;
}

struct ubcm_link *
ubcm_link_new(struct ubcm *cm, const uint8_t *own, const uint8_t *peer, uint32_t tps, uint64_t now)
{
	struct ubcm_link *l = free_link(cm);

	if (l == NULL)
		return NULL;
	*l = (struct ubcm_link){
		.generation = l->generation,
		.deadline = UBCM_NEVER,
		.born = now,
		.timer = cm->cfg.timer,
	};
	memcpy(l->own, own, sizeof(l->own));
	memcpy(l->peer, peer, sizeof(l->peer));
	if (ubcm_take_numbers(cm, l, tps, now) == 0)
		return NULL;
	cm_pairs_add(&cm->pairs, (uint32_t)(l - cm->link), own, peer);
	cm->counters.begun++;
	return l;
}

void
ubcm_link_await(struct ubcm_link *l, uint64_t now)
{
	l->deadline = cm_repeat_begin(&ubcm_repeats, &l->repeat, now);
}

void
ubcm_link_ask(struct ubcm *cm, struct ubcm_link *l, uint64_t now)
{
	l->state = LINK_ASKING;
	l->active = true;
	l->has_cookie = false;
	l->retried = 0;
	l->transaction = cm->cfg.ops->random(cm->cfg.arg);
	ubcm_link_await(l, now);
	ubcm_send(cm, l, UBCM_REQ, UBCM_STATUS_OK);
}

void
ubcm_link_idle(struct ubcm_link *l, uint64_t now)
{
	l->deadline = now + UBCM_IDLE;
}

void
ubcm_link_open(struct ubcm *cm, struct ubcm_link *l, uint64_t now)
{
	if (l->state != LINK_LEAVING) {
		cm->counters.opened++;
		l->opened = l->seen = now;
		l->traffic = 0;
	}
	l->state = LINK_OPEN;
	l->deadline = UBCM_NEVER;
	if (l->users != 0)
		act(cm, l, UBCM_UP);
	else
		ubcm_link_idle(l, now);
}

void
ubcm_link_leave(struct ubcm *cm, struct ubcm_link *l, uint64_t now)
{
	l->state = LINK_LEAVING;
	l->disc = cm->cfg.ops->random(cm->cfg.arg);
	ubcm_link_await(l, now);
	ubcm_send(cm, l, UBCM_DISC, UBCM_STATUS_IDLE);
}

static uint64_t
drain_time(const struct ubcm_timer *t)
{
	uint64_t rtos = UBCM_DRAIN_RTOS * UINT64_C(1000) * t->rto_base;

	return rtos > UBCM_FIRST_WAIT ? rtos : UBCM_FIRST_WAIT;
}

void
ubcm_link_join(struct ubcm *cm, struct ubcm_link *l, struct ubcm_link *from, uint64_t now)
{
	if (from->users != 0)
		(void)ubcm_link_act(cm, l,
				    (struct ubcm_action){.type = UBCM_JOIN,
							 .from = ubcm_link_handle(cm, from)});
	l->users += from->users;
	from->users = 0;
	ubcm_link_end(cm, from, UBCM_STATUS_RESTARTED, false, now);
}

/* Clients of a link that the peer closed must import the peer again. */
static void
users_down(struct ubcm *cm, struct ubcm_link *l, enum ubcm_status status)
{
	if (l->users != 0)
		(void)ubcm_link_act(cm, l,
				    (struct ubcm_action){.type = UBCM_DOWN, .status = status});
	l->users = 0;
}

void
ubcm_link_drain(struct ubcm *cm, struct ubcm_link *l, uint64_t now)
{
	users_down(cm, l, UBCM_STATUS_IDLE);
	l->state = LINK_DRAINING;
	l->deadline = now + drain_time(&l->timer);
	act(cm, l, UBCM_DRAIN);
}

/* The TPs end; those in DRAIN have had their time. */
static void
destroy_tps(struct ubcm *cm, struct ubcm_link *l, uint64_t now)
{
	if (l->created && l->state != LINK_DRAINING)
		act(cm, l, UBCM_FAIL);
	if (l->created)
		act(cm, l, UBCM_DESTROY);
	l->created = false;
	ubcm_drop_numbers(cm, l, 0, now);
	link_discharge(cm, l);
	l->confirmed = false;
}

void
ubcm_link_end(struct ubcm *cm, struct ubcm_link *l, enum ubcm_status status, bool tell,
	      uint64_t now)
{
	if (tell && l->created) {
		l->disc = cm->cfg.ops->random(cm->cfg.arg);
		ubcm_send(cm, l, UBCM_DISC, status);
	}
	users_down(cm, l, status);
	destroy_tps(cm, l, now);
	cm_pairs_remove(&cm->pairs, (uint32_t)(l - cm->link), l->own, l->peer);
	l->state = LINK_FREE;
	l->deadline = UBCM_NEVER;
	l->generation++;
	cm->counters.ended++;
}

void
ubcm_link_abandoned(struct ubcm *cm, struct ubcm_link *l, enum ubcm_status status, uint64_t now)
{
	if (l->users == 0 || l->again) {
		ubcm_link_end(cm, l, status, false, now);
		return;
	}
	destroy_tps(cm, l, now);
	l->timer = cm->cfg.timer;
	l->again = true;
	if (ubcm_take_numbers(cm, l, cm->cfg.tps, now) == 0)
		ubcm_link_end(cm, l, UBCM_STATUS_NO_RESOURCES, false, now);
	else
		ubcm_link_ask(cm, l, now);
}
