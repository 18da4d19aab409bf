/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdarg.h>
#include <stdio.h>

#include "driver_types.h"

#define REASON_SIZE 256

static _Thread_local char reason[REASON_SIZE] = "no error";

int
driver_fail(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	return err;
}

const char *
hca_driver_reason(void)
{
	return reason;
}
