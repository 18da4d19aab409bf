/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Protection domains, and their sharing between clients.
 *
 * A client begins with a secret token of its own. Another client that shows it, of the same user or
 * of root, takes it as its own; clients with one token may import PDs of each other by number, and
 * look up regions in them. Each has a PD on its own account and gives it back itself: the number
 * stays until the last one has. An object that a client makes in a PD belongs to the client, in its
 * own DMA domain, and ends with it.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "driver_types.h"

#define PD_INDEX_MAX ((1u << 21) - 1) /* HCA_PD_MAKE has 21 bits for it */

/* Place of a PD in its list. Numbers of one client differ only in their upper bits. */
static struct driver_pd **
pd_link(struct hca_client *client, uint32_t pdn)
{
	struct driver_pd **link = &client->pds[HCA_PD_NUMBER(pdn) % DRIVER_PD_BUCKETS];

	while (*link != NULL && (*link)->pdn != pdn)
		link = &(*link)->next;
	return link;
}

struct driver_pd *
driver_pd_of(struct hca_client *client, uint32_t pdn)
{
	return *pd_link(client, pdn);
}

/* A new entry of the client, which has no such PD */
static int
enter(struct hca_client *client, uint32_t pdn, struct driver_shared_pd *shared)
{
	struct driver_pd *pd = calloc(1, sizeof(*pd)), **link = pd_link(client, pdn);

	if (pd == NULL)
		return driver_no_memory("a PD", sizeof(*pd));
	pd->pdn = pdn;
	pd->shared = shared;
	*link = pd;
	client->count[DRIVER_PDS]++;
	return 0;
}

static void
drop(struct hca_client *client, struct driver_pd **link)
{
	struct driver_pd *pd = *link;
	struct driver_shared_pd **shared = &client->drv->shared_pds;

	*link = pd->next;
	client->count[DRIVER_PDS]--;
	if (pd->shared != NULL && --pd->shared->clients == 0) {
		while (*shared != pd->shared)
			shared = &(*shared)->next;
		*shared = pd->shared->next;
		free(pd->shared);
	}
	free(pd);
}

void
driver_pd_free_all(struct hca_client *client)
{
	for (uint32_t i = 0; i < DRIVER_PD_BUCKETS; i++)
		while (client->pds[i] != NULL)
			drop(client, &client->pds[i]);
}

/* Whether the client has the PD, or others have one that a client of its page has made. */
static bool
in_use(struct hca_client *client, uint32_t pdn)
{
	const struct driver_shared_pd *shared = client->drv->shared_pds;

	while (shared != NULL && shared->pdn != pdn)
		shared = shared->next;
	return shared != NULL || driver_pd_of(client, pdn) != NULL;
}

int
driver_op_alloc_pd(struct hca_client *client, const struct hca_ctl_none *none, uint32_t *pdn)
{
	int err = driver_quota(client, DRIVER_PDS, 1);

	if (err != 0)
		return err;
	do { /* number 0 is the PD of the client's CQs */
		client->next_pd = client->next_pd < PD_INDEX_MAX ? client->next_pd + 1 : 1;
		*pdn = HCA_PD_MAKE(client->next_pd, client->uar);
	} while (in_use(client, *pdn));
	return enter(client, *pdn, NULL);
}

int
driver_op_dealloc_pd(struct hca_client *client, const uint32_t *pdn, struct hca_ctl_none *none)
{
	struct driver_pd **link = pd_link(client, *pdn), *pd = *link;

	if (pd == NULL)
		return driver_fail(-EINVAL, "PD %#x does not exist", *pdn);
	if (pd->again != 0) {
		pd->again--;
		return 0;
	}
	if (pd->users != 0)
		return driver_fail(-EBUSY, "%u objects use the PD: destroy them first", pd->users);
	drop(client, link);
	return 0;
}

/* ---- sharing ---- */

void
driver_share_init(struct hca_client *client)
{
	client->share.token[0] = driver_random_next(&client->drv->random);
	client->share.token[1] = driver_random_next(&client->drv->random);
}

static bool
share_equal(const struct hca_ctl_share *a, const struct hca_ctl_share *b)
{
	return ((a->token[0] ^ b->token[0]) | (a->token[1] ^ b->token[1])) == 0;
}

/* The next client after `after` (NULL: the first) with that token, but not `client` itself */
static struct hca_client *
next_sharing(const struct hca_client *client, struct hca_client *after,
	     const struct hca_ctl_share *share)
{
	struct hca_client *c = after != NULL ? after->next : client->drv->clients;

	while (c != NULL && (c == client || !share_equal(&c->share, share)))
		c = c->next;
	return c;
}

int
driver_op_join(struct hca_client *client, const struct hca_ctl_share *share,
	       struct hca_ctl_none *none)
{
	const struct hca_client *member = next_sharing(client, NULL, share);

	if (client->count[DRIVER_PDS] != 0)
		return driver_fail(-EBUSY, "the context has %llu PDs",
				   (unsigned long long)client->count[DRIVER_PDS]);
	if (member == NULL)
		return driver_fail(-ENOENT, "no context has the token (any more)");
	if (client->user != 0 && client->user != member->user)
		return driver_fail(-EACCES, "the contexts of the token are user %u's",
				   member->user);
	client->share = *share;
	return 0;
}

/* The PD of another client of the group, which becomes one of several */
static int
find_shared(struct hca_client *client, uint32_t pdn, struct driver_shared_pd **out)
{
	struct hca_driver *drv = client->drv;
	struct hca_client *member = NULL;
	struct driver_shared_pd *shared;
	struct driver_pd *pd = NULL;

	do {
		member = next_sharing(client, member, &client->share);
		if (member != NULL)
			pd = driver_pd_of(member, pdn);
	} while (member != NULL && pd == NULL);
	if (pd == NULL)
		return driver_fail(-EINVAL, "no context that shares with this one has PD %#x", pdn);
	if (pd->shared == NULL) {
		shared = calloc(1, sizeof(*shared));
		if (shared == NULL)
			return driver_no_memory("a PD", sizeof(*shared));
		*shared = (struct driver_shared_pd){drv->shared_pds, pdn, 1};
		drv->shared_pds = shared;
		pd->shared = shared;
	}
	*out = pd->shared;
	return 0;
}

int
driver_op_import_pd(struct hca_client *client, const uint32_t *pdn, struct hca_ctl_none *none)
{
	struct driver_shared_pd *shared = NULL;
	struct driver_pd *own = driver_pd_of(client, *pdn);
	int err;

	if (own != NULL) {
		own->again++;
		return 0;
	}
	err = driver_quota(client, DRIVER_PDS, 1);
	if (err == 0)
		err = find_shared(client, *pdn, &shared);
	if (err == 0)
		err = enter(client, *pdn, shared);
	if (err == 0)
		shared->clients++;
	return err;
}

/* Nothing is kept: the region lives as long as its owner likes. */
int
driver_op_import_mr(struct hca_client *client, const struct hca_ctl_find_mr *request,
		    struct hca_ctl_found_mr *found)
{
	const struct hca_driver *drv = client->drv;
	const struct driver_mr *region =
		request->index < drv->mpt_ids.count ? drv->mrs[request->index] : NULL;

	if (driver_pd_of(client, request->pdn) == NULL)
		return driver_fail(-EINVAL, "PD %#x does not exist", request->pdn);
	if (region == NULL || region->pdn != request->pdn || region->internal || region->window)
		return driver_fail(-EINVAL, "the PD has no region %u", request->index);
	*found = (struct hca_ctl_found_mr){
		.length = region->null ? UINT64_MAX : region->length,
		.keys = {region->key, region->key},
	};
	return 0;
}
