/* SPDX-License-Identifier: BSD-3-Clause */

#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "endpoint_vhost.h"

#define AGAIN_US 10000

struct endpoint_vhost {
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	pthread_t thread;
	bool over;
};

typedef int (*name_fn)(int fd, struct sockaddr *addr, socklen_t *len);

static bool
named(name_fn name, int fd, const char *path)
{
	struct sockaddr_un addr = {0};
	socklen_t len = sizeof(addr);

	return name(fd, (struct sockaddr *)&addr, &len) == 0 && addr.sun_family == AF_UNIX &&
	       strncmp(addr.sun_path, path, sizeof(addr.sun_path)) == 0;
}

/* Of the connections and of the socket that accepts them: DPDK does not give them out. */
static void
hang_up(const char *path)
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;

	if (folder == NULL)
		return;
	while ((entry = readdir(folder)) != NULL) {
		int fd = atoi(entry->d_name);

		if (named(getsockname, fd, path) || named(getpeername, fd, path))
			shutdown(fd, SHUT_RDWR);
	}
	closedir(folder);
}

static void *
hang_up_until_over(void *arg)
{
	struct endpoint_vhost *v = arg;

	(void)pthread_setname_np(pthread_self(), "hca-vhost-end");
	while (!__atomic_load_n(&v->over, __ATOMIC_ACQUIRE)) {
		hang_up(v->path);
		usleep(AGAIN_US);
	}
	return NULL;
}

struct endpoint_vhost *
endpoint_vhost_end(const struct endpoint_device *device)
{
	struct endpoint_vhost *v;

	if ((device->traits & ENDPOINT_DEVICE_VHOST) == 0)
		return NULL;
	v = calloc(1, sizeof(*v));
	if (v == NULL || !endpoint_device_option(device->args, "iface", v->path, sizeof(v->path)) ||
	    pthread_create(&v->thread, NULL, hang_up_until_over, v) != 0) {
		free(v);
		return NULL;
	}
	return v;
}

void
endpoint_vhost_ended(struct endpoint_vhost *v)
{
	if (v == NULL)
		return;
	__atomic_store_n(&v->over, true, __ATOMIC_RELEASE);
	pthread_join(v->thread, NULL);
	free(v);
}
