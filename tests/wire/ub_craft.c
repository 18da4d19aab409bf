/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "ub_craft.h"

int
ub_parse(const uint8_t *frame, uint32_t len, uint8_t form, struct ub_view *v)
{
	const uint8_t *tph;
	int rc;

	memset(v, 0, sizeof(*v));
	rc = hca_wire_parse(frame, len, &v->w);
	if (v->w.wire != HCA_WIRE_UB)
		return rc == 0 ? -HCA_WIRE_DROP_NOT_ROCE : rc;
	if (rc != 0 && rc != -HCA_WIRE_DROP_TRANSPORT)
		return rc;
	tph = frame + v->w.transport;
	rc = hca_ub_parse_tp(tph, hca_get_be16(tph - 4) - HCA_UDP_LEN - HCA_ICRC_LEN, &v->tp);
	if (rc == 0 && v->tp.ta != 0)
		rc = hca_ub_parse_ta(tph, &v->tp, form, &v->ta);
	return rc == 0 ? 0 : UB_REASON(rc);
}

static const struct {
	const char *name, *text;
} drops[HCA_WIRE_DROP_COUNT] = {[HCA_WIRE_DROP_NONE] = {"none", "taken"},
#define X(NAME, counter, meaning) [HCA_WIRE_DROP_##NAME] = {#NAME, meaning},
				HCA_WIRE_DROP_LIST(X)
#undef X
};

const char *
ub_drop_name(int reason)
{
	return reason < UB_REASON(0) ? hca_ub_drop_name(reason - UB_REASON(0))
				     : drops[-reason].name;
}

const char *
ub_drop_text(int reason)
{
	return reason < UB_REASON(0) ? hca_ub_drop_text(reason - UB_REASON(0))
				     : drops[-reason].text;
}

static uint32_t
icrc_of(const struct hca_icrc_ops *ops, const uint8_t *l3, uint8_t ip_version, uint32_t len)
{
	struct hca_icrc_span span = hca_icrc_span_of(HCA_WIRE_UB, ip_version, l3, len);
	uint32_t crc;

	ops->crc_burst(&span, &crc, 1);
	return crc;
}

bool
ub_icrc_ok(const struct hca_icrc_ops *ops, const uint8_t *frame, const struct hca_wire_view *v)
{
	return icrc_of(ops, frame + v->l3, v->ip_version, v->icrc - v->l3) ==
	       hca_icrc_load(frame + v->icrc);
}

void
ub_seal(const struct hca_icrc_ops *ops, uint8_t *frame, const struct hca_wire_view *v)
{
	hca_icrc_store(frame + v->icrc,
		       icrc_of(ops, frame + v->l3, v->ip_version, v->icrc - v->l3));
}

int
ub_build(const struct hca_icrc_ops *ops, const struct hca_udp_template *t, struct hca_ub_headers *h,
	 const void *payload, uint32_t payload_len, uint8_t *out, uint32_t room)
{
	uint8_t headers[HCA_UB_HEADERS_MAX], head[sizeof(t->bytes)];
	uint32_t at, end;
	int n;

	h->rtph.pad = hca_ub_pad(payload_len);
	n = hca_ub_put_headers(headers, h);
	if (n < 0 || payload_len > HCA_UB_MTU_MAX)
		return -EINVAL;
	at = t->transport + n;
	end = at + payload_len + h->rtph.pad;
	if (room < end + HCA_ICRC_LEN)
		return -ENOSPC;
	hca_udp_template_put(t, end + HCA_ICRC_LEN + HCA_UDP_LEN - t->transport, head);
	memcpy(out, head, t->transport);
	memcpy(out + t->transport, headers, n);
	if (payload_len != 0)
		memcpy(out + at, payload, payload_len);
	memset(out + at + payload_len, 0, h->rtph.pad);
	hca_icrc_store(out + end, icrc_of(ops, out + t->l3, t->ip_version, end - t->l3));
	return end + HCA_ICRC_LEN;
}

/* ---- random packets ---- */

static void
random_bytes(uint64_t (*rng)(void), uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = rng() >> 24;
}

/* Each field of each header random within its width. */
static void
random_fields(uint64_t (*rng)(void), struct hca_ub_headers *h, uint8_t tp, bool response)
{
	uint8_t b[HCA_UB_EIDH_LEN];

#define FILL(header) \
	random_bytes(rng, b, sizeof(b)); \
	hca_ub_##header##_get(b, &h->header);
#define X(HEADER, header) FILL(header)
	FILL(rtph)
	FILL(upih)
	FILL(eidh)
	FILL(saetph)
	HCA_UB_EXT_LIST(X)
#undef X
	if (tp == HCA_UB_TP_CNP) {
		FILL(cetph_cnp)
	} else if (h->caqm) {
		FILL(cetph_caqm)
	} else {
		FILL(cetph_ldcp)
	}
	if (response) {
		FILL(atah)
	} else {
		FILL(btah)
	}
#undef FILL
}

static uint8_t
random_ta_opcode(uint64_t (*rng)(void), bool unreliable)
{
	static const uint8_t opcodes[] = {
#define X(NAME, opcode, kind, is, by_tp, text) opcode,
		HCA_UB_TA_LIST(X)
#undef X
	};
	uint32_t is;
	uint8_t opcode;

	do {
		opcode = opcodes[rng() % sizeof(opcodes)];
		is = hca_ub_ta_ops[opcode].is;
	} while (!(is & HCA_UB_OP_OFFERED) || (unreliable && !(is & HCA_UB_OP_UNRELIABLE)));
	return opcode;
}

static uint32_t
any_length(uint64_t (*rng)(void), uint32_t mtu, bool last)
{
	if (!last)
		return mtu;
	return rng() & 3 ? rng() % 65 % (mtu + 1) : rng() % (mtu + 1);
}

static void
make_atomic(uint64_t (*rng)(void), struct ub_packet *p)
{
	uint32_t length = 1u << rng() % 7;

	p->h.maetah.length = length;
	p->h.maetah.address &= ~(uint64_t)(length - 1);
	p->payload_len = 2 * length;
	if (p->h.btah.opcode == HCA_UB_TA_STORE || p->h.btah.opcode == HCA_UB_TA_LOAD) {
		p->h.btah.ud_flag = 1;
		p->h.udetah.user &= ~HCA_UB_UD_MAKE_OPERATION(8);
	}
}

static void
make_length(uint64_t (*rng)(void), const struct hca_ub_ta_info *op, struct ub_packet *p)
{
	struct hca_ub_maetah *ma = &p->h.maetah;

	switch (op->kind) {
	case HCA_UB_KIND_WRITE:
		ma->length = p->payload_len != 0 ? p->payload_len + (rng() & 0xffff) : 0;
		break;
	case HCA_UB_KIND_WRITE_BE:
		ma->length = p->payload_len = HCA_UB_BE_MIN << rng() % 5;
		break;
	case HCA_UB_KIND_ATOMIC:
		make_atomic(rng, p);
		break;
	case HCA_UB_KIND_ATOMIC_RESPONSE:
		p->payload_len = rng() & 1 ? 0 : 1u << rng() % 7;
		break;
	default:
		if (op->is & HCA_UB_EXT(BEETAH))
			ma->length = p->payload_len = HCA_UB_BE_MIN << rng() % 5;
	}
}

static void
make_request(uint64_t (*rng)(void), const struct hca_ub_ta_info *op, struct hca_ub_btah *btah)
{
	btah->version = HCA_UB_VERSION;
	btah->ee = HCA_UB_EE_NORMAL;
	btah->e_bit = 0;
	btah->odr = (btah->odr & HCA_UB_ODR_COMPLETION) | rng() % 3;
	btah->rc_type = rng() % 3;
	btah->mt_en = (op->is & HCA_UB_EXT(MTETAH)) != 0;
}

static void
make_response(uint64_t (*rng)(void), const struct hca_ub_ta_info *op, struct ub_packet *p)
{
	static const uint8_t status[] = {HCA_UB_RSP_DONE,  HCA_UB_RSP_DONE,
					 HCA_UB_RSP_RNR,   HCA_UB_RSP_PAGE_FAULT,
					 HCA_UB_RSP_ERROR, HCA_UB_RSP_BUFFERED};
	struct hca_ub_atah *atah = &p->h.atah;

	atah->version = HCA_UB_VERSION;
	atah->rc_type = rng() % 3;
	atah->rspst = status[rng() % sizeof(status)];
	if (atah->rspst == HCA_UB_RSP_ERROR)
		atah->rspinfo = HCA_UB_ERROR_UNSUPPORTED + rng() % 2;
	else if (atah->rspst == HCA_UB_RSP_RNR || atah->rspst == HCA_UB_RSP_PAGE_FAULT)
		atah->rspinfo = rng() % (HCA_UB_RNR_TIMER_MAX + 1);
	else if (op->kind != HCA_UB_KIND_TAACK)
		atah->rspinfo = 0;
	if (atah->rspst != HCA_UB_RSP_DONE && atah->rspst != HCA_UB_RSP_BUFFERED)
		p->payload_len = 0;
}

static void
make_ta(uint64_t (*rng)(void), uint32_t mtu, uint8_t opcode, struct ub_packet *p)
{
	const struct hca_ub_ta_info *op = &hca_ub_ta_ops[opcode];
	struct hca_ub_rtph *rtph = &p->h.rtph;

	rtph->nlp = rng() & 3 ? HCA_UB_NLP_TA : HCA_UB_NLP_EIDH;
	rtph->fake = 0;
	if ((op->is & HCA_UB_OP_LAST) || rtph->opcode == HCA_UB_TP_UTP || mtu < 1024)
		rtph->last = 1;
	if (op->is & HCA_UB_OP_PAYLOAD)
		p->payload_len = any_length(rng, mtu, rtph->last);
	p->h.btah.opcode = opcode;
	p->h.mtetah.type = rng() % 3;
	make_length(rng, op, p);
	if (!(op->is & HCA_UB_OP_RESPONSE)) {
		make_request(rng, op, &p->h.btah);
		return;
	}
	make_response(rng, op, p);
	if (p->payload_len == 0 && op->kind == HCA_UB_KIND_READ_RESPONSE)
		rtph->last = 1;
}

static void
make_status(uint64_t (*rng)(void), struct hca_ub_rtph *h)
{
	static const uint8_t status[] = {HCA_UB_ACK_OK, HCA_UB_ACK_RNR, HCA_UB_ACK_PAGE_FAULT,
					 HCA_UB_ACK_ERROR, HCA_UB_ACK_TA};

	h->rspst = status[rng() % sizeof(status)];
	h->rspinfo = rng() % 3;
	if (h->rspst == HCA_UB_ACK_OK)
		h->rspinfo = 0;
	else if (h->rspst == HCA_UB_ACK_RNR || h->rspst == HCA_UB_ACK_PAGE_FAULT)
		h->rspinfo = rng() % (HCA_UB_RNR_TIMER_MAX + 1);
}

void
ub_random_of(uint64_t (*rng)(void), uint32_t mtu, uint8_t tp, uint8_t ta, struct ub_packet *p)
{
	struct hca_ub_rtph *rtph = &p->h.rtph;
	bool is_packet = hca_ub_tp_ops[tp].headers & HCA_UB_TP_TA;

	memset(p, 0, sizeof(*p));
	random_bytes(rng, p->bitmap, sizeof(p->bitmap));
	random_bytes(rng, p->enables, sizeof(p->enables));
	p->h.form = rng() & HCA_UB_FORM_DEFAULT;
	p->h.caqm = rng() & 1;
	random_fields(rng, &p->h, tp, is_packet && (hca_ub_ta_ops[ta].is & HCA_UB_OP_RESPONSE));
	p->h.bitmap = p->bitmap;
	p->h.enables = p->enables;
	p->h.saetph.size %= HCA_UB_SACK_SIZES;
	rtph->opcode = tp;
	rtph->version = HCA_UB_VERSION;
	rtph->pad = 0;
	rtph->rspst = rtph->rspinfo = 0;
	if (is_packet) {
		make_ta(rng, mtu, ta, p);
		return;
	}
	rtph->nlp = 0;
	if (hca_ub_tp_ops[tp].headers & HCA_UB_TP_ACK_STATUS)
		make_status(rng, rtph);
}

void
ub_random(uint64_t (*rng)(void), uint32_t mtu, struct ub_packet *p)
{
	static const uint8_t opcodes[] = {
#define X(NAME, opcode, headers, text) opcode,
		HCA_UB_TP_LIST(X)
#undef X
	};
	uint8_t tp = rng() % 3 ? HCA_UB_TP_RTP : opcodes[rng() % sizeof(opcodes)];

	ub_random_of(rng, mtu, tp, random_ta_opcode(rng, tp == HCA_UB_TP_UTP), p);
}

/* ---- comparison ---- */

#define SAME(header) (memcmp(&a->header, &b->header, sizeof(a->header)) == 0)

static bool
same_answer(const struct hca_ub_headers *a, const struct hca_ub_headers *b, const struct ub_view *v)
{
	if (v->tp.saetph != 0 &&
	    (!SAME(saetph) || memcmp(a->bitmap, b->bitmap, HCA_UB_SACK_BYTES(a->saetph.size)) != 0))
		return false;
	if (v->tp.opcode == HCA_UB_TP_CNP)
		return SAME(cetph_cnp);
	if (v->tp.cetph == 0)
		return true;
	return a->caqm ? SAME(cetph_caqm) : SAME(cetph_ldcp);
}

static bool
same_ta(const struct hca_ub_headers *a, const struct hca_ub_headers *b, const struct ub_view *v)
{
	const struct hca_ub_layout *at = v->ta.at;

	if (v->ta.op->is & HCA_UB_OP_RESPONSE ? !SAME(atah) : !SAME(btah))
		return false;
#define X(HEADER, header) \
	if (at->header != 0 && !SAME(header)) \
		return false;
	HCA_UB_EXT_LIST(X)
#undef X
	return v->ta.enables_len == 0 || memcmp(a->enables, b->enables, v->ta.enables_len) == 0;
}

bool
ub_same_headers(const struct hca_ub_headers *a, const struct hca_ub_headers *b,
		const struct ub_view *v)
{
	bool unreliable = v->tp.opcode == HCA_UB_TP_UTP;

	if (unreliable ? a->rtph.pad != b->rtph.pad || a->rtph.nlp != b->rtph.nlp : !SAME(rtph))
		return false;
	if (v->tp.upih != 0 && (!SAME(upih) || !SAME(eidh)))
		return false;
	return same_answer(a, b, v) && (v->tp.ta == 0 || same_ta(a, b, v));
}
