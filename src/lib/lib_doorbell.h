/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_DOORBELL_H
#define LIB_DOORBELL_H

/*
 * The lossless doorbell FIFO of a UAR page, producer side. Take a slot first, then touch the queue,
 * then fill it: a doorbell is never lost. A slot once taken must be filled.
 *
 * Where the FIFO is full nobody waits: the chain announces itself in its first WQE and the mark of
 * the QP is set (struct hca_uar_page). That needs no memory of who did so: the device finds such a
 * chain at its mark, or at the next doorbell of the QP, whichever it takes first.
 */

#include <errno.h>

#include "lib_types.h"

void lib_uar_init(struct lib_uar *uar, volatile void *page, uint32_t page_number);

/* No slot: mark the QP. */
#define LIB_DOORBELL_FULL 1

/* The FIFO is full: LIB_DOORBELL_FULL, or -EIO: the device is dead. */
int lib_doorbell_full(struct lib_context *ctx);
/* The device looks at the QP: its announced chains, receives that wait for a kick. Full fence. */
void lib_doorbell_mark(struct lib_uar *uar, uint32_t qpn);

/* One attempt: number of the slot taken, or false. */
static inline bool
lib_doorbell_try(struct lib_uar *uar, uint32_t *number)
{
	uint32_t n = __atomic_load_n(&uar->next, __ATOMIC_RELAXED);

	for (;;) {
		uint32_t slot = n % HCA_UAR_FIFO_SLOTS;

		if (__atomic_load_n(&uar->turn[slot], __ATOMIC_ACQUIRE) != n ||
		    __atomic_load_n(&uar->page->fifo[slot], __ATOMIC_RELAXED) != HCA_DB_EMPTY) {
			uint32_t now = __atomic_load_n(&uar->next, __ATOMIC_RELAXED);

			if (now == n)
				return false;
			n = now; /* somebody was faster: look at the next one */
			continue;
		}
		if (__atomic_compare_exchange_n(&uar->next, &n, n + 1, true, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			*number = n;
			return true;
		}
	}
}

/* 0: *number is to be filled; LIB_DOORBELL_FULL; -EIO. */
static inline int
lib_doorbell_take(struct lib_context *ctx, uint32_t *number)
{
	if (__builtin_expect(ctx->dead, 0))
		return lib_dead(ctx);
	if (__builtin_expect(lib_doorbell_try(&ctx->uar, number), 1))
		return 0;
	return lib_doorbell_full(ctx);
}

void lib_doorbell_wake(struct lib_uar *uar, uint32_t word);

/* Wakes the worker if it sleeps. Behind a full fence, or again and again. */
static inline void
lib_doorbell_kick(struct lib_uar *uar)
{
	uint32_t word = __atomic_load_n(uar->sleep_word, __ATOMIC_SEQ_CST);

	if (__builtin_expect(word & 1, 0))
		lib_doorbell_wake(uar, word);
}

/*
 * Everything written to the queue before is visible to a device that sees the word. A worker that
 * goes to sleep sets its word, then looks at the page; here it is the other way round, so one of
 * the two sees the other.
 */
static inline void
lib_doorbell_fill(struct lib_uar *uar, uint32_t number, uint64_t word)
{
	uint32_t slot = number % HCA_UAR_FIFO_SLOTS;

	__atomic_store_n(&uar->page->fifo[slot], hca_cpu_to_le64(word), __ATOMIC_RELEASE);
	if (uar->kick_fd < 0) {
		__atomic_store_n(&uar->turn[slot], number + HCA_UAR_FIFO_SLOTS, __ATOMIC_RELEASE);
		return;
	}
	__atomic_exchange_n(&uar->turn[slot], number + HCA_UAR_FIFO_SLOTS, __ATOMIC_SEQ_CST);
#ifndef __x86_64__ /* there the exchange is a full fence */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
	lib_doorbell_kick(uar);
}

#endif
