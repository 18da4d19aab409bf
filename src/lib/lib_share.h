/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_SHARE_H
#define LIB_SHARE_H

/*
 * Memory of this process that lies in a file of shared memory, so that a daemon can map it too: a
 * table of the whole process, as memory is. A context attaches a piece when a region or a queue
 * first lies in it. Contexts of embedded HCAs need none of this.
 *
 * Where the pieces come from:
 *	QUEUE	  the library's own memory for queues
 *	ALLOC	  softhca_alloc()
 *	GIVEN	  softhca_attach(): the program names file and place
 *	FOUND	  a shared mapping of a memfd the program registers; its file is found
 *	CONVERTED private memory the program registers, exchanged in place for shared memory with
 *		  the same contents; changed back when the last region in it goes
 * QUEUE, ALLOC and CONVERTED lie in memfds of the library: pieces of up to IPC_SMALL_FILE bytes
 * share files of that size, which any number of devices may have; each larger one has a file of its
 * own, which the first device seals (ipc_proto.h).
 *
 * One lock for the table; functions are thread safe. Errors: negative errno with lib_fail().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lib_context;

enum lib_share_kind {
	LIB_SHARE_QUEUE,
	LIB_SHARE_ALLOC,
	LIB_SHARE_GIVEN,
	LIB_SHARE_FOUND,
	LIB_SHARE_CONVERTED,
};

/*
 * What a region lies in. It holds the pieces: none goes while it is there. A region may also lie
 * where nothing is shared (lib_cover_take_foreign()): that memory is neither converted nor
 * converted back meanwhile.
 */
struct lib_cover;

/* [va, va + length), attached to the context. convert: private memory may be exchanged. */
int lib_cover_take(struct lib_context *ctx, uint64_t va, uint64_t length, bool convert,
		   struct lib_cover **cover);
/* Pages of `size` bytes, in any order, any number of times */
int lib_cover_take_pages(struct lib_context *ctx, const uint64_t *pages, uint64_t npages,
			 uint64_t size, bool convert, struct lib_cover **cover);
/* Nothing is attached: the device goes through the process's memory, which the context gives. */
int lib_cover_take_foreign(struct lib_context *ctx, uint64_t va, uint64_t length,
			   struct lib_cover **cover);
/* NULL is nothing. The device does not know the region any more. */
void lib_cover_drop(struct lib_cover *cover);

/* Zeroed memory for a queue, 4 KiB aligned, attached to the context; bytes as given to free. */
void *lib_share_queue(struct lib_context *ctx, size_t bytes);
void lib_share_queue_free(void *mem);

/* The context is gone, and its covers with it. */
void lib_share_forget(struct lib_context *ctx);

/* Around fork(): called by lib_life.c, in this order. */
void lib_share_fork_prepare(void);
void lib_share_fork_parent(void);
void lib_share_fork_child(void);

#endif
