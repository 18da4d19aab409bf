/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_PARSER_CHAIN_H
#define REQUESTER_PARSER_CHAIN_H

/*
 * Chains of WQEs: the parser's position in the queue of a QP, and where the next chain begins.
 * Included by wqe_parser.c only, on the parser's lcore.
 */

#include "abi_wqe.h"
#include "requester/doorbell.h"
#include "requester/parser.h"
#include "requester/parser_visit.h"

/*
 * Whether the WQE at the queue's position announces a chain; its contents are checked like a
 * doorbell. head: number of WQEs parsed since the reset.
 */
static __rte_noinline bool
chain_announced(struct hca_pipe *h, struct hca_qp_parser *p, uint32_t head)
{
	const struct hca_next_unit *next =
		hca_qbuf_at(&p->sq, (uint32_t)p->sq_index << p->sq_stride_log);
	uint32_t w = hca_le32_to_cpu(__atomic_load_n(&next->flags, __ATOMIC_ACQUIRE));

	if (!(w & HCA_WQE_ANNOUNCED) || HCA_WQE_ANNOUNCE_L(w) != (head >> p->sq_size_log & 1))
		return false;
	HCA_COUNT(h, PARSER, db_read_on);
	chain_start(p, HCA_WQE_ANNOUNCE_OPCODE(w), HCA_WQE_ANNOUNCE_SIZE0(w),
		    HCA_WQE_ANNOUNCE_F(w));
	return true;
}

/*
 * Begin the next chain: that of the next doorbell, or one before it that found the page full.
 * VISIT_IDLE: no chain is announced; VISIT_CATAS: the doorbell is not for the queue's position.
 */
static inline enum visit_end
chain_begin(struct hca_pipe *h, struct hca_qp_parser *p, uint32_t head)
{
	if (likely(chain_next(p))) {
		/* the next doorbell's */
	} else if (p->chain_head == p->chain_tail && likely(!(p->marked & HCA_PM_LOOK))) {
		return VISIT_IDLE;
	} else if (!chain_announced(h, p, head)) {
		p->marked &= ~HCA_PM_LOOK;
		return p->chain_head == p->chain_tail ? VISIT_IDLE : VISIT_CATAS;
	}
	if (unlikely(p->marked != 0))
		p->marked |= HCA_PM_LOOK;
	return VISIT_MORE;
}

#endif
