/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_URMA_FAKE_URMA_H
#define TESTS_UNIT_URMA_FAKE_URMA_H

/*
 * A context of URMA over the fake driver and device of the library (fake_ctl.h), and a driver of
 * Jettys that keeps the last request of each kind.
 */

#include "../lib/fake_ctl.h"
#include "urma_impl.h"

#define FAKE_TPG 5u
#define FAKE_JETTY 0x10003u /* the first one's number; the next has one more */
#define FAKE_SRQN 2u

struct fake_urma {
	struct urma_ctl_jetty jetty;
	struct urma_ctl_jfr jfr;
	struct urma_ctl_token token;
	struct urma_ctl_peer peer;
	uint32_t next_jetty, next_jfr;
	uint32_t state; /* of all Jettys */
	/* requests that the device has read and used, and queries until it has flushed all */
	uint16_t sent, received;
	uint32_t flush_in;
	bool early; /* it was told RESET before that */
	uint32_t threshold;
	uint8_t bound_eid[16];
	uint32_t bound_tc;
	uint32_t objects; /* Jettys, JFRs, peers */
	uint32_t eids;	  /* how often the address of a TP was asked for */
	int fail;	  /* error of the next call */
};

extern struct fake_urma fake_urma;
extern const struct urma_ctl fake_urma_ctl;

struct urma_rig {
	struct fake_ctl *ctl;
	struct softhca_context *lib;
	urma_context_t *ctx;
	urma_jfc_t *jfc;
	urma_jetty_t *jetty; /* 8 requests, 2 SGEs, 64 bytes inline; 4 receives of 2 SGEs */
	urma_target_seg_t *local, *remote, *open; /* open: imported, without a token value */
	urma_target_jetty_t *peer;
	uint8_t memory[4096];
};

#define RIG_TOKEN 0xdeadbeefu
#define RIG_REMOTE UINT64_C(0x7f0000001000) /* 64 KiB */
#define RIG_TOKEN_ID 0xabcdeu

void rig_open(struct urma_rig *r);
void rig_close(struct urma_rig *r);

static inline struct urma_queue *
rig_queue(const struct urma_rig *r)
{
	return (struct urma_queue *)r->jetty;
}

/* A WQE of the Jetty's send queue */
static inline uint8_t *
rig_wqe(const struct urma_rig *r, uint32_t index)
{
	return rig_queue(r)->sq.buf + ((size_t)index << rig_queue(r)->sq.log_stride);
}

/* CQE number n of the JFC, as the device writes it */
void rig_complete(struct urma_rig *r, uint32_t n, const struct hca_cqe_ub *cqe);

#endif
