/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The responder's checks, in InfiniBand's order. A check reads the request and the QP and may fill
 * in the request; in the QP it changes only the state of the expected PSN.
 */

#include <string.h>

#include "queues/rq.h"
#include "responder/ee.h"
#include "vtp/foreign.h"
#include "vtp/window.h"

typedef enum ee_verdict (*ee_check_fn)(struct ee_request *q);

static enum ee_verdict
drop(struct ee_request *q, enum hca_counter why)
{
	HCA_COUNT_AT(q->h, HCA_STAGE_EE, why);
	return EE_DROP;
}

/* Drop the packet before the QP accepts it. */
static enum ee_verdict
not_taken(struct ee_request *q, enum hca_counter why)
{
	q->ctx->not_taken++;
	return drop(q, why);
}

static void
established(struct ee_request *q)
{
	if (q->qp->ee.flags & EE_ESTABLISHED)
		return;
	q->qp->ee.flags |= EE_ESTABLISHED;
	hca_eq_raise_qp(&q->h->core, HCA_STAGE_EE, HCA_EVENT_COMM_EST, q->qpi);
}

static enum ee_verdict
check_state(struct ee_request *q)
{
	uint32_t state = hca_qp_state(q->qp);

	if (q->rxd->generation != q->qp->cfg.generation)
		return not_taken(q, HCA_CTR_rx_stale_generation);
	if (!ee_state_receives(state) || q->qp->ee.flags & EE_FATAL)
		return not_taken(q, HCA_CTR_rx_qp_state);
	if (q->op->is_response)
		return not_taken(q, HCA_CTR_rx_bad_service);
	ee_count_received(&q->qp->ee, 1, q->rxd->payload_len);
	q->counted = true;
	if (state == HCA_QPS_RTR)
		established(q);
	return EE_NEXT;
}

static enum ee_verdict
check_psn_rc(struct ee_request *q)
{
	struct hca_qp_ee *ee = &q->qp->ee;
	int32_t ahead = hca_psn_diff(q->rxd->psn, ee->epsn);

	if (unlikely(ee->flags & (EE_FILLED | EE_TWICE)))
		ee_order_next(q);
	/* a pending NAK stays: packets that came too early were dropped */
	if (likely(ahead == 0)) {
		if (unlikely(ee->flags & EE_GAP))
			ee_order_filled(q);
		if (ee->flags & (EE_GAP | EE_RNR))
			ee->flags &= ~(EE_GAP | EE_RNR);
		return EE_NEXT;
	}
	return ahead < 0 ? EE_DUPLICATE : EE_SEQ;
}

/*
 * UC: a message begins wherever its first packet is, so that ends with different PSNs
 * resynchronize, whichever was reset; a message that the network repeats is executed twice. A
 * packet that continues a message must have the expected PSN. Otherwise it is dropped and ends the
 * open message, so that parts of two messages are never merged; later parts of its own message find
 * no beginning.
 */
static enum ee_verdict
check_psn_uc(struct ee_request *q)
{
	struct hca_qp_ee *ee = &q->qp->ee;
	int32_t ahead = hca_psn_diff(q->rxd->psn, ee->epsn);

	if (likely(ahead == 0))
		return EE_NEXT;
	ee->msg_kind = EE_MSG_NONE;
	if (ahead < 0 && !q->op->starts) {
		hca_qp_stat_add32(&ee->duplicate_request, 1);
		return drop(q, HCA_CTR_duplicate_request);
	}
	HCA_COUNT(q->h, EE, out_of_sequence);
	hca_qp_stat_add32(&ee->out_of_sequence, 1);
	ee_set_epsn(ee, q->rxd->psn);
	return EE_NEXT;
}

static enum ee_verdict
check_psn(struct ee_request *q)
{
	switch (q->qp->cfg.service) {
	case HCA_ST_UC:
		return check_psn_uc(q);
	case HCA_ST_UD:
		return EE_NEXT; /* every datagram is a message of its own */
	default:
		return check_psn_rc(q);
	}
}

/* FIRST and ONLY begin a message if no message is open; MIDDLE and LAST continue their own. */
static enum ee_verdict
check_opcode(struct ee_request *q)
{
	static const uint8_t open_kind[] = {
		[HCA_PKT_SEND] = EE_MSG_SEND,
		[HCA_PKT_WRITE] = EE_MSG_WRITE,
		[HCA_PKT_CNP] = EE_MSG_NONE,
	};
	uint8_t needs = q->op->starts ? EE_MSG_NONE : open_kind[q->op->kind];

	if (!q->op->is_request)
		return EE_INVALID;
	/* UC tolerates a lost end: the next message begins */
	if (unlikely(q->qp->cfg.service == HCA_ST_UC && q->op->starts))
		q->qp->ee.msg_kind = EE_MSG_NONE;
	return q->qp->ee.msg_kind == needs ? EE_NEXT : EE_INVALID;
}

/* A SEND must end in the SRQ whose WQE it has taken, not in a later one of the same number. */
static bool
changes_srq(const struct ee_request *q)
{
	return q->op->kind == HCA_PKT_SEND && !q->op->starts &&
	       q->srq != ee_held_srq(q->h, &q->qp->ee);
}

/* XRC requests each name an SRQ of the domain; keys belong to the SRQ's PD. */
static enum ee_verdict
check_srq(struct ee_request *q)
{
	const struct hca_xrceth *x = (const void *)q->ext;

	q->srq = q->qp->ee.srq;
	if (likely(q->qp->cfg.service != HCA_ST_XRC_TGT))
		return EE_NEXT;
	q->srq = hca_srq_find(&q->h->core, hca_be32_to_cpu(x->srqn) & HCA_QPN_MASK);
	if (q->srq == NULL || q->srq->xrcd != (HCA_SRQC_XRCD_VALID | q->qp->addr.xrcd) ||
	    changes_srq(q)) {
		HCA_COUNT(q->h, EE, resp_xrc_srq_error);
		return EE_INVALID;
	}
	q->pd = q->srq->pd;
	q->ext += sizeof(*x);
	return EE_NEXT;
}

static uint32_t
feth(const struct ee_request *q)
{
	return hca_get_be32(q->ext);
}

static enum ee_verdict
check_enabled(struct ee_request *q)
{
	uint32_t needed = q->op->access;

	if (unlikely(q->op->kind == HCA_PKT_FLUSH))
		needed = HCA_QP_RIGHT_FLUSH(HCA_FETH_PLACEMENT(feth(q)));
	return (hca_qp_live(&q->qp->cfg.access) & needed) == needed ? EE_NEXT : EE_INVALID;
}

static void
queue_invalid(struct ee_request *q)
{
	if (q->srq != NULL) {
		hca_srq_catas(&q->h->core, q->srq, HCA_STAGE_EE);
	} else {
		HCA_COUNT(q->h, EE, rq_catas);
		hca_eq_raise_qp(&q->h->core, HCA_STAGE_EE, HCA_EVENT_WQ_CATAS, q->qpi);
	}
}

/* A SEND needs a receive at its beginning, a WRITE with immediate at its end. */
static enum ee_verdict
check_receive(struct ee_request *q)
{
	int available = q->srq != NULL ? hca_srq_available(q->srq, &q->srq_next)
				       : hca_rq_available(&q->qp->ee);

	if (available == 0) {
		HCA_COUNT_AT(q->h, HCA_STAGE_EE,
			     (q->rxd->flags & HCA_RXD_GSI) != 0 ? HCA_CTR_gsi_no_receive
								: HCA_CTR_out_of_buffer);
		if (q->srq != NULL)
			hca_srq_check_limit(&q->h->core, q->srq, HCA_STAGE_EE);
		return EE_NOT_READY;
	}
	if (available < 0) {
		queue_invalid(q);
		return EE_OPERATIONAL;
	}
	/* for an SRQ, even a WRITE must read the WQE, to find the next one */
	if ((q->op->kind == HCA_PKT_SEND || q->srq != NULL) && !ee_recv_fetch(q)) {
		q->recv_syndrome = HCA_SYND_LOCAL_QP_OP;
		return EE_OPERATIONAL;
	}
	return EE_NEXT;
}

/*
 * READs, ATOMICs, ATOMIC WRITEs and FLUSHes need a place for their answer. Linux rxe does not count
 * its FLUSHes: one that finds no place is dropped, and repeated.
 */
static enum ee_verdict
check_place(struct ee_request *q)
{
	uint32_t places = hca_qp_live(&q->qp->cfg.max_dest_rd_atomic);

	if (likely(q->qp->ee.new_jobs < places))
		return EE_NEXT;
	return q->op->kind == HCA_PKT_FLUSH && places != 0 ? drop(q, HCA_CTR_resp_flush_dropped)
							   : EE_INVALID;
}

static enum ee_verdict
check_resources(struct ee_request *q)
{
	const struct hca_qp_ee *ee = &q->qp->ee;

	switch (q->op->kind) {
	case HCA_PKT_SEND:
		if (q->op->starts)
			return check_receive(q);
		q->nsge = ee->recv_nsge;
		q->sge_at = ee->recv_sge_at;
		q->sge_off = ee->recv_sge_off;
		q->room = ee->msg_left;
		return EE_NEXT;
	case HCA_PKT_WRITE:
		return q->op->ext & HCA_EXT_IMMDT ? check_receive(q) : EE_NEXT;
	default:
		return check_place(q);
	}
}

/* Read the request's headers, or the state of its message. */
static void
read_headers(struct ee_request *q)
{
	const struct hca_qp_ee *ee = &q->qp->ee;

	if (q->op->ext & HCA_EXT_RETH) {
		const uint8_t *at = q->ext + (q->op->at.feth != 0 ? sizeof(struct hca_feth) : 0);
		const struct hca_reth *reth = (const void *)at;

		q->va = hca_be64_to_cpu(reth->va);
		q->rkey = hca_be32_to_cpu(reth->rkey);
		q->dma_len = hca_be32_to_cpu(reth->dma_len);
	} else if (q->op->ext & HCA_EXT_ATOMICETH) {
		const struct hca_atomiceth *a = (const void *)q->ext;

		q->va = hca_be64_to_cpu(a->va);
		q->rkey = hca_be32_to_cpu(a->rkey);
		q->dma_len = 8;
	} else if (q->op->kind == HCA_PKT_WRITE) {
		q->va = ee->write_va;
		q->rkey = ee->write_rkey;
		q->dma_len = ee->msg_left;
	}
}

static bool
packet_length_fits(const struct ee_request *q, uint32_t mtu)
{
	switch (q->op->pos) {
	case HCA_PKT_FIRST:
	case HCA_PKT_MIDDLE:
		return q->len == mtu;
	case HCA_PKT_LAST:
		return q->len >= 1 && q->len <= mtu;
	default:
		return q->len <= mtu;
	}
}

/* dma_len is the rest of the message: it ends in this packet, or exceeds it. */
static bool
write_length_fits(const struct ee_request *q)
{
	if (q->dma_len > HCA_MAX_MSG_SIZE)
		return false;
	return q->op->ends ? q->len == q->dma_len : q->len < q->dma_len;
}

static enum ee_verdict
check_length(struct ee_request *q)
{
	uint8_t mtu_log = q->qp->ee.mtu_log;
	uint32_t mtu = 1u << mtu_log;

	read_headers(q);
	q->npsn = 1;
	if (!packet_length_fits(q, mtu))
		return EE_INVALID;
	switch (q->op->kind) {
	case HCA_PKT_SEND:
		if (unlikely(q->qp->cfg.service == HCA_ST_UD))
			return q->len + HCA_UD_GRH_LEN <= q->room ? EE_NEXT : EE_INVALID;
		if (q->len > q->room) {
			q->recv_syndrome = HCA_SYND_LOCAL_LENGTH;
			return EE_INVALID;
		}
		return EE_NEXT;
	case HCA_PKT_WRITE:
		return write_length_fits(q) ? EE_NEXT : EE_INVALID;
	case HCA_PKT_READ_REQ:
		if (q->len != 0 || q->dma_len > HCA_MAX_MSG_SIZE)
			return EE_INVALID;
		if (q->dma_len > mtu)
			q->npsn = (q->dma_len + mtu - 1) >> mtu_log;
		return EE_NEXT;
	case HCA_PKT_FLUSH:
		return q->len == 0 && q->dma_len <= HCA_MAX_MSG_SIZE && hca_feth_ok(feth(q))
			       ? EE_NEXT
			       : EE_INVALID;
	case HCA_PKT_ATOMIC_WRITE:
		return q->len == 8 && q->dma_len == 8 && (q->va & 7) == 0 ? EE_NEXT : EE_INVALID;
	default:
		return q->len == 0 && (q->va & 7) == 0 ? EE_NEXT : EE_INVALID;
	}
}

static bool
may_access(struct ee_request *q, uint32_t right, uint32_t len)
{
	const struct hca_mpt_entry *e =
		hca_vtp_check(&q->h->vtp, q->rkey, q->pd, right, q->va, len);

	if (unlikely(e == NULL))
		e = hca_vtp_check_bound(&q->h->vtp, q->rkey, &q->qp->cfg, right, q->va, len);
	if (unlikely(e == NULL)) {
		e = hca_foreign_find(&q->h->vtp, q->rkey, q->pd, &q->qp->cfg, right, q->va, len);
		q->foreign = e != NULL;
	}
	q->piece[0] = (struct ee_piece){e, q->va, q->len};
	q->npieces = 1;
	return e != NULL;
}

/* The range, or all that the key names. */
static bool
may_flush(struct ee_request *q)
{
	uint32_t flags = HCA_MPT_FLAGS_OF(HCA_FETH_PLACEMENT(feth(q)) * HCA_ACCESS_FLUSH_GLOBAL);

	if (HCA_FETH_SELECTIVITY(feth(q)) == HCA_FETH_RANGE)
		return may_access(q, flags, q->dma_len);
	q->va = hca_vtp_start(&q->h->vtp, q->rkey);
	return may_access(q, flags, 0);
}

/* Address and page must keep an ATOMIC aligned, so that the CPU executes it atomically. */
static bool
atomic_is_aligned(const struct ee_request *q)
{
	uint32_t run;
	const uint8_t *p = hca_vtp_ptr(&q->h->vtp, q->piece[0].mpt, q->va, 8, &run);

	return run == 8 && ((uintptr_t)p & 7) == 0;
}

static void
put_grh(struct ee_request *q)
{
	uint8_t *grh = (uint8_t *)(uintptr_t)q->payload - HCA_UD_GRH_LEN;
	const struct hca_deth *deth = (const void *)q->ext;

	q->src_qpn = hca_be32_to_cpu(deth->sqpn) & HCA_QPN_MASK;
	if (q->op->ext & HCA_EXT_IMMDT)
		memcpy(&q->imm, q->ext + q->op->at.immdt - HCA_ROCE_BTH_LEN, sizeof(q->imm));
	ee_put_grh(grh, q->frame + q->rxd->l3_off);
	q->payload = grh;
	q->grh = true;
}

static void
prepend_grh(struct ee_request *q)
{
	if (likely(!q->grh))
		put_grh(q);
	q->len += HCA_UD_GRH_LEN;
}

/*
 * A peer may only invalidate type 2 windows bound to this QP: type 1 windows and regions belong to
 * their owner until he unbinds or deregisters them. IBTA 9.9.6.3, class J: the receive completes
 * with a memory management error, and the requester is not told.
 */
static enum ee_verdict
check_invalidate(struct ee_request *q)
{
	q->rkey = ee_invalidated_key(q);
	if (hca_window_owned(&q->h->core, &q->qp->cfg, q->rkey))
		return EE_NEXT;
	q->recv_syndrome = HCA_SYND_MW_BIND;
	return EE_MANAGEMENT;
}

/* Foreign memory can fail, so it is accessed before the QP changes. */
static enum ee_verdict
access_foreign(struct ee_request *q)
{
	switch (q->op->runs) {
	case HCA_KIND_READ:
		return EE_NEXT;
	case HCA_KIND_ATOMIC:
		return ee_foreign_atomic(q);
	case HCA_KIND_CONFIRM:
		return q->op->kind == HCA_PKT_FLUSH ? EE_NEXT : ee_foreign_atomic_write(q);
	default:
		return ee_foreign_scatter(q);
	}
}

/* The receive that a WRITE with immediate was to complete tells of it. */
static enum ee_verdict
refuse_write(struct ee_request *q)
{
	if (q->op->ext & HCA_EXT_IMMDT)
		q->recv_syndrome = HCA_SYND_LOCAL_ACCESS;
	return EE_ACCESS;
}

/*
 * Check the whole range at the beginning of a message, the packet's part later; a length of zero
 * needs no key.
 */
static enum ee_verdict
check_key(struct ee_request *q)
{
	uint32_t range = q->op->starts ? q->dma_len : q->len;

	switch (q->op->kind) {
	case HCA_PKT_SEND:
		if (unlikely(q->qp->cfg.service == HCA_ST_UD))
			prepend_grh(q);
		if (!ee_recv_place(q)) {
			q->recv_syndrome = HCA_SYND_LOCAL_PROT;
			return EE_OPERATIONAL;
		}
		return q->op->ext & HCA_EXT_IETH ? check_invalidate(q) : EE_NEXT;
	case HCA_PKT_WRITE:
		if (q->len == 0)
			return EE_NEXT;
		return may_access(q, HCA_ACCESS_REMOTE_WRITE, range) ? EE_NEXT : refuse_write(q);
	case HCA_PKT_READ_REQ:
		if (q->dma_len == 0)
			return EE_NEXT;
		return may_access(q, HCA_ACCESS_REMOTE_READ, range) ? EE_NEXT : EE_ACCESS;
	case HCA_PKT_FLUSH:
		return may_flush(q) ? EE_NEXT : EE_ACCESS;
	default:
		if (!may_access(q, q->op->access, range) || (!q->foreign && !atomic_is_aligned(q)))
			return EE_ACCESS;
		return EE_NEXT;
	}
}

static const ee_check_fn checks[] = {
	check_state,   check_psn,	check_opcode, check_srq,
	check_enabled, check_resources, check_length, check_key,
};
#define FIRST_OF_RECEIVE 5u /* check_resources */

static inline enum ee_verdict
run_checks(struct ee_request *q, unsigned int first)
{
	for (unsigned int i = first; i < RTE_DIM(checks); i++) {
		enum ee_verdict v = checks[i](q);

		if (unlikely(v != EE_NEXT))
			return v;
	}
	return EE_NEXT;
}

/* Whether a request with this verdict takes the receive that it was judged by. */
static bool
uses_receive(const struct ee_request *q, enum ee_verdict v)
{
	return v == EE_NEXT || v == EE_OPERATIONAL ||
	       (q->recv_syndrome != 0 && !ee_is_unreliable(q->qp));
}

/* Take the receive that the request was judged by; while other pipes are faster, judge again. */
static __rte_noinline enum ee_verdict
claim(struct ee_request *q, enum ee_verdict v)
{
	while (q->fetched && uses_receive(q, v) && !ee_recv_claim(q)) {
		q->fetched = false;
		q->foreign = false;
		q->recv_syndrome = 0;
		q->len = q->rxd->payload_len;
		v = run_checks(q, FIRST_OF_RECEIVE);
	}
	return v;
}

enum ee_verdict
ee_check(struct ee_request *q)
{
	enum ee_verdict v = run_checks(q, 0);

	if (unlikely(q->srq != NULL && q->srq->shared))
		v = claim(q, v);
	return unlikely(q->foreign) && v == EE_NEXT ? access_foreign(q) : v;
}

/*
 * A repeated READ has its own range, possibly the rest of the original one: its PSNs must have been
 * executed and it must be allowed now. Another repeated request only has to be well-formed.
 */
enum ee_verdict
ee_check_repeat(struct ee_request *q)
{
	enum ee_verdict v = check_srq(q);

	if (v == EE_NEXT)
		v = check_length(q);
	if (v != EE_NEXT || q->op->runs != HCA_KIND_READ)
		return v;
	if (hca_psn_diff(q->rxd->psn + q->npsn, q->qp->ee.epsn) > 0)
		return EE_INVALID;
	return check_enabled(q) == EE_NEXT ? check_key(q) : EE_ACCESS;
}
