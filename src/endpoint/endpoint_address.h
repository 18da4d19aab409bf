/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_ADDRESS_H
#define ENDPOINT_ADDRESS_H

/* Addresses of the port as GIDs, and next hops that follow from an address alone. */

#include "endpoint_config.h"

/* fe80::/64 with the EUI-64 of a MAC address. */
void endpoint_link_local(const uint8_t mac[6], uint8_t gid[16]);
/* The MAC address inside such an address; false: it was made otherwise. */
bool endpoint_mac_of_link_local(const uint8_t gid[16], uint8_t mac[6]);

/* "10.0.0.1" or "fe80::1" */
const char *endpoint_gid_text(const uint8_t gid[16], char *text, uint32_t size);

/*
 * GIDs and neighbours of the configuration: the link-local address first, then the others as they
 * are written. 0 or negative errno (endpoint_fail).
 */
int endpoint_set_addresses(struct hca_driver *drv, const struct endpoint_config *c,
			   const uint8_t mac[6]);

/* hca_resolve_fn without a kernel interface and without a responder. */
int endpoint_resolve_plain(void *arg, uint32_t sgid_index, const uint8_t dgid[16], uint8_t dmac[6]);

#endif
