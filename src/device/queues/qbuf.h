/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QUEUES_QBUF_H
#define QUEUES_QBUF_H

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

static inline void *
hca_qbuf_at(const struct hca_qbuf *q, uint32_t off)
{
	if (q->base != NULL)
		return q->base + off;
	return q->pages[off >> q->page_shift] + (off & ((1u << q->page_shift) - 1));
}

struct hca;
struct hca_mpt_entry;

/*
 * CEU: resolve [va, va + bytes) of the writable region behind key into q; the region gains a user,
 * so that it cannot be invalidated before hca_qbuf_release(). Key, rights, PD, alignment to 4 KiB
 * or range wrong: HCA_STAT_BAD_PARAM; no memory: HCA_STAT_EXCEED_LIM.
 */
int hca_qbuf_resolve(struct hca *h, struct hca_qbuf *q, uint32_t key, uint32_t pd, uint64_t va,
		     uint32_t bytes);
/*
 * The same from the first byte of the region, with these rights: RQ (LOCAL_WRITE) and SQ (none,
 * the device only reads it), whose context names no address.
 */
int hca_qbuf_resolve_whole(struct hca *h, struct hca_qbuf *q, uint32_t key, uint32_t pd,
			   uint32_t bytes, uint32_t access);
void hca_qbuf_release(struct hca *h, struct hca_qbuf *q, uint32_t key);

#endif
