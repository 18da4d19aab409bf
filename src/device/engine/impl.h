/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_IMPL_H
#define ENGINE_IMPL_H

/*
 * struct hca: everything of one device hangs here; included by device sources only. Members are
 * grouped by who writes them. Stage-private state lives in each stage's own struct behind
 * stage_ctx[], allocated cache aligned in its init.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_rcu_qsbr.h>

#include "core/counters.h"
#include "ctxmgt/qp.h"
#include "engine/edge.h"
#include "engine/loopback.h"
#include "engine/msg.h"
#include "engine/record.h"
#include "engine/stage.h"
#include "hca.h"
#include "port/port.h"
#include "queues/cq.h"
#include "queues/srq.h"
#include "vtp/vtp.h"
#include "wire/icrc.h"

struct hca_ceu;	   /* ceu/ceu.h */
struct hca_ctxmgt; /* ctxmgt/ctxmgt.h */
struct hca_eqs;	   /* queues/eq.c */
struct hca_sleep;  /* graph/sleep.h */

/* Per-stage cache lines written by that stage only. */
struct hca_stage_line {
	uint64_t counters[HCA_CTR_N];
	/* while times are taken, see hca_stage_times_enable(); never set back */
	uint64_t busy_cycles, polls, busy_polls;
	uint32_t purge_ack; /* [pub] last purge_seq obeyed */
} __rte_cache_aligned;

/*
 * How long frames wait for the port; writer: encap, reader: RRC. `since`, stored last: when the
 * oldest frame that waits came, 0: none waits. left_at, waited: the last frames that had waited
 * long left then, after so long.
 */
struct hca_tx_wait {
	uint64_t since, left_at, waited; /* [pub] ns */
};

/* A frame passes an edge of twice the backlog's length, at the same pace, before it comes there. */
#define HCA_TX_WAIT_FACTOR 4u

/* Workers that one worker has given something to since its last poll ended: a bit each. */
struct hca_wake {
	uint32_t workers;
	bool events; /* were told at the end of a poll: a thread that waits for them was woken */
} __rte_cache_aligned;

struct hca {
	/* read-mostly, set by hca_create() */
	struct hca_config cfg;
	struct hca_qp *qp;				  /* 1 << log_qps */
	struct hca_object_range object[HCA_OBJECT_N + 1]; /* by kind, the last one: all */
	uint32_t qp_mask; /* [pub] CEU: at INIT_HCA, while no QP lives; also srq_mask */
	uint32_t cq_mask;
	uint32_t srq_mask;
	struct hca_cq *cq;
	struct hca_srq *srq; /* 1 << log_srqs */
	struct hca_vtp vtp;
	struct hca_port *port;
	const struct hca_icrc_ops *icrc;
	uint8_t *bar0, *bar2;
	void *stage_ctx[HCA_STAGE_N];
	uint8_t stage_worker[HCA_STAGE_N];
	unsigned int num_workers;
	struct hca_edge edge[HCA_EDGE_N];
	struct hca_msg_channel *msg[HCA_STAGE_N][HCA_STAGE_N]; /* [from][to], NULL: none */
	struct hca_msg_inbox inbox[HCA_STAGE_N];
	struct hca_record_pool rec, rec_full;
	struct rte_mempool *tx_pool, *resp_pool;
	struct rte_rcu_qsbr *rcu; /* one thread id per worker */
	struct hca_ceu *ceu;
	struct hca_ctxmgt *ctxmgt;
	struct hca_eqs *eqs;
	struct hca_sleep *sleep;
	bool times_on;	    /* [pub] */
	bool single_worker; /* all stages on one worker */
	uint8_t cur_worker; /* unused by stages */

	/* CEU */
	uint32_t purge_seq __rte_cache_aligned; /* [pub] */
	uint32_t backlog;			/* [pub] encap: frames waiting for the port */
	uint32_t link_down;			/* [pub] encap: what the port said last */
	bool discarding;	    /* [pub] encap: the port took nothing for cfg.port_stall_ns */
	struct hca_tx_wait tx_wait; /* [pub] encap */
	uint64_t qp_own_bytes;	    /* [pub] of the blocks of living QPs, see struct hca_qp_work */
	uint64_t qp_job_bytes;	    /* [pub] of their rings of responder jobs */

	struct hca_wake wake[HCA_STAGE_N]; /* by worker */
	struct hca_loopback loop;
	struct hca_stage_line line[HCA_STAGE_N];
	/* what the lines counted when times were enabled: who enables them */
	struct hca_stage_times {
		uint64_t busy_cycles, polls, busy_polls;
	} times_from[HCA_STAGE_N];
};

/* Where a number would be found; what stands there says whether it is. */
static inline uint32_t
hca_qp_index(const struct hca *h, uint32_t qpn)
{
	return qpn & __atomic_load_n(&h->qp_mask, __ATOMIC_RELAXED);
}

/* obj: an object index there is. */
static inline enum hca_object_kind
hca_object_kind(const struct hca *h, uint32_t obj)
{
	enum hca_object_kind k = 0;

	while (obj - h->object[k].first >= h->object[k].count)
		k++;
	return k;
}

/* One writer; whoever asks for the sum reads at any time. */
static inline void
hca_count_n(struct hca *h, enum hca_stage_id s, enum hca_counter c, uint64_t n)
{
	uint64_t *word = &h->line[s].counters[c];

	__atomic_store_n(word, *word + n, __ATOMIC_RELAXED);
}

static inline void
hca_count(struct hca *h, enum hca_stage_id s, enum hca_counter c)
{
	hca_count_n(h, s, c, 1);
}

#define HCA_COUNT(h, STAGE, name) hca_count((h), HCA_STAGE_##STAGE, HCA_CTR_##name)
#define HCA_COUNT_N(h, STAGE, name, n) hca_count_n((h), HCA_STAGE_##STAGE, HCA_CTR_##name, (n))

/* By a stage that is named by a variable. */
#define HCA_COUNT_OF(h, stage, name) hca_count((h), (stage), HCA_CTR_##name)

/*
 * Send flags about object obj over the channel FROM -> TO, which must be in HCA_MSG_LIST for
 * objects of that kind.
 */
static inline void
hca_msg_send(struct hca *h, enum hca_stage_id from, enum hca_stage_id to, uint32_t obj,
	     uint8_t flags)
{
	hca_msg_post(h->msg[from][to], obj, flags);
}

/* Is a walk over the channels of this stage worth while? */
static inline bool
hca_msg_due(const struct hca *h, enum hca_stage_id to)
{
	return (h->inbox[to].waiting | h->inbox[to].remote) != 0;
}

/*
 * Stage `from` has left something for stage `to`, beside edges and messages: its worker may sleep.
 */
static inline void
hca_wake_stage(struct hca *h, enum hca_stage_id from, enum hca_stage_id to)
{
	if (h->stage_worker[from] != h->stage_worker[to])
		h->wake[h->stage_worker[from]].workers |= 1u << h->stage_worker[to];
}

/* Deliver at most budget messages about QPs of channel from -> to; returns how many. */
typedef void (*hca_msg_fn)(struct hca *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags,
			   uint64_t now);

static inline unsigned int
hca_msg_drain(struct hca *h, enum hca_stage_id from, enum hca_stage_id to, hca_msg_fn fn,
	      uint64_t now, unsigned int budget)
{
	struct hca_msg_channel *c = h->msg[from][to];
	unsigned int n = 0;
	uint32_t qpi;
	uint8_t flags;

	while (n < budget && (flags = hca_msg_take(c, &qpi)) != 0) {
		fn(h, &h->qp[qpi], qpi, flags, now);
		n++;
	}
	return n;
}

/*
 * QP to ERR from a stage: CAS along the legal transitions; on success tells every other stage with
 * STATE (the caller handles its own part). false: already ERR or RST.
 */
bool hca_qp_to_error(struct hca *h, enum hca_stage_id from, uint32_t qpi);

/*
 * Send queue error of a UC or UD QP: RTS or SQD to SQE, everybody told. It goes on receiving; what
 * is announced flushes. false: it was in another state.
 */
bool hca_qp_to_sq_error(struct hca *h, enum hca_stage_id from, uint32_t qpi);

/* A stage has forgotten the object of the current purge (after a PURGE message). */
static inline void
hca_purge_ack(struct hca *h, enum hca_stage_id s)
{
	__atomic_store_n(&h->line[s].purge_ack, __atomic_load_n(&h->purge_seq, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
}

/* Record by reference. */
static inline struct hca_record *
hca_record(struct hca *h, uint32_t ref)
{
	if (ref & HCA_RECREF_FULL)
		return (struct hca_record *)((uint8_t *)h->rec_full.mem +
					     (size_t)(ref & ~HCA_RECREF_FULL) *
						     sizeof(struct hca_record_full));
	return (struct hca_record *)((uint8_t *)h->rec.mem +
				     (size_t)ref * sizeof(struct hca_record));
}

#endif
