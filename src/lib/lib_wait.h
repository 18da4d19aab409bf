/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_WAIT_H
#define LIB_WAIT_H

/*
 * Yielding in poll_cq (cpu_yield.h), because the worker that the program waits for may need this
 * CPU, and in posts that have woken the worker, because the program may poll memory next, without a
 * call. The state belongs to the thread, for all CQs and contexts that it polls. With manual
 * progress the poll runs the engine, and this is not used.
 */

#include "cpu_yield.h"
#include "lib_types.h"

/* Number of empty polls between two readings of the clock, unless the CPU is known to be shared. */
#define LIB_WAIT_POLLS 32u

struct lib_wait {
	struct cpu_yield cpu_yield;
	uint32_t polls; /* polls left before the next reading */
};

extern __thread struct lib_wait lib_wait
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

void lib_wait_look(void);

static inline void
lib_wait_empty(void)
{
	if (__builtin_expect(lib_wait.polls != 0, 1))
		lib_wait.polls--;
	else
		lib_wait_look();
}

static inline void
lib_wait_over(void)
{
	cpu_yield_restart(&lib_wait.cpu_yield);
}

void lib_wait_woke(struct lib_uar *uar);

/* At the end of a post, without locks: another thread of the program may wait for one. */
static inline void
lib_wait_posted(struct lib_uar *uar)
{
	if (__builtin_expect(__atomic_load_n(&uar->woke, __ATOMIC_RELAXED), 0))
		lib_wait_woke(uar);
}

/* Whether this thread is between start_poll and end_poll of the CQ, and has its lock. */
static inline bool
lib_cq_is_read(const struct lib_cq *cq)
{
	return __atomic_load_n(&cq->reader, __ATOMIC_RELAXED) == &lib_wait;
}

#endif
