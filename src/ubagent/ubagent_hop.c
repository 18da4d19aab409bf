/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * MAC addresses of peers. To look for one may take seconds, so threads of their own ask the driver;
 * the agent uses what is known, and keeps the message of a peer whose address is looked for. Only
 * peers that receive at their address get so far; those that do and have no MAC address, such as a
 * station that makes addresses up, keep busy one thread and a few places for each MAC address. What
 * has been known for a while is asked for again, and used meanwhile. Without threads nothing waits:
 * the driver has a table.
 */

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "ubagent_impl.h"

static bool
is_of(const struct hop *h, const uint8_t own[16], const uint8_t peer[16])
{
	return h->state != HOP_FREE && memcmp(h->own, own, sizeof(h->own)) == 0 &&
	       memcmp(h->peer, peer, sizeof(h->peer)) == 0;
}

static struct hop *
find(struct hops *hs, const uint8_t own[16], const uint8_t peer[16])
{
	for (uint32_t i = 0; i < HOPS_MAX; i++)
		if (is_of(&hs->hop[i], own, peer))
			return &hs->hop[i];
	return NULL;
}

static bool
is_asked(const struct hop *h)
{
	return h->state == HOP_ASKED || h->state == HOP_AGAIN;
}

static bool
is_station(const struct hop *h, const uint8_t station[6])
{
	return h->state == HOP_ASKED && memcmp(h->station, station, sizeof(h->station)) == 0;
}

/* The places of a station that are looked for, and the oldest that no thread has. */
static uint32_t
places_of(struct hops *hs, const uint8_t station[6], struct hop **oldest)
{
	uint32_t n = 0;

	*oldest = NULL;
	for (uint32_t i = 0; i < HOPS_MAX; i++) {
		struct hop *h = &hs->hop[i];

		if (!is_station(h, station))
			continue;
		n++;
		if (!h->taken && (*oldest == NULL || h->used < (*oldest)->used))
			*oldest = h;
	}
	return n;
}

/* A free place, or that of a known one which has not been used for longest; NULL: all are asked. */
static struct hop *
spare_hop(struct hops *hs)
{
	struct hop *best = NULL;

	for (uint32_t i = 0; i < HOPS_MAX; i++) {
		struct hop *h = &hs->hop[i];

		if (h->state == HOP_FREE)
			return h;
		if (h->state == HOP_KNOWN && (best == NULL || h->used < best->used))
			best = h;
	}
	return best;
}

/* The oldest of the station that has most. */
static struct hop *
greediest_hop(struct hops *hs)
{
	struct hop *best = NULL, *oldest;
	uint32_t most = 0, n;

	for (uint32_t i = 0; i < HOPS_MAX; i++) {
		if (hs->hop[i].state != HOP_ASKED)
			continue;
		n = places_of(hs, hs->hop[i].station, &oldest);
		if (oldest != NULL && n > most) {
			most = n;
			best = oldest;
		}
	}
	return best;
}

static const uint8_t local_user[6];

static struct hop *
new_hop(struct ubagent *a, const uint8_t own[16], const uint8_t peer[16], const uint8_t station[6])
{
	bool local = memcmp(station, local_user, sizeof(local_user)) == 0;
	struct hops *hs = &a->hops;
	struct hop *best;

	if (local || places_of(hs, station, &best) < HOPS_OF_STATION) {
		best = spare_hop(hs);
		best = best != NULL ? best : greediest_hop(hs);
	}
	if (best == NULL)
		return NULL;
	if (best->state == HOP_ASKED)
		ubagent_count(a, UBAGENT_replaced);
	*best = (struct hop){.state = HOP_FREE, .used = ++hs->uses};
	memcpy(best->own, own, sizeof(best->own));
	memcpy(best->peer, peer, sizeof(best->peer));
	memcpy(best->station, station, sizeof(best->station));
	return best;
}

static void
ask(struct hops *hs, struct hop *h, enum hop_state state)
{
	h->state = (uint8_t)state;
	pthread_cond_signal(&hs->wake);
}

/* ---- the thread ---- */

/* Local users have half of the threads, a station one. */
static bool
may_look(const struct hops *hs, const struct hop *h)
{
	bool local = memcmp(h->station, local_user, sizeof(local_user)) == 0;
	uint32_t busy = 0;

	for (uint32_t i = 0; i < HOPS_MAX; i++)
		busy += hs->hop[i].taken &&
			memcmp(hs->hop[i].station, h->station, sizeof(h->station)) == 0;
	return busy < (local ? HOPS_THREADS / 2 : 1);
}

static struct hop *
next_asked(struct hops *hs)
{
	for (uint32_t i = 0; i < HOPS_MAX; i++) {
		struct hop *h = &hs->hop[(hs->turn + i) % HOPS_MAX];

		if (!is_asked(h) || h->taken || !may_look(hs, h))
			continue;
		hs->turn = (hs->turn + i + 1) % HOPS_MAX;
		return h;
	}
	return NULL;
}

/* An address that was known stays so; of one that is not found the message is forgotten. */
static void
take_answer(struct ubagent *a, struct hop *h, int err, const struct hca_ctl_ah *ah)
{
	if (err == 0) {
		h->ah = *ah;
		h->known_at = a->cfg.now(a->cfg.arg);
		h->state = HOP_KNOWN;
		return;
	}
	ubagent_count(a, UBAGENT_unresolved);
	h->known_at = a->cfg.now(a->cfg.arg);
	h->state = h->state == HOP_AGAIN ? HOP_KNOWN : HOP_FREE;
	h->len = 0;
}

/* The lock is held, but not while the driver is asked; the place stays, because it is asked. */
static void
resolve(struct ubagent *a, struct hop *h)
{
	struct hca_ctl_ah ah = {.sgid_index = ubagent_gid_index(a, h->own)};
	int err = ah.sgid_index != UINT32_MAX ? 0 : -EADDRNOTAVAIL;

	memcpy(ah.dgid, h->peer, sizeof(ah.dgid));
	h->taken = true;
	pthread_mutex_unlock(&a->hops.lock);
	if (err == 0)
		err = hca_driver_resolve(a->cfg.drv, true, &ah);
	pthread_mutex_lock(&a->hops.lock);
	h->taken = false;
	pthread_cond_broadcast(&a->hops.wake); /* another place of its station may be looked for */
	take_answer(a, h, err, &ah);
	__atomic_store_n(&a->hops.answered, true, __ATOMIC_RELEASE);
}

static void *
hops_main(void *arg)
{
	struct ubagent *a = arg;
	struct hops *hs = &a->hops;
	struct hop *h;

	pthread_mutex_lock(&hs->lock);
	while (!hs->stop) {
		h = next_asked(hs);
		if (h == NULL) {
			pthread_cond_wait(&hs->wake, &hs->lock);
			continue;
		}
		resolve(a, h);
		cmagent_loop_wake(&a->loop);
	}
	pthread_mutex_unlock(&hs->lock);
	return NULL;
}

int
hops_start(struct ubagent *a)
{
	struct hops *hs = &a->hops;
	sigset_t all, before;
	int err = 0;

	pthread_mutex_init(&hs->lock, NULL);
	pthread_cond_init(&hs->wake, NULL);
	if (!a->cfg.asks)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	while (err == 0 && hs->threads < HOPS_THREADS) {
		err = pthread_create(&hs->thread[hs->threads], NULL, hops_main, a);
		hs->threads += err == 0;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

void
hops_stop(struct ubagent *a)
{
	struct hops *hs = &a->hops;

	if (hs->threads == 0)
		return;
	pthread_mutex_lock(&hs->lock);
	hs->stop = true;
	pthread_cond_broadcast(&hs->wake);
	pthread_mutex_unlock(&hs->lock);
	while (hs->threads > 0)
		pthread_join(hs->thread[--hs->threads], NULL);
}

/* ---- for the agent ---- */

/* Of the place, if it is known; when it is old it is asked for again. */
static bool
use(struct ubagent *a, struct hop *h, struct hca_ctl_ah *ah)
{
	uint64_t now = a->cfg.now(a->cfg.arg);

	if (h->state == HOP_KNOWN && now - h->known_at > HOP_FRESH_NS)
		ask(&a->hops, h, HOP_AGAIN);
	if (h->state != HOP_KNOWN && h->state != HOP_AGAIN)
		return false;
	h->used = ++a->hops.uses;
	*ah = h->ah;
	return true;
}

bool
hops_find(struct ubagent *a, const uint8_t own[16], const uint8_t peer[16], struct hca_ctl_ah *ah)
{
	struct hops *hs = &a->hops;
	bool known = false;
	struct hop *h;

	*ah = (struct hca_ctl_ah){.sgid_index = ubagent_gid_index(a, own)};
	memcpy(ah->dgid, peer, sizeof(ah->dgid));
	if (ah->sgid_index == UINT32_MAX || hca_driver_resolve(a->cfg.drv, false, ah) == 0)
		return ah->sgid_index != UINT32_MAX;
	if (!a->cfg.asks)
		return false;
	pthread_mutex_lock(&hs->lock);
	h = find(hs, own, peer);
	if (h != NULL)
		known = use(a, h, ah);
	pthread_mutex_unlock(&hs->lock);
	return known;
}

/* The place of the peer, known or looked for; NULL: it has none. */
static struct hop *
look_for(struct ubagent *a, const uint8_t own[16], const uint8_t peer[16], const uint8_t station[6])
{
	struct hop *h = find(&a->hops, own, peer);

	if (h != NULL)
		return h;
	h = new_hop(a, own, peer, station);
	if (h != NULL)
		ask(&a->hops, h, HOP_ASKED);
	return h;
}

void
hops_ask(struct ubagent *a, const uint8_t own[16], const uint8_t peer[16])
{
	if (!a->cfg.asks)
		return;
	pthread_mutex_lock(&a->hops.lock);
	(void)look_for(a, own, peer, local_user);
	pthread_mutex_unlock(&a->hops.lock);
}

void
hops_learn(struct ubagent *a, const uint8_t own[16], const uint8_t peer[16],
	   const struct hca_ctl_ah *ah)
{
	struct hops *hs = &a->hops;
	struct hop *h;

	if (!a->cfg.asks)
		return;
	pthread_mutex_lock(&hs->lock);
	h = find(hs, own, peer);
	if (h == NULL)
		h = new_hop(a, own, peer, local_user);
	if (h != NULL && !is_asked(h)) {
		h->state = HOP_KNOWN;
		h->ah = *ah;
		h->known_at = a->cfg.now(a->cfg.arg);
		h->used = ++hs->uses;
	}
	pthread_mutex_unlock(&hs->lock);
}

void
hops_keep(struct ubagent *a, const struct cmagent_mail_letter *l)
{
	struct hop *h;

	pthread_mutex_lock(&a->hops.lock);
	h = look_for(a, l->own, l->peer, l->mac);
	if (h != NULL && l->len <= sizeof(h->bytes)) {
		memcpy(h->bytes, l->bytes, l->len);
		h->len = (uint32_t)l->len;
		ubagent_count(a, UBAGENT_kept);
	} else {
		ubagent_count(a, UBAGENT_not_kept);
	}
	/* the address may have come since it was looked up */
	if (h != NULL && h->state == HOP_KNOWN)
		__atomic_store_n(&a->hops.answered, true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&a->hops.lock);
}

/* The message of the place into `out`; false: it has none, or its peer is not known yet. */
static bool
take_kept(struct hops *hs, uint32_t i, struct hop *out)
{
	struct hop *h = &hs->hop[i];
	bool kept;

	pthread_mutex_lock(&hs->lock);
	kept = h->len != 0 && (h->state == HOP_KNOWN || h->state == HOP_AGAIN);
	if (kept)
		*out = *h;
	if (kept)
		h->len = 0;
	pthread_mutex_unlock(&hs->lock);
	return kept;
}

unsigned int
hops_deliver(struct ubagent *a, uint64_t now)
{
	struct hop h;
	unsigned int n = 0;

	if (!__atomic_exchange_n(&a->hops.answered, false, __ATOMIC_ACQ_REL))
		return 0;
	for (uint32_t i = 0; i < HOPS_MAX; i++) {
		if (!take_kept(&a->hops, i, &h))
			continue;
		ubcm_input(a->cm, h.own, h.peer, h.bytes, h.len, now);
		n++;
	}
	return n;
}
