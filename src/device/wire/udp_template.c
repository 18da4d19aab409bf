/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "wire/udp_template.h"

static uint8_t *
fill_ethernet(uint8_t *b, const struct hca_udp_path *path)
{
	memcpy(b, path->dmac, 6);
	memcpy(b + 6, path->smac, 6);
	b += 12;
	if (path->vlan) {
		hca_put_be16(b, HCA_ETHERTYPE_VLAN);
		hca_put_be16(b + 2, path->vlan_tci);
		b += HCA_VLAN_LEN;
	}
	hca_put_be16(b, path->ip_version == 4 ? HCA_ETHERTYPE_IPV4 : HCA_ETHERTYPE_IPV6);
	return b + 2;
}

/* Total length and checksum stay 0; the sum of the other words but the first is kept. */
static uint8_t *
fill_ipv4(uint8_t *b, const struct hca_udp_path *path, uint16_t *kept)
{
	struct hca_ipv4_hdr *ip = (void *)b;
	uint32_t sum = 0;
	unsigned int i;

	ip->ver_ihl = HCA_IPV4_VER_IHL;
	ip->tos = path->tclass;
	ip->id = hca_cpu_to_be16(path->ip_id);
	ip->frag = hca_cpu_to_be16(HCA_IPV4_DF);
	ip->ttl = path->hop_limit;
	ip->proto = HCA_IPPROTO_UDP;
	memcpy(&ip->saddr, path->sip + 12, 4);
	memcpy(&ip->daddr, path->dip + 12, 4);
	for (i = 2; i < HCA_IPV4_LEN; i += 2) {
		uint16_t word;

		memcpy(&word, b + i, sizeof(word));
		sum += word;
	}
	*kept = hca_ip_fold(sum);
	return b + HCA_IPV4_LEN;
}

static uint8_t *
fill_ipv6(uint8_t *b, const struct hca_udp_path *path)
{
	struct hca_ipv6_hdr *ip = (void *)b;

	ip->ver_tc_flow = hca_cpu_to_be32(HCA_IPV6_MAKE_VER(path->tclass, path->flow_label));
	ip->next_hdr = HCA_IPPROTO_UDP;
	ip->hop_limit = path->hop_limit;
	memcpy(ip->saddr, path->sip, 16);
	memcpy(ip->daddr, path->dip, 16);
	return b + HCA_IPV6_LEN;
}

int
hca_udp_template_fill(const struct hca_udp_path *path, uint16_t dport, struct hca_udp_template *t)
{
	struct hca_udp_hdr *udp;
	uint8_t *b;

	if ((path->ip_version != 4 && path->ip_version != 6) || path->flow_label > 0xfffff)
		return -EINVAL;
	memset(t, 0, sizeof(*t));
	b = fill_ethernet(t->bytes, path);
	t->l3 = b - t->bytes;
	t->ip_version = path->ip_version;
	b = path->ip_version == 4 ? fill_ipv4(b, path, &t->ip_sum) : fill_ipv6(b, path);
	udp = (void *)b;
	udp->sport = hca_cpu_to_be16(path->sport);
	udp->dport = hca_cpu_to_be16(dport);
	t->transport = b - t->bytes + HCA_UDP_LEN;
	return 0;
}
