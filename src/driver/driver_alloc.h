/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DRIVER_ALLOC_H
#define DRIVER_ALLOC_H

/*
 * Allocators of numbers: indexes of contexts with random tags, ranges of MTT entries, random bits.
 * Not thread safe: the driver's lock is held.
 */

#include <stdbool.h>
#include <stdint.h>

/* Tags of keys and QPNs must not be predictable: from getrandom, or a seeded sequence for tests. */
struct driver_random {
	uint64_t seed; /* 0 = getrandom */
	uint64_t state;
};

/* 0, or -EIO: the kernel provides no random bits. */
int driver_random_init(struct driver_random *random, uint64_t seed);
uint64_t driver_random_next(struct driver_random *random);

/* An index rests until this number of others have been returned, if there are enough. */
#define DRIVER_IDS_REST 256u

/*
 * Indexes [first, count). One that was returned rests; then the lowest is used first. So few are
 * ever used that would do: the contexts and tables of an index take memory from its first use on.
 * Each keeps its last tag, so that it gets a different one when it is reused.
 */
struct driver_ids {
	uint32_t first;
	uint32_t count;
	uint32_t used;
	uint32_t lowest; /* below it all are in use or rest */
	uint64_t *taken; /* bitmap: in use, or resting */
	uint32_t *tag;
	uint32_t rest_first, rest_n;
	uint32_t rest[DRIVER_IDS_REST]; /* a ring, in the order of their return */
};

int driver_ids_init(struct driver_ids *ids, uint32_t first, uint32_t count);
void driver_ids_free(struct driver_ids *ids);
/* 0, or -ENOMEM: all are in use */
int driver_ids_take(struct driver_ids *ids, uint32_t *index);
/* The same of one with index mod n = part; first is 0. */
int driver_ids_take_of(struct driver_ids *ids, uint32_t part, uint32_t n, uint32_t *index);
/* The same of this one; -EINVAL: there is no such index, -EBUSY: it is in use */
int driver_ids_take_at(struct driver_ids *ids, uint32_t index);
void driver_ids_give(struct driver_ids *ids, uint32_t index);
bool driver_ids_in_use(const struct driver_ids *ids, uint32_t index);
/* A tag of `bits` bits that differs from the index's last one */
uint32_t driver_ids_new_tag(struct driver_ids *ids, uint32_t index, uint32_t bits,
			    struct driver_random *random);

/*
 * Buddy allocator: ranges of any number of entries. They are cut from blocks of 2^log entries that
 * are aligned to their size, and the rest of a block stays free. Where no block is large enough, a
 * range may lie across successive ones.
 */
struct driver_ranges {
	uint32_t max_log;
	uint64_t used;	      /* number of entries */
	uint64_t **free;      /* [log]: bitmap of free blocks of that size */
	uint32_t *free_count; /* [log] */
};

int driver_ranges_init(struct driver_ranges *ranges, uint32_t max_log);
void driver_ranges_free(struct driver_ranges *ranges);
/* 0, or -ENOMEM: there are not so many in one piece. count: 1 or more */
int driver_ranges_take(struct driver_ranges *ranges, uint32_t count, uint32_t *first);
void driver_ranges_give(struct driver_ranges *ranges, uint32_t first, uint32_t count);

#endif
