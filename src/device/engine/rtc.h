/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_RTC_H
#define ENGINE_RTC_H

/*
 * RTC: turns records of the window into packet descriptors. Private to requester_trans.c (who may
 * send, in which order), rtc_segment.c (what a packet looks like), rtc_complete.c (UC and UD
 * requests that are done) and rtc_local.c (BIND_MW and LOCAL_INV).
 *
 * A QP is either on the ready list or parked; parked ones wait for the message that lets them
 * continue and are looked at again only then:
 *	nothing to send: NEW		PSN window, fence, rd_atomic: RELEASE
 *	RNR wait: REWIND		bad record: never		SQD: STATE
 *	BIND_MW, LOCAL_INV waiting for their round: rtc_local.c
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#include "abi_roce.h"
#include "engine/impl.h"
#include "engine/pkt.h"

/* Bits of hca_qp.rtc.flags. */
enum hca_rtc_flag {
	HCA_RTC_READY = 1u << 0,   /* on the ready list */
	HCA_RTC_BAD = 1u << 1,	   /* rtc.bad is valid and has been reported */
	HCA_RTC_DRAINED = 1u << 2, /* SQ_DRAINED raised since the QP entered SQD */
	HCA_RTC_PACED = 1u << 4,   /* on the list of those whose time has not come */
	HCA_RTC_LOCAL = 1u << 3,   /* a local operation is under way */
};

#define HCA_RTC_NONE UINT32_MAX
/* Deficit round robin: a packet and a message each cost so much more than their bytes. */
#define HCA_RTC_OVERHEAD 512
#define HCA_RTC_FRAME_OVERHEAD 82  /* Ethernet to ICRC around the payload */
#define HCA_RTC_PACE_TURN 2000000u /* ps of a static rate sent at once */
#define HCA_RTC_PACE_SLACK 25000u  /* ns a late turn makes up for */
/* Bytes added per visit: 32 small messages, or 8 packets of 4 KiB. Any packet costs less. */
#define HCA_RTC_QUANTUM 40960
#define HCA_RTC_WQES_PER_VISIT 32u
/* Unacknowledged PSNs of a QP at most; equal values are told apart by the window cursors. */
#define HCA_RTC_PSN_WINDOW HCA_PSN_HALF

/* Record references on their way back to a pool. */
struct hca_rtc_returns {
	uint32_t n;
	uint32_t ref[64];
};

struct hca_rtc_ctx {
	/* ready list through rtc.list_next */
	uint32_t head, tail, count;
	uint32_t local; /* records of local operations under way */
	/* QPs with a static rate whose time has not come, also through rtc.list_next */
	uint32_t paced;
	uint64_t paced_next; /* the earliest, ns; UINT64_MAX: nobody waits */
	uint64_t now;	     /* of the current poll */
	/* the burst of the current poll */
	uint32_t room; /* descriptors encap still accepts */
	bool stuck;    /* room or mbufs ended it */
	uint32_t n_out, n_spare;
	uint32_t retransmitted;
	struct rte_mbuf *out[HCA_BURST];
	struct rte_mbuf *spare[HCA_BURST];
	struct hca_rtc_returns ret[2]; /* one line, full */
	/* UC and UD QPs that sent something in the current poll, and the CQs RTC completes to */
	uint32_t n_copied;
	uint32_t copied[HCA_BURST];
	struct hca_cq_batch batch;
} __rte_cache_aligned;

/* Cursors of one QP during one visit, between load() and store() of requester_trans.c. */
struct hca_rtc_visit {
	struct hca *h;
	struct hca_rtc_ctx *ctx;
	struct hca_qp *qp;
	struct hca_txd *last; /* last descriptor of this visit, unless a READ or ATOMIC */
	uint32_t qpi, generation;
	uint32_t next, pkt, head, tail; /* window cursors */
	uint32_t next_psn, max_psn, upsn;
	uint32_t desc_seq;
	uint32_t wqes;		  /* records begun in this visit */
	uint32_t ack_every, half; /* AckReq at least so often; half a window less one, a mask */
	int32_t deficit;
	uint16_t since_ackreq;
	uint8_t transport;
	bool unreliable;
	bool local; /* passed a local operation: RRC is told */
};

/* Why sending stopped. */
enum hca_rtc_stop {
	HCA_RTC_STOP_TURN,   /* deficit or WQEs used up: next in the round */
	HCA_RTC_STOP_CREDIT, /* no room, no mbuf: same QP at the next poll */
	HCA_RTC_STOP_PARK,   /* until a message comes */
	HCA_RTC_STOP_BAD,    /* record at `next` has a syndrome */
};

static inline struct hca_rtc_ctx *
hca_rtc_ctx(const struct hca *h)
{
	return h->stage_ctx[HCA_STAGE_RTC];
}

static inline uint32_t
hca_rtc_ref(const struct hca_rtc_visit *v, uint32_t cursor)
{
	return hca_window_ref(v->qp->rtc.window, v->qp->rtc.window_mask, cursor);
}

/* ---- requester_trans.c, for rtc_complete.c ---- */

/* What RRC, or for UC and UD RTC itself, has released and encap no longer reads. */
void hca_rtc_free_released(struct hca *h, struct hca_rtc_ctx *ctx, struct hca_qp *qp, uint32_t qpi);
/* The payload of req_failed_psn could not be read: its record is the bad request now. */
void hca_rtc_gather_failed(struct hca *h, struct hca_qp *qp, uint32_t qpi);

/* In SQD: una has moved, perhaps over the last that was begun. */
void hca_rtc_check_drained(struct hca *h, uint32_t qpi);

/* ---- rtc_complete.c ---- */

/*
 * UC and UD: completes, in order, what encap has copied; then the bad request, if its turn has
 * come, and what is flushed. Called whenever encap has told how far it is, or the state changed.
 */
void hca_rtc_complete(struct hca *h, struct hca_rtc_ctx *ctx, struct hca_qp *qp, uint32_t qpi);
/* requester_trans.c: to the ready list. */
void hca_rtc_wake(struct hca *h, uint32_t qpi);

/* rtc_local.c */

/*
 * The local operation at v->next, not executed yet. TURN: it is now; PARK: it waits for its round;
 * BAD: it failed.
 */
enum hca_rtc_stop hca_rtc_local(struct hca_rtc_visit *v, struct hca_record *r);
/* Ends those whose round has passed; returns how many were under way. */
unsigned int hca_rtc_local_poll(struct hca *h, struct hca_rtc_ctx *ctx);
/* The QP is flushed or reset: what it has under way is given up. */
void hca_rtc_local_abandon(struct hca *h, struct hca_rtc_ctx *ctx, uint32_t qpi);

/* rtc_segment.c: sends from v->next on until something stops it. */
enum hca_rtc_stop hca_rtc_send(struct hca_rtc_visit *v, uint32_t state);

#endif
