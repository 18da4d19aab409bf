/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SIM_UB_PAIR_H
#define TESTS_SIM_UB_PAIR_H

/*
 * Two whole HCAs that speak UB with each other: programs' calls of libsofthca-urma above, the link
 * of the simulation below, and every stage between. Only the channels are made here, by calls of
 * the drivers, instead of by messages between the hosts.
 *
 * Each side has a Jetty with receives of its own, a JFR, a JFS, and one segment of memory, all of
 * which the other side has imported. Requests of side 0 are usual; the other way is the same.
 */

#include "sim_test.h"

#include "urma_impl.h"

#include "engine/impl.h"
#include "ub/ub_stage.h"

#define UB_PAIR_TPS 4u
#define UB_PAIR_MEM (8u << 20)
#define UB_PAIR_DEPTH 256u
#define UB_PAIR_INLINE 128u
#define UB_PAIR_SGES 16u	   /* as many as there may be */
#define UB_PAIR_SEND_TOKEN 0x5eedu /* of queues */
#define UB_PAIR_SEG_TOKEN 0xdeadbeefu
#define UB_PAIR_MS 1000000ull

/* Parts of a side's memory. */
#define UB_PAIR_FROM 0u		/* what is sent or written, and what peers read */
#define UB_PAIR_TO (2u << 20)	/* what peers write */
#define UB_PAIR_RECV (4u << 20) /* receives */
#define UB_PAIR_READ (6u << 20) /* results of Reads and atomics */
#define UB_PAIR_PART (2u << 20)

struct ub_pair;

/* Maker of the channels, instead of calls of the drivers; one to a peer, TP 1. */
struct ub_pair_maker {
	/* There are no programs yet; none any more. */
	void (*open)(struct ub_pair *p);
	void (*close)(struct ub_pair *p);
	/* As in struct urma_ctl. */
	int (*import_peer)(struct lib_context *ctx, const struct urma_ctl_peer *request,
			   uint32_t *number, uint32_t *tpg);
	int (*unimport_peer)(struct lib_context *ctx, uint32_t number);
};

/* 0 selects the default in brackets. */
struct ub_pair_config {
	struct sim_config sim;
	const struct ub_pair_maker *maker;
	unsigned int tps;   /* [1] in the group that both use */
	enum sim_gid gid;   /* [IPv4] */
	uint8_t mode, rule; /* [SACK, TIME] if both are 0 */
	bool go_back;	    /* mode DROP and rule NAK, which are both 0 */
	bool small_mtu;	    /* 1024 instead of 4096 */
	uint8_t flags;	    /* in addition to TAID and OFST */
	bool bare;	    /* without these */
	bool old_value_le;  /* as the choices of these names */
	bool silent;
	bool passive;	       /* side 1, until the first packet comes */
	uint32_t reorder;      /* us */
	uint32_t requests;     /* open at the peer [64] */
	uint8_t retries;       /* [7] */
	uint32_t rto_base;     /* us [automatic] */
	uint8_t min_rnr_timer; /* [the library's] */
	uint8_t rnr_retry;     /* [7] */
	uint8_t err_timeout;   /* [the library's] */
	bool for_ever;	       /* queues wait for answers */
	bool suspend;	       /* a failure suspends the queue */
	bool no_token;	       /* neither queues nor memory ask for a value */
};

struct ub_pair_side {
	struct hca *h;
	urma_context_t *ctx;
	urma_jfc_t *send_jfc, *recv_jfc;
	urma_jetty_t *jetty;
	urma_jfs_t *jfs;
	urma_jfr_t *jfr;
	uint8_t *mem;
	urma_target_seg_t *seg;
	/* of the peer */
	urma_target_jetty_t *to_jetty, *to_jfr;
	urma_target_seg_t *to_seg;
};

struct ub_pair {
	struct sim *s;
	struct ub_pair_config cfg;
	struct ub_pair_side side[2];
	struct sim_rng rng;
	bool strangers; /* clients may not use imports from now on */
};

#define UB_PAIR_EQ(p, left, right) \
	do { \
		uint64_t left_ = (uint64_t)(left), right_ = (uint64_t)(right); \
		sim_check((p)->s, left_ == right_, "line %d: %s is %#lx, not %s, %#lx", __LINE__, \
			  #left, (unsigned long)left_, #right, (unsigned long)right_); \
	} while (0)

void ub_pair_open(struct ub_pair *p, const struct ub_pair_config *cfg);
/* Wait until all is quiet, check that nothing is left, check sums, free everything. */
void ub_pair_close(struct ub_pair *p);

/* Ends of a TP; index 1 .. */
void ub_pair_open_tp(struct ub_pair *p, unsigned int side, uint32_t tpi);
void ub_pair_close_tp(struct ub_pair *p, unsigned int side, uint32_t tpi);
/* The group is those that live. */
void ub_pair_set_group(struct ub_pair *p, unsigned int side);
/* Whether a client of the side may use a group, as one that has imported the other side. */
void ub_pair_permit(struct ub_pair *p, unsigned int side, const struct softhca_context *client,
		    uint32_t group, bool may);
struct hca_tp *ub_pair_tp(struct ub_pair *p, unsigned int side, uint32_t tpi);

uint64_t ub_pair_counter(const struct ub_pair *p, unsigned int side, enum hca_counter c);
/* Packets that both sides have sent again, and their timeouts. */
uint64_t ub_pair_again(const struct ub_pair *p);
uint64_t ub_pair_timeouts(const struct ub_pair *p);

/* SGEs in a side's own memory, and in the peer's as imported. */
urma_sge_t ub_pair_local(struct ub_pair *p, unsigned int side, uint32_t at, uint32_t len);
urma_sge_t ub_pair_remote(struct ub_pair *p, unsigned int side, uint32_t at, uint32_t len);

/*
 * Requests of the side's Jetty, each with a completion. local, remote, from: offsets in the
 * memories. The immediate is the id.
 */
urma_jfs_wr_t ub_pair_request(struct ub_pair *p, unsigned int side, urma_opcode_t opcode,
			      uint64_t id);
void ub_pair_post(struct ub_pair *p, unsigned int side, urma_jfs_wr_t *wr);
void ub_pair_rw(struct ub_pair *p, unsigned int side, urma_opcode_t opcode, uint32_t local,
		uint32_t remote, uint32_t len, uint64_t id);
/* With HCA_UB_ODR_*, of execution. */
void ub_pair_ordered(struct ub_pair *p, unsigned int side, urma_opcode_t opcode, uint32_t local,
		     uint32_t remote, uint32_t len, uint32_t order, uint64_t id);
void ub_pair_send(struct ub_pair *p, unsigned int side, urma_target_jetty_t *to, uint32_t from,
		  uint32_t len, uint64_t id);
void ub_pair_atomic(struct ub_pair *p, unsigned int side, urma_opcode_t opcode, uint32_t local,
		    uint32_t remote, uint32_t len, uint64_t operand, uint64_t id);
/* A receive of the side's Jetty or JFR. */
void ub_pair_recv(struct ub_pair *p, unsigned int side, bool jfr, uint32_t at, uint32_t len,
		  uint64_t id);

/* The next completion; fails without one within max_ns. */
urma_cr_t ub_pair_next(struct ub_pair *p, urma_jfc_t *jfc, uint64_t max_ns);
/* The next completion of the send queues is that of this request. */
void ub_pair_done(struct ub_pair *p, unsigned int side, uint64_t id, urma_cr_status_t status);
/* The next receive is this, and successful. */
urma_cr_t ub_pair_received(struct ub_pair *p, unsigned int side, uint64_t id, uint32_t len);
/* No completion is there or comes. */
void ub_pair_nothing(struct ub_pair *p, uint64_t ns);

/* Bytes of side's memory equal those of the other one at `from`. */
void ub_pair_same_bytes(struct ub_pair *p, const uint8_t *have, const uint8_t *want, uint32_t len);
void ub_pair_same(struct ub_pair *p, unsigned int side, uint32_t at, uint32_t from, uint32_t len);

#define UB_PAIR_LONG 200001u /* bytes, of several segments */

/* A write of UB_PAIR_LONG bytes arrives: the Jetty and the channel work. */
void ub_pair_good_write(struct ub_pair *p, unsigned int side, uint64_t id);

#endif
