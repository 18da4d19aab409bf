/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_DEVICES_H
#define CTL_DEVICES_H

/*
 * The devices that programs of this user find: the list of libsofthca, or the device in
 * SOFTHCA_DEVICE.
 */

#include <stdbool.h>
#include <stdint.h>

#include <softhca/softhca.h>

#define CTL_DEVICES_MAX 64u

struct ctl_device {
	char name[64];
	char open_name[256]; /* for softhca_open() */
	char reason[512];    /* why it cannot be opened; "": it can */
	uint64_t guid;	     /* 0: not known */
};

/*
 * Fills in up to max devices, each opened once to see whether that is possible; returns how many.
 */
unsigned int ctl_devices(struct ctl_device *out, unsigned int max);

/*
 * Writes the kernel's files of the devices below `folder`, which stands for / (sysfs_tree.h). 0 or
 * -1, said on stderr.
 */
int ctl_tree(const char *folder, struct ctl_device *devices, unsigned int n);

/*
 * Updates the changing values in those files until no other process has a lock of the file `lock`
 * (flock(2)). 0 or -1, said on stderr.
 */
int ctl_tree_follow(const char *folder, const struct ctl_device *devices, unsigned int n,
		    const char *lock);

#endif
