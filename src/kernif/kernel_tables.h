/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KERNIF_KERNEL_TABLES_H
#define KERNIF_KERNEL_TABLES_H

/*
 * Decodes rtnetlink messages about one interface and its VLANs: links, addresses, neighbours. Has
 * no sockets: messages are arguments. The caller serializes all calls; callbacks run inside
 * kernel_tables_event().
 */

#include <stdbool.h>
#include <stdint.h>

#include "arp_nd.h"
#include "netlink.h"

#define KERNEL_LINKS_MAX 64u /* the interface (entry 0) and its VLANs */

struct kernel_link {
	uint32_t ifindex;
	uint16_t vlan_id; /* ARP_ND_NO_VLAN: the interface itself */
	uint8_t mac[6];
	bool up;
};

struct kernel_tables_ops {
	/* A link was added or changed; gone: removed. */
	void (*link)(void *arg, const struct kernel_link *l, bool gone);
	/* An own address, in GID form, became usable; gone: removed. */
	void (*address)(void *arg, const struct kernel_link *l, const uint8_t gid[16], bool gone);
	/* The MAC address of a neighbour; NULL: it does not answer, or its entry was removed. */
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
/* Decode any rtnetlink message; messages about other interfaces are ignored. */
void kernel_tables_event(struct kernel_tables *t, const struct nlmsghdr *h);
/* The link with that index, or NULL. */
const struct kernel_link *kernel_tables_link(const struct kernel_tables *t, uint32_t ifindex);
/* The link of a VLAN, or NULL. */
const struct kernel_link *kernel_tables_vlan(const struct kernel_tables *t, uint16_t vlan_id);

#endif
