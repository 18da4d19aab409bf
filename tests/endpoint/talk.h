/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_ENDPOINT_TALK_H
#define TESTS_ENDPOINT_TALK_H

/*
 * Parts of talk, the conversation of two processes at two daemons. A flow is an end's objects for
 * requests and receives; both ends execute the same steps on it, synchronized over a socket.
 * Functions return 0 or a negative errno and print the reason on standard error.
 *
 * Each attempt at an operation has a serial number that is part of its data, so that late data of
 * an abandoned attempt (unreliable services may lose a message) is not taken for that of the next.
 */

#include "ipc_rig.h"

/* Operations counted after verification, at either end; the names are printed. */
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
	unsigned int lost; /* messages of unreliable services that were repeated */
};

struct talk_flow {
	struct peer *p; /* provides CQ and memory */
	int sock;
	struct softhca_qp *tx;	 /* posts requests */
	struct softhca_qp *rx;	 /* takes receives, unless there is an SRQ */
	struct softhca_srq *srq; /* or NULL */
	uint32_t remote_srqn;	 /* XRC */
	uint32_t mine, others;	 /* distinguish the data of the two ends */
	uint32_t serial;	 /* of the current attempt, equal at both ends */
	unsigned int posted;	 /* receives */
	struct talk_tally *tally;
};

/*
 * Target of an RDMA operation: the offset is the same at both ends; address and rkey are the
 * peer's.
 */
struct talk_place {
	uint32_t at;
	uint64_t addr;
	uint32_t rkey;
};

/* Quarters of a peer's memory: sent, received, target of the other end, target through windows. */
#define TALK_QUARTER (PEER_BYTES / 4)
#define TALK_OUT 0u
#define TALK_IN TALK_QUARTER
#define TALK_REACHED (2 * TALK_QUARTER)
#define TALK_WINDOW (3 * TALK_QUARTER)
#define TALK_WAIT_S RIG_TIMEOUT_S

int talk_failed(const char *what, int err);
/* Exchange bytes with the other end. */
int talk_swap(int sock, const void *mine, void *others, size_t bytes);
/* 1: both ends say yes; 0: one does not. */
int talk_agree(int sock, bool yes);

/* Execute every operation of the service, once in each direction. */
int talk_ops(struct talk_flow *f);

/*
 * Execute one operation. SEND_INV: the peer's key to invalidate, and the own key that the peer
 * invalidates. place: the target, NULL for the default quarter.
 */
int talk_send(struct talk_flow *f, enum talk_op op, uint32_t invalidate, uint32_t invalidated);
int talk_write(struct talk_flow *f, enum talk_op op, const struct talk_place *place);
int talk_read(struct talk_flow *f, enum talk_op op, const struct talk_place *place);
/* Post one request with the addressing of the flow's service. */
int talk_post(const struct talk_flow *f, struct softhca_send_wr *wr);
/* Wait for its completion; a status or a negative errno. */
int talk_done(const struct talk_flow *f);

/*
 * Memory windows (RC, UC) of both types, used in rounds on QPs of their own, because refused
 * accesses move these to ERR.
 */
struct talk_windows {
	struct talk_flow f;
	struct softhca_mr *mr; /* grants no rights itself, but windows may be bound to it */
	struct softhca_mw *one, *two;
	bool first; /* this end's window is tried first */
	uint32_t other_qpn, lives;
};

int talk_windows_open(struct talk_windows *w, const struct talk_flow *like, bool first);
int talk_windows_round(struct talk_windows *w, unsigned int round);
void talk_windows_close(struct talk_windows *w);

/* XRC: an initiator, a target and an SRQ at each end; the target serves the peer's initiator. */
struct talk_xrc {
	struct talk_flow f;
	struct softhca_xrcd *xrcd;
};

int talk_xrc_open(struct talk_xrc *x, struct peer *p, int sock, struct talk_tally *tally);
void talk_xrc_close(struct talk_xrc *x);

#endif
