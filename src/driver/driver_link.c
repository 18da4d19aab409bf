/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Links of UB, for quotas: the channels between an address of this host and a peer are shared by
 * all clients that have imported it, so one of these pays for them, and another one when that gives
 * its last import of the peer back.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "driver_types.h"

static struct driver_link **
link_place(struct hca_client *client, const uint8_t own[16], const uint8_t peer[16])
{
	struct driver_link **place = &client->links;

	while (*place != NULL && (memcmp((*place)->own, own, sizeof((*place)->own)) != 0 ||
				  memcmp((*place)->peer, peer, sizeof((*place)->peer)) != 0))
		place = &(*place)->next;
	return place;
}

/* A link of another client to the same peer; paid: one that pays. NULL: not found. */
static struct driver_link *
link_of_others(struct hca_client *client, const uint8_t own[16], const uint8_t peer[16], bool paid,
	       struct hca_client **whose)
{
	for (struct hca_client *c = client->drv->clients; c != NULL; c = c->next) {
		struct driver_link *l = c != client ? *link_place(c, own, peer) : NULL;

		*whose = c;
		if (l != NULL && (l->pays || !paid))
			return l;
	}
	return NULL;
}

int
driver_link_take(struct hca_client *client, const uint8_t own[16], const uint8_t peer[16])
{
	struct driver_link **place = link_place(client, own, peer), *l = *place;
	struct hca_client *other;
	bool pays;

	if (l != NULL) {
		l->imports++;
		return 0;
	}
	pays = link_of_others(client, own, peer, true, &other) == NULL;
	if (pays && driver_quota(client, DRIVER_LINKS, 1) != 0)
		return -ENOMEM;
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return driver_no_memory("a link", sizeof(*l));
	memcpy(l->own, own, sizeof(l->own));
	memcpy(l->peer, peer, sizeof(l->peer));
	l->imports = 1;
	l->pays = pays;
	client->count[DRIVER_LINKS] += pays;
	*place = l;
	return 0;
}

static void
link_end(struct hca_client *client, struct driver_link **place)
{
	struct driver_link *l = *place, *heir = NULL;
	struct hca_client *other;

	*place = l->next;
	if (l->pays) {
		client->count[DRIVER_LINKS]--;
		heir = link_of_others(client, l->own, l->peer, false, &other);
	}
	if (heir != NULL) {
		heir->pays = true;
		other->count[DRIVER_LINKS]++;
	}
	free(l);
}

void
driver_link_give(struct hca_client *client, const uint8_t own[16], const uint8_t peer[16])
{
	struct driver_link **place = link_place(client, own, peer);

	if (*place != NULL && --(*place)->imports == 0)
		link_end(client, place);
}

void
driver_links_forget(struct hca_client *client)
{
	while (client->links != NULL)
		link_end(client, &client->links);
}
