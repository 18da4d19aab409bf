/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Tickets: questions of clients, each answered once. A client's wait in a queue of its own; clients
 * with tickets that wait and no thread stand in a row, and a thread takes the first ticket of the
 * first client. Its answer is that of all its tickets for the same way.
 */

#include <errno.h>
#include <string.h>

#include "cmagent_hop.h"

static uint32_t
number_of(const struct cmagent_hops *hs, const struct cmagent_hop_ticket *t)
{
	return (uint32_t)(t - hs->ticket) + 1;
}

static void
list_add(struct cmagent_hops *hs, struct cmagent_hop_list *list, struct cmagent_hop_ticket *t)
{
	t->next = 0;
	if (list->last != 0)
		hs->ticket[list->last - 1].next = number_of(hs, t);
	else
		list->first = number_of(hs, t);
	list->last = number_of(hs, t);
}

static struct cmagent_hop_ticket *
list_take(struct cmagent_hops *hs, struct cmagent_hop_list *list)
{
	struct cmagent_hop_ticket *t;

	if (list->first == 0)
		return NULL;
	t = &hs->ticket[list->first - 1];
	list->first = t->next;
	if (list->first == 0)
		list->last = 0;
	return t;
}

static void
give_free(struct cmagent_hops *hs, struct cmagent_hop_ticket *t)
{
	hs->client[t->wish.client].tickets--;
	hs->tickets_used--;
	t->next = hs->tickets_free;
	hs->tickets_free = number_of(hs, t);
}

/* ---- whose turn it is ---- */

static void
client_list(struct cmagent_hops *hs, uint32_t number)
{
	struct cmagent_hop_client *c = &hs->client[number];

	if (c->listed || c->taken != 0 || c->waiting.first == 0)
		return;
	c->listed = true;
	c->next = 0;
	if (hs->turns.last != 0)
		hs->client[hs->turns.last - 1].next = number + 1;
	else
		hs->turns.first = number + 1;
	hs->turns.last = number + 1;
}

/* The first client that has a ticket which waits; NULL: none. It has left the row. */
static struct cmagent_hop_client *
client_take(struct cmagent_hops *hs)
{
	struct cmagent_hop_client *c = NULL;

	while (hs->turns.first != 0) {
		c = &hs->client[hs->turns.first - 1];
		hs->turns.first = c->next;
		if (hs->turns.first == 0)
			hs->turns.last = 0;
		c->listed = false;
		if (c->waiting.first != 0)
			return c;
	}
	return NULL;
}

/* Threads that the agent itself keeps busy, of those that it shares with clients */
static uint32_t
agent_taken(const struct cmagent_hops *hs)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < hs->cfg.places; i++)
		n += hs->hop[i].taken && !hs->hop[i].asker.station;
	return n;
}

struct cmagent_hop_ticket *
cmagent_ticket_next(struct cmagent_hops *hs)
{
	struct cmagent_hop_client *c;
	struct cmagent_hop_ticket *t;

	if (hs->clients_taken + agent_taken(hs) >= CMAGENT_HOP_THREADS / 2)
		return NULL;
	c = client_take(hs);
	if (c == NULL)
		return NULL;
	t = list_take(hs, &c->waiting);
	c->taken = number_of(hs, t);
	hs->clients_taken++;
	return t;
}

/* ---- questions ---- */

static void
ask_driver(const struct cmagent_hops *hs, const struct cmagent_hop_wish *w,
	   struct cmagent_hop_answer *a)
{
	struct hca_driver *drv = hs->cfg.drv;
	struct hca_ctl_gid gid = {.valid = 0};

	*a = (struct cmagent_hop_answer){.ah.sgid_index = w->gid_index};
	memcpy(a->ah.dgid, w->peer, sizeof(a->ah.dgid));
	if (w->gid_index == CMAGENT_HOP_NO_GID)
		a->err = hca_driver_source(drv, w->peer, w->scope, &a->ah.sgid_index);
	if (a->err == 0)
		a->err = hca_driver_resolve(drv, hs->cfg.asks, &a->ah);
	if (a->err == 0 && (hca_driver_query_gid(drv, a->ah.sgid_index, &gid) != 0 || !gid.valid))
		a->err = -EADDRNOTAVAIL;
	memcpy(a->own, gid.gid, sizeof(a->own));
}

static bool
same_way(const struct cmagent_hop_wish *a, const struct cmagent_hop_wish *b)
{
	return a->gid_index == b->gid_index && a->scope == b->scope &&
	       memcmp(a->peer, b->peer, sizeof(a->peer)) == 0;
}

static void
finish(struct cmagent_hops *hs, struct cmagent_hop_ticket *t, const struct cmagent_hop_answer *a)
{
	if (t->forgotten) {
		give_free(hs, t);
		return;
	}
	if (a->err != 0)
		cmagent_hop_count(hs, CMAGENT_HOP_not_found);
	t->answer = *a;
	t->answer.ticket = t->wish.ticket;
	list_add(hs, &hs->done, t);
}

/* Tickets of the client for the same way are done, the others wait in their order. */
static void
finish_others(struct cmagent_hops *hs, struct cmagent_hop_client *c,
	      const struct cmagent_hop_wish *wish, const struct cmagent_hop_answer *a)
{
	struct cmagent_hop_list waiting = c->waiting;
	struct cmagent_hop_ticket *t;

	c->waiting = (struct cmagent_hop_list){0};
	while ((t = list_take(hs, &waiting)) != NULL) {
		if (same_way(&t->wish, wish))
			finish(hs, t, a);
		else
			list_add(hs, &c->waiting, t);
	}
}

/* The lock is held, but not while the driver is asked. */
void
cmagent_ticket_resolve(struct cmagent_hops *hs, struct cmagent_hop_ticket *t)
{
	const struct cmagent_hop_wish wish = t->wish;
	struct cmagent_hop_client *c = &hs->client[wish.client];
	struct cmagent_hop_answer a;

	pthread_mutex_unlock(&hs->lock);
	ask_driver(hs, &wish, &a);
	pthread_mutex_lock(&hs->lock);
	c->taken = 0;
	hs->clients_taken--;
	finish(hs, t, &a);
	finish_others(hs, c, &wish, &a);
	client_list(hs, wish.client);
	pthread_cond_broadcast(&hs->wake); /* another one may be looked for */
}

/* ---- for the agent ---- */

/* A client may have as many as it leaves to the others. */
static bool
may_ask(const struct cmagent_hops *hs, const struct cmagent_hop_client *c)
{
	return hs->tickets_free != 0 && c->tickets < hs->cfg.tickets - hs->tickets_used;
}

int
cmagent_hops_ask(struct cmagent_hops *hs, const struct cmagent_hop_wish *wish)
{
	struct cmagent_hop_client *c = &hs->client[wish->client];
	struct cmagent_hop_ticket *t = NULL;

	if (wish->client >= hs->cfg.clients)
		return -EINVAL;
	pthread_mutex_lock(&hs->lock);
	if (may_ask(hs, c)) {
		t = &hs->ticket[hs->tickets_free - 1];
		hs->tickets_free = t->next;
		hs->tickets_used++;
		c->tickets++;
		*t = (struct cmagent_hop_ticket){.wish = *wish};
		list_add(hs, &c->waiting, t);
		client_list(hs, wish->client);
		pthread_cond_signal(&hs->wake);
	}
	cmagent_hop_count(hs, t != NULL ? CMAGENT_HOP_asked : CMAGENT_HOP_not_asked);
	pthread_mutex_unlock(&hs->lock);
	if (t != NULL && !hs->cfg.asks)
		hs->cfg.wake(hs->cfg.owner); /* the agent looks itself */
	return t != NULL ? 0 : -EAGAIN;
}

void
cmagent_hops_forget(struct cmagent_hops *hs, uint32_t client)
{
	struct cmagent_hop_list done;
	struct cmagent_hop_client *c = &hs->client[client];
	struct cmagent_hop_ticket *t;

	pthread_mutex_lock(&hs->lock);
	while ((t = list_take(hs, &c->waiting)) != NULL)
		give_free(hs, t);
	if (c->taken != 0)
		hs->ticket[c->taken - 1].forgotten = true;
	done = hs->done;
	hs->done = (struct cmagent_hop_list){0};
	while ((t = list_take(hs, &done)) != NULL) {
		if (t->wish.client == client)
			give_free(hs, t);
		else
			list_add(hs, &hs->done, t);
	}
	pthread_mutex_unlock(&hs->lock);
}

bool
cmagent_hops_answer(struct cmagent_hops *hs, struct cmagent_hop_answer *answer)
{
	struct cmagent_hop_ticket *t;

	pthread_mutex_lock(&hs->lock);
	while (!hs->cfg.asks && (t = cmagent_ticket_next(hs)) != NULL)
		cmagent_ticket_resolve(hs, t);
	t = list_take(hs, &hs->done);
	if (t != NULL) {
		*answer = t->answer;
		give_free(hs, t);
	}
	pthread_mutex_unlock(&hs->lock);
	return t != NULL;
}
