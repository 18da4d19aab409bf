/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_INTEROP_HOST_H
#define TESTS_INTEROP_HOST_H

/*
 * The end outside of the virtual machine, which leads the tests: an embedded HCA on a vhost-user
 * port. host.c runs one test, host_matrix.c has the list of tests, host_main.c starts and stops
 * everything. One thread runs the engine and everything else. Errors: 0 or a negative errno.
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
	struct ep_set set;	 /* of the current test */
	int listener;		 /* of the control channel */
	struct host_clock clock; /* of the guest */
	bool lost;		 /* the channel is broken: no more tests are possible */
};

/* ours: softhca is the requester, rxe the responder. */
struct host_case {
	struct perf_exchange test;
	bool ours;
	unsigned int qps;		  /* 0: 1 */
	bool both_ways;			  /* every second QP in the reverse direction */
	struct softhca_impairment impair; /* zero: none */
	struct softhca_fault_rule fault[HOST_FAULTS];
	unsigned int num_faults;
	bool faults_must_hit;
};

/* Run a test. 0: passed. Negative: failed, with the reason; see h->lost. */
int host_run(struct host *h, const struct host_case *c, char reason[HOST_REASON]);

/* Open all QPs of a case at both ends; h->set holds them. */
int host_connect(struct host *h, const struct host_case *c, struct perf_exchange *x);

/* Accept the control channel of a machine and wait for its greeting. */
int host_wait_guest(struct host *h);

/* Wait for a line while the engine runs. */
int host_wait_line(struct host *h, unsigned int ms, char word[PERF_EXCHANGE_WORD],
		   struct perf_exchange *x);

struct host_options {
	const char *control; /* unix socket this program listens on */
	const char *device;  /* DPDK device */
	const char *pcap;
	const char *filter; /* run only cases whose names contain this */
	uint64_t seed;
	unsigned int random; /* number of random cases */
	uint32_t layout;     /* enum softhca_layout; other layouts than rtc use threads */
	bool quick;
	bool kill; /* kill the machine at the end; the starting program starts another */
	bool list;
	bool clock; /* only print the frequency of the cycle counter */
	bool verbose;
};

/* Run everything and print the tables; returns the number of failures or a negative errno. */
int host_matrix(struct host *h, const struct host_options *o);

/* Print "kill" on stdout and test the consequences. 0 or a negative errno. */
int host_kill(struct host *h, const struct host_options *o);

#endif
