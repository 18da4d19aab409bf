/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Makes memory of the program shared when a region needs it and it is not in the table yet: for a
 * shared mapping the file is found; private anonymous memory is exchanged in place, only the pages
 * of the region, for pages of the pool's file. Other data on these pages is preserved.
 */

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib_hold.h"
#include "lib_maps.h"
#include "lib_share_impl.h"
#include "lib_sys.h"

/*
 * A shared mapping is divided into pieces of this alignment, so that many regions need few pieces.
 */
#define FOUND_ALIGN UINT64_C(0x200000)

/* ---- shared mappings ---- */

static struct lib_share *
adopt_shared(const struct lib_mapping *m, uint64_t va, uint64_t end)
{
	uint64_t first = va & ~(FOUND_ALIGN - 1),
		 last = (end + FOUND_ALIGN - 1) & ~(FOUND_ALIGN - 1);
	const struct lib_share *behind = lib_share_behind(va), *before = lib_share_before(va);
	struct lib_share piece = {.kind = LIB_SHARE_FOUND, .page = LIB_PAGE}, *share;
	struct stat st;

	piece.fd = lib_maps_file(m);
	if (piece.fd < 0)
		return NULL;
	/* a daemon maps a large file only once */
	if (fstat(piece.fd, &st) == 0 && (uint64_t)st.st_size > HCA_CTL_SMALL_FILE) {
		first = m->start;
		last = m->end;
		if (m->offset + (last - m->start) > (uint64_t)st.st_size)
			last = m->start + ((uint64_t)st.st_size - m->offset);
	}
	if (first < m->start)
		first = m->start;
	if (before != NULL && first < before->va + before->length)
		first = before->va + before->length;
	if (last > m->end)
		last = m->end;
	if (behind != NULL && last > behind->va)
		last = behind->va;
	piece.va = first;
	piece.length = last - first;
	piece.offset = m->offset + (first - m->start);
	share = lib_share_enter(&piece);
	if (share == NULL)
		close(piece.fd);
	return share;
}

/* ---- private memory ---- */

static int
judge_private(const struct lib_mapping *m, uint64_t va, uint64_t end, bool convert)
{
	unsigned long long at = va;

	if (!convert)
		return lib_fail(-EOPNOTSUPP, "memory at %#llx is to stay private", at);
	if (lib_share_foreign(va, end))
		return lib_fail(-EOPNOTSUPP, "memory at %#llx is in use as it is", at);

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
	if (!m->read || !m->write)
		return lib_fail(-EOPNOTSUPP, "memory at %#llx cannot be read and written", at);
	return lib_hold_ready();
}

static struct lib_share *
convert(uint64_t va, uint64_t end)
{
	struct lib_share piece = {
		.va = va,
		.length = end - va,
		.kind = LIB_SHARE_CONVERTED,
		.page = LIB_PAGE,
	};
	struct lib_share *share;
	void *fresh;

	if (lib_pool_take(piece.length, LIB_PAGE, &piece.file, &piece.offset) != 0)
		return NULL;
	fresh = lib_sys_mmap(NULL, piece.length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			     lib_pool_fd(piece.file), piece.offset);
	if (fresh == MAP_FAILED) {
		lib_fail(-ENOMEM, "no memory for %llu bytes", (unsigned long long)piece.length);
		goto err_give;
	}
	share = lib_share_enter(&piece);
	if (share == NULL)
		goto err_unmap;
	if (lib_hold_exchange(va, piece.length, fresh) == 0)
		return share;
	lib_share_remove(share);
err_unmap:
	lib_sys_munmap(fresh, piece.length);
err_give:
	lib_pool_give(piece.file, piece.length, piece.offset);
	return NULL;
}

struct lib_share *
lib_share_adopt(uint64_t va, uint64_t end, bool may_convert)
{
	struct lib_mapping m;

	if (lib_maps_find(va, &m) != 0)
		return NULL;
	if (end > m.end)
		end = m.end;
	if (m.shared)
		return adopt_shared(&m, va, end);
	return judge_private(&m, va, end, may_convert) == 0 ? convert(va, end) : NULL;
}

/* ---- and back ---- */

/* Whether the memory is still the same; the program may have unmapped it. */
static bool
is_unchanged(const struct lib_share *share)
{
	struct lib_mapping m;

	return lib_maps_find(share->va, &m) == 0 && m.shared &&
	       share->va + share->length <= m.end && lib_pool_is(share->file, &m) &&
	       m.offset + (share->va - m.start) == share->offset;
}

/* If this fails the piece stays shared, and is used again when it is needed. */
static void
convert_back(struct lib_share *share)
{
	uint64_t va = share->va, bytes = share->length, offset = share->offset;
	struct lib_file *file = share->file;
	void *fresh;

	if (!is_unchanged(share)) {
		lib_share_remove(share);
		lib_pool_give(file, bytes, offset);
		return;
	}
	fresh = lib_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (fresh == MAP_FAILED)
		return;
	if (lib_hold_exchange(va, bytes, fresh) != 0) {
		lib_sys_munmap(fresh, bytes);
		return;
	}
	lib_share_remove(share);
	lib_pool_give(file, bytes, offset);
}

void
lib_share_release(struct lib_share *share)
{
	switch (share->kind) {
	case LIB_SHARE_CONVERTED:
		convert_back(share);
		break;
	case LIB_SHARE_FOUND:
		lib_share_remove(share);
		break;
	default:
		lib_pool_tidy(share);
		break;
	}
}
