/* SPDX-License-Identifier: BSD-3-Clause */

/* ARP and ND claim new MAC addresses of next hops; RoCE frames decide whether to accept them. */

#include <string.h>

#include "kernif_impl.h"
#include "port/port_divert.h"

static int
watch(void *arg, const uint8_t mac[6], const uint8_t *gid, uint16_t vlan_id)
{
	return hca_port_divert_watch(((struct kernif *)arg)->divert, mac, gid, vlan_id);
}

static bool
seen(void *arg, int handle)
{
	return hca_port_divert_seen(((struct kernif *)arg)->divert, handle);
}

static void
unwatch(void *arg, int handle)
{
	hca_port_divert_unwatch(((struct kernif *)arg)->divert, handle);
}

static void
moved(void *arg, const struct arp_nd_hop *hop, const uint8_t mac[6], bool back)
{
	struct kernif *k = arg;

	if (back) {
		kernif_log(k,
			   "a neighbour still has MAC address %02x:%02x:%02x:%02x:%02x:%02x: "
			   "another host claims its IP address",
			   mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
		k->stats.neighbours_disputed++;
		arp_nd_correct(k->responder, hop, mac, kernif_now());
	}
	k->stats.neighbours_moved += dest_table_moved(&k->dests, k->drv, hop, mac);
	pthread_cond_broadcast(&k->changed);
}

void
kernif_guard_init(struct kernif *k)
{
	const struct move_guard_config cfg = {
		.watch = watch,
		.seen = seen,
		.unwatch = unwatch,
		.moved = moved,
		.arg = k,
	};

	move_guard_init(&k->guard, &cfg);
}

void
kernif_claim(struct kernif *k, const struct arp_nd_hop *hop, const uint8_t *mac)
{
	bool direct;
	const uint8_t *old = dest_table_mac(&k->dests, hop, &direct);
	uint8_t was[6];

	if (mac == NULL) {
		dest_table_lost(&k->dests, hop);
	} else if (k->responder == NULL) {
		/*
		 * The kernel's tables are authoritative. RoCE frames would not tell: a peer whose
		 * interface got another MAC address still sends from the old one on QPs connected
		 * before.
		 */
		k->stats.neighbours_moved += dest_table_moved(&k->dests, k->drv, hop, mac);
	} else {
		if (old != NULL)
			memcpy(was, old, sizeof(was));
		move_guard_claim(&k->guard, hop, old != NULL ? was : NULL, mac, direct,
				 kernif_now());
	}
	pthread_cond_broadcast(&k->changed);
}
