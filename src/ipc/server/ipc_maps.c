/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>

#include "ipc_maps.h"

#define LIMIT_FILE "/proc/sys/vm/max_map_count"
#define LIMIT_DEFAULT 65530u
#define OWN_MAPS 4096u	   /* for the daemon itself: EAL, device, libraries */
#define MAPS_PER_CLIENT 8u /* arena, doorbell page, thread, its stack and heap */

static uint32_t
ask_limit(void)
{
	FILE *f = fopen(LIMIT_FILE, "re");
	uint32_t limit;

	if (f == NULL)
		return LIMIT_DEFAULT;
	if (fscanf(f, "%u", &limit) != 1)
		limit = LIMIT_DEFAULT;
	fclose(f);
	return limit;
}

void
ipc_maps_init(struct ipc_maps *maps, uint32_t clients, uint32_t limit)
{
	uint64_t taken = OWN_MAPS + (uint64_t)clients * MAPS_PER_CLIENT, rest;

	if (limit == 0)
		limit = ask_limit();
	rest = limit > taken ? limit - taken : 0;
	maps->share = clients != 0 ? (uint32_t)(rest / 2 / clients) : 0;
	maps->common = (uint32_t)(rest - (uint64_t)maps->share * clients);
	maps->used = 0;
}

/* The number of mappings beyond the share */
static uint32_t
maps_above(const struct ipc_maps *maps, uint32_t count)
{
	return count > maps->share ? count - maps->share : 0;
}

bool
ipc_maps_change(struct ipc_maps *maps, uint32_t from, uint32_t to)
{
	uint32_t before = maps_above(maps, from), after = maps_above(maps, to);

	if (after <= before) {
		__atomic_fetch_sub(&maps->used, before - after, __ATOMIC_RELAXED);
		return true;
	}
	if (__atomic_add_fetch(&maps->used, after - before, __ATOMIC_RELAXED) <= maps->common)
		return true;
	__atomic_fetch_sub(&maps->used, after - before, __ATOMIC_RELAXED);
	return false;
}
