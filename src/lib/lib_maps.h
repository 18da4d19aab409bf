/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_MAPS_H
#define LIB_MAPS_H

/*
 * Mappings of this process. The kernel is asked for single ones where it can be (an ioctl of Linux
 * 6.11); on older ones /proc/self/maps is read once for each view. Any thread may call these
 * functions. Errors are a negative errno with lib_fail().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct lib_mapping {
	uint64_t start, end;
	uint64_t offset; /* of start in the file */
	dev_t dev;
	ino_t inode; /* 0: no file */
	bool read, write, exec, shared;
	bool stack; /* the first thread's */
};

/*
 * A view of the mappings: one per operation on memory. It may be used while the process changes
 * mappings at lower addresses than those it is asked for.
 */
struct lib_maps {
	int fd; /* -1: use the list */
	struct lib_mapping *list;
	uint32_t count;
	size_t bytes; /* of the mapping that the list lies in */
};

/**
 * Begin a view.
 *
 * @return  0, or a negative errno: /proc/self/maps cannot be opened, or no memory
 */
int lib_maps_begin(struct lib_maps *maps);
void lib_maps_end(struct lib_maps *maps);

/**
 * Find the mapping that contains va, or else the first one behind it.
 *
 * @return  0, or -ENOENT: no such mapping
 */
int lib_maps_from(const struct lib_maps *maps, uint64_t va, struct lib_mapping *mapping);

/** The same with a view for this call alone. */
int lib_maps_next(uint64_t va, struct lib_mapping *mapping);

/** Find the mapping that contains va; 0, or -EFAULT: va is not mapped. */
int lib_maps_find(uint64_t va, struct lib_mapping *mapping);

/**
 * Read all mappings of one file into a list.
 *
 * The memory of the list is a mapping of its own, so that it may be used around fork().
 *
 * @param mappings  of capacity *count, to be freed with lib_maps_list_free()
 * @return  0, or a negative errno
 */
int lib_maps_list(struct lib_mapping **mappings, uint32_t *count, size_t *bytes);
void lib_maps_list_free(struct lib_mapping *mappings, size_t bytes);

/** PROT_* of a mapping. */
int lib_maps_protection(const struct lib_mapping *mapping);

/** In the child of fork(): close the descriptor that shows the mappings of the parent. */
void lib_maps_forget(void);

/** Whether the memory at va has a protection key other than 0 (pkeys(7)). */
bool lib_maps_has_key(uint64_t va);

/**
 * Open the file of a shared mapping.
 *
 * @param write  for reading and writing; else for reading alone
 * @return  a descriptor, owned by the caller, or -EOPNOTSUPP: the process has no suitable
 *   descriptor of the file, and may not open it
 */
int lib_maps_file(const struct lib_mapping *mapping, bool write);

#endif
