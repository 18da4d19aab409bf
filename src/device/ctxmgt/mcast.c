/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "abi_cmd.h"
#include "core/core.h"
#include "ctxmgt/ctxmgt.h"
#include "ctxmgt/mcast.h"

const struct hca_mcast_group *
hca_mcast_find(const struct hca_core *h, const uint8_t mgid[16])
{
	const struct hca_mcast_group *g = h->ctxmgt->mcast;
	uint32_t end = __atomic_load_n(&h->ctxmgt->mcast_end, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < end; i++)
		if (__atomic_load_n(&g[i].state, __ATOMIC_ACQUIRE) == HCA_MCAST_LIVE &&
		    memcmp(g[i].mgid, mgid, sizeof(g[i].mgid)) == 0)
			return &g[i];
	return NULL;
}

static bool
is_multicast(const uint8_t gid[16])
{
	return gid[0] == 0xff || (hca_gid_is_mapped(gid) && (gid[12] & 0xf0) == 0xe0);
}

static struct hca_mcast_group *
new_group(struct hca_core *h, const uint8_t mgid[16])
{
	struct hca_mcast_group *g = h->ctxmgt->mcast;

	for (uint32_t i = 0; i < HCA_MCAST_GROUPS; i++) {
		if (g[i].state != HCA_MCAST_FREE)
			continue;
		g[i].used = 0; /* no QP is a member any more */
		memcpy(g[i].mgid, mgid, sizeof(g[i].mgid));
		__atomic_store_n(&g[i].state, HCA_MCAST_LIVE, __ATOMIC_RELEASE);
		if (i >= h->ctxmgt->mcast_end)
			__atomic_store_n(&h->ctxmgt->mcast_end, i + 1, __ATOMIC_RELEASE);
		return &g[i];
	}
	return NULL;
}

/* Entry of qpn in the group, or a free one for qpn 0; NULL: no such entry. */
static uint32_t *
member(struct hca_mcast_group *g, uint32_t qpn)
{
	for (uint32_t i = 0; i < HCA_MCAST_MEMBERS; i++)
		if (g->qpn[i] == qpn)
			return &g->qpn[i];
	return NULL;
}

int
hca_mcast_attach(struct hca_core *h, const uint8_t mgid[16], uint32_t qpn)
{
	struct hca_mcast_group *g;
	uint32_t *place;

	if (!is_multicast(mgid))
		return HCA_STAT_BAD_PARAM;
	g = (struct hca_mcast_group *)(uintptr_t)hca_mcast_find(h, mgid);
	if (g != NULL && member(g, qpn) != NULL)
		return HCA_STAT_OK; /* attaching twice has no effect */
	if (g == NULL)
		g = new_group(h, mgid);
	place = g != NULL ? member(g, 0) : NULL;
	if (place == NULL)
		return HCA_STAT_EXCEED_LIM;
	__atomic_store_n(place, qpn, __ATOMIC_RELEASE);
	g->used++;
	return HCA_STAT_OK;
}

static void
leave(struct hca_mcast_group *g, uint32_t *place)
{
	__atomic_store_n(place, 0, __ATOMIC_RELEASE);
	if (--g->used == 0)
		__atomic_store_n(&g->state, HCA_MCAST_DYING, __ATOMIC_RELEASE);
}

int
hca_mcast_detach(struct hca_core *h, const uint8_t mgid[16], uint32_t qpn)
{
	struct hca_mcast_group *g = (struct hca_mcast_group *)(uintptr_t)hca_mcast_find(h, mgid);
	uint32_t *place = g != NULL ? member(g, qpn) : NULL;

	if (place == NULL)
		return HCA_STAT_BAD_PARAM;
	leave(g, place);
	return HCA_STAT_OK;
}

void
hca_mcast_forget(struct hca_core *h, uint32_t qpn)
{
	struct hca_mcast_group *g = h->ctxmgt->mcast;

	for (uint32_t i = 0; i < h->ctxmgt->mcast_end; i++) {
		uint32_t *place = g[i].used != 0 ? member(&g[i], qpn) : NULL;

		if (place != NULL)
			leave(&g[i], place);
	}
}

void
hca_mcast_reap(struct hca_core *h)
{
	struct hca_mcast_group *g = h->ctxmgt->mcast;
	uint32_t end = h->ctxmgt->mcast_end;

	for (uint32_t i = 0; i < end; i++)
		if (g[i].state == HCA_MCAST_DYING)
			__atomic_store_n(&g[i].state, HCA_MCAST_FREE, __ATOMIC_RELEASE);
	while (end != 0 && g[end - 1].state == HCA_MCAST_FREE)
		end--;
	__atomic_store_n(&h->ctxmgt->mcast_end, end, __ATOMIC_RELEASE);
}
