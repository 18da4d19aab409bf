/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_SHARE_H
#define LIB_SHARE_H

/*
 * Memory of this process that lies in files of shared memory, so that a daemon can also map it: a
 * table for the whole process. A piece is attached to a context when the first region or queue of
 * that context lies in it. Contexts of embedded HCAs do not need this.
 *
 * Where the pieces come from:
 *	QUEUE	  the library's own memory for queues
 *	ALLOC	  softhca_alloc()
 *	GIVEN	  softhca_attach(): the program names file and place
 *	FOUND	  a shared mapping that the program registers; its file is found
 *	CONVERTED private memory the program registers, exchanged in place for shared memory with
 *		  the same contents. Each page is exchanged back when its last region goes.
 * QUEUE and ALLOC lie in memfds of the library: pieces of up to HCA_CTL_SMALL_FILE bytes share
 * files of that size, which any number of devices may have; each larger one has a file of its own,
 * which the first device seals (abi_ctl.h). CONVERTED lies in the files of lib_sparse.h.
 *
 * The effects on a program are the contract in docs/use.md, "Memory of programs". The library reads
 * the mappings from the kernel each time it needs them: a program may change its mappings at any
 * time between two calls.
 *
 * One lock protects the table; all functions may be called from any thread. Errors are a negative
 * errno with lib_fail().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca_ctl_mr;
struct lib_context;

enum lib_share_kind {
	LIB_SHARE_QUEUE,
	LIB_SHARE_ALLOC,
	LIB_SHARE_GIVEN,
	LIB_SHARE_FOUND,
	LIB_SHARE_CONVERTED,
};

/*
 * The parts of pieces that a region lies in, which are kept while the cover exists. A cover may
 * also be of memory that is not shared (lib_cover_take_foreign()), which is then not converted
 * meanwhile.
 */
struct lib_cover;

/**
 * Cover the presently mapped memory with pieces attached to ctx.
 *
 * @param convert  private memory may be converted
 * @return  0 or a negative errno; -EOPNOTSUPP: the memory cannot be shared, but accessed as foreign
 *   memory
 */
int lib_cover_take(struct lib_context *ctx, uint64_t va, uint64_t length, bool convert,
		   struct lib_cover **cover);
/** The same for pages of `size` bytes, in any order, possibly repeated. */
int lib_cover_take_pages(struct lib_context *ctx, const uint64_t *pages, uint64_t npages,
			 uint64_t size, bool convert, struct lib_cover **cover);
/**
 * Write the daemon's addresses of covered memory into a request, which has those of the program: va
 * and shift, or a list of pages.
 *
 * @param listed  the cover was taken of a list of pages
 * @param list  the new list, to be freed; NULL: the request has none
 * @return  0 or -ENOMEM
 */
int lib_cover_name(const struct lib_cover *cover, bool listed, struct hca_ctl_mr *request,
		   uint64_t **list);
/**
 * Cover memory that the device accesses through the process's memory file, which is given to the
 * daemon. Nothing is attached.
 */
int lib_cover_take_foreign(struct lib_context *ctx, uint64_t va, uint64_t length,
			   struct lib_cover **cover);
/** Free a cover after the device has deregistered the region; NULL is ignored. */
void lib_cover_drop(struct lib_cover *cover);

/* Allocate zeroed memory for a queue, 4 KiB aligned and attached to ctx; NULL with lib_fail(). */
void *lib_share_queue(struct lib_context *ctx, size_t bytes);
/* Free memory of lib_share_queue(). */
void lib_share_queue_free(void *mem);

/* Drop attachments and covers of a context that is being closed. */
void lib_share_forget(struct lib_context *ctx);
/*
 * Before that, if the device may still access the memory: the pool does not give out again the
 * memory attached to the context.
 */
void lib_share_abandon(struct lib_context *ctx);

/*
 * Handlers around fork(), called by lib_life.c: in the parent before, in the parent after, in the
 * child. Before lib_share_fork_restore() the child must not touch the heap.
 */
void lib_share_fork_prepare(void);
void lib_share_fork_parent(void);
void lib_share_fork_restore(void);
void lib_share_fork_child(void);

#endif
