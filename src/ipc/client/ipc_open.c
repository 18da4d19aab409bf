/* SPDX-License-Identifier: BSD-3-Clause */

/* Lists devices and opens one: embedded, or by the socket of a daemon. */

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc_client.h"
#include "ipc_proto.h"
#include "lib_error.h"

#define EMBED_LIBRARY "libsofthca-embed.so.0"
#define EMBED_OPEN "softhca_embed_open_default"
#define SUFFIX ".sock"
#define NAME_MAX_BYTES 64u

typedef int (*embed_open_fn)(unsigned int index, struct softhca_context **ctx);

/* The library stays loaded: DPDK cannot be unloaded. */
static int
open_embedded(unsigned int index, struct softhca_context **ctx)
{
	void *library = dlopen(EMBED_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
	embed_open_fn open_fn;

	if (library == NULL)
		return lib_fail(-ENOENT, "the embedded mode is not installed: %s", dlerror());
	*(void **)&open_fn = dlsym(library, EMBED_OPEN);
	if (open_fn == NULL)
		return lib_fail(-ENOENT, "%s is of another version", EMBED_LIBRARY);
	return open_fn(index, ctx);
}

static const char *
folder(void)
{
	const char *chosen = getenv("SOFTHCA_DIRECTORY");

	return chosen != NULL && chosen[0] != '\0' ? chosen : IPC_DIRECTORY;
}

static int
open_named(const char *name, struct softhca_context **ctx)
{
	char path[256];

	if (snprintf(path, sizeof(path), "%s/%s" SUFFIX, folder(), name) >= (int)sizeof(path))
		return lib_fail(-ENAMETOOLONG, "the name \"%s\" is too long", name);
	if (ipc_client_open(path, ctx) == 0)
		return 0;
	if (errno != ENOENT)
		return -errno;
	return lib_fail(-ENODEV, "there is no device \"%s\": no daemon listens on %s", name, path);
}

static int
open_first(struct softhca_context **ctx)
{
	int err = lib_fail(-ENODEV, "there is no device: no daemon has a socket in %s", folder());
	struct softhca_device **list;
	int n;

	list = softhca_get_device_list(&n);
	if (list == NULL)
		return -errno;
	if (n > 0)
		err = open_named(list[0]->name, ctx);
	softhca_free_device_list(list);
	return err;
}

int
softhca_open(const char *name, struct softhca_context **ctx)
{
	unsigned int index = 0;
	char rest;

	if (ctx == NULL)
		return lib_fail(-EINVAL, "no place for a context");
	if (name == NULL)
		name = getenv("SOFTHCA_DEVICE");
	if (name == NULL || name[0] == '\0')
		return open_first(ctx);
	if (strcmp(name, "embed") == 0 || sscanf(name, "embed:%u%c", &index, &rest) == 1)
		return open_embedded(index, ctx);
	if (strchr(name, '/') != NULL)
		return ipc_client_open(name, ctx);
	return open_named(name, ctx);
}

/* ---- the list ---- */

static int
is_socket(const struct dirent *entry)
{
	size_t bytes = strlen(entry->d_name), suffix = strlen(SUFFIX);

	return bytes > suffix && bytes - suffix < NAME_MAX_BYTES &&
	       strcmp(entry->d_name + bytes - suffix, SUFFIX) == 0;
}

/* One allocation: the pointers, then the devices. */
static struct softhca_device **
make_list(struct dirent **entries, int n)
{
	struct softhca_device **list =
		calloc(1, ((size_t)n + 1) * sizeof(*list) + (size_t)n * sizeof(**list));
	struct softhca_device *device = (struct softhca_device *)(list + n + 1);

	for (int i = 0; list != NULL && i < n; i++) {
		list[i] = &device[i];
		memcpy(device[i].name, entries[i]->d_name,
		       strlen(entries[i]->d_name) - strlen(SUFFIX));
	}
	return list;
}

struct softhca_device **
softhca_get_device_list(int *num_devices)
{
	struct dirent **entries = NULL;
	int n = scandir(folder(), &entries, is_socket, alphasort);
	struct softhca_device **list;

	if (n < 0)
		n = 0;
	list = make_list(entries, n);
	if (list == NULL)
		lib_fail(-ENOMEM, "no memory for a list of %d devices", n);
	else if (num_devices != NULL)
		*num_devices = n;
	while (n > 0)
		free(entries[--n]);
	free(entries);
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
