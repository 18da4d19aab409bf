/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_DEVICE_UB_TARGET_TAT_RIG_H
#define TESTS_UNIT_DEVICE_UB_TARGET_TAT_RIG_H

/*
 * The target of UB's transactions alone: one TP whose peer is the test, segments, a Jetty with a
 * receive queue of 8 WQEs, a JFR of 8, and CQs that are an array. Requests enter as struct rig_req,
 * answers are taken from the TP's lane of responses.
 */

#include "../../engine/fixture.h"

#include "ub/target/ta_target.h"

#define RIG_TPI 1u
#define RIG_MTU 1024u
#define RIG_W 128u
#define RIG_REQUESTS 40u
#define RIG_OPS 48u
#define RIG_OWN_TPN 0x101u
#define RIG_RC 0x12345u

#define RIG_PD 3u
#define RIG_VA UINT64_C(0x100000) /* of every region; its length is RIG_LEN */
#define RIG_LEN 32768u

/* Memory keys. Their token rows are in tat_rig.c. */
#define RIG_KEY(index) (HCA_KEY_MAKE(0x55, index, 0x5a))
#define RIG_ID(index) HCA_KEY_TOKEN_ID(RIG_KEY(index))
enum {
	RIG_SEGMENT = 1, /* its value is RIG_VALUE */
	RIG_FREE,	 /* a segment that asks for none */
	RIG_VERBS,	 /* no segment */
	RIG_READ_ONLY,
	RIG_LOCAL, /* memory of receives */
	RIG_DYING, /* a segment being taken away */
	RIG_ODD,   /* a segment whose memory is not aligned as its addresses are */
	RIG_REGIONS
};
#define RIG_VALUE 0xdeadbeefu
#define RIG_SECOND 0x0badcafeu

#define RIG_QPI 1u
#define RIG_JETTY 0x1231u
#define RIG_JETTY_VALUE 0x600du
#define RIG_JETTY_CQ 3u
#define RIG_KNOWN 40u /* well-known number of the Jetty */
#define RIG_SRQI 1u
#define RIG_SRQN 0x5a5u
#define RIG_JFR (HCA_TC_JFR | RIG_SRQN)
#define RIG_JFR_CQ 5u
#define RIG_RNR 9u
#define RIG_RQ_LOG 3u
#define RIG_STRIDE_LOG 9u

/* One packet of a request. */
struct rig_req {
	uint8_t opcode;
	bool last;
	bool has_token;
	bool unreliable, ip6;
	bool fce, poison, e_bit;
	uint8_t rc_type, tc_type, ee; /* ee 0: normal */
	uint8_t ud_op;
	uint8_t seed; /* payload bytes are seed, seed + 1, ... */
	uint16_t tassn;
	uint32_t psn, tpmsn;
	uint32_t rc; /* 0: RIG_RC */
	uint32_t len;
	const uint8_t *data; /* payload instead of a pattern */
	uint64_t address;
	uint32_t token_id, token, length;
	uint32_t offset; /* KiB */
	uint32_t tc;
	uint64_t immediate;
	uint32_t imm_token, total;
	uint64_t notify, notify_data;
	uint32_t notify_id, notify_token;
	const uint8_t *enables;
	uint32_t generation; /* added to the TP's */
	uint32_t cut;	     /* bytes missing at the end */
};

struct rig {
	struct fx *fx;
	struct hca_pipe *h;
	struct hca_ub *ub;
	struct hca_tp *tp;
	struct hca_qp *qp;
	struct hca_srq *srq;
	uint8_t *mem; /* RIG_LEN and 8 more */
	struct hca_rq_record *rq, *jfr;
	uint32_t srq_slot;
	struct rte_mempool *pool;
	struct hca_cqe_ub cqe[64];
	uint32_t cqi[64];
	unsigned int cqes, published;
	bool solicited, cq_full;
	uint64_t now;
	uint32_t seen; /* position in the lane */
};

int rig_setup(void **state);
/* Asserts that nothing is left: mbufs, operations, messages, and the sums of counters. */
int rig_teardown(void **state);

struct rte_mbuf *rig_packet(struct rig *r, const struct rig_req *p);
/* Process one packet; no answer is sent yet. */
void rig_give(struct rig *r, struct rig_req p);
/* The same of a burst of at most 64. */
void rig_give_burst(struct rig *r, const struct rig_req *p, unsigned int n);
void rig_poll(struct rig *r);
/* Process one packet and poll. */
void rig_feed(struct rig *r, struct rig_req p);

/* The next answer in the lane, which there must be. */
const struct hca_ta_op *rig_answer(struct rig *r);
/* Asserts that it is the only one, with this opcode, byte 4 of the ATAH, and TASSN. */
const struct hca_ta_op *rig_expect(struct rig *r, uint8_t opcode, uint8_t answer, uint16_t tassn);
void rig_expect_taack(struct rig *r, uint8_t answer, uint16_t tassn);
unsigned int rig_answers(const struct rig *r);
/* As TPS does when all packets in the lane are acknowledged. */
void rig_release(struct rig *r);

/* Post a receive of n segments; returns its offset in the queue. */
uint32_t rig_post(struct rig *r, const struct hca_sge *sge, unsigned int n);
uint32_t rig_post_one(struct rig *r, uint32_t off, uint32_t len);
uint32_t rig_jfr_post_one(struct rig *r, uint32_t off, uint32_t len);
bool rig_holds(const struct rig *r, uint32_t off, uint32_t len, uint8_t seed);
bool rig_event(const struct rig *r, uint8_t type, uint32_t index);

#define RIG_COUNTER(r, name) FX_COUNTER((r)->fx, TAT, name)
#define RIG_OK 0u
#define RIG_UNSUPPORTED (HCA_UB_RSP_ERROR << 5 | HCA_UB_ERROR_UNSUPPORTED)
#define RIG_ABORT (HCA_UB_RSP_ERROR << 5 | HCA_UB_ERROR_ABORT)
#define RIG_NOT_READY(timer) (HCA_UB_RSP_RNR << 5 | (timer))

/* A write of one packet; PSN, TPMSN and TASSN are n. */
static inline struct rig_req
rig_write(uint32_t n, uint32_t off, uint32_t len, uint8_t seed)
{
	return (struct rig_req){
		.opcode = HCA_UB_TA_WRITE,
		.last = true,
		.has_token = true,
		.psn = n,
		.tpmsn = n,
		.tassn = (uint16_t)n,
		.address = RIG_VA + off,
		.token_id = RIG_ID(RIG_SEGMENT),
		.token = RIG_VALUE,
		.length = len,
		.len = len,
		.seed = seed,
	};
}

/* Packet i of a write or send of `packets` full ones; its first PSN is psn. */
static inline struct rig_req
rig_part(struct rig_req p, uint32_t psn, uint32_t i, uint32_t packets)
{
	p.psn = hca_tp_psn(psn, i);
	p.last = i + 1 == packets;
	p.length = packets * RIG_MTU;
	p.address += (uint64_t)i * RIG_MTU;
	p.offset = i * RIG_MTU / HCA_UB_OFFSET_UNIT;
	p.len = RIG_MTU;
	p.seed = (uint8_t)(p.seed + i * 7);
	return p;
}

static inline struct rig_req
rig_send(uint32_t n, uint32_t len, uint8_t seed)
{
	return (struct rig_req){
		.opcode = HCA_UB_TA_SEND,
		.last = true,
		.has_token = true,
		.psn = n,
		.tpmsn = n,
		.tassn = (uint16_t)n,
		.token = RIG_JETTY_VALUE,
		.tc = RIG_JETTY,
		.len = len,
		.seed = seed,
	};
}

static inline struct rig_req
rig_read(uint32_t n, uint32_t off, uint32_t len)
{
	struct rig_req p = rig_write(n, off, 0, 0);

	p.opcode = HCA_UB_TA_READ;
	p.length = len;
	return p;
}

/* data: both operands. */
static inline struct rig_req
rig_atomic(uint32_t n, uint8_t opcode, uint32_t off, uint32_t len, const void *data)
{
	struct rig_req p = rig_write(n, off, len, 0);

	p.opcode = opcode;
	p.len = 2 * len;
	p.data = data;
	return p;
}

#endif
