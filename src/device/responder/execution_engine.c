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

static inline void
store_piece(const struct ee_request *q, const struct ee_piece *p, const uint8_t *src)
{
	const struct hca_icrc_ops *ops = q->h->icrc;

	/* a part of a long message: the next one is stored behind it */
	if (!q->op->ends && p->mpt->base != NULL)
		ops->copy_ahead(p->mpt->base + (p->va - p->mpt->start), src, p->len);
	else
		hca_vtp_scatter(&q->h->vtp, p->mpt, p->va, src, p->len, ops);
}

static void
scatter(struct ee_request *q)
{
	const uint8_t *src = q->payload;

	if (q->len == 0)
		return;
	for (unsigned int i = 0; i < q->npieces; i++) {
		const struct ee_piece *p = &q->piece[i];

		if (likely(!p->mpt->foreign))
			store_piece(q, p, src);
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

static void
complete_data(struct ee_request *q)
{
	bool send = q->op->kind == HCA_PKT_SEND;

	ee_count_message(&q->qp->ee);
	if (send)
		ee_count_sends(q->h, 1);
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
	ee_count_sends(q->h, 1);
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

void
ee_process_request(struct hca_pipe *h, struct ee_ctx *ctx, struct rte_mbuf *m)
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

/* ---- polls ---- */

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
