/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef QUEUES_SRQ_H
#define QUEUES_SRQ_H

/*
 * Shared receive queues. The WQEs of an SRQ form a list linked by nda: the owner appends at its end
 * and raises the producer count; the device takes from its beginning and follows nda, at most as
 * many WQEs as were produced. Everything in the queue is the owner's memory and only a hint:
 * invalid links or counts raise SRQ_CATAS and affect only that SRQ.
 *
 * Only EE takes WQEs (TAT, if it is a JFR of UB), so there is no lock; the CEU creates, arms and
 * destroys. In a device with several pipes the EE of each takes WQEs: by compare-and-swap, as the
 * last check of a request. If another pipe has taken the WQE that a request was judged by, the
 * request is judged by the next one.
 *
 * EE copies a WQE when its message begins, so the message does not depend on WQEs that other QPs
 * take later. A QP has a reference to its SRQ, but not to those that XRC requests name:
 * one of these may be destroyed, and its number given to another client's SRQ, while a message has
 * one of its WQEs. A message therefore keeps the number and the generation of its SRQ.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "abi_ctx.h"
#include "core/core.h"
#include "core/qbuf.h"
#include "queues/rq.h"

enum hca_srq_state {
	HCA_SRQ_FREE = 0,
	HCA_SRQ_LIVE = 1,
	HCA_SRQ_ERROR = 2, /* EE raises SRQ_CATAS when it encounters it */
	HCA_SRQ_DYING = 3, /* HW2SW_SRQ waits for its round */
};

struct hca_srq {
	/* line 0: CEU */
	uint32_t state; /* [pub] enum hca_srq_state, see hca_srq_fail() */
	uint32_t srqn;	/* all 24 bits, 0: unused entry */
	uint32_t pd, lkey, usr_page;
	uint32_t xrcd;	     /* bit 31: valid */
	uint32_t cqn;	     /* XRC, JFR: CQ of its completions */
	uint32_t users;	     /* CEU: number of QPs */
	uint32_t generation; /* counts the SRQs of this index, whose numbers may be equal */
	/* [pub] armed by the CEU (not 0), disarmed by EE when the event is raised */
	uint32_t limit;
	uint8_t stride_log, size_log, max_sge;
	uint8_t jfr;	/* a JFR of UB: Jettys use it, TAT takes its WQEs */
	uint8_t shared; /* the stages of several pipes take its WQEs */
	uint64_t start; /* virtual address of the first WQE */
	struct hca_qbuf q;
	/* line of EE, or of the EEs of all pipes */
	union {
		struct {
			uint32_t head;	   /* byte offset of the next WQE */
			uint32_t consumed; /* [pub] WQEs taken, free running */
		};
		uint64_t next; /* [pub] both; changed by compare-and-swap if shared */
	} __rte_cache_aligned;
	uint32_t producer; /* [pub] as last read; not used if shared */
	uint32_t told;	   /* [pub] SRQ_CATAS was raised */
} __rte_cache_aligned;

/* Parts of hca_srq.next. */
#define HCA_SRQ_HEAD(next) ((uint32_t)(next))
#define HCA_SRQ_CONSUMED(next) ((uint32_t)((next) >> 32))

static inline uint32_t
hca_srq_state(const struct hca_srq *s)
{
	return __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);
}

/* Whether the SRQ has its own CQ. */
static inline bool
hca_srq_has_cq(const struct hca_srq *s)
{
	return s->xrcd & HCA_SRQC_XRCD_VALID || s->jfr;
}

/* SRQ of an SRQN (all 24 bits) that is not being destroyed, or NULL. Any lcore. */
static inline struct hca_srq *
hca_srq_find(const struct hca_core *h, uint32_t srqn)
{
	struct hca_srq *s = &h->srq[srqn & __atomic_load_n(&h->srq_mask, __ATOMIC_RELAXED)];
	uint32_t state;

	if (srqn == 0 || __atomic_load_n(&s->srqn, __ATOMIC_ACQUIRE) != srqn)
		return NULL;
	state = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);
	return state == HCA_SRQ_LIVE || state == HCA_SRQ_ERROR ? s : NULL;
}

/* Stop a live SRQ from providing WQEs. EE, or the CEU when the CQ of an XRC SRQ has overrun. */
void hca_srq_fail(struct hca_srq *s);

/* hca_srq_available() for an SRQ of several pipes, or where the producer count must be read. */
int hca_srq_look(struct hca_srq *s, uint64_t *next);

/*
 * EE: whether there is a WQE: 1, 0, or -1: the producer count is invalid, or the SRQ is in error.
 * next: the state in which it is the next one, for hca_srq_peek() and hca_srq_take().
 */
static inline int
hca_srq_available(struct hca_srq *s, uint64_t *next)
{
	if (unlikely(s->shared || s->producer == s->consumed || hca_srq_state(s) != HCA_SRQ_LIVE))
		return hca_srq_look(s, next);
	*next = s->next;
	return 1;
}

/* The next WQE, if one is available. */
static inline const uint8_t *
hca_srq_peek(const struct hca_srq *s, uint64_t next)
{
	return hca_qbuf_at(&s->q, HCA_SRQ_HEAD(next));
}

/*
 * Takes the WQE of hca_srq_peek().
 *
 * @param nda_nop
 *   The word of the WQE with nda, which names the next WQE; the caller has read it once.
 * @return
 *   0; -EINVAL: nda is invalid; the SRQ is in error from now on, the WQE taken is valid; -EAGAIN:
 *   another pipe was faster, and the WQE has not been taken.
 */
int hca_srq_take(struct hca_srq *s, uint64_t next, uint32_t nda_nop);
/* The producer count in the owner's memory, a hint. Any lcore. */
uint32_t hca_srq_posted(const struct hca_srq *s);
/* EE: put the SRQ into the error state and raise its event, once. */
void hca_srq_catas(struct hca_core *h, struct hca_srq *s, enum hca_stage_id stage);
/* EE: raises the limit event if fewer than limit (not 0) WQEs are left. */
void hca_srq_limit_event(struct hca_core *h, struct hca_srq *s, uint32_t limit,
			 enum hca_stage_id stage);
/* EE: number of WQEs posted and not taken, by the current producer count. */
uint32_t hca_srq_count(struct hca_srq *s);

/* EE: the same if the limit is armed. */
static inline void
hca_srq_check_limit(struct hca_core *h, struct hca_srq *s, enum hca_stage_id stage)
{
	uint32_t limit = __atomic_load_n(&s->limit, __ATOMIC_ACQUIRE);

	if (unlikely(limit != 0))
		hca_srq_limit_event(h, s, limit, stage);
}

#endif
