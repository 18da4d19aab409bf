/* SPDX-License-Identifier: BSD-3-Clause */

/* The source of packets to a destination: by the routes of the host, or by the addresses alone. */

#include <errno.h>
#include <string.h>

#include "abi_gid_text.h"
#include "driver_types.h"

/* The entry that has an address of this HCA; false: not found. */
static bool
source_own(const struct hca_driver *drv, const uint8_t dgid[16], uint32_t scope, uint32_t *index)
{
	for (uint32_t i = 0; i < DRIVER_MAX_GIDS; i++) {
		const struct driver_gid *g = &drv->gids[i];

		if (!g->valid || memcmp(g->gid, dgid, sizeof(g->gid)) != 0 ||
		    (scope != 0 && g->ifindex != 0 && g->ifindex != scope))
			continue;
		*index = i;
		return true;
	}
	return false;
}

static int
source_nearest(const struct hca_driver *drv, const uint8_t dgid[16], uint32_t scope,
	       uint32_t *index)
{
	unsigned int best = 0;

	for (uint32_t i = 0; i < DRIVER_MAX_GIDS; i++) {
		const struct driver_gid *g = &drv->gids[i];
		unsigned int rank = g->valid ? hca_gid_source_rank(g->gid, dgid) : 0;

		if (rank <= best || (scope != 0 && g->ifindex != 0 && g->ifindex != scope))
			continue;
		best = rank;
		*index = i;
	}
	return best != 0 ? 0 : -EADDRNOTAVAIL;
}

/* The table may have changed while config.source was asked. */
static bool
source_fits(const struct hca_driver *drv, uint32_t index, const uint8_t dgid[16])
{
	return index < DRIVER_MAX_GIDS && drv->gids[index].valid &&
	       hca_gid_is_mapped(drv->gids[index].gid) == hca_gid_is_mapped(dgid);
}

static int
source_fail(int err, const uint8_t dgid[16])
{
	char to[INET6_ADDRSTRLEN];

	return driver_fail(err, "no source to reach %s: %s", hca_gid_text(dgid, to, sizeof(to)),
			   err == -ENETUNREACH	   ? "there is no route by this port"
			   : err == -EADDRNOTAVAIL ? "no GID is of its IP version and scope"
						   : strerror(-err));
}

int
hca_driver_source(struct hca_driver *drv, const uint8_t dgid[16], uint32_t scope,
		  uint32_t *sgid_index)
{
	bool routes = drv->config.source != NULL;
	int err = 0;

	driver_lock_take(&drv->lock);
	if (source_own(drv, dgid, scope, sgid_index))
		routes = false;
	else if (!routes)
		err = source_nearest(drv, dgid, scope, sgid_index);
	driver_lock_give(&drv->lock);
	if (!routes)
		return err == 0 ? 0 : source_fail(err, dgid);
	err = drv->config.source(drv->config.resolve_arg, dgid, scope, sgid_index);
	driver_lock_take(&drv->lock);
	if (err == 0 && !source_fits(drv, *sgid_index, dgid))
		err = -EADDRNOTAVAIL;
	driver_lock_give(&drv->lock);
	return err == 0 ? 0 : source_fail(err, dgid);
}
