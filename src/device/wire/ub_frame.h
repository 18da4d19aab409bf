/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UB behind the UDP header: transport headers, transaction headers, payload, pad and ICRC. Layouts
 * and opcodes: abi_ub.h.
 *
 * A packet is judged in two steps. hca_ub_parse_tp() reads only the packet; a packet that it
 * refuses is dropped, as if it had not come. hca_ub_parse_ta() also needs the headers that the TP
 * uses; a packet that it refuses has been accepted by the transport, its PSN is used, and the
 * refusal gives the transaction layer's answer. So a peer with a bad request cannot stop a shared
 * channel.
 *
 * Functions take packets as they are on the wire (any alignment), read nothing past the length they
 * are given, and keep no state; any lcore may call them. Numbers in structs are in the CPU's order.
 */
#ifndef DEVICE_WIRE_UB_FRAME_H
#define DEVICE_WIRE_UB_FRAME_H

#include "wire/icrc.h"
#include "wire/ub_opcode.h"
#include "wire/udp_template.h"

/* ---- judging ---- */

/* Why the transport drops a packet: X(NAME, counter, meaning). */
#define HCA_UB_DROP_LIST(X) \
	X(SHORT, ub_rx_short, "ends inside the transport header, EIDH, BTAH, ATAH or ICRC") \
	X(LENGTH, ub_rx_bad_length, "not whole words, or bytes behind what has no payload") \
	X(VERSION, ub_rx_bad_version, "transport version is not 0") \
	X(OPCODE, ub_rx_bad_opcode, "transport opcode is not defined") \
	X(NLP, ub_rx_bad_nlp, "next layer is not defined") \
	X(SECURITY, ub_rx_security, "security header, which is not offered") \
	X(STATUS, ub_rx_bad_status, "RSPST and RSPINFO of an acknowledgement are not defined") \
	X(SACK_SIZE, ub_rx_bad_sack, "size code of the bitmap is not defined") \
	X(PAD, ub_rx_bad_pad, "pad exceeds what is behind the headers, or is there in an answer")

/*
 * Why the transaction layer refuses a packet: X(NAME, counter, answer to a request, meaning).
 * Answer: RSPINFO of a failed response, HCA_UB_ERROR_...; PSN: none, it is dropped and counted. A
 * refused response is dropped and counted whatever the reason.
 */
#define HCA_UB_REFUSE_LIST(X) \
	X(TA_VERSION, ub_ta_bad_version, UNSUPPORTED, "transaction version is not 0") \
	X(TA_OPCODE, ub_ta_bad_opcode, UNSUPPORTED, "opcode is not defined") \
	X(TA_UNRELIABLE, ub_ta_bad_service, PSN, "opcode may not travel in a UTP packet") \
	X(TA_EE, ub_ta_bad_ee, PSN, "execution environment is not the normal one") \
	X(TA_CODE, ub_ta_bad_code, UNSUPPORTED, "ODR, RC type or TC type is reserved") \
	X(TA_FLAGS, ub_ta_bad_flags, UNSUPPORTED, "MT_EN does not fit the opcode") \
	X(TA_USER, ub_ta_bad_user, UNSUPPORTED, "UDETAH names no operation of an atomic") \
	X(TA_STATUS, ub_ta_bad_status, UNSUPPORTED, "RSPST and RSPINFO are not defined") \
	X(TA_SHORT, ub_ta_short, UNSUPPORTED, "ends inside the headers of its opcode") \
	X(TA_PAD, ub_ta_bad_pad, UNSUPPORTED, "pad exceeds what is behind the headers") \
	X(TA_LAST, ub_ta_bad_last, UNSUPPORTED, "opcode is of a last packet only") \
	X(TA_LENGTH, ub_ta_bad_length, UNSUPPORTED, "payload is not what opcode and length say") \
	X(TA_ATOMIC, ub_ta_bad_atomic, UNSUPPORTED, \
	  "operand has no legal length, or is not aligned") \
	X(TA_ENABLES, ub_ta_bad_enables, UNSUPPORTED, "no byte enables for that length") \
	X(TA_OFFERED, ub_ta_not_offered, UNSUPPORTED, "opcode is not offered")

/* Both, returned negated; from HCA_UB_DROP_TA on they are the transaction layer's. */
enum hca_ub_drop {
	HCA_UB_DROP_NONE = 0,
#define X(NAME, counter, text) HCA_UB_DROP_##NAME,
	HCA_UB_DROP_LIST(X)
#undef X
	HCA_UB_DROP_TA,
	HCA_UB_DROP_TP_LAST = HCA_UB_DROP_TA - 1,
#define X(NAME, counter, answer, text) HCA_UB_DROP_##NAME,
	HCA_UB_REFUSE_LIST(X)
#undef X
	HCA_UB_DROP_COUNT
};

/* Fields of the transport header. Offsets are bytes from it; 0: not there. */
struct hca_ub_tp_view {
	const struct hca_ub_tp_info *op;
	uint32_t src_tpn, dst_tpn; /* of UTP packets 0, as psn and tpmsn */
	uint32_t psn, tpmsn;
	uint8_t opcode; /* enum hca_ub_tp_opcode */
	uint8_t pad;
	uint8_t rspst, rspinfo;
	bool last; /* of UTP packets always */
	bool ack;  /* acknowledge at once */
	bool fake;
	uint8_t cetph;
	uint8_t saetph;
	uint8_t upih; /* the EIDH follows it */
	uint8_t ta;   /* BTAH or ATAH; also 0 when fake */
	uint32_t end; /* of the pad */
};

/*
 * n: bytes from the transport header to the end of the pad, without ICRC. Returns 0 or
 * -enum hca_ub_drop. From -HCA_UB_DROP_NLP on, all of *v but the offsets is meaningful.
 */
int hca_ub_parse_tp(const uint8_t *tph, uint32_t n, struct hca_ub_tp_view *v);

/* Fields of the transaction headers. Offsets are bytes from BTAH or ATAH. */
struct hca_ub_ta_view {
	const struct hca_ub_ta_info *op;
	const struct hca_ub_layout *at; /* NULL: opcode is not defined */
	uint32_t enables_len;		/* BEETAH, at at->beetah */
	uint32_t payload;
	uint32_t payload_len; /* without pad */
};

/*
 * form: HCA_UB_FORM_* of the TP; it does not matter for UTP packets. Returns 0 or
 * -enum hca_ub_drop; v->op and v->at are always meaningful, the rest on 0 and
 * -HCA_UB_DROP_TA_OFFERED, which comes when all else is right. Only the packet alone is
 * judged: tokens, ranges, the TP's MTU, Poison and whether the queue exists are matters of their
 * owners.
 */
int hca_ub_parse_ta(const uint8_t *tph, const struct hca_ub_tp_view *tp, uint8_t form,
		    struct hca_ub_ta_view *v);

/* RSPINFO with which a request is answered that hca_ub_parse_ta() refused; 0: not at all. */
uint8_t hca_ub_refusal_answer(int reason);

/* reason as returned above, negative or not. Never NULL. */
const char *hca_ub_drop_name(int reason);
const char *hca_ub_drop_text(int reason);

/* ---- building ---- */

/*
 * All headers of a packet; put reads those that rtph.opcode, rtph.nlp, the flags of the BTAH and
 * the opcode of BTAH or ATAH select.
 */
struct hca_ub_headers {
	uint8_t form; /* HCA_UB_FORM_* of the TP */
	bool caqm;    /* form of the TP's feedback */
	struct hca_ub_rtph rtph;
	union {
		struct hca_ub_cetph_ldcp cetph_ldcp;
		struct hca_ub_cetph_caqm cetph_caqm;
		struct hca_ub_cetph_cnp cetph_cnp;
	};
	struct hca_ub_saetph saetph;
	const uint8_t *bitmap; /* HCA_UB_SACK_BYTES(saetph.size) */
	struct hca_ub_upih upih;
	struct hca_ub_eidh eidh;
	union { /* both begin with the opcode */
		struct hca_ub_btah btah;
		struct hca_ub_atah atah;
	};
#define X(HEADER, header) struct hca_ub_##header header;
	HCA_UB_EXT_LIST(X)
#undef X
	const uint8_t *enables; /* BEETAH: one eighth of maetah.length */
};

/* Longest headers: EIDH and Write_with_be of HCA_UB_BE_MAX bytes. */
#define HCA_UB_HEADERS_MAX \
	(HCA_UB_RTPH_LEN + HCA_UB_UPIH_LEN + HCA_UB_EIDH_LEN + HCA_UB_BTAH_LEN + \
	 HCA_UB_UDETAH_LEN + HCA_UB_MAETAH_LEN + HCA_UB_TVETAH_LEN + HCA_UB_BE_MAX / 8)

/*
 * Writes all headers; rtph.pad is hca_ub_pad() of the payload. In a UTP packet last is 1 and the
 * fields of reliable packets are 0 whatever *h says. tph has room for HCA_UB_HEADERS_MAX bytes, or
 * for the number of bytes that these headers take. Returns their bytes, or -EINVAL for an opcode
 * that is not defined. Fields are not judged.
 */
int hca_ub_put_headers(uint8_t *tph, const struct hca_ub_headers *h);

/*The inverse, of a packet that hca_ub_parse_tp() and, where it has a transaction header,
 * hca_ub_parse_ta() have taken (ta NULL: it has none, or is not looked at). h->form and h->caqm are
 * the caller's. Pointers lead into the packet. Absent fields become 0.
 */
void hca_ub_get_headers(const uint8_t *tph, const struct hca_ub_tp_view *tp,
			const struct hca_ub_ta_view *ta, struct hca_ub_headers *h);

static inline uint32_t
hca_ub_pad(uint32_t payload_len)
{
	return -payload_len & 3;
}

struct hca_ub_path {
	struct hca_udp_path udp;
	uint32_t src_tpn, dst_tpn;
};

/*
 * Headers up to UDP, and version and TPNs of the transport header. The UDP source port may be
 * changed for each packet. Returns 0, or -EINVAL as hca_udp_template_fill() does or for a TPN that
 * does not fit.
 */
int hca_ub_template_fill(const struct hca_ub_path *path, struct hca_udp_template *t);

/* Flow label of a path, derived from its source port, for switches that spread by the label. */
static inline uint32_t
hca_ub_flow_label(uint16_t sport)
{
	return (sport * 0x9e3779b1u) >> 12;
}

/* Is bit k of a bitmap set; sets it. */
static inline bool
hca_ub_sack_bit(const uint8_t *bitmap, uint32_t k)
{
	return (bitmap[HCA_UB_SACK_BYTE(k)] & HCA_UB_SACK_MASK(k)) != 0;
}

static inline void
hca_ub_sack_set(uint8_t *bitmap, uint32_t k)
{
	bitmap[HCA_UB_SACK_BYTE(k)] |= HCA_UB_SACK_MASK(k);
}

#endif
