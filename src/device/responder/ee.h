/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_EE_H
#define RESPONDER_EE_H

/*
 * Shared by the files of the execution engine (the responder) only.
 *
 * A request passes a sequence of checks (ee_check.c); each reads the packet and the QP and returns
 * a verdict. The QP does not change before the last check has passed. Due answers to the requester
 * (READ and ATOMIC responses, one ACK or NAK) are recorded in the QP and sent in PSN order by
 * poll() (ee_response.c) when encap has room and mbufs are available.
 *
 * Everything runs on the stage's one lcore.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "abi_cqe.h"
#include "abi_ctx.h"
#include "abi_roce.h"
#include "abi_wqe.h"
#include "cc/pace.h"
#include "engine/impl.h"
#include "engine/order.h"
#include "engine/pkt.h"
#include "engine/qp_list.h"
#include "queues/eq.h"
#include "wire/roce_opcode.h"

#define EE_READY_LINK offsetof(struct hca_qp, ee.list_next)
#define EE_LAZY_LINK offsetof(struct hca_qp, ee.lazy_next)

/* Responses one QP may send, and receives it may flush, before it is the next one's turn. */
#define EE_CHUNK 16u
/*
 * The same for answers to duplicates while packets of other QPs come or go: any host that has seen
 * a READ can repeat it, and each copy is answered with all of its data. For this time after a
 * packet of another QP:
 */
#define EE_REPEAT_CHUNK 1u
#define EE_OTHERS_NS 1000000u
#define EE_FLUSH_CHUNK 64u
/*
 * While busy, the stage sends acknowledgements that were not requested after this number of polls
 * at the latest.
 */
#define EE_LAZY_POLLS 16u
#define EE_ACK_EVERY_MAX (UINT8_MAX / 2u) /* of ack_every: unacked does not wrap in a burst */
/*
 * Unit of accepted_at, whose 16 bits make 5.9 s: longer than all repetitions of a peer with a
 * timeout of up to 0.54 s (code 17); those of longer ones come at least 0.09 s before or after a
 * multiple of it. A copy of an accepted packet is the network's for EE_RECENT_NS after it.
 */
#define EE_STAMP_NS 90000u
#define EE_RECENT_NS 3000000u
/* As many packets as may have waited during a pause. */
#define EE_WAITED 1024u

/* hca_qp_ee.flags */
enum ee_flag {
	EE_ON_READY = 1u << 0, /* linked through list_next */
	EE_ON_LAZY = 1u << 1,  /* linked through lazy_next */
	EE_ACK_OWED = 1u << 2, /* acknowledge up to epsn - 1 */
	/* owed_syndrome is to be sent; where, and whether still: ee_response.c */
	EE_NAK_OWED = 1u << 3,
	/* a fatal NAK is pending or was sent: no more requests are accepted */
	EE_FATAL = 1u << 4,
	/* a sequence NAK was sent, and the expected PSN has not arrived since */
	EE_GAP = 1u << 5,
	/* an RNR NAK was sent, and the expected PSN has not arrived since */
	EE_RNR = 1u << 6,
	EE_ESTABLISHED = 1u << 7, /* COMM_EST was raised */
	EE_FLUSHING = 1u << 8,	  /* receives up to rq_producer must be flushed */
	/* a WQE was taken from an SRQ: ee.recv_off, recv_srqn, recv_generation */
	EE_RECV_HELD = 1u << 9,
	EE_LAST_WQE = 1u << 10,	  /* LAST_WQE was raised */
	EE_ACK_REPEAT = 1u << 11, /* the ACK is for a duplicate with PSN owed_psn */
	/* the QP will be reset: the CEU waits until the ACK of the executed requests is sent */
	EE_LEAVES = 1u << 12,
	/* the missing packet came, or a duplicate: the next packet says why (ee_order.c) */
	EE_FILLED = 1u << 13,
	EE_TWICE = 1u << 14,
	EE_PACED = 1u << 15, /* in ctx->pace: congestion control makes READ responses wait */
};

/* hca_qp_ee.msg_kind: the unfinished message. */
enum ee_msg_kind {
	EE_MSG_NONE = 0,
	EE_MSG_SEND,
	EE_MSG_WRITE,
};

/* hca_resp_job.flags; its kind is enum hca_op_kind, HCA_KIND_NONE: no job */
enum ee_job_flag {
	EE_JOB_STARTED = 1u << 0,  /* FIRST was sent */
	EE_JOB_REPEAT = 1u << 1,   /* answered before: a duplicate has arrived */
	EE_JOB_REFUSED = 1u << 2,  /* READ: send NAK remote access error at PSN va, no data */
	EE_JOB_LATE = 1u << 3,	   /* READ: send RNR NAK at PSN va, no more data */
	EE_JOB_RELEASED = 1u << 4, /* not in new_jobs any more */
};

/* Verdict of a check; EE_SEQ and the following ones but the last are answered with a NAK. */
enum ee_verdict {
	EE_NEXT = 0, /* continue with the next check */
	EE_DROP,     /* ignore the packet, which is counted already */
	EE_DUPLICATE,
	EE_SEQ,		/* PSN sequence error; only the first one of a gap is answered */
	EE_NOT_READY,	/* no receive WQE */
	EE_INVALID,	/* invalid request; fatal, as the following ones */
	EE_ACCESS,	/* remote access error */
	EE_OPERATIONAL, /* remote operational error: the error is on this side */
	EE_MANAGEMENT,	/* memory management error: fatal on this side, and not answered */
};

/* Destination of a part of a packet's payload. */
struct ee_piece {
	const struct hca_mpt_entry *mpt;
	uint64_t va;
	uint32_t len;
};

/* A request being checked; on the stack of process(). */
struct ee_request {
	struct hca_pipe *h;
	struct ee_ctx *ctx;
	struct hca_qp *qp;
	const struct hca_rxd *rxd;
	const uint8_t *frame;
	const uint8_t *ext; /* first header after BTH; XRC: after XRCETH, when that has been read */
	const uint8_t *payload;
	const struct hca_roce_opcode_info *op;
	uint32_t qpi;
	uint32_t pd;	     /* the PD of its keys */
	struct hca_srq *srq; /* SRQ of its receives; NULL: RQ */
	uint64_t srq_next;   /* hca_srq_available() */
	uint32_t nda;	     /* of the SRQ's WQE: offset of the next one */
	bool counted;	     /* the QP has accepted the packet */
	bool fetched;	     /* a WQE was read but not taken yet */
	bool claimed;	     /* that WQE was taken already, from an SRQ of several pipes */
	bool grh;	     /* UD: the GRH is in front of the payload */
	uint32_t imm;	     /* UD: in wire order, read before the GRH overwrites it */
	uint32_t src_qpn;    /* UD */
	uint32_t len;	     /* payload */
	uint32_t npsn;	     /* number of PSNs of this request */
	/* RETH, AtomicETH, or the WRITE in progress */
	uint64_t va;
	uint32_t rkey;
	uint32_t dma_len;
	/* receive WQE */
	uint32_t room;	       /* remaining bytes */
	uint8_t nsge, sge_at;  /* SGE of the next byte */
	uint8_t recv_syndrome; /* error completion of the receive, 0: none */
	uint32_t sge_off;
	/* destination, set by check_key() */
	bool foreign;	 /* part of it is foreign memory, and was written by check_key() */
	uint64_t before; /* ATOMIC on foreign memory: the previous value */
	unsigned int npieces;
	struct ee_piece piece[HCA_WQE_MAX_SGE];
};

/*
 * ATOMICs on foreign memory whose new value will be stored later, with their answers. An ATOMIC
 * that finds no place is not executed, and repeated by the requester.
 */
#define EE_STORES 64u
#define EE_STORES_CLIENT 8u /* QPs of one client */

struct ee_store {
	uint32_t qpi, psn;
	uint32_t generation; /* of the QP; another one: the entry is free, as with !used */
	uint16_t client;     /* UAR page */
	bool used;
	uint64_t before; /* the previous value */
};

/* Congestion of which the QP's peer is to be told. */
struct ee_notice {
	uint64_t next_at; /* no CNP before, ns */
	uint32_t next;	  /* QP index: list of QPs with a CNP due */
	bool due;	  /* it is on the list */
};

/* State of the stage. */
struct ee_ctx {
	struct hca_qp_list ready, lazy;
	uint32_t ready_count;
	uint32_t busy_polls;
	uint8_t ack_every;
	bool seen; /* packets arrived since the last poll */
	/* packet counts when duplicates were answered last, and time of others' packets */
	uint64_t arrived, arrived_seen, own_seen, requests_seen;
	uint64_t others_at;
	uint32_t repeat_qpi;
	bool left; /* the last ACK of a QP with EE_LEAVES is in out */
	/* counted per burst by the fast path */
	uint32_t writes, sends, answered[2]; /* answered: READs, ATOMICs */
	uint32_t not_taken;		     /* of the burst: dropped before a QP accepted them */
	uint64_t burst_at;		     /* time of the last burst, ns */
	uint16_t stamp;			     /* the same for accepted_at */
	uint64_t pause, pause_end; /* the last long time without one, ns; its end by `arrived` */
	struct hca_cq_batch batch;
	/* ee_short.c, in a burst: CQEs for CQ index cq_of; open if that has one writer */
	struct hca_cq_cursor cq;
	uint32_t cq_of;
	struct rte_mbuf *out[HCA_BURST];
	unsigned int nout;
	struct hca_order order[HCA_ORDER_PLACES];
	struct ee_store store[EE_STORES];
	struct ee_notice *notice;	   /* by QP index */
	uint32_t notice_head, notice_tail; /* QPs with a CNP due; HCA_QP_NONE: none */
	struct hca_pace pace;		   /* QPs whose READ responses wait; with an algorithm */
	bool waits; /* some QPs are in one of these two; counted in the stage's inbox */
} __rte_cache_aligned;

static inline struct ee_ctx *
ee_ctx(struct hca_pipe *h)
{
	return h->stage_ctx[HCA_STAGE_EE];
}

/* States in which requests are executed: RTR, RTS, SQE, SQD. */
static inline bool
ee_state_receives(uint32_t state)
{
	return state >= HCA_QPS_RTR && state <= HCA_QPS_SQD;
}

/* Slots of jobs to be answered. */
static inline uint32_t
ee_jobs(const struct hca_qp_ee *ee)
{
	return (uint32_t)__builtin_popcount(ee->job_pending);
}

static inline void
ee_set_epsn(struct hca_qp_ee *ee, uint32_t psn)
{
	__atomic_store_n(&ee->epsn, psn & HCA_PSN_MASK, __ATOMIC_RELEASE);
}

static inline void
ee_count_messages(struct hca_qp_ee *ee, uint32_t n)
{
	__atomic_store_n(&ee->msn, (ee->msn + n) & HCA_PSN_MASK, __ATOMIC_RELEASE);
}

static inline void
ee_count_message(struct hca_qp_ee *ee)
{
	ee_count_messages(ee, 1);
}

/* Count n packets that are this QP's, whatever happens to them, with their payload. */
static inline void
ee_count_received(struct hca_qp_ee *ee, uint32_t n, uint64_t bytes)
{
	__atomic_store_n(&ee->rx_packets, ee->rx_packets + n, __ATOMIC_RELAXED);
	__atomic_store_n(&ee->rx_bytes, ee->rx_bytes + bytes, __ATOMIC_RELAXED);
}

/* Count complete SEND messages that found receives. */
static inline void
ee_count_sends(struct hca_pipe *h, uint64_t n)
{
	HCA_COUNT_N(h, EE, rx_send_requests, n);
	HCA_COUNT_N(h, EE, rdma_recvs, n);
}

/* l: ctx->ready, or a list that is joined to it before anything else uses it. */
static inline void
ee_list_on(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_qp_list *l, struct hca_qp_ee *ee,
	   uint32_t qpi)
{
	if (ee->flags & (EE_ON_READY | EE_PACED))
		return;
	ee->flags |= EE_ON_READY;
	hca_qp_list_append(h, l, EE_READY_LINK, qpi);
	ctx->ready_count++;
}

static inline void
ee_list_ready(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_qp_ee *ee, uint32_t qpi)
{
	ee_list_on(h, ctx, &ctx->ready, ee, qpi);
}

static inline void
ee_list_lazy(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_qp_ee *ee, uint32_t qpi)
{
	if (ee->flags & EE_ON_LAZY)
		return;
	ee->flags |= EE_ON_LAZY;
	hca_qp_list_append(h, &ctx->lazy, EE_LAZY_LINK, qpi);
}

/* A packet was accepted: acknowledge at the end of the burst, or when the stage becomes idle. */
static inline void
ee_accepted(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_qp_ee *ee, uint32_t qpi, bool asked)
{
	ee->accepted_at = ctx->stamp;
	if (asked || ++ee->unacked >= ctx->ack_every) {
		ee->flags |= EE_ACK_OWED;
		ee_list_ready(h, ctx, ee, qpi);
	} else {
		ee_list_lazy(h, ctx, ee, qpi);
	}
}

/*
 * Write the 40 bytes before a datagram's payload: the IPv6 header, or the IPv4 header in the last
 * 20 of them and zeros before. They overwrite packet headers that must have been read before.
 */
static inline void
ee_put_grh(uint8_t *grh, const uint8_t *l3)
{
	if (l3[0] >> 4 == 6) {
		memmove(grh, l3, HCA_UD_GRH_LEN);
	} else {
		memmove(grh + HCA_UD_GRH_LEN - HCA_IPV4_LEN, l3, HCA_IPV4_LEN);
		memset(grh, 0, HCA_UD_GRH_LEN - HCA_IPV4_LEN);
	}
}

/* IETH: the key that a SEND invalidates. */
static inline uint32_t
ee_invalidated_key(const struct ee_request *q)
{
	return hca_get_be32(q->frame + q->rxd->ext_off + q->op->at.ieth - HCA_ROCE_BTH_LEN);
}

/* ---- ee_check.c ---- */

/* Execute all checks; EE_NEXT: q is complete and may be executed. */
enum ee_verdict ee_check(struct ee_request *q);
/* The checks of a repeated READ or ATOMIC; EE_ACCESS: the READ is not allowed any more. */
enum ee_verdict ee_check_repeat(struct ee_request *q);

/* ---- ee_order.c ---- */

/* q came although an earlier packet is missing; begins: it is the first one. */
void ee_order_early(struct ee_request *q, bool begins);
/* q is the packet that was missing. */
void ee_order_filled(struct ee_request *q);
/* q came before. */
void ee_order_duplicate(struct ee_request *q);
/* q is the next packet after one of those: EE_FILLED, EE_TWICE. */
void ee_order_next(struct ee_request *q);
/* Nothing came for long, or this worker did not run. */
void ee_order_pause(struct ee_ctx *ctx, uint64_t now);

/* ---- ee_recv.c ---- */

/* Take the current WQE of q->srq for the QP; does nothing without an SRQ. */
void ee_recv_take(struct ee_request *q);
/* For an SRQ of several pipes: take the WQE now; false: another pipe was faster. */
bool ee_recv_claim(struct ee_request *q);
/* The same without a request: next as of hca_srq_available(). False: another pipe was faster. */
bool ee_srq_take(struct hca_pipe *h, struct hca_qp *qp, struct hca_srq *s, uint64_t next,
		 uint32_t nda);
/* The SRQ that provided the WQE held; NULL: it is gone, even if another one has its number. */
struct hca_srq *ee_held_srq(const struct hca_pipe *h, const struct hca_qp_ee *ee);
/* The QP is in ERR and has an SRQ: flush the WQE of the unfinished message, raise LAST_WQE once. */
void ee_recv_last(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi);
/* Copy the next receive WQE into ee.recv_sge; false: it is malformed. */
bool ee_recv_fetch(struct ee_request *q);
/* Determine the destination of q's payload; false: an SGE fails its key, range or right. */
bool ee_recv_place(struct ee_request *q);
/* Complete the receive WQE at rq_consumed. imm: in wire order. */
void ee_recv_complete(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_qp *qp, uint8_t opcode,
		      uint32_t imm, uint32_t bytes, bool solicited);
/* The same for a datagram: with its source QPN and word 0Ch of the CQE. */
void ee_recv_complete_ud(struct ee_request *q, uint32_t flags, uint32_t bytes);
/* Complete it with an error. */
void ee_recv_fail(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_qp *qp, uint8_t syndrome);

static inline uint32_t
ee_recv_offset(const struct hca_qp_ee *ee)
{
	return (ee->rq_consumed & ((1u << ee->rq_size_log) - 1)) << ee->rq_stride_log;
}

/* ---- ee_response.c ---- */

/* Record a NAK for packet psn; it replaces a pending ACK, unless it is about a gap. */
void ee_owe_nak(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi, uint8_t syndrome,
		uint32_t psn);
/* Packet psn was dropped after one that was answered with a NAK. */
void ee_refused(struct hca_qp_ee *ee, uint32_t psn);
/* The slot's response was sent or is not needed any more. */
static inline void
ee_settle(struct hca_qp_ee *ee, uint32_t slot)
{
	ee->job_pending &= ~(1u << slot);
	if (ee->job_now == slot + 1)
		ee->job_now = 0;
}

/*
 * The job of a new request, which the caller fills in. The ring is as large as the requester's
 * limit, so the request whose slot is reused has been answered: a pending duplicate of it is not
 * needed any more.
 */
static inline struct hca_resp_job *
ee_new_job(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi)
{
	struct hca_qp_ee *ee = &h->qp[qpi].ee;
	uint32_t slot = ee->job_head++ & ee->job_mask;

	ee_settle(ee, slot);
	ee->job_pending |= 1u << slot;
	ee->new_jobs++;
	/* the response acknowledges everything before it */
	ee->flags &= ~(EE_ACK_OWED | EE_ACK_REPEAT);
	ee->unacked = 0;
	ee_list_ready(h, ctx, ee, qpi);
	return &ee->jobs[slot];
}

/* Add the response to a new request, within max_dest_rd_atomic: the first one not answered. */
void ee_add_job(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi,
		const struct hca_resp_job *job);
/* Whether the READ or ATOMIC with this PSN was executed, and no answer to it was sent yet. */
bool ee_unanswered(const struct hca_qp_ee *ee, uint32_t psn);
/* Answer the duplicate q again, or refuse it; false: the original request is not known any more. */
bool ee_repeat_job(struct ee_request *q, bool refused);
/* The data of the READ response with this PSN was not available when it was sent. */
void ee_late_job(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi, uint32_t psn, bool repeat);
/*
 * The QP fails at psn: READs before it that were late will not be repeated, so they are refused. A
 * requester that has their data from a duplicate ignores that.
 */
void ee_refuse_late(struct hca_qp_ee *ee, uint32_t psn);
/* The PSN that the requester waits for if it lacks this one: that of a late response before it. */
uint32_t ee_awaited_psn(const struct hca_qp_ee *ee, uint32_t psn);
/* Send responses of the ready QPs, at most budget descriptors; returns their number. */
unsigned int ee_emit(struct hca_pipe *h, struct ee_ctx *ctx, uint64_t now, unsigned int budget);
/* Give the descriptors in ctx->out to encap. */
void ee_push(struct hca_pipe *h, struct ee_ctx *ctx, uint64_t now);

/* ee_single.c: ACKs of one ee_emit(), of QPs that send only these; begins with zeros. */
struct ee_acks {
	unsigned int n;	   /* mbufs left */
	unsigned int acks; /* not counted yet */
	struct rte_mbuf *spare[HCA_BURST];
};

/*
 * If the first ready QP has to send only an ACK, it does so and leaves the list. False: it has to
 * send more, or the pool has no mbuf; the QP is unchanged.
 */
bool ee_single_ack(struct hca_pipe *h, struct ee_ctx *ctx, struct ee_acks *a, unsigned int room,
		   uint64_t now);
/* Return the mbufs and count. */
void ee_single_acks_end(struct hca_pipe *h, struct ee_acks *a);

/* ---- ee_atomic.c ---- */

/* Execute; returns the previous value. */
uint64_t ee_atomic_execute(struct ee_request *q);
/* The same at p, which is aligned. kind: enum hca_pkt_kind; header: the AtomicETH. */
uint64_t ee_atomic_execute_at(void *p, uint8_t kind, const void *header);
/* Store the payload of an ATOMIC WRITE. */
void ee_atomic_write(struct ee_request *q);

/* ---- ee_foreign.c ---- */

/* Whether the receive's SGE is in foreign memory; if so sets p->mpt and q->foreign. */
bool ee_foreign_piece(struct ee_request *q, struct ee_piece *p, uint32_t lkey, uint32_t pd);
/* Store payload for foreign memory; EE_NEXT: the rest may be executed. */
enum ee_verdict ee_foreign_scatter(struct ee_request *q);
/* Execute an ATOMIC in foreign memory: q->before. */
enum ee_verdict ee_foreign_atomic(struct ee_request *q);
/* Execute an ATOMIC WRITE in foreign memory. */
enum ee_verdict ee_foreign_atomic_write(struct ee_request *q);

/*
 * CNPs are due, or QPs wait for their time: as if a message waited, so that polls without either
 * find out nothing else.
 */
static inline void
ee_note_waits(struct hca_pipe *h, struct ee_ctx *ctx)
{
	bool waits = ctx->notice_head != HCA_QP_NONE || ctx->pace.n != 0;

	if (waits != ctx->waits)
		h->inbox[HCA_STAGE_EE].waiting += waits ? 1u : -1u;
	ctx->waits = waits;
}

/* ---- ee_notify.c ---- */

int ee_notify_init(struct hca_pipe *h, struct ee_ctx *ctx);
void ee_notify_fini(struct ee_ctx *ctx);
/* Data of the QP came with a congestion mark: a CNP is due, unless one was sent lately. */
void ee_notify_marked(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, uint64_t now);
/* The QP's life ends. */
void ee_notify_forget(struct hca_pipe *h, uint32_t qpi);
/* Send CNPs that are due, at most budget; returns their number. */
unsigned int ee_notify_emit(struct hca_pipe *h, struct ee_ctx *ctx, uint64_t now,
			    unsigned int budget);

/* ---- ee_pace.c: only where there is congestion control ---- */

int ee_pace_init(struct hca_pipe *h, struct ee_ctx *ctx);
/* How many of the next n descriptors of the QP may leave now; READ responses may have to wait. */
unsigned int ee_pace_allow(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi, unsigned int n,
			   uint64_t now);
/* The last n descriptors of ctx->out are of the QP. */
void ee_pace_sent(struct hca_pipe *h, const struct ee_ctx *ctx, uint32_t qpi, unsigned int n,
		  uint64_t now);
/* A CNP came for the QP. */
void ee_pace_cnp(struct hca_pipe *h, uint32_t qpi, uint64_t now);
/* QPs whose time has come take turns again. */
void ee_pace_due(struct hca_pipe *h, struct ee_ctx *ctx, uint64_t now);
/* The QP has nothing to send any more. */
void ee_pace_drop(struct hca_pipe *h, struct hca_qp_ee *ee, uint32_t qpi);

/* ---- ee_flush.c ---- */

/* Forget pending responses and the unfinished message. */
void ee_forget(struct hca_pipe *h, struct hca_qp_ee *ee);
/* The QP is in ERR: complete all receives posted so far as flushed, a chunk per visit. */
void ee_flush_start(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi);
/* Flush one chunk. */
unsigned int ee_flush_some(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_qp *qp);
/* Handle messages of other stages. */
unsigned int ee_messages(struct hca_pipe *h, uint64_t now, unsigned int budget);

/* ---- execution_engine.c ---- */

/* Check and execute or refuse a request, whatever it is. */
void ee_process_request(struct hca_pipe *h, struct ee_ctx *ctx, struct rte_mbuf *m);

/* UC, UD: refusals are not answered, and one packet does not move the QP to ERR. */
static inline bool
ee_is_unreliable(const struct hca_qp *qp)
{
	return qp->req_tx.unreliable;
}

/* Fatal error: QP to ERR, NAK, events, receives flushed. */
void ee_fatal(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi, enum ee_verdict why,
	      uint32_t psn, uint8_t recv_syndrome);

#endif
