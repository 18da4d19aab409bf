/* SPDX-License-Identifier: BSD-3-Clause */

#include "abi_reason.h"
#include "lib_types.h"

HCA_REASON_DEFINE(lib_fail, lib_reason, 256, 1)

int
lib_no_memory(const char *object, size_t bytes)
{
	return lib_fail(-ENOMEM, HCA_NO_MEMORY("this process"), object, bytes);
}

void
lib_error_keep(struct lib_error *error)
{
	error->number = errno;
	snprintf(error->reason, sizeof(error->reason), "%s", lib_reason());
}

void
lib_error_restore(const struct lib_error *error)
{
	lib_fail(-error->number, "%s", error->reason);
}

int
lib_call(struct lib_context *ctx, enum hca_ctl_op op, const void *request, void *answer,
	 struct hca_ctl_extra *extra)
{
	int err = ctx->ops->call(ctx->ctl, op, request, answer, extra);

	return err == 0 ? 0 : lib_fail(err, "%s", ctx->ops->reason(ctx->ctl));
}

int
lib_needs(const struct lib_context *ctx, enum hca_ctl_feature feature)
{
	const char *words = "more";

	if ((ctx->features & feature) != 0)
		return 0;
#define X(NAME, bit, text) \
	if (feature == HCA_CTL_FEATURE_##NAME) \
		words = text;
	HCA_CTL_FEATURE_LIST(X)
#undef X
	return lib_fail(-EOPNOTSUPP,
			"the daemon is of a release without %s: upgrade the daemon, and restart it",
			words);
}

void
lib_drop(struct lib_context *ctx, enum hca_ctl_op op, uint32_t number)
{
	(void)ctx->ops->call(ctx->ctl, op, &number, NULL, NULL);
}

const char *
softhca_last_error(const struct softhca_context *ctx)
{
	return lib_reason();
}
