/* SPDX-License-Identifier: BSD-3-Clause */

/* The threads that ask the driver for MAC addresses, and their memory. */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cmagent_hop.h"

void
cmagent_hop_count(struct cmagent_hops *hs, enum cmagent_hop_counter which)
{
	__atomic_store_n(&hs->counter[which], hs->counter[which] + 1, __ATOMIC_RELAXED);
}

uint64_t
cmagent_hops_counter(const struct cmagent_hops *hs, enum cmagent_hop_counter which)
{
	return __atomic_load_n(&hs->counter[which], __ATOMIC_RELAXED);
}

uint32_t
cmagent_gid_index(struct hca_driver *drv, const uint8_t own[16])
{
	struct hca_ctl_gid gid;

	for (uint32_t i = 0; i < hca_driver_gid_entries(drv); i++)
		if (hca_driver_query_gid(drv, i, &gid) == 0 && gid.valid &&
		    memcmp(gid.gid, own, sizeof(gid.gid)) == 0)
			return i;
	return CMAGENT_HOP_NO_GID;
}

/* One question, with the lock released meanwhile; false: no question waits. */
static bool
answer_one(struct cmagent_hops *hs)
{
	struct cmagent_hop_ticket *t = cmagent_ticket_next(hs);
	struct cmagent_hop *h = t == NULL ? cmagent_hop_next(hs) : NULL;

	if (t != NULL)
		cmagent_ticket_resolve(hs, t);
	else if (h != NULL)
		cmagent_hop_resolve(hs, h);
	return t != NULL || h != NULL;
}

static void *
hops_main(void *arg)
{
	struct cmagent_hops *hs = arg;

	(void)pthread_setname_np(pthread_self(), "hca-resolve");
	pthread_mutex_lock(&hs->lock);
	while (!hs->stop) {
		if (!answer_one(hs)) {
			pthread_cond_wait(&hs->wake, &hs->lock);
			continue;
		}
		pthread_mutex_unlock(&hs->lock);
		hs->cfg.wake(hs->cfg.owner);
		pthread_mutex_lock(&hs->lock);
	}
	pthread_mutex_unlock(&hs->lock);
	return NULL;
}

int
cmagent_hops_start(struct cmagent_hops *hs)
{
	sigset_t all, before;
	int err = 0;

	if (!hs->cfg.asks)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	while (err == 0 && hs->threads < CMAGENT_HOP_THREADS) {
		err = pthread_create(&hs->thread[hs->threads], NULL, hops_main, hs);
		hs->threads += err == 0;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

void
cmagent_hops_stop(struct cmagent_hops *hs)
{
	if (hs->threads == 0)
		return;
	pthread_mutex_lock(&hs->lock);
	hs->stop = true;
	pthread_cond_broadcast(&hs->wake);
	pthread_mutex_unlock(&hs->lock);
	while (hs->threads > 0)
		pthread_join(hs->thread[--hs->threads], NULL);
}

int
cmagent_hops_open(struct cmagent_hops *hs, const struct cmagent_hops_config *config)
{
	const struct cmagent_hops_config *c = config;

	memset(hs, 0, sizeof(*hs));
	hs->cfg = *config;
	pthread_mutex_init(&hs->lock, NULL);
	pthread_cond_init(&hs->wake, NULL);
	hs->hop = calloc(c->places + 1, sizeof(*hs->hop));
	hs->bytes = calloc(c->places + 1, c->message_bytes + 1);
	hs->ticket = calloc(c->tickets + 1, sizeof(*hs->ticket));
	hs->client = calloc(c->clients + 1, sizeof(*hs->client));
	if (hs->hop == NULL || hs->bytes == NULL || hs->ticket == NULL || hs->client == NULL)
		return -ENOMEM;
	for (uint32_t i = c->tickets; i > 0; i--) {
		hs->ticket[i - 1].next = hs->tickets_free;
		hs->tickets_free = i;
	}
	return 0;
}

void
cmagent_hops_close(struct cmagent_hops *hs)
{
	free(hs->hop);
	free(hs->bytes);
	free(hs->ticket);
	free(hs->client);
	memset(hs, 0, sizeof(*hs));
}
