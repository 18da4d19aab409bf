/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_DEVICE_REQUESTER_REQ_RIG_H
#define TESTS_UNIT_DEVICE_REQUESTER_REQ_RIG_H

/*
 * The requester alone: req_tx, req_rx and timer of one HCA on the fixture. The test acts as parser
 * (rig_post), encap (rig_send takes the descriptors) and peer (rig_ack, rig_response); completions
 * go to a real CQ, events to the fixture.
 */

#include "../engine/fixture.h"

#include "abi_cqe.h"
#include "abi_ctx.h"
#include "abi_roce.h"
#include "abi_wqe.h"
#include "engine/pkt.h"
#include "requester/req_rx.h"
#include "requester/req_tx.h"
#include "engine/timer.h"

#define RIG_QPI 3u
#define RIG_CQ 5u
#define RIG_CQES 512u
#define RIG_CQS 32u /* and as many QPs; the tests give most of them their state */
#define RIG_PD 9u
#define RIG_KEY 0x00000112u    /* index 1: all rights */
#define RIG_KEY_RO 0x00000213u /* index 2: no local write */
#define RIG_VA 0x10000u
#define RIG_LEN 65536u
#define RIG_MTU_LOG 8u
#define RIG_MTU (1u << RIG_MTU_LOG)
#define RIG_WINDOW 64u
#define RIG_PSN 0xfffff0u /* wraps around in every longer test */
#define RIG_RKEY 0x777u
#define RIG_RADDR 0x5000000000ull
#define RIG_STRIDE_LOG 6u
#define RIG_TIMEOUT 4u /* 65.5 us */
#define RIG_TIMEOUT_NS HCA_ACK_TIMEOUT_NS(RIG_TIMEOUT)

struct rig {
	struct fx *fx;
	struct hca_pipe *h;
	struct hca_qp *qp; /* of RIG_QPI; the functions below work for another if a test sets it */
	uint8_t *mem;
	struct rte_mempool *rx_pool;
	uint64_t now;
	struct hca_txd txd[256]; /* of the last rig_send() */
	unsigned int n;
	struct hca_cqe *cqe;	       /* memory of the CQ, RIG_CQES entries */
	struct hca_cqe *cqes[RIG_CQS]; /* of each CQ, NULL: not there */
	struct rte_mbuf *queued[64];   /* for the next rig_deliver() */
	unsigned int n_queued;
	uint32_t posted;
	uint32_t age; /* generations that packets lag behind the QP */
};

/* PSN of the n-th packet of the QP. */
static inline uint32_t
rig_psn(uint32_t n)
{
	return (RIG_PSN + n) & HCA_PSN_MASK;
}

/* true: the CQ may have several writers; false: only req_rx writes it. */
extern bool rig_shared_cq;

int rig_setup(void **state);
int rig_teardown(void **state);

/* Further queues; the CQ has `cqes` entries, a power of two. rig_teardown() frees them. */
struct hca_qp *rig_make_qp(struct rig *r, uint32_t qpi, uint32_t cqn);
void rig_make_cq(struct rig *r, uint32_t cqn, uint32_t cqes);

/* Post a request: flags HCA_REC_*, one SGE at RIG_VA unless changed before the next rig_send(). */
struct hca_record *rig_post(struct rig *r, uint8_t op, uint32_t len, uint8_t flags);
/* The same with a full record of nsge segments of len / nsge bytes each, the rest in the last. */
struct hca_record_full *rig_post_full(struct rig *r, uint8_t op, uint32_t len, uint8_t flags,
				      uint8_t nsge);

/*
 * Poll req_tx until it sends no more, at most `polls` times; the descriptors are in r->txd,
 * finished by encap.
 */
unsigned int rig_send(struct rig *r, unsigned int polls);
/* Poll req_rx and timer, advance the time by ns, and poll them again. */
void rig_pass(struct rig *r, uint64_t ns);

void rig_ack(struct rig *r, uint32_t psn, uint8_t syndrome);
/* The same later: all packets queued are one burst. */
void rig_queue_ack(struct rig *r, uint32_t psn, uint8_t syndrome);
void rig_deliver(struct rig *r);
void rig_response(struct rig *r, uint8_t opcode, uint32_t psn, uint32_t len, uint8_t fill);
void rig_atomic(struct rig *r, uint32_t psn, uint64_t value);

unsigned int rig_cqes(const struct rig *r);
uint32_t rig_tail(const struct rig *r);
uint32_t rig_una(const struct rig *r);
uint32_t rig_state(const struct rig *r);
#define RIG_COUNTER(r, STAGE, name) FX_COUNTER((r)->fx, STAGE, name)

/* Asserts that completion i is a success of request `wqe`; below: an error with this syndrome. */
void rig_expect_ok(struct rig *r, unsigned int i, uint32_t wqe, uint8_t op, uint32_t len);
void rig_expect_error(struct rig *r, unsigned int i, uint32_t wqe, uint8_t syndrome);

#endif
