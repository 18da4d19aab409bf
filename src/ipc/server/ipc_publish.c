/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The description of the device next to its socket (ipc_proto.h), which lists of devices are made
 * from. The daemon holds a lock on it as long as it lives, also while it is stopped.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc_server_impl.h"

static void
name_file(const struct ipc_server *server, char path[IPC_DEVICE_PATH_MAX])
{
	snprintf(path, IPC_DEVICE_PATH_MAX, "%s" IPC_DEVICE_SUFFIX, server->path);
}

/* Lock it before others may open it, and write it. */
static int
fill_file(const struct ipc_server *server)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	uint64_t guid = hca_driver_node_guid(server->config.driver);

	if (fcntl(server->device_fd, F_OFD_SETLK, &lock) != 0 ||
	    dprintf(server->device_fd, IPC_DEVICE_PRINT, guid) < 0 ||
	    fchmod(server->device_fd, 0644) != 0)
		return -errno;
	return 0;
}

int
ipc_publish(struct ipc_server *server)
{
	char path[IPC_DEVICE_PATH_MAX];
	int err;

	name_file(server, path);
	if (unlink(path) != 0 && errno != ENOENT) /* of a daemon that has died */
		return ipc_fail(-errno, "%s cannot be removed: %s", path, strerror(errno));
	server->device_fd =
		open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
	err = server->device_fd < 0 ? -errno : fill_file(server);
	if (err != 0)
		return ipc_fail(err, "%s: %s", path, strerror(-err));
	return 0;
}

/* The file stays if another daemon has put its own in its place. */
void
ipc_unpublish(struct ipc_server *server)
{
	char path[IPC_DEVICE_PATH_MAX];
	struct stat mine, there;

	if (server->device_fd < 0)
		return;
	name_file(server, path);
	if (fstat(server->device_fd, &mine) == 0 && lstat(path, &there) == 0 &&
	    mine.st_ino == there.st_ino && mine.st_dev == there.st_dev)
		unlink(path);
	close(server->device_fd);
	server->device_fd = -1;
}
