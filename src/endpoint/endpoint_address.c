/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include "abi_gid_text.h"
#include "endpoint_address.h"
#include "endpoint_log.h"

int
endpoint_set_neighbours(struct hca_driver *drv, const struct endpoint_config *c)
{
	char text[INET6_ADDRSTRLEN];

	for (uint32_t i = 0; i < c->num_neighbours; i++) {
		const struct endpoint_neighbour *n = &c->neighbour[i];
		int err = hca_driver_set_neigh(drv, n->gid, n->mac);

		if (err != 0)
			return endpoint_fail(err, "neighbour %s: %s",
					     hca_gid_text(n->gid, text, sizeof(text)),
					     hca_driver_reason());
	}
	return 0;
}
