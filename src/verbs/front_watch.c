/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Counters of embedded devices as files. softhca-run --sysfs writes the files of the kernel before
 * the program starts; this process writes the values that only it can read, when it opens the files
 * (src/sysfs).
 */

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "front.h"
#include "sysfs_tree.h"
#include "sysfs_watch.h"

#define WATCHED_MAX 16u

/* Contexts of embedded devices; free places have no ctx. */
static struct sysfs_device watched[WATCHED_MAX];
static pthread_mutex_t watched_lock = PTHREAD_MUTEX_INITIALIZER;

/* A child of fork() that finds the lock taken reads the values written last. */
static void
refresh(const char *root)
{
	if (pthread_mutex_trylock(&watched_lock) != 0)
		return;
	for (unsigned int i = 0; i < WATCHED_MAX; i++)
		if (watched[i].ctx != NULL)
			sysfs_refresh(root, &watched[i]);
	pthread_mutex_unlock(&watched_lock);
}

static void
register_once(void)
{
	void *const found = dlsym(RTLD_DEFAULT, SYSFS_WATCH_NAME);

	if (found != NULL)
		((__typeof__(softhca_sysfs_watch) *)found)(refresh);
}

void
front_watch(struct front_device *device, struct softhca_context *hca)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	unsigned int i = 0;

	if (!front_device_is_embedded(device))
		return;
	pthread_once(&once, register_once);
	pthread_mutex_lock(&watched_lock);
	while (i < WATCHED_MAX && watched[i].ctx != NULL)
		i++;
	if (i < WATCHED_MAX)
		watched[i] =
			(struct sysfs_device){device->pub.name, (unsigned int)device->number, hca};
	pthread_mutex_unlock(&watched_lock);
}

void
front_unwatch(const struct softhca_context *hca)
{
	pthread_mutex_lock(&watched_lock);
	for (unsigned int i = 0; i < WATCHED_MAX; i++)
		if (watched[i].ctx == hca)
			memset(&watched[i], 0, sizeof(watched[i]));
	pthread_mutex_unlock(&watched_lock);
}
