/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_ADDRESS_H
#define ENDPOINT_ADDRESS_H

/* The static neighbours. (kernif sets the GIDs.) */

#include "endpoint_config.h"

/* Give the configured neighbours to the driver; 0 or a negative errno (endpoint_fail). */
int endpoint_set_neighbours(struct hca_driver *drv, const struct endpoint_config *c);

#endif
