/* SPDX-License-Identifier: BSD-3-Clause */

/* Frames, windows, and the comparison of the program's bytes with them. */

#include <sys/mman.h>

#include "judge.h"

#define FEW_TRIES 16u

static struct page *free_pages;

uint64_t
random64(void)
{
	uint64_t x = judge.random += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

uint32_t
random_below(uint32_t n)
{
	return (uint32_t)(random64() >> 32) % n;
}

bool
chance(uint32_t percent)
{
	return random_below(100) < percent;
}

void
random_fill(uint8_t *to, size_t bytes)
{
	while (bytes >= sizeof(uint64_t)) {
		uint64_t word = random64();

		memcpy(to, &word, sizeof(word));
		to += sizeof(word);
		bytes -= sizeof(word);
	}
	while (bytes-- > 0)
		*to++ = (uint8_t)random64();
}

/* ---- frames ---- */

void *
model_memory(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	return at;
}

#define PAGES_AT_ONCE 4096u

struct page *
page_new(void)
{
	struct page *page = free_pages;

	if (page == NULL) {
		page = model_memory(PAGES_AT_ONCE * sizeof(*page));
		for (uint32_t i = 1; i < PAGES_AT_ONCE; i++)
			page[i - 1].next_free = &page[i];
	}
	free_pages = page->next_free;
	memset(page, 0, sizeof(*page));
	return page;
}

void
page_drop(struct page *page)
{
	if (page->mapped != 0 || page->pins != 0 || page->held != 0)
		return;
	page->next_free = free_pages;
	free_pages = page;
}

/* ---- windows ---- */

struct window *
window_new(const char *name, void *va, uint32_t n, uint32_t may)
{
	struct window *w = &judge.window[judge.windows++];

	CHECK(judge.windows <= MAX_WINDOWS);
	*w = (struct window){.name = name,
			     .va = va,
			     .n = n,
			     .may = may,
			     .owned = PAGE,
			     .shmid = -1};
	w->v = model_memory(n * sizeof(*w->v));
	return w;
}

struct window *
window_pick(uint32_t may)
{
	for (uint32_t tries = 0; tries < FEW_TRIES; tries++) {
		struct window *w = &judge.window[random_below(judge.windows)];

		if ((w->may & may) == may && (!w->rare || chance(30)))
			return w;
	}
	return NULL;
}

void
vpage_clear(struct window *w, uint32_t i)
{
	struct page *page = w->v[i].page;

	w->v[i] = (struct vpage){0};
	if (page == NULL)
		return;
	page->mapped--;
	page_drop(page);
}

void
vpage_put(struct window *w, uint32_t i, const struct vpage *v)
{
	struct vpage copy = *v;

	copy.page->mapped++;
	vpage_clear(w, i);
	w->v[i] = copy;
}

bool
vpage_is_mapped(const struct vpage *v)
{
	return v->page != NULL;
}

bool
vpage_is_hole(const struct vpage *v)
{
	return v->page == NULL;
}

bool
vpage_is_readable(const struct vpage *v)
{
	return v->page != NULL && (v->prot & PROT_READ) != 0;
}

bool
vpage_is_writable(const struct vpage *v)
{
	return v->page != NULL && (v->prot & PROT_WRITE) != 0;
}

bool
run_pick(const struct window *w, bool (*want)(const struct vpage *), uint32_t max, uint32_t *first,
	 uint32_t *n)
{
	uint32_t wanted = 1 + random_below(max);

	for (uint32_t tries = 0; tries < FEW_TRIES; tries++) {
		uint32_t i = random_below(w->n);

		for (*first = i; i < w->n && i - *first < wanted && want(&w->v[i]); i++)
			;
		*n = i - *first;
		if (*n > 0)
			return true;
	}
	return false;
}

/* ---- stores ---- */

void
window_store(struct window *w, uint32_t first, size_t offset, size_t bytes)
{
	uint8_t *at = w->va + first * PAGE + offset;

	note(at, bytes, "store %zu bytes", bytes);
	while (bytes > 0) {
		size_t in_page = offset % PAGE, run = PAGE - in_page;
		struct page *page = w->v[first + offset / PAGE].page;

		if (run > bytes)
			run = bytes;
		random_fill(page->bytes + in_page, run);
		memcpy(at, page->bytes + in_page, run);
		at += run;
		offset += run;
		bytes -= run;
	}
}

void
window_store_somewhere(struct window *w, size_t bytes)
{
	uint32_t first, n;
	size_t offset, room;

	if (!run_pick(w, vpage_is_writable, 4, &first, &n))
		return;
	if (w->owned < PAGE)
		n = 1;
	offset = chance(30) ? 0 : random_below((uint32_t)w->owned);
	room = (n - 1) * PAGE + w->owned - offset;
	window_store(w, first, offset, bytes < room ? bytes : room);
}

void
step_store(void)
{
	struct window *w = window_pick(0);
	struct chunk *c = &judge.chunk[random_below(MAX_CHUNKS)];
	size_t offset, bytes;

	if (w != NULL)
		window_store_somewhere(w, 1 + random_below(chance(30) ? 3 * PAGE : 200));
	if (c->p == NULL)
		return;
	offset = random_below((uint32_t)c->size);
	bytes = 1 + random_below(chance(30) ? 8192 : 64);
	if (bytes > c->size - offset)
		bytes = c->size - offset;
	note(c->p + offset, bytes, "store %zu bytes", bytes);
	random_fill(c->shadow + offset, bytes);
	memcpy(c->p + offset, c->shadow + offset, bytes);
}

/* ---- comparison ---- */

void
check_pages(const struct window *w, uint32_t first, uint32_t n)
{
	for (uint32_t i = first; i < first + n && i < w->n; i++) {
		const struct vpage *v = &w->v[i];
		const uint8_t *at = w->va + i * PAGE;

		if (!vpage_is_readable(v) || v->page->unknown || (judge.child && v->dontfork) ||
		    (judge.shared_changes && v->sort == SHARED))
			continue;
		if (memcmp(at, v->page->bytes, w->owned) != 0)
			differs(w->name, at, v->page->bytes, at, w->owned);
	}
}

void
check_chunk(const struct chunk *c)
{
	if (c->p != NULL && memcmp(c->p, c->shadow, c->size) != 0)
		differs("heap", c->p, c->shadow, c->p, c->size);
}

void
check_all(bool rare)
{
	for (uint32_t i = 0; i < judge.windows; i++)
		if (rare || !judge.window[i].rare)
			check_pages(&judge.window[i], 0, judge.window[i].n);
	for (uint32_t i = 0; i < MAX_CHUNKS; i++)
		check_chunk(&judge.chunk[i]);
}
