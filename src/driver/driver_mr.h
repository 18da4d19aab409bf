/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DRIVER_MR_H
#define DRIVER_MR_H

/*
 * The steps of a registration, for driver_mr.c (register) and driver_rereg.c (change). The lock is
 * held; every step leaves nothing behind when it fails.
 */

#include "driver_types.h"

/* The pages of a region: a list, or as many as it needs from its own address on */
struct page_source {
	const uint64_t *list; /* NULL: consecutive */
	uint64_t first;
	uint64_t count;
	uint32_t log;
};

uint32_t driver_log2_up(uint64_t n);

/* Range and access flags. */
int driver_mr_check(const struct hca_ctl_mr *mr);
/* Judges the request and finds its pages. */
int driver_mr_pages(struct hca_driver *drv, const struct hca_client *owner,
		    const struct hca_ctl_mr *mr, const uint64_t *list, struct page_source *pages);
void driver_mr_describe(struct driver_mr *region, const struct hca_ctl_mr *mr,
			const struct page_source *pages);
int driver_mr_take_mtts(struct hca_driver *drv, uint32_t log, uint32_t *mtt);
int driver_mr_write_mtts(struct hca_driver *drv, uint32_t first, const struct page_source *pages);
/* SW2HW_MPT of what region describes. */
int driver_mr_write_mpt(struct hca_driver *drv, const struct driver_mr *region);

/* A region the client registered; NULL and a reason. */
struct driver_mr *driver_mr_of(struct hca_client *client, uint32_t lkey);

#endif
