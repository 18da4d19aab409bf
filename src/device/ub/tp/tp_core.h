/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_TP_TP_CORE_H
#define UB_TP_TP_CORE_H

/*
 * The reliable transport of UB: the work of a TP, without frames, edges and clocks. It takes packet
 * fields that the codec has read and the time, and gives descriptors and answers to send. Every
 * function works on one TP and allocates nothing; the stages TPR (TP receiver) and TPS (TP
 * sender) call them.
 *
 * TPR: hca_tp_accept() for every TP Packet, at the end of a poll hca_tp_make_answer().
 * TPS: hca_tp_ack() for every answer, hca_tp_expire() when the deadline has come, hca_tp_pick() for
 *      each packet that may leave; hca_tp_release() after these, and when encap has gone on.
 *
 * now: ns, never going back.
 */

#include "cc/cc.h"
#include "cc/pace.h"
#include "ub/tp.h"

/* ---- receiving: tp_recv.c ---- */

/* A TP Packet: the members of RTPH that the transport reads, and where an answer goes. */
struct hca_tp_pkt {
	uint32_t psn;
	uint32_t tpmsn;
	uint16_t port; /* UDP source port */
	bool last;
	bool ask;  /* A */
	bool fake; /* F: has only a PSN; its TPMSN says nothing */
};

/* Judgements of a TP Packet: X(NAME, counter). */
#define HCA_TP_VERDICT_LIST(X) \
	X(PASS, passed) /* goes on to TAI or TAT, which must have room for it */ \
	X(FAKE, fake) \
	X(DUPLICATE, duplicates) \
	X(OUT_OF_ORDER, out_of_order) /* mode DROP */ \
	X(INVALID, invalid) /* beyond the window, or its TPMSN disagrees: the TP is in ERROR */

enum hca_tp_verdict {
#define X(name, counter) HCA_TP_##name,
	HCA_TP_VERDICT_LIST(X)
#undef X
};

/*
 * Decap has judged the frame and the TP may receive. Packets are passed on in the order in which
 * they come. Afterwards rx.debt says whether an answer is due.
 */
enum hca_tp_verdict hca_tp_accept(struct hca_tp *tp, const struct hca_tp_pkt *p);

/*
 * A run of packets of a TP that is open in both directions and has no holes, each the expected one:
 * begun, taken one by one as by hca_tp_accept() with verdict HCA_TP_PASS, and ended. Between begin
 * and end the caller uses the receiving half of the TP for this run only.
 */
struct hca_tp_run {
	uint32_t epsn, msn, n;
	uint32_t unacked, ack_every;
	uint32_t ack_msn;
	uint16_t port;
	bool asked;
};

/* False: the TP is in another state, or has holes. */
static inline bool
hca_tp_run_begin(const struct hca_tp *tp, struct hca_tp_run *run)
{
	const struct hca_tp_rx *rx = &tp->rx;

	if (unlikely(hca_tp_state(tp) != HCA_TPS_ACTIVE ||
		     rx->max_rcv != hca_tp_psn_before(rx->epsn)))
		return false;
	*run = (struct hca_tp_run){.epsn = rx->epsn,
				   .msn = rx->msn,
				   .unacked = rx->unacked,
				   .ack_every = tp->cfg.ack_every};
	return true;
}

/* False: it is not the expected packet, and the run is unchanged. */
static inline bool
hca_tp_run_take(struct hca_tp_run *run, const struct hca_tp_pkt *p)
{
	if (unlikely(p->psn != run->epsn || p->tpmsn != run->msn || p->fake))
		return false;
	run->epsn = hca_tp_psn(run->epsn, 1);
	run->msn = hca_tp_psn(run->msn, p->last);
	run->ack_msn = p->tpmsn;
	run->port = p->port;
	run->asked |= p->ask | p->last;
	run->n++;
	return true;
}

static inline void
hca_tp_run_end(struct hca_tp *tp, const struct hca_tp_run *run)
{
	struct hca_tp_rx *rx = &tp->rx;
	uint8_t debt = run->asked || run->unacked + run->n >= run->ack_every ? HCA_TP_OWES_NOW
									     : HCA_TP_OWES_LATER;

	if (run->n == 0)
		return;
	rx->msn = run->msn;
	rx->ack_msn = run->ack_msn;
	rx->unacked = (uint16_t)(run->unacked + run->n);
	/* one that is due is still told */
	if (unlikely(rx->nak == HCA_TP_NAK_SENT))
		rx->nak = HCA_TP_NAK_NONE;
	rx->port = run->port;
	rx->debt = RTE_MAX(rx->debt, debt);
	rx->packets += run->n;
	rx->passed += run->n;
	__atomic_store_n(&rx->epsn, run->epsn, __ATOMIC_RELEASE);
	__atomic_store_n(&rx->max_rcv, hca_tp_psn_before(run->epsn), __ATOMIC_RELAXED);
}

/* ---- answers ---- */

enum hca_tp_answer_kind {
	HCA_TP_TPACK, /* also one with a status of the transaction layer */
	HCA_TP_TPNAK,
	HCA_TP_TPSACK,
	HCA_TP_CNP, /* a congestion notification, which answers no packet */
};

struct hca_tp_answer {
	uint32_t psn;
	uint32_t tpmsn;	   /* the other end does not rely on it */
	uint32_t max_rcv;  /* TPSACK */
	uint16_t port;	   /* UDP source port */
	uint8_t kind;	   /* enum hca_tp_answer_kind */
	uint8_t sack_code; /* TPSACK: HCA_TP_SACK_BITS() of it */
	/* TPACK: RSPST and RSPINFO, as in byte 4 of an ATAH, of the operation tpmsn; 0: none */
	uint8_t status;
	const uint8_t
		*bits; /* TPSACK: bit k, that of psn + k, is in byte k >> 3, mask 1 << (k & 7) */
};

/*
 * A TPACK carries the status of an operation, S7.3.1.1: it is noted in the operation, if that is a
 * request, in flight, and acknowledged by this very answer, so that its owner has it with the
 * operation. Before hca_tp_ack(). False: there is no such operation, the status is lost.
 */
bool hca_tp_note_status(struct hca_tp *tp, const struct hca_ta_op_pools *pools,
			const struct hca_tp_answer *a);

/*
 * Give the answer that is due: one for all that was received so far. False: no answer is due. The
 * bitmap of a TPSACK is put into bits, HCA_TP_SACK_BYTES.
 */
bool hca_tp_make_answer(struct hca_tp *tp, struct hca_tp_answer *a, uint8_t *bits);

/* tp_ack.c: how TPS used an answer. */
enum hca_tp_heard {
	HCA_TP_HEARD_NEWS, /* it was used */
	HCA_TP_HEARD_OLD,  /* older than una: ignored */
	HCA_TP_HEARD_BAD,  /* of packets that were never sent: ignored */
};

/* Lengths and size code are the codec's; acknowledgements beyond next - 1 are ignored. */
enum hca_tp_heard hca_tp_ack(struct hca_tp *tp, const struct hca_ta_op_pools *pools,
			     const struct hca_tp_answer *a, uint64_t now);

/* ---- sending: tp_send.c ---- */

enum hca_tp_txd_flag {
	HCA_TP_TXD_LAST = 1u << 0,
	HCA_TP_TXD_ASK = 1u << 1,
	HCA_TP_TXD_AGAIN = 1u << 2, /* sent before */
};

/* A packet to send. Encap reads the rest from the operation. */
struct hca_tp_txd {
	uint32_t tp; /* index; set by hca_tp_sched_run() */
	uint32_t generation;
	uint32_t op;	 /* reference with its lane */
	uint32_t packet; /* of the operation, from 0 */
	uint32_t psn;
	uint32_t seq; /* encap stores it in encap.done_seq when the packet is finished */
	uint16_t port;
	uint8_t flags; /* enum hca_tp_txd_flag */
	uint8_t reserved;
};

/* The next packet of the TP; false: it has nothing that may leave now. */
bool hca_tp_pick(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint64_t now,
		 struct hca_tp_txd *d);

/*
 * The same, up to room packets while tx.deficit lasts, which they are charged to; the nth goes into
 * d[n].
 */
uint32_t hca_tp_pick_burst(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint64_t now,
			   struct hca_tp_txd *const *d, uint32_t room);

/* The allowance of congestion control for one turn, and its use. */
struct hca_tp_leave {
	uint32_t bytes; /* of frames that may still leave; UINT32_MAX: any number */
	bool held;	/* a packet needs more */
	/* left in this turn: frames, those sent for the first time, bytes of frames */
	uint32_t frames, fresh;
	uint64_t sent;
};

/* The same, packet by packet, as far as leave->bytes allow. */
uint32_t hca_tp_pick_allowed(struct hca_tp *tp, const struct hca_ta_op_pools *pools, uint64_t now,
			     struct hca_tp_leave *leave, struct hca_tp_txd *const *d,
			     uint32_t room);

/* Packets that were sent and that no answer has acknowledged, in order or not. */
static inline uint32_t
hca_tp_unanswered(const struct hca_tp *tp)
{
	return hca_tp_past(tp->tx.next, tp->tx.una) - tp->tx.got_n;
}

/*
 * Give operations back to their owners: tx.lane[].done, which hca_tp_ack() may also have moved. In
 * ERROR everything in the lanes goes back as soon as encap does not read it any more.
 */
void hca_tp_release(struct hca_tp *tp, const struct hca_ta_op_pools *pools);

/* ---- retransmission timer: tp_timer.c ---- */

/* Time before the first packet has been timed, and the least one, ns. */
#define HCA_TP_RTO_FIRST UINT64_C(1000000)
#define HCA_TP_RTO_FLOOR UINT64_C(100000)

enum hca_tp_expiry {
	HCA_TP_EXPIRY_NONE, /* not yet, or nothing is missing any more */
	HCA_TP_EXPIRY_AGAIN,
	HCA_TP_EXPIRY_DEAD, /* too often: the TP is in ERROR */
};

/* The time from a sending to its timeout, ns. */
uint64_t hca_tp_rto(const struct hca_tp *tp);
enum hca_tp_expiry hca_tp_expire(struct hca_tp *tp, const struct hca_ta_op_pools *pools,
				 uint64_t now);

/* ---- many TPs: tp_sched.c ---- */

/* Deficit round robin: cost of a packet in addition to its payload, bytes per turn (req_tx.h). */
#define HCA_TP_SCHED_OVERHEAD 594
#define HCA_TP_SCHED_QUANTUM 40960
#define HCA_TP_SCHED_NONE UINT32_MAX

struct hca_tp_sched {
	struct hca_tp *tp; /* all of the device, by index */
	struct hca_ta_op_pools pools;
	uint32_t head, tail; /* TPs that may have something to send */
	uint32_t count;
	/* called when TP i has sent something; NULL: no callback */
	void (*sent)(void *arg, uint32_t i);
	/* when it has nothing more that may leave now; NULL: no callback */
	void (*idle)(void *arg, uint32_t i);
	/*
	 * Congestion control: points to NULL while allow need not be called. allow: the bytes that
	 * TP i may send, *again as of hca_cc_ops.may_send, UINT32_MAX: any number; left: the use of
	 * them.
	 */
	struct hca_cc *const *asks;
	uint32_t (*allow)(void *arg, uint32_t i, uint64_t now, uint64_t *again);
	bool (*left)(void *arg, uint32_t i, const struct hca_tp_leave *leave, uint64_t now);
	struct hca_pace pace; /* TPs that are held until a time; used with allow */
	void *arg;
};

void hca_tp_sched_init(struct hca_tp_sched *s, struct hca_tp *tp,
		       const struct hca_ta_op_pools *pools);
/* The TP may be able to send: after a new operation or a change of state. */
void hca_tp_sched_wake(struct hca_tp_sched *s, uint32_t i);
/* As hca_tp_sched_wake(), after an answer or an expiry, which end a wait for congestion control. */
void hca_tp_sched_heard(struct hca_tp_sched *s, uint32_t i);
/* Held TPs whose time has come want to send. To be called when now >= pace.next. */
void hca_tp_sched_due(struct hca_tp_sched *s, uint64_t now);
/* For a purge. */
void hca_tp_sched_forget(struct hca_tp_sched *s, uint32_t i);
/* At most room packets, the nth into d[n]; returns how many. */
uint32_t hca_tp_sched_run(struct hca_tp_sched *s, uint64_t now, struct hca_tp_txd *const *d,
			  uint32_t room);

#endif
