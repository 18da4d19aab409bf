/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Requests that wait at a listener, by the address of their peer: when the backlog is full the
 * oldest one of the address with the most of them is found without a walk.
 */

#include <stdlib.h>
#include <string.h>

#include "ib_impl.h"

/* The order of addresses: more requests first, then the older one. */
#define WAIT_COUNT_MAX 0xffffffu
#define WAIT_ARRIVAL_BITS 40u

static uint64_t
wait_key(const struct ibcm *cm, const struct ib_id *listener, const uint8_t gid[16])
{
	return ib_hash_key(cm->seed ^ listener->number, gid, 16);
}

static struct ib_wait *
wait_find(const struct ibcm *cm, const struct ib_id *listener, const uint8_t gid[16])
{
	uint64_t key = wait_key(cm, listener, gid);

	for (struct ib_link *l = ib_hash_next(&cm->waits, key, NULL); l != NULL;
	     l = ib_hash_next(&cm->waits, key, l)) {
		struct ib_wait *w = IB_CONTAINER(l, struct ib_wait, link);

		if (w->listener == listener && memcmp(w->gid, gid, sizeof(w->gid)) == 0)
			return w;
	}
	return NULL;
}

static struct ib_wait *
wait_get(struct ibcm *cm, struct ib_id *listener, const uint8_t gid[16])
{
	struct ib_wait *w = wait_find(cm, listener, gid);

	if (w != NULL)
		return w;
	if (!ib_heap_reserve(&listener->most, listener->most.used + 1))
		return NULL;
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return NULL;
	memcpy(w->gid, gid, sizeof(w->gid));
	w->listener = listener;
	ib_node_init(&w->requests);
	ib_hash_add(&cm->waits, &w->link, wait_key(cm, listener, gid));
	return w;
}

/* Its place after its requests have changed */
static void
wait_rank(struct ib_wait *w)
{
	const struct ib_id *oldest = IB_CONTAINER(w->requests.next, struct ib_id, in_wait);
	uint32_t less = WAIT_COUNT_MAX - (w->count < WAIT_COUNT_MAX ? w->count : WAIT_COUNT_MAX);
	uint64_t arrival = oldest->arrival & ((UINT64_C(1) << WAIT_ARRIVAL_BITS) - 1);

	ib_heap_set(&w->listener->most, &w->rank, (uint64_t)less << WAIT_ARRIVAL_BITS | arrival);
}

bool
ib_wait_add(struct ibcm *cm, struct ib_id *listener, struct ib_id *request, const uint8_t gid[16])
{
	struct ib_wait *w = wait_get(cm, listener, gid);

	if (w == NULL)
		return false;
	request->listener = listener;
	request->wait = w;
	request->arrival = cm->arrivals++;
	ib_node_push(&listener->requests, &request->in_listener);
	ib_node_push(&w->requests, &request->in_wait);
	listener->waiting++;
	w->count++;
	wait_rank(w);
	return true;
}

void
ib_wait_drop(struct ibcm *cm, struct ib_id *request)
{
	struct ib_wait *w = request->wait;

	if (w == NULL)
		return;
	w->listener->waiting--;
	request->listener = NULL;
	request->wait = NULL;
	ib_node_pull(&request->in_listener);
	ib_node_pull(&request->in_wait);
	if (--w->count != 0) {
		wait_rank(w);
		return;
	}
	ib_heap_stop(&w->listener->most, &w->rank);
	ib_hash_remove(&cm->waits, &w->link);
	free(w);
}

struct ib_id *
ib_wait_victim(const struct ibcm *cm, const struct ib_id *listener, const uint8_t gid[16])
{
	const struct ib_timer *first = ib_heap_first(&listener->most);
	const struct ib_wait *most, *own = wait_find(cm, listener, gid);

	if (first == NULL)
		return NULL;
	most = IB_CONTAINER(first, struct ib_wait, rank);
	if (own != NULL && own->count >= most->count)
		return NULL;
	return IB_CONTAINER(most->requests.next, struct ib_id, in_wait);
}
