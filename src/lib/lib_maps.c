/* SPDX-License-Identifier: BSD-3-Clause */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib_error.h"
#include "lib_maps.h"

static bool
parse(const char *line, struct lib_mapping *m)
{
	unsigned long long start, end, offset, inode;
	unsigned int major_dev, minor_dev;
	char perms[5];

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu", &start, &end, perms, &offset, &major_dev,
		   &minor_dev, &inode) != 7)
		return false;
	*m = (struct lib_mapping){
		.start = start,
		.end = end,
		.offset = offset,
		.dev = makedev(major_dev, minor_dev),
		.inode = inode,
		.read = perms[0] == 'r',
		.write = perms[1] == 'w',
		.shared = perms[3] == 's',
		.stack = strstr(line, "[stack]") != NULL,
	};
	return true;
}

int
lib_maps_find(uint64_t va, struct lib_mapping *mapping)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	if (maps == NULL)
		return lib_fail(-errno, "/proc/self/maps: %s", strerror(errno));
	while (!found && getline(&line, &room, maps) > 0)
		found = parse(line, mapping) && va < mapping->end;
	free(line);
	fclose(maps);
	if (found && va >= mapping->start)
		return 0;
	return lib_fail(-EFAULT, "nothing is mapped at %#llx", (unsigned long long)va);
}

static bool
is_file(int fd, const struct lib_mapping *mapping)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == mapping->dev && st.st_ino == mapping->inode &&
	       (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

static int
search_open_files(const struct lib_mapping *mapping)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int fd = -1;

	while (dir != NULL && fd < 0 && (entry = readdir(dir)) != NULL) {
		int n = atoi(entry->d_name);

		if (entry->d_name[0] == '.' || !is_file(n, mapping))
			continue;
		fd = fcntl(n, F_DUPFD_CLOEXEC, 0);
		if (fd >= 0 && !is_file(fd, mapping)) { /* it was closed, and the number reused */
			close(fd);
			fd = -1;
		}
	}
	if (dir != NULL)
		closedir(dir);
	return fd;
}

int
lib_maps_file(const struct lib_mapping *mapping)
{
	char path[80];
	int fd = search_open_files(mapping);

	if (fd >= 0)
		return fd;
	/* the kernel's own link to the file requires privileges */
	snprintf(path, sizeof(path), "/proc/self/map_files/%llx-%llx",
		 (unsigned long long)mapping->start, (unsigned long long)mapping->end);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && is_file(fd, mapping))
		return fd;
	if (fd >= 0)
		close(fd);
	return lib_fail(-EOPNOTSUPP,
			"the shared mapping at %#llx has no file that is open here: name it with "
			"softhca_attach()",
			(unsigned long long)mapping->start);
}
