/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The device list: that of libsofthca, or the device alone that SOFTHCA_DEVICE names: by its name,
 * by the path of its socket, or as "embed", which stands for both ends of the embedded pair.
 */

#include <errno.h>
#include <endian.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front.h"

#define EMBEDDED 2

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;

static struct front_device *
device_of(const struct ibv_device *device)
{
	return (struct front_device *)(uintptr_t)device;
}

void
front_device_take(struct front_device *device)
{
	pthread_mutex_lock(&devices_lock);
	device->users++;
	pthread_mutex_unlock(&devices_lock);
}

void
front_device_drop(struct front_device *device)
{
	uint32_t users;

	pthread_mutex_lock(&devices_lock);
	users = --device->users;
	pthread_mutex_unlock(&devices_lock);
	if (users == 0)
		free(device);
}

/* ---- making devices ---- */

static struct front_device *
device_new(const char *open_name, const char *name, size_t name_bytes, int number)
{
	struct front_device *device = front_new(sizeof(*device), "ibv_get_device_list");
	struct ibv_device *pub;

	if (device == NULL)
		return NULL;
	pub = &device->pub;
	pub->node_type = IBV_NODE_CA;
	pub->transport_type = IBV_TRANSPORT_IB;
	snprintf(pub->name, sizeof(pub->name), "%.*s", (int)name_bytes, name);
	snprintf(pub->dev_name, sizeof(pub->dev_name), "uverbs%d", number);
	snprintf(pub->dev_path, sizeof(pub->dev_path), "/sys/class/infiniband_verbs/uverbs%d",
		 number);
	snprintf(pub->ibdev_path, sizeof(pub->ibdev_path), "/sys/class/infiniband/%s", pub->name);
	snprintf(device->open_name, sizeof(device->open_name), "%s", open_name);
	device->index = number + 1;
	device->users = 1;
	return device;
}

/* A list that grows; the devices of one that did not become complete are freed. */
struct list {
	struct ibv_device **devices;
	int n;
	bool failed;
};

static struct front_device *
list_add(struct list *list, const char *open_name, const char *name, size_t name_bytes)
{
	struct front_device *device = NULL;

	if (!list->failed)
		device = device_new(open_name, name, name_bytes, list->n);
	if (device == NULL)
		list->failed = true;
	else
		list->devices[list->n++] = &device->pub;
	return device;
}

/* "/run/softhca/hca0.sock" is hca0 */
static void
add_path(struct list *list, const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	const char *dot = strrchr(name, '.');

	list_add(list, path, name,
		 dot != NULL && dot != name ? (size_t)(dot - name) : strlen(name));
}

/* Two back to back, or one on a port of its own */
static void
add_embedded(struct list *list)
{
	const char *port = getenv("SOFTHCA_EMBED_PORT");

	list_add(list, "embed", "embed0", strlen("embed0"));
	if (port == NULL || port[0] == '\0')
		list_add(list, "embed:1", "embed1", strlen("embed1"));
}

static bool
is_embedded(const char *chosen)
{
	return strcmp(chosen, "embed") == 0 || strncmp(chosen, "embed:", strlen("embed:")) == 0;
}

static void
add_found(struct list *list, struct softhca_device *const found[], int n, const char *chosen)
{
	for (int i = 0; i < n; i++) {
		const char *name = softhca_get_device_name(found[i]);
		struct front_device *device;

		if (chosen != NULL && strcmp(chosen, name) != 0)
			continue;
		device = list_add(list, name, name, strlen(name));
		if (device == NULL)
			return;
		device->index = softhca_get_device_index(found[i]);
		device->guid = softhca_get_device_guid(found[i]);
		device->has_guid = true;
	}
}

struct ibv_device **
ibv_get_device_list(int *num_devices)
{
	const char *chosen = getenv("SOFTHCA_DEVICE");
	struct softhca_device **found;
	struct list list = {0};
	int n = 0;

	if (num_devices != NULL)
		*num_devices = 0;
	if (chosen != NULL && chosen[0] == '\0')
		chosen = NULL;
	found = softhca_get_device_list(&n);
	if (found == NULL)
		return FRONT_FAILED();
	list.devices = front_new((size_t)(n + EMBEDDED + 1) * sizeof(*list.devices), __func__);
	if (list.devices == NULL)
		list.failed = true;
	else if (chosen != NULL && is_embedded(chosen))
		add_embedded(&list);
	else if (chosen != NULL && strchr(chosen, '/') != NULL)
		add_path(&list, chosen);
	else
		add_found(&list, found, n, chosen);
	softhca_free_device_list(found);
	if (list.failed) {
		ibv_free_device_list(list.devices);
		return NULL;
	}
	if (num_devices != NULL)
		*num_devices = list.n;
	return list.devices;
}

void
ibv_free_device_list(struct ibv_device **list)
{
	if (list == NULL)
		return;
	for (int i = 0; list[i] != NULL; i++)
		front_device_drop(device_of(list[i]));
	free(list);
}

/* ---- what is known of a device ---- */

const char *
ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

int
ibv_get_device_index(struct ibv_device *device)
{
	return device_of(device)->index;
}

static int
ask_guid(const struct front_device *device, uint64_t *guid)
{
	struct softhca_context *hca;
	struct softhca_device_attr attr;
	int err = softhca_open(device->open_name, &hca);

	if (err != 0)
		return err;
	err = softhca_query_device(hca, &attr);
	*guid = attr.node_guid;
	softhca_close(hca);
	return err;
}

/* A device that is not from the list of libsofthca is opened to ask for it. */
__be64
ibv_get_device_guid(struct ibv_device *pub)
{
	struct front_device *device = device_of(pub);
	uint64_t guid = 0;
	bool known;

	pthread_mutex_lock(&devices_lock);
	known = device->has_guid;
	pthread_mutex_unlock(&devices_lock);
	if (known)
		return htobe64(device->guid);
	if (FRONT_RESULT(ask_guid(device, &guid)) != 0)
		return 0;
	pthread_mutex_lock(&devices_lock);
	device->guid = guid;
	device->has_guid = true;
	pthread_mutex_unlock(&devices_lock);
	return htobe64(guid);
}
