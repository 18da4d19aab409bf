/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>

#include "ipc_maps.h"

#define LIMIT_FILE "/proc/sys/vm/max_map_count"
#define LIMIT_DEFAULT 65530u
#define OWN_MAPS 4096u	   /* for the daemon itself: EAL, device, libraries */
#define MAPS_PER_CLIENT 8u /* arena, doorbell page, thread, its stack and heap */
#define MAPS_PER_SEGMENT 2u

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
	uint64_t taken = OWN_MAPS + (uint64_t)clients * MAPS_PER_CLIENT, segments;

	if (limit == 0)
		limit = ask_limit();
	segments = limit > taken ? (limit - taken) / MAPS_PER_SEGMENT : 0;
	maps->share = clients != 0 ? (uint32_t)(segments / 2 / clients) : 0;
	maps->common = (uint32_t)(segments - (uint64_t)maps->share * clients);
	maps->used = 0;
}

bool
ipc_maps_take(struct ipc_maps *maps, uint32_t count)
{
	if (count < maps->share)
		return true;
	if (__atomic_fetch_add(&maps->used, 1, __ATOMIC_RELAXED) < maps->common)
		return true;
	__atomic_fetch_sub(&maps->used, 1, __ATOMIC_RELAXED);
	return false;
}

void
ipc_maps_give(struct ipc_maps *maps, uint32_t count, uint32_t left)
{
	uint32_t above = count > maps->share ? count - maps->share : 0;
	uint32_t stay = left > maps->share ? left - maps->share : 0;

	__atomic_fetch_sub(&maps->used, above - stay, __ATOMIC_RELAXED);
}
