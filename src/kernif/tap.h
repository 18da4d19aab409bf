/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KERNIF_TAP_H
#define KERNIF_TAP_H

/*
 * A TAP interface of the kernel: made, configured over netlink, with VLANs where addresses need
 * them.
 */

#include <stdbool.h>
#include <stdint.h>

#include "arp_nd.h"
#include "netlink.h"

struct tap {
	int fd; /* non-blocking, one Ethernet frame per read or write */
	uint32_t ifindex;
	char name[16];
};

/* exclusive: an interface of that name must not exist. 0 or negative errno (kernif_reason). */
int tap_open(struct tap *t, const char *name, bool exclusive);
/* The interface goes too, unless it is a persistent one. */
void tap_close(struct tap *t);
void tap_carrier(const struct tap *t, bool on);

int tap_set_link(struct nl *s, uint32_t ifindex, const uint8_t mac[6], uint32_t mtu);
int tap_set_up(struct nl *s, uint32_t ifindex);
/* On the interface, or on its VLAN, which is made where it is missing. */
int tap_add_address(struct nl *s, const struct tap *t, const struct arp_nd_address *a);

#endif
