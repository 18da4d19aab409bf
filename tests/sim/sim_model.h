/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_MODEL_H
#define TESTS_SIM_MODEL_H

/*
 * The application and its plain model. A pair is a QP on each side, connected, with a region of
 * memory on each side whose pages lie scattered. For every request posted the model predicts the
 * bytes at both ends and every completion; what comes is compared at once, the whole of both
 * regions (guard bytes too) at the end of an epoch.
 *
 * An operation has memory of its own within an epoch, so repeated packets change nothing and the
 * order of effects of different operations does not matter. Except atomics: each pair has one
 * counter per side that only its peer's atomics touch, in order.
 */

#include "sim.h"

/* 0 selects the default in brackets. */
struct sim_pair_attr {
	uint32_t mtu;				 /* enum softhca_mtu [1024] */
	uint32_t sq_depth, rq_depth;		 /* [64] */
	uint32_t max_sge;			 /* [4] */
	uint32_t max_inline;			 /* [0] */
	uint32_t region;			 /* bytes on each side [1 MiB] */
	uint32_t timeout;			 /* 4.096 us << n [8] */
	uint32_t retry_cnt;			 /* [7] */
	uint32_t rnr_retry;			 /* [7] */
	uint32_t min_rnr_timer;			 /* [1: 10 us] */
	uint32_t max_rd_atomic;			 /* [4] */
	uint32_t psn[2];			 /* first PSN each side sends */
	bool no_retry, no_rnr_retry, no_timeout; /* really 0 */
	enum sim_gid gid;
	uint8_t static_rate;
	bool xrc; /* initiator and target QPs; receives from an XRC SRQ */
	bool srq; /* RC: receives from an SRQ of the pair's own */
};

struct sim_region {
	uint8_t *view;	 /* as the application sees it: in order */
	uint8_t *pages;	 /* the same memory with its pages in another order */
	uint8_t *shadow; /* what must be there when everything has completed */
	uint64_t va;	 /* what work requests and the peer name */
	size_t mapped;	 /* bytes of view and pages */
	uint32_t len;
	uint32_t used; /* given to operations of this epoch */
	struct softhca_mr *mr;
};

struct sim_area {
	uint32_t off, len;
};

#define SIM_MAX_SGE 16

/* One request, send or receive. */
struct sim_op {
	struct sim_op *next;
	uint64_t wr_id;
	unsigned int side; /* that posted it */
	uint32_t opcode;   /* enum softhca_wr_opcode; receives: of what it is to receive */
	bool is_recv, signalled, matched;
	uint32_t status;   /* expected, enum softhca_wc_status */
	uint32_t len;	   /* message */
	uint32_t byte_len; /* expected, where wc has one */
	uint32_t imm;
	unsigned int nsge;
	struct sim_area local[SIM_MAX_SGE];
	struct sim_area remote; /* of RDMA */
	unsigned int checks;	/* bits: 1 local, 2 remote must be as in the shadow at completion */
	struct sim_op *peer;	/* the receive a SEND goes to */
};

struct sim_fifo {
	struct sim_op *head, **tail;
	unsigned int n;
};

struct sim_pair {
	struct sim_pair *next;
	struct sim *s;
	unsigned int index;
	struct sim_pair_attr attr;
	struct softhca_qp *qp[2];  /* requests */
	struct softhca_qp *tgt[2]; /* executes the peer's; the same but for XRC */
	struct softhca_srq *srq[2];
	struct softhca_xrcd *xrcd[2];
	struct softhca_cq *cq[2];
	struct sim_region region[2];
	struct sim_fifo sq[2], rq[2]; /* expected completions, in order */
	struct sim_fifo
		unmatched_send[2]; /* messages sent by side i that no receive was there for */
	unsigned int posted[2];	   /* requests the SQ holds, unsignalled included */
	bool unsignalled_last[2];
	bool hold_recvs; /* sim_post_missing() does nothing: the test posts them itself */
	uint64_t next_id;
	uint64_t completions;
	uint64_t retired; /* bytes */
};

struct sim_model {
	struct sim_pair *pairs;
	unsigned int num_pairs;
	unsigned int serial;
	struct sim_rng rng;
	struct softhca_wc last_error; /* the last completion with an error that was expected */
};

/* What to post. */
struct sim_req {
	uint32_t opcode; /* enum softhca_wr_opcode */
	uint32_t len;
	unsigned int nsge;	 /* 0: as many as len needs (0 or 1) */
	uint32_t flags;		 /* enum softhca_send_flags */
	const uint32_t *sge_len; /* nsge lengths whose sum is len; NULL: at random */
	bool no_recv;		 /* do not post the receive it needs */
};

/* Made at the first call. */
struct sim_model *sim_model(struct sim *s);

struct sim_pair *sim_pair_open(struct sim *s, const struct sim_pair_attr *attr);
/* Destroys QPs, CQs and regions. The QPs may be busy. */
void sim_pair_close(struct sim_pair *p);
/* The same after sim_restart() of a side: its objects went with their client. */
void sim_pair_abandon(struct sim_pair *p, unsigned int lost);

/*
 * One chain, one doorbell. Receives that the requests need are posted first on the other side.
 * 0: done, -ENOMEM: queue or region full, nothing was posted.
 */
int sim_post(struct sim_pair *p, unsigned int side, const struct sim_req *req, unsigned int n);
/* A receive of len bytes in nsge pieces. */
int sim_post_recv(struct sim_pair *p, unsigned int side, uint32_t len, unsigned int nsge);
/* Receives on this side for messages that found none, in their order; -ENOMEM: not all. */
int sim_post_missing(struct sim_pair *p, unsigned int side);
/*
 * Requests made by hand, always signalled by the caller, of which only the completion is judged.
 * wr_id is set and returned.
 */
uint64_t sim_post_wr(struct sim_pair *p, unsigned int side, struct softhca_send_wr *wr,
		     uint32_t status);
void sim_post_recv_wr(struct sim_pair *p, unsigned int side, struct softhca_recv_wr *wr,
		      uint32_t status);
struct sim_req sim_random_req(struct sim_pair *p, uint32_t max_len);

/* Poll the CQs of all pairs once and judge what comes. Returns the number of completions. */
unsigned int sim_reap(struct sim *s);

/* Run until every request of all pairs has completed; false after max_ns. */
bool sim_drain(struct sim *s, uint64_t max_ns);
/* sim_drain() or fail; then compare both regions of all pairs with their shadows; new epoch. */
void sim_finish(struct sim *s, uint64_t max_ns);
bool sim_outstanding(struct sim_pair *p);

/*
 * Request wr_id completes with that status, those behind it (also unsignalled) are flushed.
 * arrived: the peer may have executed them. For RQs: all flushed, the first with first_status.
 */
void sim_expect_sq_error(struct sim_pair *p, unsigned int side, uint64_t wr_id, uint32_t status,
			 bool arrived);
void sim_expect_rq_flush(struct sim_pair *p, unsigned int side, uint32_t first_status);
/* QP back through RESET to RTS on both sides; everything outstanding is forgotten. */
void sim_pair_reset(struct sim_pair *p);
void sim_connect(struct sim_pair *p, unsigned int side);

/* Addresses for hand-made requests */
struct sim_area sim_area(struct sim_pair *p, unsigned int side, uint32_t len);

#define SIM_S 1000000000ull

#endif
