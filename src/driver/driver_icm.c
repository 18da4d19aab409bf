/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * ICM: the device's tables of contexts in host memory. Each area has an address space chosen by the
 * driver; its memory is part of the arena and is mapped for the device (MAP_ICM, table 3-2-13) in
 * chunks, at first use.
 */

#include <errno.h>
#include <stdlib.h>

#include "driver_types.h"

#define CHUNK_BYTES (256u * 1024)

static uint64_t
area_bytes(const struct driver_icm *icm)
{
	uint64_t bytes = (uint64_t)icm->entry_bytes << icm->log_entries;

	return (bytes + icm->chunk_bytes - 1) / icm->chunk_bytes * icm->chunk_bytes;
}

/* Place all areas from arena_offset on; returns the offset after them. */
uint64_t
driver_icm_layout(struct hca_driver *drv, uint64_t arena_offset)
{
	uint64_t virt = 0;

	for (uint32_t area = 0; area < ICM_AREAS; area++) {
		struct driver_icm *icm = &drv->icm[area];
		uint64_t bytes = (uint64_t)icm->entry_bytes << icm->log_entries;
		uint64_t pages = (bytes + DRIVER_PAGE - 1) / DRIVER_PAGE * DRIVER_PAGE;

		icm->chunk_bytes = pages < CHUNK_BYTES ? (uint32_t)pages : CHUNK_BYTES;
		icm->virt = virt;
		icm->offset = arena_offset;
		icm->chunks = (uint32_t)(area_bytes(icm) / icm->chunk_bytes);
		icm->op_modifier = area == ICM_MPT || area == ICM_MTT ? HCA_ICM_TPT : HCA_ICM_CTX;
		virt += area_bytes(icm);
		arena_offset += area_bytes(icm);
	}
	return arena_offset;
}

int
driver_icm_alloc(struct hca_driver *drv)
{
	for (uint32_t area = 0; area < ICM_AREAS; area++) {
		drv->icm[area].mapped = calloc(drv->icm[area].chunks, 1);
		if (drv->icm[area].mapped == NULL)
			return driver_no_memory("ICM tables", drv->icm[area].chunks);
	}
	return 0;
}

void
driver_icm_free(struct hca_driver *drv)
{
	for (uint32_t area = 0; area < ICM_AREAS; area++) {
		free(drv->icm[area].mapped);
		drv->icm[area].mapped = NULL;
	}
}

static int
map_chunk(struct hca_driver *drv, struct driver_icm *icm, uint64_t chunk)
{
	struct hca_icm_entry *entry = hca_map_icm_entry(driver_mailbox(drv), 0);
	uint64_t offset = chunk * icm->chunk_bytes;
	struct driver_cmd cmd = {
		.op = HCA_CMD_MAP_ICM,
		.op_modifier = icm->op_modifier,
		.in_modifier = 1,
		.in_param = drv->mailbox_in_bus,
	};
	int err;

	entry->virt = hca_cpu_to_be64(icm->virt + offset);
	entry->page = hca_cpu_to_be64(HCA_ICM_MAKE_PAGE(drv->arena_bus + icm->offset + offset,
							icm->chunk_bytes / HCA_ICM_PAGE_SIZE));
	err = driver_command(drv, &cmd);
	if (err == 0)
		icm->mapped[chunk] = 1;
	return err;
}

/* Make sure entries [first, first + count) are mapped. */
int
driver_icm_need(struct hca_driver *drv, enum driver_icm_area area, uint64_t first, uint64_t count)
{
	struct driver_icm *icm = &drv->icm[area];
	uint64_t chunk = first * icm->entry_bytes / icm->chunk_bytes;
	uint64_t last = (first + count - 1) * icm->entry_bytes / icm->chunk_bytes;
	int err = 0;

	for (; chunk <= last && err == 0; chunk++)
		if (icm->mapped[chunk] == 0)
			err = map_chunk(drv, icm, chunk);
	return err;
}
