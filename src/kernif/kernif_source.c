/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The source of packets to a destination. The built-in responder has no table of routes: its
 * prefixes and gateways are one.
 */

#include <errno.h>
#include <string.h>

#include "abi_addr.h"
#include "kernif_impl.h"

/* Bits of the prefix of an address, as a GID has them; 0: gid is not in it. */
static unsigned int
prefix_bits(const struct arp_nd_address *a, const uint8_t gid[16])
{
	bool mapped = hca_gid_is_mapped(a->gid);
	unsigned int bits = a->prefix + (mapped ? 96u : 0);

	return mapped == hca_gid_is_mapped(gid) && hca_gid_common_bits(a->gid, gid) >= bits ? bits
											    : 0;
}

/* The own address with the longest prefix that contains gid; vlan_id NULL: of any VLAN. */
static const struct arp_nd_address *
on_link(const struct kernif *k, const uint8_t gid[16], const uint16_t *vlan_id)
{
	const struct arp_nd_address *found = NULL;
	unsigned int best = 0;

	for (uint32_t i = 0; i < k->cfg.num_addresses; i++) {
		const struct arp_nd_address *a = &k->address[i];
		unsigned int bits = prefix_bits(a, gid);

		if (bits <= best || (vlan_id != NULL && a->vlan_id != *vlan_id))
			continue;
		best = bits;
		found = a;
	}
	return found;
}

/* The first gateway of the IP version, on an interface with an address of that version. */
static int
by_gateway(const struct kernif *k, const uint8_t dgid[16])
{
	for (uint32_t i = 0; i < k->cfg.num_gateways; i++) {
		const struct arp_nd_hop *gw = &k->gateway[i];
		const struct arp_nd_address *a;
		int at;

		if (hca_gid_is_mapped(gw->gid) != hca_gid_is_mapped(dgid))
			continue;
		a = on_link(k, gw->gid, &gw->vlan_id);
		if (a != NULL && hca_gid_source_rank(a->gid, dgid) != 0)
			return gid_table_find(&k->gids, a->gid, a->vlan_id);
		at = gid_table_source(&k->gids, gw->vlan_id, dgid);
		if (at >= 0)
			return at;
	}
	return -1;
}

/* Without a gateway every destination is on the link: the untagged one first. */
static int
by_address(const struct kernif *k, const uint8_t dgid[16])
{
	int at = gid_table_source(&k->gids, GID_NO_VLAN, dgid);

	for (uint32_t i = 0; i < k->cfg.num_addresses && at < 0; i++)
		at = gid_table_source(&k->gids, k->address[i].vlan_id, dgid);
	return at;
}

static int
builtin_source(const struct kernif *k, const uint8_t dgid[16], uint32_t scope, uint32_t *sgid_index)
{
	bool local = hca_gid_is_multicast(dgid) || hca_gid_is_link_local(dgid);
	const struct arp_nd_address *a = local ? NULL : on_link(k, dgid, NULL);
	int at = -1;

	if (scope != 0 && scope != k->cfg.ifindex)
		return -ENETUNREACH;
	if (a != NULL)
		at = gid_table_find(&k->gids, a->gid, a->vlan_id);
	else if (!local)
		at = by_gateway(k, dgid);
	if (at < 0)
		at = by_address(k, dgid);
	if (at < 0)
		return -EADDRNOTAVAIL;
	*sgid_index = (uint32_t)at;
	return 0;
}

int
kernif_source(void *arg, const uint8_t dgid[16], uint32_t scope, uint32_t *sgid_index)
{
	struct kernif *k = arg;
	int err = -ESHUTDOWN;

	pthread_mutex_lock(&k->lock);
	if (k->started && !kernif_stopping(k))
		err = k->cfg.kind == KERNIF_TAP ? kernif_kernel_source(k, dgid, scope, sgid_index)
						: builtin_source(k, dgid, scope, sgid_index);
	pthread_mutex_unlock(&k->lock);
	return err;
}
