/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * MODIFY_QP's request, judged: the mailbox is merged into the image of the context, its
 * attributes are checked (tables 3-2-40, 3-2-41, A1-3, A1-4), and its addresses (1Ch..4Fh,
 * C0h..F3h) become headers that are ready to be sent.
 */

#include <string.h>

#include "abi_addr.h"
#include "abi_roce.h"
#include "abi_service.h"
#include "abi_tp.h"
#include "abi_ub.h"
#include "cc/cc.h"
#include "ceu/qp.h"
#include "ctxmgt/ctxmgt.h"
#include "ctxmgt/rate.h"
#include "port/port.h"

#define WORD(f) hca_be32_to_cpu(q->f)

/*
 * Bytes of a frame around one MTU of payload: Ethernet to immediate, pad and ICRC of WRITE ONLY
 * with immediate.
 */
#define FRAME_OVERHEAD (14u + 20u + 8u + 12u + 16u + 4u + 4u)

/* Fields of the context that belong to an attribute. */
static const struct qp_field {
	uint32_t attr, bits;
	uint32_t min, max;
	uint16_t off;
	uint8_t rule; /* enum hca_qp_attr_rule */
} fields[] = {
#define FIELD(attr, member, word, field, min, max, limit, rule, verbs) \
	{ \
		HCA_QP_ATTR_##attr, \
		HCA_BITS_OF(HCA_QPC_##field), \
		min, \
		max, \
		offsetof(struct hca_qpc, word), \
		HCA_QP_ATTR_##rule},
#define WHOLE(attr, word, bits) \
	{HCA_QP_ATTR_##attr, bits, 0, HCA_ATTR_ANY, offsetof(struct hca_qpc, word), \
	 HCA_QP_ATTR_RANGE},
	HCA_QP_VALUE_LIST(FIELD) HCA_QP_WORD_LIST(WHOLE)
#undef FIELD
#undef WHOLE
};

static bool
pkey_usable(const struct hca_core *h, uint32_t index)
{
	return index < HCA_PKEY_ENTRIES && h->ctxmgt->pkey[index] != 0;
}

static bool
attr_pkey(const struct hca_core *h, const struct hca_qpc *q)
{
	return pkey_usable(h, HCA_QPC_PKEY_INDEX(WORD(path.port_pkey)));
}

static bool
mtu_fits(const struct hca_core *h, uint32_t bytes)
{
	return bytes <= h->cfg.max_mtu && (h->port == NULL || h->port->max_frame == 0 ||
					   bytes + FRAME_OVERHEAD <= h->port->max_frame);
}

static uint32_t
port_mtu(const struct hca_core *h)
{
	uint32_t code = HCA_MTU_4096;

	while (code > HCA_MTU_256 && !mtu_fits(h, HCA_MTU_BYTES(code)))
		code--;
	return code;
}

static bool
attr_mtu(const struct hca_core *h, const struct hca_qpc *q)
{
	uint32_t code = HCA_QPC_MTU(WORD(sizes));

	return mtu_fits(h, HCA_MTU_BYTES(code));
}

/* Only the device sets ARMED. */
static bool
attr_mig(const struct hca_core *h, const struct hca_qpc *q)
{
	return HCA_QPC_MIG(WORD(flags)) == HCA_MIG_MIGRATED ||
	       HCA_QPC_MIG(WORD(flags)) == HCA_MIG_REARM;
}

static bool
attr_alt(const struct hca_core *h, const struct hca_qpc *q)
{
	return pkey_usable(h, HCA_QPC_PKEY_INDEX(WORD(alt_path.port_pkey)));
}

static bool
fits(const struct qp_field *f, uint32_t value)
{
	if (f->rule == HCA_QP_ATTR_CUT)
		return (value & ~f->max) == 0;
	return (value >= f->min && value <= f->max) ||
	       (f->rule == HCA_QP_ATTR_OPTION && value == 0);
}

static bool
within_limits(const struct hca_qpc *q, uint32_t mask)
{
	for (unsigned int i = 0; i < RTE_DIM(fields); i++) {
		const struct qp_field *f = &fields[i];
		uint32_t word = hca_get_be32((const uint8_t *)q + f->off);
		uint32_t value = (word & f->bits) >> rte_bsf32(f->bits);

		if ((mask & f->attr) && !fits(f, value))
			return false;
	}
	return true;
}

/* Checks that need more than the limits of one field. */
static const struct {
	uint32_t attr;
	bool (*ok)(const struct hca_core *h, const struct hca_qpc *q);
} checks[] = {
	{HCA_QP_ATTR_PKEY_INDEX, attr_pkey},
	{HCA_QP_ATTR_PATH_MTU, attr_mtu},
	{HCA_QP_ATTR_PATH_MIG_STATE, attr_mig},
	{HCA_QP_ATTR_ALT_PATH, attr_alt},
};

/* A QP can only be rearmed if it has an alternate path. */
static bool
may_rearm(const struct hca_core *h, const struct hca_qp_change *ch)
{
	return HCA_QPC_MIG(hca_be32_to_cpu(ch->image.flags)) != HCA_MIG_REARM ||
	       h->qp[ch->qpi].addr.alt_valid || ch->mask & HCA_QP_ATTR_ALT_PATH;
}

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
	known = hca_addr_mac(h->ctxmgt, p->dip);
	if (known != NULL)
		memcpy(p->dmac, known, sizeof(p->dmac));
	return known != NULL;
}

bool
hca_path_fill(const struct hca_core *h, const struct hca_qpc_path *q, struct hca_udp_path *p)
{
	uint32_t hop = HCA_QPC_HOP_LIMIT(WORD(ackto));

	if (!path_source(h, q, p) || !path_dip(q, p->dip) || !path_dmac(h, q, p))
		return false;
	if (hca_gid_is_ip4(p->dip) != (p->ip_version == 4))
		return false;
	p->flow_label = HCA_QPC_FLOW_LABEL(WORD(sl_tclass_flow));
	p->tclass = (uint8_t)HCA_QPC_TCLASS(WORD(sl_tclass_flow)) & 0xfc; /* without ECN */
	p->hop_limit = (uint8_t)(hop != 0 ? hop : HCA_HOP_LIMIT);
	return true;
}

uint8_t
hca_qp_algorithm(const struct hca_core *h, const struct hca_qpc *q)
{
	uint32_t service = HCA_QPC_SERVICE(WORD(flags)), ops = hca_service_info(service)->ops;

	if ((HCA_ROCE_SERVICES & 1u << service) == 0 ||
	    (ops & (HCA_WQE_OP_UC | HCA_WQE_OP_UD)) != 0)
		return 0;
	return WORD(congestion) != 0 ? (uint8_t)WORD(congestion) : h->cc_room->number;
}

/*
 * Whether switches may mark the packets of a QP: the algorithm of congestion control decides for
 * the services that it works for, otherwise the QP's traffic class.
 */
uint8_t
hca_qp_tclass(const struct hca_core *h, const struct hca_qpc *image, const struct hca_qpc_path *q)
{
	const struct hca_cc_ops *cc = h->cc_room->ops[hca_qp_algorithm(h, image)];
	uint8_t tclass = (uint8_t)HCA_QPC_TCLASS(WORD(sl_tclass_flow));

	if (cc != NULL)
		return hca_cc_tclass(cc, tclass);
	return (tclass & 3) == HCA_ECN_ECT0 ? tclass : tclass & 0xfc;
}

static bool
resolve_path(const struct hca_core *h, const struct hca_qp_change *ch, const struct hca_qpc_path *q,
	     struct hca_qp_path *out)
{
	struct hca_roce_path p = {.qpn = hca_be32_to_cpu(ch->image.remote_qpn), .migreq = true};
	uint32_t pace;

	memset(out, 0, sizeof(*out));
	out->rate = (uint8_t)HCA_QPC_STATIC_RATE(WORD(ackto));
	out->timeout = (uint8_t)HCA_QPC_ACKTO(WORD(ackto));
	if (!hca_rate_pace(out->rate, &pace) || !hca_path_fill(h, q, &p.udp))
		return false;
	p.udp.tclass = hca_qp_tclass(h, &ch->image, q);
	p.pkey = h->ctxmgt->pkey[HCA_QPC_PKEY_INDEX(WORD(port_pkey))];
	p.udp.sport = hca_roce_udp_sport(p.udp.flow_label, ch->qpn, p.qpn);
	if (hca_roce_template_fill(&p, &out->slot.tmpl) != 0)
		return false;
	out->slot.pkey = p.pkey;
	out->slot.vlan = p.udp.vlan ? HCA_VLAN_VID(p.udp.vlan_tci) : 0;
	memcpy(out->slot.peer_gid, p.udp.dip, sizeof(out->slot.peer_gid));
	memcpy(out->dmac, p.udp.dmac, sizeof(out->dmac));
	out->known = true;
	return true;
}

/* Q_Keys with the top bit are for privileged QPs. */
static bool
may_have_qkey(const struct hca_qpc *q)
{
	return !(WORD(qkey) & HCA_QKEY_CONTROLLED) || WORD(flags) & HCA_QPC_PRIVILEGED;
}

static bool
is_ud(const struct hca_qpc *q)
{
	return HCA_QPC_SERVICE(WORD(flags)) == HCA_ST_UD;
}

static const struct hca_wire_ops *
wire_of(const struct hca_core *h, const struct hca_qpc *q)
{
	return hca_wire_of_service(h, HCA_QPC_SERVICE(WORD(flags)));
}

static int
check_attrs(const struct hca_core *h, struct hca_qp_change *ch)
{
	const struct hca_qpc *q = &ch->image;
	const struct hca_wire_ops *w = wire_of(h, q);
	bool primary =
		ch->to == HCA_QPS_RTR || ch->mask & (HCA_QP_ATTR_AV | HCA_QP_ATTR_PKEY_INDEX);

	if (!within_limits(q, ch->mask))
		return HCA_STAT_BAD_PARAM;
	for (unsigned int i = 0; i < RTE_DIM(checks); i++)
		if ((ch->mask & checks[i].attr) && !checks[i].ok(h, &ch->image))
			return HCA_STAT_BAD_PARAM;
	if (w->qp_ok != NULL)
		return w->qp_ok(ch) ? HCA_STAT_OK : HCA_STAT_BAD_PARAM;
	if (is_ud(q))
		return HCA_STAT_OK; /* each message names its own path */
	if (ch->mask & HCA_QP_ATTR_PATH_MIG_STATE && !may_rearm(h, ch))
		return HCA_STAT_BAD_PARAM;
	if (ch->to == HCA_QPS_INIT)
		return HCA_STAT_OK;
	if (primary && !resolve_path(h, ch, &q->path, &ch->path[0]))
		return HCA_STAT_BAD_PARAM;
	if (ch->mask & HCA_QP_ATTR_ALT_PATH && !resolve_path(h, ch, &q->alt_path, &ch->path[1]))
		return HCA_STAT_BAD_PARAM;
	return HCA_STAT_OK;
}

static void
merge(struct hca_qpc *image, const struct hca_qpc *in, uint32_t mask)
{
	for (unsigned int i = 0; i < RTE_DIM(fields); i++) {
		uint8_t *to = (uint8_t *)image + fields[i].off;
		const uint8_t *from = (const uint8_t *)in + fields[i].off;

		if (!(mask & fields[i].attr))
			continue;
		hca_put_be32(to, (hca_get_be32(to) & ~fields[i].bits) |
					 (hca_get_be32(from) & fields[i].bits));
	}
}

/* Latch the fields that RST2INIT and RST2RTS take in addition to attributes. */
static void
latch(const struct hca_core *h, struct hca_qpc *image, const struct hca_qpc *in)
{
	uint32_t flags = hca_be32_to_cpu(in->flags), kept = HCA_QPC_PRIVILEGED;

	if (is_ud(in)) {
		kept |= HCA_QPC_NO_OWN_GROUP;
		if (flags & HCA_QPC_PRIVILEGED)
			image->remote_qpn =
				hca_cpu_to_be32(hca_be32_to_cpu(in->remote_qpn) & HCA_QPN_MASK);
	}
	kept |= wire_of(h, in)->qp_flags;
	image->flags = hca_cpu_to_be32(
		HCA_QPC_MAKE_FLAGS(HCA_QPS_INIT, HCA_QPC_SERVICE(flags), HCA_MIG_MIGRATED, 0) |
		(flags & kept));
	/* PATH_MTU comes with the rest of its word */
	image->sizes = hca_cpu_to_be32(hca_be32_to_cpu(in->sizes) & HCA_MASK(23, 0));
	image->usr_page = in->usr_page;
	image->local_qpn = in->local_qpn;
	image->srqn = in->srqn;
	image->pd = in->pd;
	image->xrcd = in->xrcd;
	image->cqn_snd = in->cqn_snd;
	image->snd_wqe_base_l = in->snd_wqe_base_l;
	image->snd_wqe_len = in->snd_wqe_len;
	image->cqn_rcv = in->cqn_rcv;
	image->rcv_wqe_base_l = in->rcv_wqe_base_l;
	image->rcv_wqe_len = in->rcv_wqe_len;
}

/* Compute and check the new image; everything that can be refused is refused here. */
int
hca_qp_judge(struct hca_core *h, const struct hca_qpc *in, struct hca_qp_change *ch)
{
	int rc;

	if (ch->from == HCA_QPS_RST)
		latch(h, &ch->image, in);
	else
		hca_qp_image_load(&h->qp[ch->qpi], &ch->image);
	merge(&ch->image, in, ch->mask);
	if (ch->mask & HCA_QP_ATTR_QKEY && wire_of(h, &ch->image)->qp_ok == NULL &&
	    !may_have_qkey(&ch->image)) {
		HCA_COUNT(h, CEU, qp_qkey_refused);
		return HCA_STAT_BAD_PARAM;
	}
	rc = check_attrs(h, ch);
	if (rc != HCA_STAT_OK)
		return rc;
	if (ch->mask & HCA_QP_ATTR_PATH_MTU)
		ch->mtu = (uint8_t)HCA_QPC_MTU(hca_be32_to_cpu(ch->image.sizes));
	else if (is_ud(&ch->image) && ch->to == HCA_QPS_INIT)
		ch->mtu = (uint8_t)port_mtu(h);
	return ch->from == HCA_QPS_RST ? HCA_STAT_OK : hca_qp_fit(h, ch);
}
