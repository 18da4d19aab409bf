/* SPDX-License-Identifier: BSD-3-Clause */

#include "cm_share.h"

#include <string.h>

#include "cm_cookie.h"

#define RESERVE_SHARE 4u
#define HALF_SHARE 4u
#define ADDRESS_SHARE 4u
#define LINKS_OF_ADDRESS 2u

static uint32_t
share_min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t
share_max(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

struct cm_share_limits
cm_share_limits(uint32_t all, uint32_t link)
{
	uint32_t peers = all - all / RESERVE_SHARE;

	return (struct cm_share_limits){
		.peers = peers,
		.half = share_min(share_max(all / HALF_SHARE, link), peers),
		.address =
			share_min(share_max(all / ADDRESS_SHARE, LINKS_OF_ADDRESS * link), peers),
	};
}

static uint32_t
share_buckets(const struct cm_share_limits *limits)
{
	uint32_t buckets = 1;

	while (buckets < limits->peers)
		buckets *= 2;
	return buckets;
}

size_t
cm_share_bytes(const struct cm_share_limits *limits)
{
	return limits->peers * sizeof(struct cm_share_row) +
	       ((size_t)limits->address + 1) * sizeof(struct cm_share_rank) +
	       share_buckets(limits) * sizeof(uint32_t);
}

void
cm_share_init(struct cm_share *s, const struct cm_share_limits *limits, const uint64_t key[2],
	      void *mem)
{
	*s = (struct cm_share){
		.limits = *limits,
		.key = {key[0], key[1]},
		.mask = share_buckets(limits) - 1,
		.row = mem,
	};
	s->rank = (struct cm_share_rank *)(s->row + limits->peers);
	s->bucket = (uint32_t *)(s->rank + limits->address + 1);
}

static uint32_t
share_sum(const uint32_t used[CM_SHARE_KINDS])
{
	return used[CM_SHARE_half] + used[CM_SHARE_open];
}

/* ---- rows by their accounts ---- */

static uint32_t *
share_bucket(const struct cm_share *s, const uint8_t address[16], uint32_t user)
{
	uint64_t words[3] = {[2] = user};

	memcpy(words, address, 16);
	return &s->bucket[cm_siphash(s->key, words, 3) & s->mask];
}

struct cm_share_row *
cm_share_find(const struct cm_share *s, const uint8_t address[16], uint32_t user)
{
	uint32_t at = *share_bucket(s, address, user);

	for (; at != 0; at = s->row[at - 1].next) {
		struct cm_share_row *r = &s->row[at - 1];

		if (r->user == user && memcmp(r->address, address, sizeof(r->address)) == 0)
			return r;
	}
	return NULL;
}

/* There is one for each unit that peers may have. */
static struct cm_share_row *
share_new(struct cm_share *s, const uint8_t address[16], uint32_t user)
{
	uint32_t *bucket = share_bucket(s, address, user);
	struct cm_share_row *r = &s->row[s->free != 0 ? s->free - 1 : s->begun++];

	if (s->free != 0)
		s->free = r->next;
	*r = (struct cm_share_row){.user = user, .next = *bucket};
	memcpy(r->address, address, sizeof(r->address));
	*bucket = (uint32_t)(r - s->row) + 1;
	s->rows++;
	return r;
}

static void
share_free(struct cm_share *s, struct cm_share_row *r)
{
	uint32_t *at = share_bucket(s, r->address, r->user), number = (uint32_t)(r - s->row) + 1;

	while (*at != number)
		at = &s->row[*at - 1].next;
	*at = r->next;
	r->next = s->free;
	s->free = number;
	s->rows--;
}

/* ---- rows by their number of halves ---- */

static uint32_t
share_rank_of(const struct cm_share *s, const struct cm_share_row *r)
{
	return share_min(r->used[CM_SHARE_half], s->limits.address);
}

static void
share_unrank(struct cm_share *s, struct cm_share_row *r)
{
	struct cm_share_rank *rank = &s->rank[share_rank_of(s, r)];

	*(r->before != 0 ? &s->row[r->before - 1].after : &rank->first) = r->after;
	*(r->after != 0 ? &s->row[r->after - 1].before : &rank->last) = r->before;
	while (s->most > 0 && s->rank[s->most].first == 0)
		s->most--;
}

static void
share_rank(struct cm_share *s, struct cm_share_row *r)
{
	struct cm_share_rank *rank = &s->rank[share_rank_of(s, r)];
	uint32_t number = (uint32_t)(r - s->row) + 1;

	r->before = rank->last;
	r->after = 0;
	*(rank->last != 0 ? &s->row[rank->last - 1].after : &rank->first) = number;
	rank->last = number;
	s->most = share_max(s->most, share_rank_of(s, r));
}

/* A row is ranked while it has halves. */
static void
share_count(struct cm_share *s, struct cm_share_row *r, enum cm_share_kind kind, uint32_t used)
{
	if (kind == CM_SHARE_half && r->used[kind] != 0)
		share_unrank(s, r);
	s->used[kind] += used - r->used[kind];
	r->used[kind] = used;
	if (kind == CM_SHARE_half && used != 0)
		share_rank(s, r);
}

struct cm_share_row *
cm_share_most(const struct cm_share *s)
{
	return s->most == 0 ? NULL : &s->row[s->rank[s->most].first - 1];
}

/* ---- units ---- */

/* Limits can be smaller than the use: the rest of a limit is then 0. */
static uint32_t
share_rest(uint32_t limit, uint32_t used)
{
	return used < limit ? limit - used : 0;
}

uint32_t
cm_share_left(const struct cm_share *s, const uint8_t address[16], uint32_t user,
	      enum cm_share_full *full)
{
	const struct cm_share_row *r = cm_share_find(s, address, user);
	uint32_t of_address = share_rest(s->limits.address, r != NULL ? share_sum(r->used) : 0);
	uint32_t halves = share_rest(s->limits.half, s->used[CM_SHARE_half]);
	uint32_t peers = share_rest(s->limits.peers, share_sum(s->used));

	*full = of_address <= halves && of_address <= peers ? CM_SHARE_FULL_ADDRESS
		: halves <= peers			    ? CM_SHARE_FULL_HALF
							    : CM_SHARE_FULL_PEERS;
	return share_min(of_address, share_min(halves, peers));
}

struct cm_share_row *
cm_share_take(struct cm_share *s, const uint8_t address[16], uint32_t user, enum cm_share_kind kind,
	      uint32_t n)
{
	struct cm_share_row *r = cm_share_find(s, address, user);

	if (n == 0)
		return r;
	if (r == NULL)
		r = share_new(s, address, user);
	share_count(s, r, kind, r->used[kind] + n);
	return r;
}

void
cm_share_give(struct cm_share *s, const uint8_t address[16], uint32_t user, enum cm_share_kind kind,
	      uint32_t n)
{
	struct cm_share_row *r = cm_share_find(s, address, user);

	if (r == NULL)
		return;
	share_count(s, r, kind, r->used[kind] - n);
	if (share_sum(r->used) == 0)
		share_free(s, r);
}
