/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_TARGET_TA_TARGET_H
#define UB_TARGET_TA_TARGET_H

/*
 * Shared by the files of TAT only, the transaction target of UB.
 *
 * TAT gets each packet that a TP has accepted once, in the order in which they come. Packets of one
 * request belong together by their TPMSN. A request of one packet is executed at once; another has
 * an entry in the TP's ring of open ones until all of its packets have come, also when it is
 * refused: the requester's transport takes an answer for an acknowledgement of all of them.
 *
 * The answer goes into the TP's ring of answers due, and from there as an operation into the lane
 * of responses when that has room. TAT never waits: it takes every packet.
 *
 * Everything runs on the stage's one lcore.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ub/token.h"
#include "ub/ub_cqe.h"
#include "ub/tp/pkt.h"
#include "ub/ub_stage.h"

#define TAT_NONE UINT32_MAX
#define TAT_NO_MESSAGE UINT16_MAX
/* TPs served per poll, and receives flushed per visit. */
#define TAT_VISITS 64u
#define TAT_FLUSH_CHUNK 64u
/*
 * Wrong token values over a TP in one second, beyond which the Jettys that have sent one are
 * refused, whatever they send, until the second is over.
 */
#define TAT_FLOOD 65536u
#define TAT_FLOOD_NS UINT64_C(1000000000)
/* In the place of byte 4 of an ATAH: the request is not answered. RSPST 4 is reserved. */
#define TAT_SILENT (4u << 5)
/* Timer codes of "not ready": no memory of the device for it, and foreign memory that is late. */
#define TAT_TIMER_DEVICE 5u
#define TAT_TIMER_LATE 10u

/* ---- refusals ---- */

/*
 * Reasons of a refusal, in addition to those of codec and tokens (HCA_UB_REFUSE_LIST,
 * HCA_TOKEN_VERDICT_LIST): X(NAME, counter, answer, status of the receive that it has taken).
 * UNSUPPORTED and ABORT are final, RNR and FAULT may be repeated.
 */
#define TAT_REFUSE_LIST(X) \
	X(SEQUENCE, ub_ta_sequence, UNSUPPORTED, LOCAL_LENGTH) /* RC type 2 */ \
	X(GROUP, ub_ta_group, UNSUPPORTED, LOCAL_LENGTH)       /* TC type 2 */ \
	X(SUM, ub_ta_bad_sum, UNSUPPORTED, LOCAL_LENGTH)       /* packets do not make it up */ \
	X(ALIGNMENT, ub_ta_bad_alignment, UNSUPPORTED, LOCAL_ACCESS) \
	X(POISON, ub_ta_poison, ABORT, LOCAL_POISON) \
	X(EDGE, ub_ta_edge, ABORT, LOCAL_ACCESS) /* HCA_UB_SWITCH_EDGE: E_bit, or no token */ \
	X(UNKNOWN_TC, ub_tc_unknown, UNSUPPORTED, FLUSHED) \
	X(TC_ERROR, ub_tc_error, ABORT, FLUSHED) \
	X(TC_TOKEN, ub_tc_token, ABORT, LOCAL_ACCESS) \
	X(ALONE, ub_tc_alone, RNR, LOCAL_ACCESS)	 /* its one peer is not known yet */ \
	X(STRANGER, ub_tc_stranger, ABORT, LOCAL_ACCESS) /* another one than its peer */ \
	X(NO_RECEIVE, ub_no_receive, RNR, LOCAL_ACCESS) \
	X(NO_MEMORY, ub_no_message, RNR, LOCAL_ACCESS)	    /* for a message */ \
	X(NO_OP, ub_no_op, RNR, LOCAL_ACCESS)		    /* for the answer to an atomic */ \
	X(BAD_RECEIVE, ub_bad_receive, ABORT, LOCAL_ACCESS) /* its queue, WQE or memory */ \
	X(TOO_LONG, ub_receive_too_long, UNSUPPORTED, LOCAL_LENGTH) \
	X(LATE, ub_scatter_late, FAULT, LOCAL_ACCESS) \
	X(GONE, ub_scatter_gone, ABORT, LOCAL_ACCESS) \
	X(SUSPECT, ub_token_suspect, ABORT, LOCAL_ACCESS) /* its Jetty has guessed too much */

enum tat_why {
	TAT_FINE,
#define X(NAME, counter, answer, status) TAT_##NAME,
	TAT_REFUSE_LIST(X)
#undef X
	TAT_TOKEN,					/* + enum hca_token_verdict - 1 */
	TAT_CODEC = TAT_TOKEN + HCA_TOKEN_VERDICTS - 1, /* + enum hca_ub_drop - HCA_UB_DROP_TA */
	TAT_WHY_COUNT = TAT_CODEC + HCA_UB_DROP_COUNT - HCA_UB_DROP_TA,
};

/* ---- open requests ---- */

enum tat_open_flag {
	TAT_OPEN = 1u << 0,
	TAT_FIRST = 1u << 1, /* `first` is known */
	TAT_END = 1u << 2,   /* `end` is known */
	/* answered before it could be known whether all packets had come: others are ignored */
	TAT_CUT = 1u << 3,
};

/* In the TP's ring at its TPMSN. */
struct tat_open {
	uint32_t tpmsn : 24, flags : 8; /* enum tat_open_flag */
	uint32_t rc : 24;		/* RC type and id */
	uint32_t answer : 8;		/* byte 4 of the ATAH; 0: not refused so far */
	uint32_t first : 24, kind : 8;	/* PSN of its first packet; enum hca_ub_ta_kind */
	uint32_t end : 24, spare : 8;	/* PSN of its last packet */
	uint32_t packets;		/* that have come */
	uint32_t bytes;			/* of payload that have been stored */
	uint32_t length;		/* of a write's segment; of a send when it is known */
	uint16_t tassn;
	uint16_t message; /* TAT_NO_MESSAGE: none */
};

_Static_assert(sizeof(struct tat_open) == HCA_TP_OPEN_BYTES, "as allocated");

/* Fields of the last packet of a request, without its payload. */
struct tat_closing {
	uint64_t data;	  /* immediate, or data of the notify */
	uint64_t address; /* of the notify */
	uint32_t token_id;
	uint32_t token; /* of the notify's segment, or of the TC */
	uint32_t tc;	/* MTETAH */
	uint32_t total; /* bytes, by IMMETAH */
	uint8_t opcode;
	bool has_token; /* the notify's is a value, not a reserved field */
	bool solicited;
};

/*
 * State that does not fit into that: the receive that a send has taken, and the fields of the last
 * packet of a write while other packets are still missing.
 */
struct tat_message {
	uint32_t next, prev; /* list of those in use */
	struct tat_closing closing;
	/* receive */
	bool held;	/* a WQE was taken and has no CQE yet */
	uint8_t status; /* enum hca_ub_status of its CQE */
	uint8_t killed; /* enum tat_why: its queue is gone or in error */
	uint8_t kind;	/* enum hca_cqe_ub_kind */
	uint8_t nsge;
	uint32_t qpi;  /* of the Jetty; TAT_NONE: a JFR */
	uint32_t srqn; /* its WQE came from this SRQ; 0: from the Jetty's RQ */
	uint32_t generation, srq_generation;
	uint32_t number; /* own, for the CQE */
	uint32_t cqn;
	uint32_t pd;
	uint32_t wqe;  /* byte offset */
	uint32_t room; /* bytes */
	/* ta_order.c: complete, but its CQE waits for packets before PSN `first` */
	bool waits;
	uint32_t first, after;
	struct hca_ub_cqe ready;
	struct hca_sge sge[HCA_WQE_MAX_SGE];
};

/* An answer that could not be sent yet. */
struct tat_owed {
	uint64_t va;		/* Read_response */
	uint32_t token_id : 24; /* Read_response */
	uint32_t opcode : 8;	/* HCA_UB_TA_TAACK, _READ_RESPONSE or _ATOMIC_RESPONSE */
	uint32_t token;		/* Read_response */
	uint32_t length;	/* Read_response: bytes; Atomic_response: operation, or TAT_NONE */
	uint32_t offset : 24, answer : 8; /* Read_response: KiB; byte 4 of the ATAH */
	uint32_t rc;			  /* 24 bits: RC type and id */
	uint16_t tassn, spare;
};

_Static_assert(sizeof(struct tat_owed) == HCA_TP_OWED_BYTES, "as allocated");

/* ---- the stage ---- */

struct tat_ctx {
	struct tat_message *message;
	uint16_t *free; /* stack of indexes of messages */
	uint32_t free_n;
	uint32_t first; /* messages in use, a list */
	/* TPs with answers to give */
	uint32_t head, tail, listed;
	uint64_t *flushing; /* Jettys with receives to flush: a bit each */
	uint32_t flushing_n;
	struct hca_cq_batch batch;
} __rte_cache_aligned;

/* A packet being executed; on the stack of process(). */
struct tat_request {
	struct hca_pipe *h;
	struct tat_ctx *ctx;
	struct hca_tp *tp;
	uint64_t now;
	const struct hca_ub_rxd *rxd;
	uint8_t *tah; /* BTAH */
	struct hca_ub_ta_view v;
	uint8_t *payload;
	uint32_t len;	/* of it */
	uint32_t rc;	/* RC id */
	uint32_t least; /* bytes that the receive must have room for, or it is not taken */
	bool last;
	uint8_t why; /* enum tat_why: this packet is the reason why its request is refused */
	uint32_t op; /* operation with an atomic's result */
	struct tat_open *o;
	struct tat_message *msg; /* of o, NULL: none */
};

static inline struct tat_ctx *
tat_ctx(const struct hca_pipe *h)
{
	return h->stage_ctx[HCA_STAGE_TAT];
}

static inline uint32_t
tat_tp_index(const struct hca_pipe *h, const struct hca_tp *tp)
{
	return (uint32_t)(tp - h->ub->tp);
}

static inline bool
tat_is_reliable(const struct tat_request *q)
{
	return q->rxd->tp != HCA_TP_UNRELIABLE;
}

/* ---- ta_target.c ---- */

/* Refuse the request, if it is not refused already. */
void tat_refuse(struct tat_request *q, enum tat_why why);
/* The same with the timer of "not ready" or of a page fault. */
void tat_refuse_for(struct tat_request *q, enum tat_why why, uint8_t timer);
/* The peer breaks the rules that its own transport keeps: the TP is given up. */
void tat_fail(struct hca_pipe *h, struct hca_tp *tp, enum hca_counter why);
/* A wrong token value came over this TP. */
void tat_mismatch(struct tat_request *q);

/* ---- ta_target_write_fast.c ---- */

/*
 * Execute the first packets, as far as they are writes of one packet of the usual form over the
 * same TP. Returns how many; the next one is untouched. The caller counts them: begun, used and
 * done.
 */
unsigned int tat_write_fast(struct hca_pipe *h, struct rte_mbuf *const *m, unsigned int n);

/* ---- ta_recv.c ---- */

/* A Send of one packet, without completion order. */
struct tat_usual_send {
	const uint8_t *src;
	uint32_t len; /* not 0 */
	uint32_t mtetah, value;
	uint32_t rc, tpn; /* of its CQE */
	bool has_value, solicited;
};

/* The queue that an MTETAH addresses. */
struct tat_tc {
	struct hca_qp *qp; /* NULL: a JFR */
	struct hca_srq *srq;
	const struct hca_tc *row;
};

/*
 * Of those in a row: the queue of the last one, and the CQ of its receives. Until tat_recv_end() no
 * other code may write CQEs of this stage.
 */
struct tat_send_run {
	struct tat_tc tc;
	bool found; /* Sends with these values may go there */
	bool has_value;
	uint32_t mtetah, value;
	uint32_t cqn;
	uint32_t local; /* of its CQEs; in the order of memory */
	uint32_t cq_of; /* CQ for which the cursor was opened, also in vain; TAT_NONE: none */
	struct hca_cq_cursor cq;
	uint32_t sends; /* completed */
};

void tat_recv_begin(struct tat_send_run *run);
void tat_recv_end(struct hca_pipe *h, struct tat_send_run *run);
/*
 * Stores and completes it if the queue takes Sends of any peer with this token, and the first SGE
 * of its next receive has room. False: undecided, nothing has changed.
 */
bool tat_recv_fast(struct hca_pipe *h, struct tat_send_run *run, const struct tat_usual_send *s);

/* ---- ta_open.c ---- */

/* The entry of the packet's request, new or open, in q->o; false: it is dropped and counted. */
bool tat_open_find(struct tat_request *q, struct tat_open *fresh);
/* The packet has been counted to its request; false: it does not fit, and the TP is given up. */
bool tat_open_add(struct tat_request *q);
/* Whether all packets have come. */
bool tat_open_is_complete(const struct tat_request *q);
/* Keep a new request, or end a complete one. */
void tat_open_keep(struct tat_request *q, const struct tat_open *fresh);
void tat_open_end(struct tat_request *q, const struct tat_open *fresh);
/* The TP is dead: drop all. */
void tat_open_drop(struct hca_pipe *h, struct hca_tp *tp);

/* A message for q->o; false: no free message is left. */
bool tat_message_take(struct tat_request *q);
void tat_message_return(struct tat_ctx *ctx, uint32_t index);

/* ---- ta_target_write.c ---- */

/* Judge an access; NULL: the request is refused. */
const struct hca_mpt_entry *tat_access(struct tat_request *q, const struct hca_token_access *a);
/* That of the packet's MAETAH and TVETAH, of len bytes. */
const struct hca_mpt_entry *tat_access_of(struct tat_request *q, uint64_t len, uint32_t right);
/* rc: result of a transfer of foreign memory (vtp/foreign.h); false: the request is refused. */
bool tat_foreign_ok(struct tat_request *q, int rc);
/* Store to memory that was checked; false: it is foreign and failed. */
bool tat_store(struct tat_request *q, const struct hca_mpt_entry *e, uint64_t va,
	       const uint8_t *src, uint32_t len);
/* Read the fields of the packet, the last one, that are in front of its payload. */
void tat_closing_read(const struct tat_request *q, struct tat_closing *c);
void tat_write(struct tat_request *q);
void tat_write_enabled(struct tat_request *q);
/* All packets of a write have come. */
void tat_write_done(struct tat_request *q);

/* ---- ta_target_send.c ---- */

void tat_send(struct tat_request *q);
void tat_send_done(struct tat_request *q);
/* A write with immediate is done: consume a receive. */
void tat_immediate(struct tat_request *q, const struct tat_closing *c);
/* A packet without TP. */
void tat_datagram(struct tat_request *q);

/* ---- ta_target_read.c ---- */

void tat_read(struct tat_request *q);
void tat_atomic(struct tat_request *q);

/* ---- ta_recv.c ---- */

/*
 * Take a receive of the TC that the MTETAH names into q->msg; false: the request is refused.
 * has_value: the request has a value for the TC.
 */
bool tat_recv_take(struct tat_request *q, uint32_t mtetah, bool has_value, uint32_t value);
/* Store payload at this offset of the receive; false: the request is refused. */
bool tat_recv_place(struct tat_request *q, uint64_t offset, const uint8_t *src, uint32_t len);
/* The CQE of the receive that is held: its request is done. */
void tat_recv_complete(struct tat_request *q, const struct tat_closing *c, uint32_t bytes);
/* Complete it, if one is held, as one that failed. */
void tat_recv_fail(struct hca_pipe *h, struct tat_ctx *ctx, struct tat_message *m, uint8_t status);
/*
 * Its queue is as it was when the receive was taken; otherwise m->killed says which answer to give.
 */
bool tat_recv_is_alive(const struct hca_pipe *h, struct tat_message *m);
/* The state of a Jetty has changed, or it is to be forgotten. */
void tat_recv_state(struct hca_pipe *h, uint32_t qpi);
void tat_recv_forget(struct hca_pipe *h, uint32_t qpi);
/* Flush receives of Jettys in error; returns how many. */
unsigned int tat_recv_flush(struct hca_pipe *h, unsigned int budget);

/* ---- ta_order.c ---- */

/* The CQE of a request that asks for the order of sending: now, or when nothing is missing. */
void tat_order_complete(struct tat_request *q, const struct hca_ub_cqe *cqe);
/* All packets of the TP before this PSN have come. */
void tat_order_reach(struct hca_pipe *h, struct hca_tp *tp, uint32_t psn);
/* The TP is dead: its messages do not wait any longer. */
void tat_order_drop(struct hca_pipe *h, struct hca_tp *tp);
/* The queue of a message that waits is in ERROR or gone. */
void tat_order_kill(struct hca_pipe *h, struct tat_ctx *ctx, struct tat_message *m, uint8_t why);

/* ---- ta_answer.c ---- */

/* The request is done or refused: its answer. */
void tat_owe(struct tat_request *q);
/* n requests were executed; their answers stand behind those that are due. They are not counted. */
void tat_owe_done(struct hca_pipe *h, struct hca_tp *tp, uint32_t n);
/* The nth answer behind the oldest one due, or its place; n is at most `requests`. */
static inline struct tat_owed *
tat_owed_at(const struct hca_tp *tp, uint32_t n)
{
	struct tat_owed *ring = tp->owed;
	uint32_t at = tp->tat.owed_at + n;

	return &ring[at < tp->cfg.requests ? at : at - tp->cfg.requests];
}

/* An operation of the pool for this TP; TAT_NONE: the pool is empty, or other TPs need it more. */
uint32_t tat_op_take(struct hca_pipe *h, struct hca_tp *tp);
void tat_op_return(struct hca_pipe *h, struct hca_tp *tp, uint32_t index);
/* Send due answers, as far as there is room; returns the number of operations. */
unsigned int tat_answer(struct hca_pipe *h, unsigned int budget);
/* NEW: something is in the lane; STATE: the TP is in ERROR. */
void tat_tell_tps(struct hca_pipe *h, const struct hca_tp *tp, uint8_t flags);
/* Operations of this TP came back, or its lane has room. */
void tat_answer_room(struct hca_pipe *h, struct hca_tp *tp);
/* The TP is dead: no answer is due. all: nor does any other stage use its operations. */
void tat_answer_drop(struct hca_pipe *h, struct hca_tp *tp, bool all);

#endif
