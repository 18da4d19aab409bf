/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KERNIF_DEST_TABLE_H
#define KERNIF_DEST_TABLE_H

/*
 * Destinations that were asked for, and the next hop each goes by: when that gets another MAC
 * address, the QPs that send there are told. The caller serializes.
 */

#include <stdbool.h>
#include <stdint.h>

#include "arp_nd.h"
#include "driver.h"

#define DEST_TABLE_MAX 2048u /* then the one asked for longest ago is forgotten */

struct dest {
	uint8_t dgid[16];
	uint8_t mac[6];
	uint8_t used;
	uint8_t lost; /* how often in a row nobody answered at the hop */
	uint32_t sgid_index;
	struct arp_nd_hop hop;
	uint64_t asked; /* order of questions */
};

struct dest_table {
	struct dest dest[DEST_TABLE_MAX];
	uint32_t end; /* none from here on */
	uint64_t questions;
};

void dest_table_note(struct dest_table *t, uint32_t sgid_index, const uint8_t dgid[16],
		     const struct arp_nd_hop *hop, const uint8_t mac[6]);
/* So often in a row: it is not looked for any more, until somebody asks or it is heard of. */
#define DEST_LOST_MAX 3u

/* Where destinations by that hop are sent, NULL: there are none; *direct: one is the hop itself. */
const uint8_t *dest_table_mac(const struct dest_table *t, const struct arp_nd_hop *hop,
			      bool *direct);
/* The hop is there now; returns the number of destinations that move. */
unsigned int dest_table_moved(struct dest_table *t, struct hca_driver *drv,
			      const struct arp_nd_hop *hop, const uint8_t mac[6]);
/* Nobody answers there. */
void dest_table_lost(struct dest_table *t, const struct arp_nd_hop *hop);

#endif
