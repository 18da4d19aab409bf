/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Completions of UC and UD requests. There are no acknowledgements: a request is complete when its
 * last packet has been copied from the owner's memory, which encap reports (req_done_seq). req_tx
 * then has the part of req_rx for RC: only req_tx writes una and the send CQEs of these QPs, in
 * window order; a bad request completes when it is the oldest, moves the QP to SQE, and requests
 * announced after it are flushed.
 */

#include "abi_ctx.h"
#include "requester/req_tx.h"
#include "requester/send_cqe.h"

/*
 * State of one call. CQEs are published after una, because their reader must find the window moved.
 */
struct completer {
	struct hca_pipe *h;
	struct hca_req_tx_ctx *ctx;
	struct hca_qp *qp;
	uint32_t qpi;
	uint32_t tail, upsn;
	uint32_t completed, sends, flushed;
	struct hca_send_cqes cqes;
};

static inline struct hca_record *
record_at(const struct completer *c, uint32_t cursor)
{
	const struct hca_qp_req_tx *q = &c->qp->req_tx;

	return hca_record(c->h, q->window[cursor & q->window_mask]);
}

static void
publish(struct completer *c)
{
	__atomic_store_n(&c->qp->sq_una, (uint64_t)c->tail << 32 | c->upsn, __ATOMIC_RELEASE);
	hca_send_cqes_publish(&c->cqes);
}

static struct hca_cqe *
reserve(struct completer *c, bool error)
{
	if (c->cqes.n == HCA_SEND_CQES)
		publish(c);
	/* a CQ that the batch has no room for would miss its event */
	if (c->ctx->batch.n == HCA_CQ_BATCH) {
		publish(c);
		hca_cq_batch_end(&c->h->core, &c->ctx->batch, HCA_STAGE_REQ_TX);
	}
	return hca_cq_reserve(&c->h->core, c->qp->cfg.scqn, &c->ctx->batch, error,
			      HCA_STAGE_REQ_TX);
}

static void
put_error(struct completer *c, const struct hca_record *r, uint8_t syndrome)
{
	hca_send_cqe_error(&c->cqes, reserve(c, true), c->qp, r, syndrome);
}

/* The record at the tail is done; PSNs of it that were not sent are skipped. */
static inline void
pass(struct completer *c, const struct hca_record *r)
{
	if (r->flags & HCA_REC_SENT)
		c->upsn = (r->psn + r->npsn) & HCA_PSN_MASK;
	c->tail++;
}

/* Complete everything before `next` that was copied successfully. */
static void
complete_copied(struct completer *c, uint32_t done)
{
	uint32_t next = c->qp->sq_next;

	for (; c->tail != next; c->tail++) {
		const struct hca_record *r = record_at(c, c->tail);

		if (r->syndrome != 0 || (int32_t)(done - r->desc_seq) < 0)
			return;
		if (r->flags & HCA_REC_SIGNALED)
			hca_send_cqe_success(&c->cqes, reserve(c, false), c->qp, r);
		c->completed++;
		c->sends += hca_record_sends(r);
		c->upsn = (r->psn + r->npsn) & HCA_PSN_MASK;
	}
}

/*
 * SQE, ERR: flush everything in the window; the failed request comes first, if it is still there.
 */
static void
flush(struct completer *c)
{
	uint32_t next = c->qp->sq_next;

	for (; (int32_t)(next - c->tail) > 0; c->flushed++) {
		const struct hca_record *r = record_at(c, c->tail);

		put_error(c, r, HCA_SYND_WR_FLUSH);
		pass(c, r);
	}
	c->upsn = c->qp->req_tx.max_psn;
}

/* The bad request is the oldest: it fails, and the send queue stops. */
static void
fail(struct completer *c)
{
	struct hca_qp_req_tx *q = &c->qp->req_tx;
	const struct hca_record *r = record_at(c, c->tail);
	uint32_t head = __atomic_load_n(&c->qp->parser.head, __ATOMIC_ACQUIRE);

	/* SQE before una passes the record, otherwise the parser would continue after it */
	publish(c);
	hca_req_tx_local_abandon(c->h, c->ctx, c->qpi);
	if (!hca_qp_to_sq_error(c->h, HCA_STAGE_REQ_TX, c->qpi))
		return; /* ERR or RST came first: everything is flushed */
	HCA_COUNT(c->h, REQ_TX, req_cqe_error);
	hca_qp_stat_add(&c->qp->stats.req_cqe_error, 1);
	put_error(c, r, r->syndrome);
	pass(c, r);
	q->flags &= ~HCA_REQ_TX_BAD;
	/* the packets are gone; those sent after SQE use PSNs of their own */
	__atomic_store_n(&c->qp->sq_next, head, __ATOMIC_RELEASE);
	q->pkt = 0;
	__atomic_store_n(&q->next_psn, q->max_psn, __ATOMIC_RELEASE);
	for (uint32_t i = c->tail; i != head; i++) {
		struct hca_record *f = record_at(c, i);

		if (!(f->flags & HCA_REC_SENT))
			f->desc_seq = q->desc_seq;
	}
	flush(c);
}

/* A gather failed since the last check: its record must not complete with success. */
static void
note_failure(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi)
{
	uint32_t failed = __atomic_load_n(&qp->encap.req_failed, __ATOMIC_ACQUIRE);

	if (qp->req_tx.failed_seen == (uint8_t)failed)
		return;
	qp->req_tx.failed_seen = (uint8_t)failed;
	hca_req_tx_gather_failed(h, qp, qpi);
}

void
hca_req_tx_complete(struct hca_pipe *h, struct hca_req_tx_ctx *ctx, struct hca_qp *qp, uint32_t qpi)
{
	struct completer c;
	uint32_t state = hca_qp_state(qp), done;
	uint64_t una;

	if (state == HCA_QPS_RST)
		return;
	/* encap stores a failure before the sequence number that covers it */
	done = __atomic_load_n(&qp->encap.req_done_seq, __ATOMIC_ACQUIRE);
	note_failure(h, qp, qpi);
	una = qp->sq_una;
	c.h = h;
	c.ctx = ctx;
	c.qp = qp;
	c.qpi = qpi;
	c.tail = hca_una_tail(una);
	c.upsn = hca_una_psn(una);
	c.cqes.n = c.completed = c.sends = c.flushed = 0;
	complete_copied(&c, done);
	if (state == HCA_QPS_ERR || state == HCA_QPS_SQE)
		flush(&c);
	else if (qp->req_tx.flags & HCA_REQ_TX_BAD && c.tail == qp->req_tx.bad)
		fail(&c);
	publish(&c);
	HCA_COUNT_N(h, REQ_TX, req_completions, c.completed);
	HCA_COUNT_N(h, REQ_TX, rdma_sends, c.sends);
	HCA_COUNT_N(h, REQ_TX, req_cqe_flush_error, c.flushed);
	if (unlikely(c.flushed != 0))
		hca_qp_stat_add(&qp->stats.req_cqe_error, c.flushed);
	if (unlikely(state == HCA_QPS_SQD))
		hca_req_tx_check_drained(h, qpi);
	hca_req_tx_free_released(h, ctx, qp, qpi);
}
