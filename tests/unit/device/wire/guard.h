/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory with an inaccessible page on each side: an access beyond it faults. */
#ifndef TESTS_UNIT_DEVICE_WIRE_GUARD_H
#define TESTS_UNIT_DEVICE_WIRE_GUARD_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define GUARD_PAGE 4096

struct guard {
	uint8_t *map;
	uint8_t *start; /* first accessible byte */
	uint8_t *end;	/* one past the last */
};

static inline struct guard
guard_alloc(size_t pages)
{
	size_t len = (pages + 2) * GUARD_PAGE;
	struct guard g;

	g.map = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (g.map == MAP_FAILED)
		abort();
	g.start = g.map + GUARD_PAGE;
	g.end = g.start + pages * GUARD_PAGE;
	if (mprotect(g.start, pages * GUARD_PAGE, PROT_READ | PROT_WRITE) != 0)
		abort();
	return g;
}

static inline void
guard_free(struct guard *g)
{
	munmap(g->map, g->end - g->start + 2 * GUARD_PAGE);
}

#endif
