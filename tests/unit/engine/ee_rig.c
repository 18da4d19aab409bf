/* SPDX-License-Identifier: BSD-3-Clause */

#include "ee_rig.h"

#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>

#define START_PSN 100u
#define ALL_RIGHTS \
	(HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ | \
	 HCA_ACCESS_REMOTE_ATOMIC)

static struct rig *current;

/* ---- what the stage calls ---- */

struct hca_cqe *
hca_cq_reserve(struct hca *h, uint32_t cqi, struct hca_cq_batch *b, bool solicited,
	       enum hca_stage_id stage)
{
	assert_int_equal(stage, HCA_STAGE_EE);
	b->n = 1;
	current->solicited = solicited;
	assert_true(current->cqes < RTE_DIM(current->cqe));
	return current->cq_full ? NULL : &current->cqe[current->cqes++];
}

void
hca_cq_publish(struct hca_cqe *cqe, uint32_t last_word)
{
	cqe->opcode = (uint8_t)last_word;
	cqe->is_send = (uint8_t)(last_word >> 8);
	cqe->owner = (uint8_t)(last_word >> 24);
	current->published++;
}

void
hca_cq_batch_end(struct hca *h, struct hca_cq_batch *b, enum hca_stage_id stage)
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
	r->qp->cfg.access = ALL_RIGHTS;
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

int
rig_setup(void **state)
{
	static const struct fx_config cfg = {0};
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	current = r;
	r->fx = fx_create(&cfg);
	r->h = r->fx->h;
	r->rx_pool = rte_pktmbuf_pool_create("rig-rx", 127, 0, HCA_MBUF_PRIV, 1024, SOCKET_ID_ANY);
	r->h->resp_pool =
		rte_pktmbuf_pool_create("rig-resp", 255, 0, HCA_MBUF_PRIV, 1024, SOCKET_ID_ANY);
	assert_true(r->rx_pool != NULL && r->h->resp_pool != NULL);
	make_regions(r);
	make_qp(r);
	assert_int_equal(hca_ee_init(r->h), 0);
	*state = r;
	return 0;
}

/* Nothing may be left in the pools. */
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
	uint32_t bth = 42, ext = bth + HCA_ROCE_BTH_LEN;
	uint32_t payload = op->valid ? bth + op->header_len : ext;

	assert_non_null(m);
	data = rte_pktmbuf_mtod(m, uint8_t *);
	memset(data, 0xee, 512);
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
	assert_int_equal(d->opcode, HCA_BTH_RC_ACK);
	assert_int_equal(d->syndrome, syndrome);
	assert_int_equal(d->psn, psn & HCA_PSN_MASK);
	assert_int_equal(d->resp.msn, r->qp->ee.msn);
	assert_int_equal(d->qpi, RIG_QPI);
	assert_int_equal(d->generation, r->qp->cfg.generation);
	assert_int_equal(d->len, 0);
	assert_int_equal(d->nsge, 0);
	rig_forget_responses(r);
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
	/* told the others, and answers nothing any more */
	assert_true(fx_take_msgs(r->fx, HCA_STAGE_EE, HCA_STAGE_RTC, RIG_QPI) & HCA_MSG_STATE);
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

bool
rig_holds(const struct rig *r, uint32_t off, uint32_t len, uint8_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		if (r->mem[off + i] != (uint8_t)(seed + i))
			return false;
	return true;
}
