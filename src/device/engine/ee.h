/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_EE_H
#define ENGINE_EE_H

/*
 * The rooms of the execution engine (the responder). Included by its own files only.
 *
 * A request climbs a ladder of rungs (ee_check.c); each looks at the packet and the QP and says
 * whether to climb on. Nothing of the QP changes before the last check has passed. What the
 * responder owes the requester (READ and ATOMIC responses, one ACK or NAK) is remembered in the QP
 * and leaves in PSN order from poll() (ee_response.c) when encap has room and mbufs are there.
 *
 * Everything here runs on the one lcore of the stage.
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_cqe.h"
#include "abi_ctx.h"
#include "abi_roce.h"
#include "abi_wqe.h"
#include "engine/impl.h"
#include "engine/pkt.h"
#include "queues/eq.h"
#include "wire/roce_opcode.h"

#define EE_NO_QP 0xffffffffu

/* Responses one QP may emit, and receives it may flush, before the next one has its turn. */
#define EE_CHUNK 16u
#define EE_FLUSH_CHUNK 64u
/* A busy stage acknowledges what nobody asked for at the latest after so many polls. */
#define EE_LAZY_POLLS 16u

/* hca_qp_ee.flags */
enum ee_flag {
	EE_ON_READY = 1u << 0,	  /* linked through list_next */
	EE_ON_LAZY = 1u << 1,	  /* linked through lazy_next */
	EE_ACK_OWED = 1u << 2,	  /* acknowledge up to epsn - 1 */
	EE_NAK_OWED = 1u << 3,	  /* owed_syndrome; where, and whether still: ee_response.c */
	EE_FATAL = 1u << 4,	  /* a fatal NAK is owed or was sent: nothing more is accepted */
	EE_GAP = 1u << 5,	  /* sequence NAK given, the expected PSN has not come since */
	EE_RNR = 1u << 6,	  /* RNR NAK given, the expected PSN has not come since */
	EE_ESTABLISHED = 1u << 7, /* COMM_EST was raised */
	EE_FLUSHING = 1u << 8,	  /* receives up to rq_producer are to be flushed */
	EE_RECV_HELD = 1u << 9,	  /* ee.recv_off, recv_srqn, recv_cq: a WQE taken from an SRQ */
	EE_LAST_WQE = 1u << 10,	  /* LAST_WQE was raised */
	EE_ACK_REPEAT = 1u << 11, /* the ACK is owed to a duplicate with PSN owed_psn */
};

/* hca_qp_ee.msg_kind: the message whose LAST has not come yet. */
enum ee_msg_kind {
	EE_MSG_NONE = 0,
	EE_MSG_SEND,
	EE_MSG_WRITE,
};

/* hca_resp_job.kind and .flags */
enum ee_job_kind {
	EE_JOB_READ = 1,
	EE_JOB_ATOMIC,
};

enum ee_job_flag {
	EE_JOB_STARTED = 1u << 0, /* FIRST has left */
	EE_JOB_REPEAT = 1u << 1,  /* was answered before: a duplicate asked again */
	EE_JOB_REFUSED = 1u << 2, /* READ: NAK remote access at PSN va, no data */
};

/* What a rung says; everything from EE_SEQ on is answered with a NAK. */
enum ee_verdict {
	EE_NEXT = 0, /* climb on */
	EE_DROP,     /* ignore; already counted */
	EE_DUPLICATE,
	EE_SEQ,		/* PSN sequence error; of a gap only the first is answered */
	EE_NOT_READY,	/* no receive WQE */
	EE_INVALID,	/* invalid request; fatal from here on */
	EE_ACCESS,	/* remote access error */
	EE_OPERATIONAL, /* remote operational error: the fault is on this side */
};

/* One destination of a packet's payload. */
struct ee_piece {
	const struct hca_mpt_entry *mpt;
	uint64_t va;
	uint32_t len;
};

/* A request while it climbs the ladder; lives on the stack of process(). */
struct ee_request {
	struct hca *h;
	struct ee_ctx *ctx;
	struct hca_qp *qp;
	const struct hca_rxd *rxd;
	const uint8_t *frame;
	const uint8_t *ext; /* first header behind BTH; XRC: behind XRCETH, once that is read */
	const uint8_t *payload;
	const struct hca_roce_opcode_info *op;
	uint32_t qpi;
	uint32_t pd;	     /* in which keys are judged */
	struct hca_srq *srq; /* receives come from it; NULL: from the RQ */
	uint32_t nda;	     /* of the SRQ's WQE: where the next one lies */
	bool counted;	     /* the QP has taken the packet */
	bool fetched;	     /* a WQE has been looked at and not been taken yet */
	uint32_t imm;	     /* UD: as on the wire, read before the GRH covers it */
	uint32_t src_qpn;    /* UD */
	uint32_t len;	     /* payload */
	uint32_t npsn;	     /* PSNs this request takes */
	/* RETH, AtomicETH, or the WRITE in progress */
	uint64_t va;
	uint32_t rkey;
	uint32_t dma_len;
	/* receive WQE */
	uint32_t room;	       /* bytes it still takes */
	uint8_t nsge, sge_at;  /* SGE the next byte goes to */
	uint8_t recv_syndrome; /* error the receive completes with, 0: none */
	uint32_t sge_off;
	/* destination, filled by the key rung */
	bool foreign;	 /* some of it is foreign memory, and was written by the key rung */
	uint64_t before; /* ATOMIC on foreign memory: what was there */
	unsigned int npieces;
	struct ee_piece piece[HCA_WQE_MAX_SGE];
};

/* Private memory of the stage. */
struct ee_ctx {
	uint32_t ready_head, ready_tail, ready_count;
	uint32_t lazy_head, lazy_tail;
	uint32_t busy_polls;
	uint16_t ack_every;
	bool seen; /* packets came since the last poll */
	/* counted per burst by the fast path */
	uint32_t writes, sends;
	uint32_t not_taken; /* of the burst: dropped before they were the QP's */
	struct hca_cq_batch batch;
	struct rte_mbuf *out[HCA_BURST];
	unsigned int nout;
} __rte_cache_aligned;

static inline struct ee_ctx *
ee_ctx(struct hca *h)
{
	return h->stage_ctx[HCA_STAGE_EE];
}

/* States in which requests are executed: RTR, RTS, SQE, SQD. */
static inline bool
ee_state_receives(uint32_t state)
{
	return state >= HCA_QPS_RTR && state <= HCA_QPS_SQD;
}

/* Jobs that are to be answered. */
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
ee_count_message(struct hca_qp_ee *ee)
{
	__atomic_store_n(&ee->msn, (ee->msn + 1) & HCA_PSN_MASK, __ATOMIC_RELEASE);
}

/* A packet that is this QP's, whatever becomes of it. */
static inline void
ee_count_received(struct hca_qp_ee *ee, const struct hca_rxd *rxd)
{
	__atomic_store_n(&ee->rx_packets, ee->rx_packets + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&ee->rx_bytes, ee->rx_bytes + rxd->payload_len, __ATOMIC_RELAXED);
}

static inline void
ee_list_ready(struct hca *h, struct ee_ctx *ctx, struct hca_qp_ee *ee, uint32_t qpi)
{
	if (ee->flags & EE_ON_READY)
		return;
	ee->flags |= EE_ON_READY;
	ee->list_next = EE_NO_QP;
	if (ctx->ready_head == EE_NO_QP)
		ctx->ready_head = qpi;
	else
		h->qp[ctx->ready_tail].ee.list_next = qpi;
	ctx->ready_tail = qpi;
	ctx->ready_count++;
}

static inline void
ee_list_lazy(struct hca *h, struct ee_ctx *ctx, struct hca_qp_ee *ee, uint32_t qpi)
{
	if (ee->flags & EE_ON_LAZY)
		return;
	ee->flags |= EE_ON_LAZY;
	ee->lazy_next = EE_NO_QP;
	if (ctx->lazy_head == EE_NO_QP)
		ctx->lazy_head = qpi;
	else
		h->qp[ctx->lazy_tail].ee.lazy_next = qpi;
	ctx->lazy_tail = qpi;
}

/* A packet was accepted: acknowledge at the end of the burst, or when the stage goes idle. */
static inline void
ee_accepted(struct hca *h, struct ee_ctx *ctx, struct hca_qp_ee *ee, uint32_t qpi, bool asked)
{
	if (asked || ++ee->unacked >= ctx->ack_every) {
		ee->flags |= EE_ACK_OWED;
		ee_list_ready(h, ctx, ee, qpi);
	} else {
		ee_list_lazy(h, ctx, ee, qpi);
	}
}

/* IETH: the key a SEND invalidates. */
static inline uint32_t
ee_invalidated_key(const struct ee_request *q)
{
	return hca_get_be32(q->frame + q->rxd->ext_off + q->op->at.ieth - HCA_ROCE_BTH_LEN);
}

/* ---- ee_check.c ---- */

/* Climbs all checks; EE_NEXT: q is complete and may be executed. */
enum ee_verdict ee_check(struct ee_request *q);
/* The checks that a repeated READ or ATOMIC passes again; EE_ACCESS: a READ that may not be now. */
enum ee_verdict ee_check_repeat(struct ee_request *q);

/* ---- ee_recv.c ---- */

/* Is a receive WQE in the RQ? 1, 0, or -1 when the producer count is a lie. */
int ee_recv_available(struct hca_qp_ee *ee);
/* A WQE of q->srq becomes the QP's, if that is where receives come from; nothing otherwise. */
void ee_recv_take(struct ee_request *q);
/* The same without a request: the WQE at the SRQ's head, behind which nda points. */
void ee_srq_take(struct hca *h, struct hca_qp *qp, struct hca_srq *s, uint32_t nda);
/* The SRQ is in error: its event, once. */
void ee_srq_catas(struct hca *h, struct hca_srq *s);
/* An armed limit fires when fewer WQEs are left. */
void ee_srq_limit(struct hca *h, struct hca_srq *s);
/* The QP is in ERR and has an SRQ: the WQE in progress is flushed, LAST_WQE raised once. */
void ee_recv_last(struct hca *h, struct ee_ctx *ctx, uint32_t qpi);
/* Copies the next receive WQE into ee.recv_sge; false: malformed. */
bool ee_recv_fetch(struct ee_request *q);
/* Where q's payload goes; false: an SGE fails its key, range or right. */
bool ee_recv_place(struct ee_request *q);
/* Successful completion of the receive WQE at rq_consumed. imm: wire bytes. */
void ee_recv_complete(struct hca *h, struct ee_ctx *ctx, struct hca_qp *qp, uint8_t opcode,
		      uint32_t imm, uint32_t bytes, bool solicited);
/* The same for a datagram: its source QPN and word 0Ch of the CQE. */
void ee_recv_complete_ud(struct ee_request *q, uint32_t flags, uint32_t bytes);
/* The same with an error. */
void ee_recv_fail(struct hca *h, struct ee_ctx *ctx, struct hca_qp *qp, uint8_t syndrome);

static inline uint32_t
ee_recv_offset(const struct hca_qp_ee *ee)
{
	return (ee->rq_consumed & ((1u << ee->rq_size_log) - 1)) << ee->rq_stride_log;
}

/* ---- ee_response.c ---- */

/* Remembers a NAK for the packet psn; it replaces an owed ACK. */
void ee_owe_nak(struct hca *h, struct ee_ctx *ctx, uint32_t qpi, uint8_t syndrome, uint32_t psn);
/* The packet psn was dropped behind one that was answered with a NAK. */
void ee_refused(struct hca_qp_ee *ee, uint32_t psn);
/* A response to the new request q, within max_dest_rd_atomic. va is the result of an ATOMIC. */
void ee_add_job(struct ee_request *q, uint8_t kind, uint64_t va);
/* Answers the duplicate q again, or refuses it; false: what it repeats is no longer known. */
bool ee_repeat_job(struct ee_request *q, bool refused);
/* Emits what the ready QPs owe, at most budget descriptors; returns how many. */
unsigned int ee_emit(struct hca *h, struct ee_ctx *ctx, uint64_t now, unsigned int budget);

/* ---- ee_atomic.c ---- */

/* Executes; returns the value before. */
uint64_t ee_atomic_execute(struct ee_request *q);

/* ---- ee_foreign.c ---- */

/* Is the receive's data segment one of foreign memory? Then p->mpt is set and q->foreign too. */
bool ee_foreign_piece(struct ee_request *q, struct ee_piece *p, uint32_t lkey, uint32_t pd);
/* Stores what goes to foreign memory; EE_NEXT: the rest may be executed. */
enum ee_verdict ee_foreign_scatter(struct ee_request *q);
/* Executes an ATOMIC there: q->before. */
enum ee_verdict ee_foreign_atomic(struct ee_request *q);

/* ---- ee_flush.c ---- */

/* Nothing is owed any more, nothing is in progress. */
void ee_forget(struct hca *h, struct hca_qp_ee *ee);
/* The QP is in ERR: all receives posted so far complete as flushed, a chunk per visit. */
void ee_flush_start(struct hca *h, struct ee_ctx *ctx, uint32_t qpi);
/* One chunk. */
unsigned int ee_flush_some(struct hca *h, struct ee_ctx *ctx, struct hca_qp *qp);
/* All messages of other stages. */
unsigned int ee_messages(struct hca *h, uint64_t now, unsigned int budget);

/* ---- execution_engine.c ---- */

/* UC, UD: nobody is told of a refusal, and one packet does not end the QP. */
static inline bool
ee_is_unreliable(const struct hca_qp *qp)
{
	return qp->rtc.unreliable;
}

/* Fatal: QP to ERR, NAK owed, events, receives flushed. */
void ee_fatal(struct hca *h, struct ee_ctx *ctx, uint32_t qpi, enum ee_verdict why, uint32_t psn,
	      uint8_t recv_syndrome);

#endif
