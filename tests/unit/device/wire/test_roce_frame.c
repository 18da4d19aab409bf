/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames built and parsed, and frames that must be refused: every opcode with every short length
 * and every pad count, in front of an inaccessible page.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "roce_craft.h"

#include "crc_ref.h"
#include "guard.h"

#define ROOM (ROCE_MAX_HEADERS + 4096 + 8)

static uint64_t rng_state;

static uint64_t
rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state;
}

static struct hca_roce_path
make_path(uint8_t ip_version, bool vlan)
{
	struct hca_roce_path p = {
		.udp.dmac = {2, 0, 0, 0, 0, 1},
		.udp.smac = {2, 0, 0, 0, 0, 2},
		.udp.vlan = vlan,
		.udp.vlan_tci = 0x6064,
		.udp.ip_version = ip_version,
		.udp.tclass = 0x6a,
		.udp.hop_limit = 64,
		.udp.flow_label = 0x12345,
		.udp.sip = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1},
		.udp.dip = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2},
		.udp.sport = 0xc123,
		.pkey = 0xffff,
		.qpn = 0xabcdef,
	};

	return p;
}

static struct hca_udp_template
make_template(uint8_t ip_version, bool vlan)
{
	struct hca_roce_path path = make_path(ip_version, vlan);
	struct hca_udp_template t;

	assert_int_equal(hca_roce_template_fill(&path, &t), 0);
	return t;
}

static void
random_headers(struct roce_headers *h)
{
	uint8_t *b = (uint8_t *)h;
	size_t i;

	for (i = 0; i < sizeof(*h); i++)
		b[i] = rng();
	h->deth.src_qpn &= 0xffffff;
	h->xrceth &= 0xffffff;
	h->aeth.msn &= 0xffffff;
}

/* Compare the headers that the opcode has. */
static void
assert_headers_equal(const struct hca_roce_opcode_info *op, const struct roce_headers *a,
		     const struct roce_headers *b)
{
	uint8_t x[64] = {0}, y[64] = {0};

	roce_put_headers(x, op, a);
	roce_put_headers(y, op, b);
	assert_memory_equal(x, y, sizeof(x));
}

static void
check_ipv4_checksum(const uint8_t *ip)
{
	uint32_t sum = 0;
	int i;

	for (i = 0; i < 20; i += 2)
		sum += ip[i] << 8 | ip[i + 1];
	assert_int_equal(hca_ip_fold(sum), 0xffff);
}

/* The definition of the ICRC, byte by byte. */
static uint32_t
icrc_ref(const uint8_t *frame, const struct roce_view *v)
{
	static uint8_t copy[ROOM];
	uint32_t n = v->icrc - v->l3;

	memcpy(copy, frame + v->l3, n);
	mask_ref(copy, v->ip_version == 6);
	return crc_ref(hca_icrc_seed[HCA_WIRE_ROCE], copy, n);
}

static void
round_trip(const struct hca_udp_template *t, uint8_t opcode, uint32_t payload_len)
{
	const struct hca_icrc_ops *ops = hca_icrc_select();
	struct roce_packet p = {opcode, rng() & 1, rng() & 1, rng() & 0xffffff, payload_len};
	struct roce_headers h, got = {0};
	static uint8_t frame[ROOM], payload[4096];
	struct roce_view v;
	uint32_t i;
	int len;

	for (i = 0; i < payload_len; i++)
		payload[i] = rng();
	random_headers(&h);
	len = roce_build(ops, t, &p, &h, payload, frame, sizeof(frame));
	assert_int_equal(len, roce_frame_len(t, opcode, payload_len) + HCA_ICRC_LEN);
	memset(&v, 0, sizeof(v));
	assert_int_equal(roce_parse(frame, len, &v), 0);
	assert_true(roce_icrc_ok(ops, frame, &v));
	assert_int_equal(icrc_ref(frame, &v), hca_icrc_load(frame + v.icrc));

	assert_int_equal(v.opcode, opcode);
	assert_int_equal(v.psn, p.psn);
	assert_int_equal(v.se, p.se);
	assert_int_equal(v.ackreq, p.ackreq);
	assert_int_equal(v.qpn, 0xabcdef);
	assert_int_equal(v.pkey, 0xffff);
	assert_int_equal(v.payload_len, payload_len);
	assert_int_equal(v.icrc + HCA_ICRC_LEN, len);
	assert_memory_equal(frame + v.payload, payload, payload_len);
	roce_get_headers(frame + v.bth, v.op, &got);
	assert_headers_equal(v.op, &h, &got);
	if (v.ip_version == 4)
		check_ipv4_checksum(frame + v.l3);

	frame[v.l3 + 4] ^= 0x10;
	assert_false(roce_icrc_ok(ops, frame, &v));
	roce_seal(ops, frame, &v);
	assert_true(roce_icrc_ok(ops, frame, &v));
}

static void
test_round_trip(void **state)
{
	static const uint32_t sizes[] = {0, 1, 2, 3, 4, 8, 63, 64, 65, 255, 256, 1024, 4095, 4096};
	struct hca_udp_template t;
	unsigned int op, i, form;

	for (form = 0; form < 4; form++) {
		t = make_template(form & 1 ? 6 : 4, form >> 1);
		for (op = 0; op < 256; op++) {
			if (!hca_roce_opcodes[op].valid)
				continue;
			for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
				if (sizes[i] == 0 || hca_roce_opcodes[op].has_payload)
					round_trip(&t, op, sizes[i]);
		}
	}
}

/*
 * Whole frames of FLUSH, ATOMIC WRITE and their answer, written by hand, with the ICRC of another
 * program: Ethernet, IPv4, UDP, BTH, (XRCETH), (FETH), RETH, payload, ICRC.
 */
static const uint8_t flush_frame[] = {
	0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x08,
	0x00, 0x45, 0x6a, 0x00, 0x40, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x26, 0x41,
	0x0a, 0x00, 0x00, 0x01, 0x0a, 0x00, 0x00, 0x02, 0xc1, 0x23, 0x12, 0xb7, 0x00,
	0x2c, 0x00, 0x00, 0x1c, 0x00, 0xff, 0xff, 0x00, 0xab, 0xcd, 0xef, 0x00, 0x12,
	0x34, 0x56, 0x00, 0x00, 0x00, 0x13, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
	0x88, 0x99, 0xaa, 0xbb, 0xcc, 0x00, 0x01, 0x23, 0x45, 0xed, 0x14, 0xaf, 0x81,
};

static const uint8_t atomic_write_frame[] = {
	0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x08, 0x00,
	0x45, 0x6a, 0x00, 0x44, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x26, 0x3d, 0x0a, 0x00,
	0x00, 0x01, 0x0a, 0x00, 0x00, 0x02, 0xc1, 0x23, 0x12, 0xb7, 0x00, 0x30, 0x00, 0x00,
	0x1d, 0x00, 0xff, 0xff, 0x00, 0xab, 0xcd, 0xef, 0x00, 0x12, 0x34, 0x57, 0x11, 0x22,
	0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0x00, 0x00, 0x00, 0x08,
	0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x4c, 0x46, 0x9a, 0xa4,
};

static const uint8_t xrc_flush_frame[] = {
	0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x08, 0x00,
	0x45, 0x6a, 0x00, 0x44, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x26, 0x3d, 0x0a, 0x00,
	0x00, 0x01, 0x0a, 0x00, 0x00, 0x02, 0xc1, 0x23, 0x12, 0xb7, 0x00, 0x30, 0x00, 0x00,
	0xbc, 0x00, 0xff, 0xff, 0x00, 0xab, 0xcd, 0xef, 0x00, 0x12, 0x34, 0x56, 0x00, 0x5a,
	0x5a, 0x01, 0x00, 0x00, 0x00, 0x01, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
	0x99, 0xaa, 0xbb, 0xcc, 0x00, 0x01, 0x23, 0x45, 0x8b, 0x3f, 0x04, 0x9a,
};

static const uint8_t confirmation_frame[] = {
	0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x08,
	0x00, 0x45, 0x6a, 0x00, 0x30, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x26, 0x51,
	0x0a, 0x00, 0x00, 0x01, 0x0a, 0x00, 0x00, 0x02, 0xc1, 0x23, 0x12, 0xb7, 0x00,
	0x1c, 0x00, 0x00, 0x10, 0x00, 0xff, 0xff, 0x00, 0xab, 0xcd, 0xef, 0x00, 0x12,
	0x34, 0x56, 0x1f, 0x00, 0x00, 0x07, 0x93, 0x3a, 0xa0, 0x5b,
};

static void
expect_bytes(uint8_t opcode, uint32_t psn, const struct roce_headers *h, const void *payload,
	     uint32_t len, const uint8_t *want, uint32_t bytes)
{
	const struct roce_packet p = {.opcode = opcode, .psn = psn, .payload_len = len};
	const struct hca_icrc_ops *ops = hca_icrc_select();
	struct hca_udp_template t = make_template(4, false);
	struct roce_headers got;
	uint8_t frame[256];
	struct roce_view v;

	assert_int_equal(roce_build(ops, &t, &p, h, payload, frame, sizeof(frame)), bytes);
	assert_memory_equal(frame, want, bytes);
	assert_int_equal(roce_parse(want, bytes, &v), 0);
	assert_true(roce_icrc_ok(ops, want, &v));
	assert_int_equal(v.payload_len, len);
	memset(&got, 0, sizeof(got));
	roce_get_headers(want + v.bth, v.op, &got);
	assert_memory_equal(&got, h, sizeof(got));
}

static void
test_confirmed_requests(void **state)
{
	const uint8_t data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct roce_headers h;

	memset(&h, 0, sizeof(h));
	h.reth.va = 0x1122334455667788;
	h.reth.rkey = 0x99aabbcc;
	h.reth.len = 8;
	expect_bytes(HCA_BTH_RC_ATOMIC_WRITE, 0x123457, &h, data, 8, atomic_write_frame,
		     sizeof(atomic_write_frame));
	h.reth.len = 0x12345;
	h.feth = HCA_FETH_MAKE(HCA_FETH_GLOBAL | HCA_FETH_PERSISTENT, HCA_FETH_MR);
	expect_bytes(HCA_BTH_RC_FLUSH, 0x123456, &h, NULL, 0, flush_frame, sizeof(flush_frame));
	h.feth = HCA_FETH_MAKE(HCA_FETH_GLOBAL, HCA_FETH_RANGE);
	h.xrceth = 0x5a5a01;
	expect_bytes(HCA_BTH_XRC_FLUSH, 0x123456, &h, NULL, 0, xrc_flush_frame,
		     sizeof(xrc_flush_frame));
	memset(&h, 0, sizeof(h));
	h.aeth.syndrome = 0x1f;
	h.aeth.msn = 7;
	expect_bytes(HCA_BTH_RC_READ_RESP_ONLY, 0x123456, &h, NULL, 0, confirmation_frame,
		     sizeof(confirmation_frame));
}

static void
test_template_fields(void **state)
{
	struct hca_udp_template t = make_template(4, true);
	const uint8_t *ip = t.bytes + t.l3;

	assert_int_equal(t.l3, 18);
	assert_int_equal(hca_get_be16(t.bytes + 12), HCA_ETHERTYPE_VLAN);
	assert_int_equal(hca_get_be16(t.bytes + 14), 0x6064);
	assert_int_equal(hca_get_be16(ip + 6), HCA_IPV4_DF);
	assert_int_equal(ip[1], 0x6a);
	assert_int_equal(ip[8], 64);
	assert_int_equal(hca_get_be16(ip + 20), 0xc123);
	assert_int_equal(hca_get_be16(ip + 22), HCA_ROCE_UDP_PORT);
	assert_int_equal(hca_get_be16(ip + 26), 0);
	assert_int_equal(t.transport, 18 + 20 + 8);
}

static void
test_template_refuses(void **state)
{
	struct hca_roce_path path = make_path(5, false);
	struct hca_udp_template t;

	assert_int_equal(hca_roce_template_fill(&path, &t), -EINVAL);
	path = make_path(6, false);
	path.udp.flow_label = 0x100000;
	assert_int_equal(hca_roce_template_fill(&path, &t), -EINVAL);
	path = make_path(6, false);
	path.qpn = 0x1000000;
	assert_int_equal(hca_roce_template_fill(&path, &t), -EINVAL);
}

static void
test_build_refuses(void **state)
{
	const struct hca_icrc_ops *ops = hca_icrc_select();
	struct hca_udp_template t = make_template(4, false);
	struct roce_packet p = {.opcode = HCA_BTH_RC_ACK, .payload_len = 4};
	struct roce_headers h = {0};
	uint8_t out[64], payload[4] = {0};

	assert_int_equal(roce_build(ops, &t, &p, &h, payload, out, sizeof(out)), -EINVAL);
	p.payload_len = 0;
	assert_int_equal(roce_build(ops, &t, &p, &h, payload, out, 61), -ENOSPC);
	assert_int_equal(roce_build(ops, &t, &p, &h, payload, out, 62), 62);
	p.opcode = 0x1f;
	assert_int_equal(roce_build(ops, &t, &p, &h, payload, out, sizeof(out)), -EINVAL);
}

/* A valid WRITE ONLY of 5 bytes, for tests that change one thing. */
static uint32_t
good_frame(uint8_t *frame, uint8_t ip_version, bool vlan)
{
	struct hca_udp_template t = make_template(ip_version, vlan);
	struct roce_packet p = {.opcode = HCA_BTH_RC_WRITE_ONLY, .payload_len = 5};
	struct roce_headers h = {.reth = {0x1000, 0x2200, 5}};
	int len = roce_build(hca_icrc_select(), &t, &p, &h, "hello", frame, 256);

	assert_true(len > 0);
	return len;
}

static void
expect(const uint8_t *frame, uint32_t len, int want)
{
	struct roce_view v;
	int rc = roce_parse(frame, len, &v);

	if (rc != -want)
		fail_msg("%s, expected %s", roce_drop_name(rc), roce_drop_name(want));
}

/* One byte of a valid frame changed: X(ip version, offset, value, drop reason). */
#define BROKEN_LIST(X) \
	X(4, 12, 0x86, NOT_IP) \
	X(4, 13, 0x06, NOT_IP) \
	X(4, 14, 0x65, BAD_IP_VERSION) \
	X(4, 14, 0x46, IP_OPTIONS) \
	X(4, 14, 0x44, IP_OPTIONS) \
	X(4, 16, 0x01, IP_LEN) \
	X(4, 17, 27, IP_LEN) \
	X(4, 20, 0x60, FRAGMENT) \
	X(4, 21, 0x01, FRAGMENT) \
	X(4, 23, 6, NOT_UDP) \
	X(4, 36, 0x11, NOT_ROCE) \
	X(4, 39, 7, UDP_LEN) \
	X(4, 39, 0xff, UDP_LEN) \
	X(4, 43, 0x01, TVER) \
	X(4, 42, 0x1f, OPCODE) \
	X(4, 42, HCA_BTH_RC_CMP_SWAP, HEADER_SHORT) \
	X(4, 42, HCA_BTH_RC_ACK, PAYLOAD) \
	X(6, 14, 0x40, BAD_IP_VERSION) \
	X(6, 18, 0x01, IP_LEN) \
	X(6, 19, 7, IP_LEN) \
	X(6, 20, 0, NOT_UDP) \
	X(6, 59, 8, UDP_LEN)

static void
test_one_broken_byte(void **state)
{
	uint8_t frame[256];
	uint32_t len;

	len = good_frame(frame, 4, false);
	expect(frame, len, HCA_WIRE_DROP_NONE);
#define X(version, offset, value, reason) \
	len = good_frame(frame, version, false); \
	frame[offset] = value; \
	expect(frame, len, HCA_WIRE_DROP_##reason);
	BROKEN_LIST(X)
#undef X
}

/*
 * To answer an unknown opcode, a responder needs the fields of the view and a check of the ICRC.
 */
static void
test_view_of_an_unknown_opcode(void **state)
{
	const struct hca_icrc_ops *ops = hca_icrc_select();
	uint8_t frame[256];
	struct roce_view v;
	uint32_t len = good_frame(frame, 4, false);

	assert_int_equal(roce_parse(frame, len, &v), 0);
	hca_put_be32(frame + v.bth + 8, 0x80123456);
	frame[v.bth] = 0x1f;
	roce_seal(ops, frame, &v);
	memset(&v, 0, sizeof(v));
	assert_int_equal(roce_parse(frame, len, &v), -HCA_WIRE_DROP_OPCODE);
	assert_int_equal(v.opcode, 0x1f);
	assert_int_equal(v.qpn, 0xabcdef);
	assert_int_equal(v.psn, 0x123456);
	assert_true(v.ackreq);
	assert_true(roce_icrc_ok(ops, frame, &v));
	frame[v.bth + 11] ^= 1;
	assert_false(roce_icrc_ok(ops, frame, &v));
}

static void
set_udp_payload(uint8_t *frame, uint32_t n)
{
	hca_put_be16(frame + 16, n + 28);
	hca_put_be16(frame + 38, n + 8);
}

static void
test_pad(void **state)
{
	uint8_t frame[256];
	uint32_t pad, n;

	/* payload and pad are the 0 .. 8 bytes after BTH, RETH and ICRC (32 bytes) */
	for (pad = 0; pad < 4; pad++)
		for (n = 32; n <= 40; n++) {
			good_frame(frame, 4, false);
			frame[43] = pad << 4;
			set_udp_payload(frame, n);
			expect(frame, 42 + n,
			       n % 4 == 0 && n - 32 >= pad ? HCA_WIRE_DROP_NONE
							   : HCA_WIRE_DROP_PAD);
		}
}

static void
test_ethernet_padding_is_ignored(void **state)
{
	struct hca_udp_template t = make_template(4, false);
	struct roce_packet p = {.opcode = HCA_BTH_RC_SEND_ONLY};
	struct roce_headers h = {0};
	uint8_t frame[64];
	struct roce_view v;
	int len;

	memset(frame, 0xee, sizeof(frame));
	len = roce_build(hca_icrc_select(), &t, &p, &h, NULL, frame, sizeof(frame));
	assert_int_equal(len, 58);
	memset(frame + len, 0xee, sizeof(frame) - len);
	assert_int_equal(roce_parse(frame, 60, &v), 0);
	assert_int_equal(v.payload_len, 0);
	assert_int_equal(v.icrc, 54);
	assert_true(roce_icrc_ok(hca_icrc_select(), frame, &v));
}

/* The frame cut at every length, in front of an inaccessible page. */
static void
test_truncated_at_every_byte(void **state)
{
	struct guard g = guard_alloc(1);
	uint8_t frame[256];
	uint32_t len, cut, form;

	for (form = 0; form < 4; form++) {
		len = good_frame(frame, form & 1 ? 6 : 4, form >> 1);
		for (cut = 0; cut < len; cut++) {
			struct roce_view v;
			uint8_t *p = g.end - cut;

			memcpy(p, frame, cut);
			assert_true(roce_parse(p, cut, &v) < 0);
		}
	}
	guard_free(&g);
}

/* The parts of an accepted view must lie inside the frame; all of it is read. */
static void
check_view(const uint8_t *p, uint32_t len, const struct roce_view *v)
{
	struct roce_headers h;

	assert_true(v->payload + v->payload_len + v->pad == v->icrc);
	assert_true(v->icrc + HCA_ICRC_LEN <= len);
	assert_true(v->bth + v->op->header_len == v->payload);
	roce_get_headers(p + v->bth, v->op, &h);
	roce_icrc_ok(hca_icrc_select(), p, v);
}

/* p ends at the guard page; the lengths in its headers are consistent with that. */
static void
short_frame(const struct guard *g, const struct hca_udp_template *t, uint8_t opcode, uint32_t n,
	    uint8_t pad)
{
	const struct hca_roce_opcode_info *op = &hca_roce_opcodes[opcode];
	uint32_t len = t->transport + n;
	uint8_t *p = g->end - len, *bth = p + t->transport;
	struct roce_view v;
	int rc;

	memcpy(p, t->bytes, len < t->transport + 12u ? len : t->transport + 12u);
	if (t->ip_version == 4)
		hca_put_be16(p + t->l3 + 2, n + HCA_UDP_LEN + HCA_IPV4_LEN);
	else
		hca_put_be16(p + t->l3 + 4, n + HCA_UDP_LEN);
	hca_put_be16(bth - 4, n + HCA_UDP_LEN);
	if (n > 0)
		bth[0] = opcode;
	if (n > 1)
		bth[1] = pad << 4;
	rc = roce_parse(p, len, &v);
	if (rc == 0)
		check_view(p, len, &v);
	/* only headers and ICRC, with at most 4 bytes of payload, can be valid */
	if (n < 16 || !op->valid || n < op->header_len + 4u)
		assert_true(rc < 0);
	else
		assert_int_equal(rc == 0, (n - op->header_len) % 4 == 0 &&
						  n - op->header_len - 4u >= pad &&
						  (op->has_payload || n == op->header_len + 4u));
}

static void
test_all_opcodes_all_short_lengths_all_pads(void **state)
{
	struct guard g = guard_alloc(1);
	struct hca_udp_template t;
	unsigned int form, op, n, pad;

	for (form = 0; form < 4; form++) {
		t = make_template(form & 1 ? 6 : 4, form >> 1);
		for (op = 0; op < 256; op++)
			for (n = 0; n <= 44 + 4 + 8; n++)
				for (pad = 0; pad < 4; pad++)
					short_frame(&g, &t, op, n, pad);
	}
	guard_free(&g);
}

/* Valid frames with random bytes changed, and random bytes after an Ethernet header. */
static void
test_random_damage(void **state)
{
	struct guard g = guard_alloc(1);
	uint8_t frame[256];
	struct roce_view v;
	unsigned int round, i;

	for (round = 0; round < 200000; round++) {
		uint32_t len = good_frame(frame, rng() & 1 ? 6 : 4, rng() & 1), n = rng() % 8;
		uint8_t *p;
		int rc;

		for (i = 0; i < n; i++)
			frame[rng() % len] = rng();
		len -= rng() % 4 == 0 ? rng() % len : 0;
		p = g.end - len;
		memcpy(p, frame, len);
		memset(&v, 0, sizeof(v));
		rc = roce_parse(p, len, &v);
		if (rc == 0)
			check_view(p, len, &v);
	}
	guard_free(&g);
}

static void
test_drop_names(void **state)
{
	int i;

	for (i = 0; i < HCA_WIRE_DROP_COUNT; i++)
		assert_string_not_equal(roce_drop_name(-i), "unknown");
	assert_string_equal(roce_drop_name(-HCA_WIRE_DROP_UDP_LEN), "UDP_LEN");
	assert_string_equal(roce_drop_name(-1000), "unknown");
	assert_string_equal(roce_drop_text(INT32_MIN), "unknown");
}

static void
test_source_port(void **state)
{
	uint32_t seen[16] = {0};
	unsigned int i, used = 0;

	for (i = 0; i < 256; i++) {
		uint16_t port = hca_roce_udp_sport(0, 0x100 + i, 0x200);

		assert_true(port >= 0xc000);
		seen[(port >> 10) & 15]++;
	}
	for (i = 0; i < 16; i++)
		used += seen[i] > 0;
	assert_int_equal(used, 16);
	assert_int_equal(hca_roce_udp_sport(0, 1, 2), hca_roce_udp_sport(0, 1, 2));
	/* a flow label decides alone: 14 bits, and the other 6 on top of them */
	assert_int_equal(hca_roce_udp_sport(1, 1, 2), 0xc001);
	assert_int_equal(hca_roce_udp_sport(1, 3, 4), 0xc001);
	assert_int_equal(hca_roce_udp_sport(0x3fff, 1, 2), 0xffff);
	assert_int_equal(hca_roce_udp_sport(0x4000, 1, 2), 0xc001);
	assert_int_equal(hca_roce_udp_sport(0xfc000, 1, 2), 0xc03f);
	assert_int_equal(hca_roce_udp_sport(0xfffff, 1, 2), 0xffc0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_confirmed_requests),
		cmocka_unit_test(test_template_fields),
		cmocka_unit_test(test_template_refuses),
		cmocka_unit_test(test_build_refuses),
		cmocka_unit_test(test_one_broken_byte),
		cmocka_unit_test(test_view_of_an_unknown_opcode),
		cmocka_unit_test(test_pad),
		cmocka_unit_test(test_ethernet_padding_is_ignored),
		cmocka_unit_test(test_truncated_at_every_byte),
		cmocka_unit_test(test_all_opcodes_all_short_lengths_all_pads),
		cmocka_unit_test(test_random_damage),
		cmocka_unit_test(test_drop_names),
		cmocka_unit_test(test_source_port),
	};
	const char *env = getenv("SOFTHCA_TEST_SEED");

	rng_state = env ? strtoull(env, NULL, 0) : (uint64_t)time(NULL) << 20 | getpid();
	if (rng_state == 0)
		rng_state = 1;
	fprintf(stderr, "SOFTHCA_TEST_SEED=%#llx\n", (unsigned long long)rng_state);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
