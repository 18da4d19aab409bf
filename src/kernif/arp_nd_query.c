/* SPDX-License-Identifier: BSD-3-Clause */

/* Queries for groups: IGMP (RFC 3376 section 4.1) and MLD (RFC 3810 sections 5.1, 6.2). */

#include "arp_nd_impl.h"

#define IGMP_QUERY 0x11u
#define IGMP_QUERY_3 12u /* size from which on a query is of IGMPv3; 8: IGMPv1 or IGMPv2 */
#define IGMP_TENTH 100000000ull
#define IGMP_WITHIN_1 (100 * IGMP_TENTH) /* IGMPv1 says nothing */
#define MLD_QUERY 130u
#define MLD_QUERY_1 24u /* bytes */
#define MLD_QUERY_2 28u
#define MLD_MS 1000000ull
#define ROUTER_ALERT 5u

static uint16_t
be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

/* Maximum Response Code of IGMPv3: tenths of a second, from 128 on a floating-point number. */
static uint32_t
igmp_tenths(uint8_t code)
{
	return code < 128 ? code : (uint32_t)((code & 0xf) | 0x10) << (((code >> 4) & 7) + 3);
}

/* That of MLDv2: milliseconds, from 32768 on a floating-point number. */
static uint32_t
mld_ms(uint16_t code)
{
	return code < 32768 ? code
			    : (uint32_t)((code & 0xfff) | 0x1000) << (((code >> 12) & 7) + 3);
}

/* False: of a length that no version has. */
static bool
igmp_parse(const uint8_t *m, uint32_t len, struct group_query *q)
{
	static const uint8_t none[4];

	q->protocol = GROUP_IGMP;
	q->general = memcmp(m + 4, none, 4) == 0;
	hca_gid_from_ip4(q->group, m + 4);
	if (len >= IGMP_QUERY_3) {
		q->generation = 0;
		q->within = igmp_tenths(m[1]) * IGMP_TENTH;
	} else if (len == 8) {
		q->generation = m[1] != 0 ? 1 : 2;
		q->within = m[1] != 0 ? m[1] * IGMP_TENTH : IGMP_WITHIN_1;
	} else {
		return false;
	}
	return q->general || hca_gid_is_multicast(q->group);
}

/* A general query is sent to all hosts, another one to its group. */
static bool
igmp_addressed(const uint8_t dst[4], const struct group_query *q)
{
	static const uint8_t all_hosts[4] = {224, 0, 0, 1};

	return memcmp(dst, q->general ? all_hosts : q->group + 12, 4) == 0;
}

void
arp_nd_input_igmp(struct arp_nd *a, const struct arp_nd_frame *f, uint64_t now)
{
	const uint8_t *p = f->bytes + f->l3, *message;
	uint32_t header = (p[0] & 0xfu) * 4, total = be16(p + 2), len;
	struct group_query q;
	uint8_t gid[16];

	/* the caller has checked that the frame has 20 bytes of IP and 8 more */
	if (p[0] >> 4 != 4 || header < sizeof(struct rte_ipv4_hdr) || total > f->len - f->l3 ||
	    total < header + 8 || rte_raw_cksum(p, header) != 0xffff ||
	    rte_raw_cksum(p + header, total - header) != 0xffff) {
		a->stats.malformed++;
		return;
	}
	message = p + header;
	len = total - header;
	hca_gid_from_ip4(gid, p + 12);
	if (arp_nd_own(a, gid, f->vlan_id) != NULL)
		a->stats.spoofed++;
	else if (message[0] != IGMP_QUERY)
		a->stats.other_protocol++;
	else if (!igmp_parse(message, len, &q) || !igmp_addressed(p + 16, &q))
		a->stats.malformed++;
	else
		arp_nd_group_asked(a, f->vlan_id, &q, now);
}

/* Whether the options of a hop-by-hop header have the router alert of MLD. */
static bool
has_alert(const uint8_t *option, uint32_t len)
{
	uint32_t off = 2;

	while (off < len) {
		if (option[off] == 0) { /* Pad1 */
			off++;
			continue;
		}
		if (len - off < 2 || len - off - 2 < option[off + 1])
			return false;
		if (option[off] == ROUTER_ALERT && option[off + 1] == 2)
			return be16(option + off + 2) == 0;
		off += 2u + option[off + 1];
	}
	return false;
}

static bool
mld_parse(const uint8_t *m, uint32_t len, struct group_query *q)
{
	static const uint8_t none[16];

	if (m[1] != 0 || (len != MLD_QUERY_1 && len < MLD_QUERY_2))
		return false;
	q->protocol = GROUP_MLD;
	q->generation = len == MLD_QUERY_1;
	q->within = (q->generation != 0 ? be16(m + 4) : mld_ms(be16(m + 4))) * MLD_MS;
	memcpy(q->group, m + 8, 16);
	q->general = memcmp(q->group, none, 16) == 0;
	return q->general || q->group[0] == 0xff;
}

/* ip: with the protocol and length of the message, for the checksum. */
static void
mld_query(struct arp_nd *a, const struct arp_nd_frame *f, const struct rte_ipv6_hdr *ip,
	  const uint8_t *m, uint32_t len, uint64_t now)
{
	const uint8_t *src = DPDK_IP6(ip->src_addr);
	struct group_query q;

	/* only neighbours are accepted */
	if (ip->hop_limits != 1 || src[0] != 0xfe || (src[1] & 0xc0) != 0x80 ||
	    !mld_parse(m, len, &q))
		a->stats.malformed++;
	else if (arp_nd_own(a, src, f->vlan_id) != NULL)
		a->stats.spoofed++;
	else
		arp_nd_group_asked(a, f->vlan_id, &q, now);
}

void
arp_nd_input_options6(struct arp_nd *a, const struct arp_nd_frame *f, uint64_t now)
{
	const uint8_t *options = f->bytes + f->l3 + sizeof(struct rte_ipv6_hdr);
	struct rte_ipv6_hdr ip;
	uint32_t payload, header;

	/* the caller has checked that the frame has 40 bytes of IP and 4 more */
	memcpy(&ip, f->bytes + f->l3, sizeof(ip));
	payload = rte_be_to_cpu_16(ip.payload_len);
	header = (options[1] + 1u) * 8;
	if (payload > f->len - f->l3 - sizeof(ip) || payload < header + 8) {
		a->stats.malformed++;
		return;
	}
	if (options[0] != IPPROTO_ICMPV6 || options[header] != MLD_QUERY ||
	    !has_alert(options, header)) {
		a->stats.other_protocol++;
		return;
	}
	ip.proto = IPPROTO_ICMPV6;
	ip.payload_len = rte_cpu_to_be_16((uint16_t)(payload - header));
	if (rte_ipv6_udptcp_cksum(&ip, options + header) != 0)
		a->stats.malformed++;
	else
		mld_query(a, f, &ip, options + header, payload - header, now);
}
