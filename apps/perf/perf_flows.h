/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APPS_PERF_PERF_FLOWS_H
#define APPS_PERF_PERF_FLOWS_H

/*
 * --flows FILE: traffic of several flows at once, each with its time, length, rate and class, and a
 * JSON line for each at the end. Their peers are the two HCAs back to back, or servers (--server)
 * of other hosts. docs/guide/traffic.md is the user's page.
 *
 *   perf_flows_parse.c   the file; needs the C library only
 *   perf_flows_run.c     sessions, one per peer, and the loop
 *   perf_flows_report.c  rates over time, JSON lines
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PERF_FLOWS_MAX 1024u /* with those of count */
#define PERF_FLOWS_PEER 128u

/*
 * Words of a line, X(word, member, kind, min, max, text of an error). TIME: ns, BYTES, REAL: the
 * unit of the text, U32.
 */
#define PERF_FLOWS_WORDS(X) \
	X(start, start_ns, TIME, 0, 86400e9, "a time as 500us, 2ms or 1.5s") \
	X(duration, duration_ns, TIME, 1e3, 86400e9, "a time as 500us, 2ms or 1.5s") \
	X(size, size, BYTES, 1, 1099511627776.0, "bytes, 1 to 1024G") \
	X(message, message, BYTES, 1, 16777216.0, "bytes, 1 to 16M") \
	X(rate, rate_gbps, REAL, 0.001, 10000, "Gb/s, 0.001 to 10000") \
	X(depth, depth, U32, 1, 1024, "messages under way, 1 to 1024") \
	X(dscp, dscp, U32, 0, 63, "0 to 63") \
	X(ecn, ecn, U32, 0, 1, "0 or 1") \
	X(count, count, U32, 1, 1024, "flows, 1 to 1024")

enum perf_flow_op {
	PERF_FLOW_WRITE,
	PERF_FLOW_READ,
};

/* A line, or one of its flows. */
struct perf_flow_spec {
	uint32_t line;	      /* of the file, from 1 */
	uint64_t start_ns;    /* after the beginning of the run */
	uint64_t duration_ns; /* no message is posted after it; 0: size counts */
	uint64_t size;	      /* bytes of all messages; 0: duration counts */
	uint64_t message;     /* bytes [64K] */
	double rate_gbps;     /* of the messages posted; 0: no limit */
	uint32_t depth;	      /* [16] */
	uint32_t dscp, ecn;
	uint32_t congestion; /* enum softhca_congestion */
	uint32_t count;	     /* flows of this line [1] */
	enum perf_flow_op op;
	char peer[PERF_FLOWS_PEER]; /* "1" or "0": the side that is sent to; otherwise a server */
};

struct perf_flows {
	uint32_t n;
	struct perf_flow_spec spec[PERF_FLOWS_MAX]; /* count is 1 in each */
};

/*
 * Reads a file of flows. name: of the file, in messages. 0; -EINVAL, -EIO with the reason in why.
 */
int perf_flows_parse(FILE *f, const char *name, struct perf_flows *out, char *why, size_t size);

/* "0" or "1": a side of the pair in this process. */
bool perf_flows_is_side(const char *peer);

/* Bytes done over time, in steps that double when there are too many. */
#define PERF_FLOWS_STEPS 256u
#define PERF_FLOWS_STEP_NS 100000u

struct perf_flows_rate {
	uint64_t step_ns; /* 0: PERF_FLOWS_STEP_NS */
	uint64_t bytes[PERF_FLOWS_STEPS];
};

/* bytes were done at a time after the beginning of the run, ns. */
void perf_flows_rate_add(struct perf_flows_rate *r, uint64_t at_ns, uint64_t bytes);

/* A flow at its end. */
struct perf_flows_result {
	const struct perf_flow_spec *spec;
	uint64_t bytes, messages;
	uint64_t end_ns; /* last completion, after the beginning of the run; 0: none */
	bool failed;	 /* a completion was not a success */
	uint64_t cnps, retransmissions, timeouts;
	struct perf_flows_rate rate;
};

/* Prints the JSON line of flow i. 0, -ENOMEM or -EIO. */
int perf_flows_print(FILE *f, uint32_t i, const struct perf_flows_result *r);

struct perf_options;
/* The whole run of --flows. 0 or negative errno; the error has been printed. */
int perf_flows_run(const struct perf_options *opt);

#endif
