/* SPDX-License-Identifier: BSD-3-Clause */

/* Commands about the device, its ICM and its addresses (3.2.1, 3.2.2, extensions). */

#include <stdio.h>
#include <string.h>

#include "abi_bar.h"
#include "abi_wqe.h"
#include "ceu/ceu.h"
#include "ctxmgt/ctxmgt.h"
#include "engine/impl.h"

/* Limit of CQs: buffer and record together have a 32-bit length. */
#define CQ_LOG_MAX 22u
#define PDS_LOG 20u
#define ICM_MAX (UINT64_C(1) << 40)
/* In a WRITE: the stride minus next, raddr and the header of the inline unit. */
#define INLINE_MAX (HCA_WQE_MAX_STRIDE - 16u - 16u - 4u)

/*
 * 134 ms: a worker that shares its CPU may have to wait for it. As other devices in software say.
 */
#define ACK_DELAY 15u

static uint32_t
mtu_code(uint32_t bytes)
{
	uint32_t code = HCA_MTU_256;

	while (code < HCA_MTU_4096 && HCA_MTU_BYTES(code + 1) <= bytes)
		code++;
	return code;
}

static void
fill_extended(const struct hca_core *h, struct hca_mbox_dev_lim *m)
{
	m->caps = hca_cpu_to_be32(hca_ceu_caps(h));
	m->rd_atomic =
		hca_cpu_to_be32(HCA_LIM_MAKE_RD_ATOMIC(HCA_RD_ATOMIC_MAX, HCA_RD_ATOMIC_MAX,
						       h->cfg.log_srqs, HCA_WQ_MAX_LOG_SIZE));
	m->inline_mw = hca_cpu_to_be32(HCA_LIM_MAKE_INLINE_MW(INLINE_MAX, h->cfg.log_mpts, 0));
	m->gid_table_len = hca_cpu_to_be32(HCA_GID_ENTRIES);
	m->pkey_table_len = hca_cpu_to_be32(HCA_PKEY_ENTRIES);
	m->max_records = hca_cpu_to_be32(h->cfg.records_per_qp);
	m->mr = hca_cpu_to_be32(HCA_LIM_MAKE_MR(HCA_MAX_PAGE_LOG, h->cfg.log_mtts));
	m->max_mr_size = hca_cpu_to_be64(UINT64_C(1) << (HCA_MAX_PAGE_LOG + h->cfg.log_mtts));
	m->mcast = hca_cpu_to_be32(HCA_LIM_MAKE_MCAST(HCA_MCAST_GROUPS_LOG, HCA_MCAST_MEMBERS));
	m->num_uars = hca_cpu_to_be32(HCA_UAR_PAGES);
	m->num_counters = hca_cpu_to_be32(HCA_CTR_N);
	m->neigh_table_len = hca_cpu_to_be32(HCA_NEIGH_ENTRIES);
	m->msg = hca_cpu_to_be32(HCA_LIM_MAKE_MSG(31, HCA_WQE_MAX_SGE));
	HCA_WIRES_IN_USE(h, w)
	{
		if (w->limits != NULL)
			w->limits(h, m);
	}
}

int
hca_cmd_query_dev_lim(struct hca_core *h, struct hca_cmd *c)
{
	struct hca_mbox_dev_lim *m = (void *)c->out;
	const struct hca_config *g = &h->cfg;

	/* QPNs 0 and 1 and key index 0 are reserved */
	m->reserved_log = hca_cpu_to_be32(HCA_LIM_MAKE_RESERVED(1, 0, 0, 0));
	m->reserved_pd_lkey = hca_cpu_to_be32(HCA_LIM_MAKE_RESERVED_PD_LKEY(0, 0));
	m->max_sz = hca_cpu_to_be32(HCA_LIM_MAKE_SZ(HCA_WQ_MAX_LOG_SIZE, CQ_LOG_MAX));
	m->max_log =
		hca_cpu_to_be32(HCA_LIM_MAKE_MAX(g->log_qps, g->log_cqs, g->log_eqs, g->log_mpts));
	m->max_pd_gid_pkey = hca_cpu_to_be32(
		HCA_LIM_MAKE_PD_GID_PKEY(PDS_LOG, HCA_GID_ENTRIES_LOG, HCA_PKEY_ENTRIES_LOG));
	m->mtt_seg_sz = hca_cpu_to_be32(HCA_LIM_MAKE_MTT_SEG_SZ(HCA_MTT_SIZE));
	m->qpc_cqc_sz = hca_cpu_to_be32(HCA_LIM_MAKE_ENTRY_SZ(HCA_QPC_SIZE, HCA_CQC_SIZE));
	m->eqc_mpt_sz = hca_cpu_to_be32(HCA_LIM_MAKE_ENTRY_SZ(HCA_EQC_SIZE, HCA_MPT_SIZE));
	m->port = hca_cpu_to_be32(HCA_LIM_MAKE_PORT(ACK_DELAY, mtu_code(g->max_mtu), 1, 1, 1));
	m->min_page = hca_cpu_to_be32(HCA_LIM_MAKE_MIN_PAGE(HCA_MIN_PAGE_LOG));
	m->sq_sg = hca_cpu_to_be32(HCA_LIM_MAKE_SG(HCA_WQE_MAX_SGE, HCA_WQE_MAX_STRIDE));
	m->rq_sg = m->sq_sg;
	m->max_icm_sz = hca_cpu_to_be64(ICM_MAX);
	m->pipes = hca_cpu_to_be32(h->pipe_mask + 1u);
	fill_extended(h, m);
	return HCA_STAT_OK;
}

int
hca_cmd_query_adapter(struct hca_core *h, struct hca_cmd *c)
{
	struct hca_mbox_adapter *m = (void *)c->out;
	const uint8_t *mac = h->cfg.mac;
	/* EUI-64 made of the port's MAC address, as usual for node GUIDs */
	const uint8_t guid[8] = {mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};

	m->vendor_id = hca_cpu_to_be32(h->cfg.vendor_id);
	m->vendor_part_id = hca_cpu_to_be32(h->cfg.vendor_part_id);
	m->hw_ver = hca_cpu_to_be32(h->cfg.hw_ver);
	m->fw_ver = hca_cpu_to_be64(h->cfg.fw_ver);
	memcpy(&m->board_id, guid, sizeof(guid));
	return HCA_STAT_OK;
}

/*
 * The driver chooses the number of index bits of a QPN; no QP exists yet that a stage could use.
 */
static void
set_masks(struct hca *dev, uint32_t qp_mask, uint32_t srq_mask)
{
	for (unsigned int n = 0; n < dev->n_pipes; n++) {
		struct hca_core *h = &dev->pipe[n].core;

		__atomic_store_n(&h->qp_mask, qp_mask, __ATOMIC_RELAXED);
		__atomic_store_n(&h->srq_mask, srq_mask, __ATOMIC_RELAXED);
	}
}

int
hca_cmd_init_hca(struct hca_core *h, struct hca_cmd *c)
{
	const struct hca_mbox_init_hca *m = (const void *)c->in;
	struct hca_ctxmgt *x = h->ctxmgt;
	const struct {
		hca_be64 base;
		uint32_t max_log;
	} t[] = {
		[HCA_ICM_QPC] = {m->qpc_base, h->cfg.log_qps},
		[HCA_ICM_CQC] = {m->cqc_base, h->cfg.log_cqs},
		[HCA_ICM_EQC] = {m->eqc_base, h->cfg.log_eqs},
		[HCA_ICM_SRQC] = {m->srqc_base, h->cfg.log_srqs},
		[HCA_ICM_MPT] = {m->mpt_base, h->cfg.log_mpts},
	};

	if (x->ready)
		return HCA_STAT_BAD_SYS_STATE;
	if (c->op_modifier != 0 || (hca_be64_to_cpu(m->mtt_base) & (HCA_MTT_SIZE - 1)))
		return HCA_STAT_BAD_PARAM;
	for (unsigned int i = 0; i < RTE_DIM(t); i++)
		if (HCA_INIT_LOG(hca_be64_to_cpu(t[i].base)) > t[i].max_log)
			return HCA_STAT_EXCEED_LIM;
	for (unsigned int i = 0; i < RTE_DIM(t); i++) {
		x->base[i] = HCA_INIT_BASE(hca_be64_to_cpu(t[i].base));
		x->count[i] = 1u << HCA_INIT_LOG(hca_be64_to_cpu(t[i].base));
	}
	x->base[HCA_ICM_MTT] = hca_be64_to_cpu(m->mtt_base);
	x->count[HCA_ICM_MTT] = h->vtp.mtt_count;
	set_masks(h->hca, x->count[HCA_ICM_QPC] - 1, x->count[HCA_ICM_SRQC] - 1);
	x->ready = true;
	return HCA_STAT_OK;
}

int
hca_cmd_close_hca(struct hca_core *h, struct hca_cmd *c)
{
	if (c->index == 0) {
		hca_close_start(h, c, HCA_DOMAIN_ALL);
		c->index = 1;
	}
	if (!hca_close_step(h, c))
		return HCA_CMD_AGAIN;
	return HCA_STAT_OK;
}

/* Destroy all objects of an owner at once. */
int
hca_cmd_close_domain(struct hca_core *h, struct hca_cmd *c)
{
	if (c->index == 0) {
		if (c->in_modifier == 0 || c->in_modifier >= HCA_DMA_DOMAINS)
			return HCA_STAT_BAD_INDEX;
		hca_close_start(h, c, c->in_modifier);
		c->index = 1;
	}
	if (!hca_close_step(h, c))
		return HCA_CMD_AGAIN;
	return HCA_STAT_OK;
}

int
hca_cmd_nop(struct hca_core *h, struct hca_cmd *c)
{
	return c->in_modifier == HCA_NOP_IN_MODIFIER ? HCA_STAT_OK : HCA_STAT_BAD_PARAM;
}

int
hca_cmd_query_clock(struct hca_core *h, struct hca_cmd *c)
{
	if (c->in_modifier != 0)
		return HCA_STAT_BAD_PARAM;
	c->out_param = h->wake[h->stage_worker[HCA_STAGE_CEU]].now;
	c->out_is_value = true;
	return HCA_STAT_OK;
}

static bool
icm_type_ok(const struct hca_cmd *c)
{
	return c->op_modifier == HCA_ICM_CTX || c->op_modifier == HCA_ICM_TPT;
}

int
hca_cmd_map_icm(struct hca_core *h, struct hca_cmd *c)
{
	struct hca_mbox_map_icm *m = (void *)c->in;
	struct hca_icm_chunk chunk[HCA_MAP_ICM_MAX];

	if (!icm_type_ok(c))
		return HCA_STAT_BAD_PARAM;
	for (uint32_t i = 0; i < c->in_modifier; i++) {
		const struct hca_icm_entry *e = hca_map_icm_entry(m, i);
		uint64_t page = hca_be64_to_cpu(e->page);

		chunk[i].virt = hca_be64_to_cpu(e->virt);
		chunk[i].bus = HCA_ICM_PAGE_ADDR(page);
		chunk[i].pages = HCA_ICM_PAGE_NUM(page);
	}
	return hca_icm_map_chunks(h, c->op_modifier, chunk, c->in_modifier);
}

/* Live contexts keep their ICM. */
static bool
entry_live(const struct hca_core *h, enum hca_icm_table t, uint32_t i)
{
	switch (t) {
	case HCA_ICM_QPC:
		return h->qp[i].cfg.local_qpn != 0;
	case HCA_ICM_CQC:
		return hca_cq_state(&h->cq[i]) != HCA_CQ_FREE;
	case HCA_ICM_EQC:
		return hca_eq_is_live(h, i);
	case HCA_ICM_SRQC:
		return hca_srq_state(&h->srq[i]) != HCA_SRQ_FREE;
	case HCA_ICM_MPT:
		return hca_mpt_state(&h->vtp.mpt[i]) != HCA_MPT_FREE;
	default:
		return h->vtp.mtt_ref[i] != 0;
	}
}

int
hca_cmd_unmap_icm(struct hca_core *h, struct hca_cmd *c)
{
	if (!icm_type_ok(c))
		return HCA_STAT_BAD_PARAM;
	return hca_icm_unmap(h, c->op_modifier, c->in_param, c->in_modifier, entry_live);
}

/*
 * Encap reads entries for UD sends: a valid entry is first invalidated, and changed after a round.
 */
int
hca_cmd_set_gid(struct hca_core *h, struct hca_cmd *c)
{
	const struct hca_mbox_set_gid *m = (const void *)c->in;
	uint32_t index = hca_be32_to_cpu(m->index);
	int rc;

	if (c->step != 0) {
		if (!hca_round_done(h, c->rcu))
			return HCA_CMD_AGAIN;
		hca_gid_put(h->ctxmgt, m);
		return HCA_STAT_OK;
	}
	rc = hca_gid_check(h->ctxmgt, m);
	if (rc != HCA_STAT_OK)
		return rc;
	if (h->ctxmgt->gid[index].valid) {
		hca_gid_clear(h->ctxmgt, index);
		c->rcu = hca_round_start(h);
		c->step = 1;
		return HCA_CMD_AGAIN;
	}
	hca_gid_put(h->ctxmgt, m);
	return HCA_STAT_OK;
}

int
hca_cmd_set_pkey(struct hca_core *h, struct hca_cmd *c)
{
	return hca_pkey_set(h->ctxmgt, (const void *)c->in);
}
