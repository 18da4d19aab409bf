/* SPDX-License-Identifier: BSD-3-Clause */

#include <unistd.h>

#include "lib_doorbell.h"

void
lib_uar_init(struct lib_uar *uar, volatile void *page, uint32_t page_number, uint32_t pipes,
	     uint32_t pipe)
{
	static const uint32_t awake;
	uint32_t first = HCA_UAR_FIFO_FIRST(page_number);

	uar->page = (struct hca_uar_page *)(uintptr_t)page;
	uar->pipes = pipes;
	uar->base = (uint16_t)HCA_UAR_FIFO_SLOT(pipes, pipe, 0);
	uar->mask = (uint16_t)(HCA_UAR_FIFO_PART(pipes) - 1);
	uar->sleep_word = &awake;
	uar->kick_fd = -1;
	uar->next = first;
	for (uint32_t i = 0; i <= uar->mask; i++)
		uar->turn[(first + i) & uar->mask] = first + i;
}

/*
 * Kick at most once per sleep; each sleep has another word. It is noted after the write, so that
 * another thread that reads it can rely on the kick.
 */
void
lib_doorbell_wake(struct lib_uar *uar, uint32_t word)
{
	uint64_t one = 1;

	if (__atomic_load_n(&uar->kicked, __ATOMIC_RELAXED) == word)
		return;
	if (write(uar->kick_fd, &one, sizeof(one)) != sizeof(one))
		return;
	__atomic_store_n(&uar->kicked, word, __ATOMIC_RELAXED);
	__atomic_store_n(&uar->woke, true, __ATOMIC_RELAXED);
}

/*
 * If there is a watcher it detects the end of the daemon; otherwise ask, which costs only a load.
 */
int
lib_doorbell_full(struct lib_context *ctx)
{
	if (ctx->ops->watch_fd != NULL || ctx->ops->alive(ctx->ctl))
		return LIB_DOORBELL_FULL;
	__atomic_store_n(&ctx->dead, true, __ATOMIC_RELAXED);
	return lib_fail(
		-EIO,
		"the device has stopped and reads no doorbells: close the context, and open the "
		"device again");
}

void
lib_doorbell_mark(struct lib_uar *uar, uint32_t qpn)
{
	uint32_t mark = HCA_UAR_MARK(uar->pipes, qpn), w = mark / 64;

	__atomic_fetch_or(&uar->page->marks[w], hca_cpu_to_le64(1ull << mark % 64),
			  __ATOMIC_RELEASE);
	__atomic_fetch_or(&uar->page->marked, hca_cpu_to_le64(1ull << w), __ATOMIC_SEQ_CST);
#ifndef __x86_64__
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
	lib_doorbell_kick(uar);
}
