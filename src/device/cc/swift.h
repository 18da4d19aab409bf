/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CC_SWIFT_H
#define CC_SWIFT_H

/*
 * Swift (Kumar and others, "Swift: Delay is Simple and Effective for Congestion Control in the
 * Datacenter", SIGCOMM 2020, section 3): a window of packets by round trips. Below a target delay
 * it grows by AI packets in a round trip; above it shrinks in proportion to the excess, at most
 * once in a round trip. Below one packet the flow is paced. Names are those of the paper.
 *
 * The target is a base of the configuration and a part that grows while the rate of a flow is small
 * (flow scaling). The number of hops is not known, nor the time that the peer took. A base that is
 * learned as the shortest round trip would contain the queue that others keep when the flow begins,
 * and this flow would push the others away. So only a path whose shortest round trip is longer than
 * this queue (HCA_SWIFT_IS_LONG) has another base: that time and the part of the base for queues.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#define HCA_SWIFT_ONE 1024u /* a packet, or a factor of 1 */
/* Round trips until the shortest one counts: the first ones wait behind all flows that begin. */
#define HCA_SWIFT_LEARN 16u
/* READs of up to BURST_MAX responses are paced while the window has 1 to READS of them. */
#define HCA_SWIFT_BURST_MAX 64u
#define HCA_SWIFT_PAUSE_MAX_NS UINT64_C(100000000)
#define HCA_SWIFT_READS 8u

/*
 * Windows between which flow scaling falls from its range to 0, and 1 / sqrt of them, rounded down.
 * (1 / HCA_SWIFT_ONE)
 */
#define HCA_SWIFT_FS_MIN (HCA_SWIFT_ONE / 10)
#define HCA_SWIFT_FS_MAX (100 * HCA_SWIFT_ONE)
#define HCA_SWIFT_FS_FROM 3246u
#define HCA_SWIFT_FS_TO 102u

struct hca_swift_params {
	uint32_t base_ns;	/* target of a flow with a large share */
	uint32_t fs_range_ns;	/* flow scaling, at HCA_SWIFT_FS_MIN or less */
	uint32_t ai;		/* 1 / HCA_SWIFT_ONE */
	uint32_t beta, max_mdf; /* 1 / HCA_SWIFT_ONE */
	uint32_t min, max;	/* of the window, 1 / HCA_SWIFT_ONE */
};

/* Those of the paper, but AI, which is 1 there. */
#define HCA_SWIFT_DEFAULTS(ns) \
	.base_ns = (ns), .fs_range_ns = 4 * (ns), .ai = HCA_SWIFT_ONE / 2, \
	.beta = HCA_SWIFT_ONE * 4 / 5, .max_mdf = HCA_SWIFT_ONE / 2, .min = HCA_SWIFT_ONE / 100, \
	.max = 4096 * HCA_SWIFT_ONE

#define HCA_SWIFT_IS_LONG(p, min_rtt) ((min_rtt) > (p)->base_ns + (p)->base_ns / 2)
/* The part of the base for queues; the rest is the round trip of a short path. */
#define HCA_SWIFT_QUEUE(p) ((p)->base_ns - (p)->base_ns / 5)

struct hca_swift {
	/* the sending stage */
	uint64_t next_at; /* of the next packets, where the window alone is not enough, ns */
	uint32_t burst;	  /* [pub] PSNs of a frame, of a READ its responses; 0 at first */
	uint32_t random;
	uint32_t unanswered; /* when it was asked last, PSNs */
	bool limited;	     /* [pub] half of the window was in use, otherwise it does not grow */
	/* the stage that receives acknowledgements */
	uint32_t window __rte_cache_aligned; /* [pub] 1 / HCA_SWIFT_ONE */
	uint32_t rest;			     /* of increases, 1 / HCA_SWIFT_ONE^2 */
	uint64_t rtt;			     /* [pub] of the last sample, ns; 0: none */
	uint64_t min_rtt, decreased_at;	     /* ns */
	uint32_t target;		     /* [pub] ns */
	uint32_t samples;
	bool met; /* the target: before that the window doubles in a round trip */
} __rte_cache_aligned;

void hca_swift_begin(struct hca_swift *s);
/* The target delay, ns. rtt: the last one; min_rtt 0: it does not count. */
uint32_t hca_swift_target(const struct hca_swift_params *p, uint32_t window, uint64_t rtt,
			  uint64_t min_rtt);
/*
 * As hca_cc_ops. packets: of the full size, 1 / HCA_SWIFT_ONE, responses of READs as if they had
 * left; burst: PSNs of a frame.
 */
uint32_t hca_swift_may_send(struct hca_swift *s, uint32_t unanswered, uint64_t now,
			    uint64_t *again);
void hca_swift_sent(struct hca_swift *s, uint64_t packets, uint32_t burst, uint64_t now);
void hca_swift_timed(struct hca_swift *s, const struct hca_swift_params *p, uint64_t ns,
		     uint64_t now);
void hca_swift_acked(struct hca_swift *s, const struct hca_swift_params *p, uint32_t psns);
void hca_swift_lost(struct hca_swift *s, const struct hca_swift_params *p, uint64_t now);

#endif
