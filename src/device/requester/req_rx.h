/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_REQ_RX_H
#define REQUESTER_REQ_RX_H

/*
 * req_rx: handles responses, releases the window, completes requests. Private to
 * req_rx.c (packets, retries, messages), req_rx_complete.c (window walk, CQEs, errors),
 * req_rx_read.c (READ and ATOMIC responses) and req_rx_order.c (losses and their like).
 * HCA_REQ_RX_HOLD is also read by req_tx.
 *
 * A run is the work on one QP within one burst. It keeps the cursors in registers and publishes
 * once, in this order: una, CQEs, messages. Software that sees a completion may reuse the buffer
 * and the queue slot at once, so encap and the parser must not see the old una then; and req_tx may
 * refill a record as soon as una has passed it, so it is not read afterwards.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi_roce.h"
#include "engine/impl.h"
#include "engine/pkt.h"
#include "requester/send_cqe.h"

/* Bits of hca_qp.req_rx.flags. */
enum hca_req_rx_flag {
	HCA_REQ_RX_HOLD = 1u << 0, /* [pub] a wait, RNR or HCA_REQ_RX_LATE: req_tx sends nothing */
	HCA_REQ_RX_IMPLIED = 1u << 1, /* went back because of a missing response; once per loss */
	HCA_REQ_RX_BAD = 1u << 2, /* req_tx.bad is a record that fails when it becomes the oldest */
	HCA_REQ_RX_LOCAL = 1u << 3, /* the window may hold executed local operations */
	HCA_REQ_RX_DEAD = 1u << 4,  /* an error was completed: only errors follow */
	HCA_REQ_RX_PATH1 = 1u << 5, /* retries are those of path 1 */
	HCA_REQ_RX_LATE = 1u << 6,  /* the wait is for late foreign memory */
	HCA_REQ_RX_GAP =
		1u << 7, /* a response was missing: req_rx_order.c looks at the next ones */
};

/* req_tx reads the flags at any time. */
static inline void
hca_req_rx_set_flags(struct hca_qp_req_rx *q, uint8_t set)
{
	__atomic_store_n(&q->flags, q->flags | set, __ATOMIC_RELEASE);
}

static inline void
hca_req_rx_clear_flags(struct hca_qp_req_rx *q, uint8_t clear)
{
	__atomic_store_n(&q->flags, q->flags & ~clear, __ATOMIC_RELEASE);
}

/* Deadline of a QP without unacknowledged packets: the next expiry stops the timer. */
#define HCA_REQ_RX_IDLE UINT64_MAX

struct hca_req_rx_run {
	struct hca_pipe *h;
	struct hca_qp *qp;
	struct hca_cq_batch *batch;
	uint64_t now;
	uint32_t qpi;
	/*
	 * tail and upsn may be ahead of the published ones, old_*; progress was noted up to
	 * noted_*. The order keeps the compiler from copying tail and upsn by one load, which waits
	 * until all stores before it have left the store buffer.
	 */
	uint32_t tail, noted_tail, upsn, noted_upsn;
	uint32_t old_tail, old_upsn;
	uint32_t max_psn;
	uint32_t rd_done;
	uint32_t completed;
	uint32_t sends;	  /* number of SENDs among them */
	uint32_t packets; /* accepted in this run; payload of READ responses among them */
	uint64_t read_bytes;
	uint8_t msg;		   /* flags to send to req_tx */
	uint8_t again;		   /* with REWIND: enum hca_again */
	bool dead;		   /* QP is in ERR: the rest of the run is dropped */
	struct hca_cq_cursor cq;   /* fast path to the CQ, see release_plain() */
	struct hca_send_cqes cqes; /* filled in on the general path, not published yet */
};

_Static_assert(offsetof(struct hca_req_rx_run, upsn) != offsetof(struct hca_req_rx_run, tail) + 4 &&
		       offsetof(struct hca_req_rx_run, tail) !=
			       offsetof(struct hca_req_rx_run, upsn) + 4,
	       "tail and upsn are no neighbours");

/* PSNs from una to p, modulo 2^24; less than hca_req_rx_outstanding() if p is unacknowledged. */
static inline uint32_t
hca_req_rx_ahead(const struct hca_req_rx_run *run, uint32_t p)
{
	return (p - run->upsn) & HCA_PSN_MASK;
}

static inline uint32_t
hca_req_rx_outstanding(const struct hca_req_rx_run *run)
{
	return (run->max_psn - run->upsn) & HCA_PSN_MASK;
}

static inline struct hca_record *
hca_req_rx_record(const struct hca_req_rx_run *run, uint32_t cursor)
{
	const struct hca_qp_req_rx *q = &run->qp->req_rx;

	return hca_record(run->h, hca_window_ref(q->window, q->window_mask, cursor));
}

/* Opens the fast path to the CQ; false: its CQEs are written one by one. */
static inline bool
hca_req_rx_open_cq(struct hca_req_rx_run *run)
{
	if (HCA_SHORT_WAYS && run->cq.cq == NULL && run->cqes.n == 0)
		hca_cq_cursor_open(&run->h->core, run->qp->cfg.scqn, run->batch, HCA_STAGE_REQ_RX,
				   &run->cq);
	return run->cq.cq != NULL;
}

/* req_rx_complete.c */
void hca_req_rx_begin(struct hca_req_rx_run *run, struct hca_pipe *h, uint32_t qpi, uint64_t now,
		      struct hca_cq_batch *batch);
/* Publish and tell req_tx; the run may continue afterwards. */
void hca_req_rx_commit(struct hca_req_rx_run *run);
/*
 * Notes progress: resets the counters of retries and the timeout of outstanding packets. Called
 * before a retry is counted, so that a loss after progress counts as the first one.
 */
void hca_req_rx_note_progress(struct hca_req_rx_run *run);
/* The record at the tail is complete; move una after it. */
void hca_req_rx_complete_tail(struct hca_req_rx_run *run);
/*
 * Release n PSNs from una on. False: a READ or ATOMIC without response, or a record with an error,
 * prevents it and is now the tail.
 */
bool hca_req_rx_release(struct hca_req_rx_run *run, uint32_t n);
/*
 * Whether the packet at una takes a receive of the peer: the first one of a SEND, the last one of a
 * WRITE with immediate. Local operations before it, which have no packet, complete.
 */
bool hca_req_rx_takes_receive(struct hca_req_rx_run *run);
/* The record at the tail fails: QP to ERR, its CQE, and everything after it is flushed. */
void hca_req_rx_fail(struct hca_req_rx_run *run, uint8_t syndrome);
/* QP is in ERR or SQE: completes the records that req_tx has passed on. */
void hca_req_rx_flush(struct hca_req_rx_run *run);

/* req_rx_read.c */

/* Whether the packet may be all of the answer to a request. */
static inline bool
hca_req_rx_is_answer(const struct hca_rxd *d)
{
	return d->opcode == HCA_BTH_RC_READ_RESP_ONLY || d->opcode == HCA_BTH_RC_ATOMIC_ACK;
}

/*
 * Takes the packets at m[0 .. n - 1] that in this order answer the requests from the tail on, of
 * one packet each; returns their number. The next one has other checks.
 */
unsigned int hca_req_rx_answers(struct hca_req_rx_run *run, struct rte_mbuf *const *m,
				unsigned int n);
/* d: distance from una in PSNs, inside the window. */
void hca_req_rx_read_response(struct hca_req_rx_run *run, struct rte_mbuf *m, uint32_t d);
void hca_req_rx_atomic_response(struct hca_req_rx_run *run, struct rte_mbuf *m, uint32_t d);

/* req_rx.c */

/* Drop the packet and count the reason. */
void hca_req_rx_drop(struct hca_req_rx_run *run, enum hca_counter why);
/* Foreign memory of this side did not answer in time: go back to una later. */
void hca_req_rx_postpone(struct hca_req_rx_run *run);
/* A response before packet psn is missing: drop it; at most one rewind per loss. */
void hca_req_rx_out_of_order(struct hca_req_rx_run *run, uint32_t psn);

/* req_rx_single.c */

/* Runs of one packet within a burst; begins with zeros and the batch. */
struct hca_req_rx_singles {
	struct hca_cq_batch *batch;
	uint32_t packets, sends; /* not counted yet; each packet has completed a request */
	uint32_t cqn;		 /* of cq */
	struct hca_cq_cursor cq; /* open: no other code may write to this CQ */
};

/*
 * The only packet of its QP in the burst: if it is the ACK of the only one outstanding, it
 * completes its request. False: another packet; the QP is unchanged.
 */
bool hca_req_rx_single(struct hca_req_rx_singles *s, struct hca_pipe *h, struct rte_mbuf *m);
/* Publish the CQEs and count: before other runs, and at the end of the burst. */
void hca_req_rx_singles_end(struct hca_req_rx_singles *s, struct hca_pipe *h);

/* req_rx_order.c */

/* The table of gaps; freed with rte_free(). */
int hca_req_rx_order_init(struct hca_pipe *h);
/* Packet psn came although the one at una is missing. */
void hca_req_rx_order_early(struct hca_req_rx_run *run, uint32_t psn);
/* With HCA_REQ_RX_GAP: packet psn came, and was not used yet. */
void hca_req_rx_order_seen(struct hca_req_rx_run *run, uint32_t psn);
/* Packet psn answers a request that has its answer already, or no request. */
void hca_req_rx_order_again(struct hca_req_rx_run *run, uint32_t psn);

#endif
