/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The short ways of EE: WRITEs, SENDs and datagrams of one packet, in order; those of READs and
 * ATOMICs are in ee_answer.c. A short way executes a request or leaves it unchanged to the general
 * checks.
 *
 * CQEs of receives take slots from a cursor in one CQ. It is closed before anything else may write
 * the CQ: before a general request and at the end of the burst.
 */

#include <errno.h>

#include "core/mbuf.h"
#include "queues/rq.h"
#include "responder/ee_run.h"

#define NO_CQ UINT32_MAX

/* hca_vtp_scatter() without a call if the memory is contiguous; len is not 0. */
static inline void
store_payload(struct hca_pipe *h, const struct hca_mpt_entry *e, uint64_t va, const uint8_t *src,
	      uint32_t len)
{
	if (likely(e->base != NULL))
		hca_copy_last_byte_last(h->icrc, e->base + (va - e->start), src, len);
	else
		hca_vtp_scatter(&h->vtp, e, va, src, len, h->icrc);
}

/* ---- WRITEs ---- */

/* The entry that grants a WRITE; NULL: none. last: that of the WRITE before in the run. */
static inline const struct hca_mpt_entry *
grant_of(struct hca_pipe *h, const struct hca_qp *qp, const struct hca_mpt_entry *last,
	 uint32_t key, uint64_t va, uint32_t len)
{
	const struct hca_mpt_entry *e;

	if (likely(hca_vtp_grants(last, key, va, len)))
		return last;
	e = hca_vtp_check(&h->vtp, key, qp->cfg.pd, HCA_ACCESS_REMOTE_WRITE, va, len);
	if (unlikely(e == NULL))
		e = hca_vtp_check_bound(&h->vtp, key, &qp->cfg, HCA_ACCESS_REMOTE_WRITE, va, len);
	return e;
}

/* Whether the QP takes WRITEs in this state. The CEU may change both between two packets. */
static inline bool
takes_writes(const struct hca_qp *qp, uint32_t state)
{
	return hca_qp_state(qp) == state &&
	       (hca_qp_live(&qp->cfg.access) & HCA_ACCESS_REMOTE_WRITE) != 0;
}

/* Executes the WRITEs of one packet at m[0 .. n - 1] that are a run; returns their number. */
static inline unsigned int
write_run(struct hca_pipe *h, struct ee_ctx *ctx, struct rte_mbuf *const *m, unsigned int n)
{
	const struct hca_rxd *rxd = hca_rxd(m[0]);
	struct hca_qp *qp = &h->qp[rxd->qpi];
	uint32_t state = hca_qp_state(qp);
	const struct hca_mpt_entry *e = NULL;
	struct ee_run r;
	unsigned int i;

	if (unlikely(!ee_in_order(qp, rxd)))
		return 0;
	r = ee_begin_run(qp, rxd);
	for (i = 0; i < n && likely(takes_writes(qp, state)); i++) {
		const uint8_t *data = rte_pktmbuf_mtod(m[i], const uint8_t *);
		const struct hca_reth *reth;
		uint64_t va;

		ee_prefetch_next(m + i, n - i);
		rxd = hca_rxd(m[i]);
		if (unlikely(!ee_is_next(&r, rxd, HCA_BTH_RC_WRITE_ONLY)))
			break;
		reth = (const void *)(data + rxd->ext_off);
		va = hca_be64_to_cpu(reth->va);
		e = grant_of(h, qp, e, hca_be32_to_cpu(reth->rkey), va, rxd->payload_len);
		if (unlikely(e == NULL || hca_be32_to_cpu(reth->dma_len) != rxd->payload_len))
			break;
		store_payload(h, e, va, data + rxd->payload_off, rxd->payload_len);
		ee_add_to_run(&r, rxd);
	}
	ee_end_run(h, ctx, &qp->ee, &r, i);
	ctx->writes += i;
	return i;
}

/* ---- receives ---- */

/* The next receive WQE of a QP. */
struct receive {
	struct hca_srq *srq; /* NULL: of its RQ */
	const uint8_t *wqe;
	uint32_t off;  /* of wqe */
	uint32_t nda;  /* SRQ: read before data may overwrite it */
	uint64_t next; /* SRQ: hca_srq_available() */
	/* its first SGE */
	const struct hca_mpt_entry *e;
	uint64_t va;
};

static inline bool
next_receive(struct hca_qp *qp, struct receive *r)
{
	r->srq = qp->ee.srq;
	if (likely(r->srq == NULL)) {
		r->off = ee_recv_offset(&qp->ee);
		r->wqe = hca_qbuf_at(&qp->ee.rq, r->off);
		return likely(qp->ee.rq_producer != qp->ee.rq_consumed) ||
		       hca_rq_available(&qp->ee) == 1;
	}
	if (unlikely(hca_srq_available(r->srq, &r->next) != 1))
		return false;
	r->off = HCA_SRQ_HEAD(r->next);
	r->wqe = hca_srq_peek(r->srq, r->next);
	r->nda = hca_le32_to_cpu(
		__atomic_load_n((const hca_le32 *)(const void *)r->wqe, __ATOMIC_RELAXED));
	return true;
}

static inline uint32_t
recv_pd(const struct hca_qp *qp, const struct receive *r)
{
	return r->srq != NULL ? r->srq->pd : qp->cfg.pd;
}

/* Number of bytes of SGE i, which is read once; 0: none, or marked as inline data. */
static inline uint32_t
read_sge(const struct receive *r, uint32_t i, uint64_t *w0, uint64_t *va)
{
	const hca_le64 *unit = (const void *)(r->wqe + (i + 1) * HCA_WQE_UNIT);

	*w0 = hca_le64_to_cpu(__atomic_load_n(&unit[0], __ATOMIC_RELAXED));
	*va = hca_le64_to_cpu(__atomic_load_n(&unit[1], __ATOMIC_RELAXED));
	return *w0 & HCA_INLINE_FLAG ? 0 : (uint32_t)*w0;
}

/*
 * Whether there is a receive with len bytes in its first SGE, so that no copy of it is needed.
 * r->e: of the receive before in the run, or NULL.
 */
static inline bool
find_receive(struct hca_pipe *h, struct hca_qp *qp, uint32_t len, struct receive *r)
{
	uint64_t w0;

	if (unlikely(!next_receive(qp, r) || read_sge(r, 0, &w0, &r->va) < len))
		return false;
	if (likely(hca_vtp_grants(r->e, (uint32_t)(w0 >> 32), r->va, len)))
		return true;
	r->e = hca_vtp_check(&h->vtp, (uint32_t)(w0 >> 32), recv_pd(qp, r), HCA_ACCESS_LOCAL_WRITE,
			     r->va, len);
	return likely(r->e != NULL);
}

/* Where len bytes of an SGE go; NULL: undecided. */
static inline uint8_t *
sge_place(struct hca_pipe *h, const struct hca_qp *qp, const struct receive *r, uint64_t w0,
	  uint64_t va, uint32_t len)
{
	const struct hca_mpt_entry *e = hca_vtp_check(&h->vtp, (uint32_t)(w0 >> 32), recv_pd(qp, r),
						      HCA_ACCESS_LOCAL_WRITE, va, len);

	return likely(e != NULL && e->base != NULL) ? e->base + (va - e->start) : NULL;
}

/*
 * Whether there is a receive for a datagram: its first SGE has room for the GRH and len bytes, or
 * for the GRH only and the second one for the payload. Their places.
 */
static inline bool
find_places(struct hca_pipe *h, struct hca_qp *qp, uint32_t len, struct receive *r, uint8_t **grh,
	    uint8_t **to)
{
	uint64_t w0, va;
	uint32_t n;

	if (unlikely(!next_receive(qp, r)))
		return false;
	n = read_sge(r, 0, &w0, &va);
	if (n >= HCA_UD_GRH_LEN + len) {
		*grh = sge_place(h, qp, r, w0, va, HCA_UD_GRH_LEN + len);
		if (unlikely(*grh == NULL))
			return false;
		*to = *grh + HCA_UD_GRH_LEN;
		return true;
	}
	if (unlikely(n != HCA_UD_GRH_LEN)) /* a stride has room for two SGEs */
		return false;
	*grh = sge_place(h, qp, r, w0, va, HCA_UD_GRH_LEN);
	if (unlikely(*grh == NULL || read_sge(r, 1, &w0, &va) < len))
		return false;
	*to = sge_place(h, qp, r, w0, va, len);
	return *to != NULL;
}

/* False: another pipe has taken the WQE of the SRQ. */
static inline bool
take_receive(struct hca_pipe *h, const struct receive *r)
{
	int rc;

	if (likely(r->srq == NULL))
		return true;
	rc = hca_srq_take(r->srq, r->next, r->nda);
	if (unlikely(rc == -EAGAIN))
		return false;
	if (unlikely(rc != 0))
		hca_srq_catas(&h->core, r->srq, HCA_STAGE_EE);
	hca_srq_check_limit(&h->core, r->srq, HCA_STAGE_EE);
	return true;
}

static inline void
close_cq(struct ee_ctx *ctx)
{
	hca_cq_cursor_close(&ctx->cq);
	ctx->cq_of = NO_CQ;
}

static inline struct hca_cqe *
open_cq(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t cqi)
{
	close_cq(ctx);
	ctx->cq_of = cqi;
	if (!hca_cq_cursor_open(&h->core, cqi, &ctx->batch, HCA_STAGE_EE, &ctx->cq))
		return NULL;
	return hca_cq_cursor_take(&ctx->cq);
}

/*
 * A slot that the cursor does not have. After a CQ that was full by the cursor's copy of the
 * consumer index, the next CQE opens it again.
 */
static __rte_noinline struct hca_cqe *
other_slot(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t cqi, bool solicited)
{
	struct hca_cqe *cqe = NULL;

	if (ctx->cq_of != cqi && !solicited)
		cqe = open_cq(h, ctx, cqi);
	if (cqe != NULL)
		return cqe;
	if (ctx->cq.cq != NULL || solicited)
		close_cq(ctx);
	return hca_cq_reserve(&h->core, cqi, &ctx->batch, solicited, HCA_STAGE_EE);
}

static inline struct hca_cqe *
recv_slot(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t cqi, bool solicited)
{
	struct hca_cqe *cqe;

	if (unlikely(solicited || ctx->cq_of != cqi || ctx->cq.cq == NULL))
		return other_slot(h, ctx, cqi, solicited);
	cqe = hca_cq_cursor_take(&ctx->cq);
	return likely(cqe != NULL) ? cqe : other_slot(h, ctx, cqi, false);
}

/* The receive was filled with len bytes. */
static inline void
complete_receive(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_qp *qp,
		 const struct hca_rxd *rxd, const struct receive *r, uint32_t len, uint32_t rqpn,
		 uint32_t flags)
{
	struct hca_qp_ee *ee = &qp->ee;
	struct hca_cqe *cqe =
		recv_slot(h, ctx, qp->cfg.rcqn, (rxd->flags & HCA_RXD_SOLICITED) != 0);

	ctx->sends++;
	if (likely(cqe != NULL)) {
		cqe->my_qpn = hca_cpu_to_le32(qp->cfg.local_qpn);
		cqe->srqn = hca_cpu_to_le32(r->srq != NULL ? r->srq->srqn : 0);
		cqe->rqpn = hca_cpu_to_le32(rqpn);
		cqe->flags = hca_cpu_to_le32(flags);
		cqe->imm = 0;
		cqe->byte_cnt = hca_cpu_to_le32(len);
		cqe->wqe = hca_cpu_to_le32(r->off);
		hca_cq_publish_now(cqe, rxd->opcode);
		ctx->cq.first = ctx->cq.prod;
	}
	if (r->srq == NULL)
		__atomic_store_n(&ee->rq_consumed, ee->rq_consumed + 1, __ATOMIC_RELAXED);
}

/* The same for SENDs. An overrun of the CQ or a bad SRQ also changes the state of the QP. */
static inline unsigned int
send_run(struct hca_pipe *h, struct ee_ctx *ctx, struct rte_mbuf *const *m, unsigned int n)
{
	const struct hca_rxd *rxd = hca_rxd(m[0]);
	struct hca_qp *qp = &h->qp[rxd->qpi];
	uint32_t state = hca_qp_state(qp);
	struct receive recv;
	struct ee_run r;
	unsigned int i;

	if (unlikely(!ee_in_order(qp, rxd)))
		return 0;
	r = ee_begin_run(qp, rxd);
	recv.e = NULL;
	for (i = 0; i < n; i++) {
		ee_prefetch_next(m + i, n - i);
		rxd = hca_rxd(m[i]);
		if (unlikely(!ee_is_next(&r, rxd, HCA_BTH_RC_SEND_ONLY) ||
			     hca_qp_state(qp) != state ||
			     !find_receive(h, qp, rxd->payload_len, &recv) ||
			     !take_receive(h, &recv)))
			break;
		store_payload(h, recv.e, recv.va,
			      rte_pktmbuf_mtod_offset(m[i], const uint8_t *, rxd->payload_off),
			      rxd->payload_len);
		complete_receive(h, ctx, qp, rxd, &recv, rxd->payload_len, qp->cfg.remote_qpn, 0);
		ee_add_to_run(&r, rxd);
	}
	ee_end_run(h, ctx, &qp->ee, &r, i);
	return i;
}

/* Whether a datagram comes to a QP in a normal state, and its completion is of the usual form. */
static inline bool
takes_datagram(const struct hca_qp *qp, const struct hca_rxd *rxd)
{
	const struct hca_qp_ee *ee = &qp->ee;
	uint32_t state = hca_qp_state(qp);

	return (state == HCA_QPS_RTS || (state == HCA_QPS_RTR && ee->flags & EE_ESTABLISHED)) &&
	       rxd->generation == qp->cfg.generation && qp->cfg.service == HCA_ST_UD &&
	       rxd->payload_len - 1 < 1u << ee->mtu_log && ee->msg_kind == EE_MSG_NONE &&
	       !(ee->flags & EE_FATAL) && rxd->vlan == 0 && !(rxd->flags & HCA_RXD_GSI);
}

/*
 * The IP header goes straight to the receive: a copy of GRH and payload in one would wait for the
 * stores that put the GRH in front of the payload.
 */
static inline bool
fast_datagram(struct hca_pipe *h, struct ee_ctx *ctx, struct rte_mbuf *m, const struct hca_rxd *rxd)
{
	uint32_t len = rxd->payload_len + HCA_UD_GRH_LEN, network;
	const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *), *l3 = data + rxd->l3_off;
	const struct hca_deth *deth = (const void *)(data + rxd->ext_off);
	struct hca_qp *qp = &h->qp[rxd->qpi];
	struct receive r;
	uint8_t *grh, *to;

	if (unlikely(!takes_datagram(qp, rxd) ||
		     !find_places(h, qp, rxd->payload_len, &r, &grh, &to) || !take_receive(h, &r)))
		return false;
	ee_put_grh(grh, l3);
	hca_copy_last_byte_last(h->icrc, to, data + rxd->payload_off, rxd->payload_len);
	ee_count_message(&qp->ee);
	ee_count_received(&qp->ee, 1, rxd->payload_len);
	network = l3[0] >> 4 == 6 ? HCA_CQE_NETWORK_IPV6 : HCA_CQE_NETWORK_IPV4;
	complete_receive(h, ctx, qp, rxd, &r, len, hca_be32_to_cpu(deth->sqpn) & HCA_QPN_MASK,
			 HCA_CQE_MAKE_FLAGS(hca_qp_live(&qp->addr.pkey_index), 1, network, 0));
	return true;
}

/* ---- bursts ---- */

/* Other requests than the most frequent ones. */
static __rte_noinline void
other_request(struct hca_pipe *h, struct ee_ctx *ctx, struct rte_mbuf *m, const struct hca_rxd *rxd)
{
	if (rxd->opcode == HCA_BTH_UD_SEND_ONLY && likely(fast_datagram(h, ctx, m, rxd)))
		return;
	close_cq(ctx);
	ee_process_request(h, ctx, m);
}

/* Executes the run that the burst begins with; returns its length. */
static inline unsigned int
execute_run(struct hca_pipe *h, struct ee_ctx *ctx, struct rte_mbuf *const *m, unsigned int n)
{
	if (!HCA_SHORT_WAYS)
		return 0;
	switch (hca_rxd(m[0])->opcode) {
	case HCA_BTH_RC_WRITE_ONLY:
		return write_run(h, ctx, m, n);
	case HCA_BTH_RC_SEND_ONLY:
		return send_run(h, ctx, m, n);
	case HCA_BTH_RC_READ_REQ:
	case HCA_BTH_RC_FETCH_ADD:
	case HCA_BTH_RC_CMP_SWAP:
		return ee_answer_run(h, ctx, m, n);
	default:
		return 0;
	}
}

static inline void
request(struct hca_pipe *h, struct ee_ctx *ctx, struct rte_mbuf *m)
{
	if (HCA_SHORT_WAYS)
		other_request(h, ctx, m, hca_rxd(m));
	else
		ee_process_request(h, ctx, m);
}

static void
count_burst(struct hca_pipe *h, struct ee_ctx *ctx, unsigned int n)
{
	HCA_COUNT_N(h, EE, rcvd_requests, n - ctx->not_taken);
	ctx->not_taken = 0;
	if (ctx->writes != 0)
		HCA_COUNT_N(h, EE, rx_write_requests, ctx->writes);
	if (ctx->sends != 0) {
		ee_count_sends(h, ctx->sends);
		HCA_COUNT_N(h, EE, resp_completions, ctx->sends);
	}
	if (ctx->answered[0] != 0)
		HCA_COUNT_N(h, EE, rx_read_requests, ctx->answered[0]);
	if (ctx->answered[1] != 0)
		HCA_COUNT_N(h, EE, rx_atomic_requests, ctx->answered[1]);
	ctx->writes = ctx->sends = ctx->answered[0] = ctx->answered[1] = 0;
}

void
hca_ee_process(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now)
{
	struct ee_ctx *ctx = ee_ctx(h);
	struct rte_mbuf *const *m = (struct rte_mbuf *const *)objs;

	if (unlikely(now - ctx->burst_at > EE_RECENT_NS))
		ee_order_pause(ctx, now);
	ctx->burst_at = now;
	ctx->stamp = (uint16_t)(now / EE_STAMP_NS);
	ctx->cq_of = NO_CQ;
	for (unsigned int i = 0; i < n;) {
		unsigned int taken = execute_run(h, ctx, m + i, n - i);

		i += taken;
		if (taken != 0)
			continue;
		ee_prefetch_next(m + i, n - i);
		request(h, ctx, m[i++]);
	}
	close_cq(ctx);
	ctx->seen = true;
	ctx->arrived += n;
	count_burst(h, ctx, n);
	hca_mbuf_free_burst(m, n);
}
