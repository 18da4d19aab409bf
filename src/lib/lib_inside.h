/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_INSIDE_H
#define LIB_INSIDE_H

/*
 * Functions of this library for other libraries of this tree: they are hidden, so they are handed
 * over in a table. Both libraries are of one release; `bytes` lets the other see that they are not.
 */

#include "lib_types.h"

struct lib_inside {
	size_t bytes; /* of this table, and of struct lib_context: another release differs */
	size_t context_bytes;
	int (*failed)(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));
	const char *(*reason)(void);
	int (*call)(struct lib_context *ctx, enum hca_ctl_op op, const void *request, void *answer,
		    struct hca_ctl_extra *extra);
	int (*needs)(const struct lib_context *ctx, enum hca_ctl_feature feature);
	int (*dead)(const struct lib_context *ctx);
	void *(*map)(struct lib_context *ctx, size_t bytes);
	void (*unmap)(struct lib_context *ctx, void *mem, size_t bytes);
	/* lib_doorbell.h; they are inline there */
	int (*doorbell_take)(struct lib_context *ctx, uint32_t *number);
	void (*doorbell_fill)(struct lib_uar *uar, uint32_t number, uint64_t word);
	void (*doorbell_mark)(struct lib_uar *uar, uint32_t qpn);
	void (*cq_lock)(struct lib_cq *cq);
	void (*cq_unlock)(struct lib_cq *cq);
	/* for an empty poll: yield to the worker that the program waits for */
	void (*wait_empty)(void);
	void (*wait_over)(void);
	void (*wait_woke)(struct lib_uar *uar); /* after a post, if uar->woke */
};

SOFTHCA_API const struct lib_inside *softhca_inside(void);

#endif
