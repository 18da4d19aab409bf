/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_IMPAIR_LANE_H
#define PORT_IMPAIR_LANE_H

/*
 * The inside of port_impair.c: the port, and a lane per queue with all that the queue's worker
 * writes. impair_fate.c decides a frame's fate; port_impair.c applies it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "port/impair_heap.h"
#include "port/port_fired.h"
#include "port/port_impair.h"
#include "port/port_wrap.h"

#define IMPAIR_PASS HCA_FAULT_KINDS

/* The decision about one frame. */
struct impair_fate {
	unsigned int fault; /* enum hca_fault or IMPAIR_PASS */
	uint64_t arg;
	uint64_t wait; /* ns */
	bool ecn;
	bool by_rule;
	uint8_t rule; /* counted from 1 */
	bool spared;  /* the odds are for other frames: QP, wire or opcode */
};

/* Probabilities as 32-bit thresholds. */
struct impair_odds {
	uint64_t drop, dup, reorder, corrupt, truncate, ecn;
	uint64_t delay_ns, jitter_ns, reorder_ns;
	uint32_t kinds;
	uint32_t qpn, sqpn; /* 0: all */
	uint8_t wire;	    /* HCA_WIRE_NONE: all */
	bool by_name;
	struct hca_opcode_set of;
	bool any;
};

/* [pub] Frames of a queue that a rule has matched, and changed. */
struct impair_rule_count {
	uint64_t seen, hits;
};

#define IMPAIR_FRESH 4u /* flag in impair_lane.between: the worker has not taken this set of odds */

struct impair_lane {
	struct hca_port_rng rng; /* seeded for each frame */
	uint64_t seed;
	uint64_t settings; /* number of times that odds were set */
	uint64_t judged;   /* frames since the last setting, without spared ones */
	/*
	 * Triple buffer: one set is the worker's, one the writer's; either swaps its own for the
	 * third. So neither waits, and no set is read while it is written.
	 */
	struct impair_odds odds[3];
	uint32_t now_odds;  /* index of the worker's set */
	uint32_t next_odds; /* index of the writer's set */
	uint32_t between;   /* [pub] index of the third set, and IMPAIR_FRESH */
	uint16_t queue;
	struct impair_fate fate;	/* fate of the frame that is sent */
	const struct rte_mbuf *refused; /* frame whose fate waits for the next offer; or NULL */
	struct impair_rule_count rule[HCA_FAULT_RULES];
	struct hca_port_impair_stats stats;
	struct hca_fired_list fired;
	struct rte_mempool *pool;
	struct impair_heap heap;
	struct impair_held held[];
};

struct port_impair {
	struct hca_port_wrap wrap;
	hca_port_impair_watch_fn watch;
	void *watch_arg;
	unsigned int num_rules; /* [pub] */
	struct hca_fault_rule rule[HCA_FAULT_RULES];
	struct impair_lane *lane[]; /* wrap.port.queues */
};

static inline unsigned int
impair_rules(const struct port_impair *p)
{
	return __atomic_load_n(&p->num_rules, __ATOMIC_ACQUIRE);
}

static inline const struct impair_odds *
impair_odds(const struct impair_lane *l)
{
	return &l->odds[l->now_odds];
}

/*
 * Decides the fate of a frame, counts and lists its fault, and changes its contents. Called once
 * for each frame, even if it is refused and offered again.
 */
void impair_decide(struct port_impair *p, struct impair_lane *l, struct rte_mbuf *m, uint64_t now);
/* Was the frame's content changed? Then it should not go back to the sender as refused. */
bool impair_damages(const struct impair_fate *f);

#endif
