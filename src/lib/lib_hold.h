/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_HOLD_H
#define LIB_HOLD_H

/*
 * Exchanging the memory at some addresses while other threads use it. Readers see the same contents
 * all the time; writers are held off (userfaultfd write protection) from the moment the copy begins
 * until it is in place, also where the kernel writes for them: read(2) waits as a store does. What
 * nobody can hold off are transfers under way to pages the kernel has pinned (O_DIRECT, io_uring
 * with fixed buffers): such buffers are registered before or after.
 *
 * One thread at a time (lib_share_lock). Errors: negative errno with lib_fail().
 */

#include <stddef.h>
#include <stdint.h>

/* 0, or -EOPNOTSUPP: this process may not hold writers off, and how it could. */
int lib_hold_ready(void);

/*
 * The mapping `fresh` of `bytes` (all pages there, not used by anybody) takes the contents and the
 * place of [va, va + bytes). On error nothing has changed and fresh is still the caller's.
 */
int lib_hold_exchange(uint64_t va, uint64_t bytes, void *fresh);

/*
 * Whole pages, whatever of the program lies on them: also what a sanitizer keeps away from others.
 * bytes is a multiple of 8.
 */
void lib_hold_copy(void *to, const void *from, size_t bytes);

/* In the child of fork(). */
void lib_hold_forget(void);

#endif
