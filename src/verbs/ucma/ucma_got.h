/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCMA_GOT_H
#define UCMA_GOT_H

/*
 * Lead calls of one loaded library elsewhere: the addresses of functions that the loader has stored
 * for it (GLOB_DAT and JUMP_SLOT relocations of its dynamic section) are replaced, also where they
 * are read-only since (RELRO). All other libraries of the process keep theirs.
 */

#include <stddef.h>

struct ucma_got_name {
	const char *name;
	void *to;
	/* where the address that was there is stored, before it is replaced: calls go on there */
	void **from;
};

/*
 * @param soname  DT_SONAME of the library
 * @return  the number of addresses that were replaced; 0: the library is not loaded, or was led
 *   before
 */
size_t ucma_got_lead(const char *soname, const struct ucma_got_name *names, size_t n);

#endif
