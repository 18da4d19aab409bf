/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_IMPL_H
#define ENGINE_IMPL_H

/*
 * struct hca_pipe: one pipeline. It has every stage, their contexts, the edges and messages between
 * them, pools of records and mbufs, backlog, loopback, counters and wake words, and a queue pair of
 * the port. Stage functions take it. It begins with a core (core/core.h), on which the rooms above
 * the engine work. Members are grouped by their writer. Stage-private state lives in each stage's
 * own struct behind stage_ctx[], allocated cache aligned in its init.
 *
 * struct hca: the device, which has one or more pipes. hca.h is its interface; graph composes it,
 * and executors poll it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_rcu_qsbr.h>

#include "abi_bar.h"
#include "core/core.h"
#include "ctxmgt/qp.h"
#include "engine/edge.h"
#include "engine/loopback.h"
#include "engine/msg.h"
#include "engine/record.h"
#include "engine/short_ways.h"
#include "engine/stage.h"
#include "engine/state.h"
#include "port/port.h"
#include "queues/cq.h"
#include "queues/srq.h"
#include "vtp/vtp.h"
#include "wire/icrc.h"

struct hca_rtt;
struct hca_rtt_peer;
struct hca_sleep; /* graph/sleep.h */

/*
 * Waits of frames for the port; writer: encap, reader: req_rx. `since`, stored last: arrival of the
 * oldest waiting frame, 0: no frame waits. left_at, waited: time at which the last frames with a
 * long wait were sent, and the length of that wait.
 */
struct hca_tx_wait {
	uint64_t since, left_at, waited; /* [pub] ns */
};

/* Before it waits, a frame passes an edge twice as long as the backlog at the same rate. */
#define HCA_TX_WAIT_FACTOR 4u

struct hca_pipe {
	union {
		struct hca_core core;
		struct hca_core; /* so that the stages name its members as their own */
	};

	/* read-mostly, set by hca_create() */
	struct hca_object_range object[HCA_OBJECT_N + 1]; /* by kind, the last one: all */
	const struct hca_icrc_ops *icrc;
	uint16_t port_queue; /* of the port: the one that decap and encap use */
	void *stage_ctx[HCA_STAGE_N];
	struct hca_edge edge[HCA_EDGE_N];
	struct hca_msg_channel *msg[HCA_STAGE_N][HCA_STAGE_N]; /* [from][to], NULL: none */
	struct hca_msg_inbox inbox[HCA_STAGE_N];
	struct hca_record_pools records[HCA_WIRE_ROWS]; /* zeros: the wire has no records */
	struct rte_mempool *tx_pool, *resp_pool;
	struct hca_rtt *rtt;		/* round trips, by the low bits of the QP index */
	struct hca_rtt_peer *rtt_peers; /* by the hash of their GIDs */
	uint32_t rtt_mask;

	/* CEU */
	uint32_t purge_seq __rte_cache_aligned; /* [pub] */
	uint32_t leave_seq;			/* [pub] */
	uint32_t backlog;			/* [pub] encap: frames waiting for the port */
	struct hca_tx_wait tx_wait;		/* [pub] encap */

	struct hca_loopback loop;
	struct hca_handover handover; /* decap -> decap of the other pipes */
	/* values of the lines when times were enabled; written by the enabling thread */
	struct hca_stage_times {
		uint64_t busy_cycles, polls, busy_polls;
	} times_from[HCA_STAGE_N];
};

/*
 * Workers are numbered through all pipes: those of pipe 0 first. The CEU is in pipe 0 alone. Its
 * messages to a stage go over the channels of the pipe that owns the object.
 */
struct hca {
	struct hca_core *core; /* of pipe 0 */
	unsigned int n_pipes;  /* a power of two */
	unsigned int num_workers;
	bool times_on;				/* [pub] */
	struct hca_sleep *sleep;		/* graph/sleep.c: of the workers of all pipes */
	uint64_t undivided[HCA_UAR_PAGES / 64]; /* doorbell pages; [pub] */
	struct hca_pipe *of_worker[HCA_WORKERS_MAX];
	struct hca_wake wake[HCA_WORKERS_MAX];
	struct hca_pipe pipe[];
};

_Static_assert(offsetof(struct hca_pipe, core) == 0 && offsetof(struct hca, core) == 0,
	       "hca_core(), hca_pipe_of()");

/* The pipe of a QP or Jetty, for its life. */
static inline struct hca_pipe *
hca_pipe_of_qp(const struct hca_core *h, uint32_t qpi)
{
	return &h->hca->pipe[qpi & h->pipe_mask];
}

/* The pipe of an object: others than QPs are in pipe 0. */
static inline struct hca_pipe *
hca_pipe_of_object(const struct hca_core *h, uint32_t obj)
{
	const struct hca_pipe *first = &h->hca->pipe[0];

	return hca_pipe_of_qp(h, obj < first->object[HCA_OBJECT_QP].count ? obj : 0);
}

/* obj: a valid object index. */
static inline enum hca_object_kind
hca_object_kind(const struct hca_pipe *h, uint32_t obj)
{
	enum hca_object_kind k = 0;

	while (obj - h->object[k].first >= h->object[k].count)
		k++;
	return k;
}

/*
 * Send flags about object obj over the channel FROM -> TO, which must be in HCA_MSG_LIST for
 * objects of that kind.
 */
static inline void
hca_msg_send(struct hca_pipe *h, enum hca_stage_id from, enum hca_stage_id to, uint32_t obj,
	     uint8_t flags)
{
	hca_msg_post(h->msg[from][to], obj, flags);
}

/* Whether the channels of this stage may have messages. */
static inline bool
hca_msg_due(const struct hca_pipe *h, enum hca_stage_id to)
{
	return (h->inbox[to].waiting | h->inbox[to].remote) != 0;
}

/* Delivers at most budget messages about QPs of channel from -> to; returns their number. */
typedef void (*hca_msg_fn)(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint8_t flags,
			   uint64_t now);

static inline unsigned int
hca_msg_drain(struct hca_pipe *h, enum hca_stage_id from, enum hca_stage_id to, hca_msg_fn fn,
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

/* A stage no longer refers to the object of the current purge (after a PURGE message). */
static inline void
hca_purge_ack(struct hca_pipe *h, enum hca_stage_id s)
{
	__atomic_store_n(&h->line[s].purge_ack, __atomic_load_n(&h->purge_seq, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
}

/* EE has sent the ACK that was due on the QP that is leaving (after a LEAVES message). */
static inline void
hca_leave_ack(struct hca_pipe *h)
{
	__atomic_store_n(&h->line[HCA_STAGE_EE].leave_ack,
			 __atomic_load_n(&h->leave_seq, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
}

/* Stage `from` has left work for stage `to` of a pipe, outside edges and messages. */
static inline void
hca_wake_pipe(struct hca_pipe *h, enum hca_stage_id from, unsigned int pipe, enum hca_stage_id to)
{
	uint8_t worker = h->hca->pipe[pipe].stage_worker[to];

	if (h->stage_worker[from] != worker)
		h->wake[h->stage_worker[from]].workers |= UINT64_C(1) << worker;
}

/* Record of a QP by reference. */
static inline struct hca_record *
hca_record(struct hca_pipe *h, uint32_t ref)
{
	const struct hca_record_pools *pools = &h->records[HCA_WIRE_ROCE];

	if (ref & HCA_RECREF_FULL)
		return (struct hca_record *)((uint8_t *)pools->full.mem +
					     (size_t)(ref & ~HCA_RECREF_FULL) *
						     sizeof(struct hca_record_full));
	return (struct hca_record *)((uint8_t *)pools->small.mem +
				     (size_t)ref * sizeof(struct hca_record));
}

#endif
