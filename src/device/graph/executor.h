/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GRAPH_EXECUTOR_H
#define GRAPH_EXECUTOR_H

/*
 * Executors poll the stages. The same graph runs under either:
 *
 *  direct   the caller's thread: hca_direct_poll() polls every worker of the HCA once;
 *  threads  one thread per worker and HCA, started and stopped here.
 *
 * Only executors read clocks. Simulations call hca_poll_stage() in their own order.
 */

#include <stdbool.h>
#include <stdint.h>

#include "hca.h"

/* Monotonic time in ns, derived from the TSC. Any thread. */
uint64_t hca_clock_ns(void);

/* direct: poll all workers once at time now (ns); returns the amount of work done. */
unsigned int hca_direct_poll(struct hca *h, uint64_t now);

struct hca_threads;

struct hca_threads_config {
	struct hca **hca;
	unsigned int num_hca;
	/* CPU of each worker; fewer are shared by hca_layout_cpu() (layout.h) */
	const int *cpus;
	unsigned int num_cpus; /* 0: the scheduler chooses */
	bool spin;	       /* never sleep, whatever the number of CPUs */
	uint64_t backstop_ns;  /* first alarm of sleeps [20 ms]; UINT64_MAX: none, for tests */
};

/*
 * Start worker threads. They poll until stopped, yield if they share CPUs (cpu_yield.h), and sleep
 * without work. 0 or a negative errno.
 */
int hca_threads_start(const struct hca_threads_config *cfg, struct hca_threads **out);
void hca_threads_stop(struct hca_threads *t);
unsigned int hca_threads_count(const struct hca_threads *t);
/* Thread id of the i-th worker; 0: it has not started yet. */
int hca_threads_tid(const struct hca_threads *t, unsigned int i);

#endif
