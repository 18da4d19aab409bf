/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_IPC_HOOKS_H
#define TESTS_IPC_HOOKS_H

/*
 * Memory hooks like those of MPI registration caches: functions that replace those of the C library
 * and count each call in their own memory. Like one in real use, one is faulty: its mremap() has
 * only four arguments, so that pages requested at an address move to address 0 (or nowhere, if the
 * kernel does not allow that).
 *
 * hooks.c is part of the test, which patches relocations, and a library for LD_PRELOAD.
 */

#include <stddef.h>
#include <stdint.h>

/* Counters, written at each call; NULL: none */
extern volatile uint64_t *hooks_book;

struct hook {
	const char *name;
	void *function;
};

extern const struct hook hooks[];
extern const size_t hooks_count;

/*
 * Redirect the calls of every loaded object to the hooks; returns the number of patched
 * relocations.
 */
unsigned int hooks_patch(void);

#endif
