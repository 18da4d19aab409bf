/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_CQE_H
#define HCA_ABI_CQE_H

/*
 * Completion and event queue entries and the record of a CQ. Tables 3-3-1 .. 3-3-4, 3-2-25.
 * Little-endian. The device writes the entries, the owner byte last by a release store, which
 * publishes the entry.
 */

#include "abi_bits.h"

/* Owner byte of CQEs and EQEs, table 3-3-2. Software writes HW to the slots it returns. */
#define HCA_OWNER_SW 0x00u
#define HCA_OWNER_HW 0x80u

#define HCA_CQE_SIZE 32u
#define HCA_EQE_SIZE 32u

/* Opcode byte of error completions; it names the queue, as is_send does. */
#define HCA_CQE_OP_ERR_SEND 0xffu
#define HCA_CQE_OP_ERR_RECV 0xfeu

/* Normal completion, tables 3-3-1 and 3-3-2. */
struct hca_cqe {
	hca_le32 my_qpn;    /* 00h local QP */
	hca_le32 srqn;	    /* 04h SRQ the receive WQE came from, 0 = the QP's own RQ */
	hca_le32 rqpn;	    /* 08h source QP */
	hca_le32 flags;	    /* 0Ch P_Key index[31:16] GRH[15] network[5:4] sl[3:0] */
	hca_be32 imm;	    /* 10h immediate as wire bytes; invalidated rkey: le32 */
	hca_le32 byte_cnt;  /* 14h */
	hca_le32 wqe;	    /* 18h byte offset of the WQE in its SQ, RQ or SRQ */
	uint8_t opcode;	    /* 1Ch send: HCA_OP_*; receive: BTH opcode of the last packet */
	uint8_t is_send;    /* 1Dh 1 = send queue */
	uint8_t reserved1e; /* 1Eh */
	uint8_t owner;	    /* 1Fh HCA_OWNER_* */
};
HCA_STATIC_ASSERT_SIZE(struct hca_cqe, 32);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe, my_qpn, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe, srqn, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe, rqpn, 0x08);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe, flags, 0x0c);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe, imm, 0x10);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe, byte_cnt, 0x14);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe, wqe, 0x18);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe, opcode, 0x1c);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe, is_send, 0x1d);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe, owner, 0x1f);

#define HCA_CQE_PKEY_INDEX(w) HCA_BITS(w, 31, 16)
#define HCA_CQE_GRH HCA_BIT(15)
#define HCA_CQE_SL(w) HCA_BITS(w, 3, 0)
/* Of a datagram, which header the 40 bytes before its data hold */
#define HCA_CQE_NETWORK(w) HCA_BITS(w, 5, 4)
#define HCA_CQE_NETWORK_IPV6 1u
#define HCA_CQE_NETWORK_IPV4 2u
#define HCA_CQE_MAKE_FLAGS(pkey_index, grh, network, sl) \
	(HCA_FIELD(31, 16, pkey_index) | HCA_FIELD(15, 15, grh) | HCA_FIELD(5, 4, network) | \
	 HCA_FIELD(3, 0, sl))

/* Error completion, table 3-3-4: opcode FFh or FEh, is_send and srqn as in the normal form. */
struct hca_cqe_err {
	hca_le32 my_qpn;     /* 00h */
	hca_le32 srqn;	     /* 04h */
	hca_le32 reserved08; /* 08h */
	hca_le32 reserved0c; /* 0Ch */
	uint8_t syndrome;    /* 10h HCA_SYND_* */
	uint8_t vendor_err;  /* 11h */
	hca_le16 db_cnt;     /* 12h unused */
	hca_le32 reserved14; /* 14h */
	hca_le32 wqe;	     /* 18h */
	uint8_t opcode;	     /* 1Ch HCA_CQE_OP_ERR_* */
	uint8_t is_send;     /* 1Dh */
	uint8_t reserved1e;  /* 1Eh */
	uint8_t owner;	     /* 1Fh */
};
HCA_STATIC_ASSERT_SIZE(struct hca_cqe_err, 32);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_err, my_qpn, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_err, srqn, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_err, syndrome, 0x10);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_err, vendor_err, 0x11);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_err, db_cnt, 0x12);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_err, wqe, 0x18);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_err, opcode, 0x1c);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_err, is_send, 0x1d);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_err, owner, 0x1f);

/*
 * The larger kind of CQE: 64 bytes, of which the first 32 are either of the forms above and the
 * others, which no table has, this. All CQEs of a CQ are of one kind (HCA_CQ_FLAG_LARGE).
 */
#define HCA_CQE_LARGE_SIZE 64u

struct hca_cqe_more {
	hca_le64 core_clock; /* 20h when the CQE was written, on the device's clock, ns */
	hca_le64 wall_clock; /* 28h the same since 1970, ns; 0 unless HCA_CQ_FLAG_WALL */
	hca_le16 vlan;	     /* 30h tag of a datagram: PCP[15:13] DEI[12] VID[11:0], 0 = none */
	uint8_t smac[6];     /* 32h of a datagram to QPN 1: its frame's source */
	uint8_t reserved38[8];
};
HCA_STATIC_ASSERT_SIZE(struct hca_cqe_more, HCA_CQE_LARGE_SIZE - HCA_CQE_SIZE);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_more, core_clock, 0x20 - HCA_CQE_SIZE);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_more, wall_clock, 0x28 - HCA_CQE_SIZE);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_more, vlan, 0x30 - HCA_CQE_SIZE);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_more, smac, 0x32 - HCA_CQE_SIZE);

/* The clock of the device counts ns. */
#define HCA_CORE_CLOCK_KHZ 1000000u

/* Syndromes, table 3-3-3 (second of that name). X(name, code, text, status after SOFTHCA_WC_) */
#define HCA_SYND_LIST(X) \
	X(LOCAL_LENGTH, 0x01, "local length error", LOC_LEN_ERR) \
	X(LOCAL_QP_OP, 0x02, "local QP operation error", LOC_QP_OP_ERR) \
	X(LOCAL_EEC_OP, 0x03, "local EE context operation error", LOC_EEC_OP_ERR) \
	X(LOCAL_PROT, 0x04, "local protection error", LOC_PROT_ERR) \
	X(WR_FLUSH, 0x05, "work request flushed", WR_FLUSH_ERR) \
	X(MW_BIND, 0x06, "memory window bind error", MW_BIND_ERR) \
	X(BAD_RESP, 0x10, "bad response", BAD_RESP_ERR) \
	X(LOCAL_ACCESS, 0x11, "local access error", LOC_ACCESS_ERR) \
	X(REMOTE_INVAL_REQ, 0x12, "remote invalid request", REM_INV_REQ_ERR) \
	X(REMOTE_ACCESS, 0x13, "remote access error", REM_ACCESS_ERR) \
	X(REMOTE_OP, 0x14, "remote operation error", REM_OP_ERR) \
	X(RETRY_EXC, 0x15, "transport retry counter exceeded", RETRY_EXC_ERR) \
	X(RNR_RETRY_EXC, 0x16, "RNR retry counter exceeded", RNR_RETRY_EXC_ERR) \
	X(LOCAL_RDD_VIOL, 0x20, "local RDD violation", LOC_RDD_VIOL_ERR) \
	X(REMOTE_INVAL_RD_REQ, 0x21, "remote invalid RD request", REM_INV_RD_REQ_ERR) \
	X(REMOTE_ABORTED, 0x22, "remote aborted", REM_ABORT_ERR) \
	X(INVAL_EECN, 0x23, "invalid EE context number", INV_EECN_ERR) \
	X(INVAL_EEC_STATE, 0x24, "invalid EE context state", INV_EEC_STATE_ERR)

enum hca_synd {
#define HCA_SYND_ENUM(name, code, text, wc) HCA_SYND_##name = code,
	HCA_SYND_LIST(HCA_SYND_ENUM)
#undef HCA_SYND_ENUM
};

/*
 * CQ record: 128 bytes after the last CQE, in the CQ's own memory region, at the offsets
 * the CQC names in ci_db and state_db. One cache line per purpose, both written by the owner.
 */
struct hca_cq_record {
	hca_le32 consumer; /* 00h CQEs consumed, free running, release store */
	uint8_t reserved04[60];
	hca_le32 arm; /* 40h seq[31:2] mode[1:0] */
	uint8_t reserved44[60];
};
HCA_STATIC_ASSERT_SIZE(struct hca_cq_record, 128);
HCA_STATIC_ASSERT_OFFSET(struct hca_cq_record, consumer, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_cq_record, arm, 0x40);

#define HCA_CQ_ARM_NONE 0u
#define HCA_CQ_ARM_SOLICITED 1u
#define HCA_CQ_ARM_NEXT 2u
#define HCA_CQ_ARM_MODE(w) HCA_BITS(w, 1, 0)
#define HCA_CQ_ARM_SEQ(w) HCA_BITS(w, 31, 2)
#define HCA_CQ_ARM_MAKE(seq, mode) (HCA_FIELD(31, 2, seq) | HCA_FIELD(1, 0, mode))

/* Event types: table 3-2-25, and further ones that verbs need. X(name, type, text) */
#define HCA_EVENT_LIST(X) \
	X(COMP, 0x00, "completion") \
	X(PATH_MIG, 0x01, "path migrated") \
	X(COMM_EST, 0x02, "communication established") \
	X(SQ_DRAINED, 0x03, "send queue drained") \
	X(CQ_ERROR, 0x04, "CQ error") \
	X(WQ_CATAS, 0x05, "work queue catastrophic error") \
	X(PATH_MIG_FAILED, 0x07, "path migration failed") \
	X(LOCAL_CATAS, 0x08, "local catastrophic error") \
	X(PORT_CHANGE, 0x09, "port change") \
	X(CMD, 0x0a, "command completed") \
	X(EQ_OVERFLOW, 0x0f, "EQ overflow") \
	X(WQ_INVAL_REQ, 0x10, "work queue invalid request") \
	X(WQ_ACCESS, 0x11, "work queue access error") \
	X(SRQ_CATAS, 0x12, "SRQ catastrophic error") \
	X(LAST_WQE, 0x13, "last WQE reached") \
	X(SRQ_LIMIT, 0x14, "SRQ limit reached") \
	X(TP_ERROR, 0x15, "TP in error")

enum hca_event {
#define HCA_EVENT_ENUM(name, type, text) HCA_EVENT_##name = type,
	HCA_EVENT_LIST(HCA_EVENT_ENUM)
#undef HCA_EVENT_ENUM
};

/* Bit of an event type in the mask of MAP_EQ, table 3-2-25. */
#define HCA_EVENT_MASK(type) HCA_BIT64(type)

#define HCA_EVENT_MASK_OF(name, type, text) | HCA_EVENT_MASK(type)
/* Every event that exists. */
#define HCA_EVENT_MASK_ALL (UINT64_C(0) HCA_EVENT_LIST(HCA_EVENT_MASK_OF))

/* PORT_CHANGE subtypes. */
#define HCA_PORT_DOWN 1u
#define HCA_PORT_ACTIVE 4u
/* TP_ERROR subtypes. */
#define HCA_TP_ERR_RETRIES 1u  /* no acknowledgement after all retries */
#define HCA_TP_ERR_REQUEST 2u  /* the peer had no right to its request, or software ended it */
#define HCA_TP_ERR_DISAGREE 3u /* PSN and TPMSN of a packet disagree */
/* CQ_ERROR subtypes. */
#define HCA_CQ_ERR_OVERRUN 1u
#define HCA_CQ_ERR_ACCESS 2u

/* Event queue entry; no table. */
struct hca_eqe {
	uint8_t reserved00; /* 00h */
	uint8_t type;	    /* 01h enum hca_event */
	uint8_t reserved02; /* 02h */
	uint8_t subtype;    /* 03h */
	union {
		hca_le32 object; /* 04h QPN, CQN, SRQN, TPN, EQN or port number */
		struct {
			hca_le16 reserved04;
			hca_le16 token; /* 06h CMD: token of the HCR */
		} cmd;
	};
	uint8_t reserved08[7]; /* 08h */
	uint8_t status;	       /* 0Fh CMD: HCA_STAT_* */
	hca_le64 out_param;    /* 10h CMD: output parameter */
	uint8_t reserved18[7]; /* 18h */
	uint8_t owner;	       /* 1Fh HCA_OWNER_* */
};
HCA_STATIC_ASSERT_SIZE(struct hca_eqe, 32);
HCA_STATIC_ASSERT_OFFSET(struct hca_eqe, type, 0x01);
HCA_STATIC_ASSERT_OFFSET(struct hca_eqe, subtype, 0x03);
HCA_STATIC_ASSERT_OFFSET(struct hca_eqe, object, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_eqe, cmd.token, 0x06);
HCA_STATIC_ASSERT_OFFSET(struct hca_eqe, status, 0x0f);
HCA_STATIC_ASSERT_OFFSET(struct hca_eqe, out_param, 0x10);
HCA_STATIC_ASSERT_OFFSET(struct hca_eqe, owner, 0x1f);

#endif
