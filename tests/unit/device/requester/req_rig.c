/* SPDX-License-Identifier: BSD-3-Clause */

#include "req_rig.h"

#include <stdlib.h>
#include <string.h>

#include "requester/record_pool.h"
#include "queues/eq.h"
#include "wire/icrc.h"

#define ALL_RIGHTS \
	(HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ | \
	 HCA_ACCESS_REMOTE_ATOMIC)

static struct rig *current;
bool rig_shared_cq;

/* ---- functions that the queues call ---- */

static void
raised(uint8_t type, uint32_t index)
{
	struct fx *fx = current->fx;

	assert_true(fx->events < RTE_DIM(fx->event));
	fx->event[fx->events++] = (struct fx_event){type, index};
}

void
hca_eq_raise_comp(struct hca_core *h, enum hca_stage_id from, uint32_t cqi)
{
	raised(HCA_EVENT_COMP, cqi);
}

void
hca_eq_raise_cq(struct hca_core *h, enum hca_stage_id from, uint8_t type, uint32_t cqi)
{
	raised(type, cqi);
}

void
hca_eq_raise_qp(struct hca_core *h, enum hca_stage_id from, uint8_t type, uint32_t qpi)
{
	raised(type, qpi);
}

/* Only this function of the real one, which depends on half of the device. */
void
hca_vtp_scatter(const struct hca_vtp *v, const struct hca_mpt_entry *e, uint64_t va,
		const uint8_t *src, uint32_t len, const struct hca_icrc_ops *ops)
{
	uint32_t run;
	uint8_t *dst = hca_vtp_ptr(v, e, va, len, &run);

	assert_int_equal(run, len);
	memcpy(dst, src, len);
}

/* ---- set-up ---- */

static void
make_region(struct rig *r, uint32_t key, uint32_t flags)
{
	r->h->vtp.domain[HCA_KEY_INDEX(key)] = HCA_PD_DOMAIN(RIG_PD);
	r->h->vtp.mpt[HCA_KEY_INDEX(key)] = (struct hca_mpt_entry){
		.start = RIG_VA,
		.length = RIG_LEN,
		.base = r->mem,
		.key = key,
		.pd = RIG_PD,
		.state = HCA_MPT_VALID,
		.flags = HCA_MPT_FLAG_REGION | flags,
	};
}

static void
make_cqs(struct rig *r)
{
	r->h->cq_mask = RIG_CQS - 1;
	r->h->cq = aligned_alloc(64, RIG_CQS * sizeof(*r->h->cq));
	assert_non_null(r->h->cq);
	memset(r->h->cq, 0, RIG_CQS * sizeof(*r->h->cq));
	rig_make_cq(r, RIG_CQ, RIG_CQES);
	r->cqe = r->cqes[RIG_CQ];
}

void
rig_make_cq(struct rig *r, uint32_t cqn, uint32_t cqes)
{
	uint32_t bytes = cqes * HCA_CQE_SIZE;
	struct hca_cq *cq = &r->h->cq[cqn];
	struct hca_cqe *cqe =
		aligned_alloc(4096, RTE_ALIGN_CEIL(bytes + sizeof(struct hca_cq_record), 4096));

	assert_non_null(cqe);
	memset(cqe, 0, bytes + sizeof(struct hca_cq_record));
	for (unsigned int i = 0; i < cqes; i++)
		cqe[i].owner = HCA_OWNER_HW;
	cq->state = HCA_CQ_LIVE;
	cq->single_writer = !rig_shared_cq;
	cq->buf[0].q.base = (uint8_t *)cqe;
	cq->buf[0].q.bytes = bytes + sizeof(struct hca_cq_record);
	cq->buf[0].mask = cqes - 1;
	cq->buf[0].record_off = bytes;
	r->cqes[cqn] = cqe;
}

struct hca_qp *
rig_make_qp(struct rig *r, uint32_t qpi, uint32_t cqn)
{
	struct hca_qp *qp = fx_qp(r->fx, qpi, 1, 6, RIG_STRIDE_LOG, RIG_WINDOW);

	qp->cfg.pd = RIG_PD;
	qp->cfg.usr_page = HCA_PD_DOMAIN(RIG_PD);
	qp->cfg.scqn = cqn;
	qp->cfg.mtu_log = qp->req_tx.mtu_log = RIG_MTU_LOG;
	qp->cfg.ack_timeout = RIG_TIMEOUT;
	qp->cfg.retry_cnt = 3;
	qp->cfg.rnr_retry = 2;
	qp->cfg.max_rd_atomic = 4;
	qp->req_rx.sq_stride_log = RIG_STRIDE_LOG;
	qp->req_tx.next_psn = qp->req_tx.max_psn = RIG_PSN;
	qp->sq_una = RIG_PSN;
	return qp;
}

int
rig_setup(void **state)
{
	static const struct fx_config cfg = {.log_num_qps = 5, .records = 128, .full_records = 64};
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	current = r;
	r->fx = fx_create(&cfg);
	r->h = r->fx->h;
	r->now = 1000000;
	r->h->cfg.ack_every = 32;
	r->h->icrc = hca_icrc_select();
	r->h->single_worker = true;
	r->h->tx_pool =
		rte_pktmbuf_pool_create("rig-tx", 255, 0, HCA_MBUF_PRIV, 1024, SOCKET_ID_ANY);
	r->rx_pool = rte_pktmbuf_pool_create("rig-rx", 127, 0, HCA_MBUF_PRIV, 1024, SOCKET_ID_ANY);
	assert_non_null(r->h->tx_pool);
	assert_non_null(r->rx_pool);
	r->mem = calloc(1, RIG_LEN);
	r->h->vtp.mpt_mask = 3;
	r->h->vtp.domain = calloc(4, sizeof(*r->h->vtp.domain));
	r->h->vtp.mpt = aligned_alloc(64, 4 * sizeof(struct hca_mpt_entry));
	assert_true(r->mem != NULL && r->h->vtp.mpt != NULL);
	memset(r->h->vtp.mpt, 0, 4 * sizeof(struct hca_mpt_entry));
	make_region(r, RIG_KEY, ALL_RIGHTS);
	make_region(r, RIG_KEY_RO, HCA_ACCESS_REMOTE_READ);
	make_cqs(r);
	r->qp = rig_make_qp(r, RIG_QPI, RIG_CQ);
	assert_int_equal(hca_req_tx_init(r->h), 0);
	assert_int_equal(hca_req_rx_init(r->h), 0);
	assert_int_equal(hca_timer_init(r->h), 0);
	*state = r;
	return 0;
}

/* Asserts that no mbuf has leaked. */
int
rig_teardown(void **state)
{
	struct rig *r = *state;

	rte_pktmbuf_free_bulk(r->queued, r->n_queued);
	assert_int_equal(rte_mempool_in_use_count(r->h->tx_pool), 0);
	assert_int_equal(rte_mempool_in_use_count(r->rx_pool), 0);
	hca_timer_fini(r->h);
	hca_req_rx_fini(r->h);
	hca_req_tx_fini(r->h);
	rte_mempool_free(r->h->tx_pool);
	rte_mempool_free(r->rx_pool);
	free(r->h->cq);
	for (unsigned int i = 0; i < RIG_CQS; i++)
		free(r->cqes[i]);
	free(r->h->vtp.domain);
	free(r->h->vtp.mpt);
	free(r->mem);
	fx_destroy(r->fx);
	free(r);
	return 0;
}

static uint32_t
qpi_of(const struct rig *r)
{
	return (uint32_t)(r->qp - r->h->qp);
}

/* ---- parser ---- */

static struct hca_record *
enter(struct rig *r, struct hca_record_pool *p, uint8_t op, uint32_t len, uint8_t flags)
{
	struct hca_qp *qp = r->qp;
	struct hca_record *rec;
	uint32_t ref;

	/* quotas belong to the parser */
	qp->parser.held[0] = qp->parser.held[1] = 0;
	ref = hca_record_take(p, &qp->parser);
	assert_int_not_equal(ref, HCA_RECREF_NONE);
	rec = hca_record(r->h, ref);
	memset(rec, 0xa5, sizeof(*rec));
	rec->op = op;
	rec->flags = flags;
	rec->syndrome = 0;
	rec->nsge = len != 0;
	rec->wqe_index = (uint16_t)r->posted++;
	rec->len = len;
	rec->imm = 0x11223344;
	rec->raddr = RIG_RADDR;
	rec->rkey = RIG_RKEY;
	rec->rd_ord = qp->parser.rd_count;
	if (hca_record_is(rec,
			  1u << HCA_KIND_READ | 1u << HCA_KIND_ATOMIC | 1u << HCA_KIND_CONFIRM)) {
		rec->flags |= HCA_REC_RD;
		qp->parser.rd_count++;
	}
	rec->sge = (struct hca_sge){RIG_VA, RIG_KEY, len};
	assert_true(qp->parser.head - qp->sq_freed < RIG_WINDOW);
	qp->parser.window[qp->parser.head & qp->parser.window_mask] = ref;
	qp->parser.head++;
	hca_msg_send(r->h, HCA_STAGE_PARSER, HCA_STAGE_REQ_TX, qpi_of(r), HCA_MSG_NEW);
	return rec;
}

struct hca_record *
rig_post(struct rig *r, uint8_t op, uint32_t len, uint8_t flags)
{
	return enter(r, &r->h->records[HCA_WIRE_ROCE].small, op, len, flags);
}

struct hca_record_full *
rig_post_full(struct rig *r, uint8_t op, uint32_t len, uint8_t flags, uint8_t nsge)
{
	struct hca_record_full *f =
		(void *)enter(r, &r->h->records[HCA_WIRE_ROCE].full, op, len, flags | HCA_REC_FULL);
	uint32_t va = RIG_VA, part = nsge ? len / nsge : 0;

	f->r.nsge = nsge;
	for (unsigned int i = 0; i < nsge; i++) {
		f->body.sge[i] =
			(struct hca_sge){va, RIG_KEY, i + 1 < nsge ? part : len - part * i};
		/* a gap between segments reveals writes beyond their end */
		va += f->body.sge[i].len + 16;
	}
	return f;
}

/* ---- encap ---- */

unsigned int
rig_send(struct rig *r, unsigned int polls)
{
	struct fx_edge *e = &r->fx->edge[HCA_EDGE_REQ_TX_ENCAP];

	r->n = 0;
	while (polls-- > 0)
		hca_req_tx_poll(r->h, r->now, HCA_BURST);
	for (unsigned int i = 0; i < e->n; i++) {
		const struct hca_txd *d = hca_txd(e->obj[i]);
		uint32_t *done = &r->h->qp[d->qpi].encap.req_done_seq;

		assert_true(r->n < RTE_DIM(r->txd));
		assert_int_equal(d->seq, *done + 1);
		*done = d->seq;
		r->txd[r->n++] = *d;
		rte_pktmbuf_free(e->obj[i]);
	}
	e->n = 0;
	return r->n;
}

/* Stages are polled all the time: pending work is done before the time advances. */
void
rig_pass(struct rig *r, uint64_t ns)
{
	for (unsigned int i = 0; i < 2; i++) {
		hca_req_rx_poll(r->h, r->now, HCA_BURST);
		hca_timer_poll(r->h, r->now, HCA_BURST);
		hca_req_rx_poll(r->h, r->now, HCA_BURST);
		r->now += i == 0 ? ns : 0;
	}
}

/* ---- the peer ---- */

static struct rte_mbuf *
packet(struct rig *r, uint8_t opcode, uint32_t psn, uint8_t syndrome)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->rx_pool);
	struct hca_rxd *d;

	assert_non_null(m);
	d = hca_rxd(m);
	memset(d, 0, sizeof(*d));
	d->qpi = qpi_of(r);
	d->psn = psn;
	d->opcode = opcode;
	d->generation = r->qp->cfg.generation - r->age;
	d->ext_off = 54;
	d->payload_off = opcode == HCA_BTH_RC_READ_RESP_MIDDLE ? 54 : 58;
	hca_put_be32(rte_pktmbuf_mtod_offset(m, uint8_t *, 54), HCA_AETH_MAKE(syndrome, 1));
	return m;
}

static void
deliver(struct rig *r, struct rte_mbuf *m)
{
	void *obj = m;

	hca_req_rx_process(r->h, &obj, 1, r->now);
}

void
rig_queue_ack(struct rig *r, uint32_t psn, uint8_t syndrome)
{
	assert_true(r->n_queued < RTE_DIM(r->queued));
	r->queued[r->n_queued++] = packet(r, HCA_BTH_RC_ACK, psn, syndrome);
}

void
rig_deliver(struct rig *r)
{
	hca_req_rx_process(r->h, (void *const *)r->queued, r->n_queued, r->now);
	r->n_queued = 0;
}

void
rig_ack(struct rig *r, uint32_t psn, uint8_t syndrome)
{
	deliver(r, packet(r, HCA_BTH_RC_ACK, psn, syndrome));
}

void
rig_response(struct rig *r, uint8_t opcode, uint32_t psn, uint32_t len, uint8_t fill)
{
	struct rte_mbuf *m = packet(r, opcode, psn, 0);

	hca_rxd(m)->payload_len = len;
	memset(rte_pktmbuf_mtod_offset(m, uint8_t *, hca_rxd(m)->payload_off), fill, len);
	deliver(r, m);
}

void
rig_atomic(struct rig *r, uint32_t psn, uint64_t value)
{
	struct rte_mbuf *m = packet(r, HCA_BTH_RC_ATOMIC_ACK, psn, 0);

	hca_put_be64(rte_pktmbuf_mtod_offset(m, uint8_t *, 58), value);
	deliver(r, m);
}

/* ---- looks ---- */

unsigned int
rig_cqes(const struct rig *r)
{
	return (uint32_t)r->h->cq[RIG_CQ].reserve;
}

uint32_t
rig_tail(const struct rig *r)
{
	return hca_una_tail(r->qp->sq_una);
}

uint32_t
rig_una(const struct rig *r)
{
	return hca_una_psn(r->qp->sq_una);
}

uint32_t
rig_state(const struct rig *r)
{
	return hca_qp_state(r->qp);
}

void
rig_expect_ok(struct rig *r, unsigned int i, uint32_t wqe, uint8_t op, uint32_t len)
{
	const struct hca_cqe *c = &r->cqe[i];

	assert_true(i < rig_cqes(r));
	assert_int_equal(c->owner, HCA_OWNER_SW);
	assert_int_equal(c->opcode, op);
	assert_int_equal(c->is_send, 1);
	assert_int_equal(hca_le32_to_cpu(c->my_qpn), fx_qpn(RIG_QPI));
	assert_int_equal(hca_le32_to_cpu(c->wqe), wqe << RIG_STRIDE_LOG);
	assert_int_equal(hca_le32_to_cpu(c->byte_cnt), len);
}

void
rig_expect_error(struct rig *r, unsigned int i, uint32_t wqe, uint8_t syndrome)
{
	const struct hca_cqe_err *c = (const void *)&r->cqe[i];

	assert_true(i < rig_cqes(r));
	assert_int_equal(c->owner, HCA_OWNER_SW);
	assert_int_equal(c->opcode, HCA_CQE_OP_ERR_SEND);
	assert_int_equal(c->is_send, 1);
	assert_int_equal(c->syndrome, syndrome);
	assert_int_equal(hca_le32_to_cpu(c->wqe), wqe << RIG_STRIDE_LOG);
}
