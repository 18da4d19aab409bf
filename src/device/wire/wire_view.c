/* SPDX-License-Identifier: BSD-3-Clause */
#include "abi_roce.h"
#include "abi_ub.h"
#include "wire/wire_view.h"

#define EXT_HEADERS 8u /* IPv6 extension headers that are skipped at most */
#define IPPROTO_HOP 0u
#define IPPROTO_ROUTE 43u
#define IPPROTO_FRAG 44u
#define IPPROTO_DST 60u

static enum hca_wire
wire_of_port(uint16_t port)
{
	switch (port) {
#define X(NAME, name) \
	case HCA_##NAME##_UDP_PORT: \
		return HCA_WIRE_##NAME;
		HCA_WIRE_LIST(X)
#undef X
	default:
		return HCA_WIRE_NONE;
	}
}

uint16_t
hca_wire_udp_port(enum hca_wire wire)
{
	static const uint16_t ports[HCA_WIRES] = {
#define X(NAME, name) [HCA_WIRE_##NAME] = HCA_##NAME##_UDP_PORT,
		HCA_WIRE_LIST(X)
#undef X
	};

	return ports[wire];
}

/* ---- frames that are taken ---- */

/*
 * Each layer's parser gets its start and the available bytes, and returns the length of the UDP
 * datagram or a drop reason.
 */
static int
parse_ipv4(const uint8_t *l3, uint32_t avail)
{
	const struct hca_ipv4_hdr *ip = (const void *)l3;
	uint32_t total;

	if (avail < 1)
		return -HCA_WIRE_DROP_SHORT;
	if (ip->ver_ihl >> 4 != 4)
		return -HCA_WIRE_DROP_BAD_IP_VERSION;
	if (avail < HCA_IPV4_LEN)
		return -HCA_WIRE_DROP_SHORT;
	if (ip->proto != HCA_IPPROTO_UDP)
		return -HCA_WIRE_DROP_NOT_UDP;
	if (ip->ver_ihl != HCA_IPV4_VER_IHL)
		return -HCA_WIRE_DROP_IP_OPTIONS;
	total = hca_be16_to_cpu(ip->total_len);
	if (total > avail || total < HCA_IPV4_LEN + HCA_UDP_LEN)
		return -HCA_WIRE_DROP_IP_LEN;
	if ((hca_be16_to_cpu(ip->frag) & HCA_IPV4_FRAG_MASK) != 0)
		return -HCA_WIRE_DROP_FRAGMENT;
	return total - HCA_IPV4_LEN;
}

static int
parse_ipv6(const uint8_t *l3, uint32_t avail)
{
	const struct hca_ipv6_hdr *ip = (const void *)l3;
	uint32_t payload;

	if (avail < 1)
		return -HCA_WIRE_DROP_SHORT;
	if (l3[0] >> 4 != 6)
		return -HCA_WIRE_DROP_BAD_IP_VERSION;
	if (avail < HCA_IPV6_LEN)
		return -HCA_WIRE_DROP_SHORT;
	if (ip->next_hdr != HCA_IPPROTO_UDP)
		return -HCA_WIRE_DROP_NOT_UDP;
	payload = hca_be16_to_cpu(ip->payload_len);
	if (payload > avail - HCA_IPV6_LEN || payload < HCA_UDP_LEN)
		return -HCA_WIRE_DROP_IP_LEN;
	return payload;
}

/* Ethertype and where the IP header begins; 0: the frame ends before. */
static uint16_t
ethertype(const uint8_t *frame, uint32_t len, uint32_t *l3)
{
	uint16_t type;

	*l3 = HCA_ETH_LEN;
	if (len < *l3)
		return 0;
	type = hca_get_be16(frame + 12);
	if (type != HCA_ETHERTYPE_VLAN)
		return type;
	*l3 += HCA_VLAN_LEN;
	return len < *l3 ? 0 : hca_get_be16(frame + 16);
}

/* Sets l3 and the IP version; answers as the layers do. */
static int
parse_ip(const uint8_t *frame, uint32_t len, struct hca_wire_view *v)
{
	uint32_t l3;
	uint16_t type = ethertype(frame, len, &l3);

	if (len < l3)
		return -HCA_WIRE_DROP_SHORT;
	if (type != HCA_ETHERTYPE_IPV4 && type != HCA_ETHERTYPE_IPV6)
		return -HCA_WIRE_DROP_NOT_IP;
	v->l3 = l3;
	v->ip_version = type == HCA_ETHERTYPE_IPV4 ? 4 : 6;
	return v->ip_version == 4 ? parse_ipv4(frame + l3, len - l3)
				  : parse_ipv6(frame + l3, len - l3);
}

int
hca_wire_parse(const uint8_t *frame, uint32_t len, struct hca_wire_view *v)
{
	int udp_len = parse_ip(frame, len, v);
	const struct hca_udp_hdr *udp;

	v->wire = HCA_WIRE_NONE;
	if (udp_len < 0)
		return udp_len;
	v->transport = v->l3 + (v->ip_version == 4 ? HCA_IPV4_LEN : HCA_IPV6_LEN) + HCA_UDP_LEN;
	udp = (const void *)(frame + v->transport - HCA_UDP_LEN);
	v->wire = wire_of_port(hca_be16_to_cpu(udp->dport));
	if (v->wire == HCA_WIRE_NONE)
		return -HCA_WIRE_DROP_NOT_ROCE;
	if (hca_be16_to_cpu(udp->len) != udp_len)
		return -HCA_WIRE_DROP_UDP_LEN;
	switch (v->wire) {
#define X(NAME, name) \
	case HCA_WIRE_##NAME: \
		return hca_##name##_parse(frame, udp_len - HCA_UDP_LEN, v);
		HCA_WIRE_LIST(X)
#undef X
	default:
		return -HCA_WIRE_DROP_NOT_ROCE;
	}
}

bool
hca_wire_is_data(const struct hca_wire_view *v)
{
	switch (v->wire) {
#define X(NAME, name) \
	case HCA_WIRE_##NAME: \
		return hca_##name##_is_data(v);
		HCA_WIRE_LIST(X)
#undef X
	default:
		return false;
	}
}

/* ---- frames that are the device's to judge ---- */

/* A UDP header at off, of which the destination port is in the frame. */
static enum hca_wire
wire_of_udp(const uint8_t *p, uint32_t len, uint32_t off)
{
	return off + 4 <= len ? wire_of_port(hca_get_be16(p + off + 2)) : HCA_WIRE_NONE;
}

static enum hca_wire
wire_of_ip4(const uint8_t *p, uint32_t len, uint32_t off)
{
	uint32_t header;

	if (off + HCA_IPV4_LEN > len || p[off + 9] != HCA_IPPROTO_UDP)
		return HCA_WIRE_NONE;
	header = (p[off] & 15) * 4u;
	if (p[off] >> 4 != 4 || header < HCA_IPV4_LEN)
		return HCA_WIRE_NONE;
	/* A fragment that is not the first has no ports. */
	if ((hca_get_be16(p + off + 6) & 0x1fff) != 0)
		return HCA_WIRE_NONE;
	return wire_of_udp(p, len, off + header);
}

static enum hca_wire
wire_of_ip6(const uint8_t *p, uint32_t len, uint32_t off)
{
	uint32_t next;

	if (off + HCA_IPV6_LEN > len || p[off] >> 4 != 6)
		return HCA_WIRE_NONE;
	next = p[off + 6];
	off += HCA_IPV6_LEN;
	for (unsigned int i = 0; i < EXT_HEADERS; i++) {
		if (next == HCA_IPPROTO_UDP)
			return wire_of_udp(p, len, off);
		if (off + 8 > len || (next != IPPROTO_HOP && next != IPPROTO_ROUTE &&
				      next != IPPROTO_FRAG && next != IPPROTO_DST))
			return HCA_WIRE_NONE;
		if (next == IPPROTO_FRAG && (hca_get_be16(p + off + 2) & 0xfff8) != 0)
			return HCA_WIRE_NONE;
		next = p[off];
		off += hca_get_be16(p + off) & 0xff ? (p[off + 1] + 1u) * 8 : 8;
	}
	return HCA_WIRE_NONE;
}

enum hca_wire
hca_wire_of(const uint8_t *frame, uint32_t len)
{
	uint32_t l3;

	switch (ethertype(frame, len, &l3)) {
	case HCA_ETHERTYPE_IPV4:
		return wire_of_ip4(frame, len, l3);
	case HCA_ETHERTYPE_IPV6:
		return wire_of_ip6(frame, len, l3);
	default:
		return HCA_WIRE_NONE;
	}
}
