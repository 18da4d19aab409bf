/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_OP_H
#define UB_OP_H

/*
 * Operations of UB's transaction layer: one request segment, one Read_response of any length, one
 * TAACK or one Atomic_response. An operation is complete in itself for headers; its payload is
 * wherever `source` says.
 *
 * Life: its owner (the initiator for requests, the target for responses) takes it from its pool,
 * fills it in, with `tps` and `encap` 0, and puts the reference into a lane of a TP. TPS, the TP
 * sender, sends it, perhaps several times. When all of its PSNs are acknowledged and encap has
 * finished its last descriptor, tx.lane[].done moves past it and the owner has it back. While it is
 * in a lane the owner writes `flags` only, TPS the members of `tps` only, and encap `encap`.
 *
 * Numbers are in the CPU's order; the codec puts them on the wire.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_common.h>

#include "abi_bits.h"

/* Lanes of a TP, in the order in which they are served. */
enum hca_tp_lane_id {
	HCA_TP_RESPONSES, /* writer: target */
	HCA_TP_REQUESTS,  /* writer: initiator */
	HCA_TP_LANES
};

/* Where the payload is. */
enum hca_ta_op_source {
	HCA_TA_OP_NO_PAYLOAD,
	HCA_TA_OP_LOCAL,  /* key (an lkey) and va */
	HCA_TA_OP_RECORD, /* record reference and offset: several SGEs, inline data, operands;
			   * always of a Write_with_be, whose byte enables stand in its record */
	HCA_TA_OP_TOKEN,  /* key (a TokenID) and va: Read_response */
	HCA_TA_OP_RESULT, /* resp.result: Atomic_response */
};

/* [pub] Set by the owner while the operation is in a lane; never cleared there. */
enum hca_ta_op_flag {
	/* its response has come, so its packets have: they are not gathered again */
	HCA_TA_OP_ANSWERED = 1u << 0,
	/* its request is given up: skipped without a PSN, otherwise its payload is not read */
	HCA_TA_OP_ORPHAN = 1u << 1,
	/* with ORPHAN: its Jetty is also gone, and its record belongs to another Jetty */
	HCA_TA_OP_FORGOTTEN = 1u << 2,
};

/* Written by TPS. */
enum hca_ta_op_tps_flag {
	HCA_TA_OP_SENT = 1u << 0,    /* its first packet has a PSN */
	HCA_TA_OP_ACKED = 1u << 1,   /* all of its packets are acknowledged; TPS has it still */
	HCA_TA_OP_SKIPPED = 1u << 2, /* an orphan that was never sent */
};
/* [15:8] of its flags: the status that a TPACK has told of the operation, 0: none */
#define HCA_TA_OP_TOLD(flags) HCA_BITS(flags, 15, 8)
#define HCA_TA_OP_MAKE_TOLD(status) HCA_FIELD(15, 8, status)

/* Written by encap. */
enum hca_ta_op_encap_flag {
	HCA_TA_OP_LATE = 1u << 0, /* foreign memory did not answer in time, once */
	/* [pub] a packet of it has left with Poison, or will: its payload cannot be read. Set
	 * before that packet leaves, so it is seen when the peer has refused the operation. */
	HCA_TA_OP_POISONED = 1u << 1,
};

struct hca_ta_op {
	uint32_t flags;	     /* [pub] enum hca_ta_op_flag */
	uint32_t object;     /* request: index of the Jetty; response: free for the target */
	uint32_t generation; /* of that Jetty */
	uint8_t opcode;	     /* TAOpcode of its packets */
	uint8_t last_opcode; /* of its last one */
	uint8_t ta1, ta4;    /* bytes 1 and 4 of BTAH or ATAH; byte 4 of ATAH: RSPST and RSPINFO */
	uint16_t tassn;	     /* ATAH with SV: the SCID granted */
	uint8_t source;	     /* enum hca_ta_op_source */
	uint8_t encap;	     /* enum hca_ta_op_encap_flag; 0 when it is put into a lane */
	uint32_t rc;	     /* bytes 5 to 7 of BTAH or ATAH: RC type and id */
	uint32_t payload;    /* bytes on the wire, in packets of one MTU */
	uint32_t length;     /* MAETAH: of the segment */
	uint32_t key;	     /* of the payload: lkey or TokenID */
	uint32_t offset;     /* OFSTETAH of the first packet, KiB */
	union {
		struct {
			uint64_t address;  /* MAETAH */
			uint64_t data;	   /* immediate or notify data */
			uint64_t notify;   /* NTFETAH: address */
			uint64_t va;	   /* of the payload */
			uint32_t record;   /* record reference of the payload */
			uint32_t from;	   /* where in the record's data it begins */
			uint32_t token_id; /* MAETAH */
			uint32_t token;	   /* TVETAH */
			uint32_t notify_token_id;
			uint32_t notify_token; /* NTFETAH, IMMETAH: TokenValue */
			uint32_t tc;	       /* MTETAH: hint, type and TC id */
			uint32_t total;	       /* IMMETAH: bytes of the message */
			uint32_t user;	       /* UDETAH */
			uint32_t reserved;
		} req;
		struct {
			uint64_t va; /* Read_response: of the payload */
			uint32_t token;
			uint32_t reserved;
		} read;
		uint8_t result
			[64]; /* Atomic_response: the old value, least significant byte first */
	};
	struct {
		uint32_t psn;	   /* of its first packet */
		uint32_t tpmsn;	   /* 24 bits */
		uint32_t desc_seq; /* of its last descriptor so far */
		uint32_t flags;	   /* enum hca_ta_op_tps_flag */
	} tps;
} __rte_cache_aligned;

HCA_STATIC_ASSERT_SIZE(struct hca_ta_op, 128);
HCA_STATIC_ASSERT_OFFSET(struct hca_ta_op, tps, 112);

/* All zeros; in two halves: compilers clear the whole with `rep stos`, which starts slowly. */
static inline void
hca_ta_op_clear(struct hca_ta_op *op)
{
	memset(op, 0, sizeof(*op) / 2);
	memset((uint8_t *)op + sizeof(*op) / 2, 0, sizeof(*op) / 2);
}

/* References: index in the pool of the lane's owner; in descriptors and slots also the lane. */
#define HCA_TA_OPREF_LANE_SHIFT 31
#define HCA_TA_OPREF_INDEX HCA_MASK(30, 0)

static inline uint32_t
hca_ta_opref(uint32_t lane, uint32_t index)
{
	return lane << HCA_TA_OPREF_LANE_SHIFT | index;
}

/* The pools of operations, by lane. */
struct hca_ta_op_pools {
	struct hca_ta_op *op[HCA_TP_LANES];
};

static inline struct hca_ta_op *
hca_ta_op_at(const struct hca_ta_op_pools *pools, uint32_t ref)
{
	return &pools->op[ref >> HCA_TA_OPREF_LANE_SHIFT][ref & HCA_TA_OPREF_INDEX];
}

static inline uint32_t
hca_ta_op_flags(const struct hca_ta_op *op)
{
	return __atomic_load_n(&op->flags, __ATOMIC_ACQUIRE);
}

/* A packet of it left with Poison, or will. For its owner. */
static inline bool
hca_ta_op_poisoned(const struct hca_ta_op *op)
{
	return (__atomic_load_n(&op->encap, __ATOMIC_ACQUIRE) & HCA_TA_OP_POISONED) != 0;
}

/* Owner only. */
static inline void
hca_ta_op_set_flag(struct hca_ta_op *op, uint32_t flag)
{
	__atomic_store_n(&op->flags, op->flags | flag, __ATOMIC_RELEASE);
}

/* Number of packets: every one but the last carries one MTU; there is always one. */
static inline uint32_t
hca_ta_op_packets(const struct hca_ta_op *op, uint32_t mtu_log)
{
	return op->payload == 0 ? 1 : ((op->payload - 1) >> mtu_log) + 1;
}

/* Payload of packet i, bytes. */
static inline uint32_t
hca_ta_op_packet_len(const struct hca_ta_op *op, uint32_t i, uint32_t mtu_log)
{
	return RTE_MIN(op->payload - (i << mtu_log), UINT32_C(1) << mtu_log);
}

#endif
