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

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "core/qbuf.h"
#include "queues/rq.h"

enum hca_srq_state {
	HCA_SRQ_FREE = 0,
	HCA_SRQ_LIVE = 1,
	HCA_SRQ_ERROR = 2, /* EE raises SRQ_CATAS when it meets it */
	HCA_SRQ_DYING = 3, /* HW2SW_SRQ waits for its round */
};

struct hca_srq {
	/* line 0: CEU */
	uint32_t state; /* [pub] enum hca_srq_state, see hca_srq_fail() */
	uint32_t srqn;	/* all 24 bits, 0 = none */
	uint32_t pd, lkey, usr_page;
	uint32_t xrcd;	/* bit 31: valid */
	uint32_t cqn;	/* XRC: CQ index of its completions */
	uint32_t users; /* CEU: QPs on this SRQ */
	uint32_t limit; /* [pub] CEU arms (non-zero), EE disarms when it fires */
	uint8_t stride_log, size_log, max_sge, reserved;
	uint64_t start; /* virtual address of the first WQE */
	struct hca_qbuf q;
	/* EE's line */
	uint32_t consumed __rte_cache_aligned; /* [pub] free running */
	uint32_t producer;		       /* [pub] as last read */
	uint32_t head;			       /* byte offset of the next WQE */
	bool told;			       /* SRQ_CATAS was raised */
} __rte_cache_aligned;

struct hca_core;

static inline uint32_t
hca_srq_state(const struct hca_srq *s)
{
	return __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);
}

/* SRQ of an SRQN (all 24 bits) that is not being destroyed, or NULL. Any lcore. */
struct hca_srq *hca_srq_find(const struct hca_core *h, uint32_t srqn);

/* A live SRQ gives no more WQEs; EE, or the CEU when the CQ of an XRC SRQ has overrun. */
void hca_srq_fail(struct hca_srq *s);

/*
 * EE: is a WQE there? 1, 0, or -1: the producer count is a lie, or the SRQ is in error.
 */
int hca_srq_available(struct hca_srq *s);
/* The WQE that would be taken; valid when one is available. off: its place in the SRQ. */
const uint8_t *hca_srq_peek(const struct hca_srq *s, uint32_t *off);
/*
 * Takes it: the next one is where its nda, read once into nda_nop by the caller's copy, points.
 * false: it points nowhere; the SRQ is in error from now on, the WQE taken is good.
 */
bool hca_srq_take(struct hca_srq *s, uint32_t nda_nop);
/* The owner's producer count as it stands now, a hint. Any lcore. */
uint32_t hca_srq_posted(const struct hca_srq *s);
/* EE: WQEs posted and not taken, by the producer count as it stands now. */
uint32_t hca_srq_count(struct hca_srq *s);

#endif
