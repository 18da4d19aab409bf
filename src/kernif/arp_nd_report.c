/* SPDX-License-Identifier: BSD-3-Clause */

/* Messages that tell which groups this host is in: IGMPv1 to IGMPv3, MLDv1 and MLDv2. */

#include "arp_nd_impl.h"

#define FRAME_MIN 60u /* without FCS */
#define IGMP_REPORT_1 0x12u
#define IGMP_REPORT_2 0x16u
#define IGMP_LEAVE 0x17u
#define IGMP_REPORT_3 0x22u
#define MLD_REPORT_1 131u
#define MLD_DONE 132u
#define MLD_REPORT_2 143u
#define IGMP_RECORD 8u /* bytes, without sources */
#define MLD_RECORD 20u
#define TOS 0xc0u /* internetwork control, RFC 3376 section 4 */

/* The header of IPv4 with the router alert option. */
struct igmp_ip {
	struct rte_ipv4_hdr ip;
	uint8_t alert[4];
};

/* The header of IPv6, and the hop-by-hop header with the router alert option of MLD. */
struct mld_ip {
	struct rte_ipv6_hdr ip;
	uint8_t options[8];
};

#define REPORT_FRAME_MAX \
	(RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN + sizeof(struct mld_ip) + 8 + GROUP_REPORT_MAX)

static void
put16(uint8_t *p, uint16_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

/* ---- IGMP ---- */

/* An own address of the VLAN; without one 0.0.0.0 (RFC 3376 section 4.2.13). */
static void
igmp_source(const struct arp_nd *a, uint16_t vlan_id, void *ip)
{
	memset(ip, 0, 4);
	for (uint32_t i = 0; i < a->cfg.num_addresses; i++)
		if (a->address[i].vlan_id == vlan_id && hca_gid_is_mapped(a->address[i].gid)) {
			memcpy(ip, a->address[i].gid + 12, 4);
			return;
		}
}

static void
igmp_send(struct arp_nd *a, uint16_t vlan_id, const uint8_t dst[16], uint8_t *message, uint32_t len)
{
	struct igmp_ip h = {
		.ip = {.version_ihl = 0x46,
		       .type_of_service = TOS,
		       .total_length = rte_cpu_to_be_16((uint16_t)(sizeof(h) + len)),
		       .fragment_offset = rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG),
		       .time_to_live = 1,
		       .next_proto_id = IPPROTO_IGMP},
		.alert = {0x94, 4, 0, 0},
	};
	uint8_t frame[REPORT_FRAME_MAX] = {0}, mac[6];
	uint16_t sum;
	uint32_t off;

	hca_gid_multicast_mac(dst, mac);
	off = arp_nd_ether(a, frame, mac, vlan_id, RTE_ETHER_TYPE_IPV4);
	igmp_source(a, vlan_id, &h.ip.src_addr);
	memcpy(&h.ip.dst_addr, dst + 12, 4);
	h.ip.hdr_checksum = (uint16_t)~rte_raw_cksum(&h, sizeof(h));
	sum = (uint16_t)~rte_raw_cksum(message, len);
	memcpy(message + 2, &sum, 2);
	memcpy(frame + off, &h, sizeof(h));
	memcpy(frame + off + sizeof(h), message, len);
	a->stats.group_reports++;
	a->cfg.send(a->cfg.arg, frame,
		    RTE_MAX(off + (uint32_t)sizeof(h) + len, FRAME_MIN + off - RTE_ETHER_HDR_LEN));
}

/* ---- MLD ---- */

/* The link-local address: an own one of the VLAN, else the one made of the MAC address. */
static void
mld_source(const struct arp_nd *a, uint16_t vlan_id, uint8_t ip[16])
{
	const uint8_t *mac = a->cfg.mac;
	const uint8_t made[16] = {0xfe, 0x80, [8] = mac[0] ^ 2, mac[1], mac[2],
				  0xff, 0xfe, mac[3],		mac[4], mac[5]};

	memcpy(ip, made, sizeof(made));
	for (uint32_t i = 0; i < a->cfg.num_addresses; i++) {
		const uint8_t *gid = a->address[i].gid;

		if (a->address[i].vlan_id != vlan_id || hca_gid_is_mapped(gid) ||
		    !hca_gid_is_link_local(gid))
			continue;
		memcpy(ip, gid, 16);
		return;
	}
}

static void
mld_send(struct arp_nd *a, uint16_t vlan_id, const uint8_t dst[16], uint8_t *message, uint32_t len)
{
	struct mld_ip h = {
		.ip = {.vtc_flow = rte_cpu_to_be_32(6u << 28),
		       .payload_len = rte_cpu_to_be_16((uint16_t)len),
		       .proto = IPPROTO_ICMPV6,
		       .hop_limits = 1},
		.options = {IPPROTO_ICMPV6, 0, 5, 2, 0, 0, 1, 0},
	};
	uint8_t frame[REPORT_FRAME_MAX], mac[6];
	uint16_t sum;
	uint32_t off;

	hca_gid_multicast_mac(dst, mac);
	off = arp_nd_ether(a, frame, mac, vlan_id, RTE_ETHER_TYPE_IPV6);
	mld_source(a, vlan_id, (uint8_t *)&h.ip.src_addr);
	memcpy(&h.ip.dst_addr, dst, 16);
	/* the checksum covers the message and a header that would be in front of it */
	sum = rte_ipv6_udptcp_cksum(&h.ip, message);
	memcpy(message + 2, &sum, 2);
	h.ip.payload_len = rte_cpu_to_be_16((uint16_t)(sizeof(h.options) + len));
	h.ip.proto = IPPROTO_HOPOPTS;
	memcpy(frame + off, &h, sizeof(h));
	memcpy(frame + off + sizeof(h), message, len);
	a->stats.group_reports++;
	a->cfg.send(a->cfg.arg, frame, off + (uint32_t)sizeof(h) + len);
}

/* ---- reports ---- */

void
arp_nd_report_send(struct arp_nd *a, struct group_report *r)
{
	static const uint8_t igmp_routers[16] = {[10] = 0xff, 0xff, 224, 0, 0, 22};
	static const uint8_t mld_routers[16] = {0xff, 2, [15] = 0x16};
	uint8_t message[8 + GROUP_REPORT_MAX] = {IGMP_REPORT_3};

	if (r->count == 0)
		return;
	put16(message + 6, r->count);
	memcpy(message + 8, r->records, r->len);
	if (r->protocol == GROUP_IGMP) {
		igmp_send(a, r->vlan_id, igmp_routers, message, 8 + r->len);
	} else {
		message[0] = MLD_REPORT_2;
		mld_send(a, r->vlan_id, mld_routers, message, 8 + r->len);
	}
	r->count = 0;
	r->len = 0;
}

void
arp_nd_report_add(struct arp_nd *a, struct group_report *r, const struct arp_nd_hop *group,
		  enum group_record type)
{
	bool v4 = hca_gid_is_mapped(group->gid);
	enum group_protocol protocol = v4 ? GROUP_IGMP : GROUP_MLD;
	uint8_t *record;

	if (r->protocol != protocol || r->vlan_id != group->vlan_id ||
	    r->len + MLD_RECORD > sizeof(r->records))
		arp_nd_report_send(a, r);
	r->protocol = protocol;
	r->vlan_id = group->vlan_id;
	record = r->records + r->len;
	memset(record, 0, 4);
	record[0] = (uint8_t)type;
	memcpy(record + 4, v4 ? group->gid + 12 : group->gid, v4 ? 4 : 16);
	r->len += v4 ? IGMP_RECORD : MLD_RECORD;
	r->count++;
}

static void
igmp_old(struct arp_nd *a, const struct arp_nd_hop *group, unsigned int generation, bool leave)
{
	static const uint8_t routers[16] = {[10] = 0xff, 0xff, 224, 0, 0, 2};
	uint8_t message[8] = {generation == 2 ? IGMP_REPORT_1 : leave ? IGMP_LEAVE : IGMP_REPORT_2};

	if (generation == 2 && leave) /* IGMPv1 has no such message */
		return;
	memcpy(message + 4, group->gid + 12, 4);
	igmp_send(a, group->vlan_id, leave ? routers : group->gid, message, sizeof(message));
}

static void
mld_old(struct arp_nd *a, const struct arp_nd_hop *group, bool leave)
{
	static const uint8_t routers[16] = {0xff, 2, [15] = 2};
	uint8_t message[24] = {leave ? MLD_DONE : MLD_REPORT_1};

	memcpy(message + 8, group->gid, 16);
	mld_send(a, group->vlan_id, leave ? routers : group->gid, message, sizeof(message));
}

void
arp_nd_report_old(struct arp_nd *a, const struct arp_nd_hop *group, unsigned int generation,
		  bool leave)
{
	if (hca_gid_is_mapped(group->gid))
		igmp_old(a, group, generation, leave);
	else
		mld_old(a, group, leave);
}
