/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_RECORD_H
#define UB_RECORD_H

/*
 * Request records of Jettys, in the pools of UB (hca_pipe.records). As in engine/record.h the
 * record is the window entry. The parser writes it before it publishes head; from then on only TAI
 * writes it, and encap reads the fields that operations of the request refer to. TAI returns it
 * when the request is complete and no operation refers to it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi_tp.h"
#include "abi_ub.h"
#include "engine/impl.h"

/* Properties of an operation of Jettys, without those of its packets. */
enum hca_ub_wr_flag {
	HCA_UB_WR_RADDR = 1u << 0,     /* has a raddr unit */
	HCA_UB_WR_NOTIFY = 1u << 1,    /* has a notify unit */
	HCA_UB_WR_OPERANDS = 1u << 2,  /* has two operands, which are its payload */
	HCA_UB_WR_ENABLES = 1u << 3,   /* has byte enables in the operands' place */
	HCA_UB_WR_READ = 1u << 4,      /* its data units name the place of a result */
	HCA_UB_WR_SEGMENTED = 1u << 5, /* has as many segments as its length needs */
	HCA_UB_WR_CLOSES = 1u << 6,    /* its last segment waits for all others */
	HCA_UB_WR_RECV = 1u << 7,      /* consumes a receive WQE of the peer */
};

#define HCA_UB_WR_OF_WRITE (HCA_UB_WR_RADDR | HCA_UB_WR_SEGMENTED)

/*
 * Operations of Jettys. X(op, flags, TAOpcode, TAOpcode of its last packet): after HCA_OP_, and
 * HCA_UB_TA_. The TAOpcode of an atomic is in its WQE.
 */
#define HCA_UB_WR_LIST(X) \
	X(SEND, HCA_UB_WR_RECV, SEND, SEND) \
	X(SEND_IMM, HCA_UB_WR_RECV, SEND, SEND_IMM) \
	X(RDMA_WRITE, HCA_UB_WR_OF_WRITE, WRITE, WRITE) \
	X(RDMA_WRITE_IMM, \
	  HCA_UB_WR_RADDR | HCA_UB_WR_SEGMENTED | HCA_UB_WR_CLOSES | HCA_UB_WR_RECV, WRITE, \
	  WRITE_IMM) \
	X(WRITE_NOTIFY, \
	  HCA_UB_WR_RADDR | HCA_UB_WR_SEGMENTED | HCA_UB_WR_CLOSES | HCA_UB_WR_NOTIFY, WRITE, \
	  WRITE_NOTIFY) \
	X(WRITE_BE, HCA_UB_WR_RADDR | HCA_UB_WR_ENABLES, WRITE_BE, WRITE_BE) \
	X(RDMA_READ, HCA_UB_WR_RADDR | HCA_UB_WR_SEGMENTED | HCA_UB_WR_READ, READ, READ) \
	X(ATOMIC, HCA_UB_WR_RADDR | HCA_UB_WR_OPERANDS | HCA_UB_WR_READ, STORE, STORE)

struct hca_ub_wr {
	uint8_t known; /* the operation exists */
	uint8_t flags; /* enum hca_ub_wr_flag */
	uint8_t opcode, last_opcode;
};

/* By opcode of a WQE, 5 bits. */
extern const struct hca_ub_wr hca_ub_wrs[32];

#define HCA_UB_OPERANDS_MAX (2 * HCA_UB_ATOMIC_MAX) /* also the limit of byte enables */
/* A WQE has 512 bytes, of which next unit, UB unit and inline header take 52. */
#define HCA_UB_INLINE_MAX 460u
/* Messages of a Send; offsets in them have 24 bits, in KiB, of which this needs 14. */
#define HCA_UB_SEND_MAX (UINT32_C(1) << 24)

struct hca_ub_record {
	uint8_t op;	/* HCA_OP_* */
	uint8_t flags;	/* enum hca_record_flag; RD: Read or atomic */
	uint8_t status; /* 0, or the enum hca_ub_status that this request completes with */
	uint8_t nsge;
	uint16_t wqe_index;
	uint8_t order;	/* ODR[2:0], HCA_UB_HAS_TOKEN, HCA_UB_EXCLUSIVE */
	uint8_t atomic; /* TAOpcode of HCA_OP_ATOMIC */
	uint32_t len;	/* bytes of the message, or of one operand of an atomic */
	uint32_t to;	/* HCA_UB_TO(), HCA_UB_NUMBER() */
	uint64_t raddr;
	uint32_t token_id, token;
	/* TAI; zeroed by the parser */
	uint16_t first; /* TASSN of its first segment */
	uint16_t open;	/* its segments without an answer */
	uint32_t reserved0;
	uint64_t active;    /* time at which one of them was last sent or answered, ns */
	struct hca_sge sge; /* nsge == 1, unless it is FULL */
	/* a plain Write or Read uses no member from here on */
	uint64_t data; /* immediate, or data of the notify */
	uint64_t notify;
	uint32_t notify_token_id, notify_token;
	uint32_t tc, tc_token;
	uint32_t user; /* UDETAH of an atomic, with USER */
	uint32_t reserved[7];
} __rte_cache_aligned;

/* Several SGEs, inline data, operands, byte enables or a destination. */
struct hca_ub_record_full {
	struct hca_ub_record r;
	union {
		uint8_t operand[HCA_UB_OPERANDS_MAX]; /* both without gap, or the byte enables */
		struct hca_ud_av av;		      /* unreliable */
	};
	union {
		struct hca_sge sge[HCA_SGE_MAX];
		uint8_t inline_data[HCA_UB_INLINE_MAX];
	} body;
} __rte_cache_aligned;

_Static_assert(sizeof(struct hca_ub_record) == 128, "two lines");
_Static_assert(offsetof(struct hca_ub_record, data) == 64, "a plain Write or Read has one");
_Static_assert(sizeof(struct hca_ub_record_full) == 768, "twelve lines");

/* Record of a Jetty by reference. */
static inline struct hca_ub_record *
hca_ub_record(const struct hca_pipe *h, uint32_t ref)
{
	const struct hca_record_pools *pools = &h->records[HCA_WIRE_UB];

	if (ref & HCA_RECREF_FULL)
		return (struct hca_ub_record *)((uint8_t *)pools->full.mem +
						(size_t)(ref & ~HCA_RECREF_FULL) *
							sizeof(struct hca_ub_record_full));
	return (struct hca_ub_record *)((uint8_t *)pools->small.mem +
					(size_t)ref * sizeof(struct hca_ub_record));
}

/*
 * Payload that lies in the record itself: operands of an atomic, or inline data. NULL: the SGEs
 * name the payload.
 */
static inline const uint8_t *
hca_ub_record_data(const struct hca_ub_record *r)
{
	const struct hca_ub_record_full *f = (const struct hca_ub_record_full *)r;

	if (r->op == HCA_OP_ATOMIC)
		return f->operand;
	return r->flags & HCA_REC_INLINE ? f->body.inline_data : NULL;
}

/* Byte enables of a Write_with_be, as on the wire: len / 8 of them. */
static inline const uint8_t *
hca_ub_record_enables(const struct hca_ub_record *r)
{
	return ((const struct hca_ub_record_full *)r)->operand;
}

/* The SGEs of a record without inline data: memory of the payload, or for the result. */
static inline const struct hca_sge *
hca_ub_record_sges(const struct hca_ub_record *r)
{
	return r->flags & HCA_REC_FULL ? ((const struct hca_ub_record_full *)r)->body.sge : &r->sge;
}

#endif
