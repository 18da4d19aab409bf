/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SIGBUS_GUARD_H
#define SIGBUS_GUARD_H

/*
 * Handles SIGBUS: another process has removed shared memory, so an access (of a worker in the
 * middle of a copy) faults. The access continues after the memory's owner has mapped something in
 * its place. The table is global to the process, as signal handlers are; faults of no owner go to
 * the handler installed before.
 */

#include <stdbool.h>
#include <stdint.h>

#define SIGBUS_GUARD_OWNERS 4224u

/*
 * Called in the signal handler, in any thread, while the owner is in the table. False: the address
 * is not in the owner's memory; true: the access can be repeated. Must be async-signal-safe; the
 * caller saves errno.
 */
typedef bool (*sigbus_guard_fn)(void *owner, uintptr_t addr);

/* Install the handler, once; sigbus_guard_add() also does it. Returns 0 or a negative errno. */
int sigbus_guard_install(void);
/* Add an owner, if it is not in the table. Any thread. Returns 0, or -ENOSPC: the table is full. */
int sigbus_guard_add(void *owner, sigbus_guard_fn fn);
/*
 * Remove an owner, if it is in the table. After it returns no handler uses the owner. Any thread.
 */
void sigbus_guard_remove(void *owner);

#endif
