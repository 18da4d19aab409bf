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

/* The memory for entries with indexes below n, at most 2^24. */
size_t cm_pairs_bytes(uint32_t n);
/* mem: zeroed, aligned to 4 bytes. */
void cm_pairs_init(struct cm_pairs *p, uint32_t n, const uint64_t key[2], void *mem);

void cm_pairs_add(struct cm_pairs *p, uint32_t index, const uint8_t own[16],
		  const uint8_t peer[16]);
/* An entry that was added with this pair. */
void cm_pairs_remove(struct cm_pairs *p, uint32_t index, const uint8_t own[16],
		     const uint8_t peer[16]);

/*
 * The first entry that may have the pair, and the one after index; CM_PAIRS_NONE. Others are among
 * them: the caller compares the addresses.
 */
uint32_t cm_pairs_first(const struct cm_pairs *p, const uint8_t own[16], const uint8_t peer[16]);
static inline uint32_t
cm_pairs_next(const struct cm_pairs *p, uint32_t index)
{
	return p->next[index] - 1;
}

#endif
