/* SPDX-License-Identifier: BSD-3-Clause */

#include "cm_share.h"

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

void
cm_share_init(struct cm_share *s, const struct cm_share_limits *limits, struct cm_share_row *row)
{
	*s = (struct cm_share){.limits = *limits, .row = row};
}

static uint32_t
share_sum(const uint32_t used[CM_SHARE_KINDS])
{
	return used[CM_SHARE_half] + used[CM_SHARE_open];
}

static struct cm_share_row *
share_find(const struct cm_share *s, const uint8_t address[16])
{
	for (uint32_t i = 0; i < s->rows; i++)
		if (memcmp(s->row[i].address, address, sizeof(s->row[i].address)) == 0)
			return &s->row[i];
	return NULL;
}

/* Limits can be smaller than the use: the rest of a limit is then 0. */
static uint32_t
share_rest(uint32_t limit, uint32_t used)
{
	return used < limit ? limit - used : 0;
}

uint32_t
cm_share_left(const struct cm_share *s, const uint8_t address[16], enum cm_share_full *full)
{
	const struct cm_share_row *r = share_find(s, address);
	uint32_t of_address = share_rest(s->limits.address, r != NULL ? share_sum(r->used) : 0);
	uint32_t halves = share_rest(s->limits.half, s->used[CM_SHARE_half]);
	uint32_t peers = share_rest(s->limits.peers, share_sum(s->used));

	*full = of_address <= halves && of_address <= peers ? CM_SHARE_FULL_ADDRESS
		: halves <= peers			    ? CM_SHARE_FULL_HALF
							    : CM_SHARE_FULL_PEERS;
	return share_min(of_address, share_min(halves, peers));
}

void
cm_share_take(struct cm_share *s, const uint8_t address[16], enum cm_share_kind kind, uint32_t n)
{
	struct cm_share_row *r = share_find(s, address);

	if (n == 0)
		return;
	if (r == NULL) {
		r = &s->row[s->rows++];
		*r = (struct cm_share_row){.used = {0}};
		memcpy(r->address, address, sizeof(r->address));
	}
	r->used[kind] += n;
	s->used[kind] += n;
}

void
cm_share_give(struct cm_share *s, const uint8_t address[16], enum cm_share_kind kind, uint32_t n)
{
	struct cm_share_row *r = share_find(s, address);

	if (r == NULL)
		return;
	r->used[kind] -= n;
	s->used[kind] -= n;
	if (share_sum(r->used) == 0)
		*r = s->row[--s->rows];
}
