/* SPDX-License-Identifier: BSD-3-Clause */

/* Ids: their numbers, their clients, and the orphans that live on. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ib_impl.h"

/* A number is the index of a slot, and above it how often the slot was given out. */
#define ID_INDEX_BITS 20u
#define ID_GENERATIONS (1u << (32 - ID_INDEX_BITS))
#define ID_FIRST_SLOTS 64u

/* ---- slots ---- */

/* The slot that has been free for the longest time comes first: a number is not soon used again. */
static void
id_free_slot(struct ibcm *cm, uint32_t index)
{
	cm->slot[index].id = NULL;
	cm->slot[index].next_free = 0;
	if (cm->free_last != 0)
		cm->slot[cm->free_last - 1].next_free = index + 1;
	else
		cm->free_first = index + 1;
	cm->free_last = index + 1;
}

static bool
id_grow(struct ibcm *cm)
{
	uint32_t slots = cm->slots == 0 ? ID_FIRST_SLOTS : 2 * cm->slots;
	struct ib_slot *more;

	if (slots > 1u << ID_INDEX_BITS || !ib_heap_reserve(&cm->timers, slots))
		return false;
	more = realloc(cm->slot, slots * sizeof(*more));
	if (more == NULL)
		return false;
	cm->slot = more;
	for (uint32_t i = cm->slots; i < slots; i++) {
		more[i] = (struct ib_slot){.generation = 1};
		id_free_slot(cm, i);
	}
	cm->slots = slots;
	return true;
}

static bool
id_take_slot(struct ibcm *cm, struct ib_id *id)
{
	struct ib_slot *slot;

	if (cm->free_first == 0 && !id_grow(cm))
		return false;
	id->index = cm->free_first - 1;
	slot = &cm->slot[id->index];
	cm->free_first = slot->next_free;
	if (cm->free_first == 0)
		cm->free_last = 0;
	slot->id = id;
	id->number = slot->generation << ID_INDEX_BITS | id->index;
	return true;
}

static void
id_next_generation(struct ib_slot *slot)
{
	slot->generation = slot->generation + 1 == ID_GENERATIONS ? 1 : slot->generation + 1;
}

/* ---- clients ---- */

struct ib_account *
ib_account_find(const struct ibcm *cm, uint32_t owner)
{
	struct ib_link *link = ib_hash_next(&cm->accounts, owner, NULL);

	return link == NULL ? NULL : IB_CONTAINER(link, struct ib_account, link);
}

struct ib_account *
ib_account_get(struct ibcm *cm, const struct ibcm_client *client)
{
	struct ib_account *a = ib_account_find(cm, client->owner);

	if (a != NULL)
		return a;
	a = calloc(1, sizeof(*a));
	if (a == NULL)
		return NULL;
	a->user = ib_user_get(cm, client->user);
	if (a->user == NULL) {
		free(a);
		return NULL;
	}
	a->client = *client;
	ib_node_init(&a->orphans);
	ib_node_init(&a->channels);
	ib_hash_add(&cm->accounts, &a->link, client->owner);
	return a;
}

void
ib_account_drop(struct ibcm *cm, struct ib_account *account)
{
	if (account->ids != 0)
		return;
	ib_hash_remove(&cm->accounts, &account->link);
	ib_user_drop(cm, account->user);
	free(account);
}

static bool
account_evict(struct ibcm *cm, struct ib_id *orphan)
{
	cm->counters.evicted++;
	ib_conn_end(cm, orphan);
	return true;
}

/* Evicts the oldest orphan of a list; false: the list is empty. */
#define ACCOUNT_EVICT(cm, list, member) \
	(!ib_node_alone(list) && \
	 account_evict(cm, IB_CONTAINER((list)->next, struct ib_id, member)))

bool
ib_account_may(struct ibcm *cm, struct ib_account *account)
{
	const struct ibcm_limits *l = &cm->cfg.limits;
	bool may;

	account->ids++; /* so that it stays while orphans of it go */
	may = account->ids <= l->ids_client || ACCOUNT_EVICT(cm, &account->orphans, in_account);
	may = may && (account->user->ids < l->ids_user ||
		      ACCOUNT_EVICT(cm, &account->user->orphans, in_user));
	may = may && (cm->ids < l->ids || ACCOUNT_EVICT(cm, &cm->all_orphans, in_all));
	account->ids--;
	return may;
}

/* ---- ids ---- */

static void
id_init(struct ib_id *id)
{
	id->gid_index = HCA_CTL_CM_NO_GID;
	ib_node_init(&id->in_account);
	ib_node_init(&id->in_user);
	ib_node_init(&id->in_all);
	ib_node_init(&id->in_channel);
	ib_node_init(&id->events);
	ib_node_init(&id->members);
	ib_node_init(&id->in_port);
	ib_node_init(&id->requests);
	ib_node_init(&id->in_listener);
	ib_node_init(&id->in_wait);
	ib_node_init(&id->in_half);
}

struct ib_id *
ib_id_new(struct ibcm *cm, struct ib_account *account, struct ib_channel *channel, uint64_t now)
{
	struct ib_id *id = calloc(1, sizeof(*id));

	if (id == NULL)
		return NULL;
	id_init(id);
	if (!id_take_slot(cm, id)) {
		free(id);
		return NULL;
	}
	id->account = account;
	id->channel = channel;
	account->ids++;
	account->user->ids++;
	channel->ids++;
	ib_node_push(&channel->members, &id->in_channel);
	cm->ids++;
	ib_id_state(id, HCA_CTL_CM_IDLE, now);
	return id;
}

struct ib_id *
ib_id_by_number(const struct ibcm *cm, uint32_t number)
{
	uint32_t index = number & ((1u << ID_INDEX_BITS) - 1);
	struct ib_id *id = index < cm->slots ? cm->slot[index].id : NULL;

	return number != 0 && id != NULL && id->number == number ? id : NULL;
}

struct ib_id *
ib_id_get(struct ib_op *op, uint32_t number)
{
	struct ib_id *id = ib_id_by_number(op->cm, number);

	/* a request that the program has not fetched yet is not its own */
	if (id == NULL || id->listener != NULL || id->account->client.owner != op->client->owner) {
		ib_op_fail(op, -ENOENT,
			   "id %u does not exist: it was destroyed, or is another client's",
			   number);
		return NULL;
	}
	return id;
}

void
ib_id_state(struct ib_id *id, uint32_t state, uint64_t now)
{
	id->state = state;
	id->since = now;
}

/* The client's side of it */
static void
id_detach(struct ibcm *cm, struct ib_id *id)
{
	ib_event_clear(id);
	ib_group_forget(cm, id);
	ib_unbind(cm, id);
	ib_wait_drop(cm, id);
	if (id->channel == NULL)
		return;
	ib_node_pull(&id->in_channel);
	id->channel->ids--;
	ib_channel_drop(cm, id->channel);
	id->channel = NULL;
}

void
ib_id_orphan(struct ibcm *cm, struct ib_id *id)
{
	id_detach(cm, id);
	id->number = 0;
	id_next_generation(&cm->slot[id->index]);
	ib_node_push(&id->account->orphans, &id->in_account);
	ib_node_push(&id->account->user->orphans, &id->in_user);
	ib_node_push(&cm->all_orphans, &id->in_all);
	cm->orphans++;
	if (id->phase == IB_PHASE_NONE)
		ib_id_free(cm, id);
}

void
ib_id_free(struct ibcm *cm, struct ib_id *id)
{
	struct ib_account *account = id->account;

	ib_heap_stop(&cm->timers, &id->timer);
	cm->orphans--;
	ib_node_pull(&id->in_account);
	ib_node_pull(&id->in_user);
	ib_node_pull(&id->in_all);
	id_free_slot(cm, id->index);
	ib_heap_free(&id->most);
	free(id);
	cm->ids--;
	account->ids--;
	account->user->ids--;
	ib_account_drop(cm, account);
}
