/* SPDX-License-Identifier: BSD-3-Clause */

#include "tai_rig.h"

#include <stdlib.h>

#include "queues/eq.h"
#include "wire/icrc.h"

#define CQ 2u
#define WINDOW 256u
#define STRIDE_LOG 9u

static struct tai_rig *current;

/* ---- functions that TAI calls, without edges and messages ---- */

void
hca_eq_raise_comp(struct hca_core *h, enum hca_stage_id from, uint32_t cqi)
{
	(void)h;
	(void)from;
	assert_int_equal(cqi, CQ);
}

/* Only this function of the real one, which depends on half of the device. */
void
hca_vtp_scatter(const struct hca_vtp *v, const struct hca_mpt_entry *e, uint64_t va,
		const uint8_t *src, uint32_t len, const struct hca_icrc_ops *ops)
{
	uint32_t run;
	uint8_t *dst = hca_vtp_ptr(v, e, va, len, &run);

	(void)ops;
	assert_int_equal(run, len);
	memcpy(dst, src, len);
}

/* ---- set-up ---- */

static void
make_memory(struct tai_rig *r)
{
	r->mem = calloc(1, RIG_LEN);
	r->h->vtp.mpt_mask = 3;
	r->h->vtp.domain = calloc(4, sizeof(*r->h->vtp.domain));
	r->h->vtp.mpt = aligned_alloc(64, 4 * sizeof(struct hca_mpt_entry));
	memset(r->h->vtp.mpt, 0, 4 * sizeof(struct hca_mpt_entry));
	r->h->vtp.domain[HCA_KEY_INDEX(RIG_KEY)] = HCA_PD_DOMAIN(RIG_PD);
	r->h->vtp.mpt[HCA_KEY_INDEX(RIG_KEY)] = (struct hca_mpt_entry){
		.start = RIG_VA,
		.length = RIG_LEN,
		.base = r->mem,
		.key = RIG_KEY,
		.pd = RIG_PD,
		.state = HCA_MPT_VALID,
		.flags = HCA_MPT_FLAG_REGION | HCA_ACCESS_LOCAL_WRITE,
	};
}

static void
make_cq(struct tai_rig *r)
{
	uint32_t bytes = RIG_CQES * HCA_CQE_SIZE, all = bytes + sizeof(struct hca_cq_record);
	struct hca_cq *cq;

	r->h->cq_mask = 7;
	r->h->cq = aligned_alloc(64, 8 * sizeof(*r->h->cq));
	r->cqe = aligned_alloc(4096, RTE_ALIGN_CEIL(all, 4096u));
	memset(r->h->cq, 0, 8 * sizeof(*r->h->cq));
	memset(r->cqe, 0, all);
	for (unsigned int i = 0; i < RIG_CQES; i++)
		r->cqe[i].owner = HCA_OWNER_HW;
	cq = &r->h->cq[CQ];
	cq->state = HCA_CQ_LIVE;
	cq->single_writer = 1;
	cq->buf[0].q.base = (uint8_t *)r->cqe;
	cq->buf[0].q.bytes = all;
	cq->buf[0].mask = RIG_CQES - 1;
	cq->buf[0].record_off = bytes;
}

static void
make_tp(struct tai_rig *r, uint32_t tpi)
{
	struct hca_tp *tp = &r->h->ub->tp[tpi];
	size_t bytes;

	tp->cfg = (struct hca_tp_cfg){.state = HCA_TPS_ACTIVE,
				      .own_tpn = 0x1000 | tpi,
				      .generation = 7,
				      .mtu_log = RIG_MTU_LOG,
				      .flags = HCA_TP_FLAG_TAID | HCA_TP_FLAG_OFST,
				      .window = 1024,
				      .requests = 1024,
				      .tpg = tpi == 1 || tpi == 2 ? RIG_GROUP + 1 : 0};
	bytes = hca_tp_block_bytes(tp->cfg.window, tp->cfg.requests);
	tp->cfg.block = aligned_alloc(RTE_CACHE_LINE_SIZE, bytes);
	memset(tp->cfg.block, 0, bytes);
	hca_tp_begin(tp, tp->cfg.block, 0, 0);
}

static void
make_ub(struct tai_rig *r)
{
	struct hca_pipe *h = r->h;

	h->cfg.wires = HCA_WIRE_BIT(HCA_WIRE_UB);
	h->cfg.log_tps = 3;
	h->cfg.log_mpts = 4;
	h->cfg.log_srqs = 4;
	h->cfg.ub_ops = 2048;
	h->object[HCA_OBJECT_TP] =
		(struct hca_object_range){.first = h->qp_mask + 1, .count = RIG_TPS};
	assert_int_equal(hca_ub_create(&h->core), 0);
	for (uint32_t i = 0; i < RIG_TPS; i++)
		make_tp(r, i);
	h->ub->tpg[RIG_GROUP] = (struct hca_tpg){.count = 2, .tp = {1, 2}};
}

struct hca_qp *
rig_jetty(struct tai_rig *r, uint32_t qpi)
{
	struct hca_qp *qp = fx_qp(r->fx, qpi, 1, 8, STRIDE_LOG, WINDOW);

	memset(&qp->tai, 0, sizeof(qp->tai));
	memset(&qp->tai_wait, 0, sizeof(qp->tai_wait));
	qp->cfg.service = HCA_ST_JETTY;
	qp->cfg.local_qpn = 0x10400 | qpi;
	qp->cfg.usr_page = 0; /* the driver's, which may use all channels */
	qp->cfg.pd = RIG_PD;
	qp->cfg.scqn = CQ;
	qp->cfg.ack_timeout = 17;
	qp->cfg.rnr_retry = HCA_RNR_RETRY_FOREVER;
	qp->tai.window = qp->parser.window;
	qp->tai.window_mask = qp->parser.window_mask;
	qp->tai.segment = calloc(HCA_JETTY_SEGMENTS, sizeof(struct hca_jetty_segment));
	qp->tai.segment_mask = HCA_JETTY_SEGMENTS - 1;
	qp->tai.sq_stride_log = STRIDE_LOG;
	assert_int_equal(hca_record_reserve_qp(r->h, HCA_ST_JETTY, 1, 1), 0);
	return qp;
}

int
rig_setup(void **state)
{
	struct tai_rig *r = calloc(1, sizeof(*r));

	current = r;
	r->fx = fx_create(NULL);
	r->h = r->fx->h;
	r->now = 1000000;
	r->h->icrc = hca_icrc_select();
	r->h->single_worker = true;
	r->pool = rte_pktmbuf_pool_create("rig", 63, 0, HCA_MBUF_PRIV, 8192, SOCKET_ID_ANY);
	assert_non_null(r->pool);
	make_memory(r);
	make_cq(r);
	make_ub(r);
	assert_int_equal(hca_tai_init(r->h), 0);
	r->qp = rig_jetty(r, RIG_QPI);
	*state = r;
	return 0;
}

int
rig_teardown(void **state)
{
	struct tai_rig *r = *state;

	for (uint32_t i = 0; i <= r->h->qp_mask; i++)
		if (hca_service_is_ub(r->h->qp[i].cfg.service))
			free(r->h->qp[i].tai.segment);
	for (uint32_t i = 0; i < RIG_TPS; i++)
		free(r->h->ub->tp[i].cfg.block);
	hca_tai_fini(r->h);
	hca_ub_destroy(&r->h->core);
	free(r->h->cq);
	free(r->cqe);
	free(r->h->vtp.domain);
	free(r->h->vtp.mpt);
	free(r->mem);
	rte_mempool_free(r->pool);
	fx_destroy(r->fx);
	free(r);
	current = NULL;
	return 0;
}

/* ---- requests ---- */

struct hca_ub_record *
rig_post_on(struct tai_rig *r, struct hca_qp *qp, uint8_t op, uint32_t len)
{
	struct hca_record_pool *pool = &r->h->records[HCA_WIRE_UB].full;
	uint32_t at = qp->parser.head, ref;
	struct hca_ub_record_full *f;

	hca_record_pool_refill(pool);
	assert_true(pool->stack_n > 0);
	hca_record_set_stack(pool, pool->stack_n - 1);
	ref = pool->stack[pool->stack_n];
	f = (struct hca_ub_record_full *)hca_ub_record(r->h, ref);
	memset(f, 0, sizeof(*f));
	f->r.op = op;
	f->r.flags = HCA_REC_SIGNALED | HCA_REC_FULL |
		     (hca_ub_wrs[op].flags & HCA_UB_WR_READ ? HCA_REC_RD : 0);
	f->r.wqe_index = (uint16_t)at;
	f->r.order = HCA_UB_HAS_TOKEN;
	f->r.to = HCA_UB_MAKE_NUMBER(HCA_UB_TO_TPG, RIG_GROUP);
	f->r.len = len;
	f->r.raddr = RIG_RADDR;
	f->r.token_id = RIG_TOKEN_ID;
	f->r.token = RIG_TOKEN;
	f->r.tc = RIG_TC;
	f->r.data = RIG_DATA;
	f->r.nsge = len != 0;
	f->body.sge[0] = (struct hca_sge){.va = RIG_VA, .lkey = RIG_KEY, .len = len};
	qp->parser.window[at & qp->parser.window_mask] = ref;
	qp->parser.head = at + 1;
	hca_msg_send(r->h, HCA_STAGE_PARSER, HCA_STAGE_TAI, (uint32_t)(qp - r->h->qp), HCA_MSG_NEW);
	return &f->r;
}

struct hca_ub_record *
rig_post(struct tai_rig *r, uint8_t op, uint32_t len)
{
	return rig_post_on(r, r->qp, op, len);
}

void
rig_poll(struct tai_rig *r)
{
	r->h->wake[r->h->stage_worker[HCA_STAGE_DECAP]].now = r->now;
	hca_tai_poll(r->h, r->now, 4096);
}

void
rig_by_turns(struct tai_rig *r)
{
	hca_tai_ctx(r->h)->run = 1;
}

/* ---- lanes ---- */

struct hca_ta_op *
rig_next(struct tai_rig *r, uint32_t tpi)
{
	struct hca_tp *tp = &r->h->ub->tp[tpi];
	const struct hca_tp_lane *l = &tp->lane[HCA_TP_REQUESTS];
	struct hca_ta_op *op;

	if (r->seen[tpi] == l->head)
		return NULL;
	op = &r->h->ub->ops.op[HCA_TP_REQUESTS][l->ring[r->seen[tpi]++ & (tp->cfg.window - 1)]];
	op->tps.flags = HCA_TA_OP_SENT;
	return op;
}

struct hca_ta_op *
rig_any(struct tai_rig *r, uint32_t *tpi)
{
	struct hca_ta_op *op = rig_next(r, 1);

	*tpi = op != NULL ? 1 : 2;
	return op != NULL ? op : rig_next(r, 2);
}

uint32_t
rig_skip(struct tai_rig *r)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < RIG_TPS; i++)
		while (rig_next(r, i) != NULL)
			n++;
	return n;
}

void
rig_release(struct tai_rig *r, uint32_t tpi, uint32_t n)
{
	struct hca_tp *tp = &r->h->ub->tp[tpi];

	tp->tx.lane[HCA_TP_REQUESTS].done += n;
	assert_true((int32_t)(tp->lane[HCA_TP_REQUESTS].head - tp->tx.lane[HCA_TP_REQUESTS].done) >=
		    0);
	hca_tp_msg_send(r->h, HCA_STAGE_TPS, HCA_STAGE_TAI, tpi, HCA_MSG_ROOM);
	rig_poll(r);
}

void
rig_release_all(struct tai_rig *r)
{
	for (uint32_t i = 0; i < RIG_TPS; i++) {
		const struct hca_tp *tp = &r->h->ub->tp[i];
		uint32_t n = tp->lane[HCA_TP_REQUESTS].head - tp->tx.lane[HCA_TP_REQUESTS].done;

		if (n != 0)
			rig_release(r, i, n);
	}
}

/* ---- time ---- */

void
rig_expire(struct tai_rig *r, uint64_t now)
{
	fx_take_msgs(r->fx, HCA_STAGE_TAI, HCA_STAGE_TIMER, RIG_QPI);
	r->now = now;
	hca_msg_send(r->h, HCA_STAGE_TIMER, HCA_STAGE_TAI, RIG_QPI, HCA_MSG_EXPIRED);
	rig_poll(r);
}

uint64_t
rig_armed_for(const struct tai_rig *r)
{
	return r->qp->tai_wait.timer_armed ? r->qp->tai_wait.timer_deadline : 0;
}

/* ---- answers ---- */

struct hca_ub_headers
rig_response(uint8_t opcode, const struct hca_qp *qp, uint16_t tassn)
{
	struct hca_ub_headers h = {.form = HCA_UB_FORM_DEFAULT};

	h.rtph.opcode = HCA_UB_TP_RTP;
	h.rtph.last = 1;
	h.atah.opcode = opcode;
	h.atah.tassn = tassn;
	h.atah.rc_id = qp->cfg.local_qpn;
	h.taidetah.taid = tassn;
	return h;
}

void
rig_answer(struct tai_rig *r, uint32_t tpi, const struct hca_ub_headers *h, const void *payload,
	   uint32_t n)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->pool);
	struct hca_ub_headers full = *h;
	struct hca_ub_rxd *d = hca_ub_rxd(m);
	void *obj = m;
	uint8_t *tph;
	int len;

	full.rtph.pad = hca_ub_pad(n);
	tph = (uint8_t *)rte_pktmbuf_append(m, 8000);
	len = hca_ub_put_headers(tph, &full);
	assert_true(len > 0);
	if (n != 0)
		memcpy(tph + len, payload, n);
	memset(tph + len + n, 0, full.rtph.pad);
	*d = (struct hca_ub_rxd){.tp = tpi,
				 .generation = r->h->ub->tp[tpi].cfg.generation,
				 .psn = full.rtph.psn,
				 .end = (uint16_t)(len + n + full.rtph.pad),
				 .opcode = HCA_UB_TP_RTP,
				 .ta = HCA_UB_RTPH_LEN,
				 .pad = (uint8_t)full.rtph.pad,
				 .flags = full.rtph.last ? HCA_UB_RXD_LAST : 0};
	hca_tai_process(r->h, &obj, 1, r->now);
	rig_poll(r);
}

void
rig_taack(struct tai_rig *r, uint32_t tpi, uint16_t tassn, uint8_t rspst, uint8_t rspinfo)
{
	struct hca_ub_headers h = rig_response(HCA_UB_TA_TAACK, r->qp, tassn);

	h.atah.rspst = rspst;
	h.atah.rspinfo = rspinfo;
	rig_answer(r, tpi, &h, NULL, 0);
}

/* ---- completions ---- */

const struct hca_cqe_ub *
rig_cqe(struct tai_rig *r)
{
	struct hca_cqe_ub *c = &r->cqe[r->cqes % RIG_CQES];

	if (r->cqes == RIG_CQES || c->owner != HCA_OWNER_SW)
		return NULL;
	r->cqes++;
	return c;
}

void
rig_expect(struct tai_rig *r, uint32_t wqe_index, uint8_t status)
{
	const struct hca_cqe_ub *c = rig_cqe(r);

	assert_non_null(c);
	assert_int_equal(c->status, status);
	assert_int_equal(c->is_send, 1 | HCA_CQE_UB);
	if (status != HCA_UB_STATUS_SUSPEND_DONE && status != HCA_UB_STATUS_FLUSH_DONE)
		assert_int_equal(hca_le32_to_cpu(c->wqe), wqe_index << STRIDE_LOG);
}

void
rig_expect_none(struct tai_rig *r)
{
	assert_null(rig_cqe(r));
}

void
rig_check_quiet(struct tai_rig *r)
{
	assert_int_equal(RIG_COUNTER(r, ub_segments),
			 RIG_COUNTER(r, ub_segments_done) + RIG_COUNTER(r, ub_segments_failed) +
				 RIG_COUNTER(r, ub_segments_not_ready));
	if (r->qp->cfg.state != HCA_QPS_RST)
		assert_int_equal(r->qp->sq_freed, hca_una_tail(r->qp->sq_una));
	hca_record_pool_refill(&r->h->records[HCA_WIRE_UB].full);
	assert_int_equal(hca_record_pool_in_use(&r->h->records[HCA_WIRE_UB].full), 0);
	assert_int_equal(r->h->ub->pool[HCA_TP_REQUESTS].free_n,
			 r->h->ub->pool[HCA_TP_REQUESTS].count);
	for (uint32_t i = 1; i < RIG_TPS; i++) {
		assert_int_equal(r->h->ub->tp[i].tai.open_out, 0);
		assert_int_equal(r->h->ub->tp[i].tai.abandoned, 0);
	}
	assert_int_equal(rte_mempool_in_use_count(r->pool), 0);
}
