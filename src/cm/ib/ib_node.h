/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_IB_IB_NODE_H
#define CM_IB_IB_NODE_H

/*
 * Lists and tables whose links are in the objects: no operation can fail. A list is also a node, in
 * a ring with its members; a node that is in no list points to itself.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ib_node {
	struct ib_node *prev, *next;
};

#define IB_CONTAINER(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

/* The body may take the node that it is at out of the list. */
#define IB_NODE_EACH(node, list) \
	for (struct ib_node *node = (list)->next, *ib_next_##node = node->next; node != (list); \
	     node = ib_next_##node, ib_next_##node = node->next)

static inline void
ib_node_init(struct ib_node *node)
{
	node->prev = node->next = node;
}

static inline bool
ib_node_alone(const struct ib_node *node)
{
	return node->next == node;
}

static inline void
ib_node_push(struct ib_node *list, struct ib_node *node)
{
	node->prev = list->prev;
	node->next = list;
	list->prev->next = node;
	list->prev = node;
}

static inline void
ib_node_pull(struct ib_node *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	ib_node_init(node);
}

/* A hash table of objects by a 64-bit key, of which several may have the same. */
struct ib_link {
	struct ib_link *next;
	uint64_t key;
	bool in;
};

struct ib_hash {
	struct ib_link **bucket;
	uint32_t buckets; /* a power of two */
	uint32_t used;
};

/* false: no memory. */
bool ib_hash_init(struct ib_hash *hash);
void ib_hash_free(struct ib_hash *hash);
/* Without memory for more buckets it becomes slower, but works. */
void ib_hash_add(struct ib_hash *hash, struct ib_link *link, uint64_t key);
/* Has no effect on a link that is in no table. */
void ib_hash_remove(struct ib_hash *hash, struct ib_link *link);
/* The first one with the key after link; NULL: of all. */
struct ib_link *ib_hash_next(const struct ib_hash *hash, uint64_t key, const struct ib_link *link);
/* A key of bytes; a peer without the seed cannot choose it. */
uint64_t ib_hash_key(uint64_t seed, const void *bytes, size_t len);

/* Deadlines: the earliest one is on top of the heap. */
struct ib_timer {
	uint64_t at;
	uint32_t place; /* in the heap, from 1; 0: not set */
};

struct ib_heap {
	struct ib_timer **timer;
	uint32_t used, room;
};

/* Room for this number of timers; false: no memory. */
bool ib_heap_reserve(struct ib_heap *heap, uint32_t timers);
void ib_heap_free(struct ib_heap *heap);
void ib_heap_set(struct ib_heap *heap, struct ib_timer *timer, uint64_t at);
void ib_heap_stop(struct ib_heap *heap, struct ib_timer *timer);
/* NULL: no timer is set. */
struct ib_timer *ib_heap_first(const struct ib_heap *heap);

#endif
