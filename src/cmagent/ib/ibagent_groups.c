/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Multicast groups: changes that the owner of the agent must be told, in their order. A change that
 * is undone before the agent runs is not told.
 */

#include <stdlib.h>
#include <string.h>

#include "abi_addr.h"
#include "ibagent_impl.h"

static struct ibagent_group **
group_bucket(struct ibagent *a, uint32_t gid_index, const uint8_t mgid[16])
{
	return &a->group[hca_gid_hash(mgid, a->hash_key ^ gid_index) % IBAGENT_GROUP_BUCKETS];
}

static struct ibagent_group *
group_of(struct ibagent *a, uint32_t gid_index, const uint8_t mgid[16])
{
	struct ibagent_group **bucket = group_bucket(a, gid_index, mgid), *g;

	for (g = *bucket; g != NULL; g = g->next)
		if (g->gid_index == gid_index && memcmp(g->mgid, mgid, sizeof(g->mgid)) == 0)
			return g;
	g = calloc(1, sizeof(*g));
	if (g == NULL)
		return NULL;
	g->gid_index = gid_index;
	memcpy(g->mgid, mgid, sizeof(g->mgid));
	g->next = *bucket;
	*bucket = g;
	return g;
}

static void
group_change(struct ibagent *a, struct ibagent_group *g)
{
	if (g->changed)
		return;
	g->changed = true;
	g->next_change = NULL;
	if (a->first_change == NULL)
		a->first_change = g;
	else
		a->last_change->next_change = g;
	a->last_change = g;
}

void
ibagent_group(void *arg, uint32_t gid_index, const uint8_t mgid[16], bool joined)
{
	struct ibagent *a = arg;
	struct ibagent_group *g;

	if (a->cfg.group == NULL)
		return;
	g = group_of(a, gid_index, mgid);
	if (g == NULL) {
		ibagent_count(a, IBAGENT_groups_lost);
		return;
	}
	g->joined = joined;
	group_change(a, g);
}

static void
group_free(struct ibagent *a, struct ibagent_group *g)
{
	struct ibagent_group **at = group_bucket(a, g->gid_index, g->mgid);

	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	free(g);
}

/* Take the next change out that has to be told, as a copy; false: all are told. */
static bool
group_next(struct ibagent *a, struct ibagent_group *out)
{
	struct ibagent_group *g;
	bool tell = false;

	while (!tell && (g = a->first_change) != NULL) {
		a->first_change = g->next_change;
		g->changed = false;
		tell = g->joined != g->told;
		g->told = g->joined;
		*out = *g;
		if (!g->joined)
			group_free(a, g);
	}
	return tell;
}

unsigned int
ibagent_tell_groups(struct ibagent *a)
{
	struct ibagent_group g;
	unsigned int n = 0;
	bool more;

	for (;; n++) {
		pthread_mutex_lock(&a->lock);
		more = group_next(a, &g);
		pthread_mutex_unlock(&a->lock);
		if (!more)
			return n;
		a->cfg.group(a->cfg.arg, g.gid_index, g.mgid, g.joined);
	}
}

void
ibagent_free_groups(struct ibagent *a)
{
	for (uint32_t i = 0; i < IBAGENT_GROUP_BUCKETS; i++)
		while (a->group[i] != NULL)
			group_free(a, a->group[i]);
}
