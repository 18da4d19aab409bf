/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIGBUS_GUARD_H
#define SIGBUS_GUARD_H

/*
 * SIGBUS: somebody has taken shared memory away, and there is nothing in its place. Whoever was
 * touching it (a worker in the middle of a copy) goes on as soon as its owner has put something
 * there. The table is process-wide, as signal handlers are; faults that are nobody's go to the
 * handler that was there before.
 */

#include <stdbool.h>
#include <stdint.h>

#define SIGBUS_GUARD_OWNERS 4224u

/*
 * In the handler, in any thread, while the owner is in the table: false: not its memory; true: the
 * access may be tried again. Async-signal-safe; errno is kept by the caller.
 */
typedef bool (*sigbus_guard_fn)(void *owner, uintptr_t addr);

/* Puts the handler in place, once; sigbus_guard_add() does it, too. 0 or -errno. */
int sigbus_guard_install(void);
/* Any thread. An owner that is there already stays. -ENOSPC: the table is full. */
int sigbus_guard_add(void *owner, sigbus_guard_fn fn);
/* When it returns no handler looks at the owner any more. */
void sigbus_guard_remove(void *owner);

#endif
