/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_DOORBELL_H
#define LIB_DOORBELL_H

/*
 * Producer side of the doorbell FIFO of a UAR page, which never loses a doorbell. The order is:
 * take a slot, write to the queue, fill the slot. A slot that was taken must be filled.
 *
 * When the FIFO is full the caller does not wait: the first WQE of a chain announces the chain, and
 * the mark of the QP is set (struct hca_uar_page). No other state is needed: the device finds the
 * chain by its mark or at the next doorbell of the QP, whichever is first.
 */

#include <errno.h>

#include "lib_types.h"

/*
 * Initialize the producer side of the doorbell page `page` with number page_number: the part of one
 * pipe of `pipes`.
 */
void lib_uar_init(struct lib_uar *uar, volatile void *page, uint32_t page_number, uint32_t pipes,
		  uint32_t pipe);

/* No slot is free: mark the QP. */
#define LIB_DOORBELL_FULL 1

/* Called when the FIFO is full: returns LIB_DOORBELL_FULL, or -EIO: the device is dead. */
int lib_doorbell_full(struct lib_context *ctx);
/*
 * Make the device check the QP for announced chains and for receives that wait for a kick. Contains
 * a full fence.
 */
void lib_doorbell_mark(struct lib_uar *uar, uint32_t qpn);

/* Try once to take a slot; *number: its doorbell number. False: the FIFO is full. */
static inline bool
lib_doorbell_try(struct lib_uar *uar, uint32_t *number)
{
	uint32_t n = __atomic_load_n(&uar->next, __ATOMIC_RELAXED);

	for (;;) {
		uint32_t slot = n & uar->mask;

		if (__atomic_load_n(&uar->turn[slot], __ATOMIC_ACQUIRE) != n ||
		    __atomic_load_n(&uar->page->fifo[uar->base + slot], __ATOMIC_RELAXED) !=
			    HCA_DB_EMPTY) {
			uint32_t now = __atomic_load_n(&uar->next, __ATOMIC_RELAXED);

			if (now == n)
				return false;
			n = now; /* another thread was faster: try the next number */
			continue;
		}
		if (__atomic_compare_exchange_n(&uar->next, &n, n + 1, true, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			*number = n;
			return true;
		}
	}
}

/* Take a slot. 0: *number must be filled; LIB_DOORBELL_FULL; -EIO: the device is dead. */
static inline int
lib_doorbell_take(struct lib_context *ctx, struct lib_uar *uar, uint32_t *number)
{
	if (__builtin_expect(ctx->dead, 0))
		return lib_dead(ctx);
	if (__builtin_expect(lib_doorbell_try(uar, number), 1))
		return 0;
	return lib_doorbell_full(ctx);
}

/* Write to the kick descriptor, once per sleep; word: the sleep word that was read. */
void lib_doorbell_wake(struct lib_uar *uar, uint32_t word);

/* Wake the worker if it sleeps. Must come after a full fence, or be repeated. */
static inline void
lib_doorbell_kick(struct lib_uar *uar)
{
	uint32_t word = __atomic_load_n(uar->sleep_word, __ATOMIC_SEQ_CST);

	if (__builtin_expect(word & 1, 0))
		lib_doorbell_wake(uar, word);
}

/*
 * Fill a slot. A device that sees the word also sees everything written to the queue before. A
 * worker that goes to sleep first sets its word and then checks the page; here the order is the
 * reverse, so at least one of the two sees the other.
 */
static inline void
lib_doorbell_fill(struct lib_uar *uar, uint32_t number, uint64_t word)
{
	uint32_t slot = number & uar->mask, next = number + uar->mask + 1;

	__atomic_store_n(&uar->page->fifo[uar->base + slot], hca_cpu_to_le64(word),
			 __ATOMIC_RELEASE);
	if (uar->kick_fd < 0) {
		__atomic_store_n(&uar->turn[slot], next, __ATOMIC_RELEASE);
		return;
	}
	__atomic_exchange_n(&uar->turn[slot], next, __ATOMIC_SEQ_CST);
#ifndef __x86_64__ /* on x86-64 the exchange is a full fence */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
	lib_doorbell_kick(uar);
}

#endif
