/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_CORE_H
#define CORE_CORE_H

/*
 * struct hca_core is shared by the rooms of the device: its configuration, the tables of contexts,
 * the worker of each stage, and the counters. struct hca_pipe (engine/impl.h) begins with one and
 * adds the members that only stages use; register memory, key-QPC store, address translation,
 * queues and the CEU's commands work on the core alone. Members are grouped by writer.
 *
 * Each pipe has a core of its own. Configuration, masks and pointers to tables are the same in all,
 * so a stage reads them in its own pipe; stage lines and wake words belong to the pipe.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include "abi_ctx.h"
#include "core/counters.h"
#include "core/stage.h"
#include "hca.h"

struct hca_cc;	      /* cc/cc.h */
struct hca_ceu;	      /* ceu/ceu.h */
struct hca_cq;	      /* queues/cq.h */
struct hca_ctxmgt;    /* ctxmgt/ctxmgt.h */
struct hca_eqs;	      /* queues/eq_impl.h */
struct hca_mpt_entry; /* vtp/vtp.h */
struct hca_pipe;      /* engine/impl.h */
struct hca_qp;	      /* ctxmgt/qp.h */
struct hca_srq;	      /* queues/srq.h */
struct hca_ub;	      /* ub/ub.h */
struct hca_wire_ops;  /* engine/wire_ops.h */
struct rte_rcu_qsbr;

/* Memory keys and their translation: vtp/vtp.h. */
struct hca_vtp {
	struct hca_mpt_entry *mpt;
	uint64_t *mtt; /* bus addresses = CPU addresses, host order */
	/*
	 * [pub] DMA domain of each entry of mpt: the owner of its memory, which may take it away.
	 * Written by the CEU while the entry is not live; no access to memory that is mapped here
	 * reads it.
	 */
	uint16_t *domain;
	uint32_t mpt_mask; /* entries - 1 */
	uint32_t mtt_count;
	uint16_t *mtt_ref; /* CEU: live MPTs over each MTT entry */
	uint32_t *regions; /* CEU: per DMA domain, also read by hca_vtp_uncovered() */
};

/* Per-stage cache lines written by that stage only. */
struct hca_stage_line {
	uint64_t counters[HCA_CTR_N];
	/* while times are taken, see hca_stage_times_enable(); never set back */
	uint64_t busy_cycles, polls, busy_polls;
	uint32_t purge_ack; /* [pub] last purge_seq obeyed */
	uint32_t leave_ack; /* [pub] EE: last leave_seq obeyed */
} __rte_cache_aligned;

/* Of one worker, which alone uses it */
struct hca_wake {
	uint64_t workers; /* given something since its last poll ended: a bit each */
	bool events;  /* were told at the end of a poll: a thread that waits for them was woken */
	uint64_t now; /* [pub] when its poll began */
} __rte_cache_aligned;

/* HCA_CC_PARAMETER_LIST: a value that the CEU may change at any time; h: core or pipe. */
#define HCA_PARAMETER(h, name) __atomic_load_n(&(h)->cfg.name, __ATOMIC_RELAXED)

struct hca_core {
	/* read-mostly, set by hca_create() */
	struct hca *hca;       /* the device */
	struct hca_config cfg; /* HCA_CC_PARAMETER_LIST: [pub] CEU, by HCA_PARAMETER() */
	struct hca_qp *qp;     /* 1 << log_qps */
	uint32_t qp_mask;      /* [pub] CEU: at INIT_HCA, while no QP lives; also srq_mask */
	uint32_t cq_mask;
	uint32_t srq_mask;
	struct hca_cq *cq;
	struct hca_srq *srq; /* 1 << log_srqs */
	struct hca_vtp vtp;
	struct hca_port *port;
	uint8_t *bar0, *bar2;
	struct rte_rcu_qsbr *rcu; /* one thread id per worker */
	struct hca_ceu *ceu;
	struct hca_ctxmgt *ctxmgt;
	struct hca_eqs *eqs;
	struct hca_cc *cc_room; /* congestion control: algorithms and objects */
	struct hca_cc *cc;	/* [pub] CEU: the same; NULL: no object has an algorithm */
	/* rows of the device's wires, by enum hca_wire; NULL: the device does not have the wire */
	const struct hca_wire_ops *wire[HCA_WIRE_ROWS];
	uint8_t service_wire[HCA_ST_COUNT]; /* by service: enum hca_wire of its QPs */
	struct hca_ub *ub;		    /* NULL: the device does not have that wire */
	struct hca_wake *wake;		    /* by worker of the device */
	uint8_t stage_worker[HCA_STAGE_N];  /* workers of the device; the CEU's is in its pipe */
	unsigned int num_workers;	    /* of this pipe */
	bool single_worker;		    /* the device has one */
	bool mixed;			    /* has other wires than RoCE */
	uint8_t pipe_number, pipe_mask;	    /* pipe_mask: pipes of the device - 1 */

	/* CEU, and encap */
	uint64_t qp_own_bytes __rte_cache_aligned; /* [pub] of the blocks of living QPs, see
						    * struct hca_qp_work */
	uint64_t qp_job_bytes;			   /* [pub] of their rings of responder jobs */
	uint32_t link_down;			   /* [pub] encap: the port's last report */
	bool discarding; /* [pub] encap: the port took nothing for cfg.port_stall_ns */

	struct hca_stage_line line[HCA_STAGE_N];
};

/* The core of a device's first pipe: a device begins with a pointer to it. */
static inline struct hca_core *
hca_core(const struct hca *h)
{
	return *(struct hca_core *const *)(const void *)h;
}

/* The core that a pipe begins with, and back. */
static inline struct hca_core *
hca_pipe_core(const struct hca_pipe *p)
{
	return (struct hca_core *)(uintptr_t)p;
}

static inline struct hca_pipe *
hca_pipe_of(struct hca_core *c)
{
	return (struct hca_pipe *)c;
}

/* Place of a number; the object there says whether it has this number. */
static inline uint32_t
hca_qp_index(const struct hca_core *h, uint32_t qpn)
{
	return qpn & __atomic_load_n(&h->qp_mask, __ATOMIC_RELAXED);
}

/* One writer; readers of the sum may read at any time. */
static inline void
hca_count(struct hca_stage_line *line, enum hca_counter c, uint64_t n)
{
	uint64_t *word = &line->counters[c];

	__atomic_store_n(word, *word + n, __ATOMIC_RELAXED);
}

/* h is a device or its core; of a stage and a counter named by constants, or by variables. */
#define HCA_COUNT_N(h, STAGE, name, n) hca_count(&(h)->line[HCA_STAGE_##STAGE], HCA_CTR_##name, n)
#define HCA_COUNT(h, STAGE, name) HCA_COUNT_N(h, STAGE, name, 1)
#define HCA_COUNT_AT(h, stage, counter) hca_count(&(h)->line[stage], counter, 1)

/*
 * Stage `from` has left work for stage `to`, outside edges and messages: its worker may sleep.
 */
static inline void
hca_wake_stage(struct hca_core *h, enum hca_stage_id from, enum hca_stage_id to)
{
	if (h->stage_worker[from] != h->stage_worker[to])
		h->wake[h->stage_worker[from]].workers |= UINT64_C(1) << h->stage_worker[to];
}

#endif
