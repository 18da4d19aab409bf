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
#include "ucma/ucma.h"

#define EMBEDDED 2

/*
 * The devices that are in a list or a context. Programs compare the pointers of one list with those
 * of another to detect new and removed devices (librdmacm does), so a device stays the same in all.
 */
static struct front_device *devices;
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;

static void
lock(void)
{
	pthread_mutex_lock(&devices_lock);
}

static void
unlock(void)
{
	pthread_mutex_unlock(&devices_lock);
}

/* A child of fork() must find the lock free. */
static __attribute__((constructor)) void
watch_fork(void)
{
	pthread_atfork(lock, unlock, unlock);
}

static struct front_device *
device_of(const struct ibv_device *device)
{
	return (struct front_device *)(uintptr_t)device;
}

void
front_device_take(struct front_device *device)
{
	lock();
	device->users++;
	unlock();
}

void
front_device_drop(struct front_device *device)
{
	struct front_device **link = &devices;
	uint32_t users;

	lock();
	users = --device->users;
	while (users == 0 && *link != device)
		link = &(*link)->next;
	if (users == 0)
		*link = device->next;
	unlock();
	if (users == 0)
		free(device);
}

/* ---- making devices ---- */

/* Identity of a device */
struct identity {
	const char *open_name;
	const char *name; /* `bytes` bytes, not terminated */
	size_t bytes;
	const struct softhca_device *found; /* NULL: named by SOFTHCA_DEVICE */
	int index;
};

/* The lock is held, also in device_new(). */
static struct front_device *
device_find(const struct identity *id)
{
	struct front_device *device = devices;

	while (device != NULL &&
	       (strcmp(device->open_name, id->open_name) != 0 || device->index != id->index))
		device = device->next;
	return device;
}

static int
free_number(void)
{
	int number = 0;

	for (const struct front_device *device = devices; device != NULL;)
		if (device->number == number) {
			number++;
			device = devices;
		} else {
			device = device->next;
		}
	return number;
}

static struct front_device *
device_new(const struct identity *id)
{
	struct front_device *device = front_new(sizeof(*device), "ibv_get_device_list");
	struct ibv_device *pub;

	if (device == NULL)
		return NULL;
	device->number = free_number();
	pub = &device->pub;
	pub->node_type = IBV_NODE_CA;
	pub->transport_type = IBV_TRANSPORT_IB;
	snprintf(pub->name, sizeof(pub->name), "%.*s", (int)id->bytes, id->name);
	snprintf(pub->dev_name, sizeof(pub->dev_name), "uverbs%d", device->number);
	snprintf(pub->dev_path, sizeof(pub->dev_path), "/sys/class/infiniband_verbs/uverbs%d",
		 device->number);
	snprintf(pub->ibdev_path, sizeof(pub->ibdev_path), "/sys/class/infiniband/%s", pub->name);
	snprintf(device->open_name, sizeof(device->open_name), "%s", id->open_name);
	device->index = id->index;
	device->has_guid = id->found != NULL;
	device->guid = device->has_guid ? softhca_get_device_guid(id->found) : 0;
	device->next = devices;
	devices = device;
	return device;
}

/* The device that is in use, or a new one */
static struct front_device *
device_get(const struct identity *id)
{
	struct front_device *device;

	lock();
	device = device_find(id);
	if (device == NULL)
		device = device_new(id);
	if (device != NULL)
		device->users++;
	unlock();
	return device;
}

/* A list that grows; the devices of one that did not become complete are freed. */
struct list {
	struct ibv_device **devices;
	int n;
	bool failed;
};

static void
list_add(struct list *list, const struct identity *id)
{
	struct front_device *device = list->failed ? NULL : device_get(id);

	if (device == NULL)
		list->failed = true;
	else
		list->devices[list->n++] = &device->pub;
}

/* "/run/softhca/hca0.sock" is hca0 */
static void
add_path(struct list *list, const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	const char *dot = strrchr(name, '.');
	size_t bytes = dot != NULL && dot != name ? (size_t)(dot - name) : strlen(name);
	const struct identity id = {path, name, bytes, NULL, 1};

	list_add(list, &id);
}

/* Two back to back, or one on a port of its own */
static void
add_embedded(struct list *list)
{
	static const struct identity ids[EMBEDDED] = {
		{"embed", "embed0", sizeof("embed0") - 1, NULL, 1},
		{"embed:1", "embed1", sizeof("embed1") - 1, NULL, 2},
	};
	const char *port = secure_getenv("SOFTHCA_EMBED_PORT");
	int count = port != NULL && port[0] != '\0' ? 1 : EMBEDDED;

	for (int i = 0; i < count; i++)
		list_add(list, &ids[i]);
}

static bool
is_embedded(const char *chosen)
{
	return strcmp(chosen, "embed") == 0 || strncmp(chosen, "embed:", strlen("embed:")) == 0;
}

bool
front_device_is_embedded(const struct front_device *device)
{
	return is_embedded(device->open_name);
}

static void
add_found(struct list *list, struct softhca_device *const found[], int n, const char *chosen)
{
	for (int i = 0; i < n; i++) {
		const char *name = softhca_get_device_name(found[i]);
		const struct identity id = {name, name, strlen(name), found[i],
					    softhca_get_device_index(found[i])};

		if (chosen == NULL || strcmp(chosen, name) == 0)
			list_add(list, &id);
	}
}

struct ibv_device **
front_device_list(int *num_devices, const char *call)
{
	const char *chosen = secure_getenv("SOFTHCA_DEVICE");
	struct softhca_device **found;
	struct list list = {0};
	int n = 0;

	if (num_devices != NULL)
		*num_devices = 0;
	if (chosen != NULL && chosen[0] == '\0')
		chosen = NULL;
	found = softhca_get_device_list(&n);
	if (found == NULL) {
		front_result_of_open(-errno, call);
		return NULL;
	}
	list.devices = front_new((size_t)(n + EMBEDDED + 1) * sizeof(*list.devices), call);
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
	if (list.n == 0 && chosen != NULL)
		front_explain_device(ENODEV, call,
				     "no daemon that runs has the device of SOFTHCA_DEVICE");
	if (num_devices != NULL)
		*num_devices = list.n;
	return list.devices;
}

/* librdmacm asks for the list before it opens its device. */
struct ibv_device **
ibv_get_device_list(int *num_devices)
{
	FRONT_FAULT(NULL);
	ucma_hook();
	return front_device_list(num_devices, __func__);
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

/* ---- attributes of a device ---- */

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

	lock();
	known = device->has_guid;
	unlock();
	if (known)
		return htobe64(device->guid);
	if (front_result_of_open(ask_guid(device, &guid), __func__) != 0)
		return 0;
	lock();
	device->guid = guid;
	device->has_guid = true;
	unlock();
	return htobe64(guid);
}
