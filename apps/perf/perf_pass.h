/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef APPS_PERF_PERF_PASS_H
#define APPS_PERF_PERF_PASS_H

/*
 * A timed pass: turn after turn until every message is done. Bandwidth (perf_bw.c) and latency
 * (perf_lat.c) differ in the turn. Between two processes both ends run the same loop, which ends
 * when both have received the result of the other one.
 */

#include "perf_clock.h"
#include "remote.h"

struct perf_pass {
	struct perf_session *s;
	/*
	 * One turn, after which the clock, the user and the peer are looked at. Returns completions
	 * and messages taken, 0 = none, or negative errno.
	 */
	int (*turn)(struct perf_pass *p);
	bool requests;	      /* this end makes requests */
	bool receives;	      /* the other process sends messages that this end takes */
	uint64_t limit;	      /* messages (latency: samples) to post */
	uint64_t duration_ns; /* nothing is posted after that; 0: no such limit */
	uint64_t posted, done, received;
	uint64_t begin, now, end; /* ns; end 0: requests are still under way, or none was posted */
	uint64_t seen, last_progress;
	uint64_t peak_at, peak_done; /* start of the current 10 ms */
	double peak_mmsg;
	struct perf_interval interval;
	struct perf_series *series; /* NULL: none; of the row */
	struct remote_talk talk;
	bool idle; /* bandwidth: the last round had no completions, so all flows may post */

	/* latency */
	struct perf_clock clock;
	uint32_t *sample;     /* ns */
	uint32_t ways;	      /* messages per sample: 2 in a ping-pong */
	uint32_t warm_up;     /* samples to drop */
	uint32_t unpolled[2]; /* sends of a side whose completions may be outstanding */
	unsigned int side;    /* that waits for the message under way */
	bool under_way;
	uint8_t value; /* last byte of the next message */
	uint64_t sent_at;
};

static inline bool
perf_pass_sent_all(const struct perf_pass *p)
{
	return !p->requests || (p->posted >= p->limit && p->done >= p->posted);
}

/* Of latencies: room for them, 0 or -ENOMEM; a summary for the row of a pass that ended. */
#define PERF_SAMPLES_MAX (1u << 22)
int perf_samples_open(struct perf_pass *p);
void perf_samples_close(struct perf_pass *p, int err, struct perf_row *row);

/* Sets limit and duration as the options say, runs the pass; p->end is valid where it requests. */
int perf_pass_run(struct perf_pass *p, uint64_t limit, uint64_t duration_ns);

#endif
