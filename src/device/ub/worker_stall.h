/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_WORKER_STALL_H
#define UB_WORKER_STALL_H

/*
 * Whether a worker was kept from its CPU when a time was up: then an answer may be in the port's
 * queue, or could not be asked for. A worker that polls again after HCA_UB_STALL_NS, and later than
 * a deadline plus the wheel's inaccuracy, was kept: one that sleeps is woken in time, and by every
 * frame. Each stage that has such deadlines keeps one of these, on its lcore.
 */

#include "engine/impl.h"
#include "engine/timer.h"

/* Between polls: a longer time is a stall. Inaccuracy of the timer wheel. */
#define HCA_UB_STALL_NS 50000u
#define HCA_UB_STALL_SLACK_NS (4u << HCA_TIMER_TICK_LOG)

/* When this poll began, and that of decap's worker; when one of them ran again after a stall. */
struct hca_ub_stall {
	uint64_t now, read, resumed;
};

/* A poll begins. */
static inline void
hca_ub_stall_note(const struct hca_pipe *h, struct hca_ub_stall *a, uint64_t now)
{
	uint8_t decap = h->stage_worker[HCA_STAGE_DECAP];
	uint64_t read = __atomic_load_n(&h->wake[decap].now, __ATOMIC_RELAXED);

	if (unlikely(now - a->now >= HCA_UB_STALL_NS || read - a->read >= HCA_UB_STALL_NS))
		a->resumed = now;
	a->now = now;
	a->read = read;
}

/* Whether the deadline, which is over, passed while this worker or that of decap did not run. */
static inline bool
hca_ub_was_stalled(const struct hca_ub_stall *a, uint64_t deadline)
{
	uint64_t late = deadline + HCA_UB_STALL_SLACK_NS;

	return a->resumed >= late || (a->now >= late && a->now >= a->read + HCA_UB_STALL_NS);
}

#endif
