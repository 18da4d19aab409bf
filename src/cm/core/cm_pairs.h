/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_CORE_CM_PAIRS_H
#define CM_CORE_CM_PAIRS_H

/*
 * A table of entries, known by their indexes, by a pair of addresses: an own one and a peer's.
 * Peers choose addresses, but the key of the hash is secret. Several entries may have the same
 * pair; they are found in the order of their indexes, so the result does not depend on the key.
 *
 * The caller owns the memory and keeps the addresses. The caller serializes.
 */

#include <stddef.h>
#include <stdint.h>

#define CM_PAIRS_NONE UINT32_MAX

struct cm_pairs {
	uint64_t key[2];
	uint32_t mask;	 /* buckets - 1 */
	uint32_t *first; /* of a bucket: index + 1, 0: none */
	uint32_t *next;	 /* of an entry, in its bucket */
};

/**
 * Size of the memory of a table.
 *
 * @param n
 *   Indexes are below n, which is at most 2^24.
 * @return
 *   Bytes.
 */
size_t cm_pairs_bytes(uint32_t n);

/**
 * Begin with an empty table.
 *
 * @param p
 *   The table.
 * @param n
 *   Indexes are below n, which is at most 2^24.
 * @param key
 *   Random numbers, unknown to peers.
 * @param mem
 *   cm_pairs_bytes() zeroed bytes, aligned to 4, which the table uses until its end.
 */
void cm_pairs_init(struct cm_pairs *p, uint32_t n, const uint64_t key[2], void *mem);

/**
 * Add an entry.
 *
 * @param p
 *   The table.
 * @param index
 *   The entry, which is not in the table.
 * @param own
 *   Its own address, network order.
 * @param peer
 *   Its peer's address, network order.
 */
void cm_pairs_add(struct cm_pairs *p, uint32_t index, const uint8_t own[16],
		  const uint8_t peer[16]);

/**
 * Remove an entry; one that is not in the table is no error.
 *
 * @param p
 *   The table.
 * @param index
 *   The entry.
 * @param own
 *   The own address that it was added with.
 * @param peer
 *   The peer's address that it was added with.
 */
void cm_pairs_remove(struct cm_pairs *p, uint32_t index, const uint8_t own[16],
		     const uint8_t peer[16]);

/**
 * The first entry that may have the pair. Entries with other pairs are among the results: the
 * caller compares the addresses.
 *
 * @param p
 *   The table.
 * @param own
 *   Own address, network order.
 * @param peer
 *   Peer's address, network order.
 * @return
 *   Its index, or CM_PAIRS_NONE.
 */
uint32_t cm_pairs_first(const struct cm_pairs *p, const uint8_t own[16], const uint8_t peer[16]);

/**
 * The entry after one that cm_pairs_first() or this function has returned.
 *
 * @param p
 *   The table, not changed since.
 * @param index
 *   The entry.
 * @return
 *   The next index, ascending, or CM_PAIRS_NONE.
 */
static inline uint32_t
cm_pairs_next(const struct cm_pairs *p, uint32_t index)
{
	return p->next[index] - 1;
}

#endif
