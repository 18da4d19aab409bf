/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "cm_cookie.h"
#include "cm_pairs.h"

static uint32_t
pairs_buckets(uint32_t n)
{
	uint32_t buckets = 1;

	while (buckets < n)
		buckets *= 2;
	return buckets;
}

size_t
cm_pairs_bytes(uint32_t n)
{
	return ((size_t)pairs_buckets(n) + n) * sizeof(uint32_t);
}

void
cm_pairs_init(struct cm_pairs *p, uint32_t n, const uint64_t key[2], void *mem)
{
	*p = (struct cm_pairs){.key = {key[0], key[1]}, .mask = pairs_buckets(n) - 1, .first = mem};
	p->next = p->first + p->mask + 1;
}

static uint32_t *
pairs_bucket(const struct cm_pairs *p, const uint8_t own[16], const uint8_t peer[16])
{
	uint64_t words[4];

	memcpy(words, own, 16);
	memcpy(words + 2, peer, 16);
	return &p->first[cm_siphash(p->key, words, 4) & p->mask];
}

void
cm_pairs_add(struct cm_pairs *p, uint32_t index, const uint8_t own[16], const uint8_t peer[16])
{
	uint32_t *at = pairs_bucket(p, own, peer);

	while (*at != 0 && *at - 1 < index)
		at = &p->next[*at - 1];
	p->next[index] = *at;
	*at = index + 1;
}

void
cm_pairs_remove(struct cm_pairs *p, uint32_t index, const uint8_t own[16], const uint8_t peer[16])
{
	uint32_t *at = pairs_bucket(p, own, peer);

	while (*at != 0 && *at - 1 != index)
		at = &p->next[*at - 1];
	if (*at != 0)
		*at = p->next[index];
}

uint32_t
cm_pairs_first(const struct cm_pairs *p, const uint8_t own[16], const uint8_t peer[16])
{
	return *pairs_bucket(p, own, peer) - 1;
}
