/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UB's packets: the published vectors, random packets there and back, packets that were cut or
 * changed, and one packet for each reason to refuse one.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "ub_craft.h"

#include "crc_ref.h"
#include "guard.h"
#include "ub_vectors.h"

static uint64_t rng_state;
static unsigned long rounds = 20000; /* UB_PACKETS */

static uint64_t
rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state;
}

static struct hca_udp_template
make_template(const struct hca_ub_path *path)
{
	struct hca_udp_template t;

	assert_int_equal(hca_ub_template_fill(path, &t), 0);
	return t;
}

static struct hca_ub_path
make_path(bool v6, bool vlan)
{
	return (struct hca_ub_path){
		.udp = {.dmac = {2, 0, 0, 0, 0, 1},
			.smac = {2, 0, 0, 0, 0, 2},
			.vlan = vlan,
			.vlan_tci = 0x6064,
			.ip_version = v6 ? 6 : 4,
			.tclass = 0x6a,
			.hop_limit = 64,
			.flow_label = 0x12345,
			.sip = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1},
			.dip = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2},
			.sport = rng()},
	};
}

/* ---- vectors ---- */

static struct hca_udp_template
template_of(const struct ub_vector *v)
{
	static const uint8_t site[2][12] = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff},
					    {0x20, 0x01, 0x0d, 0xb8, 0x00, 0x77}};
	static const uint8_t host[2][4] = {{192, 168, 0, 0}, {0, 0, 0, 0}};
	struct hca_ub_path path = {
		.udp = {.ip_version = v->v6 ? 6 : 4,
			.tclass = HCA_ECN_ECT0,
			.hop_limit = 64,
			.sport = v->sport},
		.src_tpn = v->h.rtph.src_tpn,
		.dst_tpn = v->h.rtph.dst_tpn,
	};

	memcpy(path.udp.sip, site[v->v6], 12);
	memcpy(path.udp.dip, site[v->v6], 12);
	memcpy(path.udp.sip + 12, host[v->v6], 4);
	memcpy(path.udp.dip + 12, host[v->v6], 4);
	path.udp.sip[15] = v->back ? 2 : 1;
	path.udp.dip[15] = v->back ? 1 : 2;
	return make_template(&path);
}

static uint32_t
unhex(const char *hex, uint8_t *out)
{
	uint32_t n = 0;
	unsigned int byte;

	for (; *hex != '\0'; hex += *hex == ' ' ? 1 : 2)
		if (*hex != ' ') {
			assert_int_equal(sscanf(hex, "%2x", &byte), 1);
			out[n++] = byte;
		}
	return n;
}

static void
test_vectors_built(void **state)
{
	uint8_t want[256], got[256];

	for (size_t i = 0; i < sizeof(ub_vectors) / sizeof(ub_vectors[0]); i++) {
		const struct ub_vector *v = &ub_vectors[i];
		struct hca_udp_template t = template_of(v);
		struct hca_ub_headers h = v->h;
		uint32_t n = unhex(v->hex, want);

		assert_int_equal(ub_build(hca_icrc_select(), &t, &h, v->payload, v->payload_len,
					  got, sizeof(got)),
				 HCA_ETH_LEN + n);
		for (uint32_t k = 0; k < n; k++)
			if (got[HCA_ETH_LEN + k] != want[k])
				fail_msg("%s: byte %u is %02x, not %02x", v->name, k,
					 got[HCA_ETH_LEN + k], want[k]);
	}
}

static void
test_vectors_read(void **state)
{
	uint8_t frame[256] = {0};

	for (size_t i = 0; i < sizeof(ub_vectors) / sizeof(ub_vectors[0]); i++) {
		const struct ub_vector *v = &ub_vectors[i];
		uint32_t n = HCA_ETH_LEN + unhex(v->hex, frame + HCA_ETH_LEN);
		struct hca_ub_headers h = {.form = v->h.form};
		struct ub_view view;
		const uint8_t *tph;

		hca_put_be16(frame + 12, v->v6 ? HCA_ETHERTYPE_IPV6 : HCA_ETHERTYPE_IPV4);
		assert_int_equal(ub_parse(frame, n, v->h.form, &view), 0);
		assert_true(ub_icrc_ok(hca_icrc_select(), frame, &view.w));
		assert_int_equal(view.w.icrc, n - HCA_ICRC_LEN);
		tph = frame + view.w.transport;
		hca_ub_get_headers(tph, &view.tp, view.tp.ta != 0 ? &view.ta : NULL, &h);
		h.rtph.pad = 0;
		assert_true(ub_same_headers(&v->h, &h, &view));
		if (view.tp.ta == 0)
			continue;
		assert_int_equal(view.ta.payload_len, v->payload_len);
		assert_memory_equal(tph + view.tp.ta + view.ta.payload, v->payload, v->payload_len);
	}
}

/* ---- random packets ---- */

/* The definition of the ICRC, byte by byte. */
static uint32_t
icrc_ref(const uint8_t *frame, const struct hca_wire_view *v)
{
	static uint8_t copy[UB_ROOM];
	uint32_t n = v->icrc - v->l3;

	memcpy(copy, frame + v->l3, n);
	mask_udp_ref(copy, v->ip_version == 6);
	return crc_ref(0, copy, n);
}

struct built {
	struct ub_packet p;
	uint8_t frame[UB_ROOM];
	uint8_t payload[HCA_UB_MTU_MAX];
	uint32_t len;
};

static void
build(struct built *b, uint32_t mtu)
{
	struct hca_ub_path path = make_path(rng() & 1, (rng() & 3) == 0);
	struct hca_udp_template t = make_template(&path);
	int n;

	ub_random(rng, mtu, &b->p);
	for (uint32_t i = 0; i < b->p.payload_len; i++)
		b->payload[i] = rng() >> 24;
	n = ub_build(hca_icrc_select(), &t, &b->p.h, b->payload, b->p.payload_len, b->frame,
		     sizeof(b->frame));
	assert_true(n > 0);
	b->len = n;
}

static void
check_view(const struct built *b, const struct ub_view *v)
{
	const struct hca_ub_rtph *h = &b->p.h.rtph;
	bool unreliable = h->opcode == HCA_UB_TP_UTP;

	assert_int_equal(v->w.wire, HCA_WIRE_UB);
	assert_int_equal(v->w.opcode, h->opcode);
	assert_int_equal(v->w.psn, unreliable ? 0 : h->psn);
	assert_int_equal(v->w.src, unreliable ? 0 : h->src_tpn);
	assert_int_equal(v->w.dst, unreliable ? 0 : h->dst_tpn);
	assert_int_equal(v->w.icrc, b->len - HCA_ICRC_LEN);
	if (v->tp.ta == 0)
		assert_int_equal(v->w.payload, v->w.icrc);
	else if (b->p.h.form == HCA_UB_FORM_DEFAULT)
		assert_int_equal(v->w.payload, v->w.transport + v->tp.ta + v->ta.payload);
}

static void
round_trip(struct built *b, uint32_t mtu)
{
	struct hca_ub_headers h;
	struct ub_view v;
	const uint8_t *tph;
	int rc;

	build(b, mtu);
	rc = ub_parse(b->frame, b->len, b->p.h.form, &v);
	if (rc != 0)
		fail_msg("%s %s: %s", hca_ub_tp_name(b->p.h.rtph.opcode),
			 hca_ub_ta_name(b->p.h.btah.opcode), ub_drop_name(rc));
	assert_int_equal(icrc_ref(b->frame, &v.w), hca_icrc_load(b->frame + v.w.icrc));
	check_view(b, &v);
	tph = b->frame + v.w.transport;
	h = (struct hca_ub_headers){.form = b->p.h.form, .caqm = b->p.h.caqm};
	hca_ub_get_headers(tph, &v.tp, v.tp.ta != 0 ? &v.ta : NULL, &h);
	assert_true(ub_same_headers(&b->p.h, &h, &v));
	if (v.tp.ta == 0)
		return;
	assert_int_equal(v.ta.payload_len, b->p.payload_len);
	assert_memory_equal(tph + v.tp.ta + v.ta.payload, b->payload, b->p.payload_len);
}

static void
test_random_packets(void **state)
{
	static const uint32_t mtus[] = {64, 64, 64, 64, 64, 64, 1024, 4096};
	static struct built b;

	for (unsigned long i = 0; i < rounds; i++)
		round_trip(&b, mtus[rng() % 8]);
}

static bool
taken(const uint8_t *frame, uint32_t len, uint8_t form)
{
	struct ub_view v;

	return ub_parse(frame, len, form, &v) == 0 && ub_icrc_ok(hca_icrc_select(), frame, &v.w);
}

/* Frames cut at each byte, as they are and with fitting lengths; no byte behind the cut is read. */
static void
check_cuts(const struct built *b, const struct guard *g)
{
	uint32_t l3 = b->frame[12] == 0x81 ? 18 : 14;
	bool v6 = b->frame[l3] >> 4 == 6;
	uint32_t udp = l3 + (v6 ? HCA_IPV6_LEN : HCA_IPV4_LEN);
	uint8_t *p;

	for (uint32_t n = 0; n < b->len; n++) {
		p = g->end - n;
		memcpy(p, b->frame, n);
		assert_false(taken(p, n, b->p.h.form));
		if (n < udp + HCA_UDP_LEN)
			continue;
		hca_put_be16(p + udp + 4, n - udp);
		hca_put_be16(p + l3 + (v6 ? 4 : 2), v6 ? n - udp : n - l3);
		assert_false(taken(p, n, b->p.h.form));
	}
}

static void
check_flips(struct built *b)
{
	uint32_t l3 = b->frame[12] == 0x81 ? 18 : 14;
	uint32_t tph = l3 + (b->frame[l3] >> 4 == 6 ? HCA_IPV6_LEN : HCA_IPV4_LEN) + HCA_UDP_LEN;

	for (uint32_t bit = tph * 8; bit < b->len * 8; bit++) {
		b->frame[bit / 8] ^= 1 << bit % 8;
		assert_false(taken(b->frame, b->len, b->p.h.form));
		b->frame[bit / 8] ^= 1 << bit % 8;
	}
}

/* Fields that a router may change: TOS, TTL, IP checksum, or their like, and the UDP checksum. */
static void
check_masked(struct built *b)
{
	static const uint8_t v4[] = {1, 8, 10, 11, 26, 27}, v6[] = {1, 2, 3, 7, 46, 47};
	uint8_t *l3 = b->frame + (b->frame[12] == 0x81 ? 18 : 14);
	const uint8_t *at = l3[0] >> 4 == 6 ? v6 : v4;

	for (int i = 0; i < 6; i++)
		l3[at[i]] = rng() >> 24;
	if (at == v6)
		l3[0] = 0x60 | (rng() & 15);
	assert_true(taken(b->frame, b->len, b->p.h.form));
	l3[at == v6 ? 23 : 15] ^= 1; /* of an address */
	assert_false(taken(b->frame, b->len, b->p.h.form));
}

static void
check_damage(uint32_t mtu, unsigned long n)
{
	struct guard g = guard_alloc(2);
	static struct built b;

	for (unsigned long i = 0; i < n; i++) {
		do
			build(&b, mtu);
		while (mtu >= 1024 ? b.p.payload_len != mtu : b.len > 256);
		check_cuts(&b, &g);
		check_flips(&b);
		check_masked(&b);
	}
	guard_free(&g);
}

static void
test_damaged_packets(void **state)
{
	check_damage(64, rounds >= 1000000 ? 10000 : 500);
	check_damage(4096, rounds >= 1000000 ? 100 : 5);
}

/* ---- reasons ---- */

/* A good packet, then changed by fn; the ICRC is no matter here. */
struct wrong {
	enum hca_ub_drop reason;
	uint8_t tp, ta;
	uint32_t at;	/* byte of the transport header and behind */
	uint8_t mask;	/* of the bits that change */
	uint8_t value;	/* their new value */
	int32_t longer; /* bytes that the packet is longer than it should be */
};

#define RTP HCA_UB_TP_RTP
#define TA(NAME) RTP, HCA_UB_TA_##NAME
/* Behind RTPH and BTAH: MAETAH of a Write; of an atomic TAIDETAH is in front of it. */
#define AT_LENGTH (16 + 8 + 12 + 3)
#define AT_ADDRESS (16 + 8 + 4 + 7)

static const struct wrong wrongs[] = {
	{HCA_UB_DROP_NONE, TA(WRITE), 0, 0, 0, 0},
	{HCA_UB_DROP_SHORT, TA(TAACK), 0, 0, 0, -12},
	{HCA_UB_DROP_SHORT, TA(TAACK), 0, 0, 0, -8},
	{HCA_UB_DROP_SHORT, TA(TAACK), 1, 15, HCA_UB_NLP_EIDH, 0},
	{HCA_UB_DROP_SHORT, HCA_UB_TP_ACK, 0, 0, 0, 0, -4},
	{HCA_UB_DROP_SHORT, HCA_UB_TP_ACK_CC, 0, 0, 0, 0, -4},
	{HCA_UB_DROP_SHORT, HCA_UB_TP_CNP, 0, 0, 0, 0, -4},
	{HCA_UB_DROP_SHORT, HCA_UB_TP_SACK, 0, 0, 0, 0, -4},
	{HCA_UB_DROP_SHORT, HCA_UB_TP_SACK, 0, 16, 7, 1, 0},
	{HCA_UB_DROP_SHORT, HCA_UB_TP_SACK, 0, 0, 0, 0, -12},
	{HCA_UB_DROP_LENGTH, TA(WRITE), 0, 0, 0, 1},
	{HCA_UB_DROP_LENGTH, TA(WRITE), 0, 0, 0, 2},
	{HCA_UB_DROP_LENGTH, TA(WRITE), 0, 0, 0, -1},
	{HCA_UB_DROP_LENGTH, HCA_UB_TP_ACK, 0, 0, 0, 0, 4},
	{HCA_UB_DROP_LENGTH, HCA_UB_TP_SACK_CC, 0, 0, 0, 0, 4},
	{HCA_UB_DROP_LENGTH, HCA_UB_TP_CNP, 0, 0, 0, 0, 4},
	{HCA_UB_DROP_VERSION, TA(WRITE), 1, 0xc0, 0x40, 0},
	{HCA_UB_DROP_VERSION, HCA_UB_TP_ACK, 0, 1, 0xc0, 0x80, 0},
	{HCA_UB_DROP_OPCODE, TA(WRITE), 0, 0x7f, 0x04, 0},
	{HCA_UB_DROP_OPCODE, TA(WRITE), 0, 0x7f, 0x07, 0},
	{HCA_UB_DROP_OPCODE, TA(WRITE), 0, 0x7f, 0x09, 0},
	{HCA_UB_DROP_OPCODE, TA(WRITE), 0, 0x7f, 0x7f, 0},
	{HCA_UB_DROP_NLP, TA(WRITE), 1, 0x0f, 2, 0},
	{HCA_UB_DROP_NLP, TA(WRITE), 1, 0x0f, 4, 0},
	{HCA_UB_DROP_NLP, TA(WRITE), 1, 0x0f, 15, 0},
	{HCA_UB_DROP_SECURITY, TA(WRITE), 1, 0x0f, 3, 0},
	{HCA_UB_DROP_STATUS, HCA_UB_TP_ACK, 0, 12, 0xff, 0x01, 0},
	{HCA_UB_DROP_STATUS, HCA_UB_TP_ACK, 0, 12, 0xff, 0x20 | 20, 0},
	{HCA_UB_DROP_STATUS, HCA_UB_TP_ACK, 0, 12, 0xff, 0x40 | 31, 0},
	{HCA_UB_DROP_STATUS, HCA_UB_TP_ACK_CC, 0, 12, 0xff, 0x60 | 3, 0},
	{HCA_UB_DROP_STATUS, HCA_UB_TP_ACK, 0, 12, 0xff, 0x80, 0},
	{HCA_UB_DROP_STATUS, HCA_UB_TP_ACK, 0, 12, 0xff, 0xa0 | 3, 0},
	{HCA_UB_DROP_STATUS, HCA_UB_TP_ACK, 0, 12, 0xff, 0xe0, 0},
	{HCA_UB_DROP_STATUS, HCA_UB_TP_SACK, 0, 12, 0xff, 0x60, 0},
	{HCA_UB_DROP_NONE, HCA_UB_TP_ACK, 0, 12, 0xff, 0x20 | 19, 0},
	{HCA_UB_DROP_NONE, HCA_UB_TP_ACK, 0, 12, 0xff, 0xa0 | 2, 0},
	{HCA_UB_DROP_SACK_SIZE, HCA_UB_TP_SACK, 0, 16, 7, 5, 0},
	{HCA_UB_DROP_SACK_SIZE, HCA_UB_TP_SACK_CC, 0, 24, 7, 7, 0},
	{HCA_UB_DROP_PAD, TA(TAACK), 1, 0x30, 0x10, 0},
	{HCA_UB_DROP_PAD, HCA_UB_TP_ACK, 0, 1, 0x30, 0x30, 0},
	{HCA_UB_DROP_TA_VERSION, TA(WRITE), 17, 0xc0, 0xc0, 0},
	{HCA_UB_DROP_TA_VERSION, TA(TAACK), 17, 0xc0, 0x40, 0},
	{HCA_UB_DROP_TA_OPCODE, TA(WRITE), 16, 0xff, 0x02, 0},
	{HCA_UB_DROP_TA_OPCODE, TA(WRITE), 16, 0xff, 0x16, 0},
	{HCA_UB_DROP_TA_OPCODE, TA(WRITE), 16, 0xff, 0x19, 0},
	{HCA_UB_DROP_TA_OPCODE, TA(WRITE), 16, 0xff, 0xff, 0},
	{HCA_UB_DROP_TA_UNRELIABLE, TA(WRITE), 0, 0xff, 0x80, 0},
	{HCA_UB_DROP_TA_UNRELIABLE, TA(TAACK), 0, 0xff, 0x80, 0},
	{HCA_UB_DROP_NONE, TA(SEND), 0, 0xff, 0x80, 0},
	{HCA_UB_DROP_TA_EE, TA(WRITE), 17, 0x30, 0x30, 0},
	{HCA_UB_DROP_TA_EE, TA(WRITE), 17, 0x30, 0x00, 0},
	{HCA_UB_DROP_NONE, TA(READ), 21, 0x40, 0x40, 0},
	{HCA_UB_DROP_TA_CODE, TA(WRITE), 20, 0x30, 0x30, 0},
	{HCA_UB_DROP_TA_CODE, TA(WRITE), 21, 0x30, 0x30, 0},
	{HCA_UB_DROP_TA_CODE, TA(TAACK), 21, 0x30, 0x30, 0},
	{HCA_UB_DROP_TA_CODE, TA(SEND), 25, 0x30, 0x30, 0},
	{HCA_UB_DROP_TA_FLAGS, TA(WRITE), 20, 8, 8, 0},
	{HCA_UB_DROP_TA_FLAGS, TA(SEND), 20, 8, 0, 0},
	{HCA_UB_DROP_TA_FLAGS, TA(WRITE_IMM), 20, 8, 0, 0},
	{HCA_UB_DROP_TA_USER, TA(STORE), 25, 0xf0, 0x80, 0},
	{HCA_UB_DROP_TA_USER, TA(LOAD), 25, 0xf0, 0xf0, 0},
	{HCA_UB_DROP_TA_STATUS, TA(TAACK), 20, 0xff, 0x20 | 20, 0},
	{HCA_UB_DROP_TA_STATUS, TA(TAACK), 20, 0xff, 0x60, 0},
	{HCA_UB_DROP_TA_STATUS, TA(TAACK), 20, 0xff, 0x63, 0},
	{HCA_UB_DROP_TA_STATUS, TA(TAACK), 20, 0xff, 0x80, 0},
	{HCA_UB_DROP_TA_STATUS, TA(READ_RESPONSE), 20, 0xff, 0x01, 0},
	{HCA_UB_DROP_NONE, TA(TAACK), 20, 0xff, 0x1f, 0},
	{HCA_UB_DROP_NONE, TA(TAACK), 20, 0xff, 0xbf, 0},
	{HCA_UB_DROP_NONE, TA(TAACK), 20, 0xff, 0x62, 0},
	{HCA_UB_DROP_TA_SHORT, TA(WRITE), 0, 0, 0, -20},
	{HCA_UB_DROP_TA_SHORT, TA(WRITE_BE), 0, 0, 0, -68},
	{HCA_UB_DROP_TA_PAD, TA(READ), 1, 0x30, 0x10, 0},
	{HCA_UB_DROP_TA_LAST, TA(READ), 0, 0x80, 0, 0},
	{HCA_UB_DROP_TA_LAST, TA(WRITE_NOTIFY), 0, 0x80, 0, 0},
	{HCA_UB_DROP_TA_LAST, TA(TAACK), 0, 0x80, 0, 0},
	{HCA_UB_DROP_TA_LENGTH, TA(WRITE), 0, 0x80, 0, 0},
	{HCA_UB_DROP_TA_LENGTH, TA(WRITE), AT_LENGTH, 0xff, 15, 0},
	{HCA_UB_DROP_TA_LENGTH, TA(WRITE), 0, 0, 0, -16},
	{HCA_UB_DROP_TA_LENGTH, TA(READ), 0, 0, 0, 4},
	{HCA_UB_DROP_TA_LENGTH, TA(TAACK), 0, 0, 0, 4},
	{HCA_UB_DROP_TA_LENGTH, TA(READ_RESPONSE), 20, 0xff, 0x20, 0},
	{HCA_UB_DROP_TA_LENGTH, TA(ATOMIC_RESPONSE), 0, 0, 0, 4},
	{HCA_UB_DROP_TA_LENGTH, TA(SWAP), 0, 0, 0, 4},
	{HCA_UB_DROP_TA_LENGTH, TA(WRITE_BE), 0, 0, 0, -4},
	{HCA_UB_DROP_TA_LENGTH, TA(SEND), 0, 0, 0, HCA_UB_MTU_MAX},
	{HCA_UB_DROP_NONE, TA(SEND), 0, 0, 0, HCA_UB_MTU_MAX - 16},
	{HCA_UB_DROP_TA_ATOMIC, TA(SWAP), AT_LENGTH + 4, 0xff, 3, 0},
	{HCA_UB_DROP_TA_ATOMIC, TA(SWAP), AT_LENGTH + 4, 0xff, 0, 0},
	{HCA_UB_DROP_TA_ATOMIC, TA(SWAP), AT_LENGTH + 4, 0xff, 128, 0},
	{HCA_UB_DROP_TA_ATOMIC, TA(SWAP), AT_ADDRESS, 0xff, 4, 0},
	{HCA_UB_DROP_TA_ENABLES, TA(WRITE_BE), AT_LENGTH, 0xff, 32, 0},
	{HCA_UB_DROP_TA_ENABLES, TA(WRITE_BE), AT_LENGTH, 0xff, 96, 0},
	{HCA_UB_DROP_TA_ENABLES, TA(WRITE_BE), AT_LENGTH - 1, 0xff, 8, 0},
	{HCA_UB_DROP_TA_OFFERED, TA(MANAGEMENT), 0, 0, 0, 0},
	{HCA_UB_DROP_TA_OFFERED, TA(PREFETCH), 0, 0, 0, 0},
	{HCA_UB_DROP_TA_OFFERED, TA(WRITEBACK), 0, 0, 0, 0},
	{HCA_UB_DROP_TA_OFFERED, TA(WRITEBACK_BE), 0, 0, 0, 0},
};

/* The packet of a row before the change: without TVETAH, 16 bytes of payload. */
static uint32_t
good_packet(const struct wrong *w, uint8_t *tph)
{
	static const uint8_t zeros[HCA_UB_SACK_BYTES_MAX];
	const struct hca_ub_ta_info *op = &hca_ub_ta_ops[w->ta];
	struct hca_ub_headers h = {
		.form = HCA_UB_FORM_DEFAULT,
		.rtph = {.last = 1, .opcode = w->tp},
		.bitmap = zeros,
		.enables = zeros,
		.maetah = {.address = 0x1000, .length = op->is & HCA_UB_OP_PAYLOAD ? 16 : 0},
	};
	uint32_t payload = op->is & HCA_UB_OP_PAYLOAD ? 16 : 0;
	bool user = w->ta == HCA_UB_TA_STORE || w->ta == HCA_UB_TA_LOAD;
	int n;

	if (op->is & HCA_UB_OP_RESPONSE)
		h.atah.opcode = w->ta;
	else
		h.btah = (struct hca_ub_btah){.opcode = w->ta,
					      .ee = HCA_UB_EE_NORMAL,
					      .ud_flag = user,
					      .mt_en = (op->is & HCA_UB_EXT(MTETAH)) != 0};
	if (op->kind == HCA_UB_KIND_ATOMIC)
		h.maetah.length = 8;
	if (op->is & HCA_UB_EXT(BEETAH))
		h.maetah.length = payload = 64;
	n = hca_ub_put_headers(tph, &h);
	assert_true(n > 0);
	return n + (hca_ub_tp_ops[w->tp].headers & HCA_UB_TP_TA ? payload : 0);
}

static void
test_reasons(void **state)
{
	bool seen[HCA_UB_DROP_COUNT] = {false};
	static uint8_t tph[UB_ROOM + 64];

	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		const struct wrong *w = &wrongs[i];
		struct hca_ub_tp_view tp;
		struct hca_ub_ta_view ta;
		uint32_t n;
		int rc;

		memset(tph, 0, sizeof(tph));
		n = good_packet(w, tph) + w->longer;
		tph[w->at] = (tph[w->at] & ~w->mask) | w->value;
		rc = hca_ub_parse_tp(tph, n, &tp);
		if (rc == 0 && tp.ta != 0)
			rc = hca_ub_parse_ta(tph, &tp, HCA_UB_FORM_DEFAULT, &ta);
		if (rc != -(int)w->reason)
			fail_msg("row %zu: %s, not %s", i, hca_ub_drop_name(rc),
				 hca_ub_drop_name(w->reason));
		seen[w->reason] = true;
	}
	for (int r = 0; r < HCA_UB_DROP_COUNT; r++)
		if (!seen[r])
			fail_msg("no packet is refused as %s", hca_ub_drop_name(r));
}

static void
test_answers_of_refusals(void **state)
{
	assert_int_equal(hca_ub_refusal_answer(-HCA_UB_DROP_TA_OPCODE), HCA_UB_ERROR_UNSUPPORTED);
	assert_int_equal(hca_ub_refusal_answer(-HCA_UB_DROP_TA_LENGTH), HCA_UB_ERROR_UNSUPPORTED);
	assert_int_equal(hca_ub_refusal_answer(-HCA_UB_DROP_TA_EE), 0);
	assert_int_equal(hca_ub_refusal_answer(-HCA_UB_DROP_PAD), 0);
	for (int r = HCA_UB_DROP_NONE; r < HCA_UB_DROP_COUNT; r++) {
		assert_non_null(hca_ub_drop_text(-r));
		assert_ptr_equal(hca_ub_drop_name(r), hca_ub_drop_name(-r));
	}
	assert_string_equal(hca_ub_drop_name(HCA_UB_DROP_COUNT), "none");
}

/* ---- details ---- */

/* A fake packet takes its PSN and carries nothing, whatever stands behind its header. */
static void
test_fake(void **state)
{
	struct hca_ub_headers h = {.rtph = {.opcode = RTP, .fake = 1, .psn = 77}};
	uint8_t tph[64] = {0};
	struct hca_ub_tp_view v;

	assert_int_equal(hca_ub_put_headers(tph, &h), HCA_UB_RTPH_LEN);
	memset(tph + HCA_UB_RTPH_LEN, 0xff, 20);
	for (uint32_t n = HCA_UB_RTPH_LEN; n <= 36; n += 4) {
		assert_int_equal(hca_ub_parse_tp(tph, n, &v), 0);
		assert_true(v.fake);
		assert_int_equal(v.ta, 0);
		assert_int_equal(v.psn, 77);
	}
}

/* Reserved bits say nothing to us. */
static void
test_reserved_bits(void **state)
{
	struct wrong w = {.tp = RTP, .ta = HCA_UB_TA_WRITE};
	struct hca_ub_tp_view tp;
	struct hca_ub_ta_view ta;
	uint8_t tph[128] = {0};
	uint32_t n = good_packet(&w, tph);

	tph[8] |= 0x3f;
	tph[12] |= 0xff;
	tph[17] |= 0x02;
	tph[21] |= 0x80;
	tph[32] |= 0xf0;
	tph[35] |= 0xff;
	assert_int_equal(hca_ub_parse_tp(tph, n, &tp), 0);
	assert_int_equal(hca_ub_parse_ta(tph, &tp, HCA_UB_FORM_DEFAULT, &ta), 0);
	assert_int_equal(hca_ub_maetah_token_id(tph + tp.ta + ta.at->maetah), 0);
}

/* Where each header is, in all forms: the sum of those in front of it. */
static void
test_layouts(void **state)
{
	static const struct {
		uint8_t opcode, flags, form;
		uint8_t udetah, mtetah, taidetah, ofstetah, maetah, ntfetah, immetah, tvetah, end;
	} rows[] = {
		{HCA_UB_TA_SEND, 0x10, 0, 0, 8, 0, 12, 0, 0, 0, 0, 16},
		{HCA_UB_TA_SEND, 0x19, 3, 8, 12, 0, 16, 0, 0, 0, 20, 24},
		{HCA_UB_TA_SEND_IMM, 0x18, 0, 0, 8, 0, 12, 0, 0, 16, 32, 36},
		{HCA_UB_TA_WRITE, 0x18, 3, 0, 0, 0, 0, 8, 0, 0, 24, 28},
		{HCA_UB_TA_WRITE_IMM, 0x18, 0, 0, 8, 0, 0, 12, 0, 28, 44, 48},
		{HCA_UB_TA_WRITE_NOTIFY, 0x19, 0, 8, 0, 0, 0, 12, 28, 0, 52, 56},
		{HCA_UB_TA_READ, 0x18, 3, 0, 0, 8, 12, 16, 0, 0, 32, 36},
		{HCA_UB_TA_READ, 0x10, HCA_UB_FORM_OFST, 0, 0, 0, 8, 12, 0, 0, 0, 28},
		{HCA_UB_TA_READ, 0x10, HCA_UB_FORM_TAID, 0, 0, 8, 0, 12, 0, 0, 0, 28},
		{HCA_UB_TA_FETCH_XOR, 0x18, 3, 0, 0, 8, 0, 12, 0, 0, 28, 32},
		{HCA_UB_TA_FETCH_XOR, 0x11, 0, 8, 0, 0, 0, 12, 0, 0, 0, 28},
		{HCA_UB_TA_WRITE_BE, 0x18, 0, 0, 0, 0, 0, 8, 0, 0, 24, 28},
		{HCA_UB_TA_TAACK, 0x09, 3, 0, 0, 0, 0, 0, 0, 0, 0, 8},
		{HCA_UB_TA_READ_RESPONSE, 0x09, 3, 0, 0, 8, 12, 0, 0, 0, 0, 16},
		{HCA_UB_TA_READ_RESPONSE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8},
		{HCA_UB_TA_ATOMIC_RESPONSE, 0, 3, 0, 0, 8, 0, 0, 0, 0, 0, 12},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct hca_ub_layout *at =
			hca_ub_layout_of(rows[i].opcode, rows[i].flags, rows[i].form);

		assert_int_equal(at->udetah, rows[i].udetah);
		assert_int_equal(at->mtetah, rows[i].mtetah);
		assert_int_equal(at->taidetah, rows[i].taidetah);
		assert_int_equal(at->ofstetah, rows[i].ofstetah);
		assert_int_equal(at->maetah, rows[i].maetah);
		assert_int_equal(at->ntfetah, rows[i].ntfetah);
		assert_int_equal(at->immetah, rows[i].immetah);
		assert_int_equal(at->tvetah, rows[i].tvetah);
		assert_int_equal(at->beetah, rows[i].end);
	}
}

static void
test_build_refuses(void **state)
{
	struct hca_ub_headers h = {.rtph = {.opcode = 4}};
	struct hca_ub_path path = make_path(false, false);
	struct hca_udp_template t = make_template(&path);
	uint8_t out[HCA_UB_HEADERS_MAX];

	assert_int_equal(hca_ub_put_headers(out, &h), -EINVAL);
	h.rtph.opcode = HCA_UB_TP_OPCODES + RTP;
	assert_int_equal(hca_ub_put_headers(out, &h), -EINVAL);
	h.rtph.opcode = RTP;
	h.btah.opcode = 0x16;
	assert_int_equal(hca_ub_put_headers(out, &h), -EINVAL);
	h.rtph.opcode = HCA_UB_TP_SACK;
	h.saetph.size = HCA_UB_SACK_SIZES;
	assert_int_equal(hca_ub_put_headers(out, &h), -EINVAL);
	path.src_tpn = 0x1000000;
	assert_int_equal(hca_ub_template_fill(&path, &t), -EINVAL);
	path.src_tpn = 0;
	path.dst_tpn = 0x1000000;
	assert_int_equal(hca_ub_template_fill(&path, &t), -EINVAL);
	path.dst_tpn = 0;
	path.udp.ip_version = 5;
	assert_int_equal(hca_ub_template_fill(&path, &t), -EINVAL);
}

static void
test_template(void **state)
{
	struct hca_ub_path path = make_path(true, true);
	struct hca_udp_template t;
	const uint8_t *tph;

	path.src_tpn = 0x123456;
	path.dst_tpn = 0xfedcba;
	t = make_template(&path);
	tph = t.bytes + t.transport;
	assert_int_equal(hca_get_be16(tph - 6), 4792);
	assert_int_equal(hca_ub_rtph_src_tpn(tph), 0x123456);
	assert_int_equal(hca_ub_rtph_dst_tpn(tph), 0xfedcba);
	assert_int_equal(tph[0] | tph[1] | tph[8], 0);
}

/* Setting a field does not change its neighbours; bits that do not fit are cut off. */
static void
test_set_field(void **state)
{
	uint8_t tph[HCA_UB_RTPH_LEN], maetah[HCA_UB_MAETAH_LEN] = {0};

	memset(tph, 0xff, sizeof(tph));
	hca_ub_rtph_set_psn(tph, 0x5123456);
	hca_ub_rtph_set_last(tph, 0);
	assert_int_equal(hca_get_be32(tph + 8), 0xff123456);
	assert_int_equal(hca_get_be32(tph), 0x7fffffff);
	hca_ub_maetah_set_address(maetah, 0x0123456789abcdef);
	hca_ub_maetah_set_token_id(maetah, 0xfffff);
	assert_true(hca_ub_maetah_address(maetah) == 0x0123456789abcdef);
	assert_int_equal(hca_get_be32(maetah + 8), 0x0fffff00);
	assert_int_equal(hca_get_be32(maetah + 12), 0);
}

/* Ports differ, so must labels, and they have 20 bits. */
static void
test_flow_label(void **state)
{
	static uint8_t seen[1u << 20];

	for (uint32_t port = 0; port < 65536; port++) {
		uint32_t label = hca_ub_flow_label(port);

		assert_true(label < 1u << 20);
		assert_int_equal(seen[label], 0);
		seen[label] = 1;
	}
}

static void
test_sack_bits(void **state)
{
	uint8_t bitmap[8] = {0};

	hca_ub_sack_set(bitmap, 0);
	hca_ub_sack_set(bitmap, 9);
	assert_int_equal(bitmap[0], 1);
	assert_int_equal(bitmap[1], 2);
	for (uint32_t k = 0; k < 64; k++)
		assert_int_equal(hca_ub_sack_bit(bitmap, k), k == 0 || k == 9);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors_built),  cmocka_unit_test(test_vectors_read),
		cmocka_unit_test(test_random_packets), cmocka_unit_test(test_damaged_packets),
		cmocka_unit_test(test_reasons),	       cmocka_unit_test(test_answers_of_refusals),
		cmocka_unit_test(test_fake),	       cmocka_unit_test(test_reserved_bits),
		cmocka_unit_test(test_layouts),	       cmocka_unit_test(test_build_refuses),
		cmocka_unit_test(test_template),       cmocka_unit_test(test_set_field),
		cmocka_unit_test(test_flow_label),     cmocka_unit_test(test_sack_bits),
	};
	const char *env = getenv("SOFTHCA_TEST_SEED");

	if (getenv("UB_PACKETS"))
		rounds = strtoul(getenv("UB_PACKETS"), NULL, 0);
	rng_state = env ? strtoull(env, NULL, 0) : (uint64_t)time(NULL) << 20 | getpid();
	if (rng_state == 0)
		rng_state = 1;
	fprintf(stderr, "SOFTHCA_TEST_SEED=%#llx\n", (unsigned long long)rng_state);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
