/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_ORDER_H
#define ENGINE_ORDER_H

/*
 * Decides whether packets of a QP that are missing, or come twice, were lost, overtaken or doubled
 * by the network. EE uses it for requests, req_rx for READ responses; both drop packets that come
 * before a missing one, so the peer repeats all packets from the gap on. A packet does not show
 * whether it is a repetition; the packets before and after it do.
 *
 * A packet that was missing was overtaken if it comes before the peer was asked for it; if it comes
 * once more, alone, after its repetition; or if the next packet is newer than all those that came
 * before it, because a peer that repeats goes on with the next PSN. Otherwise it was lost. Lost
 * packets have no counter: they are those that were missing, less those that came late.
 *
 * The next gap behind a late packet is caused here: the packets that overtook it were dropped.
 *
 * Duplicates that the peer repeats come one behind the other, each with the next PSN. A single
 * duplicate was doubled by the network, unless the peer was asked for it.
 *
 * A stage has a table of these, by the low bits of the QP index, for QPs that have had gaps or
 * duplicates. Two QPs with the same entry overwrite each other's state, which leaves one gap
 * undecided. `count`: packets that the QP has received so far, including this one.
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
	uint32_t qpi, generation; /* QP of the state; generation 0: unused */
	struct hca_order_gap gap; /* the last one */
	struct hca_order_gap
		past[HCA_ORDER_PAST]; /* probably filled by a repetition; at 0: unused */
	uint32_t newest;	      /* highest PSN that came behind a gap */
	uint32_t depth;		      /* number of packets that overtook the last late packet */
	uint32_t twice;		      /* PSN of the last duplicate */
	uint8_t past_at;
	bool known;   /* there was a gap */
	bool own;     /* the gap is caused by packets that were dropped here */
	bool late;    /* the next gap will be one of that kind */
	bool filled;  /* req_rx: the missing packet came, the next one not yet */
	bool overdue; /* the duplicate is a packet of `past` */
	bool judged;  /* the duplicate is explained */
	bool run;     /* the duplicate belongs to a repetition of the peer */
};

/* The state of a QP; clears the entry if it belongs to another QP or generation. */
static inline struct hca_order *
hca_order_of(struct hca_order *table, const struct hca_qp *qp, uint32_t qpi)
{
	struct hca_order *o = &table[qpi & (HCA_ORDER_PLACES - 1)];

	if (o->qpi != qpi || o->generation != qp->cfg.generation + 1)
		*o = (struct hca_order){.qpi = qpi, .generation = qp->cfg.generation + 1};
	return o;
}

/* Does or will the peer repeat psn because of a gap? */
static inline bool
hca_order_repeats(const struct hca_order *o, uint32_t psn)
{
	return o->known && hca_psn_diff(o->newest, psn) >= 0;
}

/*
 * Packet psn came while `missing` is expected. begins: first packet behind this gap. True:
 * count `missing` as a missing packet.
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
/* Returns, once, that psn was missing and was probably repeated. */
bool hca_order_was_missing(struct hca_order *o, uint32_t psn, uint32_t count);

/* A duplicate came. judged: its cause is known; otherwise the next packet decides. */
void hca_order_duplicate(struct hca_order *o, uint32_t psn, bool judged);
/* The next packet after a duplicate. again: also a duplicate. True: the first one was single. */
bool hca_order_after_duplicate(struct hca_order *o, uint32_t psn, bool again);

#endif
