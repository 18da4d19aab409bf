/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QUEUES_SRQ_H
#define QUEUES_SRQ_H

/*
 * Shared receive queues. The WQEs of an SRQ are a free list linked by nda: the owner appends at its
 * end and raises the producer count, the device takes from its beginning and follows nda, at most
 * as many as were produced. Everything in the queue is the owner's memory and is believed as far as
 * a hint goes: wrong links or counts are SRQ_CATAS and hurt only that SRQ.
 *
 * Only EE takes WQEs, so there is no lock; the CEU creates, arms and destroys. A WQE is copied into
 * the QP's recv_sge when its message begins; from then on it belongs to that message, whatever
 * other QPs take meanwhile.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include "queues/qbuf.h"

enum hca_srq_state {
	HCA_SRQ_FREE = 0,
	HCA_SRQ_LIVE = 1,
	HCA_SRQ_ERROR = 2, /* SRQ_CATAS was raised */
	HCA_SRQ_DYING = 3, /* HW2SW_SRQ waits for its round */
};

struct hca_srq {
	/* line 0: CEU */
	uint32_t state; /* [pub] enum hca_srq_state, also set to ERROR by EE */
	uint32_t srqn;	/* all 24 bits, 0 = none */
	uint32_t pd, lkey, usr_page;
	uint32_t xrcd;	/* bit 31: valid */
	uint32_t cqn;	/* XRC: CQ index of its completions */
	uint32_t users; /* CEU: QPs on this SRQ */
	uint32_t limit; /* [pub] CEU arms (non-zero), EE disarms when it fires */
	uint8_t stride_log, size_log, max_sge, reserved;
	uint64_t start; /* virtual address of the first WQE */
	struct hca_qbuf q;
	/* line 1: EE */
	uint32_t consumed __rte_cache_aligned; /* free running */
	uint32_t producer;		       /* as last read */
	uint32_t head;			       /* byte offset of the next WQE */
} __rte_cache_aligned;

#endif
