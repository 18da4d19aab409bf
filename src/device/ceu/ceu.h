/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CEU_CEU_H
#define CEU_CEU_H

/*
 * The HCR command processor: a state machine advanced by hca_ceu_poll(), which never waits.
 *
 * IDLE: go is set -> copy the HCR words, look up the opcode, copy the mailbox (only from the
 * driver's window), check, run. RUN: a command that needs rounds or much work returns HCA_CMD_AGAIN
 * and is called again at the next poll; it keeps a step count. EVENT: a command with E=1 waits for
 * room in its EQ. RESET: the reset register was written.
 *
 * Commands only use struct hca_cmd; contexts are changed on the CEU's lcore only. Included by ceu
 * sources and tests only.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_rcu_qsbr.h>

#include "abi_cmd.h"
#include "ceu/qp_change.h"
#include "core/core.h"
#include "ctxmgt/qp.h"
#include "engine/edge.h"
#include "engine/wire_ops.h"
#include "queues/cq.h"
#include "queues/eq.h"
#include "queues/qbuf.h"
#include "queues/srq.h"
#include "vtp/vtp.h"

/* The command is not finished: call it again at the next poll. Other results are enum hca_stat. */
#define HCA_CMD_AGAIN (-1)

/* All domains: no DMA domain has this number. */
#define HCA_DOMAIN_ALL UINT32_MAX

/* Taking objects of one kind out of the engine: one, all that live, or those of one domain. */
struct hca_teardown {
	uint32_t first, last; /* object indexes, see engine/object.h */
	uint32_t domain;      /* or HCA_DOMAIN_ALL */
	uint32_t cursor;
	uint32_t step;
	uint32_t purged;	/* stages that are asked to forget the present object: a bit each */
	struct hca_pipe *asked; /* its pipe, or that of the QP whose last ACK is waited for */
	uint64_t token;		/* RCU */
	uint32_t last_acks;	/* step of hca_last_acks_step() */
	uint64_t until; /* ns: last ACKs are not waited for any longer; 0: not asked for yet */
	/* objects ever enqueued on each edge of each pipe when the round of edges began */
	uint64_t mark[HCA_PIPES_MAX][HCA_EDGE_N];
};

struct hca_cmd {
	uint16_t op, token;
	uint8_t op_modifier;
	bool event;	   /* E */
	bool out_is_value; /* out_param is part of the result */
	uint32_t in_modifier;
	uint64_t in_param, out_param;
	uint32_t in_len, out_len; /* bytes of the mailboxes */
	uint32_t step;		  /* 0 when run() is called for the first time */
	uint32_t index;		  /* index of the object, set by check() */
	uint64_t rcu;
	union {
		struct hca_teardown teardown;
		struct hca_mpt_build mpt;
		struct hca_qp_change change;
	};
	_Alignas(64) uint8_t in[HCA_MBOX_SIZE];
	_Alignas(64) uint8_t out[HCA_MBOX_SIZE];
};

typedef int (*hca_cmd_fn)(struct hca_core *h, struct hca_cmd *c);

enum hca_ceu_state {
	HCA_CEU_IDLE,
	HCA_CEU_RUN,
	HCA_CEU_EVENT,
	HCA_CEU_RESET,
};

struct hca_cmd_row;

struct hca_ceu {
	enum hca_ceu_state state;
	uint8_t status; /* EVENT: status of the finished command */
	uint32_t ctrl;	/* HCR word 18h of the current command */
	uint64_t now;	/* of the current poll, ns */
	const struct hca_cmd_row *row;
	bool failing; /* QPs of an overrun CQ are being moved to ERR */
	uint32_t failing_cqi, failing_at;
	struct hca_cmd cmd;
};

/* Capabilities of every device: HCA_CAP_*. Those of a wire stand in its row. */
#define HCA_CEU_CAPS \
	((uint32_t)(HCA_CAP_GID | HCA_CAP_PKEY | HCA_CAP_NEIGH | HCA_CAP_QUERY_CQ | \
		    HCA_CAP_COUNTERS | HCA_CAP_MODIFY_CQ | HCA_CAP_SRQ | HCA_CAP_MCAST | \
		    HCA_CAP_IPV6 | HCA_CAP_VLAN | HCA_CAP_ATOMIC | HCA_CAP_MW | \
		    HCA_CAP_INVALIDATE | HCA_CAP_APM | HCA_CAP_CLOSE_DOMAIN | HCA_CAP_CQE_CLOCK | \
		    HCA_CAP_ATOMIC_WRITE | HCA_CAP_FLUSH | HCA_CAP_ECN))

static inline uint32_t
hca_ceu_caps(const struct hca_core *h)
{
	uint32_t caps = HCA_CEU_CAPS;

	HCA_WIRES_IN_USE(h, w)
	{
		if (h->cfg.wires & HCA_WIRE_BIT(w->wire))
			caps |= w->caps;
	}
	return caps;
}

/* ---- objects of wires beside QPs (round.c) ---- */

/* The first object index of them, and how many there are. */
uint32_t hca_ceu_others(const struct hca_core *h, uint32_t *first);
/* The functions of one of these and, in *i, its index among those of its kind; NULL: a QP. */
const struct hca_wire_object *hca_ceu_object(const struct hca_core *h, uint32_t obj, uint32_t *i);

/* A memory key ends; the caller makes the round. */
static inline void
hca_ceu_key_gone(struct hca_core *h, uint32_t mpt)
{
	HCA_WIRES_IN_USE(h, w)
	{
		if (w->key_gone != NULL)
			w->key_gone(h, mpt);
	}
}

/* The functions for SRQs that are JFRs; NULL: no wire of the device has such. */
static inline const struct hca_wire_jfr *
hca_ceu_jfr(const struct hca_core *h)
{
	HCA_WIRES_IN_USE(h, w)
	{
		if (w->jfr != NULL)
			return w->jfr;
	}
	return NULL;
}

/* ---- rounds (round.c) ---- */

/* A new RCU round; hca_round_done() is asked at each poll and counts it. */
static inline uint64_t
hca_round_start(struct hca_core *h)
{
	return rte_rcu_qsbr_start(h->rcu);
}

static inline bool
hca_round_done(struct hca_core *h, uint64_t token)
{
	if (rte_rcu_qsbr_check(h->rcu, token, false) != 1)
		return false;
	HCA_COUNT(h, CEU, rounds);
	return true;
}

/*
 * Objects looked at per poll, so that 16 K QPs do not delay the other stages. Looking at an entry
 * costs little; polls cost much if there are more lcores than CPUs.
 */
#define HCA_CEU_OBJECTS_PER_POLL 2048u

void hca_teardown_start(struct hca_teardown *t, uint32_t first, uint32_t last, uint32_t domain);
/* true: every object of the range is reset, its memory free. */
bool hca_teardown_step(struct hca_core *h, struct hca_teardown *t);

/* The first step of it (last_ack.c): the due ACKs of its QPs are sent, or their time is over. */
bool hca_last_acks_step(struct hca_core *h, struct hca_teardown *t);

/*
 * Destroy everything (QPs, CQs, EQs, MPTs, ICM) for CLOSE_HCA and the reset register, or the QPs,
 * SRQs, CQs and MPTs of a domain: first all states, then one purge and one round, then all is
 * freed.
 */
void hca_close_start(struct hca_core *h, struct hca_cmd *c, uint32_t domain);
bool hca_close_step(struct hca_core *h, struct hca_cmd *c);

/* ---- objects (qp_life.c, qp_modify.c, cmd_queue.c, cmd_srq.c) ---- */

/* No stage has the QP any more: free its memory and numbers. */
void hca_qp_free(struct hca_core *h, uint32_t qpi);
/* Live PSNs and counters into the image; out is a mailbox of HCA_QPC_SIZE. */
void hca_qp_image(struct hca_core *h, uint32_t qpi, uint32_t qpn, struct hca_qpc *out);
void hca_cq_free(struct hca_core *h, uint32_t cqi);
void hca_srq_free(struct hca_core *h, uint32_t srqi);

/*
 * ---- commands: of each row of HCA_CMD_LIST whether it may run before INIT_HCA, and how;
 * hca_cmd_of_wire: as the row of a wire says ----
 */

#define HCA_CMD_RUN_QUERY_DEV_LIM true, hca_cmd_query_dev_lim
#define HCA_CMD_RUN_QUERY_ADAPTER true, hca_cmd_query_adapter
#define HCA_CMD_RUN_INIT_HCA true, hca_cmd_init_hca
#define HCA_CMD_RUN_CLOSE_HCA false, hca_cmd_close_hca
#define HCA_CMD_RUN_MAP_ICM true, hca_cmd_map_icm
#define HCA_CMD_RUN_UNMAP_ICM true, hca_cmd_unmap_icm
#define HCA_CMD_RUN_SW2HW_MPT false, hca_cmd_sw2hw_mpt
#define HCA_CMD_RUN_HW2SW_MPT false, hca_cmd_hw2sw_mpt
#define HCA_CMD_RUN_WRITE_MTT false, hca_cmd_write_mtt
#define HCA_CMD_RUN_MAP_EQ false, hca_cmd_map_eq
#define HCA_CMD_RUN_SW2HW_EQ false, hca_cmd_sw2hw_eq
#define HCA_CMD_RUN_HW2SW_EQ false, hca_cmd_hw2sw_eq
#define HCA_CMD_RUN_SW2HW_CQ false, hca_cmd_sw2hw_cq
#define HCA_CMD_RUN_HW2SW_CQ false, hca_cmd_hw2sw_cq
#define HCA_CMD_RUN_RESIZE_CQ false, hca_cmd_resize_cq
#define HCA_CMD_RUN_RST2INIT_QPEE false, hca_cmd_modify_qp
#define HCA_CMD_RUN_INIT2RTR_QPEE false, hca_cmd_modify_qp
#define HCA_CMD_RUN_RTR2RTS_QPEE false, hca_cmd_modify_qp
#define HCA_CMD_RUN_RTS2RTS_QPEE false, hca_cmd_modify_qp
#define HCA_CMD_RUN_SQERR2RTS_QPEE false, hca_cmd_modify_qp
#define HCA_CMD_RUN_2ERR_QPEE false, hca_cmd_qp_to_err
#define HCA_CMD_RUN_RTS2SQD_QPEE false, hca_cmd_modify_qp
#define HCA_CMD_RUN_SQD2SQD_QPEE false, hca_cmd_modify_qp
#define HCA_CMD_RUN_SQD2RTS_QPEE false, hca_cmd_modify_qp
#define HCA_CMD_RUN_ERR2RST_QPEE false, hca_cmd_qp_to_rst
#define HCA_CMD_RUN_INIT2INIT_QPEE false, hca_cmd_modify_qp
#define HCA_CMD_RUN_QUERY_QP false, hca_cmd_query_qp
#define HCA_CMD_RUN_CONF_SPECIAL_QP false, hca_cmd_conf_special_qp
#define HCA_CMD_RUN_MAD_IFC true, hca_cmd_mad_ifc
#define HCA_CMD_RUN_NOP true, hca_cmd_nop
#define HCA_CMD_RUN_SW2HW_SRQ false, hca_cmd_sw2hw_srq
#define HCA_CMD_RUN_HW2SW_SRQ false, hca_cmd_hw2sw_srq
#define HCA_CMD_RUN_QUERY_SRQ false, hca_cmd_query_srq
#define HCA_CMD_RUN_ARM_SRQ false, hca_cmd_arm_srq
#define HCA_CMD_RUN_SET_GID true, hca_cmd_set_gid
#define HCA_CMD_RUN_SET_PKEY true, hca_cmd_set_pkey
#define HCA_CMD_RUN_SET_NEIGH true, hca_cmd_set_neigh
#define HCA_CMD_RUN_MCAST_ATTACH false, hca_cmd_mcast_attach
#define HCA_CMD_RUN_MCAST_DETACH false, hca_cmd_mcast_detach
#define HCA_CMD_RUN_MODIFY_CQ false, hca_cmd_modify_cq
#define HCA_CMD_RUN_QUERY_CQ false, hca_cmd_query_cq
#define HCA_CMD_RUN_QUERY_COUNTERS true, hca_cmd_query_counters
#define HCA_CMD_RUN_CLOSE_DOMAIN false, hca_cmd_close_domain
#define HCA_CMD_RUN_QUERY_CLOCK true, hca_cmd_query_clock
#define HCA_CMD_RUN_SET_CONGESTION true, hca_cmd_set_congestion
#define HCA_CMD_RUN_SW2HW_TP false, hca_cmd_of_wire
#define HCA_CMD_RUN_MODIFY_TP false, hca_cmd_of_wire
#define HCA_CMD_RUN_QUERY_TP false, hca_cmd_of_wire
#define HCA_CMD_RUN_HW2SW_TP false, hca_cmd_of_wire
#define HCA_CMD_RUN_SET_TPG false, hca_cmd_of_wire
#define HCA_CMD_RUN_SET_TOKEN false, hca_cmd_of_wire
#define HCA_CMD_RUN_SET_JETTY_ID false, hca_cmd_of_wire
#define HCA_CMD_RUN_BIND_JETTY false, hca_cmd_of_wire
#define HCA_CMD_RUN_PERMIT_TPG false, hca_cmd_of_wire
#define HCA_CMD_RUN_RST2RTS_QPEE false, hca_cmd_modify_qp

#define HCA_CMD_DECLARE(anytime, run) int run(struct hca_core *h, struct hca_cmd *c);
#define HCA_CMD_DECLARE_OF(...) HCA_CMD_DECLARE(__VA_ARGS__)
#define X(name, ...) HCA_CMD_DECLARE_OF(HCA_CMD_RUN_##name)
HCA_CMD_LIST(X)
#undef X

#endif
