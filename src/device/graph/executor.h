/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GRAPH_EXECUTOR_H
#define GRAPH_EXECUTOR_H

/*
 * Who polls. The same graph runs under three executors:
 *
 *  direct   the caller's thread: hca_direct_poll() polls every worker of the HCA once;
 *  threads  one thread per worker and HCA, started and stopped here;
 *  stepped  one thread, a seeded generator picks the next HCA, stage and burst size, time is
 *           simulated: the same seed gives the same run, bit for bit.
 *
 * Only executors read clocks.
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

/* The stepped executor; HCAs should have layout full. */
struct hca_stepper {
	struct hca *hca[4];
	unsigned int num_hca;
	uint64_t now;	  /* simulated ns */
	uint64_t tick_ns; /* time per step, at least 1 */
	uint64_t rng[2];
	uint64_t steps;
};

void hca_stepper_init(struct hca_stepper *s, struct hca **hca, unsigned int n, uint64_t seed,
		      uint64_t tick_ns);
/* One burst of one stage of one HCA; returns the work it did. */
unsigned int hca_stepper_step(struct hca_stepper *s);
/* The stepper's own randomness, for links and applications that must follow the same seed. */
uint64_t hca_stepper_random(struct hca_stepper *s);

#endif
