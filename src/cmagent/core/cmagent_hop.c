/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Places: MAC addresses that an agent uses for its datagrams. Only peers that receive at their
 * address get so far; those that do and have no MAC address, such as a station that makes addresses
 * up, keep busy one thread and a few places for each MAC address. An address older than
 * CMAGENT_HOP_FRESH_NS is resolved again, and used meanwhile.
 */

#include <errno.h>
#include <string.h>

#include "cmagent_hop.h"

static const struct cmagent_hop_asker agent_itself;

static bool
same_asker(const struct cmagent_hop_asker *a, const struct cmagent_hop_asker *b)
{
	return a->station == b->station && memcmp(a->mac, b->mac, sizeof(a->mac)) == 0;
}

static bool
is_of(const struct cmagent_hop *h, const uint8_t own[16], const uint8_t peer[16])
{
	return h->state != CMAGENT_HOP_FREE && memcmp(h->own, own, sizeof(h->own)) == 0 &&
	       memcmp(h->peer, peer, sizeof(h->peer)) == 0;
}

static struct cmagent_hop *
find(struct cmagent_hops *hs, const uint8_t own[16], const uint8_t peer[16])
{
	for (uint32_t i = 0; i < hs->cfg.places; i++)
		if (is_of(&hs->hop[i], own, peer))
			return &hs->hop[i];
	return NULL;
}

static uint8_t *
bytes_of(struct cmagent_hops *hs, const struct cmagent_hop *h)
{
	return hs->bytes + (size_t)(h - hs->hop) * hs->cfg.message_bytes;
}

static bool
is_asked(const struct cmagent_hop *h)
{
	return h->state == CMAGENT_HOP_ASKED || h->state == CMAGENT_HOP_AGAIN;
}

static bool
is_known(const struct cmagent_hop *h)
{
	return h->state == CMAGENT_HOP_KNOWN || h->state == CMAGENT_HOP_AGAIN;
}

/* The places of an asker that are looked for, and the oldest that no thread has. */
static uint32_t
places_of(struct cmagent_hops *hs, const struct cmagent_hop_asker *asker,
	  struct cmagent_hop **oldest)
{
	uint32_t n = 0;

	*oldest = NULL;
	for (uint32_t i = 0; i < hs->cfg.places; i++) {
		struct cmagent_hop *h = &hs->hop[i];

		if (h->state != CMAGENT_HOP_ASKED || !same_asker(&h->asker, asker))
			continue;
		n++;
		if (!h->taken && (*oldest == NULL || h->used < (*oldest)->used))
			*oldest = h;
	}
	return n;
}

/* A free place, or that of a known one which has not been used for longest; NULL: all are asked. */
static struct cmagent_hop *
spare_hop(struct cmagent_hops *hs)
{
	struct cmagent_hop *best = NULL;

	for (uint32_t i = 0; i < hs->cfg.places; i++) {
		struct cmagent_hop *h = &hs->hop[i];

		if (h->state == CMAGENT_HOP_FREE)
			return h;
		if (h->state == CMAGENT_HOP_KNOWN && (best == NULL || h->used < best->used))
			best = h;
	}
	return best;
}

/* The oldest of the asker that has most. */
static struct cmagent_hop *
greediest_hop(struct cmagent_hops *hs)
{
	struct cmagent_hop *best = NULL, *oldest;
	uint32_t most = 0, n;

	for (uint32_t i = 0; i < hs->cfg.places; i++) {
		if (hs->hop[i].state != CMAGENT_HOP_ASKED)
			continue;
		n = places_of(hs, &hs->hop[i].asker, &oldest);
		if (oldest != NULL && n > most) {
			most = n;
			best = oldest;
		}
	}
	return best;
}

static struct cmagent_hop *
new_hop(struct cmagent_hops *hs, const uint8_t own[16], const uint8_t peer[16],
	const struct cmagent_hop_asker *asker)
{
	struct cmagent_hop *best = NULL;

	if (!asker->station || places_of(hs, asker, &best) < CMAGENT_HOP_OF_STATION) {
		best = spare_hop(hs);
		best = best != NULL ? best : greediest_hop(hs);
	}
	if (best == NULL)
		return NULL;
	if (best->state == CMAGENT_HOP_ASKED)
		cmagent_hop_count(hs, CMAGENT_HOP_replaced);
	*best = (struct cmagent_hop){.state = CMAGENT_HOP_FREE,
				     .used = ++hs->uses,
				     .asker = *asker};
	memcpy(best->own, own, sizeof(best->own));
	memcpy(best->peer, peer, sizeof(best->peer));
	return best;
}

static void
ask(struct cmagent_hops *hs, struct cmagent_hop *h, enum cmagent_hop_state state)
{
	h->state = (uint8_t)state;
	pthread_cond_signal(&hs->wake);
}

/* ---- for the threads ---- */

/* The agent itself has half of the threads, less those of clients; a station has one. */
static bool
may_look(const struct cmagent_hops *hs, const struct cmagent_hop *h)
{
	uint32_t busy = h->asker.station ? 0 : hs->clients_taken;

	for (uint32_t i = 0; i < hs->cfg.places; i++)
		busy += hs->hop[i].taken && same_asker(&hs->hop[i].asker, &h->asker);
	return busy < (h->asker.station ? 1 : CMAGENT_HOP_THREADS / 2);
}

struct cmagent_hop *
cmagent_hop_next(struct cmagent_hops *hs)
{
	for (uint32_t i = 0; i < hs->cfg.places; i++) {
		struct cmagent_hop *h = &hs->hop[(hs->turn + i) % hs->cfg.places];

		if (!is_asked(h) || h->taken || !may_look(hs, h))
			continue;
		hs->turn = (hs->turn + i + 1) % hs->cfg.places;
		return h;
	}
	return NULL;
}

/* An address that was known stays so; of one that is not found the message is forgotten. */
static void
take_answer(struct cmagent_hops *hs, struct cmagent_hop *h, int err, const struct hca_ctl_ah *ah)
{
	h->known_at = hs->cfg.now(hs->cfg.now_arg);
	if (err == 0) {
		h->ah = *ah;
		h->state = CMAGENT_HOP_KNOWN;
		return;
	}
	cmagent_hop_count(hs, CMAGENT_HOP_unresolved);
	h->state = h->state == CMAGENT_HOP_AGAIN ? CMAGENT_HOP_KNOWN : CMAGENT_HOP_FREE;
	h->len = 0;
}

/* The lock is held, but not while the driver is asked; the place stays, because it is asked. */
void
cmagent_hop_resolve(struct cmagent_hops *hs, struct cmagent_hop *h)
{
	struct hca_ctl_ah ah = {.sgid_index = CMAGENT_HOP_NO_GID};
	int err = -EADDRNOTAVAIL;
	uint8_t own[16];

	memcpy(own, h->own, sizeof(own));
	memcpy(ah.dgid, h->peer, sizeof(ah.dgid));
	h->taken = true;
	pthread_mutex_unlock(&hs->lock);
	ah.sgid_index = cmagent_gid_index(hs->cfg.drv, own);
	if (ah.sgid_index != CMAGENT_HOP_NO_GID)
		err = hca_driver_resolve(hs->cfg.drv, true, &ah);
	pthread_mutex_lock(&hs->lock);
	h->taken = false;
	pthread_cond_broadcast(&hs->wake); /* another place of its asker may be looked for */
	take_answer(hs, h, err, &ah);
	__atomic_store_n(&hs->answered, true, __ATOMIC_RELEASE);
}

/* ---- for the agent ---- */

/* A known place is asked for again when it is older than `fresh` ns. */
static void
ask_again(struct cmagent_hops *hs, struct cmagent_hop *h, uint64_t fresh)
{
	if (h->state == CMAGENT_HOP_KNOWN && hs->cfg.now(hs->cfg.now_arg) - h->known_at > fresh)
		ask(hs, h, CMAGENT_HOP_AGAIN);
}

/* The address of the place, if it is known; an old one is resolved again. */
static bool
use(struct cmagent_hops *hs, struct cmagent_hop *h, struct hca_ctl_ah *ah)
{
	ask_again(hs, h, CMAGENT_HOP_FRESH_NS);
	if (!is_known(h))
		return false;
	h->used = ++hs->uses;
	*ah = h->ah;
	return true;
}

bool
cmagent_hops_find(struct cmagent_hops *hs, const uint8_t own[16], const uint8_t peer[16],
		  struct hca_ctl_ah *ah)
{
	bool known = false;
	struct cmagent_hop *h;

	*ah = (struct hca_ctl_ah){.sgid_index = cmagent_gid_index(hs->cfg.drv, own)};
	memcpy(ah->dgid, peer, sizeof(ah->dgid));
	if (ah->sgid_index == CMAGENT_HOP_NO_GID || hca_driver_resolve(hs->cfg.drv, false, ah) == 0)
		return ah->sgid_index != CMAGENT_HOP_NO_GID;
	if (!hs->cfg.asks)
		return false;
	pthread_mutex_lock(&hs->lock);
	h = find(hs, own, peer);
	if (h != NULL)
		known = use(hs, h, ah);
	pthread_mutex_unlock(&hs->lock);
	return known;
}

/* The place of the peer, known or looked for; NULL: it has none. */
static struct cmagent_hop *
look_for(struct cmagent_hops *hs, const uint8_t own[16], const uint8_t peer[16],
	 const struct cmagent_hop_asker *asker)
{
	struct cmagent_hop *h = find(hs, own, peer);

	if (h != NULL)
		return h;
	h = new_hop(hs, own, peer, asker);
	if (h != NULL)
		ask(hs, h, CMAGENT_HOP_ASKED);
	return h;
}

static void
look(struct cmagent_hops *hs, const uint8_t own[16], const uint8_t peer[16], uint64_t fresh)
{
	struct cmagent_hop *h;

	if (!hs->cfg.asks)
		return;
	pthread_mutex_lock(&hs->lock);
	h = look_for(hs, own, peer, &agent_itself);
	if (h != NULL)
		ask_again(hs, h, fresh);
	pthread_mutex_unlock(&hs->lock);
}

void
cmagent_hops_look(struct cmagent_hops *hs, const uint8_t own[16], const uint8_t peer[16])
{
	look(hs, own, peer, CMAGENT_HOP_FRESH_NS);
}

void
cmagent_hops_doubt(struct cmagent_hops *hs, const uint8_t own[16], const uint8_t peer[16])
{
	look(hs, own, peer, CMAGENT_HOP_DOUBT_NS);
}

void
cmagent_hops_learn(struct cmagent_hops *hs, const uint8_t own[16], const uint8_t peer[16],
		   const struct hca_ctl_ah *ah)
{
	struct cmagent_hop *h;

	if (!hs->cfg.asks)
		return;
	pthread_mutex_lock(&hs->lock);
	h = find(hs, own, peer);
	if (h == NULL)
		h = new_hop(hs, own, peer, &agent_itself);
	if (h != NULL && !is_asked(h)) {
		h->state = CMAGENT_HOP_KNOWN;
		h->ah = *ah;
		h->known_at = hs->cfg.now(hs->cfg.now_arg);
		h->used = ++hs->uses;
	}
	pthread_mutex_unlock(&hs->lock);
}

void
cmagent_hops_keep(struct cmagent_hops *hs, const uint8_t own[16], const uint8_t peer[16],
		  const uint8_t mac[6], const uint8_t *bytes, size_t len)
{
	struct cmagent_hop_asker asker = {.station = true};
	struct cmagent_hop *h;

	memcpy(asker.mac, mac, sizeof(asker.mac));
	pthread_mutex_lock(&hs->lock);
	h = look_for(hs, own, peer, &asker);
	if (h != NULL && len <= hs->cfg.message_bytes) {
		memcpy(bytes_of(hs, h), bytes, len);
		h->len = (uint32_t)len;
		cmagent_hop_count(hs, CMAGENT_HOP_kept);
	} else {
		cmagent_hop_count(hs, CMAGENT_HOP_not_kept);
	}
	/* the address may have come since it was looked up */
	if (h != NULL && h->state == CMAGENT_HOP_KNOWN)
		__atomic_store_n(&hs->answered, true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&hs->lock);
}

/* The place into *out, its message into `bytes`; false: it has none, or is not known yet. */
static bool
take_kept(struct cmagent_hops *hs, uint32_t i, struct cmagent_hop *out, uint8_t *bytes)
{
	struct cmagent_hop *h = &hs->hop[i];
	bool kept;

	pthread_mutex_lock(&hs->lock);
	kept = h->len != 0 && is_known(h);
	if (kept) {
		*out = *h;
		memcpy(bytes, bytes_of(hs, h), h->len);
		h->len = 0;
	}
	pthread_mutex_unlock(&hs->lock);
	return kept;
}

unsigned int
cmagent_hops_deliver(struct cmagent_hops *hs,
		     void (*input)(void *arg, const uint8_t own[16], const uint8_t peer[16],
				   const uint8_t *bytes, size_t len),
		     void *arg)
{
	uint8_t *bytes = hs->bytes + (size_t)hs->cfg.places * hs->cfg.message_bytes;
	struct cmagent_hop h;
	unsigned int n = 0;

	if (!__atomic_exchange_n(&hs->answered, false, __ATOMIC_ACQ_REL))
		return 0;
	for (uint32_t i = 0; i < hs->cfg.places; i++) {
		if (!take_kept(hs, i, &h, bytes))
			continue;
		input(arg, h.own, h.peer, bytes, h.len);
		n++;
	}
	return n;
}
