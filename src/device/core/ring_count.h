/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_RING_COUNT_H
#define CORE_RING_COUNT_H

/*
 * How full a ring is, for whoever asks: rte_ring_count() and its like, but that the words which
 * producer and consumer store meanwhile are loaded atomically. May lag; what the producer hears of
 * the room, and the consumer of the count, only gets better until he acts on it.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>
#include <rte_ring.h>

static inline uint32_t
hca_ring_count(const struct rte_ring *r)
{
	/* In that order: the consumer cannot pass what the producer is then seen to have stored. */
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
