/* SPDX-License-Identifier: BSD-3-Clause */

#include "abi_reason.h"
#include "lib_types.h"

HCA_REASON_DEFINE(lib_fail, lib_reason, 256, 1)

int
lib_ctl_fail(struct lib_context *ctx, int err)
{
	return lib_fail(err, "%s", ctx->ops->reason(ctx->ctl));
}

const char *
softhca_last_error(const struct softhca_context *ctx)
{
	return lib_reason();
}
