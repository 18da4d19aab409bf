/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_LOG_H
#define ENDPOINT_LOG_H

/*
 * The daemon's log, on stderr. Under systemd a line starts with its priority ("<6>"), otherwise
 * with the time. Any thread but workers may log.
 */

#include "endpoint_config.h"

/* Drop lines less important than level (enum endpoint_log). */
void endpoint_log_level(uint32_t level);
void endpoint_log(enum endpoint_log level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#define LOG_ERROR(...) endpoint_log(ENDPOINT_LOG_ERROR, __VA_ARGS__)
#define LOG_WARNING(...) endpoint_log(ENDPOINT_LOG_WARNING, __VA_ARGS__)
#define LOG_INFO(...) endpoint_log(ENDPOINT_LOG_INFO, __VA_ARGS__)
#define LOG_DEBUG(...) endpoint_log(ENDPOINT_LOG_DEBUG, __VA_ARGS__)

/* Record the reason for endpoint_reason(); returns err. */
int endpoint_fail(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
