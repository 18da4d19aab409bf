/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KERNIF_TAP_H
#define KERNIF_TAP_H

/*
 * A TAP interface of the kernel, configured over netlink, with the VLAN interfaces that its
 * addresses need.
 */

#include <stdbool.h>
#include <stdint.h>

#include "arp_nd.h"
#include "netlink.h"

struct tap {
	int fd; /* non-blocking; one Ethernet frame per read or write */
	uint32_t ifindex;
	char name[16];
};

/*
 * Open or create the interface. exclusive: fail if it exists. 0 or negative errno (kernif_reason).
 */
int tap_open(struct tap *t, const char *name, bool exclusive);
/* Close the interface; the kernel removes it unless it is persistent. */
void tap_close(struct tap *t);
/* Set the carrier of the interface. */
void tap_carrier(const struct tap *t, bool on);

int tap_set_link(struct nl *s, uint32_t ifindex, const uint8_t mac[6], uint32_t mtu);
int tap_set_up(struct nl *s, uint32_t ifindex);
/* Add an address to the interface, or to its VLAN interface, which is created if missing. */
int tap_add_address(struct nl *s, const struct tap *t, const struct arp_nd_address *a);

#endif
