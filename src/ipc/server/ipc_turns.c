/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>

#include "ipc_turns.h"

struct ipc_turn {
	struct ipc_turn *next;
	uid_t uid;
	uint32_t interval;
	uint64_t lost; /* when the last one was */
	uint64_t free; /* the next client may begin */
};

void
ipc_turns_init(struct ipc_turns *turns, uint32_t max)
{
	*turns = (struct ipc_turns){.max = max};
	pthread_mutex_init(&turns->lock, NULL);
}

void
ipc_turns_free(struct ipc_turns *turns)
{
	while (turns->list != NULL) {
		struct ipc_turn *t = turns->list;

		turns->list = t->next;
		free(t);
	}
	pthread_mutex_destroy(&turns->lock);
}

/* Lock held. The entry of the user, or NULL; entries that are too old are removed. */
static struct ipc_turn *
find(struct ipc_turns *turns, uid_t uid, uint64_t now)
{
	struct ipc_turn **link = &turns->list, *t, *found = NULL;

	while ((t = *link) != NULL)
		if (now >= t->lost + IPC_TURN_FORGET_MS) {
			*link = t->next;
			free(t);
		} else {
			found = t->uid == uid ? t : found;
			link = &t->next;
		}
	return found;
}

void
ipc_turns_lost(struct ipc_turns *turns, uid_t uid, uint64_t now)
{
	struct ipc_turn *t;

	if (turns->max == 0)
		return;
	pthread_mutex_lock(&turns->lock);
	t = find(turns, uid, now);
	if (t == NULL) {
		t = calloc(1, sizeof(*t));
		if (t == NULL)
			goto out; /* forgiven */
		*t = (struct ipc_turn){.uid = uid, .next = turns->list};
		turns->list = t;
	}
	t->interval = t->interval == 0 ? IPC_TURN_FIRST_MS : 2 * t->interval;
	if (t->interval > turns->max)
		t->interval = turns->max;
	t->lost = now;
	t->free = now + t->interval;
out:
	pthread_mutex_unlock(&turns->lock);
}

uint32_t
ipc_turns_take(struct ipc_turns *turns, uid_t uid, uint64_t now)
{
	struct ipc_turn *t;
	uint32_t wait = 0;

	if (turns->max == 0)
		return 0;
	pthread_mutex_lock(&turns->lock);
	t = find(turns, uid, now);
	if (t != NULL && now < t->free)
		wait = (uint32_t)(t->free - now);
	else if (t != NULL)
		t->free = now + t->interval;
	pthread_mutex_unlock(&turns->lock);
	return wait;
}
