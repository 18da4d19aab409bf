/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_REASON_H
#define HCA_ABI_REASON_H

/*
 * The reason of a failed call as a sentence, one per thread and room. It is no layout; it is here
 * because each room that reports errors to operators or programs has one.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/*
 * Defines two functions, which the room declares:
 *   int fail(int err, const char *format, ...)  notes the reason and returns err; also sets errno
 *                                               when to_errno is 1, err being a negative errno
 *   const char *reason(void)                    that of the last failure in this thread
 */
#define HCA_REASON_DEFINE(fail, reason, size, to_errno) \
	static _Thread_local char fail##_text[size] = "no error"; \
	int fail(int err, const char *format, ...) \
	{ \
		va_list args; \
		va_start(args, format); \
		vsnprintf(fail##_text, sizeof(fail##_text), format, args); \
		va_end(args); \
		if (to_errno) \
			errno = -err; \
		return err; \
	} \
	const char *reason(void) \
	{ \
		return fail##_text; \
	}

/*
 * The format of the reason for an allocation of ordinary memory that has failed; its arguments are
 * the object, as a text, and its bytes, as size_t. process: the process without memory, a literal.
 */
#define HCA_NO_MEMORY(process) \
	"no memory for %s: " process \
	" cannot allocate %zu bytes: raise its limit (ulimit -v, cgroup), or free memory of the host"

#endif
