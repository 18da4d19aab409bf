/* SPDX-License-Identifier: BSD-3-Clause */

#include "ib_node.h"

#include <stdlib.h>
#include <string.h>

#define HASH_FIRST 64u
#define HEAP_FIRST 64u

/* ---- hash tables ---- */

bool
ib_hash_init(struct ib_hash *hash)
{
	*hash = (struct ib_hash){.buckets = HASH_FIRST};
	hash->bucket = calloc(hash->buckets, sizeof(struct ib_link *));
	return hash->bucket != NULL;
}

void
ib_hash_free(struct ib_hash *hash)
{
	free(hash->bucket);
}

static struct ib_link **
hash_bucket(const struct ib_hash *hash, uint64_t key)
{
	return &hash->bucket[(key ^ key >> 32) & (hash->buckets - 1)];
}

static void
hash_put(struct ib_hash *hash, struct ib_link *link)
{
	struct ib_link **bucket = hash_bucket(hash, link->key);

	/* behind the older ones: which is found first does not depend on the number of buckets */
	while (*bucket != NULL)
		bucket = &(*bucket)->next;
	link->next = NULL;
	*bucket = link;
}

static void
hash_grow(struct ib_hash *hash)
{
	struct ib_hash more = {.buckets = 2 * hash->buckets, .used = hash->used};

	more.bucket = calloc(more.buckets, sizeof(struct ib_link *));
	if (more.bucket == NULL)
		return;
	for (uint32_t i = 0; i < hash->buckets; i++) {
		struct ib_link *next;

		for (struct ib_link *l = hash->bucket[i]; l != NULL; l = next) {
			next = l->next;
			hash_put(&more, l);
		}
	}
	free(hash->bucket);
	*hash = more;
}

void
ib_hash_add(struct ib_hash *hash, struct ib_link *link, uint64_t key)
{
	if (hash->used >= hash->buckets)
		hash_grow(hash);
	link->key = key;
	link->in = true;
	hash->used++;
	hash_put(hash, link);
}

void
ib_hash_remove(struct ib_hash *hash, struct ib_link *link)
{
	struct ib_link **at;

	if (!link->in)
		return;
	for (at = hash_bucket(hash, link->key); *at != link; at = &(*at)->next)
		;
	*at = link->next;
	link->in = false;
	hash->used--;
}

struct ib_link *
ib_hash_next(const struct ib_hash *hash, uint64_t key, const struct ib_link *link)
{
	struct ib_link *l = link != NULL ? link->next : *hash_bucket(hash, key);

	while (l != NULL && l->key != key)
		l = l->next;
	return l;
}

static uint64_t
hash_mix(uint64_t v)
{
	v = (v ^ v >> 33) * UINT64_C(0xff51afd7ed558ccd);
	v = (v ^ v >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return v ^ v >> 33;
}

uint64_t
ib_hash_key(uint64_t seed, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	uint64_t key = seed ^ len;

	while (len > 0) {
		size_t n = len < sizeof(uint64_t) ? len : sizeof(uint64_t);
		uint64_t part = 0;

		memcpy(&part, p, n);
		key = hash_mix(key ^ part) + seed;
		p += n;
		len -= n;
	}
	return key;
}

/* ---- deadlines ---- */

bool
ib_heap_reserve(struct ib_heap *heap, uint32_t timers)
{
	uint32_t room = heap->room == 0 ? HEAP_FIRST : heap->room;
	struct ib_timer **more;

	while (room < timers)
		room *= 2;
	if (room == heap->room)
		return true;
	more = realloc(heap->timer, room * sizeof(*more));
	if (more == NULL)
		return false;
	heap->timer = more;
	heap->room = room;
	return true;
}

void
ib_heap_free(struct ib_heap *heap)
{
	free(heap->timer);
}

static void
heap_put(struct ib_heap *heap, uint32_t place, struct ib_timer *timer)
{
	heap->timer[place - 1] = timer;
	timer->place = place;
}

static void
heap_up(struct ib_heap *heap, struct ib_timer *timer)
{
	uint32_t place = timer->place;

	for (; place > 1 && heap->timer[place / 2 - 1]->at > timer->at; place /= 2)
		heap_put(heap, place, heap->timer[place / 2 - 1]);
	heap_put(heap, place, timer);
}

static void
heap_down(struct ib_heap *heap, struct ib_timer *timer)
{
	uint32_t place = timer->place;

	for (;;) {
		uint32_t child = 2 * place;

		if (child > heap->used)
			break;
		if (child < heap->used && heap->timer[child]->at < heap->timer[child - 1]->at)
			child++;
		if (heap->timer[child - 1]->at >= timer->at)
			break;
		heap_put(heap, place, heap->timer[child - 1]);
		place = child;
	}
	heap_put(heap, place, timer);
}

void
ib_heap_set(struct ib_heap *heap, struct ib_timer *timer, uint64_t at)
{
	ib_heap_stop(heap, timer);
	timer->at = at;
	heap_put(heap, ++heap->used, timer);
	heap_up(heap, timer);
}

void
ib_heap_stop(struct ib_heap *heap, struct ib_timer *timer)
{
	uint32_t place = timer->place;
	struct ib_timer *last;

	if (place == 0)
		return;
	timer->place = 0;
	last = heap->timer[--heap->used];
	if (last == timer)
		return;
	heap_put(heap, place, last);
	heap_up(heap, last);
	heap_down(heap, last);
}

struct ib_timer *
ib_heap_first(const struct ib_heap *heap)
{
	return heap->used == 0 ? NULL : heap->timer[0];
}
