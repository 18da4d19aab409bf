/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What fork() does to shared memory. The child has none of the library's memory and none from
 * softhca_alloc() (MADV_DONTFORK). Where queues were it finds zeros, so that calls on the parent's
 * objects see empty queues before they are refused.
 */

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib_share_impl.h"

void
lib_share_fork_prepare(void)
{
	pthread_mutex_lock(&lib_share_lock);
}

void
lib_share_fork_parent(void)
{
	pthread_mutex_unlock(&lib_share_lock);
}

static void
put_zeros(const struct lib_share *share)
{
	mmap((void *)(uintptr_t)share->va, share->length, PROT_READ | PROT_WRITE,
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
	pthread_mutex_unlock(&lib_share_lock);
}
