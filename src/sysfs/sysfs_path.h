/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SYSFS_PATH_H
#define SYSFS_PATH_H

/*
 * Which paths name files of RDMA devices, and where they are in place of the kernel's: below the
 * folder that SOFTHCA_SYSFS names (sysfs_tree.h has its layout). Any thread may call.
 */

#include <stdbool.h>
#include <stddef.h>

/* Threads and signal handlers with little stack also open files. */
#define SYSFS_PATH_MAX 1024

/**
 * The path to use in place of `path`.
 *
 * @param path  of any kind; may be NULL
 * @param buf  of SYSFS_PATH_MAX bytes
 * @return  buf, or `path` if it names no file of ours, or one with a name that buf cannot hold
 */
const char *sysfs_path(const char *path, char *buf);

/** Whether sysfs_path() has answered a node of /dev, which stands there as a link. */
bool sysfs_is_node(const char *answer, const char *path);

/**
 * The path that the program gets for a resolved one: without the folder at its front, in place.
 * Returns `resolved`, which may be NULL.
 */
char *sysfs_path_back(char *resolved);

#endif
