/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_UB_H
#define UB_UB_H

/*
 * UB's part of a device: its TPs and groups, the token rows of its memory keys, its well-known
 * numbers, and the pools of operations. hca_core.ub is NULL on a device without that wire, and then
 * none of this is allocated. The CEU makes and changes it; stages find it here.
 *
 * Words marked [pub] are read by other lcores: stored with release, loaded with acquire.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "abi_tp.h"
#include "ctxmgt/ctxmgt.h"
#include "ub/op.h"
#include "ub/tp.h"

/*
 * The token row of an MPT entry, at the same index. Writer: CEU. The values of a segment may be
 * rotated at any time without a round; it is taken away as the region is, with one.
 */
struct hca_token {
	uint32_t flags;	   /* [pub] HCA_TOKEN_*; 0: not exported, UB does not reach it */
	uint32_t value[2]; /* [pub] the second is valid with HCA_TOKEN_SECOND */
	uint32_t reserved;
};

_Static_assert(sizeof(struct hca_token) == 16, "four to a line");

/*
 * Token, timer and peer of a queue (TC) that requests address: of a Jetty at the index of its QP,
 * of a JFR at that of its SRQ. Writer: CEU.
 */
struct hca_tc {
	struct hca_token token; /* HCA_TOKEN_EXPORTED: it is a TC; of queues of verbs 0 */
	uint32_t rnr_timer;	/* [pub] of "not ready", 0..19 */
	uint32_t bound;		/* [pub] enum hca_tc_bound */
	uint32_t peer;		/* BOUND: its peer's number and address; changed only while not */
	uint8_t peer_eid[16];
	uint32_t reserved[5];
};

/* Peers of a Jetty. */
enum hca_tc_bound {
	HCA_TC_ANYBODY,
	HCA_TC_ALONE, /* with one peer, which is not known yet */
	HCA_TC_BOUND,
};

_Static_assert(sizeof(struct hca_tc) == 64, "one line");

/* A group of TPs to one peer, among which TAI chooses. Writer: CEU. */
struct hca_tpg {
	uint32_t count;		      /* [pub] 0: no group */
	uint32_t tp[HCA_TPG_MAX_TPS]; /* their indexes; stored before count */
	uint32_t generation;	      /* counts the lives of this index */
	/* [pub] DMA domains whose Jettys may use it, a bit each: their clients have imported the
	 * peer. None when the group is gone. */
	uint64_t user[HCA_DMA_DOMAINS / 64];
};

/* Operations of a lane's owner (TAI: requests, TAT: responses), which takes and returns them. */
struct hca_ta_op_pool {
	uint32_t *free; /* indexes of free ones, a stack */
	uint32_t free_n;
	uint32_t count;
} __rte_cache_aligned;

struct hca_core;

struct hca_ub {
	struct hca_tp
		*tp; /* tp_mask + 1 of them; HCA_TP_UNRELIABLE stands for packets without one */
	uint32_t tp_mask;
	struct hca_tpg *tpg; /* as many as TPs */
	struct hca_token *token;
	struct hca_tc *jetty;	    /* by index of the QP */
	struct hca_tc *jfr;	    /* by index of the SRQ */
	uint32_t *known;	    /* [pub] TC of each well-known number; HCA_TC_NONE: no TC */
	struct hca_ta_op_pools ops; /* all operations, by lane */
	struct hca_ta_op_pool pool[HCA_TP_LANES];
	uint64_t tp_bytes; /* [pub] CEU: memory of living TPs, without their lines in tp */
};

/*
 * For the composition of the graph: h->ub, of the sizes in h->cfg, NULL if UB is none of the
 * device's wires. 0 or -ENOMEM. The CEU has freed the TPs before it is destroyed.
 */
int hca_ub_create(struct hca_core *h);
void hca_ub_destroy(struct hca_core *h);

/* Place of a TPN; cfg.own_tpn of the TP there says whether it has this number. */
static inline struct hca_tp *
hca_ub_tp(const struct hca_ub *ub, uint32_t tpn)
{
	return &ub->tp[tpn & ub->tp_mask];
}

/* Whether Jettys of the domain may use the group; the driver's may use all. */
static inline bool
hca_tpg_is_user(const struct hca_tpg *g, uint32_t domain)
{
	return domain == 0 ||
	       (__atomic_load_n(&g->user[domain / 64], __ATOMIC_ACQUIRE) >> (domain % 64) & 1);
}

/* Whether the Jetty of the row has to do with this one; of a row that is BOUND. */
static inline bool
hca_tc_is_peer(const struct hca_tc *row, const uint8_t eid[16], uint32_t number)
{
	return row->peer == number && memcmp(row->peer_eid, eid, sizeof(row->peer_eid)) == 0;
}

/* Take an operation of the pool; UINT32_MAX: the pool is empty. Its owner only. */
static inline uint32_t
hca_ta_op_take(struct hca_ta_op_pool *p)
{
	return p->free_n != 0 ? p->free[--p->free_n] : UINT32_MAX;
}

static inline void
hca_ta_op_return(struct hca_ta_op_pool *p, uint32_t index)
{
	p->free[p->free_n++] = index;
}

#endif
