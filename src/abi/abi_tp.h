/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_TP_H
#define HCA_ABI_TP_H

/*
 * UB between software and device: the context of a TP and the mailboxes of its commands
 * (big-endian, as in abi_ctx.h), the units of a Jetty's WQEs and its CQEs (little-endian, as in
 * abi_wqe.h and abi_cqe.h). A Jetty's own context is a QPC, that of a JFR an SRQC. No document has
 * tables of this.
 */

#include "abi_bits.h"
#include "abi_ctx.h"
#include "abi_wqe.h"

/* ---- numbers ---- */

#define HCA_TPN_MASK 0xffffffu
#define HCA_TP_MAX_LOG 13u
#define HCA_TPG_MAX_TPS 16u
/* Index 0 of the TPs: unreliable packets of the device. */
#define HCA_TP_UNRELIABLE 0u
/* Numbers on the wire of the addressed object: 20 bits. */
#define HCA_TC_MASK 0xfffffu
#define HCA_TC_JFR HCA_BIT(19) /* [18:0] is an SRQN; else a QPN of 19 bits, or well known */
#define HCA_TC_NUMBER(tc) HCA_BITS(tc, 18, 0)
#define HCA_TC_WELL_KNOWN 1024u /* numbers below are aliases */
#define HCA_TC_NONE 0u		/* as a TC: no object */
/* Clients may use well-known numbers from here on; the driver uses those below. */
#define HCA_TC_WELL_KNOWN_FREE 32u
#define HCA_TOKEN_ID_MASK 0xfffffu
/* The TokenID of a memory key: MPT index and three bits that change at each reuse. */
#define HCA_KEY_TOKEN_ID(key) HCA_BITS(key, 27, 8)

/* ---- TP context: given to create and change a TP, returned when it is queried ---- */

/* X(name, number) */
#define HCA_TP_STATE_LIST(X) \
	X(RESET, 0)   /* there is no such TP */ \
	X(PASSIVE, 1) /* receives; sends from its first good packet on */ \
	X(ACTIVE, 2) \
	X(DRAIN, 3) /* no new operations */ \
	X(ERROR, 4)

enum hca_tp_state {
#define HCA_TP_STATE_ENUM(name, number) HCA_TPS_##name = number,
	HCA_TP_STATE_LIST(HCA_TP_STATE_ENUM)
#undef HCA_TP_STATE_ENUM
	HCA_TPS_COUNT
};

/* Transitions that software may ask for; X(from, to). Every state also leads to RESET. */
#define HCA_TP_TRANSITION_LIST(X) \
	X(PASSIVE, ACTIVE) \
	X(PASSIVE, DRAIN) \
	X(PASSIVE, ERROR) \
	X(ACTIVE, DRAIN) \
	X(ACTIVE, ERROR) \
	X(DRAIN, ERROR)

/* Treatment of packets out of order by the receiver. X(name, number) */
#define HCA_TP_MODE_LIST(X) \
	X(DROP, 0) \
	X(TRACK, 1) \
	X(SACK, 2)

enum hca_tp_mode {
#define HCA_TP_MODE_ENUM(name, number) HCA_TP_MODE_##name = number,
	HCA_TP_MODE_LIST(HCA_TP_MODE_ENUM)
#undef HCA_TP_MODE_ENUM
	HCA_TP_MODES
};

/* When the sender repeats a packet. X(name, number, bits of the receiver's modes) */
#define HCA_TP_RULE_LIST(X) \
	X(NAK, 0, HCA_BIT(HCA_TP_MODE_DROP)) \
	X(NONE, 1, HCA_BIT(HCA_TP_MODE_TRACK) | HCA_BIT(HCA_TP_MODE_SACK)) \
	X(HIGH, 2, HCA_BIT(HCA_TP_MODE_SACK)) \
	X(MARK, 3, HCA_BIT(HCA_TP_MODE_SACK)) \
	X(TIME, 4, HCA_BIT(HCA_TP_MODE_SACK))

enum hca_tp_rule {
#define HCA_TP_RULE_ENUM(name, number, modes) HCA_TP_RULE_##name = number,
	HCA_TP_RULE_LIST(HCA_TP_RULE_ENUM)
#undef HCA_TP_RULE_ENUM
	HCA_TP_RULES
};

/* X(name, bit): flags[7:0] of the context. ROL and EIDH are not offered. */
#define HCA_TP_FLAG_LIST(X) \
	X(TAID, 0)   /* Reads, atomics and their responses carry a TAIDETAH */ \
	X(OFST, 1)   /* and an OFSTETAH */ \
	X(ROL, 2)    /* the transport's answer carries that of the transaction */ \
	X(SPRAY, 3)  /* successive packets take different source ports */ \
	X(RSP_BE, 4) /* results of atomics are big-endian */ \
	X(EIDH, 5)   /* packets carry UPIH and EIDH */ \
	X(TELL, 6)   /* requests for queues that are gone or in error are answered */ \
	X(CNP, 7)    /* packets with a congestion mark are answered with CNPs */

enum hca_tp_flag {
#define HCA_TP_FLAG_ENUM(name, bit) HCA_TP_FLAG_##name = 1 << (bit),
	HCA_TP_FLAG_LIST(HCA_TP_FLAG_ENUM)
#undef HCA_TP_FLAG_ENUM
};
#define HCA_TP_FLAGS_OFFERED \
	((uint32_t)(HCA_TP_FLAG_TAID | HCA_TP_FLAG_OFST | HCA_TP_FLAG_SPRAY | HCA_TP_FLAG_RSP_BE | \
		    HCA_TP_FLAG_TELL | HCA_TP_FLAG_CNP))

/* Groups of fields that may be changed: bits of the mask at 00h. X(name, bit) */
#define HCA_TP_ATTR_LIST(X) \
	X(STATE, 0) \
	X(RULE, 1)  /* with the reorder time */ \
	X(ACKS, 2)  /* how often to acknowledge */ \
	X(RTO, 3)   /* base, exponent, retries */ \
	X(PORTS, 4) /* source ports, and whether to spray */ \
	X(PATH, 5) \
	X(TPG, 6)

enum hca_tp_attr {
#define HCA_TP_ATTR_ENUM(name, bit) HCA_TP_ATTR_##name = 1 << (bit),
	HCA_TP_ATTR_LIST(HCA_TP_ATTR_ENUM)
#undef HCA_TP_ATTR_ENUM
	HCA_TP_ATTR_NEVER = 0, /* fixed when it is created */
};
#define HCA_TP_ATTRS_ALL 0x7fu

#define HCA_TPC_SIZE 256u

struct hca_tpc {
	hca_be32 mask;	   /* 00h HCA_TP_ATTR_* being modified */
	hca_be32 modes;	   /* 04h state, receive mode, rule, MTU, window, SACK, flags */
	hca_be32 tpn;	   /* 08h [23:0] own */
	hca_be32 peer_tpn; /* 0Ch [23:0] */
	hca_be32 psn;	   /* 10h [23:0] first to send */
	hca_be32 epsn;	   /* 14h [23:0] first expected */
	hca_be32 requests; /* 18h open[31:16] packets per ACK[15:8], out of order[7:0] */
	hca_be32 rto_base; /* 1Ch us; 0: by the round trip time */
	hca_be32 rto;	   /* 20h exponent[31:28] retries[27:24] reorder[23:0] us */
	hca_be32 ports;	   /* 24h first source port[31:16] log2 of their number[11:8] CC[3:0] */
	struct hca_qpc_path path; /* 28h as in the QPC; without P_Key, timeout and retries */
	hca_be32 tpg;		  /* 5Ch its group + 1, 0: none */
	/* from here on only when it is queried */
	hca_be32 una;		 /* 60h [23:0] oldest PSN not acknowledged */
	hca_be32 next;		 /* 64h [23:0] next new PSN */
	hca_be32 live_epsn;	 /* 68h [23:0] next PSN expected */
	hca_be32 max_rcv;	 /* 6Ch [23:0] highest PSN received */
	hca_be32 srtt;		 /* 70h ns */
	hca_be32 timeouts;	 /* 74h */
	hca_be32 resent_nak;	 /* 78h packets sent again, by cause */
	hca_be32 resent_high;	 /* 7Ch */
	hca_be32 resent_mark;	 /* 80h */
	hca_be32 resent_time;	 /* 84h */
	hca_be32 resent_timeout; /* 88h */
	hca_be32 duplicates;	 /* 8Ch packets received again */
	hca_be32 out_of_order;	 /* 90h packets received before others with lower PSNs */
	hca_be32 open_out;	 /* 94h requests without an answer, of this side */
	hca_be32 open_in;	 /* 98h of the peer */
	hca_be32 reserved9c[25]; /* 9Ch */
};
HCA_STATIC_ASSERT_SIZE(struct hca_tpc, HCA_TPC_SIZE);

/* X(member, offset) */
#define HCA_TPC_MEMBERS(X) \
	X(mask, 0x00) \
	X(modes, 0x04) \
	X(tpn, 0x08) \
	X(peer_tpn, 0x0c) \
	X(psn, 0x10) \
	X(epsn, 0x14) \
	X(requests, 0x18) \
	X(rto_base, 0x1c) \
	X(rto, 0x20) \
	X(ports, 0x24) \
	X(path, 0x28) \
	X(tpg, 0x5c) \
	X(una, 0x60) \
	X(next, 0x64) \
	X(live_epsn, 0x68) \
	X(max_rcv, 0x6c) \
	X(srtt, 0x70) \
	X(timeouts, 0x74) \
	X(resent_nak, 0x78) \
	X(resent_high, 0x7c) \
	X(resent_mark, 0x80) \
	X(resent_time, 0x84) \
	X(resent_timeout, 0x88) \
	X(duplicates, 0x8c) \
	X(out_of_order, 0x90) \
	X(open_out, 0x94) \
	X(open_in, 0x98)
#define HCA_TPC_AT(member, offset) HCA_STATIC_ASSERT_OFFSET(struct hca_tpc, member, offset);
HCA_TPC_MEMBERS(HCA_TPC_AT)
#undef HCA_TPC_AT

/*
 * Fields that software sets. X(NAME, member, hi, lo, attribute, min, max): bits of the word, the
 * group it is changed with (after HCA_TP_ATTR_), and the values that the device takes. Bits of
 * these words that belong to no field are 0.
 */
#define HCA_TPC_FIELD_LIST(X) \
	X(STATE, modes, 31, 28, STATE, HCA_TPS_PASSIVE, HCA_TPS_ERROR) \
	X(MODE, modes, 26, 24, NEVER, 0, HCA_TP_MODES - 1) \
	X(RULE, modes, 22, 20, RULE, 0, HCA_TP_RULES - 1) \
	X(MTU, modes, 18, 16, NEVER, 0, 1) \
	X(WINDOW, modes, 14, 12, NEVER, 0, 4) \
	X(SACK, modes, 10, 8, NEVER, 0, 4) \
	X(FLAGS, modes, 7, 0, PORTS, 0, 0xff) \
	X(TPN, tpn, 23, 0, NEVER, 1, HCA_TPN_MASK) \
	X(PEER, peer_tpn, 23, 0, NEVER, 1, HCA_TPN_MASK) \
	X(PSN, psn, 23, 0, NEVER, 0, HCA_TPN_MASK) \
	X(EPSN, epsn, 23, 0, NEVER, 0, HCA_TPN_MASK) \
	X(REQUESTS, requests, 31, 16, NEVER, 1, 4096) \
	X(ACK_EVERY, requests, 15, 8, ACKS, 1, 255) \
	X(OOO_EVERY, requests, 7, 0, ACKS, 1, 255) \
	X(RTO_BASE, rto_base, 31, 0, RTO, 0, 2097152) \
	X(RTO_EXPONENT, rto, 31, 28, RTO, 0, 7) \
	X(RETRIES, rto, 27, 24, RTO, 0, 15) \
	X(REORDER, rto, 23, 0, RULE, 0, 1000000) \
	X(SPORT, ports, 31, 16, PORTS, 1, 0xffff) \
	X(SPORTS_LOG, ports, 11, 8, PORTS, 0, 8) \
	X(CC, ports, 3, 0, NEVER, 0, 0) \
	X(GROUP, tpg, 15, 0, TPG, 0, 1u << HCA_TP_MAX_LOG)

enum hca_tpc_field {
#define HCA_TPC_FIELD_ENUM(name, ...) HCA_TPC_##name,
	HCA_TPC_FIELD_LIST(HCA_TPC_FIELD_ENUM)
#undef HCA_TPC_FIELD_ENUM
	HCA_TPC_FIELDS
};

struct hca_tpc_field_info {
	uint16_t at;
	uint8_t hi, lo;
	uint32_t attr; /* HCA_TP_ATTR_*, 0: fixed */
	uint32_t min, max;
};

static const struct hca_tpc_field_info hca_tpc_fields[HCA_TPC_FIELDS] = {
#define HCA_TPC_FIELD_ROW(name, member, hi, lo, attr, min, max) \
	{offsetof(struct hca_tpc, member), hi, lo, HCA_TP_ATTR_##attr, min, max},
	HCA_TPC_FIELD_LIST(HCA_TPC_FIELD_ROW)
#undef HCA_TPC_FIELD_ROW
};

static inline uint32_t
hca_tpc_get(const struct hca_tpc *c, enum hca_tpc_field f)
{
	const struct hca_tpc_field_info *i = &hca_tpc_fields[f];

	return HCA_BITS(hca_get_be32((const uint8_t *)c + i->at), i->hi, i->lo);
}

static inline void
hca_tpc_set(struct hca_tpc *c, enum hca_tpc_field f, uint32_t value)
{
	const struct hca_tpc_field_info *i = &hca_tpc_fields[f];
	uint8_t *word = (uint8_t *)c + i->at;

	hca_put_be32(word, HCA_SET_BITS(hca_get_be32(word), i->hi, i->lo, value));
}

#define HCA_TP_MTU_BYTES(code) (1024u << (2 * (code))) /* 0, 1 */
#define HCA_TP_WINDOW_PACKETS(code) (128u << (code))   /* 0..4 */
#define HCA_TP_SACK_BITS(code) (64u << (code))	       /* 0..4 */
#define HCA_TP_RTO_LEAST 4u			       /* us, of a base that is not 0 */

/* ---- other mailboxes ---- */

/* The TPs of a group; count 0: it is gone. */
struct hca_mbox_set_tpg {
	hca_be32 count;		       /* 00h */
	hca_be32 reserved04[3];	       /* 04h */
	hca_be32 tpn[HCA_TPG_MAX_TPS]; /* 10h [23:0] */
};
HCA_STATIC_ASSERT_SIZE(struct hca_mbox_set_tpg, 80);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_set_tpg, count, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_set_tpg, tpn, 0x10);

/* in_param of PERMIT_TPG */
#define HCA_TPG_PERMIT HCA_BIT(31)
#define HCA_TPG_DOMAIN(w) HCA_BITS(w, 10, 0)

/* The token row of an MPT. */
struct hca_mbox_set_token {
	hca_be32 flags;	     /* 00h HCA_TOKEN_* */
	hca_be32 reserved04; /* 04h */
	hca_be32 value[2];   /* 08h */
};
HCA_STATIC_ASSERT_SIZE(struct hca_mbox_set_token, 16);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_set_token, flags, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_set_token, value, 0x08);

/* The peer of a Jetty. */
struct hca_mbox_bind_jetty {
	uint8_t eid[16];	/* 00h address of its host */
	hca_be32 tc;		/* 10h its own number, not a well-known one; or HCA_TC_NONE */
	hca_be32 reserved14[3]; /* 14h */
};
HCA_STATIC_ASSERT_SIZE(struct hca_mbox_bind_jetty, 32);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_bind_jetty, tc, 0x10);

/* X(name, bit) */
#define HCA_TOKEN_FLAG_LIST(X) \
	X(EXPORTED, 0) /* the region is a segment: UB reaches it */ \
	X(CHECK, 1)    /* requests must have one of the valid values */ \
	X(SECOND, 2)   /* value[1] is also valid */

enum hca_token_flag {
#define HCA_TOKEN_FLAG_ENUM(name, bit) HCA_TOKEN_##name = 1 << (bit),
	HCA_TOKEN_FLAG_LIST(HCA_TOKEN_FLAG_ENUM)
#undef HCA_TOKEN_FLAG_ENUM
};
#define HCA_TOKEN_FLAGS_ALL 7u

/* ---- WQEs of Jettys ---- */

/*
 * Units: next, UB, then as the operation needs: raddr (with a TokenID in rkey), notify, operands
 * (both, each padded to 16 bytes) or byte enables (bit n of byte n >> 3, mask 1 << (n & 7), is
 * payload byte n; same padding), the UD unit of an unreliable request; then one inline unit or data
 * units. Operands are little-endian.
 */
struct hca_ub_unit {
	hca_le32 number;   /* 00h to[31:30] TPN or TPG[23:0] */
	hca_le32 tc;	   /* 04h hint[31:24] type[21:20] TC[19:0] */
	hca_le32 token;	   /* 08h value of the addressed object: the segment, of a send the TC */
	hca_le32 order;	   /* 0Ch UD operation[19:16] atomic[15:8] E[4] token[3] ODR[2:0] */
	hca_le64 data;	   /* 10h immediate, or data of the notify */
	hca_le32 tc_token; /* 18h value for the TC of a write with immediate */
	hca_le32 operands; /* 1Ch bytes of each operand, or of the byte enables; else 0 */
};
HCA_STATIC_ASSERT_SIZE(struct hca_ub_unit, 32);
HCA_STATIC_ASSERT_OFFSET(struct hca_ub_unit, number, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_ub_unit, tc, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_ub_unit, token, 0x08);
HCA_STATIC_ASSERT_OFFSET(struct hca_ub_unit, order, 0x0c);
HCA_STATIC_ASSERT_OFFSET(struct hca_ub_unit, data, 0x10);
HCA_STATIC_ASSERT_OFFSET(struct hca_ub_unit, tc_token, 0x18);
HCA_STATIC_ASSERT_OFFSET(struct hca_ub_unit, operands, 0x1c);

enum hca_ub_to {
	HCA_UB_TO_TP = 0,
	HCA_UB_TO_TPG = 1,
	HCA_UB_TO_ADDRESS = 2, /* unreliable: a UD unit follows */
};
#define HCA_UB_TO(w) HCA_BITS(w, 31, 30)
#define HCA_UB_NUMBER(w) HCA_BITS(w, 23, 0)
#define HCA_UB_MAKE_NUMBER(to, number) (HCA_FIELD(31, 30, to) | HCA_FIELD(23, 0, number))
#define HCA_UB_TC_HINT(w) HCA_BITS(w, 31, 24)
#define HCA_UB_TC_TYPE(w) HCA_BITS(w, 21, 20)
#define HCA_UB_TC(w) HCA_BITS(w, 19, 0)
#define HCA_UB_MAKE_TC(tc, type, hint) \
	(HCA_FIELD(31, 24, hint) | HCA_FIELD(21, 20, type) | HCA_FIELD(19, 0, tc))
#define HCA_UB_ODR(w) HCA_BITS(w, 2, 0)
#define HCA_UB_HAS_TOKEN HCA_BIT(3)
#define HCA_UB_EXCLUSIVE HCA_BIT(4) /* E_bit; of privileged Jettys alone, else ignored */
#define HCA_UB_ATOMIC(w) HCA_BITS(w, 15, 8)
#define HCA_UB_UD_OP(w) HCA_BITS(w, 19, 16)
#define HCA_UB_MAKE_ORDER(odr, has_token, exclusive, atomic, ud_op) \
	(HCA_FIELD(2, 0, odr) | HCA_FIELD(3, 3, has_token) | HCA_FIELD(4, 4, exclusive) | \
	 HCA_FIELD(15, 8, atomic) | HCA_FIELD(19, 16, ud_op))

/* Where a write with notify stores its 64 bits of data. */
struct hca_notify_unit {
	hca_le64 addr;	   /* 00h */
	hca_le32 token_id; /* 08h */
	hca_le32 token;	   /* 0Ch used with HCA_UB_HAS_TOKEN alone */
};
HCA_STATIC_ASSERT_SIZE(struct hca_notify_unit, 16);
HCA_STATIC_ASSERT_OFFSET(struct hca_notify_unit, addr, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_notify_unit, token_id, 0x08);
HCA_STATIC_ASSERT_OFFSET(struct hca_notify_unit, token, 0x0c);

/*
 * Operations of a Jetty in addition to those of HCA_OP_LIST with the same code (SEND, SEND_IMM,
 * RDMA_WRITE, RDMA_WRITE_IMM, RDMA_READ). X(name, code)
 */
#define HCA_UB_OP_LIST(X) \
	X(WRITE_NOTIFY, 0x0c) \
	X(WRITE_BE, 0x0d) /* with byte enables */ \
	X(ATOMIC, 0x13)	  /* which one: UB unit */

enum hca_ub_op {
#define HCA_UB_OP_ENUM(name, code) HCA_OP_##name = code,
	HCA_UB_OP_LIST(HCA_UB_OP_ENUM)
#undef HCA_UB_OP_ENUM
};

/* ---- CQEs of Jettys and JFRs ---- */

#define HCA_CQE_UB HCA_BIT(1) /* of 1Dh: this form */

struct hca_cqe_ub {
	hca_le32 local; /* 00h kind[31:24] own number[23:0] */
	hca_le32 wqe;	/* 04h byte offset of the WQE in its queue */
	hca_le32 rc;	/* 08h [19:0] receive: source RC id */
	hca_le32 tpn;	/* 0Ch [23:0] receive: 0 unreliable */
	/* 10h receive: immediate; of an unreliable one without: [47:0] source MAC of the frame */
	hca_le64 imm;
	hca_le32 bytes;	 /* 18h */
	uint8_t opcode;	 /* 1Ch send: HCA_OP_*; receive: TAOpcode of the last packet */
	uint8_t is_send; /* 1Dh [0] send [1] HCA_CQE_UB */
	uint8_t status;	 /* 1Eh HCA_UB_STATUS_* */
	uint8_t owner;	 /* 1Fh HCA_OWNER_* */
};
HCA_STATIC_ASSERT_SIZE(struct hca_cqe_ub, 32);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_ub, local, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_ub, wqe, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_ub, rc, 0x08);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_ub, tpn, 0x0c);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_ub, imm, 0x10);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_ub, bytes, 0x18);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_ub, opcode, 0x1c);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_ub, is_send, 0x1d);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_ub, status, 0x1e);
HCA_STATIC_ASSERT_OFFSET(struct hca_cqe_ub, owner, 0x1f);

enum hca_cqe_ub_kind {
	HCA_CQE_UB_JETTY = 0,
	HCA_CQE_UB_JFS = 1,
	HCA_CQE_UB_JFR = 2,
};
#define HCA_CQE_UB_KIND(w) HCA_BITS(w, 31, 24)
#define HCA_CQE_UB_NUMBER(w) HCA_BITS(w, 23, 0)
#define HCA_CQE_UB_MAKE_LOCAL(kind, number) (HCA_FIELD(31, 24, kind) | HCA_FIELD(23, 0, number))

/* Status << 4 | sub-status. X(name, code, text) */
#define HCA_UB_STATUS_LIST(X) \
	X(OK, 0x00, "success") \
	X(UNSUPPORTED_OPCODE, 0x10, "unsupported operation") \
	X(LOCAL_LENGTH, 0x21, "local length error") \
	X(LOCAL_ACCESS, 0x22, "local access error") \
	X(REMOTE_RESPONSE_LENGTH, 0x23, "response of another length") \
	X(LOCAL_POISON, 0x24, "local data cannot be read") \
	X(REMOTE_UNSUPPORTED, 0x31, "unsupported by the peer") \
	X(REMOTE_ACCESS, 0x32, "refused by the peer") \
	X(REMOTE_POISON, 0x34, "data of the peer cannot be read") \
	X(RNR_EXC, 0x40, "not ready for too long") \
	X(ACK_TIMEOUT, 0x50, "no answer") \
	X(FLUSHED, 0xf0, "flushed") \
	X(SUSPEND_DONE, 0xf1, "suspended") \
	X(FLUSH_DONE, 0xf2, "all flushed")

enum hca_ub_status {
#define HCA_UB_STATUS_ENUM(name, code, text) HCA_UB_STATUS_##name = code,
	HCA_UB_STATUS_LIST(HCA_UB_STATUS_ENUM)
#undef HCA_UB_STATUS_ENUM
};

#endif
