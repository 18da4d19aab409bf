/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * HCAs: a context of libsofthca for each, opened when an address is looked for, and kept until the
 * process ends, as librdmacm keeps its own. That of a daemon that has ended is closed with the last
 * file that uses it.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "ucma.h"

/* ---- contexts; hca_lock is held ---- */

static struct ucma_hca *
hca_find(const struct ibv_device *device)
{
	struct ucma_hca *hca = ucma.hcas;

	while (hca != NULL && (hca->device != device || hca->dead))
		hca = hca->next;
	return hca;
}

static void
hca_close(struct ucma_hca *hca)
{
	struct ucma_hca **link = &ucma.hcas;

	while (*link != hca)
		link = &(*link)->next;
	*link = hca->next;
	softhca_close(hca->ctx);
	ucma_front_drop(hca->device);
	free(hca);
}

static struct ucma_hca *
hca_open(struct ibv_device *device, int *err)
{
	struct ucma_hca *hca = calloc(1, sizeof(*hca));

	*err = hca != NULL ? ucma_front_open(device, &hca->ctx) : -ENOMEM;
	if (*err != 0) {
		free(hca);
		return NULL;
	}
	ucma_front_take(device);
	hca->device = device;
	hca->guid = ibv_get_device_guid(device);
	hca->index = (uint32_t)ibv_get_device_index(device);
	hca->next = ucma.hcas;
	ucma.hcas = hca;
	return hca;
}

/* ---- the order in which they are asked ---- */

static unsigned int
common_bits(const union softhca_gid *a, const union softhca_gid *b)
{
	unsigned int bits = 0;

	while (bits < 128 && ((a->raw[bits / 8] ^ b->raw[bits / 8]) & (0x80u >> (bits % 8))) == 0)
		bits++;
	return bits;
}

/* Bits that the destination has in common with an address of the HCA, which may be its own */
static unsigned int
hca_nearness(struct ucma_hca *hca, const union softhca_gid *dst)
{
	struct softhca_port_attr port;
	union softhca_gid gid;
	unsigned int best = 0, bits;

	if (softhca_query_port(hca->ctx, 1, &port) != 0)
		return 0;
	for (uint32_t i = 0; i < port.gid_tbl_len; i++) {
		if (softhca_query_gid(hca->ctx, 1, i, &gid) != 0)
			continue;
		bits = common_bits(&gid, dst);
		best = bits > best ? bits : best;
	}
	return best;
}

static void
list_sort(struct ucma_hca_list *list, const struct sockaddr_storage *dst)
{
	unsigned int nearness[list->n], bits;
	union softhca_gid gid = ucma_addr_gid(dst);
	struct ucma_hca *hca;
	uint32_t j;

	for (uint32_t i = 0; i < list->n; i++) {
		hca = list->hcas[i];
		bits = hca_nearness(hca, &gid);
		for (j = i; j > 0 && nearness[j - 1] < bits; j--) {
			list->hcas[j] = list->hcas[j - 1];
			nearness[j] = nearness[j - 1];
		}
		list->hcas[j] = hca;
		nearness[j] = bits;
	}
}

/* 0, or the error of the last that could not be opened if none could */
static int
list_fill(struct ucma_hca_list *list, struct ibv_device **devices)
{
	struct ucma_hca *hca;
	int err = -ENODEV;

	for (int i = 0; devices[i] != NULL; i++) {
		hca = hca_find(devices[i]);
		if (hca == NULL)
			hca = hca_open(devices[i], &err);
		if (hca == NULL)
			continue;
		hca->users++;
		list->hcas[list->n++] = hca;
	}
	return list->n > 0 ? 0 : err;
}

int
ucma_hca_list(const struct sockaddr_storage *dst, struct ucma_hca_list *list)
{
	struct ibv_device **devices;
	int count = 0, err = -ENOMEM;

	*list = (struct ucma_hca_list){0};
	pthread_mutex_lock(&ucma.hca_lock);
	devices = ucma_front_devices(&count);
	if (devices != NULL)
		list->hcas = calloc((size_t)count + 1, sizeof(*list->hcas));
	if (list->hcas != NULL)
		err = list_fill(list, devices);
	if (devices != NULL)
		ucma_front_free_devices(devices);
	if (list->n > 1 && dst != NULL)
		list_sort(list, dst);
	pthread_mutex_unlock(&ucma.hca_lock);
	if (err != 0)
		ucma_hca_list_free(list);
	return err;
}

static void
hca_put(struct ucma_hca *hca)
{
	if (--hca->users == 0 && hca->dead)
		hca_close(hca);
}

void
ucma_hca_list_free(struct ucma_hca_list *list)
{
	pthread_mutex_lock(&ucma.hca_lock);
	for (uint32_t i = 0; i < list->n; i++)
		hca_put(list->hcas[i]);
	pthread_mutex_unlock(&ucma.hca_lock);
	free(list->hcas);
	*list = (struct ucma_hca_list){0};
}

/* ---- the channels of a file ---- */

static int
source_open(const struct ucma_call *call, struct ucma_source *source)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fd, err;

	source->channel = softhca_cm_create_channel(source->hca->ctx);
	if (source->channel == NULL)
		return ucma_front_result(-errno, call->name);
	fd = source->channel->fd;
	event.data.fd = fd;
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0 &&
	    epoll_ctl(call->fd, EPOLL_CTL_ADD, fd, &event) == 0)
		return 0;
	err = -errno;
	softhca_cm_destroy_channel(source->channel);
	return err;
}

int
ucma_source_get(const struct ucma_call *call, struct ucma_hca *hca, struct ucma_source **source)
{
	struct ucma_source *new = call->file->sources;
	int err;

	while (new != NULL &&new->hca != hca)
		new = new->next;
	*source = new;
	if (new != NULL)
		return new->dead ? -EIO : 0;
	new = calloc(1, sizeof(*new));
	if (new == NULL)
		return -ENOMEM;
	new->hca = hca;
	err = source_open(call, new);
	if (err != 0) {
		free(new);
		return err;
	}
	pthread_mutex_lock(&ucma.hca_lock);
	hca->users++;
	pthread_mutex_unlock(&ucma.hca_lock);
	new->next = call->file->sources;
	call->file->sources = *source = new;
	return 0;
}

void
ucma_source_died(const struct ucma_call *call, struct ucma_source *source)
{
	source->dead = true;
	epoll_ctl(call->fd, EPOLL_CTL_DEL, source->channel->fd, NULL);
	pthread_mutex_lock(&ucma.hca_lock);
	source->hca->dead = true;
	pthread_mutex_unlock(&ucma.hca_lock);
}

void
ucma_sources_free(struct ucma_file *file)
{
	struct ucma_source *source;

	while ((source = file->sources) != NULL) {
		file->sources = source->next;
		softhca_cm_destroy_channel(source->channel);
		pthread_mutex_lock(&ucma.hca_lock);
		hca_put(source->hca);
		pthread_mutex_unlock(&ucma.hca_lock);
		free(source);
	}
}
