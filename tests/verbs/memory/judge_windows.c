/* SPDX-License-Identifier: BSD-3-Clause */

/* The kinds of memory: contents of a window before the first step. */

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "judge.h"

#define PLAIN_WINDOWS 6u
#define PLAIN_PAGES 40u
#define STATIC_PAGES 16u
#define BREAK_PAGES 24u
#define SHM_PAGES 16u
#define OBJECT_PAGES 64u
#define HUGE_PAGE ((size_t)2 << 20)

#define READ_WRITE (PROT_READ | PROT_WRITE)

static _Alignas(4096) uint8_t bss[STATIC_PAGES * 4096];
static _Alignas(4096) uint8_t data[STATIC_PAGES * 4096] = {1};

/* Frames of their own with the present contents of the memory */
static void
fill_window(struct window *w, enum sort sort)
{
	struct vpage v = {.sort = sort, .prot = READ_WRITE, .max_prot = READ_WRITE};

	for (uint32_t i = 0; i < w->n; i++) {
		v.page = page_new();
		memcpy(v.page->bytes, w->va + i * PAGE, PAGE);
		vpage_put(w, i, &v);
	}
}

static void
open_plain(void)
{
	for (uint32_t i = 0; i < PLAIN_WINDOWS; i++) {
		void *va = mmap(NULL, PLAIN_PAGES * PAGE, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);

		CHECK(va != MAP_FAILED);
		fill_window(window_new("mapping", va, PLAIN_PAGES,
				       MAY_MAP | MAY_PROTECT | MAY_ADVISE | MAY_DONTNEED),
			    PRIVATE);
	}
}

static void
open_static(void)
{
	struct window *w =
		window_new("bss", bss, STATIC_PAGES, MAY_PROTECT | MAY_ADVISE | MAY_DONTNEED);

	fill_window(w, PRIVATE);
	w = window_new("data", data, STATIC_PAGES, MAY_PROTECT | MAY_ADVISE);
	fill_window(w, PRIVATE_FILE);
	w->in_place = true;
}

static void
open_break(void)
{
	uintptr_t end = (uintptr_t)sbrk(0), pad = -end & (PAGE - 1);
	struct window *w;
	uint8_t *va;

	va = sbrk((intptr_t)(pad + BREAK_PAGES * PAGE));
	CHECK(va != (void *)-1);
	w = window_new("break", va + pad, BREAK_PAGES,
		       MAY_PROTECT | MAY_ADVISE | MAY_DONTNEED | MAY_BREAK);
	fill_window(w, PRIVATE);
}

static void
open_shm(void)
{
	int id = shmget(IPC_PRIVATE, SHM_PAGES * PAGE, IPC_CREAT | 0600);
	struct window *w;
	void *va;

	CHECK(id >= 0);
	va = shmat(id, NULL, 0);
	CHECK(va != (void *)-1);
	/* Linux attaches again a segment that is marked for removal. */
	CHECK(shmctl(id, IPC_RMID, NULL) == 0);
	w = window_new("SysV", va, SHM_PAGES, MAY_PROTECT | MAY_ADVISE | MAY_DETACH);
	w->shmid = id;
	fill_window(w, SHARED);
}

/* One page of 2 MiB, where there are any. A child does not get it: no page may be left for it. */
static void
open_huge(const char *name, int flags, enum sort sort)
{
	void *va = mmap(NULL, HUGE_PAGE, READ_WRITE, flags | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	struct window *w;

	if (va == MAP_FAILED)
		return;
	CHECK(madvise(va, HUGE_PAGE, MADV_DONTFORK) == 0);
	w = window_new(name, va, HUGE_PAGE / PAGE, 0);
	w->in_place = true;
	w->rare = true;
	fill_window(w, sort);
	for (uint32_t i = 0; i < w->n; i++)
		w->v[i].dontfork = true;
}

/* ---- files ---- */

static struct object *
object_new(const char *name, int fd, int fd_ro)
{
	struct object *o = &judge.object[judge.objects++];

	CHECK(judge.objects <= MAX_OBJECTS && fd >= 0);
	*o = (struct object){.name = name, .fd = fd, .fd_ro = fd_ro, .n = OBJECT_PAGES};
	o->page = model_memory(o->n * sizeof(struct page *));
	for (uint32_t i = 0; i < o->n; i++) {
		o->page[i] = page_new();
		o->page[i]->held = 1;
		random_fill(o->page[i]->bytes, PAGE);
		CHECK(pwrite(fd, o->page[i]->bytes, PAGE, (off_t)(i * PAGE)) == (ssize_t)PAGE);
	}
	return o;
}

static struct object *
open_file(const char *name)
{
	const char *place = getenv("TMPDIR");
	char path[256];
	int fd, ro;

	snprintf(path, sizeof(path), "%s/judge-%s-XXXXXX", place != NULL ? place : "/tmp", name);
	fd = mkstemp(path);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && ro >= 0 && unlink(path) == 0);
	return object_new(name, fd, ro);
}

static void
open_posix(void)
{
	char name[64];
	int fd, ro;

	snprintf(name, sizeof(name), "/softhca-judge-%d", getpid());
	fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
	ro = shm_open(name, O_RDONLY, 0);
	CHECK(fd >= 0 && ro >= 0 && shm_unlink(name) == 0);
	object_new("POSIX", fd, ro);
}

void
windows_open(void)
{
	open_break(); /* before others take the addresses after the heap */
	open_plain();
	open_static();
	open_shm();
	open_huge("huge private", MAP_PRIVATE, PRIVATE);
	open_huge("huge shared", MAP_SHARED, SHARED);
	object_new("memfd", memfd_create("judge", MFD_CLOEXEC), -1);
	open_file("file");
	open_posix();
	judge.constant = open_file("constant");
}
