/* SPDX-License-Identifier: BSD-3-Clause */

#include <arpa/inet.h>
#include <string.h>

#include "abi_addr.h"
#include "endpoint_address.h"
#include "endpoint_log.h"

const char *
endpoint_gid_text(const uint8_t gid[16], char *text, uint32_t size)
{
	if (hca_gid_is_mapped(gid))
		return inet_ntop(AF_INET, gid + 12, text, size);
	return inet_ntop(AF_INET6, gid, text, size);
}

int
endpoint_set_neighbours(struct hca_driver *drv, const struct endpoint_config *c)
{
	char text[INET6_ADDRSTRLEN];

	for (uint32_t i = 0; i < c->num_neighbours; i++) {
		const struct endpoint_neighbour *n = &c->neighbour[i];
		int err = hca_driver_set_neigh(drv, n->gid, n->mac);

		if (err != 0)
			return endpoint_fail(err, "neighbour %s: %s",
					     endpoint_gid_text(n->gid, text, sizeof(text)),
					     hca_driver_reason());
	}
	return 0;
}
