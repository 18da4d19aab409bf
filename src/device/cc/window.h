/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CC_WINDOW_H
#define CC_WINDOW_H

/*
 * The limit of unanswered PSNs with which a flow begins: few, because many flows may begin at once
 * towards one port, and no notification comes before the first frames have been answered. It grows
 * by half of the acknowledged PSNs while round trips are short, and a notification or a loss halves
 * it. Responses of READs count as PSNs, so a requester also limits its peers.
 */

#include <stdint.h>

#include <rte_common.h>

#define HCA_CC_WINDOW_MIN 4u
#define HCA_CC_WINDOW_MAX 4096u
#define HCA_CC_QUEUE_NS 8000u /* above the shortest round trip: frames wait in the network */

struct hca_cc_window {
	/* the stage that receives acknowledgements */
	uint32_t psns;	       /* [pub] */
	uint64_t min_rtt, rtt; /* ns; 0: none yet */
	uint64_t cut_at;       /* ns */
};

static inline void
hca_cc_window_begin(struct hca_cc_window *w)
{
	*w = (struct hca_cc_window){.psns = HCA_CC_WINDOW_MIN};
}

static inline uint32_t
hca_cc_window_of(const struct hca_cc_window *w)
{
	return __atomic_load_n(&w->psns, __ATOMIC_RELAXED);
}

static inline void
hca_cc_window_timed(struct hca_cc_window *w, uint64_t ns)
{
	w->rtt = ns;
	w->min_rtt = w->min_rtt == 0 ? ns : RTE_MIN(w->min_rtt, ns);
}

/* Not within a round trip after a cut, whose effect is not seen before. */
static inline void
hca_cc_window_acked(struct hca_cc_window *w, uint32_t psns, uint64_t now)
{
	if (w->rtt == 0 || w->rtt > w->min_rtt + HCA_CC_QUEUE_NS || now - w->cut_at < w->rtt)
		return;
	__atomic_store_n(&w->psns, RTE_MIN(w->psns + (psns + 1) / 2, HCA_CC_WINDOW_MAX),
			 __ATOMIC_RELAXED);
}

static inline void
hca_cc_window_cut(struct hca_cc_window *w, uint64_t now)
{
	if (w->cut_at != 0 && now - w->cut_at < w->rtt)
		return;
	w->cut_at = now;
	__atomic_store_n(&w->psns, RTE_MAX(w->psns / 2, HCA_CC_WINDOW_MIN), __ATOMIC_RELAXED);
}

#endif
