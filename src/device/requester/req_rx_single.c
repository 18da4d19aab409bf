/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The ACK of a QP's only packet, which completes its only SEND or WRITE: una, CQE and message
 * without a run. Equivalent to a run of this packet; everything else is one. CQEs of consecutive
 * QPs that have one CQ are published together, after una of each of them has moved. Their messages
 * may precede the CQEs: a cursor opens only where one worker has the stages of the pipe, and req_tx
 * handles no message before the burst ends.
 */

#include "abi_roce.h"
#include "cc/cc.h"
#include "requester/req_rx.h"
#include "requester/rtt.h"

/* Whether the QP waits for this ACK only, and its path and its timer need no attention. */
static inline bool
single_may_end(struct hca_pipe *h, const struct hca_qp *qp, const struct hca_rxd *d, uint8_t aeth)
{
	const struct hca_rtt *t = hca_rtt_of(h, d->qpi);
	uint32_t max_psn = __atomic_load_n(&qp->req_tx.max_psn, __ATOMIC_ACQUIRE);

	return HCA_BTH_OPERATION(d->opcode) == HCA_BTH_RC_ACK &&
	       HCA_AETH_KIND(aeth) == HCA_AETH_ACK && d->generation == qp->cfg.generation &&
	       hca_qp_state(qp) == HCA_QPS_RTS && qp->req_rx.flags == 0 &&
	       d->psn == hca_una_psn(qp->sq_una) && ((d->psn + 1) & HCA_PSN_MASK) == max_psn &&
	       !hca_cc_in_use(h) && __atomic_load_n(&t->begun, __ATOMIC_RELAXED) == t->ended;
}

/* Whether r is the whole message of this PSN, and was sent. */
static inline bool
single_is_of(const struct hca_record *r, uint32_t psn)
{
	return (r->flags & (HCA_REC_RD | HCA_REC_LOCAL | HCA_REC_SENT)) == HCA_REC_SENT &&
	       r->psn == psn && r->npsn == 1 && hca_record_syndrome(r) == 0;
}

/* A CQE for r, not published yet; false: the CQ has no room, or must be written slot by slot. */
static inline bool
single_complete(struct hca_req_rx_singles *s, struct hca_pipe *h, const struct hca_qp *qp,
		const struct hca_record *r)
{
	struct hca_cqe *cqe;

	if (unlikely(s->cq.cq == NULL || s->cqn != qp->cfg.scqn)) {
		hca_cq_cursor_close(&s->cq);
		s->cqn = qp->cfg.scqn;
		if (!hca_cq_cursor_open(&h->core, s->cqn, s->batch, HCA_STAGE_REQ_RX, &s->cq))
			return false;
	}
	cqe = hca_cq_cursor_take(&s->cq);
	if (unlikely(cqe == NULL))
		return false;
	hca_send_cqe_plain(cqe, qp->cfg.local_qpn,
			   (uint32_t)r->wqe_index << qp->req_rx.sq_stride_log, r);
	return true;
}

bool
hca_req_rx_single(struct hca_req_rx_singles *s, struct hca_pipe *h, struct rte_mbuf *m)
{
	const struct hca_rxd *d = hca_rxd(m);
	struct hca_qp *qp = &h->qp[d->qpi];
	struct hca_qp_req_rx *q = &qp->req_rx;
	uint32_t tail = hca_una_tail(qp->sq_una);
	const struct hca_record *r;

	if (!HCA_SHORT_WAYS ||
	    !single_may_end(h, qp, d, *rte_pktmbuf_mtod_offset(m, uint8_t *, d->ext_off)))
		return false;
	r = hca_record(h, hca_window_ref(q->window, q->window_mask, tail));
	if (unlikely(!single_is_of(r, d->psn)) || unlikely(s->batch->n == HCA_CQ_BATCH))
		return false;
	if (likely(r->flags & HCA_REC_SIGNALED) && unlikely(!single_complete(s, h, qp, r)))
		return false;
	s->sends += hca_record_sends(r);
	s->packets++;
	q->retries = q->rnr_retries = 0;
	q->deadline = HCA_REQ_RX_IDLE;
	__atomic_store_n(&q->rx_packets, q->rx_packets + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&qp->sq_una,
			 (uint64_t)(tail + 1) << 32 | (uint32_t)((d->psn + 1) & HCA_PSN_MASK),
			 __ATOMIC_RELEASE);
	hca_msg_send(h, HCA_STAGE_REQ_RX, HCA_STAGE_REQ_TX, d->qpi, HCA_MSG_RELEASE);
	return true;
}

void
hca_req_rx_singles_end(struct hca_req_rx_singles *s, struct hca_pipe *h)
{
	hca_cq_cursor_close(&s->cq);
	if (s->packets == 0)
		return;
	HCA_COUNT_N(h, REQ_RX, req_completions, s->packets);
	HCA_COUNT_N(h, REQ_RX, rcvd_responses, s->packets);
	if (s->sends != 0)
		HCA_COUNT_N(h, REQ_RX, rdma_sends, s->sends);
	s->packets = s->sends = 0;
}
