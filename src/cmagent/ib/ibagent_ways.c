/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The destinations that clients have asked for: which address of the host is the source, and the
 * MAC address of the next hop.
 */

#include <errno.h>
#include <string.h>

#include "ibagent_impl.h"

/* Without threads that ask: the driver has a table, and does not block. */

int
ibagent_ways_start(struct ibagent *a)
{
	return 0;
}

void
ibagent_ways_stop(struct ibagent *a)
{
}

static bool
way_next(struct ibagent *a, struct ibagent_wish *out)
{
	bool any;

	pthread_mutex_lock(&a->lock);
	any = a->wish_count != 0;
	if (any) {
		*out = a->wish[a->wish_first];
		a->wish_first = (a->wish_first + 1) % IBAGENT_WISHES;
		a->wish_count--;
	}
	pthread_mutex_unlock(&a->lock);
	return any;
}

/* What the state machines tell clients of it */
static int
way_error(int err)
{
	switch (err) {
	case 0:
	case -ENETUNREACH:
	case -EHOSTUNREACH:
	case -ETIMEDOUT:
		return err;
	case -EADDRNOTAVAIL:
	case -EINVAL:
		return -ENODEV;
	default:
		return -EHOSTUNREACH;
	}
}

static int
way_find(struct ibagent *a, const struct ibcm_wish *w, struct ibcm_way *way)
{
	struct hca_ctl_ah ah = {.sgid_index = w->gid_index};
	struct hca_ctl_gid gid;
	int err = 0;

	memcpy(ah.dgid, w->dst, sizeof(ah.dgid));
	if (!w->fixed)
		err = hca_driver_source(a->cfg.drv, w->dst, 0, &ah.sgid_index);
	if (err == 0)
		err = hca_driver_resolve(a->cfg.drv, true, &ah);
	if (err == 0)
		err = hca_driver_query_gid(a->cfg.drv, ah.sgid_index, &gid);
	if (err != 0)
		return way_error(err);
	*way = (struct ibcm_way){.gid_index = ah.sgid_index, .hop_limit = CMAGENT_MAIL_HOP_LIMIT};
	memcpy(way->own, gid.gid, sizeof(way->own));
	memcpy(way->peer, w->dst, sizeof(way->peer));
	memcpy(way->dmac, ah.dmac, sizeof(way->dmac));
	return 0;
}

static void
way_answer(struct ibagent *a, const struct ibagent_wish *w)
{
	struct ibcm_way way = {.gid_index = 0};
	int err = way_find(a, &w->wish, &way);

	if (err != 0)
		ibagent_count(a, IBAGENT_ways_failed);
	pthread_mutex_lock(&a->lock);
	ibcm_resolved(a->cm, w->ticket, err, &way, ibagent_now(a));
	pthread_mutex_unlock(&a->lock);
}

unsigned int
ibagent_ways(struct ibagent *a)
{
	struct ibagent_wish w;
	unsigned int n = 0;

	for (; way_next(a, &w); n++)
		way_answer(a, &w);
	return n;
}
