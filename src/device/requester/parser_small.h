/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_PARSER_SMALL_H
#define REQUESTER_PARSER_SMALL_H

/*
 * Runs of WQEs of the common form: RC; WRITE, SEND or READ with one data unit that is not empty.
 * Most WQEs have the form, the opcode and the size of the WQE before them: one comparison with the
 * words that announce this WQE replaces the decoding (137 instructions per WQE with it, 100
 * without). Included by wqe_parser.c only, on the parser's lcore.
 */

#include <string.h>

#include "abi_wqe.h"
#include "core/qbuf.h"
#include "engine/impl.h"
#include "requester/doorbell.h"
#include "requester/parser_fill.h"
#include "requester/parser_visit.h"
#include "requester/record_pool.h"
#include "requester/wqe_unit.h"

/* The common values of WQEs that follow each other. */
struct small_shape {
	uint32_t first;	  /* of the record: op, flags, nsge */
	uint32_t data;	  /* offset of the data unit, in bytes */
	uint32_t nda_nop; /* of the WQE before it, without the offset */
	uint32_t nee_nds; /* the same */
	uint32_t chain;	  /* the word of a chain that begins with it, without the index */
	uint32_t rd;	  /* 1: counts against max_rd_atomic */
};

#define SMALL_BYTES 48u /* of the longest: next, raddr and data unit */

_Static_assert(SMALL_BYTES == sizeof(struct hca_next_unit) + sizeof(struct hca_raddr_unit) +
				       sizeof(struct hca_data_unit) &&
		       SMALL_BYTES <= HCA_WQE_MIN_STRIDE,
	       "no other WQE is read");

/* As copy_wqe(): the only copy. */
static inline void
small_copy(uint8_t *buf, const uint8_t *src, uint32_t stride)
{
	memcpy(buf, src, SMALL_BYTES);
	__asm__ volatile("" : "+m"(*(uint8_t(*)[SMALL_BYTES])buf));
	rte_prefetch0(src + stride);
}

/* The shape of the next WQE, of which size and opcode are known; false: it has another form. */
static inline bool
small_shape_of(const struct hca_qp_parser *p, uint8_t service, struct small_shape *s)
{
	uint32_t flags = hca_wqe_op_flags[p->next_op & 31], fence = p->next_fence != 0;
	uint32_t remote = flags & HCA_WQE_OP_RADDR ? sizeof(struct hca_raddr_unit) : 0;

	s->data = (uint32_t)sizeof(struct hca_next_unit) + remote;
	if (hca_wqe_form(p->next_op, service) != HCA_WQE_SIMPLE || !(flags & HCA_WQE_OP_RC) ||
	    p->next_size * HCA_WQE_UNIT != s->data + sizeof(struct hca_data_unit))
		return false;
	s->rd = (flags & HCA_WQE_OP_KIND(HCA_KIND_READ)) != 0;
	s->first = HCA_RECORD_FIRST(p->next_op,
				    (fence ? HCA_REC_FENCE : 0) | (s->rd ? HCA_REC_RD : 0), 1);
	s->nda_nop = HCA_NEXT_MAKE_NDA_NOP(0, p->next_op);
	s->nee_nds = HCA_NEXT_MAKE_NEE_NDS(fence, p->next_size);
	s->chain = HCA_CHAIN_MAKE(0, fence, p->next_op, p->next_size);
	return true;
}

/* The record of a WQE of a shape; len: of its data unit, which is not empty. */
static __rte_always_inline void
small_fill(struct hca_record *r, const uint8_t *copy, const struct small_shape *s, uint32_t len,
	   uint32_t index, uint32_t rd_count)
{
	const struct hca_next_unit *next = (const struct hca_next_unit *)copy;
	const struct hca_data_unit *d = (const struct hca_data_unit *)(copy + s->data);
	const struct hca_raddr_unit *remote = (const struct hca_raddr_unit *)(next + 1);
	uint32_t wf = hca_le32_to_cpu(next->flags), first;
	uint64_t raddr = 0;
	uint32_t rkey = 0;

	_Static_assert(HCA_WQE_FLAG_SIGNALED >> 3 == HCA_REC_SIGNALED &&
			       HCA_WQE_FLAG_SOLICITED == HCA_REC_SOLICITED,
		       "S and C are moved");
	first = s->first +
		HCA_RECORD_FIRST(0, (wf >> 3 & HCA_REC_SIGNALED) | (wf & HCA_REC_SOLICITED), 0);
	hca_record_set_first(r, first);
	hca_record_set_index(r, index);
	r->len = len;
	r->imm = next->imm_data;
	if (s->data != sizeof(*next)) {
		raddr = hca_le64_to_cpu(remote->raddr);
		rkey = hca_le32_to_cpu(remote->rkey);
	}
	r->raddr = raddr;
	r->rkey = rkey;
	r->rd_ord = rd_count;
	r->psn = 0;
	r->npsn = 0;
	r->desc_seq = 0;
	r->srqn = 0;
	/* word by word: a structure written in words and read in vectors waits for the stores */
	r->sge.va = hca_le64_to_cpu(d->addr);
	r->sge.lkey = hca_le32_to_cpu(d->lkey);
	r->sge.len = len;
}

/*
 * Advance from the WQE at p to the next one, of this chain or of the next doorbell's; false: these
 * announce no WQE, or the chain leaves the order of the queue (v->end). Marked QPs may have chains
 * without a doorbell: chain_begin() finds those.
 */
static inline bool
small_advance(struct hca_parser_visit *v, const struct hca_next_unit *next)
{
	struct hca_qp_parser *p = v->p;

	if (unlikely(!chain_advance(p, next))) {
		v->end = VISIT_CATAS;
		return false;
	}
	return p->in_chain || (p->marked == 0 && chain_next(p));
}

/* Position in the queue, in registers. */
struct small_at {
	uint32_t off;	     /* of the WQE, in bytes */
	uint32_t chain_len;  /* WQEs of its chain before it */
	uint32_t chain_head; /* of the chain words */
};

static inline struct small_at
small_begin(const struct hca_qp_parser *p)
{
	return (struct small_at){(uint32_t)p->sq_index << p->sq_stride_log, p->chain_len,
				 p->chain_head};
}

static inline void
small_end(struct hca_qp_parser *p, const struct small_at *at)
{
	p->sq_index = (uint16_t)(at->off >> p->sq_stride_log);
	p->chain_len = (uint16_t)at->chain_len;
	p->chain_head = at->chain_head;
}

/* The WQE after the one at *at, if it is announced and has its shape; false: *at is unchanged. */
static __rte_always_inline bool
small_next(const struct hca_qp_parser *p, const struct small_shape *s, struct small_at *at,
	   const struct hca_next_unit *next, uint32_t stride, uint32_t mask, uint32_t size)
{
	uint32_t off = (at->off + stride) & mask;
	uint32_t nda_nop = hca_le32_to_cpu(next->nda_nop), nee_nds = hca_le32_to_cpu(next->nee_nds);

	if (nda_nop == (off | s->nda_nop) && nee_nds == s->nee_nds) {
		if (unlikely(at->chain_len + 1 >= size))
			return false;
		at->chain_len++;
	} else if (nee_nds == 0 && at->chain_head != p->chain_tail && p->marked == 0) {
		uint32_t index = off >> p->sq_stride_log;

		if (p->chain[at->chain_head & (size - 1)] !=
		    (s->chain | HCA_CHAIN_MAKE(index, 0, 0, 0)))
			return false;
		at->chain_head++;
		at->chain_len = 0;
	} else {
		return false;
	}
	at->off = off;
	return true;
}

/*
 * Parse a run of WQEs of the common form in this and the next chains, at most quota, as
 * hca_parser_run() does; returns the number parsed.
 */
static __rte_noinline unsigned int
parse_run_small(struct hca_pipe *h, struct hca_parser_visit *v, unsigned int quota)
{
	uint8_t copy[SMALL_BYTES] __rte_cache_aligned;
	const struct hca_next_unit *next = (const struct hca_next_unit *)copy;
	struct hca_record_pool *pool = &h->records[HCA_WIRE_ROCE].small;
	struct hca_qp_parser *p = v->p;
	bool shared = !others_wait(pool, p) || p->flags & HCA_PF_GRANTED;
	const uint32_t *refs = pool->stack + pool->stack_n - 1;
	uint32_t window_mask = p->window_mask, *window = p->window, head = v->head, n = 0;
	uint32_t size = 1u << p->sq_size_log, stride = 1u << p->sq_stride_log;
	uint32_t mask = (size << p->sq_stride_log) - 1, rd_count = p->rd_count;
	uint8_t service = v->qp->cfg.service;
	struct hca_record *mem = pool->mem;
	struct small_at at = small_begin(p);
	struct hca_qbuf sq = p->sq;
	struct small_shape s;

	quota = RTE_MIN(quota, v->stop - head);
	quota = RTE_MIN(quota, hca_record_allowance(pool, p, shared));
	if (unlikely(!small_shape_of(p, service, &s)))
		return 0;
	while (n < quota) {
		uint32_t ref = refs[-(int)n], len;

		small_copy(copy, hca_qbuf_at(&sq, at.off), stride);
		len = hca_le32_to_cpu(((const struct hca_data_unit *)(copy + s.data))->byte_cnt);
		if (unlikely(len - 1 >= HCA_INLINE_FLAG - 1))
			break;
		small_fill(mem + ref, copy, &s, len, at.off >> p->sq_stride_log, rd_count);
		rd_count += s.rd;
		__atomic_store_n(&window[head++ & window_mask], ref, __ATOMIC_RELAXED);
		n++;
		if (likely(small_next(p, &s, &at, next, stride, mask, size)))
			continue;
		small_end(p, &at);
		if (!small_advance(v, next) || !small_shape_of(p, service, &s))
			goto ended;
		at = small_begin(p);
	}
	small_end(p, &at);
ended:
	p->rd_count = rd_count;
	hca_record_taken(pool, p, n);
	v->head = head;
	return n;
}

#endif
