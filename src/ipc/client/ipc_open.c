/* SPDX-License-Identifier: BSD-3-Clause */

/* Opens a device: embedded, or by the socket of a daemon. */

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc_client.h"
#include "ipc_list.h"
#include "lib_error.h"

#define EMBED_LIBRARY "libsofthca-embed.so.0"
#define EMBED_OPEN "softhca_embed_open_default"
#define EMBED_REASON "softhca_embed_last_error"

typedef int (*embed_open_fn)(unsigned int index, struct softhca_context **ctx);
typedef const char *(*embed_reason_fn)(void);

/* The library stays loaded: DPDK cannot be unloaded. */
static int
open_embedded(unsigned int index, struct softhca_context **ctx)
{
	void *library = dlopen(EMBED_LIBRARY, RTLD_NOW | RTLD_GLOBAL);
	embed_reason_fn reason_fn;
	embed_open_fn open_fn;
	int err;

	if (library == NULL)
		return lib_fail(-ENOENT, "the embedded mode is not installed: %s", dlerror());
	*(void **)&open_fn = dlsym(library, EMBED_OPEN);
	*(void **)&reason_fn = dlsym(library, EMBED_REASON);
	if (open_fn == NULL || reason_fn == NULL)
		return lib_fail(-ENOENT, "%s is of another version", EMBED_LIBRARY);
	err = open_fn(index, ctx);
	return err == 0 ? 0 : lib_fail(err, "%s", reason_fn());
}

static int
open_named(const char *name, struct softhca_context **ctx)
{
	char path[256];

	if (snprintf(path, sizeof(path), "%s/%s" IPC_SOCKET_SUFFIX, ipc_folder(), name) >=
	    (int)sizeof(path))
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
	int err = lib_fail(-ENODEV, "there is no device: no daemon with a socket in %s runs",
			   ipc_folder());
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
		name = secure_getenv("SOFTHCA_DEVICE");
	if (name == NULL || name[0] == '\0')
		return open_first(ctx);
	if (strcmp(name, "embed") == 0 || sscanf(name, "embed:%u%c", &index, &rest) == 1)
		return open_embedded(index, ctx);
	if (strchr(name, '/') != NULL)
		return ipc_client_open(name, ctx);
	return open_named(name, ctx);
}
