/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_CMD_H
#define HCA_ABI_CMD_H

/*
 * HCR commands: opcodes, status codes and mailboxes. Tables 3-2-1 .. 3-2-44 and 3-1-5, and the
 * extension commands. Mailboxes are 4096 bytes, big-endian; commands that carry a context (QPC,
 * CQC, EQC, SRQC, MPT) use the structures of abi_ctx.h.
 */

#include "abi_bits.h"
#include "abi_ctx.h"

#define HCA_MBOX_SIZE 4096u

/* ---- capability bits, word 38h of QUERY_DEV_LIM. X(name, bit, text) ---- */

#define HCA_CAP_LIST(X) \
	X(GID, 0, "SET_GID") \
	X(PKEY, 1, "SET_PKEY") \
	X(NEIGH, 2, "SET_NEIGH") \
	X(MCAST, 3, "MCAST_ATTACH and MCAST_DETACH") \
	X(MODIFY_CQ, 4, "MODIFY_CQ: event moderation") \
	X(QUERY_CQ, 5, "QUERY_CQ") \
	X(COUNTERS, 6, "QUERY_COUNTERS") \
	X(SRQ, 7, "shared receive queues") \
	X(RC, 8, "reliable connection") \
	X(UC, 9, "unreliable connection") \
	X(UD, 10, "unreliable datagram") \
	X(XRC, 11, "extended reliable connection") \
	X(ATOMIC, 12, "64-bit atomics") \
	X(MW, 13, "memory windows") \
	X(INVALIDATE, 14, "send with invalidate and local invalidate") \
	X(APM, 15, "automatic path migration") \
	X(IPV6, 16, "RoCEv2 over IPv6") \
	X(VLAN, 17, "VLAN tags") \
	X(ECN, 18, "congestion control: SET_CONGESTION") \
	X(CLOSE_DOMAIN, 19, "CLOSE_DOMAIN") \
	X(CQE_CLOCK, 20, "QUERY_CLOCK, CQEs of 64 bytes with time stamps") \
	X(UB, 21, "UB over Ethernet: Jettys, transport channels, segments") \
	X(ATOMIC_WRITE, 22, "RDMA ATOMIC WRITE") \
	X(FLUSH, 23, "RDMA FLUSH with global visibility")

enum hca_cap {
#define HCA_CAP_ENUM(name, bit, text) HCA_CAP_##name = 1 << (bit),
	HCA_CAP_LIST(HCA_CAP_ENUM)
#undef HCA_CAP_ENUM
};

/* ---- commands, table 3-2-1 and extensions ---- */

/* How a command uses its parameters. */
#define HCA_CMDF_VAR HCA_BIT(0)	      /* in_modifier: number of entries in the mailbox */
#define HCA_CMDF_IN_OPT HCA_BIT(1)    /* no input mailbox when op_modifier is 3 */
#define HCA_CMDF_IN_IMM HCA_BIT(2)    /* in_param is a value */
#define HCA_CMDF_OUT_IMM HCA_BIT(3)   /* out_param is returned as a value */
#define HCA_CMDF_MODIFY_QP HCA_BIT(4) /* row of the transition table */

/*
 * X(name, opcode, in_len, out_len, flags, caps): bytes of the mailbox read and written (0 = no
 * mailbox; HCA_CMDF_VAR: the most), HCA_CMDF_*, capabilities that announce it (0 = always there).
 */
#define HCA_CMD_LIST(X) \
	X(QUERY_DEV_LIM, 0x003, 0, 256, 0, 0) \
	X(QUERY_ADAPTER, 0x006, 0, 32, 0, 0) \
	X(INIT_HCA, 0x007, 64, 0, 0, 0) \
	X(CLOSE_HCA, 0x008, 0, 0, 0, 0) \
	X(MAP_ICM, 0xffa, 4096, 0, HCA_CMDF_VAR, 0) \
	X(UNMAP_ICM, 0xff9, 0, 0, HCA_CMDF_IN_IMM, 0) \
	X(SW2HW_MPT, 0x00d, 64, 0, 0, 0) \
	X(HW2SW_MPT, 0x00f, 0, 0, 0, 0) \
	X(WRITE_MTT, 0x011, 4096, 0, HCA_CMDF_VAR, 0) \
	X(MAP_EQ, 0x012, 0, 0, HCA_CMDF_IN_IMM, 0) \
	X(SW2HW_EQ, 0x013, 64, 0, 0, 0) \
	X(HW2SW_EQ, 0x014, 0, 0, 0, 0) \
	X(SW2HW_CQ, 0x016, 64, 0, 0, 0) \
	X(HW2SW_CQ, 0x017, 0, 0, 0, 0) \
	X(RESIZE_CQ, 0x02c, 32, 0, HCA_CMDF_OUT_IMM, 0) \
	X(RST2INIT_QPEE, 0x019, 256, 0, HCA_CMDF_MODIFY_QP, 0) \
	X(INIT2RTR_QPEE, 0x01a, 256, 0, HCA_CMDF_MODIFY_QP, 0) \
	X(RTR2RTS_QPEE, 0x01b, 256, 0, HCA_CMDF_MODIFY_QP, 0) \
	X(RTS2RTS_QPEE, 0x01c, 256, 0, HCA_CMDF_MODIFY_QP, 0) \
	X(SQERR2RTS_QPEE, 0x01d, 256, 0, HCA_CMDF_MODIFY_QP, 0) \
	X(2ERR_QPEE, 0x01e, 256, 0, HCA_CMDF_MODIFY_QP | HCA_CMDF_IN_OPT, 0) \
	X(RTS2SQD_QPEE, 0x01f, 256, 0, HCA_CMDF_MODIFY_QP, 0) \
	X(SQD2SQD_QPEE, 0x038, 256, 0, HCA_CMDF_MODIFY_QP, 0) \
	X(SQD2RTS_QPEE, 0x020, 256, 0, HCA_CMDF_MODIFY_QP, 0) \
	X(ERR2RST_QPEE, 0x021, 256, 0, HCA_CMDF_MODIFY_QP | HCA_CMDF_IN_OPT, 0) \
	X(INIT2INIT_QPEE, 0x02d, 256, 0, HCA_CMDF_MODIFY_QP, 0) \
	X(QUERY_QP, 0x022, 0, 256, 0, 0) \
	X(CONF_SPECIAL_QP, 0x023, 0, 0, 0, 0) \
	X(MAD_IFC, 0x024, 256, 256, 0, 0) \
	X(NOP, 0x031, 0, 0, 0, 0) \
	X(SW2HW_SRQ, 0x035, 64, 0, 0, HCA_CAP_SRQ) \
	X(HW2SW_SRQ, 0x036, 0, 0, 0, HCA_CAP_SRQ) \
	X(QUERY_SRQ, 0x037, 0, 64, 0, HCA_CAP_SRQ) \
	X(ARM_SRQ, 0x040, 0, 0, HCA_CMDF_IN_IMM, HCA_CAP_SRQ) \
	X(SET_GID, 0xf00, 32, 0, 0, HCA_CAP_GID) \
	X(SET_PKEY, 0xf01, 16, 0, 0, HCA_CAP_PKEY) \
	X(SET_NEIGH, 0xf02, 32, 0, 0, HCA_CAP_NEIGH) \
	X(MCAST_ATTACH, 0xf03, 16, 0, 0, HCA_CAP_MCAST) \
	X(MCAST_DETACH, 0xf04, 16, 0, 0, HCA_CAP_MCAST) \
	X(MODIFY_CQ, 0xf05, 16, 0, 0, HCA_CAP_MODIFY_CQ) \
	X(QUERY_CQ, 0xf06, 0, 64, 0, HCA_CAP_QUERY_CQ) \
	X(QUERY_COUNTERS, 0xf07, 0, 4096, HCA_CMDF_VAR, HCA_CAP_COUNTERS) \
	X(CLOSE_DOMAIN, 0xf08, 0, 0, 0, HCA_CAP_CLOSE_DOMAIN) \
	X(QUERY_CLOCK, 0xf09, 0, 0, HCA_CMDF_OUT_IMM, HCA_CAP_CQE_CLOCK) \
	X(SW2HW_TP, 0xf0a, 256, 0, 0, HCA_CAP_UB) \
	X(MODIFY_TP, 0xf0b, 256, 0, 0, HCA_CAP_UB) \
	X(QUERY_TP, 0xf0c, 0, 256, 0, HCA_CAP_UB) \
	X(HW2SW_TP, 0xf0d, 0, 0, 0, HCA_CAP_UB) \
	X(SET_TPG, 0xf0e, 80, 0, 0, HCA_CAP_UB) \
	X(SET_TOKEN, 0xf0f, 16, 0, 0, HCA_CAP_UB) \
	X(SET_JETTY_ID, 0xf10, 0, 0, HCA_CMDF_IN_IMM, HCA_CAP_UB) \
	X(RST2RTS_QPEE, 0xf11, 256, 0, HCA_CMDF_MODIFY_QP, HCA_CAP_UB) \
	X(BIND_JETTY, 0xf12, 32, 0, 0, HCA_CAP_UB) \
	X(PERMIT_TPG, 0xf13, 0, 0, HCA_CMDF_IN_IMM, HCA_CAP_UB) \
	X(SET_CONGESTION, 0xf14, 0, 0, HCA_CMDF_IN_IMM, HCA_CAP_ECN)

enum hca_cmd_op {
#define HCA_CMD_ENUM(name, opcode, in_len, out_len, flags, caps) HCA_CMD_##name = opcode,
	HCA_CMD_LIST(HCA_CMD_ENUM)
#undef HCA_CMD_ENUM
};

/*
 * in_modifier by command:
 *   MAP_ICM        number of entries            UNMAP_ICM    pages from in_param on
 *   SW2HW_MPT, HW2SW_MPT  MPT index             WRITE_MTT    number of entries
 *   MAP_EQ         HCA_MAP_EQ_UNMAP | EQN       *_EQ         EQN
 *   *_CQ           CQN                          *_QPEE, QUERY_QP, MCAST_*  QPN
 *   CONF_SPECIAL_QP  QPN, 0 = off               MAD_IFC      port
 *   NOP            1Fh                          *_SRQ        SRQN; ARM_SRQ: in_param = limit
 *   QUERY_COUNTERS index, QPN or port, see below  SET_*      0, everything is in the mailbox
 *   CLOSE_DOMAIN   DMA domain, not 0: all QPs, SRQs, CQs and MPTs of that owner are gone when it is
 *                  done, under traffic; its windows and doorbell page stay
 *   QUERY_CLOCK    0; out_param is the time on the clock of the CQEs
 *   *_TP           TPN; HW2SW_TP: no stage uses the TP when it is done
 *   SET_TPG        index; its TPs, which have one peer, are those in the mailbox; none: it is gone
 *   SET_TOKEN      MPT index of a region; flags 0: it is no segment, and no stage uses it as one
 *   SET_JETTY_ID   well-known number; in_param: the TC it stands for, HCA_TC_NONE: none
 *   BIND_JETTY     QPN of a Jetty with one peer: its peer is that of the mailbox, HCA_TC_NONE: none
 *                  any more, and no stage serves the former one
 *   PERMIT_TPG     index of a group; in_param: HCA_TPG_PERMIT, DMA domain not 0: whether Jettys of
 *                  that domain may use it; if not, no stage gives it requests of theirs any more
 *   SET_CONGESTION  0; in_param: the number of an algorithm, from 1 on, which all QPs and TPs have
 *                  when it is done. Or the number of a parameter, a place in HCA_CC_PARAMETER_LIST
 *                  of device/hca_limits.h; in_param: its value, which counts when it is done
 */
#define HCA_MAP_EQ_UNMAP HCA_BIT(31) /* table 3-2-24 */
#define HCA_MAP_EQ_EQN(m) HCA_BITS(m, 30, 0)
#define HCA_NOP_IN_MODIFIER 0x1fu /* table 3-2-44 */

/* op_modifier of MAP_ICM and UNMAP_ICM (tables 3-2-12, 3-2-15). */
#define HCA_ICM_CTX 1u /* QPC, CQC, EQC */
#define HCA_ICM_TPT 2u /* MPT, MTT */
/* op_modifier of the MODIFY_QP family (table 3-2-39); 3 only for 2ERR and ERR2RST. */
#define HCA_MODIFY_QP_INBOX 0u
#define HCA_MODIFY_QP_NO_INBOX 3u
/* op_modifier of CONF_SPECIAL_QP. */
#define HCA_CONF_SPECIAL_GSI 1u
/*
 * op_modifier of QUERY_COUNTERS: the kind of counters; bit 0 asks for names instead of values.
 * in_modifier: for the device the index of the first counter, for a QP its QPN (0 suffices for
 * names), for a port its number.
 */
#define HCA_COUNTERS_VALUES 0u
#define HCA_COUNTERS_NAMES 1u
#define HCA_COUNTERS_QP 2u
#define HCA_COUNTERS_PORT 4u
#define HCA_COUNTERS_OF(op_modifier) HCA_BITS(op_modifier, 7, 1)

/* ---- status, table 3-1-5 and extensions. X(name, code, text) ---- */

#define HCA_STAT_LIST(X) \
	X(OK, 0x00, "success") \
	X(BAD_OP, 0x02, "unknown command") \
	X(BAD_PARAM, 0x03, "bad parameter") \
	X(BAD_SYS_STATE, 0x04, "device in reset or not initialized") \
	X(BAD_NVMEM, 0x05, "firmware corrupt") \
	X(RESOURCE_BUSY, 0x06, "resource in use") \
	X(EXCEED_LIM, 0x08, "limit exceeded") \
	X(BAD_RES_STATE, 0x09, "resource not in the needed state") \
	X(BAD_INDEX, 0x0a, "index out of range") \
	X(BAD_QP_STATE, 0x10, "transition not allowed")

enum hca_stat {
#define HCA_STAT_ENUM(name, code, text) HCA_STAT_##name = code,
	HCA_STAT_LIST(HCA_STAT_ENUM)
#undef HCA_STAT_ENUM
};

/* ---- QUERY_DEV_LIM, tables 3-2-3 and 3-2-4 ---- */

/* The words 40h..FFh are extensions. "log" values are base-2 logarithms. */
struct hca_mbox_dev_lim {
	hca_be32 reserved_log;	   /* 00h log reserved QP[31:24] CQ[23:16] EQ[15:8] MTT[7:0] */
	hca_be32 reserved_pd_lkey; /* 04h log reserved PD[23:16] lkey[7:0] */
	hca_be32 max_sz;	   /* 08h log WQEs of a queue[31:16] log CQEs of a CQ[15:0] */
	hca_be32 max_log;	   /* 0Ch log QPs[31:24] CQs[23:16] EQs[15:8] MPTs[7:0] */
	hca_be32 max_pd_gid_pkey;  /* 10h log PDs[31:24] GIDs[15:8] P_Keys[7:0] */
	hca_be32 mtt_seg_sz;	   /* 14h bytes of an MTT segment[23:16] */
	hca_be32 qpc_cqc_sz;	   /* 18h bytes QPC[31:16] CQC[15:0] */
	hca_be32 eqc_mpt_sz;	   /* 1Ch bytes EQC[31:16] MPT[15:0] */
	hca_be32 port;	     /* 20h ack_delay[27:24] mtu[23:20] width[19:16] vl[7:4] ports[3:0] */
	hca_be32 min_page;   /* 24h log min page size[23:16] */
	hca_be32 sq_sg;	     /* 28h max SGE[23:16] max WQE bytes[15:0] */
	hca_be32 rq_sg;	     /* 2Ch RQ: max SGE[23:16] max WQE bytes[15:0] */
	hca_be64 max_icm_sz; /* 30h bytes */
	hca_be32 caps;	     /* 38h HCA_CAP_* */
	hca_be32 pipes;	     /* 3Ch pipelines; QPs belong to QPN mod pipes, Jettys to 0 */
	hca_be32 rd_atomic;  /* 40h max_rd_atomic[31:24] dest[23:16] log SRQs[15:8] WQEs[7:0] */
	hca_be32 inline_mw;  /* 44h max inline bytes[31:16] log MWs[15:8] log XRCDs[7:0] */
	hca_be32 gid_table_len;	  /* 48h entries */
	hca_be32 pkey_table_len;  /* 4Ch entries */
	hca_be32 max_records;	  /* 50h unacknowledged requests of a QP */
	hca_be32 mr;		  /* 54h log max page size[31:24] log MTT entries[23:16] */
	hca_be64 max_mr_size;	  /* 58h bytes */
	hca_be32 mcast;		  /* 60h log groups[31:24] QPs per group[15:0] */
	hca_be32 num_uars;	  /* 64h UAR pages */
	hca_be32 num_counters;	  /* 68h */
	hca_be32 neigh_table_len; /* 6Ch entries of SET_NEIGH */
	hca_be32 msg;		  /* 70h log max message bytes[31:24] SRQ max SGE[23:16] */
	hca_be32 ub;		  /* 74h UB: log TPs[31:24] TPs per group[23:16] MTU code[15:8] */
	hca_be32 reserved78[34];  /* 78h */
};
HCA_STATIC_ASSERT_SIZE(struct hca_mbox_dev_lim, 256);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, reserved_log, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, reserved_pd_lkey, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, max_sz, 0x08);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, max_log, 0x0c);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, max_pd_gid_pkey, 0x10);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, mtt_seg_sz, 0x14);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, qpc_cqc_sz, 0x18);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, eqc_mpt_sz, 0x1c);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, port, 0x20);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, min_page, 0x24);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, sq_sg, 0x28);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, rq_sg, 0x2c);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, max_icm_sz, 0x30);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, caps, 0x38);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, rd_atomic, 0x40);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, inline_mw, 0x44);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, gid_table_len, 0x48);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, pkey_table_len, 0x4c);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, max_records, 0x50);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, mr, 0x54);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, max_mr_size, 0x58);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, mcast, 0x60);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, num_uars, 0x64);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, num_counters, 0x68);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, neigh_table_len, 0x6c);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, msg, 0x70);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_dev_lim, ub, 0x74);

#define HCA_LIM_RESERVED_QP(w) HCA_BITS(w, 31, 24)
#define HCA_LIM_RESERVED_CQ(w) HCA_BITS(w, 23, 16)
#define HCA_LIM_RESERVED_EQ(w) HCA_BITS(w, 15, 8)
#define HCA_LIM_RESERVED_MTT(w) HCA_BITS(w, 7, 0)
#define HCA_LIM_MAKE_RESERVED(qp, cq, eq, mtt) \
	(HCA_FIELD(31, 24, qp) | HCA_FIELD(23, 16, cq) | HCA_FIELD(15, 8, eq) | \
	 HCA_FIELD(7, 0, mtt))
#define HCA_LIM_RESERVED_PD(w) HCA_BITS(w, 23, 16)
#define HCA_LIM_RESERVED_LKEY(w) HCA_BITS(w, 7, 0)
#define HCA_LIM_MAKE_RESERVED_PD_LKEY(pd, lkey) (HCA_FIELD(23, 16, pd) | HCA_FIELD(7, 0, lkey))
#define HCA_LIM_QP_SZ_LOG(w) HCA_BITS(w, 31, 16)
#define HCA_LIM_CQ_SZ_LOG(w) HCA_BITS(w, 15, 0)
#define HCA_LIM_MAKE_SZ(qp, cq) (HCA_FIELD(31, 16, qp) | HCA_FIELD(15, 0, cq))
#define HCA_LIM_QPS_LOG(w) HCA_BITS(w, 31, 24)
#define HCA_LIM_CQS_LOG(w) HCA_BITS(w, 23, 16)
#define HCA_LIM_EQS_LOG(w) HCA_BITS(w, 15, 8)
#define HCA_LIM_MPTS_LOG(w) HCA_BITS(w, 7, 0)
#define HCA_LIM_MAKE_MAX(qps, cqs, eqs, mpts) \
	(HCA_FIELD(31, 24, qps) | HCA_FIELD(23, 16, cqs) | HCA_FIELD(15, 8, eqs) | \
	 HCA_FIELD(7, 0, mpts))
#define HCA_LIM_PDS_LOG(w) HCA_BITS(w, 31, 24)
#define HCA_LIM_GIDS_LOG(w) HCA_BITS(w, 15, 8)
#define HCA_LIM_PKEYS_LOG(w) HCA_BITS(w, 7, 0)
#define HCA_LIM_MAKE_PD_GID_PKEY(pds, gids, pkeys) \
	(HCA_FIELD(31, 24, pds) | HCA_FIELD(15, 8, gids) | HCA_FIELD(7, 0, pkeys))
#define HCA_LIM_MTT_SEG_SZ(w) HCA_BITS(w, 23, 16)
#define HCA_LIM_MAKE_MTT_SEG_SZ(bytes) HCA_FIELD(23, 16, bytes)
/* 18h, 1Ch */
#define HCA_LIM_ENTRY_SZ_HI(w) HCA_BITS(w, 31, 16)
#define HCA_LIM_ENTRY_SZ_LO(w) HCA_BITS(w, 15, 0)
#define HCA_LIM_MAKE_ENTRY_SZ(hi, lo) (HCA_FIELD(31, 16, hi) | HCA_FIELD(15, 0, lo))
#define HCA_LIM_ACK_DELAY(w) HCA_BITS(w, 27, 24)
#define HCA_LIM_MAX_MTU(w) HCA_BITS(w, 23, 20)
#define HCA_LIM_PORT_WIDTH(w) HCA_BITS(w, 19, 16)
#define HCA_LIM_MAX_VL(w) HCA_BITS(w, 7, 4)
#define HCA_LIM_NUM_PORTS(w) HCA_BITS(w, 3, 0)
#define HCA_LIM_MAKE_PORT(ack_delay, mtu, width, vl, ports) \
	(HCA_FIELD(27, 24, ack_delay) | HCA_FIELD(23, 20, mtu) | HCA_FIELD(19, 16, width) | \
	 HCA_FIELD(7, 4, vl) | HCA_FIELD(3, 0, ports))
#define HCA_LIM_MIN_PAGE_LOG(w) HCA_BITS(w, 23, 16)
#define HCA_LIM_MAKE_MIN_PAGE(log) HCA_FIELD(23, 16, log)
/* 28h, 2Ch */
#define HCA_LIM_MAX_SGE(w) HCA_BITS(w, 23, 16)
#define HCA_LIM_MAX_DESC_SZ(w) HCA_BITS(w, 15, 0)
#define HCA_LIM_MAKE_SG(max_sge, desc_sz) (HCA_FIELD(23, 16, max_sge) | HCA_FIELD(15, 0, desc_sz))
/* 40h */
#define HCA_LIM_MAX_RD_ATOMIC(w) HCA_BITS(w, 31, 24)
#define HCA_LIM_MAX_DEST_RD_ATOMIC(w) HCA_BITS(w, 23, 16)
#define HCA_LIM_SRQS_LOG(w) HCA_BITS(w, 15, 8)
#define HCA_LIM_SRQ_SZ_LOG(w) HCA_BITS(w, 7, 0)
#define HCA_LIM_MAKE_RD_ATOMIC(max_rd, max_dest, srqs, srq_sz) \
	(HCA_FIELD(31, 24, max_rd) | HCA_FIELD(23, 16, max_dest) | HCA_FIELD(15, 8, srqs) | \
	 HCA_FIELD(7, 0, srq_sz))
/* 44h */
#define HCA_LIM_MAX_INLINE(w) HCA_BITS(w, 31, 16)
#define HCA_LIM_MWS_LOG(w) HCA_BITS(w, 15, 8)
#define HCA_LIM_XRCDS_LOG(w) HCA_BITS(w, 7, 0)
#define HCA_LIM_MAKE_INLINE_MW(max_inline, mws, xrcds) \
	(HCA_FIELD(31, 16, max_inline) | HCA_FIELD(15, 8, mws) | HCA_FIELD(7, 0, xrcds))
/* 54h */
#define HCA_LIM_MAX_PAGE_LOG(w) HCA_BITS(w, 31, 24)
#define HCA_LIM_MTTS_LOG(w) HCA_BITS(w, 23, 16)
#define HCA_LIM_MAKE_MR(max_page_log, mtts_log) \
	(HCA_FIELD(31, 24, max_page_log) | HCA_FIELD(23, 16, mtts_log))
/* 60h */
#define HCA_LIM_MCGS_LOG(w) HCA_BITS(w, 31, 24)
#define HCA_LIM_QP_PER_MCG(w) HCA_BITS(w, 15, 0)
#define HCA_LIM_MAKE_MCAST(mcgs, qps) (HCA_FIELD(31, 24, mcgs) | HCA_FIELD(15, 0, qps))
/* 70h */
#define HCA_LIM_MAX_MSG_LOG(w) HCA_BITS(w, 31, 24)
#define HCA_LIM_SRQ_MAX_SGE(w) HCA_BITS(w, 23, 16)
#define HCA_LIM_MAKE_MSG(max_msg_log, srq_max_sge) \
	(HCA_FIELD(31, 24, max_msg_log) | HCA_FIELD(23, 16, srq_max_sge))

/* 74h */
#define HCA_LIM_TPS_LOG(w) HCA_BITS(w, 31, 24)
#define HCA_LIM_TPG_TPS(w) HCA_BITS(w, 23, 16)
#define HCA_LIM_TP_MTU(w) HCA_BITS(w, 15, 8)
#define HCA_LIM_MAKE_UB(tps, group, mtu) \
	(HCA_FIELD(31, 24, tps) | HCA_FIELD(23, 16, group) | HCA_FIELD(15, 8, mtu))

/* ---- QUERY_ADAPTER, tables 3-2-6 and 3-2-7 ---- */

struct hca_mbox_adapter {
	hca_be32 vendor_id;	 /* 00h [23:0]; extension, as all but the board id */
	hca_be32 vendor_part_id; /* 04h */
	hca_be32 hw_ver;	 /* 08h */
	hca_be32 reserved0c;	 /* 0Ch */
	hca_be64 fw_ver;	 /* 10h major[47:32] minor[31:16] subminor[15:0] */
	hca_be64 board_id;	 /* 18h node GUID */
};
HCA_STATIC_ASSERT_SIZE(struct hca_mbox_adapter, 32);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_adapter, vendor_part_id, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_adapter, hw_ver, 0x08);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_adapter, fw_ver, 0x10);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_adapter, board_id, 0x18);

#define HCA_FW_MAJOR(v) ((uint32_t)HCA_BITS64(v, 47, 32))
#define HCA_FW_MINOR(v) ((uint32_t)HCA_BITS64(v, 31, 16))
#define HCA_FW_SUBMINOR(v) ((uint32_t)HCA_BITS64(v, 15, 0))
#define HCA_FW_VER(major, minor, subminor) \
	(HCA_FIELD64(47, 32, major) | HCA_FIELD64(31, 16, minor) | HCA_FIELD64(15, 0, subminor))

/* ---- INIT_HCA, tables 3-2-9 and 3-2-10 ---- */

/* base fields: ICM address, a multiple of 256, with log2 of the entries in [7:0]. */
struct hca_mbox_init_hca {
	hca_be64 reserved00; /* 00h */
	hca_be64 qpc_base;   /* 08h log_num_qps in [7:0] */
	hca_be64 cqc_base;   /* 10h log_num_cqs in [7:0] */
	hca_be64 eqc_base;   /* 18h log_eqs in [7:0] */
	hca_be64 srqc_base;  /* 20h log_num_srqs in [7:0]; extension: empty in the table */
	hca_be64 reserved28; /* 28h */
	hca_be64 mpt_base;   /* 30h log2 of the MPT entries in [7:0] */
	hca_be64 mtt_base;   /* 38h all 64 bits */
};
HCA_STATIC_ASSERT_SIZE(struct hca_mbox_init_hca, 64);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_init_hca, qpc_base, 0x08);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_init_hca, cqc_base, 0x10);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_init_hca, eqc_base, 0x18);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_init_hca, srqc_base, 0x20);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_init_hca, mpt_base, 0x30);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_init_hca, mtt_base, 0x38);

#define HCA_INIT_BASE(v) ((uint64_t)(v)&HCA_MASK64(63, 8))
#define HCA_INIT_LOG(v) HCA_BITS(v, 7, 0)
#define HCA_INIT_MAKE(base, log) (((uint64_t)(base)&HCA_MASK64(63, 8)) | HCA_FIELD64(7, 0, log))

/* ---- MAP_ICM, tables 3-2-13 and 3-2-14 ---- */

struct hca_icm_entry {
	hca_be64 virt; /* 00h ICM address of the chunk */
	hca_be64 page; /* 08h bus address[63:12], number of 4 KiB pages[11:0] */
};
HCA_STATIC_ASSERT_SIZE(struct hca_icm_entry, 16);
HCA_STATIC_ASSERT_OFFSET(struct hca_icm_entry, page, 0x08);

#define HCA_MAP_ICM_MAX (HCA_MBOX_SIZE / 16u)
#define HCA_ICM_PAGE_SIZE 4096u
#define HCA_ICM_PAGE_ADDR(v) ((uint64_t)(v)&HCA_MASK64(63, 12))
#define HCA_ICM_PAGE_NUM(v) HCA_BITS(v, 11, 0)
#define HCA_ICM_MAKE_PAGE(addr, num) \
	(((uint64_t)(addr)&HCA_MASK64(63, 12)) | HCA_FIELD64(11, 0, num))

/* Groups of two: the lower-numbered entry is at 10h of its 32 bytes, also when it is alone. */
struct hca_mbox_map_icm {
	struct hca_icm_entry slot[HCA_MAP_ICM_MAX];
};
HCA_STATIC_ASSERT_SIZE(struct hca_mbox_map_icm, HCA_MBOX_SIZE);

/* Place of entry i (< HCA_MAP_ICM_MAX). */
static inline struct hca_icm_entry *
hca_map_icm_entry(struct hca_mbox_map_icm *m, uint32_t i)
{
	return &m->slot[i ^ 1u];
}

/* Bytes of the mailbox that n entries occupy. */
#define HCA_MAP_ICM_LEN(n) ((((uint32_t)(n) + 1u) / 2u) * 32u)

/* ---- WRITE_MTT, tables 3-2-22 and 3-2-23 ---- */

#define HCA_WRITE_MTT_MAX ((HCA_MBOX_SIZE - 32u) / 8u)

/* Groups of four from 20h on: entries i..i+3 at 18h, 10h, 08h, 00h; a short group from 18h down. */
struct hca_mbox_write_mtt {
	hca_be32 reserved00[6];		  /* 00h */
	hca_be64 start_index;		  /* 18h first MTT index */
	hca_be64 slot[HCA_WRITE_MTT_MAX]; /* 20h bus addresses of pages */
};
HCA_STATIC_ASSERT_SIZE(struct hca_mbox_write_mtt, HCA_MBOX_SIZE);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_write_mtt, start_index, 0x18);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_write_mtt, slot, 0x20);

/* Place of entry i (< HCA_WRITE_MTT_MAX). */
static inline hca_be64 *
hca_write_mtt_entry(struct hca_mbox_write_mtt *m, uint32_t i)
{
	return &m->slot[i ^ 3u];
}

/* Bytes of the mailbox that n entries occupy. */
#define HCA_WRITE_MTT_LEN(n) (32u + (((uint32_t)(n) + 3u) / 4u) * 32u)

/* ---- RESIZE_CQ, tables 3-2-37 and 3-2-38 ---- */

/*
 * start, ci_db and state_db stand in words the table leaves empty: the new buffer has its own
 * address and record. out_param returns the producer index at which the buffers changed.
 */
struct hca_mbox_resize_cq {
	hca_be32 logsize;	/* 00h logsize[31:24] */
	hca_be32 lkey;		/* 04h */
	hca_be64 start;		/* 08h virtual address of the first CQE */
	hca_be32 ci_db;		/* 10h offset of the consumer index from start */
	hca_be32 state_db;	/* 14h offset of the arm word from start */
	hca_be32 reserved18[2]; /* 18h */
};
HCA_STATIC_ASSERT_SIZE(struct hca_mbox_resize_cq, 32);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_resize_cq, logsize, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_resize_cq, lkey, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_resize_cq, start, 0x08);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_resize_cq, ci_db, 0x10);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_resize_cq, state_db, 0x14);

#define HCA_RESIZE_CQ_LOGSIZE(w) HCA_BITS(w, 31, 24)
#define HCA_RESIZE_CQ_MAKE_LOGSIZE(logsize) HCA_FIELD(31, 24, logsize)

/* ---- extension commands: no tables ---- */

/* SET_GID: one entry of the port's GID table. */
struct hca_mbox_set_gid {
	hca_be32 index;	       /* 00h */
	hca_be32 flags;	       /* 04h valid[31] type[23:16] VLAN tag present[15] tag[14:0] */
	uint8_t gid[16];       /* 08h network order; IPv4 as ::ffff:a.b.c.d */
	uint8_t mac[6];	       /* 18h source MAC of frames sent with this entry */
	uint8_t reserved1e[2]; /* 1Eh */
};
HCA_STATIC_ASSERT_SIZE(struct hca_mbox_set_gid, 32);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_set_gid, index, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_set_gid, flags, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_set_gid, gid, 0x08);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_set_gid, mac, 0x18);

enum hca_gid_type {
	HCA_GID_ROCE_V1 = 0, /* refused: only RoCEv2 is supported */
	HCA_GID_ROCE_V2_IPV4 = 1,
	HCA_GID_ROCE_V2_IPV6 = 2,
};
#define HCA_GID_VALID HCA_BIT(31)
#define HCA_GID_TYPE(w) HCA_BITS(w, 23, 16)
#define HCA_GID_VLAN_PRESENT HCA_BIT(15)
#define HCA_GID_VLAN_ID(w) HCA_BITS(w, 11, 0)
#define HCA_GID_MAKE_FLAGS(valid, type, vlan_present, vlan_id) \
	(HCA_FIELD(31, 31, valid) | HCA_FIELD(23, 16, type) | HCA_FIELD(15, 15, vlan_present) | \
	 HCA_FIELD(11, 0, vlan_id))

/* SET_PKEY: one entry of the port's P_Key table; value 0 = empty. */
struct hca_mbox_set_pkey {
	hca_be32 index;		/* 00h */
	hca_be32 pkey;		/* 04h [15:0], bit 15 = full member */
	hca_be32 reserved08[2]; /* 08h */
};
HCA_STATIC_ASSERT_SIZE(struct hca_mbox_set_pkey, 16);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_set_pkey, pkey, 0x04);

#define HCA_PKEY_DEFAULT 0xffffu
#define HCA_PKEY_FULL 0x8000u
#define HCA_PKEY_BASE(pkey) ((pkey)&0x7fffu)

/* SET_NEIGH: destination address to MAC. */
struct hca_mbox_set_neigh {
	uint8_t dgid[16];      /* 00h network order; IPv4 as ::ffff:a.b.c.d */
	uint8_t dmac[6];       /* 10h */
	uint8_t reserved16[2]; /* 16h */
	hca_be32 flags;	       /* 18h valid[31], sgid_index[7:0] of the interface it is seen on */
	hca_be32 reserved1c;   /* 1Ch */
};
HCA_STATIC_ASSERT_SIZE(struct hca_mbox_set_neigh, 32);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_set_neigh, dgid, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_set_neigh, dmac, 0x10);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_set_neigh, flags, 0x18);

#define HCA_NEIGH_VALID HCA_BIT(31)
#define HCA_NEIGH_SGID_INDEX(w) HCA_BITS(w, 7, 0)

/* MCAST_ATTACH and MCAST_DETACH; in_modifier = QPN. */
struct hca_mbox_mcast {
	uint8_t mgid[16]; /* 00h network order */
};
HCA_STATIC_ASSERT_SIZE(struct hca_mbox_mcast, 16);

/* MODIFY_CQ: an event after count completions or period microseconds, whichever comes first. */
struct hca_mbox_modify_cq {
	hca_be32 moderation;	/* 00h HCA_CQ_MOD_*: count[31:16] period[15:0]; 0 = every one */
	hca_be32 reserved04[3]; /* 04h */
};
HCA_STATIC_ASSERT_SIZE(struct hca_mbox_modify_cq, 16);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_modify_cq, moderation, 0x00);

/* QUERY_CQ answers with struct hca_cqc, QUERY_SRQ with struct hca_srqc. */

#define HCA_COUNTERS_MAX ((HCA_MBOX_SIZE - 16u) / 8u)
#define HCA_COUNTER_NAME_LEN 48u /* with its terminating zero */
#define HCA_COUNTER_NAMES_MAX ((HCA_MBOX_SIZE - 16u) / HCA_COUNTER_NAME_LEN)

/* QUERY_COUNTERS: values, or names (op_modifier). Sets of a QP and of a port fit one mailbox. */
struct hca_mbox_counters {
	hca_be32 count;	     /* 00h entries in this mailbox */
	hca_be32 total;	     /* 04h counters the device has */
	hca_be64 reserved08; /* 08h */
	union {
		hca_be64 value[HCA_COUNTERS_MAX]; /* 10h HCA_COUNTERS_VALUES */
		char name[HCA_COUNTER_NAMES_MAX][HCA_COUNTER_NAME_LEN]; /* 10h ..._NAMES */
	};
};
HCA_STATIC_ASSERT_SIZE(struct hca_mbox_counters, HCA_MBOX_SIZE);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_counters, count, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_counters, total, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_mbox_counters, value, 0x10);

/* ---- MAD_IFC: a 256-byte subnet management MAD in and out, method Get only ---- */

#define HCA_MAD_SIZE 256u

struct hca_mad_smp {
	uint8_t base_version;	 /* 00h 1 */
	uint8_t mgmt_class;	 /* 01h HCA_MAD_CLASS_* */
	uint8_t class_version;	 /* 02h 1 */
	uint8_t method;		 /* 03h HCA_MAD_METHOD_* */
	hca_be16 status;	 /* 04h */
	hca_be16 class_specific; /* 06h */
	hca_be64 tid;		 /* 08h */
	hca_be16 attr_id;	 /* 10h HCA_MAD_ATTR_* */
	hca_be16 reserved12;	 /* 12h */
	hca_be32 attr_mod;	 /* 14h port, or block of a table */
	hca_be64 mkey;		 /* 18h */
	uint8_t reserved20[32];	 /* 20h */
	uint8_t data[64];	 /* 40h the attribute */
	uint8_t reserved80[128]; /* 80h */
};
HCA_STATIC_ASSERT_SIZE(struct hca_mad_smp, HCA_MAD_SIZE);
HCA_STATIC_ASSERT_OFFSET(struct hca_mad_smp, status, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_mad_smp, tid, 0x08);
HCA_STATIC_ASSERT_OFFSET(struct hca_mad_smp, attr_id, 0x10);
HCA_STATIC_ASSERT_OFFSET(struct hca_mad_smp, attr_mod, 0x14);
HCA_STATIC_ASSERT_OFFSET(struct hca_mad_smp, mkey, 0x18);
HCA_STATIC_ASSERT_OFFSET(struct hca_mad_smp, data, 0x40);

#define HCA_MAD_BASE_VERSION 1u
#define HCA_MAD_CLASS_SUBN_LID 0x01u
#define HCA_MAD_CLASS_SUBN_DIR 0x81u
#define HCA_MAD_METHOD_GET 0x01u
#define HCA_MAD_METHOD_GET_RESP 0x81u

/* X(name, attribute id) */
#define HCA_MAD_ATTR_LIST(X) \
	X(NODE_DESC, 0x0010) \
	X(NODE_INFO, 0x0011) \
	X(GUID_INFO, 0x0014) \
	X(PORT_INFO, 0x0015) \
	X(PKEY_TABLE, 0x0016)

enum hca_mad_attr {
#define HCA_MAD_ATTR_ENUM(name, id) HCA_MAD_ATTR_##name = id,
	HCA_MAD_ATTR_LIST(HCA_MAD_ATTR_ENUM)
#undef HCA_MAD_ATTR_ENUM
};

/* status of the answer, bits [4:2] */
#define HCA_MAD_STATUS_OK 0x0000u
#define HCA_MAD_STATUS_BAD_VERSION 0x0004u
#define HCA_MAD_STATUS_BAD_METHOD 0x0008u
#define HCA_MAD_STATUS_BAD_ATTR 0x000cu
#define HCA_MAD_STATUS_BAD_VALUE 0x001cu

/* Entries of an attribute block in the 64 data bytes. */
#define HCA_MAD_PKEYS_PER_BLOCK 32u
#define HCA_MAD_GUIDS_PER_BLOCK 8u

/* NodeInfo, data bytes. Packed: InfiniBand lays fields out without padding. */
struct hca_mad_node_info {
	uint8_t base_version;	 /* 00h */
	uint8_t class_version;	 /* 01h */
	uint8_t node_type;	 /* 02h 1 = channel adapter */
	uint8_t num_ports;	 /* 03h */
	hca_be64 sys_image_guid; /* 04h */
	hca_be64 node_guid;	 /* 0Ch */
	hca_be64 port_guid;	 /* 14h */
	hca_be16 partition_cap;	 /* 1Ch entries of the P_Key table */
	hca_be16 device_id;	 /* 1Eh */
	hca_be32 revision;	 /* 20h */
	hca_be32 port_vendor;	 /* 24h local port[31:24] vendor id[23:0] */
} __attribute__((packed));
HCA_STATIC_ASSERT_SIZE(struct hca_mad_node_info, 40);
HCA_STATIC_ASSERT_OFFSET(struct hca_mad_node_info, node_guid, 0x0c);
HCA_STATIC_ASSERT_OFFSET(struct hca_mad_node_info, partition_cap, 0x1c);

/* PortInfo, data bytes. */
struct hca_mad_port_info {
	hca_be64 mkey;		  /* 00h */
	hca_be64 gid_prefix;	  /* 08h */
	hca_be16 lid;		  /* 10h */
	hca_be16 sm_lid;	  /* 12h */
	hca_be32 cap_mask;	  /* 14h */
	hca_be16 diag_code;	  /* 18h */
	hca_be16 mkey_lease;	  /* 1Ah */
	uint8_t local_port;	  /* 1Ch */
	uint8_t width_enabled;	  /* 1Dh */
	uint8_t width_supported;  /* 1Eh */
	uint8_t width_active;	  /* 1Fh */
	uint8_t speed_state;	  /* 20h link speed supported[7:4] port state[3:0] */
	uint8_t phys_default;	  /* 21h physical state[7:4] link down default[3:0] */
	uint8_t mkey_lmc;	  /* 22h M_Key protection[7:6] LMC[2:0] */
	uint8_t speed_active;	  /* 23h active[7:4] enabled[3:0] */
	uint8_t mtu_smsl;	  /* 24h neighbor MTU[7:4] SM SL[3:0] */
	uint8_t vl_init;	  /* 25h VL cap[7:4] init type[3:0] */
	uint8_t vl_high_limit;	  /* 26h */
	uint8_t vl_arb_high;	  /* 27h */
	uint8_t vl_arb_low;	  /* 28h */
	uint8_t mtu_cap;	  /* 29h init type reply[7:4] MTU cap[3:0] */
	uint8_t vl_stall;	  /* 2Ah */
	uint8_t op_vls;		  /* 2Bh operational VLs[7:4] */
	hca_be16 mkey_violations; /* 2Ch */
	hca_be16 pkey_violations; /* 2Eh */
	hca_be16 qkey_violations; /* 30h */
	uint8_t guid_cap;	  /* 32h entries of the GUID table */
	uint8_t subnet_timeout;	  /* 33h [4:0] */
	uint8_t resp_time;	  /* 34h [4:0] */
	uint8_t error_limits;	  /* 35h */
	uint8_t reserved36[10];	  /* 36h */
} __attribute__((packed));
HCA_STATIC_ASSERT_SIZE(struct hca_mad_port_info, 64);
HCA_STATIC_ASSERT_OFFSET(struct hca_mad_port_info, cap_mask, 0x14);
HCA_STATIC_ASSERT_OFFSET(struct hca_mad_port_info, local_port, 0x1c);
HCA_STATIC_ASSERT_OFFSET(struct hca_mad_port_info, mtu_smsl, 0x24);
HCA_STATIC_ASSERT_OFFSET(struct hca_mad_port_info, mtu_cap, 0x29);
HCA_STATIC_ASSERT_OFFSET(struct hca_mad_port_info, pkey_violations, 0x2e);
HCA_STATIC_ASSERT_OFFSET(struct hca_mad_port_info, guid_cap, 0x32);

#endif
