/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QUEUES_QBUF_H
#define QUEUES_QBUF_H

/* Resolving and releasing the memory of a queue. */

#include <stdint.h>

#include "core/qbuf.h"

struct hca_core;
struct hca_mpt_entry;

/*
 * CEU: resolve [va, va + bytes) of the writable region of key into q; the region gets a reference,
 * so that it cannot be invalidated before hca_qbuf_release(). HCA_STAT_BAD_PARAM: wrong key,
 * rights, PD, DMA domain, alignment to 4 KiB or range; HCA_STAT_EXCEED_LIM: out of memory. After an
 * error q is empty.
 */
int hca_qbuf_resolve(struct hca_core *h, struct hca_qbuf *q, uint32_t key, uint32_t pd,
		     uint32_t domain, uint64_t va, uint32_t bytes);
/*
 * The same from the first byte of the region on. For RQs and SQs, whose contexts have no address;
 * access: LOCAL_WRITE for an RQ, 0 for an SQ, which the device only reads.
 */
int hca_qbuf_resolve_whole(struct hca_core *h, struct hca_qbuf *q, uint32_t key, uint32_t pd,
			   uint32_t domain, uint32_t bytes, uint32_t access);
/* CEU: frees q and its reference to the region; no effect if q is empty. */
void hca_qbuf_release(struct hca_core *h, struct hca_qbuf *q, uint32_t key);

#endif
