/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The files of the library's shared memory, and allocation from them, for softhca_alloc() and
 * queues. Pieces smaller than CHUNK are cut from chunks of that size, because every piece costs a
 * mapping in this process and in the daemon.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib_share_impl.h"
#include "lib_sys.h"

#define CHUNK UINT64_C(0x100000)
#define CHUNK_PAGES ((uint32_t)(CHUNK / LIB_PAGE))

struct lib_extent {
	struct lib_extent *next; /* ascending offsets; adjacent extents are merged */
	uint64_t offset;
	uint64_t bytes;
};

/* Small pieces share files of HCA_CTL_SMALL_FILE bytes, larger ones have a file each. */
struct lib_file {
	struct lib_file *next;
	int fd; /* -1: closed, because no other device can map it */
	bool own;
	bool retired; /* lib_pool_retire() */
	dev_t dev;
	ino_t inode;
	uint64_t taken; /* bytes in use */
	struct lib_extent *free;
};

static struct lib_file *files;

struct lib_chunk {
	struct lib_chunk *next;
	struct lib_share *share;
	uint32_t used;		      /* pages */
	uint16_t length[CHUNK_PAGES]; /* of the piece that begins at the page; 0: none does */
	uint8_t taken[CHUNK_PAGES];
};

static struct lib_chunk *chunks;

/* ---- files ---- */

static int
make_fd(uint64_t bytes, uint32_t page)
{
	unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd, err;

	if (page != LIB_PAGE)
		flags |= MFD_HUGETLB | MFD_HUGE_2MB;
	fd = memfd_create("softhca", flags);
	if (fd < 0)
		return lib_fail(-errno, "memfd_create: %s", strerror(errno));
	if (ftruncate(fd, (off_t)bytes) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
		return fd;
	err = lib_fail(
		-errno,
		"a memfd of %llu bytes: %s; see RLIMIT_FSIZE (ulimit -f), the limit of the cgroup, "
		"and free hugepages",
		(unsigned long long)bytes, strerror(errno));
	close(fd);
	return err;
}

static struct lib_file *
make_file(uint64_t bytes, uint32_t page, bool own)
{
	struct lib_file *f = calloc(1, sizeof(*f));
	struct lib_extent *e = own ? NULL : malloc(sizeof(*e));
	struct stat st;

	if (f == NULL || (e == NULL && !own)) {
		lib_no_memory("a shared file", sizeof(*f) + sizeof(*e));
		goto err_free;
	}
	f->fd = make_fd(bytes, page);
	if (f->fd < 0)
		goto err_free;
	if (fstat(f->fd, &st) != 0) {
		lib_fail(-errno, "fstat: %s", strerror(errno));
		close(f->fd);
		goto err_free;
	}
	f->dev = st.st_dev;
	f->inode = st.st_ino;
	f->own = own;
	f->free = e;
	if (e != NULL)
		*e = (struct lib_extent){NULL, 0, bytes};
	f->next = files;
	files = f;
	return f;

err_free:
	free(e);
	free(f);
	return NULL;
}

static void
drop_file(struct lib_file *f)
{
	struct lib_file **link = &files;

	while (*link != f)
		link = &(*link)->next;
	*link = f->next;
	if (f->fd >= 0)
		close(f->fd);
	while (f->free != NULL) {
		struct lib_extent *e = f->free;

		f->free = e->next;
		free(e);
	}
	free(f);
}

static bool
take_free(struct lib_file *pool, uint64_t bytes, uint64_t *offset)
{
	for (struct lib_extent **link = &pool->free; *link != NULL; link = &(*link)->next) {
		struct lib_extent *e = *link;

		if (e->bytes < bytes)
			continue;
		*offset = e->offset;
		pool->taken += bytes;
		e->offset += bytes;
		e->bytes -= bytes;
		if (e->bytes == 0) {
			*link = e->next;
			free(e);
		}
		return true;
	}
	return false;
}

int
lib_pool_take(uint64_t bytes, uint32_t page, struct lib_file **file, uint64_t *offset)
{
	bool own = page != LIB_PAGE || bytes > HCA_CTL_SMALL_FILE;

	*offset = 0;
	for (struct lib_file *f = files; f != NULL && !own; f = f->next)
		if (!f->retired && take_free(f, bytes, offset)) {
			*file = f;
			return 0;
		}
	*file = make_file(own ? bytes : HCA_CTL_SMALL_FILE, page, own);
	if (*file == NULL)
		return -errno;
	if (!own)
		take_free(*file, bytes, offset);
	return 0;
}

void
lib_pool_retire(struct lib_file *file)
{
	file->retired = true;
}

int
lib_pool_fd(const struct lib_file *file)
{
	return file->fd;
}

void
lib_pool_attached(struct lib_file *file)
{
	int seals = file->own ? fcntl(file->fd, F_GET_SEALS) : 0;

	if (seals < 0 || (seals & F_SEAL_FUTURE_WRITE) == 0)
		return;
	close(file->fd);
	file->fd = -1;
}

/* An extent that cannot be recorded for lack of memory stays unused. */
void
lib_pool_give(struct lib_file *pool, uint64_t bytes, uint64_t offset)
{
	struct lib_extent **link = &pool->free, *e;

	if (!pool->own)
		pool->taken -= bytes;
	if (pool->own || (pool->retired && pool->taken == 0)) {
		drop_file(pool);
		return;
	}
	if (pool->retired)
		return;
	if (fallocate(pool->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
		      (off_t)bytes) != 0)
		return;
	while (*link != NULL && (*link)->offset + (*link)->bytes < offset)
		link = &(*link)->next;
	e = *link;
	if (e != NULL && e->offset + e->bytes == offset) {
		e->bytes += bytes;
	} else {
		e = malloc(sizeof(*e));
		if (e == NULL)
			return;
		*e = (struct lib_extent){*link, offset, bytes};
		*link = e;
	}
	if (e->next != NULL && e->offset + e->bytes == e->next->offset) {
		struct lib_extent *behind = e->next;

		e->bytes += behind->bytes;
		e->next = behind->next;
		free(behind);
	}
	if (pool->free->bytes == HCA_CTL_SMALL_FILE)
		drop_file(pool);
}

/* The objects are not freed: the child of a multi-threaded process must not call free(). */
void
lib_pool_forget(void)
{
	for (struct lib_file *f = files; f != NULL; f = f->next)
		if (f->fd >= 0)
			close(f->fd);
	files = NULL;
	chunks = NULL;
}

/* ---- pieces ---- */

static void *
find_place(uint64_t bytes)
{
	uint64_t slack = bytes >= LIB_HUGE_PAGE ? LIB_HUGE_PAGE : 0;
	uint8_t *mem = lib_sys_mmap(NULL, bytes + slack, PROT_NONE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t before;

	if (mem == MAP_FAILED)
		return NULL;
	if (slack == 0)
		return mem;
	before = -(uintptr_t)mem & (LIB_HUGE_PAGE - 1);
	if (before != 0)
		lib_sys_munmap(mem, before);
	if (slack != before)
		lib_sys_munmap(mem + before + bytes, slack - before);
	return mem + before;
}

/* Map a piece with all its pages present, and not inherited by children. */
static int
map_piece(struct lib_share *piece)
{
	void *at = find_place(piece->length);

	if (at == NULL)
		return lib_fail(
			-ENOMEM,
			"no address range of %llu bytes is free: raise the memory limit (ulimit "
			"-v), or use less memory",
			(unsigned long long)piece->length);
	if (lib_sys_mmap(at, piece->length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			 lib_pool_fd(piece->file), piece->offset) == MAP_FAILED ||
	    (lib_sys_madvise(at, piece->length, MADV_POPULATE_WRITE) != 0 && errno != EINVAL) ||
	    lib_sys_madvise(at, piece->length, MADV_DONTFORK) != 0) {
		int number = errno;

		lib_sys_munmap(at, piece->length);
		return lib_fail(
			-ENOMEM,
			"no memory for %llu bytes that the device reads and writes: %s: use "
			"smaller queues, or raise the memory limit (ulimit -v, cgroup)",
			(unsigned long long)piece->length, strerror(number));
	}
	piece->va = (uintptr_t)at;
	return 0;
}

static struct lib_share *
new_piece(uint64_t bytes, uint32_t page, enum lib_share_kind kind)
{
	struct lib_share piece = {.length = bytes, .page = page, .kind = kind, .fd = -1};
	struct lib_share *share;

	if (lib_pool_take(bytes, page, &piece.file, &piece.offset) != 0)
		return NULL;
	piece.dev = piece.file->dev;
	piece.inode = piece.file->inode;
	if (map_piece(&piece) != 0)
		goto err_give;
	share = lib_share_enter(&piece);
	if (share != NULL)
		return share;
	lib_sys_munmap((void *)(uintptr_t)piece.va, bytes);
err_give:
	lib_pool_give(piece.file, bytes, piece.offset);
	return NULL;
}

static void
free_piece(struct lib_share *share)
{
	uint64_t bytes = share->length, offset = share->offset;
	void *at = (void *)(uintptr_t)share->va;
	struct lib_file *file = share->file;

	lib_share_remove(share);
	lib_sys_munmap(at, bytes);
	lib_pool_give(file, bytes, offset);
}

/* ---- small pieces ---- */

/* The first of n successive free pages, or CHUNK_PAGES */
static uint32_t
find_run(const struct lib_chunk *c, uint32_t n)
{
	uint32_t run = 0;

	for (uint32_t i = 0; i < CHUNK_PAGES; i++) {
		run = c->taken[i] ? 0 : run + 1;
		if (run == n)
			return i + 1 - n;
	}
	return CHUNK_PAGES;
}

static struct lib_chunk *
new_chunk(enum lib_share_kind kind)
{
	struct lib_chunk *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->share = new_piece(CHUNK, LIB_PAGE, kind);
	if (c->share == NULL) {
		free(c);
		return NULL;
	}
	c->share->chunk = c;
	c->next = chunks;
	chunks = c;
	return c;
}

static void *
take_small(uint32_t pages, enum lib_share_kind kind, struct lib_share **share)
{
	struct lib_chunk *c;
	uint32_t at = 0;
	uint8_t *mem;

	for (c = chunks; c != NULL; c = c->next) {
		if (c->share->kind != kind || c->used + pages > CHUNK_PAGES ||
		    c->share->file->retired)
			continue;
		at = find_run(c, pages);
		if (at < CHUNK_PAGES)
			break;
	}
	if (c == NULL) {
		at = 0;
		c = new_chunk(kind);
		if (c == NULL)
			return NULL;
	}
	memset(&c->taken[at], 1, pages);
	c->length[at] = (uint16_t)pages;
	c->used += pages;
	*share = c->share;
	mem = (uint8_t *)(uintptr_t)c->share->va + at * LIB_PAGE;
	memset(mem, 0, pages * LIB_PAGE);
	return mem;
}

static void
drop_chunk(struct lib_chunk *c)
{
	struct lib_chunk **link = &chunks;

	while (*link != c)
		link = &(*link)->next;
	*link = c->next;
	free_piece(c->share);
	free(c);
}

void
lib_pool_tidy(struct lib_share *share)
{
	if (share->chunk != NULL && share->chunk->used == 0 && share->users == 0)
		drop_chunk(share->chunk);
}

/* Allocate whole pages of one kind of memory; *share: the piece that contains them */
static void *
pool_take(uint64_t bytes, enum lib_share_kind kind, struct lib_share **share)
{
	bytes = (bytes + LIB_PAGE - 1) & ~(LIB_PAGE - 1);
	if (bytes < CHUNK)
		return take_small((uint32_t)(bytes / LIB_PAGE), kind, share);
	*share = NULL;
	if (kind == LIB_SHARE_ALLOC && bytes >= LIB_HUGE_PAGE)
		*share = new_piece((bytes + LIB_HUGE_PAGE - 1) & ~(LIB_HUGE_PAGE - 1),
				   LIB_HUGE_PAGE, kind);
	if (*share == NULL)
		*share = new_piece(bytes, LIB_PAGE, kind);
	return *share != NULL ? (void *)(uintptr_t)(*share)->va : NULL;
}

/* Free memory of pool_take(). -EINVAL: it is not; -EBUSY: a region lies in it. */
static int
give(void *mem, enum lib_share_kind kind)
{
	struct lib_share *share = lib_share_behind((uintptr_t)mem);
	struct lib_chunk *c;
	uint64_t page;

	if (share == NULL || share->va > (uintptr_t)mem || share->kind != kind)
		return -EINVAL;
	if (share->chunk == NULL) {
		if (share->va != (uintptr_t)mem)
			return -EINVAL;
		if (share->users != 0)
			return -EBUSY;
		free_piece(share);
		return 0;
	}
	c = share->chunk;
	page = ((uintptr_t)mem - share->va) / LIB_PAGE;
	if (((uintptr_t)mem & (LIB_PAGE - 1)) != 0 || c->length[page] == 0)
		return -EINVAL;
	c->used -= c->length[page];
	memset(&c->taken[page], 0, c->length[page]);
	c->length[page] = 0;
	lib_pool_tidy(share);
	return 0;
}

void *
lib_share_queue(struct lib_context *ctx, size_t bytes)
{
	struct lib_share *share;
	void *mem;

	pthread_mutex_lock(&lib_share_lock);
	mem = pool_take(bytes, LIB_SHARE_QUEUE, &share);
	if (mem != NULL && lib_share_attach(ctx, share) != 0) {
		give(mem, LIB_SHARE_QUEUE);
		mem = NULL;
	}
	pthread_mutex_unlock(&lib_share_lock);
	return mem;
}

void
lib_share_queue_free(void *mem)
{
	pthread_mutex_lock(&lib_share_lock);
	give(mem, LIB_SHARE_QUEUE);
	pthread_mutex_unlock(&lib_share_lock);
}

void *
softhca_alloc(size_t bytes)
{
	struct lib_share *share;
	void *mem;

	if (bytes == 0 || bytes > SIZE_MAX / 2) {
		lib_fail(-EINVAL, "memory of %zu bytes: expected 1 to %zu", bytes, SIZE_MAX / 2);
		return NULL;
	}
	pthread_mutex_lock(&lib_share_lock);
	mem = pool_take(bytes, LIB_SHARE_ALLOC, &share);
	pthread_mutex_unlock(&lib_share_lock);
	return mem;
}

int
softhca_free(void *mem)
{
	int err;

	if (mem == NULL)
		return 0;
	pthread_mutex_lock(&lib_share_lock);
	err = give(mem, LIB_SHARE_ALLOC);
	pthread_mutex_unlock(&lib_share_lock);
	if (err == -EBUSY)
		return lib_fail(err, "a region lies in the memory at %p: deregister it first", mem);
	return err == 0 ? 0 : lib_fail(err, "%p is not from softhca_alloc()", mem);
}
