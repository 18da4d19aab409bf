/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Files of sysfs. Where the kernel has no file for a device of softhca, the values that are known
 * without a session are returned.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "front_kern.h"
#include "ucma/ucma.h"

#define SYSFS "/sys"
#define CLASS_DEVICE SYSFS "/class/infiniband/"

const char *
ibv_get_sysfs_path(void)
{
	ucma_hook();
	return SYSFS;
}

static int
read_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[IBV_SYSFS_PATH_MAX * 2];
	ssize_t n;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, buf, size);
	close(fd);
	if (n > 0 && buf[n - 1] == '\n')
		buf[--n] = '\0';
	else if (n >= 0 && (size_t)n < size)
		buf[n] = '\0';
	return (int)n;
}

/* The file of one of our devices; NULL: it has none of that name. */
static const char *
own_file(const char *dir, const char *file)
{
	static const struct {
		const char *name;
		const char *text;
	} files[] = {
		{"board_id", "softhca"},
		{"hca_type", "softhca"},
		{"node_desc", "softhca"},
		{"node_type", "1: CA"},
		{"ports/1/link_layer", "Ethernet"},
	};

	if (strncmp(dir, CLASS_DEVICE, strlen(CLASS_DEVICE)) != 0)
		return NULL;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (strcmp(file, files[i].name) == 0)
			return files[i].text;
	return NULL;
}

int
ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	int n = read_file(dir, file, buf, size);
	const char *text = n < 0 ? own_file(dir, file) : NULL;

	if (text == NULL)
		return n;
	n = snprintf(buf, size, "%s", text);
	return (size_t)n < size ? n : (int)size - 1;
}
