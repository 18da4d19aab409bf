/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_DEVICE_UB_TP_TP_SIM_H
#define TESTS_UNIT_DEVICE_UB_TP_TP_SIM_H

/*
 * Two ends with some TPs between them, joined by a simulated network that loses, copies, delays and
 * reorders. Time is simulated, random numbers come from a seed. Every packet that is passed on is
 * looked up: it must be one that was sent, and passed on once.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ub/tp/tp_core.h"

#define SIM_TPS 4u
#define SIM_PATHS 8u
#define SIM_OPS 16384u /* of each lane and end */

/* Of one direction. Odds are parts per million. */
struct sim_link {
	uint64_t delay;	      /* ns, of the shortest path */
	uint64_t skew;	      /* how much later the longest one is */
	uint32_t paths;	      /* chosen by source port */
	uint32_t gbps;	      /* of the sender's port; each path has its share */
	uint32_t loss, loss0; /* loss0: more, on path 0 */
	uint32_t copy;
	uint32_t late;
	uint64_t late_by; /* at most */
	uint64_t cut_at;  /* nothing arrives that is sent from then on; 0: never */
};

struct tp_sim;

/* The program at both ends: functions that the simulation calls. */
struct sim_app {
	/* Put operations into the lanes of the end: tp_sim_put(). */
	void (*fill)(struct tp_sim *s, uint32_t end);
	/* All packets of an operation of `from` have been passed on. */
	void (*complete)(struct tp_sim *s, uint32_t from, uint32_t tp, uint32_t lane, uint64_t tag);
	/* Nothing more will be put. */
	bool (*finished)(const struct tp_sim *s);
};

struct sim_cfg {
	uint64_t seed;
	uint32_t tps;
	struct hca_tp_cfg tp;	    /* of both ends */
	struct sim_link link[2];    /* from end 0, from end 1 */
	uint64_t poll;		    /* ns between the polls of an end */
	bool lazy_encap;	    /* descriptors are finished some polls later */
	uint32_t answered, orphans; /* odds that an operation becomes one early */
	const struct sim_app *app;
};

struct sim_flow {
	uint64_t packets;   /* sent for the first time */
	uint64_t passed;    /* passed on */
	uint64_t bytes;	    /* payload passed on */
	uint64_t tp_frames; /* TP packets that arrived */
	uint64_t lost, lost_answers, copied;
	uint64_t resent;
};

struct sim_end;
struct sim_frame;

struct tp_sim {
	struct sim_cfg cfg;
	uint64_t now;
	uint64_t random;
	struct sim_end *end[2];
	struct sim_flow flow[2]; /* from end 0, from end 1 */
	struct sim_heap {
		struct sim_frame **frame;
		uint32_t n, size;
	} heap[2]; /* frames on their way to an end, by time of arrival */
	uint64_t frames;
	uint64_t user[8]; /* of the app */
};

void tp_sim_open(struct tp_sim *s, const struct sim_cfg *cfg);
void tp_sim_close(struct tp_sim *s);
struct hca_tp *tp_sim_tp(struct tp_sim *s, uint32_t end, uint32_t tp);

/* Room of a lane for tp_sim_put(). */
uint32_t tp_sim_room(struct tp_sim *s, uint32_t end, uint32_t tp, uint32_t lane);
/* tag: for complete(). */
void tp_sim_put(struct tp_sim *s, uint32_t end, uint32_t tp, uint32_t lane, uint32_t payload,
		uint64_t tag);

/* Until all is said and quiet, or until a time. True: all was said. */
bool tp_sim_run(struct tp_sim *s, uint64_t until);

/* After tp_sim_run() returned true: sums hold, nothing is left anywhere. */
void tp_sim_check(struct tp_sim *s);

/* 0..n-1 */
uint32_t tp_sim_random(struct tp_sim *s, uint32_t n);

#endif
