/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "wire/ub_frame.h"

#define DROP(NAME) (-HCA_UB_DROP_##NAME)

/* Codes of RSPINFO that are defined, by RSPST: bit n stands for code n. */
#define TIMERS ((1u << (HCA_UB_RNR_TIMER_MAX + 1)) - 1)

/* ---- transport ---- */

static const uint32_t ack_codes[8] = {
	[HCA_UB_ACK_OK] = 1,
	[HCA_UB_ACK_RNR] = TIMERS,
	[HCA_UB_ACK_PAGE_FAULT] = TIMERS,
#define X(NAME, code, text) | 1u << (code)
	[HCA_UB_ACK_ERROR] = 0 HCA_UB_ERROR_LIST(X),
	[HCA_UB_ACK_TA] = 0 HCA_UB_ACK_TA_LIST(X),
#undef X
};

/* The fields that both transport headers have, then those of the reliable one. */
static void
read_tph(const uint8_t *tph, uint32_t n, struct hca_ub_tp_view *v)
{
	*v = (struct hca_ub_tp_view){
		.opcode = hca_ub_rtph_opcode(tph),
		.pad = hca_ub_rtph_pad(tph),
		.last = true,
		.end = n,
	};
	v->op = &hca_ub_tp_ops[v->opcode];
	if (v->opcode == HCA_UB_TP_UTP)
		return;
	v->last = hca_ub_rtph_last(tph);
	v->src_tpn = hca_ub_rtph_src_tpn(tph);
	v->dst_tpn = hca_ub_rtph_dst_tpn(tph);
	v->psn = hca_ub_rtph_psn(tph);
	v->tpmsn = hca_ub_rtph_tpmsn(tph);
	v->rspst = hca_ub_rtph_rspst(tph);
	v->rspinfo = hca_ub_rtph_rspinfo(tph);
	v->ack = hca_ub_rtph_ack(tph);
	v->fake = hca_ub_rtph_fake(tph);
}

/* Packets: NLP gives the headers behind theirs. */
static int
parse_packet(const uint8_t *tph, struct hca_ub_tp_view *v)
{
	uint32_t ta = HCA_UB_RTPH_LEN, headers;

	switch (hca_ub_rtph_nlp(tph)) {
	case HCA_UB_NLP_TA:
		break;
	case HCA_UB_NLP_EIDH:
		v->upih = HCA_UB_RTPH_LEN;
		ta += HCA_UB_UPIH_LEN + HCA_UB_EIDH_LEN;
		break;
	case HCA_UB_NLP_SECURITY:
		return DROP(SECURITY);
	default:
		return DROP(NLP);
	}
	headers = ta + (v->fake ? 0 : HCA_UB_BTAH_LEN);
	if (v->end < headers)
		return DROP(SHORT);
	if (v->pad > v->end - headers)
		return DROP(PAD);
	if (!v->fake)
		v->ta = ta;
	return 0;
}

/* Acknowledgements and CNPs: their length is known. */
static int
parse_answer(const uint8_t *tph, struct hca_ub_tp_view *v)
{
	uint32_t len = v->op->len, size;

	if (v->end < len)
		return DROP(SHORT);
	if (v->op->headers & (HCA_UB_TP_CETPH | HCA_UB_TP_CNP_CETPH))
		v->cetph = HCA_UB_RTPH_LEN;
	if (v->op->headers & HCA_UB_TP_SAETPH) {
		v->saetph = len - HCA_UB_SAETPH_LEN;
		size = hca_ub_saetph_size(tph + v->saetph);
		if (size >= HCA_UB_SACK_SIZES)
			return DROP(SACK_SIZE);
		len += HCA_UB_SACK_BYTES(size);
		if (v->end < len)
			return DROP(SHORT);
	}
	if (v->end != len)
		return DROP(LENGTH);
	if (v->pad != 0)
		return DROP(PAD);
	if (v->opcode == HCA_UB_TP_CNP)
		return 0;
	if (!(v->op->headers & HCA_UB_TP_ACK_STATUS))
		return v->rspst != 0 || v->rspinfo != 0 ? DROP(STATUS) : 0;
	return ack_codes[v->rspst] >> v->rspinfo & 1 ? 0 : DROP(STATUS);
}

int
hca_ub_parse_tp(const uint8_t *tph, uint32_t n, struct hca_ub_tp_view *v)
{
	if (n < HCA_UB_RTPH_LEN)
		return DROP(SHORT);
	if ((n & 3) != 0)
		return DROP(LENGTH);
	if (hca_ub_rtph_version(tph) != HCA_UB_VERSION)
		return DROP(VERSION);
	read_tph(tph, n, v);
	if (v->op->name == NULL)
		return DROP(OPCODE);
	return v->op->headers & HCA_UB_TP_TA ? parse_packet(tph, v) : parse_answer(tph, v);
}

/* ---- transaction ---- */

static const uint32_t response_codes[8] = {
	[HCA_UB_RSP_DONE] = 1,
	[HCA_UB_RSP_RNR] = TIMERS,
	[HCA_UB_RSP_PAGE_FAULT] = TIMERS,
	[HCA_UB_RSP_ERROR] = 1u << HCA_UB_ERROR_UNSUPPORTED | 1u << HCA_UB_ERROR_ABORT,
	[HCA_UB_RSP_BUFFERED] = 1,
};

static inline bool
is_power(uint32_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

static inline bool
is_done(uint32_t rspst)
{
	return rspst == HCA_UB_RSP_DONE || rspst == HCA_UB_RSP_BUFFERED;
}

/* Fields of the BTAH. */
static int
judge_request(const uint8_t *btah, const struct hca_ub_ta_info *op)
{
	bool to_queue = (op->is & HCA_UB_EXT(MTETAH)) != 0;

	if (hca_ub_btah_ee(btah) != HCA_UB_EE_NORMAL)
		return DROP(TA_EE);
	if (HCA_UB_ODR_EXECUTION(hca_ub_btah_odr(btah)) == HCA_UB_CODE_RESERVED ||
	    hca_ub_btah_rc_type(btah) == HCA_UB_CODE_RESERVED)
		return DROP(TA_CODE);
	return hca_ub_btah_mt_en(btah) != to_queue ? DROP(TA_FLAGS) : 0;
}

/* Fields of the ATAH. Only a TAACK answers several requests at once. */
static int
judge_response(const uint8_t *atah, const struct hca_ub_ta_info *op)
{
	uint32_t status = hca_ub_atah_rspst(atah);

	if (hca_ub_atah_rc_type(atah) == HCA_UB_CODE_RESERVED)
		return DROP(TA_CODE);
	if (op->kind == HCA_UB_KIND_TAACK && is_done(status))
		return 0;
	return response_codes[status] >> hca_ub_atah_rspinfo(atah) & 1 ? 0 : DROP(TA_STATUS);
}

/* Where the payload is. */
static int
find_payload(const uint8_t *tah, uint32_t n, uint32_t pad, struct hca_ub_ta_view *v)
{
	uint32_t length;

	v->enables_len = 0;
	v->payload = v->at->beetah;
	if (n < v->payload)
		return DROP(TA_SHORT);
	if (v->at->headers & HCA_UB_EXT(BEETAH)) {
		length = hca_ub_maetah_length(tah + v->at->maetah);
		if (!is_power(length) || length < HCA_UB_BE_MIN || length > HCA_UB_BE_MAX)
			return DROP(TA_ENABLES);
		v->enables_len = length / 8;
		v->payload += v->enables_len;
		if (n < v->payload)
			return DROP(TA_SHORT);
	}
	if (pad > n - v->payload)
		return DROP(TA_PAD);
	v->payload_len = n - v->payload - pad;
	return 0;
}

static int
judge_atomic(const uint8_t *tah, const struct hca_ub_ta_view *v)
{
	const uint8_t *maetah = tah + v->at->maetah;
	uint32_t length = hca_ub_maetah_length(maetah);

	if (!is_power(length) || length > HCA_UB_ATOMIC_MAX ||
	    (hca_ub_maetah_address(maetah) & (length - 1)) != 0)
		return DROP(TA_ATOMIC);
	if (tah[0] == HCA_UB_TA_STORE || tah[0] == HCA_UB_TA_LOAD)
		if (v->at->udetah == 0 ||
		    HCA_UB_UD_OPERATION(hca_ub_udetah_user(tah + v->at->udetah)) >= HCA_UB_UD_OPS)
			return DROP(TA_USER);
	return v->payload_len != 2 * length ? DROP(TA_LENGTH) : 0;
}

/* Only the last packet of an operation is shorter than the MTU. */
static bool
fits_place(uint32_t len, bool last)
{
	if (last)
		return len <= HCA_UB_MTU_MAX;
#define X(code, bytes) || len == (bytes)
	return false HCA_UB_MTU_LIST(X);
#undef X
}

/* Payload against opcode and lengths. */
static bool
fits_length(const uint8_t *tah, const struct hca_ub_ta_view *v)
{
	uint32_t n = v->payload_len, length;

	if (n != 0 && !(v->op->is & HCA_UB_OP_PAYLOAD))
		return false;
	if ((v->op->is & HCA_UB_OP_RESPONSE) && !is_done(hca_ub_atah_rspst(tah)))
		return n == 0;
	switch (v->op->kind) {
	case HCA_UB_KIND_WRITE:
		length = hca_ub_maetah_length(tah + v->at->maetah);
		return n <= length && (n != 0) == (length != 0);
	case HCA_UB_KIND_WRITE_BE:
		return n == hca_ub_maetah_length(tah + v->at->maetah);
	case HCA_UB_KIND_ATOMIC_RESPONSE:
		return n == 0 || (is_power(n) && n <= HCA_UB_ATOMIC_MAX);
	default:
		return true;
	}
}

static int
judge_payload(const uint8_t *tah, const struct hca_ub_ta_view *v, bool last)
{
	if (!last && (v->op->is & HCA_UB_OP_LAST))
		return DROP(TA_LAST);
	if (v->at->mtetah != 0 && hca_ub_mtetah_type(tah + v->at->mtetah) == HCA_UB_CODE_RESERVED)
		return DROP(TA_CODE);
	if (v->op->kind == HCA_UB_KIND_ATOMIC)
		return judge_atomic(tah, v);
	return fits_place(v->payload_len, last) && fits_length(tah, v) ? 0 : DROP(TA_LENGTH);
}

int
hca_ub_parse_ta(const uint8_t *tph, const struct hca_ub_tp_view *tp, uint8_t form,
		struct hca_ub_ta_view *v)
{
	const uint8_t *tah = tph + tp->ta;
	uint32_t is;
	int rc;

	v->op = &hca_ub_ta_ops[tah[0]];
	v->at = NULL;
	is = v->op->is;
	if (hca_ub_btah_version(tah) != HCA_UB_VERSION)
		return DROP(TA_VERSION);
	if (v->op->name == NULL)
		return DROP(TA_OPCODE);
	v->at = hca_ub_layout_of(tah[0], tah[1], form);
	if (tp->opcode == HCA_UB_TP_UTP && !(is & HCA_UB_OP_UNRELIABLE))
		return DROP(TA_UNRELIABLE);
	rc = is & HCA_UB_OP_RESPONSE ? judge_response(tah, v->op) : judge_request(tah, v->op);
	if (rc == 0)
		rc = find_payload(tah, tp->end - tp->ta, tp->pad, v);
	if (rc == 0)
		rc = judge_payload(tah, v, tp->last);
	return rc == 0 && !(is & HCA_UB_OP_OFFERED) ? DROP(TA_OFFERED) : rc;
}

/* ---- reasons ---- */

static const struct {
	const char *name, *text;
	uint8_t answer;
} reasons[HCA_UB_DROP_COUNT] = {[HCA_UB_DROP_NONE] = {"none", "taken", 0},
#define X(NAME, counter, text) [HCA_UB_DROP_##NAME] = {#NAME, text, 0},
				HCA_UB_DROP_LIST(X)
#undef X
#define X(NAME, counter, answer, text) [HCA_UB_DROP_##NAME] = {#NAME, text, HCA_UB_ERROR_##answer},
					HCA_UB_REFUSE_LIST(X)
#undef X
};

static unsigned int
reason_index(int reason)
{
	unsigned int i = reason < 0 ? -(unsigned int)reason : (unsigned int)reason;

	return i < HCA_UB_DROP_COUNT ? i : 0;
}

uint8_t
hca_ub_refusal_answer(int reason)
{
	return reasons[reason_index(reason)].answer;
}

const char *
hca_ub_drop_name(int reason)
{
	return reasons[reason_index(reason)].name;
}

const char *
hca_ub_drop_text(int reason)
{
	return reasons[reason_index(reason)].text;
}

/* ---- all headers ---- */

static uint8_t *
put_answer(uint8_t *p, const struct hca_ub_headers *h, uint8_t headers)
{
	uint32_t n = HCA_UB_SACK_BYTES(h->saetph.size);

	if (headers & HCA_UB_TP_CNP_CETPH) {
		hca_ub_cetph_cnp_put(p, &h->cetph_cnp);
		return p + HCA_UB_CETPH_CNP_LEN;
	}
	if (headers & HCA_UB_TP_CETPH) {
		if (h->caqm)
			hca_ub_cetph_caqm_put(p, &h->cetph_caqm);
		else
			hca_ub_cetph_ldcp_put(p, &h->cetph_ldcp);
		p += HCA_UB_CETPH_LDCP_LEN;
	}
	if (!(headers & HCA_UB_TP_SAETPH))
		return p;
	hca_ub_saetph_put(p, &h->saetph);
	memcpy(p + HCA_UB_SAETPH_LEN, h->bitmap, n);
	return p + HCA_UB_SAETPH_LEN + n;
}

static uint8_t *
put_ta(uint8_t *tah, const struct hca_ub_headers *h, const struct hca_ub_ta_info *op)
{
	const struct hca_ub_layout *at;
	uint8_t *p = tah;
	uint32_t n;

	if (op->is & HCA_UB_OP_RESPONSE)
		hca_ub_atah_put(p, &h->atah);
	else
		hca_ub_btah_put(p, &h->btah);
	at = hca_ub_layout_of(tah[0], tah[1], h->form);
#define X(HEADER, header) \
	if (at->header != 0) \
		hca_ub_##header##_put(tah + at->header, &h->header);
	HCA_UB_EXT_LIST(X)
#undef X
	p = tah + at->beetah;
	if (!(at->headers & HCA_UB_EXT(BEETAH)))
		return p;
	n = h->maetah.length / 8;
	memcpy(p, h->enables, n);
	return p + n;
}

static uint8_t *
put_rtph(uint8_t *p, const struct hca_ub_rtph *h)
{
	struct hca_ub_rtph utph = {.last = 1, .opcode = h->opcode, .pad = h->pad, .nlp = h->nlp};

	hca_ub_rtph_put(p, h->opcode == HCA_UB_TP_UTP ? &utph : h);
	return p + HCA_UB_RTPH_LEN;
}

int
hca_ub_put_headers(uint8_t *tph, const struct hca_ub_headers *h)
{
	const struct hca_ub_tp_info *tp = &hca_ub_tp_ops[h->rtph.opcode % HCA_UB_TP_OPCODES];
	const struct hca_ub_ta_info *ta = &hca_ub_ta_ops[h->btah.opcode & 0xff];
	uint8_t *p;

	if (tp->name == NULL || ((tp->headers & HCA_UB_TP_TA) && ta->name == NULL) ||
	    h->saetph.size >= HCA_UB_SACK_SIZES || h->rtph.opcode >= HCA_UB_TP_OPCODES)
		return -EINVAL;
	p = put_rtph(tph, &h->rtph);
	if (!(tp->headers & HCA_UB_TP_TA))
		return put_answer(p, h, tp->headers) - tph;
	if (h->rtph.nlp == HCA_UB_NLP_EIDH) {
		hca_ub_upih_put(p, &h->upih);
		hca_ub_eidh_put(p + HCA_UB_UPIH_LEN, &h->eidh);
		p += HCA_UB_UPIH_LEN + HCA_UB_EIDH_LEN;
	}
	return (h->rtph.fake ? p : put_ta(p, h, ta)) - tph;
}

static void
get_answer(const uint8_t *tph, const struct hca_ub_tp_view *tp, struct hca_ub_headers *h)
{
	const uint8_t *cetph = tph + tp->cetph;

	if (tp->op->headers & HCA_UB_TP_CNP_CETPH)
		hca_ub_cetph_cnp_get(cetph, &h->cetph_cnp);
	else if (tp->cetph != 0 && h->caqm)
		hca_ub_cetph_caqm_get(cetph, &h->cetph_caqm);
	else if (tp->cetph != 0)
		hca_ub_cetph_ldcp_get(cetph, &h->cetph_ldcp);
	if (tp->saetph != 0) {
		hca_ub_saetph_get(tph + tp->saetph, &h->saetph);
		h->bitmap = tph + tp->saetph + HCA_UB_SAETPH_LEN;
	}
}

static void
get_ta(const uint8_t *tah, const struct hca_ub_ta_view *ta, struct hca_ub_headers *h)
{
	if (ta->op->is & HCA_UB_OP_RESPONSE)
		hca_ub_atah_get(tah, &h->atah);
	else
		hca_ub_btah_get(tah, &h->btah);
#define X(HEADER, header) \
	if (ta->at->header != 0) \
		hca_ub_##header##_get(tah + ta->at->header, &h->header);
	HCA_UB_EXT_LIST(X)
#undef X
	if (ta->enables_len != 0)
		h->enables = tah + ta->at->beetah;
}

void
hca_ub_get_headers(const uint8_t *tph, const struct hca_ub_tp_view *tp,
		   const struct hca_ub_ta_view *ta, struct hca_ub_headers *h)
{
	*h = (struct hca_ub_headers){.form = h->form, .caqm = h->caqm};
	hca_ub_rtph_get(tph, &h->rtph);
	get_answer(tph, tp, h);
	if (tp->upih != 0) {
		hca_ub_upih_get(tph + tp->upih, &h->upih);
		hca_ub_eidh_get(tph + tp->upih + HCA_UB_UPIH_LEN, &h->eidh);
	}
	if (ta != NULL)
		get_ta(tph + tp->ta, ta, h);
}

/* ---- frames ---- */

static uint32_t
headers_end(const uint8_t *tph, const struct hca_ub_tp_view *tp)
{
	struct hca_ub_ta_view ta;

	if (tp->ta == 0)
		return tp->end;
	if (hca_ub_parse_ta(tph, tp, HCA_UB_FORM_DEFAULT, &ta) != 0)
		return tp->ta + HCA_UB_BTAH_LEN;
	return tp->ta + ta.payload;
}

/*
 * The view's opcode is that of the transport, its numbers are TPNs; payload: behind the headers, as
 * far as these are defined. Only the transport's judgement counts.
 */
int
hca_ub_parse(const uint8_t *frame, uint32_t n, struct hca_wire_view *v)
{
	const uint8_t *tph = frame + v->transport;
	struct hca_ub_tp_view tp;

	if (n < HCA_UB_RTPH_LEN + HCA_ICRC_LEN)
		return -HCA_WIRE_DROP_HEADER_SHORT;
	if (hca_ub_parse_tp(tph, n - HCA_ICRC_LEN, &tp) != 0)
		return -HCA_WIRE_DROP_TRANSPORT;
	v->opcode = tp.opcode;
	v->psn = tp.psn;
	v->dst = tp.dst_tpn;
	v->src = tp.src_tpn;
	v->icrc = v->transport + tp.end;
	v->payload = v->transport + headers_end(tph, &tp);
	return 0;
}

bool
hca_ub_is_data(const struct hca_wire_view *v)
{
	return v->opcode == HCA_UB_TP_RTP;
}

int
hca_ub_template_fill(const struct hca_ub_path *path, struct hca_udp_template *t)
{
	struct hca_ub_rtph rtph = {.src_tpn = path->src_tpn, .dst_tpn = path->dst_tpn};
	int rc;

	if (path->src_tpn > 0xffffff || path->dst_tpn > 0xffffff)
		return -EINVAL;
	rc = hca_udp_template_fill(&path->udp, HCA_UB_UDP_PORT, t);
	if (rc == 0)
		hca_ub_rtph_put(t->bytes + t->transport, &rtph);
	return rc;
}
