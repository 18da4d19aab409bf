/* SPDX-License-Identifier: BSD-3-Clause */

#include "ee_rig.h"

#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>

#define START_PSN 100u
#define REMOTE_RIGHTS \
	(HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ | HCA_ACCESS_REMOTE_ATOMIC | \
	 HCA_ACCESS_FLUSH_GLOBAL)
#define ALL_RIGHTS (HCA_ACCESS_LOCAL_WRITE | HCA_MPT_FLAGS_OF(REMOTE_RIGHTS))

static struct rig *current;

/* ---- functions that the stage calls ---- */

struct hca_cqe *
hca_cq_reserve(struct hca_core *h, uint32_t cqi, struct hca_cq_batch *b, bool solicited,
	       enum hca_stage_id stage)
{
	assert_int_equal(stage, HCA_STAGE_EE);
	b->n = 1;
	current->solicited = solicited;
	assert_true(current->cqes < RTE_DIM(current->cqe));
	if (current->cq_full)
		return NULL;
	current->cqi[current->cqes] = cqi;
	current->cqe[current->cqes].owner = HCA_OWNER_HW;
	return &current->cqe[current->cqes++];
}

void
hca_cq_set_sender(const struct hca_core *h, uint32_t cqi, struct hca_cqe *cqe, uint16_t vlan,
		  const uint8_t *smac)
{
	assert_ptr_equal(cqe, &current->cqe[current->cqes - 1]);
	assert_int_equal(cqi, current->cqi[current->cqes - 1]);
	current->vlan = vlan;
	current->told_mac = smac != NULL;
	if (smac != NULL)
		memcpy(current->smac, smac, sizeof(current->smac));
}

void
hca_cq_publish(struct hca_cqe *cqe, uint32_t last_word)
{
	cqe->opcode = (uint8_t)last_word;
	cqe->is_send = (uint8_t)(last_word >> 8);
	cqe->owner = (uint8_t)(last_word >> 24);
	current->published++;
}

/* CQEs are reserved one by one. */
bool
hca_cq_cursor_open(struct hca_core *h, uint32_t cqi, struct hca_cq_batch *b,
		   enum hca_stage_id stage, struct hca_cq_cursor *c)
{
	c->cq = NULL;
	return false;
}

void
hca_cq_cursor_close(struct hca_cq_cursor *c)
{
	assert_null(c->cq);
}

void
hca_cq_batch_end(struct hca_core *h, struct hca_cq_batch *b, enum hca_stage_id stage)
{
	b->n = 0;
}

__attribute__((weak)) void
hca_vtp_scatter(const struct hca_vtp *v, const struct hca_mpt_entry *e, uint64_t va,
		const uint8_t *src, uint32_t len, const struct hca_icrc_ops *ops)
{
	uint32_t run;

	memcpy(hca_vtp_ptr(v, e, va, len, &run), src, len);
	assert_int_equal(run, len);
}

/* ---- set-up ---- */

static void
make_region(struct rig *r, uint32_t key, uint32_t pd, uint32_t state, uint32_t flags, uint8_t *base)
{
	r->h->vtp.domain[HCA_KEY_INDEX(key)] = HCA_PD_DOMAIN(pd);
	r->h->vtp.mpt[HCA_KEY_INDEX(key)] = (struct hca_mpt_entry){
		.start = RIG_VA,
		.length = RIG_LEN,
		.base = base,
		.key = key,
		.pd = pd,
		.state = state,
		.flags = HCA_MPT_FLAG_REGION | flags,
	};
}

static void
make_regions(struct rig *r)
{
	r->mem = aligned_alloc(4096, RIG_LEN + 4096);
	assert_non_null(r->mem);
	memset(r->mem, 0, RIG_LEN + 4096);
	r->h->vtp.mpt_mask = 7;
	r->h->vtp.domain = calloc(8, sizeof(*r->h->vtp.domain));
	r->h->vtp.mpt = aligned_alloc(64, 8 * sizeof(struct hca_mpt_entry));
	assert_non_null(r->h->vtp.mpt);
	memset(r->h->vtp.mpt, 0, 8 * sizeof(struct hca_mpt_entry));
	make_region(r, RIG_KEY_ALL, RIG_PD, HCA_MPT_VALID, ALL_RIGHTS, r->mem);
	make_region(r, RIG_KEY_NONE, RIG_PD, HCA_MPT_VALID, 0, r->mem);
	make_region(r, RIG_KEY_FOREIGN, RIG_PD + 1, HCA_MPT_VALID, ALL_RIGHTS, r->mem);
	make_region(r, RIG_KEY_DEAD, RIG_PD, HCA_MPT_DYING, ALL_RIGHTS, r->mem);
	make_region(r, RIG_KEY_ODD, RIG_PD, HCA_MPT_VALID, ALL_RIGHTS, r->mem + 4);
}

static void
make_qp(struct rig *r)
{
	uint32_t rq_bytes = 1u << (RIG_RQ_LOG + RIG_STRIDE_LOG);
	struct hca_qp_ee *ee;

	r->qp = fx_qp(r->fx, RIG_QPI, 1, 3, 6, 8);
	r->qp->cfg.pd = RIG_PD;
	r->qp->cfg.access = HCA_QP_RIGHTS(REMOTE_RIGHTS | HCA_ACCESS_FLUSH_PERSISTENT);
	r->qp->cfg.remote_qpn = 0x1234;
	r->qp->cfg.max_dest_rd_atomic = RIG_MAX_RD;
	r->qp->cfg.min_rnr_timer = 12;
	ee = &r->qp->ee;
	ee->mtu_log = 8;
	ee->epsn = START_PSN;
	ee->rq.bytes = rq_bytes + sizeof(struct hca_rq_record);
	ee->rq.base = aligned_alloc(4096, 2 * rq_bytes);
	assert_non_null(ee->rq.base);
	memset(ee->rq.base, 0, 2 * rq_bytes);
	r->record = (void *)(ee->rq.base + rq_bytes);
	ee->rq_size_log = RIG_RQ_LOG;
	ee->rq_stride_log = RIG_STRIDE_LOG;
	ee->job_mask = 2 * RIG_MAX_RD - 1;
	ee->jobs = calloc(2 * RIG_MAX_RD, sizeof(*ee->jobs));
	ee->recv_sge = calloc(HCA_WQE_MAX_SGE, sizeof(*ee->recv_sge));
	assert_true(ee->jobs != NULL && ee->recv_sge != NULL);
}

static void
make_srqs(struct rig *r)
{
	r->h->srq_mask = 3;
	r->h->srq = aligned_alloc(RTE_CACHE_LINE_SIZE, 4 * sizeof(*r->h->srq));
	assert_non_null(r->h->srq);
	memset(r->h->srq, 0, 4 * sizeof(*r->h->srq));
	for (unsigned int i = 0; i < RIG_SRQS; i++)
		r->srq[i].s = &r->h->srq[i];
}

int
rig_setup(void **state)
{
	static const struct fx_config cfg = {0};
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	current = r;
	r->fx = fx_create(&cfg);
	r->h = r->fx->h;
	r->h->icrc = hca_icrc_select();
	r->rx_pool = rte_pktmbuf_pool_create("rig-rx", 127, 0, HCA_MBUF_PRIV, 1024, SOCKET_ID_ANY);
	r->h->resp_pool =
		rte_pktmbuf_pool_create("rig-resp", 255, 0, HCA_MBUF_PRIV, 1024, SOCKET_ID_ANY);
	assert_true(r->rx_pool != NULL && r->h->resp_pool != NULL);
	make_regions(r);
	make_qp(r);
	make_srqs(r);
	assert_int_equal(hca_ee_init(r->h), 0);
	*state = r;
	return 0;
}

/* Asserts that nothing is left in the pools. */
int
rig_teardown(void **state)
{
	struct rig *r = *state;
	struct hca_qp_ee *ee = &r->qp->ee;

	rig_forget_responses(r);
	assert_int_equal(rte_mempool_in_use_count(r->rx_pool), 0);
	assert_int_equal(rte_mempool_in_use_count(r->h->resp_pool), 0);
	hca_ee_fini(r->h);
	free(ee->rq.base);
	free(ee->jobs);
	free(ee->recv_sge);
	for (unsigned int i = 0; i < RIG_SRQS; i++)
		free(r->h->srq[i].q.base);
	free(r->h->srq);
	free(r->h->vtp.domain);
	free(r->h->vtp.mpt);
	free(r->mem);
	rte_mempool_free(r->rx_pool);
	rte_mempool_free(r->h->resp_pool);
	fx_destroy(r->fx);
	free(r);
	current = NULL;
	return 0;
}

/* ---- packets in ---- */

static void
put_headers(uint8_t *ext, const struct rig_packet *p, const struct hca_roce_opcode_info *op)
{
	uint8_t *bth = ext - HCA_ROCE_BTH_LEN;

	if (op->at.xrceth != 0)
		hca_put_be32(bth + op->at.xrceth, p->srqn);
	if (op->at.deth != 0)
		*(struct hca_deth *)(bth + op->at.deth) =
			(struct hca_deth){.sqpn = hca_cpu_to_be32(p->src_qpn)};
	if (op->at.feth != 0)
		hca_put_be32(bth + op->at.feth, p->feth);
	if (op->at.reth != 0)
		*(struct hca_reth *)(bth + op->at.reth) =
			(struct hca_reth){hca_cpu_to_be64(p->va), hca_cpu_to_be32(p->rkey),
					  hca_cpu_to_be32(p->dma_len)};
	if (op->at.atomiceth != 0)
		*(struct hca_atomiceth *)(bth + op->at.atomiceth) =
			(struct hca_atomiceth){hca_cpu_to_be64(p->va), hca_cpu_to_be32(p->rkey),
					       hca_cpu_to_be64(p->swap_add),
					       hca_cpu_to_be64(p->compare)};
	if (op->at.immdt != 0)
		memcpy(bth + op->at.immdt, &p->imm, sizeof(p->imm));
	if (op->at.ieth != 0)
		memcpy(bth + op->at.ieth, &p->imm, sizeof(p->imm));
}

static struct rte_mbuf *
make_packet(struct rig *r, const struct rig_packet *p)
{
	const struct hca_roce_opcode_info *op = &hca_roce_opcodes[p->opcode];
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->rx_pool);
	uint8_t *data;
	uint32_t l3 = HCA_ETH_LEN + (p->vlan != 0 ? HCA_VLAN_LEN : 0);
	uint32_t bth = l3 + (p->ip6 ? HCA_IPV6_LEN : HCA_IPV4_LEN) + HCA_UDP_LEN;
	uint32_t ext = bth + HCA_ROCE_BTH_LEN;
	uint32_t payload = op->valid ? bth + op->header_len : ext;

	assert_non_null(m);
	data = rte_pktmbuf_mtod(m, uint8_t *);
	memset(data, 0xee, 512);
	for (uint32_t i = 0; i < bth; i++)
		data[i] = (uint8_t)(0x80 + i);
	data[l3] = p->ip6 ? 0x60 : 0x45;
	put_headers(data + ext, p, op);
	for (uint32_t i = 0; i < p->len; i++)
		data[payload + i] = (uint8_t)(p->seed + i);
	*hca_rxd(m) = (struct hca_rxd){
		.qpi = RIG_QPI,
		.psn = p->psn & HCA_PSN_MASK,
		.opcode = p->opcode,
		.flags = p->flags,
		.ext_off = (uint16_t)ext,
		.payload_off = (uint16_t)payload,
		.payload_len = p->len,
		.generation = r->qp->cfg.generation + p->generation,
		.info = op,
		.l3_off = (uint16_t)l3,
		.vlan = p->vlan,
	};
	return m;
}

void
rig_burst(struct rig *r, const struct rig_packet *p, unsigned int n)
{
	void *m[HCA_BURST];

	assert_true(n <= HCA_BURST);
	for (unsigned int i = 0; i < n; i++)
		m[i] = make_packet(r, &p[i]);
	hca_ee_process(r->h, m, n, r->now);
}

void
rig_poll(struct rig *r)
{
	r->now += 1000;
	hca_ee_poll(r->h, r->now, HCA_BURST);
}

void
rig_feed(struct rig *r, struct rig_packet p)
{
	rig_burst(r, &p, 1);
	rig_poll(r);
}

/* ---- responses out ---- */

unsigned int
rig_responses(struct rig *r)
{
	return r->fx->edge[HCA_EDGE_EE_ENCAP].n;
}

struct hca_txd *
rig_response(struct rig *r, unsigned int i)
{
	assert_true(i < rig_responses(r));
	return hca_txd(r->fx->edge[HCA_EDGE_EE_ENCAP].obj[i]);
}

void
rig_forget_responses(struct rig *r)
{
	struct fx_edge *e = &r->fx->edge[HCA_EDGE_EE_ENCAP];

	for (unsigned int i = 0; i < e->n; i++)
		rte_pktmbuf_free(e->obj[i]);
	e->n = 0;
}

void
rig_expect_ack(struct rig *r, uint8_t syndrome, uint32_t psn)
{
	struct hca_txd *d;

	assert_int_equal(rig_responses(r), 1);
	d = rig_response(r, 0);
	assert_int_equal(d->opcode, HCA_BTH_RC_ACK | r->qp->req_tx.transport);
	assert_int_equal(d->syndrome, syndrome);
	assert_int_equal(d->psn, psn & HCA_PSN_MASK);
	assert_int_equal(d->resp.msn, r->qp->ee.msn);
	assert_int_equal(d->qpi, RIG_QPI);
	assert_int_equal(d->generation, r->qp->cfg.generation);
	assert_int_equal(d->len, 0);
	assert_int_equal(d->nsge, 0);
	rig_forget_responses(r);
}

void
rig_expect_atomic(struct rig *r, unsigned int i, uint32_t psn, uint64_t result)
{
	const struct hca_txd *d = rig_response(r, i);

	assert_int_equal(d->opcode, HCA_BTH_RC_ATOMIC_ACK);
	assert_int_equal(d->psn, psn);
	assert_int_equal(d->syndrome, RIG_ACK);
	assert_int_equal(d->resp.result, result);
	assert_int_equal(d->len, 0);
}

void
rig_expect_confirmed(struct rig *r, unsigned int i, uint32_t psn, uint32_t msn)
{
	const struct hca_txd *d = rig_response(r, i);

	assert_int_equal(d->opcode, HCA_BTH_RC_READ_RESP_ONLY);
	assert_int_equal(d->psn, psn);
	assert_int_equal(d->syndrome, RIG_ACK);
	assert_int_equal(d->resp.msn, msn);
	assert_int_equal(d->len, 0);
	assert_int_equal(d->nsge, 0);
}

bool
rig_event(const struct rig *r, uint8_t type)
{
	for (unsigned int i = 0; i < r->fx->events; i++)
		if (r->fx->event[i].type == type && r->fx->event[i].index == RIG_QPI)
			return true;
	return false;
}

void
rig_expect_fatal(struct rig *r, uint8_t nak, uint32_t psn, uint8_t event)
{
	rig_expect_ack(r, HCA_NAK_SYNDROME(nak), psn);
	assert_int_equal(r->qp->cfg.state, HCA_QPS_ERR);
	if (event != 0)
		assert_true(rig_event(r, event));
	else
		assert_int_equal(r->fx->events, 0);
	/* the other stages were told, and the QP answers nothing any more */
	assert_true(fx_take_msgs(r->fx, HCA_STAGE_EE, HCA_STAGE_REQ_TX, RIG_QPI) & HCA_MSG_STATE);
	rig_feed(r, rig_write(r->qp->ee.epsn, 0, 16, 1));
	rig_expect_silence(r);
}

void
rig_expect_silence(struct rig *r)
{
	assert_int_equal(rig_responses(r), 0);
	rig_poll(r);
	assert_int_equal(rig_responses(r), 0);
}

/* ---- receives ---- */

void
rig_post(struct rig *r, const struct hca_sge *sge, unsigned int n)
{
	uint32_t at = (r->record->producer & ((1u << RIG_RQ_LOG) - 1)) << RIG_STRIDE_LOG;
	struct hca_data_unit *unit = (void *)(r->qp->ee.rq.base + at + HCA_WQE_UNIT);

	memset(r->qp->ee.rq.base + at, 0, 1u << RIG_STRIDE_LOG);
	for (unsigned int i = 0; i < n; i++)
		unit[i] = (struct hca_data_unit){hca_cpu_to_le32(sge[i].len),
						 hca_cpu_to_le32(sge[i].lkey),
						 hca_cpu_to_le64(sge[i].va)};
	r->record->producer++;
}

void
rig_post_one(struct rig *r, uint32_t off, uint32_t len)
{
	struct hca_sge sge = {RIG_VA + off, RIG_KEY_ALL, len};

	rig_post(r, &sge, 1);
}

void
rig_service(struct rig *r, uint8_t service)
{
	static const uint8_t transport[HCA_ST_COUNT] = {
		[HCA_ST_UC] = HCA_TRANSPORT_UC << 5,
		[HCA_ST_UD] = HCA_TRANSPORT_UD << 5,
		[HCA_ST_XRC_TGT] = HCA_TRANSPORT_XRC << 5,
	};

	r->qp->cfg.service = service;
	r->qp->req_tx.transport = transport[service];
	r->qp->req_tx.unreliable = service == HCA_ST_UC || service == HCA_ST_UD;
}

static struct hca_srq *
make_srq(struct rig *r, unsigned int i, uint32_t pd)
{
	uint32_t bytes = 1u << (RIG_SRQ_LOG + RIG_SRQ_STRIDE_LOG);
	struct hca_srq *s = r->srq[i].s;

	*s = (struct hca_srq){
		.state = HCA_SRQ_LIVE,
		.srqn = RIG_SRQN(i),
		.pd = pd,
		.stride_log = RIG_SRQ_STRIDE_LOG,
		.size_log = RIG_SRQ_LOG,
		.max_sge = 4,
	};
	s->q.base = aligned_alloc(4096, 4096);
	assert_non_null(s->q.base);
	memset(s->q.base, 0, 4096);
	s->q.bytes = bytes + sizeof(struct hca_rq_record);
	r->srq[i].record = (void *)(s->q.base + bytes);
	/* the QP has no RQ of its own then */
	free(r->qp->ee.rq.base);
	memset(&r->qp->ee.rq, 0, sizeof(r->qp->ee.rq));
	r->record = NULL;
	return s;
}

void
rig_share(struct rig *r, unsigned int i, uint32_t pd)
{
	r->qp->ee.srq = make_srq(r, i, pd);
	r->qp->ee.srq->users = 1;
}

void
rig_share_xrc(struct rig *r, unsigned int i, uint32_t pd)
{
	struct hca_srq *s = make_srq(r, i, pd);

	s->xrcd = HCA_SRQC_XRCD_VALID | RIG_XRCD;
	s->cqn = RIG_XRC_CQ;
	r->qp->addr.xrcd = RIG_XRCD;
}

uint32_t
rig_srq_offset(unsigned int n)
{
	return (n * RIG_SRQ_STEP & ((1u << RIG_SRQ_LOG) - 1)) << RIG_SRQ_STRIDE_LOG;
}

uint32_t
rig_srq_post(struct rig *r, unsigned int i, const struct hca_sge *sge, unsigned int n)
{
	struct rig_srq *q = &r->srq[i];
	uint32_t at = rig_srq_offset(q->slot++);
	struct hca_data_unit *unit = (void *)(q->s->q.base + at + HCA_WQE_UNIT);

	memset(q->s->q.base + at, 0, 1u << RIG_SRQ_STRIDE_LOG);
	*(hca_le32 *)(void *)(q->s->q.base + at) = hca_cpu_to_le32(rig_srq_offset(q->slot));
	for (unsigned int k = 0; k < n; k++)
		unit[k] = (struct hca_data_unit){hca_cpu_to_le32(sge[k].len),
						 hca_cpu_to_le32(sge[k].lkey),
						 hca_cpu_to_le64(sge[k].va)};
	q->record->producer++;
	return at;
}

uint32_t
rig_srq_post_one(struct rig *r, unsigned int i, uint32_t off, uint32_t len)
{
	struct hca_sge sge = {RIG_VA + off, RIG_KEY_ALL, len};

	return rig_srq_post(r, i, &sge, 1);
}

unsigned int
rig_events(const struct rig *r, uint8_t type, uint32_t index)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < r->fx->events; i++)
		n += r->fx->event[i].type == type && r->fx->event[i].index == index;
	return n;
}

bool
rig_holds(const struct rig *r, uint32_t off, uint32_t len, uint8_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		if (r->mem[off + i] != (uint8_t)(seed + i))
			return false;
	return true;
}
