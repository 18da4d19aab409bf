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

static const struct giveway_system giveway_system = {
	.now = now_ns,
	.yield = giveway_sched_yield,
	.nap = giveway_nap,
	.switches = giveway_switches,
};

__thread struct lib_wait lib_wait = {.giveway = {.system = &giveway_system, .naps = true}};

void
lib_wait_look(void)
{
	uint64_t now = now_ns();

	giveway_empty(&lib_wait.giveway, now);
	lib_wait.polls = giveway_shared(&lib_wait.giveway, now) ? 0 : LIB_WAIT_POLLS;
}

void
lib_wait_woke(struct lib_uar *uar)
{
	__atomic_store_n(&uar->woke, false, __ATOMIC_RELAXED);
	giveway_woke(&lib_wait.giveway, now_ns());
}
