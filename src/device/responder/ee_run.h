/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RESPONDER_EE_RUN_H
#define RESPONDER_EE_RUN_H

/* Runs of packets in the short ways of EE, and what responses have in common. */

#include <rte_bitops.h>
#include <rte_prefetch.h>

#include "responder/ee.h"

/*
 * Whether a packet is the expected one in a normal state, so that all checks would pass. False:
 * undecided, the general checks decide, so the fast path itself refuses nothing.
 */
static inline bool
ee_in_order(const struct hca_qp *qp, const struct hca_rxd *rxd)
{
	const struct hca_qp_ee *ee = &qp->ee;
	uint32_t state = hca_qp_state(qp);

	return (state == HCA_QPS_RTS || (state == HCA_QPS_RTR && ee->flags & EE_ESTABLISHED)) &&
	       rxd->generation == qp->cfg.generation && qp->cfg.service == HCA_ST_RC &&
	       rxd->psn == ee->epsn && ee->msg_kind == EE_MSG_NONE &&
	       !(ee->flags & (EE_FATAL | EE_GAP | EE_RNR | EE_NAK_OWED | EE_FILLED | EE_TWICE));
}

/*
 * Packets in a row of one QP that are in order: the QP is checked once, and advanced once at the
 * end. The first packet that does not fit in ends the run and has other checks.
 */
struct ee_run {
	uint32_t qpi, generation, psn, mtu;
	uint32_t asked; /* packets that requested an acknowledgement */
	uint64_t bytes;
};

static inline struct ee_run
ee_begin_run(const struct hca_qp *qp, const struct hca_rxd *rxd)
{
	return (struct ee_run){.qpi = rxd->qpi,
			       .generation = rxd->generation,
			       .psn = rxd->psn,
			       .mtu = 1u << qp->ee.mtu_log};
}

static inline bool
ee_is_next(const struct ee_run *r, const struct hca_rxd *rxd, uint8_t opcode)
{
	return rxd->opcode == opcode && rxd->qpi == r->qpi && rxd->generation == r->generation &&
	       rxd->psn == r->psn && rxd->payload_len - 1 < r->mtu;
}

static inline void
ee_add_to_run(struct ee_run *r, const struct hca_rxd *rxd)
{
	r->asked += (rxd->flags & HCA_RXD_ACKREQ) != 0;
	r->bytes += rxd->payload_len;
	r->psn = (r->psn + 1) & HCA_PSN_MASK;
}

/* n packets were executed; as ee_accepted() for each of them. */
static inline void
ee_end_run(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_qp_ee *ee, const struct ee_run *r,
	   unsigned int n)
{
	if (unlikely(n == 0))
		return;
	ee_count_messages(ee, n);
	ee_count_received(ee, n, r->bytes);
	ee_set_epsn(ee, r->psn);
	ee->accepted_at = ctx->stamp;
	if (n != r->asked && ee->unacked + 1u < ctx->ack_every)
		ee_list_lazy(h, ctx, ee, r->qpi);
	ee->unacked += n - r->asked;
	if (r->asked != 0 || ee->unacked >= ctx->ack_every) {
		ee->flags |= EE_ACK_OWED;
		ee_list_ready(h, ctx, ee, r->qpi);
	}
}

/* The next frames of a burst, while one of them is executed. */
static inline void
ee_prefetch_next(struct rte_mbuf *const *m, unsigned int left)
{
	if (left > 2)
		rte_prefetch0(hca_rxd(m[2]));
	if (left > 1)
		rte_prefetch0(rte_pktmbuf_mtod(m[1], const uint8_t *) + 64);
}

/* ---- responses ---- */

#define EE_ACK_SYNDROME ((uint8_t)(HCA_AETH_ACK | HCA_AETH_CREDITS_NONE))

/* Slot of the oldest pending job. A job is pending. */
static inline uint32_t
ee_oldest_slot(const struct hca_qp_ee *ee)
{
	uint32_t oldest = ee->job_head & ee->job_mask, size = (uint32_t)ee->job_mask + 1;
	uint64_t pending = ee->job_pending;

	return (oldest + rte_bsf32((uint32_t)(pending >> oldest | pending << (size - oldest)))) &
	       ee->job_mask;
}

/* The same, unless another one has begun. */
static inline uint32_t
ee_next_slot(const struct hca_qp_ee *ee)
{
	return ee->job_now != 0 ? ee->job_now - 1u : ee_oldest_slot(ee);
}

static inline void
ee_describe(struct hca_txd *d, const struct hca_qp *qp, uint32_t qpi, uint8_t opcode,
	    uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	*d = (struct hca_txd){
		.qpi = qpi,
		.psn = psn & HCA_PSN_MASK,
		.opcode = opcode | qp->req_tx.transport,
		.syndrome = syndrome,
		.resp.msn = msn,
		.generation = qp->cfg.generation,
	};
}

/* ---- ee_answer.c ---- */

/*
 * Executes the READs of one response packet or ATOMICs at m[0 .. n - 1] that are a run; returns
 * their number.
 */
unsigned int ee_answer_run(struct hca_pipe *h, struct ee_ctx *ctx, struct rte_mbuf *const *m,
			   unsigned int n);
/*
 * Fills in the mbufs after ctx->out with the responses to the oldest pending jobs, at most n, while
 * these are new and have one packet each; returns their number. A job is pending.
 */
unsigned int ee_answer_jobs(struct hca_pipe *h, struct ee_ctx *ctx, struct hca_qp *qp, uint32_t qpi,
			    unsigned int n);

#endif
