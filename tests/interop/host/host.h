/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_INTEROP_HOST_H
#define TESTS_INTEROP_HOST_H

/*
 * The end outside the virtual machine: an embedded HCA on a vhost-user port, which leads the tests.
 * host.c runs one test, host_matrix.c knows which there are, host_main.c brings up and takes down.
 *
 * One thread runs the engine and everything else. Errors: 0 or negative errno.
 */

#include <stdbool.h>
#include <stdint.h>

#include <softhca/embed.h>

#include "ep.h"
#include "ep_line.h"
#include "host_clock.h"

#define HOST_FAULTS 3
#define HOST_REASON 400

struct host {
	struct softhca_embed *embed;
	struct softhca_context *ctx;
	struct ep_line line;
	struct ep_set set;	 /* of the test under way */
	int listener;		 /* of the control channel */
	struct host_clock clock; /* of the guest */
	bool lost;		 /* the channel is dead: nothing more can be tested */
};

/* ours: softhca makes the requests, rxe serves them. */
struct host_case {
	struct perf_exchange test;
	bool ours;
	unsigned int qps;		  /* 0: 1 */
	bool both_ways;			  /* every second QP in the other direction */
	struct softhca_impairment impair; /* zero: none */
	struct softhca_fault_rule fault[HOST_FAULTS];
	unsigned int num_faults;
	bool faults_must_hit;
};

/* 0: passed. Negative: failed, and why; look at h->lost. */
int host_run(struct host *h, const struct host_case *c, char reason[HOST_REASON]);

/* Opens all QPs of a case here and there; h->set holds them. */
int host_connect(struct host *h, const struct host_case *c, struct perf_exchange *x);

/* Accepts the control channel of a machine and waits for its greeting. */
int host_wait_guest(struct host *h);

/* Waits for a line while the engine runs. */
int host_wait_line(struct host *h, unsigned int ms, char word[PERF_EXCHANGE_WORD],
		   struct perf_exchange *x);

struct host_options {
	const char *control; /* unix socket this program listens on */
	const char *device;  /* DPDK device */
	const char *pcap;
	const char *filter; /* only cases whose name contains it */
	uint64_t seed;
	unsigned int random; /* so many drawn from the seed */
	uint32_t layout;     /* enum softhca_layout; others than rtc run in threads */
	bool quick;
	bool kill; /* the machine is killed in the end; what started it brings up another */
	bool list;
	bool verbose;
};

/* Runs everything and prints the tables; returns the number of failures or negative errno. */
int host_matrix(struct host *h, const struct host_options *o);

/* Says "kill" on stdout and lives with it. 0 or negative errno. */
int host_kill(struct host *h, const struct host_options *o);

#endif
