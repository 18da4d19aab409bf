/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_QP_ATTR_H
#define HCA_ABI_QP_ATTR_H

/*
 * Attributes of a QP: which there are, where each stands in the mailbox of MODIFY_QP and QUERY_QP,
 * which values it has, and which transition takes it. The library, the device, both front ends of
 * verbs and the tests are made from these lists. docs/recipes.md: "An attribute of a QP".
 */

#include "abi_cmd.h"
#include "abi_ctx.h"
#include "abi_roce.h"

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
	X(RATE_LIMIT, 25)

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
	X(ACCESS_FLAGS, qp_access_flags, access_flags, WORD, 0, HCA_ACCESS_MASK, \
	  HCA_ACCESS_REMOTE, CUT, KERNEL) \
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
	  HCA_RATE_LIMIT_MAX, OPTION, IBV)

/* How the library treats values outside of min..limit. */
enum hca_qp_attr_rule {
	HCA_QP_ATTR_RANGE,  /* refuses them */
	HCA_QP_ATTR_OPTION, /* refuses them, except 0: none */
	HCA_QP_ATTR_CUT,    /* limit is a mask: drops other bits; the device refuses them */
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
	X(INIT2RTR_QPEE, INIT, RTR, RC, HCA_QPA_CONNECT | HCA_QPA_RESPOND, HCA_QPA_RTR_OPT) \
	X(INIT2RTR_QPEE, INIT, RTR, UC, HCA_QPA_CONNECT | HCA_QPA(RQ_PSN), HCA_QPA_RTR_OPT) \
	X(INIT2RTR_QPEE, INIT, RTR, UD, 0, HCA_QPA(STATE) | HCA_QPA(PKEY_INDEX) | HCA_QPA(QKEY)) \
	/* verbs programs give an XRC initiator a receive PSN it never uses */ \
	X(INIT2RTR_QPEE, INIT, RTR, XRC_INI, HCA_QPA_CONNECT, HCA_QPA_RTR_OPT | HCA_QPA(RQ_PSN)) \
	X(INIT2RTR_QPEE, INIT, RTR, XRC_TGT, HCA_QPA_CONNECT | HCA_QPA_RESPOND, HCA_QPA_RTR_OPT) \
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
