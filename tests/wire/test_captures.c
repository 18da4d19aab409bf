/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Real frames of Linux rxe: each is decoded, every kernel verifies its ICRC, and it is rebuilt from
 * the decoded values, byte for byte.
 *
 * Arguments: the capture files. meson.build lists them, so that a missing file is an error.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pcap_read.h"
#include "roce_craft.h"

static int capture_count;
static char **capture_paths;

typedef void (*frame_check)(const struct pcap_frame *f);

static unsigned int
for_each_frame(frame_check check)
{
	struct pcap_frame frame;
	struct pcap_file file;
	unsigned int n = 0;
	int i, rc;

	for (i = 0; i < capture_count; i++) {
		assert_int_equal(pcap_open_file(&file, capture_paths[i]), 0);
		while ((rc = pcap_next_frame(&file, &frame)) > 0) {
			check(&frame);
			n++;
		}
		assert_int_equal(rc, 0);
		pcap_close_file(&file);
	}
	return n;
}

static void
parse(const struct pcap_frame *f, struct roce_view *v)
{
	memset(v, 0, sizeof(*v));
	assert_int_equal(roce_parse(f->data, f->len, v), 0);
}

static void
check_icrc(const struct pcap_frame *f)
{
	const struct hca_icrc_ops *ops;
	struct roce_view v;
	uint8_t bad[9000];
	unsigned int i;

	parse(f, &v);
	assert_true(f->len <= sizeof(bad));
	memcpy(bad, f->data, f->len);
	bad[v.icrc - 1] ^= 0x01;
	for (i = 0; (ops = hca_icrc_nth(i)) != NULL; i++) {
		assert_true(roce_icrc_ok(ops, f->data, &v));
		assert_false(roce_icrc_ok(ops, bad, &v));
	}
}

/* Changes by routers must not matter: the variant fields are set to other values. */
static void
check_variant_fields(const struct pcap_frame *f)
{
	uint8_t routed[9000], *l3, *bth;
	struct roce_view v;

	parse(f, &v);
	memcpy(routed, f->data, f->len);
	l3 = routed + v.l3;
	bth = routed + v.bth;
	if (v.ip_version == 4) {
		l3[1] ^= 0x03;
		l3[8]--;
		l3[10] ^= 0x55;
	} else {
		l3[0] ^= 0x05;
		l3[2] ^= 0xaa;
		l3[7]--;
	}
	bth[-1] ^= 0x77;
	bth[4] ^= 0xc0;
	assert_true(roce_icrc_ok(hca_icrc_select(), routed, &v));
}

static void
read_path(const uint8_t *frame, const struct roce_view *v, struct hca_roce_path *p)
{
	const struct hca_ipv4_hdr *v4 = (const void *)(frame + v->l3);
	const struct hca_ipv6_hdr *v6 = (const void *)(frame + v->l3);
	uint32_t word;

	memset(p, 0, sizeof(*p));
	memcpy(p->udp.dmac, frame, 6);
	memcpy(p->udp.smac, frame + 6, 6);
	p->udp.ip_version = v->ip_version;
	if (v->ip_version == 4) {
		p->udp.tclass = v4->tos;
		p->udp.hop_limit = v4->ttl;
		p->udp.ip_id = hca_be16_to_cpu(v4->id);
		memcpy(p->udp.sip + 12, &v4->saddr, 4);
		memcpy(p->udp.dip + 12, &v4->daddr, 4);
	} else {
		word = hca_be32_to_cpu(v6->ver_tc_flow);
		p->udp.tclass = HCA_IPV6_TCLASS(word);
		p->udp.flow_label = HCA_IPV6_FLOW(word);
		p->udp.hop_limit = v6->hop_limit;
		memcpy(p->udp.sip, v6->saddr, 16);
		memcpy(p->udp.dip, v6->daddr, 16);
	}
	p->udp.sport = hca_get_be16(frame + v->bth - HCA_UDP_LEN);
	p->pkey = v->pkey;
	p->qpn = v->qpn;
	p->migreq = v->migreq;
}

static void
check_rebuilt(const struct pcap_frame *f)
{
	struct roce_headers h = {0};
	struct hca_udp_template t;
	struct roce_packet p;
	struct hca_roce_path path;
	struct roce_view v;
	uint8_t out[9000];
	int len;

	parse(f, &v);
	read_path(f->data, &v, &path);
	roce_get_headers(f->data + v.bth, v.op, &h);
	p = (struct roce_packet){v.opcode, v.se, v.ackreq, v.psn, v.payload_len};
	assert_int_equal(hca_roce_template_fill(&path, &t), 0);
	len = roce_build(hca_icrc_select(), &t, &p, &h, f->data + v.payload, out, sizeof(out));
	assert_int_equal(len, v.icrc + HCA_ICRC_LEN);
	assert_memory_equal(out, f->data, len);
}

static void
test_every_icrc(void **state)
{
	unsigned int n = for_each_frame(check_icrc);

	print_message("%u frames\n", n);
	assert_true(n > 100);
}

static void
test_variant_fields_are_not_covered(void **state)
{
	for_each_frame(check_variant_fields);
}

static void
test_rebuilt_byte_for_byte(void **state)
{
	for_each_frame(check_rebuilt);
}

static bool seen[256];

static void
note_opcode(const struct pcap_frame *f)
{
	struct roce_view v;

	parse(f, &v);
	seen[v.opcode] = true;
}

/* The captures must contain these opcodes. */
static void
test_captures_cover_the_opcodes(void **state)
{
	static const uint8_t want[] = {
		HCA_BTH_RC_SEND_FIRST,	   HCA_BTH_RC_SEND_MIDDLE,     HCA_BTH_RC_SEND_LAST,
		HCA_BTH_RC_SEND_LAST_IMM,  HCA_BTH_RC_SEND_ONLY,       HCA_BTH_RC_SEND_ONLY_IMM,
		HCA_BTH_RC_WRITE_FIRST,	   HCA_BTH_RC_WRITE_MIDDLE,    HCA_BTH_RC_WRITE_LAST,
		HCA_BTH_RC_WRITE_LAST_IMM, HCA_BTH_RC_WRITE_ONLY,      HCA_BTH_RC_WRITE_ONLY_IMM,
		HCA_BTH_RC_READ_REQ,	   HCA_BTH_RC_READ_RESP_FIRST, HCA_BTH_RC_READ_RESP_MIDDLE,
		HCA_BTH_RC_READ_RESP_LAST, HCA_BTH_RC_READ_RESP_ONLY,  HCA_BTH_RC_ACK,
		HCA_BTH_RC_ATOMIC_ACK,	   HCA_BTH_RC_CMP_SWAP,	       HCA_BTH_RC_FETCH_ADD,
		HCA_BTH_UC_SEND_ONLY,	   HCA_BTH_UC_WRITE_ONLY,      HCA_BTH_UD_SEND_ONLY,
		HCA_BTH_UD_SEND_ONLY_IMM,
	};
	size_t i;

	for_each_frame(note_opcode);
	for (i = 0; i < sizeof(want); i++)
		if (!seen[want[i]])
			fail_msg("no %s", hca_roce_opcode_name(want[i]));
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_icrc),
		cmocka_unit_test(test_variant_fields_are_not_covered),
		cmocka_unit_test(test_rebuilt_byte_for_byte),
		cmocka_unit_test(test_captures_cover_the_opcodes),
	};

	capture_count = argc - 1;
	capture_paths = argv + 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
