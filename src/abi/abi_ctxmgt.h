/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_CTXMGT_H
#define HCA_ABI_CTXMGT_H

/*
 * Requests to the context manager, and the access of its modules to the fields of the key-QPC
 * store, after the context management document: tables 2.2, 3.1 and section 5.4.2. The CEU reads
 * and writes everything and has no rows in the access lists.
 *
 * Tables only. No stage sends or answers these requests, and the device has no context manager:
 * stages load and store words of the store, which is cut into cache lines after the access lists
 * (ctxmgt/qp.h). Payloads and heads of requests (tables 3.2, 5.2, 5.3) have no counterpart. A unit
 * test walks the lists.
 */

#include "abi_bits.h"

/* Engine modules that send requests. X(name, text) */
#define HCA_CTX_MODULE_LIST(X) \
	X(CEU, "CEU") \
	X(DOORBELL, "doorbell processing") \
	X(PARSER, "WQE parser") \
	X(RTC, "requester transmit") \
	X(RRC, "requester receive") \
	X(EE, "execution engine") \
	X(ENCAP, "frame encapsulation")

enum hca_ctx_module {
#define HCA_CTX_MODULE_ENUM(name, text) HCA_CTX_##name,
	HCA_CTX_MODULE_LIST(HCA_CTX_MODULE_ENUM)
#undef HCA_CTX_MODULE_ENUM
	HCA_CTX_MODULE_COUNT
};

/*
 * Request types. Codes 1..6 are those of table 3.1; the RDMA engine's last two have no code
 * there. X(name, code)
 */
#define HCA_CTX_TYPE_LIST(X) \
	X(RD_QP_CXT, 1) \
	X(WR_QP_CXT, 2) \
	X(WR_CQ_CXT, 3) \
	X(WR_EQ_CXT, 4) \
	X(WR_ICMMAP_CXT, 5) \
	X(MAP_ICM_CXT, 6) \
	X(RD_CQ_CXT, 7) \
	X(RD_EQ_CXT, 8)

enum hca_ctx_type {
#define HCA_CTX_TYPE_ENUM(name, code) HCA_CTX_##name = code,
	HCA_CTX_TYPE_LIST(HCA_CTX_TYPE_ENUM)
#undef HCA_CTX_TYPE_ENUM
};

/*
 * Requests, table 2.2: X(name, type, code, module). Codes of the CEU's requests are those of
 * table 3.1, the others count on within their type.
 */
#define HCA_CTX_REQUEST_LIST(X) \
	X(RD_QP_ALL, RD_QP_CXT, 1, CEU) \
	X(RD_QP_NPST, RD_QP_CXT, 2, RTC) \
	X(RD_QP_SST, RD_QP_CXT, 3, DOORBELL) \
	X(RD_QP_RST, RD_QP_CXT, 4, EE) \
	X(RD_QP_STATE, RD_QP_CXT, 5, PARSER) \
	X(RD_ENCAP, RD_QP_CXT, 6, ENCAP) \
	X(WR_QP_ALL, WR_QP_CXT, 1, CEU) \
	X(WR_QP_UAPST, WR_QP_CXT, 2, RRC) \
	X(WR_QP_NPST, WR_QP_CXT, 3, RTC) \
	X(WR_QP_EPST, WR_QP_CXT, 4, EE) \
	X(WR_QP_STATE, WR_QP_CXT, 5, CEU) \
	X(WR_CQ_ALL, WR_CQ_CXT, 1, CEU) \
	X(WR_CQ_MODIFY, WR_CQ_CXT, 2, CEU) \
	X(WR_CQ_INVALID, WR_CQ_CXT, 3, CEU) \
	X(WR_EQ_ALL, WR_EQ_CXT, 1, CEU) \
	X(WR_EQ_FUNC, WR_EQ_CXT, 2, CEU) \
	X(WR_EQ_INVALID, WR_EQ_CXT, 4, CEU) \
	X(WR_ICMMAP_EN, WR_ICMMAP_CXT, 1, CEU) \
	X(WR_ICMMAP_DIS, WR_ICMMAP_CXT, 2, CEU) \
	X(MAP_ICM_EN, MAP_ICM_CXT, 1, CEU) \
	X(MAP_ICM_DIS, MAP_ICM_CXT, 2, CEU) \
	X(RD_CQ_ALL, RD_CQ_CXT, 1, CEU) \
	X(RD_CQ_CST, RD_CQ_CXT, 2, RRC) \
	X(RD_EQ_ALL, RD_EQ_CXT, 1, CEU) \
	X(RD_EQ_K, RD_EQ_CXT, 2, CEU)

enum hca_ctx_request {
#define HCA_CTX_REQUEST_ENUM(name, type, code, module) HCA_CTX_##name,
	HCA_CTX_REQUEST_LIST(HCA_CTX_REQUEST_ENUM)
#undef HCA_CTX_REQUEST_ENUM
	HCA_CTX_REQUEST_COUNT
};

/*
 * Fields of the key data. X(name, width) in bits, as in section 5.4.2; the last group are words
 * the document leaves unused and this device honours.
 */
#define HCA_CTX_FIELD_LIST(X) \
	/* QPC */ \
	X(STATE, 4) \
	X(SERVICE, 8) \
	X(MTU_MSGMAX, 8) \
	X(RNR_TIMER, 8) \
	X(REMOTE_QPN, 32) \
	X(PORT_PKEY, 32) \
	X(QP_PD, 32) \
	X(SL_TCLASS_FLOW, 32) \
	X(NEXT_PSN, 32) \
	X(CQN_SND, 32) \
	X(SQ_LKEY, 32) \
	X(UNACKED_PSN, 32) \
	X(EXPECTED_PSN, 32) \
	X(RQ_LKEY, 32) \
	X(RQ_STRIDE_LOG, 8) \
	X(SQ_STRIDE_LOG, 8) \
	X(SMAC, 48) \
	X(DMAC, 48) \
	X(SIP, 32) \
	X(DIP, 32) \
	X(SQ_LEN, 32) \
	X(CQN_RCV, 32) \
	X(RQ_LEN, 32) \
	/* CQC */ \
	X(SCQ_LOGSIZE, 8) \
	X(SCQ_PD, 32) \
	X(SCQ_LKEY, 32) \
	X(RCQ_LOGSIZE, 8) \
	X(RCQ_PD, 32) \
	X(RCQ_LKEY, 32) \
	/* EQC */ \
	X(SEQ_LOGSIZE, 8) \
	X(SEQ_PD, 32) \
	X(SEQ_LKEY, 32) \
	X(SEQ_EQN, 8) \
	X(REQ_LOGSIZE, 8) \
	X(REQ_PD, 32) \
	X(REQ_LKEY, 32) \
	X(REQ_EQN, 8) \
	/* also honoured */ \
	X(USR_PAGE, 32) \
	X(LOCAL_QPN, 32) \
	X(ACKTO, 8) \
	X(RETRY_CNT, 8) \
	X(RNR_RETRY, 8) \
	X(MAX_RD_ATOMIC, 8) \
	X(MAX_DEST_RD_ATOMIC, 8) \
	X(ACCESS_FLAGS, 32) \
	X(SRQN, 32) \
	X(XRCD, 32) \
	X(QKEY, 32) \
	X(GID_INDEX, 8) \
	X(STATIC_RATE, 8) \
	X(HOP_LIMIT, 8) \
	X(RGID, 128) \
	X(MIG_STATE, 2) \
	X(MAX_PSN, 32) \
	X(RMSN, 32)

enum hca_ctx_field {
#define HCA_CTX_FIELD_ENUM(name, width) HCA_CTX_F_##name,
	HCA_CTX_FIELD_LIST(HCA_CTX_FIELD_ENUM)
#undef HCA_CTX_FIELD_ENUM
	HCA_CTX_FIELD_COUNT
};

/* Section 5.4.2 line by line: X(module, request, field, access), access R or W. */
#define HCA_CTX_ACCESS_LIST(X) \
	X(PARSER, RD_QP_STATE, STATE, R) \
	X(RTC, RD_QP_NPST, STATE, R) \
	X(EE, RD_QP_RST, STATE, R) \
	X(RRC, RD_CQ_CST, STATE, R) \
	X(RTC, WR_QP_NPST, STATE, W) \
	X(EE, WR_QP_EPST, STATE, W) \
	X(RRC, WR_QP_UAPST, STATE, W) \
	X(DOORBELL, RD_QP_SST, SERVICE, R) \
	X(DOORBELL, RD_QP_SST, MTU_MSGMAX, R) \
	X(EE, RD_QP_RST, MTU_MSGMAX, R) \
	X(EE, RD_QP_RST, RNR_TIMER, R) \
	X(DOORBELL, RD_QP_SST, REMOTE_QPN, R) \
	X(EE, RD_QP_RST, REMOTE_QPN, R) \
	X(RRC, RD_CQ_CST, REMOTE_QPN, R) \
	X(DOORBELL, RD_QP_SST, PORT_PKEY, R) \
	X(ENCAP, RD_ENCAP, PORT_PKEY, R) \
	X(EE, RD_QP_RST, PORT_PKEY, R) \
	X(DOORBELL, RD_QP_SST, QP_PD, R) \
	X(EE, RD_QP_RST, QP_PD, R) \
	X(RRC, RD_CQ_CST, QP_PD, R) \
	X(ENCAP, RD_ENCAP, SL_TCLASS_FLOW, R) \
	X(RTC, RD_QP_NPST, NEXT_PSN, R) \
	X(RRC, RD_CQ_CST, NEXT_PSN, R) \
	X(RTC, WR_QP_NPST, NEXT_PSN, W) \
	X(RTC, RD_QP_NPST, CQN_SND, R) \
	X(RRC, RD_CQ_CST, CQN_SND, R) \
	X(DOORBELL, RD_QP_SST, SQ_LKEY, R) \
	X(RRC, RD_CQ_CST, UNACKED_PSN, R) \
	X(RRC, WR_QP_UAPST, UNACKED_PSN, W) \
	X(EE, RD_QP_RST, EXPECTED_PSN, R) \
	X(EE, WR_QP_EPST, EXPECTED_PSN, W) \
	X(EE, RD_QP_RST, RQ_LKEY, R) \
	X(EE, RD_QP_RST, RQ_STRIDE_LOG, R) \
	X(DOORBELL, RD_QP_SST, SQ_STRIDE_LOG, R) \
	X(PARSER, RD_QP_STATE, SQ_STRIDE_LOG, R) \
	X(ENCAP, RD_ENCAP, SMAC, R) \
	X(RTC, RD_QP_NPST, DMAC, R) \
	X(EE, RD_QP_RST, DMAC, R) \
	X(ENCAP, RD_ENCAP, DMAC, R) \
	X(RRC, RD_CQ_CST, DMAC, R) \
	X(ENCAP, RD_ENCAP, SIP, R) \
	X(ENCAP, RD_ENCAP, DIP, R) \
	X(DOORBELL, RD_QP_SST, SQ_LEN, R) \
	X(PARSER, RD_QP_STATE, SQ_LEN, R) \
	X(EE, RD_QP_RST, CQN_RCV, R) \
	X(EE, RD_QP_RST, RQ_LEN, R) \
	X(RTC, RD_QP_NPST, SCQ_LOGSIZE, R) \
	X(RRC, RD_CQ_CST, SCQ_LOGSIZE, R) \
	X(RTC, RD_QP_NPST, SCQ_PD, R) \
	X(RRC, RD_CQ_CST, SCQ_PD, R) \
	X(RTC, RD_QP_NPST, SCQ_LKEY, R) \
	X(RRC, RD_CQ_CST, SCQ_LKEY, R) \
	X(EE, RD_QP_RST, RCQ_LOGSIZE, R) \
	X(EE, RD_QP_RST, RCQ_PD, R) \
	X(EE, RD_QP_RST, RCQ_LKEY, R) \
	X(RTC, RD_QP_NPST, SEQ_LOGSIZE, R) \
	X(RRC, RD_CQ_CST, SEQ_LOGSIZE, R) \
	X(RTC, RD_QP_NPST, SEQ_PD, R) \
	X(RRC, RD_CQ_CST, SEQ_PD, R) \
	X(RTC, RD_QP_NPST, SEQ_LKEY, R) \
	X(RRC, RD_CQ_CST, SEQ_LKEY, R) \
	X(RTC, RD_QP_NPST, SEQ_EQN, R) \
	X(RRC, RD_CQ_CST, SEQ_EQN, R) \
	X(EE, RD_QP_RST, REQ_LOGSIZE, R) \
	X(EE, RD_QP_RST, REQ_PD, R) \
	X(EE, RD_QP_RST, REQ_LKEY, R) \
	X(EE, RD_QP_RST, REQ_EQN, R)

/*
 * The same for fields that the document omits: words it calls unused, and the engine's own rules.
 */
#define HCA_CTX_ACCESS_MORE_LIST(X) \
	X(DOORBELL, RD_QP_SST, LOCAL_QPN, R) \
	X(DOORBELL, RD_QP_SST, USR_PAGE, R) \
	X(DOORBELL, RD_QP_SST, STATE, R) \
	X(PARSER, RD_QP_STATE, SERVICE, R) \
	X(PARSER, RD_QP_STATE, SQ_LKEY, R) \
	X(PARSER, RD_QP_STATE, QP_PD, R) \
	X(PARSER, RD_QP_STATE, QKEY, R) \
	X(RTC, RD_QP_NPST, SERVICE, R) \
	X(RTC, RD_QP_NPST, MTU_MSGMAX, R) \
	X(RTC, RD_QP_NPST, MAX_RD_ATOMIC, R) \
	X(RTC, RD_QP_NPST, UNACKED_PSN, R) \
	X(RTC, RD_QP_NPST, STATIC_RATE, R) \
	X(RTC, RD_QP_NPST, MAX_PSN, R) \
	X(RTC, WR_QP_NPST, MAX_PSN, W) \
	X(RRC, RD_CQ_CST, SERVICE, R) \
	X(RRC, RD_CQ_CST, MTU_MSGMAX, R) \
	X(RRC, RD_CQ_CST, MAX_PSN, R) \
	X(RRC, RD_CQ_CST, ACKTO, R) \
	X(RRC, RD_CQ_CST, RETRY_CNT, R) \
	X(RRC, RD_CQ_CST, RNR_RETRY, R) \
	X(EE, RD_QP_RST, SERVICE, R) \
	X(EE, RD_QP_RST, ACCESS_FLAGS, R) \
	X(EE, RD_QP_RST, MAX_DEST_RD_ATOMIC, R) \
	X(EE, RD_QP_RST, QKEY, R) \
	X(EE, RD_QP_RST, SRQN, R) \
	X(EE, RD_QP_RST, XRCD, R) \
	X(EE, RD_QP_RST, MIG_STATE, R) \
	X(EE, RD_QP_RST, RMSN, R) \
	X(EE, WR_QP_EPST, RMSN, W) \
	X(ENCAP, RD_ENCAP, UNACKED_PSN, R) \
	X(ENCAP, RD_ENCAP, GID_INDEX, R) \
	X(ENCAP, RD_ENCAP, HOP_LIMIT, R) \
	X(ENCAP, RD_ENCAP, RGID, R) \
	X(ENCAP, RD_ENCAP, MIG_STATE, R) \
	X(ENCAP, RD_ENCAP, REMOTE_QPN, R) \
	X(ENCAP, RD_ENCAP, QP_PD, R)

/* Access of a row. */
#define HCA_CTX_R 1
#define HCA_CTX_W 2

/* One row, for const tables built from the lists. */
struct hca_ctx_access {
	uint8_t module;	 /* enum hca_ctx_module */
	uint8_t request; /* enum hca_ctx_request */
	uint8_t field;	 /* enum hca_ctx_field */
	uint8_t access;	 /* HCA_CTX_R or HCA_CTX_W */
};
#define HCA_CTX_ACCESS_ROW(module, request, field, access) \
	{HCA_CTX_##module, HCA_CTX_##request, HCA_CTX_F_##field, HCA_CTX_##access},

#endif
