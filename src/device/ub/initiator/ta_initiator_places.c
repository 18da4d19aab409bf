/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Requests that were given up and that the peer has: it may still answer, and until then they have
 * their places among those that it has agreed to. A peer that acknowledges and never answers would
 * so block the channel for all Jettys; so a request that was given up returns its place after one
 * to two lives of the TP. A life is longer than a peer that answers can take: its answer, and
 * before that the request, are sent again until the TP is given up.
 *
 * A Jetty may wait much longer than that, or without end. So a request that is overdue is counted
 * as if it were given up, and it is waited for without a place.
 *
 * A request whose place has expired may be answered all the same. An answer to a request that is
 * not open does not say which one it is about, so the first of these answers are counted for the
 * expired places: no place is given back twice.
 */

#include "ub/initiator/ta_initiator.h"

/* Limits of a life, ns */
#define LIFE_MIN HCA_TAI_OVERDUE_NS
#define LIFE_MAX UINT64_C(60000000000)

/* Twice the time in which a TP without answers of the transport is given up. */
uint64_t
hca_tai_life(const struct hca_tp *tp)
{
	uint64_t rto = tp->cfg.rto_base * UINT64_C(1000), life = 0;

	rto = rto != 0 ? rto : HCA_TP_RTO_FIRST;
	for (uint32_t i = 0; i <= tp->cfg.retries && life < LIFE_MAX; i++) {
		life += 2 * rto;
		rto = RTE_MIN(rto << tp->cfg.rto_exponent, LIFE_MAX);
	}
	return RTE_MIN(RTE_MAX(life, LIFE_MIN), LIFE_MAX);
}

void
hca_tai_given_up(struct hca_pipe *h, uint32_t tpi)
{
	struct hca_tai_ctx *ctx = hca_tai_ctx(h);
	struct hca_tp *tp = hca_tai_tp(h, tpi);

	if (tp->tai.abandoned++ != 0)
		return;
	tp->tai.aged = 0;
	tp->tai.expire_at = ctx->now + hca_tai_life(tp);
	ctx->expire_at = RTE_MIN(ctx->expire_at, tp->tai.expire_at);
}

/* Places of n that were given up are free. */
static void
tai_release_places(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi, uint32_t n)
{
	struct hca_tp_tai *tai = &tp->tai;

	if (n == 0)
		return;
	tai->abandoned -= n;
	tai->aged -= RTE_MIN(n, tai->aged);
	__atomic_store_n(&tai->open_out, tai->open_out - n, __ATOMIC_RELAXED);
	hca_tai_room_of_tp(h, tpi);
}

bool
hca_tai_given_up_over(struct hca_pipe *h, uint32_t tpi, uint32_t n)
{
	struct hca_tp *tp = hca_tai_tp(h, tpi);
	uint32_t late = RTE_MIN(n, tp->tai.expired);

	if (n > tp->tai.abandoned + late)
		return false;
	tp->tai.expired -= late;
	tai_release_places(h, tp, tpi, n - late);
	return true;
}

void
hca_tai_overdue(struct hca_pipe *h, struct hca_jetty_segment *s)
{
	s->counted |= HCA_TAI_COUNTED_OVERDUE;
	hca_tai_given_up(h, s->number);
	HCA_COUNT(h, TAI, ub_segments_overdue);
}

void
hca_tai_place_back(struct hca_pipe *h, struct hca_jetty_segment *s)
{
	struct hca_tp *tp = hca_tai_tp(h, s->number);

	if (unlikely(s->counted & HCA_TAI_COUNTED_OVERDUE)) {
		s->counted &= (uint8_t)~HCA_TAI_COUNTED_OVERDUE;
		(void)hca_tai_given_up_over(h, s->number, 1);
		return;
	}
	__atomic_store_n(&tp->tai.open_out, tp->tai.open_out - 1, __ATOMIC_RELAXED);
	hca_tai_room_of_tp(h, s->number);
}

static void
tai_expire_places_of(struct hca_pipe *h, uint32_t tpi, uint64_t now)
{
	struct hca_tp *tp = hca_tai_tp(h, tpi);
	uint32_t n = tp->tai.aged;

	if (tp->tai.expire_at > now)
		return;
	tp->tai.expired += n;
	tai_release_places(h, tp, tpi, n);
	HCA_COUNT_N(h, TAI, ub_places_lapsed, n);
	tp->tai.aged = tp->tai.abandoned;
	tp->tai.expire_at = now + hca_tai_life(tp);
}

void
hca_tai_expire_places(struct hca_pipe *h)
{
	struct hca_tai_ctx *ctx = hca_tai_ctx(h);

	ctx->expire_at = UINT64_MAX;
	for (uint32_t i = 1; i <= h->ub->tp_mask; i++) {
		struct hca_tp *tp = hca_tai_tp(h, i);

		/* a TP in RESET is the CEU's */
		if (hca_tp_state(tp) == HCA_TPS_RESET || tp->tai.abandoned == 0)
			continue;
		tai_expire_places_of(h, i, ctx->now);
		if (tp->tai.abandoned != 0)
			ctx->expire_at = RTE_MIN(ctx->expire_at, tp->tai.expire_at);
	}
}
