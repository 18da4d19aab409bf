/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Shared memory and fork(). A child does not inherit memory of the library and of softhca_alloc()
 * (MADV_DONTFORK). In place of queues it gets zeros, so that calls with the parent's objects see
 * empty queues before they are refused.
 */

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib_hold.h"
#include "lib_share_impl.h"
#include "lib_sys.h"

/*
 * Converted memory was private, so the child must have its own copy: the forking thread makes it
 * here, and the child puts it in place. As for all memory, concurrent stores of other threads may
 * be in the copy or not.
 */
static void
make_copy(struct lib_share *share)
{
	void *copy = lib_sys_mmap(NULL, share->length, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	share->copy = copy != MAP_FAILED ? copy : NULL;
	if (share->copy != NULL)
		lib_hold_copy(copy, (const void *)(uintptr_t)share->va, share->length);
}

void
lib_share_fork_prepare(void)
{
	struct lib_share *share;

	pthread_mutex_lock(&lib_share_lock);
	for (uint32_t i = 0; (share = lib_share_at(i)) != NULL; i++)
		if (share->kind == LIB_SHARE_CONVERTED)
			make_copy(share);
}

void
lib_share_fork_parent(void)
{
	struct lib_share *share;

	for (uint32_t i = 0; (share = lib_share_at(i)) != NULL; i++) {
		if (share->copy != NULL)
			lib_sys_munmap(share->copy, share->length);
		share->copy = NULL;
	}
	pthread_mutex_unlock(&lib_share_lock);
}

/* Without a copy (out of memory) the child has a hole there instead of the parent's pages. */
static void
place_copy(struct lib_share *share)
{
	void *at = (void *)(uintptr_t)share->va;

	if (share->copy == NULL || lib_sys_move(share->copy, share->length, at) != 0)
		lib_sys_munmap(at, share->length);
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
		if (share->kind == LIB_SHARE_CONVERTED)
			place_copy(share);
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
