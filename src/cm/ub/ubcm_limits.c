/* SPDX-License-Identifier: BSD-3-Clause */

/* Agreement of two ends. Each function gives the same, whichever end is a. */

#include "ubcm_impl.h"

#define SMALLER(member) .member = a->member < b->member ? a->member : b->member

/* A receive mode includes those of lower numbers. Congestion controls do not: both or none. */
struct ubcm_limits
ubcm_limits_both(const struct ubcm_limits *a, const struct ubcm_limits *b)
{
	return (struct ubcm_limits){
		SMALLER(window),
		SMALLER(sack),
		SMALLER(mtu),
		SMALLER(requests),
		SMALLER(mode),
		.flags = a->flags & b->flags,
		.cc = a->cc == b->cc ? a->cc : 0,
	};
}

/* A timeout that is shorter than the peer expects would send in vain: the longer one. */
static uint32_t
base_of_both(uint32_t a, uint32_t b)
{
	if (a == 0 || b == 0)
		return 0;
	return a > b ? a : b;
}

struct ubcm_timer
ubcm_timer_both(const struct ubcm_timer *a, const struct ubcm_timer *b)
{
	return (struct ubcm_timer){
		.rto_base = base_of_both(a->rto_base, b->rto_base),
		SMALLER(rto_exponent),
		SMALLER(retries),
		SMALLER(ack_every),
		SMALLER(ooo_every),
	};
}

bool
ubcm_limits_equal(const struct ubcm_limits *a, const struct ubcm_limits *b)
{
	return a->window == b->window && a->sack == b->sack && a->mtu == b->mtu &&
	       a->requests == b->requests && a->mode == b->mode && a->flags == b->flags &&
	       a->cc == b->cc;
}

bool
ubcm_timer_equal(const struct ubcm_timer *a, const struct ubcm_timer *b)
{
	return a->rto_base == b->rto_base && a->rto_exponent == b->rto_exponent &&
	       a->retries == b->retries && a->ack_every == b->ack_every &&
	       a->ooo_every == b->ooo_every;
}

/* 2^(7 * 15) us is beyond any practical timeout. */
uint64_t
ubcm_rto_largest(const struct ubcm_timer *t)
{
	uint64_t base = t->rto_base == 0 ? UBCM_RTO_AUTO : UINT64_C(1000) * t->rto_base;
	uint32_t shift = (uint32_t)t->rto_exponent * t->retries;

	if (shift >= 32 || base << shift > UBCM_RTO_MOST)
		return UBCM_RTO_MOST;
	return base << shift;
}
