/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_UNIT_DEVICE_WIRE_UB_VECTORS_H
#define TESTS_UNIT_DEVICE_WIRE_UB_VECTORS_H

/*
 * Eight frames of UB, from the IP header on, and their fields. Addresses are 192.168.0.1 and .2,
 * 2001:db8:77::1 and ::2; TTL or hop limit 64, ECT(0), IPv4 id 0.
 */

#include "wire/ub_frame.h"

struct ub_vector {
	const char *name;
	const char *hex; /* blanks do not count */
	uint16_t sport;
	bool v6;
	bool back; /* from .2 to .1 */
	struct hca_ub_headers h;
	const char *payload;
	uint32_t payload_len;
};

#define FORWARD .src_tpn = 0x11, .dst_tpn = 0x22
#define BACK .src_tpn = 0x22, .dst_tpn = 0x11

static const struct ub_vector ub_vectors[] = {
	{
		.name = "UTP Send",
		.hex = "45020048 00004000 4011b94f c0a80001 c0a80002 c00112b8 00340000 80300000"
		       "00000000 00000000 00000000 00100001 08000010 00000001 00000000 68656c6c"
		       "6f000000 c08ce124",
		.sport = 0xc001,
		.h = {.rtph = {.opcode = HCA_UB_TP_UTP},
		      .btah = {.opcode = HCA_UB_TA_SEND,
			       .ee = HCA_UB_EE_NORMAL,
			       .tassn = 1,
			       .mt_en = 1,
			       .rc_id = 0x10},
		      .mtetah = {.tc_id = 1}},
		.payload = "hello",
		.payload_len = 5,
	},
	{
		.name = "Write",
		.hex = "4502005c 00004000 4011b93b c0a80001 c0a80002 c00212b8 00480000 81000000"
		       "11000022 80abcdef 00000001 03181234 00000010 00000001 02030400 0abcde00"
		       "00000010 deadbeef 00010203 04050607 08090a0b 0c0d0e0f 6f92c0cf",
		.sport = 0xc002,
		.h = {.rtph = {.last = 1,
			       .opcode = HCA_UB_TP_RTP,
			       FORWARD,
			       .ack = 1,
			       .psn = 0xabcdef,
			       .tpmsn = 1},
		      .btah = {.opcode = HCA_UB_TA_WRITE,
			       .ee = HCA_UB_EE_NORMAL,
			       .tv_en = 1,
			       .tassn = 0x1234,
			       .rc_id = 0x10},
		      .maetah = {.address = 0x102030400, .token_id = 0xabcde, .length = 16},
		      .tvetah = {0xdeadbeef}},
		.payload = "\0\1\2\3\4\5\6\7\x8\x9\xa\xb\xc\xd\xe\xf",
		.payload_len = 16,
	},
	{
		.name = "TPACK",
		.hex = "45020030 00004000 4011b967 c0a80002 c0a80001 c00212b8 001c0000 02000000"
		       "22000011 00abcdef 00000001 dfcace46",
		.sport = 0xc002,
		.back = true,
		.h = {.rtph = {.opcode = HCA_UB_TP_ACK, BACK, .psn = 0xabcdef, .tpmsn = 1}},
	},
	{
		.name = "TAACK",
		.hex = "45020038 00004000 4011b95f c0a80002 c0a80001 c00212b8 00240000 81000000"
		       "22000011 80000000 00000001 11001234 00000010 04e8f7b5",
		.sport = 0xc002,
		.back = true,
		.h = {.rtph = {.last = 1, .opcode = HCA_UB_TP_RTP, BACK, .ack = 1, .tpmsn = 1},
		      .atah = {.opcode = HCA_UB_TA_TAACK, .tassn = 0x1234, .rc_id = 0x10}},
	},
	{
		.name = "TPSACK",
		.hex = "4502003c 00004000 4011b95b c0a80002 c0a80001 c00212b8 00280000 05000000"
		       "22000011 00000000 00000004 00000009 0d020000 00000000 d1168728",
		.sport = 0xc002,
		.back = true,
		.h = {.rtph = {.opcode = HCA_UB_TP_SACK, BACK, .tpmsn = 4},
		      .saetph = {.max_rcv = 9},
		      /* 0, 2, 3 and 9 */
		      .bitmap = (const uint8_t *)"\xd\2\0\0\0\0\0\0"},
	},
	{
		.name = "Read",
		.hex = "60200000 003c1140 20010db8 00770000 00000000 00000001 20010db8 00770000"
		       "00000000 00000002 c00312b8 003c0000 81008000 01800002 80000005 00000003"
		       "06100007 10055555 00000007 00000000 00007f00 00001000 00000100 00001001"
		       "83d7fb39",
		.sport = 0xc003,
		.v6 = true,
		.h = {.form = HCA_UB_FORM_DEFAULT,
		      .rtph = {.last = 1,
			       .opcode = HCA_UB_TP_RTP,
			       .src_tpn = 0x800001,
			       .dst_tpn = 0x800002,
			       .ack = 1,
			       .psn = 5,
			       .tpmsn = 3},
		      .btah = {.opcode = HCA_UB_TA_READ,
			       .ee = HCA_UB_EE_NORMAL,
			       .tassn = 7,
			       .odr = HCA_UB_ODR_RELAXED,
			       .rc_id = 0x55555},
		      .taidetah = {HCA_UB_TAID_OF(7)},
		      .maetah = {.address = 0x7f0000001000, .token_id = 1, .length = 4097}},
	},
	{
		.name = "Atomic_fetch_add",
		.hex = "45020060 00004000 4011b937 c0a80001 c0a80002 c00412b8 004c0000 81000000"
		       "11000022 80ffffff 00ffffff 0b18ffff 00000010 0000ffff 00000000 00001000"
		       "00000200 00000008 00000001 01000000 00000000 00000000 00000000 687cb7a1",
		.sport = 0xc004,
		.h = {.form = HCA_UB_FORM_DEFAULT,
		      .rtph = {.last = 1,
			       .opcode = HCA_UB_TP_RTP,
			       FORWARD,
			       .ack = 1,
			       .psn = 0xffffff,
			       .tpmsn = 0xffffff},
		      .btah = {.opcode = HCA_UB_TA_FETCH_ADD,
			       .ee = HCA_UB_EE_NORMAL,
			       .tv_en = 1,
			       .tassn = 0xffff,
			       .rc_id = 0x10},
		      .taidetah = {HCA_UB_TAID_OF(0xffff)},
		      .maetah = {.address = 0x1000, .token_id = 2, .length = 8},
		      .tvetah = {1}},
		.payload = "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
		.payload_len = 16,
	},
	{
		.name = "TPNAK",
		.hex = "45020030 00004000 4011b967 c0a80002 c0a80001 c00212b8 001c0000 02000000"
		       "22000011 00000001 60000004 133abc72",
		.sport = 0xc002,
		.back = true,
		.h = {.rtph = {.opcode = HCA_UB_TP_ACK,
			       BACK,
			       .psn = 1,
			       .rspst = HCA_UB_ACK_ERROR,
			       .rspinfo = HCA_UB_ERROR_PSN,
			       .tpmsn = 4}},
	},
};

#endif
