/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VTP_FOREIGN_H
#define VTP_FOREIGN_H

/*
 * Foreign memory: regions whose bytes have no address in this process (HCA_BUS_FOREIGN). Only
 * hca_config.foreign accesses them, with a call per contiguous run of bytes.
 *
 * The state of a foreign region is FOREIGN instead of VALID: hca_vtp_check() does not find it, and
 * no other code (fast paths, queues) can use its bus address as a pointer. Code that supports
 * foreign memory calls hca_foreign_find() when hca_vtp_check() has failed.
 *
 * A null region (HCA_MPT_FLAG_NULL) is in the same state, because it has no bytes here either:
 * reading it gives zeros, writing has no effect, and neither fails.
 *
 * Callers: encap, EE, req_rx within their poll(). Transfers return
 *  0
 *  -EAGAIN  the memory does not answer now: treat the packet as lost, or send an RNR NAK
 *  -EFAULT  the memory or its owner is gone, or the access is not allowed
 */

#include <stdbool.h>
#include <stdint.h>

struct hca_core;
struct hca_mpt_entry;
struct hca_qp_cfg;
struct hca_vtp;

/* As hca_vtp_check() and hca_vtp_check_bound(); qp NULL: a local access. NULL: not allowed. */
const struct hca_mpt_entry *hca_foreign_find(const struct hca_vtp *v, uint32_t key, uint32_t pd,
					     const struct hca_qp_cfg *qp, uint32_t access,
					     uint64_t va, uint64_t len);

int hca_foreign_read(struct hca_core *h, const struct hca_mpt_entry *e, uint64_t va, void *dst,
		     uint32_t len);
/* Stores the last byte after all others. -EAGAIN: some bytes may be stored, now or later. */
int hca_foreign_write(struct hca_core *h, const struct hca_mpt_entry *e, uint64_t va,
		      const void *src, uint32_t len);
/*
 * -EAGAIN: no byte is stored; -EINPROGRESS: all bytes will be stored, later. Both are returned
 * only for bytes that are contiguous in the process; -EFAULT replaces them otherwise.
 */
int hca_foreign_store(struct hca_core *h, const struct hca_mpt_entry *e, uint64_t va,
		      const void *src, uint32_t len);
/*
 * Fetch-add or compare-swap of 8 aligned bytes: atomic with respect to other requests from the
 * network, not to CPUs. *old: the previous value. -EINVAL: not aligned; -EAGAIN: not executed;
 * -EINPROGRESS: it will be executed, before any later access of the domain.
 */
int hca_foreign_atomic(struct hca_core *h, const struct hca_mpt_entry *e, uint64_t va, bool add,
		       uint64_t swap_add, uint64_t compare, uint64_t *old);
/*
 * Store 8 aligned bytes at once. -EINVAL: not aligned; -EAGAIN: the request must come again, which
 * stores the same bytes.
 */
int hca_foreign_atomic_write(struct hca_core *h, const struct hca_mpt_entry *e, uint64_t va,
			     const void *src);

#endif
