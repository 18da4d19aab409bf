/* SPDX-License-Identifier: BSD-3-Clause */

/* The UD unit of a send WQE (tables 3-4-8, 3-4-9), checked against the port's GID table. */

#include <string.h>

#include "abi_cqe.h"
#include "abi_roce.h"
#include "abi_wqe.h"
#include "ctxmgt/ctxmgt.h"
#include "ctxmgt/rate.h"
#include "engine/impl.h"
#include "requester/wqe_unit.h"

#define ECN_MASK 3u

/* Source addresses in the WQE must equal those of the GID entry. */
static bool
source_ok(const struct hca_ud_unit *u, const struct hca_gid_entry *g, bool gid_form)
{
	uint64_t smac = HCA_UD_SMAC(hca_le32_to_cpu(u->mac_lo), hca_le32_to_cpu(u->smac_hi));
	uint32_t sip = gid_form ? 0 : hca_le32_to_cpu(u->sip);
	uint8_t mac[6];

	hca_mac_bytes(mac, smac);
	if (smac != 0 && memcmp(mac, g->mac, sizeof(mac)) != 0)
		return false;
	return sip == 0 || (g->ip_version == 4 && sip == hca_get_be32(g->gid + 12));
}

static void
read_dgid(const struct hca_ud_unit *u, bool gid_form, uint8_t dgid[16])
{
	uint8_t ip[4];

	if (gid_form) {
		memcpy(dgid, u->dgid, 16);
		return;
	}
	hca_put_be32(ip, hca_le32_to_cpu(u->dip));
	hca_gid_from_ip4(dgid, ip);
}

/* Management datagrams need privileges: QPNs 0 and 1, Q_Keys with the top bit set. */
static bool
may_send(const struct hca_qp *qp, const struct hca_ud_av *av)
{
	return likely(av->dqpn > HCA_QPN_GSI && !(av->qkey & HCA_QKEY_CONTROLLED)) ||
	       qp->cfg.privileged;
}

uint8_t
hca_wqe_judge_address(struct hca_pipe *h, const struct hca_ud_unit *u, struct hca_ud_av *av)
{
	uint32_t port = hca_le32_to_cpu(u->port), flow = hca_le32_to_cpu(u->flow);
	uint32_t hop = HCA_UD_HOP_LIMIT(port);
	uint64_t dmac = HCA_UD_DMAC(hca_le32_to_cpu(u->mac_lo), hca_le32_to_cpu(u->dmac_hi));
	const struct hca_gid_entry *g = hca_gid_get(h->ctxmgt, HCA_UD_SGID_INDEX(port));
	bool gid_form = flow & HCA_UD_GID_FORM;

	if (HCA_UD_PORT(port) != 1 || g == NULL || !source_ok(u, g, gid_form) || dmac == 0)
		return HCA_SYND_LOCAL_QP_OP;
	memset(av, 0, sizeof(*av));
	if (!hca_rate_pace(HCA_UD_STATIC_RATE(flow), &av->pace))
		return HCA_SYND_LOCAL_QP_OP;
	read_dgid(u, gid_form, av->dgid);
	if (hca_gid_is_mapped(av->dgid) != (g->ip_version == 4))
		return HCA_SYND_LOCAL_QP_OP;
	hca_mac_bytes(av->dmac, dmac);
	av->sgid_index = (uint8_t)HCA_UD_SGID_INDEX(port);
	av->hop_limit = (uint8_t)(hop != 0 ? hop : HCA_HOP_LIMIT);
	av->tclass = (uint8_t)(HCA_UD_TCLASS(port) & ~ECN_MASK);
	av->priority = (uint8_t)HCA_UD_PRIORITY(flow);
	av->flow_label = HCA_UD_FLOW_LABEL(flow);
	return 0;
}

uint8_t
hca_wqe_judge_ud(struct hca_pipe *h, const struct hca_qp *qp, const struct hca_wqe *w,
		 struct hca_ud_av *av)
{
	const struct hca_ud_unit *u = w->ud;
	uint32_t qkey = hca_le32_to_cpu(u->qkey);
	uint8_t syndrome = hca_wqe_judge_address(h, u, av);

	if (syndrome != 0)
		return syndrome;
	if (hca_le32_to_cpu(u->dqpn) > HCA_QPN_MASK)
		return HCA_SYND_LOCAL_QP_OP;
	if (w->len > 1u << qp->cfg.mtu_log)
		return HCA_SYND_LOCAL_LENGTH;
	av->dqpn = hca_le32_to_cpu(u->dqpn);
	av->qkey = qkey & HCA_UD_QKEY_FROM_QPC ? __atomic_load_n(&qp->cfg.qkey, __ATOMIC_ACQUIRE)
					       : qkey;
	if (!may_send(qp, av)) {
		HCA_COUNT(h, PARSER, sq_management_refused);
		return HCA_SYND_LOCAL_QP_OP;
	}
	return 0;
}
