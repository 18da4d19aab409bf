/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The turn of a QP that has only one new message of one packet to send: its descriptor is written
 * without the cursors of a visit. Equivalent to the visit of req_tx.c, which takes all other turns.
 */

#include <rte_atomic.h>

#include "abi_wqe.h"
#include "cc/cc.h"
#include "requester/req_rx.h"
#include "requester/req_tx.h"
#include "requester/rtt.h"

/*
 * By opcode: the first word of the record (op, flags, syndrome, nsge), and the BTH opcodes; the
 * last one is that of a message of one packet.
 */
struct single_op {
	uint32_t word;
	uint8_t bth[4];
};

#define NO_SINGLE UINT32_MAX
#define WORD_MESSAGE(code) (1u << 24 | (code))
#define WORD_READ(code) NO_SINGLE
#define WORD_ATOMIC(code) NO_SINGLE
#define WORD_CONFIRM(code) NO_SINGLE
#define WORD_LOCAL(code) NO_SINGLE

static const struct single_op single_ops[32] = {[0] = {.word = NO_SINGLE},
#define X(name, code, wr, wc, kind, flags, bth) [code] = {WORD_##kind(code), bth},
						HCA_OP_LIST(X)
#undef X
};

_Static_assert(offsetof(struct hca_record, flags) == 1 && offsetof(struct hca_record, nsge) == 3,
	       "first word");

/* Apart from HCA_REC_SIGNALED, which changes nothing here. */
static inline uint32_t
first_word(const struct hca_record *r)
{
	uint32_t w;

	memcpy(&w, r, sizeof(w));
	return rte_le_to_cpu_32(w) & ~((uint32_t)HCA_REC_SIGNALED << 8);
}

/* Whether the QP may send now, without limits of rates, windows and congestion control. */
static inline bool
single_may_send(struct hca_pipe *h, const struct hca_req_tx_ctx *ctx, const struct hca_qp *qp,
		uint32_t qpi, uint32_t upsn)
{
	const struct hca_qp_req_tx *q = &qp->req_tx;

	return hca_qp_state(qp) == HCA_QPS_RTS &&
	       !(__atomic_load_n(&qp->req_rx.flags, __ATOMIC_ACQUIRE) & HCA_REQ_RX_HOLD) &&
	       (q->pkt | hca_qp_pace(qp) | q->unreliable) == 0 && q->next_psn == q->max_psn &&
	       q->deficit >= 0 && ((q->next_psn - upsn) & HCA_PSN_MASK) < HCA_REQ_TX_PSN_WINDOW &&
	       !hca_cc_in_use(h) && ctx->now < hca_rtt_of(h, qpi)->next_at;
}

/* An mbuf for a descriptor; they are taken from the pool for all ready QPs together. */
static inline struct rte_mbuf *
single_mbuf(struct hca_pipe *h, struct hca_req_tx_ctx *ctx)
{
	if (ctx->n_spare == 0) {
		uint32_t want = RTE_MIN(ctx->count, ctx->room - ctx->n_out);

		if (unlikely(rte_mempool_get_bulk(h->tx_pool, (void **)ctx->spare, want) != 0))
			return NULL;
		ctx->n_spare = want;
	}
	return ctx->spare[--ctx->n_spare];
}

static inline void
single_describe(struct hca_txd *d, const struct hca_qp *qp, uint32_t qpi,
		const struct hca_record *r, uint32_t ref)
{
	const struct hca_qp_req_tx *q = &qp->req_tx;

	*d = (struct hca_txd){
		.qpi = qpi,
		.psn = r->psn,
		.opcode = single_ops[r->op & 31].bth[3] | q->transport,
		.flags = HCA_TXD_LAST_OF_RECORD | HCA_TXD_ACKREQ,
		.nsge = 1,
		.len = (uint16_t)r->len,
		.seq = r->desc_seq,
		.key = r->sge.lkey,
		.va = r->sge.va,
		.rec = ref,
		.reth = {.raddr = r->raddr, .rkey = r->rkey, .dma_len = r->len},
		.imm = r->imm,
		.generation = qp->cfg.generation,
	};
}

/* As store() and account_frames() of req_tx.c: a response must find max_psn. */
static inline void
single_sent(struct hca_pipe *h, struct hca_qp *qp, uint32_t qpi, const struct hca_record *r)
{
	struct hca_qp_req_tx *q = &qp->req_tx;
	uint32_t psn = (r->psn + 1) & HCA_PSN_MASK;

	q->desc_seq = r->desc_seq;
	q->deficit = 0;
	q->since_ackreq = 0;
	__atomic_store_n(&q->next_psn, psn, __ATOMIC_RELEASE);
	__atomic_store_n(&q->max_psn, psn, __ATOMIC_RELEASE);
	__atomic_store_n(&qp->sq_next, qp->sq_next + 1, __ATOMIC_RELEASE);
	if (hca_qp_ack_timeout(qp) == 0)
		return;
	if (!h->single_worker)
		rte_smp_mb();
	if (__atomic_load_n(&qp->req_rx.timer_armed, __ATOMIC_RELAXED) == 0)
		hca_msg_send(h, HCA_STAGE_REQ_TX, HCA_STAGE_REQ_RX, qpi, HCA_MSG_ARM);
}

bool
hca_req_tx_single(struct hca_pipe *h, struct hca_req_tx_ctx *ctx, uint32_t qpi)
{
	struct hca_qp *qp = &h->qp[qpi];
	struct hca_qp_req_tx *q = &qp->req_tx;
	/* una before the state, as in the visit */
	uint64_t una = __atomic_load_n(&qp->sq_una, __ATOMIC_ACQUIRE);
	uint32_t next = qp->sq_next, ref;
	struct hca_record *r;
	struct rte_mbuf *m;

	if (__atomic_load_n(&qp->parser.head, __ATOMIC_ACQUIRE) - next != 1 ||
	    (int32_t)(hca_una_tail(una) - next) > 0 ||
	    !single_may_send(h, ctx, qp, qpi, hca_una_psn(una)))
		return false;
	ref = hca_window_ref(q->window, q->window_mask, next);
	r = hca_record(h, ref);
	if (unlikely(first_word(r) != single_ops[r->op & 31].word ||
		     r->len - 1 >= 1u << q->mtu_log))
		return false;
	m = single_mbuf(h, ctx);
	if (unlikely(m == NULL))
		return false;
	r->psn = q->next_psn;
	r->npsn = 1;
	r->desc_seq = q->desc_seq + 1;
	r->flags |= HCA_REC_SENT;
	single_describe(hca_txd(m), qp, qpi, r, ref);
	ctx->out[ctx->n_out++] = m;
	single_sent(h, qp, qpi, r);
	return true;
}
