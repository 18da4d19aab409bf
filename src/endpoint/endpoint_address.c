/* SPDX-License-Identifier: BSD-3-Clause */

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "endpoint_address.h"
#include "endpoint_log.h"

const char *
endpoint_gid_text(const uint8_t gid[16], char *text, uint32_t size)
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};

	if (memcmp(gid, v4, sizeof(v4)) == 0)
		return inet_ntop(AF_INET, gid + 12, text, size);
	return inet_ntop(AF_INET6, gid, text, size);
}

int
endpoint_set_neighbours(struct hca_driver *drv, const struct endpoint_config *c)
{
	int err = 0;

	for (uint32_t i = 0; i < c->num_neighbours && err == 0; i++) {
		err = hca_driver_set_neigh(drv, c->neighbour[i].gid, c->neighbour[i].mac);
		if (err != 0)
			err = endpoint_fail(err, "neighbour: %s", hca_driver_reason());
	}
	return err;
}
