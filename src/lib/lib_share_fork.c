/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Shared memory and fork(). A child does not inherit memory of the library and of softhca_alloc()
 * (MADV_DONTFORK). In place of queues it gets zeros, so that calls with the parent's objects see
 * empty queues before they are refused.
 */

#include <sys/mman.h>
#include <unistd.h>

#include "lib_hold.h"
#include "lib_share_impl.h"
#include "lib_sparse.h"
#include "lib_sys.h"

/*
 * Converted memory was private, so the child must have its own copy: the forking thread makes it
 * here, of all mappings of the sparse files, and the child puts it in place. As for all memory,
 * concurrent stores of other threads may be in the copy or not.
 *
 * Converted memory may be heap, with the objects of this library in the same pages. So the data
 * with which the child puts the copies in place is in mappings of its own: the list, and one with
 * all copies, because the process may have few mappings left.
 */
static struct {
	struct lib_mapping *list; /* of the sparse files alone */
	uint32_t count;
	size_t bytes; /* of the mapping that the list lies in */
	uint8_t *copies;
	uint64_t copied;
	bool failed; /* there is no list */
} saved;

static void
saved_free(void)
{
	if (saved.list != NULL)
		lib_maps_list_free(saved.list, saved.bytes);
	if (saved.copies != NULL)
		lib_sys_munmap(saved.copies, saved.copied);
	saved.list = NULL;
	saved.copies = NULL;
	saved.count = 0;
}

/* Keep the mappings of the sparse files in the list; returns their bytes. */
static uint64_t
saved_select(void)
{
	uint32_t n = 0;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < saved.count; i++) {
		const struct lib_mapping *m = &saved.list[i];

		if (!m->shared || !lib_sparse_has(m->dev, m->inode))
			continue;
		bytes += m->end - m->start;
		saved.list[n++] = *m;
	}
	saved.count = n;
	return bytes;
}

/*
 * From the file: pages that were never touched need no memory, and the program may have guards in
 * the mapping.
 */
static void
save(const struct lib_mapping *m, uint8_t *copy)
{
	struct lib_sparse *file = lib_sparse_of(m->dev, m->inode);
	uint64_t offset = m->offset, end = m->offset + (m->end - m->start);

	while (offset < end) {
		bool data;
		uint64_t next = lib_sparse_extent(file, offset, end, &data);

		if (data)
			(void)lib_sparse_read(file, offset, copy + (offset - m->offset),
					      next - offset);
		offset = next;
	}
	lib_sparse_give(file);
}

void
lib_share_fork_prepare(void)
{
	uint64_t done = 0;
	void *at;

	pthread_mutex_lock(&lib_share_lock);
	saved.failed =
		lib_sparse_any() && lib_maps_list(&saved.list, &saved.count, &saved.bytes) != 0;
	if (!lib_sparse_any() || saved.failed)
		return;
	saved.copied = saved_select();
	if (saved.copied == 0)
		return;
	at = lib_sys_mmap(NULL, saved.copied, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return;
	saved.copies = at;
	for (uint32_t i = 0; i < saved.count; i++) {
		save(&saved.list[i], saved.copies + done);
		done += saved.list[i].end - saved.list[i].start;
	}
}

void
lib_share_fork_parent(void)
{
	saved_free();
	pthread_mutex_unlock(&lib_share_lock);
}

/* Without a copy (out of memory) the child has a hole there instead of the parent's pages. */
static void
restore(const struct lib_mapping *m, uint8_t *copy)
{
	void *at = (void *)(uintptr_t)m->start;
	uint64_t bytes = m->end - m->start;

	if (copy == NULL || lib_sys_move(copy, bytes, at) != 0)
		lib_sys_munmap(at, bytes);
	else if (lib_maps_protection(m) != (PROT_READ | PROT_WRITE))
		lib_sys_mprotect(at, bytes, lib_maps_protection(m));
}

/* The child must not have pages of the parent: it gets holes where they were exchanged. */
static void
unmap_all(void)
{
	const struct lib_share *share;

	for (uint32_t i = 0; (share = lib_share_at(i)) != NULL; i++)
		if (share->kind == LIB_SHARE_CONVERTED)
			lib_sys_munmap((void *)(uintptr_t)share->va, share->length);
}

void
lib_share_fork_restore(void)
{
	uint64_t done = 0;

	if (saved.failed)
		unmap_all();

	for (uint32_t i = 0; i < saved.count; i++) {
		restore(&saved.list[i], saved.copies != NULL ? saved.copies + done : NULL);
		done += saved.list[i].end - saved.list[i].start;
	}
	saved_free();
}

/* On failure a hole remains: the child does not have the parent's pages (MADV_DONTFORK). */
static void
put_zeros(const struct lib_share *share)
{
	lib_sys_mmap((void *)(uintptr_t)share->va, share->length, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void
lib_share_fork_child(void)
{
	struct lib_share *share;

	for (uint32_t i = 0; (share = lib_share_at(i)) != NULL; i++) {
		if (share->kind == LIB_SHARE_QUEUE)
			put_zeros(share);
		if (share->fd >= 0)
			close(share->fd);
	}
	lib_share_clear();
	lib_pool_forget();
	lib_sparse_forget();
	lib_hold_forget();
	lib_maps_forget();
	pthread_mutex_unlock(&lib_share_lock);
}
