/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_SPARSE_H
#define LIB_SPARSE_H

/*
 * Files for private memory that is exchanged in place for shared memory. Each range lies in a slot
 * of LIB_SLOT bytes, and a slot is given out only once. So a page of the program that is still
 * mapped somewhere is never used for anything else, and a mapping of a range that mremap()
 * lengthens grows into the hole behind it, which reads as zeros as private memory would.
 *
 * The files are memfds that cannot be sealed. Their pages count, not their sizes.
 *
 * All functions are called with lib_share_lock held. Errors are a negative errno with lib_fail().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* More than any mapping can have, also one that begins in the middle of a range */
#define LIB_SLOT (UINT64_C(1) << 48)

struct lib_sparse;

/**
 * Take a slot that was never used.
 *
 * @param offset  of its first byte in the file
 * @return  0, or a negative errno: no descriptor, or the process limits the size of files
 */
int lib_sparse_take(struct lib_sparse **file, uint64_t *offset);

/** Drop the reference of lib_sparse_take() or lib_sparse_of(). */
void lib_sparse_give(struct lib_sparse *file);

/** The file with these numbers, with a reference; NULL: it is none of these files. */
struct lib_sparse *lib_sparse_of(dev_t dev, ino_t inode);

/** Whether the descriptor is of one of these files. */
bool lib_sparse_has(dev_t dev, ino_t inode);

/** Whether there is any. */
bool lib_sparse_any(void);

int lib_sparse_fd(const struct lib_sparse *file);
void lib_sparse_numbers(const struct lib_sparse *file, dev_t *dev, ino_t *inode);

/** Free pages of the file, which then reads as zeros there. */
void lib_sparse_punch(const struct lib_sparse *file, uint64_t offset, uint64_t bytes);

/** Whether the file has pages in [offset, end). */
bool lib_sparse_used(const struct lib_sparse *file, uint64_t offset, uint64_t end);

/**
 * Where the run of data, or of holes, that begins at the offset ends: at `end` at the latest.
 *
 * @param data  whether it is data; also if that is not known
 */
uint64_t lib_sparse_extent(const struct lib_sparse *file, uint64_t offset, uint64_t end,
			   bool *data);

/** Read contents, also where the program cannot. @return 0 or a negative errno */
int lib_sparse_read(const struct lib_sparse *file, uint64_t offset, void *to, size_t bytes);

/** In the child of fork(): close the parent's files. Nothing is freed (lib_share_clear()). */
void lib_sparse_forget(void);

#endif
