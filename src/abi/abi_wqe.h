/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_WQE_H
#define HCA_ABI_WQE_H

/*
 * Work queue elements, tables 3-4-1 .. 3-4-13, and the producer record of a receive queue.
 * Little-endian words; 64-bit fields are le64. Written by the owner of the queue, which is not
 * trusted: the device copies a WQE once and checks the copy.
 *
 * Order of units: next, (xrc), (raddr), (atomic) or (flush) or (bind) or (ud), then one inline unit
 * or data units. Receive WQEs: next, data units up to an all-zero unit or the largest SGE count.
 */

#include "abi_bits.h"

#define HCA_WQE_UNIT 16u /* sizes in doorbells and next units count 16 bytes */
#define HCA_WQE_MIN_STRIDE 64u
#define HCA_WQE_MAX_STRIDE 512u
#define HCA_WQE_MIN_STRIDE_LOG 6u
#define HCA_WQE_MAX_STRIDE_LOG 9u
#define HCA_WQE_MAX_SGE 16u
#define HCA_WQ_MAX_LOG_SIZE 15u /* a queue holds 2^k WQEs, k at most this */
#define HCA_WQE_ALIGN 64u	/* granularity of nda */
#define HCA_WQE_MAX_BYTE_CNT 0x7fffffffu
#define HCA_MAX_MSG_LOG 31u
#define HCA_MAX_MSG_SIZE (1u << HCA_MAX_MSG_LOG) /* 2 GiB */

/*
 * How an operation runs, at both ends. READ, ATOMIC and CONFIRM have a response each, count against
 * max_rd_atomic and take one of the peer's max_dest_rd_atomic places.
 */
enum hca_op_kind {
	HCA_KIND_NONE = 0, /* no operation; a packet that is no request */
	/*
	 * SEND, WRITE: a packet and a PSN per MTU of data. An ACK may cover several messages; data
	 * of a packet that comes again is dropped
	 */
	HCA_KIND_MESSAGE,
	/*
	 * One request, a READ response and a PSN per MTU of data. A request that comes again is
	 * executed again
	 */
	HCA_KIND_READ,
	/*
	 * One request and PSN; executed once. An ATOMIC ACK with a value answers it, the same again
	 * if it comes again
	 */
	HCA_KIND_ATOMIC,
	/*
	 * The same, answered by a READ response without data. Its own data is in the request, or
	 * it has none
	 */
	HCA_KIND_CONFIRM,
	HCA_KIND_LOCAL, /* no packet, no data */
};

/*
 * Properties of an operation: its units, its data, and the services that offer it. Bits from 11 on:
 * HCA_WQE_OP_KIND().
 */
enum hca_wqe_op_flag {
	HCA_WQE_OP_RADDR = 1u << 0,
	HCA_WQE_OP_FLUSH = 1u << 1,   /* has a flush unit and no data */
	HCA_WQE_OP_8_BYTES = 1u << 2, /* of data, exactly */
	HCA_WQE_OP_INV = 1u << 3,     /* imm_data is a key */
	HCA_WQE_OP_RC = 1u << 4,      /* offered by this service; XRC offers the same as RC */
	HCA_WQE_OP_UC = 1u << 5,
	HCA_WQE_OP_UD = 1u << 6,
	HCA_WQE_OP_BIND = 1u << 8,
	HCA_WQE_OP_IMM = 1u << 9,   /* imm_data is the immediate */
	HCA_WQE_OP_RECV = 1u << 10, /* consumes a receive WQE of the peer */
};

/* The kind as one of these flags */
#define HCA_WQE_OP_KIND(kind) (1u << (10 + (kind)))
#define HCA_WQE_OP_CONNECTED (HCA_WQE_OP_RC | HCA_WQE_OP_UC)
#define HCA_WQE_OP_ANY (HCA_WQE_OP_CONNECTED | HCA_WQE_OP_UD)

/*
 * Operations, table 3-3-3 (first of that name); their codes stand in doorbells (5 bits), in next
 * units and in send CQEs. X(name, code, wr, wc, kind, flags, bth)
 *   wr     of the work request, after SOFTHCA_WR_
 *   wc     of its completion, after SOFTHCA_WC_
 *   kind   after HCA_KIND_; ATOMIC has an atomic unit
 *   flags  HCA_WQE_OP_*
 *   bth    opcodes of its packets (abi_roce.h)
 * Operations that no service offers complete with an error.
 */
#define HCA_OP_LIST(X) \
	X(SEND_INV, 0x01, SEND_WITH_INV, SEND, MESSAGE, \
	  HCA_WQE_OP_RECV | HCA_WQE_OP_INV | HCA_WQE_OP_RC, HCA_BTH_MESSAGE(SEND, _INV)) \
	X(RDMA_WRITE, 0x08, RDMA_WRITE, RDMA_WRITE, MESSAGE, \
	  HCA_WQE_OP_RADDR | HCA_WQE_OP_CONNECTED, HCA_BTH_MESSAGE(WRITE, )) \
	X(RDMA_WRITE_IMM, 0x09, RDMA_WRITE_WITH_IMM, RDMA_WRITE, MESSAGE, \
	  HCA_WQE_OP_RADDR | HCA_WQE_OP_RECV | HCA_WQE_OP_IMM | HCA_WQE_OP_CONNECTED, \
	  HCA_BTH_MESSAGE(WRITE, _IMM)) \
	X(SEND, 0x0a, SEND, SEND, MESSAGE, HCA_WQE_OP_RECV | HCA_WQE_OP_ANY, \
	  HCA_BTH_MESSAGE(SEND, )) \
	X(SEND_IMM, 0x0b, SEND_WITH_IMM, SEND, MESSAGE, \
	  HCA_WQE_OP_RECV | HCA_WQE_OP_IMM | HCA_WQE_OP_ANY, HCA_BTH_MESSAGE(SEND, _IMM)) \
	X(RDMA_READ, 0x10, RDMA_READ, RDMA_READ, READ, HCA_WQE_OP_RADDR | HCA_WQE_OP_RC, \
	  HCA_BTH_PACKET(READ_REQ)) \
	X(ATOMIC_CS, 0x11, ATOMIC_CMP_AND_SWP, COMP_SWAP, ATOMIC, \
	  HCA_WQE_OP_RADDR | HCA_WQE_OP_RC, HCA_BTH_PACKET(CMP_SWAP)) \
	X(ATOMIC_FA, 0x12, ATOMIC_FETCH_AND_ADD, FETCH_ADD, ATOMIC, \
	  HCA_WQE_OP_RADDR | HCA_WQE_OP_RC, HCA_BTH_PACKET(FETCH_ADD)) \
	X(ATOMIC_WRITE, 0x14, ATOMIC_WRITE, ATOMIC_WRITE, CONFIRM, \
	  HCA_WQE_OP_RADDR | HCA_WQE_OP_8_BYTES | HCA_WQE_OP_RC, HCA_BTH_PACKET(ATOMIC_WRITE)) \
	X(FLUSH, 0x15, FLUSH, FLUSH, CONFIRM, HCA_WQE_OP_RADDR | HCA_WQE_OP_FLUSH | HCA_WQE_OP_RC, \
	  HCA_BTH_PACKET(FLUSH)) \
	X(BIND_MW, 0x18, BIND_MW, BIND_MW, LOCAL, HCA_WQE_OP_BIND | HCA_WQE_OP_CONNECTED, \
	  HCA_BTH_NO_PACKET) \
	X(LOCAL_INV, 0x1b, LOCAL_INV, LOCAL_INV, LOCAL, HCA_WQE_OP_INV | HCA_WQE_OP_CONNECTED, \
	  HCA_BTH_NO_PACKET)

#define HCA_OP_NOP 0x00u /* not offered */

enum hca_op {
#define HCA_OP_ENUM(name, code, wr, wc, kind, flags, bth) HCA_OP_##name = code,
	HCA_OP_LIST(HCA_OP_ENUM)
#undef HCA_OP_ENUM
};

/*
 * Next unit, tables 3-4-2 and 3-4-3: first unit of every WQE. 00h and 04h describe the NEXT WQE,
 * 08h and 0Ch THIS one. nds = 0 ends the chain.
 *
 * If the doorbell of a chain finds the UAR page full, the first WQE announces the chain: flags has
 * the contents of the doorbell, stored last, with release. L is the lowest bit of the number of
 * rounds of the queue, so that announcements of earlier rounds are recognized; the owner clears
 * flags in the whole queue before RST2INIT.
 */
struct hca_next_unit {
	hca_le32 nda_nop;  /* 00h nda[31:6] byte offset of the next WQE, nop[4:0] its opcode */
	hca_le32 nee_nds;  /* 04h F[6] its fence, nds[5:0] its size in 16-byte units */
	hca_le32 flags;	   /* 08h C[3] S[1] of this WQE; E[2] is ignored; [31:16] see below */
	hca_le32 imm_data; /* 0Ch immediate as wire bytes; SEND_INV, LOCAL_INV: rkey, le32 */
};
HCA_STATIC_ASSERT_SIZE(struct hca_next_unit, 16);
HCA_STATIC_ASSERT_OFFSET(struct hca_next_unit, nda_nop, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_next_unit, nee_nds, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_next_unit, flags, 0x08);
HCA_STATIC_ASSERT_OFFSET(struct hca_next_unit, imm_data, 0x0c);

#define HCA_NEXT_NDA(w) ((uint32_t)(w)&HCA_MASK(31, 6)) /* bytes */
#define HCA_NEXT_NOP(w) HCA_BITS(w, 4, 0)
#define HCA_NEXT_NDS(w) HCA_BITS(w, 5, 0)
#define HCA_NEXT_F HCA_BIT(6)
#define HCA_NEXT_D HCA_BIT(7)		   /* unused */
#define HCA_NEXT_NEE(w) HCA_BITS(w, 31, 8) /* unused */
#define HCA_NEXT_MAKE_NDA_NOP(byte_offset, op) \
	(((uint32_t)(byte_offset)&HCA_MASK(31, 6)) | HCA_FIELD(4, 0, op))
#define HCA_NEXT_MAKE_NEE_NDS(fence, size) (HCA_FIELD(6, 6, fence) | HCA_FIELD(5, 0, size))

#define HCA_WQE_FLAG_SOLICITED HCA_BIT(1) /* S */
#define HCA_WQE_FLAG_EVENT HCA_BIT(2)	  /* E, ignored */
#define HCA_WQE_FLAG_SIGNALED HCA_BIT(3)  /* C */

/* A chain begins here: announced[31] L[30] size0[29:24] F[21] opcode[20:16], all of THIS one. */
#define HCA_WQE_ANNOUNCED HCA_BIT(31)
#define HCA_WQE_ANNOUNCE_L(w) HCA_BITS(w, 30, 30)
#define HCA_WQE_ANNOUNCE_SIZE0(w) HCA_BITS(w, 29, 24)
#define HCA_WQE_ANNOUNCE_F(w) HCA_BITS(w, 21, 21)
#define HCA_WQE_ANNOUNCE_OPCODE(w) HCA_BITS(w, 20, 16)
#define HCA_WQE_MAKE_ANNOUNCE(round, f, opcode, size0) \
	(HCA_WQE_ANNOUNCED | HCA_FIELD(30, 30, (round)&1) | HCA_FIELD(29, 24, size0) | \
	 HCA_FIELD(21, 21, f) | HCA_FIELD(20, 16, opcode))

/* Remote address unit, tables 3-4-4 and 3-4-5: WRITE, READ, atomics, FLUSH. */
struct hca_raddr_unit {
	hca_le64 raddr;	   /* 00h remote virtual address */
	hca_le32 rkey;	   /* 08h */
	hca_le32 reserved; /* 0Ch */
};
HCA_STATIC_ASSERT_SIZE(struct hca_raddr_unit, 16);
HCA_STATIC_ASSERT_OFFSET(struct hca_raddr_unit, raddr, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_raddr_unit, rkey, 0x08);

/* Atomic unit, tables 3-4-6 and 3-4-7. */
struct hca_atomic_unit {
	hca_le64 swap_add; /* 00h swap value, or the addend of FETCH_ADD */
	hca_le64 cmp;	   /* 08h compare value of CMP_SWAP */
};
HCA_STATIC_ASSERT_SIZE(struct hca_atomic_unit, 16);
HCA_STATIC_ASSERT_OFFSET(struct hca_atomic_unit, swap_add, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_atomic_unit, cmp, 0x08);

/* Flush unit of FLUSH, no table. */
struct hca_flush_unit {
	hca_le32 length; /* 00h bytes of the range; of no meaning to HCA_FETH_MR */
	hca_le32 feth;	 /* 04h HCA_FETH_MAKE() */
	hca_le64 reserved;
};
HCA_STATIC_ASSERT_SIZE(struct hca_flush_unit, 16);
HCA_STATIC_ASSERT_OFFSET(struct hca_flush_unit, length, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_flush_unit, feth, 0x04);

/*
 * UD unit, tables 3-4-8 and 3-4-9, with the routing fields in words the tables leave empty and in
 * that of the port, which has all 32 bits of word 00h there.
 * Addresses of the source that are not zero must equal those of the GID entry.
 */
struct hca_ud_unit {
	hca_le32 port;	  /* 00h port[31:24] sgid_index[23:16] hop_limit[15:8] tclass[7:0] */
	hca_le32 mac_lo;  /* 04h dmac[15:0] in [31:16], smac[15:0] in [15:0] */
	hca_le32 smac_hi; /* 08h smac[47:16] */
	hca_le32 dmac_hi; /* 0Ch dmac[47:16] */
	union {
		uint8_t dgid[16]; /* 10h GID form: network order */
		struct {
			hca_le32 sip;	     /* 10h IPv4 source */
			hca_le32 dip;	     /* 14h IPv4 destination */
			hca_le32 reserved18; /* 18h */
			hca_le32 reserved1c; /* 1Ch */
		};
	};
	hca_le32 dqpn; /* 20h */
	hca_le32 qkey; /* 24h bit 31 set: the Q_Key of the QPC is used */
	hca_le32 flow; /* 28h GID form[31] priority[30:28] static rate[27:20] flow label[19:0] */
	hca_le32 reserved2c; /* 2Ch */
};
HCA_STATIC_ASSERT_SIZE(struct hca_ud_unit, 48);
HCA_STATIC_ASSERT_OFFSET(struct hca_ud_unit, port, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_ud_unit, mac_lo, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_ud_unit, smac_hi, 0x08);
HCA_STATIC_ASSERT_OFFSET(struct hca_ud_unit, dmac_hi, 0x0c);
HCA_STATIC_ASSERT_OFFSET(struct hca_ud_unit, dgid, 0x10);
HCA_STATIC_ASSERT_OFFSET(struct hca_ud_unit, sip, 0x10);
HCA_STATIC_ASSERT_OFFSET(struct hca_ud_unit, dip, 0x14);
HCA_STATIC_ASSERT_OFFSET(struct hca_ud_unit, dqpn, 0x20);
HCA_STATIC_ASSERT_OFFSET(struct hca_ud_unit, qkey, 0x24);
HCA_STATIC_ASSERT_OFFSET(struct hca_ud_unit, flow, 0x28);

#define HCA_UD_PORT(w) HCA_BITS(w, 31, 24)
#define HCA_UD_SGID_INDEX(w) HCA_BITS(w, 23, 16)
#define HCA_UD_HOP_LIMIT(w) HCA_BITS(w, 15, 8)
#define HCA_UD_TCLASS(w) HCA_BITS(w, 7, 0)
#define HCA_UD_MAKE_PORT(port, sgid_index, hop_limit, tclass) \
	(HCA_FIELD(31, 24, port) | HCA_FIELD(23, 16, sgid_index) | HCA_FIELD(15, 8, hop_limit) | \
	 HCA_FIELD(7, 0, tclass))
#define HCA_UD_DMAC(mac_lo, dmac_hi) (((uint64_t)(dmac_hi) << 16) | HCA_BITS(mac_lo, 31, 16))
#define HCA_UD_SMAC(mac_lo, smac_hi) (((uint64_t)(smac_hi) << 16) | HCA_BITS(mac_lo, 15, 0))
#define HCA_UD_MAKE_MAC_LO(dmac, smac) \
	(HCA_FIELD(31, 16, (dmac)&0xffffu) | HCA_FIELD(15, 0, (smac)&0xffffu))
#define HCA_UD_MAC_HI(mac) HCA_BITS(mac, 47, 16)
#define HCA_UD_GID_FORM HCA_BIT(31)
#define HCA_UD_PRIORITY(w) HCA_BITS(w, 30, 28)
#define HCA_UD_FLOW_LABEL(w) HCA_BITS(w, 19, 0)
#define HCA_UD_STATIC_RATE(w) HCA_BITS(w, 27, 20) /* extension: coded as in the QPC */
#define HCA_UD_MAKE_FLOW(gid_form, priority, static_rate, flow_label) \
	(HCA_FIELD(31, 31, gid_form) | HCA_FIELD(30, 28, priority) | \
	 HCA_FIELD(27, 20, static_rate) | HCA_FIELD(19, 0, flow_label))
#define HCA_UD_QKEY_FROM_QPC HCA_BIT(31)

/* Inline unit, tables 3-4-10 and 3-4-11: bit 31 of the first word set, then length bytes. */
struct hca_inline_unit {
	hca_le32 length; /* 00h bit 31 = 1, length[30:0] in bytes */
	uint8_t data[];	 /* 04h */
};
HCA_STATIC_ASSERT_SIZE(struct hca_inline_unit, 4);
HCA_STATIC_ASSERT_OFFSET(struct hca_inline_unit, data, 0x04);

#define HCA_INLINE_FLAG HCA_BIT(31)
#define HCA_INLINE_LENGTH(w) HCA_BITS(w, 30, 0)

/* Data unit, tables 3-4-12 and 3-4-13: one scatter/gather element. lkey 0 is never valid. */
struct hca_data_unit {
	hca_le32 byte_cnt; /* 00h bit 31 = 0, byte_cnt[30:0] */
	hca_le32 lkey;	   /* 04h */
	hca_le64 addr;	   /* 08h virtual address */
};
HCA_STATIC_ASSERT_SIZE(struct hca_data_unit, 16);
HCA_STATIC_ASSERT_OFFSET(struct hca_data_unit, byte_cnt, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_data_unit, lkey, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_data_unit, addr, 0x08);

/* Bind unit of memory windows; no table. */
struct hca_bind_unit {
	hca_le32 access;  /* 00h HCA_ACCESS_* */
	hca_le32 old_key; /* 04h rkey of the window before the bind */
	hca_le32 new_key; /* 08h rkey of the window after the bind */
	hca_le32 lkey;	  /* 0Ch region the window is bound to */
	hca_le64 addr;	  /* 10h */
	hca_le64 length;  /* 18h 0 unbinds */
};
HCA_STATIC_ASSERT_SIZE(struct hca_bind_unit, 32);
HCA_STATIC_ASSERT_OFFSET(struct hca_bind_unit, access, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_bind_unit, old_key, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_bind_unit, new_key, 0x08);
HCA_STATIC_ASSERT_OFFSET(struct hca_bind_unit, lkey, 0x0c);
HCA_STATIC_ASSERT_OFFSET(struct hca_bind_unit, addr, 0x10);
HCA_STATIC_ASSERT_OFFSET(struct hca_bind_unit, length, 0x18);

/* XRC unit, no table: after the next unit of an XRC_INI QP's WQE. */
struct hca_xrc_unit {
	hca_le32 remote_srqn; /* 00h [23:0] */
	hca_le32 reserved[3];
};
HCA_STATIC_ASSERT_SIZE(struct hca_xrc_unit, 16);
HCA_STATIC_ASSERT_OFFSET(struct hca_xrc_unit, remote_srqn, 0x00);

#define HCA_CACHE_LINE 64u

/*
 * Producer record: 128 bytes after the last WQE of an RQ or SRQ, in that queue's own memory region.
 * One cache line per writer. The owner zeroes both before RST2INIT.
 */
struct hca_rq_record {
	/* First line, written by the owner. */
	hca_le32 producer; /* 00h WQEs posted, free running, release store */
	uint8_t reserved04[60];
	/* Second line, written by the device. */
	hca_le32 notify; /* 40h set in ERR: ring HCA_DB_OPCODE_KICK after a post */
	uint8_t reserved44[60];
};
HCA_STATIC_ASSERT_SIZE(struct hca_rq_record, 128);
HCA_STATIC_ASSERT_OFFSET(struct hca_rq_record, producer, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_rq_record, notify, 0x40);

#endif
