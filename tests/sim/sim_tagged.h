/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_SIM_TAGGED_H
#define TESTS_SIM_SIM_TAGGED_H

/*
 * Self-describing messages: a tag with flow, serial number and length, and a pattern derived from
 * them. So arriving messages can be checked without predicting their receives: for unreliable
 * services, which may lose messages, and for shared receive queues of many QPs. A table in
 * sim_tagged.c has the guarantees of each service.
 *
 * A flow is a QP on each side (XRC: an initiator and a target on each side) and its two directions.
 * One CQ, one region and, if requested, one SRQ per side serve all flows.
 */

#include "sim.h"

enum sim_service {
	SIM_RC,
	SIM_UC,
	SIM_UD,
	SIM_XRC,
	SIM_SERVICES
};

extern const char *const sim_service_names[SIM_SERVICES];

#define SIM_TAGGED_FLOWS 32u
#define SIM_TAGGED_SLOTS 256u /* per side: sends, and receives of each flow or of the SRQ */
#define SIM_TAGGED_MAX 8192u  /* bytes of a message */

/* 0 selects the default in brackets. */
struct sim_tagged_attr {
	enum sim_service service;
	enum sim_gid gid;
	uint32_t flows;	  /* [1] */
	bool srq;	  /* XRC always has one */
	uint32_t mtu;	  /* enum softhca_mtu [1024]; UD: of the port */
	uint32_t max_len; /* [3000]; UD: at most an MTU */
	uint32_t timeout; /* [8] */
	uint8_t sl, traffic_class, static_rate;
	uint32_t srq_limit;
	uint16_t pkey_index[2];
	uint32_t flow_label;
	bool loop; /* both ends are on side 0 */
	bool read; /* CQs with SIM_WC_LARGE, read by sim_read_cq() */
};

/* One direction of a flow. */
struct sim_tagged_dir {
	uint32_t sent, completed; /* messages posted, and known to be complete */
	uint32_t next;		  /* lowest serial number that may arrive next */
	uint32_t received, repeated, late;
};

struct sim_tagged {
	struct sim *s;
	struct sim_tagged_attr attr;
	struct sim_tagged_end {
		struct softhca_cq *cq;
		struct softhca_srq *srq;
		struct softhca_xrcd *xrcd;
		struct softhca_mr *mr;
		uint8_t *mem;
		uint32_t srqn;
		uint32_t free_recv[SIM_TAGGED_SLOTS], free_recvs;
		uint32_t free_send[SIM_TAGGED_SLOTS], free_sends;
		struct softhca_qp *qp[SIM_TAGGED_FLOWS]; /* for sending */
		/* for receiving; different ones for XRC */
		struct softhca_qp *tgt[SIM_TAGGED_FLOWS];
		struct softhca_ah *ah;
		uint32_t posted[SIM_TAGGED_FLOWS]; /* receives in the RQ */
	} end[2];
	struct sim_tagged_dir dir[SIM_TAGGED_FLOWS][2]; /* by sending side */
	bool lossless;	 /* every message must arrive; UD and UC: a clean link, in order */
	bool duplicates; /* the link duplicates frames */
	/* messages were abandoned in the middle: their receives are used by others */
	bool cut;
};

/* The side of an end. */
static inline struct sim_side *
sim_tagged_side(const struct sim_tagged *t, unsigned int end)
{
	return &t->s->side[t->attr.loop ? 0 : end];
}

struct sim_tagged *sim_tagged_open(struct sim *s, const struct sim_tagged_attr *attr);
void sim_tagged_close(struct sim_tagged *t);
/* The same after sim_restart() of side `lost`, whose objects were destroyed with their client. */
void sim_tagged_abandon(struct sim_tagged *t, unsigned int lost);

/* Post receives in all free slots. */
void sim_tagged_fill(struct sim_tagged *t);
/* Post a SEND of random length; false: no slot is free, or the queue is full. */
bool sim_tagged_send(struct sim_tagged *t, unsigned int side, uint32_t flow);
/* Poll both CQs once and check completions; returns their number. */
unsigned int sim_tagged_reap(struct sim_tagged *t);
/* Run until every send has completed and nothing is in flight; then check for missing messages. */
void sim_tagged_finish(struct sim_tagged *t);

#endif
