/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SYSFS_TREE_H
#define SYSFS_TREE_H

/*
 * Files of a device with the names and texts that Linux has, below a folder that stands for /:
 *
 *	sys/devices/virtual/softhca/NAME                    vendor, device, class, local_cpus, net
 *	sys/devices/virtual/softhca/NAME/infiniband/NAME    the device and its port
 *	sys/devices/virtual/softhca/NAME/infiniband_verbs/uverbsN
 *	sys/class/infiniband/NAME                           a link to the device
 *	sys/class/infiniband_verbs/uverbsN                  a link
 *	sys/class/infiniband_mad/abi_version
 *	dev/infiniband/uverbsN                              a link to /dev/null
 *
 * A value that changes is written into the existing file, so that readers of an overlay over the
 * folder also find it. A reader whose first read() ends at the end of the file has a whole value;
 * what a second read() finds may be of a longer value written in between.
 */

#include <softhca/softhca.h>

struct sysfs_device {
	const char *name;
	unsigned int number; /* of uverbsN, as ibv_get_device_list() numbers devices */
	struct softhca_context *ctx;
};

/**
 * Write all files of a device; those that are there are written again.
 *
 * @param root  the folder, which exists
 * @return  0 or the negative errno of the first failure
 */
int sysfs_write(const char *root, const struct sysfs_device *device);

/**
 * Write the changing values: port state, GIDs, P_Keys, counters.
 *
 * @return  0 or the negative errno of the first failure, -EIO if the device is gone
 */
int sysfs_refresh(const char *root, const struct sysfs_device *device);

#endif
