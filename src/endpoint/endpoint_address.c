/* SPDX-License-Identifier: BSD-3-Clause */

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "endpoint_address.h"
#include "endpoint_log.h"

void
endpoint_link_local(const uint8_t mac[6], uint8_t gid[16])
{
	const uint8_t g[16] = {0xfe,   0x80,   0,      0,    0,	   0,	   0,	   0,
			       mac[0], mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};

	memcpy(gid, g, sizeof(g));
	gid[8] ^= 2;
}

bool
endpoint_mac_of_link_local(const uint8_t gid[16], uint8_t mac[6])
{
	static const uint8_t prefix[8] = {0xfe, 0x80};

	if (memcmp(gid, prefix, sizeof(prefix)) != 0 || gid[11] != 0xff || gid[12] != 0xfe)
		return false;
	memcpy(mac, gid + 8, 3);
	memcpy(mac + 3, gid + 13, 3);
	mac[0] ^= 2;
	return (mac[0] & 1) == 0;
}

const char *
endpoint_gid_text(const uint8_t gid[16], char *text, uint32_t size)
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};

	if (memcmp(gid, v4, sizeof(v4)) == 0)
		return inet_ntop(AF_INET, gid + 12, text, size);
	return inet_ntop(AF_INET6, gid, text, size);
}

static int
set_gid(struct hca_driver *drv, uint32_t index, const struct endpoint_address *a,
	const uint8_t mac[6])
{
	char text[INET6_ADDRSTRLEN];
	int err = hca_driver_set_gid(drv, index, a->gid, mac, a->vlan_id);

	if (err == 0)
		return 0;
	return endpoint_fail(err, "address %s: %s", endpoint_gid_text(a->gid, text, sizeof(text)),
			     hca_driver_reason());
}

int
endpoint_set_addresses(struct hca_driver *drv, const struct endpoint_config *c,
		       const uint8_t mac[6])
{
	struct endpoint_address own = {.prefix = 64, .vlan_id = ENDPOINT_NO_VLAN};
	uint32_t index = 0;
	int err = 0;

	endpoint_link_local(mac, own.gid);
	if (c->link_local)
		err = set_gid(drv, index++, &own, mac);
	for (uint32_t i = 0; i < c->num_addresses && err == 0; i++)
		err = set_gid(drv, index++, &c->address[i], mac);
	for (uint32_t i = 0; i < c->num_neighbours && err == 0; i++) {
		err = hca_driver_set_neigh(drv, c->neighbour[i].gid, c->neighbour[i].mac);
		if (err != 0)
			err = endpoint_fail(err, "neighbour: %s", hca_driver_reason());
	}
	return err;
}

int
endpoint_resolve_plain(void *arg, uint32_t sgid_index, const uint8_t dgid[16], uint8_t dmac[6])
{
	(void)arg;
	(void)sgid_index;
	return endpoint_mac_of_link_local(dgid, dmac) ? 0 : -EHOSTUNREACH;
}
