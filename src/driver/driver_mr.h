/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DRIVER_MR_H
#define DRIVER_MR_H

/*
 * The steps of a registration, used by driver_mr.c (register) and driver_rereg.c (change). The lock
 * is held; a step that fails leaves nothing behind.
 */

#include "driver_types.h"

/* The pages of a region: a list, or consecutive ones from its address on */
struct page_source {
	const uint64_t *list; /* NULL: consecutive */
	uint64_t first;
	uint64_t count;
	uint32_t log;
};

uint32_t driver_log2_up(uint64_t n);

/* Check range and access flags. */
int driver_mr_check(const struct hca_ctl_mr *mr);
/* Check the request and find its pages. */
int driver_mr_pages(struct hca_driver *drv, const struct hca_client *owner,
		    const struct hca_ctl_mr *mr, const uint64_t *list, struct page_source *pages);
void driver_mr_describe(struct driver_mr *region, const struct hca_ctl_mr *mr,
			const struct page_source *pages);
/* Translation entries of a region of these pages, which driver_mr_pages() has judged. */
uint32_t driver_mr_entries(uint64_t pages);
int driver_mr_take_mtts(struct hca_driver *drv, uint32_t count, uint32_t *mtt);
int driver_mr_write_mtts(struct hca_driver *drv, uint32_t first, const struct page_source *pages);
/* Execute SW2HW_MPT with the values of region. */
int driver_mr_write_mpt(struct hca_driver *drv, const struct driver_mr *region);

/* A region that the client registered; NULL with a reason. */
struct driver_mr *driver_mr_of(struct hca_client *client, uint32_t lkey);

#endif
