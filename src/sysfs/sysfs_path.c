/* SPDX-License-Identifier: BSD-3-Clause */

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sysfs_path.h"
#include "sysfs_watch.h"

#define NODES "/dev/infiniband"

/* The name of one of these folders includes its contents. */
static const char *const shown[] = {
	"/sys/class/infiniband",
	"/sys/class/infiniband_verbs",
	"/sys/class/infiniband_mad",
	"/sys/devices/virtual/softhca",
	NODES,
};

static const char *root; /* NULL: nothing is shown */
static size_t root_length;
static _Atomic(sysfs_watch_fn) watcher;

static void
find_root(void)
{
	const char *value = secure_getenv("SOFTHCA_SYSFS");

	if (value == NULL || value[0] != '/' || strlen(value) >= SYSFS_PATH_MAX / 2)
		return;
	root = strdup(value); /* the program may change its environment */
	root_length = root != NULL ? strlen(root) : 0;
}

/* Constructors of other libraries may come first. */
static bool
has_root(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_root);
	return root != NULL;
}

/* The rest of `path` behind the folder, "" or with a leading slash; NULL: it is elsewhere. */
static const char *
behind(const char *path, const char *folder)
{
	for (; *folder != '\0'; folder++, path++) {
		if (*path != *folder)
			return NULL;
		while (*folder == '/' && path[1] == '/')
			path++;
	}
	return *path == '\0' || *path == '/' ? path : NULL;
}

/* Counters that only this process can read are written when it looks at them. */
static void
tell_watcher(const char *rest)
{
	sysfs_watch_fn refresh = atomic_load(&watcher);

	if (refresh != NULL && strstr(rest, "counters/") != NULL)
		refresh(root);
}

const char *
sysfs_path(const char *path, char *buf)
{
	if (path == NULL || path[0] != '/' || !has_root())
		return path;
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		const char *rest = behind(path, shown[i]);

		if (rest == NULL)
			continue;
		if (snprintf(buf, SYSFS_PATH_MAX, "%s%s%s", root, shown[i], rest) >=
		    (int)SYSFS_PATH_MAX)
			return path;
		tell_watcher(rest);
		return buf;
	}
	return path;
}

bool
sysfs_is_node(const char *answer, const char *path)
{
	const char *rest = answer != path ? behind(path, NODES) : NULL;

	return rest != NULL && rest[strspn(rest, "/")] != '\0';
}

char *
sysfs_path_back(char *resolved)
{
	if (resolved == NULL || !has_root() || strncmp(resolved, root, root_length) != 0 ||
	    resolved[root_length] != '/')
		return resolved;
	memmove(resolved, resolved + root_length, strlen(resolved + root_length) + 1);
	return resolved;
}

void
softhca_sysfs_watch(sysfs_watch_fn refresh)
{
	atomic_store(&watcher, refresh);
}
