/* SPDX-License-Identifier: BSD-3-Clause */

#include "fuzz_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "hca.h"

struct event {
	uint64_t time;
	uint32_t n;
	char kind;
};

void
fuzz_trace_begin(struct fuzz_trace *t)
{
	t->n = 0;
}

void
fuzz_trace_add(struct fuzz_trace *t, char kind, uint64_t time, const void *bytes, uint32_t n)
{
	struct event e;

	memset(&e, 0, sizeof(e)); /* also its padding */
	e.time = time;
	e.n = n;
	e.kind = kind;
	if (t->room - t->n < sizeof(e) + n) {
		t->room = 2 * t->room + sizeof(e) + n;
		t->bytes = realloc(t->bytes, t->room);
		fuzz_check(t->bytes != NULL, "no memory");
	}
	memcpy(t->bytes + t->n, &e, sizeof(e));
	memcpy(t->bytes + t->n + sizeof(e), bytes, n);
	t->n += sizeof(e) + n;
}

void
fuzz_trace_state(struct fuzz_trace *t, uint64_t time, const struct hca *h, const uint8_t *mem,
		 uint32_t bytes)
{
	fuzz_trace_add(t, 'm', time, mem, bytes);
	for (unsigned int i = 0; i < hca_counter_count(); i++) {
		struct {
			char name[56];
			uint64_t value;
		} seen = {.value = hca_counter_value(h, i)};

		strncpy(seen.name, hca_counter_name(i), sizeof(seen.name) - 1);
		fuzz_trace_add(t, 'c', time, &seen, sizeof(seen));
	}
}

static void
show(const char *which, const struct fuzz_trace *t, size_t at)
{
	struct event e;

	if (at == t->n) {
		fprintf(stderr, "%s: no more events\n", which);
		return;
	}
	memcpy(&e, t->bytes + at, sizeof(e));
	fprintf(stderr, "%s: %c at %llu:", which, e.kind, (unsigned long long)e.time);
	for (uint32_t i = 0; i < e.n && i < 160; i++)
		fprintf(stderr, "%s%02x", i % 4 == 0 ? " " : "", t->bytes[at + sizeof(e) + i]);
	fputc('\n', stderr);
}

/* Bytes of the event there; 0: it is the end. */
static size_t
length_at(const struct fuzz_trace *t, size_t at)
{
	struct event e;

	if (at == t->n)
		return 0;
	memcpy(&e, t->bytes + at, sizeof(e));
	return sizeof(e) + e.n;
}

void
fuzz_trace_compare(const struct fuzz_trace *with, const struct fuzz_trace *without)
{
	size_t at = 0, n;

	while ((n = length_at(with, at)) == length_at(without, at)) {
		if (n == 0)
			return;
		if (memcmp(with->bytes + at, without->bytes + at, n) != 0)
			break;
		at += n;
	}
	show("with short ways", with, at);
	show("without", without, at);
	fuzz_fail("short ways change more than the time");
}
