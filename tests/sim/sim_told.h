/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_SIM_TOLD_H
#define TESTS_SIM_SIM_TOLD_H

/*
 * Made-up algorithms of congestion control that note what each object was asked and told. The times
 * they are told must be what the clock of the simulation shows: sim_told_clock().
 */

#include "cc/cc.h"
#include "engine/impl.h"
#include "sim.h"

#define TOLD_MTU 1024u
#define TOLD_FRAME (TOLD_MTU + HCA_CC_FRAME_OVERHEAD)
#define TOLD_GAP_NS 30000u
#define TOLD_FOREVER_NS 10000000000ull
#define TOLD_TURNS 256u

/* What one object was asked and told; the lcores of one simulation are one thread. */
struct sim_told {
	uint32_t begun;
	uint32_t asked, refused, frames, most; /* most: frames not acknowledged at a time */
	uint32_t psns, not_frames; /* sent, as may_send knows; how often that was not frames */
	uint64_t bytes, next_at;
	uint32_t turns;		      /* in which frames were sent */
	uint64_t sent_at[TOLD_TURNS]; /* of each turn */
	uint32_t acked, timed, cnps, lost[HCA_CC_LOSSES];
	uint64_t shortest;   /* round trip, ns */
	uint64_t lost_after; /* the last loss: ns after the last frame */
	uint64_t cnp_at;     /* the last CNP */
};

extern const struct hca_cc_ops sim_told_window; /* one PSN unanswered at a time */
extern const struct hca_cc_ops
	sim_told_hesitant;		       /* likewise; it wants to be asked again very late */
extern const struct hca_cc_ops sim_told_rate;  /* a frame each TOLD_GAP_NS */
extern const struct hca_cc_ops sim_told_never; /* nothing, for TOLD_FOREVER_NS */
extern const struct hca_cc_ops sim_told_open;  /* anything; its frames may be marked */

/* Before the HCAs exist. */
void sim_told_clock(struct sim *s);

#endif
