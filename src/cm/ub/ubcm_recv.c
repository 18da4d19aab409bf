/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Handlers of messages; REQ and RETRY: ubcm_req.c. A function returns the reason of a drop, or
 * UBCM_DROP_none: a dropped message changes no state.
 */

#include "ubcm_in.h"

/* ---- which link ---- */

/* By the transaction that has set it up. An HCA that talks to itself has both ends. */
struct ubcm_link *
ubcm_in_link(const struct ubcm_in *in, bool active)
{
	UBCM_PAIR_EACH(l, in->cm, in->own, in->peer)
		if (l->active == active && l->transaction == in->m->transaction)
			return l;
	return NULL;
}

static struct ubcm_link *
of_disc(const struct ubcm_in *in)
{
	UBCM_PAIR_EACH(l, in->cm, in->own, in->peer)
		if (l->state == LINK_LEAVING && l->disc == in->m->transaction)
			return l;
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
of_peer_tps(const struct ubcm_in *in)
{
	UBCM_PAIR_EACH(l, in->cm, in->own, in->peer)
		if (l->created && names_tps(in->m, l, true))
			return l;
	return NULL;
}

void
ubcm_in_reply(const struct ubcm_in *in, enum ubcm_type type, enum ubcm_status status)
{
	ubcm_send_bare(in->cm, in->own, in->peer, type, status, in->m->transaction);
}

/* ---- both ends of a REQ ---- */

/* Pair the TPs and agree; TPNs of this end that have no partner go back. */
void
ubcm_in_pair(const struct ubcm_in *in, struct ubcm_link *l)
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

int
ubcm_in_create(struct ubcm *cm, struct ubcm_link *l, enum hca_tp_state state)
{
	int err = ubcm_link_act(cm, l, (struct ubcm_action){.type = UBCM_CREATE, .state = state});

	l->created = err == 0;
	return err;
}

/* ---- REP ---- */

/* Not more than was offered, and the outcome of both offers */
static bool
may_answer(const struct ubcm_in *in, const struct ubcm_link *l)
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
refuse(const struct ubcm_in *in, struct ubcm_link *l, enum ubcm_status status)
{
	ubcm_in_reply(in, UBCM_REJ, status);
	ubcm_link_end(in->cm, l, status, false, in->now);
}

static enum ubcm_drop
take_answer(const struct ubcm_in *in, struct ubcm_link *l)
{
	if (!may_answer(in, l)) {
		refuse(in, l, UBCM_STATUS_BAD_ANSWER);
		return UBCM_DROP_more;
	}
	ubcm_in_pair(in, l);
	if (ubcm_in_create(in->cm, l, HCA_TPS_ACTIVE) != 0) {
		refuse(in, l, UBCM_STATUS_NO_RESOURCES);
		return UBCM_DROP_none;
	}
	l->confirmed = true;
	ubcm_send(in->cm, l, UBCM_RTU, UBCM_STATUS_OK);
	ubcm_link_open(in->cm, l, in->now);
	return UBCM_DROP_none;
}

static enum ubcm_drop
take_rep(const struct ubcm_in *in)
{
	struct ubcm_link *l = ubcm_in_link(in, true);

	if (l == NULL) {
		ubcm_in_reply(in, UBCM_REJ, UBCM_STATUS_UNKNOWN);
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

/* The peer has restarted: its other links have no peer any more. */
static void
end_older(struct ubcm *cm, const struct ubcm_link *l, uint64_t now)
{
	if (memcmp(l->own, l->peer, sizeof(l->own)) == 0)
		return;
	UBCM_PAIR_EACH(old, cm, l->own, l->peer)
		if (old != l && old->created && old->state != LINK_DRAINING)
			ubcm_link_end(cm, old, UBCM_STATUS_RESTARTED, false, now);
}

/*
 * Users of this end that also ask get the same channels; until now their own could still be made.
 */
static void
join_asking(struct ubcm *cm, struct ubcm_link *l, uint64_t now)
{
	if (memcmp(l->own, l->peer, sizeof(l->own)) == 0)
		return;
	UBCM_PAIR_EACH(asks, cm, l->own, l->peer)
		if (asks->state == LINK_ASKING)
			ubcm_link_join(cm, l, asks, now);
}

static void
confirmed(struct ubcm *cm, struct ubcm_link *l, uint64_t now)
{
	(void)ubcm_link_act(cm, l, (struct ubcm_action){.type = UBCM_ACTIVATE});
	l->confirmed = true;
	ubcm_link_charge(cm, l, CM_SHARE_open);
	end_older(cm, l, now);
	join_asking(cm, l, now);
	ubcm_link_open(cm, l, now);
}

static enum ubcm_drop
take_rtu(const struct ubcm_in *in)
{
	struct ubcm_link *l = ubcm_in_link(in, false);

	if (l == NULL) {
		ubcm_in_reply(in, UBCM_REJ, UBCM_STATUS_UNKNOWN);
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
take_rej(const struct ubcm_in *in)
{
	struct ubcm_link *l = of_disc(in);
	enum ubcm_status status = (enum ubcm_status)in->m->status;

	if (l != NULL && status != UBCM_STATUS_IN_USE)
		return UBCM_DROP_state;
	if (l != NULL) {
		ubcm_link_open(in->cm, l, in->now);
		return UBCM_DROP_none;
	}
	l = ubcm_in_link(in, true);
	if (l == NULL)
		l = ubcm_in_link(in, false);
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
take_disc(const struct ubcm_in *in)
{
	struct ubcm_link *l = of_peer_tps(in);
	bool asks = in->m->status == UBCM_STATUS_IDLE;

	if (l != NULL && l->state != LINK_DRAINING && asks && l->users != 0) {
		ubcm_in_reply(in, UBCM_REJ, UBCM_STATUS_IN_USE);
		return UBCM_DROP_none;
	}
	ubcm_in_reply(in, UBCM_DISC_REP, UBCM_STATUS_OK);
	if (l == NULL || l->state == LINK_DRAINING)
		in->cm->counters.duplicates++;
	else if (asks)
		ubcm_link_drain(in->cm, l, in->now);
	else
		ubcm_link_end(in->cm, l, (enum ubcm_status)in->m->status, false, in->now);
	return UBCM_DROP_none;
}

static enum ubcm_drop
take_disc_rep(const struct ubcm_in *in)
{
	struct ubcm_link *l = of_disc(in);

	if (l == NULL)
		return UBCM_DROP_unknown;
	ubcm_link_drain(in->cm, l, in->now);
	return UBCM_DROP_none;
}

/* ---- all ---- */

static enum ubcm_drop
message_take(const struct ubcm_in *in)
{
	static enum ubcm_drop (*const takes[UBCM_TYPES])(const struct ubcm_in *) = {
		[UBCM_REQ] = ubcm_take_req,	[UBCM_REP] = take_rep,
		[UBCM_RTU] = take_rtu,		[UBCM_REJ] = take_rej,
		[UBCM_DISC] = take_disc,	[UBCM_DISC_REP] = take_disc_rep,
		[UBCM_RETRY] = ubcm_take_retry,
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
	struct ubcm_in in = {.cm = cm, .own = own, .peer = peer, .m = &m, .now = now};
	enum ubcm_drop drop = ubcm_msg_parse(bytes, len, &m);

	cm->counters.received++;
	if (drop == UBCM_DROP_none)
		drop = message_take(&in);
	if (drop == UBCM_DROP_none)
		cm->counters.handled[m.type]++;
	else
		cm->counters.dropped[drop]++;
}

/* ---- events of TPs ---- */

/*
 * A group lives and dies as one: its other TPs may be dead at the peer, which gets a DISC, and the
 * next import makes all of them again.
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
