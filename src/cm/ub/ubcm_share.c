/* SPDX-License-Identifier: BSD-3-Clause */

#include "ubcm_share.h"

#include <string.h>

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

struct ubcm_share_limits
ubcm_share_limits(uint32_t all, uint32_t link)
{
	uint32_t peers = all - all / RESERVE_SHARE;

	return (struct ubcm_share_limits){
		.peers = peers,
		.half = share_min(share_max(all / HALF_SHARE, link), peers),
		.address =
			share_min(share_max(all / ADDRESS_SHARE, LINKS_OF_ADDRESS * link), peers),
	};
}

void
ubcm_share_init(struct ubcm_share *s, const struct ubcm_share_limits *limits,
		struct ubcm_share_row *row)
{
	*s = (struct ubcm_share){.limits = *limits, .row = row};
}

static uint32_t
share_sum(const uint32_t used[UBCM_SHARE_KINDS])
{
	return used[UBCM_SHARE_half] + used[UBCM_SHARE_open];
}

static struct ubcm_share_row *
share_find(const struct ubcm_share *s, const uint8_t address[16])
{
	for (uint32_t i = 0; i < s->rows; i++)
		if (memcmp(s->row[i].address, address, sizeof(s->row[i].address)) == 0)
			return &s->row[i];
	return NULL;
}

/* Limits can be smaller than what is used: what a limit does not have is 0. */
static uint32_t
share_rest(uint32_t limit, uint32_t used)
{
	return used < limit ? limit - used : 0;
}

uint32_t
ubcm_share_left(const struct ubcm_share *s, const uint8_t address[16], enum ubcm_share_full *full)
{
	const struct ubcm_share_row *r = share_find(s, address);
	uint32_t of_address = share_rest(s->limits.address, r != NULL ? share_sum(r->used) : 0);
	uint32_t halves = share_rest(s->limits.half, s->used[UBCM_SHARE_half]);
	uint32_t peers = share_rest(s->limits.peers, share_sum(s->used));

	*full = of_address <= halves && of_address <= peers ? UBCM_SHARE_FULL_ADDRESS
		: halves <= peers			    ? UBCM_SHARE_FULL_HALF
							    : UBCM_SHARE_FULL_PEERS;
	return share_min(of_address, share_min(halves, peers));
}

void
ubcm_share_take(struct ubcm_share *s, const uint8_t address[16], enum ubcm_share_kind kind,
		uint32_t n)
{
	struct ubcm_share_row *r = share_find(s, address);

	if (n == 0)
		return;
	if (r == NULL) {
		r = &s->row[s->rows++];
		*r = (struct ubcm_share_row){.used = {0}};
		memcpy(r->address, address, sizeof(r->address));
	}
	r->used[kind] += n;
	s->used[kind] += n;
}

void
ubcm_share_give(struct ubcm_share *s, const uint8_t address[16], enum ubcm_share_kind kind,
		uint32_t n)
{
	struct ubcm_share_row *r = share_find(s, address);

	if (r == NULL)
		return;
	r->used[kind] -= n;
	s->used[kind] -= n;
	if (share_sum(r->used) == 0)
		*r = s->row[--s->rows];
}
