/* SPDX-License-Identifier: BSD-3-Clause */

#include "ubcm_msg.h"

/* ---- fields ---- */

static uint32_t
get_8(const uint8_t *p)
{
	return *p;
}

static uint32_t
get_16(const uint8_t *p)
{
	return hca_get_be16(p);
}

static uint32_t
get_24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | hca_get_be16(p + 1);
}

static uint32_t
get_32(const uint8_t *p)
{
	return hca_get_be32(p);
}

static void
put_8(uint8_t *p, uint32_t v)
{
	*p = (uint8_t)v;
}

static void
put_16(uint8_t *p, uint32_t v)
{
	hca_put_be16(p, (uint16_t)v);
}

static void
put_24(uint8_t *p, uint32_t v)
{
	*p = (uint8_t)(v >> 16);
	hca_put_be16(p + 1, (uint16_t)v);
}

static void
put_32(uint8_t *p, uint32_t v)
{
	hca_put_be32(p, v);
}

/* ---- types of TLVs and messages ---- */

static const struct {
	uint8_t bytes, max;
} tlvs[UBCM_TLVS] = {
#define ROW(NAME, type, bytes, max) [type] = {bytes, max},
	UBCM_TLV_LIST(ROW)
#undef ROW
};

static const uint8_t has[UBCM_TYPES] = {
#define ROW(NAME, type, what) [type] = (what),
	UBCM_TYPE_LIST(ROW)
#undef ROW
};

/* ---- reading ---- */

static bool
is_power(uint32_t v, uint32_t min, uint32_t max)
{
	return v >= min && v <= max && (v & (v - 1)) == 0;
}

static bool
good_limits(const struct ubcm_limits *l)
{
	return is_power(l->window, HCA_TP_WINDOW_PACKETS(0), HCA_TP_WINDOW_PACKETS(4)) &&
	       is_power(l->sack, HCA_TP_SACK_BITS(0), HCA_TP_SACK_BITS(4)) &&
	       (l->mtu == 1024 || l->mtu == 4096 || l->mtu == 8192) && l->requests != 0 &&
	       l->mode < HCA_TP_MODES;
}

static bool
good_timer(const struct ubcm_timer *t)
{
	const struct hca_tpc_field_info *f = hca_tpc_fields;

	return (t->rto_base == 0 || t->rto_base >= HCA_TP_RTO_LEAST) &&
	       t->rto_base <= f[HCA_TPC_RTO_BASE].max &&
	       t->rto_exponent <= f[HCA_TPC_RTO_EXPONENT].max &&
	       t->retries <= f[HCA_TPC_RETRIES].max && t->ack_every != 0 && t->ooo_every != 0;
}

static enum ubcm_drop
take_entity(const uint8_t *p, struct ubcm_msg *m)
{
	memcpy(m->source, p, sizeof(m->source));
	memcpy(m->destination, p + sizeof(m->source), sizeof(m->destination));
	return UBCM_DROP_none;
}

static enum ubcm_drop
take_tp(const uint8_t *p, struct ubcm_msg *m)
{
	struct ubcm_msg_tp *tp = &m->tp[m->ntps];

#define TAKE(member, bits, at) tp->member = (__typeof__(tp->member))get_##bits(p + (at));
	UBCM_TP_FIELDS(TAKE)
#undef TAKE
	if (tp->tpn == 0 || !good_limits(&tp->limits))
		return UBCM_DROP_value;
	for (uint32_t i = 0; i < m->ntps; i++)
		if (m->tp[i].tpn == tp->tpn)
			return UBCM_DROP_value;
	m->ntps++;
	return UBCM_DROP_none;
}

static enum ubcm_drop
take_timer(const uint8_t *p, struct ubcm_msg *m)
{
	struct ubcm_timer *t = &m->timer;

#define TAKE(member, bits, at) t->member = (__typeof__(t->member))get_##bits(p + (at));
	UBCM_TIMER_FIELDS(TAKE)
#undef TAKE
	return good_timer(t) ? UBCM_DROP_none : UBCM_DROP_value;
}

static enum ubcm_drop
take_cookie(const uint8_t *p, struct ubcm_msg *m)
{
	m->cookie = hca_get_be64(p);
	m->has_cookie = true;
	return UBCM_DROP_none;
}

static enum ubcm_drop
take_value(uint32_t type, const uint8_t *p, struct ubcm_msg *m)
{
	switch (type) {
	case UBCM_TLV_ENTITY:
		return take_entity(p, m);
	case UBCM_TLV_TP:
		return take_tp(p, m);
	case UBCM_TLV_TIMER:
		return take_timer(p, m);
	default:
		return take_cookie(p, m);
	}
}

static uint32_t
padded(uint32_t bytes)
{
	return (bytes + 3) & ~3u;
}

/* *seen: how many there were of each type */
static enum ubcm_drop
take_tlv(uint32_t type, uint32_t bytes, const uint8_t *p, uint8_t *seen, struct ubcm_msg *m)
{
	if (type >= UBCM_TLVS || tlvs[type].max == 0)
		return UBCM_DROP_none;
	if (bytes != tlvs[type].bytes)
		return UBCM_DROP_tlv;
	if (seen[type]++ == tlvs[type].max)
		return UBCM_DROP_repeated;
	return take_value(type, p, m);
}

static enum ubcm_drop
take_tlvs(const uint8_t *p, uint32_t left, uint8_t *seen, struct ubcm_msg *m)
{
	enum ubcm_drop drop = UBCM_DROP_none;

	while (left != 0 && drop == UBCM_DROP_none) {
		uint32_t bytes, all;

		if (left < UBCM_TLV_BYTES)
			return UBCM_DROP_tlv;
		bytes = hca_get_be16(p + 2);
		all = UBCM_TLV_BYTES + padded(bytes);
		if (all > left)
			return UBCM_DROP_tlv;
		drop = take_tlv(hca_get_be16(p), bytes, p + UBCM_TLV_BYTES, seen, m);
		p += all;
		left -= all;
	}
	return drop;
}

static bool
is_complete(const struct ubcm_msg *m, const uint8_t *seen)
{
	return seen[UBCM_TLV_ENTITY] != 0 &&
	       ((has[m->type] & UBCM_HAS_TPS) == 0 || seen[UBCM_TLV_TP] != 0) &&
	       ((has[m->type] & UBCM_HAS_TIMER) == 0 || seen[UBCM_TLV_TIMER] != 0) &&
	       ((has[m->type] & UBCM_HAS_COOKIE) == 0 || m->has_cookie);
}

enum ubcm_drop
ubcm_msg_parse(const uint8_t *bytes, size_t len, struct ubcm_msg *m)
{
	uint8_t seen[UBCM_TLVS] = {0};
	enum ubcm_drop drop;

	memset(m, 0, sizeof(*m));
	if (len < UBCM_HEADER_BYTES || len > UBCM_MSG_MAX || hca_get_be16(bytes + 2) != len)
		return UBCM_DROP_length;
	if (bytes[0] != UBCM_VERSION)
		return UBCM_DROP_version;
	m->type = bytes[1];
	if (m->type == 0 || m->type >= UBCM_TYPES)
		return UBCM_DROP_type;
	m->transaction = hca_get_be64(bytes + 4);
	m->status = hca_get_be16(bytes + 12);
	drop = take_tlvs(bytes + UBCM_HEADER_BYTES, (uint32_t)(len - UBCM_HEADER_BYTES), seen, m);
	if (drop == UBCM_DROP_none && !is_complete(m, seen))
		drop = UBCM_DROP_missing;
	return drop;
}

/* ---- writing ---- */

/* The head of a TLV; returns where its value goes. */
static uint8_t *
put_tlv(uint8_t *p, enum ubcm_tlv type)
{
	hca_put_be16(p, (uint16_t)type);
	hca_put_be16(p + 2, tlvs[type].bytes);
	memset(p + UBCM_TLV_BYTES, 0, padded(tlvs[type].bytes));
	return p + UBCM_TLV_BYTES;
}

static uint8_t *
put_entity(uint8_t *at, const struct ubcm_msg *m)
{
	uint8_t *p = put_tlv(at, UBCM_TLV_ENTITY);

	memcpy(p, m->source, sizeof(m->source));
	memcpy(p + sizeof(m->source), m->destination, sizeof(m->destination));
	return p + tlvs[UBCM_TLV_ENTITY].bytes;
}

static uint8_t *
put_tp(uint8_t *at, const struct ubcm_msg_tp *tp)
{
	uint8_t *p = put_tlv(at, UBCM_TLV_TP);

#define PUT(member, bits, offset) put_##bits(p + (offset), tp->member);
	UBCM_TP_FIELDS(PUT)
#undef PUT
	return p + tlvs[UBCM_TLV_TP].bytes;
}

static uint8_t *
put_timer(uint8_t *at, const struct ubcm_timer *t)
{
	uint8_t *p = put_tlv(at, UBCM_TLV_TIMER);

#define PUT(member, bits, offset) put_##bits(p + (offset), t->member);
	UBCM_TIMER_FIELDS(PUT)
#undef PUT
	return p + tlvs[UBCM_TLV_TIMER].bytes;
}

static uint8_t *
put_cookie(uint8_t *at, uint64_t cookie)
{
	uint8_t *p = put_tlv(at, UBCM_TLV_COOKIE);

	hca_put_be64(p, cookie);
	return p + tlvs[UBCM_TLV_COOKIE].bytes;
}

static bool
carries_cookie(const struct ubcm_msg *m)
{
	return (has[m->type] & UBCM_HAS_COOKIE) != 0 ||
	       ((has[m->type] & UBCM_MAY_COOKIE) != 0 && m->has_cookie);
}

size_t
ubcm_msg_build(const struct ubcm_msg *m, uint8_t *bytes)
{
	uint8_t *p = bytes + UBCM_HEADER_BYTES;
	size_t len;

	memset(bytes, 0, UBCM_HEADER_BYTES);
	bytes[0] = UBCM_VERSION;
	bytes[1] = m->type;
	hca_put_be64(bytes + 4, m->transaction);
	hca_put_be16(bytes + 12, m->status);
	p = put_entity(p, m);
	for (uint32_t i = 0; (has[m->type] & UBCM_HAS_TPS) != 0 && i < m->ntps; i++)
		p = put_tp(p, &m->tp[i]);
	if ((has[m->type] & UBCM_HAS_TIMER) != 0)
		p = put_timer(p, &m->timer);
	if (carries_cookie(m))
		p = put_cookie(p, m->cookie);
	len = (size_t)(p - bytes);
	hca_put_be16(bytes + 2, (uint16_t)len);
	return len;
}

const char *
ubcm_status_str(uint32_t status)
{
	static const char *const texts[] = {
#define ROW(NAME, code, text) [code] = text,
		UBCM_STATUS_LIST(ROW)
#undef ROW
	};

	return status < sizeof(texts) / sizeof(texts[0]) ? texts[status] : "unknown status";
}
