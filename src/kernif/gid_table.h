/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KERNIF_GID_TABLE_H
#define KERNIF_GID_TABLE_H

/*
 * Which address stands at which index of the HCA's GID table. Index 0 is (where that is wanted) the
 * link-local address of the untagged interface, always there; the others are stable while their
 * address stays. The caller serializes.
 */

#include <stdbool.h>
#include <stdint.h>

#include "driver.h"

#define GID_TABLE_MAX 256u
#define GID_NO_VLAN 0xffffu

struct gid_slot {
	uint8_t gid[16];
	uint8_t mac[6];
	uint16_t vlan_id;
	bool used;
	bool seen; /* since gid_table_mark() */
};

struct gid_table {
	struct hca_driver *drv;
	struct gid_slot slot[GID_TABLE_MAX];
	uint8_t mac[6];
	uint32_t first; /* index of the first that is not reserved: 1 with link_local, 0 without */
	uint64_t set, cleared, failed;
};

/* link_local: index 0 is set, and kept for it. 0 or the driver's error. */
int gid_table_init(struct gid_table *t, struct hca_driver *drv, const uint8_t mac[6],
		   bool link_local);

/* Its index, or the driver's error. An address that is there already keeps its index. */
int gid_table_add(struct gid_table *t, const uint8_t gid[16], uint16_t vlan_id,
		  const uint8_t mac[6]);
void gid_table_remove(struct gid_table *t, const uint8_t gid[16], uint16_t vlan_id);
/* The interface of that VLAN (or the untagged one) has another MAC address. */
void gid_table_set_mac(struct gid_table *t, uint16_t vlan_id, const uint8_t mac[6]);

/* Reading the kernel's table anew: mark, add what is there, sweep what is not. */
void gid_table_mark(struct gid_table *t);
void gid_table_sweep(struct gid_table *t);
/* All of a VLAN: its interface is gone. */
void gid_table_remove_vlan(struct gid_table *t, uint16_t vlan_id);

/* NULL: empty. */
const struct gid_slot *gid_table_get(const struct gid_table *t, uint32_t index);

void gid_of_mac(const uint8_t mac[6], uint8_t gid[16]);
bool gid_is_link_local(const uint8_t gid[16]);

#endif
