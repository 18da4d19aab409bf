/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_CEU_TP_H
#define UB_CEU_TP_H

/*
 * Commands about UB's objects: TPs (cmd_tp.c; checks: tp_judge.c), groups (cmd_tpg.c),
 * token rows and well-known numbers (cmd_ub.c). They run only on a device with UB, so hca_core.ub
 * is not NULL. CEU only.
 */

#include <string.h>

#include "ceu/ceu.h"
#include "ub/ub.h"

/* The part of a TPC that is set. */
#define HCA_TP_IMAGE_BYTES offsetof(struct hca_tpc, una)

/* In front of a TP's block. */
struct hca_tp_work {
	uint8_t image[HCA_TP_IMAGE_BYTES]; /* as returned by QUERY_TP */
} __rte_cache_aligned;

static inline struct hca_tp_work *
hca_tp_work(const struct hca_tp *tp)
{
	return (struct hca_tp_work *)tp->cfg.block - 1;
}

/* A TPC, judged. */
struct hca_tp_plan {
	uint32_t mask;	      /* HCA_TP_ATTR_* that change */
	struct hca_tpc image; /* merged */
	/* of its path, if that changes */
	struct hca_udp_template tmpl;
	struct hca_udp_path path;
};

/* The index of a TP in hca_ub.tp. */
static inline uint32_t
hca_tp_index(const struct hca_core *h, const struct hca_tp *tp)
{
	return (uint32_t)(tp - h->ub->tp);
}

/* A live TP by its number, all 24 bits; NULL: no such TP. */
static inline struct hca_tp *
hca_tp_find(const struct hca_core *h, uint32_t tpn)
{
	struct hca_tp *tp = hca_ub_tp(h->ub, tpn);

	return tpn != 0 && tp->cfg.own_tpn == tpn ? tp : NULL;
}

/* tp_judge.c: enum hca_stat. tp NULL: a new TP, else the present one. */
int hca_tpc_judge(const struct hca_core *h, const struct hca_tpc *in, const struct hca_tp *tp,
		  struct hca_tp_plan *plan);

/* Code of the largest MTU that port and configuration allow. */
uint32_t hca_tp_mtu(const struct hca_core *h);

/* Groups. `group`: index + 1, 0: none. Checks that the TP, of that peer, may be in it. */
int hca_tpg_check(const struct hca_core *h, uint32_t group, uint32_t tpi, const uint8_t peer[16]);
/* The TP leaves its group, and joins this one. */
void hca_tpg_move(struct hca_core *h, uint32_t tpi, uint32_t group);

/* The row of a TC: from now on requests reach it; and: no request reaches it. */
void hca_tc_set(struct hca_tc *row, bool token, uint32_t value, uint32_t rnr_timer,
		enum hca_tc_bound bound);
void hca_tc_close(struct hca_tc *row);
/* That of a Jetty, by its context. */
static inline void
hca_tc_open(struct hca_tc *row, const struct hca_qpc *q)
{
	hca_tc_set(row, (hca_be32_to_cpu(q->flags) & HCA_QPC_TOKEN) != 0, hca_be32_to_cpu(q->qkey),
		   HCA_QPC_MIN_RNR_TIMER(hca_be32_to_cpu(q->rnr_nextrecvpsn)),
		   (hca_be32_to_cpu(q->flags) & HCA_QPC_ONE_PEER) != 0 ? HCA_TC_ALONE
								       : HCA_TC_ANYBODY);
}

/* ---- commands ---- */

int hca_cmd_sw2hw_tp(struct hca_core *h, struct hca_cmd *c);
int hca_cmd_modify_tp(struct hca_core *h, struct hca_cmd *c);
int hca_cmd_query_tp(struct hca_core *h, struct hca_cmd *c);
int hca_cmd_hw2sw_tp(struct hca_core *h, struct hca_cmd *c);
int hca_cmd_set_tpg(struct hca_core *h, struct hca_cmd *c);
int hca_cmd_permit_tpg(struct hca_core *h, struct hca_cmd *c);
int hca_cmd_set_token(struct hca_core *h, struct hca_cmd *c);
int hca_cmd_set_jetty_id(struct hca_core *h, struct hca_cmd *c);
int hca_cmd_bind_jetty(struct hca_core *h, struct hca_cmd *c);

/* ---- for row.c, which rounds, resets and other commands use ---- */

/* No stage has the TP any more: free its memory and numbers. */
void hca_tp_free(struct hca_core *h, uint32_t tpi);
/* The region is going: UB does not reach it from here on. The caller makes the round. */
void hca_token_drop(struct hca_core *h, uint32_t mpt);
/* The TC is going: no well-known number stands for it from here on. The caller makes the round. */
void hca_known_forget(struct hca_core *h, uint32_t tc);
/* The domain is going: none of its Jettys uses the group any more. The caller makes the round. */
void hca_tpg_forget(struct hca_core *h, uint32_t group, uint32_t domain);
/* The neighbour of this address has another MAC address. */
void hca_tp_follow(struct hca_core *h, uint32_t tpi, const uint8_t gid[16], uint16_t vlan,
		   const uint8_t mac[6]);
void hca_tp_control(struct hca_core *h, uint32_t tpi);

#endif
