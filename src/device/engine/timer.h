/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_TIMER_H
#define ENGINE_TIMER_H

/*
 * Timing wheel of the retry timers of all objects (object.h). At most one entry per object; its
 * stage (req_rx for QPs) updates actual deadlines lazily and rearms when an entry expires too
 * early, so an active connection uses the wheel once per timeout and an idle one never.
 *
 * Time is the `now` of poll(), ns. An entry expires at the first poll whose tick is not before its
 * deadline: never early, at most two ticks late. Deadlines beyond the wheel are inserted at its end
 * and moved on from there.
 */

#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>

#include "core/stage.h"
#include "engine/object.h"

struct hca_msg_channel;
struct hca_pipe;

#define HCA_TIMER_TICK_LOG 12u /* 4096 ns */
#define HCA_TIMER_SLOTS 4096u
#define HCA_TIMER_NONE UINT32_MAX

/* Per object: doubly linked list of its slot. */
struct hca_timer_entry {
	uint64_t deadline;   /* ns */
	uint32_t prev, next; /* object index, HCA_TIMER_NONE ends */
	uint32_t slot;	     /* HCA_TIMER_NONE: not in the wheel */
	uint32_t reserved;
};

/* The words of a kind of objects: their place in the first object, and bytes between objects. */
struct hca_timer_words {
	const uint8_t *armed;	 /* uint16_t: the timeout is running */
	const uint8_t *deadline; /* uint64_t, ns; read on ARM */
	size_t stride;
	uint8_t stage; /* that arms and gets expiries; of QPs the row of their wire names it */
};

struct hca_timer_ctx {
	uint64_t tick;		       /* first tick not handled */
	uint32_t count;		       /* entries in the wheel */
	struct hca_timer_entry *entry; /* one per object */
	struct hca_timer_words words[HCA_OBJECT_N];
	struct hca_msg_channel *in[HCA_STAGE_N]; /* to the timer */
	unsigned int n_in;
	uint64_t used[HCA_TIMER_SLOTS / 64]; /* bitmap of used slots */
	uint32_t slot[HCA_TIMER_SLOTS];	     /* first entry */
} __rte_cache_aligned;

/*
 * The words of the objects of a kind, whose timeouts are those of this stage; the stage calls it
 * once, in its init, after that of the timer.
 */
void hca_timer_watch(struct hca_pipe *h, enum hca_object_kind kind, enum hca_stage_id stage,
		     const uint16_t *armed, const uint64_t *deadline, size_t stride);

#endif
