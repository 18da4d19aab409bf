/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_QBUF_H
#define CORE_QBUF_H

/*
 * A queue's memory (SQ, RQ, SRQ, CQ, EQ), resolved once from its MR when the queue goes to hardware
 * and cached: the MR cannot be invalidated while the queue lives. Pages that follow each other on
 * the bus are addressed through base; otherwise pages[] holds the CPU address of every page. Queue
 * entries are powers of two and queues start on a page, so no entry crosses a page.
 */

#include <stdint.h>

struct hca_qbuf {
	uint8_t *base; /* contiguous, or NULL */
	uint8_t **pages;
	uint32_t bytes;	     /* queue and its record */
	uint32_t page_shift; /* 12: of pages[] */
};

/* Data segment as kept in records and receive contexts; host byte order. */
struct hca_sge {
	uint64_t va;
	uint32_t lkey;
	uint32_t len;
};

static inline void *
hca_qbuf_at(const struct hca_qbuf *q, uint32_t off)
{
	if (q->base != NULL)
		return q->base + off;
	return q->pages[off >> q->page_shift] + (off & ((1u << q->page_shift) - 1));
}

#endif
