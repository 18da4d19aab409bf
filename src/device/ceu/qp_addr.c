/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Converts the addresses of a path from words of the context (1Ch..4Fh, C0h..F3h) to header
 * templates.
 */

#include <string.h>

#include "ceu/qp.h"
#include "ctxmgt/ctxmgt.h"
#include "ctxmgt/rate.h"

#define WORD(f) hca_be32_to_cpu(q->f)
#define DEFAULT_TTL 64u

/* Destination address: in GID form, in plain IPv4 form, or in both if they are equal. */
static bool
path_dip(const struct hca_qpc_path *q, uint8_t dip[16])
{
	static const uint8_t zero[16];
	uint8_t ip[4];

	memcpy(ip, &q->dip, sizeof(ip));
	if (memcmp(q->rgid, zero, sizeof(zero)) == 0) {
		hca_gid_from_ip4(dip, ip);
	} else {
		memcpy(dip, q->rgid, 16);
		if (WORD(dip) != 0 && memcmp(dip + 12, ip, sizeof(ip)) != 0)
			return false;
	}
	return hca_gid_is_ip4(dip) || hca_gid_is_ip6(dip);
}

/* Source MAC and IP come from the GID entry; a mailbox with different ones is invalid. */
static bool
path_source(const struct hca_core *h, const struct hca_qpc_path *q, struct hca_udp_path *p)
{
	const struct hca_gid_entry *g = hca_gid_get(h->ctxmgt, HCA_QPC_GID_INDEX(WORD(ackto)));
	uint64_t smac = HCA_QPC_SMAC(WORD(mac_lo), WORD(smac_hi));
	uint8_t mac[6];

	if (g == NULL)
		return false;
	hca_mac_bytes(mac, smac);
	if (smac != 0 && memcmp(mac, g->mac, sizeof(mac)) != 0)
		return false;
	if (WORD(sip) != 0 && (g->ip_version != 4 || memcmp(&q->sip, g->gid + 12, 4) != 0))
		return false;
	p->ip_version = g->ip_version;
	p->vlan = g->vlan_id != HCA_NO_VLAN;
	p->vlan_tci = 0;
	if (p->vlan)
		p->vlan_tci = (uint16_t)((HCA_QPC_SL(WORD(sl_tclass_flow)) & 7) << 13 | g->vlan_id);
	memcpy(p->smac, g->mac, sizeof(p->smac));
	memcpy(p->sip, g->gid, sizeof(p->sip));
	return true;
}

static bool
path_dmac(const struct hca_core *h, const struct hca_qpc_path *q, struct hca_udp_path *p)
{
	uint64_t dmac = HCA_QPC_DMAC(WORD(mac_lo), WORD(dmac_hi));
	const uint8_t *known;

	if (dmac != 0) {
		hca_mac_bytes(p->dmac, dmac);
		return (p->dmac[0] & 1) == 0;
	}
	known = hca_gid_mac(h->ctxmgt, p->dip);
	if (known == NULL)
		known = hca_neigh_find(h->ctxmgt, p->dip);
	if (known != NULL)
		memcpy(p->dmac, known, sizeof(p->dmac));
	return known != NULL;
}

static bool
fill_path(const struct hca_core *h, const struct hca_qpc_path *q, struct hca_udp_path *p)
{
	uint32_t hop = HCA_QPC_HOP_LIMIT(WORD(ackto));

	if (!path_source(h, q, p) || !path_dip(q, p->dip) || !path_dmac(h, q, p))
		return false;
	if (hca_gid_is_ip4(p->dip) != (p->ip_version == 4))
		return false;
	p->flow_label = HCA_QPC_FLOW_LABEL(WORD(sl_tclass_flow));
	p->tclass = (uint8_t)HCA_QPC_TCLASS(WORD(sl_tclass_flow)) & 0xfc; /* the device sets ECN */
	p->hop_limit = (uint8_t)(hop != 0 ? hop : DEFAULT_TTL);
	return true;
}

bool
hca_qp_resolve(const struct hca_core *h, const struct hca_qp_change *ch,
	       const struct hca_qpc_path *q, struct hca_qp_path *out)
{
	struct hca_roce_path p = {.qpn = hca_be32_to_cpu(ch->image.remote_qpn), .migreq = true};
	uint32_t pace;

	memset(out, 0, sizeof(*out));
	out->rate = (uint8_t)HCA_QPC_STATIC_RATE(WORD(ackto));
	out->timeout = (uint8_t)HCA_QPC_ACKTO(WORD(ackto));
	if (!hca_rate_pace(out->rate, &pace) || !fill_path(h, q, &p.udp))
		return false;
	p.pkey = h->ctxmgt->pkey[HCA_QPC_PKEY_INDEX(WORD(port_pkey))];
	p.udp.sport = hca_roce_udp_sport(ch->qpn, p.qpn);
	if (hca_roce_template_fill(&p, &out->slot.tmpl) != 0)
		return false;
	out->slot.pkey = p.pkey;
	out->slot.vlan = p.udp.vlan ? HCA_VLAN_VID(p.udp.vlan_tci) : 0;
	memcpy(out->slot.peer_gid, p.udp.dip, sizeof(out->slot.peer_gid));
	memcpy(out->dmac, p.udp.dmac, sizeof(out->dmac));
	out->known = true;
	return true;
}
