/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_TEST_DISK_H
#define TESTS_TEST_DISK_H

#include <linux/magic.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "test_path.h"

/*
 * A file without a name on a disk, or -1: memory of a file of tmpfs, which /tmp is on many
 * systems, is shared as it is.
 */
static inline int
test_disk_file(void)
{
	char below_tmpdir[TEST_PATH_MAX], elsewhere[] = "/var/tmp/softhca-disk-XXXXXX";
	char *paths[] = {test_path(below_tmpdir, "disk"), elsewhere};
	struct statfs fs;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		int fd = mkstemp(paths[i]);

		if (fd < 0)
			continue;
		unlink(paths[i]);
		if (fstatfs(fd, &fs) == 0 && fs.f_type != TMPFS_MAGIC)
			return fd;
		close(fd);
	}
	return -1;
}

#endif
