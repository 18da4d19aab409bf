/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <string.h>

#include "abi_addr.h"
#include "gid_table.h"

void
gid_of_mac(const uint8_t mac[6], uint8_t gid[16])
{
	const uint8_t g[16] = {0xfe,   0x80,   0,      0,    0,	   0,	   0,	   0,
			       mac[0], mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};

	memcpy(gid, g, sizeof(g));
	gid[8] ^= 2;
}

bool
gid_is_link_local(const uint8_t gid[16])
{
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

const struct gid_slot *
gid_table_get(const struct gid_table *t, uint32_t index)
{
	return index < GID_TABLE_MAX && t->slot[index].used ? &t->slot[index] : NULL;
}

int
gid_table_find(const struct gid_table *t, const uint8_t gid[16], uint16_t vlan_id)
{
	for (uint32_t i = 0; i < GID_TABLE_MAX; i++)
		if (t->slot[i].used && t->slot[i].vlan_id == vlan_id &&
		    memcmp(t->slot[i].gid, gid, 16) == 0)
			return (int)i;
	return -1;
}

int
gid_table_source(const struct gid_table *t, uint16_t vlan_id, const uint8_t dst[16])
{
	unsigned int best = 0;
	int at = -1;

	for (uint32_t i = 0; i < GID_TABLE_MAX; i++) {
		const struct gid_slot *s = &t->slot[i];
		unsigned int rank =
			s->used && s->vlan_id == vlan_id ? hca_gid_source_rank(s->gid, dst) : 0;

		if (rank <= best)
			continue;
		best = rank;
		at = (int)i;
	}
	return at;
}

static int
put(struct gid_table *t, uint32_t index, const uint8_t gid[16], uint16_t vlan_id,
    const uint8_t mac[6], uint32_t ifindex)
{
	struct gid_slot *s = &t->slot[index];
	bool same = s->used && s->vlan_id == vlan_id && memcmp(s->gid, gid, 16) == 0 &&
		    memcmp(s->mac, mac, 6) == 0 && s->ifindex == ifindex;
	int err = same ? 0 : hca_driver_set_gid_of(t->drv, index, gid, mac, vlan_id, ifindex);

	if (err != 0) {
		t->failed++;
		return err;
	}
	t->set += !same;
	*s = (struct gid_slot){.vlan_id = vlan_id, .ifindex = ifindex, .used = true, .seen = true};
	memcpy(s->gid, gid, 16);
	memcpy(s->mac, mac, 6);
	return (int)index;
}

int
gid_table_init(struct gid_table *t, struct hca_driver *drv, const uint8_t mac[6], uint32_t ifindex,
	       bool link_local)
{
	uint8_t gid[16];
	int rc;

	memset(t, 0, sizeof(*t));
	t->drv = drv;
	memcpy(t->mac, mac, 6);
	t->ifindex = ifindex;
	t->first = link_local ? 1 : 0;
	if (!link_local)
		return 0;
	gid_of_mac(mac, gid);
	rc = put(t, 0, gid, GID_NO_VLAN, mac, ifindex);
	return rc < 0 ? rc : 0;
}

int
gid_table_add(struct gid_table *t, const uint8_t gid[16], uint16_t vlan_id, const uint8_t mac[6],
	      uint32_t ifindex)
{
	int at = gid_table_find(t, gid, vlan_id);

	if (at >= 0)
		return put(t, (uint32_t)at, gid, vlan_id, mac, ifindex);
	if (t->first != 0 && vlan_id == GID_NO_VLAN && gid_is_link_local(gid))
		return put(t, 0, gid, vlan_id, mac, ifindex);
	for (uint32_t i = t->first; i < GID_TABLE_MAX; i++)
		if (!t->slot[i].used)
			return put(t, i, gid, vlan_id, mac, ifindex);
	t->failed++;
	return -ENOSPC;
}

/* Clear an entry; index 0 falls back to the GID made of the MAC address. */
static void
drop(struct gid_table *t, uint32_t index)
{
	uint8_t gid[16];

	if (index < t->first) {
		gid_of_mac(t->mac, gid);
		put(t, 0, gid, GID_NO_VLAN, t->mac, t->ifindex);
		return;
	}
	if (hca_driver_clear_gid(t->drv, index) != 0) {
		t->failed++;
		return;
	}
	t->cleared++;
	t->slot[index].used = false;
}

void
gid_table_remove(struct gid_table *t, const uint8_t gid[16], uint16_t vlan_id)
{
	int at = gid_table_find(t, gid, vlan_id);

	if (at >= 0)
		drop(t, (uint32_t)at);
}

void
gid_table_set_mac(struct gid_table *t, uint16_t vlan_id, const uint8_t mac[6])
{
	uint8_t old[16], gid[16];

	gid_of_mac(t->mac, old);
	gid_of_mac(mac, gid);
	if (vlan_id == GID_NO_VLAN)
		memcpy(t->mac, mac, 6);
	for (uint32_t i = 0; i < GID_TABLE_MAX; i++) {
		const struct gid_slot s = t->slot[i];

		if (!s.used || s.vlan_id != vlan_id)
			continue;
		put(t, i, i < t->first && memcmp(s.gid, old, 16) == 0 ? gid : s.gid, vlan_id, mac,
		    s.ifindex);
	}
}

void
gid_table_mark(struct gid_table *t)
{
	for (uint32_t i = t->first; i < GID_TABLE_MAX; i++)
		t->slot[i].seen = false;
}

void
gid_table_sweep(struct gid_table *t)
{
	for (uint32_t i = t->first; i < GID_TABLE_MAX; i++)
		if (t->slot[i].used && !t->slot[i].seen)
			drop(t, i);
}

void
gid_table_remove_vlan(struct gid_table *t, uint16_t vlan_id)
{
	for (uint32_t i = t->first; i < GID_TABLE_MAX; i++)
		if (t->slot[i].used && t->slot[i].vlan_id == vlan_id)
			drop(t, i);
}
