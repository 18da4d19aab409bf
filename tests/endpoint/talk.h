/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_ENDPOINT_TALK_H
#define TESTS_ENDPOINT_TALK_H

/*
 * Parts of talk, the conversation of two processes at two daemons. A flow is what one end posts to
 * and hears from; both ends run the same steps on it and keep step over a socket. Every function
 * gives 0 or a negative errno after a line on standard error.
 *
 * Each attempt at an operation has a serial number that its data shows, so that data of an attempt
 * given up (unreliable services may lose a message) is not taken for that of the next.
 */

#include "ipc_rig.h"

/* What is counted once it has been verified, at either end; the names are printed. */
#define TALK_OPS(X) \
	X(SEND) \
	X(SEND_IMM) \
	X(SEND_INLINE) \
	X(SEND_SGES) \
	X(WRITE) \
	X(WRITE_IMM) \
	X(WRITE_INLINE) \
	X(WRITE_SGES) \
	X(READ) \
	X(READ_SGES) \
	X(FETCH_ADD) \
	X(CMP_SWAP) \
	X(BIND_MW) /* type 1, and so on */ \
	X(MW_WRITE) \
	X(MW_READ) \
	X(MW_UNBIND) \
	X(MW_REFUSED) \
	X(BIND_MW2) /* type 2 */ \
	X(MW2_WRITE) \
	X(MW2_READ) \
	X(LOCAL_INV) \
	X(SEND_INV) \
	X(MW2_REFUSED)

enum talk_op {
#define X(name) TALK_##name,
	TALK_OPS(X)
#undef X
	TALK_COUNT
};

struct talk_tally {
	unsigned int verified[TALK_COUNT];
	unsigned int lost; /* messages of unreliable services, sent again */
};

struct talk_flow {
	struct peer *p; /* its CQ, its memory */
	int sock;
	struct softhca_qp *tx;	 /* posts requests */
	struct softhca_qp *rx;	 /* takes receives, unless there is an SRQ */
	struct softhca_srq *srq; /* or NULL */
	uint32_t remote_srqn;	 /* XRC */
	uint32_t mine, others;	 /* numbers that tell the data of the ends apart */
	uint32_t serial;	 /* of the attempt under way, the same at both ends */
	unsigned int posted;	 /* receives */
	struct talk_tally *tally;
};

/* Where an RDMA operation goes: the same offset at both ends, and what the peer calls it. */
struct talk_place {
	uint32_t at;
	uint64_t addr;
	uint32_t rkey;
};

/* Quarters of a peer's memory: goes out, comes in, reached by the other end, and so by windows. */
#define TALK_QUARTER (PEER_BYTES / 4)
#define TALK_OUT 0u
#define TALK_IN TALK_QUARTER
#define TALK_REACHED (2 * TALK_QUARTER)
#define TALK_WINDOW (3 * TALK_QUARTER)
#define TALK_WAIT_S 30.0

int talk_failed(const char *what, int err);
/* Both ends' bytes to each other. */
int talk_swap(int sock, const void *mine, void *others, size_t bytes);
/* 1: both say so; 0: one does not. */
int talk_agree(int sock, bool yes);

/* Every operation of the service of its QP, once each way. */
int talk_ops(struct talk_flow *f);

/*
 * One of them. SEND_INV: the other's key that it ends, and the own that the other's ends. place:
 * where it goes, NULL for the quarter it has.
 */
int talk_send(struct talk_flow *f, enum talk_op op, uint32_t invalidate, uint32_t invalidated);
int talk_write(struct talk_flow *f, enum talk_op op, const struct talk_place *place);
int talk_read(struct talk_flow *f, enum talk_op op, const struct talk_place *place);
/* Post one request without more ado, as the flow's service wants it addressed. */
int talk_post(const struct talk_flow *f, struct softhca_send_wr *wr);
/* Its completion: a status, or negative errno. */
int talk_done(const struct talk_flow *f);

/*
 * Memory windows (RC, UC): both types, in rounds on a pair of QPs of their own, which accesses that
 * must be refused take to ERR.
 */
struct talk_windows {
	struct talk_flow f;
	struct softhca_mr *mr; /* grants nobody anything, but windows may be bound to it */
	struct softhca_mw *one, *two;
	bool first; /* whose window is tried first */
	uint32_t other_qpn, lives;
};

int talk_windows_open(struct talk_windows *w, const struct talk_flow *like, bool first);
int talk_windows_round(struct talk_windows *w, unsigned int round);
void talk_windows_close(struct talk_windows *w);

/* XRC: an initiator, a target and an SRQ at each end; the target serves the other's initiator. */
struct talk_xrc {
	struct talk_flow f;
	struct softhca_xrcd *xrcd;
};

int talk_xrc_open(struct talk_xrc *x, struct peer *p, int sock, struct talk_tally *tally);
void talk_xrc_close(struct talk_xrc *x);

#endif
