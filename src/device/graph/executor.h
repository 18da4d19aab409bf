/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GRAPH_EXECUTOR_H
#define GRAPH_EXECUTOR_H

/*
 * Who polls. The same graph runs under two executors:
 *
 *  direct   the caller's thread: hca_direct_poll() polls every worker of the HCA once;
 *  threads  one thread per worker and HCA, started and stopped here.
 *
 * Only executors read clocks. Simulations call hca_poll_stage() in an order of their own.
 */

#include <stdbool.h>
#include <stdint.h>

#include "hca.h"

/* Monotonic ns of this process, from the TSC. */
uint64_t hca_clock_ns(void);

/* direct: one loop over all workers at time now; returns the work done. */
unsigned int hca_direct_poll(struct hca *h, uint64_t now);

struct hca_threads;

struct hca_threads_config {
	struct hca **hca;
	unsigned int num_hca;
	const int *cpus; /* CPU per worker, round robin; NULL: the scheduler places them */
	unsigned int num_cpus;
	bool spin; /* never sleep, whatever the number of CPUs */
	uint64_t
		backstop_ns; /* the alarm beside every sleep [20 ms]; UINT64_MAX: none, for tests */
};

/* Workers poll until stopped, give way where they share CPUs (giveway.h) and sleep without work. */
int hca_threads_start(const struct hca_threads_config *cfg, struct hca_threads **out);
void hca_threads_stop(struct hca_threads *t);
unsigned int hca_threads_count(const struct hca_threads *t);
/* The kernel's number of the i-th worker's thread; 0: it has not begun yet. */
int hca_threads_tid(const struct hca_threads *t, unsigned int i);

#endif
