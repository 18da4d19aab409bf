/* SPDX-License-Identifier: BSD-3-Clause */

/* The responder's table of next hops, its own addresses, and its timers. */

#include <errno.h>
#include <stdlib.h>

#include "arp_nd_impl.h"

#define SECOND 1000000000ull
#define ASK_FIRST (SECOND / 10)	      /* until the second request; doubles with each request */
#define ASK_EVERY (SECOND / 2)	      /* upper limit of that interval */
#define TRIES 8u		      /* 3.2 s in all */
#define TRUST_TRIES 4u		      /* 0.7 s: from then on a suspect's answer is accepted */
#define ANSWER_TIME (3 * SECOND / 10) /* a later answer does not belong to the request */
/* a known next hop is verified this long after it was confirmed */
#define CHECK_AFTER (30 * SECOND)
#define FAILED_FOR SECOND /* before new requests */
/* minimum interval of verifications caused by announcements */
#define RECHECK_GAP SECOND
/* after a move, the previous owner also has this long to answer */
#define DISPUTE SECOND
/* a MAC address accepted for this long does not become a suspect */
#define ESTABLISHED (10 * SECOND)
#define ANNOUNCEMENTS 2u
#define ANSWERS_BURST 1000u
#define ANSWER_NS 100000u /* 10,000 answers per second */

const struct arp_nd_address *
arp_nd_own(const struct arp_nd *a, const uint8_t gid[16], uint16_t vlan_id)
{
	for (uint32_t i = 0; i < a->cfg.num_addresses; i++)
		if (a->address[i].vlan_id == vlan_id && memcmp(a->address[i].gid, gid, 16) == 0)
			return &a->address[i];
	return NULL;
}

bool
arp_nd_may_answer(struct arp_nd *a, uint64_t now)
{
	uint64_t empty = now + (uint64_t)ANSWERS_BURST * ANSWER_NS;

	if (a->answers.full_at < now)
		a->answers.full_at = now;
	if (a->answers.full_at + ANSWER_NS > empty) {
		a->stats.limited++;
		return false;
	}
	a->answers.full_at += ANSWER_NS;
	return true;
}

/* ---- next hops ---- */

static bool
same_hop(const struct arp_nd_hop *x, const uint8_t gid[16], uint16_t vlan_id)
{
	return x->vlan_id == vlan_id && memcmp(x->gid, gid, 16) == 0;
}

static struct hop_entry *
find_hop(struct arp_nd *a, const uint8_t gid[16], uint16_t vlan_id)
{
	for (uint32_t i = 0; i < ARP_ND_ENTRIES; i++)
		if (a->hop[i].state != HOP_FREE && same_hop(&a->hop[i].hop, gid, vlan_id))
			return &a->hop[i];
	return NULL;
}

/* A free entry, else the least recently looked up one; entries with an open request are kept. */
static struct hop_entry *
new_hop(struct arp_nd *a, const uint8_t gid[16], uint16_t vlan_id)
{
	struct hop_entry *e = NULL;

	for (uint32_t i = 0; i < ARP_ND_ENTRIES; i++) {
		struct hop_entry *x = &a->hop[i];

		if (x->state == HOP_FREE) {
			e = x;
			break;
		}
		if (x->state != HOP_ASKING && (e == NULL || x->used < e->used))
			e = x;
	}
	if (e == NULL)
		return NULL;
	memset(e, 0, sizeof(*e));
	memcpy(e->hop.gid, gid, 16);
	e->hop.vlan_id = vlan_id;
	return e;
}

static void
ask(struct arp_nd *a, struct hop_entry *e, uint64_t now)
{
	bool direct = e->state == HOP_CHECKING && e->tries == 0;

	e->next = now + RTE_MIN(ASK_FIRST << e->tries, ASK_EVERY);
	e->asked = now;
	e->tries++;
	a->stats.questions++;
	arp_nd_ask(a, &e->hop, direct ? e->mac : NULL);
}

static void
begin(struct arp_nd *a, struct hop_entry *e, enum hop_state state, uint64_t now)
{
	e->state = (uint8_t)state;
	e->tries = 0;
	ask(a, e, now);
}

static void
accept_answer(struct arp_nd *a, struct hop_entry *e, const uint8_t mac[6], uint64_t now)
{
	bool fresh = e->state == HOP_ASKING || e->state == HOP_FAILED;
	bool other = fresh || memcmp(e->mac, mac, 6) != 0;

	arp_nd_absolve(a, &e->hop, mac);
	if (other && !fresh) {
		a->stats.moved++;
		memcpy(e->old, e->mac, 6);
		e->old_since = e->since;
		e->moved = now;
	}
	if (other)
		e->since = now;
	memcpy(e->mac, mac, 6);
	e->state = HOP_KNOWN;
	e->tries = 0;
	e->next = now + CHECK_AFTER;
	if (other && a->cfg.changed != NULL)
		a->cfg.changed(a->cfg.arg, &e->hop, e->mac);
}

/*
 * Both the previous owner and another host have answered one request: the previous owner keeps the
 * address. Later answers of the other host then belong to no request.
 */
static bool
previous_answers(const struct hop_entry *e, const uint8_t mac[6], uint64_t now)
{
	return e->state == HOP_KNOWN && e->moved != 0 && now - e->moved < DISPUTE &&
	       memcmp(e->old, mac, 6) == 0;
}

static void
undo_move(struct arp_nd *a, struct hop_entry *e, const uint8_t mac[6], uint64_t since, uint64_t now)
{
	a->stats.disputed++;
	memcpy(e->mac, mac, 6);
	e->since = since;
	e->moved = 0;
	e->state = HOP_KNOWN;
	e->tries = 0;
	e->next = now + CHECK_AFTER;
}

void
arp_nd_correct(struct arp_nd *a, const struct arp_nd_hop *hop, const uint8_t mac[6], uint64_t now)
{
	struct hop_entry *e = find_hop(a, hop->gid, hop->vlan_id);

	if (e != NULL && e->state != HOP_ASKING && memcmp(e->mac, mac, 6) != 0)
		undo_move(a, e, mac, 0, now);
}

/* A request is open. After giving up, a late answer is also accepted. */
static bool
is_open(const struct hop_entry *e)
{
	return e->state == HOP_ASKING || e->state == HOP_CHECKING || e->state == HOP_FAILED;
}

/*
 * A neighbour may forge answers that name the owner's own MAC address. They must not make the owner
 * a suspect, because the neighbour's answers would then win over the owner's.
 */
static bool
established(const struct hop_entry *e, const uint8_t mac[6], uint64_t now)
{
	return e->state == HOP_KNOWN && now - e->since >= ESTABLISHED &&
	       memcmp(e->mac, mac, 6) == 0;
}

/*
 * Whether to accept an answer: it belongs to a request, and its sender does not send unsolicited
 * ones.
 */
static bool
is_credible(struct arp_nd *a, const struct hop_entry *e, const struct arp_nd_hop *hop,
	    const uint8_t mac[6], uint64_t now)
{
	bool known = arp_nd_suspected(a, hop, mac, now);

	if (e != NULL && is_open(e))
		return !known || (e->state != HOP_FAILED && e->tries >= TRUST_TRIES);
	if (e != NULL && now - e->asked < ANSWER_TIME)
		return !known;
	if (e == NULL || !established(e, mac, now))
		arp_nd_suspect(a, hop, mac, now);
	return false;
}

/* Handle an announcement or an unsolicited answer: verify a known hop, which may have moved. */
static void
unsolicited(struct arp_nd *a, struct hop_entry *e, const uint8_t mac[6], bool exposed, uint64_t now)
{
	a->stats.unasked++;
	if (e == NULL || e->state != HOP_KNOWN)
		return;
	if (exposed) { /* the accepted answer is in doubt: broadcast a request */
		e->state = HOP_CHECKING;
		e->tries = 1;
		ask(a, e, now);
	} else if (memcmp(e->mac, mac, 6) != 0 && e->next < now + CHECK_AFTER - RECHECK_GAP) {
		begin(a, e, HOP_CHECKING, now);
		ask(a, e, now); /* the old MAC address may be gone: also broadcast */
	}
}

void
arp_nd_heard(struct arp_nd *a, const uint8_t gid[16], uint16_t vlan_id, const uint8_t mac[6],
	     bool solicited, uint64_t *counter, uint64_t now)
{
	struct hop_entry *e = find_hop(a, gid, vlan_id);
	struct arp_nd_hop hop = {.vlan_id = vlan_id};
	bool was, believed;

	memcpy(hop.gid, gid, sizeof(hop.gid));
	was = arp_nd_suspected(a, &hop, mac, now);
	believed = solicited && is_credible(a, e, &hop, mac, now);
	if (e != NULL && believed && is_open(e)) {
		(*counter)++;
		accept_answer(a, e, mac, now);
	} else if (e != NULL && believed && previous_answers(e, mac, now)) {
		(*counter)++;
		undo_move(a, e, mac, e->old_since, now);
		if (a->cfg.changed != NULL)
			a->cfg.changed(a->cfg.arg, &e->hop, e->mac);
	} else {
		unsolicited(a, e, mac,
			    !was && e != NULL && memcmp(e->mac, mac, 6) == 0 &&
				    arp_nd_suspected(a, &hop, mac, now),
			    now);
	}
}

static void
give_up(struct arp_nd *a, struct hop_entry *e, uint64_t now)
{
	a->stats.given_up++;
	e->state = HOP_FAILED;
	e->next = now + FAILED_FOR;
	if (a->cfg.changed != NULL)
		a->cfg.changed(a->cfg.arg, &e->hop, NULL);
}

static void
hop_due(struct arp_nd *a, struct hop_entry *e, uint64_t now)
{
	switch (e->state) {
	case HOP_ASKING:
	case HOP_CHECKING:
		if (e->tries >= TRIES + (e->state == HOP_CHECKING))
			give_up(a, e, now);
		else
			ask(a, e, now);
		break;
	case HOP_KNOWN:
		begin(a, e, HOP_CHECKING, now);
		break;
	default:
		e->state = HOP_FREE;
	}
}

/* ---- the way to an address ---- */

static bool
in_prefix(const struct arp_nd_address *own, const uint8_t gid[16])
{
	uint32_t bits = own->prefix + (hca_gid_is_mapped(gid) ? 96u : 0u), whole = bits / 8;
	uint8_t mask = (uint8_t)(0xff00u >> bits % 8);

	if (bits > 128 || memcmp(own->gid, gid, whole) != 0)
		return false;
	return bits % 8 == 0 || ((own->gid[whole] ^ gid[whole]) & mask) == 0;
}

static bool
on_link(const struct arp_nd *a, const uint8_t gid[16], uint16_t vlan_id)
{
	if (gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80)
		return true;
	for (uint32_t i = 0; i < a->cfg.num_addresses; i++)
		if (a->address[i].vlan_id == vlan_id && in_prefix(&a->address[i], gid))
			return true;
	return false;
}

/* Without a gateway every destination counts as on-link. */
static const uint8_t *
next_hop(const struct arp_nd *a, const uint8_t gid[16], uint16_t vlan_id)
{
	if (on_link(a, gid, vlan_id))
		return gid;
	for (uint32_t i = 0; i < a->cfg.num_gateways; i++)
		if (a->gateway[i].vlan_id == vlan_id &&
		    hca_gid_is_mapped(a->gateway[i].gid) == hca_gid_is_mapped(gid))
			return a->gateway[i].gid;
	return gid;
}

void
arp_nd_next_hop(const struct arp_nd *a, const uint8_t dgid[16], uint16_t vlan_id,
		struct arp_nd_hop *hop)
{
	memcpy(hop->gid, next_hop(a, dgid, vlan_id), sizeof(hop->gid));
	hop->vlan_id = vlan_id;
}

int
arp_nd_lookup(struct arp_nd *a, const uint8_t dgid[16], uint16_t vlan_id, uint64_t now,
	      uint8_t mac[6], struct arp_nd_hop *hop)
{
	const uint8_t *gid = next_hop(a, dgid, vlan_id);
	struct hop_entry *e = find_hop(a, gid, vlan_id);

	if (e == NULL) {
		e = new_hop(a, gid, vlan_id);
		if (e == NULL)
			return -ENOBUFS;
		begin(a, e, HOP_ASKING, now);
	}
	e->used = now;
	*hop = e->hop;
	if (e->state == HOP_ASKING)
		return -EAGAIN;
	if (e->state == HOP_FAILED)
		return -EHOSTUNREACH;
	memcpy(mac, e->mac, 6);
	return 0;
}

/* ---- life ---- */

void
arp_nd_announce(struct arp_nd *a, uint64_t now)
{
	a->announce_left = ANNOUNCEMENTS;
	a->announce_at = now;
	arp_nd_group_announce(a, now);
}

void
arp_nd_tick(struct arp_nd *a, uint64_t now)
{
	if (a->announce_left != 0 && now >= a->announce_at) {
		a->announce_left--;
		a->announce_at = now + SECOND;
		for (uint32_t i = 0; i < a->cfg.num_addresses; i++) {
			arp_nd_announce_one(a, &a->address[i]);
			a->stats.announcements++;
		}
	}
	for (uint32_t i = 0; i < ARP_ND_ENTRIES; i++)
		if (a->hop[i].state != HOP_FREE && now >= a->hop[i].next)
			hop_due(a, &a->hop[i], now);
	arp_nd_group_tick(a, now);
}

uint64_t
arp_nd_due(const struct arp_nd *a)
{
	uint64_t due = a->groups.due;

	if (a->announce_left != 0 && a->announce_at < due)
		due = a->announce_at;
	for (uint32_t i = 0; i < ARP_ND_ENTRIES; i++)
		if (a->hop[i].state != HOP_FREE && a->hop[i].next < due)
			due = a->hop[i].next;
	return due;
}

int
arp_nd_create(const struct arp_nd_config *cfg, struct arp_nd **out)
{
	struct arp_nd *a;

	if (cfg->num_addresses > ARP_ND_ADDRESSES || cfg->num_gateways > ARP_ND_ADDRESSES)
		return -EINVAL;
	a = calloc(1, sizeof(*a));
	if (a == NULL)
		return -ENOMEM;
	a->cfg = *cfg;
	for (uint32_t i = 0; i < cfg->num_addresses; i++)
		a->address[i] = cfg->addresses[i];
	for (uint32_t i = 0; i < cfg->num_gateways; i++)
		a->gateway[i] = cfg->gateways[i];
	a->announce_left = ANNOUNCEMENTS;
	arp_nd_group_init(a);
	*out = a;
	return 0;
}

void
arp_nd_destroy(struct arp_nd *a)
{
	free(a);
}

void
arp_nd_stats(const struct arp_nd *a, struct arp_nd_stats *out)
{
	*out = a->stats;
}
