/* SPDX-License-Identifier: BSD-3-Clause */

/* Devices, their addresses, contexts. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "urma_impl.h"

/* Both libraries must have the same struct lib_context. */
static int
same_release(void)
{
	const struct lib_inside *in = softhca_inside();

	if (in->bytes == sizeof(*in) && in->context_bytes == sizeof(struct lib_context))
		return 0;
	errno = ELIBBAD;
	return -ELIBBAD;
}

urma_status_t
urma_status(int err)
{
	static const int same[] = {EAGAIN, ENOMEM, EPERM, ETIMEDOUT, EINVAL, EEXIST, EINPROGRESS};

	if (err == 0)
		return URMA_SUCCESS;
	errno = -err;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		if (same[i] == -err)
			return (urma_status_t)-err;
	return URMA_FAIL;
}

const char *
softhca_urma_reason(void)
{
	return softhca_inside()->reason();
}

/* ---- start ---- */

static uint32_t started;

urma_status_t
urma_init(urma_init_attr_t *conf)
{
	if (same_release() != 0)
		return URMA_FAIL;
	__atomic_fetch_add(&started, 1, __ATOMIC_RELAXED);
	return URMA_SUCCESS;
}

urma_status_t
urma_uninit(void)
{
	uint32_t n = __atomic_load_n(&started, __ATOMIC_RELAXED);

	do {
		if (n == 0)
			return urma_status(urma_fail(
				-EBADFD,
				"urma_uninit() without urma_init(): each call of one needs a call "
				"of the other"));
	} while (!__atomic_compare_exchange_n(&started, &n, n - 1, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return URMA_SUCCESS;
}

/* ---- devices ---- */

static void
name_device(urma_device_t *dev, const char *name)
{
	snprintf(dev->name, sizeof(dev->name), "%s", name);
	dev->type = URMA_TRANSPORT_UB;
}

/* Pointers, NULL, then the devices, in one allocation */
static urma_device_t **
alloc_list(int n)
{
	size_t pointers = ((size_t)n + 1) * sizeof(urma_device_t *);
	urma_device_t **list = calloc(1, pointers + (size_t)n * sizeof(urma_device_t));

	for (int i = 0; list != NULL && i < n; i++)
		list[i] = (urma_device_t *)((uint8_t *)list + pointers) + i;
	return list;
}

urma_device_t **
urma_get_device_list(int *num_devices)
{
	struct softhca_device **found;
	urma_device_t **list;
	int n = 0;

	if (num_devices == NULL) {
		urma_fail(-EINVAL,
			  "num_devices is NULL: expected a place for the number of devices");
		return NULL;
	}
	*num_devices = 0;
	found = softhca_get_device_list(&n);
	if (found == NULL)
		return NULL;
	list = alloc_list(n);
	if (list == NULL)
		urma_no_memory("a list of devices", (size_t)n * sizeof(**list));
	for (int i = 0; list != NULL && i < n; i++)
		name_device(list[i], softhca_get_device_name(found[i]));
	if (list != NULL)
		*num_devices = n;
	softhca_free_device_list(found);
	return list;
}

void
urma_free_device_list(urma_device_t **list)
{
	free(list);
}

/* Devices that were asked for by name; they stay. */
struct named {
	urma_device_t device;
	struct named *next;
};
static struct named *all_named;
static pthread_mutex_t named_lock = PTHREAD_MUTEX_INITIALIZER;

static struct named *
find_named(const char *name)
{
	struct named *d = all_named;

	while (d != NULL && strcmp(d->device.name, name) != 0)
		d = d->next;
	return d;
}

static struct named *
add_named(const char *name)
{
	struct named *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	name_device(&d->device, name);
	d->next = all_named;
	all_named = d;
	return d;
}

urma_device_t *
urma_get_device_by_name(char *name)
{
	struct named *d;

	if (name == NULL || name[0] == '\0' || strlen(name) >= URMA_MAX_NAME) {
		urma_fail(-EINVAL, "a name of %zu bytes: expected 1 to %d",
			  name == NULL ? 0 : strlen(name), URMA_MAX_NAME - 1);
		return NULL;
	}
	pthread_mutex_lock(&named_lock);
	d = find_named(name);
	if (d == NULL)
		d = add_named(name);
	pthread_mutex_unlock(&named_lock);
	if (d == NULL)
		urma_no_memory("a device", sizeof(*d));
	return d == NULL ? NULL : &d->device;
}

/* ---- attributes of a device ---- */

static int
open_device(const urma_device_t *dev, struct softhca_context **lib)
{
	if (dev == NULL)
		return urma_null("dev", "urma_get_device_by_name");
	return softhca_open(dev->name, lib);
}

static int
read_eid(struct softhca_context *lib, uint32_t index, urma_eid_t *eid)
{
	static const urma_eid_t none;
	union softhca_gid gid;
	int err = softhca_query_gid(lib, 1, index, &gid);

	if (err != 0)
		return err;
	memcpy(eid->raw, gid.raw, sizeof(eid->raw));
	return memcmp(eid, &none, sizeof(none)) == 0 ? -ENODATA : 0;
}

static urma_eid_info_t *
read_eids(struct softhca_context *lib, uint32_t *cnt)
{
	struct softhca_port_attr port;
	urma_eid_info_t *list;

	if (softhca_query_port(lib, 1, &port) != 0)
		return NULL;
	list = calloc(port.gid_tbl_len + 1u, sizeof(*list));
	if (list == NULL) {
		urma_no_memory("a list of EIDs", (port.gid_tbl_len + 1u) * sizeof(*list));
		return NULL;
	}
	for (uint32_t i = 0; i < port.gid_tbl_len; i++) {
		list[*cnt].eid_index = i;
		*cnt += read_eid(lib, i, &list[*cnt].eid) == 0;
	}
	return list;
}

urma_eid_info_t *
urma_get_eid_list(urma_device_t *dev, uint32_t *cnt)
{
	struct softhca_context *lib;
	urma_eid_info_t *list;

	if (cnt == NULL) {
		urma_fail(-EINVAL, "cnt is NULL: expected a place for the number of addresses");
		return NULL;
	}
	*cnt = 0;
	if (open_device(dev, &lib) != 0)
		return NULL;
	list = read_eids(lib, cnt);
	(void)softhca_close(lib);
	return list;
}

void
urma_free_eid_list(urma_eid_info_t *list)
{
	free(list);
}

static void
fill_cap(urma_device_cap_t *cap, const struct softhca_device_attr *attr,
	 const struct hca_ctl_info *info)
{
	cap->feature.bs.oor = 1;
	cap->feature.bs.spray_en = 1;
	cap->feature.bs.selective_retrans = 1;
	cap->feature.bs.error_suspend = 1;
	cap->max_jfc = attr->max_cq;
	cap->max_jfs = attr->max_qp;
	cap->max_jetty = attr->max_qp;
	cap->max_jfr = attr->max_srq;
	cap->max_jfc_depth = attr->max_cqe;
	cap->max_jfs_depth = attr->max_qp_wr;
	cap->max_jfr_depth = attr->max_srq_wr;
	cap->max_jfs_inline_len = info->max_inline;
	cap->max_jfs_sge = info->max_sge;
	cap->max_jfs_rsge = 1;
	cap->max_jfr_sge = info->max_sge;
	cap->max_msg_size = HCA_MAX_MSG_SIZE;
	cap->max_read_size = HCA_MAX_MSG_SIZE;
	cap->max_write_size = HCA_MAX_MSG_SIZE;
	cap->max_cas_size = HCA_UB_ATOMIC_MAX;
	cap->max_swap_size = HCA_UB_ATOMIC_MAX;
	cap->max_fetch_and_add_size = HCA_UB_ATOMIC_MAX;
	cap->max_fetch_and_sub_size = HCA_UB_ATOMIC_MAX;
	cap->max_fetch_and_and_size = HCA_UB_ATOMIC_MAX;
	cap->max_fetch_and_or_size = HCA_UB_ATOMIC_MAX;
	cap->max_fetch_and_xor_size = HCA_UB_ATOMIC_MAX;
	cap->trans_mode = URMA_TM_RM | URMA_TM_RC | URMA_TM_UM;
}

static int
query(struct softhca_context *lib, urma_device_attr_t *out)
{
	struct softhca_device_attr attr;
	struct softhca_port_attr port;
	int err = softhca_query_device(lib, &attr);

	if (err == 0)
		err = softhca_query_port(lib, 1, &port);
	if (err != 0)
		return err;
	memset(out, 0, sizeof(*out));
	out->guid = attr.node_guid;
	fill_cap(&out->dev_cap, &attr, &lib_ctx(lib)->info);
	out->dev_cap.ceq_cnt = lib->num_comp_vectors;
	out->dev_cap.max_eid_cnt = port.gid_tbl_len;
	out->port_cnt = 1;
	out->reserved_jetty_id_min = HCA_TC_WELL_KNOWN_FREE;
	out->reserved_jetty_id_max = HCA_TC_WELL_KNOWN - 1;
	return 0;
}

urma_status_t
urma_query_device(urma_device_t *dev, urma_device_attr_t *attr)
{
	struct softhca_context *lib;
	int err;

	if (attr == NULL)
		return urma_status(urma_fail(
			-EINVAL,
			"attr is NULL: expected a place for the attributes of the device"));
	err = open_device(dev, &lib);
	if (err != 0)
		return urma_status(err);
	err = query(lib, attr);
	(void)softhca_close(lib);
	return urma_status(err);
}

/* ---- contexts ---- */

static int
alloc_tables(struct urma_ctx *c)
{
	c->queue_mask = c->lib->qp_mask;
	c->jfrq_mask = c->lib->srq_mask;
	c->queue = calloc(c->queue_mask + 1u, sizeof(*c->queue));
	c->jfrq = calloc(c->jfrq_mask + 1u, sizeof(*c->jfrq));
	if (c->queue != NULL && c->jfrq != NULL)
		return 0;
	return urma_no_memory("the tables of a context",
			      (c->queue_mask + 1u) * sizeof(*c->queue) +
				      (c->jfrq_mask + 1u) * sizeof(*c->jfrq));
}

static void
context_free(struct urma_ctx *c)
{
	free(c->queue);
	free(c->jfrq);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

urma_context_t *
urma_context_new(struct softhca_context *lib, uint32_t eid_index, bool owned,
		 const struct urma_ctl *ctl)
{
	struct urma_ctx *c = calloc(1, sizeof(*c));
	int err;

	if (c == NULL) {
		urma_no_memory("a context", sizeof(*c));
		return NULL;
	}
	pthread_mutex_init(&c->lock, NULL);
	c->lib = lib_ctx(lib);
	c->ctl = ctl;
	c->owned = owned;
	name_device(&c->device, lib->name);
	c->pub.dev = &c->device;
	c->pub.async_fd = lib->async_fd;
	c->pub.eid_index = eid_index;
	err = read_eid(lib, eid_index, &c->pub.eid);
	if (err == -ENODATA)
		err = urma_fail(
			-ENODATA,
			"EID index %u is empty: urma_get_eid_list() lists those with an address",
			eid_index);
	if (err == 0)
		err = alloc_tables(c);
	if (err != 0)
		goto err_free;
	c->pd = softhca_alloc_pd(lib);
	if (c->pd == NULL)
		goto err_errno;
	return &c->pub;

err_errno:
	err = -errno;
err_free:
	context_free(c);
	errno = -err;
	return NULL;
}

urma_context_t *
urma_create_context(urma_device_t *dev, uint32_t eid_index)
{
	struct softhca_context *lib;
	urma_context_t *ctx;

	if (same_release() != 0 || open_device(dev, &lib) != 0)
		return NULL;
	ctx = urma_context_new(lib, eid_index, true, &urma_ctl_driver);
	if (ctx == NULL)
		(void)softhca_close(lib);
	return ctx;
}

urma_context_t *
softhca_urma_context_at(struct softhca_context *lib, uint32_t eid_index)
{
	if (same_release() != 0)
		return NULL;
	if (lib == NULL) {
		urma_null("lib", "softhca_open");
		return NULL;
	}
	return urma_context_new(lib, eid_index, false, &urma_ctl_driver);
}

/* The first address there is */
urma_context_t *
softhca_urma_context(struct softhca_context *lib)
{
	struct softhca_port_attr port;
	urma_eid_t eid;
	uint32_t i = 0;

	if (same_release() != 0)
		return NULL;
	if (lib == NULL) {
		urma_null("lib", "softhca_open");
		return NULL;
	}
	if (softhca_query_port(lib, 1, &port) != 0)
		return NULL;
	while (i < port.gid_tbl_len && read_eid(lib, i, &eid) != 0)
		i++;
	return urma_context_new(lib, i < port.gid_tbl_len ? i : 0, false, &urma_ctl_driver);
}

urma_status_t
urma_delete_context(urma_context_t *ctx)
{
	struct urma_ctx *c = urma_ctx_of(ctx);
	uint32_t left;
	int err;

	if (ctx == NULL)
		return urma_status(urma_null("ctx", "urma_create_context"));
	pthread_mutex_lock(&c->lock);
	left = c->objects;
	pthread_mutex_unlock(&c->lock);
	if (left != 0)
		return urma_status(urma_fail(
			-EBUSY,
			"%u objects are left in the context: delete, unregister or unimport them "
			"first",
			left));
	err = softhca_dealloc_pd(c->pd);
	if (err == 0 && c->owned)
		err = softhca_close(&c->lib->pub);
	if (err == 0)
		context_free(c);
	return urma_status(err);
}

void *
urma_object_new(struct urma_ctx *ctx, size_t bytes, const char *what)
{
	void *object = calloc(1, bytes);

	if (object == NULL) {
		urma_no_memory(what, bytes);
		return NULL;
	}
	pthread_mutex_lock(&ctx->lock);
	ctx->objects++;
	pthread_mutex_unlock(&ctx->lock);
	return object;
}

void
urma_object_free(struct urma_ctx *ctx, void *object)
{
	pthread_mutex_lock(&ctx->lock);
	ctx->objects--;
	pthread_mutex_unlock(&ctx->lock);
	free(object);
}
