/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_SHARE_IMPL_H
#define LIB_SHARE_IMPL_H

/*
 * Shared by lib_share.c (the table), lib_cover.c (memory of regions), lib_pool.c (memory that the
 * library gives out) and lib_convert.c (memory of the program). All functions are called with
 * lib_share_lock held.
 */

#include <pthread.h>

#include "lib_maps.h"
#include "lib_types.h"

#define LIB_PAGE UINT64_C(4096)
#define LIB_HUGE_PAGE UINT64_C(0x200000)

/* The handle of a piece at the daemon of a context. */
struct lib_attachment {
	struct lib_attachment *next;
	struct lib_context *ctx;
	uint32_t handle;
};

/*
 * A piece of a file. The address at which the program has mapped it is never taken from here: the
 * program may have changed its mappings since. A page is found by its file and offset, which the
 * kernel tells, and goes to the daemon under its name.
 */
struct lib_share {
	struct lib_share *next; /* GIVEN */
	/*
	 * The daemon's address of the first byte. QUEUE, ALLOC: its address, which the library has
	 * given out itself. Others: the address + n << LIB_NAME_SHIFT, n > 0: addresses that the
	 * program has unmapped and uses again have another name while regions use the old pages.
	 */
	uint64_t name;
	uint64_t va; /* where it was mapped when it was entered */
	uint64_t length;
	dev_t dev; /* numbers of the file, as mappings show them */
	ino_t inode;
	uint64_t offset;	   /* in the file */
	int fd;			   /* GIVEN, FOUND: a duplicate; else -1 */
	struct lib_file *file;	   /* QUEUE, ALLOC: file of the pool; else NULL */
	struct lib_sparse *sparse; /* CONVERTED; else NULL */
	enum lib_share_kind kind;
	uint32_t page;	/* bytes per page of the file */
	uint32_t users; /* parts of covers */
	bool read_only; /* FOUND: the device must not write */
	uint32_t *pins; /* CONVERTED: parts of covers, for each page; or LIB_PIN_STUCK */
	uint32_t stuck; /* CONVERTED: pages that could not be made private again */
	bool has_holes; /* CONVERTED: pages were freed */
	struct lib_attachment *attachments;
	struct lib_chunk *chunk; /* QUEUE, ALLOC: allocation of small pieces in it; or NULL */
};

#define LIB_NAME_SHIFT 48
#define LIB_PIN_STUCK UINT32_MAX

/* ---- lib_share.c ---- */

extern pthread_mutex_t lib_share_lock;
/* The piece that contains the name, or the first one after it, or NULL. */
struct lib_share *lib_share_behind(uint64_t name);
/*
 * The piece of the file that contains the offset, or the first one after it in the same file, or
 * NULL.
 */
struct lib_share *lib_share_in_file(dev_t dev, ino_t inode, bool read_only, uint64_t offset);
/* A piece of softhca_attach() that contains the offset, or NULL. */
struct lib_share *lib_share_given(dev_t dev, ino_t inode, uint64_t offset);
/* Add a piece to the table, which takes over its descriptor; NULL: out of memory. */
struct lib_share *lib_share_enter(const struct lib_share *piece);
/* Detach a piece from all contexts, remove it from the table and free it. The mapping stays. */
void lib_share_remove(struct lib_share *share);
int lib_share_attach(struct lib_context *ctx, struct lib_share *share);
/* Empty the table, in the child of fork(). */
void lib_share_clear(void);
/* The i-th piece by name, from 0; NULL after the last. */
struct lib_share *lib_share_at(uint32_t i);

/* ---- lib_cover.c ---- */

/* Whether a region uses memory there as foreign memory. */
bool lib_share_foreign(uint64_t va, uint64_t end);
/* Drop the covers of a context that is being closed. */
void lib_cover_forget(struct lib_context *ctx);
/* Forget foreign regions, in the child of fork(). */
void lib_cover_clear(void);

/* ---- lib_pool.c ---- */

struct lib_file;
/* Allocate zeroed memory with pages of `page` bytes in a file of the pool. */
int lib_pool_take(uint64_t bytes, uint32_t page, struct lib_file **file, uint64_t *offset);
void lib_pool_give(struct lib_file *file, uint64_t bytes, uint64_t offset);
/* Descriptor of the file; -1: a device has sealed it, so that no other one can map it. */
int lib_pool_fd(const struct lib_file *file);
/* Take no more pages from the file: a device may still access the pages given back to it. */
void lib_pool_retire(struct lib_file *file);
/* Note that a device has mapped the file. */
void lib_pool_attached(struct lib_file *file);
/* Free a chunk that is not used any more. */
void lib_pool_tidy(struct lib_share *share);
/* Forget the files, which are the parent's, in the child of fork(). */
void lib_pool_forget(void);

/* ---- lib_convert.c ---- */

/**
 * Judge whether memory of a mapping can be shared, before any is.
 *
 * @param va, end  a part of the mapping
 * @return  0, or -EOPNOTSUPP: use it as foreign memory; or another negative errno
 */
int lib_convert_judge(const struct lib_context *ctx, const struct lib_mapping *m, uint64_t va,
		      uint64_t end, bool may_convert);
/**
 * The piece that memory of a mapping lies in, which is made if it does not exist yet.
 *
 * @param va, end  the part that is needed: the piece contains va, and may end before `end`
 * @return  the piece, or NULL with lib_fail(); -EOPNOTSUPP: use it as foreign memory
 */
struct lib_share *lib_convert_share(const struct lib_mapping *m, uint64_t va, uint64_t end);
/* Offset in the piece of an address in the mapping. */
uint64_t lib_convert_offset(const struct lib_share *share, const struct lib_mapping *m,
			    uint64_t va);
/* Offset in the file of an address in the mapping. */
uint64_t lib_convert_offset_of(const struct lib_mapping *m, uint64_t va);
/**
 * Put the mapping `fresh` in the place of memory of a mapping, with the same contents and rights,
 * in steps.
 *
 * @param done  bytes that were exchanged; on error the caller keeps the rest of `fresh`
 */
int lib_convert_exchange(const struct lib_mapping *m, uint64_t va, uint64_t bytes, void *fresh,
			 uint64_t *done);
/* The same where the program cannot write; `fresh` has the contents. */
int lib_convert_place(const struct lib_mapping *m, uint64_t va, uint64_t bytes, void *fresh);

/* ---- lib_back.c ---- */

/** Pages of a CONVERTED piece that no region covers any more: make them private. */
void lib_back_pages(struct lib_share *share, uint64_t offset, uint64_t bytes);
/** Remove a CONVERTED piece without regions, after that. */
void lib_back_end(struct lib_share *share);
/** Take a page off the list of those to be tried again. */
void lib_back_unstick(struct lib_share *share, uint64_t page);
/** Try again the pages that lib_back_pages() could not replace, some at a time, if it is time. */
void lib_back_retry(void);
/* Forget the pages to be tried again, in the child of fork(). */
void lib_back_forget(void);

#endif
