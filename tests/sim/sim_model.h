/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_MODEL_H
#define TESTS_SIM_MODEL_H

/*
 * The application and its simple model. A pair is a connected QP and a region of scattered pages on
 * each side. For every posted request the model predicts the bytes at both ends and the completion;
 * completions are checked when they arrive, and both regions completely (guard bytes included) at
 * the end of an epoch.
 *
 * Each operation has its own memory within an epoch, so repeated packets have no effect, and
 * neither has the order of different operations. Atomics are the exception: each side of a pair has
 * one counter that only the peer's atomics access, in order.
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
	bool xrc;  /* initiator and target QPs; receives from an XRC SRQ */
	bool srq;  /* RC: receives from an SRQ of the pair's own */
	bool read; /* CQs with SIM_WC_LARGE, read by sim_read_cq() */
};

struct sim_region {
	struct sim_scattered *memory;
	uint8_t *view;	 /* of the memory, as the application sees it: in order */
	uint8_t *shadow; /* expected contents when everything has completed */
	uint64_t va;	 /* address in work requests and for the peer */
	uint32_t len;
	uint32_t used; /* bytes assigned to operations of this epoch */
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
	unsigned int side; /* the side that posted it */
	uint32_t opcode;   /* enum softhca_wr_opcode; of a receive: of its message */
	bool is_recv, signalled, matched;
	uint32_t status;   /* expected, enum softhca_wc_status */
	uint32_t len;	   /* of the message */
	uint32_t byte_len; /* expected, if the wc has one */
	uint32_t imm;
	unsigned int nsge;
	struct sim_area local[SIM_MAX_SGE];
	struct sim_area remote; /* of RDMA */
	/* bits: 1: local, 2: remote memory must equal the shadow at completion */
	unsigned int checks;
	struct sim_op *peer; /* the receive that a SEND uses */
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
	struct softhca_qp *qp[2];  /* send requests */
	struct softhca_qp *tgt[2]; /* execute the peer's requests; different ones only for XRC */
	struct softhca_srq *srq[2];
	struct softhca_xrcd *xrcd[2];
	struct softhca_cq *cq[2];
	struct sim_region region[2];
	struct sim_fifo sq[2], rq[2];	   /* expected completions, in order */
	struct sim_fifo unmatched_send[2]; /* messages of side i without a receive */
	unsigned int posted[2];		   /* requests in the SQ, unsignalled ones included */
	bool unsignalled_last[2];
	bool hold_recvs; /* sim_post_missing() does nothing: the test posts receives itself */
	uint64_t next_id;
	uint64_t completions;
	uint64_t retired; /* bytes */
};

struct sim_model {
	struct sim_pair *pairs;
	unsigned int num_pairs;
	unsigned int serial;
	struct sim_rng rng;
	struct softhca_wc last_error; /* the last expected completion with an error */
};

/* A request to post. */
struct sim_req {
	uint32_t opcode; /* enum softhca_wr_opcode */
	uint32_t len;
	unsigned int nsge;	 /* 0: as many as len requires (0 or 1) */
	uint32_t flags;		 /* enum softhca_send_flags */
	const uint32_t *sge_len; /* nsge lengths with the sum len; NULL: random */
	bool no_recv;		 /* do not post its receive */
};

/* The model of a simulation; created by the first call. */
struct sim_model *sim_model(struct sim *s);

struct sim_pair *sim_pair_open(struct sim *s, const struct sim_pair_attr *attr);
/* Destroy QPs, CQs and regions, even with requests outstanding. */
void sim_pair_close(struct sim_pair *p);
/* The same after sim_restart() of side `lost`, whose objects were destroyed with their client. */
void sim_pair_abandon(struct sim_pair *p, unsigned int lost);

/*
 * Post a chain with one doorbell, after the receives it needs on the other side. 0; -ENOMEM: queue
 * or region are full, nothing was posted.
 */
int sim_post(struct sim_pair *p, unsigned int side, const struct sim_req *req, unsigned int n);
/* Post a receive of len bytes in nsge pieces. */
int sim_post_recv(struct sim_pair *p, unsigned int side, uint32_t len, unsigned int nsge);
/* Post receives on this side for messages without one, in order; -ENOMEM: not all were posted. */
int sim_post_missing(struct sim_pair *p, unsigned int side);
/*
 * Post a request made by the test, which must be signalled; only its completion is checked. Returns
 * the wr_id that was set.
 */
uint64_t sim_post_wr(struct sim_pair *p, unsigned int side, struct softhca_send_wr *wr,
		     uint32_t status);
void sim_post_recv_wr(struct sim_pair *p, unsigned int side, struct softhca_recv_wr *wr,
		      uint32_t status);
struct sim_req sim_random_req(struct sim_pair *p, uint32_t max_len);

/* Poll the CQs of all pairs once and check completions; returns their number. */
unsigned int sim_reap(struct sim *s);

/* Run until all requests of all pairs have completed; false after max_ns. */
bool sim_drain(struct sim *s, uint64_t max_ns);
/*
 * sim_drain(), compare both regions of all pairs with their shadows, and begin a new epoch. Fails
 * on errors.
 */
void sim_finish(struct sim *s, uint64_t max_ns);
bool sim_outstanding(struct sim_pair *p);

/*
 * Expect request wr_id to complete with that status and later ones to be flushed (also unsignalled
 * ones). arrived: the peer may have executed them. RQ: all are flushed, the first with
 * first_status.
 */
void sim_expect_sq_error(struct sim_pair *p, unsigned int side, uint64_t wr_id, uint32_t status,
			 bool arrived);
void sim_expect_rq_flush(struct sim_pair *p, unsigned int side, uint32_t first_status);
/* Bring the QPs of both sides through RESET to RTS; everything outstanding is forgotten. */
void sim_pair_reset(struct sim_pair *p);
void sim_connect(struct sim_pair *p, unsigned int side);

/* Addresses for requests made by the test */
struct sim_area sim_area(struct sim_pair *p, unsigned int side, uint32_t len);

#define SIM_S 1000000000ull

#endif
