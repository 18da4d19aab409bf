/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QUEUES_QBUF_H
#define QUEUES_QBUF_H

/* Resolving and releasing the memory of a queue. */

#include <stdint.h>

#include "core/qbuf.h"

struct hca_core;
struct hca_mpt_entry;

/*
 * CEU: resolve [va, va + bytes) of the writable region behind key into q; the region gains a user,
 * so that it cannot be invalidated before hca_qbuf_release(). Key, rights, PD, alignment to 4 KiB
 * or range wrong: HCA_STAT_BAD_PARAM; no memory: HCA_STAT_EXCEED_LIM.
 */
int hca_qbuf_resolve(struct hca_core *h, struct hca_qbuf *q, uint32_t key, uint32_t pd, uint64_t va,
		     uint32_t bytes);
/*
 * The same from the first byte of the region, with these rights: RQ (LOCAL_WRITE) and SQ (none,
 * the device only reads it), whose context names no address.
 */
int hca_qbuf_resolve_whole(struct hca_core *h, struct hca_qbuf *q, uint32_t key, uint32_t pd,
			   uint32_t bytes, uint32_t access);
void hca_qbuf_release(struct hca_core *h, struct hca_qbuf *q, uint32_t key);

#endif
