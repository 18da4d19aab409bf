/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Completion of requests: the walk over the window from the tail, CQEs in window order, errors and
 * flushing. It is the walk of RespRecvCore_Thread_2 (WQE, check, data, CQE, event), plus the cases
 * that this machine leaves out: atomics carry data, unsignalled successes generate no CQE.
 */

#include <rte_prefetch.h>

#include "abi_ctx.h"
#include "abi_wqe.h"
#include "cc/cc.h"
#include "requester/req_rx.h"
#include "requester/rtt.h"

void
hca_req_rx_begin(struct hca_req_rx_run *run, struct hca_pipe *h, uint32_t qpi, uint64_t now,
		 struct hca_cq_batch *batch)
{
	struct hca_qp *qp = &h->qp[qpi];
	uint64_t una = __atomic_load_n(&qp->sq_una, __ATOMIC_RELAXED);

	/* a run uses one CQ; its CQEs must be published before the batch that contains it ends */
	if (unlikely(batch->n == HCA_CQ_BATCH))
		hca_cq_batch_end(&h->core, batch, HCA_STAGE_REQ_RX);
	run->h = h;
	run->qp = qp;
	run->batch = batch;
	run->now = now;
	run->qpi = qpi;
	run->tail = run->old_tail = run->noted_tail = hca_una_tail(una);
	run->upsn = run->old_upsn = run->noted_upsn = hca_una_psn(una);
	run->max_psn = __atomic_load_n(&qp->req_tx.max_psn, __ATOMIC_ACQUIRE);
	run->rd_done = qp->req_rx.rd_done;
	run->completed = run->sends = run->packets = 0;
	run->read_bytes = 0;
	run->msg = 0;
	run->dead = false;
	run->cqes.n = 0;
	run->cq.cq = NULL;
}

/* una first: software that sees a CQE must find the window moved */
static void
publish(struct hca_req_rx_run *run)
{
	struct hca_qp_req_rx *q = &run->qp->req_rx;

	if (run->tail != run->old_tail || run->upsn != run->old_upsn) {
		if (run->tail != run->old_tail)
			run->msg |= HCA_MSG_RELEASE;
		__atomic_store_n(&q->rd_done, run->rd_done, __ATOMIC_RELEASE);
		__atomic_store_n(&run->qp->sq_una, (uint64_t)run->tail << 32 | run->upsn,
				 __ATOMIC_RELEASE);
		run->old_tail = run->tail;
		run->old_upsn = run->upsn;
	}
	hca_send_cqes_publish(&run->cqes);
	hca_cq_cursor_close(&run->cq);
}

/* Congestion control may let req_tx go on: it is asked again. */
static void
tell_acked(struct hca_req_rx_run *run, const struct hca_cc_ops *cc)
{
	uint32_t n = (run->upsn - run->noted_upsn) & HCA_PSN_MASK;

	if (n == 0)
		return;
	hca_cc_acked(run->h, cc, run->qpi, run->upsn, n, run->now);
	run->msg |= HCA_MSG_RELEASE;
}

void
hca_req_rx_note_progress(struct hca_req_rx_run *run)
{
	struct hca_rtt *t = hca_rtt_of(run->h, run->qpi);
	struct hca_qp_req_rx *q = &run->qp->req_rx;
	const struct hca_cc_ops *cc;

	if (run->tail == run->noted_tail && run->upsn == run->noted_upsn)
		return;
	cc = hca_cc_of(run->h, run->qpi);
	q->retries = 0;
	q->rnr_retries = 0;
	if (unlikely(q->flags & HCA_REQ_RX_IMPLIED))
		hca_req_rx_clear_flags(q, HCA_REQ_RX_IMPLIED);
	if (unlikely(cc != NULL))
		tell_acked(run, cc);
	if (unlikely(__atomic_load_n(&t->begun, __ATOMIC_RELAXED) != t->ended))
		hca_rtt_end(run, t);
	run->noted_tail = run->tail;
	run->noted_upsn = run->upsn;
	if (q->flags & HCA_REQ_RX_HOLD)
		return;
	q->deadline = run->upsn == run->max_psn
			      ? HCA_REQ_RX_IDLE
			      : run->now + HCA_ACK_TIMEOUT_NS(hca_qp_ack_timeout(run->qp) & 31);
}

/* The bad record fails when everything before it is released. */
static void
check_bad(struct hca_req_rx_run *run)
{
	uint32_t bad = __atomic_load_n(&run->qp->req_tx.bad, __ATOMIC_ACQUIRE);
	int32_t passed = (int32_t)(run->tail - bad);

	if (passed == 0)
		hca_req_rx_fail(run, hca_record_syndrome(hca_req_rx_record(run, run->tail)));
	else if (passed > 0) /* the peer already had it when reading it again failed */
		hca_req_rx_clear_flags(&run->qp->req_rx, HCA_REQ_RX_BAD);
}

static void
publish_rewind(struct hca_req_rx_run *run)
{
	uint64_t epoch = (uint32_t)(run->qp->req_rx.rewind >> 32) + 1;

	__atomic_store_n(&run->qp->req_rx.rewind,
			 epoch << 32 | (uint64_t)run->again << 24 | run->upsn, __ATOMIC_RELEASE);
}

static inline void
count_completed(struct hca_req_rx_run *run, const struct hca_record *r)
{
	run->completed++;
	run->sends += hca_record_sends(r);
}

static inline void
count_run(struct hca_req_rx_run *run)
{
	struct hca_qp *qp = run->qp;

	if (run->completed != 0)
		HCA_COUNT_N(run->h, REQ_RX, req_completions, run->completed);
	if (run->sends != 0)
		HCA_COUNT_N(run->h, REQ_RX, rdma_sends, run->sends);
	if (run->packets != 0) {
		HCA_COUNT_N(run->h, REQ_RX, rcvd_responses, run->packets);
		__atomic_store_n(&qp->req_rx.rx_packets, qp->req_rx.rx_packets + run->packets,
				 __ATOMIC_RELAXED);
	}
	if (unlikely(run->read_bytes != 0))
		hca_qp_stat_add(&qp->stats.rx_read_bytes, run->read_bytes);
	run->completed = run->sends = run->packets = 0;
	run->read_bytes = 0;
}

/*
 * Local operations have no PSN, so no acknowledgement covers them: they complete when everything
 * before them has and req_tx has set SENT. Fields that req_tx may be writing are read atomically.
 */
static void
pass_local(struct hca_req_rx_run *run)
{
	uint32_t head = __atomic_load_n(&run->qp->parser.head, __ATOMIC_ACQUIRE);

	while (run->tail != head) {
		const struct hca_record *r = hca_req_rx_record(run, run->tail);

		if (r->op != HCA_OP_BIND_MW && r->op != HCA_OP_LOCAL_INV)
			return;
		if (!(__atomic_load_n(&r->flags, __ATOMIC_ACQUIRE) & HCA_REC_SENT))
			return;
		hca_req_rx_complete_tail(run);
	}
	hca_req_rx_clear_flags(&run->qp->req_rx, HCA_REQ_RX_LOCAL);
}

void
hca_req_rx_commit(struct hca_req_rx_run *run)
{
	if (unlikely(run->qp->req_rx.flags & HCA_REQ_RX_LOCAL) && !run->dead)
		pass_local(run);
	/* within a message only a nearly full PSN window can stop req_tx */
	if (unlikely(run->upsn != run->old_upsn &&
		     ((run->max_psn - run->old_upsn) & HCA_PSN_MASK) > HCA_PSN_HALF / 2))
		run->msg |= HCA_MSG_RELEASE;
	if (!run->dead)
		hca_req_rx_note_progress(run);
	publish(run);
	if (unlikely(run->qp->req_rx.flags & HCA_REQ_RX_BAD) && !run->dead)
		check_bad(run);
	if (unlikely(run->msg & HCA_MSG_REWIND))
		publish_rewind(run);
	if (run->msg != 0)
		hca_msg_send(run->h, HCA_STAGE_REQ_RX, HCA_STAGE_REQ_TX, run->qpi, run->msg);
	run->msg = 0;
	count_run(run);
}

/* CQ full: counted where the slot is refused. */
static inline struct hca_cqe *
reserve(struct hca_req_rx_run *run, bool solicited)
{
	/* CQEs of the fast path come first; una must have passed them when they are published */
	if (run->cq.cq != NULL)
		publish(run);
	return hca_cq_reserve(&run->h->core, run->qp->cfg.scqn, run->batch, solicited,
			      HCA_STAGE_REQ_RX);
}

static void
put_error_cqe(struct hca_req_rx_run *run, const struct hca_record *r, uint8_t syndrome)
{
	hca_send_cqe_error(&run->cqes, reserve(run, true), run->qp, r, syndrome);
}

static inline void
make_room(struct hca_req_rx_run *run)
{
	if (unlikely(run->cqes.n == HCA_SEND_CQES))
		publish(run);
}

/* Move una after record r. A record that was never sent has no PSNs. */
static inline void
pass(struct hca_req_rx_run *run, const struct hca_record *r)
{
	if (likely(r->flags & HCA_REC_SENT))
		run->upsn = (r->psn + r->npsn) & HCA_PSN_MASK;
	run->tail++;
}

void
hca_req_rx_complete_tail(struct hca_req_rx_run *run)
{
	const struct hca_record *r = hca_req_rx_record(run, run->tail);

	make_room(run);
	if (likely(r->flags & HCA_REC_SIGNALED))
		hca_send_cqe_success(&run->cqes, reserve(run, false), run->qp, r);
	if (r->flags & HCA_REC_RD)
		run->rd_done++;
	count_completed(run, r);
	pass(run, r);
}

/*
 * Release complete SENDs and WRITEs of n PSNs from una on while the fast path is open, with
 * everything in registers; equivalent to hca_req_rx_release() with hca_req_rx_complete_tail().
 * Stops before other records; returns the rest of n.
 */
static uint32_t
release_plain(struct hca_req_rx_run *run, uint32_t n)
{
	const struct hca_qp *qp = run->qp;
	const uint32_t *window = qp->req_rx.window, mask = qp->req_rx.window_mask;
	uint32_t tail = run->tail, upsn = run->upsn, sends = 0;
	uint32_t qpn = qp->cfg.local_qpn, stride_log = qp->req_rx.sq_stride_log;
	struct hca_cq_cursor cq = run->cq;
	struct hca_pipe *h = run->h;

	while (n != 0) {
		const struct hca_record *r = hca_record(h, hca_window_ref(window, mask, tail));
		uint32_t end = (r->psn + r->npsn) & HCA_PSN_MASK,
			 left = (end - upsn) & HCA_PSN_MASK;

		/*
		 * slots after the head hold old references: valid addresses, possibly of unused
		 * records
		 */
		rte_prefetch0(hca_record(h, hca_window_ref(window, mask, tail + 3)));
		if (unlikely((r->flags & (HCA_REC_RD | HCA_REC_SENT)) != HCA_REC_SENT ||
			     hca_record_syndrome(r) != 0 || n < left))
			break;
		if (likely(r->flags & HCA_REC_SIGNALED)) {
			struct hca_cqe *cqe = hca_cq_cursor_take(&cq);

			if (unlikely(cqe == NULL))
				break;
			hca_send_cqe_plain(cqe, qpn, (uint32_t)r->wqe_index << stride_log, r);
		}
		sends += hca_record_sends(r);
		upsn = end;
		tail++;
		n -= left;
	}
	run->completed += tail - run->tail;
	run->sends += sends;
	run->tail = tail;
	run->upsn = upsn;
	run->cq.prod = cq.prod;
	return n;
}

bool
hca_req_rx_release(struct hca_req_rx_run *run, uint32_t n)
{
	if (likely(hca_req_rx_open_cq(run)))
		n = release_plain(run, n);
	while (n != 0) {
		const struct hca_record *r = hca_req_rx_record(run, run->tail);
		uint32_t left;

		if (unlikely(r->flags & HCA_REC_RD || hca_record_syndrome(r) != 0))
			return false;
		left = (r->psn + r->npsn - run->upsn) & HCA_PSN_MASK;
		if (n < left) {
			run->upsn = (run->upsn + n) & HCA_PSN_MASK;
			return true;
		}
		n -= left;
		hca_req_rx_complete_tail(run);
	}
	return true;
}

bool
hca_req_rx_takes_receive(struct hca_req_rx_run *run)
{
	const struct hca_record *r;
	uint32_t before;

	pass_local(run);
	r = hca_req_rx_record(run, run->tail);
	before = (run->upsn - r->psn) & HCA_PSN_MASK;
	if (r->op == HCA_OP_RDMA_WRITE_IMM)
		return before + 1 >= r->npsn;
	return r->npsn == 0 || (hca_record_sends(r) && before == 0);
}

static void
count_error(struct hca_pipe *h, uint8_t syndrome)
{
	static const uint16_t counter[] = {
		[HCA_SYND_REMOTE_INVAL_REQ] = HCA_CTR_req_remote_invalid_request,
		[HCA_SYND_REMOTE_ACCESS] = HCA_CTR_req_remote_access_errors,
		[HCA_SYND_REMOTE_OP] = HCA_CTR_req_remote_operation_errors,
		[HCA_SYND_RETRY_EXC] = HCA_CTR_req_transport_retries_exceeded,
		[HCA_SYND_RNR_RETRY_EXC] = HCA_CTR_req_rnr_retries_exceeded,
	};

	HCA_COUNT(h, REQ_RX, req_cqe_error);
	if (syndrome < RTE_DIM(counter) && counter[syndrome] != 0)
		HCA_COUNT_AT(h, HCA_STAGE_REQ_RX, counter[syndrome]);
}

void
hca_req_rx_fail(struct hca_req_rx_run *run, uint8_t syndrome)
{
	uint32_t head = __atomic_load_n(&run->qp->parser.head, __ATOMIC_ACQUIRE);
	const struct hca_record *r;

	/* those at the tail have no PSN: a failing record is after them */
	pass_local(run);
	r = hca_req_rx_record(run, run->tail);
	/* ERR before una passes the record, otherwise req_tx would continue after it */
	run->dead = true;
	publish(run);
	if (hca_qp_to_error(run->h, HCA_STAGE_REQ_RX, run->qpi) && run->tail != head) {
		if (syndrome == 0)
			syndrome = HCA_SYND_LOCAL_QP_OP;
		count_error(run->h, syndrome);
		hca_qp_stat_add(&run->qp->stats.req_cqe_error, 1);
		put_error_cqe(run, r, syndrome);
		pass(run, r);
	}
	hca_req_rx_set_flags(&run->qp->req_rx, HCA_REQ_RX_DEAD);
	run->msg = (run->msg & ~HCA_MSG_REWIND) | HCA_MSG_RELEASE;
	hca_req_rx_flush(run);
}

void
hca_req_rx_flush(struct hca_req_rx_run *run)
{
	uint32_t next = __atomic_load_n(&run->qp->sq_next, __ATOMIC_ACQUIRE), n = 0;

	/* local operations that were executed before the QP failed have succeeded */
	if (!(run->qp->req_rx.flags & HCA_REQ_RX_DEAD))
		pass_local(run);
	hca_req_rx_set_flags(&run->qp->req_rx, HCA_REQ_RX_DEAD);
	run->dead = true;
	for (; (int32_t)(next - run->tail) > 0; n++) {
		const struct hca_record *r = hca_req_rx_record(run, run->tail);

		make_room(run);
		put_error_cqe(run, r, HCA_SYND_WR_FLUSH);
		pass(run, r);
	}
	HCA_COUNT_N(run->h, REQ_RX, req_cqe_flush_error, n);
	hca_qp_stat_add(&run->qp->stats.req_cqe_error, n);
	publish(run);
}
