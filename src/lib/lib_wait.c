/* SPDX-License-Identifier: BSD-3-Clause */

#include <time.h>

#include "lib_wait.h"

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static const struct cpu_yield_system cpu_yield_system = {
	.now = now_ns,
	.yield = cpu_yield_sched,
	.nap = cpu_yield_nap,
	.switches = cpu_yield_switches,
};

__thread struct lib_wait lib_wait = {.cpu_yield = {.system = &cpu_yield_system, .naps = true}};

void
lib_wait_look(void)
{
	uint64_t now = now_ns();

	cpu_yield_empty(&lib_wait.cpu_yield, now);
	lib_wait.polls = cpu_yield_shared(&lib_wait.cpu_yield, now) ? 0 : LIB_WAIT_POLLS;
}

void
lib_wait_woke(struct lib_uar *uar)
{
	__atomic_store_n(&uar->woke, false, __ATOMIC_RELAXED);
	cpu_yield_woke(&lib_wait.cpu_yield, now_ns());
}
