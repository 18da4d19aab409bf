/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * READ and ATOMIC responses. The PSN of a response packet determines its place: it must be at una,
 * after everything it acknowledges implicitly was released, and have the opcode and length of that
 * place. The payload is stored directly to the SGEs of the record, which are checked at every copy;
 * no field of a packet is used before it was checked.
 */

#include <errno.h>

#include <rte_prefetch.h>

#include "abi_ctx.h"
#include "abi_wqe.h"
#include "requester/req_rx.h"
#include "vtp/foreign.h"
#include "wire/icrc.h"

/* Stores to an SGE in foreign memory, if its key names a foreign region. */
static int
scatter_foreign(struct hca_req_rx_run *run, const struct hca_sge *sge, uint32_t off,
		const uint8_t *src, uint32_t n)
{
	struct hca_pipe *h = run->h;
	const struct hca_mpt_entry *e = hca_foreign_find(&h->vtp, sge->lkey, run->qp->cfg.pd, NULL,
							 HCA_ACCESS_LOCAL_WRITE, sge->va + off, n);

	return e != NULL ? hca_foreign_write(&h->core, e, sge->va + off, src, n) : -EFAULT;
}

/*
 * Store message bytes [off, off + len) to the record's SGEs. 0; -EFAULT: a key does not allow it;
 * -EAGAIN: not now.
 */
static int
scatter(struct hca_req_rx_run *run, const struct hca_record *r, uint32_t off, const uint8_t *src,
	uint32_t len)
{
	const struct hca_sge *sge = hca_record_sges(r);
	struct hca_pipe *h = run->h;

	for (uint32_t i = 0; i < r->nsge && len != 0; i++) {
		const struct hca_mpt_entry *e;
		uint32_t n;

		if (off >= sge[i].len) {
			off -= sge[i].len;
			continue;
		}
		n = RTE_MIN(sge[i].len - off, len);
		e = hca_vtp_check(&h->vtp, sge[i].lkey, run->qp->cfg.pd, HCA_ACCESS_LOCAL_WRITE,
				  sge[i].va + off, n);
		if (likely(e != NULL && e->base != NULL && off + n < sge[i].len)) {
			/* a part of a long READ: the next one is stored behind it */
			h->icrc->copy_ahead(e->base + (sge[i].va + off - e->start), src, n);
		} else if (likely(e != NULL)) {
			hca_vtp_scatter(&h->vtp, e, sge[i].va + off, src, n, h->icrc);
		} else {
			int rc = scatter_foreign(run, &sge[i], off, src, n);

			if (rc != 0)
				return rc;
		}
		src += n;
		len -= n;
		off = 0;
	}
	return len == 0 ? 0 : -EFAULT;
}

/* Storing failed: the request fails, or is repeated from this packet on. */
static void
placement_failed(struct hca_req_rx_run *run, int rc)
{
	if (rc == -EAGAIN) {
		hca_req_rx_drop(run, HCA_CTR_req_scatter_late);
		hca_req_rx_postpone(run);
		return;
	}
	hca_req_rx_drop(run, HCA_CTR_req_scatter_error);
	hca_req_rx_fail(run, HCA_SYND_LOCAL_PROT);
}

/*
 * Window cursor of the record with the PSN at distance d from una; rd: a READ or ATOMIC is before
 * it.
 */
static uint32_t
find_record(const struct hca_req_rx_run *run, uint32_t d, bool *rd)
{
	uint32_t psn = run->upsn, c = run->tail;

	*rd = false;
	for (;; c++) {
		const struct hca_record *r = hca_req_rx_record(run, c);
		uint32_t left = (r->psn + r->npsn - psn) & HCA_PSN_MASK;

		if (d < left)
			return c;
		if (r->flags & HCA_REC_RD || hca_record_syndrome(r) != 0)
			*rd = true;
		d -= left;
		psn = (psn + left) & HCA_PSN_MASK;
	}
}

static bool
opcode_fits(const struct hca_record *r, uint8_t opcode, uint32_t pos, bool last)
{
	bool begins = opcode == HCA_BTH_RC_READ_RESP_FIRST || opcode == HCA_BTH_RC_READ_RESP_ONLY;
	bool ends = opcode == HCA_BTH_RC_READ_RESP_LAST || opcode == HCA_BTH_RC_READ_RESP_ONLY;

	if (ends != last)
		return false;
	/*
	 * a resumed READ begins again where it was resumed; responses of the first request may
	 * still arrive
	 */
	return pos == 0 ? begins : !begins || pos == hca_record_resumed(r);
}

/* The AETH of a response must be an ACK; MIDDLE has none. */
static bool
aeth_fits(struct rte_mbuf *m)
{
	const struct hca_rxd *d = hca_rxd(m);

	if (HCA_BTH_OPERATION(d->opcode) == HCA_BTH_RC_READ_RESP_MIDDLE)
		return true;
	return HCA_AETH_KIND(*rte_pktmbuf_mtod_offset(m, uint8_t *, d->ext_off)) == HCA_AETH_ACK;
}

/* Handle the packet at una of the READ at the tail. */
static void
take_data(struct hca_req_rx_run *run, struct rte_mbuf *m)
{
	const struct hca_rxd *d = hca_rxd(m);
	const struct hca_record *r = hca_req_rx_record(run, run->tail);
	uint32_t mtu_log = run->qp->cfg.mtu_log, pos = (run->upsn - r->psn) & HCA_PSN_MASK;
	uint32_t off = pos << mtu_log;
	bool last = pos + 1 == r->npsn;
	uint32_t len = last ? r->len - off : 1u << mtu_log;
	int rc;

	if (!opcode_fits(r, HCA_BTH_OPERATION(d->opcode), pos, last) || d->payload_len != len ||
	    !aeth_fits(m)) {
		hca_req_rx_drop(run, HCA_CTR_req_bad_response);
		hca_req_rx_fail(run, HCA_SYND_BAD_RESP);
		return;
	}
	rc = scatter(run, r, off, rte_pktmbuf_mtod_offset(m, uint8_t *, d->payload_off), len);
	if (unlikely(rc != 0)) {
		placement_failed(run, rc);
		return;
	}
	if (last)
		hca_req_rx_complete_tail(run);
	else
		run->upsn = (run->upsn + 1) & HCA_PSN_MASK;
}

/* Store the result, in host order, where the request says. */
static void
take_result(struct hca_req_rx_run *run, struct rte_mbuf *m)
{
	const struct hca_rxd *d = hca_rxd(m);
	const struct hca_record *r = hca_req_rx_record(run, run->tail);
	uint64_t value;
	int rc;

	if (d->payload_len != 0 || !aeth_fits(m)) {
		hca_req_rx_drop(run, HCA_CTR_req_bad_response);
		hca_req_rx_fail(run, HCA_SYND_BAD_RESP);
		return;
	}
	value = hca_get_be64(rte_pktmbuf_mtod_offset(m, uint8_t *, d->ext_off) +
			     sizeof(struct hca_aeth));
	rc = scatter(run, r, 0, (const uint8_t *)&value, sizeof(value));
	if (unlikely(rc != 0)) {
		placement_failed(run, rc);
		return;
	}
	hca_req_rx_complete_tail(run);
}

/* The request at the tail has been executed. */
static void
take_confirmation(struct hca_req_rx_run *run, struct rte_mbuf *m)
{
	const struct hca_rxd *d = hca_rxd(m);

	if (HCA_BTH_OPERATION(d->opcode) != HCA_BTH_RC_READ_RESP_ONLY || !aeth_fits(m)) {
		hca_req_rx_drop(run, HCA_CTR_req_bad_response);
		hca_req_rx_fail(run, HCA_SYND_BAD_RESP);
		return;
	}
	hca_req_rx_complete_tail(run);
}

/*
 * Makes the record of this response the tail: it acknowledges the SENDs and WRITEs before it.
 * kinds: operations that the response may answer, 1 << HCA_KIND_*. False: ignore the packet,
 * because a packet before it is missing or it is no expected response.
 */
static bool
bring_to_tail(struct hca_req_rx_run *run, uint32_t d, bool begins, uint32_t kinds)
{
	bool rd;
	uint32_t at = find_record(run, d, &rd), psn = (run->upsn + d) & HCA_PSN_MASK;
	const struct hca_record *r = hca_req_rx_record(run, at);

	if (rd) {
		hca_req_rx_out_of_order(run, psn);
		return false;
	}
	if (!hca_record_is(r, kinds)) {
		hca_req_rx_drop(run, HCA_CTR_req_bad_response);
		hca_req_rx_fail(run, HCA_SYND_BAD_RESP);
		return false;
	}
	/* its own beginning is missing */
	if (d != 0 && (at == run->tail || !begins || r->psn != psn)) {
		hca_req_rx_out_of_order(run, psn);
		return false;
	}
	while (run->tail != at)
		hca_req_rx_complete_tail(run);
	return true;
}

void
hca_req_rx_read_response(struct hca_req_rx_run *run, struct rte_mbuf *m, uint32_t d)
{
	uint8_t opcode = HCA_BTH_OPERATION(hca_rxd(m)->opcode);
	bool begins = opcode == HCA_BTH_RC_READ_RESP_FIRST || opcode == HCA_BTH_RC_READ_RESP_ONLY;
	bool empty = unlikely(hca_rxd(m)->payload_len == 0);
	uint32_t kinds = 1u << HCA_KIND_READ | (uint32_t)empty << HCA_KIND_CONFIRM;

	if (!bring_to_tail(run, d, begins, kinds))
		return;
	if (empty && hca_record_is(hca_req_rx_record(run, run->tail), 1u << HCA_KIND_CONFIRM))
		take_confirmation(run, m);
	else
		take_data(run, m);
}

void
hca_req_rx_atomic_response(struct hca_req_rx_run *run, struct rte_mbuf *m, uint32_t d)
{
	if (bring_to_tail(run, d, true, 1u << HCA_KIND_ATOMIC))
		take_result(run, m);
}

/* ---- the short way: a run of answers of one packet each, to the requests at the tail ---- */

/* The requests from the tail on that are complete, as in struct hca_req_rx_run. */
struct answers {
	const struct hca_qp *qp;
	const struct hca_mpt_entry *e; /* of the request before; NULL: none */
	struct hca_cq_cursor cq;
	uint32_t qpi, state, generation, qpn, tail, upsn;
	bool has_cq, no_slot; /* cq is open; it has no slot for the last one */
};

/* First word of a record as loaded from memory: op, flags, syndrome, nsge. */
static inline uint32_t
word_of_record(const struct hca_record *r)
{
	return rte_le_to_cpu_32(
		__atomic_load_n((const uint32_t *)(const void *)r, __ATOMIC_RELAXED));
}

_Static_assert(offsetof(struct hca_record, op) == 0 && offsetof(struct hca_record, flags) == 1 &&
		       offsetof(struct hca_record, syndrome) == 2 &&
		       offsetof(struct hca_record, nsge) == 3,
	       "the first word");

/*
 * Whether a request that an opcode answers was sent and has one SGE, no error and one PSN, which is
 * the next one.
 */
static __rte_always_inline bool
has_plain_answer(const struct hca_record *r, uint8_t opcode, uint32_t psn)
{
	const uint32_t any = (HCA_REC_SIGNALED | HCA_REC_SOLICITED | HCA_REC_FENCE) << 8;
	const uint32_t sent = 1u << 24 | (HCA_REC_RD | HCA_REC_SENT) << 8;
	uint32_t w = word_of_record(r) & ~any;
	bool fits = opcode == HCA_BTH_RC_READ_RESP_ONLY
			    ? w == (sent | HCA_OP_RDMA_READ)
			    : (w & ~0xffu) == (sent | HCA_REC_FULL << 8) &&
				      hca_record_is(r, 1u << HCA_KIND_ATOMIC);

	return likely(fits && r->psn == psn && r->npsn == 1);
}

/* The SGE of a request with a plain answer. */
static __rte_always_inline const struct hca_sge *
plain_sge(const struct hca_record *r, uint8_t opcode)
{
	return opcode == HCA_BTH_RC_READ_RESP_ONLY ? &r->sge
						   : ((const struct hca_record_full *)r)->body.sge;
}

/* Bytes that a packet of an opcode stores, in host order, len of them; NULL: other ones. */
static __rte_always_inline const uint8_t *
plain_answer(struct rte_mbuf *m, uint8_t opcode, uint32_t len, uint64_t *result)
{
	const struct hca_rxd *d = hca_rxd(m);
	const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *), *aeth = data + d->ext_off;

	if (unlikely(HCA_AETH_KIND(*aeth) != HCA_AETH_ACK))
		return NULL;
	if (opcode == HCA_BTH_RC_READ_RESP_ONLY)
		return likely(len == d->payload_len) ? data + d->payload_off : NULL;
	if (unlikely(d->payload_len != 0 || len != sizeof(*result)))
		return NULL;
	*result = hca_get_be64(aeth + sizeof(struct hca_aeth));
	return (const uint8_t *)result;
}

/* Store the answer to the next request; false: undecided, nothing has changed. */
static __rte_always_inline bool
store_answer(struct hca_pipe *h, struct answers *a, struct rte_mbuf *m, uint8_t opcode,
	     const struct hca_record *r)
{
	const struct hca_sge *sge = plain_sge(r, opcode);
	uint64_t result, va = sge->va;
	uint32_t len = r->len;
	const uint8_t *src;

	src = plain_answer(m, opcode, len, &result);
	if (unlikely(src == NULL || len != sge->len || len == 0))
		return false;
	if (unlikely(!hca_vtp_grants(a->e, sge->lkey, va, len))) {
		a->e = hca_vtp_check(&h->vtp, sge->lkey, a->qp->cfg.pd, HCA_ACCESS_LOCAL_WRITE, va,
				     len);
		if (unlikely(a->e == NULL || a->e->base == NULL))
			return false;
	}
	hca_copy_last_byte_last(h->icrc, a->e->base + (va - a->e->start), src, len);
	return true;
}

/* Complete the next request, whose answer is stored; false: it has no slot in the CQ. */
static __rte_always_inline bool
complete_answered(struct answers *a, const struct hca_record *r, uint32_t stride_log)
{
	if (likely(r->flags & HCA_REC_SIGNALED)) {
		struct hca_cqe *cqe = likely(a->has_cq) ? hca_cq_cursor_take(&a->cq) : NULL;

		if (unlikely(cqe == NULL))
			return false;
		hca_send_cqe_plain(cqe, a->qpn, (uint32_t)r->wqe_index << stride_log, r);
	}
	a->upsn = (a->upsn + 1) & HCA_PSN_MASK;
	a->tail++;
	return true;
}

static inline void
end_answers(struct hca_req_rx_run *run, const struct answers *a)
{
	uint32_t n = a->tail - run->tail;

	run->rd_done += n;
	run->completed += n;
	run->tail = a->tail;
	run->upsn = a->upsn;
	run->cq.prod = a->cq.prod;
	if (unlikely(a->no_slot))
		hca_req_rx_complete_tail(run);
}

/* Whether the packet is of the run and has the next PSN. */
static __rte_always_inline bool
is_next_answer(const struct answers *a, const struct hca_rxd *d, uint8_t opcode)
{
	return likely(d->opcode == opcode && d->psn == a->upsn && d->qpi == a->qpi &&
		      d->generation == a->generation && hca_qp_state(a->qp) == a->state);
}

static __rte_always_inline unsigned int
take_answers(struct hca_req_rx_run *run, struct rte_mbuf *const *m, unsigned int n, uint8_t opcode)
{
	const struct hca_qp *qp = run->qp;
	const uint32_t *window = qp->req_rx.window, mask = qp->req_rx.window_mask;
	uint32_t stride_log = qp->req_rx.sq_stride_log;
	bool has_cq = hca_req_rx_open_cq(run);
	struct answers a = {.qp = qp,
			    .cq = run->cq,
			    .qpi = run->qpi,
			    .state = hca_qp_state(qp),
			    .generation = qp->cfg.generation,
			    .qpn = qp->cfg.local_qpn,
			    .tail = run->tail,
			    .upsn = run->upsn,
			    .has_cq = has_cq};
	struct hca_pipe *h = run->h;
	uint64_t bytes = 0;
	unsigned int i;

	n = RTE_MIN(n, hca_req_rx_outstanding(run));
	for (i = 0; i < n && likely(!a.no_slot); i++) {
		const struct hca_record *r = hca_record(h, hca_window_ref(window, mask, a.tail));

		if (likely(i + 1 < n))
			rte_prefetch0(hca_rxd(m[i + 1]));
		if (unlikely(!is_next_answer(&a, hca_rxd(m[i]), opcode) ||
			     !has_plain_answer(r, opcode, a.upsn) ||
			     !store_answer(h, &a, m[i], opcode, r)))
			break;
		bytes += r->len;
		a.no_slot = !complete_answered(&a, r, stride_log);
	}
	run->packets += i;
	if (opcode == HCA_BTH_RC_READ_RESP_ONLY)
		run->read_bytes += bytes;
	end_answers(run, &a);
	return i;
}

unsigned int
hca_req_rx_answers(struct hca_req_rx_run *run, struct rte_mbuf *const *m, unsigned int n)
{
	/* each packet after a gap is looked at by req_rx_order.c */
	if (!HCA_SHORT_WAYS || unlikely(run->qp->req_rx.flags & HCA_REQ_RX_GAP))
		return 0;
	if (hca_rxd(m[0])->opcode == HCA_BTH_RC_READ_RESP_ONLY)
		return take_answers(run, m, n, HCA_BTH_RC_READ_RESP_ONLY);
	return take_answers(run, m, n, HCA_BTH_RC_ATOMIC_ACK);
}
