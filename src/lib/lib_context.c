/* SPDX-License-Identifier: BSD-3-Clause */

/* Contexts: creation, destruction, queries. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi_cmd.h"
#include "lib_doorbell.h"

/* Header of an object's memory. */
struct lib_object {
	_Alignas(16) struct lib_object *next;
	struct lib_object *prev;
	int fd; /* closed with the object; -1: none */
};

void *
lib_object_new(struct lib_context *ctx, size_t bytes, const char *what)
{
	struct lib_object *o = calloc(1, sizeof(*o) + bytes);

	if (o == NULL) {
		lib_fail(-ENOMEM, "no memory for %s", what);
		return NULL;
	}
	o->fd = -1;
	pthread_mutex_lock(&ctx->lock);
	o->next = ctx->objects;
	if (o->next != NULL)
		o->next->prev = o;
	ctx->objects = o;
	pthread_mutex_unlock(&ctx->lock);
	return o + 1;
}

void
lib_object_free(struct lib_context *ctx, void *object)
{
	struct lib_object *o = (struct lib_object *)object - 1;

	pthread_mutex_lock(&ctx->lock);
	if (o->next != NULL)
		o->next->prev = o->prev;
	if (o->prev != NULL)
		o->prev->next = o->next;
	else
		ctx->objects = o->next;
	pthread_mutex_unlock(&ctx->lock);
	if (o->fd >= 0)
		close(o->fd);
	free(o);
}

void *
lib_object_refused(struct lib_context *ctx, void *object)
{
	lib_object_free(ctx, object);
	return NULL;
}

void
lib_object_fd(void *object, int fd)
{
	struct lib_object *o = (struct lib_object *)object - 1;

	o->fd = fd;
}

static int
alloc_tables(struct lib_context *ctx)
{
	size_t qps, cqs, srqs;

	if (ctx->info.log_num_qps > 23 || ctx->info.log_num_cqs > 23 || ctx->info.log_num_srqs > 23)
		return lib_fail(-EIO, "the driver reports 2^%u QPs, 2^%u CQs and 2^%u SRQs",
				ctx->info.log_num_qps, ctx->info.log_num_cqs,
				ctx->info.log_num_srqs);
	qps = (size_t)1 << ctx->info.log_num_qps;
	cqs = (size_t)1 << ctx->info.log_num_cqs;
	srqs = (size_t)1 << ctx->info.log_num_srqs;
	ctx->srq_mask = (uint32_t)srqs - 1;
	ctx->srqs = calloc(srqs, sizeof(struct lib_srq *));
	ctx->qp_mask = (uint32_t)qps - 1;
	ctx->cq_mask = (uint32_t)cqs - 1;
	ctx->qps = calloc(qps, sizeof(struct lib_qp *));
	ctx->cqs = calloc(cqs, sizeof(struct lib_cq *));
	if (ctx->qps == NULL || ctx->cqs == NULL || ctx->srqs == NULL)
		return lib_fail(-ENOMEM, "no memory for the tables of a context");
	return 0;
}

int
softhca_context_create(const struct softhca_ctl_ops *ops, void *arg, const char *name,
		       struct softhca_context **out)
{
	struct lib_context *ctx = aligned_alloc(HCA_CACHE_LINE, sizeof(*ctx));
	struct hca_ctl_extra extra;
	volatile void *page;
	int err;

	if (ctx == NULL)
		return lib_fail(-ENOMEM, "no memory for a context");
	memset(ctx, 0, sizeof(*ctx));
	ctx->ops = ops;
	ctx->ctl = arg;
	ctx->progress = ops->progress;
	snprintf(ctx->name, sizeof(ctx->name), "%s", name);
	ctx->pub.name = ctx->name;
	ctx->pub.async_fd = -1;
	pthread_mutex_init(&ctx->lock, NULL);
	pthread_cond_init(&ctx->acked, NULL);
	err = LIB_CALL(ctx, INFO, NULL, &ctx->info);
	if (err != 0)
		goto err_free;
	ctx->pub.num_comp_vectors = ctx->info.num_vectors != 0 ? ctx->info.num_vectors : 1;
	err = alloc_tables(ctx);
	if (err != 0)
		goto err_tables;
	page = ops->uar(arg);
	if (page == NULL) {
		err = lib_fail(-EIO, "no doorbell page");
		goto err_tables;
	}
	lib_uar_init(&ctx->uar, page, ctx->info.uar_page);
	if (ops->sleep != NULL)
		(void)ops->sleep(arg, &ctx->uar.sleep_word, &ctx->uar.kick_fd);
	err = LIB_CALL_EXTRA(ctx, ASYNC_FD, NULL, NULL, &extra);
	if (err != 0)
		goto err_tables;
	ctx->pub.async_fd = extra.fds[0];
	err = lib_life_begin(ctx);
	if (err != 0)
		goto err_async;
	*out = &ctx->pub;
	return 0;

err_async:
	close(ctx->pub.async_fd);
err_tables:
	free(ctx->srqs);
	free(ctx->cqs);
	free(ctx->qps);
err_free:
	free(ctx);
	return err;
}

int
softhca_close(struct softhca_context *pub)
{
	struct lib_context *ctx = lib_ctx(pub);

	if (ctx->forked)
		return lib_dead(ctx);
	lib_life_end(ctx);
	ctx->ops->close(ctx->ctl);
	lib_share_forget(ctx);
	if (pub->async_fd >= 0)
		close(pub->async_fd);
	for (uint32_t i = 0; i <= ctx->qp_mask; i++)
		if (ctx->qps[i] != NULL)
			lib_qp_free(ctx->qps[i]);
	for (uint32_t i = 0; i <= ctx->cq_mask; i++) {
		if (ctx->cqs[i] != NULL) {
			lib_unmap(ctx, ctx->cqs[i]->ring, ctx->cqs[i]->bytes);
			free(ctx->cqs[i]);
		}
	}
	for (uint32_t i = 0; i <= ctx->srq_mask; i++)
		if (ctx->srqs[i] != NULL)
			lib_srq_free(ctx->srqs[i]);
	while (ctx->objects != NULL)
		lib_object_free(ctx, ctx->objects + 1);
	pthread_cond_destroy(&ctx->acked);
	pthread_mutex_destroy(&ctx->lock);
	free(ctx->srqs);
	free(ctx->cqs);
	free(ctx->qps);
	free(ctx);
	return 0;
}

unsigned int
softhca_progress(struct softhca_context *pub)
{
	struct lib_context *ctx = lib_ctx(pub);

	return ctx->progress != NULL ? ctx->progress(ctx->ctl) : 0;
}

/* Translate the device's capabilities to those of verbs */
static uint64_t
cap_flags(uint32_t caps)
{
	static const struct {
		uint32_t cap;
		uint64_t flags;
	} map[] = {
		{HCA_CAP_RC, SOFTHCA_DEVICE_RC_RNR_NAK_GEN | SOFTHCA_DEVICE_PORT_ACTIVE_EVENT},
		{HCA_CAP_UD, SOFTHCA_DEVICE_UD_AV_PORT_ENFORCE},
		{HCA_CAP_APM, SOFTHCA_DEVICE_AUTO_PATH_MIG},
		{HCA_CAP_XRC, SOFTHCA_DEVICE_XRC},
		{HCA_CAP_MW, SOFTHCA_DEVICE_MEM_WINDOW | SOFTHCA_DEVICE_MEM_WINDOW_TYPE_2B},
	};
	uint64_t flags = 0;

	for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (caps & map[i].cap)
			flags |= map[i].flags;
	return flags;
}

/* What works on foreign memory, which on-demand regions are. */
static struct softhca_odp_caps
odp_caps(const struct hca_ctl_info *info)
{
	uint32_t sends = SOFTHCA_ODP_SUPPORT_SEND | SOFTHCA_ODP_SUPPORT_WRITE;
	uint32_t receives = SOFTHCA_ODP_SUPPORT_RECV;
	uint32_t srq = info->max_srqs != 0 ? SOFTHCA_ODP_SUPPORT_SRQ_RECV : 0;
	uint32_t reliable = sends | SOFTHCA_ODP_SUPPORT_READ;

	if (info->slow_memory == 0)
		return (struct softhca_odp_caps){0};
	if (info->flags & HCA_CAP_ATOMIC)
		reliable |= SOFTHCA_ODP_SUPPORT_ATOMIC;
	return (struct softhca_odp_caps){
		.general_caps = SOFTHCA_ODP_SUPPORT,
		.rc_odp_caps = reliable | receives | srq,
		.uc_odp_caps = sends | receives,
		.ud_odp_caps = SOFTHCA_ODP_SUPPORT_SEND | receives | srq,
		.xrc_odp_caps = info->flags & HCA_CAP_XRC ? reliable | srq : 0,
	};
}

int
softhca_query_device(struct softhca_context *pub, struct softhca_device_attr *attr)
{
	const struct hca_ctl_info *info = &lib_ctx(pub)->info;

	memset(attr, 0, sizeof(*attr));
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "softhca 0.1");
	attr->node_guid = info->board_id;
	attr->max_mr_size = UINT64_MAX;
	attr->page_size_cap = UINT64_C(0x7ffff000); /* 4 KiB .. 1 GiB */
	attr->max_qp = info->max_qps;
	attr->max_qp_wr = 1u << info->log_max_wqes;
	attr->max_sge = info->max_sge;
	attr->max_cq = info->max_cqs;
	attr->max_cqe = 1u << info->log_max_cqes;
	attr->max_mr = info->max_mrs;
	attr->max_pd = info->max_pds;
	attr->max_qp_rd_atom = info->max_dest_rd_atomic;
	attr->max_qp_init_rd_atom = info->max_rd_atomic;
	attr->max_inline_data = info->max_inline;
	attr->max_pkeys = info->pkey_entries;
	attr->phys_port_cnt = info->num_ports;
	attr->local_ca_ack_delay = info->ack_delay;
	attr->max_srq = info->max_srqs;
	attr->max_srq_wr = attr->max_srq != 0 ? attr->max_qp_wr - 1 : 0;
	attr->max_srq_sge = attr->max_srq != 0 ? info->max_sge : 0;
	attr->max_ah = UINT32_MAX; /* only limited by host memory */
	attr->max_mcast_grp = info->max_mcgs;
	attr->max_mcast_qp_attach = info->max_qps_per_mcg;
	attr->max_mw = info->max_mws;
	attr->max_xrcd = info->max_xrcds;
	attr->atomic_cap = info->flags & HCA_CAP_ATOMIC ? SOFTHCA_ATOMIC_GLOB : SOFTHCA_ATOMIC_NONE;
	attr->device_cap_flags = cap_flags(info->flags);
	attr->odp_caps = odp_caps(info);
	return 0;
}

static int
check_port(const struct lib_context *ctx, unsigned int port)
{
	if (port >= 1 && port <= ctx->info.num_ports)
		return 0;
	return lib_fail(-EINVAL, "port %u, the device has 1..%u", port, ctx->info.num_ports);
}

int
softhca_query_port(struct softhca_context *pub, unsigned int port, struct softhca_port_attr *attr)
{
	struct lib_context *ctx = lib_ctx(pub);
	struct hca_ctl_port state;
	int err = check_port(ctx, port);

	if (err == 0)
		err = LIB_CALL(ctx, QUERY_PORT, &port, &state);
	if (err != 0)
		return err;
	memset(attr, 0, sizeof(*attr));
	attr->state = state.state;
	attr->max_mtu = state.max_mtu;
	attr->active_mtu = state.active_mtu;
	attr->active_speed = state.speed;
	attr->gid_tbl_len = ctx->info.gid_entries;
	attr->pkey_tbl_len = ctx->info.pkey_entries;
	attr->max_msg_sz = HCA_MAX_MSG_SIZE;
	memcpy(attr->mac, state.mac, sizeof(attr->mac));
	return 0;
}

int
softhca_query_gid(struct softhca_context *pub, unsigned int port, unsigned int index,
		  union softhca_gid *gid)
{
	struct lib_context *ctx = lib_ctx(pub);
	struct hca_ctl_gid entry;
	int err = check_port(ctx, port);

	if (err == 0)
		err = LIB_CALL(ctx, QUERY_GID, &index, &entry);
	if (err == 0)
		memcpy(gid->raw, entry.gid, sizeof(gid->raw));
	return err;
}

int
softhca_query_gid_ex(struct softhca_context *pub, unsigned int port, unsigned int index,
		     struct softhca_gid_entry *entry, uint32_t flags)
{
	struct lib_context *ctx = lib_ctx(pub);
	struct hca_ctl_gid gid;
	int err = check_port(ctx, port);

	if (err == 0 && flags != 0)
		err = lib_fail(-EINVAL, "flags %#x are not known", flags);
	if (err == 0)
		err = LIB_CALL(ctx, QUERY_GID, &index, &gid);
	if (err != 0)
		return err;
	if (!gid.valid)
		return lib_fail(-ENODATA, "GID index %u is empty", index);
	*entry = (struct softhca_gid_entry){
		.gid_index = index,
		.port_num = port,
		.gid_type = SOFTHCA_GID_TYPE_ROCE_V2,
		.vlan_id = gid.vlan_id,
	};
	memcpy(entry->gid.raw, gid.gid, sizeof(entry->gid.raw));
	memcpy(entry->mac, gid.mac, sizeof(entry->mac));
	return 0;
}

int
softhca_query_pkey(struct softhca_context *pub, unsigned int port, unsigned int index,
		   uint16_t *pkey)
{
	struct lib_context *ctx = lib_ctx(pub);
	int err = check_port(ctx, port);

	return err != 0 ? err : LIB_CALL(ctx, QUERY_PKEY, &index, pkey);
}
