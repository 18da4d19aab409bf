/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * execution_engine (EE): the responder. Requests validated by decap are checked in InfiniBand's
 * order (ee_check.c), executed and completed; poll() sends the responses.
 *
 * EE is a sink: it accepts every packet at once and never waits for an edge, an mbuf or a queue.
 */

#include <errno.h>
#include <string.h>

#include <rte_atomic.h>
#include <rte_malloc.h>
#include <rte_prefetch.h>

#include "core/mbuf.h"
#include "queues/rq.h"
#include "responder/ee.h"
#include "vtp/window.h"

int
hca_ee_init(struct hca_pipe *h)
{
	struct ee_ctx *ctx =
		rte_zmalloc_socket("ee", sizeof(*ctx), RTE_CACHE_LINE_SIZE, h->cfg.socket_id);

	h->stage_ctx[HCA_STAGE_EE] = ctx;
	if (ctx == NULL)
		return -ENOMEM;
	ctx->ready.head = ctx->lazy.head = HCA_QP_NONE;
	ctx->repeat_qpi = HCA_QP_NONE;
	ctx->ack_every = h->cfg.ack_every ? RTE_MIN(h->cfg.ack_every, EE_ACK_EVERY_MAX) : HCA_BURST;
	if (ee_notify_init(h, ctx) != 0 || ee_pace_init(h, ctx) != 0) {
		hca_ee_fini(h);
		return -ENOMEM;
	}
	return 0;
}

void
hca_ee_fini(struct hca_pipe *h)
{
	if (ee_ctx(h) != NULL) {
		ee_notify_fini(ee_ctx(h));
		hca_pace_fini(&ee_ctx(h)->pace);
	}
	rte_free(h->stage_ctx[HCA_STAGE_EE]);
	h->stage_ctx[HCA_STAGE_EE] = NULL;
}

unsigned int
hca_ee_room(struct hca_pipe *h)
{
	return HCA_DIRECT_ROOM;
}

/* ---- refusing ---- */

void
ee_fatal(struct hca_pipe *h, struct ee_ctx *ctx, uint32_t qpi, enum ee_verdict why, uint32_t psn,
	 uint8_t recv_syndrome)
{
	static const struct {
		uint8_t nak, event;
	} row[] = {
		[EE_INVALID] = {HCA_NAK_INVALID_REQ, HCA_EVENT_WQ_INVAL_REQ},
		[EE_ACCESS] = {HCA_NAK_REMOTE_ACCESS, HCA_EVENT_WQ_ACCESS},
		[EE_OPERATIONAL] = {HCA_NAK_REMOTE_OP, 0},
		[EE_MANAGEMENT] = {0, 0},
	};
	struct hca_qp *qp = &h->qp[qpi];

	ee_refuse_late(&qp->ee, psn);
	qp->ee.flags |= EE_FATAL;
	if (why != EE_MANAGEMENT)
		ee_owe_nak(h, ctx, qpi, HCA_NAK_SYNDROME(row[why].nak), psn);
	hca_qp_to_error(h, HCA_STAGE_EE, qpi);
	if (hca_qp_state(qp) != HCA_QPS_ERR)
		return; /* the CEU has reset it */
	if (recv_syndrome != 0)
		ee_recv_fail(h, ctx, qp, recv_syndrome);
	else if (row[why].event != 0)
		hca_eq_raise_qp(&h->core, HCA_STAGE_EE, row[why].event, qpi);
	ee_flush_start(h, ctx, qpi);
}

static void
count_receive_error(struct hca_pipe *h, uint8_t syndrome)
{
	if (syndrome == HCA_SYND_LOCAL_LENGTH)
		HCA_COUNT(h, EE, resp_local_length_error);
	else if (syndrome == HCA_SYND_LOCAL_PROT || syndrome == HCA_SYND_LOCAL_ACCESS)
		HCA_COUNT(h, EE, resp_local_protection_error);
	else if (syndrome == HCA_SYND_LOCAL_QP_OP)
		HCA_COUNT(h, EE, resp_local_operation_error);
	else if (syndrome == HCA_SYND_MW_BIND)
		HCA_COUNT(h, EE, resp_invalidate_error);
}

/*
 * A READ whose memory is gone is refused without moving the QP to ERR: the packet may be a late
 * copy of a request answered long ago, whose requester ignores the NAK.
 */
static bool
repeat_job(struct ee_request *q)
{
	enum ee_verdict v = ee_check_repeat(q);

	if (v != EE_NEXT && v != EE_ACCESS)
		return false;
	if (!ee_repeat_job(q, v == EE_ACCESS))
		return false;
	if (v == EE_ACCESS)
		HCA_COUNT(q->h, EE, resp_duplicate_refused);
	return true;
}

static void
repeat(struct ee_request *q)
{
	struct hca_qp_ee *ee = &q->qp->ee;

	HCA_COUNT(q->h, EE, duplicate_request);
	hca_qp_stat_add32(&ee->duplicate_request, 1);
	ee_order_duplicate(q);
	if (q->op->runs == HCA_KIND_MESSAGE) {
		if (!(ee->flags & EE_NAK_OWED)) {
			ee->flags |= EE_ACK_OWED | EE_ACK_REPEAT;
			ee->owed_psn = q->rxd->psn;
		}
		ee_list_ready(q->h, q->ctx, ee, q->qpi);
		return;
	}
	if (q->op->runs == HCA_KIND_NONE || !repeat_job(q))
		HCA_COUNT(q->h, EE, resp_duplicate_dropped);
}

/* A packet after the expected one, which is reported once: both will be repeated. */
static void
refuse_early(struct ee_request *q)
{
	struct hca_qp_ee *ee = &q->qp->ee;

	HCA_COUNT(q->h, EE, out_of_seq_request);
	hca_qp_stat_add32(&ee->out_of_sequence, 1);
	if (!(ee->flags & EE_RNR))
		ee_order_early(q, !(ee->flags & EE_GAP));
	if (ee->flags & (EE_GAP | EE_RNR)) {
		ee_refused(ee, q->rxd->psn);
		return;
	}
	ee->flags |= EE_GAP;
	ee_owe_nak(q->h, q->ctx, q->qpi, HCA_NAK_SYNDROME(HCA_NAK_PSN_SEQ), q->rxd->psn);
}

/* The owner's receive is invalid: it completes with an error, and a UC or UD QP goes to ERR. */
static void
local_error(struct ee_request *q)
{
	struct hca_pipe *h = q->h;

	count_receive_error(h, q->recv_syndrome);
	if (q->fetched)
		ee_recv_take(q);
	hca_qp_to_error(h, HCA_STAGE_EE, q->qpi);
	if (hca_qp_state(q->qp) != HCA_QPS_ERR)
		return; /* the CEU has reset it */
	ee_recv_fail(h, q->ctx, q->qp, q->recv_syndrome);
	ee_flush_start(h, q->ctx, q->qpi);
}

/*
 * UC, UD: drop the message; the next one uses its receive. A datagram too long for the receive is
 * also dropped, because any host may send one.
 */
static void
refuse_silently(struct ee_request *q, enum ee_verdict v)
{
	struct hca_qp_ee *ee = &q->qp->ee;
	bool ud = q->qp->cfg.service == HCA_ST_UD;

	if (v == EE_DROP)
		return;
	/* packets without a receive are counted as out_of_buffer or gsi_no_receive */
	if (v != EE_NOT_READY)
		HCA_COUNT_AT(q->h, HCA_STAGE_EE,
			     ud ? HCA_CTR_resp_ud_dropped : HCA_CTR_resp_uc_dropped);
	if (!ud)
		ee_set_epsn(ee, q->rxd->psn + 1);
	if (q->recv_syndrome != 0 && v == EE_OPERATIONAL) {
		local_error(q);
		return;
	}
	ee->msg_kind = EE_MSG_NONE;
}

static void
refuse_fatally(struct ee_request *q, enum ee_verdict v)
{
	static const uint8_t counter[] = {
		[EE_INVALID] = HCA_CTR_resp_invalid_request,
		[EE_ACCESS] = HCA_CTR_resp_remote_access_errors,
		[EE_OPERATIONAL] = HCA_CTR_resp_remote_operation_errors,
		[EE_MANAGEMENT] = HCA_CTR_resp_management_errors,
	};

	HCA_COUNT_AT(q->h, HCA_STAGE_EE, counter[v]);
	count_receive_error(q->h, q->recv_syndrome);
	if (q->recv_syndrome != 0 && q->fetched)
		ee_recv_take(q);
	ee_fatal(q->h, q->ctx, q->qpi, v, q->qp->ee.epsn, q->recv_syndrome);
}

static void
refuse(struct ee_request *q, enum ee_verdict v)
{
	struct hca_qp *qp = q->qp;

	if (q->counted)
		hca_qp_stat_add(&qp->ee.rx_dropped, 1);
	if (unlikely(ee_is_unreliable(qp))) {
		refuse_silently(q, v);
		return;
	}
	switch (v) {
	case EE_DUPLICATE:
		repeat(q);
		break;
	case EE_SEQ:
		refuse_early(q);
		break;
	case EE_NOT_READY:
		qp->ee.flags |= EE_RNR;
		ee_owe_nak(q->h, q->ctx, q->qpi,
			   HCA_RNR_SYNDROME(hca_qp_live(&qp->cfg.min_rnr_timer)), q->rxd->psn);
		break;
	case EE_INVALID:
	case EE_ACCESS:
	case EE_OPERATIONAL:
	case EE_MANAGEMENT:
		refuse_fatally(q, v);
		break;
	default:
		break;
	}
}

/* ---- executing ---- */

static void
scatter(struct ee_request *q)
{
	const uint8_t *src = q->payload;

	if (q->len == 0)
		return;
	for (unsigned int i = 0; i < q->npieces; i++) {
		const struct ee_piece *p = &q->piece[i];

		if (likely(!p->mpt->foreign))
			hca_vtp_scatter(&q->h->vtp, p->mpt, p->va, src, p->len, q->h->icrc);
		src += p->len;
	}
}

/* SEND and WRITE: store the data and advance the state of the message. */
static void
execute_data(struct ee_request *q)
{
	struct hca_qp_ee *ee = &q->qp->ee;
	bool send = q->op->kind == HCA_PKT_SEND;

	if (send && q->op->starts)
		ee_recv_take(q);
	scatter(q);
	ee->msg_done = q->op->starts ? q->len : ee->msg_done + q->len;
	ee->msg_kind = q->op->ends ? EE_MSG_NONE : send ? EE_MSG_SEND : EE_MSG_WRITE;
	if (send) {
		ee->recv_nsge = q->nsge;
		ee->recv_sge_at = q->sge_at;
		ee->recv_sge_off = q->sge_off;
		ee->msg_left = q->room - q->len;
	} else {
		ee->write_va = q->va + q->len;
		ee->write_rkey = q->rkey;
		ee->msg_left = q->dma_len - q->len;
	}
}

static uint32_t
immediate(const struct ee_request *q)
{
	uint32_t imm = 0;

	if (q->op->ext & HCA_EXT_IMMDT)
		memcpy(&imm, q->frame + q->rxd->ext_off + q->op->at.immdt - HCA_ROCE_BTH_LEN,
		       sizeof(imm));
	else if (q->op->ext & HCA_EXT_IETH)
		imm = hca_cpu_to_le32(ee_invalidated_key(q));
	return imm;
}

/*
 * After the message's data and before its completion. Only this stage writes through the window, so
 * it takes effect at once; encap then fails to gather for earlier READs. If req_tx or the CEU was
 * faster there is nothing left to do.
 */
static void
invalidate(struct ee_request *q)
{
	uint32_t key = ee_invalidated_key(q);

	if (hca_window_invalidate(&q->h->core, &q->qp->cfg, key))
		hca_window_settle(&q->h->core, key);
	HCA_COUNT(q->h, EE, resp_invalidations);
}

/* Count complete SEND messages that found receives. */
static inline void
count_sends(struct hca_pipe *h, uint64_t n)
{
	HCA_COUNT_N(h, EE, rx_send_requests, n);
	HCA_COUNT_N(h, EE, rdma_recvs, n);
}

static void
complete_data(struct ee_request *q)
{
	bool send = q->op->kind == HCA_PKT_SEND;

	ee_count_message(&q->qp->ee);
	if (send)
		count_sends(q->h, 1);
	else
		HCA_COUNT(q->h, EE, rx_write_requests);
	if (!send && !(q->op->ext & HCA_EXT_IMMDT))
		return;
	if (!send)
		ee_recv_take(q);
	if (unlikely(q->op->ext & HCA_EXT_IETH))
		invalidate(q);
	ee_recv_complete(q->h, q->ctx, q->qp, q->rxd->opcode, immediate(q), q->qp->ee.msg_done,
			 (q->rxd->flags & HCA_RXD_SOLICITED) != 0);
	HCA_COUNT(q->h, EE, resp_completions);
}

/* A complete message; the completion names its source. */
static void
execute_datagram(struct ee_request *q)
{
	uint32_t sl = q->rxd->vlan >> 13, index = hca_qp_live(&q->qp->addr.pkey_index);
	/* ee_check.c has put zeros in front of an IPv4 header. */
	uint32_t network = q->payload[0] != 0 ? HCA_CQE_NETWORK_IPV6 : HCA_CQE_NETWORK_IPV4;

	ee_recv_take(q);
	scatter(q);
	ee_count_message(&q->qp->ee);
	count_sends(q->h, 1);
	HCA_COUNT(q->h, EE, resp_completions);
	ee_recv_complete_ud(q, HCA_CQE_MAKE_FLAGS(index, 1, network, sl), q->len);
}

/*
 * ATOMIC WRITE and FLUSH. The data of all earlier requests is stored: the fence of a FLUSH makes it
 * visible to all CPUs and devices of the host before the answer leaves.
 */
static void
execute_confirmed(struct ee_request *q)
{
	if (q->op->kind == HCA_PKT_FLUSH) {
		HCA_COUNT(q->h, EE, rx_flush_requests);
		rte_mb();
		return;
	}
	HCA_COUNT(q->h, EE, rx_atomic_writes);
	if (!q->foreign)
		ee_atomic_write(q);
}

/* The answer to q. va: result of an ATOMIC. */
static void
add_job(struct ee_request *q, uint64_t va)
{
	ee_add_job(q->h, q->ctx, q->qpi,
		   &(struct hca_resp_job){
			   .va = va,
			   .rkey = q->rkey,
			   .pd = q->pd,
			   .left = q->dma_len,
			   .first = q->rxd->psn,
			   .psn = q->rxd->psn,
			   .msn = q->qp->ee.msn,
			   .kind = q->op->runs,
		   });
}

static void
execute(struct ee_request *q)
{
	struct hca_qp_ee *ee = &q->qp->ee;

	if (unlikely(q->qp->cfg.service == HCA_ST_UD)) {
		execute_datagram(q);
		return;
	}
	switch (q->op->runs) {
	case HCA_KIND_READ:
		ee_count_message(ee);
		HCA_COUNT(q->h, EE, rx_read_requests);
		add_job(q, q->va);
		break;
	case HCA_KIND_ATOMIC:
		ee_count_message(ee);
		HCA_COUNT(q->h, EE, rx_atomic_requests);
		add_job(q, q->foreign ? q->before : ee_atomic_execute(q));
		break;
	case HCA_KIND_CONFIRM:
		ee_count_message(ee);
		execute_confirmed(q);
		q->dma_len = 0; /* the answer has no data */
		add_job(q, 0);
		break;
	default:
		execute_data(q);
		if (q->op->ends)
			complete_data(q);
		if (likely(!ee_is_unreliable(q->qp)))
			ee_accepted(q->h, q->ctx, ee, q->qpi, q->rxd->flags & HCA_RXD_ACKREQ);
		break;
	}
	ee_set_epsn(ee, q->rxd->psn + q->npsn);
}

static void
process_request(struct hca_pipe *h, struct ee_ctx *ctx, struct rte_mbuf *m)
{
	const struct hca_rxd *rxd = hca_rxd(m);
	const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *);
	struct ee_request q;
	enum ee_verdict v;

	q.h = h;
	q.ctx = ctx;
	q.qp = &h->qp[rxd->qpi];
	q.qpi = rxd->qpi;
	q.rxd = rxd;
	q.op = &hca_roce_opcodes[rxd->opcode];
	q.frame = data;
	q.ext = data + rxd->ext_off;
	q.pd = q.qp->cfg.pd;
	q.srq = NULL;
	q.imm = 0;
	q.payload = data + rxd->payload_off;
	q.len = rxd->payload_len;
	q.va = 0;
	q.rkey = 0;
	q.dma_len = 0;
	q.npieces = 0;
	q.foreign = false;
	q.recv_syndrome = 0;
	q.fetched = false;
	q.claimed = false;
	q.grh = false;
	q.counted = false;
	v = ee_check(&q);
	if (likely(v == EE_NEXT))
		execute(&q);
	else
		refuse(&q, v);
}

/* ---- the short way: requests of one packet, and READs of one response packet, in order ---- */

/*
 * Whether a packet is the expected one in a normal state, so that all checks would pass. False:
 * undecided, the general checks decide, so the fast path itself refuses nothing.
 */
static inline bool
in_order(const struct hca_qp *qp, const struct hca_rxd *rxd)
{
	const struct hca_qp_ee *ee = &qp->ee;
	uint32_t state = hca_qp_state(qp);

	return (state == HCA_QPS_RTS || (state == HCA_QPS_RTR && ee->flags & EE_ESTABLISHED)) &&
	       rxd->generation == qp->cfg.generation && qp->cfg.service == HCA_ST_RC &&
	       rxd->psn == ee->epsn && ee->msg_kind == EE_MSG_NONE &&
	       !(ee->flags & (EE_FATAL | EE_GAP | EE_RNR | EE_NAK_OWED | EE_FILLED | EE_TWICE));
}

/* The same for a WRITE or SEND, which has a payload. */
static inline bool
data_in_order(const struct hca_qp *qp, const struct hca_rxd *rxd)
{
	return in_order(qp, rxd) && rxd->payload_len - 1 < 1u << qp->ee.mtu_log;
}

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

static inline void
fast_done(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_qp *qp, const struct hca_rxd *rxd)
{
	ee_count_message(&qp->ee);
	ee_set_epsn(&qp->ee, rxd->psn + 1);
	ee_count_received(&qp->ee, rxd);
	ee_accepted(h, ctx, &qp->ee, rxd->qpi, rxd->flags & HCA_RXD_ACKREQ);
}

static inline bool
fast_write(struct hca_pipe *h, struct ee_ctx *ctx, struct rte_mbuf *m, const struct hca_rxd *rxd)
{
	struct hca_qp *qp = &h->qp[rxd->qpi];
	const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *);
	const struct hca_reth *reth = (const void *)(data + rxd->ext_off);
	const struct hca_mpt_entry *e;
	uint64_t va;

	if (unlikely(!data_in_order(qp, rxd) ||
		     !(hca_qp_live(&qp->cfg.access) & HCA_ACCESS_REMOTE_WRITE) ||
		     hca_be32_to_cpu(reth->dma_len) != rxd->payload_len))
		return false;
	va = hca_be64_to_cpu(reth->va);
	e = hca_vtp_check(&h->vtp, hca_be32_to_cpu(reth->rkey), qp->cfg.pd, HCA_ACCESS_REMOTE_WRITE,
			  va, rxd->payload_len);
	if (unlikely(e == NULL))
		e = hca_vtp_check_bound(&h->vtp, hca_be32_to_cpu(reth->rkey), &qp->cfg,
					HCA_ACCESS_REMOTE_WRITE, va, rxd->payload_len);
	if (unlikely(e == NULL))
		return false;
	store_payload(h, e, va, data + rxd->payload_off, rxd->payload_len);
	fast_done(h, ctx, qp, rxd);
	ctx->writes++;
	return true;
}

/* The payload fits the first SGE of the receive WQE, so the WQE need not be copied. */
static inline bool
store_to_first_sge(struct hca_pipe *h, uint32_t pd, const uint8_t *wqe, struct rte_mbuf *m,
		   const struct hca_rxd *rxd)
{
	const hca_le64 *unit = (const void *)(wqe + HCA_WQE_UNIT);
	uint64_t w0 = hca_le64_to_cpu(__atomic_load_n(&unit[0], __ATOMIC_RELAXED));
	uint64_t va = hca_le64_to_cpu(__atomic_load_n(&unit[1], __ATOMIC_RELAXED));
	const struct hca_mpt_entry *e;

	if (unlikely(w0 & HCA_INLINE_FLAG || (uint32_t)w0 < rxd->payload_len))
		return false;
	e = hca_vtp_check(&h->vtp, (uint32_t)(w0 >> 32), pd, HCA_ACCESS_LOCAL_WRITE, va,
			  rxd->payload_len);
	if (unlikely(e == NULL))
		return false;
	store_payload(h, e, va, rte_pktmbuf_mtod_offset(m, const uint8_t *, rxd->payload_off),
		      rxd->payload_len);
	return true;
}

static inline void
fast_send_done(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_qp *qp, const struct hca_rxd *rxd)
{
	ee_recv_complete(h, ctx, qp, rxd->opcode, 0, rxd->payload_len,
			 (rxd->flags & HCA_RXD_SOLICITED) != 0);
	fast_done(h, ctx, qp, rxd);
	ctx->sends++;
}

/* The same for an SRQ: the offset of its next WQE is read before data may overwrite it. */
static inline bool
fast_send_srq(struct hca_pipe *h, struct ee_ctx *ctx, struct rte_mbuf *m, const struct hca_rxd *rxd)
{
	struct hca_qp *qp = &h->qp[rxd->qpi];
	struct hca_srq *s = qp->ee.srq;
	const uint8_t *wqe;
	uint64_t next;
	uint32_t nda;

	if (s == NULL || s->shared || !data_in_order(qp, rxd) || hca_srq_available(s, &next) != 1)
		return false;
	wqe = hca_srq_peek(s, next);
	nda = hca_le32_to_cpu(
		__atomic_load_n((const hca_le32 *)(const void *)wqe, __ATOMIC_RELAXED));
	if (unlikely(!store_to_first_sge(h, s->pd, wqe, m, rxd)))
		return false;
	ee_srq_take(h, qp, s, next, nda);
	fast_send_done(h, ctx, qp, rxd);
	return true;
}

static inline bool
fast_send(struct hca_pipe *h, struct ee_ctx *ctx, struct rte_mbuf *m, const struct hca_rxd *rxd)
{
	struct hca_qp *qp = &h->qp[rxd->qpi];

	if (unlikely(!data_in_order(qp, rxd) || hca_rq_available(&qp->ee) != 1))
		return false;
	if (unlikely(!store_to_first_sge(h, qp->cfg.pd,
					 hca_qbuf_at(&qp->ee.rq, ee_recv_offset(&qp->ee)), m, rxd)))
		return false;
	fast_send_done(h, ctx, qp, rxd);
	return true;
}

/* The answer to a request of kind runs; va: result of an ATOMIC, first byte of a READ. */
static inline void
fast_answered(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_qp *qp, const struct hca_rxd *rxd,
	      uint8_t runs, uint64_t va, uint32_t rkey, uint32_t len)
{
	ee_count_message(&qp->ee);
	ee_count_received(&qp->ee, rxd);
	ee_add_job(h, ctx, rxd->qpi,
		   &(struct hca_resp_job){
			   .va = va,
			   .rkey = rkey,
			   .pd = qp->cfg.pd,
			   .left = len,
			   .first = rxd->psn,
			   .psn = rxd->psn,
			   .msn = qp->ee.msn,
			   .kind = runs,
		   });
	ee_set_epsn(&qp->ee, rxd->psn + 1);
	ctx->answered[runs == HCA_KIND_ATOMIC]++;
}

/* READs and ATOMICs. Both have address and key at the beginning of their header. */
static inline bool
fast_answer(struct hca_pipe *h, struct ee_ctx *ctx, struct rte_mbuf *m, const struct hca_rxd *rxd)
{
	const struct hca_roce_opcode_info *op = rxd->info;
	const struct hca_reth *reth = rte_pktmbuf_mtod_offset(m, const void *, rxd->ext_off);
	struct hca_qp *qp = &h->qp[rxd->qpi];
	uint64_t va = hca_be64_to_cpu(reth->va);
	uint32_t rkey = hca_be32_to_cpu(reth->rkey), len = 8;
	bool atomic = op->runs == HCA_KIND_ATOMIC;
	const struct hca_mpt_entry *e;

	if (!in_order(qp, rxd) || rxd->payload_len != 0 ||
	    (hca_qp_live(&qp->cfg.access) & op->access) != op->access ||
	    qp->ee.new_jobs >= hca_qp_live(&qp->cfg.max_dest_rd_atomic))
		return false;
	if (!atomic)
		len = hca_be32_to_cpu(reth->dma_len);
	if (len - 1 >= 1u << qp->ee.mtu_log)
		return false;
	e = hca_vtp_check(&h->vtp, rkey, qp->cfg.pd, op->access, va, len);
	if (unlikely(e == NULL))
		return false;
	if (atomic) {
		uint8_t *at = e->base != NULL ? e->base + (va - e->start) : NULL;

		if (at == NULL || ((va | (uintptr_t)at) & 7) != 0)
			return false;
		va = ee_atomic_execute_at(at, op->kind, reth);
	}
	fast_answered(h, ctx, qp, rxd, op->runs, va, rkey, len);
	return true;
}

/* Requests that the fast paths do not handle. */
static __rte_noinline void
other_request(struct hca_pipe *h, struct ee_ctx *ctx, struct rte_mbuf *m, const struct hca_rxd *rxd)
{
	switch (rxd->opcode) {
	case HCA_BTH_RC_READ_REQ:
	case HCA_BTH_RC_FETCH_ADD:
	case HCA_BTH_RC_CMP_SWAP:
		if (likely(fast_answer(h, ctx, m, rxd)))
			return;
		break;
	case HCA_BTH_RC_SEND_ONLY:
		if (fast_send_srq(h, ctx, m, rxd))
			return;
		break;
	default:
		break;
	}
	process_request(h, ctx, m);
}

static inline void
request(struct hca_pipe *h, struct ee_ctx *ctx, struct rte_mbuf *m)
{
	const struct hca_rxd *rxd = hca_rxd(m);

	if (!HCA_SHORT_WAYS) {
		process_request(h, ctx, m);
		return;
	}
	if (rxd->opcode == HCA_BTH_RC_WRITE_ONLY && fast_write(h, ctx, m, rxd))
		return;
	if (rxd->opcode == HCA_BTH_RC_SEND_ONLY && fast_send(h, ctx, m, rxd))
		return;
	other_request(h, ctx, m, rxd);
}

static void
count_burst(struct hca_pipe *h, struct ee_ctx *ctx, unsigned int n)
{
	HCA_COUNT_N(h, EE, rcvd_requests, n - ctx->not_taken);
	ctx->not_taken = 0;
	if (ctx->writes != 0)
		HCA_COUNT_N(h, EE, rx_write_requests, ctx->writes);
	if (ctx->sends != 0) {
		count_sends(h, ctx->sends);
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
	for (unsigned int i = 0; i < n; i++) {
		if (i + 2 < n)
			rte_prefetch0(hca_rxd(m[i + 2]));
		if (i + 1 < n)
			rte_prefetch0(rte_pktmbuf_mtod(m[i + 1], const uint8_t *) + 64);
		request(h, ctx, m[i]);
	}
	ctx->seen = true;
	ctx->arrived += n;
	count_burst(h, ctx, n);
	hca_mbuf_free_burst(m, n);
}

/*
 * Send acknowledgements that were not requested: when the stage becomes idle, or has been busy for
 * long.
 */
static void
acknowledge_lazily(struct hca_pipe *h, struct ee_ctx *ctx)
{
	if (ctx->lazy.head == HCA_QP_NONE)
		return;
	if (ctx->seen && ++ctx->busy_polls < EE_LAZY_POLLS)
		return;
	ctx->busy_polls = 0;
	while (ctx->lazy.head != HCA_QP_NONE) {
		uint32_t qpi = hca_qp_list_pop(h, &ctx->lazy, EE_LAZY_LINK);
		struct hca_qp_ee *ee = &h->qp[qpi].ee;

		ee->flags &= ~EE_ON_LAZY;
		if (ee->unacked == 0)
			continue;
		ee->flags |= EE_ACK_OWED;
		ee_list_ready(h, ctx, ee, qpi);
	}
}

unsigned int
hca_ee_poll(struct hca_pipe *h, uint64_t now, unsigned int budget)
{
	struct ee_ctx *ctx = ee_ctx(h);
	unsigned int work;

	work = ee_messages(h, now, budget);
	work += hca_edge_drain(h, &h->edge[HCA_EDGE_DECAP_EE], budget, now);
	acknowledge_lazily(h, ctx);
	ctx->seen = false;
	work += ee_emit(h, ctx, now, budget);
	if (ctx->batch.n != 0)
		hca_cq_batch_end(&h->core, &ctx->batch, HCA_STAGE_EE);
	return work;
}

uint64_t
hca_ee_deadline(const struct hca_pipe *h, uint64_t now)
{
	const struct ee_ctx *ctx = h->stage_ctx[HCA_STAGE_EE];

	if (ctx->lazy.head != HCA_QP_NONE)
		return now;
	/* Pending responses wait for encap or for mbufs. */
	if (ctx->ready_count == 0 && ctx->notice_head == HCA_QP_NONE)
		return hca_pace_deadline(&ctx->pace);
	return HCA_DEADLINE_ROOM;
}
