/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APPS_PERF_PERF_VERIFY_H
#define APPS_PERF_PERF_VERIFY_H

/*
 * Rounds that check data and completions, in steps, for tests whose sides are in one process or in
 * two. Requests go from side `from`; each step does the work of local sides. A round is: prepare
 * and post the receives; post the requests; take completions until all have come; check.
 */

#include "perf.h"

struct perf_verify {
	struct perf_session *s;
	unsigned int from;
	uint64_t direction; /* other data for the other one, the same at both ends */
	bool lossy;	   /* messages may be missing; those that come must be right and in order */
	uint64_t *counter; /* atomics: required values of the peer's counters, by flow and slot */
	uint64_t *old;	   /* required value of each when the batch came */
	uint64_t round;
	uint32_t sends_left; /* requests of the round still to complete */
	uint32_t recv_left;  /* the same for receives */
	uint32_t *recv_at;   /* per flow: slot of the first receive of the round */
	uint32_t *received;  /* per flow: in this round */
	uint8_t *taken;	     /* UB: by flow and slot, receives of the round; then messages found */
	uint32_t *unposted;  /* per flow: receives to post before the next round */
	uint64_t lost;	     /* of all rounds */
};

/* Also builds the rings. Errors in data have been printed: -EILSEQ. */
int perf_verify_open(struct perf_verify *v, struct perf_session *s, unsigned int from, bool lossy);
void perf_verify_close(struct perf_verify *v);
int perf_verify_prepare(struct perf_verify *v);
int perf_verify_post(struct perf_verify *v);
/* Completions seen, or negative errno. */
int perf_verify_take(struct perf_verify *v);
int perf_verify_check(struct perf_verify *v);
/* lossy, SEND and WRITE to a local side: all messages of the round have arrived. */
bool perf_verify_complete(const struct perf_verify *v);
/* Rounds enough since `begin`; shows progress. */
bool perf_verify_enough(const struct perf_verify *v, uint64_t begin);

#endif
