/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_RING_COUNT_H
#define CORE_RING_COUNT_H

/*
 * Fill level of a ring, for any thread: like rte_ring_count() and similar, but the words that
 * producer and consumer store meanwhile are loaded atomically. Values may lag, but only to the safe
 * side: the producer never sees too much room, and the consumer never too many objects.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>
#include <rte_ring.h>

static inline uint32_t
hca_ring_count(const struct rte_ring *r)
{
	/*
	 * in this order: the consumer cannot pass entries that the producer is then seen to have
	 * stored
	 */
	uint32_t tail = __atomic_load_n(&r->cons.tail, __ATOMIC_ACQUIRE);
	uint32_t count = (__atomic_load_n(&r->prod.tail, __ATOMIC_RELAXED) - tail) & r->mask;

	return RTE_MIN(count, r->capacity);
}

static inline uint32_t
hca_ring_room(const struct rte_ring *r)
{
	return r->capacity - hca_ring_count(r);
}

static inline bool
hca_ring_empty(const struct rte_ring *r)
{
	return __atomic_load_n(&r->prod.tail, __ATOMIC_RELAXED) ==
	       __atomic_load_n(&r->cons.tail, __ATOMIC_RELAXED);
}

#endif
