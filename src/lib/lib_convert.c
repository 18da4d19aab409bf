/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Makes memory of the program shared when a region needs it. The library finds the file of a shared
 * mapping; private anonymous memory is exchanged in place, only the pages of the region, for pages
 * of a sparse file. Other data on these pages is preserved.
 */

#include <errno.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib_hold.h"
#include "lib_share_impl.h"
#include "lib_sparse.h"
#include "lib_sys.h"

/*
 * A shared mapping is divided into pieces of this alignment, so that many regions need few pieces.
 */
#define FOUND_ALIGN UINT64_C(0x200000)
/* The largest size, and the alignment, of glibc's heaps of threads */
#define ARENA_ALIGN (UINT64_C(64) << 20)
/* Bytes of one exchange; writers wait for it. */
#define STEP UINT64_C(0x200000)

/* ---- judging ---- */

/*
 * The first page of an arena of glibc has the arena's own state and the first blocks. In the child
 * of fork() glibc changes it before any handler can run, so it must not be shared with the parent.
 */
static bool
has_arena(const struct lib_mapping *m, uint64_t va, uint64_t end)
{
	for (uint64_t at = (va + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1); at < end;
	     at += ARENA_ALIGN) {
		struct {
			uint64_t arena, previous, size, protected_size;
		} heap;

		if (!m->read || lib_sys_populate((void *)(uintptr_t)at, LIB_PAGE, false) != 0)
			continue;
		lib_hold_copy(&heap, (const void *)(uintptr_t)at, sizeof(heap));
		if (heap.arena > at && heap.arena < at + LIB_PAGE && heap.previous == 0 &&
		    heap.size != 0 && heap.size <= ARENA_ALIGN)
			return true;
	}
	return false;
}

static int
judge_private(const struct lib_context *ctx, const struct lib_mapping *m, uint64_t va, uint64_t end,
	      bool may_convert)
{
	unsigned long long at = va;

	if (!may_convert)
		return lib_fail(-EOPNOTSUPP,
				"memory at %#llx is to stay private (SOFTHCA_ACCESS_KEEP_PRIVATE): "
				"register it without the flag, or take memory of softhca_alloc()",
				at);
	if (lib_share_foreign(va, end))
		return lib_fail(-EOPNOTSUPP,
				"memory at %#llx is registered as private memory: deregister these "
				"regions, or take memory of softhca_alloc()",
				at);
	if (m->stack)
		return lib_fail(-EOPNOTSUPP,
				"memory at %#llx is a stack: register memory of "
				"softhca_alloc() or malloc()",
				at);
	if (m->inode != 0)
		return lib_fail(-EOPNOTSUPP,
				"memory at %#llx is a private mapping of a file: "
				"register memory of softhca_alloc() or malloc()",
				at);
	if (!m->read)
		return lib_fail(-EOPNOTSUPP,
				"memory at %#llx cannot be read: mprotect() it with PROT_READ", at);
	if (ctx->info.slow_memory != 0 && has_arena(m, va, end))
		return lib_fail(
			-EOPNOTSUPP,
			"memory at %#llx has data of the allocator, which is not shared: take "
			"memory of softhca_alloc(), or a larger allocation",
			at);
	if (lib_maps_has_key(va))
		return lib_fail(
			-EOPNOTSUPP,
			"memory at %#llx has a protection key (pkey_mprotect()): remove it before "
			"the registration",
			at);
	return m->write ? lib_hold_ready() : 0;
}

int
lib_convert_judge(const struct lib_context *ctx, const struct lib_mapping *m, uint64_t va,
		  uint64_t end, bool may_convert)
{
	if (m->shared && !m->read)
		return lib_fail(-EFAULT,
				"memory at %#llx cannot be read: mprotect() it with PROT_READ",
				(unsigned long long)va);
	return m->shared ? 0 : judge_private(ctx, m, va, end, may_convert);
}

/* ---- shared mappings ---- */

uint64_t
lib_convert_offset_of(const struct lib_mapping *m, uint64_t va)
{
	return m->offset + (va - m->start);
}

uint64_t
lib_convert_offset(const struct lib_share *share, const struct lib_mapping *m, uint64_t va)
{
	return lib_convert_offset_of(m, va) - share->offset;
}

/* Bytes of the file in whole pages, and the alignment of its pieces */
static int
measure_file(int fd, uint64_t *bytes, uint64_t *align)
{
	struct statfs fs;
	struct stat st;
	uint64_t page = LIB_PAGE;

	if (fstat(fd, &st) != 0 || fstatfs(fd, &fs) != 0)
		return lib_fail(-errno, "the file of a shared mapping cannot be examined: %s",
				strerror(errno));
	if (fs.f_type == HUGETLBFS_MAGIC)
		page = (uint64_t)st.st_blksize;
	*bytes = ((uint64_t)st.st_size + page - 1) & ~(page - 1);
	*align = page > FOUND_ALIGN ? page : FOUND_ALIGN;
	/* not a file with a size: its mapping tells */
	if (!S_ISREG(st.st_mode))
		*bytes = UINT64_MAX;
	return 0;
}

/* The place in the file that the piece takes: aligned, inside mapping and file, between others. */
static int
place_found(struct lib_share *piece, const struct lib_mapping *m, uint64_t va, uint64_t end)
{
	uint64_t bytes = 0, align = FOUND_ALIGN, first, last, low = m->start, high = m->end;
	const struct lib_share *behind;
	int err = measure_file(piece->fd, &bytes, &align);

	if (err != 0)
		return err;
	if (lib_convert_offset_of(m, va) >= bytes)
		return lib_fail(
			-EFAULT,
			"memory at %#llx lies behind the end of its file: extend the file with "
			"ftruncate()",
			(unsigned long long)va);
	if (lib_convert_offset_of(m, high) > bytes)
		high = m->start + (bytes - m->offset);
	behind =
		lib_share_in_file(m->dev, m->inode, piece->read_only, lib_convert_offset_of(m, va));
	if (behind != NULL && behind->offset < lib_convert_offset_of(m, high))
		high = m->start + (behind->offset - m->offset);
	first = va & ~(align - 1);
	last = (end + align - 1) & ~(align - 1);
	if (first < low)
		first = low;
	if (last > high)
		last = high;
	/* the piece before it in the file */
	for (behind = lib_share_in_file(m->dev, m->inode, piece->read_only,
					lib_convert_offset_of(m, first));
	     behind != NULL && behind->offset < lib_convert_offset_of(m, va);
	     behind = lib_share_in_file(m->dev, m->inode, piece->read_only,
					lib_convert_offset_of(m, first)))
		first = m->start + (behind->offset + behind->length - m->offset);
	piece->va = first;
	piece->length = last - first;
	piece->offset = lib_convert_offset_of(m, first);
	return 0;
}

static struct lib_share *
adopt_found(const struct lib_mapping *m, uint64_t va, uint64_t end)
{
	struct lib_share piece = {
		.kind = LIB_SHARE_FOUND,
		.page = LIB_PAGE,
		.dev = m->dev,
		.inode = m->inode,
		.read_only = !m->write,
	};
	struct lib_share *share = NULL;

	piece.fd = lib_maps_file(m, m->write);
	if (piece.fd < 0)
		return NULL;
	if (place_found(&piece, m, va, end) == 0)
		share = lib_share_enter(&piece);
	if (share == NULL)
		close(piece.fd);
	return share;
}

/* Pages of a sparse file that no piece has: mremap() has lengthened the mapping. */
static struct lib_share *
adopt_grown(const struct lib_mapping *m, uint64_t va, uint64_t end)
{
	const struct lib_share *behind =
		lib_share_in_file(m->dev, m->inode, false, lib_convert_offset_of(m, va));
	struct lib_share piece = {
		.kind = LIB_SHARE_CONVERTED,
		.page = LIB_PAGE,
		.dev = m->dev,
		.inode = m->inode,
		.fd = -1,
		.va = va,
		.offset = lib_convert_offset_of(m, va),
	};
	struct lib_share *share;

	if (behind != NULL && behind->offset - piece.offset < end - va)
		end = va + (behind->offset - piece.offset);
	piece.length = end - va;
	piece.sparse = lib_sparse_of(m->dev, m->inode);
	share = lib_share_enter(&piece);
	if (share == NULL)
		lib_sparse_give(piece.sparse);
	return share;
}

/* The piece of the table that the page at va lies in today, or NULL. */
static struct lib_share *
find_shared(const struct lib_mapping *m, uint64_t va)
{
	uint64_t offset = lib_convert_offset_of(m, va);
	struct lib_share *share = lib_share_given(m->dev, m->inode, offset);

	if (share == NULL)
		share = lib_share_in_file(m->dev, m->inode, false, offset);
	if ((share == NULL || share->offset > offset) && !m->write)
		share = lib_share_in_file(m->dev, m->inode, true, offset);
	return share != NULL && share->offset <= offset ? share : NULL;
}

/* ---- private memory ---- */

static int
give_rights(const struct lib_mapping *m, uint64_t va, uint64_t bytes, void *fresh)
{
	int prot = lib_maps_protection(m);

	if (prot == (PROT_READ | PROT_WRITE) || lib_sys_mprotect(fresh, bytes, prot) == 0)
		return 0;
	return lib_fail(
		-EOPNOTSUPP,
		"memory at %#llx is executable: register data, which is mapped without PROT_EXEC",
		(unsigned long long)va);
}

/* Nothing can write where the mapping cannot: no store has to be held off. */
int
lib_convert_place(const struct lib_mapping *m, uint64_t va, uint64_t bytes, void *fresh)
{
	int err = give_rights(m, va, bytes, fresh);

	if (err == 0 && lib_sys_move(fresh, bytes, (void *)(uintptr_t)va) != 0)
		err = lib_hold_fail(-errno, va);
	return err;
}

static int
exchange_read_only(const struct lib_mapping *m, uint64_t va, uint64_t bytes, void *fresh)
{
	const void *at = (const void *)(uintptr_t)va;
	int err = lib_hold_watched(va, bytes);

	if (err != 0)
		return err;
	if (lib_sys_populate((void *)(uintptr_t)va, bytes, false) != 0)
		return lib_hold_fail(-errno, va);
	lib_hold_copy(fresh, at, bytes);
	return lib_convert_place(m, va, bytes, fresh);
}

static int
exchange_step(const struct lib_mapping *m, uint64_t va, uint64_t bytes, void *fresh)
{
	int err;

	if (lib_sys_populate(fresh, bytes, true) != 0)
		return lib_hold_fail(-errno, va);
	if (!m->write)
		return exchange_read_only(m, va, bytes, fresh);
	err = give_rights(m, va, bytes, fresh);
	return err == 0 ? lib_hold_exchange(va, bytes, fresh) : err;
}

int
lib_convert_exchange(const struct lib_mapping *m, uint64_t va, uint64_t bytes, void *fresh,
		     uint64_t *done)
{
	int err = 0;

	for (*done = 0; *done < bytes && err == 0;) {
		uint64_t step = bytes - *done < STEP ? bytes - *done : STEP;

		err = exchange_step(m, va + *done, step, (uint8_t *)fresh + *done);
		if (err == 0)
			*done += step;
	}
	return err;
}

/* The exchange has failed after `done` bytes: take those back. */
static void
convert_undo(struct lib_share *share, void *fresh, uint64_t done)
{
	struct lib_error error;

	lib_error_keep(&error);
	lib_sys_munmap((uint8_t *)fresh + done, share->length - done);
	lib_sparse_punch(share->sparse, share->offset + done, share->length - done);
	if (done != 0)
		lib_back_pages(share, 0, done);
	if (share->stuck == 0)
		lib_back_end(share);
	lib_error_restore(&error);
}

static struct lib_share *
convert(const struct lib_mapping *m, uint64_t va, uint64_t end)
{
	struct lib_share piece = {
		.va = va,
		.length = end - va,
		.fd = -1,
		.kind = LIB_SHARE_CONVERTED,
		.page = LIB_PAGE,
	};
	struct lib_share *share;
	uint64_t done;
	void *fresh;

	if (lib_sparse_take(&piece.sparse, &piece.offset) != 0)
		return NULL;
	lib_sparse_numbers(piece.sparse, &piece.dev, &piece.inode);
	fresh = lib_sys_mmap(NULL, piece.length, PROT_READ | PROT_WRITE, MAP_SHARED,
			     lib_sparse_fd(piece.sparse), piece.offset);
	if (fresh == MAP_FAILED) {
		lib_hold_fail(-errno, va);
		goto err_give;
	}
	share = lib_share_enter(&piece);
	if (share == NULL)
		goto err_unmap;
	if (lib_convert_exchange(m, va, piece.length, fresh, &done) == 0)
		return share;
	convert_undo(share, fresh, done);
	return NULL;

err_unmap:
	lib_sys_munmap(fresh, piece.length);
err_give:
	lib_sparse_give(piece.sparse);
	return NULL;
}

struct lib_share *
lib_convert_share(const struct lib_mapping *m, uint64_t va, uint64_t end)
{
	struct lib_share *share;

	if (!m->shared)
		return convert(m, va, end);
	share = find_shared(m, va);
	if (share != NULL)
		return share;
	return lib_sparse_has(m->dev, m->inode) ? adopt_grown(m, va, end) : adopt_found(m, va, end);
}
