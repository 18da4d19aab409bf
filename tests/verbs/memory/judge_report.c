/* SPDX-License-Identifier: BSD-3-Clause */

/* History of a range, and the report of a difference. */

#include <stdarg.h>
#include <unistd.h>

#include "judge.h"

#define NOTES 16384u
#define SHOWN_NOTES 60u
#define SHOWN_BYTES 16u

static struct {
	uint64_t step;
	const uint8_t *va, *end;
	char text[80];
} history[NOTES];
static uint64_t notes;

void
note(const void *va, size_t bytes, const char *format, ...)
{
	uint64_t i = notes++ % NOTES;
	va_list args;

	history[i].step = judge.step;
	history[i].va = va;
	history[i].end = history[i].va + bytes;
	va_start(args, format);
	vsnprintf(history[i].text, sizeof(history[i].text), format, args);
	va_end(args);
}

/* What touched the page, or was of all memory (va NULL), which is not shown */
static bool
note_is_of(uint64_t i, const uint8_t *va, const uint8_t *end)
{
	const uint8_t *from = va - ((uintptr_t)va & (PAGE - 1)), *to = end + PAGE;

	return history[i % NOTES].va != NULL && history[i % NOTES].va < to &&
	       from < history[i % NOTES].end;
}

static void
show_history(const uint8_t *va, const uint8_t *end)
{
	uint64_t oldest = notes > NOTES ? notes - NOTES : 0, shown = 0, i = notes;

	while (i > oldest && shown < SHOWN_NOTES)
		if (note_is_of(--i, va, end))
			shown++;
	for (; i < notes; i++)
		if (note_is_of(i, va, end))
			fprintf(stderr, "  step %llu: %p to %p: %s\n",
				(unsigned long long)history[i % NOTES].step,
				(const void *)history[i % NOTES].va,
				(const void *)history[i % NOTES].end, history[i % NOTES].text);
}

static void
show_bytes(const char *what, const uint8_t *bytes, size_t n)
{
	fprintf(stderr, "  %s", what);
	for (size_t i = 0; i < n && i < SHOWN_BYTES; i++)
		fprintf(stderr, " %02x", bytes[i]);
	fputc('\n', stderr);
}

/* Whose bytes are these? */
static void
show_owner(const uint8_t *found)
{
	for (uint32_t k = 0; k < judge.windows; k++) {
		const struct window *w = &judge.window[k];

		for (uint32_t i = 0; i < w->n; i++)
			for (size_t at = 0; w->v[i].page != NULL && at < PAGE; at += 8)
				if (memcmp(w->v[i].page->bytes + at, found, 8) == 0) {
					fprintf(stderr, "  these are bytes of %s at %p\n", w->name,
						(void *)(w->va + i * PAGE + at));
					return;
				}
	}
}

static void
show_where(void)
{
	fprintf(stderr, "seed %llu, step %llu%s: ", (unsigned long long)judge.seed,
		(unsigned long long)judge.step, judge.child ? ", in a child" : "");
}

void
differs(const char *what, const void *va, const uint8_t *expected, const uint8_t *found, size_t n)
{
	size_t first = 0, wrong = 0;
	const uint8_t *at;

	for (size_t i = n; i-- > 0;)
		if (expected[i] != found[i]) {
			first = i;
			wrong++;
		}
	at = (const uint8_t *)va + first;
	show_where();
	fprintf(stderr, "%s: %zu of %zu bytes differ, the first at %p\n", what, wrong, n,
		(const void *)at);
	show_bytes("expected", expected + first, n - first);
	show_bytes("found   ", found + first, n - first);
	if (n - first >= 8 && *(const uint64_t *)(found + first) != 0)
		show_owner(found + first);
	show_history(at, at + 1);
	_exit(1);
}

void
failed(const char *call, const void *va, size_t bytes)
{
	int err = errno;

	show_where();
	fprintf(stderr, "%s of %zu bytes at %p failed: %s\n", call, bytes, va, strerror(err));
	show_history(va, (const uint8_t *)va + bytes);
	_exit(1);
}
