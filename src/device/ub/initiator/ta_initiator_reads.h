/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UB_INITIATOR_TA_INITIATOR_READS_H
#define UB_INITIATOR_TA_INITIATOR_READS_H

/*
 * The usual Read_response: one packet with all bytes of a request of one segment and one SGE, of
 * memory of this process. Segments in a row are closed together. Every other response is left to
 * the general way, untouched. Included by ta_initiator_recv.c only.
 */

#include "ub/initiator/ta_initiator.h"

/*
 * The ATAH as one big-endian word, and its value in the usual response: version 0, no Poison, done,
 * RC type 0. SV, TASSN and the RC id are left out.
 */
#define TAI_READ_MASK UINT64_C(0xffc40000ff300000)
#define TAI_READ ((uint64_t)HCA_UB_TA_READ_RESPONSE << 56 | (uint64_t)HCA_UB_RSP_DONE << 29)
#define TAI_READ_RC UINT64_C(0xfffff)

/* Segments whose responses have come in a row. */
struct tai_reads {
	struct hca_qp *qp;
	uint32_t qpi, tpi;
	uint32_t n; /* 0: none */
	uint16_t from;
	uint32_t settle; /* Jetty that is to be settled; HCA_TAI_NONE: none */
};

/* The requests of the Jetty that responses have ended complete. */
static inline void
tai_reads_settle(struct hca_pipe *h, struct tai_reads *run, uint32_t qpi)
{
	if (run->settle == qpi)
		return;
	if (run->settle != HCA_TAI_NONE)
		hca_tai_settle(h, &h->qp[run->settle], run->settle);
	run->settle = qpi;
}

static inline void
tai_reads_close(struct hca_pipe *h, struct tai_reads *run)
{
	uint32_t n = run->n;

	if (n == 0)
		return;
	run->n = 0;
	HCA_COUNT_N(h, TAI, ub_responses, n);
	hca_qp_stat_add(&run->qp->tai_wait.answers, n);
	hca_tai_done(h, run->qp, run->qpi, run->from, n);
	tai_reads_settle(h, run, run->qpi);
}

/* Where its payload is; NULL: it is another response, or a wrong one. */
static inline const uint8_t *
tai_read_payload(const struct hca_tp *tp, const struct hca_ub_rxd *r, const uint8_t *atah,
		 uint32_t *len)
{
	const struct hca_ub_layout *at =
		hca_ub_layout_of(HCA_UB_TA_READ_RESPONSE, atah[1], tp->cfg.flags);
	uint32_t n = (uint32_t)r->end - r->ta, headers = at->beetah + r->pad;

	*len = n - headers;
	if (unlikely(n <= headers || *len > 1u << tp->cfg.mtu_log))
		return NULL;
	if (at->taidetah != 0 && unlikely(hca_ub_taidetah_taid(atah + at->taidetah) !=
					  HCA_UB_TAID_OF(hca_ub_atah_tassn(atah))))
		return NULL;
	if (at->ofstetah != 0 && unlikely(hca_ub_ofstetah_offset(atah + at->ofstetah) != 0))
		return NULL;
	return atah + at->beetah;
}

/* The Jetty of the response becomes that of the run, and number its next one. */
static inline bool
tai_read_jetty(struct hca_pipe *h, struct tai_reads *run, uint32_t rc, uint32_t tpi, uint16_t tassn)
{
	uint32_t qpi = hca_qp_index(&h->core, rc);
	struct hca_qp *qp = &h->qp[qpi];

	if (unlikely(run->n != 0 && (run->qpi != qpi || run->tpi != tpi ||
				     (uint16_t)(run->from + run->n) != tassn)))
		tai_reads_close(h, run);
	if (unlikely(rc == 0 || __atomic_load_n(&qp->cfg.local_qpn, __ATOMIC_ACQUIRE) != rc ||
		     hca_qp_state(qp) < HCA_QPS_RTS || !hca_service_is_ub(qp->cfg.service)))
		return false;
	if (run->n == 0) {
		run->qp = qp;
		run->qpi = qpi;
		run->tpi = tpi;
		run->from = tassn;
	}
	return true;
}

/* The request of the segment, if these bytes are all that it asks for; else NULL. */
static inline const struct hca_ub_record *
tai_read_record(const struct hca_pipe *h, const struct tai_reads *run, uint16_t tassn, uint32_t len)
{
	const struct hca_jetty_segment *s = hca_tai_segment(run->qp, tassn);
	const struct hca_ub_record *r;

	if (unlikely(!hca_tai_in_use(run->qp, tassn) || s->state != HCA_TAI_SEGMENT_OPEN ||
		     s->number != run->tpi || s->packets != 0))
		return NULL;
	r = hca_tai_record(h, run->qp, s->cursor);
	if (unlikely(r->op != HCA_OP_RDMA_READ || r->flags & HCA_REC_FULL || r->nsge != 1 ||
		     r->len != len || r->len > hca_tai_ctx(h)->segment || r->first != tassn))
		return NULL;
	return r;
}

/* False: it is not the usual one. */
static inline bool
tai_read(struct hca_pipe *h, struct tai_reads *run, struct rte_mbuf *m)
{
	const struct hca_ub_rxd *r = hca_ub_rxd(m);
	const uint8_t *atah = hca_ub_rxd_tph(m) + r->ta, *payload;
	struct hca_tp *tp = hca_tai_tp(h, r->tp);
	const struct hca_ub_record *record;
	const struct hca_mpt_entry *e;
	uint32_t done, len;
	uint16_t tassn;
	uint64_t word;

	if (r->first != HCA_UB_TA_READ_RESPONSE || !(r->flags & HCA_UB_RXD_LAST) || r->ta == 0 ||
	    unlikely(r->tp == HCA_TP_UNRELIABLE || r->generation != tp->cfg.generation))
		return false;
	word = hca_get_be64(atah);
	payload = tai_read_payload(tp, r, atah, &len);
	if (unlikely((word & TAI_READ_MASK) != TAI_READ || payload == NULL))
		return false;
	done = __atomic_load_n(&tp->tx.lane[HCA_TP_REQUESTS].done, __ATOMIC_ACQUIRE);
	if (unlikely(done != tp->tai.taken)) {
		tai_reads_close(h, run);
		hca_tai_take_back(h, tp, r->tp, done);
	}
	tassn = (uint16_t)(word >> 32);
	if (unlikely(!tai_read_jetty(h, run, (uint32_t)(word & TAI_READ_RC), r->tp, tassn)))
		return false;
	record = tai_read_record(h, run, tassn, len);
	if (unlikely(record == NULL))
		return false;
	e = hca_vtp_check(&h->vtp, record->sge.lkey, run->qp->cfg.pd, HCA_ACCESS_LOCAL_WRITE,
			  record->sge.va, len);
	if (unlikely(e == NULL))
		return false;
	if (likely(e->base != NULL))
		hca_copy_last_byte_last(h->icrc, e->base + (record->sge.va - e->start), payload,
					len);
	else
		hca_vtp_scatter(&h->vtp, e, record->sge.va, payload, len, h->icrc);
	run->n++;
	return true;
}

#endif
