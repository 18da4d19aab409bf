/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "dest_table.h"

static bool
same_hop(const struct arp_nd_hop *a, const struct arp_nd_hop *b)
{
	return a->vlan_id == b->vlan_id && memcmp(a->gid, b->gid, 16) == 0;
}

/* The entry of a destination, else a free one, else the least recently resolved one. */
static struct dest *
find(struct dest_table *t, uint32_t sgid_index, const uint8_t dgid[16])
{
	struct dest *place = NULL;

	for (uint32_t i = 0; i < t->end; i++) {
		struct dest *d = &t->dest[i];

		if (d->used && d->sgid_index == sgid_index && memcmp(d->dgid, dgid, 16) == 0)
			return d;
		if (place == NULL || (place->used && (!d->used || d->asked < place->asked)))
			place = d;
	}
	if (t->end < DEST_TABLE_MAX && (place == NULL || place->used))
		place = &t->dest[t->end++];
	return place;
}

void
dest_table_note(struct dest_table *t, uint32_t sgid_index, const uint8_t dgid[16],
		const struct arp_nd_hop *hop, const uint8_t mac[6])
{
	struct dest *d = find(t, sgid_index, dgid);

	d->used = 1;
	d->lost = 0;
	d->sgid_index = sgid_index;
	d->hop = *hop;
	d->asked = ++t->questions;
	memcpy(d->dgid, dgid, 16);
	memcpy(d->mac, mac, 6);
}

const uint8_t *
dest_table_mac(const struct dest_table *t, const struct arp_nd_hop *hop, bool *direct)
{
	const uint8_t *mac = NULL;

	*direct = false;
	for (uint32_t i = 0; i < t->end; i++) {
		const struct dest *d = &t->dest[i];

		if (!d->used || !same_hop(&d->hop, hop))
			continue;
		mac = d->mac;
		*direct = *direct || memcmp(d->dgid, hop->gid, sizeof(d->dgid)) == 0;
	}
	return mac;
}

unsigned int
dest_table_moved(struct dest_table *t, struct hca_driver *drv, const struct arp_nd_hop *hop,
		 const uint8_t mac[6])
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < t->end; i++) {
		struct dest *d = &t->dest[i];

		if (!d->used || !same_hop(&d->hop, hop))
			continue;
		d->lost = 0;
		if (memcmp(d->mac, mac, 6) == 0)
			continue;
		if (hca_driver_move_neigh(drv, d->sgid_index, d->dgid, mac) != 0)
			continue;
		memcpy(d->mac, mac, 6);
		n++;
	}
	return n;
}

void
dest_table_lost(struct dest_table *t, const struct arp_nd_hop *hop)
{
	for (uint32_t i = 0; i < t->end; i++)
		if (t->dest[i].used && t->dest[i].lost < DEST_LOST_MAX &&
		    same_hop(&t->dest[i].hop, hop))
			t->dest[i].lost++;
}
