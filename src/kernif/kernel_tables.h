/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KERNIF_KERNEL_TABLES_H
#define KERNIF_KERNEL_TABLES_H

/*
 * What rtnetlink says about one interface and its VLANs, taken apart: links, addresses, neighbours.
 * No sockets here: messages come as arguments.
 */

#include <stdbool.h>
#include <stdint.h>

#include "arp_nd.h"
#include "netlink.h"

#define KERNEL_LINKS_MAX 64u /* the interface, first, and its VLANs */

struct kernel_link {
	uint32_t ifindex;
	uint16_t vlan_id; /* ARP_ND_NO_VLAN: the interface itself */
	uint8_t mac[6];
	bool up;
};

struct kernel_tables_ops {
	/* A link has come or changed; gone: it is no more. */
	void (*link)(void *arg, const struct kernel_link *l, bool gone);
	/* An address of ours, ready to be used, in GID form. */
	void (*address)(void *arg, const struct kernel_link *l, const uint8_t gid[16], bool gone);
	/* Where a neighbour is; mac NULL: nobody answers, or it is forgotten. */
	void (*neighbour)(void *arg, const struct arp_nd_hop *hop, const uint8_t *mac);
	void *arg;
};

struct kernel_tables {
	struct kernel_tables_ops ops;
	uint32_t ifindex;
	struct kernel_link link[KERNEL_LINKS_MAX];
	uint32_t num_links;
};

void kernel_tables_init(struct kernel_tables *t, uint32_t ifindex,
			const struct kernel_tables_ops *ops);
/* Any message of rtnetlink; those about other interfaces are passed over. */
void kernel_tables_event(struct kernel_tables *t, const struct nlmsghdr *h);
/* NULL: no such VLAN. */
const struct kernel_link *kernel_tables_vlan(const struct kernel_tables *t, uint16_t vlan_id);

#endif
