/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Quotas of clients. A configured number applies to each client. Otherwise there are shares: a
 * user's clients together may have user_share per cent of the rest that other users leave, and one
 * client client_share per cent of the rest of its user. So no client can take all, later clients
 * always get something, and freed objects are available again.
 */

#include <errno.h>
#include <stddef.h>

#include "abi_tp.h"
#include "driver_types.h"

static uint64_t
ids_left(const struct driver_ids *ids)
{
	return ids->count - ids->first - ids->used;
}

/* Sums over all clients */
static uint64_t
left_of(const struct hca_driver *drv, uint64_t all, enum driver_thing thing)
{
	uint64_t used = 0;

	for (const struct hca_client *c = drv->clients; c != NULL; c = c->next)
		used += c->count[thing];
	return used < all ? all - used : 0;
}

/* The rest that other users leave; UINT64_MAX: unlimited. */
static uint64_t
table_left(const struct hca_driver *drv, enum driver_thing thing)
{
	switch (thing) {
	case DRIVER_QPS:
		return ids_left(&drv->qp_ids);
	case DRIVER_CQS:
		return ids_left(&drv->cq_ids);
	case DRIVER_SRQS:
		return ids_left(&drv->srq_ids);
	case DRIVER_XRCDS:
		return ids_left(&drv->xrcd_ids);
	case DRIVER_MRS:
		return ids_left(&drv->mpt_ids);
	case DRIVER_MTTS:
		return (UINT64_C(1) << drv->mtt_ranges.max_log) - drv->mtt_ranges.used;
	case DRIVER_PDS:
		return left_of(drv, DRIVER_PDS_ALL, thing);
	case DRIVER_GROUPS:
		return driver_groups_left(drv);
	case DRIVER_PEERS:
		return left_of(drv, DRIVER_PEERS_ALL, thing);
	case DRIVER_LINKS:
		return drv->agent != NULL ? left_of(drv, drv->agent->links(drv->agent_arg), thing)
					  : 0;
	case DRIVER_KNOWN:
		return left_of(drv, HCA_TC_WELL_KNOWN - HCA_TC_WELL_KNOWN_FREE, thing);
	case DRIVER_BYTES:
		return drv->config.device_bytes != 0 ? left_of(drv, drv->config.device_bytes, thing)
						     : UINT64_MAX;
	default:
		return UINT64_MAX;
	}
}

/* Names in messages, and the configuration keys of numbers per client. */
static const struct {
	const char *name, *key;
} things[DRIVER_THINGS] = {
	[DRIVER_QPS] = {"QPs", "qps"},
	[DRIVER_CQS] = {"CQs", "cqs"},
	[DRIVER_SRQS] = {"SRQs", "srqs"},
	[DRIVER_XRCDS] = {"XRC domains", "xrcds"},
	[DRIVER_MRS] = {"regions", "mrs"},
	[DRIVER_MTTS] = {"translation entries", "mtts"},
	[DRIVER_PDS] = {"PDs", "pds"},
	[DRIVER_GROUPS] = {"multicast groups", "groups"},
	[DRIVER_PEERS] = {"imported peers", "peers"},
	[DRIVER_LINKS] = {"peers with channels of their own", "links"},
	[DRIVER_KNOWN] = {"well-known numbers", "known"},
	[DRIVER_BYTES] = {"bytes of the device for queues", NULL},
};

static uint64_t
own_quota(const struct hca_quota *q, enum driver_thing thing)
{
	const uint64_t quota[DRIVER_THINGS] = {
		[DRIVER_QPS] = q->qps,	   [DRIVER_CQS] = q->cqs,	[DRIVER_SRQS] = q->srqs,
		[DRIVER_XRCDS] = q->xrcds, [DRIVER_MRS] = q->mrs,	[DRIVER_MTTS] = q->mtts,
		[DRIVER_PDS] = q->pds,	   [DRIVER_GROUPS] = q->groups, [DRIVER_PEERS] = q->peers,
		[DRIVER_LINKS] = q->links, [DRIVER_KNOWN] = q->known,
	};

	return quota[thing];
}

/* The rest of the client's user. */
static uint64_t
user_left(const struct hca_client *client, enum driver_thing thing, uint64_t left)
{
	uint32_t share = client->drv->config.quota.user_share;
	uint64_t used = 0, max;

	if (share == 0 || left == UINT64_MAX)
		return left;
	for (const struct hca_client *c = client->drv->clients; c != NULL; c = c->next)
		used += c->user == client->user ? c->count[thing] : 0;
	max = (used + left) * share / 100;
	return max > used ? max - used : 0;
}

uint64_t
driver_quota_most(const struct hca_client *client, enum driver_thing thing)
{
	const struct hca_quota *q = &client->drv->config.quota;
	uint64_t own = own_quota(q, thing), has = client->count[thing];
	uint64_t left = user_left(client, thing, table_left(client->drv, thing));
	uint64_t max = left == UINT64_MAX ? left : has + left;

	if (own != 0)
		return own < max ? own : max;
	return q->client_share == 0 || max == UINT64_MAX ? max : max * q->client_share / 100;
}

int
driver_quota(const struct hca_client *client, enum driver_thing thing, uint64_t more)
{
	const struct hca_quota *q;
	unsigned long long has, own, left;
	const char *name = things[thing].name, *key = things[thing].key;

	if (client == NULL || client->count[thing] + more <= driver_quota_most(client, thing))
		return 0;
	q = &client->drv->config.quota;
	has = client->count[thing];
	own = own_quota(q, thing);
	if (own != 0 && has + more > own)
		return driver_fail(-ENOMEM,
				   "the client has %llu of its %llu %s ([quota] %s = %llu)", has,
				   own, name, key, own);
	left = table_left(client->drv, thing);
	if (more > left)
		return driver_fail(-ENOMEM, "of all %s %llu are left", name, left);
	left = user_left(client, thing, left);
	if (more > left)
		return driver_fail(
			-ENOMEM, "%llu %s are left to the client's user ([quota] user_share = %u)",
			left, name, q->user_share);
	return driver_fail(-ENOMEM,
			   "the client has %llu %s, %llu are left to its user ([quota] "
			   "client_share = %u%s%s)",
			   has, name, left, q->client_share, key != NULL ? ", or a number: " : "",
			   key != NULL ? key : "");
}

/*
 * Descriptors that stay open for the client: of its channels, but for the asynchronous one, and of
 * the files whose XRC domains it has open. Each client pays for a file, because it may be the last
 * one that has it.
 */
int
driver_quota_files(const struct hca_client *client)
{
	uint32_t quota = client->drv->config.quota.channels;

	if (quota == 0 || client->count_channels - 1 + client->count_files < quota)
		return 0;
	return driver_fail(-ENOMEM,
			   "the client has %u channels and XRC domains of %u files ([quota] "
			   "channels = %u)",
			   client->count_channels - 1, client->count_files, quota);
}

/* ---- memory of the device ---- */

/* Device memory of a queue: its pages. */
uint64_t
driver_queue_cost(uint64_t bytes)
{
	return DRIVER_QUEUE_BYTES + bytes / DRIVER_PAGE * sizeof(uint64_t);
}
