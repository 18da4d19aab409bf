/* SPDX-License-Identifier: BSD-3-Clause */

#include "ub_forge.h"

#include "engine/impl.h"
#include "sim_link.h"

#define SPORT 0xc010u
#define VLAN 7u

static struct hca_ub_path
path_of(const struct hca_tp *tp, const struct ub_forged *f)
{
	struct hca_ub_path p = {.udp = {.dmac = {2, 0, 0, 0, 0, tp->cfg.peer_eid[15]},
					.smac = {2, 0, 0, 0, 0, tp->cfg.own_eid[15]},
					.vlan = f->vlan,
					.vlan_tci = VLAN,
					.ip_version = 4,
					.hop_limit = 64,
					.sport = SPORT},
				.src_tpn = f->src != 0 ? f->src : tp->cfg.own_tpn,
				.dst_tpn = f->dst != 0 ? f->dst : tp->cfg.peer_tpn};

	memcpy(p.udp.sip, tp->cfg.own_eid, 16);
	memcpy(p.udp.dip, tp->cfg.peer_eid, 16);
	if (f->from != 0)
		p.udp.sip[15] = f->from;
	if (f->to != 0)
		p.udp.dip[15] = f->to;
	return p;
}

uint32_t
ub_forge(struct sim *s, const struct hca_tp *tp, const struct ub_forged *f, uint8_t *frame)
{
	struct hca_ub_path path = path_of(tp, f);
	struct hca_ub_headers h = f->headers;
	struct hca_udp_template t;
	int n;

	hca_ub_template_fill(&path, &t);
	h.rtph.src_tpn = path.src_tpn;
	h.rtph.dst_tpn = path.dst_tpn;
	n = ub_build(hca_icrc_select(), &t, &h, f->payload, f->len, frame, UB_ROOM);
	sim_check(s, n > 0, "forged frame: %d", n);
	if (f->damaged)
		frame[n - 1] ^= 1;
	return (uint32_t)n;
}

void
ub_forge_inject(struct sim *s, unsigned int side, const uint8_t *frame, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(s->side[side].hca->pipe[0].tx_pool);

	sim_check(s, m != NULL, "no mbuf");
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	sim_check(s, sim_link_inject(s->side[side].wire, m), "the link is full");
}
