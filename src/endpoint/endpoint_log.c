/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "abi_reason.h"
#include "endpoint.h"
#include "endpoint_log.h"

static enum endpoint_log threshold = ENDPOINT_LOG_INFO;

HCA_REASON_DEFINE(endpoint_fail, endpoint_reason, 512, 0)

void
endpoint_log_level(uint32_t level)
{
	threshold = (enum endpoint_log)level;
}

/* syslog priority before the line, for systemd */
static void
prefix(enum endpoint_log level, char *text, size_t size)
{
	static const char *const priority[] = {"<3>", "<4>", "<6>", "<7>"};
	static const char *const word[] = {"error: ", "warning: ", "", "debug: "};
	struct timespec ts;
	struct tm tm;

	if (getenv("JOURNAL_STREAM") != NULL) {
		snprintf(text, size, "%s", priority[level]);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &ts);
	localtime_r(&ts.tv_sec, &tm);
	snprintf(text, size, "%02d:%02d:%02d.%03ld %s", tm.tm_hour, tm.tm_min, tm.tm_sec,
		 ts.tv_nsec / 1000000, word[level]);
}

void
endpoint_log(enum endpoint_log level, const char *format, ...)
{
	char line[1024], head[48];
	va_list ap;

	if (level > threshold)
		return;
	prefix(level, head, sizeof(head));
	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	fprintf(stderr, "%s%s\n", head, line); /* a single write: stderr is not buffered */
}
