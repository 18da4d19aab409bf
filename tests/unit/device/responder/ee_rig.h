/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_DEVICE_RESPONDER_EE_RIG_H
#define TESTS_UNIT_DEVICE_RESPONDER_EE_RIG_H

/*
 * One execution engine with one QP (index RIG_QPI), memory regions, a receive queue of 8 WQEs and a
 * CQ that is an array. Requests enter as struct rig_packet, responses leave as struct hca_txd.
 */

#include "../engine/fixture.h"

#include "responder/ee.h"

#define RIG_QPI 1u
#define RIG_MTU 256u
#define RIG_PD 3u
#define RIG_MAX_RD 4u
#define RIG_VA 0x100000u /* start of every region; its length is RIG_LEN */
#define RIG_LEN 16384u
#define RIG_RQ_LOG 3u
#define RIG_STRIDE_LOG 9u

#define RIG_SRQS 3u
#define RIG_SRQ_LOG 3u
#define RIG_SRQ_STRIDE_LOG 7u
#define RIG_SRQ_STEP 3u
#define RIG_SRQN(i) (0x5a5a00u | (i))
#define RIG_XRCD 0x77u
#define RIG_XRC_CQ 5u

/* Memory keys; all but ODD refer to rig.mem. */
#define RIG_KEY_ALL 0x15au
#define RIG_KEY_NONE 0x25au    /* no rights */
#define RIG_KEY_FOREIGN 0x35au /* another protection domain */
#define RIG_KEY_DEAD 0x45au    /* being invalidated */
#define RIG_KEY_ODD 0x55au     /* CPU address = va + 4 modulo 8 */
#define RIG_KEY_STALE 0x15bu   /* right index, wrong tag */

struct rig_packet {
	uint8_t opcode;
	uint32_t psn;
	uint32_t len; /* payload bytes; their values are seed, seed + 1, ... */
	uint8_t seed;
	uint8_t flags; /* HCA_RXD_* */
	uint64_t va;   /* of RETH or AtomicETH */
	uint32_t rkey, dma_len;
	uint32_t imm; /* ImmDt or IETH, in wire order */
	uint32_t feth;
	uint64_t swap_add, compare;
	uint32_t generation; /* added to the QP's */
	uint32_t srqn;	     /* XRCETH */
	uint32_t src_qpn;    /* DETH */
	uint16_t vlan;	     /* tag, 0: none */
	bool ip6;
};

/* A shared receive queue of 8 WQEs of 128 bytes; posted ones are RIG_SRQ_STEP slots apart. */
struct rig_srq {
	struct hca_srq *s;
	struct hca_rq_record *record;
	uint32_t slot; /* of the next WQE to post */
};

struct rig {
	struct fx *fx;
	struct hca_pipe *h;
	struct hca_qp *qp;
	uint8_t *mem; /* RIG_LEN bytes and 8 more */
	struct hca_rq_record *record;
	struct rig_srq srq[RIG_SRQS];
	struct rte_mempool *rx_pool;
	struct hca_cqe cqe[128];
	uint32_t cqi[128]; /* CQ of each CQE */
	unsigned int cqes, published;
	bool cq_full;
	bool solicited;
	uint16_t vlan; /* of the last datagram that had a tag, or was sent to QPN 1 */
	bool told_mac; /* that one's source, in smac */
	uint8_t smac[6];
	uint64_t now;
	uint8_t guard[8]; /* bytes after the payload in the mbuf */
};

int rig_setup(void **state);
int rig_teardown(void **state);

/* Process one burst. */
void rig_burst(struct rig *r, const struct rig_packet *p, unsigned int n);
/* Process one packet, then poll once. */
void rig_feed(struct rig *r, struct rig_packet p);
void rig_poll(struct rig *r);

/* Number of responses not looked at yet. */
unsigned int rig_responses(struct rig *r);
struct hca_txd *rig_response(struct rig *r, unsigned int i);
void rig_forget_responses(struct rig *r);

/*
 * Asserts that there is exactly one response: an ACK, or a NAK with this syndrome, at psn. Removes
 * it.
 */
void rig_expect_ack(struct rig *r, uint8_t syndrome, uint32_t psn);
/* The same for a fatal NAK: the QP is in ERR. event: HCA_EVENT_*, 0: none. */
void rig_expect_fatal(struct rig *r, uint8_t nak, uint32_t psn, uint8_t event);
void rig_expect_silence(struct rig *r);
/* Response i is that of an ATOMIC with this result. */
void rig_expect_atomic(struct rig *r, unsigned int i, uint32_t psn, uint64_t result);
/* Response i is that of an ATOMIC WRITE or FLUSH: a READ response without data. */
void rig_expect_confirmed(struct rig *r, unsigned int i, uint32_t psn, uint32_t msn);
bool rig_event(const struct rig *r, uint8_t type);

/* Post a receive of n SGEs. */
void rig_post(struct rig *r, const struct hca_sge *sge, unsigned int n);
void rig_post_one(struct rig *r, uint32_t off, uint32_t len);
/* Whether memory at off holds the payload of seed, len bytes. */
bool rig_holds(const struct rig *r, uint32_t off, uint32_t len, uint8_t seed);

/* Change only the service of the QP. */
void rig_service(struct rig *r, uint8_t service);
/* Set up SRQ i, with keys in pd; the QP receives from it. */
void rig_share(struct rig *r, unsigned int i, uint32_t pd);
/* The same for XRC QPs of RIG_XRCD; completions go to RIG_XRC_CQ. */
void rig_share_xrc(struct rig *r, unsigned int i, uint32_t pd);
/* Returns the byte offset of the WQE in the SRQ. */
uint32_t rig_srq_post(struct rig *r, unsigned int i, const struct hca_sge *sge, unsigned int n);
uint32_t rig_srq_post_one(struct rig *r, unsigned int i, uint32_t off, uint32_t len);
/* Byte offset of the n-th WQE ever posted. */
uint32_t rig_srq_offset(unsigned int n);
/* Number of events of this type about this object. */
unsigned int rig_events(const struct rig *r, uint8_t type, uint32_t index);

#define RIG_ACK (HCA_AETH_ACK | HCA_AETH_CREDITS_NONE)
#define RIG_COUNTER(r, name) FX_COUNTER((r)->fx, EE, name)

static inline struct rig_packet
rig_write(uint32_t psn, uint32_t off, uint32_t len, uint8_t seed)
{
	return (struct rig_packet){
		.opcode = HCA_BTH_RC_WRITE_ONLY,
		.psn = psn,
		.len = len,
		.seed = seed,
		.flags = HCA_RXD_ACKREQ,
		.va = RIG_VA + off,
		.rkey = RIG_KEY_ALL,
		.dma_len = len,
	};
}

static inline struct rig_packet
rig_send(uint8_t opcode, uint32_t psn, uint32_t len, uint8_t seed)
{
	return (struct rig_packet){.opcode = opcode,
				   .psn = psn,
				   .len = len,
				   .seed = seed,
				   .flags = HCA_RXD_ACKREQ};
}

static inline struct rig_packet
rig_read(uint32_t psn, uint32_t off, uint32_t len)
{
	return (struct rig_packet){
		.opcode = HCA_BTH_RC_READ_REQ,
		.psn = psn,
		.va = RIG_VA + off,
		.rkey = RIG_KEY_ALL,
		.dma_len = len,
	};
}

static inline struct rig_packet
rig_add(uint32_t psn, uint32_t off, uint64_t add)
{
	return (struct rig_packet){
		.opcode = HCA_BTH_RC_FETCH_ADD,
		.psn = psn,
		.va = RIG_VA + off,
		.rkey = RIG_KEY_ALL,
		.swap_add = add,
	};
}

static inline struct rig_packet
rig_atomic_write(uint32_t psn, uint32_t off, uint8_t seed)
{
	return (struct rig_packet){
		.opcode = HCA_BTH_RC_ATOMIC_WRITE,
		.psn = psn,
		.len = 8,
		.seed = seed,
		.va = RIG_VA + off,
		.rkey = RIG_KEY_ALL,
		.dma_len = 8,
	};
}

/* len: of the range */
static inline struct rig_packet
rig_flush(uint32_t psn, uint32_t off, uint32_t len, uint32_t feth)
{
	return (struct rig_packet){
		.opcode = HCA_BTH_RC_FLUSH,
		.psn = psn,
		.va = RIG_VA + off,
		.rkey = RIG_KEY_ALL,
		.dma_len = len,
		.feth = feth,
	};
}

#endif
