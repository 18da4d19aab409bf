/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Responses: each is accepted only as far as it answers a request to the peer that it comes from.
 * The transport has accepted the packet, and nothing here can make it come again.
 */

#include <errno.h>

#include <rte_prefetch.h>

#include "ub/initiator/ta_initiator_reads.h"
#include "vtp/foreign.h"

/* One packet. */
struct response {
	struct hca_pipe *h;
	struct hca_tp *tp;
	uint32_t tpi;
	const uint8_t *atah;
	struct hca_ub_tp_view v;
	struct hca_ub_ta_view ta;
	struct hca_qp *qp;
	uint32_t qpi;
	uint16_t tassn;
	uint8_t rspst, rspinfo;
	bool usual; /* tai_is_usual() */
	bool taken; /* its Jetty is to be settled */
};

static inline bool
tai_is_done(const struct response *p)
{
	return p->rspst == HCA_UB_RSP_DONE || p->rspst == HCA_UB_RSP_BUFFERED;
}

/* Requests that it answers, from tassn on. */
static uint32_t
answered_by(const struct response *p)
{
	return p->ta.op->kind == HCA_UB_KIND_TAACK && tai_is_done(p) ? p->rspinfo + 1u : 1;
}

static bool
is_open(const struct response *p, uint16_t tassn)
{
	return hca_tai_in_use(p->qp, tassn) && hca_tai_outstanding(hca_tai_segment(p->qp, tassn));
}

/* The TP that the segment was sent to, or another one to the same peer. */
static bool
tai_is_same_peer(const struct response *p, const struct hca_jetty_segment *s)
{
	const struct hca_tp *tp = hca_tai_tp(p->h, s->number);

	return s->number == p->tpi || (s->number != HCA_TP_UNRELIABLE && p->tp->cfg.tpg != 0 &&
				       tp->cfg.tpg == p->tp->cfg.tpg);
}

/* ---- requests that were given up ---- */

/* Of a Read_response, the last packet in its order ends the request. */
static bool
ends_request(const struct response *p)
{
	return p->ta.op->kind != HCA_UB_KIND_READ_RESPONSE || p->v.last;
}

/* n requests that were given up are answered after all. False: fewer were given up. */
static bool
end_abandoned(struct response *p, uint32_t n)
{
	const struct hca_tp_tai *tai = &p->tp->tai;

	if (!ends_request(p))
		return n <= tai->abandoned + tai->expired;
	return n == 0 || hca_tai_given_up_over(p->h, p->tpi, n);
}

static enum hca_counter
tai_foreign_response(struct response *p, uint32_t n, enum hca_counter why)
{
	enum hca_counter known =
		p->tp->tai.expired != 0 ? HCA_CTR_ub_rsp_late : HCA_CTR_ub_rsp_abandoned;

	return end_abandoned(p, n) ? known : why;
}

/* ---- data ---- */

/* Store to an SGE. 0; -EFAULT: its key does not allow it; -EAGAIN: not now. */
static int
tai_scatter_sge(const struct response *p, const struct hca_sge *sge, uint32_t off,
		const uint8_t *src, uint32_t n)
{
	struct hca_pipe *h = p->h;
	uint32_t pd = p->qp->cfg.pd;
	const struct hca_mpt_entry *e =
		hca_vtp_check(&h->vtp, sge->lkey, pd, HCA_ACCESS_LOCAL_WRITE, sge->va + off, n);

	if (likely(e != NULL)) {
		hca_vtp_scatter(&h->vtp, e, sge->va + off, src, n, h->icrc);
		return 0;
	}
	e = hca_foreign_find(&h->vtp, sge->lkey, pd, NULL, HCA_ACCESS_LOCAL_WRITE, sge->va + off,
			     n);
	return e != NULL ? hca_foreign_write(&h->core, e, sge->va + off, src, n) : -EFAULT;
}

/* Store bytes [off, off + len) of the message, or of the result. */
static int
tai_scatter(const struct response *p, const struct hca_ub_record *r, uint32_t off,
	    const uint8_t *src, uint32_t len)
{
	const struct hca_sge *sge = hca_ub_record_sges(r);

	for (uint32_t i = 0; i < r->nsge && len != 0; i++) {
		uint32_t n;
		int rc;

		if (off >= sge[i].len) {
			off -= sge[i].len;
			continue;
		}
		n = RTE_MIN(sge[i].len - off, len);
		rc = tai_scatter_sge(p, &sge[i], off, src, n);
		if (rc != 0)
			return rc;
		src += n;
		len -= n;
		off = 0;
	}
	return len == 0 ? 0 : -EFAULT;
}

/* ---- Read_response ---- */

/* Where in its segment the packet belongs, bytes; UINT32_MAX: nowhere. */
static uint32_t
place_of(const struct response *p, uint32_t offset, uint32_t length)
{
	uint32_t at = 0, mtu = 1u << p->tp->cfg.mtu_log, n = p->ta.payload_len;

	if (p->ta.at->ofstetah != 0)
		at = (hca_ub_ofstetah_offset(p->atah + p->ta.at->ofstetah) -
		      offset / HCA_UB_OFFSET_UNIT) *
		     HCA_UB_OFFSET_UNIT;
	if (at > length || (at & (mtu - 1)) != 0 || n != RTE_MIN(length - at, mtu))
		return UINT32_MAX;
	if (p->v.last != (at + n == length) || (n == 0 && length != 0))
		return UINT32_MAX;
	return at;
}

/*
 * Its packets have PSNs in a row, and the transport passes on each PSN once. So a part that comes
 * under two PSNs is not counted twice, in place of one that is missing.
 */
static bool
in_one_row(const struct response *p, struct hca_jetty_segment *s, uint32_t at)
{
	uint32_t psn = (p->v.psn - (at >> p->tp->cfg.mtu_log)) & HCA_PSN_MASK;

	if (s->packets == 0) {
		s->response_tp = p->tpi;
		s->response_psn = psn;
	}
	return s->response_tp == p->tpi && s->response_psn == psn;
}

/* All packets of it have come. */
static void
end_read(struct response *p, struct hca_jetty_segment *s)
{
	if (s->state == HCA_TAI_SEGMENT_LATE)
		hca_tai_later(p->h, p->qp, p->qpi, s, HCA_TAI_LATE_NS);
	else
		hca_tai_answered(p->h, p->qp, p->qpi, s, 0);
}

static enum hca_counter
tai_fail_response(struct response *p, struct hca_jetty_segment *s, uint8_t status,
		  enum hca_counter why)
{
	hca_tai_answered(p->h, p->qp, p->qpi, s, status);
	return why;
}

/* Until the last packet of its response the peer has the request, which fails here before. */
static enum hca_counter
tai_fail_read(struct response *p, struct hca_jetty_segment *s, uint8_t status, enum hca_counter why)
{
	struct hca_tp_tai *tai = &hca_tai_tp(p->h, s->number)->tai;

	if (!p->v.last) {
		hca_tai_given_up(p->h, s->number);
		__atomic_store_n(&tai->open_out, tai->open_out + 1, __ATOMIC_RELAXED);
	}
	return tai_fail_response(p, s, status, why);
}

static enum hca_counter
tai_take_data(struct response *p, struct hca_jetty_segment *s)
{
	struct hca_tai_ctx *ctx = hca_tai_ctx(p->h);
	const struct hca_ub_record *r = hca_tai_record(p->h, p->qp, s->cursor);
	uint32_t offset = hca_tai_offset(ctx, r, p->tassn);
	uint32_t length = hca_tai_length(ctx, r, offset), at = place_of(p, offset, length);
	enum hca_counter counter = HCA_CTR_ub_responses;
	int rc;

	if (at == UINT32_MAX || !in_one_row(p, s, at))
		return tai_fail_read(p, s, HCA_UB_STATUS_REMOTE_RESPONSE_LENGTH,
				     HCA_CTR_ub_rsp_bad_place);
	rc = tai_scatter(p, r, offset + at, p->atah + p->ta.payload, p->ta.payload_len);
	if (unlikely(rc == -EFAULT))
		return tai_fail_read(p, s, HCA_UB_STATUS_LOCAL_ACCESS,
				     HCA_CTR_ub_rsp_scatter_error);
	if (unlikely(rc != 0)) {
		s->state = HCA_TAI_SEGMENT_LATE;
		counter = HCA_CTR_ub_rsp_scatter_late;
	}
	if (++s->packets >= ((RTE_MAX(length, 1u) - 1) >> p->tp->cfg.mtu_log) + 1)
		end_read(p, s);
	return counter;
}

/* ---- Atomic_response ---- */

/* The old value, least significant byte first whatever the TP says. */
static enum hca_counter
tai_take_result(struct response *p, struct hca_jetty_segment *s)
{
	const struct hca_ub_record *r = hca_tai_record(p->h, p->qp, s->cursor);
	uint32_t n = r->atomic == HCA_UB_TA_STORE ? 0 : r->len;
	const uint8_t *from = p->atah + p->ta.payload;
	uint8_t value[HCA_UB_ATOMIC_MAX];

	if (p->ta.payload_len != n)
		return tai_fail_response(p, s, HCA_UB_STATUS_REMOTE_RESPONSE_LENGTH,
					 HCA_CTR_ub_rsp_bad_place);
	for (uint32_t i = 0; i < n; i++)
		value[i] = from[p->tp->cfg.flags & HCA_TP_FLAG_RSP_BE ? n - 1 - i : i];
	/* one that cannot be stored now is lost: the atomic must not be executed again */
	if (n != 0 && tai_scatter(p, r, 0, value, n) != 0)
		return tai_fail_response(p, s, HCA_UB_STATUS_LOCAL_ACCESS,
					 HCA_CTR_ub_rsp_scatter_error);
	hca_tai_answered(p->h, p->qp, p->qpi, s, 0);
	return HCA_CTR_ub_responses;
}

/* ---- the request that it answers ---- */

/* The kind of response that ends this request well. */
static uint8_t
kind_wanted(const struct hca_ub_record *r)
{
	if (r->op == HCA_OP_ATOMIC)
		return HCA_UB_KIND_ATOMIC_RESPONSE;
	return r->op == HCA_OP_RDMA_READ ? HCA_UB_KIND_READ_RESPONSE : HCA_UB_KIND_TAACK;
}

/* A response of its kind; one that refuses it may also be a TAACK. */
static bool
kind_fits(const struct response *p, const struct hca_jetty_segment *s)
{
	const struct hca_ub_record *r = hca_tai_record(p->h, p->qp, s->cursor);
	uint8_t kind = p->ta.op->kind;

	return kind == kind_wanted(r) || (kind == HCA_UB_KIND_TAACK && !tai_is_done(p));
}

static bool
taid_fits(const struct response *p)
{
	return p->ta.at->taidetah == 0 ||
	       hca_ub_taidetah_taid(p->atah + p->ta.at->taidetah) == HCA_UB_TAID_OF(p->tassn);
}

/*
 * A TAACK of n requests that are all open, in time, were all sent to that TP and end with a TAACK:
 * no other check is needed.
 */
static inline bool
tai_is_usual(const struct response *p, uint32_t n)
{
	uint16_t una = hca_tai_una(p->qp), from = (uint16_t)(p->tassn - una);
	const struct hca_jetty_segment *ring = p->qp->tai.segment;
	uint32_t mask = p->qp->tai.segment_mask, tpi = p->tpi;

	if (p->ta.op->kind != HCA_UB_KIND_TAACK || !tai_is_done(p) ||
	    from + n > (uint16_t)(p->qp->tai.tassn - una))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct hca_jetty_segment *s = &ring[(p->tassn + i) & mask];

		rte_prefetch0(hca_tai_record(p->h, p->qp, s->cursor));
		if (unlikely(s->state != HCA_TAI_SEGMENT_OPEN || s->number != tpi ||
			     s->counted & (HCA_TAI_COUNTED_READ | HCA_TAI_COUNTED_OVERDUE)))
			return false;
	}
	return true;
}

/* Every request of an answer, before any of them is touched; HCA_CTR_N: it is right. */
static enum hca_counter
tai_judge_response(struct response *p)
{
	uint32_t n = answered_by(p), unknown = 0;

	p->usual = HCA_SHORT_WAYS && tai_is_usual(p, n);
	if (likely(p->usual))
		return HCA_CTR_N;
	for (uint32_t i = 0; i < n; i++) {
		uint16_t tassn = (uint16_t)(p->tassn + i);
		const struct hca_jetty_segment *s = hca_tai_segment(p->qp, tassn);

		if (!is_open(p, tassn))
			unknown++;
		else if (!tai_is_same_peer(p, s))
			return HCA_CTR_ub_rsp_other_peer;
		else if (!kind_fits(p, s) || !taid_fits(p))
			return HCA_CTR_ub_rsp_bad;
	}
	if (unknown == n)
		return tai_foreign_response(p, n, HCA_CTR_ub_rsp_unknown_request);
	return end_abandoned(p, unknown) ? HCA_CTR_N : HCA_CTR_ub_rsp_unknown_request;
}

static uint8_t
status_of_error(uint8_t rspinfo)
{
	return rspinfo == HCA_UB_ERROR_UNSUPPORTED ? HCA_UB_STATUS_REMOTE_UNSUPPORTED
						   : HCA_UB_STATUS_REMOTE_ACCESS;
}

static enum hca_counter
tai_take_response(struct response *p)
{
	struct hca_jetty_segment *s = hca_tai_segment(p->qp, p->tassn);

	if (likely(p->usual)) {
		hca_tai_done_usual(p->h, p->qp, p->qpi, p->tassn, p->rspinfo + 1u, p->tpi);
		return HCA_CTR_ub_responses;
	}
	if (p->rspst == HCA_UB_RSP_RNR || p->rspst == HCA_UB_RSP_PAGE_FAULT) {
		hca_tai_not_ready(p->h, p->qp, p->qpi, s, HCA_UB_RNR_NS(p->rspinfo));
		return HCA_CTR_ub_responses;
	}
	if (!tai_is_done(p))
		return tai_fail_response(p, s, status_of_error(p->rspinfo), HCA_CTR_ub_responses);
	if (p->ta.op->kind == HCA_UB_KIND_TAACK) {
		hca_tai_done(p->h, p->qp, p->qpi, p->tassn, answered_by(p));
		return HCA_CTR_ub_responses;
	}
	if (hca_ub_atah_poison(p->atah))
		return tai_fail_response(p, s, HCA_UB_STATUS_REMOTE_POISON, HCA_CTR_ub_rsp_poison);
	return p->ta.op->kind == HCA_UB_KIND_READ_RESPONSE ? tai_take_data(p, s)
							   : tai_take_result(p, s);
}

/* Operations that TPS has returned: requests whose operations are not in a lane need less work. */
static inline void
tai_take_back_ops(struct response *p)
{
	uint32_t done = __atomic_load_n(&p->tp->tx.lane[HCA_TP_REQUESTS].done, __ATOMIC_ACQUIRE);

	if (done != p->tp->tai.taken)
		hca_tai_take_back(p->h, p->tp, p->tpi, done);
}

/* The Jetty that it names, in a state in which it has requests. */
static bool
tai_find_jetty(struct response *p)
{
	uint32_t rc = hca_ub_atah_rc_id(p->atah);

	p->qpi = hca_qp_index(&p->h->core, rc);
	p->qp = &p->h->qp[p->qpi];
	if (hca_ub_atah_rc_type(p->atah) >= HCA_UB_RC_SEQUENCE || rc == 0 ||
	    __atomic_load_n(&p->qp->cfg.local_qpn, __ATOMIC_ACQUIRE) != rc)
		return false;
	return hca_qp_state(p->qp) >= HCA_QPS_RTS && hca_service_is_ub(p->qp->cfg.service);
}

/* Returns the counter that says how the response was used or why it was dropped. */
static enum hca_counter
tai_respond(struct response *p, struct rte_mbuf *m)
{
	const struct hca_ub_rxd *r = hca_ub_rxd(m);
	const uint8_t *tph = hca_ub_rxd_tph(m);
	enum hca_counter counter;

	p->tpi = r->tp;
	p->tp = hca_tai_tp(p->h, r->tp);
	if (r->tp == HCA_TP_UNRELIABLE || r->generation != p->tp->cfg.generation)
		return HCA_CTR_ub_rsp_stale;
	hca_ub_rxd_view(r, &p->v);
	if (r->ta == 0 ||
	    hca_ub_parse_ta(tph, &p->v, p->tp->cfg.flags & HCA_UB_FORM_DEFAULT, &p->ta) != 0 ||
	    !(p->ta.op->is & HCA_UB_OP_RESPONSE))
		return HCA_CTR_ub_rsp_malformed;
	p->atah = tph + r->ta;
	p->tassn = (uint16_t)hca_ub_atah_tassn(p->atah);
	p->rspst = (uint8_t)hca_ub_atah_rspst(p->atah);
	p->rspinfo = (uint8_t)hca_ub_atah_rspinfo(p->atah);
	tai_take_back_ops(p);
	if (!tai_find_jetty(p))
		return tai_foreign_response(p, answered_by(p), HCA_CTR_ub_rsp_unknown_queue);
	counter = tai_judge_response(p);
	if (counter != HCA_CTR_N)
		return counter;
	hca_qp_stat_add(&p->qp->tai_wait.answers, 1);
	p->taken = true;
	return tai_take_response(p);
}

void
hca_tai_process(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now)
{
	struct hca_tai_ctx *ctx = hca_tai_ctx(h);
	struct tai_reads run = {.settle = HCA_TAI_NONE};

	ctx->now = now;
	for (unsigned int i = 0; i < n; i++) {
		struct response p;

		if (HCA_SHORT_WAYS && tai_read(h, &run, objs[i]))
			continue;
		tai_reads_close(h, &run);
		p.h = h;
		p.taken = false;
		HCA_COUNT_AT(h, HCA_STAGE_TAI, tai_respond(&p, objs[i]));
		if (!p.taken)
			continue;
		if (!HCA_SHORT_WAYS)
			tai_reads_settle(h, &run, HCA_TAI_NONE);
		tai_reads_settle(h, &run, p.qpi);
	}
	tai_reads_close(h, &run);
	tai_reads_settle(h, &run, HCA_TAI_NONE);
	if (ctx->batch.n != 0)
		hca_cq_batch_end(&h->core, &ctx->batch, HCA_STAGE_TAI);
	hca_mbuf_free_burst((struct rte_mbuf *const *)objs, n);
}
