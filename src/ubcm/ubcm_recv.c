/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What each message does. A function returns why it did nothing, UBCM_DROP_none if it did: a
 * message that is dropped has changed nothing.
 */

#include "ubcm_impl.h"

/* Halves of links that peers may have begun: a flood of REQs must not take what clients need. */
#define HALF_SHARE 4u
/* Of one pair of addresses; one more takes the place of the oldest. */
#define HALF_OF_PAIR 2u

struct input {
	struct ubcm *cm;
	const uint8_t *own, *peer;
	const struct ubcm_msg *m;
	uint64_t now;
};

/* ---- which link ---- */

static bool
is_self(const struct input *in)
{
	return memcmp(in->own, in->peer, sizeof(in->m->source)) == 0;
}

/* By the transaction that has set it up. An HCA that talks to itself has both ends. */
static struct ubcm_link *
of_transaction(const struct input *in, bool active)
{
	for (uint32_t i = 0; i < in->cm->nlinks; i++) {
		struct ubcm_link *l = &in->cm->link[i];

		if (ubcm_is_pair(l, in->own, in->peer) && l->active == active &&
		    l->transaction == in->m->transaction)
			return l;
	}
	return NULL;
}

static struct ubcm_link *
of_disc(const struct input *in)
{
	for (uint32_t i = 0; i < in->cm->nlinks; i++) {
		struct ubcm_link *l = &in->cm->link[i];

		if (ubcm_is_pair(l, in->own, in->peer) && l->state == LINK_LEAVING &&
		    l->disc == in->m->transaction)
			return l;
	}
	return NULL;
}

/* Whether the message names the TPs of this end, or those of the peer, with their first PSNs. */
static bool
names_tps(const struct ubcm_msg *m, const struct ubcm_link *l, bool theirs)
{
	if (m->ntps != l->ntps)
		return false;
	for (uint32_t i = 0; i < m->ntps; i++) {
		const struct ubcm_tp *tp = &l->tp[i];

		if (m->tp[i].tpn != (theirs ? tp->peer_tpn : tp->tpn) ||
		    m->tp[i].psn != (theirs ? tp->epsn : tp->psn))
			return false;
	}
	return true;
}

/* By the TPs of the peer */
static struct ubcm_link *
of_peer_tps(const struct input *in)
{
	for (uint32_t i = 0; i < in->cm->nlinks; i++) {
		struct ubcm_link *l = &in->cm->link[i];

		if (ubcm_is_pair(l, in->own, in->peer) && l->created && names_tps(in->m, l, true))
			return l;
	}
	return NULL;
}

static void
reply(const struct input *in, enum ubcm_type type, enum ubcm_status status)
{
	ubcm_send_bare(in->cm, in->own, in->peer, type, status, in->m->transaction);
}

/* ---- REQ ---- */

/* The number of halves of this pair, and the oldest of them */
static uint32_t
halves(const struct input *in, struct ubcm_link **oldest)
{
	uint32_t n = 0;

	*oldest = NULL;
	for (uint32_t i = 0; i < in->cm->nlinks; i++) {
		struct ubcm_link *l = &in->cm->link[i];

		if (!ubcm_is_pair(l, in->own, in->peer) || l->state != LINK_ANSWERED)
			continue;
		n++;
		if (*oldest == NULL || l->born < (*oldest)->born)
			*oldest = l;
	}
	return n;
}

static bool
half_fits(const struct input *in)
{
	uint32_t most = in->cm->nlinks / HALF_SHARE;

	return in->cm->half < (most != 0 ? most : 1);
}

/* This end asks too. */
static struct ubcm_link *
asking(const struct input *in)
{
	for (uint32_t i = 0; i < in->cm->nlinks; i++)
		if (ubcm_is_pair(&in->cm->link[i], in->own, in->peer) &&
		    in->cm->link[i].state == LINK_ASKING)
			return &in->cm->link[i];
	return NULL;
}

/* Pair the TPs and agree; TPNs of this end that have no partner go back. */
static void
pair_tps(const struct input *in, struct ubcm_link *l)
{
	uint32_t n = in->m->ntps < l->ntps ? in->m->ntps : l->ntps;

	ubcm_drop_numbers(in->cm, l, n, in->now);
	for (uint32_t i = 0; i < n; i++) {
		const struct ubcm_msg_tp *theirs = &in->m->tp[i];

		l->tp[i].peer_tpn = theirs->tpn;
		l->tp[i].epsn = theirs->psn;
		l->tp[i].limits = ubcm_limits_both(&in->cm->cfg.limits, &theirs->limits);
	}
	l->timer = ubcm_timer_both(&in->cm->cfg.timer, &in->m->timer);
}

static int
create_tps(struct ubcm *cm, struct ubcm_link *l, enum hca_tp_state state)
{
	int err = ubcm_link_act(cm, l, (struct ubcm_action){.type = UBCM_CREATE, .state = state});

	l->created = err == 0;
	return err;
}

/* The TPs must be there before the peer knows of them. */
static void
answer(const struct input *in, struct ubcm_link *l)
{
	l->active = false;
	l->transaction = in->m->transaction;
	pair_tps(in, l);
	if (create_tps(in->cm, l, HCA_TPS_PASSIVE) != 0) {
		reply(in, UBCM_REJ, UBCM_STATUS_NO_RESOURCES);
		ubcm_link_end(in->cm, l, UBCM_STATUS_NO_RESOURCES, false, in->now);
		return;
	}
	ubcm_link_state(in->cm, l, LINK_ANSWERED);
	l->tries = 0;
	ubcm_link_await(l, in->now);
	ubcm_send(in->cm, l, UBCM_REP, UBCM_STATUS_OK);
}

static enum ubcm_drop
req_again(const struct input *in, const struct ubcm_link *l)
{
	if (l->state == LINK_DRAINING)
		return UBCM_DROP_state;
	in->cm->counters.duplicates++;
	ubcm_send(in->cm, l, UBCM_REP, UBCM_STATUS_OK);
	return UBCM_DROP_none;
}

static enum ubcm_drop
new_half(const struct input *in)
{
	struct ubcm_link *l, *oldest;
	uint32_t n = in->m->ntps < in->cm->cfg.tps ? in->m->ntps : in->cm->cfg.tps;

	if (halves(in, &oldest) >= HALF_OF_PAIR)
		ubcm_link_end(in->cm, oldest, UBCM_STATUS_RESTARTED, false, in->now);
	if (!half_fits(in))
		return UBCM_DROP_full;
	l = ubcm_link_new(in->cm, in->own, in->peer, n, in->now);
	if (l == NULL)
		reply(in, UBCM_REJ, UBCM_STATUS_NO_RESOURCES);
	else
		answer(in, l);
	return UBCM_DROP_none;
}

static enum ubcm_drop
take_req(const struct input *in)
{
	struct ubcm_link *l = of_transaction(in, false);

	if (l != NULL)
		return req_again(in, l);
	l = is_self(in) ? NULL : asking(in);
	if (l == NULL)
		return new_half(in);
	if (memcmp(in->own, in->peer, sizeof(in->m->source)) > 0)
		return UBCM_DROP_crossed;
	answer(in, l);
	return UBCM_DROP_none;
}

/* ---- REP ---- */

/* Not more than was offered, and the outcome of both offers */
static bool
may_answer(const struct input *in, const struct ubcm_link *l)
{
	struct ubcm_timer timer = ubcm_timer_both(&in->cm->cfg.timer, &in->m->timer);

	if (in->m->ntps > l->ntps || !ubcm_timer_equal(&timer, &in->m->timer))
		return false;
	for (uint32_t i = 0; i < in->m->ntps; i++) {
		const struct ubcm_limits *theirs = &in->m->tp[i].limits;
		struct ubcm_limits both = ubcm_limits_both(&in->cm->cfg.limits, theirs);

		if (!ubcm_limits_equal(&both, theirs))
			return false;
	}
	return true;
}

static void
refuse(const struct input *in, struct ubcm_link *l, enum ubcm_status status)
{
	reply(in, UBCM_REJ, status);
	ubcm_link_end(in->cm, l, status, false, in->now);
}

static enum ubcm_drop
take_answer(const struct input *in, struct ubcm_link *l)
{
	if (!may_answer(in, l)) {
		refuse(in, l, UBCM_STATUS_BAD_ANSWER);
		return UBCM_DROP_more;
	}
	pair_tps(in, l);
	if (create_tps(in->cm, l, HCA_TPS_ACTIVE) != 0) {
		refuse(in, l, UBCM_STATUS_NO_RESOURCES);
		return UBCM_DROP_none;
	}
	ubcm_send(in->cm, l, UBCM_RTU, UBCM_STATUS_OK);
	ubcm_link_open(in->cm, l, in->now);
	return UBCM_DROP_none;
}

static enum ubcm_drop
take_rep(const struct input *in)
{
	struct ubcm_link *l = of_transaction(in, true);

	if (l == NULL) {
		reply(in, UBCM_REJ, UBCM_STATUS_UNKNOWN);
		return UBCM_DROP_unknown;
	}
	if (l->state == LINK_ASKING)
		return take_answer(in, l);
	if (!names_tps(in->m, l, true))
		return UBCM_DROP_tpn;
	in->cm->counters.duplicates++;
	ubcm_send(in->cm, l, UBCM_RTU, UBCM_STATUS_OK);
	return UBCM_DROP_none;
}

/* ---- RTU ---- */

/* The peer has begun anew: what else there is with it leads to nobody. */
static void
end_older(struct ubcm *cm, const struct ubcm_link *l, uint64_t now)
{
	if (memcmp(l->own, l->peer, sizeof(l->own)) == 0)
		return;
	for (uint32_t i = 0; i < cm->nlinks; i++) {
		struct ubcm_link *old = &cm->link[i];

		if (old != l && ubcm_is_pair(old, l->own, l->peer) && old->created &&
		    old->state != LINK_DRAINING)
			ubcm_link_end(cm, old, UBCM_STATUS_RESTARTED, false, now);
	}
}

static void
confirmed(struct ubcm *cm, struct ubcm_link *l, uint64_t now)
{
	(void)ubcm_link_act(cm, l, (struct ubcm_action){.type = UBCM_ACTIVATE});
	end_older(cm, l, now);
	ubcm_link_open(cm, l, now);
}

static enum ubcm_drop
take_rtu(const struct input *in)
{
	struct ubcm_link *l = of_transaction(in, false);

	if (l == NULL) {
		reply(in, UBCM_REJ, UBCM_STATUS_UNKNOWN);
		return UBCM_DROP_unknown;
	}
	if (!names_tps(in->m, l, false))
		return UBCM_DROP_tpn;
	if (l->state == LINK_ANSWERED)
		confirmed(in->cm, l, in->now);
	else
		in->cm->counters.duplicates++;
	return UBCM_DROP_none;
}

/* ---- REJ ---- */

static enum ubcm_drop
take_rej(const struct input *in)
{
	struct ubcm_link *l = of_disc(in);
	enum ubcm_status status = (enum ubcm_status)in->m->status;

	if (l != NULL && status != UBCM_STATUS_IN_USE)
		return UBCM_DROP_state;
	if (l != NULL) {
		ubcm_link_open(in->cm, l, in->now);
		return UBCM_DROP_none;
	}
	l = of_transaction(in, true);
	if (l == NULL)
		l = of_transaction(in, false);
	if (l == NULL)
		return UBCM_DROP_unknown;
	if (l->state == LINK_DRAINING)
		return UBCM_DROP_state;
	if (l->state == LINK_ANSWERED)
		ubcm_link_abandoned(in->cm, l, status, in->now);
	else
		ubcm_link_end(in->cm, l, status, false, in->now);
	return UBCM_DROP_none;
}

/* ---- DISC and DISC_REP ---- */

static enum ubcm_drop
take_disc(const struct input *in)
{
	struct ubcm_link *l = of_peer_tps(in);
	bool asks = in->m->status == UBCM_STATUS_IDLE;

	if (l != NULL && l->state != LINK_DRAINING && asks && l->users != 0) {
		reply(in, UBCM_REJ, UBCM_STATUS_IN_USE);
		return UBCM_DROP_none;
	}
	reply(in, UBCM_DISC_REP, UBCM_STATUS_OK);
	if (l == NULL || l->state == LINK_DRAINING)
		in->cm->counters.duplicates++;
	else if (asks)
		ubcm_link_drain(in->cm, l, in->now);
	else
		ubcm_link_end(in->cm, l, (enum ubcm_status)in->m->status, false, in->now);
	return UBCM_DROP_none;
}

static enum ubcm_drop
take_disc_rep(const struct input *in)
{
	struct ubcm_link *l = of_disc(in);

	if (l == NULL)
		return UBCM_DROP_unknown;
	ubcm_link_drain(in->cm, l, in->now);
	return UBCM_DROP_none;
}

/* ---- all ---- */

static enum ubcm_drop
take(const struct input *in)
{
	static enum ubcm_drop (*const takes[UBCM_TYPES])(const struct input *) = {
		[UBCM_REQ] = take_req, [UBCM_REP] = take_rep,	[UBCM_RTU] = take_rtu,
		[UBCM_REJ] = take_rej, [UBCM_DISC] = take_disc, [UBCM_DISC_REP] = take_disc_rep,
	};

	if (memcmp(in->m->source, in->peer, sizeof(in->m->source)) != 0 ||
	    memcmp(in->m->destination, in->own, sizeof(in->m->source)) != 0)
		return UBCM_DROP_entity;
	return takes[in->m->type](in);
}

void
ubcm_input(struct ubcm *cm, const uint8_t *own, const uint8_t *peer, const uint8_t *bytes,
	   size_t len, uint64_t now)
{
	struct ubcm_msg m;
	struct input in = {.cm = cm, .own = own, .peer = peer, .m = &m, .now = now};
	enum ubcm_drop drop = ubcm_msg_parse(bytes, len, &m);

	cm->counters.received++;
	if (drop == UBCM_DROP_none)
		drop = take(&in);
	if (drop == UBCM_DROP_none)
		cm->counters.handled[m.type]++;
	else
		cm->counters.dropped[drop]++;
}

/* ---- events of TPs ---- */

/*
 * A group lives and dies as one: its other TPs may be dead at the peer, who is told, and the next
 * import makes all of them anew.
 */
static void
tp_died(struct ubcm *cm, struct ubcm_link *l, uint64_t now)
{
	if (l->dead != 0)
		ubcm_link_end(cm, l, UBCM_STATUS_DEAD, true, now);
}

void
ubcm_event(struct ubcm *cm, uint32_t tpn, enum ubcm_event event, uint64_t now)
{
	uint32_t which;
	struct ubcm_link *l = ubcm_link_of_tpn(cm, tpn, &which);

	if (l == NULL || !l->created)
		return;
	if (event == UBCM_PACKET && l->state == LINK_ANSWERED)
		confirmed(cm, l, now);
	if (event == UBCM_DEAD)
		l->dead |= HCA_BIT(which);
	if (event == UBCM_DRAINED || event == UBCM_DEAD)
		l->drained |= HCA_BIT(which);
	if (l->state != LINK_DRAINING)
		tp_died(cm, l, now);
	else if (l->drained == HCA_MASK(l->ntps - 1, 0))
		ubcm_link_end(cm, l, UBCM_STATUS_IDLE, false, now);
}
