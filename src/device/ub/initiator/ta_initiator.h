/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_INITIATOR_TA_INITIATOR_H
#define UB_INITIATOR_TA_INITIATOR_H

/*
 * TAI, the transaction initiator: requests of Jettys. Private to
 *	ta_initiator.c		the stage: messages, which Jetty is served
 *	ta_initiator_send.c	requests become segments: order, choice of the TP
 *	ta_initiator_op.h	a segment becomes an operation
 *	ta_initiator_segment.c	segments end: answered, failed, given up; operations come back
 *	ta_initiator_wait.c	"not ready", requests without an answer, TPs that died
 *	ta_initiator_places.c	requests that were given up
 *	ta_initiator_recv.c	responses
 *	ta_initiator_complete.c	requests are completed, in the order of the window; states
 *
 * A Jetty is on the ready list, on one list of those that wait for room, or on none until something
 * that concerns it happens: NEW (there was nothing to send), an answer (order, all numbers in use),
 * its timer ("not ready"), STATE.
 *
 * A segment has a number (TASSN) and a place in a ring until it is answered and its operation has
 * come back from its lane, so TAI finds all operations of a Jetty there. If a segment is given up
 * before the peer has answered, the TP keeps count that it is open at the peer
 * (hca_tp.tai.abandoned): a peer that answers never sees more requests than agreed. A peer that
 * does not answer loses its claim to that after one to two lives of the TP (ta_initiator_places.c).
 */

#include <stdbool.h>
#include <stdint.h>

#include "ub/record.h"
#include "requester/record_pool.h"
#include "ub/worker_stall.h"
#include "ub/tp/pkt.h"
#include "ub/ub_stage.h"

/* Bits of hca_qp.tai.flags. */
enum hca_tai_flag {
	HCA_TAI_READY = 1u << 0,
	HCA_TAI_WAITS = 1u << 1,     /* on the list tai.waits */
	HCA_TAI_GRANTED = 1u << 2,   /* woken from that list: room it leaves is another one's */
	HCA_TAI_SUSPENDED = 1u << 3, /* SUSPEND_DONE was written since it entered SQD */
	HCA_TAI_PARSED = 1u << 4,    /* ERR: the parser has nothing left */
	HCA_TAI_FLUSHED = 1u << 5,   /* FLUSH_DONE was written since it entered ERR */
};

enum hca_tai_segment_state {
	HCA_TAI_SEGMENT_DONE, /* no answer is wanted */
	HCA_TAI_SEGMENT_OPEN, /* it is in a lane, or sent */
	/* the same; a part of its Read_response could not be stored now: again when it is there */
	HCA_TAI_SEGMENT_LATE,
	HCA_TAI_SEGMENT_WAIT,  /* until hca_jetty_segment.number */
	HCA_TAI_SEGMENT_AGAIN, /* the wait is over */
};

/* Bits of hca_jetty_segment.counted. */
enum hca_tai_counted {
	HCA_TAI_COUNTED_ORDERED = 1u << 0, /* open_ordered */
	HCA_TAI_COUNTED_READ = 1u << 1,	   /* open_reads: it does not end with a TAACK */
	HCA_TAI_COUNTED_SEND = 1u << 2,	   /* open_sends */
	/* its place is among hca_tp.tai.abandoned or expired, although it is waited for */
	HCA_TAI_COUNTED_OVERDUE = 1u << 3,
};

#define HCA_TAI_SEGMENT 65536u	       /* bytes: most multiples of every MTU */
#define HCA_TAI_SEGMENTS_PER_VISIT 32u /* and records that fail at once */
/* Deficit round robin: cost of a segment in addition to its payload, bytes added per visit. */
#define HCA_TAI_OVERHEAD 512
#define HCA_TAI_QUANTUM ((int32_t)HCA_TAI_SEGMENT + HCA_TAI_OVERHEAD)
#define HCA_TAI_ALONE (INT32_MAX / 2)
/*
 * The share of a member of a group, at the same cost, before the next one is chosen: one segment of
 * full length, or as many shorter ones.
 */
#define HCA_TAI_RUN (4 * HCA_TAI_SEGMENT)
/* Wait of a request that a TPACK calls "failed, may be repeated", which has no timer. */
#define HCA_TAI_AGAIN_NS HCA_UB_RNR_NS(10)
#define HCA_TAI_LATE_NS 2000000u /* until late foreign memory is stored to again */
/* Until a request is overdue that the peer has said nothing about, ns: as if it were given up */
#define HCA_TAI_OVERDUE_NS HCA_ACK_TIMEOUT_NS(17)
#define HCA_TAI_NO_OP UINT32_MAX
#define HCA_TAI_NONE UINT32_MAX

struct hca_tai_list {
	uint32_t head, tail; /* QP indexes, linked by tai.list_next and list_prev */
	/* waiting: the last of those in front that were woken in vain since the list was served */
	uint32_t front;
	uint32_t granted; /* woken from it and not served yet */
};

/* Per group: the member that has its turn, and the cost of the requests that it has taken in it. */
struct hca_tai_turn {
	uint32_t member; /* may be the number of members: the first one */
	uint32_t spent;
};

struct hca_tai_ctx {
	struct hca_tai_list ready;
	uint32_t ready_n;
	uint32_t waiting_n; /* Jettys on the lists `wait` */
	uint32_t segment;   /* bytes of a segment of a Write or Read */
	uint32_t run;	    /* HCA_TAI_RUN; tests set others */
	uint64_t now;	    /* of the current poll */
	struct hca_ub_stall stall;
	/* those that wait for room, by hca_tai_wait_*() */
	struct hca_tai_list *wait;
	struct hca_tai_turn *turn; /* by TPG */
	/* after a TP died: QPs still to be looked at for its segments, and the next of these */
	uint32_t search_left, search_at;
	bool search_purges; /* the CEU waits for the end of it */
	uint64_t expire_at; /* of all TPs the first; UINT64_MAX: nothing is abandoned */
	struct hca_cq_batch batch;
};

static inline struct hca_tai_ctx *
hca_tai_ctx(const struct hca_pipe *h)
{
	return h->stage_ctx[HCA_STAGE_TAI];
}

/* ---- lists of those that wait: for a TP, for any TP of a group, for an operation ---- */

static inline uint32_t
hca_tai_wait_tp(const struct hca_pipe *h, uint32_t tpi)
{
	(void)h;
	return tpi;
}

static inline uint32_t
hca_tai_wait_group(const struct hca_pipe *h, uint32_t group)
{
	return h->ub->tp_mask + 1 + group;
}

static inline uint32_t
hca_tai_wait_op(const struct hca_pipe *h)
{
	return 2 * (h->ub->tp_mask + 1);
}

#define HCA_TAI_WAIT_LISTS(tps) (2 * (tps) + 1)

/* ---- segments and records ---- */

static inline struct hca_jetty_segment *
hca_tai_segment(const struct hca_qp *qp, uint16_t tassn)
{
	return &qp->tai.segment[tassn & qp->tai.segment_mask];
}

/* TASSN of the oldest segment in use. */
static inline uint16_t
hca_tai_una(const struct hca_qp *qp)
{
	return (uint16_t)hca_una_psn(qp->sq_una);
}

/* una, past the segments that are over and whose operation is back: hca_tai_settle() is due. */
static inline uint16_t
hca_tai_una_due(const struct hca_qp *qp)
{
	uint16_t una = hca_tai_una(qp), end = qp->tai.tassn;
	const struct hca_jetty_segment *ring = qp->tai.segment;
	uint32_t mask = qp->tai.segment_mask;

	for (; una != end; una++) {
		const struct hca_jetty_segment *s = &ring[una & mask];

		if (s->state != HCA_TAI_SEGMENT_DONE || s->op != HCA_TAI_NO_OP)
			break;
	}
	return una;
}

/* Whether the number is that of a segment in use. */
static inline bool
hca_tai_in_use(const struct hca_qp *qp, uint16_t tassn)
{
	uint16_t una = hca_tai_una(qp);

	return (uint16_t)(tassn - una) < (uint16_t)(qp->tai.tassn - una);
}

/* An answer of the peer is due. */
static inline bool
hca_tai_outstanding(const struct hca_jetty_segment *s)
{
	return s->state == HCA_TAI_SEGMENT_OPEN || s->state == HCA_TAI_SEGMENT_LATE;
}

static inline uint32_t
hca_tai_ref(const struct hca_qp *qp, uint32_t cursor)
{
	return hca_window_ref(qp->tai.window, qp->tai.window_mask, cursor);
}

static inline struct hca_ub_record *
hca_tai_record(const struct hca_pipe *h, const struct hca_qp *qp, uint32_t cursor)
{
	return hca_ub_record(h, hca_tai_ref(qp, cursor));
}

/* Where in its message the segment with that number begins, bytes. */
static inline uint32_t
hca_tai_offset(const struct hca_tai_ctx *ctx, const struct hca_ub_record *r, uint16_t tassn)
{
	return (uint16_t)(tassn - r->first) * ctx->segment;
}

/* Bytes of the segment that begins there; of an atomic those of one operand. */
static inline uint32_t
hca_tai_length(const struct hca_tai_ctx *ctx, const struct hca_ub_record *r, uint32_t offset)
{
	if (!(hca_ub_wrs[r->op].flags & HCA_UB_WR_SEGMENTED))
		return r->len;
	return RTE_MIN(ctx->segment, r->len - offset);
}

static inline uint32_t
hca_tai_execution_order(const struct hca_ub_record *r)
{
	return HCA_UB_ODR_EXECUTION(r->order);
}

static inline struct hca_ta_op *
hca_tai_op(const struct hca_pipe *h, uint32_t index)
{
	return &h->ub->ops.op[HCA_TP_REQUESTS][index];
}

static inline struct hca_tp *
hca_tai_tp(const struct hca_pipe *h, uint32_t tpi)
{
	return &h->ub->tp[tpi];
}

/* A segment on its way into a lane. */
struct hca_tai_piece {
	uint32_t ref; /* of its request's record */
	uint16_t tassn;
	uint32_t offset, length; /* bytes, in the message */
	bool last;		 /* of its message */
	bool again;
};

/* ---- ta_initiator.c ---- */

/* It may be able to go on. */
void hca_tai_wake(struct hca_pipe *h, uint32_t qpi);
/* It waits on that list until there is room. */
void hca_tai_wait(struct hca_pipe *h, uint32_t qpi, uint32_t list);
/* Whether there is room beyond the share of Jettys that have waited longer. */
bool hca_tai_is_before(struct hca_pipe *h, const struct hca_qp *qp, uint32_t list);

static inline bool
hca_tai_nobody_waits(struct hca_pipe *h, uint32_t list)
{
	const struct hca_tai_list *l = &hca_tai_ctx(h)->wait[list];

	return l->head == HCA_TAI_NONE && l->granted == 0;
}

/* There is room of that list's. May this Jetty take it, or do others wait for it? */
static inline bool
hca_tai_may_go(struct hca_pipe *h, const struct hca_qp *qp, uint32_t list)
{
	return likely(hca_tai_nobody_waits(h, list)) || hca_tai_is_before(h, qp, list);
}

/* Take it off its list, and pass the room for which it was woken to another Jetty. */
void hca_tai_unlist(struct hca_pipe *h, uint32_t qpi);
/* Room of a TP, or operations, have become free: wake as many as there is room for. */
void hca_tai_grant_tp(struct hca_pipe *h, uint32_t tpi);
void hca_tai_room_of_ops(struct hca_pipe *h);
static inline void
hca_tai_room_of_tp(struct hca_pipe *h, uint32_t tpi)
{
	if (unlikely(hca_tai_ctx(h)->waiting_n != 0))
		hca_tai_grant_tp(h, tpi);
}
/* Records at the positions [from, to) of the window: back to their pools. */
void hca_tai_return(struct hca_pipe *h, const struct hca_qp *qp, uint32_t from, uint32_t to);

/* ---- ta_initiator_send.c ---- */

/* One visit: segments of the Jetty into lanes until something stops it. */
void hca_tai_visit(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi);
/* The TP may be given requests. */
bool hca_tai_tp_usable(const struct hca_tp *tp);
/* Requests that it takes now; of TP 0: unreliable packets. */
uint32_t hca_tai_tp_room(const struct hca_pipe *h, uint32_t tpi);

/* ---- ta_initiator_segment.c ---- */

/* It was answered; status 0 or that with which its request fails. */
void hca_tai_answered(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi,
		      struct hca_jetty_segment *s, uint8_t status);
/* Among n segments from tassn on, those without an answer were answered well, by a peer. */
void hca_tai_done(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint16_t tassn, uint32_t n);
/* The same of segments that are all open at that TP and are no Reads or atomics. */
void hca_tai_done_usual(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint16_t tassn,
			uint32_t n, uint32_t tpi);
/* No request waits for it any more: no answer of it came, or its Jetty or TP is gone. */
void hca_tai_abandon(struct hca_pipe *h, struct hca_qp *qp, struct hca_jetty_segment *s);
/* It stays open; the attempt is over: its operation has been answered, the TP has room. */
void hca_tai_attempt_over(struct hca_pipe *h, struct hca_jetty_segment *s);
/* Operations of a TP that TPS has released: those before that position of the lane. */
void hca_tai_take_back(struct hca_pipe *h, struct hca_tp *tp, uint32_t tpi, uint32_t done);
/* The request fails, when it is the oldest; the Jetty is suspended if it wants that. */
void hca_tai_fail(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint32_t cursor,
		  uint8_t status);
/* Return records and numbers that are not in use any more; complete finished requests. */
void hca_tai_settle(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi);
/* Forget the Jetty, which is in RST: its records and operations go back to their pools. */
void hca_tai_forget(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi);

/* ---- ta_initiator_wait.c ---- */

/* The answer was "not ready": its segment is sent again after ns, unless that was too often. */
void hca_tai_not_ready(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi,
		       struct hca_jetty_segment *s, uint64_t ns);
/* The same without counting. */
void hca_tai_later(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, struct hca_jetty_segment *s,
		   uint64_t ns);
/* A segment was sent: its answer is due in time. */
void hca_tai_expect(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi);
void hca_tai_expired(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi);
/* Look for segments of TPs that died in some of the QPs; returns how many. */
unsigned int hca_tai_search(struct hca_pipe *h);

/* ---- ta_initiator_places.c ---- */

/* A request of the TP that is counted in open_out was given up. */
void hca_tai_given_up(struct hca_pipe *h, uint32_t tpi);
/* One is open and the peer has it, and has been silent for long: its place will expire. */
void hca_tai_overdue(struct hca_pipe *h, struct hca_jetty_segment *s);
/* A segment that was open is not any more: its place at the TP is free. */
void hca_tai_place_back(struct hca_pipe *h, struct hca_jetty_segment *s);
/* n requests that were given up are over after all; false: fewer were given up. */
bool hca_tai_given_up_over(struct hca_pipe *h, uint32_t tpi, uint32_t n);
/* The time has come for some: they give their places back. */
void hca_tai_expire_places(struct hca_pipe *h);
/* How long a request that was given up has its place at least, ns. */
uint64_t hca_tai_life(const struct hca_tp *tp);

/* ---- ta_initiator_complete.c ---- */

/* Complete the finished requests; flush, or report the end of a suspension, as the state says. */
void hca_tai_complete(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi);
void hca_tai_suspend(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi);
/* The state may have changed. */
void hca_tai_state(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi);

/* ---- ta_initiator_recv.c: hca_tai_process() ---- */

#endif
