/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_QP_ATTR_H
#define HCA_ABI_QP_ATTR_H

/*
 * The context of a QP, which is also the mailbox of MODIFY_QP and QUERY_QP, and its attributes:
 * where each stands in the mailbox, which values it has, and which transition takes it. The
 * library, the device, both front ends of verbs and the tests are made from these lists, whose
 * limits and commands are those of abi_ctx.h, abi_roce.h and abi_cmd.h. docs/recipes.md: "An
 * attribute of a QP".
 */

#include "abi_bits.h"

/* ---- context, tables 3-2-40 .. 3-2-42: big-endian words ---- */

/*
 * Path of a QP: 1Ch..4Fh of table 3-2-40 (primary) and C0h..F3h (alternate). Offsets here are
 * relative; those of the primary path stand in brackets.
 */
struct hca_qpc_path {
	hca_be32 port_pkey; /* 00h [1Ch] port[26:24] P_Key index[6:0] */
	hca_be32 rnr_retry; /* 04h [20h] rnr_retry[31:24] has_grh[23] mylmc[22:16] */
	hca_be32 ackto;	    /* 08h [24h] ack timeout[31:24] GID index[23:16] rate[15:8] hop[7:0] */
	hca_be32 sl_tclass_flow; /* 0Ch [28h] sl[31:28] traffic class[27:20] flow label[19:0] */
	uint8_t rgid[16];	 /* 10h [2Ch] destination GID, network order */
	hca_be32 mac_lo;	 /* 20h [3Ch] dmac[15:0] in [31:16], smac[15:0] in [15:0] */
	hca_be32 smac_hi;	 /* 24h [40h] smac[47:16] */
	hca_be32 dmac_hi;	 /* 28h [44h] dmac[47:16] */
	hca_be32 sip;		 /* 2Ch [48h] IPv4 source */
	hca_be32 dip;		 /* 30h [4Ch] IPv4 destination */
};
HCA_STATIC_ASSERT_SIZE(struct hca_qpc_path, 0x34);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc_path, port_pkey, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc_path, rnr_retry, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc_path, ackto, 0x08);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc_path, sl_tclass_flow, 0x0c);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc_path, rgid, 0x10);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc_path, mac_lo, 0x20);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc_path, smac_hi, 0x24);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc_path, dmac_hi, 0x28);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc_path, sip, 0x2c);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc_path, dip, 0x30);

#define HCA_QPC_SIZE 256u

/*
 * QP context, table 3-2-40. Words that the table marks unused carry attributes of verbs and ours:
 * 04h, 50h, 54h, 58h, 60h, 68h, 08h[12:11], 08h[5:0], C0h..F3h.
 */
struct hca_qpc {
	hca_be32 opt_param_mask;      /* 00h HCA_QP_ATTR_* being modified */
	hca_be32 rate_limit;	      /* 04h kb/s of Ethernet frames, 0: none */
	hca_be32 flags;		      /* 08h state[31:28] service[23:16] mig[12:11]
				       * no_own_group[5] privileged[1] draining[0] */
	hca_be32 sizes;		      /* 0Ch mtu[31:29] msgmax[28:24] rq stride[23:16] sq[15:8] */
	hca_be32 usr_page;	      /* 10h UAR page of the owner */
	hca_be32 local_qpn;	      /* 14h [23:0] */
	hca_be32 remote_qpn;	      /* 18h [23:0] of privileged UD: source QPN, 0: local_qpn */
	struct hca_qpc_path path;     /* 1Ch primary path */
	hca_be32 access_flags;	      /* 50h HCA_ACCESS_* */
	hca_be32 rd_atomic;	      /* 54h max_rd_atomic[31:24] max_dest[23:16] retry_cnt[15:8] */
	hca_be32 srqn;		      /* 58h valid[31] SRQN[23:0] */
	hca_be32 pd;		      /* 5Ch */
	hca_be32 congestion;	      /* 60h number of an algorithm, 0: that of the HCA */
	hca_be32 wqe_lkey;	      /* 64h unused: each queue has its own key */
	hca_be32 xrcd;		      /* 68h XRC domain */
	hca_be32 next_send_psn;	      /* 6Ch [23:0] */
	hca_be32 cqn_snd;	      /* 70h CQ of the SQ */
	hca_be32 snd_wqe_base_l;      /* 74h lkey of the SQ */
	hca_be32 snd_wqe_len;	      /* 78h bytes of the SQ */
	hca_be32 last_acked_psn;      /* 7Ch [23:0] oldest unacknowledged PSN */
	hca_be32 ssn;		      /* 80h unused */
	hca_be32 rnr_nextrecvpsn;     /* 84h min RNR timer[31:24] expected PSN[23:0] */
	hca_be32 ra_buff_indx;	      /* 88h unused */
	hca_be32 cqn_rcv;	      /* 8Ch CQ of the RQ */
	hca_be32 rcv_wqe_base_l;      /* 90h lkey of the RQ */
	hca_be32 rcv_wqe_len;	      /* 94h bytes of the RQ, without its producer record */
	hca_be32 qkey;		      /* 98h of a Jetty: TokenValue */
	hca_be32 rmsn;		      /* 9Ch [23:0] messages the responder completed */
	hca_be32 reserveda0[7];	      /* A0h */
	hca_be32 wqe_counters;	      /* BCh rq_wqe_counter[31:16] sq_wqe_counter[15:0] */
	struct hca_qpc_path alt_path; /* C0h alternate path */
	hca_be32 reservedf4[3];	      /* F4h */
};
HCA_STATIC_ASSERT_SIZE(struct hca_qpc, HCA_QPC_SIZE);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, opt_param_mask, 0x00);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, rate_limit, 0x04);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, flags, 0x08);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, sizes, 0x0c);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, usr_page, 0x10);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, local_qpn, 0x14);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, remote_qpn, 0x18);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, path, 0x1c);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, path.rgid, 0x2c);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, path.mac_lo, 0x3c);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, path.dip, 0x4c);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, access_flags, 0x50);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, rd_atomic, 0x54);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, srqn, 0x58);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, pd, 0x5c);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, congestion, 0x60);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, wqe_lkey, 0x64);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, xrcd, 0x68);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, next_send_psn, 0x6c);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, cqn_snd, 0x70);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, snd_wqe_base_l, 0x74);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, snd_wqe_len, 0x78);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, last_acked_psn, 0x7c);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, ssn, 0x80);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, rnr_nextrecvpsn, 0x84);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, ra_buff_indx, 0x88);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, cqn_rcv, 0x8c);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, rcv_wqe_base_l, 0x90);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, rcv_wqe_len, 0x94);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, qkey, 0x98);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, rmsn, 0x9c);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, wqe_counters, 0xbc);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, alt_path, 0xc0);
HCA_STATIC_ASSERT_OFFSET(struct hca_qpc, reservedf4, 0xf4);

/* All of a word, where an attribute has it to itself. */
#define HCA_QPC_WORD(w) ((uint32_t)(w))

/* 08h flags, table 3-2-42 */
#define HCA_QPC_STATE(flags) HCA_BITS(flags, 31, 28)
#define HCA_QPC_SERVICE(flags) HCA_BITS(flags, 23, 16)
#define HCA_QPC_MIG(flags) HCA_BITS(flags, 12, 11)
#define HCA_QPC_DRAINING HCA_BIT(0)
/* Latched at RST2INIT, owned by the driver: may use Q_Keys with the top bit and QPNs 0 and 1. */
#define HCA_QPC_PRIVILEGED HCA_BIT(1)
/* Latched at RST2RTS, of Jettys: a failed request suspends the SQ (SQD) instead of going on. */
#define HCA_QPC_SUSPEND HCA_BIT(2)
/* Sends to it, and its own immediate data, must have the TokenValue at 98h. */
#define HCA_QPC_TOKEN HCA_BIT(3)
/* Latched at RST2RTS, of Jettys: it has to do with one peer only, which BIND_JETTY names. */
#define HCA_QPC_ONE_PEER HCA_BIT(4)
/* Latched at RST2INIT, for UD: the QP does not receive its own datagrams to its groups. */
#define HCA_QPC_NO_OWN_GROUP HCA_BIT(5)
#define HCA_QPC_MAKE_FLAGS(state, service, mig, draining) \
	(HCA_FIELD(31, 28, state) | HCA_FIELD(23, 16, service) | HCA_FIELD(12, 11, mig) | \
	 HCA_FIELD(0, 0, draining))
#define HCA_QPC_SET_STATE(flags, state) HCA_SET_BITS(flags, 31, 28, state)

/* 0Ch sizes; strides are base-2 logarithms of bytes */
#define HCA_QPC_MTU(w) HCA_BITS(w, 31, 29)
#define HCA_QPC_MSGMAX(w) HCA_BITS(w, 28, 24)
#define HCA_QPC_RQ_STRIDE_LOG(w) HCA_BITS(w, 23, 16)
#define HCA_QPC_SQ_STRIDE_LOG(w) HCA_BITS(w, 15, 8)
#define HCA_QPC_MAKE_SIZES(mtu, msgmax, rq_stride_log, sq_stride_log) \
	(HCA_FIELD(31, 29, mtu) | HCA_FIELD(28, 24, msgmax) | HCA_FIELD(23, 16, rq_stride_log) | \
	 HCA_FIELD(15, 8, sq_stride_log))

/* 1Ch port_pkey */
#define HCA_QPC_PORT(w) HCA_BITS(w, 26, 24)
#define HCA_QPC_PKEY_INDEX(w) HCA_BITS(w, 6, 0)
#define HCA_QPC_MAKE_PORT_PKEY(port, pkey_index) \
	(HCA_FIELD(26, 24, port) | HCA_FIELD(6, 0, pkey_index))

/* 20h */
#define HCA_QPC_RNR_RETRY(w) HCA_BITS(w, 31, 24)
#define HCA_QPC_HAS_GRH HCA_BIT(23)
#define HCA_QPC_MYLMC(w) HCA_BITS(w, 22, 16)
#define HCA_QPC_MAKE_RNR_RETRY(rnr_retry, has_grh) \
	(HCA_FIELD(31, 24, rnr_retry) | HCA_FIELD(23, 23, has_grh))

/* 24h */
#define HCA_QPC_ACKTO(w) HCA_BITS(w, 31, 24)
#define HCA_QPC_GID_INDEX(w) HCA_BITS(w, 23, 16)
#define HCA_QPC_STATIC_RATE(w) HCA_BITS(w, 15, 8)
#define HCA_QPC_HOP_LIMIT(w) HCA_BITS(w, 7, 0)
#define HCA_QPC_MAKE_ACKTO(ackto, gid_index, static_rate, hop_limit) \
	(HCA_FIELD(31, 24, ackto) | HCA_FIELD(23, 16, gid_index) | HCA_FIELD(15, 8, static_rate) | \
	 HCA_FIELD(7, 0, hop_limit))

/* 28h */
#define HCA_QPC_SL(w) HCA_BITS(w, 31, 28)
#define HCA_QPC_SL_MASK 7u /* the priority of a VLAN tag has three bits */
#define HCA_QPC_TCLASS(w) HCA_BITS(w, 27, 20)
#define HCA_QPC_FLOW_LABEL(w) HCA_BITS(w, 19, 0)
#define HCA_QPC_MAKE_SL_TCLASS_FLOW(sl, tclass, flow_label) \
	(HCA_FIELD(31, 28, sl) | HCA_FIELD(27, 20, tclass) | HCA_FIELD(19, 0, flow_label))

/* 3Ch..47h: MAC addresses as 48-bit numbers, first byte on the wire in [47:40] */
#define HCA_QPC_DMAC(mac_lo, dmac_hi) (((uint64_t)(dmac_hi) << 16) | HCA_BITS(mac_lo, 31, 16))
#define HCA_QPC_SMAC(mac_lo, smac_hi) (((uint64_t)(smac_hi) << 16) | HCA_BITS(mac_lo, 15, 0))
#define HCA_QPC_MAKE_MAC_LO(dmac, smac) \
	(HCA_FIELD(31, 16, (dmac)&0xffffu) | HCA_FIELD(15, 0, (smac)&0xffffu))
#define HCA_QPC_MAC_HI(mac) HCA_BITS(mac, 47, 16)

/* 54h */
#define HCA_QPC_MAX_RD_ATOMIC(w) HCA_BITS(w, 31, 24)
#define HCA_QPC_MAX_DEST_RD_ATOMIC(w) HCA_BITS(w, 23, 16)
#define HCA_QPC_RETRY_CNT(w) HCA_BITS(w, 15, 8)
#define HCA_QPC_MAKE_RD_ATOMIC(max_rd_atomic, max_dest_rd_atomic, retry_cnt) \
	(HCA_FIELD(31, 24, max_rd_atomic) | HCA_FIELD(23, 16, max_dest_rd_atomic) | \
	 HCA_FIELD(15, 8, retry_cnt))

/* 58h */
#define HCA_QPC_SRQ_VALID HCA_BIT(31)
#define HCA_QPC_SRQN(w) HCA_BITS(w, 23, 0)

/* 84h */
#define HCA_QPC_MIN_RNR_TIMER(w) HCA_BITS(w, 31, 24)
#define HCA_QPC_EPSN(w) HCA_BITS(w, 23, 0)
#define HCA_QPC_MAKE_RNR_EPSN(min_rnr_timer, epsn) \
	(HCA_FIELD(31, 24, min_rnr_timer) | HCA_FIELD(23, 0, epsn))

/* BCh */
#define HCA_QPC_RQ_COUNTER(w) HCA_BITS(w, 31, 16)
#define HCA_QPC_SQ_COUNTER(w) HCA_BITS(w, 15, 0)
#define HCA_QPC_MAKE_COUNTERS(rq, sq) (HCA_FIELD(31, 16, rq) | HCA_FIELD(15, 0, sq))

/* ---- attributes ---- */

/* Attributes of MODIFY_QP, table A1-3: bits of hca_qpc.opt_param_mask. X(name, bit) */
#define HCA_QP_ATTR_LIST(X) \
	X(STATE, 0) \
	X(CUR_STATE, 1) \
	X(EN_SQD_ASYNC_NOTIFY, 2) \
	X(ACCESS_FLAGS, 3) \
	X(PKEY_INDEX, 4) \
	X(PORT, 5) \
	X(QKEY, 6) \
	X(AV, 7) \
	X(PATH_MTU, 8) \
	X(TIMEOUT, 9) \
	X(RETRY_CNT, 10) \
	X(RNR_RETRY, 11) \
	X(RQ_PSN, 12) \
	X(MAX_QP_RD_ATOMIC, 13) \
	X(ALT_PATH, 14) \
	X(MIN_RNR_TIMER, 15) \
	X(SQ_PSN, 16) \
	X(MAX_DEST_RD_ATOMIC, 17) \
	X(PATH_MIG_STATE, 18) \
	X(CAP, 19) \
	X(DEST_QPN, 20) \
	X(RATE_LIMIT, 25) \
	X(CONGESTION, 26)

enum hca_qp_attr_mask {
#define HCA_QP_ATTR_ENUM(name, bit) HCA_QP_ATTR_##name = 1 << (bit),
	HCA_QP_ATTR_LIST(HCA_QP_ATTR_ENUM)
#undef HCA_QP_ATTR_ENUM
};

/*
 * Attributes in words of the mailbox:
 * X(attribute, member, word, field, min, max, limit, rule, verbs)
 *   attribute  name in HCA_QP_ATTR_LIST; one may have several rows
 *   member     of struct softhca_qp_attr
 *   word       of struct hca_qpc
 *   field      part of the word, which HCA_QPC_##field() reads
 *   min, max   values that the device takes; it has no other check unless qp_judge.c says so
 *   limit      largest value that the library takes; info is struct hca_ctl_info of the HCA
 *   rule       enum hca_qp_attr_rule: how the library treats other values
 *   verbs      KERNEL: a member of the same name in struct ibv_qp_attr and ib_uverbs_qp_attr;
 *              IBV: in struct ibv_qp_attr; OWN: not known to verbs
 */
#define HCA_QP_FIELD_LIST(X) \
	X(ACCESS_FLAGS, qp_access_flags, access_flags, WORD, 0, \
	  HCA_ACCESS_MASK | HCA_ACCESS_FLUSH, HCA_ACCESS_REMOTE_OF(info->flags), CUT, KERNEL) \
	X(PKEY_INDEX, pkey_index, path.port_pkey, PKEY_INDEX, 0, HCA_ATTR_ANY, \
	  info->pkey_entries - 1, RANGE, KERNEL) \
	X(PORT, port_num, path.port_pkey, PORT, 1, HCA_PORTS, info->num_ports, RANGE, KERNEL) \
	X(QKEY, qkey, qkey, WORD, 0, HCA_ATTR_ANY, HCA_ATTR_ANY, RANGE, KERNEL) \
	X(PATH_MTU, path_mtu, sizes, MTU, HCA_MTU_256, HCA_MTU_MAX, info->max_mtu, RANGE, KERNEL) \
	X(TIMEOUT, timeout, path.ackto, ACKTO, 0, HCA_ACK_TIMEOUT_MAX, HCA_ACK_TIMEOUT_MAX, RANGE, \
	  KERNEL) \
	X(RETRY_CNT, retry_cnt, rd_atomic, RETRY_CNT, 0, HCA_RETRY_MAX, HCA_RETRY_MAX, RANGE, \
	  KERNEL) \
	X(RNR_RETRY, rnr_retry, path.rnr_retry, RNR_RETRY, 0, HCA_RNR_RETRY_FOREVER, \
	  HCA_RNR_RETRY_FOREVER, RANGE, KERNEL) \
	X(RQ_PSN, rq_psn, rnr_nextrecvpsn, EPSN, 0, HCA_PSN_MASK, HCA_PSN_MASK, CUT, KERNEL) \
	X(MAX_QP_RD_ATOMIC, max_rd_atomic, rd_atomic, MAX_RD_ATOMIC, 0, HCA_RD_ATOMIC_MAX, \
	  info->max_rd_atomic, RANGE, KERNEL) \
	X(ALT_PATH, alt_pkey_index, alt_path.port_pkey, PKEY_INDEX, 0, HCA_ATTR_ANY, \
	  info->pkey_entries - 1, RANGE, KERNEL) \
	X(ALT_PATH, alt_port_num, alt_path.port_pkey, PORT, 1, HCA_PORTS, info->num_ports, RANGE, \
	  KERNEL) \
	X(ALT_PATH, alt_timeout, alt_path.ackto, ACKTO, 0, HCA_ACK_TIMEOUT_MAX, \
	  HCA_ACK_TIMEOUT_MAX, RANGE, KERNEL) \
	X(MIN_RNR_TIMER, min_rnr_timer, rnr_nextrecvpsn, MIN_RNR_TIMER, 0, HCA_RNR_TIMER_MAX, \
	  HCA_RNR_TIMER_MAX, RANGE, KERNEL) \
	X(SQ_PSN, sq_psn, next_send_psn, WORD, 0, HCA_PSN_MASK, HCA_PSN_MASK, CUT, KERNEL) \
	X(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, rd_atomic, MAX_DEST_RD_ATOMIC, 0, \
	  HCA_RD_ATOMIC_MAX, info->max_dest_rd_atomic, RANGE, KERNEL) \
	X(PATH_MIG_STATE, path_mig_state, flags, MIG, 0, HCA_ATTR_ANY, HCA_MIG_REARM, RANGE, \
	  KERNEL) \
	X(DEST_QPN, dest_qp_num, remote_qpn, WORD, HCA_QPN_GSI + 1, HCA_QPN_MULTICAST - 1, \
	  HCA_QPN_MULTICAST - 1, RANGE, KERNEL) \
	X(RATE_LIMIT, rate_limit, rate_limit, WORD, HCA_RATE_LIMIT_MIN, HCA_RATE_LIMIT_MAX, \
	  HCA_RATE_LIMIT_MAX, OPTION, IBV) \
	X(CONGESTION, congestion, congestion, WORD, 0, HCA_CONGESTION_MAX, HCA_CONGESTION_MAX, \
	  RANGE, OWN)

/* How the library treats values outside of min..limit. */
enum hca_qp_attr_rule {
	HCA_QP_ATTR_RANGE,  /* refuses them */
	HCA_QP_ATTR_OPTION, /* refuses them, except 0: none */
	HCA_QP_ATTR_CUT,    /* max and limit are masks: drops other bits; the device refuses them */
};

#define HCA_ATTR_ANY UINT32_MAX
#define HCA_PORTS 1u /* of an HCA */
#define HCA_ACK_TIMEOUT_MAX 31u
#define HCA_RNR_TIMER_MAX 31u
/*
 * kb/s. Requests and retransmissions of the QP keep to it, and to the static rate of the path,
 * where that is less. Reliable services and UC have one.
 */
#define HCA_RATE_LIMIT_MIN 1000u
#define HCA_RATE_LIMIT_MAX 400000000u
/* Number of the last algorithm of congestion control; RC and XRC have one, on the way to RTR. */
#define HCA_CONGESTION_MAX 3u

/*
 * The same for the parts of an address: for AV, ah_attr and path; for ALT_PATH, alt_ah_attr and
 * alt_path. The GID of the address stands in rgid, MAC and IP addresses come from the driver.
 */
#define HCA_QP_PATH_LIST(X, attribute, ah, p) \
	X(attribute, ah.sgid_index, p.ackto, GID_INDEX, 0, HCA_ATTR_ANY, info->gid_entries - 1, \
	  RANGE, IBV) \
	X(attribute, ah.static_rate, p.ackto, STATIC_RATE, 0, HCA_ATTR_ANY, HCA_ATTR_ANY, RANGE, \
	  IBV) \
	X(attribute, ah.hop_limit, p.ackto, HOP_LIMIT, 0, HCA_ATTR_ANY, HCA_ATTR_ANY, RANGE, IBV) \
	X(attribute, ah.sl, p.sl_tclass_flow, SL, 0, HCA_ATTR_ANY, HCA_QPC_SL_MASK, CUT, IBV) \
	X(attribute, ah.traffic_class, p.sl_tclass_flow, TCLASS, 0, HCA_ATTR_ANY, HCA_ATTR_ANY, \
	  RANGE, IBV) \
	X(attribute, ah.flow_label, p.sl_tclass_flow, FLOW_LABEL, 0, HCA_ATTR_ANY, HCA_ATTR_ANY, \
	  CUT, IBV)

/* Parts of attributes that only the mailbox has: X(attribute, word, bits) */
#define HCA_QP_WORD_LIST(X) \
	X(PATH_MTU, sizes, HCA_MASK(28, 24)) \
	HCA_QP_PATH_WORD_LIST(X, AV, path) \
	HCA_QP_PATH_WORD_LIST(X, ALT_PATH, alt_path)
#define HCA_QP_PATH_WORD_LIST(X, attribute, p) \
	X(attribute, p.rnr_retry, HCA_MASK(23, 16)) \
	X(attribute, p.rgid[0], HCA_MASK(31, 0)) \
	X(attribute, p.rgid[4], HCA_MASK(31, 0)) \
	X(attribute, p.rgid[8], HCA_MASK(31, 0)) \
	X(attribute, p.rgid[12], HCA_MASK(31, 0)) \
	X(attribute, p.mac_lo, HCA_MASK(31, 0)) \
	X(attribute, p.smac_hi, HCA_MASK(31, 0)) \
	X(attribute, p.dmac_hi, HCA_MASK(31, 0)) \
	X(attribute, p.sip, HCA_MASK(31, 0)) \
	X(attribute, p.dip, HCA_MASK(31, 0))

/* Rows of both lists. */
#define HCA_QP_VALUE_LIST(X) \
	HCA_QP_FIELD_LIST(X) \
	HCA_QP_PATH_LIST(X, AV, ah_attr, path) \
	HCA_QP_PATH_LIST(X, ALT_PATH, alt_ah_attr, alt_path)

/* Members of struct softhca_qp_attr that are not made from rows above. X(attribute, member) */
#define HCA_QP_MEMBER_LIST(X) \
	X(STATE, qp_state) \
	X(CUR_STATE, cur_qp_state) \
	X(EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify) \
	X(AV, ah_attr) \
	X(ALT_PATH, alt_ah_attr) \
	X(CAP, cap)

/* ---- transitions ---- */

/*
 * The table of QP transitions: table A1-2, completed with the attributes that InfiniBand requires
 * for reads and atomics (MAX_QP_RD_ATOMIC, MAX_DEST_RD_ATOMIC) and with XRC. INIT to INIT changes
 * the named attributes, as InfiniBand says. A transition that is not in it is illegal.
 *
 * HCA_QP_TRANSITION_LIST(X): X(cmd, from, to, service, required, optional)
 *   cmd       name in HCA_CMD_LIST, to be appended to HCA_CMD_
 *   from, to  states, to be appended to HCA_QPS_
 *   service   to be appended to HCA_ST_
 *   required, optional  masks of HCA_QP_ATTR_*; STATE is optional in every row; anything else is
 *             refused
 *
 * RD has no rows: it is not offered. Jettys and JFSs have no path and no peer, so one transition
 * makes them ready.
 */
#define HCA_QPA(name) ((uint32_t)HCA_QP_ATTR_##name)

/* The row a service has in every transition to RST and ERR. */
#define HCA_QP_T_ALL(X, cmd, from, to) \
	X(cmd, from, to, RC, 0, HCA_QPA(STATE)) \
	X(cmd, from, to, UC, 0, HCA_QPA(STATE)) \
	X(cmd, from, to, UD, 0, HCA_QPA(STATE)) \
	X(cmd, from, to, XRC_INI, 0, HCA_QPA(STATE)) \
	X(cmd, from, to, XRC_TGT, 0, HCA_QPA(STATE))

/* The same of UB, without INIT, RTR and SQE. */
#define HCA_QP_T_UB(X, cmd, from, to) \
	X(cmd, from, to, JETTY, 0, HCA_QPA(STATE)) \
	X(cmd, from, to, JFS, 0, HCA_QPA(STATE))

#define HCA_QPA_INIT_CONN (HCA_QPA(PKEY_INDEX) | HCA_QPA(PORT) | HCA_QPA(ACCESS_FLAGS))
#define HCA_QPA_INIT_UD (HCA_QPA(PKEY_INDEX) | HCA_QPA(PORT) | HCA_QPA(QKEY))
#define HCA_QPA_CONNECT (HCA_QPA(AV) | HCA_QPA(PATH_MTU) | HCA_QPA(DEST_QPN))
#define HCA_QPA_RESPOND (HCA_QPA(RQ_PSN) | HCA_QPA(MAX_DEST_RD_ATOMIC) | HCA_QPA(MIN_RNR_TIMER))
#define HCA_QPA_RTR_OPT \
	(HCA_QPA(STATE) | HCA_QPA(ALT_PATH) | HCA_QPA(ACCESS_FLAGS) | HCA_QPA(PKEY_INDEX))
/* of services that congestion control limits */
#define HCA_QPA_RTR_RC_OPT (HCA_QPA_RTR_OPT | HCA_QPA(CONGESTION))
#define HCA_QPA_REQUEST \
	(HCA_QPA(TIMEOUT) | HCA_QPA(RETRY_CNT) | HCA_QPA(RNR_RETRY) | HCA_QPA(SQ_PSN) | \
	 HCA_QPA(MAX_QP_RD_ATOMIC))
#define HCA_QPA_UD_OPT (HCA_QPA(STATE) | HCA_QPA(CUR_STATE) | HCA_QPA(QKEY))
#define HCA_QPA_RTS_OPT \
	(HCA_QPA(STATE) | HCA_QPA(CUR_STATE) | HCA_QPA(ALT_PATH) | HCA_QPA(ACCESS_FLAGS) | \
	 HCA_QPA(PATH_MIG_STATE))
/* of services whose requests have a connection's rate */
#define HCA_QPA_LIMIT HCA_QPA(RATE_LIMIT)
#define HCA_QPA_RTS_OPT_RESP (HCA_QPA_RTS_OPT | HCA_QPA(MIN_RNR_TIMER))
#define HCA_QPA_SQD_OPT (HCA_QPA(STATE) | HCA_QPA(EN_SQD_ASYNC_NOTIFY))
#define HCA_QPA_PATH_OPT \
	(HCA_QPA(STATE) | HCA_QPA(AV) | HCA_QPA(ALT_PATH) | HCA_QPA(ACCESS_FLAGS) | \
	 HCA_QPA(PKEY_INDEX) | HCA_QPA(PATH_MIG_STATE))
#define HCA_QPA_SQD_REQ_OPT \
	(HCA_QPA_PATH_OPT | HCA_QPA(PORT) | HCA_QPA(TIMEOUT) | HCA_QPA(RETRY_CNT) | \
	 HCA_QPA(RNR_RETRY) | HCA_QPA(MAX_QP_RD_ATOMIC))
#define HCA_QPA_SQD_RESP_OPT \
	(HCA_QPA_PATH_OPT | HCA_QPA(PORT) | HCA_QPA(TIMEOUT) | HCA_QPA(MIN_RNR_TIMER) | \
	 HCA_QPA(MAX_DEST_RD_ATOMIC))

#define HCA_QPA_JFS (HCA_QPA(TIMEOUT) | HCA_QPA(RNR_RETRY))

#define HCA_QP_TRANSITION_LIST(X) \
	/* RST */ \
	HCA_QP_T_ALL(X, ERR2RST_QPEE, RST, RST) \
	X(RST2INIT_QPEE, RST, INIT, RC, HCA_QPA_INIT_CONN, HCA_QPA(STATE)) \
	X(RST2INIT_QPEE, RST, INIT, UC, HCA_QPA_INIT_CONN, HCA_QPA(STATE)) \
	X(RST2INIT_QPEE, RST, INIT, UD, HCA_QPA_INIT_UD, HCA_QPA(STATE)) \
	X(RST2INIT_QPEE, RST, INIT, XRC_INI, HCA_QPA_INIT_CONN, HCA_QPA(STATE)) \
	X(RST2INIT_QPEE, RST, INIT, XRC_TGT, HCA_QPA_INIT_CONN, HCA_QPA(STATE)) \
	/* INIT */ \
	HCA_QP_T_ALL(X, ERR2RST_QPEE, INIT, RST) \
	HCA_QP_T_ALL(X, 2ERR_QPEE, INIT, ERR) \
	X(INIT2INIT_QPEE, INIT, INIT, RC, 0, HCA_QPA(STATE) | HCA_QPA_INIT_CONN) \
	X(INIT2INIT_QPEE, INIT, INIT, UC, 0, HCA_QPA(STATE) | HCA_QPA_INIT_CONN) \
	X(INIT2INIT_QPEE, INIT, INIT, UD, 0, HCA_QPA(STATE) | HCA_QPA_INIT_UD) \
	X(INIT2INIT_QPEE, INIT, INIT, XRC_INI, 0, HCA_QPA(STATE) | HCA_QPA_INIT_CONN) \
	X(INIT2INIT_QPEE, INIT, INIT, XRC_TGT, 0, HCA_QPA(STATE) | HCA_QPA_INIT_CONN) \
	X(INIT2RTR_QPEE, INIT, RTR, RC, HCA_QPA_CONNECT | HCA_QPA_RESPOND, HCA_QPA_RTR_RC_OPT) \
	X(INIT2RTR_QPEE, INIT, RTR, UC, HCA_QPA_CONNECT | HCA_QPA(RQ_PSN), HCA_QPA_RTR_OPT) \
	X(INIT2RTR_QPEE, INIT, RTR, UD, 0, HCA_QPA(STATE) | HCA_QPA(PKEY_INDEX) | HCA_QPA(QKEY)) \
	/* verbs programs give an XRC initiator a receive PSN it never uses */ \
	X(INIT2RTR_QPEE, INIT, RTR, XRC_INI, HCA_QPA_CONNECT, \
	  HCA_QPA_RTR_RC_OPT | HCA_QPA(RQ_PSN)) \
	X(INIT2RTR_QPEE, INIT, RTR, XRC_TGT, HCA_QPA_CONNECT | HCA_QPA_RESPOND, \
	  HCA_QPA_RTR_RC_OPT) \
	/* RTR */ \
	HCA_QP_T_ALL(X, ERR2RST_QPEE, RTR, RST) \
	HCA_QP_T_ALL(X, 2ERR_QPEE, RTR, ERR) \
	X(RTR2RTS_QPEE, RTR, RTS, RC, HCA_QPA_REQUEST, HCA_QPA_RTS_OPT_RESP | HCA_QPA_LIMIT) \
	X(RTR2RTS_QPEE, RTR, RTS, UC, HCA_QPA(SQ_PSN), HCA_QPA_RTS_OPT | HCA_QPA_LIMIT) \
	X(RTR2RTS_QPEE, RTR, RTS, UD, HCA_QPA(SQ_PSN), HCA_QPA_UD_OPT) \
	X(RTR2RTS_QPEE, RTR, RTS, XRC_INI, HCA_QPA_REQUEST, HCA_QPA_RTS_OPT | HCA_QPA_LIMIT) \
	X(RTR2RTS_QPEE, RTR, RTS, XRC_TGT, HCA_QPA(SQ_PSN) | HCA_QPA(TIMEOUT), \
	  HCA_QPA_RTS_OPT_RESP) \
	/* RTS */ \
	HCA_QP_T_ALL(X, ERR2RST_QPEE, RTS, RST) \
	HCA_QP_T_ALL(X, 2ERR_QPEE, RTS, ERR) \
	X(RTS2RTS_QPEE, RTS, RTS, RC, 0, HCA_QPA_RTS_OPT_RESP | HCA_QPA_LIMIT) \
	X(RTS2RTS_QPEE, RTS, RTS, UC, 0, HCA_QPA_RTS_OPT | HCA_QPA_LIMIT) \
	X(RTS2RTS_QPEE, RTS, RTS, UD, 0, HCA_QPA_UD_OPT) \
	X(RTS2RTS_QPEE, RTS, RTS, XRC_INI, 0, HCA_QPA_RTS_OPT | HCA_QPA_LIMIT) \
	X(RTS2RTS_QPEE, RTS, RTS, XRC_TGT, 0, HCA_QPA_RTS_OPT_RESP) \
	X(RTS2SQD_QPEE, RTS, SQD, RC, 0, HCA_QPA_SQD_OPT) \
	X(RTS2SQD_QPEE, RTS, SQD, UC, 0, HCA_QPA_SQD_OPT) \
	X(RTS2SQD_QPEE, RTS, SQD, UD, 0, HCA_QPA_SQD_OPT) \
	X(RTS2SQD_QPEE, RTS, SQD, XRC_INI, 0, HCA_QPA_SQD_OPT) \
	X(RTS2SQD_QPEE, RTS, SQD, XRC_TGT, 0, HCA_QPA_SQD_OPT) \
	/* SQD */ \
	HCA_QP_T_ALL(X, ERR2RST_QPEE, SQD, RST) \
	HCA_QP_T_ALL(X, 2ERR_QPEE, SQD, ERR) \
	X(SQD2RTS_QPEE, SQD, RTS, RC, 0, HCA_QPA_RTS_OPT_RESP | HCA_QPA_LIMIT) \
	X(SQD2RTS_QPEE, SQD, RTS, UC, 0, HCA_QPA_RTS_OPT | HCA_QPA_LIMIT) \
	X(SQD2RTS_QPEE, SQD, RTS, UD, 0, HCA_QPA_UD_OPT) \
	X(SQD2RTS_QPEE, SQD, RTS, XRC_INI, 0, HCA_QPA_RTS_OPT | HCA_QPA_LIMIT) \
	X(SQD2RTS_QPEE, SQD, RTS, XRC_TGT, 0, HCA_QPA_RTS_OPT_RESP) \
	X(SQD2SQD_QPEE, SQD, SQD, RC, 0, HCA_QPA_SQD_REQ_OPT | HCA_QPA_SQD_RESP_OPT) \
	X(SQD2SQD_QPEE, SQD, SQD, UC, 0, HCA_QPA_PATH_OPT) \
	X(SQD2SQD_QPEE, SQD, SQD, UD, 0, HCA_QPA(STATE) | HCA_QPA(PKEY_INDEX) | HCA_QPA(QKEY)) \
	X(SQD2SQD_QPEE, SQD, SQD, XRC_INI, 0, HCA_QPA_SQD_REQ_OPT) \
	X(SQD2SQD_QPEE, SQD, SQD, XRC_TGT, 0, HCA_QPA_SQD_RESP_OPT) \
	/* SQE: only services whose send errors do not end the connection */ \
	HCA_QP_T_ALL(X, ERR2RST_QPEE, SQE, RST) \
	HCA_QP_T_ALL(X, 2ERR_QPEE, SQE, ERR) \
	X(SQERR2RTS_QPEE, SQE, RTS, UC, 0, \
	  HCA_QPA(STATE) | HCA_QPA(CUR_STATE) | HCA_QPA(ACCESS_FLAGS)) \
	X(SQERR2RTS_QPEE, SQE, RTS, UD, 0, HCA_QPA_UD_OPT) \
	/* ERR */ \
	HCA_QP_T_ALL(X, ERR2RST_QPEE, ERR, RST) \
	HCA_QP_T_ALL(X, 2ERR_QPEE, ERR, ERR) \
	/* UB */ \
	HCA_QP_T_UB(X, ERR2RST_QPEE, RST, RST) \
	X(RST2RTS_QPEE, RST, RTS, JETTY, HCA_QPA_JFS | HCA_QPA(MIN_RNR_TIMER), \
	  HCA_QPA(STATE) | HCA_QPA(QKEY) | HCA_QPA(SQ_PSN)) \
	X(RST2RTS_QPEE, RST, RTS, JFS, HCA_QPA_JFS, HCA_QPA(STATE) | HCA_QPA(SQ_PSN)) \
	HCA_QP_T_UB(X, ERR2RST_QPEE, RTS, RST) \
	HCA_QP_T_UB(X, 2ERR_QPEE, RTS, ERR) \
	HCA_QP_T_UB(X, RTS2SQD_QPEE, RTS, SQD) \
	HCA_QP_T_UB(X, ERR2RST_QPEE, SQD, RST) \
	HCA_QP_T_UB(X, 2ERR_QPEE, SQD, ERR) \
	HCA_QP_T_UB(X, SQD2RTS_QPEE, SQD, RTS) \
	HCA_QP_T_UB(X, ERR2RST_QPEE, ERR, RST) \
	HCA_QP_T_UB(X, 2ERR_QPEE, ERR, ERR)

/* One row, for const tables built from the list. */
struct hca_qp_transition {
	uint16_t cmd;	   /* enum hca_cmd_op */
	uint8_t from;	   /* enum hca_qp_state */
	uint8_t to;	   /* enum hca_qp_state */
	uint8_t service;   /* enum hca_service */
	uint32_t required; /* HCA_QP_ATTR_* */
	uint32_t optional; /* HCA_QP_ATTR_* */
};
#define HCA_QP_TRANSITION_ROW(cmd, from, to, service, required, optional) \
	{HCA_CMD_##cmd, HCA_QPS_##from, HCA_QPS_##to, HCA_ST_##service, required, optional},

#endif
