/* SPDX-License-Identifier: BSD-3-Clause */

/* Changes of a program to its mappings. */

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "judge.h"

#define READ_WRITE (PROT_READ | PROT_WRITE)
#define MAX_PAGES 12u

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static uint8_t *
window_at(const struct window *w, uint32_t i)
{
	return w->va + i * PAGE;
}

/* ---- mmap ---- */

static uint8_t
random_prot(void)
{
	static const uint8_t prots[] = {READ_WRITE, READ_WRITE, READ_WRITE, PROT_READ, PROT_NONE};

	return prots[random_below(sizeof(prots))];
}

/* A mapping over the run, also where there is one already; but never over memory of others. */
static bool
map_run(const struct window *w, uint32_t first, uint32_t n, int prot, int flags, int fd,
	off_t offset)
{
	int fixed = vpage_is_hole(&w->v[first]) ? MAP_FIXED_NOREPLACE : MAP_FIXED;
	void *va = window_at(w, first);
	void *at = mmap(va, n * PAGE, prot, flags | fixed, fd, offset);

	if (at == MAP_FAILED && (fixed == MAP_FIXED || errno != EEXIST))
		failed("mmap", va, n * PAGE);
	if (at == va)
		return true;
	if (at != MAP_FAILED)
		munmap(at, n * PAGE);
	return false;
}

static void
map_anonymous(struct window *w, uint32_t first, uint32_t n, bool shared)
{
	struct vpage v = {.sort = shared ? SHARED : PRIVATE, .max_prot = READ_WRITE};

	v.prot = random_prot();
	if (!map_run(w, first, n, v.prot, MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE), -1,
		     0))
		return;
	note(window_at(w, first), n * PAGE, "mmap anonymous %s, protection %d",
	     shared ? "shared" : "private", v.prot);
	for (uint32_t i = 0; i < n; i++) {
		v.page = page_new();
		vpage_put(w, first + i, &v);
	}
}

static void
map_object(struct window *w, uint32_t first, uint32_t n)
{
	const struct object *o = &judge.object[random_below(judge.objects)];
	struct vpage v = {.sort = SHARED, .prot = random_prot(), .max_prot = READ_WRITE};
	uint32_t from = random_below(o->n - n + 1);
	int fd = o->fd;

	if (o == judge.constant)
		return;
	if (o->fd_ro >= 0 && chance(30)) {
		fd = o->fd_ro;
		v.prot &= (uint8_t)~PROT_WRITE;
		v.max_prot = PROT_READ;
	}
	if (!map_run(w, first, n, v.prot, MAP_SHARED, fd, (off_t)(from * PAGE)))
		return;
	note(window_at(w, first), n * PAGE, "mmap %s from page %u, protection %d of %d", o->name,
	     from, v.prot, v.max_prot);
	for (uint32_t i = 0; i < n; i++) {
		v.page = o->page[from + i];
		vpage_put(w, first + i, &v);
	}
}

static void
map_private_file(struct window *w, uint32_t first, uint32_t n)
{
	const struct object *o = judge.constant;
	struct vpage v = {.sort = PRIVATE_FILE, .prot = random_prot(), .max_prot = READ_WRITE};
	uint32_t from = random_below(o->n - n + 1);

	if (!map_run(w, first, n, v.prot, MAP_PRIVATE, o->fd, (off_t)(from * PAGE)))
		return;
	note(window_at(w, first), n * PAGE, "mmap file private, protection %d", v.prot);
	for (uint32_t i = 0; i < n; i++) {
		v.page = page_new();
		v.file_bytes = o->page[from + i]->bytes;
		memcpy(v.page->bytes, v.file_bytes, PAGE);
		vpage_put(w, first + i, &v);
	}
}

void
step_map(void)
{
	struct window *w = window_pick(MAY_MAP);
	uint32_t first, n, kind = random_below(10);

	if (w == NULL ||
	    !run_pick(w, chance(60) ? vpage_is_hole : vpage_is_mapped, MAX_PAGES, &first, &n))
		return;
	judge.count.maps++;
	if (kind < 6)
		map_anonymous(w, first, n, false);
	else if (kind < 7)
		map_anonymous(w, first, n, true);
	else if (kind < 9)
		map_object(w, first, n);
	else
		map_private_file(w, first, n);
	window_store_somewhere(w, n * PAGE);
	check_pages(w, 0, w->n);
}

void
step_unmap(void)
{
	struct window *w = window_pick(MAY_MAP);
	uint32_t first, n;

	if (w == NULL || !run_pick(w, vpage_is_mapped, MAX_PAGES, &first, &n))
		return;
	judge.count.maps++;
	note(window_at(w, first), n * PAGE, "munmap");
	if (munmap(window_at(w, first), n * PAGE) != 0)
		failed("munmap", window_at(w, first), n * PAGE);
	for (uint32_t i = 0; i < n; i++)
		vpage_clear(w, first + i);
	check_pages(w, 0, w->n);
}

/* ---- mprotect, mlock, madvise ---- */

void
step_protect(void)
{
	struct window *w = window_pick(MAY_PROTECT);
	uint8_t prot = random_prot();
	uint32_t first, n;

	if (w == NULL || !run_pick(w, vpage_is_mapped, MAX_PAGES, &first, &n))
		return;
	for (uint32_t i = 0; i < n; i++)
		if ((prot & ~w->v[first + i].max_prot) != 0)
			prot = PROT_READ;
	note(window_at(w, first), n * PAGE, "mprotect %d", prot);
	if (mprotect(window_at(w, first), n * PAGE, prot) != 0)
		failed("mprotect", window_at(w, first), n * PAGE);
	for (uint32_t i = 0; i < n; i++)
		w->v[first + i].prot = prot;
	check_pages(w, 0, w->n);
}

/* An ordinary user may lock little. */
void
step_lock(void)
{
	struct window *w = window_pick(MAY_PROTECT);
	bool lock = chance(60);
	uint32_t first, n;
	int err;

	if (w == NULL || !run_pick(w, vpage_is_readable, 4, &first, &n))
		return;
	note(window_at(w, first), n * PAGE, lock ? "mlock" : "munlock");
	err = lock ? mlock(window_at(w, first), n * PAGE) : munlock(window_at(w, first), n * PAGE);
	if (err != 0 && errno != EPERM && errno != ENOMEM && errno != EAGAIN)
		failed("mlock", window_at(w, first), n * PAGE);
	for (uint32_t i = 0; i < n; i++)
		w->v[first + i].locked = lock;
	check_pages(w, 0, w->n);
}

static const struct {
	int advice;
	const char *name;
} advices[] = {
	{MADV_DONTDUMP, "DONTDUMP"},	 {MADV_DODUMP, "DODUMP"},     {MADV_HUGEPAGE, "HUGEPAGE"},
	{MADV_NOHUGEPAGE, "NOHUGEPAGE"}, {MADV_DONTFORK, "DONTFORK"}, {MADV_DOFORK, "DOFORK"},
	{MADV_WILLNEED, "WILLNEED"},
};

void
step_advise(void)
{
	struct window *w = window_pick(MAY_ADVISE);
	uint32_t first, n, k = random_below(sizeof(advices) / sizeof(advices[0]));
	int advice = advices[k].advice;

	if (w == NULL || !run_pick(w, vpage_is_mapped, MAX_PAGES, &first, &n))
		return;
	note(window_at(w, first), n * PAGE, "madvise %s", advices[k].name);
	if (madvise(window_at(w, first), n * PAGE, advice) != 0 && errno != EINVAL)
		failed("madvise", window_at(w, first), n * PAGE);
	for (uint32_t i = 0; i < n; i++)
		if (advice == MADV_DONTFORK || advice == MADV_DOFORK)
			w->v[first + i].dontfork = advice == MADV_DONTFORK;
	check_pages(w, 0, w->n);
}

/* Private, in main memory, not locked */
static bool
vpage_can_be_freed(const struct vpage *v)
{
	return vpage_is_writable(v) && v->sort != SHARED && !v->locked;
}

/*
 * The page is new. One that a region pins may also be kept, and one that mremap() has added to such
 * pages: it stays shared memory as long as they do.
 */
static void
advised_away(struct window *w, uint32_t i)
{
	struct vpage v = w->v[i];
	const uint8_t *at = window_at(w, i);

	if ((v.page->pins != 0 || v.grown) && memcmp(at, v.page->bytes, sizeof(uint64_t)) == 0)
		return;
	v.page = page_new();
	if (v.sort == PRIVATE_FILE)
		memcpy(v.page->bytes, v.file_bytes, PAGE);
	vpage_put(w, i, &v);
}

void
step_dontneed(void)
{
	struct window *w = window_pick(MAY_DONTNEED);
	uint32_t first, n;

	if (w == NULL || !run_pick(w, vpage_can_be_freed, MAX_PAGES, &first, &n))
		return;
	/* so that the first word tells old bytes from new ones */
	for (uint32_t i = 0; i < n; i++)
		window_store(w, first + i, 0, sizeof(uint64_t));
	note(window_at(w, first), n * PAGE, "madvise DONTNEED");
	if (madvise(window_at(w, first), n * PAGE, MADV_DONTNEED) != 0)
		failed("MADV_DONTNEED", window_at(w, first), n * PAGE);
	for (uint32_t i = 0; i < n; i++)
		advised_away(w, first + i);
	check_pages(w, 0, w->n);
}

static bool
vpage_is_free_of_regions(const struct vpage *v)
{
	return vpage_can_be_freed(v) && v->sort == PRIVATE && v->page->pins == 0 && !v->grown;
}

/* Old bytes or zeros until the program stores: it does so at once, as an allocator. */
void
step_free_advice(void)
{
	struct window *w = window_pick(MAY_DONTNEED);
	uint32_t first, n;

	if (w == NULL || !run_pick(w, vpage_is_free_of_regions, MAX_PAGES, &first, &n))
		return;
	note(window_at(w, first), n * PAGE, "madvise FREE");
	if (madvise(window_at(w, first), n * PAGE, MADV_FREE) != 0)
		failed("MADV_FREE", window_at(w, first), n * PAGE);
	window_store(w, first, 0, n * PAGE);
	check_pages(w, 0, w->n);
}

/* ---- sbrk, shmdt ---- */

static uint32_t
break_pages(const struct window *w)
{
	uint32_t n = w->n;

	while (n > 0 && vpage_is_hole(&w->v[n - 1]))
		n--;
	return n;
}

static void
break_shrink(struct window *w, uint32_t n, uint32_t less)
{
	note(window_at(w, n - less), less * PAGE, "sbrk: less");
	if (sbrk(-(intptr_t)(less * PAGE)) == (void *)-1)
		failed("sbrk", window_at(w, n - less), less * PAGE);
	for (uint32_t i = n - less; i < n; i++)
		vpage_clear(w, i);
}

static void
break_grow(struct window *w, uint32_t n, uint32_t more)
{
	struct vpage v = {.sort = PRIVATE, .prot = READ_WRITE, .max_prot = READ_WRITE};

	note(window_at(w, n), more * PAGE, "sbrk: more");
	if (sbrk((intptr_t)(more * PAGE)) == (void *)-1)
		failed("sbrk", window_at(w, n), more * PAGE);
	for (uint32_t i = n; i < n + more; i++) {
		v.page = page_new();
		vpage_put(w, i, &v);
	}
}

/* The heap may have grown behind it. */
void
step_break(void)
{
	struct window *w = window_pick(MAY_BREAK);
	uint32_t n, k;

	if (w == NULL)
		return;
	n = break_pages(w);
	if (sbrk(0) != window_at(w, n))
		return;
	if (n > 4 && chance(50)) {
		break_shrink(w, n, 1 + random_below(n - 4));
	} else if (n < w->n) {
		k = 1 + random_below(w->n - n);
		break_grow(w, n, k);
	}
	check_pages(w, 0, w->n);
}

/* Detached and attached at the same address. Meanwhile another attachment keeps the segment. */
void
step_detach(void)
{
	struct window *w = window_pick(MAY_DETACH);
	void *keeps;

	if (w == NULL)
		return;
	for (uint32_t i = 0; i < w->n; i++)
		if (w->v[i].prot != READ_WRITE || w->v[i].locked)
			return;
	note(w->va, w->n * PAGE, "shmdt, shmat");
	keeps = shmat(w->shmid, NULL, 0);
	CHECK(keeps != (void *)-1);
	if (shmdt(w->va) != 0 || shmat(w->shmid, w->va, 0) != w->va)
		failed("shmat", w->va, w->n * PAGE);
	CHECK(shmdt(keeps) == 0);
	for (uint32_t i = 0; i < w->n; i++)
		w->v[i].dontfork = false;
	check_pages(w, 0, w->n);
}
