/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The short ways of READs of one response packet and of ATOMICs: runs of requests that become jobs,
 * and runs of jobs that become responses.
 */

#include "responder/ee_run.h"

/* ---- requests ---- */

/* n requests were executed, the last one with the PSN before r->psn; as ee_new_job() for each. */
static inline void
end_answer_run(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_qp_ee *ee, const struct ee_run *r,
	       unsigned int n)
{
	ee_count_messages(ee, n);
	ee_count_received(ee, n, 0);
	ee_set_epsn(ee, r->psn);
	ee->new_jobs += (uint8_t)n;
	/* the response acknowledges everything before it */
	ee->flags &= ~(EE_ACK_OWED | EE_ACK_REPEAT);
	ee->unacked = 0;
	ee_list_ready(h, ctx, ee, r->qpi);
}

/* The next job of the ring, in a slot whose request has been answered, see ee_new_job(). */
static inline struct hca_resp_job *
next_new_job(struct hca_qp_ee *ee)
{
	uint32_t slot = ee->job_head++ & ee->job_mask;

	if (unlikely(ee->job_now == slot + 1))
		ee->job_now = 0;
	ee->job_pending |= 1u << slot;
	return &ee->jobs[slot];
}

/*
 * The entry that grants the access of a request; NULL: undecided. last: that of the one before in
 * the run.
 */
static inline const struct hca_mpt_entry *
answer_grant(struct hca_pipe *h, const struct hca_qp *qp, const struct hca_mpt_entry *last,
	     uint32_t access, uint32_t key, uint64_t va, uint32_t len)
{
	if (likely(hca_vtp_grants(last, key, va, len)))
		return last;
	return hca_vtp_check(&h->vtp, key, qp->cfg.pd, access, va, len);
}

/* Whether the QP takes these requests in this state. Both may change between two packets. */
static inline bool
takes_answered(const struct hca_qp *qp, uint32_t state, uint32_t access)
{
	return hca_qp_state(qp) == state && (hca_qp_live(&qp->cfg.access) & access) == access;
}

/* Where the value of an ATOMIC is; NULL: undecided. */
static inline void *
atomic_place(const struct hca_mpt_entry *e, uint64_t va)
{
	uint8_t *at = e->base != NULL ? e->base + (va - e->start) : NULL;

	return ((va | (uintptr_t)at) & 7) == 0 ? at : NULL;
}

/* Number of new requests that may wait for their responses. */
static inline unsigned int
job_room(const struct hca_qp *qp)
{
	uint32_t most = hca_qp_live(&qp->cfg.max_dest_rd_atomic);

	return most - RTE_MIN(most, qp->ee.new_jobs);
}

/* READs and ATOMICs have address and key at the beginning of their header. */
static __rte_always_inline unsigned int
answer_run(struct hca_pipe *h, struct ee_ctx *ctx, struct rte_mbuf *const *m, unsigned int n,
	   bool atomic)
{
	const struct hca_rxd *rxd = hca_rxd(m[0]);
	const struct hca_roce_opcode_info *op = rxd->info;
	struct hca_qp *qp = &h->qp[rxd->qpi];
	uint32_t state = hca_qp_state(qp), msn = qp->ee.msn, access = op->access;
	const struct hca_mpt_entry *e = NULL;
	struct ee_run r;
	unsigned int i;

	if (unlikely(!ee_in_order(qp, rxd)))
		return 0;
	r = ee_begin_run(qp, rxd);
	n = RTE_MIN(n, job_room(qp));
	for (i = 0; i < n && likely(takes_answered(qp, state, access)); i++) {
		const struct hca_reth *reth;
		uint64_t va;
		uint32_t rkey, len = 8;

		ee_prefetch_next(m + i, n - i);
		rxd = hca_rxd(m[i]);
		if (unlikely(rxd->info != op || rxd->qpi != r.qpi ||
			     rxd->generation != r.generation || rxd->psn != r.psn ||
			     rxd->payload_len != 0))
			break;
		reth = rte_pktmbuf_mtod_offset(m[i], const void *, rxd->ext_off);
		va = hca_be64_to_cpu(reth->va);
		rkey = hca_be32_to_cpu(reth->rkey);
		if (!atomic)
			len = hca_be32_to_cpu(reth->dma_len);
		if (unlikely(len - 1 >= r.mtu))
			break;
		e = answer_grant(h, qp, e, access, rkey, va, len);
		if (unlikely(e == NULL))
			break;
		if (atomic) {
			void *at = atomic_place(e, va);

			if (unlikely(at == NULL))
				break;
			va = ee_atomic_execute_at(at, op->kind, reth);
		}
		*next_new_job(&qp->ee) = (struct hca_resp_job){
			.va = va,
			.rkey = rkey,
			.pd = qp->cfg.pd,
			.left = len,
			.first = rxd->psn,
			.psn = rxd->psn,
			.msn = ++msn,
			.kind = atomic ? HCA_KIND_ATOMIC : HCA_KIND_READ,
		};
		r.psn = (r.psn + 1) & HCA_PSN_MASK;
	}
	if (likely(i != 0))
		end_answer_run(h, ctx, &qp->ee, &r, i);
	ctx->answered[atomic] += i;
	return i;
}

unsigned int
ee_answer_run(struct hca_pipe *h, struct ee_ctx *ctx, struct rte_mbuf *const *m, unsigned int n)
{
	if (hca_rxd(m[0])->opcode == HCA_BTH_RC_READ_REQ)
		return answer_run(h, ctx, m, n, false);
	return answer_run(h, ctx, m, n, true);
}

/* ---- responses ---- */

/* Whether all of the answer to a job is one packet, and none of it was sent. */
static inline bool
is_plain_job(const struct hca_resp_job *job, uint32_t mtu)
{
	if (unlikely(job->flags != 0))
		return false;
	return job->kind == HCA_KIND_READ ? job->left - 1 < mtu : job->kind == HCA_KIND_ATOMIC;
}

/* The only response to a plain job, as next_response() in ee_response.c fills it in. */
static inline void
answer_job(struct hca_txd *d, const struct hca_txd *common, struct hca_resp_job *job)
{
	uint32_t psn = job->psn;

	*d = *common;
	d->psn = psn;
	d->resp.msn = job->msn;
	if (job->kind == HCA_KIND_ATOMIC) {
		d->opcode |= HCA_BTH_RC_ATOMIC_ACK;
		d->resp.result = job->va;
		job->flags = EE_JOB_RELEASED | EE_JOB_REPEAT;
		return;
	}
	d->opcode |= HCA_BTH_RC_READ_RESP_ONLY;
	d->nsge = 1;
	d->len = (uint16_t)job->left;
	d->key = job->rkey;
	d->va = job->va;
	d->imm = job->pd;
	job->va += job->left;
	job->left = 0;
	job->psn = psn + 1;
	job->flags = EE_JOB_RELEASED | EE_JOB_REPEAT | EE_JOB_STARTED;
}

unsigned int
ee_answer_jobs(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_qp *qp, uint32_t qpi,
	       unsigned int n)
{
	struct hca_qp_ee *ee = &qp->ee;
	uint32_t pending = ee->job_pending, mtu = 1u << ee->mtu_log, slot;
	struct rte_mbuf **out = ctx->out + ctx->nout;
	struct hca_txd common;
	unsigned int i;

	if (!HCA_SHORT_WAYS)
		return 0;
	slot = ee_oldest_slot(ee);
	if (unlikely(ee->job_now != 0 && ee->job_now != slot + 1))
		return 0;
	ee_describe(&common, qp, qpi, 0, EE_ACK_SYNDROME, 0, 0);
	for (i = 0; i < n && pending & 1u << slot; i++) {
		struct hca_resp_job *job = &ee->jobs[slot];

		if (unlikely(!is_plain_job(job, mtu)))
			break;
		answer_job(hca_txd(out[i]), &common, job);
		pending &= ~(1u << slot);
		slot = (slot + 1) & ee->job_mask;
	}
	if (unlikely(i == 0))
		return 0;
	ee->job_now = 0;
	ee->job_pending = pending;
	ee->new_jobs -= (uint8_t)i;
	ctx->nout += i;
	HCA_COUNT_N(h, EE, resp_packets, i);
	return i;
}
