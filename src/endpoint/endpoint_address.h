/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_ADDRESS_H
#define ENDPOINT_ADDRESS_H

/* Addresses as text, and the static neighbours. (kernif sets the GIDs.) */

#include "endpoint_config.h"

/* Write "10.0.0.1" or "fe80::1" to text, which is returned. */
const char *endpoint_gid_text(const uint8_t gid[16], char *text, uint32_t size);

/* Give the configured neighbours to the driver; 0 or a negative errno (endpoint_fail). */
int endpoint_set_neighbours(struct hca_driver *drv, const struct endpoint_config *c);

#endif
