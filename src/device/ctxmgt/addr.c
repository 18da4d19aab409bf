/* SPDX-License-Identifier: BSD-3-Clause */

/* GID, P_Key and neighbour tables of the port: SET_GID, SET_PKEY, SET_NEIGH. */

#include <string.h>

#include <rte_common.h>

#include "ctxmgt/ctxmgt.h"

static const uint8_t ip4_prefix[12] = {[10] = 0xff, [11] = 0xff};

void
hca_addr_reset(struct hca_ctxmgt *c)
{
	memset(c->gid, 0, sizeof(c->gid));
	memset(c->neigh, 0, sizeof(c->neigh));
	memset(c->pkey, 0, sizeof(c->pkey));
	c->pkey[0] = HCA_PKEY_DEFAULT;
}

void
hca_gid_from_ip4(uint8_t gid[16], const uint8_t ip[4])
{
	memcpy(gid, ip4_prefix, sizeof(ip4_prefix));
	memcpy(gid + 12, ip, 4);
}

/* IPv4-mapped and neither 0.0.0.0, multicast nor broadcast. */
bool
hca_gid_is_ip4(const uint8_t gid[16])
{
	return memcmp(gid, ip4_prefix, sizeof(ip4_prefix)) == 0 && gid[12] != 0 && gid[12] < 224;
}

static bool
mac_is_unicast(const uint8_t mac[6])
{
	static const uint8_t zero[6];

	return (mac[0] & 1) == 0 && memcmp(mac, zero, 6) != 0;
}

int
hca_gid_set(struct hca_ctxmgt *c, const struct hca_mbox_set_gid *m)
{
	uint32_t index = hca_be32_to_cpu(m->index), flags = hca_be32_to_cpu(m->flags);
	struct hca_gid_entry *e;

	if (index >= HCA_GID_ENTRIES)
		return HCA_STAT_BAD_INDEX;
	e = &c->gid[index];
	if (!(flags & HCA_GID_VALID)) {
		memset(e, 0, sizeof(*e));
		return HCA_STAT_OK;
	}
	if (HCA_GID_TYPE(flags) != HCA_GID_ROCE_V2_IPV4 || (flags & HCA_GID_VLAN_PRESENT) ||
	    !hca_gid_is_ip4(m->gid) || !mac_is_unicast(m->mac))
		return HCA_STAT_BAD_PARAM;
	memcpy(e->gid, m->gid, sizeof(e->gid));
	memcpy(e->mac, m->mac, sizeof(e->mac));
	e->valid = 1;
	return HCA_STAT_OK;
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

	if (!hca_gid_is_ip4(m->dgid))
		return HCA_STAT_BAD_PARAM;
	if (HCA_NEIGH_SGID_INDEX(flags) >= HCA_GID_ENTRIES)
		return HCA_STAT_BAD_INDEX;
	e = neigh_slot(c, m->dgid);
	if (!(flags & HCA_NEIGH_VALID)) {
		if (e != NULL)
			memset(e, 0, sizeof(*e));
		return HCA_STAT_OK;
	}
	if (!mac_is_unicast(m->dmac))
		return HCA_STAT_BAD_PARAM;
	if (e == NULL)
		return HCA_STAT_EXCEED_LIM;
	memcpy(e->gid, m->dgid, sizeof(e->gid));
	memcpy(e->mac, m->dmac, sizeof(e->mac));
	e->sgid_index = (uint8_t)HCA_NEIGH_SGID_INDEX(flags);
	e->valid = 1;
	return HCA_STAT_OK;
}

const struct hca_gid_entry *
hca_gid_get(const struct hca_ctxmgt *c, uint32_t index)
{
	return index < HCA_GID_ENTRIES && c->gid[index].valid ? &c->gid[index] : NULL;
}

const uint8_t *
hca_neigh_find(const struct hca_ctxmgt *c, const uint8_t gid[16])
{
	for (unsigned int i = 0; i < HCA_NEIGH_ENTRIES; i++)
		if (c->neigh[i].valid && memcmp(c->neigh[i].gid, gid, 16) == 0)
			return c->neigh[i].mac;
	return NULL;
}
