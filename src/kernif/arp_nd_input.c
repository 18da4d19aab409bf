/* SPDX-License-Identifier: BSD-3-Clause */

/* Received frames: checked completely, then answered or learned from. */

#include "arp_nd_impl.h"

#define VID_MASK 0xfffu
#define TTL 64u

static uint16_t
be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* Parse the Ethernet header; a priority tag counts as no VLAN. False: the frame is too short. */
static bool
open_frame(const uint8_t *bytes, uint32_t len, struct arp_nd_frame *f)
{
	*f = (struct arp_nd_frame){.bytes = bytes,
				   .len = len,
				   .l3 = RTE_ETHER_HDR_LEN,
				   .vlan_id = ARP_ND_NO_VLAN};
	if (len < RTE_ETHER_HDR_LEN)
		return false;
	f->type = be16(bytes + 12);
	if (f->type != RTE_ETHER_TYPE_VLAN)
		return true;
	if (len < RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN)
		return false;
	f->l3 += RTE_VLAN_HLEN;
	f->type = be16(bytes + 16);
	if ((be16(bytes + 14) & VID_MASK) != 0)
		f->vlan_id = be16(bytes + 14) & VID_MASK;
	return true;
}

static const uint8_t *
source_mac(const struct arp_nd_frame *f)
{
	return f->bytes + 6;
}

static bool
to_us_alone(const struct arp_nd *a, const struct arp_nd_frame *f)
{
	return memcmp(f->bytes, a->cfg.mac, 6) == 0;
}

/* ---- ARP ---- */

static void
arp_request(struct arp_nd *a, const struct arp_nd_frame *f, const struct rte_arp_hdr *h,
	    uint64_t now)
{
	const uint8_t *sha = (const uint8_t *)&h->arp_data.arp_sha;
	const uint8_t *spa = (const uint8_t *)&h->arp_data.arp_sip;
	const uint8_t *tpa = (const uint8_t *)&h->arp_data.arp_tip;
	uint8_t gid[16];

	hca_gid_from_ip4(gid, tpa);
	if (arp_nd_own(a, gid, f->vlan_id) == NULL) {
		hca_gid_from_ip4(gid, spa);
		if (memcmp(spa, tpa, 4) == 0) /* gratuitous */
			arp_nd_heard(a, gid, f->vlan_id, sha, false, NULL, now);
		else
			a->stats.not_ours++;
		return;
	}
	if (!arp_nd_may_answer(a, now))
		return;
	a->stats.arp_requests++;
	arp_nd_send_arp(a, RTE_ARP_OP_REPLY, f->vlan_id, tpa, sha, spa, sha);
}

static void
input_arp(struct arp_nd *a, const struct arp_nd_frame *f, uint64_t now)
{
	struct rte_arp_hdr h;
	uint8_t gid[16];

	if (f->len - f->l3 < sizeof(h)) {
		a->stats.malformed++;
		return;
	}
	memcpy(&h, f->bytes + f->l3, sizeof(h));
	if (h.arp_hardware != rte_cpu_to_be_16(RTE_ARP_HRD_ETHER) ||
	    h.arp_protocol != rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4) || h.arp_hlen != 6 ||
	    h.arp_plen != 4) {
		a->stats.malformed++;
		return;
	}
	hca_gid_from_ip4(gid, &h.arp_data.arp_sip);
	if (!hca_mac_is_unicast((const uint8_t *)&h.arp_data.arp_sha) ||
	    memcmp(&h.arp_data.arp_sha, a->cfg.mac, 6) == 0 ||
	    arp_nd_own(a, gid, f->vlan_id) != NULL)
		a->stats.spoofed++;
	else if (h.arp_opcode == rte_cpu_to_be_16(RTE_ARP_OP_REQUEST))
		arp_request(a, f, &h, now);
	else if (h.arp_opcode == rte_cpu_to_be_16(RTE_ARP_OP_REPLY))
		arp_nd_heard(a, gid, f->vlan_id, (const uint8_t *)&h.arp_data.arp_sha,
			     to_us_alone(a, f), &a->stats.arp_answers, now);
	else
		a->stats.malformed++;
}

/* ---- IPv4 ---- */

/* Send an echo reply: the request with its addresses swapped. */
static void
answer_echo4(struct arp_nd *a, const struct arp_nd_frame *f, uint32_t total)
{
	uint8_t out[ARP_ND_FRAME_MAX];
	uint32_t off = arp_nd_ether(a, out, source_mac(f), f->vlan_id, RTE_ETHER_TYPE_IPV4);
	struct rte_ipv4_hdr *ip = (void *)(out + off);
	struct rte_icmp_hdr *icmp = (void *)(ip + 1);
	rte_be32_t src;

	memcpy(ip, f->bytes + f->l3, total);
	src = ip->src_addr;
	ip->src_addr = ip->dst_addr;
	ip->dst_addr = src;
	ip->time_to_live = TTL;
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	icmp->icmp_type = RTE_ICMP_TYPE_ECHO_REPLY;
	icmp->icmp_cksum = 0;
	icmp->icmp_cksum = (uint16_t)~rte_raw_cksum(icmp, total - sizeof(*ip));
	a->stats.echo_requests++;
	a->cfg.send(a->cfg.arg, out, off + total);
}

/* Check header, lengths and checksums of an echo request; total is the length of the IP packet. */
static bool
good_echo4(const struct arp_nd_frame *f, const struct rte_ipv4_hdr *ip, uint32_t total)
{
	const uint8_t *p = f->bytes + f->l3;

	return total <= f->len - f->l3 && total >= sizeof(*ip) + sizeof(struct rte_icmp_hdr) &&
	       rte_raw_cksum(p, sizeof(*ip)) == 0xffff &&
	       rte_raw_cksum(p + sizeof(*ip), total - sizeof(*ip)) == 0xffff;
}

static bool
host4(const uint8_t *ip)
{
	return ip[0] != 0 && ip[0] != 127 && ip[0] < 224;
}

static void
input_ip4(struct arp_nd *a, const struct arp_nd_frame *f, uint64_t now)
{
	struct rte_ipv4_hdr ip;
	struct rte_icmp_hdr icmp;
	uint32_t total;
	uint8_t gid[16];

	if (f->len - f->l3 < sizeof(ip) + sizeof(icmp)) {
		a->stats.malformed++;
		return;
	}
	memcpy(&ip, f->bytes + f->l3, sizeof(ip));
	memcpy(&icmp, f->bytes + f->l3 + sizeof(ip), sizeof(icmp));
	if (ip.next_proto_id == IPPROTO_IGMP) {
		arp_nd_input_igmp(a, f, now);
		return;
	}
	total = rte_be_to_cpu_16(ip.total_length);
	hca_gid_from_ip4(gid, &ip.dst_addr);
	if (!to_us_alone(a, f) || arp_nd_own(a, gid, f->vlan_id) == NULL) {
		a->stats.not_ours++;
		return;
	}
	hca_gid_from_ip4(gid, &ip.src_addr);
	if (ip.version_ihl != RTE_IPV4_VHL_DEF || ip.next_proto_id != IPPROTO_ICMP ||
	    (rte_be_to_cpu_16(ip.fragment_offset) & ~RTE_IPV4_HDR_DF_FLAG) != 0 ||
	    icmp.icmp_type != RTE_ICMP_TYPE_ECHO_REQUEST || icmp.icmp_code != 0)
		a->stats.other_protocol++;
	else if (!host4((const uint8_t *)&ip.src_addr) || arp_nd_own(a, gid, f->vlan_id) != NULL)
		a->stats.spoofed++;
	else if (!good_echo4(f, &ip, total))
		a->stats.malformed++;
	else if (arp_nd_may_answer(a, now))
		answer_echo4(a, f, total);
}

/* ---- IPv6 ---- */

struct ip6_packet {
	struct rte_ipv6_hdr ip;
	const uint8_t *body; /* ICMPv6 */
	uint32_t len;
};

/* Find the link-layer address option of a kind (*mac NULL: absent). False: malformed options. */
static bool
find_option(const struct ip6_packet *p, uint8_t kind, const uint8_t **mac)
{
	uint32_t off = offsetof(struct nd_message, option);

	*mac = NULL;
	while (off < p->len) {
		uint32_t bytes;

		if (p->len - off < 8)
			return false;
		bytes = p->body[off + 1] * 8u;
		if (bytes == 0 || bytes > p->len - off)
			return false;
		if (p->body[off] == kind && bytes == 8)
			*mac = p->body + off + 2;
		off += bytes;
	}
	return *mac == NULL || hca_mac_is_unicast(*mac);
}

static bool
unspecified(const uint8_t ip[16])
{
	static const uint8_t zero[16];

	return memcmp(ip, zero, 16) == 0;
}

/* Validity of a neighbour discovery message, RFC 4861 section 7.1. */
static bool
good_nd(const struct ip6_packet *p)
{
	return p->ip.hop_limits == ND_HOP_LIMIT && p->body[1] == 0 &&
	       p->len >= offsetof(struct nd_message, option) &&
	       p->body[offsetof(struct nd_message, target)] != 0xff;
}

static void
solicitation(struct arp_nd *a, const struct arp_nd_frame *f, const struct ip6_packet *p,
	     uint64_t now)
{
	static const uint8_t all_nodes[16] = {0xff, 2, [15] = 1};
	static const uint8_t all_nodes_mac[6] = {0x33, 0x33, 0, 0, 0, 1};
	const uint8_t *target = p->body + offsetof(struct nd_message, target), *mac;
	bool probe = unspecified(DPDK_IP6(p->ip.src_addr));

	if (!good_nd(p) || !find_option(p, ND_OPTION_SOURCE, &mac) ||
	    (probe && (mac != NULL || DPDK_IP6(p->ip.dst_addr)[0] != 0xff))) {
		a->stats.malformed++;
		return;
	}
	if (arp_nd_own(a, target, f->vlan_id) == NULL) {
		a->stats.not_ours++;
		return;
	}
	if (!arp_nd_may_answer(a, now))
		return;
	a->stats.nd_requests++;
	if (probe)
		arp_nd_send_nd(a, ND_ADVERT, ND_OVERRIDE, f->vlan_id, target, all_nodes, target,
			       all_nodes_mac);
	else
		arp_nd_send_nd(a, ND_ADVERT, ND_SOLICITED | ND_OVERRIDE, f->vlan_id, target,
			       DPDK_IP6(p->ip.src_addr), target, mac != NULL ? mac : source_mac(f));
}

static void
advertisement(struct arp_nd *a, const struct arp_nd_frame *f, const struct ip6_packet *p,
	      uint64_t now)
{
	const uint8_t *target = p->body + offsetof(struct nd_message, target), *mac;
	bool solicited;

	if (!good_nd(p) || !find_option(p, ND_OPTION_TARGET, &mac)) {
		a->stats.malformed++;
		return;
	}
	if (arp_nd_own(a, target, f->vlan_id) != NULL) {
		a->stats.spoofed++;
		return;
	}
	solicited = (p->body[4] & (ND_SOLICITED >> 24)) != 0 && to_us_alone(a, f);
	if (mac == NULL)
		a->stats.unasked++;
	else
		arp_nd_heard(a, target, f->vlan_id, mac, solicited, &a->stats.nd_answers, now);
}

static void
echo6(struct arp_nd *a, const struct arp_nd_frame *f, const struct ip6_packet *p, uint64_t now)
{
	uint8_t out[ARP_ND_FRAME_MAX];
	uint32_t off = arp_nd_ether(a, out, source_mac(f), f->vlan_id, RTE_ETHER_TYPE_IPV6);
	struct rte_ipv6_hdr *ip = (void *)(out + off);
	uint8_t *body = (uint8_t *)(ip + 1);

	if (p->len < sizeof(struct rte_icmp_hdr) || p->body[1] != 0) {
		a->stats.malformed++;
		return;
	}
	if (arp_nd_own(a, DPDK_IP6(p->ip.dst_addr), f->vlan_id) == NULL || !to_us_alone(a, f)) {
		a->stats.not_ours++;
		return;
	}
	if (!arp_nd_may_answer(a, now))
		return;
	*ip = p->ip;
	memcpy(&ip->src_addr, &p->ip.dst_addr, 16);
	memcpy(&ip->dst_addr, &p->ip.src_addr, 16);
	ip->hop_limits = TTL;
	memcpy(body, p->body, p->len);
	body[0] = ND_ECHO_REPLY;
	body[2] = body[3] = 0;
	((struct rte_icmp_hdr *)body)->icmp_cksum = rte_ipv6_udptcp_cksum(ip, body);
	a->stats.echo_requests++;
	a->cfg.send(a->cfg.arg, out, off + (uint32_t)sizeof(*ip) + p->len);
}

static void
input_icmp6(struct arp_nd *a, const struct arp_nd_frame *f, const struct ip6_packet *p,
	    uint64_t now)
{
	switch (p->body[0]) {
	case ND_SOLICIT:
		solicitation(a, f, p, now);
		break;
	case ND_ADVERT:
		advertisement(a, f, p, now);
		break;
	case ND_ECHO_REQUEST:
		echo6(a, f, p, now);
		break;
	default:
		a->stats.other_protocol++;
	}
}

static void
input_ip6(struct arp_nd *a, const struct arp_nd_frame *f, uint64_t now)
{
	struct ip6_packet p;

	if (f->len - f->l3 < sizeof(p.ip) + 4) {
		a->stats.malformed++;
		return;
	}
	memcpy(&p.ip, f->bytes + f->l3, sizeof(p.ip));
	p.body = f->bytes + f->l3 + sizeof(p.ip);
	p.len = rte_be_to_cpu_16(p.ip.payload_len);
	if (p.ip.proto == IPPROTO_HOPOPTS)
		arp_nd_input_options6(a, f, now);
	else if (p.ip.proto != IPPROTO_ICMPV6)
		a->stats.other_protocol++;
	else if (p.len < 4 || p.len > f->len - f->l3 - sizeof(p.ip) ||
		 rte_ipv6_udptcp_cksum(&p.ip, p.body) != 0)
		a->stats.malformed++;
	else if (DPDK_IP6(p.ip.src_addr)[0] == 0xff ||
		 arp_nd_own(a, DPDK_IP6(p.ip.src_addr), f->vlan_id) != NULL)
		a->stats.spoofed++;
	else
		input_icmp6(a, f, &p, now);
}

void
arp_nd_input(struct arp_nd *a, const uint8_t *frame, uint32_t len, uint64_t now)
{
	struct arp_nd_frame f;

	if (len > ARP_ND_FRAME_MAX || !open_frame(frame, len, &f)) {
		a->stats.malformed++;
		return;
	}
	if ((frame[0] & 1) == 0 && !to_us_alone(a, &f)) {
		a->stats.not_ours++;
		return;
	}
	if (!hca_mac_is_unicast(source_mac(&f)) || memcmp(source_mac(&f), a->cfg.mac, 6) == 0)
		a->stats.spoofed++;
	else if (f.type == RTE_ETHER_TYPE_ARP)
		input_arp(a, &f, now);
	else if (f.type == RTE_ETHER_TYPE_IPV4)
		input_ip4(a, &f, now);
	else if (f.type == RTE_ETHER_TYPE_IPV6)
		input_ip6(a, &f, now);
	else
		a->stats.other_protocol++;
}
