/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The live objects. Programs destroy objects twice, or in two threads; the second call fails,
 * because the object is looked up here before it is touched. Objects of a closed context are freed.
 */

#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "front.h"

struct front_live {
	void *object;
	const struct front_kind *kind;
	struct front_context *owner; /* NULL: a context itself */
	struct front_pd *domain;     /* a parent domain that it is in; or NULL */
	uint32_t handle;	     /* the public one */
	bool leaving;		     /* a thread destroys it */
	struct front_live *next, *previous;
};

static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static void *live_tree;

static void
lock(void)
{
	pthread_mutex_lock(&live_lock);
}

static void
unlock(void)
{
	pthread_mutex_unlock(&live_lock);
}

/* A child of fork() must find the lock free. */
static __attribute__((constructor)) void
watch_fork(void)
{
	pthread_atfork(lock, unlock, unlock);
}

static int
compare(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct front_live *)a)->object;
	uintptr_t y = (uintptr_t)((const struct front_live *)b)->object;

	return x < y ? -1 : x > y;
}

static struct front_live *
find(const void *object)
{
	const struct front_live key = {.object = (void *)(uintptr_t)object};
	struct front_live **found = tfind(&key, &live_tree, compare);

	return found != NULL ? *found : NULL;
}

static uint32_t
handle_of(const void *object, const struct front_kind *kind)
{
	uint32_t handle = 0;

	if (kind->handle != 0)
		memcpy(&handle, (const char *)object + kind->handle, sizeof(handle));
	return handle;
}

/* Objects with a handle begin with their context. */
static bool
is_garbled(const struct front_live *live)
{
	const struct ibv_context *context;

	if (live->kind->handle == 0)
		return false;
	memcpy(&context, live->object, sizeof(context));
	return context != &live->owner->ex.context ||
	       handle_of(live->object, live->kind) != live->handle;
}

/* Count an object in its PD, if that is a parent domain; NULL: in none. */
static void
join(struct front_live *live, struct ibv_pd *pd)
{
	struct front_pd *domain = (struct front_pd *)pd, *old = live->domain;

	live->domain = domain != NULL && domain->parent != NULL ? domain : NULL;
	if (live->domain != NULL)
		__atomic_add_fetch(&live->domain->users, 1, __ATOMIC_RELAXED);
	if (old != NULL)
		__atomic_sub_fetch(&old->users, 1, __ATOMIC_RELAXED);
}

/*
 * The lock is held; so in leave(). An address may be that of an object which has just been freed,
 * and whose entry its thread is about to take out.
 */
static bool
enter(struct front_live *live)
{
	struct front_context *owner = live->owner;
	struct front_live **place = tsearch(live, &live_tree, compare);

	if (place == NULL)
		return false;
	*place = live;
	if (owner == NULL)
		return true;
	live->next = owner->objects;
	if (live->next != NULL)
		live->next->previous = live;
	owner->objects = live;
	return true;
}

static void
leave(struct front_live *live)
{
	join(live, NULL);
	if (find(live->object) == live)
		tdelete(live, &live_tree, compare);
	if (live->next != NULL)
		live->next->previous = live->previous;
	if (live->previous != NULL)
		live->previous->next = live->next;
	else if (live->owner != NULL)
		live->owner->objects = live->next;
	free(live);
}

void *
front_enter(void *object, const struct front_kind *kind, struct ibv_context *context,
	    struct ibv_pd *pd, const char *call)
{
	struct front_live *live = front_new(sizeof(*live), call);
	bool entered = false;

	if (live != NULL) {
		live->object = object;
		live->kind = kind;
		live->handle = handle_of(object, kind);
		live->owner = context != NULL ? front_ctx(context) : NULL;
		lock();
		entered = enter(live);
		if (entered)
			join(live, pd);
		unlock();
	}
	if (entered)
		return object;
	free(live);
	kind->destroy(object, call);
	front_refuse(ENOMEM, call, "no memory to know the %s by", kind->name);
	return NULL;
}

void
front_renumber(const void *object)
{
	struct front_live *live;

	lock();
	live = find(object);
	if (live != NULL)
		live->handle = handle_of(object, live->kind);
	unlock();
}

void
front_move(const void *object, struct ibv_pd *pd)
{
	struct front_live *live;

	lock();
	live = find(object);
	if (live != NULL)
		join(live, pd);
	unlock();
}

/* The caller that takes it destroys it. */
static struct front_live *
live_take(const void *object, const struct front_kind *kind)
{
	struct front_live *live;

	lock();
	live = find(object);
	if (live != NULL && (live->kind != kind || live->leaving))
		live = NULL;
	if (live != NULL)
		live->leaving = true;
	unlock();
	return live;
}

int
front_destroy(void *object, const struct front_kind *kind, const char *call)
{
	struct front_live *live;
	int err = front_fault(call);

	if (err != 0)
		return err;
	live = live_take(object, kind);
	if (live == NULL)
		return front_refuse(
			EINVAL, call,
			"there is no such %s: it was destroyed, or the address is of no object",
			kind->name);
	err = is_garbled(live)
		      ? front_refuse(ENOENT, call,
				     "the handle or context of the %s was overwritten: the program "
				     "wrote to memory of the library",
				     kind->name)
		      : kind->destroy(object, call);
	lock();
	if (err == 0)
		leave(live);
	else
		live->leaving = false;
	unlock();
	return err;
}

void
front_forget(struct front_context *owner)
{
	for (;;) {
		const struct front_kind *kind;
		struct front_live *live;
		void *object;

		lock();
		live = owner->objects;
		if (live == NULL)
			break;
		kind = live->kind;
		object = live->object;
		live->domain = NULL; /* it may be gone already */
		leave(live);
		unlock();
		if (kind->free != NULL)
			kind->free(object);
	}
	unlock();
}
