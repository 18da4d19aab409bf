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
#include "lib_sys.h"

/*
 * Converted memory was private, so the child must have its own copy: the forking thread makes it
 * here, and the child puts it in place. As for all memory, concurrent stores of other threads may
 * be in the copy or not.
 *
 * Converted memory may be heap, with the objects of this library in the same pages. So what the
 * child needs to put the copies in place is in a mapping of its own.
 */
struct copies {
	size_t bytes; /* of this mapping */
	uint32_t n;
	struct {
		uint64_t va;
		uint64_t length;
		void *copy;
	} of[];
};

static struct copies *copies;

static void *
map_private(size_t bytes)
{
	void *at = lib_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);

	return at != MAP_FAILED ? at : NULL;
}

/* Room for the copies of all pieces */
static struct copies *
new_copies(void)
{
	struct copies *list;
	size_t bytes;
	uint32_t n = 0;

	while (lib_share_at(n) != NULL)
		n++;
	bytes = sizeof(*list) + n * sizeof(list->of[0]);
	list = map_private(bytes);
	if (list != NULL)
		list->bytes = bytes;
	return list;
}

static void
make_copy(const struct lib_share *share)
{
	void *copy = map_private(share->length);
	uint32_t i = copies->n;

	if (copy == NULL)
		return;
	lib_hold_copy(copy, (const void *)(uintptr_t)share->va, share->length);
	copies->of[i].va = share->va;
	copies->of[i].length = share->length;
	copies->of[i].copy = copy;
	copies->n++;
}

void
lib_share_fork_prepare(void)
{
	struct lib_share *share;

	pthread_mutex_lock(&lib_share_lock);
	copies = new_copies();
	for (uint32_t i = 0; copies != NULL && (share = lib_share_at(i)) != NULL; i++)
		if (share->kind == LIB_SHARE_CONVERTED)
			make_copy(share);
}

void
lib_share_fork_parent(void)
{
	for (uint32_t i = 0; copies != NULL && i < copies->n; i++)
		lib_sys_munmap(copies->of[i].copy, copies->of[i].length);
	if (copies != NULL)
		lib_sys_munmap(copies, copies->bytes);
	copies = NULL;
	pthread_mutex_unlock(&lib_share_lock);
}

/* Without a copy (out of memory) the child has a hole there instead of the parent's pages. */
void
lib_share_fork_restore(void)
{
	for (uint32_t i = 0; copies != NULL && i < copies->n; i++)
		(void)lib_sys_move(copies->of[i].copy, copies->of[i].length,
				   (void *)(uintptr_t)copies->of[i].va);
	if (copies != NULL)
		lib_sys_munmap(copies, copies->bytes);
	copies = NULL;
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
		if (share->kind == LIB_SHARE_GIVEN || share->kind == LIB_SHARE_FOUND)
			close(share->fd);
	}
	lib_share_clear();
	lib_pool_forget();
	lib_hold_forget();
	pthread_mutex_unlock(&lib_share_lock);
}
