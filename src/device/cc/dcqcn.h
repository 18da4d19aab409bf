/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CC_DCQCN_H
#define CC_DCQCN_H

/*
 * DCQCN, the reaction point (Zhu and others, "Congestion Control for Large-Scale RDMA Deployments",
 * SIGCOMM 2015, section 5). A CNP cuts the rate of a flow by alpha / 2; a timer and a byte counter
 * raise it again: half the way to the target, F times, then the target grows by AI, then by HAI.
 * Names are those of the paper. A flow without CNPs has no limit, nor one that is back at the rate
 * of the link.
 *
 * Nothing here runs by a timer: the state is brought up to date when the flow is asked.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

/* Rates: kb/s. */
struct hca_dcqcn_params {
	uint32_t line; /* of the link, at which a flow begins */
	uint32_t min, ai, hai;
	uint32_t f;	      /* events of fast recovery */
	uint32_t g_log;	      /* g = 2^-g_log */
	uint32_t alpha_ns;    /* without a CNP for so long alpha decreases: K */
	uint32_t timer_ns;    /* of the rate timer: T */
	uint32_t byte_period; /* of the byte counter: B */
	bool clamp;	      /* each CNP sets the target, also one that follows a CNP at once */
};

#define HCA_DCQCN_ONE (1u << 20) /* alpha = 1 */

/*
 * Defaults of the paper and of hardware (F is 1 in hardware), but two that make flows equal within
 * some milliseconds whatever the rate of the link: the increases are parts of it, and g is twice as
 * large, so that alpha of a flow which few CNPs have met grows before it has most of the link.
 */
#define HCA_DCQCN_DEFAULTS(kbps) \
	.line = (kbps), .min = 10000, .ai = (kbps) / 150, .hai = (kbps) / 75, .f = 1, .g_log = 7, \
	.alpha_ns = 55000, .timer_ns = 55000, .byte_period = 10 << 20

struct hca_dcqcn {
	/* the sending stage */
	uint64_t next_at;    /* the frames sent so far take the link until then, ns */
	uint64_t alpha_at;   /* alpha decreases, ns */
	uint64_t timer_at;   /* the rate timer expires, ns */
	uint32_t fraction;   /* of next_at */
	uint32_t byte_count; /* since the byte counter expired */
	uint32_t rate;	     /* [pub] RC; 0: no limit */
	uint32_t target;     /* RT */
	uint32_t alpha;	     /* [pub] */
	uint32_t byte_time;
	uint32_t cnps_seen;
	uint16_t timers, byte_counters; /* that expired since the last CNP */
	bool raised;			/* since the last CNP */
	/* the stage that receives CNPs */
	uint32_t cnps __rte_cache_aligned; /* [pub] */
} __rte_cache_aligned;

void hca_dcqcn_begin(struct hca_dcqcn *s);
/* A CNP came: the sending stage takes it when it asks next. */
void hca_dcqcn_notified(struct hca_dcqcn *s);
/* As hca_cc_ops.may_send and sent. */
uint32_t hca_dcqcn_may_send(struct hca_dcqcn *s, const struct hca_dcqcn_params *p, uint64_t now,
			    uint64_t *again);
void hca_dcqcn_sent(struct hca_dcqcn *s, const struct hca_dcqcn_params *p, uint64_t bytes,
		    uint64_t now);

#endif
