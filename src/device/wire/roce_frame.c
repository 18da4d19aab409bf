/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "wire/roce_frame.h"

static const struct {
	const char *name;
	const char *text;
	bool foreign;
} drops[HCA_ROCE_DROP_COUNT] = {[HCA_ROCE_DROP_NONE] = {"none", "taken", false},
#define X(NAME, counter, is_foreign, meaning) \
	[HCA_ROCE_DROP_##NAME] = {#counter, meaning, is_foreign},
				HCA_ROCE_DROP_LIST(X)
#undef X
};

static unsigned int
drop_index(int reason)
{
	return reason < 0 ? -(unsigned int)reason : (unsigned int)reason;
}

const char *
hca_roce_drop_name(int reason)
{
	unsigned int i = drop_index(reason);

	return i < HCA_ROCE_DROP_COUNT ? drops[i].name : "unknown";
}

const char *
hca_roce_drop_text(int reason)
{
	unsigned int i = drop_index(reason);

	return i < HCA_ROCE_DROP_COUNT ? drops[i].text : "unknown";
}

bool
hca_roce_drop_is_foreign(int reason)
{
	unsigned int i = drop_index(reason);

	return i < HCA_ROCE_DROP_COUNT && drops[i].foreign;
}

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
		return -HCA_ROCE_DROP_SHORT;
	if (ip->ver_ihl >> 4 != 4)
		return -HCA_ROCE_DROP_BAD_IP_VERSION;
	if (avail < HCA_IPV4_LEN)
		return -HCA_ROCE_DROP_SHORT;
	if (ip->proto != HCA_IPPROTO_UDP)
		return -HCA_ROCE_DROP_NOT_UDP;
	if (ip->ver_ihl != HCA_IPV4_VER_IHL)
		return -HCA_ROCE_DROP_IP_OPTIONS;
	total = hca_be16_to_cpu(ip->total_len);
	if (total > avail || total < HCA_IPV4_LEN + HCA_UDP_LEN)
		return -HCA_ROCE_DROP_IP_LEN;
	if ((hca_be16_to_cpu(ip->frag) & HCA_IPV4_FRAG_MASK) != 0)
		return -HCA_ROCE_DROP_FRAGMENT;
	return total - HCA_IPV4_LEN;
}

static int
parse_ipv6(const uint8_t *l3, uint32_t avail)
{
	const struct hca_ipv6_hdr *ip = (const void *)l3;
	uint32_t payload;

	if (avail < 1)
		return -HCA_ROCE_DROP_SHORT;
	if (l3[0] >> 4 != 6)
		return -HCA_ROCE_DROP_BAD_IP_VERSION;
	if (avail < HCA_IPV6_LEN)
		return -HCA_ROCE_DROP_SHORT;
	if (ip->next_hdr != HCA_IPPROTO_UDP)
		return -HCA_ROCE_DROP_NOT_UDP;
	payload = hca_be16_to_cpu(ip->payload_len);
	if (payload > avail - HCA_IPV6_LEN || payload < HCA_UDP_LEN)
		return -HCA_ROCE_DROP_IP_LEN;
	return payload;
}

/* Sets l3 and the IP version; returns 0 or a drop reason. */
static int
parse_ethernet(const uint8_t *frame, uint32_t len, struct hca_roce_view *v)
{
	uint32_t l3 = HCA_ETH_LEN;
	uint16_t type;

	if (len < l3)
		return -HCA_ROCE_DROP_SHORT;
	type = hca_get_be16(frame + l3 - 2);
	if (type == HCA_ETHERTYPE_VLAN) {
		l3 += HCA_VLAN_LEN;
		if (len < l3)
			return -HCA_ROCE_DROP_SHORT;
		type = hca_get_be16(frame + l3 - 2);
	}
	if (type != HCA_ETHERTYPE_IPV4 && type != HCA_ETHERTYPE_IPV6)
		return -HCA_ROCE_DROP_NOT_IP;
	v->l3 = l3;
	v->ip_version = type == HCA_ETHERTYPE_IPV4 ? 4 : 6;
	return 0;
}

int
hca_roce_parse(const uint8_t *frame, uint32_t len, struct hca_roce_view *v)
{
	const struct hca_udp_hdr *udp;
	uint32_t ip_len;
	int rc;

	rc = parse_ethernet(frame, len, v);
	if (rc < 0)
		return rc;
	if (v->ip_version == 4) {
		rc = parse_ipv4(frame + v->l3, len - v->l3);
		ip_len = HCA_IPV4_LEN;
	} else {
		rc = parse_ipv6(frame + v->l3, len - v->l3);
		ip_len = HCA_IPV6_LEN;
	}
	if (rc < 0)
		return rc;
	udp = (const void *)(frame + v->l3 + ip_len);
	if (hca_be16_to_cpu(udp->dport) != HCA_ROCE_UDP_PORT)
		return -HCA_ROCE_DROP_NOT_ROCE;
	if (hca_be16_to_cpu(udp->len) != rc)
		return -HCA_ROCE_DROP_UDP_LEN;
	v->bth = v->l3 + ip_len + HCA_UDP_LEN;
	return hca_roce_parse_bth(frame, rc - HCA_UDP_LEN, v);
}

static uint32_t
frame_icrc(const struct hca_icrc_ops *ops, const uint8_t *frame, const struct hca_roce_view *v)
{
	struct hca_icrc_span span;
	uint32_t crc;

	hca_roce_icrc_span(frame, v, &span);
	ops->crc_burst(&span, &crc, 1);
	return crc;
}

int
hca_roce_check_icrc(const struct hca_icrc_ops *ops, const uint8_t *frame,
		    const struct hca_roce_view *v)
{
	if (frame_icrc(ops, frame, v) != hca_icrc_load(frame + v->icrc))
		return -HCA_ROCE_DROP_ICRC;
	return 0;
}

void
hca_roce_seal(const struct hca_icrc_ops *ops, uint8_t *frame, const struct hca_roce_view *v)
{
	hca_icrc_store(frame + v->icrc, frame_icrc(ops, frame, v));
}

void
hca_roce_get_headers(const uint8_t *bth, const struct hca_roce_opcode_info *info,
		     struct hca_roce_headers *h)
{
	const struct hca_deth *deth = (const void *)(bth + info->at.deth);
	const struct hca_reth *reth = (const void *)(bth + info->at.reth);
	const struct hca_atomiceth *atomic = (const void *)(bth + info->at.atomiceth);
	uint32_t aeth;

	if (info->at.deth) {
		h->deth.qkey = hca_be32_to_cpu(deth->qkey);
		h->deth.src_qpn = hca_be32_to_cpu(deth->sqpn) & 0xffffff;
	}
	if (info->at.xrceth)
		h->xrceth = hca_get_be32(bth + info->at.xrceth) & 0xffffff;
	if (info->at.reth) {
		h->reth.va = hca_be64_to_cpu(reth->va);
		h->reth.rkey = hca_be32_to_cpu(reth->rkey);
		h->reth.len = hca_be32_to_cpu(reth->dma_len);
	}
	if (info->at.atomiceth) {
		h->atomic.va = hca_be64_to_cpu(atomic->va);
		h->atomic.rkey = hca_be32_to_cpu(atomic->rkey);
		h->atomic.swap_add = hca_be64_to_cpu(atomic->swap_add);
		h->atomic.compare = hca_be64_to_cpu(atomic->cmp);
	}
	if (info->at.aeth) {
		aeth = hca_get_be32(bth + info->at.aeth);
		h->aeth.syndrome = HCA_AETH_SYNDROME(aeth);
		h->aeth.msn = HCA_AETH_MSN(aeth);
	}
	if (info->at.atomicacketh)
		h->original = hca_get_be64(bth + info->at.atomicacketh);
	if (info->at.immdt)
		memcpy(h->imm, bth + info->at.immdt, sizeof(h->imm));
	if (info->at.ieth)
		h->ieth = hca_get_be32(bth + info->at.ieth);
}

void
hca_roce_put_headers(uint8_t *bth, const struct hca_roce_opcode_info *info,
		     const struct hca_roce_headers *h)
{
	struct hca_deth *deth = (void *)(bth + info->at.deth);
	struct hca_reth *reth = (void *)(bth + info->at.reth);
	struct hca_atomiceth *atomic = (void *)(bth + info->at.atomiceth);

	if (info->at.deth) {
		deth->qkey = hca_cpu_to_be32(h->deth.qkey);
		deth->sqpn = hca_cpu_to_be32(h->deth.src_qpn & 0xffffff);
	}
	if (info->at.xrceth)
		hca_put_be32(bth + info->at.xrceth, h->xrceth & 0xffffff);
	if (info->at.reth) {
		reth->va = hca_cpu_to_be64(h->reth.va);
		reth->rkey = hca_cpu_to_be32(h->reth.rkey);
		reth->dma_len = hca_cpu_to_be32(h->reth.len);
	}
	if (info->at.atomiceth) {
		atomic->va = hca_cpu_to_be64(h->atomic.va);
		atomic->rkey = hca_cpu_to_be32(h->atomic.rkey);
		atomic->swap_add = hca_cpu_to_be64(h->atomic.swap_add);
		atomic->cmp = hca_cpu_to_be64(h->atomic.compare);
	}
	if (info->at.aeth)
		hca_put_be32(bth + info->at.aeth, HCA_AETH_MAKE(h->aeth.syndrome, h->aeth.msn));
	if (info->at.atomicacketh)
		hca_put_be64(bth + info->at.atomicacketh, h->original);
	if (info->at.immdt)
		memcpy(bth + info->at.immdt, h->imm, sizeof(h->imm));
	if (info->at.ieth)
		hca_put_be32(bth + info->at.ieth, h->ieth);
}

static uint8_t *
fill_ethernet(uint8_t *b, const struct hca_roce_path *path)
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

/* Total length and checksum stay 0; the sum of the other words is kept for hca_roce_finish(). */
static uint8_t *
fill_ipv4(uint8_t *b, const struct hca_roce_path *path, uint32_t *sum)
{
	struct hca_ipv4_hdr *ip = (void *)b;
	unsigned int i;

	ip->ver_ihl = HCA_IPV4_VER_IHL;
	ip->tos = path->tclass;
	ip->id = hca_cpu_to_be16(path->ip_id);
	ip->frag = hca_cpu_to_be16(HCA_IPV4_DF);
	ip->ttl = path->hop_limit;
	ip->proto = HCA_IPPROTO_UDP;
	memcpy(&ip->saddr, path->sip + 12, 4);
	memcpy(&ip->daddr, path->dip + 12, 4);
	*sum = 0;
	for (i = 0; i < HCA_IPV4_LEN; i += 2)
		*sum += hca_get_be16(b + i);
	return b + HCA_IPV4_LEN;
}

static uint8_t *
fill_ipv6(uint8_t *b, const struct hca_roce_path *path)
{
	struct hca_ipv6_hdr *ip = (void *)b;

	ip->ver_tc_flow = hca_cpu_to_be32(HCA_IPV6_MAKE_VER(path->tclass, path->flow_label));
	ip->next_hdr = HCA_IPPROTO_UDP;
	ip->hop_limit = path->hop_limit;
	memcpy(ip->saddr, path->sip, 16);
	memcpy(ip->daddr, path->dip, 16);
	return b + HCA_IPV6_LEN;
}

/* BTH flags other than MigReq, and the PSN, come with hca_roce_finish(). */
static uint8_t *
fill_udp_bth(uint8_t *b, const struct hca_roce_path *path)
{
	struct hca_udp_hdr *udp = (void *)b;
	struct hca_bth *bth = (void *)(b + HCA_UDP_LEN);

	udp->sport = hca_cpu_to_be16(path->udp_sport);
	udp->dport = hca_cpu_to_be16(HCA_ROCE_UDP_PORT);
	bth->flags = HCA_BTH_MAKE_FLAGS(0, path->migreq, 0);
	bth->pkey = hca_cpu_to_be16(path->pkey);
	bth->dqpn = hca_cpu_to_be32(path->qpn);
	return b + HCA_UDP_LEN + HCA_ROCE_BTH_LEN;
}

int
hca_roce_template_fill(const struct hca_roce_path *path, struct hca_roce_template *t)
{
	uint8_t *b;

	if ((path->ip_version != 4 && path->ip_version != 6) || path->flow_label > 0xfffff ||
	    path->qpn > 0xffffff)
		return -EINVAL;
	memset(t, 0, sizeof(*t));
	b = fill_ethernet(t->bytes, path);
	t->l3 = b - t->bytes;
	t->ip_version = path->ip_version;
	b = path->ip_version == 4 ? fill_ipv4(b, path, &t->ip_sum) : fill_ipv6(b, path);
	t->bth = b - t->bytes + HCA_UDP_LEN;
	t->len = fill_udp_bth(b, path) - t->bytes;
	t->migreq = path->migreq;
	return 0;
}

/* A multiplicative hash of both numbers; its top bits depend on all bits of the input. */
uint16_t
hca_roce_udp_sport(uint32_t local_qpn, uint32_t remote_qpn)
{
	uint64_t v = (uint64_t)(local_qpn & 0xffffff) << 24 | (remote_qpn & 0xffffff);

	return HCA_ROCE_SPORT_BASE | (v * 0x9e3779b97f4a7c15ULL) >> 50;
}

int
hca_roce_build(const struct hca_icrc_ops *ops, const struct hca_roce_template *t,
	       const struct hca_roce_packet *p, const struct hca_roce_headers *h,
	       const void *payload, uint8_t *out, uint32_t room)
{
	const struct hca_roce_opcode_info *info = &hca_roce_opcodes[p->opcode];
	struct hca_icrc_span span;
	uint32_t len, headers, crc;

	if (!info->valid || (!info->has_payload && p->payload_len != 0) ||
	    p->payload_len > UINT16_MAX - HCA_ROCE_MAX_HEADERS)
		return -EINVAL;
	len = hca_roce_frame_len(t, p->opcode, p->payload_len);
	headers = t->bth + info->header_len;
	if (room < len + HCA_ICRC_LEN)
		return -ENOSPC;
	memcpy(out, t->bytes, t->len);
	hca_roce_finish(out, t, p);
	hca_roce_put_headers(out + t->bth, info, h);
	ops->copy(out + headers, payload, p->payload_len);
	memset(out + headers + p->payload_len, 0, len - headers - p->payload_len);
	span = (struct hca_icrc_span){out + t->l3, hca_roce_ones(t->ip_version), len - t->l3,
				      HCA_ICRC_SEED};
	ops->crc_burst(&span, &crc, 1);
	hca_icrc_store(out + len, crc);
	return len + HCA_ICRC_LEN;
}
