/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCEv2 frames: Ethernet II, at most one VLAN tag, IPv4 without options or IPv6 without extension
 * headers, UDP port 4791, BTH. Reading for decap, writing for encap and the tests.
 *
 * Every function takes frames as they are on the wire (big-endian, any alignment), reads nothing
 * past the length it is given, and keeps no state. Numbers in structs are in the CPU's order.
 * The IP header checksum is written and not verified; the UDP checksum is sent as 0 and any is
 * accepted: the ICRC covers what it covers.
 */
#ifndef DEVICE_WIRE_ROCE_FRAME_H
#define DEVICE_WIRE_ROCE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "abi_roce.h"
#include "wire/icrc.h"
#include "wire/roce_opcode.h"

#define HCA_ETH_LEN 14
#define HCA_VLAN_LEN 4
#define HCA_IPV4_LEN 20
#define HCA_IPV6_LEN 40
#define HCA_UDP_LEN 8

/* Longest headers in front of the payload. */
#define HCA_ROCE_MAX_HEADERS \
	(HCA_ETH_LEN + HCA_VLAN_LEN + HCA_IPV6_LEN + HCA_UDP_LEN + HCA_ROCE_BTH_LEN + 32)

/*
 * Reasons for which a frame is not accepted: X(NAME, name of the counter, foreign, meaning).
 * Foreign frames are not RoCE for us (exception path); the others claim to be RoCE and are
 * malformed.
 */
#define HCA_ROCE_DROP_LIST(X) \
	X(SHORT, short, 0, "ends inside the Ethernet, IP or UDP header") \
	X(NOT_IP, not_ip, 1, "neither IPv4 nor IPv6") \
	X(BAD_IP_VERSION, bad_ip_version, 0, "version differs from the ethertype") \
	X(IP_OPTIONS, ip_options, 0, "IPv4 header length is not 20") \
	X(IP_LEN, ip_len, 0, "IP length longer than the frame or too short for UDP") \
	X(FRAGMENT, fragment, 0, "IP fragment") \
	X(NOT_UDP, not_udp, 1, "IP protocol is not UDP") \
	X(NOT_ROCE, not_roce, 1, "UDP port is not RoCE") \
	X(UDP_LEN, udp_len, 0, "UDP length differs from the IP length") \
	X(HEADER_SHORT, header_short, 0, "ends inside BTH, extension headers or ICRC") \
	X(TVER, tver, 0, "transport version is not 0") \
	X(OPCODE, opcode, 0, "opcode is not defined or not supported") \
	X(PAD, pad, 0, "pad count exceeds the payload, or not whole words") \
	X(PAYLOAD, payload, 0, "payload after an opcode that has none") \
	X(ICRC, icrc, 0, "ICRC is wrong")

/* Returned negated. */
enum hca_roce_drop {
	HCA_ROCE_DROP_NONE = 0,
#define X(NAME, name, foreign, text) HCA_ROCE_DROP_##NAME,
	HCA_ROCE_DROP_LIST(X)
#undef X
	HCA_ROCE_DROP_COUNT
};

/* Name of the counter of a reason, negative or not; never NULL: "none" and "unknown" exist. */
const char *hca_roce_drop_name(int reason);
const char *hca_roce_drop_text(int reason);
bool hca_roce_drop_is_foreign(int reason);

/* A parsed frame: offsets are from the first byte of the frame. */
struct hca_roce_view {
	const struct hca_roce_opcode_info *op;
	uint32_t payload_len; /* bytes, without pad and ICRC */
	uint32_t icrc;	      /* offset; payload + payload_len + pad == icrc */
	uint32_t qpn;	      /* destination */
	uint32_t psn;
	uint16_t pkey;
	uint16_t l3;
	uint16_t bth;
	uint16_t payload;   /* offset: where the headers end */
	uint8_t ip_version; /* 4 or 6 */
	uint8_t opcode;
	uint8_t pad;
	bool ackreq;
	bool se;
	bool migreq;
};

/*
 * Parse a frame and check everything but the ICRC. Returns 0 or -enum hca_roce_drop. *v is valid on
 * 0, and, except for payload and payload_len, on -HCA_ROCE_DROP_OPCODE and later reasons of the
 * list, so that a responder can check ICRC, QP and PSN before it refuses an unknown opcode. Bytes
 * after the IP length (Ethernet padding) are ignored. The payload length is only limited by the
 * frame: the QP checks the MTU.
 */
int hca_roce_parse(const uint8_t *frame, uint32_t len, struct hca_roce_view *v);

/* Parse the transport part, from the BTH to the ICRC: n available bytes at frame + v->bth. */
static inline int
hca_roce_parse_bth(const uint8_t *frame, uint32_t n, struct hca_roce_view *v)
{
	const struct hca_bth *bth = (const void *)(frame + v->bth);
	uint32_t rest, psn;

	if (__builtin_expect(n < HCA_ROCE_BTH_LEN + HCA_ICRC_LEN, 0))
		return -HCA_ROCE_DROP_HEADER_SHORT;
	v->opcode = bth->opcode;
	v->op = &hca_roce_opcodes[v->opcode];
	v->se = (bth->flags & HCA_BTH_SE) != 0;
	v->migreq = (bth->flags & HCA_BTH_MIGREQ) != 0;
	v->pkey = hca_be16_to_cpu(bth->pkey);
	v->qpn = HCA_BTH_DQPN(hca_be32_to_cpu(bth->dqpn));
	psn = hca_be32_to_cpu(bth->psn);
	v->psn = HCA_BTH_PSN(psn);
	v->ackreq = (psn & HCA_BTH_ACKREQ) != 0;
	v->icrc = v->bth + n - HCA_ICRC_LEN;
	v->pad = HCA_BTH_PAD(bth->flags);
	if (__builtin_expect(HCA_BTH_TVER(bth->flags) != 0, 0))
		return -HCA_ROCE_DROP_TVER;
	if (__builtin_expect(!v->op->valid, 0))
		return -HCA_ROCE_DROP_OPCODE;
	if (__builtin_expect(n < v->op->header_len + HCA_ICRC_LEN, 0))
		return -HCA_ROCE_DROP_HEADER_SHORT;
	rest = n - v->op->header_len - HCA_ICRC_LEN;
	if (__builtin_expect(rest < v->pad || (rest & 3) != 0, 0))
		return -HCA_ROCE_DROP_PAD;
	if (__builtin_expect(!v->op->has_payload && rest != 0, 0))
		return -HCA_ROCE_DROP_PAYLOAD;
	v->payload = v->bth + v->op->header_len;
	v->payload_len = rest - v->pad;
	return 0;
}

static inline const uint8_t *
hca_roce_ones(uint8_t ip_version)
{
	return ip_version == 4 ? hca_icrc_ones_ipv4 : hca_icrc_ones_ipv6;
}

/* The span that the ICRC of a parsed frame covers, for crc_burst; the frame is not changed. */
static inline void
hca_roce_icrc_span(const uint8_t *frame, const struct hca_roce_view *v, struct hca_icrc_span *span)
{
	span->data = frame + v->l3;
	span->ones = hca_roce_ones(v->ip_version);
	span->len = v->icrc - v->l3;
	span->seed = HCA_ICRC_SEED;
}

/* 0 or -HCA_ROCE_DROP_ICRC. The burst path uses spans and compares for itself. */
int hca_roce_check_icrc(const struct hca_icrc_ops *ops, const uint8_t *frame,
			const struct hca_roce_view *v);

/* Extension headers in the CPU's order; imm is the four wire bytes, unchanged. */
struct hca_roce_headers {
	struct {
		uint32_t qkey;
		uint32_t src_qpn;
	} deth;
	uint32_t xrceth; /* remote SRQN */
	struct {
		uint64_t va;
		uint32_t rkey;
		uint32_t len;
	} reth;
	struct {
		uint64_t va;
		uint32_t rkey;
		uint64_t swap_add;
		uint64_t compare;
	} atomic;
	struct {
		uint8_t syndrome;
		uint32_t msn;
	} aeth;
	uint64_t original; /* AtomicAckETH */
	uint8_t imm[4];
	uint32_t ieth; /* rkey to invalidate */
};

/* Read the headers that info names, at bth; other members are unchanged. */
void hca_roce_get_headers(const uint8_t *bth, const struct hca_roce_opcode_info *info,
			  struct hca_roce_headers *h);
void hca_roce_put_headers(uint8_t *bth, const struct hca_roce_opcode_info *info,
			  const struct hca_roce_headers *h);

/* Where a connection's frames go and what their L2 to L4 headers say. */
struct hca_roce_path {
	uint8_t dmac[6];
	uint8_t smac[6];
	bool vlan;
	uint16_t vlan_tci;   /* priority, DEI, VLAN id */
	uint8_t ip_version;  /* 4 or 6 */
	uint8_t tclass;	     /* TOS or traffic class, ECN included */
	uint8_t hop_limit;   /* or TTL */
	uint16_t ip_id;	     /* IPv4 identification; 0 with DF */
	uint32_t flow_label; /* IPv6 */
	uint8_t sip[16];     /* IPv4: ::ffff:a.b.c.d, or just the last four bytes */
	uint8_t dip[16];
	uint16_t udp_sport;
	uint16_t pkey;
	uint32_t qpn; /* destination; UD frames set it each time */
	bool migreq;
};

#define HCA_ROCE_TEMPLATE_LEN \
	(HCA_ETH_LEN + HCA_VLAN_LEN + HCA_IPV6_LEN + HCA_UDP_LEN + HCA_ROCE_BTH_LEN)

/*
 * Ready-made headers up to the end of the BTH. Real values, not ones, stand in the variant fields:
 * the ICRC kernels mask while they read. hca_roce_finish() fills in what differs per packet.
 */
struct hca_roce_template {
	uint8_t bytes[HCA_ROCE_TEMPLATE_LEN];
	uint8_t len; /* to the end of the BTH */
	uint8_t l3;
	uint8_t bth;
	uint8_t ip_version;
	bool migreq;
	uint32_t ip_sum; /* IPv4 words without total length and checksum, not yet folded */
};

/* Returns 0, or -EINVAL for an IP version other than 4 and 6 or a number that does not fit. */
int hca_roce_template_fill(const struct hca_roce_path *path, struct hca_roce_template *t);

/* Source port of a QP pair: 0xC000 and 14 bits of a hash, so that paths spread over ECMP. */
uint16_t hca_roce_udp_sport(uint32_t local_qpn, uint32_t remote_qpn);

static inline uint16_t
hca_ip_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* What differs per packet. */
struct hca_roce_packet {
	uint8_t opcode;
	bool se;
	bool ackreq;
	uint32_t psn; /* 24 bits */
	uint32_t payload_len;
};

/* Length of the frame without ICRC and Ethernet padding, pad bytes included. */
static inline uint32_t
hca_roce_frame_len(const struct hca_roce_template *t, uint8_t opcode, uint32_t payload_len)
{
	return t->bth + hca_roce_opcodes[opcode].header_len + ((payload_len + 3) & ~3U);
}

/*
 * Completes the lengths, the IP checksum and the BTH in a frame that begins with a copy of
 * t->bytes. payload_len is bounded by the caller (one MTU). Extension headers, payload, pad bytes
 * (zero) and ICRC are the caller's.
 */
static inline void
hca_roce_finish(uint8_t *frame, const struct hca_roce_template *t, const struct hca_roce_packet *p)
{
	struct hca_bth *bth = (void *)(frame + t->bth);
	struct hca_udp_hdr *udp = (void *)(frame + t->bth - HCA_UDP_LEN);
	uint32_t udp_len = hca_roce_frame_len(t, p->opcode, p->payload_len) + HCA_ICRC_LEN -
			   t->bth + HCA_UDP_LEN;

	if (t->ip_version == 4) {
		struct hca_ipv4_hdr *ip = (void *)(frame + t->l3);
		uint32_t total = udp_len + HCA_IPV4_LEN;

		ip->total_len = hca_cpu_to_be16(total);
		ip->csum = hca_cpu_to_be16(~hca_ip_fold(t->ip_sum + total));
	} else {
		struct hca_ipv6_hdr *ip = (void *)(frame + t->l3);

		ip->payload_len = hca_cpu_to_be16(udp_len);
	}
	udp->len = hca_cpu_to_be16(udp_len);
	bth->opcode = p->opcode;
	bth->flags = HCA_BTH_MAKE_FLAGS(p->se, t->migreq, -p->payload_len & 3);
	bth->psn = hca_cpu_to_be32(HCA_BTH_MAKE_PSN(p->ackreq, p->psn));
}

/*
 * A whole frame, ICRC included, for tests and for packets that are not worth a fast path.
 * Returns its length, -EINVAL for an unknown opcode or a payload where none may be, or -ENOSPC.
 */
int hca_roce_build(const struct hca_icrc_ops *ops, const struct hca_roce_template *t,
		   const struct hca_roce_packet *p, const struct hca_roce_headers *h,
		   const void *payload, uint8_t *out, uint32_t room);

/* Recompute the ICRC of a frame whose headers were changed. v: from hca_roce_parse(). */
void hca_roce_seal(const struct hca_icrc_ops *ops, uint8_t *frame, const struct hca_roce_view *v);

#endif
