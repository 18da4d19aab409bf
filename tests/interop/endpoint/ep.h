/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_INTEROP_EP_H
#define TESTS_INTEROP_EP_H

/*
 * One end of an interoperation test: a QP, its memory, and its messages.
 * The same sources are compiled twice: with libibverbs for the guest that runs Linux rxe, and with
 * softhca, whose interface is so close to verbs that a list of names (interop_verbs.h) is the only
 * difference.
 *
 * A test has `count` messages. Message i lies in slot i of the source area of one end and arrives
 * in slot i of the sink area of the other, at odd addresses; bytes between messages must not
 * change. All atomics access the same eight bytes of the responder, after its areas.
 *
 * Order: ep_open(), ep_connect() and ep_start() at both ends, for one QP or several; ep_play() at
 * both ends runs them all and compares results; ep_close().
 *
 * Threads: one. Errors: 0 or a negative errno; ep->reason explains it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interop_verbs.h"
#include "perf_exchange.h"

/* perf_exchange.flags */
enum ep_flags {
	EP_INLINE = 1 << 0,
	EP_SOLICITED = 1 << 1, /* only the last message is; the responder sleeps until it arrives */
	EP_SRQ = 1 << 2,       /* receives from a shared queue */
	/* each message has its own size: 0, 1, close to multiples of the MTU */
	EP_SIZES = 1 << 3,
	EP_LOSSY = 1 << 4,	/* messages may be missing at the responder (UC, UD) */
	EP_BAD_KEY = 1 << 5,	/* the last request has a wrong rkey */
	EP_PAST_END = 1 << 6,	/* or exceeds the end of the region */
	EP_NO_RIGHTS = 1 << 7,	/* the responder's region grants no remote rights */
	EP_SHORT_RECV = 1 << 8, /* the last receive is too small */
	EP_BAD_QKEY = 1 << 9,	/* datagrams with another Q_Key: no datagram may arrive (LOSSY) */
	EP_NO_RECV = 1 << 10,	/* no receive is ever posted */
	EP_FENCE = 1 << 11,
	EP_UNSIGNALED = 1 << 12, /* all but every fourth and the last */
	EP_MCAST = 1 << 13,	 /* datagrams to a group the responder is in */
	EP_MTU_HALF = 1 << 15,	 /* the responder's MTU is half of the requester's */
	EP_UNALIGNED = 1 << 16,	 /* the last atomic is at an odd address */
	EP_REUSED = 1 << 17,	 /* the QP has been in RTS, ERR and RESET before */
	EP_WINDOW = 1 << 14,	 /* the responder's key is that of a memory window (type 2) */
};

/* perf_exchange.op: the seed selects another operation for each message */
#define EP_OP_MIXED 100u

#define EP_MCAST_QPN 0xffffffu

/* perf_exchange.net */
enum ep_net {
	EP_NET_PLAIN,
	EP_NET_VLAN,
	EP_NET_LINK_LOCAL, /* IPv6 */
};

#define EP_SGE_MAX 16u
#define EP_INLINE_MAX 128u
#define EP_GUARD 0xee /* value of bytes that must not change */
#define EP_ATOMIC_START 0x0123456789abcd00ull
#define EP_GRH 40u
#define EP_HOP_LIMIT 64u
#define EP_TIMEOUT_MS 15000u /* limit from one completion of a requester to the next */
#define EP_OTHER_MS 60000u   /* limit until the other end finishes */
#define EP_LATE_MS 10000u    /* limit for messages in flight after all requests have completed */
#define EP_QUIET_MS 50u	     /* the same if the number of messages is unknown */
#define EP_SET_MAX 64u

struct ep {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct perf_exchange test; /* as agreed, with my part of the addresses */
	struct perf_exchange peer;

	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_mw *window;
	struct ibv_mr *mr;
	uint8_t *memory;
	size_t length;
	size_t stride; /* from slot to slot */
	unsigned int sgid_index;

	unsigned int posted, completed; /* requests */
	unsigned int recvs, received;	/* receives posted (the next message's), completed */
	unsigned int recv_next;		/* the message whose receive completes next */
	bool slept;			/* the event of the solicited message came */
	uint64_t post_at;		/* ns; time at which receives are posted */
	uint64_t end;			/* ns; a requester without a completion until then fails */
	uint64_t quiet_at;		/* ns; LOSSY: end of waiting for messages */
	char reason[200];
};

/* The QPs of one test */
struct ep_set {
	unsigned int n;
	struct ep ep[EP_SET_MAX];
};

/*
 * ep_op.c: the operation of message i; the first message from i on that needs a receive; their
 * number
 */
uint32_t ep_op(const struct perf_exchange *t, unsigned int i);
unsigned int ep_next_recv(const struct perf_exchange *t, unsigned int i);
unsigned int ep_num_recvs(const struct perf_exchange *t);
bool ep_op_is_atomic(uint32_t op);
bool ep_op_is_write(uint32_t op);
bool ep_op_has_imm(uint32_t op);
bool ep_op_takes_recv(uint32_t op);

/* ep_memory.c: slots and patterns */
size_t ep_size(const struct perf_exchange *t, unsigned int i);
size_t ep_stride(const struct perf_exchange *t);
size_t ep_length(const struct perf_exchange *t);
uint64_t ep_source(const struct ep *ep, uint64_t base, unsigned int i);
uint64_t ep_sink(const struct ep *ep, uint64_t base, unsigned int i);
uint64_t ep_counter(const struct ep *ep, uint64_t base); /* operand of atomics */
uint64_t ep_grh(const struct ep *ep, unsigned int i);
void ep_fill(struct ep *ep);
/* Check message i of the peer in my sink; `after` bytes after it must be unchanged. */
int ep_check(struct ep *ep, unsigned int slot, unsigned int i, size_t size, bool after);
bool ep_arrived(struct ep *ep, unsigned int i);
int ep_check_loss(struct ep *ep, unsigned int i);

/* ep_setup.c */
int ep_open(struct ep *ep, struct ibv_context *ctx, const struct perf_exchange *test);
int ep_connect(struct ep *ep, const struct perf_exchange *peer);
void ep_close(struct ep *ep);

/* ep_setup.c: the group of EP_MCAST, by IP version */
void ep_group(const struct perf_exchange *t, union ibv_gid *gid);

/* ep_window.c: the key is known before the QP is connected, the window is bound later. */
int ep_window_open(struct ep *ep);
int ep_window_bind(struct ep *ep);

/* ep_request.c */
uint32_t ep_immediate(const struct perf_exchange *t, unsigned int i); /* network order */
/* Post and poll once; returns the number of completions or a negative errno. */
int ep_request(struct ep *ep);
int ep_verify(struct ep *ep); /* both ends, at the end */

/* ep_respond.c */
int ep_start(struct ep *ep); /* post the receives, at once or later */
/* Serve once; returns the number of completions or a negative errno. */
int ep_respond(struct ep *ep);
/* Whether everything has arrived that must. */
bool ep_complete(struct ep *ep);

/*
 * ep_play.c: both ends do the same: request and serve until all is done or the time is over, tell
 * the other end when the own requests have completed, and exchange results. 0: both ends succeeded;
 * -EBADMSG: s->ep[i].reason or x->text has the reason; else the channel is broken.
 */
struct ep_line;
int ep_play(struct ep_set *s, struct ep_line *l, struct perf_exchange *x);

/* The first reason of any QP, or "". */
const char *ep_reason(const struct ep_set *s);
void ep_close_all(struct ep_set *s);

/*
 * ep_setup.c: idle waiting, equal at both ends. poll_cq runs the engine; an idle end sleeps
 * briefly.
 */
void ep_idle(unsigned int *idle);
uint64_t ep_now(void); /* ns */
int ep_fail(struct ep *ep, int err, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
