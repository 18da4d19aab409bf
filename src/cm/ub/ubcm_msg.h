/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_UB_UBCM_MSG_H
#define CM_UB_UBCM_MSG_H

/*
 * Messages that set up and end channels between two HCAs. Big-endian:
 *
 *	version 8 | type 8 | length 16 (of all) | transaction 64 | status 16 | 0 16 | TLVs
 *	TLV: type 16 | length 16 (of the value) | value | zeros up to a multiple of 4
 *
 * UB defines no procedure for this; all of it is ours. Reserved bytes are sent as 0 and ignored,
 * TLVs of unknown types are skipped, so later versions can add TLVs that older ones skip.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi_bits.h"
#include "abi_tp.h"

#define UBCM_VERSION 1u
#define UBCM_HEADER_BYTES 16u
#define UBCM_TLV_BYTES 4u  /* in front of a value */
#define UBCM_MSG_MAX 1024u /* one packet of the smallest MTU */
#define UBCM_MSG_TPS HCA_TPG_MAX_TPS

/* TLVs of a message in addition to ENTITY. */
#define UBCM_HAS_TPS HCA_BIT(0)
#define UBCM_HAS_TIMER HCA_BIT(1)
#define UBCM_HAS_COOKIE HCA_BIT(2)
#define UBCM_MAY_COOKIE HCA_BIT(3)

/* X(NAME, type, has) */
#define UBCM_TYPE_LIST(X) \
	/* offers the sender's TPs */ \
	X(REQ, 1, UBCM_HAS_TPS | UBCM_HAS_TIMER | UBCM_MAY_COOKIE) \
	X(REP, 2, UBCM_HAS_TPS | UBCM_HAS_TIMER) /* its TPs and the agreed limits */ \
	X(RTU, 3, UBCM_HAS_TPS)	 /* the TPs of the REP again: the sender has seen it */ \
	X(REJ, 4, 0)		 /* no, for the reason in status */ \
	X(DISC, 5, UBCM_HAS_TPS) /* the sender's TPs end */ \
	X(DISC_REP, 6, 0) \
	X(RETRY, 7, UBCM_HAS_COOKIE) /* the REQ again, with this cookie */

enum ubcm_type {
#define UBCM_TYPE_ENUM(NAME, type, has) UBCM_##NAME = (type),
	UBCM_TYPE_LIST(UBCM_TYPE_ENUM)
#undef UBCM_TYPE_ENUM
	UBCM_TYPES
};

/* Bytes of the values. X(NAME, type, bytes, max number in a message) */
#define UBCM_TLV_LIST(X) \
	X(ENTITY, 1, 32, 1) /* EIDs of source and destination, 16 bytes each */ \
	X(TP, 2, 20, UBCM_MSG_TPS) \
	X(TIMER, 3, 8, 1) \
	X(COOKIE, 4, 8, 1)

enum ubcm_tlv {
#define UBCM_TLV_ENUM(NAME, type, bytes, max) UBCM_TLV_##NAME = (type),
	UBCM_TLV_LIST(UBCM_TLV_ENUM)
#undef UBCM_TLV_ENUM
	UBCM_TLVS
};

/* Fields of the values: X(member, bytes on the wire, offset) */
#define UBCM_TP_FIELDS(X) \
	X(tpn, 24, 0) \
	X(psn, 24, 4) \
	X(limits.window, 16, 8) \
	X(limits.sack, 16, 10) \
	X(limits.mtu, 16, 12) \
	X(limits.requests, 16, 14) \
	X(limits.mode, 8, 16) \
	X(limits.flags, 8, 17) \
	X(limits.cc, 8, 18)
#define UBCM_TIMER_FIELDS(X) \
	X(rto_base, 32, 0) \
	X(rto_exponent, 8, 4) \
	X(retries, 8, 5) \
	X(ack_every, 8, 6) \
	X(ooo_every, 8, 7)

/* X(NAME, code, text): of REJ and DISC, and for the users of a link */
#define UBCM_STATUS_LIST(X) \
	X(OK, 0, "done") \
	X(NO_RESOURCES, 1, "no more channels") \
	X(IN_USE, 2, "the peer uses them") \
	X(UNKNOWN, 3, "the peer knows of no such channels") \
	X(TIMEOUT, 4, "no answer") \
	X(BAD_ANSWER, 5, "the answer has more than was offered") \
	X(IDLE, 6, "not used for a while") \
	X(CLOSING, 7, "the peer ends") \
	X(DEAD, 8, "the channels got no answers") \
	X(RESTARTED, 9, "the peer has begun anew")

enum ubcm_status {
#define UBCM_STATUS_ENUM(NAME, code, text) UBCM_STATUS_##NAME = (code),
	UBCM_STATUS_LIST(UBCM_STATUS_ENUM)
#undef UBCM_STATUS_ENUM
};

/* Why a message is dropped: X(name, text). The first part are results of ubcm_msg_parse(). */
#define UBCM_DROP_LIST(X) \
	X(none, "not at all") \
	X(length, "shorter or longer than it says") \
	X(version, "another version") \
	X(type, "unknown type") \
	X(tlv, "a TLV that does not fit, or has another length than its type") \
	X(repeated, "more TLVs of a type than may be") \
	X(missing, "without a TLV that its type needs") \
	X(value, "a value out of range, or a TPN twice") \
	X(entity, "EIDs that are not the addresses") \
	/* good messages that do not fit the state */ \
	X(unknown, "a transaction that nobody knows") \
	X(state, "not now") \
	X(crossed, "both ends asked, this one has the higher EID") \
	X(tpn, "TPs that are not those of the transaction") \
	X(more, "an answer with more than was offered")

enum ubcm_drop {
#define UBCM_DROP_ENUM(name, text) UBCM_DROP_##name,
	UBCM_DROP_LIST(UBCM_DROP_ENUM)
#undef UBCM_DROP_ENUM
	UBCM_DROPS
};

/*
 * Capabilities of one end of a TP; the agreement has the smaller numbers, and the flags that both
 * have.
 */
struct ubcm_limits {
	uint16_t window;   /* packets: 128, 256 .. 2048 */
	uint16_t sack;	   /* bits: 64, 128 .. 1024 */
	uint16_t mtu;	   /* bytes: 1024, 4096; 8192 is understood */
	uint16_t requests; /* open ones, at least 1 */
	uint8_t mode;	   /* HCA_TP_MODE_* */
	uint8_t flags;	   /* HCA_TP_FLAG_* */
	uint8_t cc;	   /* congestion control, 0: none */
};

struct ubcm_timer {
	uint32_t rto_base; /* us; 0: by the round trip time */
	uint8_t rto_exponent;
	uint8_t retries;
	uint8_t ack_every; /* packets, at least 1, as the next */
	uint8_t ooo_every;
};

/* One TP of a message. */
struct ubcm_msg_tp {
	uint32_t tpn, psn;
	struct ubcm_limits limits;
};

struct ubcm_msg {
	uint8_t type; /* enum ubcm_type */
	uint16_t status;
	uint64_t transaction;
	uint8_t source[16], destination[16]; /* EIDs */
	uint32_t ntps;
	struct ubcm_msg_tp tp[UBCM_MSG_TPS];
	struct ubcm_timer timer;
	bool has_cookie;
	uint64_t cookie;
};

/*
 * Judge and read the message of exactly len bytes. UBCM_DROP_none: *m is complete, every value in
 * range, all TPNs different; else the reason, and *m is undefined. It checks no address: the caller
 * compares the EIDs with those of the packet.
 */
enum ubcm_drop ubcm_msg_parse(const uint8_t *bytes, size_t len, struct ubcm_msg *m);

/* Write *m, with the TLVs of its type; returns the length, at most UBCM_MSG_MAX. */
size_t ubcm_msg_build(const struct ubcm_msg *m, uint8_t *bytes);

const char *ubcm_status_str(uint32_t status);

#endif
