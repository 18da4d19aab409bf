/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_IPC_HOOKS_H
#define TESTS_IPC_HOOKS_H

/*
 * Memory hooks, as registration caches of MPI libraries have them: functions in the place of the C
 * library's that note each call in memory of their own. One of them is wrong, as one in use is: its
 * mremap() knows four arguments, and pages asked for at an address go to address 0 (or nowhere,
 * where the kernel does not give that away).
 *
 * hooks.c is a part of the test, for relocations that are patched, and a library for LD_PRELOAD.
 */

#include <stddef.h>
#include <stdint.h>

/* Where calls are counted, and written to at each; NULL: nowhere */
extern volatile uint64_t *hooks_book;

struct hook {
	const char *name;
	void *function;
};

extern const struct hook hooks[];
extern const size_t hooks_count;

/* Every loaded object calls the hooks. How many places were changed. */
unsigned int hooks_patch(void);

#endif
