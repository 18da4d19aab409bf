/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdlib.h>
#include <string.h>
#include "../../test_eal.h"
#include "rig.h"

#define HCR(f) (HCA_BAR0_HCR + offsetof(struct hca_hcr, f))
#define ICM_BYTES (512u << 10)
#define POLLS 4000u

/* Layout of the memory blocks. */
#define D_ICM 0u
#define D_MBOX_IN ICM_BYTES
#define D_MBOX_OUT (ICM_BYTES + 4096u)
#define D_EQ (ICM_BYTES + 8192u)
#define U_CQ(n) ((n)*8192u)
#define U_SQ (512u << 10)
#define U_RQ ((512u << 10) + 8192u)

/* ICM addresses of the tables: context tables in one space, translation tables in the other. */
#define V_QPC 0x100000u
#define V_CQC 0x110000u
#define V_EQC 0x120000u
#define V_SRQC 0x140000u
#define V_MPT 0x200000u
#define V_MTT 0x210000u

static uint16_t
port_rx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	return 0;
}

static uint16_t
port_tx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	rte_pktmbuf_free_bulk(m, n);
	return n;
}

static bool
port_up(struct hca_port *p)
{
	return !((struct rig *)(void *)((uint8_t *)p - offsetof(struct rig, port)))->link_down;
}

void
rig_link(struct rig *r, bool up)
{
	r->link_down = !up;
}

static const struct hca_port_ops port_ops = {.rx = port_rx, .tx = port_tx, .link_up = port_up};

int
rig_eal(void)
{
	return test_eal_start(256);
}

static void *
block_new(void)
{
	void *p = aligned_alloc(RIG_BLOCK, RIG_BLOCK);

	assert_non_null(p);
	memset(p, 0, RIG_BLOCK);
	return p;
}

static struct rig *new (uint32_t wires, uint32_t log_qps)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct hca_config cfg = {
		.name = "t0",
		.socket_id = -1,
		.log_qps = log_qps,
		.log_cqs = RIG_LOG_CQS,
		.log_eqs = RIG_LOG_EQS,
		.log_mpts = RIG_LOG_MPTS,
		.log_mtts = RIG_LOG_MTTS,
		.log_tps = RIG_LOG_TPS,
		.ub_ops = 64,
		.wires = wires,
		.records = 128,
		.full_records = 64,
		.records_per_qp = 8,
		.mbufs = 128,
		.mac = {2, 0, 0, 0, 0, 1},
	};

	r->port.ops = &port_ops;
	r->port.max_frame = 9000;
	r->port.queue_size = 32;
	cfg.port = &r->port;
	assert_int_equal(hca_create(&cfg, &r->h), 0);
	r->driver = block_new();
	r->user = block_new();
	r->in = r->driver + D_MBOX_IN;
	r->out = r->driver + D_MBOX_OUT;
	assert_int_equal(hca_dma_attach(r->h, 0, (uintptr_t)r->driver, RIG_BLOCK), 0);
	assert_int_equal(hca_dma_attach(r->h, RIG_PAGE, (uintptr_t)r->user, RIG_BLOCK), 0);
	return r;
}

struct rig *
rig_new(bool init)
{
	return rig_new_on(0, init);
}

struct rig *
rig_new_on(uint32_t wires, bool init)
{
	struct rig *r = new (wires, RIG_LOG_QPS);

	if (init)
		rig_init_hca(r);
	return r;
}

struct rig *
rig_new_wide(uint32_t log_qps)
{
	return new (0, log_qps);
}

void
rig_free(struct rig *r)
{
	hca_destroy(r->h);
	free(r->driver);
	free(r->user);
	free(r);
}

void
rig_poll(struct rig *r)
{
	r->now += 1000;
	hca_poll(r->h, 0, r->now);
}

uint32_t
rig_ctrl(struct rig *r)
{
	return hca_bar_load(r->h->core->bar0, HCR(ctrl));
}

void
rig_post(struct rig *r, uint32_t ctrl, uint32_t in_mod, uint64_t in, uint64_t out, uint16_t token)
{
	uint8_t *b = r->h->core->bar0;

	hca_bar_store(b, HCR(in_param_hi), (uint32_t)(in >> 32));
	hca_bar_store(b, HCR(in_param_lo), (uint32_t)in);
	hca_bar_store(b, HCR(out_param_hi), (uint32_t)(out >> 32));
	hca_bar_store(b, HCR(out_param_lo), (uint32_t)out);
	hca_bar_store(b, HCR(in_modifier), in_mod);
	hca_bar_store(b, HCR(token), HCA_HCR_MAKE_TOKEN(token));
	hca_bar_store(b, HCR(ctrl), ctrl);
}

int
rig_cmd(struct rig *r, uint16_t op, uint8_t mod, uint32_t in_mod, uint64_t in, uint64_t out)
{
	rig_post(r, HCA_HCR_MAKE_CTRL(0, mod, op), in_mod, in, out, HCA_CMD_POLL_TOKEN);
	for (unsigned int i = 0; i < POLLS && (rig_ctrl(r) & HCA_HCR_GO); i++)
		rig_poll(r);
	assert_false(rig_ctrl(r) & HCA_HCR_GO);
	r->out_param = (uint64_t)hca_bar_load(r->h->core->bar0, HCR(out_param_hi)) << 32 |
		       hca_bar_load(r->h->core->bar0, HCR(out_param_lo));
	return (int)HCA_HCR_STATUS(rig_ctrl(r));
}

int
rig_mbox(struct rig *r, uint16_t op, uint32_t in_mod)
{
	return rig_cmd(r, op, 0, in_mod, (uintptr_t)r->in, (uintptr_t)r->out);
}

static void
map_icm(struct rig *r, uint8_t type, const uint64_t *virt, const uint32_t *pages, uint32_t n,
	uint32_t *used)
{
	struct hca_mbox_map_icm *m = (void *)r->in;

	memset(m, 0, sizeof(*m));
	for (uint32_t i = 0; i < n; i++) {
		struct hca_icm_entry *e = hca_map_icm_entry(m, i);
		uint64_t bus = (uintptr_t)r->driver + D_ICM + *used * 4096u;

		e->virt = hca_cpu_to_be64(virt[i]);
		e->page = hca_cpu_to_be64(HCA_ICM_MAKE_PAGE(bus, pages[i]));
		*used += pages[i];
	}
	assert_int_equal(rig_cmd(r, HCA_CMD_MAP_ICM, type, n, (uintptr_t)r->in, 0), 0);
}

void
rig_init_hca(struct rig *r)
{
	struct hca_mbox_init_hca *m = (void *)r->in;
	const uint64_t ctx[] = {V_QPC, V_CQC, V_EQC}, tpt[] = {V_MPT, V_MTT}, srq[] = {V_SRQC};
	const uint32_t pages[] = {2, 1, 1}, tpages[] = {2, 8}, spages[] = {1};
	uint32_t used = 0;

	memset(m, 0, sizeof(*m));
	m->qpc_base = hca_cpu_to_be64(HCA_INIT_MAKE(V_QPC, RIG_LOG_QPS));
	m->cqc_base = hca_cpu_to_be64(HCA_INIT_MAKE(V_CQC, RIG_LOG_CQS));
	m->eqc_base = hca_cpu_to_be64(HCA_INIT_MAKE(V_EQC, RIG_LOG_EQS));
	m->srqc_base = hca_cpu_to_be64(HCA_INIT_MAKE(V_SRQC, RIG_LOG_SRQS));
	m->mpt_base = hca_cpu_to_be64(HCA_INIT_MAKE(V_MPT, RIG_LOG_MPTS));
	m->mtt_base = hca_cpu_to_be64(V_MTT);
	assert_int_equal(rig_mbox(r, HCA_CMD_INIT_HCA, 0), HCA_STAT_OK);
	map_icm(r, HCA_ICM_CTX, ctx, pages, 3, &used);
	map_icm(r, HCA_ICM_TPT, tpt, tpages, 2, &used);
	r->srqc = r->driver + D_ICM + used * 4096u;
	map_icm(r, HCA_ICM_CTX, srq, spages, 1, &used);
}

uint32_t
rig_mtt(struct rig *r, const uint8_t *p, uint32_t pages)
{
	struct hca_mbox_write_mtt *m = (void *)r->in;
	uint32_t first = r->next_mtt;

	memset(m, 0, sizeof(*m));
	m->start_index = hca_cpu_to_be64(first);
	for (uint32_t i = 0; i < pages; i++)
		*hca_write_mtt_entry(m, i) = hca_cpu_to_be64((uintptr_t)p + i * 4096u);
	assert_int_equal(rig_mbox(r, HCA_CMD_WRITE_MTT, pages), HCA_STAT_OK);
	r->next_mtt += pages;
	return first;
}

void
rig_fill_mpt(struct rig *r, uint32_t index, uint32_t pd, const uint8_t *p, uint64_t len,
	     uint32_t mtt)
{
	struct hca_mpt *m = (void *)r->in;

	memset(m, 0, sizeof(*m));
	m->flags = hca_cpu_to_be32(HCA_MPT_FLAG_SW_OWNS | HCA_MPT_FLAG_REGION |
				   HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_WRITE |
				   HCA_ACCESS_REMOTE_READ | HCA_ACCESS_REMOTE_ATOMIC);
	m->page_size = hca_cpu_to_be32(4096);
	m->key = hca_cpu_to_be32(HCA_KEY_MAKE(0x2a, index, 0x33));
	m->pd = hca_cpu_to_be32(pd);
	m->start = hca_cpu_to_be64((uintptr_t)p);
	m->length = hca_cpu_to_be64(len);
	hca_mpt_set_mtt_seg(m, mtt);
	m->first_byte_offset = hca_cpu_to_be32((uintptr_t)p & 4095);
}

uint32_t
rig_mr(struct rig *r, uint32_t index, uint32_t pd, const uint8_t *p, uint64_t len)
{
	const uint8_t *page = (const uint8_t *)((uintptr_t)p & ~(uintptr_t)4095);
	uint32_t mtt = rig_mtt(r, page, (uint32_t)((p + len - page + 4095) / 4096));

	rig_fill_mpt(r, index, pd, p, len, mtt);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_MPT, index), HCA_STAT_OK);
	return HCA_KEY_MAKE(0x2a, index, 0x33);
}

uint8_t *
rig_eq_mem(struct rig *r)
{
	return r->driver + D_EQ;
}

uint8_t *
rig_cq_mem(struct rig *r, uint32_t cqn)
{
	return r->user + U_CQ(cqn);
}

void
rig_eq(struct rig *r, uint32_t eqn, uint32_t log)
{
	uint32_t key = rig_mr(r, 1 + eqn, RIG_KPD, rig_eq_mem(r), 4096);
	struct hca_eqc *c = (void *)r->in;

	memset(c, 0, sizeof(*c));
	for (uint32_t i = 0; i < 4096 / HCA_EQE_SIZE; i++)
		rig_eqe(r, i)->owner = HCA_OWNER_HW;
	hca_eqc_set_start(c, (uintptr_t)rig_eq_mem(r));
	c->logsize = hca_cpu_to_be32(HCA_EQC_MAKE_LOGSIZE(log));
	c->pd = hca_cpu_to_be32(RIG_KPD);
	c->lkey = hca_cpu_to_be32(key);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_EQ, eqn), HCA_STAT_OK);
	assert_int_equal(rig_cmd(r, HCA_CMD_MAP_EQ, 0, eqn, HCA_EVENT_MASK_ALL, 0), HCA_STAT_OK);
}

struct hca_eqe *
rig_eqe(struct rig *r, uint32_t i)
{
	return (struct hca_eqe *)(void *)(rig_eq_mem(r) + i * HCA_EQE_SIZE);
}

void
rig_fill_cqc(struct rig *r, uint32_t cqn, uint32_t log, uint32_t key)
{
	struct hca_cqc *c = (void *)r->in;
	uint32_t bytes = HCA_CQE_SIZE << log;

	memset(c, 0, sizeof(*c));
	hca_cqc_set_start(c, (uintptr_t)rig_cq_mem(r, cqn));
	c->logsize_usrpage = hca_cpu_to_be32(HCA_CQC_MAKE_LOGSIZE(log, RIG_PAGE));
	c->comp_eqn = 0;
	c->pd = hca_cpu_to_be32(RIG_PD);
	c->lkey = hca_cpu_to_be32(key);
	c->cqn = hca_cpu_to_be32(cqn);
	c->ci_db = hca_cpu_to_be32(bytes);
	c->state_db = hca_cpu_to_be32(bytes + 64);
}

void
rig_cq(struct rig *r, uint32_t cqn, uint32_t log)
{
	uint32_t key = rig_mr(r, 10 + cqn, RIG_PD, rig_cq_mem(r, cqn), 8192);

	rig_fill_cqc(r, cqn, log, key);
	assert_int_equal(rig_mbox(r, HCA_CMD_SW2HW_CQ, cqn), HCA_STAT_OK);
}

void
rig_gid(struct rig *r)
{
	static const uint8_t gid[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1},
			     mac[6] = {2, 0, 0, 0, 0, 1};
	struct hca_mbox_set_gid *m = (void *)r->in;

	memset(m, 0, sizeof(*m));
	m->flags = hca_cpu_to_be32(HCA_GID_MAKE_FLAGS(1, HCA_GID_ROCE_V2_IPV4, 0, 0));
	memcpy(m->gid, gid, 16);
	memcpy(m->mac, mac, 6);
	assert_int_equal(rig_mbox(r, HCA_CMD_SET_GID, 0), HCA_STAT_OK);
}

struct hca_qpc_path
rig_path(uint8_t host)
{
	uint64_t mac = UINT64_C(0x020000000000) | host;
	struct hca_qpc_path p = {
		.port_pkey = hca_cpu_to_be32(HCA_QPC_MAKE_PORT_PKEY(1, 0)),
		.ackto = hca_cpu_to_be32(HCA_QPC_MAKE_ACKTO(0, 0, 0, 64)),
		.rgid = {[10] = 0xff, 0xff, 10, 0, 0, host},
		.mac_lo = hca_cpu_to_be32(HCA_QPC_MAKE_MAC_LO(mac, 0)),
		.dmac_hi = hca_cpu_to_be32(HCA_QPC_MAC_HI(mac)),
	};

	return p;
}

void
rig_qp_world(struct rig *r)
{
	rig_eq(r, 0, 6);
	rig_cq(r, 2, 4);
	rig_cq(r, 3, 4);
	rig_mr(r, 20, RIG_PD, r->user + U_SQ, 1024);
	rig_mr(r, 21, RIG_PD, r->user + U_RQ, 512 + 128);
	rig_gid(r);
}

struct hca_qpc *
rig_qpc(struct rig *r, uint32_t qpi, uint32_t mask)
{
	struct hca_qpc *q = (void *)r->in;

	memset(q, 0, sizeof(*q));
	q->opt_param_mask = hca_cpu_to_be32(mask);
	q->flags = hca_cpu_to_be32(HCA_QPC_MAKE_FLAGS(0, HCA_ST_RC, HCA_MIG_MIGRATED, 0));
	q->sizes = hca_cpu_to_be32(HCA_QPC_MAKE_SIZES(HCA_MTU_1024, 31, 6, 6));
	q->usr_page = hca_cpu_to_be32(RIG_PAGE);
	q->local_qpn = hca_cpu_to_be32(RIG_QPN(qpi));
	q->remote_qpn = hca_cpu_to_be32(0x123456);
	q->path.port_pkey = hca_cpu_to_be32(HCA_QPC_MAKE_PORT_PKEY(1, 0));
	q->path.rnr_retry = hca_cpu_to_be32(HCA_QPC_MAKE_RNR_RETRY(7, 1));
	q->path.ackto = hca_cpu_to_be32(HCA_QPC_MAKE_ACKTO(14, 0, 0, 64));
	q->path.rgid[10] = 0xff;
	q->path.rgid[11] = 0xff;
	memcpy(&q->path.rgid[12], "\x0a\0\0\x02", 4);
	q->path.mac_lo = hca_cpu_to_be32(HCA_QPC_MAKE_MAC_LO(UINT64_C(0x020000000002), 0));
	q->path.dmac_hi = hca_cpu_to_be32(HCA_QPC_MAC_HI(UINT64_C(0x020000000002)));
	q->access_flags = hca_cpu_to_be32(HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ);
	q->rd_atomic = hca_cpu_to_be32(HCA_QPC_MAKE_RD_ATOMIC(4, 8, 7));
	q->pd = hca_cpu_to_be32(RIG_PD);
	q->next_send_psn = hca_cpu_to_be32(0xabcdef);
	q->rnr_nextrecvpsn = hca_cpu_to_be32(HCA_QPC_MAKE_RNR_EPSN(12, 0x654321));
	q->cqn_snd = hca_cpu_to_be32(2);
	q->cqn_rcv = hca_cpu_to_be32(3);
	q->snd_wqe_base_l = hca_cpu_to_be32(HCA_KEY_MAKE(0x2a, 20, 0x33));
	q->snd_wqe_len = hca_cpu_to_be32(1024);
	q->rcv_wqe_base_l = hca_cpu_to_be32(HCA_KEY_MAKE(0x2a, 21, 0x33));
	q->rcv_wqe_len = hca_cpu_to_be32(512);
	return q;
}

int
rig_to_init(struct rig *r, uint32_t qpi)
{
	rig_qpc(r, qpi, HCA_QP_ATTR_PKEY_INDEX | HCA_QP_ATTR_PORT | HCA_QP_ATTR_ACCESS_FLAGS);
	return rig_mbox(r, HCA_CMD_RST2INIT_QPEE, RIG_QPN(qpi));
}

int
rig_to_rtr(struct rig *r, uint32_t qpi)
{
	rig_qpc(r, qpi,
		HCA_QP_ATTR_AV | HCA_QP_ATTR_PATH_MTU | HCA_QP_ATTR_DEST_QPN | HCA_QP_ATTR_RQ_PSN |
			HCA_QP_ATTR_MAX_DEST_RD_ATOMIC | HCA_QP_ATTR_MIN_RNR_TIMER);
	return rig_mbox(r, HCA_CMD_INIT2RTR_QPEE, RIG_QPN(qpi));
}

int
rig_to_rts(struct rig *r, uint32_t qpi)
{
	rig_qpc(r, qpi,
		HCA_QP_ATTR_TIMEOUT | HCA_QP_ATTR_RETRY_CNT | HCA_QP_ATTR_RNR_RETRY |
			HCA_QP_ATTR_SQ_PSN | HCA_QP_ATTR_MAX_QP_RD_ATOMIC);
	return rig_mbox(r, HCA_CMD_RTR2RTS_QPEE, RIG_QPN(qpi));
}

/* Copy the QP's contexts, all MPTs and all CQs. */
static size_t
take_snapshot(struct rig *r, uint32_t qpi, uint8_t *out)
{
	const size_t mpts = sizeof(struct hca_mpt_entry) << RIG_LOG_MPTS;
	const size_t cqs = sizeof(struct hca_cq) << RIG_LOG_CQS;
	size_t n = 0;

	memcpy(out, &r->h->core->qp[qpi], sizeof(struct hca_qp));
	n += sizeof(struct hca_qp);
	memcpy(out + n, r->h->core->vtp.mpt, mpts);
	n += mpts;
	memcpy(out + n, r->h->core->cq, cqs);
	n += cqs;
	assert_true(n <= sizeof(r->snapshot));
	return n;
}

void
rig_remember(struct rig *r, uint32_t qpi)
{
	take_snapshot(r, qpi, r->snapshot);
}

void
rig_unchanged(struct rig *r, uint32_t qpi)
{
	static uint8_t now[sizeof(r->snapshot)];
	size_t n = take_snapshot(r, qpi, now);

	assert_memory_equal(now, r->snapshot, n);
}
