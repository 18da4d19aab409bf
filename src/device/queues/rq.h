/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QUEUES_RQ_H
#define QUEUES_RQ_H

/*
 * Shared by receive queues and shared receive queues: the record with the producer count at the end
 * of the queue, and the data segments of a WQE. All of it is the owner's memory and may change at
 * any time: each word is read once, and only the value read is used.
 */

#include "abi_wqe.h"
#include "core/qbuf.h"

struct hca_qp_ee; /* ctxmgt/qp.h */

/* The record of a queue whose WQEs take 1 << bytes_log bytes. */
static inline struct hca_rq_record *
hca_rq_record(const struct hca_qbuf *q, uint32_t bytes_log)
{
	return hca_qbuf_at(q, 1u << bytes_log);
}

/* Number of WQEs ever posted, according to the owner; free running. Any lcore. */
static inline uint32_t
hca_rq_posted(const struct hca_qbuf *q, uint32_t bytes_log)
{
	const struct hca_rq_record *r = hca_rq_record(q, bytes_log);

	return hca_le32_to_cpu(__atomic_load_n(&r->producer, __ATOMIC_ACQUIRE));
}

/*
 * Copy the data segments of the receive WQE at wqe into the caller's list.
 *
 * stride: size of a WQE of this queue in bytes. sge: room for as many segments as fit the stride,
 * at most HCA_WQE_MAX_SGE. room: set to the total size of the segments, at most HCA_MAX_MSG_SIZE.
 * Returns the number of segments, or -EINVAL: a segment is marked as inline data. Any lcore.
 */
int hca_rq_fetch(const uint8_t *wqe, uint32_t stride, struct hca_sge *sge, uint32_t *room);

/*
 * Whether the RQ of a QP or Jetty has a receive WQE: 1, 0, or -1: the producer count is invalid.
 * By the stage that takes its receives.
 */
int hca_rq_available(struct hca_qp_ee *ee);

#endif
