/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REQUESTER_DOORBELL_H
#define REQUESTER_DOORBELL_H

/*
 * The doorbell stage's interface: which UAR pages it checks, and the word it passes to the parser
 * (edge DB_PARSER).
 */

#include <stdbool.h>
#include <stdint.h>

#include "abi_bar.h"
#include "ctxmgt/qp.h"

struct hca_pipe;

/*
 * Start to check UAR page `page`, of which the pipe has its part of `parts`, or none if there are
 * fewer: the pipes of the device, or 1. 0: stop. Called by the thread that attaches DMA windows of
 * domain page != 0, after the page has been zeroed; never by a stage. Opening restarts the FIFO at
 * HCA_UAR_FIFO_FIRST(page). Pages are closed initially.
 */
void hca_doorbell_page_open(struct hca_pipe *h, uint32_t page, uint32_t parts);

/* On the doorbell's worker: make the next poll check every open page, whatever the time. */
void hca_doorbell_scan_next(struct hca_pipe *h);
/* The same worker: whether the page had doorbells in the poll of that time, or was opened then. */
bool hca_doorbell_rang(const struct hca_pipe *h, uint32_t page, uint64_t now);

/*
 * A checked doorbell, one 64-bit word passed as a pointer: [23:0] as in the doorbell (sq_head, F,
 * opcode), [31:24] size0, [45:32] QP index, [63:46] low bits of cfg.generation, which reveal a word
 * that waited in a ring while its QP was reset.
 */
#define HCA_DBW_QPI_SHIFT 32
#define HCA_DBW_QPI_BITS 14
#define HCA_DBW_GEN_SHIFT (HCA_DBW_QPI_SHIFT + HCA_DBW_QPI_BITS)

static inline void *
hca_dbw_make(uint64_t db, uint32_t qpi, uint32_t generation)
{
	uint64_t w = HCA_BITS64(db, 23, 0) | (uint64_t)HCA_DB_SIZE0(db) << 24 |
		     (uint64_t)qpi << HCA_DBW_QPI_SHIFT | (uint64_t)generation << HCA_DBW_GEN_SHIFT;

	return (void *)(uintptr_t)w;
}

static inline uint64_t
hca_dbw_from(void *obj)
{
	return (uint64_t)(uintptr_t)obj;
}

static inline uint32_t
hca_dbw_qpi(uint64_t w)
{
	return (uint32_t)(w >> HCA_DBW_QPI_SHIFT) & ((1u << HCA_DBW_QPI_BITS) - 1);
}

static inline bool
hca_dbw_current(uint64_t w, uint32_t generation)
{
	return w >> HCA_DBW_GEN_SHIFT ==
	       ((uint64_t)generation << HCA_DBW_GEN_SHIFT) >> HCA_DBW_GEN_SHIFT;
}

/*
 * Opcode of a word that is not a doorbell: the QP was marked, see hca_uar_page. (Kicks go to EE.)
 */
#define HCA_DBW_LOOK HCA_DB_OPCODE_KICK

/* Chain words: the low half, as kept in parser.chain. */
#define HCA_CHAIN_SQ_HEAD(w) HCA_DB_SQ_HEAD(w)
#define HCA_CHAIN_F(w) HCA_DB_F(w)
#define HCA_CHAIN_OPCODE(w) HCA_DB_OPCODE(w)
#define HCA_CHAIN_SIZE0(w) HCA_BITS(w, 31, 24)
#define HCA_CHAIN_MAKE(sq_head, f, opcode, size0) \
	(HCA_FIELD(31, 24, size0) | HCA_FIELD(23, 8, sq_head) | HCA_FIELD(5, 5, f) | \
	 HCA_FIELD(4, 0, opcode))

#endif
