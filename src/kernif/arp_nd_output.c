/* SPDX-License-Identifier: BSD-3-Clause */

/* Frames that the responder originates: requests, ARP and ND answers, announcements. */

#include "arp_nd_impl.h"

#define FRAME_MIN 60u /* without FCS */

static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

uint32_t
arp_nd_ether(const struct arp_nd *a, uint8_t *frame, const uint8_t dmac[6], uint16_t vlan_id,
	     uint16_t type)
{
	uint16_t words[3] = {rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN), rte_cpu_to_be_16(vlan_id),
			     rte_cpu_to_be_16(type)};

	memcpy(frame, dmac, 6);
	memcpy(frame + 6, a->cfg.mac, 6);
	if (vlan_id == ARP_ND_NO_VLAN) {
		memcpy(frame + 12, &words[2], 2);
		return RTE_ETHER_HDR_LEN;
	}
	memcpy(frame + 12, words, sizeof(words));
	return RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN;
}

void
arp_nd_send_arp(struct arp_nd *a, uint16_t op, uint16_t vlan_id, const uint8_t spa[4],
		const uint8_t tha[6], const uint8_t tpa[4], const uint8_t dmac[6])
{
	struct rte_arp_hdr h = {
		.arp_hardware = rte_cpu_to_be_16(RTE_ARP_HRD_ETHER),
		.arp_protocol = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4),
		.arp_hlen = RTE_ETHER_ADDR_LEN,
		.arp_plen = sizeof(uint32_t),
		.arp_opcode = rte_cpu_to_be_16(op),
	};
	uint8_t frame[FRAME_MIN + RTE_VLAN_HLEN] = {0};
	uint32_t off = arp_nd_ether(a, frame, dmac, vlan_id, RTE_ETHER_TYPE_ARP);

	memcpy(&h.arp_data.arp_sha, a->cfg.mac, 6);
	memcpy(&h.arp_data.arp_sip, spa, 4);
	memcpy(&h.arp_data.arp_tha, tha, 6);
	memcpy(&h.arp_data.arp_tip, tpa, 4);
	memcpy(frame + off, &h, sizeof(h));
	a->cfg.send(a->cfg.arg, frame, FRAME_MIN + off - RTE_ETHER_HDR_LEN);
}

void
arp_nd_send_nd(struct arp_nd *a, uint8_t type, uint32_t flags, uint16_t vlan_id,
	       const uint8_t src[16], const uint8_t dst[16], const uint8_t target[16],
	       const uint8_t dmac[6])
{
	struct rte_ipv6_hdr ip = {
		.vtc_flow = rte_cpu_to_be_32(6u << 28),
		.payload_len = rte_cpu_to_be_16(ND_LEN),
		.proto = IPPROTO_ICMPV6,
		.hop_limits = ND_HOP_LIMIT,
	};
	struct nd_message m = {
		.type = type,
		.flags = rte_cpu_to_be_32(flags),
		.option = type == ND_SOLICIT ? ND_OPTION_SOURCE : ND_OPTION_TARGET,
		.option_units = 1,
	};
	uint8_t frame[RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN + sizeof(ip) + sizeof(m)];
	uint32_t off = arp_nd_ether(a, frame, dmac, vlan_id, RTE_ETHER_TYPE_IPV6);

	memcpy(&ip.src_addr, src, 16);
	memcpy(&ip.dst_addr, dst, 16);
	memcpy(m.target, target, 16);
	memcpy(m.option_mac, a->cfg.mac, 6);
	m.cksum = rte_ipv6_udptcp_cksum(&ip, &m);
	memcpy(frame + off, &ip, sizeof(ip));
	memcpy(frame + off + sizeof(ip), &m, sizeof(m));
	a->cfg.send(a->cfg.arg, frame, off + sizeof(ip) + sizeof(m));
}

/*
 * Source address of a request: an own address of the same version and VLAN, if possible in the same
 * network.
 */
static const struct arp_nd_address *
source_for(const struct arp_nd *a, const struct arp_nd_hop *hop)
{
	const struct arp_nd_address *best = NULL;
	bool v4 = hca_gid_is_mapped(hop->gid);
	uint32_t most = 0;

	for (uint32_t i = 0; i < a->cfg.num_addresses; i++) {
		const struct arp_nd_address *own = &a->address[i];
		uint32_t same = 0;

		if (own->vlan_id != hop->vlan_id || hca_gid_is_mapped(own->gid) != v4)
			continue;
		while (same < 16 && own->gid[same] == hop->gid[same])
			same++;
		if (best == NULL || same > most) {
			best = own;
			most = same;
		}
	}
	return best;
}

static void
ask_nd(struct arp_nd *a, const struct arp_nd_hop *hop, const struct arp_nd_address *from,
       const uint8_t *to)
{
	/* the solicited-node group, and its MAC address */
	uint8_t dst[16] = {0xff, 2, [11] = 1, 0xff, hop->gid[13], hop->gid[14], hop->gid[15]};
	const uint8_t group[6] = {0x33, 0x33, 0xff, dst[13], dst[14], dst[15]};

	if (to != NULL)
		memcpy(dst, hop->gid, 16);
	arp_nd_send_nd(a, ND_SOLICIT, 0, hop->vlan_id, from->gid, dst, hop->gid,
		       to != NULL ? to : group);
}

void
arp_nd_ask(struct arp_nd *a, const struct arp_nd_hop *hop, const uint8_t *to)
{
	static const uint8_t no_mac[6];
	const struct arp_nd_address *from = source_for(a, hop);

	if (from == NULL)
		return;
	if (hca_gid_is_mapped(hop->gid))
		arp_nd_send_arp(a, RTE_ARP_OP_REQUEST, hop->vlan_id, from->gid + 12, no_mac,
				hop->gid + 12, to != NULL ? to : broadcast);
	else
		ask_nd(a, hop, from, to);
}

/* A gratuitous ARP request, or an unsolicited advertisement to all nodes. */
void
arp_nd_announce_one(struct arp_nd *a, const struct arp_nd_address *own)
{
	static const uint8_t all_nodes[16] = {0xff, 2, [15] = 1};
	static const uint8_t all_nodes_mac[6] = {0x33, 0x33, 0, 0, 0, 1};
	static const uint8_t no_mac[6];

	if (hca_gid_is_mapped(own->gid))
		arp_nd_send_arp(a, RTE_ARP_OP_REQUEST, own->vlan_id, own->gid + 12, no_mac,
				own->gid + 12, broadcast);
	else
		arp_nd_send_nd(a, ND_ADVERT, ND_OVERRIDE, own->vlan_id, own->gid, all_nodes,
			       own->gid, all_nodes_mac);
}
