/* SPDX-License-Identifier: BSD-3-Clause */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <softhca/softhca.h>

#include "ipc_list.h"
#include "ipc_proto.h"
#include "lib_error.h"

#define NAME_MAX_BYTES sizeof(((struct softhca_device *)NULL)->name)

const char *
ipc_folder(void)
{
	const char *chosen = secure_getenv("SOFTHCA_DIRECTORY");

	return chosen != NULL && chosen[0] != '\0' ? chosen : IPC_DIRECTORY;
}

static int
is_socket(const struct dirent *entry)
{
	size_t bytes = strlen(entry->d_name), suffix = strlen(IPC_SOCKET_SUFFIX);

	return bytes > suffix && bytes - suffix < NAME_MAX_BYTES &&
	       strcmp(entry->d_name + bytes - suffix, IPC_SOCKET_SUFFIX) == 0;
}

/*
 * Open the description of the socket: a file of the socket's owner. Others that might lie there
 * must not block; -ENOENT: no such file.
 */
static int
open_description(int folder, const char *socket, struct stat *st)
{
	char name[NAME_MAX + 1];
	struct stat owner;
	int fd;

	if (snprintf(name, sizeof(name), "%s" IPC_DEVICE_SUFFIX, socket) >= (int)sizeof(name) ||
	    fstatat(folder, socket, &owner, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISSOCK(owner.st_mode))
		return -ENOENT;
	fd = openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? -errno : -ENOENT;
	if (fstat(fd, st) == 0 && S_ISREG(st->st_mode) && st->st_uid == owner.st_uid)
		return fd;
	close(fd);
	return -ENOENT;
}

/* A daemon holds a lock as long as it lives. */
static bool
is_alive(int fd)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* Fill in the device if the socket has a daemon that lives: 1, else 0; or a negative errno. */
static int
describe(int folder, const char *socket, struct softhca_device *device)
{
	char text[IPC_DEVICE_TEXT_MAX + 1] = "";
	struct stat st;
	bool known;
	int fd = open_description(folder, socket, &st);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	known = is_alive(fd) && read(fd, text, IPC_DEVICE_TEXT_MAX) > 0 &&
		sscanf(text, IPC_DEVICE_SCAN, &device->guid) == 1;
	close(fd);
	if (!known)
		return 0;
	memcpy(device->name, socket, strlen(socket) - strlen(IPC_SOCKET_SUFFIX));
	device->index = (uint32_t)st.st_ino & INT32_MAX;
	return 1;
}

/* One allocation: the pointers, then the devices. NULL with lib_fail(). */
static struct softhca_device **
make_list(int folder, struct dirent **entries, int n, int *found)
{
	struct softhca_device **list =
		calloc(1, ((size_t)n + 1) * sizeof(*list) + (size_t)n * sizeof(**list));
	struct softhca_device *device = (struct softhca_device *)(list + n + 1);

	*found = 0;
	if (list == NULL)
		lib_no_memory("a list of devices", (size_t)n * sizeof(**list));
	for (int i = 0; list != NULL && i < n; i++) {
		int rc = describe(folder, entries[i]->d_name, &device[*found]);

		if (rc < 0) {
			lib_fail(rc, "%s/%s: %s", ipc_folder(), entries[i]->d_name, strerror(-rc));
			free(list);
			return NULL;
		}
		list[*found] = rc > 0 ? &device[*found] : NULL;
		*found += rc;
	}
	return list;
}

/*
 * The folder with its sockets: a descriptor, or -ENOENT: no such folder; or another negative errno.
 */
static int
scan_folder(struct dirent ***entries, int *n)
{
	int folder = open(ipc_folder(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = errno;

	if (folder < 0)
		return err == ENOTDIR ? -ENOENT : -err;
	*n = scandir(ipc_folder(), entries, is_socket, alphasort);
	if (*n >= 0)
		return folder;
	err = errno;
	close(folder);
	return -err;
}

struct softhca_device **
softhca_get_device_list(int *num_devices)
{
	struct dirent **entries = NULL;
	int n = 0, found, folder = scan_folder(&entries, &n);
	struct softhca_device **list;

	if (folder < 0 && folder != -ENOENT) {
		lib_fail(folder, "%s: %s", ipc_folder(), strerror(-folder));
		return NULL;
	}
	list = make_list(folder, entries, folder >= 0 ? n : 0, &found);
	if (list != NULL && num_devices != NULL)
		*num_devices = found;
	while (n > 0)
		free(entries[--n]);
	free(entries);
	if (folder >= 0)
		close(folder);
	return list;
}

void
softhca_free_device_list(struct softhca_device **list)
{
	free(list);
}

const char *
softhca_get_device_name(const struct softhca_device *device)
{
	return device->name;
}

uint64_t
softhca_get_device_guid(const struct softhca_device *device)
{
	return device->guid;
}

int
softhca_get_device_index(const struct softhca_device *device)
{
	return (int)device->index;
}
