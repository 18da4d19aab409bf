/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_PLACE_H
#define ENDPOINT_PLACE_H

/*
 * Moves a worker that waits for its CPU to a CPU that is idle. The scheduler does not: two workers
 * that yield to each other on one CPU stay there, while the programs they serve sleep and wake on
 * another one, which is idle in between. Each wake-up then crosses CPUs and finds its CPU idle,
 * which on a virtual machine takes 20 us instead of 2.
 *
 * A worker moves if in the last period it waited for a quarter of the time or more, and a CPU on
 * which it may run was idle for a quarter of the time or more. Other daemons see the same CPU and
 * would all move to it; so a coin decides whether to move now or to look again after the next
 * period. The set of CPUs on which the worker may run does not change; a pinned worker stays.
 */

#include <stdbool.h>
#include <stdint.h>

#include "hca.h"

#define ENDPOINT_PLACE_WORKERS HCA_WORKERS_MAX
#define ENDPOINT_PLACE_CPUS 1024u
#define ENDPOINT_PLACE_PERIOD_NS 50000000ull

/* Queries of the machine; tests replace them. Times are totals in ns; 0: unknown. */
struct endpoint_place_machine {
	/* time that a thread was runnable without a CPU */
	uint64_t (*waited)(int tid);
	/* fill idle[0 .. max-1], time that each CPU was idle; 0 or a negative errno */
	int (*idle)(uint64_t *idle, unsigned int max);
	bool (*may_run)(int tid, unsigned int cpu);
	/* 0 or a negative errno */
	int (*move)(int tid, unsigned int cpu);
	bool (*coin)(void);
};

struct endpoint_place {
	const struct endpoint_place_machine *machine;
	uint64_t looked_at; /* time of the last look, ns */
	bool idle_known;    /* idle[] is of the last look */
	uint64_t waited[ENDPOINT_PLACE_WORKERS];
	uint64_t idle[ENDPOINT_PLACE_CPUS];
	uint64_t moves; /* number of workers moved */
};

/* machine: NULL for the one this runs on. now: ns. */
void endpoint_place_init(struct endpoint_place *p, const struct endpoint_place_machine *machine,
			 uint64_t now);
/*
 * Look at n workers, at most once per period, and move one at most; tids: their thread ids, 0: not
 * started yet, in the same order each time. Returns whether a worker waits, so that the next look
 * should follow after a period. One thread. now: ns.
 */
bool endpoint_place_watch(struct endpoint_place *p, const int *tids, unsigned int n, uint64_t now);

#endif
