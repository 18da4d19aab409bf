/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Segmentation: from the record at `next` to packet descriptors, as long as the QP may send. A
 * packet is described in the private area of the mbuf in which it will be built. Gather lists of
 * several SGEs, inline data and atomic operands are read from the record, which remains until encap
 * has finished its last descriptor.
 */

#include <rte_prefetch.h>

#include "abi_cqe.h"
#include "abi_ctx.h"
#include "abi_wqe.h"
#include "requester/req_tx.h"

/* Per WQE opcode: RC's BTH opcodes by position [middle, first, last, only]; req_tx.transport. */
struct req_tx_op {
	uint8_t bth[4];
	uint8_t kind;	   /* enum hca_op_kind */
	uint8_t txd_flags; /* on the last packet, if the record requests it */
};

static const struct req_tx_op req_tx_ops[32] = {
#define X(name, code, wr, wc, kind, flags, bth) \
	[code] = {bth, HCA_KIND_##kind, (flags)&HCA_WQE_OP_RECV ? HCA_TXD_SOLICITED : 0},
	HCA_OP_LIST(X)
#undef X
};

static inline const struct req_tx_op *
op_of(const struct hca_record *r)
{
	return &req_tx_ops[r->op & 31];
}

static bool
op_valid(const struct hca_record *r)
{
	const struct req_tx_op *op = op_of(r);
	bool full = r->flags & HCA_REC_FULL;

	if (r->op >= RTE_DIM(req_tx_ops) || op->kind == HCA_KIND_NONE)
		return false;
	/* fields of the long form require it; RD determines which responses count */
	if ((op->kind == HCA_KIND_ATOMIC || r->flags & HCA_REC_INLINE || r->nsge > 1) && !full)
		return false;
	if (op->kind == HCA_KIND_LOCAL)
		return r->flags & HCA_REC_LOCAL && (full || r->op != HCA_OP_BIND_MW);
	return !!(r->flags & HCA_REC_RD) == (op->kind != HCA_KIND_MESSAGE);
}

/* Number of PSNs of a message: one per packet, for a READ one per response packet. */
static inline uint32_t
psn_count(const struct hca_record *r, uint32_t mtu_log)
{
	if (r->len <= 1u << mtu_log || op_of(r)->kind > HCA_KIND_READ)
		return 1;
	return ((r->len - 1) >> mtu_log) + 1;
}

/* Whether a message that has not begun may begin. SENT ones have passed these checks. */
static enum hca_req_tx_stop
may_begin(const struct hca_req_tx_visit *v, struct hca_record *r, uint32_t state)
{
	uint32_t allowed = hca_qp_live(&v->qp->cfg.max_rd_atomic), done;

	if (unlikely(state == HCA_QPS_SQD))
		return HCA_REQ_TX_STOP_PARK;
	if (unlikely(r->syndrome == 0 && !op_valid(r)))
		r->syndrome = HCA_SYND_LOCAL_QP_OP;
	if (unlikely(r->flags & HCA_REC_RD && (v->unreliable || allowed == 0)))
		r->syndrome = HCA_SYND_LOCAL_QP_OP;
	if (unlikely(r->syndrome != 0))
		return HCA_REQ_TX_STOP_BAD;
	if (likely(!(r->flags & (HCA_REC_RD | HCA_REC_FENCE))))
		return HCA_REQ_TX_GO;
	done = __atomic_load_n(&v->qp->req_rx.rd_done, __ATOMIC_ACQUIRE);
	if (r->flags & HCA_REC_FENCE && r->rd_ord != done)
		return HCA_REQ_TX_STOP_PARK;
	if (r->flags & HCA_REC_RD && r->rd_ord - done >= allowed)
		return HCA_REQ_TX_STOP_PARK;
	return HCA_REQ_TX_GO;
}

/* Whether raw mbufs (encap resets them) are available. want: how many the QP could use. */
static inline bool
have_mbufs(struct hca_req_tx_visit *v, uint32_t want)
{
	struct hca_req_tx_ctx *ctx = v->ctx;

	if (unlikely(ctx->n_out == ctx->room))
		return false;
	if (ctx->n_spare == 0) {
		want = RTE_MIN(RTE_MAX(want, 1u), ctx->room - ctx->n_out);
		while (rte_mempool_get_bulk(v->h->tx_pool, (void **)ctx->spare, want) != 0)
			if ((want /= 2) == 0) {
				HCA_COUNT(v->h, REQ_TX, req_no_mbuf);
				return false;
			}
		ctx->n_spare = want;
	}
	return true;
}

/* An mbuf for the next descriptor, or NULL. */
static inline struct rte_mbuf *
take_mbuf(struct hca_req_tx_visit *v, uint32_t want)
{
	return have_mbufs(v, want) ? v->ctx->spare[--v->ctx->n_spare] : NULL;
}

static inline struct hca_txd *
put_txd(struct hca_req_tx_visit *v, struct rte_mbuf *m, struct hca_record *r, uint8_t opcode)
{
	struct hca_txd *d = hca_txd(m);

	v->ctx->out[v->ctx->n_out++] = m;
	d->qpi = v->qpi;
	d->psn = v->next_psn;
	d->opcode = opcode | v->transport;
	d->flags = 0;
	d->nsge = 0;
	d->syndrome = 0;
	d->len = 0;
	d->reserved = 0;
	d->seq = ++v->desc_seq;
	d->key = 0;
	d->va = 0;
	d->rec = hca_req_tx_ref(v, v->next);
	d->off = 0;
	d->reth.raddr = r->raddr;
	d->reth.rkey = r->rkey;
	d->reth.dma_len = r->len;
	d->imm = r->imm;
	d->generation = v->generation;
	r->desc_seq = v->desc_seq;
	return d;
}

static inline void
put_payload(struct hca_txd *d, const struct hca_record *r, uint32_t off, uint32_t len)
{
	d->len = (uint16_t)len;
	d->off = off;
	if (len == 0)
		return;
	if (unlikely(r->flags & HCA_REC_INLINE)) {
		d->flags |= HCA_TXD_INLINE;
		return;
	}
	d->nsge = r->nsge;
	if (likely(r->nsge == 1)) {
		const struct hca_sge *s = hca_record_sges(r);

		d->key = s->lkey;
		d->va = s->va + off;
	}
}

static void
count_again(struct hca_req_tx_visit *v, struct hca_txd *d)
{
#define X(n) HCA_CTR_##n,
	static const uint8_t counter[] = { HCA_AGAIN_LIST(X) };
#undef X

	d->flags |= HCA_TXD_REPEAT;
	v->ctx->retransmitted++;
	HCA_COUNT_AT(v->h, HCA_STAGE_REQ_TX, counter[v->qp->req_tx.again]);
	hca_qp_stat_add(&v->qp->stats.retransmissions, 1);
}

/* Advance by npsn PSNs; true: the packet was sent before. */
static inline bool
advance_psn(struct hca_req_tx_visit *v, struct hca_txd *d, uint32_t npsn)
{
	bool again = v->next_psn != v->max_psn;

	v->next_psn = (v->next_psn + npsn) & HCA_PSN_MASK;
	if (unlikely(again))
		count_again(v, d);
	else
		v->max_psn = v->next_psn;
	return again;
}

static inline void
ask_for_ack(struct hca_req_tx_visit *v, struct hca_txd *d)
{
	/* the whole head, as encap reads it */
	hca_txd_set_head(d, hca_txd_get_head(d) | hca_txd_head(0, HCA_TXD_ACKREQ, 0, 0));
	v->since_ackreq = 0;
}

static inline void
next_record(struct hca_req_tx_visit *v)
{
	v->next++;
	v->pkt = 0;
	v->wqes++;
}

/* One packet of a SEND or WRITE. */
static inline void
emit_payload(struct hca_req_tx_visit *v, struct rte_mbuf *m, struct hca_record *r, uint32_t mtu_log)
{
	const struct req_tx_op *op = op_of(r);
	uint32_t off = v->pkt << mtu_log, left = r->len - off;
	uint32_t len = RTE_MIN(left, 1u << mtu_log);
	bool last = v->pkt + 1 == r->npsn;
	struct hca_txd *d = put_txd(v, m, r, op->bth[last * 2 + (v->pkt == 0)]);

	put_payload(d, r, off, len);
	v->deficit -= (int32_t)len + HCA_REQ_TX_FRAME_OVERHEAD + HCA_REQ_TX_OVERHEAD;
	if (unlikely(r->npsn > 1))
		d->flags |= HCA_TXD_PART;
	if (last) {
		d->flags |= HCA_TXD_LAST_OF_RECORD;
		if (unlikely(r->flags & HCA_REC_SOLICITED))
			d->flags |= op->txd_flags;
	}
	v->since_ackreq++;
	v->last = d;
	if (unlikely(advance_psn(v, d, 1) && v->next_psn == v->max_psn))
		ask_for_ack(v, d);
	if (v->since_ackreq >= v->ack_every || (last && (v->next & v->half) == v->half))
		ask_for_ack(v, d);
	if (last)
		next_record(v);
	else
		v->pkt++;
}

/* The 8 bytes of an ATOMIC WRITE; a FLUSH has none. Not inline: READs save no registers for it. */
static __rte_noinline void
put_confirmed(struct hca_req_tx_visit *v, struct hca_txd *d, const struct hca_record *r)
{
	if (r->nsge == 0 && !(r->flags & HCA_REC_INLINE))
		return;
	put_payload(d, r, 0, r->len);
	v->deficit -= (int32_t)r->len;
}

/*
 * Send a READ from packet v->pkt on, or another request that has a response, which is its
 * acknowledgement.
 */
static void
emit_request(struct hca_req_tx_visit *v, struct rte_mbuf *m, struct hca_record *r, uint32_t mtu_log)
{
	const struct req_tx_op *op = op_of(r);
	struct hca_txd *d = put_txd(v, m, r, op->bth[3]);
	uint32_t off = v->pkt << mtu_log;

	d->flags |= HCA_TXD_LAST_OF_RECORD;
	if (op->kind == HCA_KIND_READ) {
		__atomic_store_n(&r->imm, v->pkt, __ATOMIC_RELAXED);
		d->reth.raddr += off;
		d->reth.dma_len -= off;
	} else if (op->kind == HCA_KIND_CONFIRM) {
		put_confirmed(v, d, r);
	}
	v->deficit -= HCA_REQ_TX_FRAME_OVERHEAD + HCA_REQ_TX_OVERHEAD;
	v->since_ackreq = 0;
	v->last = NULL;
	advance_psn(v, d, r->npsn - v->pkt);
	next_record(v);
}

/* Whether the PSNs of this packet would exceed the limit of unacknowledged ones. */
static inline bool
window_full(const struct hca_req_tx_visit *v, const struct hca_record *r)
{
	uint32_t need = r->flags & HCA_REC_RD ? r->npsn - v->pkt : 1;

	return ((v->next_psn - v->upsn) & HCA_PSN_MASK) + need > HCA_REQ_TX_PSN_WINDOW;
}

/* Bytes of the largest frame of this QP. */
static inline uint32_t
frame_max(const struct hca_req_tx_visit *v)
{
	return (1u << v->qp->req_tx.mtu_log) + HCA_REQ_TX_FRAME_OVERHEAD;
}

/*
 * Does congestion control allow the next packet of r? It is counted as sent, a READ with its
 * responses. A READ may ask for more than the rest while all PSNs are acknowledged: no answer
 * would end its wait.
 */
static bool
take_leave(struct hca_req_tx_visit *v, const struct hca_record *r)
{
	uint32_t mtu_log = v->qp->req_tx.mtu_log, need = HCA_REQ_TX_FRAME_OVERHEAD;
	uint64_t bytes;

	if (!(r->flags & HCA_REC_RD))
		need += RTE_MIN(r->len - (v->pkt << mtu_log), 1u << mtu_log);
	if (need > v->leave)
		return false;
	bytes = r->flags & HCA_REC_RD ? (uint64_t)(r->npsn - v->pkt) * frame_max(v) : need;
	if (bytes > v->leave && v->next_psn != v->upsn)
		return false;
	v->leave -= (uint32_t)RTE_MIN(bytes, v->leave);
	return true;
}

/*
 * The last packet before a pause requests an acknowledgement, because no later one will. The end of
 * a turn needs none, unless the next record may have to wait.
 */
static void
end_visit(struct hca_req_tx_visit *v, enum hca_req_tx_stop why)
{
	const struct hca_record *r;

	if (v->last == NULL || v->unreliable)
		return;
	if (unlikely(v->leave < frame_max(v)))
		why = HCA_REQ_TX_STOP_PARK;
	if (v->next != v->head && v->pkt == 0 &&
	    (why == HCA_REQ_TX_STOP_TURN || why == HCA_REQ_TX_STOP_CREDIT)) {
		r = hca_record(v->h, hca_req_tx_ref(v, v->next));
		if (r->syndrome == 0 && !(r->flags & (HCA_REC_FENCE | HCA_REC_RD | HCA_REC_LOCAL)))
			return;
	} else if (v->pkt != 0 && why != HCA_REQ_TX_STOP_PARK) {
		return;
	}
	ask_for_ack(v, v->last);
}

/*
 * First word of a record: op, flags, syndrome, nsge. Plain ones are new requests of one packet with
 * one SGE, signalled or not: SENDs and WRITEs, READs of one response packet, ATOMICs, datagrams. Of
 * the general checks the length, the limit of READs and the rate of a datagram remain.
 */
#define PLAIN(op, flags) HCA_RECORD_FIRST(op, flags, 1)
#define PLAIN_FREE ((uint32_t)HCA_REC_SIGNALED << 8)

enum {
	PLAIN_MESSAGE = 0,
	PLAIN_READ = HCA_REC_RD,
	PLAIN_ATOMIC = HCA_REC_RD | HCA_REC_FULL,
	PLAIN_CONFIRM = HCA_REC_LOCAL | HCA_REC_RD, /* no record has both */
	PLAIN_LOCAL = PLAIN_CONFIRM,
};

/* By opcode the word of plain records, without PLAIN_FREE; a datagram also has HCA_REC_FULL. */
static const uint32_t plain_words[32] = {
#define X(name, code, wr, wc, kind, flags, bth) [code] = PLAIN(code, PLAIN_##kind),
	[0] = PLAIN(0, PLAIN_LOCAL),
	HCA_OP_LIST(X)
#undef X
};

/* Whether the word of a record, without PLAIN_FREE, is that of a plain SEND or WRITE. */
static inline bool
is_message_word(uint32_t w)
{
	return w == plain_words[w & 31] && !(w & HCA_RECORD_FIRST(0, HCA_REC_RD, 0));
}

/* Whether a plain READ or ATOMIC may begin, or a datagram has the rate of the QP. */
static inline bool
other_may_begin(const struct hca_req_tx_visit *v, const struct hca_record *r, uint32_t rd_done)
{
	if (r->flags & HCA_REC_RD)
		return !v->unreliable &&
		       r->rd_ord - rd_done < hca_qp_live(&v->qp->cfg.max_rd_atomic);
	return v->transport == HCA_TRANSPORT_UD << 5 &&
	       ((const struct hca_record_full *)r)->av.pace == v->qp->req_tx.pace;
}

/* Number of plain records from r on that the limit of READs lets begin; r is one that may. */
static inline uint32_t
others_limit(const struct hca_req_tx_visit *v, const struct hca_record *r, uint32_t rd_done)
{
	if (!(r->flags & HCA_REC_RD))
		return UINT32_MAX;
	return hca_qp_live(&v->qp->cfg.max_rd_atomic) - (r->rd_ord - rd_done);
}

/* Whether r is a plain record other than a SEND or WRITE, and may begin. */
static __rte_always_inline bool
is_plain_other(const struct hca_req_tx_visit *v, const struct hca_record *r, uint32_t mtu_log,
	       uint32_t rd_done)
{
	uint32_t w = hca_record_first(r) & ~PLAIN_FREE, word = plain_words[w & 31];

	return (w == word || w == (word | HCA_REC_FULL << 8)) && r->len - 1 < 1u << mtu_log &&
	       w & (HCA_REC_RD | HCA_REC_FULL) << 8 && other_may_begin(v, r, rd_done);
}

/* head: of hca_txd_head(), without the length; the PSN of the only packet is psn. */
static __rte_always_inline void
put_plain(struct hca_req_tx_visit *v, struct hca_txd *d, uint64_t head, struct hca_record *r,
	  uint32_t ref, uint32_t psn, uint32_t seq, const struct hca_sge *sge)
{
	uint32_t len = r->len;

	r->psn = psn;
	r->npsn = 1;
	r->desc_seq = seq;
	r->flags |= HCA_REC_SENT;
	d->qpi = v->qpi;
	d->psn = psn;
	hca_txd_set_head(d, head | hca_txd_head(0, 0, 0, len));
	d->seq = seq;
	d->key = sge->lkey;
	d->va = sge->va;
	d->rec = ref;
	d->off = 0;
	d->reth.raddr = r->raddr;
	d->reth.rkey = r->rkey;
	d->reth.dma_len = len;
	d->imm = r->imm;
	d->generation = v->generation;
}

/* Number of plain records that may be sent at once, not considering their bytes. */
static inline uint32_t
plain_limit(const struct hca_req_tx_visit *v)
{
	uint32_t n = RTE_MIN(v->head - v->next, HCA_REQ_TX_WQES_PER_VISIT - v->wqes);
	uint32_t psns = HCA_REQ_TX_PSN_WINDOW - ((v->next_psn - v->upsn) & HCA_PSN_MASK);

	return RTE_MIN(RTE_MIN(n, psns), v->ctx->room - v->ctx->n_out);
}

/* A run has described i packets with the mbufs at the end of the spare ones. */
static inline void
end_plain(struct hca_req_tx_visit *v, uint32_t i, uint32_t psn)
{
	v->ctx->n_out += i;
	v->ctx->n_spare -= i;
	v->desc_seq += i;
	v->next += i;
	v->wqes += i;
	v->next_psn = v->max_psn = psn;
}

/* Number of packets of messages of one packet before the next one that requests an ACK. */
static inline uint32_t
before_ack(const struct hca_req_tx_visit *v, uint32_t next, uint32_t since)
{
	uint32_t every = since + 1 < v->ack_every ? v->ack_every - 1 - since : 0;

	return RTE_MIN(every, v->half - (next & v->half));
}

/*
 * Fast path for a run of at most n plain SENDs and WRITEs that have not been sent before,
 * equivalent to send_records() one by one. Stops before the first record of another form. Not
 * inline: it needs all registers.
 */
static __rte_noinline void
send_messages(struct hca_req_tx_visit *v, uint32_t mtu_log, uint32_t n)
{
	const uint32_t *window = v->qp->req_tx.window, mask = v->qp->req_tx.window_mask;
	struct hca_record *records = v->h->records[HCA_WIRE_ROCE].small.mem;
	uint32_t psn = v->next_psn, next = v->next, since = next - v->since_ackreq, word = 0;
	uint32_t ack_in = before_ack(v, next, v->since_ackreq), len_max = 1u << mtu_log;
	struct rte_mbuf **out = v->ctx->out + v->ctx->n_out, **spare;
	int32_t deficit = v->deficit;
	uint64_t head = 0;

	if (unlikely(!have_mbufs(v, n)))
		return;
	n = RTE_MIN(n, v->ctx->n_spare);
	spare = v->ctx->spare + v->ctx->n_spare;
	for (n += next; next != n && deficit > 0; next++) {
		uint32_t ref = window[next & mask], w;
		struct hca_record *r = &records[ref];
		struct hca_txd *d;

		if (unlikely(ref & HCA_RECREF_FULL))
			break;
		w = hca_record_first(r) & ~PLAIN_FREE;
		if (unlikely(w != word)) {
			if (!is_message_word(w))
				break;
			word = w;
			head = hca_txd_head(req_tx_ops[w & 31].bth[3] | v->transport,
					    HCA_TXD_LAST_OF_RECORD, 1, 0);
		}
		if (unlikely(r->len - 1 >= len_max))
			break;
		deficit -= HCA_REQ_TX_FRAME_OVERHEAD + 2 * HCA_REQ_TX_OVERHEAD + (int32_t)r->len;
		*out++ = *--spare;
		d = hca_txd(*spare);
		put_plain(v, d, head, r, ref, psn, v->desc_seq + (next - v->next) + 1, &r->sge);
		psn = (psn + 1) & HCA_PSN_MASK;
		if (ack_in-- != 0)
			continue;
		hca_txd_set_head(d, hca_txd_get_head(d) | hca_txd_head(0, HCA_TXD_ACKREQ, 0, 0));
		since = next + 1;
		ack_in = before_ack(v, since, 0);
	}
	if (next == v->next)
		return;
	v->deficit = deficit;
	v->since_ackreq = (uint16_t)(next - since);
	v->last = hca_txd(*spare);
	end_plain(v, next - v->next, psn);
}

/* The same for READs, ATOMICs and datagrams. */
static __rte_noinline void
send_others(struct hca_req_tx_visit *v, uint32_t mtu_log, uint32_t n)
{
	const uint32_t *window = v->qp->req_tx.window, mask = v->qp->req_tx.window_mask;
	uint32_t rd_done = __atomic_load_n(&v->qp->req_rx.rd_done, __ATOMIC_ACQUIRE);
	struct hca_record *r = hca_record(v->h, window[v->next & mask]);
	struct rte_mbuf **out = v->ctx->out + v->ctx->n_out, **spare;
	uint32_t psn = v->next_psn, i;

	if (unlikely(!is_plain_other(v, r, mtu_log, rd_done)))
		return;
	n = RTE_MIN(n, others_limit(v, r, rd_done));
	if (unlikely(!have_mbufs(v, n)))
		return;
	n = RTE_MIN(n, v->ctx->n_spare);
	spare = v->ctx->spare + v->ctx->n_spare;
	for (i = 0; i < n && v->deficit > 0; i++) {
		uint32_t ref = window[(v->next + i) & mask];
		struct hca_txd *d;

		r = hca_record(v->h, ref);
		if (unlikely(!is_plain_other(v, r, mtu_log, rd_done)))
			break;
		out[i] = *--spare;
		d = hca_txd(out[i]);
		put_plain(v, d,
			  hca_txd_head(req_tx_ops[r->op & 31].bth[3] | v->transport,
				       HCA_TXD_LAST_OF_RECORD, 1, 0),
			  r, ref, psn, v->desc_seq + i + 1, hca_record_sges(r));
		v->deficit -= HCA_REQ_TX_FRAME_OVERHEAD + 2 * HCA_REQ_TX_OVERHEAD;
		psn = (psn + 1) & HCA_PSN_MASK;
		if (r->flags & HCA_REC_RD) {
			/* as put_txd() and emit_request() of its only packet */
			__atomic_store_n(&r->imm, 0, __ATOMIC_RELAXED);
			d->len = d->nsge = 0;
			v->last = NULL;
			v->since_ackreq = 0;
			continue;
		}
		/* a datagram: there are no acknowledgements */
		v->deficit -= (int32_t)r->len;
		v->last = d;
		v->since_ackreq++;
	}
	end_plain(v, i, psn);
}

static inline void
send_plain(struct hca_req_tx_visit *v, uint32_t mtu_log)
{
	const struct hca_record *r = hca_record(v->h, hca_req_tx_ref(v, v->next));
	uint32_t n = plain_limit(v);

	if (unlikely(n == 0))
		return;
	if (likely(is_message_word(hca_record_first(r) & ~PLAIN_FREE))) {
		if (likely(r->len - 1 < 1u << mtu_log))
			send_messages(v, mtu_log, n);
	} else if (r->flags & (HCA_REC_RD | HCA_REC_FULL)) {
		send_others(v, mtu_log, n);
	}
}

/* Executed, now or before. */
static void
pass_local(struct hca_req_tx_visit *v)
{
	v->deficit -= HCA_REQ_TX_OVERHEAD;
	v->local = true;
	next_record(v);
}

/*
 * A datagram has its own rate. The frames of one visit share a rate: earlier ones are accounted for
 * first.
 */
static bool
at_own_rate(struct hca_req_tx_visit *v, const struct hca_record *r)
{
	uint32_t pace = ((const struct hca_record_full *)r)->av.pace;

	if (likely(pace == v->qp->req_tx.pace))
		return true;
	if (v->desc_seq != v->qp->req_tx.desc_seq)
		return false;
	v->qp->req_tx.pace = pace;
	return true;
}

/* Why the record at `next` is not sent now; HCA_REQ_TX_GO: it is, a local operation is done. */
static inline enum hca_req_tx_stop
begin_record(struct hca_req_tx_visit *v, struct hca_record *r, uint32_t state, uint32_t mtu_log)
{
	enum hca_req_tx_stop stop;

	if (unlikely(r->flags & HCA_REC_SENT))
		return unlikely(r->syndrome != 0) ? HCA_REQ_TX_STOP_BAD : HCA_REQ_TX_GO;
	stop = may_begin(v, r, state);
	if (unlikely(stop != HCA_REQ_TX_GO))
		return stop;
	if (unlikely(r->flags & HCA_REC_LOCAL))
		return hca_req_tx_local(v, r);
	if (v->transport == HCA_TRANSPORT_UD << 5 && !at_own_rate(v, r))
		return HCA_REQ_TX_STOP_TURN;
	r->psn = v->next_psn;
	r->npsn = psn_count(r, mtu_log);
	return HCA_REQ_TX_GO;
}

/* The next packet of r; the caller has an mbuf for it. */
static inline void
send_packet(struct hca_req_tx_visit *v, struct rte_mbuf *m, struct hca_record *r, uint32_t mtu_log)
{
	/* once: req_rx reads the flags while the rest of the message is sent */
	if (!(r->flags & HCA_REC_SENT))
		r->flags |= HCA_REC_SENT;
	if (v->pkt == 0)
		v->deficit -= HCA_REQ_TX_OVERHEAD;
	if (likely(!(r->flags & HCA_REC_RD)))
		emit_payload(v, m, r, mtu_log);
	else
		emit_request(v, m, r, mtu_log);
}

static enum hca_req_tx_stop
send_records(struct hca_req_tx_visit *v, uint32_t state)
{
	uint32_t mtu_log = v->qp->req_tx.mtu_log;
	bool may_be_plain = HCA_SHORT_WAYS && state == HCA_QPS_RTS && v->leave == UINT32_MAX;

	for (;;) {
		struct hca_record *r;
		struct rte_mbuf *m;
		enum hca_req_tx_stop stop;

		if (likely(v->pkt == 0 && v->next_psn == v->max_psn && may_be_plain))
			send_plain(v, mtu_log);
		if (v->next == v->head)
			return HCA_REQ_TX_STOP_PARK;
		if (v->deficit <= 0 || v->wqes >= HCA_REQ_TX_WQES_PER_VISIT)
			return HCA_REQ_TX_STOP_TURN;
		r = hca_record(v->h, hca_req_tx_ref(v, v->next));
		/* after the head: an old reference, whose prefetch is useless but harmless */
		rte_prefetch0(hca_record(v->h, hca_req_tx_ref(v, v->next + 2)));
		stop = begin_record(v, r, state, mtu_log);
		if (unlikely(stop != HCA_REQ_TX_GO))
			return stop;
		if (unlikely(r->flags & HCA_REC_LOCAL)) {
			pass_local(v);
			continue;
		}
		if (unlikely(window_full(v, r)))
			return HCA_REQ_TX_STOP_PARK;
		if (unlikely(v->leave != UINT32_MAX) && !take_leave(v, r))
			return HCA_REQ_TX_STOP_CONGESTED;
		m = take_mbuf(v, v->head - v->next + r->npsn - v->pkt - 1);
		if (unlikely(m == NULL))
			return HCA_REQ_TX_STOP_CREDIT;
		send_packet(v, m, r, mtu_log);
	}
}

/*
 * Repeat the last packet sent, if it is of a kind that only an ACK answers: now it requests the
 * acknowledgement that was not requested before. Without an mbuf for it nothing moves, so that the
 * next turn does not go back further.
 */
static enum hca_req_tx_stop
repeat_last_packet(struct hca_req_tx_visit *v, enum hca_req_tx_stop why)
{
	const uint32_t next = v->next, pkt = v->pkt;
	const uint8_t again = v->qp->req_tx.again;

	for (uint32_t c = next + (pkt != 0); c != v->tail; c--) {
		struct hca_record *r = hca_record(v->h, hca_req_tx_ref(v, c - 1));

		if (r->flags & HCA_REC_LOCAL)
			continue;
		if (r->flags & HCA_REC_RD || r->syndrome != 0)
			return why;
		if (!have_mbufs(v, 1))
			return HCA_REQ_TX_STOP_CREDIT;
		v->pkt = (c - 1 == next ? pkt : r->npsn) - 1;
		v->next = c - 1;
		v->next_psn = (v->next_psn - 1) & HCA_PSN_MASK;
		v->qp->req_tx.again = HCA_AGAIN_ASK;
		send_packet(v, v->ctx->spare[--v->ctx->n_spare], r, v->qp->req_tx.mtu_log);
		v->qp->req_tx.again = again;
		v->next = next; /* local operations behind it are done */
		v->pkt = pkt;
		return why;
	}
	return why;
}

/*
 * Whether it stopped without having sent anything, for a reason that could not be foreseen when the
 * last turn ended (SQD, a bad request), and no acknowledgement was requested.
 */
static inline bool
lacks_ack_request(const struct hca_req_tx_visit *v, enum hca_req_tx_stop why)
{
	if (v->last != NULL || v->since_ackreq == 0 || v->unreliable || v->next_psn == v->upsn)
		return false;
	return why == HCA_REQ_TX_STOP_CONGESTED ||
	       (v->pkt == 0 && (why == HCA_REQ_TX_STOP_PARK || why == HCA_REQ_TX_STOP_BAD));
}

enum hca_req_tx_stop
hca_req_tx_send(struct hca_req_tx_visit *v, uint32_t state)
{
	enum hca_req_tx_stop why = send_records(v, state);

	if (unlikely(lacks_ack_request(v, why)))
		why = repeat_last_packet(v, why);
	end_visit(v, why);
	return why;
}
