/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_ADDRESS_H
#define ENDPOINT_ADDRESS_H

/* Addresses as text, and the static neighbours. GIDs are set by kernif. */

#include "endpoint_config.h"

/* "10.0.0.1" or "fe80::1" */
const char *endpoint_gid_text(const uint8_t gid[16], char *text, uint32_t size);

/* 0 or negative errno (endpoint_fail). */
int endpoint_set_neighbours(struct hca_driver *drv, const struct endpoint_config *c);

#endif
