/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SYSFS_WATCH_H
#define SYSFS_WATCH_H

/* The name by which the verbs library finds softhca_sysfs_watch(), if it is loaded */
#define SYSFS_WATCH_NAME "softhca_sysfs_watch"

/* Writes counters of the devices of this process below the folder `root`. */
typedef void (*sysfs_watch_fn)(const char *root);

/**
 * Exported by the preloaded library: have `refresh` called before the program opens a file of
 * counters. By a thread of the program, which may hold any lock of its own.
 */
__attribute__((visibility("default"))) void softhca_sysfs_watch(sysfs_watch_fn refresh);

#endif
