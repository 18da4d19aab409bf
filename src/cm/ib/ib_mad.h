/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_IB_IB_MAD_H
#define CM_IB_IB_MAD_H

/*
 * The messages of communication management as they are in a MAD (IBTA volume 1, 12.6 and 12.11):
 * 24 bytes of the common header (13.4.3), then 232 bytes of the message. Numbers are big-endian;
 * bits are counted from the most significant one, as in the tables.
 *
 * One list for each message: N(bits of the member, member, byte, bit, width) is a number,
 * B(member, byte, bytes) a string of bytes. Bytes count from the end of the common header.
 */

#include <stddef.h>
#include <stdint.h>

#include "abi_bits.h"

#define IB_MAD_BYTES 256u
#define IB_MAD_HEADER 24u

/* X(NAME, name, attribute) */
#define IB_MAD_LIST(X) \
	X(REQ, req, 0x10) \
	X(MRA, mra, 0x11) \
	X(REJ, rej, 0x12) \
	X(REP, rep, 0x13) \
	X(RTU, rtu, 0x14) \
	X(DREQ, dreq, 0x15) \
	X(DREP, drep, 0x16) \
	X(SIDR_REQ, sidr_req, 0x17) \
	X(SIDR_REP, sidr_rep, 0x18) \
	X(LAP, lap, 0x19) \
	X(APR, apr, 0x1a)

enum ib_mad_type {
#define X(NAME, name, attribute) IB_MAD_##NAME,
	IB_MAD_LIST(X)
#undef X
	IB_MAD_TYPES
};

#define IB_MAD_REQ_PRIVATE 92u
#define IB_MAD_REJ_PRIVATE 148u
#define IB_MAD_REP_PRIVATE 196u
#define IB_MAD_SIDR_REQ_PRIVATE 216u
#define IB_MAD_SIDR_REP_PRIVATE 136u
#define IB_MAD_INFO 72u

/* A path of a REQ, which begins at byte at. */
#define IB_MAD_REQ_PATH(N, B, path, at) \
	N(16, path##_local_lid, (at), 0, 16) \
	N(16, path##_remote_lid, (at) + 2, 0, 16) \
	B(path##_local_gid, (at) + 4, 16) \
	B(path##_remote_gid, (at) + 20, 16) \
	N(32, path##_flow_label, (at) + 36, 0, 20) \
	N(8, path##_rate, (at) + 39, 2, 6) \
	N(8, path##_traffic_class, (at) + 40, 0, 8) \
	N(8, path##_hop_limit, (at) + 41, 0, 8) \
	N(8, path##_sl, (at) + 42, 0, 4) \
	N(8, path##_subnet_local, (at) + 42, 4, 1) \
	N(8, path##_ack_timeout, (at) + 43, 0, 5)

#define IB_MAD_REQ_FIELDS(N, B) \
	N(32, local_comm, 0, 0, 32) \
	N(64, service_id, 8, 0, 64) \
	N(64, ca_guid, 16, 0, 64) \
	N(32, qkey, 28, 0, 32) \
	N(32, qpn, 32, 0, 24) \
	N(8, responder_resources, 35, 0, 8) \
	N(32, eecn, 36, 0, 24) \
	N(8, initiator_depth, 39, 0, 8) \
	N(32, remote_eecn, 40, 0, 24) \
	N(8, remote_timeout, 43, 0, 5) \
	N(8, transport, 43, 5, 2) \
	N(8, flow_control, 43, 7, 1) \
	N(32, psn, 44, 0, 24) \
	N(8, local_timeout, 47, 0, 5) \
	N(8, retry_count, 47, 5, 3) \
	N(16, pkey, 48, 0, 16) \
	N(8, mtu, 50, 0, 4) \
	N(8, rdc, 50, 4, 1) \
	N(8, rnr_retry_count, 50, 5, 3) \
	N(8, max_retries, 51, 0, 4) \
	N(8, srq, 51, 4, 1) \
	N(8, extended_transport, 51, 5, 3) \
	IB_MAD_REQ_PATH(N, B, primary, 52) \
	IB_MAD_REQ_PATH(N, B, alternate, 96) \
	B(private, 140, IB_MAD_REQ_PRIVATE)

#define IB_MAD_MRA_FIELDS(N, B) \
	N(32, local_comm, 0, 0, 32) \
	N(32, remote_comm, 4, 0, 32) \
	N(8, message, 8, 0, 2) \
	N(8, service_timeout, 9, 0, 5) \
	B(private, 10, 222)

#define IB_MAD_REJ_FIELDS(N, B) \
	N(32, local_comm, 0, 0, 32) \
	N(32, remote_comm, 4, 0, 32) \
	N(8, message, 8, 0, 2) \
	N(8, info_len, 9, 0, 7) \
	N(16, reason, 10, 0, 16) \
	B(info, 12, IB_MAD_INFO) \
	B(private, 84, IB_MAD_REJ_PRIVATE)

#define IB_MAD_REP_FIELDS(N, B) \
	N(32, local_comm, 0, 0, 32) \
	N(32, remote_comm, 4, 0, 32) \
	N(32, qkey, 8, 0, 32) \
	N(32, qpn, 12, 0, 24) \
	N(32, eecn, 16, 0, 24) \
	N(32, psn, 20, 0, 24) \
	N(8, responder_resources, 24, 0, 8) \
	N(8, initiator_depth, 25, 0, 8) \
	N(8, ack_delay, 26, 0, 5) \
	N(8, failover, 26, 5, 2) \
	N(8, flow_control, 26, 7, 1) \
	N(8, rnr_retry_count, 27, 0, 3) \
	N(8, srq, 27, 3, 1) \
	N(64, ca_guid, 28, 0, 64) \
	B(private, 36, IB_MAD_REP_PRIVATE)

#define IB_MAD_RTU_FIELDS(N, B) \
	N(32, local_comm, 0, 0, 32) \
	N(32, remote_comm, 4, 0, 32) \
	B(private, 8, 224)

#define IB_MAD_DREQ_FIELDS(N, B) \
	N(32, local_comm, 0, 0, 32) \
	N(32, remote_comm, 4, 0, 32) \
	N(32, remote_qpn, 8, 0, 24) \
	B(private, 12, 220)

#define IB_MAD_DREP_FIELDS(N, B) \
	N(32, local_comm, 0, 0, 32) \
	N(32, remote_comm, 4, 0, 32) \
	B(private, 8, 224)

#define IB_MAD_SIDR_REQ_FIELDS(N, B) \
	N(32, request, 0, 0, 32) \
	N(16, pkey, 4, 0, 16) \
	N(64, service_id, 8, 0, 64) \
	B(private, 16, IB_MAD_SIDR_REQ_PRIVATE)

#define IB_MAD_SIDR_REP_FIELDS(N, B) \
	N(32, request, 0, 0, 32) \
	N(8, status, 4, 0, 8) \
	N(8, info_len, 5, 0, 8) \
	N(32, qpn, 8, 0, 24) \
	N(64, service_id, 12, 0, 64) \
	N(32, qkey, 20, 0, 32) \
	B(info, 24, IB_MAD_INFO) \
	B(private, 96, IB_MAD_SIDR_REP_PRIVATE)

#define IB_MAD_LAP_FIELDS(N, B) \
	N(32, local_comm, 0, 0, 32) \
	N(32, remote_comm, 4, 0, 32) \
	N(32, remote_qpn, 12, 0, 24) \
	N(8, remote_timeout, 15, 0, 5) \
	N(16, local_lid, 20, 0, 16) \
	N(16, remote_lid, 22, 0, 16) \
	B(local_gid, 24, 16) \
	B(remote_gid, 40, 16) \
	N(32, flow_label, 56, 0, 20) \
	N(8, traffic_class, 59, 0, 8) \
	N(8, hop_limit, 60, 0, 8) \
	N(8, rate, 61, 2, 6) \
	N(8, sl, 62, 0, 4) \
	N(8, subnet_local, 62, 4, 1) \
	N(8, ack_timeout, 63, 0, 5) \
	B(private, 64, 168)

#define IB_MAD_APR_FIELDS(N, B) \
	N(32, local_comm, 0, 0, 32) \
	N(32, remote_comm, 4, 0, 32) \
	N(8, info_len, 8, 0, 8) \
	N(8, status, 9, 0, 8) \
	B(info, 12, IB_MAD_INFO) \
	B(private, 84, 148)

#define IB_MAD_NUMBER(bits, member, byte, bit, width) uint##bits##_t member;
#define IB_MAD_STRING(member, byte, bytes) uint8_t member[bytes];
#define X(NAME, name, attribute) \
	struct ib_mad_##name { \
		IB_MAD_##NAME##_FIELDS(IB_MAD_NUMBER, IB_MAD_STRING) \
	};
IB_MAD_LIST(X)
#undef X
#undef IB_MAD_NUMBER
#undef IB_MAD_STRING

struct ib_mad {
	enum ib_mad_type type;
	uint64_t transaction;
	union {
#define X(NAME, name, attribute) struct ib_mad_##name name;
		IB_MAD_LIST(X)
#undef X
	};
};

/* Which message a REJ or an MRA means: their member message. */
enum ib_mad_message {
	IB_MAD_OF_REQ = 0,
	IB_MAD_OF_REP = 1,
	IB_MAD_OF_OTHER = 2,
};

/* REQ: transport service type; SHARED: see extended_transport. */
enum ib_mad_transport {
	IB_MAD_RC = 0,
	IB_MAD_UC = 1,
	IB_MAD_RD = 2,
	IB_MAD_EXTENDED = 3,
};
#define IB_MAD_EXTENDED_XRC 1u

/* Reasons of a REJ (table 12.6.7.2) that are used here: X(NAME, number, text) */
#define IB_MAD_REASON_LIST(X) \
	X(NO_RESOURCES, 3, "no resources") \
	X(TIMEOUT, 4, "timeout") \
	X(UNSUPPORTED, 5, "unsupported request") \
	X(COMM_ID, 6, "invalid communication id") \
	X(SERVICE_ID, 8, "invalid service id") \
	X(TRANSPORT, 9, "invalid transport service type") \
	X(STALE, 10, "stale connection") \
	X(GID, 12, "primary remote port gid rejected") \
	X(MTU, 26, "invalid path mtu") \
	X(CONSUMER, 28, "consumer reject")

enum ib_mad_reason {
#define X(NAME, number, text) IB_MAD_REASON_##NAME = (number),
	IB_MAD_REASON_LIST(X)
#undef X
	IB_MAD_REASONS = 34 /* numbers below it are defined */
};

/* Status of a SIDR_REP (table 12.11.2) */
enum ib_mad_sidr_status {
	IB_MAD_SIDR_OK = 0,
	IB_MAD_SIDR_SERVICE_ID = 1,
	IB_MAD_SIDR_REJECTED = 2,
	IB_MAD_SIDR_NO_QP = 3,
};

/* Status of an APR (12.8.2) */
enum ib_mad_apr_status {
	IB_MAD_APR_COMM_ID = 1,
	IB_MAD_APR_UNSUPPORTED = 2,
};

/* Why a MAD is dropped that is not one of these messages. X(name, text) */
#define IB_MAD_FAULT_LIST(X) \
	X(length, "of another length") \
	X(base_version, "of another version of MADs") \
	X(class, "of another management class") \
	X(class_version, "of another version of the class") \
	X(method, "of another method than Send") \
	X(attribute, "of an unknown attribute")

enum ib_mad_fault {
	IB_MAD_GOOD = -1,
#define X(name, text) IB_MAD_FAULT_##name,
	IB_MAD_FAULT_LIST(X)
#undef X
	IB_MAD_FAULTS
};

enum ib_mad_fault ib_mad_parse(const uint8_t *bytes, size_t len, struct ib_mad *mad);
/* Bits of a number beyond its field are cut off. */
void ib_mad_build(const struct ib_mad *mad, uint8_t bytes[IB_MAD_BYTES]);

#endif
