/* SPDX-License-Identifier: BSD-3-Clause */

#include <sched.h>

#include "lib_doorbell.h"

/* Attempts before the page counts as full; each lets the engine, or another thread, run. */
#define DOORBELL_ATTEMPTS 4096
#define DOORBELL_SPINS 64

void
lib_uar_init(struct lib_uar *uar, volatile void *page, uint32_t page_number)
{
	uint32_t first = HCA_UAR_FIFO_FIRST(page_number);

	uar->page = (struct hca_uar_page *)(uintptr_t)page;
	uar->next = first;
	for (uint32_t i = 0; i < HCA_UAR_FIFO_SLOTS; i++)
		uar->turn[(first + i) % HCA_UAR_FIFO_SLOTS] = first + i;
}

int
lib_doorbell_take_slow(struct lib_context *ctx, uint32_t *number)
{
	for (unsigned int i = 0; i < DOORBELL_ATTEMPTS; i++) {
		if (lib_doorbell_try(&ctx->uar, number))
			return 0;
		if (ctx->progress != NULL)
			ctx->progress(ctx->ctl);
		else if (i % DOORBELL_SPINS == DOORBELL_SPINS - 1)
			sched_yield();
		else
			lib_cpu_relax();
	}
	if (!ctx->ops->alive(ctx->ctl)) {
		__atomic_store_n(&ctx->dead, true, __ATOMIC_RELAXED);
		return lib_fail(-EIO, "the device does not take doorbells any more");
	}
	return lib_fail(-ENOMEM, "the doorbell page is full");
}
