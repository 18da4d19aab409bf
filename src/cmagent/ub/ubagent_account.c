/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Imports of peers by clients. The driver adds and takes away for clients, under its own lock; the
 * agent is told by a list. A group's number is not used again while an import names it: requests of
 * a client that has not noticed the end of its channels must not reach another peer.
 */

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ubagent_impl.h"

/*
 * While 1/GONE_SHARE of the groups have ended and are still named, a user may name
 * 1/GONE_OF_USER_SHARE of the groups.
 */
#define GONE_SHARE 4u
#define GONE_OF_USER_SHARE 16u
#define GENERATION_BITS (32u - IMPORT_LOG_MAX)

int
account_init(struct account *a, uint32_t ntps)
{
	memset(a, 0, sizeof(*a));
	pthread_mutex_init(&a->lock, NULL);
	a->count = 1u << IMPORT_LOG_MAX;
	a->ntps = ntps;
	a->import = calloc(a->count, sizeof(*a->import));
	a->dead = calloc(ntps, sizeof(*a->dead));
	a->users = calloc(ntps, sizeof(*a->users));
	a->gone = calloc(ntps, sizeof(*a->gone));
	return a->import != NULL && a->dead != NULL && a->users != NULL && a->gone != NULL
		       ? 0
		       : -ENOMEM;
}

void
account_free(struct account *a)
{
	free(a->import);
	free(a->dead);
	free(a->users);
	free(a->gone);
	pthread_mutex_destroy(&a->lock);
}

static uint32_t
handle_of(const struct account *a, const struct import *i)
{
	return i->generation << IMPORT_LOG_MAX | (uint32_t)(i - a->import);
}

static struct import *
find(struct account *a, uint32_t owner, uint32_t handle)
{
	struct import *i = &a->import[handle & (a->count - 1)];

	return i->state != IMPORT_FREE && i->state != IMPORT_LEAVING && i->owner == owner &&
			       handle_of(a, i) == handle
		       ? i
		       : NULL;
}

/* ---- lists ---- */

static struct import *
take_free(struct account *a)
{
	struct import *i;

	if (a->free != 0) {
		i = &a->import[a->free - 1];
		a->free = i->next;
		return i;
	}
	return a->used < a->count ? &a->import[a->used++] : NULL;
}

static void
give_free(struct account *a, struct import *i)
{
	i->state = IMPORT_FREE;
	i->generation = (i->generation + 1) & ((1u << GENERATION_BITS) - 1);
	i->next = a->free;
	a->free = (uint32_t)(i - a->import) + 1;
}

static void
list(struct account *a, struct import *i)
{
	if (i->listed)
		return;
	i->listed = true;
	i->next = a->todo;
	a->todo = (uint32_t)(i - a->import) + 1;
}

bool
account_due(struct account *a)
{
	return __atomic_load_n(&a->todo, __ATOMIC_RELAXED) != 0 ||
	       __atomic_load_n(&a->any_dead, __ATOMIC_RELAXED);
}

struct import *
account_next(struct account *a)
{
	struct import *i;

	if (a->todo == 0)
		return NULL;
	i = &a->import[a->todo - 1];
	a->todo = i->next;
	i->listed = false;
	return i;
}

/* ---- groups ---- */

static uint32_t
drop_group(struct account *a, struct import *i)
{
	uint32_t group = i->group;

	i->group = NO_GROUP;
	if (group == NO_GROUP || --a->users[group] != 0 || !a->gone[group])
		return NO_GROUP;
	a->gone[group] = false;
	a->ngone--;
	return group;
}

uint32_t
account_end(struct account *a, struct import *i)
{
	uint32_t group = drop_group(a, i);

	give_free(a, i);
	return group;
}

bool
account_group_gone(struct account *a, uint32_t group)
{
	a->gone[group] = a->users[group] != 0;
	a->ngone += a->gone[group];
	return !a->gone[group];
}

/* ---- events of links ---- */

static bool
is_of(const struct import *i, uint32_t link)
{
	return i->joined && i->link == link;
}

void
account_up(struct account *a, uint32_t link, uint32_t group)
{
	for (uint32_t n = 0; n < a->used; n++) {
		struct import *i = &a->import[n];

		if (!is_of(i, link) || i->state != IMPORT_WAITING)
			continue;
		i->state = IMPORT_UP;
		i->group = group;
		a->users[group]++;
	}
}

void
account_join(struct account *a, uint32_t from, uint32_t link)
{
	for (uint32_t n = 0; n < a->used; n++)
		if (is_of(&a->import[n], from))
			a->import[n].link = link;
}

/* The link has no users any more. */
void
account_down(struct account *a, uint32_t link, uint32_t status)
{
	for (uint32_t n = 0; n < a->used; n++) {
		struct import *i = &a->import[n];

		if (!is_of(i, link))
			continue;
		i->joined = false;
		i->status = (uint8_t)status;
		if (i->state != IMPORT_LEAVING)
			i->state = IMPORT_DOWN;
	}
}

/* ---- the driver's calls ---- */

/*
 * Numbers of groups that have ended and are named by imports of the user. They are few; a client
 * that gets channels, loses them and keeps its imports must not take the numbers of all others.
 */
static uint32_t
gone_of(const struct account *a, uint32_t user)
{
	uint32_t n = 0;

	for (uint32_t g = 0; g < a->ntps; g++)
		for (uint32_t i = 0; a->gone[g] && i < a->used; i++)
			if (a->import[i].state != IMPORT_FREE && a->import[i].group == g &&
			    a->import[i].user == user) {
				n++;
				break;
			}
	return n;
}

static bool
keeps_too_many(const struct account *a, uint32_t user)
{
	return a->ngone >= a->ntps / GONE_SHARE && gone_of(a, user) >= a->ntps / GONE_OF_USER_SHARE;
}

static int
face_import(void *arg, const struct hca_driver_import *request, uint32_t *handle)
{
	struct ubagent *ag = arg;
	struct account *a = &ag->account;
	struct import *i;

	pthread_mutex_lock(&a->lock);
	if (keeps_too_many(a, request->user)) {
		pthread_mutex_unlock(&a->lock);
		return -EBUSY;
	}
	i = take_free(a);
	if (i != NULL) {
		*i = (struct import){.state = IMPORT_NEW,
				     .generation = i->generation,
				     .owner = request->owner,
				     .user = request->user,
				     .group = NO_GROUP};
		memcpy(i->own, request->own, sizeof(i->own));
		memcpy(i->peer, request->peer, sizeof(i->peer));
		i->ah = request->ah;
		*handle = handle_of(a, i);
		list(a, i);
	}
	pthread_mutex_unlock(&a->lock);
	if (i == NULL)
		return -ENOMEM;
	cmagent_loop_wake(&ag->loop);
	return 0;
}

static int
face_query(void *arg, uint32_t owner, uint32_t handle, uint32_t *group, bool *first,
	   const char **why)
{
	static const int errors[] = {
		[UBCM_STATUS_NO_RESOURCES] = -ENOMEM,
		[UBCM_STATUS_TIMEOUT] = -ETIMEDOUT,
		[UBCM_STATUS_DEAD] = -ETIMEDOUT,
	};
	struct account *a = &((struct ubagent *)arg)->account;
	struct import *i;
	int err = -EINPROGRESS;

	pthread_mutex_lock(&a->lock);
	i = find(a, owner, handle);
	if (i == NULL) {
		err = -EINVAL;
		*why = "there is no such import";
	} else if (i->state == IMPORT_UP) {
		*group = i->group;
		*first = !i->told;
		i->told = true;
		err = 0;
	} else if (i->state == IMPORT_DOWN) {
		err = i->status < sizeof(errors) / sizeof(errors[0]) ? errors[i->status] : 0;
		err = err != 0 ? err : -ECONNREFUSED;
		*why = ubcm_status_str(i->status);
	}
	pthread_mutex_unlock(&a->lock);
	return err;
}

static void
leave(struct account *a, struct import *i)
{
	i->state = IMPORT_LEAVING;
	list(a, i);
}

static int
face_unimport(void *arg, uint32_t owner, uint32_t handle, uint32_t *group,
	      struct hca_driver_import *was)
{
	struct account *a = &((struct ubagent *)arg)->account;
	struct import *i;

	pthread_mutex_lock(&a->lock);
	i = find(a, owner, handle);
	if (i != NULL) {
		*group = i->told ? i->group : HCA_DRIVER_NO_TPG;
		*was = (struct hca_driver_import){.owner = owner};
		memcpy(was->own, i->own, sizeof(was->own));
		memcpy(was->peer, i->peer, sizeof(was->peer));
		leave(a, i);
	}
	pthread_mutex_unlock(&a->lock);
	if (i == NULL)
		return -EINVAL;
	cmagent_loop_wake(&((struct ubagent *)arg)->loop);
	return 0;
}

static uint32_t
face_links(void *arg)
{
	const struct ubagent *a = arg;
	uint32_t links = (a->nlinks - 1) / a->cfg.tps;

	return links != 0 ? links : 1;
}

static void
face_forget(void *arg, uint32_t owner)
{
	struct account *a = &((struct ubagent *)arg)->account;

	pthread_mutex_lock(&a->lock);
	for (uint32_t n = 0; n < a->used; n++)
		if (a->import[n].owner == owner && a->import[n].state != IMPORT_FREE &&
		    a->import[n].state != IMPORT_LEAVING)
			leave(a, &a->import[n]);
	pthread_mutex_unlock(&a->lock);
	cmagent_loop_wake(&((struct ubagent *)arg)->loop);
}

/* Also called by workers: without the lock. */
static void
face_event(void *arg, uint32_t tpn)
{
	struct account *a = &((struct ubagent *)arg)->account;

	__atomic_store_n(&a->dead[tpn & (a->ntps - 1)], tpn, __ATOMIC_RELAXED);
	__atomic_store_n(&a->any_dead, true, __ATOMIC_RELEASE);
	cmagent_loop_wake(&((struct ubagent *)arg)->loop);
}

/* ---- counters ---- */

static const struct {
	const char *name;
	size_t at; /* in struct ubagent, a uint64_t */
} counters[] = {
#define AT(member) offsetof(struct ubagent, member)
#define AGENT(name, text) {#name, AT(counter) + UBAGENT_##name * sizeof(uint64_t)},
#define HOP(name, text) {#name, AT(hops.counter) + CMAGENT_HOP_##name * sizeof(uint64_t)},
#define GAUGE(name, text) {"channels_" #name, AT(shown.now.name)},
#define PLAIN(name) {"cm_" #name, AT(shown.name)},
#define DROP(name, text) \
	{"cm_dropped_" #name, AT(shown.dropped) + UBCM_DROP_##name * sizeof(uint64_t)},
#define HANDLED(NAME, type, has) \
	{"cm_handled_" #NAME, AT(shown.handled) + UBCM_##NAME * sizeof(uint64_t)},
#define SENT(NAME, type, has) {"cm_sent_" #NAME, AT(shown.sent) + UBCM_##NAME * sizeof(uint64_t)},
	UBAGENT_COUNTER_LIST(AGENT) CMAGENT_HOP_PLACE_LIST(HOP) PLAIN(received) UBCM_DROP_LIST(DROP)
		UBCM_TYPE_LIST(HANDLED) UBCM_TYPE_LIST(SENT) PLAIN(repeated) PLAIN(duplicates)
			PLAIN(begun) PLAIN(opened) PLAIN(ended) PLAIN(evicted) PLAIN(reclaimed)
				PLAIN(refused_address) PLAIN(refused_peers) PLAIN(refused_own)
					UBCM_GAUGE_LIST(GAUGE)
#undef AT
#undef AGENT
#undef HOP
#undef GAUGE
#undef PLAIN
#undef DROP
#undef HANDLED
#undef SENT
};

static const char *
face_counter(void *arg, uint32_t i, uint64_t *value)
{
	const uint8_t *of = arg;

	if (i >= sizeof(counters) / sizeof(counters[0]))
		return NULL;
	*value = __atomic_load_n((const uint64_t *)(const void *)(of + counters[i].at),
				 __ATOMIC_RELAXED);
	return counters[i].name;
}

const struct hca_driver_agent ubagent_face = {
	.import = face_import,
	.query = face_query,
	.unimport = face_unimport,
	.links = face_links,
	.forget = face_forget,
	.event = face_event,
	.counter = face_counter,
};
