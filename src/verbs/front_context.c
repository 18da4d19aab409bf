/* SPDX-License-Identifier: BSD-3-Clause */

/* Contexts: opening, closing, import, and the operations that the header calls by pointer. */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "front.h"

#undef ibv_query_port

/* The header calls these without a look. */
static const struct ibv_context_ops context_ops = {
	._compat_query_device = ibv_query_device,
	._compat_query_port = ibv_query_port,
	.alloc_mw = front_alloc_mw,
	.bind_mw = front_bind_mw,
	.dealloc_mw = front_dealloc_mw,
	.poll_cq = front_poll_cq,
	.req_notify_cq = front_req_notify_cq,
	.post_srq_recv = front_post_srq_recv,
	.post_send = front_post_send,
	.post_recv = front_post_recv,
};

/*
 * For an operation that is not here the header answers EOPNOTSUPP: raw packets, flow steering, WQs
 * and counters of flows, device memory, tag matching, packet pacing.
 */
static const struct verbs_context context_ex = {
	.query_port = front_query_port,
	.advise_mr = front_advise_mr,
	.alloc_null_mr = front_alloc_null_mr,
	.alloc_parent_domain = front_alloc_parent_domain,
	.dealloc_td = front_dealloc_td,
	.alloc_td = front_alloc_td,
	.modify_cq = front_modify_cq,
	.query_rt_values = front_query_rt_values,
	.create_cq_ex = front_create_cq_ex,
	.query_device_ex = front_query_device_ex,
	.open_qp = front_open_qp,
	.create_qp_ex = front_create_qp_ex,
	.get_srq_num = front_get_srq_num,
	.create_srq_ex = front_create_srq_ex,
	.open_xrcd = front_open_xrcd,
	.close_xrcd = front_close_xrcd,
	.sz = sizeof(struct verbs_context),
	.context =
		{
			.ops = context_ops,
			.abi_compat = __VERBS_ABI_IS_EXTENDED,
		},
};

static void
context_free(struct front_context *ctx)
{
	struct ibv_context *pub = &ctx->ex.context;

	front_device_drop(ctx->device);
	close(pub->cmd_fd);
	pthread_mutex_destroy(&pub->mutex);
	free(ctx);
}

/* What is left in it is freed with it. In a forked child it stays. */
static int
context_destroy(void *object, const char *call)
{
	struct front_context *ctx = object;
	int err = front_result(softhca_close(ctx->hca), call);

	if (err != 0)
		return err;
	front_forget(ctx);
	context_free(ctx);
	return 0;
}

static const struct front_kind context_kind = {"context", context_destroy, NULL};

static struct ibv_context *
context_new(struct front_device *device, struct softhca_context *hca)
{
	struct front_context *ctx = front_new(sizeof(*ctx), "ibv_open_device");
	struct ibv_context *pub;

	if (ctx == NULL)
		return NULL;
	ctx->ex = context_ex;
	ctx->hca = hca;
	ctx->device = device;
	pub = &ctx->ex.context;
	pub->device = &device->pub;
	pub->async_fd = hca->async_fd;
	pub->num_comp_vectors = (int)hca->num_comp_vectors;
	/* there is no device file; programs duplicate the descriptor and compare it */
	pub->cmd_fd = memfd_create("softhca-context", MFD_CLOEXEC);
	if (pub->cmd_fd < 0) {
		front_refuse(errno, "ibv_open_device", "no descriptor for the context");
		free(ctx);
		return NULL;
	}
	pthread_mutex_init(&pub->mutex, NULL);
	front_device_take(device);
	return pub;
}

struct ibv_context *
ibv_open_device(struct ibv_device *device)
{
	struct front_device *own = (struct front_device *)device;
	struct softhca_context *hca;
	struct ibv_context *context;

	if (FRONT_RESULT(softhca_open(own->open_name, &hca)) != 0)
		return NULL;
	context = context_new(own, hca);
	if (context == NULL) {
		softhca_close(hca);
		return NULL;
	}
	return FRONT_ENTER(front_ctx(context), &context_kind, NULL) != NULL ? context : NULL;
}

int
ibv_close_device(struct ibv_context *context)
{
	return FRONT_DESTROY(front_ctx(context), &context_kind);
}

struct ibv_context *
ibv_import_device(int cmd_fd)
{
	return FRONT_NULL(EOPNOTSUPP, "contexts cannot be imported");
}
