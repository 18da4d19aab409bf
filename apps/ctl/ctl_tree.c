/* SPDX-License-Identifier: BSD-3-Clause */

/* Devices as files, for programs that look into /sys/class and not only at libibverbs. */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "ctl.h"
#include "ctl_devices.h"
#include "sysfs_tree.h"

#define REFRESH_NS 250000000l

static int
write_device(const char *folder, struct ctl_device *device, unsigned int number)
{
	struct sysfs_device d = {device->name, number, NULL};
	int err = softhca_open(device->open_name, &d.ctx);

	if (err != 0)
		return 0; /* unreadable files are not shown */
	err = sysfs_write(folder, &d);
	softhca_close(d.ctx);
	if (err != 0)
		ctl_error("%s: files of %s: %s", folder, device->name, strerror(-err));
	return err;
}

int
ctl_tree(const char *folder, struct ctl_device *devices, unsigned int n)
{
	int failed = 0;

	for (unsigned int i = 0; i < n; i++)
		failed |= write_device(folder, &devices[i], i);
	return failed != 0 ? -1 : 0;
}

/* A daemon that has ended may come back. */
static void
refresh(const char *folder, const struct ctl_device *device, struct sysfs_device *d)
{
	if (d->ctx == NULL && softhca_open(device->open_name, &d->ctx) != 0) {
		d->ctx = NULL;
		return;
	}
	if (sysfs_refresh(folder, d) == 0)
		return;
	softhca_close(d->ctx);
	d->ctx = NULL;
}

int
ctl_tree_follow(const char *folder, const struct ctl_device *devices, unsigned int n,
		const char *lock)
{
	static struct sysfs_device open_devices[CTL_DEVICES_MAX];
	const struct timespec pause = {.tv_nsec = REFRESH_NS};
	int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0) {
		ctl_error("%s: %s", lock, strerror(errno));
		return -1;
	}
	for (unsigned int i = 0; i < n; i++)
		open_devices[i] = (struct sysfs_device){devices[i].name, i, NULL};
	while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		for (unsigned int i = 0; i < n; i++)
			refresh(folder, &devices[i], &open_devices[i]);
		nanosleep(&pause, NULL);
	}
	close(fd);
	return 0;
}
