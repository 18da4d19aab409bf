/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HCA_ABI_ROCE_H
#define HCA_ABI_ROCE_H

/*
 * Wire headers of RoCEv2: Ethernet, VLAN, IPv4, IPv6, UDP and the InfiniBand transport headers.
 * Table A2-1 and InfiniBand volume 1, chapter 9. Network byte order, packed, any alignment.
 */

#include <stdbool.h>

#include "abi_bits.h"

#define HCA_PACKED __attribute__((packed))

/* ---- Ethernet, IP, UDP ---- */

#define HCA_ETHERTYPE_IPV4 0x0800u
#define HCA_ETHERTYPE_IPV6 0x86ddu
#define HCA_ETHERTYPE_VLAN 0x8100u
#define HCA_IPPROTO_UDP 17u
#define HCA_ROCE_UDP_PORT 4791u
#define HCA_ROCE_SPORT_BASE 0xc000u /* source ports: 14 bits of hash above this */
#define HCA_ROCE_SPORT_MASK 0x3fffu
#define HCA_ICRC_LEN 4u	   /* after the padded payload, least significant byte first */
#define HCA_UD_GRH_LEN 40u /* bytes in front of a UD receive */

struct hca_eth_hdr {
	uint8_t dmac[6];
	uint8_t smac[6];
	hca_be16 ethertype;
} HCA_PACKED;
HCA_STATIC_ASSERT_SIZE(struct hca_eth_hdr, 14);
HCA_STATIC_ASSERT_OFFSET(struct hca_eth_hdr, ethertype, 12);

struct hca_vlan_hdr {
	hca_be16 tci; /* pcp[15:13] dei[12] vid[11:0] */
	hca_be16 ethertype;
} HCA_PACKED;
HCA_STATIC_ASSERT_SIZE(struct hca_vlan_hdr, 4);

#define HCA_VLAN_PCP(w) HCA_BITS(w, 15, 13)
#define HCA_VLAN_VID(w) HCA_BITS(w, 11, 0)

struct hca_ipv4_hdr {
	uint8_t ver_ihl; /* version[7:4] header words[3:0] */
	uint8_t tos;	 /* DSCP[7:2] ECN[1:0] */
	hca_be16 total_len;
	hca_be16 id;
	hca_be16 frag; /* DF[14] MF[13] offset[12:0] */
	uint8_t ttl;
	uint8_t proto;
	hca_be16 csum;
	hca_be32 saddr;
	hca_be32 daddr;
} HCA_PACKED;
HCA_STATIC_ASSERT_SIZE(struct hca_ipv4_hdr, 20);
HCA_STATIC_ASSERT_OFFSET(struct hca_ipv4_hdr, frag, 6);
HCA_STATIC_ASSERT_OFFSET(struct hca_ipv4_hdr, csum, 10);
HCA_STATIC_ASSERT_OFFSET(struct hca_ipv4_hdr, saddr, 12);
HCA_STATIC_ASSERT_OFFSET(struct hca_ipv4_hdr, daddr, 16);

#define HCA_ECN_ECT0 2u /* switches may mark it */
#define HCA_ECN_CE 3u	/* congestion experienced: a switch has marked it */

#define HCA_IPV4_VER_IHL 0x45u
#define HCA_IPV4_DF 0x4000u
#define HCA_IPV4_FRAG_MASK 0x3fffu /* MF and offset: 0 in a frame that is whole */

struct hca_ipv6_hdr {
	hca_be32 ver_tc_flow; /* version[31:28] traffic class[27:20] flow label[19:0] */
	hca_be16 payload_len;
	uint8_t next_hdr;
	uint8_t hop_limit;
	uint8_t saddr[16];
	uint8_t daddr[16];
} HCA_PACKED;
HCA_STATIC_ASSERT_SIZE(struct hca_ipv6_hdr, 40);
HCA_STATIC_ASSERT_OFFSET(struct hca_ipv6_hdr, saddr, 8);
HCA_STATIC_ASSERT_OFFSET(struct hca_ipv6_hdr, daddr, 24);

/* The GRH of InfiniBand has the form of an IPv6 header. */
struct hca_grh {
	hca_be32 ver_tc_flow; /* version[31:28] traffic class[27:20] flow label[19:0] */
	hca_be16 payload_len;
	uint8_t next_hdr; /* 1Bh = InfiniBand transport */
	uint8_t hop_limit;
	uint8_t sgid[16];
	uint8_t dgid[16];
} HCA_PACKED;
HCA_STATIC_ASSERT_SIZE(struct hca_grh, HCA_UD_GRH_LEN);
HCA_STATIC_ASSERT_OFFSET(struct hca_grh, sgid, 8);
HCA_STATIC_ASSERT_OFFSET(struct hca_grh, dgid, 24);

#define HCA_GRH_NEXT_HDR 0x1bu

/* IPv6 header and GRH */
#define HCA_IPV6_VERSION(w) HCA_BITS(w, 31, 28)
#define HCA_IPV6_TCLASS(w) HCA_BITS(w, 27, 20)
#define HCA_IPV6_FLOW(w) HCA_BITS(w, 19, 0)
#define HCA_IPV6_MAKE_VER(tclass, flow) \
	(HCA_FIELD(31, 28, 6) | HCA_FIELD(27, 20, tclass) | HCA_FIELD(19, 0, flow))

struct hca_udp_hdr {
	hca_be16 sport;
	hca_be16 dport;
	hca_be16 len; /* header and everything after it, ICRC included */
	hca_be16 csum;
} HCA_PACKED;
HCA_STATIC_ASSERT_SIZE(struct hca_udp_hdr, 8);
HCA_STATIC_ASSERT_OFFSET(struct hca_udp_hdr, len, 4);

/* ---- InfiniBand transport headers ---- */

struct hca_bth {
	uint8_t opcode; /* HCA_BTH_* */
	uint8_t flags;	/* SE[7] MigReq[6] pad[5:4] TVer[3:0] */
	hca_be16 pkey;
	hca_be32 dqpn; /* FECN[31] BECN[30] reserved[29:24] QPN[23:0] */
	hca_be32 psn;  /* AckReq[31] reserved[30:24] PSN[23:0] */
} HCA_PACKED;
HCA_STATIC_ASSERT_SIZE(struct hca_bth, 12);
HCA_STATIC_ASSERT_OFFSET(struct hca_bth, flags, 1);
HCA_STATIC_ASSERT_OFFSET(struct hca_bth, pkey, 2);
HCA_STATIC_ASSERT_OFFSET(struct hca_bth, dqpn, 4);
HCA_STATIC_ASSERT_OFFSET(struct hca_bth, psn, 8);

#define HCA_BTH_SE 0x80u
#define HCA_BTH_MIGREQ 0x40u
#define HCA_BTH_PAD(flags) HCA_BITS(flags, 5, 4)
#define HCA_BTH_TVER(flags) HCA_BITS(flags, 3, 0)
#define HCA_BTH_MAKE_FLAGS(se, migreq, pad) \
	((uint8_t)(HCA_FIELD(7, 7, se) | HCA_FIELD(6, 6, migreq) | HCA_FIELD(5, 4, pad)))
#define HCA_BTH_FECN HCA_BIT(31)
#define HCA_BTH_BECN HCA_BIT(30)
#define HCA_BTH_DQPN(w) HCA_BITS(w, 23, 0)
#define HCA_BTH_ACKREQ HCA_BIT(31)
#define HCA_BTH_PSN(w) HCA_BITS(w, 23, 0)
#define HCA_BTH_MAKE_PSN(ackreq, psn) (HCA_FIELD(31, 31, ackreq) | HCA_FIELD(23, 0, psn))

/* Datagram extended header. */
struct hca_deth {
	hca_be32 qkey;
	hca_be32 sqpn; /* [23:0] */
} HCA_PACKED;
HCA_STATIC_ASSERT_SIZE(struct hca_deth, 8);

/* FLUSH extended header. */
struct hca_feth {
	hca_be32 bits; /* selectivity[5:4] placement[3:0] */
} HCA_PACKED;
HCA_STATIC_ASSERT_SIZE(struct hca_feth, 4);

#define HCA_FETH_PLACEMENT(w) HCA_BITS(w, 3, 0) /* a set of these */
#define HCA_FETH_GLOBAL 1u			/* visible to all of the host */
#define HCA_FETH_PERSISTENT 2u
#define HCA_FETH_SELECTIVITY(w) HCA_BITS(w, 5, 4)
#define HCA_FETH_RANGE 0u
#define HCA_FETH_MR 1u /* the whole region or window */
#define HCA_FETH_MAKE(placement, selectivity) \
	(HCA_FIELD(5, 4, selectivity) | HCA_FIELD(3, 0, placement))

/* Other values are invalid; bits from 6 on mean nothing. */
static inline bool
hca_feth_ok(uint32_t word)
{
	uint32_t placement = HCA_FETH_PLACEMENT(word);

	return placement != 0 && placement <= (HCA_FETH_GLOBAL | HCA_FETH_PERSISTENT) &&
	       HCA_FETH_SELECTIVITY(word) <= HCA_FETH_MR;
}

/* RDMA extended header. */
struct hca_reth {
	hca_be64 va;
	hca_be32 rkey;
	hca_be32 dma_len;
} HCA_PACKED;
HCA_STATIC_ASSERT_SIZE(struct hca_reth, 16);
HCA_STATIC_ASSERT_OFFSET(struct hca_reth, rkey, 8);
HCA_STATIC_ASSERT_OFFSET(struct hca_reth, dma_len, 12);

/* Atomic extended header. */
struct hca_atomiceth {
	hca_be64 va;
	hca_be32 rkey;
	hca_be64 swap_add;
	hca_be64 cmp;
} HCA_PACKED;
HCA_STATIC_ASSERT_SIZE(struct hca_atomiceth, 28);
HCA_STATIC_ASSERT_OFFSET(struct hca_atomiceth, rkey, 8);
HCA_STATIC_ASSERT_OFFSET(struct hca_atomiceth, swap_add, 12);
HCA_STATIC_ASSERT_OFFSET(struct hca_atomiceth, cmp, 20);

/* ACK extended header. */
struct hca_aeth {
	hca_be32 syndrome_msn; /* syndrome[31:24] MSN[23:0] */
} HCA_PACKED;
HCA_STATIC_ASSERT_SIZE(struct hca_aeth, 4);

/* Atomic ACK extended header: value before the operation. */
struct hca_atomicacketh {
	hca_be64 orig;
} HCA_PACKED;
HCA_STATIC_ASSERT_SIZE(struct hca_atomicacketh, 8);

/* Immediate data: the WQE's four bytes as they are. */
struct hca_immdt {
	hca_be32 imm;
} HCA_PACKED;
HCA_STATIC_ASSERT_SIZE(struct hca_immdt, 4);

/* Invalidate extended header. */
struct hca_ieth {
	hca_be32 rkey;
} HCA_PACKED;
HCA_STATIC_ASSERT_SIZE(struct hca_ieth, 4);

/* XRC extended header, directly after the BTH of XRC requests. */
struct hca_xrceth {
	hca_be32 srqn; /* [23:0] */
} HCA_PACKED;
HCA_STATIC_ASSERT_SIZE(struct hca_xrceth, 4);

/* Reliable datagram extended header. */
struct hca_rdeth {
	hca_be32 eecn; /* [23:0] */
} HCA_PACKED;
HCA_STATIC_ASSERT_SIZE(struct hca_rdeth, 4);

/* ---- BTH opcodes ---- */

/* Extended headers after the BTH, in this order of appearance. */
#define HCA_EXT_RDETH HCA_BIT(0)
#define HCA_EXT_DETH HCA_BIT(1)
#define HCA_EXT_XRCETH HCA_BIT(2)
#define HCA_EXT_FETH HCA_BIT(3)
#define HCA_EXT_RETH HCA_BIT(4)
#define HCA_EXT_ATOMICETH HCA_BIT(5)
#define HCA_EXT_AETH HCA_BIT(6)
#define HCA_EXT_ATOMICACKETH HCA_BIT(7)
#define HCA_EXT_IMMDT HCA_BIT(8)
#define HCA_EXT_IETH HCA_BIT(9)
#define HCA_EXT_PAYLOAD HCA_BIT(10) /* payload, padding */
/* Bytes of a set of extended headers. */
#define HCA_EXT_LEN(ext) \
	(4u * (!!((ext)&HCA_EXT_RDETH) + !!((ext)&HCA_EXT_XRCETH) + !!((ext)&HCA_EXT_FETH) + \
	       !!((ext)&HCA_EXT_AETH) + !!((ext)&HCA_EXT_IMMDT) + !!((ext)&HCA_EXT_IETH)) + \
	 8u * (!!((ext)&HCA_EXT_DETH) + !!((ext)&HCA_EXT_ATOMICACKETH)) + \
	 16u * !!((ext)&HCA_EXT_RETH) + 28u * !!((ext)&HCA_EXT_ATOMICETH))

/* Place of a packet in its message. */
enum hca_pkt_pos {
	HCA_PKT_FIRST,
	HCA_PKT_MIDDLE,
	HCA_PKT_LAST,
	HCA_PKT_ONLY,
};

/*
 * Role of a packet. X(name, direction, runs, access)
 *   direction  REQUEST, RESPONSE or neither, OTHER
 *   runs       of a request: the kind of its operation, after HCA_KIND_ (abi_wqe.h)
 *   access     the right that the responder requires, HCA_ACCESS_*
 */
#define HCA_PKT_KIND_LIST(X) \
	X(NONE, OTHER, NONE, 0) /* no such opcode; keeps zeroed tables safe */ \
	X(SEND, REQUEST, MESSAGE, 0) \
	X(WRITE, REQUEST, MESSAGE, HCA_ACCESS_REMOTE_WRITE) \
	X(READ_REQ, REQUEST, READ, HCA_ACCESS_REMOTE_READ) \
	X(READ_RESP, RESPONSE, NONE, 0) \
	X(ACK, RESPONSE, NONE, 0) \
	X(ATOMIC_ACK, RESPONSE, NONE, 0) \
	X(CMP_SWAP, REQUEST, ATOMIC, HCA_ACCESS_REMOTE_ATOMIC) \
	X(FETCH_ADD, REQUEST, ATOMIC, HCA_ACCESS_REMOTE_ATOMIC) \
	X(ATOMIC_WRITE, REQUEST, CONFIRM, HCA_ACCESS_REMOTE_WRITE) \
	X(FLUSH, REQUEST, CONFIRM, 0) /* the right that its FETH names */ \
	X(RESYNC, OTHER, NONE, 0) \
	X(CNP, OTHER, NONE, 0)

enum hca_pkt_kind {
#define HCA_PKT_ENUM(name, direction, runs, access) HCA_PKT_##name,
	HCA_PKT_KIND_LIST(HCA_PKT_ENUM)
#undef HCA_PKT_ENUM
};

/* Transport, opcode bits [7:5]. */
#define HCA_BTH_TRANSPORT(opcode) HCA_BITS(opcode, 7, 5)
#define HCA_BTH_OPERATION(opcode) HCA_BITS(opcode, 4, 0)
#define HCA_TRANSPORT_RC 0u
#define HCA_TRANSPORT_UC 1u
#define HCA_TRANSPORT_RD 2u
#define HCA_TRANSPORT_UD 3u
#define HCA_TRANSPORT_CNP 4u
#define HCA_TRANSPORT_XRC 5u

/* Rows shared by transports: p name prefix, b opcode base, r headers of requests, a of answers. */
#define HCA_BTH_SEND_WRITE_ROWS(X, p, b, r) \
	X(p##_SEND_FIRST, (b) + 0x00, SEND, FIRST, (r) | HCA_EXT_PAYLOAD) \
	X(p##_SEND_MIDDLE, (b) + 0x01, SEND, MIDDLE, (r) | HCA_EXT_PAYLOAD) \
	X(p##_SEND_LAST, (b) + 0x02, SEND, LAST, (r) | HCA_EXT_PAYLOAD) \
	X(p##_SEND_LAST_IMM, (b) + 0x03, SEND, LAST, (r) | HCA_EXT_IMMDT | HCA_EXT_PAYLOAD) \
	X(p##_SEND_ONLY, (b) + 0x04, SEND, ONLY, (r) | HCA_EXT_PAYLOAD) \
	X(p##_SEND_ONLY_IMM, (b) + 0x05, SEND, ONLY, (r) | HCA_EXT_IMMDT | HCA_EXT_PAYLOAD) \
	X(p##_WRITE_FIRST, (b) + 0x06, WRITE, FIRST, (r) | HCA_EXT_RETH | HCA_EXT_PAYLOAD) \
	X(p##_WRITE_MIDDLE, (b) + 0x07, WRITE, MIDDLE, (r) | HCA_EXT_PAYLOAD) \
	X(p##_WRITE_LAST, (b) + 0x08, WRITE, LAST, (r) | HCA_EXT_PAYLOAD) \
	X(p##_WRITE_LAST_IMM, (b) + 0x09, WRITE, LAST, (r) | HCA_EXT_IMMDT | HCA_EXT_PAYLOAD) \
	X(p##_WRITE_ONLY, (b) + 0x0a, WRITE, ONLY, (r) | HCA_EXT_RETH | HCA_EXT_PAYLOAD) \
	X(p##_WRITE_ONLY_IMM, (b) + 0x0b, WRITE, ONLY, \
	  (r) | HCA_EXT_RETH | HCA_EXT_IMMDT | HCA_EXT_PAYLOAD)

#define HCA_BTH_READ_ATOMIC_ROWS(X, p, b, r, a) \
	X(p##_READ_REQ, (b) + 0x0c, READ_REQ, ONLY, (r) | HCA_EXT_RETH) \
	X(p##_READ_RESP_FIRST, (b) + 0x0d, READ_RESP, FIRST, (a) | HCA_EXT_AETH | HCA_EXT_PAYLOAD) \
	X(p##_READ_RESP_MIDDLE, (b) + 0x0e, READ_RESP, MIDDLE, (a) | HCA_EXT_PAYLOAD) \
	X(p##_READ_RESP_LAST, (b) + 0x0f, READ_RESP, LAST, (a) | HCA_EXT_AETH | HCA_EXT_PAYLOAD) \
	X(p##_READ_RESP_ONLY, (b) + 0x10, READ_RESP, ONLY, (a) | HCA_EXT_AETH | HCA_EXT_PAYLOAD) \
	X(p##_ACK, (b) + 0x11, ACK, ONLY, (a) | HCA_EXT_AETH) \
	X(p##_ATOMIC_ACK, (b) + 0x12, ATOMIC_ACK, ONLY, (a) | HCA_EXT_AETH | HCA_EXT_ATOMICACKETH) \
	X(p##_CMP_SWAP, (b) + 0x13, CMP_SWAP, ONLY, (r) | HCA_EXT_ATOMICETH) \
	X(p##_FETCH_ADD, (b) + 0x14, FETCH_ADD, ONLY, (r) | HCA_EXT_ATOMICETH)

#define HCA_BTH_INV_ROWS(X, p, b, r) \
	X(p##_SEND_LAST_INV, (b) + 0x16, SEND, LAST, (r) | HCA_EXT_IETH | HCA_EXT_PAYLOAD) \
	X(p##_SEND_ONLY_INV, (b) + 0x17, SEND, ONLY, (r) | HCA_EXT_IETH | HCA_EXT_PAYLOAD)

/* Of InfiniBand 1.5, annex A19. */
#define HCA_BTH_CONFIRM_ROWS(X, p, b, r) \
	X(p##_FLUSH, (b) + 0x1c, FLUSH, ONLY, (r) | HCA_EXT_FETH | HCA_EXT_RETH) \
	X(p##_ATOMIC_WRITE, (b) + 0x1d, ATOMIC_WRITE, ONLY, (r) | HCA_EXT_RETH | HCA_EXT_PAYLOAD)

/*
 * All opcodes of InfiniBand's table 38, and the congestion notification of RoCEv2.
 * X(name, opcode, kind, position, ext): kind after HCA_PKT_, position after HCA_PKT_.
 */
#define HCA_BTH_LIST(X) \
	HCA_BTH_SEND_WRITE_ROWS(X, RC, 0x00, 0) \
	HCA_BTH_READ_ATOMIC_ROWS(X, RC, 0x00, 0, 0) \
	HCA_BTH_INV_ROWS(X, RC, 0x00, 0) \
	HCA_BTH_CONFIRM_ROWS(X, RC, 0x00, 0) \
	HCA_BTH_SEND_WRITE_ROWS(X, UC, 0x20, 0) \
	HCA_BTH_SEND_WRITE_ROWS(X, RD, 0x40, HCA_EXT_RDETH | HCA_EXT_DETH) \
	HCA_BTH_READ_ATOMIC_ROWS(X, RD, 0x40, HCA_EXT_RDETH | HCA_EXT_DETH, HCA_EXT_RDETH) \
	X(RD_RESYNC, 0x55, RESYNC, ONLY, HCA_EXT_RDETH | HCA_EXT_DETH) \
	HCA_BTH_CONFIRM_ROWS(X, RD, 0x40, HCA_EXT_RDETH | HCA_EXT_DETH) \
	X(UD_SEND_ONLY, 0x64, SEND, ONLY, HCA_EXT_DETH | HCA_EXT_PAYLOAD) \
	X(UD_SEND_ONLY_IMM, 0x65, SEND, ONLY, HCA_EXT_DETH | HCA_EXT_IMMDT | HCA_EXT_PAYLOAD) \
	X(CNP, 0x81, CNP, ONLY, HCA_EXT_PAYLOAD) \
	HCA_BTH_SEND_WRITE_ROWS(X, XRC, 0xa0, HCA_EXT_XRCETH) \
	HCA_BTH_READ_ATOMIC_ROWS(X, XRC, 0xa0, HCA_EXT_XRCETH, 0) \
	HCA_BTH_INV_ROWS(X, XRC, 0xa0, HCA_EXT_XRCETH) \
	HCA_BTH_CONFIRM_ROWS(X, XRC, 0xa0, HCA_EXT_XRCETH)

enum hca_bth_opcode {
#define HCA_BTH_ENUM(name, opcode, kind, pos, ext) HCA_BTH_##name = (opcode),
	HCA_BTH_LIST(HCA_BTH_ENUM)
#undef HCA_BTH_ENUM
};

/* Opcodes of a request of RC by position in its message: [middle, first, last, only]. */
#define HCA_BTH_MESSAGE(op, end) \
	{ \
		HCA_BTH_RC_##op##_MIDDLE, HCA_BTH_RC_##op##_FIRST, HCA_BTH_RC_##op##_LAST##end, \
			HCA_BTH_RC_##op##_ONLY##end \
	}
#define HCA_BTH_PACKET(op) \
	{ \
		HCA_BTH_RC_##op, HCA_BTH_RC_##op, HCA_BTH_RC_##op, HCA_BTH_RC_##op \
	}
#define HCA_BTH_NO_PACKET \
	{ \
		0 \
	}

#define HCA_CNP_PAYLOAD_LEN 16u

/* ---- AETH ---- */

#define HCA_AETH_SYNDROME(w) HCA_BITS(w, 31, 24)
#define HCA_AETH_MSN(w) HCA_BITS(w, 23, 0)
#define HCA_AETH_MAKE(syndrome, msn) (HCA_FIELD(31, 24, syndrome) | HCA_FIELD(23, 0, msn))
/* Kind of a syndrome byte, and its lower five bits. */
#define HCA_AETH_KIND_MASK 0xe0u
#define HCA_AETH_ACK 0x00u     /* value: credits */
#define HCA_AETH_RNR_NAK 0x20u /* value: timer code */
#define HCA_AETH_NAK 0x60u     /* value: HCA_NAK_* */
#define HCA_AETH_KIND(syndrome) ((syndrome)&HCA_AETH_KIND_MASK)
#define HCA_AETH_VALUE(syndrome) ((syndrome)&0x1fu)
#define HCA_AETH_CREDITS_NONE 31u /* the responder does not limit the requester */

/* NAK codes. X(name, code, text) */
#define HCA_NAK_LIST(X) \
	X(PSN_SEQ, 0, "PSN sequence error") \
	X(INVALID_REQ, 1, "invalid request") \
	X(REMOTE_ACCESS, 2, "remote access error") \
	X(REMOTE_OP, 3, "remote operational error") \
	X(INVALID_RD_REQ, 4, "invalid RD request")

enum hca_nak {
#define HCA_NAK_ENUM(name, code, text) HCA_NAK_##name = code,
	HCA_NAK_LIST(HCA_NAK_ENUM)
#undef HCA_NAK_ENUM
};
#define HCA_NAK_SYNDROME(code) (HCA_AETH_NAK | (uint32_t)(code))
#define HCA_RNR_SYNDROME(timer) (HCA_AETH_RNR_NAK | ((uint32_t)(timer)&0x1fu))

/* RNR NAK timer codes in microseconds, InfiniBand's table 45. X(code, microseconds) */
#define HCA_RNR_TIMER_LIST(X) \
	X(0, 655360) \
	X(1, 10) \
	X(2, 20) \
	X(3, 30) \
	X(4, 40) \
	X(5, 60) \
	X(6, 80) \
	X(7, 120) \
	X(8, 160) \
	X(9, 240) \
	X(10, 320) \
	X(11, 480) \
	X(12, 640) \
	X(13, 960) \
	X(14, 1280) \
	X(15, 1920) \
	X(16, 2560) \
	X(17, 3840) \
	X(18, 5120) \
	X(19, 7680) \
	X(20, 10240) \
	X(21, 15360) \
	X(22, 20480) \
	X(23, 30720) \
	X(24, 40960) \
	X(25, 61440) \
	X(26, 81920) \
	X(27, 122880) \
	X(28, 163840) \
	X(29, 245760) \
	X(30, 327680) \
	X(31, 491520)

/* Local ACK timeout code t (1..31; 0 = never) in nanoseconds: 4.096 us * 2^t. */
#define HCA_ACK_TIMEOUT_NS(t) (UINT64_C(4096) << (t))

#define HCA_HOP_LIMIT 64u /* of a packet whose address gives none */
#define HCA_RETRY_MAX 7u  /* retry_cnt 7: seven retries */
#define HCA_RNR_RETRY_FOREVER 7u

/* ---- packet sequence numbers: 24 bits, circular ---- */

#define HCA_PSN_MASK 0xffffffu
#define HCA_PSN_HALF 0x800000u

/* a - b as a signed 24-bit number, -2^23 .. 2^23 - 1: negative when a lies before b. */
static inline int32_t
hca_psn_diff(uint32_t a, uint32_t b)
{
	uint32_t d = (a - b) & HCA_PSN_MASK;

	return (int32_t)(d ^ HCA_PSN_HALF) - (int32_t)HCA_PSN_HALF;
}

#endif
