/* SPDX-License-Identifier: BSD-3-Clause */

/* Checks of MODIFY_QP's attributes in the merged image (tables 3-2-40, 3-2-41, A1-3, A1-4). */

#include <string.h>

#include "ceu/qp.h"
#include "ctxmgt/ctxmgt.h"
#include "port/port.h"

#define WORD(f) hca_be32_to_cpu(q->f)

/*
 * Bytes of a frame beside one MTU of payload: Ethernet to immediate, pad and ICRC of WRITE ONLY
 * with immediate.
 */
#define FRAME_OVERHEAD (14u + 20u + 8u + 12u + 16u + 4u + 4u)

static bool
attr_access(const struct hca_core *h, const struct hca_qpc *q)
{
	return (WORD(access_flags) & ~HCA_ACCESS_MASK) == 0;
}

static bool
attr_pkey(const struct hca_core *h, const struct hca_qpc *q)
{
	uint32_t i = HCA_QPC_PKEY_INDEX(WORD(path.port_pkey));

	return i < HCA_PKEY_ENTRIES && h->ctxmgt->pkey[i] != 0;
}

static bool
attr_port(const struct hca_core *h, const struct hca_qpc *q)
{
	return HCA_QPC_PORT(WORD(path.port_pkey)) == 1;
}

static bool
mtu_fits(const struct hca_core *h, uint32_t bytes)
{
	return bytes <= h->cfg.max_mtu && (h->port == NULL || h->port->max_frame == 0 ||
					   bytes + FRAME_OVERHEAD <= h->port->max_frame);
}

uint32_t
hca_port_mtu(const struct hca_core *h)
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

	return HCA_MTU_VALID(code) && mtu_fits(h, HCA_MTU_BYTES(code));
}

static bool
attr_timeout(const struct hca_core *h, const struct hca_qpc *q)
{
	return HCA_QPC_ACKTO(WORD(path.ackto)) <= 31;
}

static bool
attr_retry(const struct hca_core *h, const struct hca_qpc *q)
{
	return HCA_QPC_RETRY_CNT(WORD(rd_atomic)) <= 7;
}

static bool
attr_rnr_retry(const struct hca_core *h, const struct hca_qpc *q)
{
	return HCA_QPC_RNR_RETRY(WORD(path.rnr_retry)) <= 7;
}

static bool
attr_min_rnr(const struct hca_core *h, const struct hca_qpc *q)
{
	return HCA_QPC_MIN_RNR_TIMER(WORD(rnr_nextrecvpsn)) <= 31;
}

static bool
attr_max_rd(const struct hca_core *h, const struct hca_qpc *q)
{
	return HCA_QPC_MAX_RD_ATOMIC(WORD(rd_atomic)) <= HCA_RD_ATOMIC_MAX;
}

static bool
attr_max_dest(const struct hca_core *h, const struct hca_qpc *q)
{
	return HCA_QPC_MAX_DEST_RD_ATOMIC(WORD(rd_atomic)) <= HCA_RD_ATOMIC_MAX;
}

static bool
attr_sq_psn(const struct hca_core *h, const struct hca_qpc *q)
{
	return (WORD(next_send_psn) & ~HCA_QPN_MASK) == 0;
}

static bool
attr_dest_qpn(const struct hca_core *h, const struct hca_qpc *q)
{
	return WORD(remote_qpn) > HCA_QPN_GSI && WORD(remote_qpn) < HCA_QPN_MULTICAST;
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
	uint32_t word = WORD(alt_path.port_pkey), pkey = HCA_QPC_PKEY_INDEX(word);

	return HCA_QPC_PORT(word) == 1 && pkey < HCA_PKEY_ENTRIES && h->ctxmgt->pkey[pkey] != 0 &&
	       HCA_QPC_ACKTO(WORD(alt_path.ackto)) <= 31;
}

static const struct {
	uint32_t attr;
	bool (*ok)(const struct hca_core *h, const struct hca_qpc *q);
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
	{HCA_QP_ATTR_ALT_PATH, attr_alt},
};

bool
hca_qp_may_have_qkey(const struct hca_qpc *q)
{
	return !(WORD(qkey) & HCA_QKEY_CONTROLLED) || WORD(flags) & HCA_QPC_PRIVILEGED;
}

/* A QP can only be rearmed if it has an alternate path. */
static bool
may_rearm(const struct hca_core *h, const struct hca_qp_change *ch)
{
	return HCA_QPC_MIG(hca_be32_to_cpu(ch->image.flags)) != HCA_MIG_REARM ||
	       h->qp[ch->qpi].addr.alt_valid || ch->mask & HCA_QP_ATTR_ALT_PATH;
}

int
hca_qp_check_attrs(const struct hca_core *h, struct hca_qp_change *ch)
{
	const struct hca_qpc *q = &ch->image;
	bool primary =
		ch->to == HCA_QPS_RTR || ch->mask & (HCA_QP_ATTR_AV | HCA_QP_ATTR_PKEY_INDEX);

	for (unsigned int i = 0; i < RTE_DIM(checks); i++)
		if ((ch->mask & checks[i].attr) && !checks[i].ok(h, &ch->image))
			return HCA_STAT_BAD_PARAM;
	if (HCA_QPC_SERVICE(WORD(flags)) == HCA_ST_UD)
		return HCA_STAT_OK; /* each message names its own path */
	if (ch->mask & HCA_QP_ATTR_PATH_MIG_STATE && !may_rearm(h, ch))
		return HCA_STAT_BAD_PARAM;
	if (ch->to == HCA_QPS_INIT)
		return HCA_STAT_OK;
	if (primary && !hca_qp_resolve(h, ch, &q->path, &ch->path[0]))
		return HCA_STAT_BAD_PARAM;
	if (ch->mask & HCA_QP_ATTR_ALT_PATH && !hca_qp_resolve(h, ch, &q->alt_path, &ch->path[1]))
		return HCA_STAT_BAD_PARAM;
	return HCA_STAT_OK;
}
