/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_HOLD_H
#define LIB_HOLD_H

/*
 * Exchanges memory in place while other threads use it. Readers always see the same contents;
 * writers are blocked (userfaultfd write protection) from the start of the copy until it is in
 * place, including writes of the kernel: read(2) waits like a store. Transfers in progress to pages
 * that the kernel has pinned (O_DIRECT, io_uring with fixed buffers) cannot be blocked: register
 * such buffers before or after.
 *
 * One thread at a time (lib_share_lock). Errors are a negative errno with lib_fail().
 */

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

/* Whether writers can be blocked: 0, or -EOPNOTSUPP with a reason that tells how to permit it. */
int lib_hold_ready(void);

/*
 * Move the mapping `fresh` of `bytes` (all pages present, not in use) to [va, va + bytes) with the
 * contents of the memory there. On error the mappings are unchanged and the caller keeps `fresh`.
 */
int lib_hold_exchange(uint64_t va, uint64_t bytes, void *fresh);

struct lib_hold {
	uint64_t va, bytes;
	sigset_t signals; /* of this thread, blocked meanwhile */
};

/*
 * Block threads that touch absent pages of a shared mapping, from now until lib_hold_absent_end(),
 * when they repeat their access to the mapping at that time.
 */
int lib_hold_absent(struct lib_hold *hold, uint64_t va, uint64_t bytes);
void lib_hold_absent_end(const struct lib_hold *hold);

/* Whether the program watches the memory with userfaultfd: -EOPNOTSUPP; 0: it does not. */
int lib_hold_watched(uint64_t va, uint64_t bytes);

/*
 * Say why memory at va could not be exchanged; returns the error of the registration. -EOPNOTSUPP:
 * it can be accessed as foreign memory.
 */
int lib_hold_fail(int err, uint64_t va);

/* Copy whole pages, including bytes that a sanitizer poisons. bytes is a multiple of 8. */
void lib_hold_copy(void *to, const void *from, size_t bytes);

/* Called in the child of fork(): closes the inherited descriptor. */
void lib_hold_forget(void);

#endif
