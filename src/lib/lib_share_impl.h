/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_SHARE_IMPL_H
#define LIB_SHARE_IMPL_H

/* What lib_share.c (table, covers), lib_pool.c (files and their use) and lib_convert.c share. */

#include <pthread.h>

#include "lib_types.h"

#define LIB_PAGE UINT64_C(4096)
#define LIB_HUGE_PAGE UINT64_C(0x200000)

/* A piece is known to a context under a handle of its daemon. */
struct lib_attachment {
	struct lib_attachment *next;
	struct lib_context *ctx;
	uint32_t handle;
};

struct lib_share {
	uint64_t va;
	uint64_t length;
	uint64_t offset;       /* in the file */
	int fd;		       /* GIVEN, FOUND: its own */
	struct lib_file *file; /* others: of the pool; else NULL */
	enum lib_share_kind kind;
	uint32_t page;	/* bytes per page of the file */
	uint32_t users; /* covers */
	struct lib_attachment *attachments;
	struct lib_chunk *chunk; /* QUEUE, ALLOC: small pieces live in it; or NULL */
	void *copy;		 /* while fork() is under way: contents for the child */
};

/* lib_share.c; lock held. */
extern pthread_mutex_t lib_share_lock;
/* The piece that va lies in, or the first one behind it, or NULL. */
struct lib_share *lib_share_behind(uint64_t va);
/* The last piece that ends at va or before, or NULL */
struct lib_share *lib_share_before(uint64_t va);
/* A piece for the table, which takes it over; NULL: no memory. */
struct lib_share *lib_share_enter(const struct lib_share *piece);
/* Detached from all contexts, out of the table, freed. The mapping stays. */
void lib_share_remove(struct lib_share *share);
int lib_share_attach(struct lib_context *ctx, struct lib_share *share);
/* In the child of fork(): the table is empty. */
void lib_share_clear(void);
/* Each in turn, with its index from 0 on; NULL behind the last. */
struct lib_share *lib_share_at(uint32_t i);

/* lib_pool.c; lock held. Room in the pool's file for pages of `page` bytes; it reads as zeros. */
struct lib_file;
int lib_pool_take(uint64_t bytes, uint32_t page, struct lib_file **file, uint64_t *offset);
void lib_pool_give(struct lib_file *file, uint64_t bytes, uint64_t offset);
/* -1: a device has it, and no other can. */
int lib_pool_fd(const struct lib_file *file);
/* A device has mapped it. */
void lib_pool_attached(struct lib_file *file);
/* A place for `bytes` whose address agrees with large pages; PROT_NONE */
void *lib_pool_place(uint64_t bytes);
/* Is it the file of this mapping? */
struct lib_mapping;
bool lib_pool_is(const struct lib_file *file, const struct lib_mapping *m);
/* A chunk that nobody uses any more goes. */
void lib_pool_tidy(struct lib_share *share);
/* In the child of fork(): the files are the parent's. */
void lib_pool_forget(void);

/*
 * lib_convert.c; lock held. Make [va, end) (whole pages, no piece of the table in it up to `end`)
 * shared: what can be done with the mapping at va, at least one page. The new piece, or NULL with
 * lib_fail(): -EOPNOTSUPP: it can be reached where it is.
 */
struct lib_share *lib_share_adopt(uint64_t va, uint64_t end, bool may_convert);
/* Does a region lie there that is reached where it is? */
bool lib_share_foreign(uint64_t va, uint64_t end);
/* No region lies in the piece any more: CONVERTED becomes private again, FOUND is let go. */
void lib_share_release(struct lib_share *share);

#endif
