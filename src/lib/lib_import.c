/* SPDX-License-Identifier: BSD-3-Clause */

/* Protection domains and regions of other contexts. */

#include <errno.h>
#include <string.h>

#include "abi_ctx.h"
#include "lib_types.h"

_Static_assert(sizeof(struct hca_ctl_share) == SOFTHCA_TOKEN_BYTES, "a token");

void
softhca_get_token(struct softhca_context *pub, uint8_t token[SOFTHCA_TOKEN_BYTES])
{
	struct lib_context *ctx = lib_ctx(pub);

	pthread_mutex_lock(&ctx->lock);
	memcpy(token, &ctx->info.share, SOFTHCA_TOKEN_BYTES);
	pthread_mutex_unlock(&ctx->lock);
}

int
softhca_join(struct softhca_context *pub, const uint8_t token[SOFTHCA_TOKEN_BYTES])
{
	struct lib_context *ctx = lib_ctx(pub);
	struct hca_ctl_share share;
	int err;

	memcpy(&share, token, sizeof(share));
	err = LIB_CALL(ctx, JOIN, &share, NULL);
	if (err != 0)
		return err;
	pthread_mutex_lock(&ctx->lock);
	ctx->info.share = share;
	pthread_mutex_unlock(&ctx->lock);
	return 0;
}

struct softhca_pd *
softhca_import_pd(struct softhca_context *pub, uint32_t handle)
{
	struct lib_context *ctx = lib_ctx(pub);
	struct lib_pd *pd = lib_object_new(ctx, sizeof(*pd), "a PD");

	if (pd == NULL)
		return NULL;
	pd->pub.context = pub;
	pd->pub.handle = handle;
	if (LIB_CALL(ctx, IMPORT_PD, &handle, NULL) != 0)
		return lib_object_refused(ctx, pd);
	return &pd->pub;
}

struct softhca_mr *
softhca_import_mr(struct softhca_pd *pd, uint32_t handle)
{
	const struct hca_ctl_find_mr request = {.pdn = pd->handle, .index = handle};
	struct lib_context *ctx = lib_ctx(pd->context);
	struct lib_mr *mr = lib_object_new(ctx, sizeof(*mr), "an MR");
	struct hca_ctl_found_mr found;

	if (mr == NULL)
		return NULL;
	if (LIB_CALL(ctx, IMPORT_MR, &request, &found) != 0)
		return lib_object_refused(ctx, mr);
	mr->ctx = ctx;
	mr->pd = pd;
	mr->imported = true;
	mr->pub = (struct softhca_mr){
		.context = pd->context,
		.pd = pd,
		.length = found.length,
		.handle = handle,
		.lkey = found.keys.lkey,
		.rkey = found.keys.rkey,
	};
	return &mr->pub;
}
