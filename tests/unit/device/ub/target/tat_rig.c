/* SPDX-License-Identifier: BSD-3-Clause */

#include "tat_rig.h"

#include <stdlib.h>
#include <string.h>

#include "queues/rq.h"

#define ALL_RIGHTS \
	(HCA_ACCESS_LOCAL_WRITE | HCA_ACCESS_REMOTE_WRITE | HCA_ACCESS_REMOTE_READ | \
	 HCA_ACCESS_REMOTE_ATOMIC)
#define TPS 4u
#define SRQS 4u

static struct rig *current;

/* ---- functions that the stage calls ---- */

struct hca_cqe *
hca_cq_reserve(struct hca_core *h, uint32_t cqi, struct hca_cq_batch *b, bool solicited,
	       enum hca_stage_id stage)
{
	assert_int_equal(stage, HCA_STAGE_TAT);
	b->n = 1;
	current->solicited = solicited;
	if (current->cq_full)
		return NULL;
	assert_true(current->cqes < RTE_DIM(current->cqe));
	current->cqi[current->cqes] = cqi;
	return (struct hca_cqe *)&current->cqe[current->cqes++];
}

void
hca_cq_publish(struct hca_cqe *cqe, uint32_t last_word)
{
	cqe->opcode = (uint8_t)last_word;
	cqe->is_send = (uint8_t)(last_word >> 8);
	cqe->reserved1e = (uint8_t)(last_word >> 16);
	cqe->owner = (uint8_t)(last_word >> 24);
	current->published++;
}

static struct hca_cq cursor_cq;
static uint32_t cursor_cqi;

bool
hca_cq_cursor_open(struct hca_core *h, uint32_t cqi, struct hca_cq_batch *b,
		   enum hca_stage_id stage, struct hca_cq_cursor *c)
{
	assert_int_equal(stage, HCA_STAGE_TAT);
	b->n = 1;
	current->solicited = false;
	cursor_cqi = cqi;
	if (current->cq_full)
		return false;
	*c = (struct hca_cq_cursor){.cq = &cursor_cq,
				    .base = (uint8_t *)current->cqe,
				    .mask = UINT32_MAX,
				    .prod = current->cqes,
				    .first = current->cqes};
	return true;
}

/* The stage publishes each CQE when it is filled in. */
void
hca_cq_cursor_close(struct hca_cq_cursor *c)
{
	if (c->cq == NULL)
		return;
	assert_int_equal(c->first, c->prod);
	assert_true(c->prod <= RTE_DIM(current->cqe));
	for (; current->cqes != c->prod; current->cqes++, current->published++)
		current->cqi[current->cqes] = cursor_cqi;
	c->cq = NULL;
}

void
hca_cq_batch_end(struct hca_core *h, struct hca_cq_batch *b, enum hca_stage_id stage)
{
	b->n = 0;
}

/* ---- set-up ---- */

static void *
zeroed(size_t bytes)
{
	void *p = aligned_alloc(4096, RTE_ALIGN_CEIL(bytes, 4096u));

	assert_non_null(p);
	memset(p, 0, RTE_ALIGN_CEIL(bytes, 4096u));
	return p;
}

static void
make_regions(struct rig *r)
{
	static const struct {
		uint32_t rights, state, token, shift;
	} row[RIG_REGIONS] = {
		[RIG_SEGMENT] = {ALL_RIGHTS, HCA_MPT_VALID, HCA_TOKEN_EXPORTED | HCA_TOKEN_CHECK,
				 0},
		[RIG_FREE] = {ALL_RIGHTS, HCA_MPT_VALID, HCA_TOKEN_EXPORTED, 0},
		[RIG_VERBS] = {ALL_RIGHTS, HCA_MPT_VALID, 0, 0},
		[RIG_READ_ONLY] = {HCA_ACCESS_REMOTE_READ, HCA_MPT_VALID,
				   HCA_TOKEN_EXPORTED | HCA_TOKEN_CHECK, 0},
		[RIG_LOCAL] = {HCA_ACCESS_LOCAL_WRITE, HCA_MPT_VALID, 0, 0},
		[RIG_DYING] = {ALL_RIGHTS, HCA_MPT_DYING, HCA_TOKEN_EXPORTED | HCA_TOKEN_CHECK, 0},
		[RIG_ODD] = {ALL_RIGHTS, HCA_MPT_VALID, HCA_TOKEN_EXPORTED | HCA_TOKEN_CHECK, 4},
	};

	r->mem = zeroed(RIG_LEN + 8);
	r->h->vtp.mpt_mask = 7;
	r->h->vtp.domain = zeroed(8 * sizeof(*r->h->vtp.domain));
	r->h->vtp.mpt = zeroed(8 * sizeof(struct hca_mpt_entry));
	for (uint32_t i = 1; i < RIG_REGIONS; i++) {
		r->h->vtp.domain[i] = HCA_PD_DOMAIN(RIG_PD);
		r->h->vtp.mpt[i] = (struct hca_mpt_entry){
			.start = RIG_VA,
			.length = RIG_LEN,
			.base = r->mem + row[i].shift,
			.key = RIG_KEY(i),
			.pd = RIG_PD,
			.state = row[i].state,
			.flags = HCA_MPT_FLAG_REGION | row[i].rights,
		};
		r->ub->token[i] = (struct hca_token){.flags = row[i].token, .value = {RIG_VALUE}};
	}
}

static void
make_tp(struct rig *r)
{
	struct hca_tp *tp = &r->ub->tp[RIG_TPI];

	tp->cfg = (struct hca_tp_cfg){
		.state = HCA_TPS_ACTIVE,
		.own_tpn = RIG_OWN_TPN,
		.peer_tpn = 0x202,
		.generation = 7,
		.mode = HCA_TP_MODE_SACK,
		.mtu_log = 10,
		.flags = HCA_TP_FLAG_TAID | HCA_TP_FLAG_OFST | HCA_TP_FLAG_TELL,
		.window = RIG_W,
		.requests = RIG_REQUESTS,
	};
	hca_tp_begin(tp, zeroed(hca_tp_block_bytes(RIG_W, RIG_REQUESTS)), 0, 0);
	r->tp = tp;
}

static void
make_pool(struct rig *r, uint32_t lane)
{
	struct hca_ta_op_pool *p = &r->ub->pool[lane];

	p->count = RIG_OPS;
	p->free = calloc(RIG_OPS, sizeof(*p->free));
	r->ub->ops.op[lane] = zeroed(RIG_OPS * sizeof(struct hca_ta_op));
	for (uint32_t i = 0; i < RIG_OPS; i++)
		hca_ta_op_return(p, i);
}

static void
make_ub(struct rig *r)
{
	r->ub = zeroed(sizeof(*r->ub));
	r->ub->tp = zeroed(TPS * sizeof(*r->ub->tp));
	r->ub->tp_mask = TPS - 1;
	r->ub->token = zeroed(8 * sizeof(*r->ub->token));
	r->ub->jetty = zeroed((r->h->qp_mask + 1) * sizeof(*r->ub->jetty));
	r->ub->jfr = zeroed(SRQS * sizeof(*r->ub->jfr));
	r->ub->known = zeroed(HCA_TC_WELL_KNOWN * sizeof(*r->ub->known));
	for (uint32_t lane = 0; lane < HCA_TP_LANES; lane++)
		make_pool(r, lane);
	r->h->ub = r->ub;
}

/* Channels about TPs, whose indexes are behind those of the QPs. */
static void
make_channels(struct rig *r)
{
	static const uint8_t pair[][2] = {{HCA_STAGE_TAT, HCA_STAGE_TPS},
					  {HCA_STAGE_TPS, HCA_STAGE_TAT},
					  {HCA_STAGE_CEU, HCA_STAGE_TAT}};
	uint32_t qps = r->h->qp_mask + 1;

	r->h->object[HCA_OBJECT_TP] = (struct hca_object_range){qps, TPS};
	r->h->object[HCA_OBJECT_ANY].count = qps + TPS;
	for (unsigned int i = 0; i < RTE_DIM(pair); i++) {
		struct hca_msg_channel *c = r->h->msg[pair[i][0]][pair[i][1]];

		free(c->slot);
		free(c->pending);
		c->slot = calloc(2 * qps, sizeof(*c->slot));
		c->pending = calloc(2 * qps, 1);
		c->mask = 2 * qps - 1;
	}
}

static void
make_jetty(struct rig *r)
{
	uint32_t bytes = 1u << (RIG_RQ_LOG + RIG_STRIDE_LOG);
	struct hca_qp_ee *ee;

	r->qp = fx_qp(r->fx, RIG_QPI, 1, 3, 6, 8);
	r->qp->cfg.local_qpn = RIG_JETTY;
	r->qp->cfg.service = HCA_ST_JETTY;
	r->qp->cfg.pd = RIG_PD;
	r->qp->cfg.rcqn = RIG_JETTY_CQ;
	ee = &r->qp->ee;
	ee->rq.bytes = bytes + sizeof(struct hca_rq_record);
	ee->rq.base = zeroed(2 * bytes);
	ee->rq_size_log = RIG_RQ_LOG;
	ee->rq_stride_log = RIG_STRIDE_LOG;
	r->rq = (void *)(ee->rq.base + bytes);
	r->ub->jetty[RIG_QPI] = (struct hca_tc){
		.token = {.flags = HCA_TOKEN_EXPORTED | HCA_TOKEN_CHECK,
			  .value = {RIG_JETTY_VALUE}},
		.rnr_timer = RIG_RNR,
	};
	r->ub->known[RIG_KNOWN] = RIG_JETTY;
}

static void
make_jfr(struct rig *r)
{
	uint32_t bytes = 1u << (RIG_RQ_LOG + RIG_STRIDE_LOG);

	r->h->srq_mask = SRQS - 1;
	r->h->srq = zeroed(SRQS * sizeof(*r->h->srq));
	r->srq = &r->h->srq[RIG_SRQI];
	*r->srq = (struct hca_srq){
		.state = HCA_SRQ_LIVE,
		.srqn = RIG_SRQN,
		.pd = RIG_PD,
		.cqn = RIG_JFR_CQ,
		.stride_log = RIG_STRIDE_LOG,
		.size_log = RIG_RQ_LOG,
		.generation = 3,
	};
	r->srq->q.base = zeroed(2 * bytes);
	r->srq->q.bytes = bytes + sizeof(struct hca_rq_record);
	r->jfr = (void *)(r->srq->q.base + bytes);
	r->ub->jfr[RIG_SRQI] =
		(struct hca_tc){.token = {.flags = HCA_TOKEN_EXPORTED}, .rnr_timer = 31};
}

int
rig_setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	current = r;
	r->fx = fx_create(NULL);
	r->h = r->fx->h;
	r->h->icrc = hca_icrc_select();
	r->pool = rte_pktmbuf_pool_create("tat-rig", 255, 0, HCA_MBUF_PRIV, HCA_MBUF_DATA,
					  SOCKET_ID_ANY);
	assert_non_null(r->pool);
	make_ub(r);
	make_channels(r);
	make_regions(r);
	make_tp(r);
	make_jetty(r);
	make_jfr(r);
	assert_int_equal(hca_tat_init(r->h), 0);
	*state = r;
	return 0;
}

/* The sums of core/counters.h. */
static void
check_sums(struct rig *r)
{
	uint64_t requests = RIG_COUNTER(r, ub_requests);
	uint64_t gone =
		RIG_COUNTER(r, ub_requests_abandoned) + RIG_COUNTER(r, ub_requests_unanswered);

	assert_int_equal(requests, gone + RIG_COUNTER(r, ub_requests_done) +
					   RIG_COUNTER(r, ub_requests_not_ready) +
					   RIG_COUNTER(r, ub_requests_late) +
					   RIG_COUNTER(r, ub_requests_refused));
	assert_int_equal(requests, gone + RIG_COUNTER(r, ub_answers_abandoned) +
					   RIG_COUNTER(r, ub_taacks) +
					   RIG_COUNTER(r, ub_taacks_merged) +
					   RIG_COUNTER(r, ub_read_responses) +
					   RIG_COUNTER(r, ub_atomic_responses));
}

static void
purge_tp(struct rig *r)
{
	r->tp->cfg.state = HCA_TPS_RESET;
	hca_tp_msg_send(r->h, HCA_STAGE_CEU, HCA_STAGE_TAT, RIG_TPI, HCA_MSG_PURGE);
	rig_poll(r);
	assert_int_equal(r->tp->tat.open_in, 0);
}

int
rig_teardown(void **state)
{
	struct rig *r = *state;
	uint32_t free_n;

	purge_tp(r);
	check_sums(r);
	free_n = r->ub->pool[HCA_TP_RESPONSES].free_n;
	assert_int_equal(free_n, RIG_OPS);
	assert_int_equal(tat_ctx(r->h)->free_n, RIG_OPS);
	assert_int_equal(tat_ctx(r->h)->listed, 0);
	assert_int_equal(r->cqes, r->published);
	assert_int_equal(rte_mempool_in_use_count(r->pool), 0);
	hca_tat_fini(r->h);
	for (uint32_t lane = 0; lane < HCA_TP_LANES; lane++) {
		free(r->ub->pool[lane].free);
		free(r->ub->ops.op[lane]);
	}
	free(r->tp->cfg.block);
	free(r->ub->known);
	free(r->ub->jfr);
	free(r->ub->jetty);
	free(r->ub->token);
	free(r->ub->tp);
	free(r->ub);
	free(r->qp->ee.rq.base);
	free(r->srq->q.base);
	free(r->h->srq);
	free(r->h->vtp.domain);
	free(r->h->vtp.mpt);
	free(r->mem);
	rte_mempool_free(r->pool);
	fx_destroy(r->fx);
	free(r);
	current = NULL;
	return 0;
}

/* ---- packets in ---- */

static void
put_btah(struct hca_ub_btah *b, const struct rig_req *p)
{
	const struct hca_ub_ta_info *op = &hca_ub_ta_ops[p->opcode];

	*b = (struct hca_ub_btah){
		.opcode = p->opcode,
		.ee = p->ee != 0 ? p->ee : HCA_UB_EE_NORMAL,
		.tv_en = p->has_token,
		.poison = p->poison,
		.ud_flag = p->opcode == HCA_UB_TA_STORE || p->opcode == HCA_UB_TA_LOAD,
		.tassn = p->tassn,
		.mt_en = (op->is & HCA_UB_EXT(MTETAH)) != 0,
		.fce = p->fce,
		.e_bit = p->e_bit,
		.rc_type = p->rc_type,
		.rc_id = p->rc != 0 ? p->rc : RIG_RC,
	};
}

static uint32_t
put_headers(uint8_t *tph, const struct rig_req *p)
{
	struct hca_ub_headers h = {
		.form = HCA_UB_FORM_DEFAULT,
		.rtph = {.last = p->last,
			 .opcode = p->unreliable ? HCA_UB_TP_UTP : HCA_UB_TP_RTP,
			 .pad = hca_ub_pad(p->len),
			 .psn = p->psn,
			 .tpmsn = p->tpmsn},
		.maetah = {p->address, p->token_id, p->length},
		.mtetah = {.type = p->tc_type, .tc_id = p->tc},
		.tvetah = {p->token},
		.taidetah = {p->tassn},
		.ofstetah = {p->offset},
		.immetah = {p->immediate, p->imm_token, p->total},
		.ntfetah = {p->notify, p->notify_id, p->notify_token, p->notify_data},
		.udetah = {HCA_UB_UD_MAKE_OPERATION(p->ud_op)},
		.enables = p->enables,
	};
	int n;

	put_btah(&h.btah, p);
	n = hca_ub_put_headers(tph, &h);
	assert_true(n > 0);
	return (uint32_t)n;
}

struct rte_mbuf *
rig_packet(struct rig *r, const struct rig_req *p)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->pool);
	uint32_t l3 = HCA_ETH_LEN, n;
	uint32_t tph = l3 + (p->ip6 ? HCA_IPV6_LEN : HCA_IPV4_LEN) + HCA_UDP_LEN;
	uint8_t *data;

	assert_non_null(m);
	data = rte_pktmbuf_mtod(m, uint8_t *);
	for (uint32_t i = 0; i < tph; i++)
		data[i] = (uint8_t)(0x80 + i);
	data[l3] = p->ip6 ? 0x60 : 0x45;
	n = put_headers(data + tph, p);
	for (uint32_t i = 0; i < p->len; i++)
		data[tph + n + i] = p->data != NULL ? p->data[i] : (uint8_t)(p->seed + i);
	n += p->len;
	memset(data + tph + n, 0, hca_ub_pad(p->len));
	*hca_ub_rxd(m) = (struct hca_ub_rxd){
		.tp = p->unreliable ? HCA_TP_UNRELIABLE : RIG_TPI,
		.generation = r->tp->cfg.generation + p->generation,
		.psn = p->psn,
		.tpmsn = p->tpmsn,
		.end = (uint16_t)(n + hca_ub_pad(p->len) - p->cut),
		.tph = (uint16_t)tph,
		.l3 = (uint16_t)l3,
		.opcode = p->unreliable ? HCA_UB_TP_UTP : HCA_UB_TP_RTP,
		.ta = HCA_UB_RTPH_LEN,
		.pad = (uint8_t)hca_ub_pad(p->len),
		.flags = p->last ? HCA_UB_RXD_LAST : 0,
	};
	return m;
}

void
rig_give(struct rig *r, struct rig_req p)
{
	void *m = rig_packet(r, &p);

	hca_tat_process(r->h, &m, 1, r->now);
}

void
rig_give_burst(struct rig *r, const struct rig_req *p, unsigned int n)
{
	void *m[64];

	assert_true(n <= RTE_DIM(m));
	for (unsigned int i = 0; i < n; i++)
		m[i] = rig_packet(r, &p[i]);
	hca_tat_process(r->h, m, n, r->now);
}

void
rig_poll(struct rig *r)
{
	r->now += 1000;
	hca_tat_poll(r->h, r->now, HCA_BURST);
}

void
rig_feed(struct rig *r, struct rig_req p)
{
	rig_give(r, p);
	rig_poll(r);
}

/* ---- answers out ---- */

unsigned int
rig_answers(const struct rig *r)
{
	return r->tp->lane[HCA_TP_RESPONSES].head - r->seen;
}

const struct hca_ta_op *
rig_answer(struct rig *r)
{
	const struct hca_tp_lane *lane = &r->tp->lane[HCA_TP_RESPONSES];

	assert_true(rig_answers(r) != 0);
	return &r->ub->ops.op[HCA_TP_RESPONSES][lane->ring[r->seen++ & (RIG_W - 1)]];
}

const struct hca_ta_op *
rig_expect(struct rig *r, uint8_t opcode, uint8_t answer, uint16_t tassn)
{
	const struct hca_ta_op *op;

	assert_int_equal(rig_answers(r), 1);
	op = rig_answer(r);
	assert_int_equal(op->opcode, opcode);
	assert_int_equal(op->last_opcode, opcode);
	assert_int_equal(op->ta1, 0);
	assert_int_equal(op->ta4, answer);
	assert_int_equal(op->tassn, tassn);
	assert_int_equal(op->rc & 0xfffff, RIG_RC);
	assert_int_equal(op->flags, 0);
	assert_int_equal(op->tps.flags, 0);
	if (answer >> 5 != 0)
		assert_int_equal(op->payload, 0);
	rig_release(r);
	return op;
}

void
rig_expect_taack(struct rig *r, uint8_t answer, uint16_t tassn)
{
	const struct hca_ta_op *op = rig_expect(r, HCA_UB_TA_TAACK, answer, tassn);

	assert_int_equal(op->payload, 0);
	assert_int_equal(op->source, HCA_TA_OP_NO_PAYLOAD);
}

void
rig_release(struct rig *r)
{
	r->tp->tx.lane[HCA_TP_RESPONSES].done = r->tp->lane[HCA_TP_RESPONSES].head;
	hca_tp_msg_send(r->h, HCA_STAGE_TPS, HCA_STAGE_TAT, RIG_TPI, HCA_MSG_ROOM);
}

/* ---- receives ---- */

static void
put_wqe(uint8_t *wqe, uint32_t nda, const struct hca_sge *sge, unsigned int n)
{
	struct hca_data_unit *unit = (void *)(wqe + HCA_WQE_UNIT);

	memset(wqe, 0, 1u << RIG_STRIDE_LOG);
	*(hca_le32 *)(void *)wqe = hca_cpu_to_le32(nda);
	for (unsigned int i = 0; i < n; i++)
		unit[i] = (struct hca_data_unit){hca_cpu_to_le32(sge[i].len),
						 hca_cpu_to_le32(sge[i].lkey),
						 hca_cpu_to_le64(sge[i].va)};
}

uint32_t
rig_post(struct rig *r, const struct hca_sge *sge, unsigned int n)
{
	uint32_t at = (r->rq->producer & ((1u << RIG_RQ_LOG) - 1)) << RIG_STRIDE_LOG;

	put_wqe(r->qp->ee.rq.base + at, 0, sge, n);
	r->rq->producer++;
	return at;
}

uint32_t
rig_post_one(struct rig *r, uint32_t off, uint32_t len)
{
	struct hca_sge sge = {RIG_VA + off, RIG_KEY(RIG_LOCAL), len};

	return rig_post(r, &sge, 1);
}

/* Every third slot is next. */
uint32_t
rig_jfr_post_one(struct rig *r, uint32_t off, uint32_t len)
{
	struct hca_sge sge = {RIG_VA + off, RIG_KEY(RIG_LOCAL), len};
	uint32_t mask = (1u << RIG_RQ_LOG) - 1, at = (r->srq_slot * 3 & mask) << RIG_STRIDE_LOG;

	r->srq_slot++;
	put_wqe(r->srq->q.base + at, (r->srq_slot * 3 & mask) << RIG_STRIDE_LOG, &sge, 1);
	r->jfr->producer++;
	return at;
}

bool
rig_holds(const struct rig *r, uint32_t off, uint32_t len, uint8_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		if (r->mem[off + i] != (uint8_t)(seed + i))
			return false;
	return true;
}

bool
rig_event(const struct rig *r, uint8_t type, uint32_t index)
{
	for (unsigned int i = 0; i < r->fx->events; i++)
		if (r->fx->event[i].type == type && r->fx->event[i].index == index)
			return true;
	return false;
}
