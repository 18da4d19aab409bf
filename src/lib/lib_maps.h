/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_MAPS_H
#define LIB_MAPS_H

/*
 * What is mapped in this process, as /proc/self/maps says it. Errors: negative errno with
 * lib_fail().
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct lib_mapping {
	uint64_t start, end;
	uint64_t offset; /* in the file, of start */
	dev_t dev;
	ino_t inode; /* 0: no file */
	bool read, write, shared;
	bool stack; /* of the first thread */
};

/* The mapping va lies in; -EFAULT: none. */
int lib_maps_find(uint64_t va, struct lib_mapping *mapping);

/* A descriptor of the file of a shared mapping, the caller's; -EOPNOTSUPP: it is not open here. */
int lib_maps_file(const struct lib_mapping *mapping);

#endif
