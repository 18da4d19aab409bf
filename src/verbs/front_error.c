/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Errors of verbs calls, and the messages of SOFTHCA_DEBUG=1. A program of softhca-run that gets no
 * device prints the reason without it.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "front.h"

enum {
	UNKNOWN,
	WANTED,
	UNWANTED,
};

/* Asked for once: a full queue is refused over and over. */
static bool
wanted(void)
{
	static int known;
	int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
	const char *debug;

	if (answer == UNKNOWN) {
		debug = secure_getenv("SOFTHCA_DEBUG");
		answer = debug != NULL && debug[0] != '\0' && strcmp(debug, "0") != 0 ? WANTED
										      : UNWANTED;
		__atomic_store_n(&known, answer, __ATOMIC_RELAXED);
	}
	return answer == WANTED;
}

/* An operation that the header reaches by a pointer has the name of its inline function. */
static void
explain(const char *call, const char *reason, int err)
{
	bool own = strncmp(call, "front_", strlen("front_")) == 0;

	fprintf(stderr, "softhca: %s%s: %s (errno %d)\n", own ? "ibv_" : "",
		own ? call + strlen("front_") : call, reason, err);
}

/* Whether softhca-run has started the program: it names the folder of this library. */
static bool
started_by_run(void)
{
	const char *folder = secure_getenv("SOFTHCA_VERBS");

	return folder != NULL && folder[0] != '\0';
}

void
front_explain_device(int err, const char *call, const char *reason)
{
	static bool said;

	if (wanted() || (started_by_run() && !__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)))
		explain(call, reason, err);
}

int
front_result_of_open(int result, const char *call)
{
	if (result >= 0)
		return 0;
	front_explain_device(-result, call, softhca_last_error(NULL));
	errno = -result;
	return -result;
}

int
front_result(int result, const char *call)
{
	if (__builtin_expect(result >= 0, 1))
		return 0;
	/* that there is no event is no failure */
	if (result != -EAGAIN && result != -EINTR && wanted())
		explain(call, softhca_last_error(NULL), -result);
	errno = -result;
	return -result;
}

void *
front_failed(const char *call)
{
	front_result(-errno, call);
	return NULL;
}

int
front_refuse(int err, const char *call, const char *format, ...)
{
	char reason[256];
	va_list args;

	if (wanted()) {
		va_start(args, format);
		vsnprintf(reason, sizeof(reason), format, args);
		va_end(args);
		explain(call, reason, err);
	}
	errno = err;
	return err;
}

bool
front_notes(void)
{
	return wanted();
}

void
front_note(const char *call, const char *format, ...)
{
	char text[256];
	va_list args;

	if (!wanted())
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, "softhca: %s: %s\n", call, text);
}

void *
front_new(size_t bytes, const char *call)
{
	void *object = calloc(1, bytes);

	if (object == NULL)
		front_refuse(ENOMEM, call, "no memory for %zu bytes", bytes);
	return object;
}
