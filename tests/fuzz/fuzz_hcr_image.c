/* SPDX-License-Identifier: BSD-3-Clause */

#include "abi_qp_attr.h"
#include "fuzz_hcr.h"

#include <string.h>

static void
image_icm(struct hcr_world *w, const uint64_t *virt, uint32_t n, uint32_t first_page)
{
	struct hca_mbox_map_icm *m = (void *)w->in;

	for (uint32_t i = 0; i < n; i++) {
		struct hca_icm_entry *e = hca_map_icm_entry(m, i);
		uint64_t bus = (uintptr_t)w->driver + (first_page + 2 * i) * 4096u;

		e->virt = hca_cpu_to_be64(virt[i]);
		e->page = hca_cpu_to_be64(HCA_ICM_MAKE_PAGE(bus, 2));
	}
}

static void
image_init_hca(struct hcr_world *w)
{
	struct hca_mbox_init_hca *m = (void *)w->in;

	m->qpc_base = hca_cpu_to_be64(HCA_INIT_MAKE(V_QPC, LOG_QPS));
	m->cqc_base = hca_cpu_to_be64(HCA_INIT_MAKE(V_CQC, LOG_CQS));
	m->eqc_base = hca_cpu_to_be64(HCA_INIT_MAKE(V_EQC, LOG_EQS));
	m->mpt_base = hca_cpu_to_be64(HCA_INIT_MAKE(V_MPT, LOG_MPTS));
	m->mtt_base = hca_cpu_to_be64(V_MTT);
}

/* MPT and MTT indexes follow the offsets: 1 is the EQ, from 2 on the user's queues. */
static void
image_mpt(struct hcr_world *w, uint32_t i)
{
	struct hca_mpt *m = (void *)w->in;
	uint8_t *p = i <= 1 ? w->driver + D_EQ : w->user + U_QUEUE(i - 2);

	m->flags = hca_cpu_to_be32(HCA_MPT_FLAG_SW_OWNS | HCA_MPT_FLAG_REGION |
				   HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_WRITE);
	m->page_size = hca_cpu_to_be32(4096);
	m->key = hca_cpu_to_be32(KEY(i));
	m->pd = hca_cpu_to_be32(i <= 1 ? HCA_PD_MAKE(1, 0) : HCA_PD_MAKE(5, PAGE));
	m->start = hca_cpu_to_be64((uintptr_t)p);
	m->length = hca_cpu_to_be64(8192);
	hca_mpt_set_mtt_seg(m, 2 * i);
}

static void
image_mtt(struct hcr_world *w, uint32_t i)
{
	struct hca_mbox_write_mtt *m = (void *)w->in;
	uint8_t *p = i <= 1 ? w->driver + D_EQ : w->user + U_QUEUE(i - 2);

	m->start_index = hca_cpu_to_be64(2 * i);
	*hca_write_mtt_entry(m, 0) = hca_cpu_to_be64((uintptr_t)p);
	*hca_write_mtt_entry(m, 1) = hca_cpu_to_be64((uintptr_t)p + 4096);
}

static void
image_eqc(struct hcr_world *w)
{
	struct hca_eqc *c = (void *)w->in;

	hca_eqc_set_start(c, (uintptr_t)w->driver + D_EQ);
	c->logsize = hca_cpu_to_be32(HCA_EQC_MAKE_LOGSIZE(6));
	c->pd = hca_cpu_to_be32(HCA_PD_MAKE(1, 0));
	c->lkey = hca_cpu_to_be32(KEY(1));
}

static void
image_cqc(struct hcr_world *w, uint32_t cqn)
{
	struct hca_cqc *c = (void *)w->in;

	hca_cqc_set_start(c, (uintptr_t)w->user + U_QUEUE(cqn));
	c->logsize_usrpage = hca_cpu_to_be32(HCA_CQC_MAKE_LOGSIZE(4, PAGE));
	c->pd = hca_cpu_to_be32(HCA_PD_MAKE(5, PAGE));
	c->lkey = hca_cpu_to_be32(KEY(2 + cqn));
	c->cqn = hca_cpu_to_be32(cqn);
	c->ci_db = hca_cpu_to_be32(512);
	c->state_db = hca_cpu_to_be32(512 + 64);
}

static void
image_qpc(struct hcr_world *w, uint32_t i)
{
	struct hca_qpc *q = (void *)w->in;

	q->opt_param_mask = hca_cpu_to_be32(UINT32_MAX);
	q->flags = hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(0, HCA_ST_RC, HCA_MIG_MIGRATED, 0));
	q->sizes = hca_cpu_to_be32(HCA_QPC_MAKE_SIZES(HCA_MTU_1024, 31, 6, 6));
	q->usr_page = hca_cpu_to_be32(PAGE);
	q->local_qpn = hca_cpu_to_be32(QPN(i));
	q->remote_qpn = hca_cpu_to_be32(0x123456);
	q->path.port_pkey = hca_cpu_to_be32(HCA_QPC_MAKE_PORT_PKEY(1, 0));
	q->path.rnr_retry = hca_cpu_to_be32(HCA_QPC_MAKE_RNR_RETRY(7, 1));
	q->path.ackto = hca_cpu_to_be32(HCA_QPC_MAKE_ACKTO(14, 0, 0, 64));
	memcpy(&q->path.rgid[10], "\xff\xff\x0a\0\0\x02", 6);
	q->path.mac_lo = hca_cpu_to_be32(HCA_QPC_MAKE_MAC_LO(UINT64_C(0x020000000002), 0));
	q->path.dmac_hi = hca_cpu_to_be32(HCA_QPC_MAC_HI(UINT64_C(0x020000000002)));
	q->rd_atomic = hca_cpu_to_be32(HCA_QPC_MAKE_RD_ATOMIC(4, 8, 7));
	q->pd = hca_cpu_to_be32(HCA_PD_MAKE(5, PAGE));
	q->cqn_snd = hca_cpu_to_be32(2);
	q->cqn_rcv = hca_cpu_to_be32(3);
	q->snd_wqe_base_l = hca_cpu_to_be32(KEY(6));
	q->snd_wqe_len = hca_cpu_to_be32(1024);
	q->rcv_wqe_base_l = hca_cpu_to_be32(KEY(7));
	q->rcv_wqe_len = hca_cpu_to_be32(512);
}

static void
image_gid(struct hcr_world *w)
{
	struct hca_mbox_set_gid *m = (void *)w->in;

	m->flags = hca_cpu_to_be32(HCA_GID_MAKE_FLAGS(1, HCA_GID_ROCE_V2_IPV4, 0, 0));
	memcpy(m->gid + 10, "\xff\xff\x0a\0\0\x01", 6);
	m->mac[0] = 2;
}

/* The attributes that a transition requires; the image of the QPC has the rest. */
static void
image_modify(struct hcr_world *w, uint32_t i)
{
	static const uint32_t masks[] = {
		HCA_QP_ATTR_PKEY_INDEX | HCA_QP_ATTR_PORT | HCA_QP_ATTR_ACCESS_FLAGS,
		HCA_QP_ATTR_AV | HCA_QP_ATTR_PATH_MTU | HCA_QP_ATTR_DEST_QPN | HCA_QP_ATTR_RQ_PSN |
			HCA_QP_ATTR_MAX_DEST_RD_ATOMIC | HCA_QP_ATTR_MIN_RNR_TIMER,
		HCA_QP_ATTR_TIMEOUT | HCA_QP_ATTR_RETRY_CNT | HCA_QP_ATTR_RNR_RETRY |
			HCA_QP_ATTR_SQ_PSN | HCA_QP_ATTR_MAX_QP_RD_ATOMIC,
		0,
	};

	image_qpc(w, i / 4);
	((struct hca_qpc *)(void *)w->in)->opt_param_mask = hca_cpu_to_be32(masks[i % 4]);
}

/* A TP whose number is as that of a QP. */
static void
image_tpc(struct hcr_world *w, uint32_t i)
{
	struct hca_tpc *c = (void *)w->in;

	hca_tpc_set(c, HCA_TPC_STATE, HCA_TPS_ACTIVE);
	hca_tpc_set(c, HCA_TPC_MODE, HCA_TP_MODE_SACK);
	hca_tpc_set(c, HCA_TPC_RULE, HCA_TP_RULE_TIME);
	hca_tpc_set(c, HCA_TPC_TPN, QPN(i));
	hca_tpc_set(c, HCA_TPC_PEER, 0x77);
	hca_tpc_set(c, HCA_TPC_REQUESTS, 16);
	hca_tpc_set(c, HCA_TPC_ACK_EVERY, 16);
	hca_tpc_set(c, HCA_TPC_OOO_EVERY, 1);
	hca_tpc_set(c, HCA_TPC_SPORT, 0xc000);
	c->path.port_pkey = hca_cpu_to_be32(HCA_QPC_MAKE_PORT_PKEY(1, 0));
	memcpy(&c->path.rgid[10], "\xff\xff\x0a\0\0\x02", 6);
	c->path.mac_lo = hca_cpu_to_be32(HCA_QPC_MAKE_MAC_LO(UINT64_C(0x020000000002), 0));
	c->path.dmac_hi = hca_cpu_to_be32(HCA_QPC_MAC_HI(UINT64_C(0x020000000002)));
}

static void
image_jetty(struct hcr_world *w, uint32_t i)
{
	struct hca_qpc *q = (void *)w->in;

	image_qpc(w, i);
	q->flags = hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(0, HCA_ST_JETTY, 0, 0));
	q->opt_param_mask = hca_cpu_to_be32(HCA_QP_ATTR_TIMEOUT | HCA_QP_ATTR_RNR_RETRY |
					    HCA_QP_ATTR_MIN_RNR_TIMER);
}

/* For SET_TPG: one TP or none; for SET_TOKEN: flags. */
static void
image_group(struct hcr_world *w, uint32_t i)
{
	struct hca_mbox_set_tpg *m = (void *)w->in;

	m->count = hca_cpu_to_be32(i);
	m->tpn[0] = hca_cpu_to_be32(QPN(i));
}

static void
image_others(struct hcr_world *w, uint32_t i)
{
	static void (*const ub[])(struct hcr_world * w, uint32_t i) = {image_tpc, image_jetty,
								       image_group};

	if (i % 4 == 0)
		image_gid(w);
	else
		ub[i % 4 - 1](w, i / 4);
}

void
hcr_image(struct hcr_world *w, uint8_t what)
{
	static const uint64_t ctx[] = {V_QPC, V_CQC, V_EQC}, tpt[] = {V_MPT, V_MTT};
	uint32_t i = what / 8;

	memset(w->in, 0, HCA_MBOX_SIZE);
	switch (what % 8) {
	case 0:
		image_init_hca(w);
		break;
	case 1:
		image_icm(w, i & 1 ? tpt : ctx, i & 1 ? 2 : 3, i & 1 ? 6 : 0);
		break;
	case 2:
		image_mpt(w, i);
		break;
	case 3:
		image_mtt(w, i);
		break;
	case 4:
		image_eqc(w);
		break;
	case 5:
		image_cqc(w, i % 8);
		break;
	case 6:
		image_modify(w, i);
		break;
	default:
		image_others(w, i);
	}
}

/* ---- leftovers ---- */

void
hcr_check_no_ub(const struct hcr_world *w)
{
	const struct hca_ub *ub = w->h->core->ub;

	for (uint32_t i = 0; i <= ub->tp_mask; i++) {
		fuzz_check(i == HCA_TP_UNRELIABLE || ub->tp[i].cfg.own_tpn == 0,
			   "a reset leaves TP %u", i);
		fuzz_check(ub->tpg[i].count == 0, "a reset leaves group %u", i);
	}
	for (uint32_t i = 0; i < 1u << LOG_MPTS; i++)
		fuzz_check(ub->token[i].flags == 0, "a reset leaves segment %u", i);
	for (uint32_t i = 0; i < HCA_TC_WELL_KNOWN; i++)
		fuzz_check(ub->known[i] == HCA_TC_NONE, "a reset leaves number %u", i);
	for (uint32_t i = 0; i < HCA_TP_LANES; i++)
		fuzz_check(ub->pool[i].free_n == ub->pool[i].count, "a reset leaves operations");
	fuzz_check(ub->tp_bytes == 0, "a reset leaves %llu bytes of TPs",
		   (unsigned long long)ub->tp_bytes);
}
