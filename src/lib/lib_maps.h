/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_MAPS_H
#define LIB_MAPS_H

/*
 * Mappings of this process according to /proc/self/maps. Errors are a negative errno with
 * lib_fail().
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct lib_mapping {
	uint64_t start, end;
	uint64_t offset; /* of start in the file */
	dev_t dev;
	ino_t inode; /* 0: no file */
	bool read, write, shared;
	bool stack; /* the first thread's */
};

/* Find the mapping that contains va; 0, or -EFAULT: there is none. */
int lib_maps_find(uint64_t va, struct lib_mapping *mapping);

/*
 * Duplicate a descriptor of the file of a shared mapping. Returns it, owned by the caller, or
 * -EOPNOTSUPP: the process has no open descriptor of the file.
 */
int lib_maps_file(const struct lib_mapping *mapping);

#endif
