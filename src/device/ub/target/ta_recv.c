/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Receives of Jettys and JFRs. A queue is its owner's memory and may change at any time: the
 * producer count is judged and cached, a WQE is copied once into a message and only the copy is
 * used. A Jetty or JFR may be destroyed, and its number be that of another client's, while a
 * message has one of its receives: so a message keeps number and generation.
 */

#include <errno.h>

#include <rte_bitops.h>

#include "queues/eq.h"
#include "queues/rq.h"
#include "ub/target/ta_target.h"
#include "ub/ub_cqe.h"
#include "vtp/foreign.h"

/* ---- finding ---- */

static uint32_t
tat_resolve_queue(const struct hca_ub *ub, uint32_t id)
{
	if (id >= HCA_TC_WELL_KNOWN)
		return id;
	return __atomic_load_n(&ub->known[id], __ATOMIC_ACQUIRE);
}

static bool
is_exported(const struct hca_tc *row)
{
	return __atomic_load_n(&row->token.flags, __ATOMIC_ACQUIRE) & HCA_TOKEN_EXPORTED;
}

static enum tat_why
tat_find_jfr(const struct hca_pipe *h, uint32_t srqn, struct tat_tc *tc)
{
	tc->srq = hca_srq_find(&h->core, srqn);
	if (tc->srq == NULL)
		return TAT_UNKNOWN_TC;
	tc->row = &h->ub->jfr[tc->srq - h->srq];
	return is_exported(tc->row) ? TAT_FINE : TAT_UNKNOWN_TC;
}

static enum tat_why
tat_find_jetty(const struct hca_pipe *h, uint32_t number, struct tat_tc *tc)
{
	uint32_t qpi = hca_qp_index(&h->core, number), state;
	struct hca_qp *qp = &h->qp[qpi];

	if (number == 0 || __atomic_load_n(&qp->cfg.local_qpn, __ATOMIC_ACQUIRE) != number ||
	    !is_exported(&h->ub->jetty[qpi]))
		return TAT_UNKNOWN_TC;
	state = hca_qp_state(qp);
	if (state == HCA_QPS_ERR)
		return TAT_TC_ERROR;
	if (state != HCA_QPS_RTS && state != HCA_QPS_SQD)
		return TAT_UNKNOWN_TC;
	tc->qp = qp;
	tc->srq = qp->ee.srq;
	tc->row = &h->ub->jetty[qpi];
	return TAT_FINE;
}

static enum tat_why
tat_find_queue(const struct hca_pipe *h, uint32_t mtetah, struct tat_tc *tc)
{
	uint32_t id;

	*tc = (struct tat_tc){0};
	if (HCA_BITS(mtetah, 21, 20) == HCA_UB_TC_GROUP)
		return TAT_GROUP;
	id = tat_resolve_queue(h->ub, HCA_BITS(mtetah, 19, 0));
	if (id & HCA_TC_JFR)
		return tat_find_jfr(h, HCA_TC_NUMBER(id), tc);
	return tat_find_jetty(h, id, tc);
}

/* ---- taking ---- */

static uint32_t
rq_offset(const struct hca_qp_ee *ee)
{
	return (ee->rq_consumed & ((1u << ee->rq_size_log) - 1)) << ee->rq_stride_log;
}

static void
tat_catas(struct hca_pipe *h, const struct tat_tc *tc)
{
	if (tc->srq != NULL)
		hca_srq_catas(&h->core, tc->srq, HCA_STAGE_TAT);
	else {
		HCA_COUNT(h, TAT, rq_catas);
		hca_eq_raise_qp(&h->core, HCA_STAGE_TAT, HCA_EVENT_WQ_CATAS,
				(uint32_t)(tc->qp - h->qp));
	}
}

static void
refuse_for_now(struct tat_request *q, const struct tat_tc *tc, enum tat_why why)
{
	tat_refuse_for(q, why,
		       RTE_MIN(__atomic_load_n(&tc->row->rnr_timer, __ATOMIC_RELAXED),
			       HCA_UB_RNR_TIMER_MAX));
}

static bool
is_available(struct tat_request *q, const struct tat_tc *tc)
{
	uint64_t next;
	int n = tc->srq != NULL ? hca_srq_available(tc->srq, &next) : hca_rq_available(&tc->qp->ee);

	if (likely(n == 1))
		return true;
	if (n == 0) {
		refuse_for_now(q, tc, TAT_NO_RECEIVE);
		if (tc->srq != NULL)
			hca_srq_check_limit(&q->h->core, tc->srq, HCA_STAGE_TAT);
	} else {
		tat_refuse(q, TAT_BAD_RECEIVE);
		tat_catas(q->h, tc);
	}
	return false;
}

/* The queue of the message and the CQ of its completion. */
static void
tat_describe_queue(const struct hca_pipe *h, const struct tat_tc *tc, struct tat_message *m)
{
	m->qpi = tc->qp != NULL ? (uint32_t)(tc->qp - h->qp) : TAT_NONE;
	m->generation = tc->qp != NULL ? tc->qp->cfg.generation : 0;
	m->srqn = tc->srq != NULL ? tc->srq->srqn : 0;
	m->srq_generation = tc->srq != NULL ? tc->srq->generation : 0;
	m->kind = tc->qp != NULL ? HCA_CQE_UB_JETTY : HCA_CQE_UB_JFR;
	m->number = tc->qp != NULL ? tc->qp->cfg.local_qpn : tc->srq->srqn;
	m->cqn = tc->qp != NULL ? tc->qp->cfg.rcqn : tc->srq->cqn;
	m->pd = tc->srq != NULL ? tc->srq->pd : tc->qp->cfg.pd;
}

/* Copy the WQE; returns its link, and the number of its segments or -EINVAL. */
static uint32_t
tat_fetch_wqe(const struct tat_tc *tc, struct tat_message *m, int *n)
{
	const struct hca_qp_ee *ee = tc->qp != NULL ? &tc->qp->ee : NULL;
	const uint8_t *wqe;

	if (tc->srq != NULL) {
		m->wqe = tc->srq->head;
		wqe = hca_srq_peek(tc->srq, tc->srq->next);
		*n = hca_rq_fetch(wqe, 1u << tc->srq->stride_log, m->sge, &m->room);
		return hca_le32_to_cpu(
			__atomic_load_n((const hca_le32 *)(const void *)wqe, __ATOMIC_RELAXED));
	}
	m->wqe = rq_offset(ee);
	*n = hca_rq_fetch(hca_qbuf_at(&ee->rq, m->wqe), 1u << ee->rq_stride_log, m->sge, &m->room);
	return 0;
}

static void
tat_consume_wqe(struct hca_pipe *h, const struct tat_tc *tc, uint32_t nda)
{
	struct hca_qp_ee *ee;

	if (tc->srq == NULL) {
		ee = &tc->qp->ee;
		__atomic_store_n(&ee->rq_consumed, ee->rq_consumed + 1, __ATOMIC_RELAXED);
		return;
	}
	if (unlikely(hca_srq_take(tc->srq, tc->srq->next, nda) != 0))
		hca_srq_catas(&h->core, tc->srq, HCA_STAGE_TAT);
	hca_srq_check_limit(&h->core, tc->srq, HCA_STAGE_TAT);
}

static bool
tat_take_wqe(struct tat_request *q, const struct tat_tc *tc)
{
	struct tat_message *m = q->msg;
	uint32_t nda;
	int n;

	if (!is_available(q, tc))
		return false;
	nda = tat_fetch_wqe(tc, m, &n);
	if (n >= 0 && m->room < q->least) {
		tat_refuse(q, TAT_TOO_LONG);
		return false;
	}
	tat_describe_queue(q->h, tc, m);
	tat_consume_wqe(q->h, tc, nda);
	m->held = true;
	if (unlikely(n < 0)) {
		tat_refuse(q, TAT_BAD_RECEIVE);
		return false;
	}
	m->nsge = (uint8_t)n;
	return true;
}

/* Whether the request comes from the peer of a Jetty that has one peer. */
static bool
is_of_peer(struct tat_request *q, const struct tat_tc *tc)
{
	uint32_t bound = __atomic_load_n(&tc->row->bound, __ATOMIC_ACQUIRE);

	if (bound == HCA_TC_ANYBODY)
		return true;
	if (bound == HCA_TC_BOUND && tat_is_reliable(q) &&
	    hca_tc_is_peer(tc->row, q->tp->cfg.peer_eid, q->rc))
		return true;
	if (bound == HCA_TC_ALONE)
		refuse_for_now(q, tc, TAT_ALONE);
	else
		tat_refuse(q, TAT_STRANGER);
	return false;
}

bool
tat_recv_take(struct tat_request *q, uint32_t mtetah, bool has_value, uint32_t value)
{
	struct tat_tc tc;
	enum tat_why why = tat_find_queue(q->h, mtetah, &tc);

	if (likely(why == TAT_FINE) && !hca_token_fits(&tc.row->token, has_value, value)) {
		why = TAT_TC_TOKEN;
		tat_mismatch(q);
	}
	if (likely(why == TAT_FINE))
		return is_of_peer(q, &tc) && tat_take_wqe(q, &tc);
	tat_refuse(q, why);
	return false;
}

/* ---- placing ---- */

static bool
place_piece(struct tat_request *q, const struct hca_sge *s, uint32_t at, const uint8_t *src,
	    uint32_t len)
{
	uint64_t va = s->va + at;
	const struct hca_mpt_entry *e =
		hca_vtp_check(&q->h->vtp, s->lkey, q->msg->pd, HCA_ACCESS_LOCAL_WRITE, va, len);

	if (unlikely(e == NULL))
		e = hca_foreign_find(&q->h->vtp, s->lkey, q->msg->pd, NULL, HCA_ACCESS_LOCAL_WRITE,
				     va, len);
	if (unlikely(e == NULL)) {
		tat_refuse(q, TAT_BAD_RECEIVE);
		return false;
	}
	return tat_store(q, e, va, src, len);
}

bool
tat_recv_place(struct tat_request *q, uint64_t offset, const uint8_t *src, uint32_t len)
{
	const struct tat_message *m = q->msg;

	if (unlikely(offset + len > m->room)) {
		tat_refuse(q, TAT_TOO_LONG);
		return false;
	}
	for (const struct hca_sge *s = m->sge; len != 0; s++) {
		uint32_t n;

		if (offset >= s->len) {
			offset -= s->len;
			continue;
		}
		n = RTE_MIN(s->len - (uint32_t)offset, len);
		if (!place_piece(q, s, (uint32_t)offset, src, n))
			return false;
		offset = 0;
		src += n;
		len -= n;
	}
	return true;
}

/* ---- completing ---- */

bool
tat_recv_is_alive(const struct hca_pipe *h, struct tat_message *m)
{
	const struct hca_srq *s = m->srqn != 0 ? hca_srq_find(&h->core, m->srqn) : NULL;

	if (unlikely(m->killed == TAT_FINE && m->srqn != 0 &&
		     (s == NULL || s->generation != m->srq_generation)))
		m->killed = TAT_UNKNOWN_TC;
	if (m->killed == TAT_FINE && m->qpi != TAT_NONE) {
		const struct hca_qp *qp = &h->qp[m->qpi];
		uint32_t state = hca_qp_state(qp);

		if (unlikely(state == HCA_QPS_RST || qp->cfg.generation != m->generation))
			m->killed = TAT_UNKNOWN_TC;
		else if (unlikely(state == HCA_QPS_ERR))
			m->killed = TAT_TC_ERROR;
	}
	return likely(m->killed == TAT_FINE);
}

static struct hca_ub_cqe
cqe_of(const struct tat_message *m)
{
	return (struct hca_ub_cqe){.kind = m->kind, .number = m->number, .wqe = m->wqe};
}

void
tat_recv_complete(struct tat_request *q, const struct tat_closing *c, uint32_t bytes)
{
	struct tat_message *m = q->msg;
	struct hca_ub_cqe cqe = cqe_of(m);

	cqe.opcode = c->opcode;
	cqe.solicited = c->solicited;
	cqe.rc = q->rc;
	cqe.tpn = tat_is_reliable(q) ? q->tp->cfg.own_tpn : 0;
	cqe.bytes = bytes;
	cqe.imm = c->data;
	m->held = false;
	if (unlikely(hca_ub_btah_odr(q->tah) & HCA_UB_ODR_COMPLETION) && tat_is_reliable(q)) {
		tat_order_complete(q, &cqe);
		return;
	}
	HCA_COUNT(q->h, TAT, resp_completions);
	hca_ub_cqe_write(&q->h->core, m->cqn, &q->ctx->batch, HCA_STAGE_TAT, &cqe);
}

/* ---- the usual Send ---- */

/* The next receive of the queue: its WQE and offset, and of an SRQ its link. */
static inline const uint8_t *
tat_next_wqe(const struct tat_tc *tc, uint32_t *off, uint32_t *nda)
{
	const uint8_t *wqe;
	uint64_t next;

	if (tc->srq == NULL) {
		if (unlikely(hca_rq_available(&tc->qp->ee) != 1))
			return NULL;
		*off = rq_offset(&tc->qp->ee);
		return hca_qbuf_at(&tc->qp->ee.rq, *off);
	}
	if (unlikely(hca_srq_available(tc->srq, &next) != 1))
		return NULL;
	*off = HCA_SRQ_HEAD(next);
	wqe = hca_srq_peek(tc->srq, next);
	*nda = hca_le32_to_cpu(
		__atomic_load_n((const hca_le32 *)(const void *)wqe, __ATOMIC_RELAXED));
	return wqe;
}

/* The region of the receive's first SGE, if that has room for len bytes. */
static inline const struct hca_mpt_entry *
tat_first_sge(const struct hca_pipe *h, const struct tat_tc *tc, const uint8_t *wqe, uint32_t len,
	      uint64_t *va)
{
	const hca_le64 *unit = (const void *)(wqe + HCA_WQE_UNIT);
	uint64_t w0 = hca_le64_to_cpu(__atomic_load_n(&unit[0], __ATOMIC_RELAXED));

	*va = hca_le64_to_cpu(__atomic_load_n(&unit[1], __ATOMIC_RELAXED));
	if (unlikely(w0 & HCA_INLINE_FLAG || (uint32_t)w0 < len))
		return NULL;
	return hca_vtp_check(&h->vtp, (uint32_t)(w0 >> 32),
			     tc->srq != NULL ? tc->srq->pd : tc->qp->cfg.pd, HCA_ACCESS_LOCAL_WRITE,
			     *va, len);
}

/* The queue of the Send, which is judged once for those in a row that name it alike. */
static inline bool
tat_find_usual(const struct hca_pipe *h, struct tat_send_run *run, const struct tat_usual_send *s)
{
	if (likely(run->found && run->mtetah == s->mtetah && run->value == s->value &&
		   run->has_value == s->has_value))
		return true;
	run->found = tat_find_queue(h, s->mtetah, &run->tc) == TAT_FINE &&
		     hca_token_fits(&run->tc.row->token, s->has_value, s->value) &&
		     __atomic_load_n(&run->tc.row->bound, __ATOMIC_ACQUIRE) == HCA_TC_ANYBODY;
	run->mtetah = s->mtetah;
	run->value = s->value;
	run->has_value = s->has_value;
	if (!run->found)
		return false;
	run->cqn = run->tc.qp != NULL ? run->tc.qp->cfg.rcqn : run->tc.srq->cqn;
	run->local = hca_cpu_to_le32(
		run->tc.qp != NULL
			? HCA_CQE_UB_MAKE_LOCAL(HCA_CQE_UB_JETTY, run->tc.qp->cfg.local_qpn)
			: HCA_CQE_UB_MAKE_LOCAL(HCA_CQE_UB_JFR, run->tc.srq->srqn));
	return true;
}

/* A slot that the cursor does not have. The next CQE after one of a full CQ opens it again. */
static __rte_noinline struct hca_cqe *
tat_other_slot(struct hca_pipe *h, struct tat_send_run *run, bool solicited)
{
	struct hca_cq_batch *batch = &tat_ctx(h)->batch;
	struct hca_cqe *cqe = NULL;

	if (run->cq_of != run->cqn && !solicited) {
		hca_cq_cursor_close(&run->cq);
		run->cq_of = run->cqn;
		if (hca_cq_cursor_open(&h->core, run->cqn, batch, HCA_STAGE_TAT, &run->cq))
			cqe = hca_cq_cursor_take(&run->cq);
	}
	if (cqe != NULL)
		return cqe;
	if (run->cq.cq != NULL || solicited) {
		hca_cq_cursor_close(&run->cq);
		run->cq_of = TAT_NONE;
	}
	return hca_cq_reserve(&h->core, run->cqn, batch, solicited, HCA_STAGE_TAT);
}

static inline struct hca_cqe *
tat_recv_slot(struct hca_pipe *h, struct tat_send_run *run, bool solicited)
{
	struct hca_cqe *cqe;

	if (unlikely(solicited || run->cq_of != run->cqn || run->cq.cq == NULL))
		return tat_other_slot(h, run, solicited);
	cqe = hca_cq_cursor_take(&run->cq);
	return likely(cqe != NULL) ? cqe : tat_other_slot(h, run, false);
}

void
tat_recv_begin(struct tat_send_run *run)
{
	run->cq.cq = NULL;
	run->cq_of = TAT_NONE;
	run->found = false;
	run->sends = 0;
}

void
tat_recv_end(struct hca_pipe *h, struct tat_send_run *run)
{
	hca_cq_cursor_close(&run->cq);
	if (run->sends != 0)
		HCA_COUNT_N(h, TAT, resp_completions, run->sends);
}

bool
tat_recv_fast(struct hca_pipe *h, struct tat_send_run *run, const struct tat_usual_send *s)
{
	const struct hca_mpt_entry *e;
	uint32_t off = 0, nda = 0;
	struct hca_cqe *cqe;
	const uint8_t *wqe;
	uint64_t va;

	if (unlikely(!tat_find_usual(h, run, s)))
		return false;
	wqe = tat_next_wqe(&run->tc, &off, &nda);
	if (unlikely(wqe == NULL))
		return false;
	e = tat_first_sge(h, &run->tc, wqe, s->len, &va);
	if (unlikely(e == NULL))
		return false;
	tat_consume_wqe(h, &run->tc, nda);
	if (likely(e->base != NULL))
		hca_copy_last_byte_last(h->icrc, e->base + (va - e->start), s->src, s->len);
	else
		hca_vtp_scatter(&h->vtp, e, va, s->src, s->len, h->icrc);
	run->sends++;
	cqe = tat_recv_slot(h, run, s->solicited);
	if (likely(cqe != NULL)) {
		hca_ub_cqe_put_received((struct hca_cqe_ub *)cqe, run->local, off, s->rc, s->tpn,
					s->len, HCA_UB_TA_SEND);
		run->cq.first = run->cq.prod;
	}
	return true;
}

/* ---- errors ---- */

static void
complete_error(struct hca_pipe *h, struct tat_ctx *ctx, uint32_t cqn, struct hca_ub_cqe *cqe,
	       uint8_t status)
{
	HCA_COUNT_AT(h, HCA_STAGE_TAT,
		     status == HCA_UB_STATUS_FLUSHED ? HCA_CTR_resp_cqe_flush_error
						     : HCA_CTR_resp_cqe_error);
	cqe->status = status;
	hca_ub_cqe_write(&h->core, cqn, &ctx->batch, HCA_STAGE_TAT, cqe);
}

void
tat_recv_fail(struct hca_pipe *h, struct tat_ctx *ctx, struct tat_message *m, uint8_t status)
{
	struct hca_ub_cqe cqe = cqe_of(m);

	if (!m->held)
		return;
	m->held = false;
	if (!tat_recv_is_alive(h, m)) {
		if (m->killed == TAT_UNKNOWN_TC)
			return;
		status = HCA_UB_STATUS_FLUSHED;
	}
	if (m->qpi != TAT_NONE)
		hca_qp_stat_add32(&h->qp[m->qpi].ee.resp_cqe_error, 1);
	complete_error(h, ctx, m->cqn, &cqe, status);
}

/* ---- Jettys in error ---- */

/* First notify, then the count: a later post sees notify and rings. */
static void
flush_start(struct hca_pipe *h, struct tat_ctx *ctx, uint32_t qpi)
{
	struct hca_qp_ee *ee = &h->qp[qpi].ee;
	uint32_t bytes_log = ee->rq_size_log + ee->rq_stride_log, producer;
	const struct tat_tc tc = {.qp = &h->qp[qpi]};

	if (ee->rq.bytes == 0)
		return;
	__atomic_store_n(&hca_rq_record(&ee->rq, bytes_log)->notify, hca_cpu_to_le32(1),
			 __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	producer = hca_rq_posted(&ee->rq, bytes_log);
	if (producer - ee->rq_consumed > 1u << ee->rq_size_log) {
		tat_catas(h, &tc);
		producer = ee->rq_consumed;
	}
	ee->rq_producer = producer;
	if (producer == ee->rq_consumed || ctx->flushing[qpi / 64] >> (qpi % 64) & 1)
		return;
	ctx->flushing[qpi / 64] |= UINT64_C(1) << (qpi % 64);
	ctx->flushing_n++;
}

static void
flush_end(struct tat_ctx *ctx, uint32_t qpi)
{
	uint64_t bit = UINT64_C(1) << (qpi % 64);

	if (ctx->flushing[qpi / 64] & bit) {
		ctx->flushing[qpi / 64] &= ~bit;
		ctx->flushing_n--;
	}
}

/* Messages that have a receive of the Jetty. */
static void
kill_messages(struct hca_pipe *h, struct tat_ctx *ctx, uint32_t qpi, enum tat_why why)
{
	for (uint32_t i = ctx->first; i != TAT_NONE; i = ctx->message[i].next) {
		struct tat_message *m = &ctx->message[i];

		if (m->waits && m->qpi == qpi)
			tat_order_kill(h, ctx, m, (uint8_t)why);
		if (!m->held || m->qpi != qpi)
			continue;
		m->killed = (uint8_t)why;
		tat_recv_fail(h, ctx, m, HCA_UB_STATUS_FLUSHED);
	}
}

void
tat_recv_state(struct hca_pipe *h, uint32_t qpi)
{
	struct tat_ctx *ctx = tat_ctx(h);

	if (!is_exported(&h->ub->jetty[qpi]) || hca_qp_state(&h->qp[qpi]) != HCA_QPS_ERR)
		return;
	kill_messages(h, ctx, qpi, TAT_TC_ERROR);
	flush_start(h, ctx, qpi);
}

void
tat_recv_forget(struct hca_pipe *h, uint32_t qpi)
{
	struct tat_ctx *ctx = tat_ctx(h);

	kill_messages(h, ctx, qpi, TAT_UNKNOWN_TC);
	flush_end(ctx, qpi);
}

static unsigned int
flush_some(struct hca_pipe *h, struct tat_ctx *ctx, uint32_t qpi)
{
	struct hca_qp *qp = &h->qp[qpi];
	struct hca_qp_ee *ee = &qp->ee;
	const struct tat_tc tc = {.qp = qp};
	unsigned int n = 0;

	if (hca_qp_state(qp) != HCA_QPS_ERR)
		ee->rq_producer = ee->rq_consumed;
	for (; n < TAT_FLUSH_CHUNK && ee->rq_consumed != ee->rq_producer; n++) {
		struct hca_ub_cqe cqe = {.kind = HCA_CQE_UB_JETTY,
					 .number = qp->cfg.local_qpn,
					 .wqe = rq_offset(ee)};

		complete_error(h, ctx, qp->cfg.rcqn, &cqe, HCA_UB_STATUS_FLUSHED);
		hca_qp_stat_add32(&ee->resp_cqe_error, 1);
		tat_consume_wqe(h, &tc, 0);
	}
	if (ee->rq_consumed == ee->rq_producer)
		flush_end(ctx, qpi);
	return n;
}

unsigned int
tat_recv_flush(struct hca_pipe *h, unsigned int budget)
{
	struct tat_ctx *ctx = tat_ctx(h);
	unsigned int n = 0;
	uint32_t words;

	/* without a Jetty the CEU may be changing how many there can be */
	if (likely(ctx->flushing_n == 0))
		return 0;
	words = (h->qp_mask + 64) / 64;
	for (uint32_t w = 0; ctx->flushing_n != 0 && n < budget && w < words; w++)
		for (uint64_t left = ctx->flushing[w]; left != 0; left &= left - 1)
			n += flush_some(h, ctx, w * 64 + rte_bsf64(left));
	return n;
}
