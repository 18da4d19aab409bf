/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_ORDER_H
#define ENGINE_ORDER_H

/*
 * Whether packets of a QP that are missing, or come twice, were lost, overtaken or doubled by the
 * network. EE asks about requests, req_rx about READ responses; both drop what comes too early, so
 * the peer repeats everything from the gap on. A packet carries no mark that says whether it is a
 * repetition; what comes before and after it does.
 *
 * A packet that was missing was overtaken if it comes before the peer was asked for it; if it comes
 * once more, alone, after its repetition; or if the next packet is newer than all those that came
 * before it, because a peer that repeats goes on with the next PSN. Otherwise it was lost, which
 * nothing shows: lost are those that were missing, less those that came late.
 *
 * The next gap behind a late packet is of our own making: what overtook it was dropped here.
 *
 * Duplicates that the peer repeats come one behind the other, each with the next PSN. One that
 * stands alone was doubled by the network, unless the peer was asked for it.
 *
 * A stage has a table of these, by QP index, for QPs that have had trouble. QPs that meet in a
 * place lose each other's state, which costs them the verdict of one gap. `count`: packets that the
 * QP has received so far, this one included.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_ctx.h"
#include "ctxmgt/qp.h"

#define HCA_ORDER_PLACES 256u /* a power of two */
#define HCA_ORDER_PAST 8u     /* a power of two */

/* A packet that was missing. */
struct hca_order_gap {
	uint32_t psn;
	uint32_t at; /* count when it was found missing */
};

struct hca_order {
	uint32_t qpi, generation; /* the QP's; generation 0: unused */
	struct hca_order_gap gap; /* the last one */
	struct hca_order_gap
		past[HCA_ORDER_PAST]; /* filled by a repetition, as it seems; at 0: none */
	uint32_t newest;	      /* highest PSN that came behind a gap */
	uint32_t depth; /* of the packet that was found late: how many have overtaken it */
	uint32_t twice; /* PSN of the last duplicate */
	uint8_t past_at;
	bool known;   /* there was a gap */
	bool own;     /* the gap is of our own making */
	bool late;    /* so will the next one be */
	bool filled;  /* req_rx: the missing packet came, the next one not yet */
	bool overdue; /* the duplicate is a packet of `past` */
	bool judged;  /* the duplicate is explained */
	bool run;     /* it belongs to a repetition of the peer */
};

/* The state of a QP; of another QP or generation nothing remains. */
static inline struct hca_order *
hca_order_of(struct hca_order *table, const struct hca_qp *qp, uint32_t qpi)
{
	struct hca_order *o = &table[qpi & (HCA_ORDER_PLACES - 1)];

	if (o->qpi != qpi || o->generation != qp->cfg.generation + 1)
		*o = (struct hca_order){.qpi = qpi, .generation = qp->cfg.generation + 1};
	return o;
}

/* The peer has repeated psn, or will, because of a gap. */
static inline bool
hca_order_repeats(const struct hca_order *o, uint32_t psn)
{
	return o->known && hca_psn_diff(o->newest, psn) >= 0;
}

/*
 * Packet psn came although `missing` is expected. begins: it is the first one that did. True: a
 * packet more is missing.
 */
bool hca_order_ahead(struct hca_order *o, uint32_t missing, uint32_t psn, bool begins,
		     uint32_t count);
/*
 * The missing packet came. asked: the peer may have repeated it. True: it was overtaken. False:
 * with *open, hca_order_next() must be called for the next packet.
 */
bool hca_order_filled(struct hca_order *o, bool asked, uint32_t count, bool *open);
/* The next packet, psn. True: the one before it was overtaken. */
bool hca_order_next(struct hca_order *o, uint32_t psn);
/* Was psn missing, and seems to have been repeated? True once. */
bool hca_order_was_missing(struct hca_order *o, uint32_t psn, uint32_t count);

/* A duplicate came. judged: it is known why; otherwise the next packet says so. */
void hca_order_duplicate(struct hca_order *o, uint32_t psn, bool judged);
/* The next packet after a duplicate. again: so is this one. True: that stood alone. */
bool hca_order_after_duplicate(struct hca_order *o, uint32_t psn, bool again);

#endif
