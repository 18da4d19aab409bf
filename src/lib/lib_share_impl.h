/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_SHARE_IMPL_H
#define LIB_SHARE_IMPL_H

/* Shared by lib_share.c (table, covers), lib_pool.c (files and allocation) and lib_convert.c. */

#include <pthread.h>

#include "lib_types.h"

#define LIB_PAGE UINT64_C(4096)
#define LIB_HUGE_PAGE UINT64_C(0x200000)

/* The handle of a piece at the daemon of a context. */
struct lib_attachment {
	struct lib_attachment *next;
	struct lib_context *ctx;
	uint32_t handle;
};

struct lib_share {
	uint64_t va;
	uint64_t length;
	uint64_t offset;       /* in the file */
	int fd;		       /* GIVEN, FOUND: a duplicate */
	struct lib_file *file; /* others: file of the pool; else NULL */
	enum lib_share_kind kind;
	uint32_t page;	/* bytes per page of the file */
	uint32_t users; /* number of covers */
	struct lib_attachment *attachments;
	struct lib_chunk *chunk; /* QUEUE, ALLOC: allocation of small pieces in it; or NULL */
};

/* lib_share.c; called with the lock held. */
extern pthread_mutex_t lib_share_lock;
/* The piece that contains va, or the first one after it, or NULL. */
struct lib_share *lib_share_behind(uint64_t va);
/* The last piece that ends at or before va, or NULL. */
struct lib_share *lib_share_before(uint64_t va);
/* Add a piece to the table, which takes over its descriptor; NULL: out of memory. */
struct lib_share *lib_share_enter(const struct lib_share *piece);
/* Detach a piece from all contexts, remove it from the table and free it. The mapping stays. */
void lib_share_remove(struct lib_share *share);
int lib_share_attach(struct lib_context *ctx, struct lib_share *share);
/* Empty the table, in the child of fork(). */
void lib_share_clear(void);
/* The i-th piece by address, from 0; NULL after the last. */
struct lib_share *lib_share_at(uint32_t i);

/*
 * lib_pool.c; called with the lock held. Allocate zeroed memory with pages of `page` bytes in a
 * file of the pool.
 */
struct lib_file;
int lib_pool_take(uint64_t bytes, uint32_t page, struct lib_file **file, uint64_t *offset);
void lib_pool_give(struct lib_file *file, uint64_t bytes, uint64_t offset);
/* Descriptor of the file; -1: a device has sealed it, so that no other one can map it. */
int lib_pool_fd(const struct lib_file *file);
/* Take nothing more from the file: a device may still access what is given back to it. */
void lib_pool_retire(struct lib_file *file);
/* Note that a device has mapped the file. */
void lib_pool_attached(struct lib_file *file);
/* Whether the mapping is of this file. */
struct lib_mapping;
bool lib_pool_is(const struct lib_file *file, const struct lib_mapping *m);
/* Free a chunk that is not used any more. */
void lib_pool_tidy(struct lib_share *share);
/* Forget the files, which are the parent's, in the child of fork(). */
void lib_pool_forget(void);

/*
 * lib_convert.c; called with the lock held. Share memory from va on: as much of [va, end) as lies
 * in the mapping at va, at least a page; no piece of the table lies in it. Returns the new piece,
 * or NULL with lib_fail(); -EOPNOTSUPP: use it as foreign memory.
 */
struct lib_share *lib_share_adopt(uint64_t va, uint64_t end, bool may_convert);
/* Whether a region uses memory there as foreign memory. */
bool lib_share_foreign(uint64_t va, uint64_t end);
/* The last region in the piece is gone: convert CONVERTED back, remove FOUND. */
void lib_share_release(struct lib_share *share);

#endif
