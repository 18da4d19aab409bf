/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DRIVER_ADDR_H
#define DRIVER_ADDR_H

/*
 * Addresses of an HCA: its GID table, neighbours, the port, the way to a destination. Part of
 * driver.h. Any thread. GIDs are in network order; a MAC address is in the order of the wire.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_ops.h"

struct hca_driver;

/**
 * Resolves a destination to a MAC address. Called by the thread whose call needs the address,
 * without locks of the driver: it may block, and may call hca_driver_set_neigh() and
 * hca_driver_move_neigh(). Calls of other threads proceed. The message of the call contains the
 * error.
 *
 * @param arg
 *   resolve_arg of the configuration.
 * @param sgid_index
 *   The GID entry to send from.
 * @param dgid
 *   The destination.
 * @param dmac
 *   Set to its MAC address, or that of the next hop.
 * @return
 *   - 0: resolved.
 *   - -ENETUNREACH: no route to it.
 *   - -EHOSTUNREACH: the next hop does not answer.
 *   - another negative errno.
 */
typedef int (*hca_resolve_fn)(void *arg, uint32_t sgid_index, const uint8_t dgid[16],
			      uint8_t dmac[6]);

/**
 * Chooses the GID entry that packets to a destination have as their source, by the routes of the
 * host. Callers and locks as those of hca_resolve_fn.
 *
 * @param arg
 *   resolve_arg of the configuration.
 * @param dgid
 *   The destination.
 * @param scope
 *   The kernel interface of a link-local destination; 0: any.
 * @param sgid_index
 *   Set to the index of the entry.
 * @return
 *   - 0: found.
 *   - -ENETUNREACH: no route by this HCA's port.
 *   - -EADDRNOTAVAIL: the interface of the route has no address of that IP version.
 *   - another negative errno.
 */
typedef int (*hca_source_fn)(void *arg, const uint8_t dgid[16], uint32_t scope,
			     uint32_t *sgid_index);

/**
 * Set an entry of the GID table. Clients get the event GID_CHANGE if it differs from the former
 * one.
 *
 * @param drv
 *   The driver.
 * @param index
 *   Less than hca_driver_gid_entries().
 * @param gid
 *   The GID.
 * @param mac
 *   MAC address of the port, for packets from this GID.
 * @param vlan_id
 *   VLAN of the GID, 0xffff: none.
 * @param ifindex
 *   The kernel interface that has the address or is behind the port, for clients that ask; 0: none.
 * @return
 *   - 0: set.
 *   - -EINVAL: no such index, or the device refuses the entry.
 *   - -EIO: the device is dead.
 */
int hca_driver_set_gid_of(struct hca_driver *drv, uint32_t index, const uint8_t gid[16],
			  const uint8_t mac[6], uint16_t vlan_id, uint32_t ifindex);

/**
 * hca_driver_set_gid_of() without a kernel interface.
 *
 * @param drv
 *   The driver.
 * @param index
 *   Less than hca_driver_gid_entries().
 * @param gid
 *   The GID.
 * @param mac
 *   MAC address of the port.
 * @param vlan_id
 *   VLAN of the GID, 0xffff: none.
 * @return
 *   As hca_driver_set_gid_of().
 */
static inline int
hca_driver_set_gid(struct hca_driver *drv, uint32_t index, const uint8_t gid[16],
		   const uint8_t mac[6], uint16_t vlan_id)
{
	return hca_driver_set_gid_of(drv, index, gid, mac, vlan_id, 0);
}

/**
 * Send the event GID_CHANGE to all clients though the table has not changed: a fault that tests
 * inject.
 *
 * @param drv
 *   The driver.
 */
void hca_driver_gid_event(struct hca_driver *drv);

/**
 * Clear an entry of the GID table. QPs that use the address are not changed.
 *
 * @param drv
 *   The driver.
 * @param index
 *   Less than hca_driver_gid_entries(); an empty entry is no error.
 * @return
 *   - 0: empty.
 *   - -EINVAL: no such index.
 *   - -EIO: the device is dead.
 */
int hca_driver_clear_gid(struct hca_driver *drv, uint32_t index);

/**
 * Enter a static neighbour, which answers and claims of others never change: a destination, or the
 * next hop of destinations.
 *
 * @param drv
 *   The driver.
 * @param gid
 *   Its address.
 * @param mac
 *   Its MAC address.
 * @return
 *   - 0: entered.
 *   - -ENOMEM: the table has DRIVER_MAX_NEIGH entries.
 *   - -EIO: the device is dead.
 */
int hca_driver_set_neigh(struct hca_driver *drv, const uint8_t gid[16], const uint8_t mac[6]);

/**
 * The MAC address of a static neighbour.
 *
 * @param drv
 *   The driver.
 * @param gid
 *   Its address.
 * @param mac
 *   Set to its MAC address, if there is an entry.
 * @return
 *   Whether the table has the address.
 */
bool hca_driver_get_neigh(struct hca_driver *drv, const uint8_t gid[16], uint8_t mac[6]);

/**
 * Set a new MAC address of a neighbour: connected QPs use it at once. Unlike
 * hca_driver_set_neigh() this does not add it to the table: config.resolve is called again next
 * time. Static neighbours are not changed.
 *
 * @param drv
 *   The driver.
 * @param sgid_index
 *   A GID entry on the VLAN of the neighbour.
 * @param gid
 *   Its address.
 * @param mac
 *   Its MAC address.
 * @return
 *   - 0: QPs are changed, or the neighbour is static.
 *   - -EINVAL: the device refuses it.
 *   - -EIO: the device is dead.
 */
int hca_driver_move_neigh(struct hca_driver *drv, uint32_t sgid_index, const uint8_t gid[16],
			  const uint8_t mac[6]);

/**
 * Set the attributes of the port. Its state is replaced when the device reports a change, before
 * or after this call.
 *
 * @param drv
 *   The driver.
 * @param port
 *   The attributes, which are copied.
 * @return
 *   0.
 */
int hca_driver_set_port(struct hca_driver *drv, const struct hca_ctl_port *port);

/**
 * Attributes of the port.
 *
 * @param drv
 *   The driver.
 * @param out
 *   Set to the attributes.
 */
void hca_driver_query_port(struct hca_driver *drv, struct hca_ctl_port *out);

/**
 * Fill in the MAC addresses of a path, as the operation RESOLVE.
 *
 * @param drv
 *   The driver.
 * @param ask
 *   Whether config.resolve is called for an address that is not known; it may block.
 * @param ah
 *   In: sgid_index and dgid. Out: also smac and dmac.
 * @return
 *   - 0: known.
 *   - -EINVAL: the GID entry is empty, or of another IP version than the destination.
 *   - -EHOSTUNREACH: no MAC address is known; hca_driver_reason() tells why.
 */
int hca_driver_resolve(struct hca_driver *drv, bool ask, struct hca_ctl_ah *ah);

/**
 * Find the GID entry to send to a destination from. An own address is reached from itself. Without
 * config.source: the entry of the same IP version with the longest common prefix; a link-local one
 * only to a link-local destination. May block as config.source does; no lock may be held.
 *
 * @param drv
 *   The driver.
 * @param dgid
 *   The destination.
 * @param scope
 *   The kernel interface of a link-local destination; 0: any.
 * @param sgid_index
 *   Set to the index of the entry.
 * @return
 *   - 0: found.
 *   - -ENETUNREACH: no route to it.
 *   - -EADDRNOTAVAIL: no entry can be the source.
 *   - another error of config.source.
 */
int hca_driver_source(struct hca_driver *drv, const uint8_t dgid[16], uint32_t scope,
		      uint32_t *sgid_index);

/**
 * Read an entry of the GID table.
 *
 * @param drv
 *   The driver.
 * @param index
 *   Less than hca_driver_gid_entries().
 * @param out
 *   Set to the entry; valid 0: it is empty.
 * @return
 *   0, or -EINVAL: no such index.
 */
int hca_driver_query_gid(struct hca_driver *drv, uint32_t index, struct hca_ctl_gid *out);

/**
 * Size of the GID table.
 *
 * @param drv
 *   The driver.
 * @return
 *   Number of entries, with empty ones.
 */
uint32_t hca_driver_gid_entries(const struct hca_driver *drv);

#endif
