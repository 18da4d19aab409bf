/* SPDX-License-Identifier: BSD-3-Clause */

/* GID, P_Key and neighbour tables of the port: SET_GID, SET_PKEY, SET_NEIGH. */

#include <string.h>

#include <rte_common.h>

#include "ctxmgt/ctxmgt.h"

void
hca_gid_clear(struct hca_ctxmgt *c, uint32_t index)
{
	__atomic_store_n(&c->gid[index].valid, 0, __ATOMIC_RELEASE);
}

/* Clear everything but `valid`, which is cleared already and read at any time. */
static void
empty_gid(struct hca_gid_entry *e)
{
	memset(e, 0, offsetof(struct hca_gid_entry, valid));
}

void
hca_addr_reset(struct hca_ctxmgt *c)
{
	for (uint32_t i = 0; i < HCA_GID_ENTRIES; i++) {
		hca_gid_clear(c, i);
		empty_gid(&c->gid[i]);
	}
	memset(c->neigh, 0, sizeof(c->neigh));
	memset(c->pkey, 0, sizeof(c->pkey));
	c->pkey[0] = HCA_PKEY_DEFAULT;
	__atomic_store_n(&c->gid_changes, c->gid_changes + 1, __ATOMIC_RELEASE);
}

/* The type must match the kind of address. */
static bool
gid_type_ok(uint32_t type, const uint8_t gid[16])
{
	return (type == HCA_GID_ROCE_V2_IPV4 && hca_gid_is_ip4(gid)) ||
	       (type == HCA_GID_ROCE_V2_IPV6 && hca_gid_is_ip6(gid));
}

static uint16_t
gid_vlan(uint32_t flags)
{
	return flags & HCA_GID_VLAN_PRESENT ? (uint16_t)HCA_GID_VLAN_ID(flags) : HCA_NO_VLAN;
}

/* The same address twice, unless in different VLANs, would be ambiguous. */
static bool
is_duplicate(const struct hca_ctxmgt *c, uint32_t index, const uint8_t gid[16], uint16_t vlan)
{
	for (uint32_t i = 0; i < HCA_GID_ENTRIES; i++)
		if (i != index && c->gid[i].valid && c->gid[i].vlan_id == vlan &&
		    memcmp(c->gid[i].gid, gid, 16) == 0)
			return true;
	return false;
}

int
hca_gid_check(const struct hca_ctxmgt *c, const struct hca_mbox_set_gid *m)
{
	uint32_t index = hca_be32_to_cpu(m->index), flags = hca_be32_to_cpu(m->flags);
	uint16_t vlan = gid_vlan(flags);

	if (index >= HCA_GID_ENTRIES)
		return HCA_STAT_BAD_INDEX;
	if (!(flags & HCA_GID_VALID))
		return HCA_STAT_OK;
	if (!gid_type_ok(HCA_GID_TYPE(flags), m->gid) || !hca_mac_is_unicast(m->mac) ||
	    (vlan != HCA_NO_VLAN && (vlan == 0 || vlan == 0xfff)) ||
	    is_duplicate(c, index, m->gid, vlan))
		return HCA_STAT_BAD_PARAM;
	return HCA_STAT_OK;
}

static void
fill_gid(struct hca_gid_entry *e, const struct hca_mbox_set_gid *m)
{
	uint32_t flags = hca_be32_to_cpu(m->flags);

	memcpy(e->gid, m->gid, sizeof(e->gid));
	memcpy(e->mac, m->mac, sizeof(e->mac));
	e->vlan_id = gid_vlan(flags);
	e->ip_version = HCA_GID_TYPE(flags) == HCA_GID_ROCE_V2_IPV4 ? 4 : 6;
	__atomic_store_n(&e->valid, 1, __ATOMIC_RELEASE);
}

void
hca_gid_put(struct hca_ctxmgt *c, const struct hca_mbox_set_gid *m)
{
	struct hca_gid_entry *e = &c->gid[hca_be32_to_cpu(m->index)];

	empty_gid(e);
	if (hca_be32_to_cpu(m->flags) & HCA_GID_VALID)
		fill_gid(e, m);
	/* a reader that sees the new count and copies the table must find the change */
	__atomic_store_n(&c->gid_changes, c->gid_changes + 1, __ATOMIC_RELEASE);
}

int
hca_pkey_set(struct hca_ctxmgt *c, const struct hca_mbox_set_pkey *m)
{
	uint32_t index = hca_be32_to_cpu(m->index), pkey = hca_be32_to_cpu(m->pkey);

	if (index >= HCA_PKEY_ENTRIES)
		return HCA_STAT_BAD_INDEX;
	if (pkey > 0xffff || (pkey != 0 && HCA_PKEY_BASE(pkey) == 0))
		return HCA_STAT_BAD_PARAM;
	c->pkey[index] = (uint16_t)pkey;
	return HCA_STAT_OK;
}

static struct hca_neigh_entry *
neigh_slot(struct hca_ctxmgt *c, const uint8_t gid[16])
{
	struct hca_neigh_entry *empty = NULL;

	for (unsigned int i = 0; i < HCA_NEIGH_ENTRIES; i++) {
		struct hca_neigh_entry *e = &c->neigh[i];

		if (e->valid && memcmp(e->gid, gid, 16) == 0)
			return e;
		if (!e->valid && empty == NULL)
			empty = e;
	}
	return empty;
}

int
hca_neigh_set(struct hca_ctxmgt *c, const struct hca_mbox_set_neigh *m)
{
	uint32_t flags = hca_be32_to_cpu(m->flags);
	struct hca_neigh_entry *e;

	if (!hca_gid_is_ip4(m->dgid) && !hca_gid_is_ip6(m->dgid))
		return HCA_STAT_BAD_PARAM;
	if (HCA_NEIGH_SGID_INDEX(flags) >= HCA_GID_ENTRIES)
		return HCA_STAT_BAD_INDEX;
	e = neigh_slot(c, m->dgid);
	if (!(flags & HCA_NEIGH_VALID)) {
		if (e != NULL)
			memset(e, 0, sizeof(*e));
		return HCA_STAT_OK;
	}
	if (!hca_mac_is_unicast(m->dmac))
		return HCA_STAT_BAD_PARAM;
	if (e == NULL)
		return HCA_STAT_EXCEED_LIM;
	memcpy(e->gid, m->dgid, sizeof(e->gid));
	memcpy(e->mac, m->dmac, sizeof(e->mac));
	e->sgid_index = (uint8_t)HCA_NEIGH_SGID_INDEX(flags);
	e->valid = 1;
	return HCA_STAT_OK;
}

bool
hca_gid_is_own(const struct hca_ctxmgt *c, const uint8_t gid[16], uint16_t vlan)
{
	uint16_t id = vlan != 0 ? vlan : HCA_NO_VLAN;

	for (uint32_t i = 0; i < HCA_GID_ENTRIES; i++) {
		const struct hca_gid_entry *g = hca_gid_get(c, i);

		if (g != NULL && g->vlan_id == id && memcmp(g->gid, gid, 16) == 0)
			return true;
	}
	return false;
}

const uint8_t *
hca_addr_mac(const struct hca_ctxmgt *c, const uint8_t gid[16])
{
	for (uint32_t i = 0; i < HCA_GID_ENTRIES; i++) {
		const struct hca_gid_entry *g = hca_gid_get(c, i);

		if (g != NULL && memcmp(g->gid, gid, 16) == 0)
			return g->mac;
	}
	for (uint32_t i = 0; i < HCA_NEIGH_ENTRIES; i++)
		if (c->neigh[i].valid && memcmp(c->neigh[i].gid, gid, 16) == 0)
			return c->neigh[i].mac;
	return NULL;
}
