/* SPDX-License-Identifier: BSD-3-Clause */

/* Judging the attributes of MODIFY_QP on the merged image (tables 3-2-40, 3-2-41, A1-3, A1-4). */

#include <string.h>

#include "ceu/qp.h"
#include "ctxmgt/ctxmgt.h"
#include "ctxmgt/rate.h"

#define WORD(f) hca_be32_to_cpu(q->f)

/* Ethernet to immediate, pad and ICRC around one MTU of payload: WRITE ONLY with immediate. */
#define FRAME_OVERHEAD (14u + 20u + 8u + 12u + 16u + 4u + 4u)
#define DEFAULT_TTL 64u

static bool
attr_access(const struct hca *h, const struct hca_qpc *q)
{
	return (WORD(access_flags) & ~HCA_ACCESS_MASK) == 0;
}

static bool
attr_pkey(const struct hca *h, const struct hca_qpc *q)
{
	uint32_t i = HCA_QPC_PKEY_INDEX(WORD(path.port_pkey));

	return i < HCA_PKEY_ENTRIES && h->ctxmgt->pkey[i] != 0;
}

static bool
attr_port(const struct hca *h, const struct hca_qpc *q)
{
	return HCA_QPC_PORT(WORD(path.port_pkey)) == 1;
}

static bool
mtu_fits(const struct hca *h, uint32_t bytes)
{
	return bytes <= h->cfg.max_mtu && (h->port == NULL || h->port->max_frame == 0 ||
					   bytes + FRAME_OVERHEAD <= h->port->max_frame);
}

uint32_t
hca_port_mtu(const struct hca *h)
{
	uint32_t code = HCA_MTU_4096;

	while (code > HCA_MTU_256 && !mtu_fits(h, HCA_MTU_BYTES(code)))
		code--;
	return code;
}

static bool
attr_mtu(const struct hca *h, const struct hca_qpc *q)
{
	uint32_t code = HCA_QPC_MTU(WORD(sizes));

	return HCA_MTU_VALID(code) && mtu_fits(h, HCA_MTU_BYTES(code));
}

static bool
attr_timeout(const struct hca *h, const struct hca_qpc *q)
{
	return HCA_QPC_ACKTO(WORD(path.ackto)) <= 31;
}

static bool
attr_retry(const struct hca *h, const struct hca_qpc *q)
{
	return HCA_QPC_RETRY_CNT(WORD(rd_atomic)) <= 7;
}

static bool
attr_rnr_retry(const struct hca *h, const struct hca_qpc *q)
{
	return HCA_QPC_RNR_RETRY(WORD(path.rnr_retry)) <= 7;
}

static bool
attr_min_rnr(const struct hca *h, const struct hca_qpc *q)
{
	return HCA_QPC_MIN_RNR_TIMER(WORD(rnr_nextrecvpsn)) <= 31;
}

static bool
attr_max_rd(const struct hca *h, const struct hca_qpc *q)
{
	return HCA_QPC_MAX_RD_ATOMIC(WORD(rd_atomic)) <= HCA_RD_ATOMIC_MAX;
}

static bool
attr_max_dest(const struct hca *h, const struct hca_qpc *q)
{
	return HCA_QPC_MAX_DEST_RD_ATOMIC(WORD(rd_atomic)) <= HCA_RD_ATOMIC_MAX;
}

static bool
attr_sq_psn(const struct hca *h, const struct hca_qpc *q)
{
	return (WORD(next_send_psn) & ~HCA_QPN_MASK) == 0;
}

static bool
attr_dest_qpn(const struct hca *h, const struct hca_qpc *q)
{
	return WORD(remote_qpn) > HCA_QPN_GSI && WORD(remote_qpn) < HCA_QPN_MULTICAST;
}

/* Path migration is not announced: a QP is and stays MIGRATED. */
static bool
attr_mig(const struct hca *h, const struct hca_qpc *q)
{
	return HCA_QPC_MIG(WORD(flags)) == HCA_MIG_MIGRATED;
}

static bool
attr_never(const struct hca *h, const struct hca_qpc *q)
{
	return false;
}

static const struct {
	uint32_t attr;
	bool (*ok)(const struct hca *h, const struct hca_qpc *q);
} checks[] = {
	{HCA_QP_ATTR_ACCESS_FLAGS, attr_access},
	{HCA_QP_ATTR_PKEY_INDEX, attr_pkey},
	{HCA_QP_ATTR_PORT, attr_port},
	{HCA_QP_ATTR_PATH_MTU, attr_mtu},
	{HCA_QP_ATTR_TIMEOUT, attr_timeout},
	{HCA_QP_ATTR_RETRY_CNT, attr_retry},
	{HCA_QP_ATTR_RNR_RETRY, attr_rnr_retry},
	{HCA_QP_ATTR_MIN_RNR_TIMER, attr_min_rnr},
	{HCA_QP_ATTR_MAX_QP_RD_ATOMIC, attr_max_rd},
	{HCA_QP_ATTR_MAX_DEST_RD_ATOMIC, attr_max_dest},
	{HCA_QP_ATTR_SQ_PSN, attr_sq_psn},
	{HCA_QP_ATTR_DEST_QPN, attr_dest_qpn},
	{HCA_QP_ATTR_PATH_MIG_STATE, attr_mig},
	{HCA_QP_ATTR_ALT_PATH, attr_never},
};

static void
mac_bytes(uint8_t out[6], uint64_t mac)
{
	for (unsigned int i = 0; i < 6; i++)
		out[i] = (uint8_t)(mac >> (8 * (5 - i)));
}

/* Destination address: GID form, plain IPv4 form, or both if they agree. */
static bool
path_dip(const struct hca_qpc *q, uint8_t dip[16])
{
	static const uint8_t zero[16];
	uint8_t ip[4];

	memcpy(ip, &q->path.dip, sizeof(ip));
	if (memcmp(q->path.rgid, zero, sizeof(zero)) == 0) {
		hca_gid_from_ip4(dip, ip);
	} else {
		memcpy(dip, q->path.rgid, 16);
		if (WORD(path.dip) != 0 && memcmp(dip + 12, ip, sizeof(ip)) != 0)
			return false;
	}
	return hca_gid_is_ip4(dip) || hca_gid_is_ip6(dip);
}

/* Source MAC and IP come from the GID entry; a mailbox that names others is wrong. */
static bool
path_source(const struct hca *h, const struct hca_qpc *q, struct hca_roce_path *p)
{
	const struct hca_gid_entry *g = hca_gid_get(h->ctxmgt, HCA_QPC_GID_INDEX(WORD(path.ackto)));
	uint64_t smac = HCA_QPC_SMAC(WORD(path.mac_lo), WORD(path.smac_hi));
	uint8_t mac[6];

	if (g == NULL)
		return false;
	mac_bytes(mac, smac);
	if (smac != 0 && memcmp(mac, g->mac, sizeof(mac)) != 0)
		return false;
	if (WORD(path.sip) != 0 &&
	    (g->ip_version != 4 || memcmp(&q->path.sip, g->gid + 12, 4) != 0))
		return false;
	p->ip_version = g->ip_version;
	p->vlan = g->vlan_id != HCA_NO_VLAN;
	p->vlan_tci = 0;
	if (p->vlan)
		p->vlan_tci =
			(uint16_t)((HCA_QPC_SL(WORD(path.sl_tclass_flow)) & 7) << 13 | g->vlan_id);
	memcpy(p->smac, g->mac, sizeof(p->smac));
	memcpy(p->sip, g->gid, sizeof(p->sip));
	return true;
}

static bool
path_dmac(const struct hca *h, const struct hca_qpc *q, struct hca_roce_path *p)
{
	uint64_t dmac = HCA_QPC_DMAC(WORD(path.mac_lo), WORD(path.dmac_hi));
	const uint8_t *known;

	if (dmac != 0) {
		mac_bytes(p->dmac, dmac);
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
resolve_path(const struct hca *h, struct hca_qp_change *ch)
{
	const struct hca_qpc *q = &ch->image;
	struct hca_roce_path *p = &ch->path;
	uint32_t hop = HCA_QPC_HOP_LIMIT(WORD(path.ackto));

	if (!hca_rate_pace(HCA_QPC_STATIC_RATE(WORD(path.ackto)), &ch->pace))
		return false;
	if (!path_source(h, q, p) || !path_dip(q, p->dip) || !path_dmac(h, q, p))
		return false;
	if (hca_gid_is_ip4(p->dip) != (p->ip_version == 4))
		return false;
	p->flow_label = HCA_QPC_FLOW_LABEL(WORD(path.sl_tclass_flow));
	p->tclass = (uint8_t)HCA_QPC_TCLASS(WORD(path.sl_tclass_flow)) & 0xfc; /* ECN is ours */
	p->hop_limit = (uint8_t)(hop != 0 ? hop : DEFAULT_TTL);
	p->qpn = WORD(remote_qpn);
	p->pkey = h->ctxmgt->pkey[HCA_QPC_PKEY_INDEX(WORD(path.port_pkey))];
	p->udp_sport = hca_roce_udp_sport(ch->qpn, p->qpn);
	p->migreq = true;
	return true;
}

int
hca_qp_check_attrs(const struct hca *h, struct hca_qp_change *ch)
{
	for (unsigned int i = 0; i < RTE_DIM(checks); i++)
		if ((ch->mask & checks[i].attr) && !checks[i].ok(h, &ch->image))
			return HCA_STAT_BAD_PARAM;
	if (HCA_QPC_SERVICE(hca_be32_to_cpu(ch->image.flags)) == HCA_ST_UD)
		return HCA_STAT_OK; /* each message names its own path */
	if (ch->to != HCA_QPS_RTR &&
	    (ch->to == HCA_QPS_INIT || !(ch->mask & (HCA_QP_ATTR_AV | HCA_QP_ATTR_PKEY_INDEX))))
		return HCA_STAT_OK;
	return resolve_path(h, ch) ? HCA_STAT_OK : HCA_STAT_BAD_PARAM;
}
