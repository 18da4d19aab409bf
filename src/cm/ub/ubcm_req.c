/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * REQ and RETRY: how peers begin links. This end keeps no state for a peer before it has repeated a
 * cookie, which only the receiver at its address has; the state after that is bounded
 * (ubcm_room.c).
 */

#include "ubcm_in.h"

/* Halves of one pair of addresses; one more takes the place of the oldest. */
#define HALF_OF_PAIR 2u

/* The number of halves of this pair, and the oldest of them */
static uint32_t
halves(const struct ubcm_in *in, struct ubcm_link **oldest)
{
	uint32_t n = 0;

	*oldest = NULL;
	UBCM_PAIR_EACH(l, in->cm, in->own, in->peer) {
		if (l->state != LINK_ANSWERED)
			continue;
		n++;
		if (*oldest == NULL || l->born < (*oldest)->born)
			*oldest = l;
	}
	return n;
}

/* This end also asks. */
static struct ubcm_link *
asking(const struct ubcm_in *in)
{
	UBCM_PAIR_EACH(l, in->cm, in->own, in->peer)
		if (l->state == LINK_ASKING)
			return l;
	return NULL;
}

/* The link that a REP to this end has opened, if this end's RTU may not have arrived yet. */
static struct ubcm_link *
just_opened(const struct ubcm_in *in)
{
	UBCM_PAIR_EACH(l, in->cm, in->own, in->peer)
		if (l->state == LINK_OPEN && l->active &&
		    in->now - l->opened < cm_repeat_whole(&ubcm_repeats))
			return l;
	return NULL;
}

/* The TPs must exist before the peer gets their numbers. */
static void
answer(const struct ubcm_in *in, struct ubcm_link *l)
{
	l->active = false;
	l->transaction = in->m->transaction;
	ubcm_in_pair(in, l);
	if (ubcm_in_create(in->cm, l, HCA_TPS_PASSIVE) != 0) {
		ubcm_in_reply(in, UBCM_REJ, UBCM_STATUS_NO_RESOURCES);
		ubcm_link_end(in->cm, l, UBCM_STATUS_NO_RESOURCES, false, in->now);
		return;
	}
	ubcm_link_charge(in->cm, l, CM_SHARE_half);
	l->state = LINK_ANSWERED;
	ubcm_link_await(l, in->now);
	ubcm_send(in->cm, l, UBCM_REP, UBCM_STATUS_OK);
}

static enum ubcm_drop
req_again(const struct ubcm_in *in, const struct ubcm_link *l)
{
	if (l->state == LINK_DRAINING)
		return UBCM_DROP_state;
	in->cm->counters.duplicates++;
	ubcm_send(in->cm, l, UBCM_REP, UBCM_STATUS_OK);
	return UBCM_DROP_none;
}

static void
new_half(const struct ubcm_in *in)
{
	struct ubcm_link *l, *oldest;
	uint32_t n = in->m->ntps < in->cm->cfg.tps ? in->m->ntps : in->cm->cfg.tps;

	if (halves(in, &oldest) >= HALF_OF_PAIR)
		ubcm_room_end_half(in->cm, oldest, in->now);
	n = ubcm_room_for_peer(in->cm, in->peer, n, in->now);
	l = n != 0 ? ubcm_link_new(in->cm, in->own, in->peer, n, in->now) : NULL;
	if (l == NULL)
		ubcm_in_reply(in, UBCM_REJ, UBCM_STATUS_NO_RESOURCES);
	else
		answer(in, l);
}

static bool
has_good_cookie(const struct ubcm_in *in)
{
	return in->m->has_cookie && cm_cookie_is_good(in->cm->key, in->own, in->peer,
						      in->m->transaction, in->m->cookie, in->now);
}

/* Both ask, and the peer is the one that answers: it gets the RTU of its answer again. */
static bool
is_crossed(const struct ubcm_in *in)
{
	const struct ubcm_link *l;

	if (memcmp(in->own, in->peer, sizeof(in->m->source)) <= 0)
		return false;
	if (asking(in) != NULL)
		return true;
	l = just_opened(in);
	if (l != NULL)
		ubcm_send(in->cm, l, UBCM_RTU, UBCM_STATUS_OK);
	return l != NULL;
}

/* A peer that has not proved that it receives at its address gets a cookie, and nothing is kept. */
enum ubcm_drop
ubcm_take_req(const struct ubcm_in *in)
{
	const struct ubcm_link *l;

	if (!has_good_cookie(in)) {
		ubcm_send_retry(in->cm, in->own, in->peer, in->m->transaction,
				cm_cookie(in->cm->key, in->own, in->peer, in->m->transaction,
					  in->now));
		return UBCM_DROP_none;
	}
	l = ubcm_in_link(in, false);
	if (l != NULL)
		return req_again(in, l);
	if (is_crossed(in))
		return UBCM_DROP_crossed;
	new_half(in);
	return UBCM_DROP_none;
}

/* ---- RETRY ---- */

/* One for each time the REQ is sent: two ends cannot keep each other busy. */
enum ubcm_drop
ubcm_take_retry(const struct ubcm_in *in)
{
	struct ubcm_link *l = ubcm_in_link(in, true);

	if (l == NULL)
		return UBCM_DROP_unknown;
	if (l->state != LINK_ASKING || l->retried == l->repeat.tries + 1)
		return UBCM_DROP_state;
	l->retried = l->repeat.tries + 1;
	l->has_cookie = true;
	l->cookie = in->m->cookie;
	ubcm_send(in->cm, l, UBCM_REQ, UBCM_STATUS_OK);
	return UBCM_DROP_none;
}

bool
ubcm_needs_way(const struct ubcm *cm, const uint8_t *own, const uint8_t *peer, const uint8_t *bytes,
	       size_t len, uint64_t now)
{
	struct ubcm_msg m;

	if (ubcm_msg_parse(bytes, len, &m) != UBCM_DROP_none)
		return false;
	if (m.type == UBCM_REQ)
		return m.has_cookie &&
		       cm_cookie_is_good(cm->key, own, peer, m.transaction, m.cookie, now);
	return ubcm_pair_next(cm, NULL, own, peer) != NULL;
}
