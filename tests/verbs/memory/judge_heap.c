/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory of the allocator that the process has. */

#include <malloc.h>

#include "judge.h"

/* About the sizes of a cache line, a page, and the thresholds of allocators */
static const uint32_t sizes[] = {1,	40,	200,	1000,	4000,	4096,	8200,	30000,
				 65536, 131000, 131072, 135000, 262144, 390000, 400000, 1 << 20};

static size_t
random_size(void)
{
	uint32_t k = random_below(chance(70) ? 10 : sizeof(sizes) / sizeof(sizes[0]));
	size_t size = sizes[k];

	if (chance(70))
		size = size - size / 4 + random_below(sizes[k] / 2 + 1);
	return size == 0 ? 1 : size > MAX_CHUNK ? MAX_CHUNK : size;
}

static uint8_t *
random_allocation(size_t size, bool *zeroed)
{
	uint32_t way = random_below(10);

	*zeroed = way < 3;
	if (*zeroed)
		return calloc(1, size);
	if (way == 3)
		return aligned_alloc(PAGE, (size + PAGE - 1) & ~(PAGE - 1));
	if (way == 4)
		return aligned_alloc(64, (size + 63) & ~(size_t)63);
	return malloc(size);
}

static void
check_zeros(const struct chunk *c)
{
	memset(c->shadow, 0, c->size);
	if (memcmp(c->p, c->shadow, c->size) != 0)
		differs("calloc", c->p, c->shadow, c->p, c->size);
}

static void
fill_chunk(struct chunk *c, size_t from)
{
	random_fill(c->shadow + from, c->size - from);
	memcpy(c->p + from, c->shadow + from, c->size - from);
}

static struct chunk *
pick_chunk(bool used)
{
	for (uint32_t tries = 0; tries < 16; tries++) {
		struct chunk *c = &judge.chunk[random_below(MAX_CHUNKS)];

		if ((c->p != NULL) == used)
			return c;
	}
	return NULL;
}

void
step_allocate(void)
{
	struct chunk *c = pick_chunk(false);
	bool zeroed;

	if (c == NULL)
		return;
	judge.count.heap++;
	if (c->shadow == NULL)
		c->shadow = model_memory(MAX_CHUNK);
	c->size = random_size();
	c->p = random_allocation(c->size, &zeroed);
	CHECK(c->p != NULL);
	c->serial++;
	note(c->p, c->size, zeroed ? "calloc" : "malloc");
	if (zeroed)
		check_zeros(c);
	fill_chunk(c, 0);
}

/* A region stays valid if the buffer stays in place. */
void
step_reallocate(void)
{
	struct chunk *c = pick_chunk(true);
	size_t old, size = random_size();
	uint8_t *p;

	if (c == NULL)
		return;
	judge.count.heap++;
	check_chunk(c);
	if (!judge.free_registered || chance(50))
		regions_of_chunk_drop(c);
	note(c->p, c->size, "realloc to %zu", size);
	p = realloc(c->p, size);
	CHECK(p != NULL);
	old = c->size < size ? c->size : size;
	if (p != c->p || size < c->size)
		c->serial++;
	note(p, size, "realloc from %p", (void *)c->p);
	c->p = p;
	c->size = size;
	if (memcmp(p, c->shadow, old) != 0)
		differs("realloc", p, c->shadow, p, old);
	fill_chunk(c, old);
	check_chunk(c);
}

void
step_release(void)
{
	struct chunk *c = pick_chunk(true);

	if (c == NULL)
		return;
	judge.count.heap++;
	check_chunk(c);
	if (!judge.free_registered || chance(80))
		regions_of_chunk_drop(c);
	check_chunk(c);
	note(c->p, c->size, "free");
	free(c->p);
	c->p = NULL;
	c->serial++;
}

void
step_trim(void)
{
	malloc_trim(0);
}
