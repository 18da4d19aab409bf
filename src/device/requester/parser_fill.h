/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_PARSER_FILL_H
#define REQUESTER_PARSER_FILL_H

/*
 * From the queue of a QP to its records: the one copy of a WQE, and the members of a record that
 * its next unit and the chain tell. On the parser's lcore.
 */

#include <string.h>

#include <rte_prefetch.h>

#include "engine/impl.h"
#include "requester/wqe_unit.h"

#define COPY_BLOCK 64u

/* The only copy. The asm prevents the compiler from reading the queue again. */
static inline void
copy_wqe(uint8_t *buf, const uint8_t *src, uint32_t size, uint32_t stride)
{
	memcpy(buf, src, COPY_BLOCK);
	if (unlikely(size > COPY_BLOCK)) {
		size = RTE_MIN(size, stride);
		for (uint32_t done = COPY_BLOCK; done < size; done += COPY_BLOCK)
			memcpy(buf + done, src + done, COPY_BLOCK);
		rte_prefetch0(src + stride + COPY_BLOCK);
	}
	__asm__ volatile("" : "+m"(*(uint8_t(*)[HCA_WQE_MAX_STRIDE])buf));
	rte_prefetch0(src + stride);
}

/* Flags of a record that the next unit and the chain tell. */
static inline uint8_t
record_flags(const struct hca_qp_parser *p, const struct hca_next_unit *next)
{
	uint32_t wf = hca_le32_to_cpu(next->flags);

	return (wf & HCA_WQE_FLAG_SIGNALED ? HCA_REC_SIGNALED : 0) |
	       (wf & HCA_WQE_FLAG_SOLICITED ? HCA_REC_SOLICITED : 0) |
	       (p->next_fence ? HCA_REC_FENCE : 0);
}

static inline void
fill_common(struct hca_record *r, const struct hca_qp_parser *p, const struct hca_next_unit *next,
	    const struct hca_wqe *w, uint8_t flags)
{
	r->op = p->next_op;
	r->flags = flags | record_flags(p, next);
	r->syndrome = w->syndrome;
	r->nsge = w->nsge;
	r->wqe_index = p->sq_index;
	r->reserved = 0;
	r->len = w->len;
	r->imm = next->imm_data;
	r->raddr = w->raddr;
	r->rkey = w->rkey;
	r->rd_ord = p->rd_count;
	r->psn = 0;
	r->npsn = 0;
	r->desc_seq = 0;
	r->srqn = 0; /* XRC: set by parse_any() */
	/* word by word: see small_fill() */
	r->sge.va = w->first.va;
	r->sge.lkey = w->first.lkey;
	r->sge.len = w->first.len;
}

#endif
