/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_UB_H
#define HCA_ABI_UB_H

/*
 * Wire headers of UB over Ethernet, behind the UDP header: transport headers, transaction headers,
 * opcodes, status codes, limits. S6.2.1 and the like are sections of the UB base specification.
 * Network byte order, any alignment. Reserved bits are sent as 0 and ignored when received.
 *
 * Each header is one list of fields, HCA_UB_..._FIELDS: X(header, field, word, byte, hi, lo), a
 * field being the bits hi..lo of the big-endian word of `word` bits that begins at that byte. From
 * each list are made, with rtph as the example:
 *
 *	struct hca_ub_rtph		its fields in the CPU's order
 *	hca_ub_rtph_psn(p)		one field of the header at p
 *	hca_ub_rtph_set_psn(p, v)	changes one field; higher bits are cut off
 *	hca_ub_rtph_get(p, &h)		all of them
 *	hca_ub_rtph_put(p, &h)		writes the whole header, reserved bits 0
 *
 * Where the specification is silent or contradicts itself there is a row in HCA_UB_CHOICE_LIST;
 * rows that can be had otherwise are in HCA_UB_SWITCH_LIST.
 */

#include <stdbool.h>

#include "abi_bits.h"

#define HCA_UB_UDP_PORT 4792u

/* ---- fields ---- */

#define HCA_UB_TYPE(word) uint##word##_t
#define HCA_UB_BITS_32(p, hi, lo) HCA_BITS(hca_get_be32(p), hi, lo)
#define HCA_UB_BITS_64(p, hi, lo) HCA_BITS64(hca_get_be64(p), hi, lo)
#define HCA_UB_FIELD_32(hi, lo, v) HCA_FIELD(hi, lo, v)
#define HCA_UB_FIELD_64(hi, lo, v) HCA_FIELD64(hi, lo, v)
#define HCA_UB_MASK_32(hi, lo) HCA_MASK(hi, lo)
#define HCA_UB_MASK_64(hi, lo) HCA_MASK64(hi, lo)

#define HCA_UB_PASTE(a, b) a##b
#define HCA_UB_MEMBER(header, field, word, byte, hi, lo) HCA_UB_TYPE(word) field;
#define HCA_UB_GET(header, field, word, byte, hi, lo) \
	h->field = HCA_UB_BITS_##word(p + (byte), hi, lo);
#define HCA_UB_PUT(header, field, word, byte, hi, lo) \
	hca_put_be##word(p + (byte), \
			 hca_get_be##word(p + (byte)) | HCA_UB_FIELD_##word(hi, lo, h->field));
#define HCA_UB_ACCESSORS(header, field, word, byte, hi, lo) \
	static inline HCA_UB_TYPE(word) HCA_UB_PASTE(hca_ub_##header##_, field)(const uint8_t *p) \
	{ \
		return HCA_UB_BITS_##word(p + (byte), hi, lo); \
	} \
	static inline void HCA_UB_PASTE(hca_ub_##header##_set_, field)(uint8_t * p, \
								       HCA_UB_TYPE(word) v) \
	{ \
		v = HCA_UB_FIELD_##word(hi, lo, v); \
		v |= hca_get_be##word(p + (byte)) & ~HCA_UB_MASK_##word(hi, lo); \
		hca_put_be##word(p + (byte), v); \
	}

#define HCA_UB_DEFINE(header, HEADER) \
	struct hca_ub_##header { \
		HCA_UB_##HEADER##_FIELDS(HCA_UB_MEMBER) \
	}; \
	static inline void hca_ub_##header##_get(const uint8_t *p, struct hca_ub_##header *h) \
	{ \
		HCA_UB_##HEADER##_FIELDS(HCA_UB_GET) \
	} \
	static inline void hca_ub_##header##_put(uint8_t *p, const struct hca_ub_##header *h) \
	{ \
		memset(p, 0, HCA_UB_##HEADER##_LEN); \
		HCA_UB_##HEADER##_FIELDS(HCA_UB_PUT) \
	} \
	HCA_UB_##HEADER##_FIELDS(HCA_UB_ACCESSORS) _Static_assert(HCA_UB_##HEADER##_LEN % 4 == 0, \
								  "whole words")

/* Bytes of each header. X(HEADER, bytes, section) */
#define HCA_UB_HEADER_LIST(X) \
	X(RTPH, 16, "6.2.1") /* and UTPH */ \
	X(CETPH_LDCP, 8, "6.2.2") \
	X(CETPH_CAQM, 8, "6.2.2") \
	X(CETPH_CNP, 16, "6.2.2") \
	X(SAETPH, 4, "6.2.3") /* the bitmap follows */ \
	X(UPIH, 4, "B.3") \
	X(EIDH, 32, "B.4") \
	X(BTAH, 8, "7.2.1") \
	X(ATAH, 8, "7.2.2") \
	X(MAETAH, 16, "7.2.3") \
	X(MTETAH, 4, "7.2.4") \
	X(TVETAH, 4, "7.2.5") \
	X(TAIDETAH, 4, "7.2.6") \
	X(OFSTETAH, 4, "7.2.7") \
	X(IMMETAH, 16, "7.2.8") \
	X(NTFETAH, 24, "7.2.9") \
	X(UDETAH, 4, "7.2.11") \
	X(MGMTETAH, 4, "10.4.3.3")

enum hca_ub_header_len {
#define HCA_UB_LEN(HEADER, bytes, section) HCA_UB_##HEADER##_LEN = (bytes),
	HCA_UB_HEADER_LIST(HCA_UB_LEN)
#undef HCA_UB_LEN
};

/* ---- transport headers, S6.2 ---- */

/* UTPH: last (sent as 1, ignored), opcode, version, pad, nlp; all other bytes 0. */
#define HCA_UB_RTPH_FIELDS(X) \
	X(rtph, last, 32, 0, 31, 31) \
	X(rtph, opcode, 32, 0, 30, 24) /* HCA_UB_TP_* */ \
	X(rtph, version, 32, 0, 23, 22) \
	X(rtph, pad, 32, 0, 21, 20) \
	X(rtph, nlp, 32, 0, 19, 16)    /* HCA_UB_NLP_* */ \
	X(rtph, src_tpn, 32, 1, 23, 0) /* of the sender of this packet */ \
	X(rtph, dst_tpn, 32, 4, 23, 0) /* of its receiver */ \
	X(rtph, ack, 32, 8, 31, 31)    /* A: acknowledge at once */ \
	X(rtph, fake, 32, 8, 30, 30)   /* F: takes a PSN, carries nothing */ \
	X(rtph, psn, 32, 8, 23, 0) \
	X(rtph, rspst, 32, 12, 31, 29) /* acknowledgements: HCA_UB_ACK_*; else 0 */ \
	X(rtph, rspinfo, 32, 12, 28, 24) \
	X(rtph, tpmsn, 32, 12, 23, 0)

/* Congestion feedback; which of the first two forms, is a property of the TP. */
#define HCA_UB_CETPH_LDCP_FIELDS(X) \
	X(cetph_ldcp, ack_seq, 32, 0, 31, 0) /* received, in units of HCA_UB_SEQ_BYTES */ \
	X(cetph_ldcp, ce_seq, 32, 4, 31, 0)  /* of these with a congestion mark */
#define HCA_UB_CETPH_CAQM_FIELDS(X) \
	X(cetph_caqm, ack_seq, 32, 0, 31, 0) \
	X(cetph_caqm, loc, 32, 4, 25, 25) \
	X(cetph_caqm, increase, 32, 4, 24, 24) \
	X(cetph_caqm, congested, 32, 4, 23, 16) \
	X(cetph_caqm, hint, 32, 4, 15, 0)
#define HCA_UB_CETPH_CNP_FIELDS(X) \
	X(cetph_cnp, ecn, 32, 0, 31, 30) /* 0, 1 light, 3 heavy */ \
	X(cetph_cnp, loc, 32, 0, 29, 29) /* 0 in the network, 1 its last hop */

#define HCA_UB_SAETPH_FIELDS(X) \
	X(saetph, size, 32, 0, 26, 24) /* the bitmap has 64 << size bits */ \
	X(saetph, max_rcv, 32, 0, 23, 0)

#define HCA_UB_UPIH_FIELDS(X) X(upih, partition, 32, 0, 23, 0)
#define HCA_UB_EIDH_FIELDS(X) \
	X(eidh, src_high, 64, 0, 63, 0) \
	X(eidh, src_low, 64, 8, 63, 0) \
	X(eidh, dst_high, 64, 16, 63, 0) \
	X(eidh, dst_low, 64, 24, 63, 0)

/* ---- transaction headers, S7.2 ---- */

/* Requests. */
#define HCA_UB_BTAH_FIELDS(X) \
	X(btah, opcode, 32, 0, 31, 24) /* HCA_UB_TA_* */ \
	X(btah, version, 32, 0, 23, 22) \
	X(btah, ee, 32, 0, 21, 20) /* HCA_UB_EE_* */ \
	X(btah, tv_en, 32, 0, 19, 19) \
	X(btah, poison, 32, 0, 18, 18) \
	X(btah, ud_flag, 32, 0, 16, 16) \
	X(btah, tassn, 32, 0, 15, 0) \
	X(btah, no_taack, 32, 4, 31, 31) \
	X(btah, odr, 32, 4, 30, 28) /* HCA_UB_ODR_* */ \
	X(btah, mt_en, 32, 4, 27, 27) \
	X(btah, fce, 32, 4, 26, 26) \
	X(btah, retry, 32, 4, 25, 25) \
	X(btah, alloc, 32, 4, 24, 24) \
	X(btah, e_bit, 32, 4, 22, 22) \
	X(btah, rc_type, 32, 4, 21, 20) /* HCA_UB_RC_* */ \
	X(btah, rc_id, 32, 4, 19, 0)

/* Responses. tassn: with sv, the sequence context that was granted. */
#define HCA_UB_ATAH_FIELDS(X) \
	X(atah, opcode, 32, 0, 31, 24) \
	X(atah, version, 32, 0, 23, 22) \
	X(atah, sv, 32, 0, 19, 19) \
	X(atah, poison, 32, 0, 18, 18) \
	X(atah, tassn, 32, 0, 15, 0) \
	X(atah, rspst, 32, 4, 31, 29) /* HCA_UB_RSP_* */ \
	X(atah, rspinfo, 32, 4, 28, 24) \
	X(atah, rc_type, 32, 4, 21, 20) \
	X(atah, rc_id, 32, 4, 19, 0)

#define HCA_UB_MAETAH_FIELDS(X) \
	X(maetah, address, 64, 0, 63, 0) /* of this packet's payload */ \
	X(maetah, token_id, 32, 8, 27, 8) \
	X(maetah, length, 32, 12, 31, 0) /* of the request segment, the same in all its packets */
#define HCA_UB_MTETAH_FIELDS(X) \
	X(mtetah, hint, 32, 0, 31, 24) /* groups */ \
	X(mtetah, type, 32, 0, 21, 20) /* HCA_UB_TC_* */ \
	X(mtetah, tc_id, 32, 0, 19, 0)
#define HCA_UB_TVETAH_FIELDS(X) X(tvetah, token_value, 32, 0, 31, 0)
#define HCA_UB_TAIDETAH_FIELDS(X) X(taidetah, taid, 32, 0, 15, 0)
#define HCA_UB_OFSTETAH_FIELDS(X) X(ofstetah, offset, 32, 0, 23, 0) /* HCA_UB_OFFSET_UNIT */
/* token_value of the queue and length of the message: with Write_with_immediate, else 0. */
#define HCA_UB_IMMETAH_FIELDS(X) \
	X(immetah, immediate, 64, 0, 63, 0) \
	X(immetah, token_value, 32, 8, 31, 0) \
	X(immetah, length, 32, 12, 31, 0)
#define HCA_UB_NTFETAH_FIELDS(X) \
	X(ntfetah, address, 64, 0, 63, 0) \
	X(ntfetah, token_id, 32, 8, 27, 8) \
	X(ntfetah, token_value, 32, 12, 31, 0) \
	X(ntfetah, data, 64, 16, 63, 0)
#define HCA_UB_UDETAH_FIELDS(X) X(udetah, user, 32, 0, 31, 0)
/* Of Management: printed, not offered. */
#define HCA_UB_MGMTETAH_FIELDS(X) \
	X(mgmtetah, sub_code, 32, 0, 31, 28) \
	X(mgmtetah, code, 32, 0, 27, 25) \
	X(mgmtetah, rsp, 32, 0, 24, 24) \
	X(mgmtetah, status, 32, 0, 23, 16) \
	X(mgmtetah, pdu_length, 32, 0, 11, 0)

HCA_UB_DEFINE(rtph, RTPH);
HCA_UB_DEFINE(cetph_ldcp, CETPH_LDCP);
HCA_UB_DEFINE(cetph_caqm, CETPH_CAQM);
HCA_UB_DEFINE(cetph_cnp, CETPH_CNP);
HCA_UB_DEFINE(saetph, SAETPH);
HCA_UB_DEFINE(upih, UPIH);
HCA_UB_DEFINE(eidh, EIDH);
HCA_UB_DEFINE(btah, BTAH);
HCA_UB_DEFINE(atah, ATAH);
HCA_UB_DEFINE(maetah, MAETAH);
HCA_UB_DEFINE(mtetah, MTETAH);
HCA_UB_DEFINE(tvetah, TVETAH);
HCA_UB_DEFINE(taidetah, TAIDETAH);
HCA_UB_DEFINE(ofstetah, OFSTETAH);
HCA_UB_DEFINE(immetah, IMMETAH);
HCA_UB_DEFINE(ntfetah, NTFETAH);
HCA_UB_DEFINE(udetah, UDETAH);
HCA_UB_DEFINE(mgmtetah, MGMTETAH);

/* ---- where we had to choose ---- */

/*
 * Points that the specification leaves open or contradicts itself in, and the choice made here.
 * Only these places change to meet a peer that chose otherwise. X(NAME, where it shows, text)
 */
#define HCA_UB_CHOICE_LIST(X) \
	X(UDP_CSUM, "UDP checksum", "sent as 0, any value is taken") \
	X(ECN, "ECN", "ECT(0) where congestion control is on, else 0") \
	X(FLOW_LABEL, "flow label", "a hash that includes the UDP source port") \
	X(ICRC_ORDER, "ICRC", "least significant byte first") \
	X(ICRC_PAD, "pad", "in front of the ICRC") \
	X(NEGATIVE, "RSPST 3 RSPINFO 0", \
	  "alone is negative: all others acknowledge up to their PSN") \
	X(SACK_BIT, "SAETPH bitmap", "bit k is RTPH.PSN + k: byte k / 8, mask 1 << k % 8") \
	X(SEQ, "CETPH sequences", \
	  "a packet counts its UDP length - 8, in units of 2 bytes, rounded up") \
	X(ATAH, "ATAH byte 1", "version [7:6] 0 [5:4] SV [3] Poison [2] 0 [1:0]") \
	X(BY_TP, "TAIDETAH, OFSTETAH", \
	  "of Read, atomics and their responses: there unless the TP says no") \
	X(TOKEN_ID, "TokenID", "bits [27:8] of its word") \
	X(READ_OFFSET, "OFSTETAH of Read_response", \
	  "that of the request + own displacement / 1024") \
	X(TAID, "TAID", "the TASSN; echoed") \
	X(OLD_VALUE, "Atomic_response", \
	  "old value, as drawn: most significant byte first; the other way where the TP says so") \
	X(CLR_EOR, "UDETAH [23:20]", "1 CLR is AND NOT, 2 EOR is XOR") \
	X(TPMSN, "TPMSN", "the first operation has 1, responses are counted too") \
	X(WINDOW, "PSN", "PSNs beyond the receiver's window are dropped without an answer") \
	X(NLP, "NLP", \
	  "0 on a TP with one Entity per side; 1 is accepted and sent where it says so") \
	X(DEAD_TC, "Send to a queue that is gone or in error", \
	  "dropped without an answer; answered (3/1, 3/2) where both ends of the TP have agreed on it") \
	X(CNP, "CNP", \
	  "of packets with CE, where both ends of the TP have agreed on it: ECN 3, the other fields 0") \
	X(E_BIT, "E_bit", \
	  "1 passes, as no segment is exclusive; sent as 0 but by privileged Jettys")

/*
 * The choices that can be changed: words of `[ub] choices` of the daemon's configuration and bits
 * of softhca_embed_config.ub_choices. By TP: the agent does not offer the flag, and both ends of a
 * channel have it only if both offer it. X(NAME, bit, word, choice, text)
 */
#define HCA_UB_SWITCH_LIST(X) \
	X(OLD_VALUE_LE, 0, old_value_le, OLD_VALUE, \
	  "by TP: old values of atomics have their least significant byte first") \
	X(CLR_EOR_TEXT, 1, clr_eor_text, CLR_EOR, \
	  "1 is XOR and 2 is AND NOT, as the text next to the names says") \
	X(EDGE, 2, edge, E_BIT, \
	  "filter of a domain's edge: only requests with E_bit 0 and a TokenValue are executed") \
	X(NO_TAID, 3, no_taid, BY_TP, "by TP: no TAIDETAH") \
	X(NO_OFST, 4, no_ofst, BY_TP, "by TP: no OFSTETAH in Reads and Read_responses") \
	X(SILENT, 5, silent, DEAD_TC, "by TP: requests for queues that are gone are not answered")

enum hca_ub_switch {
#define HCA_UB_ENUM(NAME, bit, word, choice, text) HCA_UB_SWITCH_##NAME = 1 << (bit),
	HCA_UB_SWITCH_LIST(HCA_UB_ENUM)
#undef HCA_UB_ENUM
};
/* All that there are. */
#define HCA_UB_SWITCH_OR(NAME, bit, word, choice, text) | HCA_BIT(bit)
#define HCA_UB_SWITCHES (0u HCA_UB_SWITCH_LIST(HCA_UB_SWITCH_OR))

#define HCA_UB_IS_NEGATIVE(rspst, rspinfo) \
	((rspst) == HCA_UB_ACK_ERROR && (rspinfo) == HCA_UB_ERROR_PSN)
#define HCA_UB_SACK_BYTE(k) ((k) >> 3)
#define HCA_UB_SACK_MASK(k) (1u << ((k)&7))
#define HCA_UB_SEQ_BYTES 2u
#define HCA_UB_SEQ_OF(udp_len) (((udp_len)-8u + HCA_UB_SEQ_BYTES - 1) / HCA_UB_SEQ_BYTES)
/* Headers that no bit announces: they are there or not by TP, as its flags of these values say. */
#define HCA_UB_FORM_TAID 0x01u
#define HCA_UB_FORM_OFST 0x02u
#define HCA_UB_FORM_DEFAULT (HCA_UB_FORM_TAID | HCA_UB_FORM_OFST)
#define HCA_UB_READ_OFFSET(request, displacement) ((request) + (displacement) / HCA_UB_OFFSET_UNIT)
#define HCA_UB_TAID_OF(tassn) (tassn)
#define HCA_UB_TPMSN_FIRST 1u

/* ---- codes of the transport, S6.2.1 ---- */

#define HCA_UB_VERSION 0u /* of transport and transaction headers */

/* Content after the RTPH of an opcode. */
#define HCA_UB_TP_TA HCA_BIT(0) /* by NLP; only then */
#define HCA_UB_TP_CETPH HCA_BIT(1)
#define HCA_UB_TP_SAETPH HCA_BIT(2)
#define HCA_UB_TP_CNP_CETPH HCA_BIT(3)
#define HCA_UB_TP_ACK_STATUS HCA_BIT(4) /* RSPST and RSPINFO say something */

/* X(NAME, opcode, headers, text) */
#define HCA_UB_TP_LIST(X) \
	X(UTP, 0x00, HCA_UB_TP_TA, "UTP packet") \
	X(RTP, 0x01, HCA_UB_TP_TA, "TP Packet") \
	X(ACK, 0x02, HCA_UB_TP_ACK_STATUS, "TPACK") \
	X(ACK_CC, 0x03, HCA_UB_TP_ACK_STATUS | HCA_UB_TP_CETPH, "TPACK-CC") \
	X(SACK, 0x05, HCA_UB_TP_SAETPH, "TPSACK") \
	X(SACK_CC, 0x06, HCA_UB_TP_CETPH | HCA_UB_TP_SAETPH, "TPSACK-CC") \
	X(CNP, 0x08, HCA_UB_TP_CNP_CETPH, "CNP")

enum hca_ub_tp_opcode {
#define HCA_UB_ENUM(NAME, opcode, headers, text) HCA_UB_TP_##NAME = (opcode),
	HCA_UB_TP_LIST(HCA_UB_ENUM)
#undef HCA_UB_ENUM
};
#define HCA_UB_TP_OPCODES 128u

/* Headers after the RTPH of opcodes 00 and 01. X(NAME, code, text) */
#define HCA_UB_NLP_LIST(X) \
	X(TA, 0, "transaction header") \
	X(EIDH, 1, "UPIH, EIDH, then transaction header") \
	X(SECURITY, 3, "security header: not offered")

/* RSPST of TPACK and TPNAK. X(NAME, code, text) */
#define HCA_UB_ACK_LIST(X) \
	X(OK, 0, "TPACK") \
	X(RNR, 1, "receiver not ready") \
	X(PAGE_FAULT, 2, "page fault") \
	X(ERROR, 3, "error") \
	X(TA, 5, "answer of the transaction")

/* RSPINFO of 3, error; of both layers, but for the first. X(NAME, code, text) */
#define HCA_UB_ERROR_LIST(X) \
	X(PSN, 0, "PSN error: TPNAK") \
	X(UNSUPPORTED, 1, "unsupported request") \
	X(ABORT, 2, "remote abort")

/* RSPINFO of an acknowledgement with RSPST 5. X(NAME, code, text) */
#define HCA_UB_ACK_TA_LIST(X) \
	X(AGAIN, 0, "failed, may be repeated") \
	X(FAILED, 1, "failed for good") \
	X(DONE, 2, "done")

/* Wait of "not ready" and of a page fault, by its timer code. */
#define HCA_UB_RNR_TIMER_MAX 19u
#define HCA_UB_RNR_NS(timer) (UINT64_C(2000) << (timer))

#define HCA_UB_SACK_SIZES 5u /* codes 0..4 */
#define HCA_UB_SACK_BITS(size) (64u << (size))
#define HCA_UB_SACK_BYTES(size) (8u << (size))
#define HCA_UB_SACK_BYTES_MAX HCA_UB_SACK_BYTES(HCA_UB_SACK_SIZES - 1)

/* Payload of a packet by MTU code. Code 2, 8192 bytes, is refused. */
#define HCA_UB_MTU_LIST(X) \
	X(0, 1024) \
	X(1, 4096)
#define HCA_UB_MTU_MAX 4096u

/* Packets in flight of a TP: HCA_UB_WINDOW(code), codes 0..4. */
#define HCA_UB_WINDOW_CODES 5u
#define HCA_UB_WINDOW(code) (128u << (code))
#define HCA_UB_PSN_WINDOW_MAX 0x7fffffu /* that the numbers allow */

/* ---- codes of the transaction layer, S7.2 ---- */

#define HCA_UB_EE_NORMAL 1u
#define HCA_UB_EE_TRUSTED 3u

#define HCA_UB_ODR_COMPLETION HCA_BIT(2)
#define HCA_UB_ODR_EXECUTION(odr) HCA_BITS(odr, 1, 0)
#define HCA_UB_ODR_NONE 0u
#define HCA_UB_ODR_RELAXED 1u
#define HCA_UB_ODR_STRONG 2u

#define HCA_UB_RC_QUEUE 0u /* 1 is the same */
#define HCA_UB_RC_SEQUENCE 2u
#define HCA_UB_TC_ONE 0u /* 1 is the same */
#define HCA_UB_TC_GROUP 2u
#define HCA_UB_CODE_RESERVED 3u /* of RC type, TC type and ODR's execution order */

#define HCA_UB_RC_ID_BITS 20u
#define HCA_UB_TOKEN_ID_BITS 20u
#define HCA_UB_TASSN_MASK 0xffffu
#define HCA_UB_OFFSET_UNIT 1024u
#define HCA_UB_BE_MIN 64u /* bytes of payload; byte enables: one eighth of it */
#define HCA_UB_BE_MAX 1024u
#define HCA_UB_ATOMIC_MAX 64u	 /* bytes of an operand: powers of two up to this */
#define HCA_UB_AGGREGATE_MAX 32u /* requests that one TAACK answers */

/* RSPST of responses. X(NAME, code, text) */
#define HCA_UB_RSP_LIST(X) \
	X(DONE, 0, "done") \
	X(RNR, 1, "receiver not ready") \
	X(PAGE_FAULT, 2, "page fault") \
	X(ERROR, 3, "error") \
	X(BUFFERED, 5, "done, not yet in the medium")

/*
 * Headers behind BTAH or ATAH in their order on the wire; a packet has some of them. BEETAH has
 * one eighth of MAETAH.length bytes, the others have a fixed length. X(HEADER, header)
 */
#define HCA_UB_EXT_LIST(X) \
	X(UDETAH, udetah) \
	X(MGMTETAH, mgmtetah) \
	X(MTETAH, mtetah) \
	X(TAIDETAH, taidetah) \
	X(OFSTETAH, ofstetah) \
	X(MAETAH, maetah) \
	X(NTFETAH, ntfetah) \
	X(IMMETAH, immetah) \
	X(TVETAH, tvetah)

enum hca_ub_ext_bit {
#define HCA_UB_ENUM(HEADER, header) HCA_UB_EXT_BIT_##HEADER,
	HCA_UB_EXT_LIST(HCA_UB_ENUM)
#undef HCA_UB_ENUM
	HCA_UB_EXT_BIT_BEETAH,
};
/* A set of headers: HCA_UB_EXT(MAETAH) | HCA_UB_EXT(TVETAH) */
#define HCA_UB_EXT(HEADER) HCA_BIT(HCA_UB_EXT_BIT_##HEADER)

/* Further properties of an opcode. */
#define HCA_UB_OP_OFFERED HCA_BIT(16)	 /* else only printed */
#define HCA_UB_OP_RESPONSE HCA_BIT(17)	 /* ATAH, not BTAH */
#define HCA_UB_OP_PAYLOAD HCA_BIT(18)	 /* may carry any */
#define HCA_UB_OP_LAST HCA_BIT(19)	 /* is the last packet of its operation */
#define HCA_UB_OP_UNRELIABLE HCA_BIT(20) /* may travel in a UTP packet */
#define HCA_UB_OP_TOKEN HCA_BIT(21)	 /* may have a TVETAH */
#define HCA_UB_OP_UNANSWERED HCA_BIT(22) /* a request that no TAACK answers, whatever comes of it */

#define HCA_UB_REQ_ (HCA_UB_OP_OFFERED | HCA_UB_OP_TOKEN)
#define HCA_UB_RSP_ (HCA_UB_OP_OFFERED | HCA_UB_OP_RESPONSE)
#define HCA_UB_SEND_ \
	(HCA_UB_REQ_ | HCA_UB_OP_PAYLOAD | HCA_UB_OP_UNRELIABLE | HCA_UB_EXT(MTETAH) | \
	 HCA_UB_EXT(OFSTETAH))
#define HCA_UB_WRITE_ (HCA_UB_REQ_ | HCA_UB_OP_PAYLOAD | HCA_UB_EXT(MAETAH))
#define HCA_UB_ATOMIC_ (HCA_UB_WRITE_ | HCA_UB_OP_LAST)
#define HCA_UB_WRITEBACK_ (HCA_UB_ATOMIC_ & ~HCA_UB_OP_OFFERED)

/*
 * Opcodes of BTAH and ATAH: headers that are always there, and those that depend on the TP. UDETAH
 * may be there in each request. X(NAME, opcode, kind, is, by TP, text)
 */
#define HCA_UB_TA_LIST(X) \
	X(SEND, 0x00, SEND, HCA_UB_SEND_, 0, "Send") \
	X(SEND_IMM, 0x01, SEND, HCA_UB_SEND_ | HCA_UB_OP_LAST | HCA_UB_EXT(IMMETAH), 0, \
	  "Send_with_immediate") \
	X(WRITE, 0x03, WRITE, HCA_UB_WRITE_, 0, "Write") \
	X(WRITE_IMM, 0x04, WRITE, \
	  HCA_UB_WRITE_ | HCA_UB_OP_LAST | HCA_UB_EXT(MTETAH) | HCA_UB_EXT(IMMETAH), 0, \
	  "Write_with_immediate") \
	X(WRITE_NOTIFY, 0x05, WRITE, HCA_UB_WRITE_ | HCA_UB_OP_LAST | HCA_UB_EXT(NTFETAH), 0, \
	  "Write_with_notify") \
	X(READ, 0x06, READ, HCA_UB_REQ_ | HCA_UB_OP_LAST | HCA_UB_EXT(MAETAH), \
	  HCA_UB_EXT(TAIDETAH) | HCA_UB_EXT(OFSTETAH), "Read") \
	X(COMPARE_SWAP, 0x07, ATOMIC, HCA_UB_ATOMIC_, HCA_UB_EXT(TAIDETAH), "Atomic_compare_swap") \
	X(SWAP, 0x08, ATOMIC, HCA_UB_ATOMIC_, HCA_UB_EXT(TAIDETAH), "Atomic_swap") \
	X(STORE, 0x09, ATOMIC, HCA_UB_ATOMIC_, HCA_UB_EXT(TAIDETAH), "Atomic_store") \
	X(LOAD, 0x0a, ATOMIC, HCA_UB_ATOMIC_, HCA_UB_EXT(TAIDETAH), "Atomic_load") \
	X(FETCH_ADD, 0x0b, ATOMIC, HCA_UB_ATOMIC_, HCA_UB_EXT(TAIDETAH), "Atomic_fetch_add") \
	X(FETCH_SUB, 0x0c, ATOMIC, HCA_UB_ATOMIC_, HCA_UB_EXT(TAIDETAH), "Atomic_fetch_sub") \
	X(FETCH_AND, 0x0d, ATOMIC, HCA_UB_ATOMIC_, HCA_UB_EXT(TAIDETAH), "Atomic_fetch_and") \
	X(FETCH_OR, 0x0e, ATOMIC, HCA_UB_ATOMIC_, HCA_UB_EXT(TAIDETAH), "Atomic_fetch_or") \
	X(FETCH_XOR, 0x0f, ATOMIC, HCA_UB_ATOMIC_, HCA_UB_EXT(TAIDETAH), "Atomic_fetch_xor") \
	X(MANAGEMENT, 0x10, OTHER, \
	  HCA_UB_OP_PAYLOAD | HCA_UB_OP_UNRELIABLE | HCA_UB_OP_UNANSWERED | HCA_UB_EXT(MGMTETAH), \
	  0, "Management") \
	X(TAACK, 0x11, TAACK, HCA_UB_RSP_ | HCA_UB_OP_LAST, 0, "TAACK") \
	X(READ_RESPONSE, 0x12, READ_RESPONSE, HCA_UB_RSP_ | HCA_UB_OP_PAYLOAD, \
	  HCA_UB_EXT(TAIDETAH) | HCA_UB_EXT(OFSTETAH), "Read_response") \
	X(ATOMIC_RESPONSE, 0x13, ATOMIC_RESPONSE, \
	  HCA_UB_RSP_ | HCA_UB_OP_PAYLOAD | HCA_UB_OP_LAST, HCA_UB_EXT(TAIDETAH), \
	  "Atomic_response") \
	X(WRITE_BE, 0x14, WRITE_BE, HCA_UB_WRITE_ | HCA_UB_OP_LAST | HCA_UB_EXT(BEETAH), 0, \
	  "Write_with_be") \
	X(PREFETCH, 0x15, OTHER, \
	  HCA_UB_OP_LAST | HCA_UB_OP_UNRELIABLE | HCA_UB_OP_UNANSWERED | HCA_UB_EXT(MAETAH), 0, \
	  "Prefetch_tgt") \
	X(WRITEBACK, 0x17, OTHER, HCA_UB_WRITEBACK_, 0, "Writeback") \
	X(WRITEBACK_BE, 0x18, OTHER, HCA_UB_WRITEBACK_ | HCA_UB_EXT(BEETAH), 0, "Writeback_with_be")

enum hca_ub_ta_opcode {
#define HCA_UB_ENUM(NAME, opcode, kind, is, by_tp, text) HCA_UB_TA_##NAME = (opcode),
	HCA_UB_TA_LIST(HCA_UB_ENUM)
#undef HCA_UB_ENUM
};

enum hca_ub_ta_kind {
	HCA_UB_KIND_NONE, /* no such opcode; keeps zeroed tables safe */
	HCA_UB_KIND_SEND,
	HCA_UB_KIND_WRITE,
	HCA_UB_KIND_WRITE_BE,
	HCA_UB_KIND_READ,
	HCA_UB_KIND_ATOMIC,
	HCA_UB_KIND_TAACK,
	HCA_UB_KIND_READ_RESPONSE,
	HCA_UB_KIND_ATOMIC_RESPONSE,
	HCA_UB_KIND_OTHER, /* known, not offered */
};

/* Operation of Atomic_store and Atomic_load: bits of UDETAH. X(NAME, code, text) */
#define HCA_UB_UD_OPERATION(user) HCA_BITS(user, 23, 20)
#define HCA_UB_UD_MAKE_OPERATION(code) HCA_FIELD(23, 20, code)
#define HCA_UB_UD_OP_LIST(X) \
	X(ADD, 0, "add") \
	X(CLR, 1, "and not") \
	X(EOR, 2, "exclusive or") \
	X(SET, 3, "or") \
	X(SMAX, 4, "signed maximum") \
	X(SMIN, 5, "signed minimum") \
	X(UMAX, 6, "unsigned maximum") \
	X(UMIN, 7, "unsigned minimum")
#define HCA_UB_UD_OPS 8u

/* Enums of the lists of codes: HCA_UB_NLP_TA ... */
#define HCA_UB_NLP_ENUM(NAME, code, text) HCA_UB_NLP_##NAME = (code),
#define HCA_UB_ACK_ENUM(NAME, code, text) HCA_UB_ACK_##NAME = (code),
#define HCA_UB_ERROR_ENUM(NAME, code, text) HCA_UB_ERROR_##NAME = (code),
#define HCA_UB_ACK_TA_ENUM(NAME, code, text) HCA_UB_ACK_TA_##NAME = (code),
#define HCA_UB_RSP_ENUM(NAME, code, text) HCA_UB_RSP_##NAME = (code),
#define HCA_UB_UD_OP_ENUM(NAME, code, text) HCA_UB_UD_OP_##NAME = (code),
enum hca_ub_nlp {
	HCA_UB_NLP_LIST(HCA_UB_NLP_ENUM)
};
enum hca_ub_ack_status {
	HCA_UB_ACK_LIST(HCA_UB_ACK_ENUM)
};
enum hca_ub_error {
	HCA_UB_ERROR_LIST(HCA_UB_ERROR_ENUM)
};
enum hca_ub_ack_ta {
	HCA_UB_ACK_TA_LIST(HCA_UB_ACK_TA_ENUM)
};
enum hca_ub_rsp_status {
	HCA_UB_RSP_LIST(HCA_UB_RSP_ENUM)
};
enum hca_ub_ud_op {
	HCA_UB_UD_OP_LIST(HCA_UB_UD_OP_ENUM)
};

/* Between the code on the wire and the operation, either way. choices: enum hca_ub_switch */
static inline uint32_t
hca_ub_ud_op(uint32_t code, uint32_t choices)
{
	bool turn = (choices & HCA_UB_SWITCH_CLR_EOR_TEXT) != 0 &&
		    (code == HCA_UB_UD_OP_CLR || code == HCA_UB_UD_OP_EOR);

	return turn ? HCA_UB_UD_OP_CLR + HCA_UB_UD_OP_EOR - code : code;
}

#endif
