/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_REQ_TX_H
#define REQUESTER_REQ_TX_H

/*
 * req_tx: turns records of the window into packet descriptors. Private to req_tx.c (which QP
 * may send, in which order), req_tx_segment.c (packets of a record), req_tx_complete.c (UC and UD
 * requests that are done) and req_tx_local.c (BIND_MW and LOCAL_INV).
 *
 * A QP is either on the ready list or parked; a parked QP is visited again only after the message
 * that lets it continue:
 *  nothing to send: NEW             PSN window, fence, rd_atomic: RELEASE
 *  RNR wait: REWIND                 bad record: never               SQD: STATE
 *  congestion control: RELEASE, REWIND, or its time
 *  BIND_MW, LOCAL_INV waiting for their round: req_tx_local.c
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "abi_roce.h"
#include "cc/pace.h"
#include "engine/impl.h"
#include "engine/pkt.h"
#include "engine/qp_list.h"

/* Bits of hca_qp.req_tx.flags. */
enum hca_req_tx_flag {
	HCA_REQ_TX_READY = 1u << 0,   /* on the ready list */
	HCA_REQ_TX_BAD = 1u << 1,     /* req_tx.bad is valid and has been reported */
	HCA_REQ_TX_DRAINED = 1u << 2, /* SQ_DRAINED raised since the QP entered SQD */
	HCA_REQ_TX_PACED = 1u << 4,   /* in ctx->pace: waits for its time */
	HCA_REQ_TX_HELD = 1u << 5,  /* congestion control makes it wait: an ACK or a loss ends it */
	HCA_REQ_TX_LOCAL = 1u << 3, /* a local operation is in progress */
};

/* Deficit round robin: cost of a packet and of a message in addition to their bytes. */
#define HCA_REQ_TX_OVERHEAD 512
#define HCA_REQ_TX_FRAME_OVERHEAD 82  /* Ethernet to ICRC around the payload */
#define HCA_REQ_TX_PACE_TURN 2000000u /* limit of frames sent at once, in ps of the static rate */
#define HCA_REQ_TX_PACE_SLACK 25000u  /* delay that a late turn may catch up, ns */
/* Bytes added per visit: 32 small messages, or 8 packets of 4 KiB. Every packet costs less. */
#define HCA_REQ_TX_QUANTUM 40960
#define HCA_REQ_TX_WQES_PER_VISIT 32u
/* Limit of unacknowledged PSNs of a QP; the window cursors tell equal values apart. */
#define HCA_REQ_TX_PSN_WINDOW HCA_PSN_HALF

/* Record references being returned to a pool. */
struct hca_req_tx_returns {
	uint32_t n;
	uint32_t ref[64];
};

struct hca_req_tx_ctx {
	struct hca_qp_list ready; /* count QPs, linked by req_tx.list_next */
	uint32_t count;
	uint32_t local;	      /* records of local operations in progress */
	struct hca_pace pace; /* QPs that a static rate or congestion control delays */
	uint64_t now;	      /* of the current poll */
	/* the burst of the current poll */
	uint32_t room; /* descriptors that encap still accepts */
	bool stuck;    /* it ended for lack of room or mbufs */
	uint32_t n_out, n_spare;
	uint32_t retransmitted;
	struct rte_mbuf *out[HCA_BURST];
	struct rte_mbuf *spare[HCA_BURST];
	struct hca_req_tx_returns ret[2]; /* one line, full */
	/* UC and UD QPs that sent in the current poll, and the CQs that req_tx completes to */
	uint32_t n_copied;
	uint32_t copied[HCA_BURST];
	struct hca_cq_batch batch;
} __rte_cache_aligned;

/* Cursors of one QP during one visit, between load() and store() of req_tx.c. */
struct hca_req_tx_visit {
	struct hca_pipe *h;
	struct hca_req_tx_ctx *ctx;
	struct hca_qp *qp;
	struct hca_txd *last; /* last descriptor of this visit, unless a READ or ATOMIC */
	uint32_t qpi, generation;
	uint32_t next, pkt, head, tail; /* window cursors */
	uint32_t next_psn, max_psn, upsn;
	uint32_t desc_seq;
	uint32_t wqes;		     /* records begun in this visit */
	const struct hca_cc_ops *cc; /* congestion control of this turn; NULL: none */
	uint32_t leave;		     /* bytes congestion control allows; UINT32_MAX: not in use */
	uint32_t turn_psn;	     /* next_psn when the turn began; where there is one */
	uint64_t again;		     /* when it may be asked again, ns; where there is one */
	uint32_t ack_every, half; /* largest distance of AckReqs; half a window minus one, a mask */
	int32_t deficit;
	uint16_t since_ackreq;
	uint8_t transport;
	bool unreliable;
	bool local; /* a local operation was passed: tell req_rx */
};

/* Why sending stopped. */
enum hca_req_tx_stop {
	HCA_REQ_TX_GO,		   /* it did not stop */
	HCA_REQ_TX_STOP_TURN,	   /* deficit or WQEs are used up: next in the round */
	HCA_REQ_TX_STOP_CREDIT,	   /* no room or no mbuf: the same QP at the next poll */
	HCA_REQ_TX_STOP_PARK,	   /* wait for a message */
	HCA_REQ_TX_STOP_CONGESTED, /* until congestion control allows the next frame */
	HCA_REQ_TX_STOP_BAD,	   /* record at `next` has a syndrome */
};

static inline struct hca_req_tx_ctx *
hca_req_tx_ctx(const struct hca_pipe *h)
{
	return h->stage_ctx[HCA_STAGE_REQ_TX];
}

static inline uint32_t
hca_req_tx_ref(const struct hca_req_tx_visit *v, uint32_t cursor)
{
	return hca_window_ref(v->qp->req_tx.window, v->qp->req_tx.window_mask, cursor);
}

/* ---- req_tx.c, for req_tx_complete.c ---- */

/* Free records that req_rx (for UC and UD req_tx itself) has released and encap no longer reads. */
void hca_req_tx_free_released(struct hca_pipe *h, struct hca_req_tx_ctx *ctx, struct hca_qp *qp,
			      uint32_t qpi);
/* The payload of req_failed_psn could not be read: its record is now the bad request. */
void hca_req_tx_gather_failed(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi);

/* In SQD: una has moved, possibly past the last request that had begun. */
void hca_req_tx_check_drained(struct hca_pipe *h, uint32_t qpi);

/* ---- req_tx_complete.c ---- */

/*
 * UC and UD: complete, in order, requests that encap has copied; then the bad request, if it is the
 * oldest, and flushed ones. Called whenever encap reports progress, or the state changes.
 */
void hca_req_tx_complete(struct hca_pipe *h, struct hca_req_tx_ctx *ctx, struct hca_qp *qp,
			 uint32_t qpi);
/* req_tx.c: put the QP on the ready list. */
void hca_req_tx_wake(struct hca_pipe *h, uint32_t qpi);

/* req_tx_local.c */

/*
 * Handle the local operation at v->next, which is not executed yet. GO: it is now; PARK: it waits
 * for its round; BAD: it failed.
 */
enum hca_req_tx_stop hca_req_tx_local(struct hca_req_tx_visit *v, struct hca_record *r);
/* Finish those whose round is over; returns how many were in progress. */
unsigned int hca_req_tx_local_poll(struct hca_pipe *h, struct hca_req_tx_ctx *ctx);
/* The QP is flushed or reset: abandon its operations in progress. */
void hca_req_tx_local_abandon(struct hca_pipe *h, struct hca_req_tx_ctx *ctx, uint32_t qpi);

/* req_tx_segment.c: send from v->next on until something stops it. */
enum hca_req_tx_stop hca_req_tx_send(struct hca_req_tx_visit *v, uint32_t state);

/*
 * req_tx_single.c: the turn of a QP with one new message of one packet; the caller takes the QP off
 * the ready list. False: another turn; the QP is unchanged.
 */
bool hca_req_tx_single(struct hca_pipe *h, struct hca_req_tx_ctx *ctx, uint32_t qpi);

#endif
