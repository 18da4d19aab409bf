/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "lib_types.h"

#define REASON_SIZE 256

static _Thread_local char reason[REASON_SIZE] = "no error";

int
lib_fail(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	errno = -err;
	return err;
}

int
lib_ctl_fail(struct lib_context *ctx, int err)
{
	return lib_fail(err, "%s", ctx->ops->reason(ctx->ctl));
}

const char *
softhca_last_error(const struct softhca_context *ctx)
{
	return reason;
}
