/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * READ and ATOMIC responses. The PSN of a response packet determines its place: it must be at una,
 * after everything it acknowledges implicitly was released, and have the opcode and length of that
 * place. The payload is stored directly to the SGEs of the record, which are checked at every copy;
 * no field of a packet is used before it was checked.
 */

#include <errno.h>

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

/* ---- the short way: the one response packet of the request at the tail ---- */

/* Bytes of the answer to r that packet m has, in host order, and in *len; NULL: another one. */
static inline const uint8_t *
plain_answer(const struct hca_record *r, struct rte_mbuf *m, uint32_t *len, uint64_t *result)
{
	const struct hca_rxd *d = hca_rxd(m);
	const uint8_t *ext = rte_pktmbuf_mtod_offset(m, uint8_t *, d->ext_off);

	if (unlikely(HCA_AETH_KIND(*ext) != HCA_AETH_ACK))
		return NULL;
	*len = d->payload_len;
	if (likely(r->op == HCA_OP_RDMA_READ))
		return d->opcode == HCA_BTH_RC_READ_RESP_ONLY && *len != 0
			       ? rte_pktmbuf_mtod_offset(m, uint8_t *, d->payload_off)
			       : NULL;
	if (d->opcode != HCA_BTH_RC_ATOMIC_ACK || *len != 0 ||
	    !hca_record_is(r, 1u << HCA_KIND_ATOMIC))
		return NULL;
	*len = sizeof(*result);
	*result = hca_get_be64(ext + sizeof(struct hca_aeth));
	return (const uint8_t *)result;
}

/* Complete the request at the tail, whose answer is stored. */
static inline void
complete_plain(struct hca_req_rx_run *run, const struct hca_record *r)
{
	const struct hca_qp *qp = run->qp;
	struct hca_cqe *cqe = NULL;

	if (likely(r->flags & HCA_REC_SIGNALED)) {
		if (likely(hca_req_rx_open_cq(run)))
			cqe = hca_cq_cursor_take(&run->cq);
		if (unlikely(cqe == NULL)) {
			hca_req_rx_complete_tail(run);
			return;
		}
		hca_send_cqe_plain(cqe, qp->cfg.local_qpn,
				   (uint32_t)r->wqe_index << qp->req_rx.sq_stride_log, r);
	}
	run->rd_done++;
	run->completed++;
	run->upsn = (run->upsn + 1) & HCA_PSN_MASK;
	run->tail++;
}

/*
 * Packet m, of the PSN at una, if it is all of the answer to the request at the tail, which has one
 * SGE in contiguous memory. False: undecided, nothing has changed.
 */
static inline bool
take_plain(struct hca_req_rx_run *run, struct rte_mbuf *m)
{
	const struct hca_record *r = hca_req_rx_record(run, run->tail);
	const struct hca_sge *sge = hca_record_sges(r);
	const struct hca_mpt_entry *e;
	const uint8_t *src;
	uint64_t result;
	uint32_t len;

	if (unlikely((r->flags & (HCA_REC_RD | HCA_REC_SENT)) != (HCA_REC_RD | HCA_REC_SENT) ||
		     hca_record_syndrome(r) != 0 || r->nsge != 1 || r->npsn != 1 ||
		     r->psn != run->upsn))
		return false;
	src = plain_answer(r, m, &len, &result);
	if (unlikely(src == NULL || len != r->len || len != sge->len))
		return false;
	e = hca_vtp_check(&run->h->vtp, sge->lkey, run->qp->cfg.pd, HCA_ACCESS_LOCAL_WRITE, sge->va,
			  len);
	if (unlikely(e == NULL || e->base == NULL))
		return false;
	hca_copy_last_byte_last(run->h->icrc, e->base + (sge->va - e->start), src, len);
	complete_plain(run, r);
	return true;
}

void
hca_req_rx_read_response(struct hca_req_rx_run *run, struct rte_mbuf *m, uint32_t d)
{
	uint8_t opcode = HCA_BTH_OPERATION(hca_rxd(m)->opcode);
	bool begins = opcode == HCA_BTH_RC_READ_RESP_FIRST || opcode == HCA_BTH_RC_READ_RESP_ONLY;
	bool empty = unlikely(hca_rxd(m)->payload_len == 0);
	uint32_t kinds = 1u << HCA_KIND_READ | (uint32_t)empty << HCA_KIND_CONFIRM;

	if (HCA_SHORT_WAYS && likely(d == 0) && take_plain(run, m))
		return;
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
	if (HCA_SHORT_WAYS && likely(d == 0) && take_plain(run, m))
		return;
	if (bring_to_tail(run, d, true, 1u << HCA_KIND_ATOMIC))
		take_result(run, m);
}
