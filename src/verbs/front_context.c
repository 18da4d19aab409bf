/* SPDX-License-Identifier: BSD-3-Clause */

/* Contexts: opening, closing, import, and the operations that the header calls by pointer. */

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "front.h"

#undef ibv_query_port

/*
 * For an operation that is not here the header answers EOPNOTSUPP: raw packets, flow steering, WQs
 * and counters of flows, device memory, tag matching.
 */
static const struct verbs_context context_ex = {
	.query_port = front_query_port,
	.advise_mr = front_advise_mr,
	.alloc_null_mr = front_alloc_null_mr,
	.alloc_parent_domain = front_alloc_parent_domain,
	.dealloc_td = front_dealloc_td,
	.alloc_td = front_alloc_td,
	.modify_qp_rate_limit = front_modify_qp_rate_limit,
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
			.ops =
				{
					/* the header calls these without a look */
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
				},
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

/* Objects left in it are freed with it. In a forked child it stays. */
static int
context_destroy(void *object, const char *call)
{
	struct front_context *ctx = object;
	int err;

	front_unwatch(ctx->hca);
	err = front_result(softhca_close(ctx->hca), call);
	if (err != 0)
		return err;
	front_forget(ctx);
	context_free(ctx);
	return 0;
}

static const struct front_kind context_kind = {"context", 0, context_destroy, NULL};

/*
 * There is no device file. cmd_fd is a file of memory that names the device, sealed: a process that
 * gets it can open the device (ibv_import_device()), with its own rights, but cannot change the
 * file. With the token of the context in it the process shares its PDs, if its user is the same.
 */
#define TOKEN_MAGIC "softhca-context"
#define TOKEN_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

struct token {
	char magic[16];
	char name[IBV_SYSFS_NAME_MAX];
	__be64 guid;
	uint64_t embedded; /* not 0: in this process, which has opened it */
	uint8_t share[SOFTHCA_TOKEN_BYTES];
};

static int
token_write(int fd, const struct token *token)
{
	if (pwrite(fd, token, sizeof(*token), 0) != (ssize_t)sizeof(*token))
		return -1;
	return fcntl(fd, F_ADD_SEALS, TOKEN_SEALS);
}

/* A new descriptor; -1 with errno */
static int
token_new(const struct front_device *device, struct softhca_context *hca)
{
	struct token token = {.magic = TOKEN_MAGIC};
	struct softhca_device_attr attr;
	int err = softhca_query_device(hca, &attr), fd;

	if (err != 0) {
		errno = -err;
		return -1;
	}
	if (front_device_is_embedded(device))
		token.embedded = (uint64_t)getpid();
	softhca_get_token(hca, token.share);
	memcpy(token.name, device->pub.name, sizeof(token.name));
	token.guid = htobe64(attr.node_guid);
	fd = memfd_create(TOKEN_MAGIC, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd >= 0 && token_write(fd, &token) != 0) {
		err = errno;
		close(fd);
		errno = err;
		return -1;
	}
	return fd;
}

/* Only a sealed file of memory is read: reading it does not block. */
static bool
token_read(int fd, struct token *token)
{
	return fcntl(fd, F_GET_SEALS) == TOKEN_SEALS &&
	       pread(fd, token, sizeof(*token), 0) == (ssize_t)sizeof(*token) &&
	       memcmp(token->magic, TOKEN_MAGIC, sizeof(token->magic)) == 0 &&
	       memchr(token->name, 0, sizeof(token->name)) != NULL;
}

/* cmd_fd becomes the context's; -1: a new one */
static struct ibv_context *
context_new(struct front_device *device, struct softhca_context *hca, int cmd_fd)
{
	struct front_context *ctx = front_new(sizeof(*ctx), "ibv_open_device");
	struct ibv_context *pub;

	if (ctx == NULL)
		return NULL;
	ctx->ex = context_ex;
	ctx->hca = hca;
	ctx->device = device;
	if (front_like(ctx, "ibv_open_device") != 0 || front_faults_judge("ibv_open_device") != 0) {
		free(ctx);
		return NULL;
	}
	front_fault_context(ctx);
	pub = &ctx->ex.context;
	pub->device = &device->pub;
	pub->async_fd = hca->async_fd;
	pub->num_comp_vectors = (int)hca->num_comp_vectors;
	pub->cmd_fd = cmd_fd >= 0 ? cmd_fd : token_new(device, hca);
	if (pub->cmd_fd < 0) {
		front_refuse(errno, "ibv_open_device",
			     "no descriptor for the context: %s; see ulimit -n", strerror(errno));
		free(ctx);
		return NULL;
	}
	pthread_mutex_init(&pub->mutex, NULL);
	front_device_take(device);
	return pub;
}

/* A daemon of an earlier release lacks later features; their calls are refused. */
static void
note_older(struct softhca_context *hca, const char *call)
{
	char release[32];

	if (front_notes() && softhca_query_release(hca, release, sizeof(release)) == -EOPNOTSUPP)
		front_note(call, "%s", softhca_last_error(hca));
}

/* cmd_fd as above; it stays the caller's if this fails. */
static struct ibv_context *
context_open(struct front_device *device, int cmd_fd, const char *call)
{
	struct softhca_context *hca;
	struct ibv_context *context;

	if (front_result_of_open(softhca_open(device->open_name, &hca), call) != 0)
		return NULL;
	context = context_new(device, hca, cmd_fd);
	if (context == NULL) {
		softhca_close(hca);
		return NULL;
	}
	if (front_enter(front_ctx(context), &context_kind, NULL, NULL, call) == NULL)
		return NULL;
	front_watch(device, hca);
	note_older(hca, call);
	return context;
}

struct ibv_context *
ibv_open_device(struct ibv_device *device)
{
	FRONT_FAULT(NULL);
	return context_open((struct front_device *)device, -1, __func__);
}

int
ibv_close_device(struct ibv_context *context)
{
	return FRONT_DESTROY(front_ctx(context), &context_kind);
}

static bool
is_named(struct ibv_device *device, const struct token *token)
{
	return strcmp(device->name, token->name) == 0 && ibv_get_device_guid(device) == token->guid;
}

/* The contexts that it names may have ended, or are another user's: then it shares nothing. */
static struct ibv_context *
join(struct ibv_context *context, const struct token *token)
{
	if (context != NULL)
		front_result(softhca_join(front_hca(context), token->share), "ibv_import_device");
	return context;
}

/*
 * The device of another context, opened by this process with a session of its own. Both may import
 * PDs of each other.
 */
struct ibv_context *
ibv_import_device(int cmd_fd)
{
	struct ibv_context *context = NULL;
	struct ibv_device **list;
	struct token token;
	int i = 0;

	if (!token_read(cmd_fd, &token))
		return FRONT_NULL(EINVAL, "the descriptor is not that of a context");
	if (token.embedded != 0 && token.embedded != (uint64_t)getpid())
		return FRONT_NULL(EOPNOTSUPP, "%s is embedded in the process that has opened it",
				  token.name);
	list = ibv_get_device_list(NULL);
	if (list == NULL)
		return NULL;
	while (list[i] != NULL && !is_named(list[i], &token))
		i++;
	if (list[i] == NULL)
		FRONT_REFUSE(ENODEV, "this process finds no device %s", token.name);
	else
		context = join(context_open((struct front_device *)list[i], cmd_fd, __func__),
			       &token);
	ibv_free_device_list(list);
	return context;
}
