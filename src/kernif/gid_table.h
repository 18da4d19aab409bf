/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef KERNIF_GID_TABLE_H
#define KERNIF_GID_TABLE_H

/*
 * The addresses in the HCA's GID table. Index 0 may be reserved for the link-local address of the
 * untagged interface; an address keeps its index until it is removed. The caller serializes all
 * calls.
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
	uint32_t ifindex; /* 0: none */
	bool used;
	bool seen; /* added since gid_table_mark() */
};

struct gid_table {
	struct hca_driver *drv;
	struct gid_slot slot[GID_TABLE_MAX];
	uint8_t mac[6];
	uint32_t ifindex; /* of the untagged interface */
	uint32_t first;	  /* lowest index not reserved: 1 with link_local, else 0 */
	uint64_t set, cleared, failed;
};

/*
 * Set up an empty table. ifindex: the untagged kernel interface, 0: no interface. link_local:
 * reserve index 0 and set it from mac. Returns 0 or the driver's error.
 */
int gid_table_init(struct gid_table *t, struct hca_driver *drv, const uint8_t mac[6],
		   uint32_t ifindex, bool link_local);

/* Add an address; one that exists keeps its index. Returns the index or the driver's error. */
int gid_table_add(struct gid_table *t, const uint8_t gid[16], uint16_t vlan_id,
		  const uint8_t mac[6], uint32_t ifindex);
/* Remove an address, if it is in the table. */
void gid_table_remove(struct gid_table *t, const uint8_t gid[16], uint16_t vlan_id);
/* Change the MAC address of all entries of a VLAN (or of the untagged interface). */
void gid_table_set_mac(struct gid_table *t, uint16_t vlan_id, const uint8_t mac[6]);

/* Resynchronize with the kernel's table: mark, add all its addresses, sweep the others. */
void gid_table_mark(struct gid_table *t);
void gid_table_sweep(struct gid_table *t);
/* Remove all addresses of a VLAN, whose interface is gone. */
void gid_table_remove_vlan(struct gid_table *t, uint16_t vlan_id);

/* Index of an address; -1: it is not in the table. */
int gid_table_find(const struct gid_table *t, const uint8_t gid[16], uint16_t vlan_id);
/*
 * Index of the address of a VLAN that suits best as the source of packets to dst, by the addresses
 * alone; -1: none does.
 */
int gid_table_source(const struct gid_table *t, uint16_t vlan_id, const uint8_t dst[16]);
/* An entry, NULL: it is empty. */
const struct gid_slot *gid_table_get(const struct gid_table *t, uint32_t index);

/* The link-local GID made of a MAC address. */
void gid_of_mac(const uint8_t mac[6], uint8_t gid[16]);
bool gid_is_link_local(const uint8_t gid[16]);

#endif
