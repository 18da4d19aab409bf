/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KERNIF_DEST_TABLE_H
#define KERNIF_DEST_TABLE_H

/*
 * Destinations that were resolved, with their next hops. When a next hop gets a new MAC address,
 * the driver updates the QPs that send to its destinations. The caller serializes all calls.
 */

#include <stdbool.h>
#include <stdint.h>

#include "arp_nd.h"
#include "driver.h"

#define DEST_TABLE_MAX 2048u /* a new one then replaces the least recently resolved */

struct dest {
	uint8_t dgid[16];
	uint8_t mac[6];
	uint8_t used;
	uint8_t lost; /* successive failures to resolve the next hop */
	uint32_t sgid_index;
	struct arp_nd_hop hop;
	uint64_t asked; /* sequence number of the last resolution */
};

struct dest_table {
	struct dest dest[DEST_TABLE_MAX];
	uint32_t end; /* entries from here on are unused */
	uint64_t questions;
};

/* Record that (sgid_index, dgid) was resolved to hop at mac. */
void dest_table_note(struct dest_table *t, uint32_t sgid_index, const uint8_t dgid[16],
		     const struct arp_nd_hop *hop, const uint8_t mac[6]);
/* After this number of successive failures a hop is not refreshed until it is resolved again. */
#define DEST_LOST_MAX 3u

/*
 * The MAC address in use for a hop, NULL: no destination uses it. *direct: the hop itself is a
 * destination.
 */
const uint8_t *dest_table_mac(const struct dest_table *t, const struct arp_nd_hop *hop,
			      bool *direct);
/* Set the MAC address of a hop; returns the number of destinations that changed. */
unsigned int dest_table_moved(struct dest_table *t, struct hca_driver *drv,
			      const struct arp_nd_hop *hop, const uint8_t mac[6]);
/* Count a failure to resolve the hop. */
void dest_table_lost(struct dest_table *t, const struct arp_nd_hop *hop);

#endif
