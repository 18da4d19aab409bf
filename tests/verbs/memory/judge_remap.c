/* SPDX-License-Identifier: BSD-3-Clause */

/* mremap, and the kernel's view of the windows. */

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "judge.h"

#define MAX_PAGES 10u
#define READ_WRITE (PROT_READ | PROT_WRITE)

static uint8_t *
window_at(const struct window *w, uint32_t i)
{
	return w->va + i * PAGE;
}

/* ---- growing and shrinking in place ---- */

static bool
alike(const struct vpage *a, const struct vpage *b)
{
	return a->sort == b->sort && a->prot == b->prot && a->dontfork == b->dontfork &&
	       a->locked == b->locked;
}

/* Private pages of a kind at the end of the mappings, and how many could follow them */
static uint32_t
end_of_run(const struct window *w, uint32_t *first, uint32_t *n)
{
	uint32_t i = random_below(w->n), room = 0;

	while (i < w->n && vpage_is_hole(&w->v[i]))
		i++;
	*first = i;
	while (i < w->n && vpage_is_mapped(&w->v[i]) && w->v[i].sort == PRIVATE &&
	       alike(&w->v[i], &w->v[*first]))
		i++;
	*n = i - *first;
	while (i + room < w->n && vpage_is_hole(&w->v[i + room]))
		room++;
	return *n > 0 ? room : 0;
}

/* More than one mapping is EFAULT, and memory of others after it ENOMEM. */
/*
 * Whether a region has pages behind this one, which the program has unmapped or moved: an extension
 * would show them (docs/use.md, not covered).
 */
static bool
has_pages_behind(const struct page *page)
{
	for (uint32_t i = 0; i < MAX_REGIONS; i++) {
		const struct region *r = &judge.region[i];

		for (uint32_t k = 0; r->mr != NULL && k + 1 < r->npages; k++)
			if (r->page[k] == page)
				return true;
	}
	return false;
}

static void
grow(struct window *w)
{
	uint32_t first, n, room = end_of_run(w, &first, &n), keep, more;
	struct vpage v;
	uint8_t *va;

	if (room == 0 || has_pages_behind(w->v[first + n - 1].page))
		return;
	keep = 1 + random_below(n); /* also the last page alone */
	first += n - keep;
	more = 1 + random_below(room);
	va = window_at(w, first);
	v = w->v[first];
	if (mremap(va, keep * PAGE, (keep + more) * PAGE, 0) == MAP_FAILED)
		return;
	note(va, (keep + more) * PAGE, "mremap: %u pages grow by %u", keep, more);
	v.grown = true;
	for (uint32_t i = 0; i < more; i++) {
		v.page = page_new();
		vpage_put(w, first + keep + i, &v);
	}
	check_pages(w, 0, w->n);
	window_store_somewhere(w, more * PAGE);
}

static void
shrink(struct window *w)
{
	uint32_t first, n, keep;

	if (!run_pick(w, vpage_is_mapped, MAX_PAGES, &first, &n) || n < 2)
		return;
	keep = 1 + random_below(n - 1);
	note(window_at(w, first), n * PAGE, "mremap: %u pages become %u", n, keep);
	if (mremap(window_at(w, first), n * PAGE, keep * PAGE, 0) == MAP_FAILED)
		failed("mremap", window_at(w, first), n * PAGE);
	for (uint32_t i = keep; i < n; i++)
		vpage_clear(w, first + i);
}

/* ---- moving ---- */

static bool
is_mapped(const void *va)
{
	return msync((void *)(uintptr_t)va, PAGE, MS_ASYNC) == 0 || errno != ENOMEM;
}

/* The target consists of mappings of this program only. */
static bool
make_target(struct window *w, uint32_t first, uint32_t n)
{
	struct vpage v = {.sort = PRIVATE, .max_prot = READ_WRITE};

	for (uint32_t i = first; i < first + n; i++) {
		void *va = window_at(w, i), *at;

		if (vpage_is_mapped(&w->v[i]))
			continue;
		at = mmap(va, PAGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | 0x100000 /* NOREPLACE */, -1, 0);
		if (at != va)
			return false;
		v.page = page_new();
		vpage_put(w, i, &v);
	}
	return true;
}

/* Of a move that failed midway some pages have moved, and the target may be gone. */
static void
moved(struct window *from, uint32_t a, struct window *to, uint32_t b, bool whole)
{
	struct vpage v = from->v[a];

	if (whole || !is_mapped(window_at(from, a))) {
		vpage_put(to, b, &v);
		vpage_clear(from, a);
	} else if (!is_mapped(window_at(to, b))) {
		vpage_clear(to, b);
	}
}

static void
move(struct window *from)
{
	struct window *to = window_pick(MAY_MAP);
	uint32_t a, b, n;
	bool whole;
	void *at;

	if (to == NULL || !run_pick(from, vpage_is_mapped, MAX_PAGES, &a, &n))
		return;
	b = random_below(to->n - n + 1);
	if (from == to && b < a + n && a < b + n)
		return;
	if (!make_target(to, b, n))
		return;
	note(window_at(from, a), n * PAGE, "mremap: moved to %p", (void *)window_at(to, b));
	note(window_at(to, b), n * PAGE, "mremap: moved from %p", (void *)window_at(from, a));
	at = mremap(window_at(from, a), n * PAGE, n * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		    window_at(to, b));
	whole = at != MAP_FAILED;
	if (!whole)
		note(window_at(from, a), n * PAGE, "which failed: errno %d", errno);
	for (uint32_t i = 0; i < n; i++)
		moved(from, a + i, to, b + i, whole);
	check_pages(from, 0, from->n);
	check_pages(to, 0, to->n);
}

void
step_remap(void)
{
	struct window *w = window_pick(MAY_MAP);
	uint32_t way = random_below(3);

	if (w == NULL)
		return;
	judge.count.maps++;
	if (way == 0)
		grow(w);
	else if (way == 1)
		shrink(w);
	else
		move(w);
	check_pages(w, 0, w->n);
}

/* ---- the kernel's view ---- */

#define MAPS_ROOM ((size_t)1 << 20)

static char *
read_maps(void)
{
	static char *text;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t bytes = 0;
	ssize_t n;

	if (text == NULL)
		text = model_memory(MAPS_ROOM);
	CHECK(fd >= 0);
	while ((n = read(fd, text + bytes, MAPS_ROOM - 1 - bytes)) > 0)
		bytes += (size_t)n;
	text[bytes] = '\0';
	close(fd);
	return text;
}

static uint8_t
prot_of(const char *perms)
{
	return (uint8_t)((perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0));
}

static void
check_mapping(const struct window *w, uint32_t i, const char *perms, bool end)
{
	const struct vpage *v = &w->v[i];
	bool lone =
		v->sort == PRIVATE && v->page != NULL && v->page->pins == 0 && (end || !v->grown);
	const uint8_t *at = window_at(w, i);

	if (v->page == NULL)
		return;
	errno = EPROTO;
	if (prot_of(perms) != v->prot)
		failed("keeping the protection", at, PAGE);
	if (lone && perms[3] != 'p')
		failed("making private again (no region is there)", at, PAGE);
}

static void
check_line(unsigned long long from, unsigned long long to, const char *perms, bool end)
{
	for (uint32_t k = 0; k < judge.windows; k++) {
		const struct window *w = &judge.window[k];
		uint64_t va = (uintptr_t)w->va, last = va + w->n * PAGE;

		for (uint64_t at = from > va ? from : va; at < to && at < last; at += PAGE)
			check_mapping(w, (uint32_t)((at - va) / PAGE), perms, end);
	}
}

void
check_maps(bool end)
{
	unsigned long long from, to;
	char perms[5];

	for (char *line = read_maps(); line != NULL && *line != '\0';) {
		CHECK(sscanf(line, "%llx-%llx %4s", &from, &to, perms) == 3);
		check_line(from, to, perms, end);
		line = strchr(line, '\n');
		if (line != NULL)
			line++;
	}
}
