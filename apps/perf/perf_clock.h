/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APPS_PERF_PERF_CLOCK_H
#define APPS_PERF_PERF_CLOCK_H

/* A clock that costs a few ns: the cycle counter where there is one, in units of 2^-32 ns. */

#include <stdint.h>

#include "perf.h"

struct perf_clock {
	uint64_t ns_per_tick_q32; /* 32 fraction bits */
};

static inline uint64_t
perf_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return perf_now_ns();
#endif
}

/* Takes 20 ms. */
static inline void
perf_clock_init(struct perf_clock *clock)
{
	uint64_t ns = perf_now_ns(), ticks = perf_ticks(), passed;

	do {
		passed = perf_now_ns() - ns;
	} while (passed < 20000000);
	clock->ns_per_tick_q32 =
		(uint64_t)((double)passed * 4294967296.0 / (double)(perf_ticks() - ticks));
}

static inline uint64_t
perf_ticks_to_ns(const struct perf_clock *clock, uint64_t ticks)
{
	return (uint64_t)(((unsigned __int128)ticks * clock->ns_per_tick_q32) >> 32);
}

#endif
