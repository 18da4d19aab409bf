/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>

#include "abi_cqe.h"
#include "abi_ctx.h"
#include "abi_wqe.h"
#include "core/core.h"
#include "queues/eq.h"
#include "queues/srq.h"

#define HEAD_NONE UINT32_MAX /* the SRQ is in error: the next WQE is not known */

/* Not while the CEU is destroying it: the state must stay DYING, or lookups would find it again. */
void
hca_srq_fail(struct hca_srq *s)
{
	uint32_t live = HCA_SRQ_LIVE;

	__atomic_compare_exchange_n(&s->state, &live, HCA_SRQ_ERROR, false, __ATOMIC_ACQ_REL,
				    __ATOMIC_RELAXED);
}

uint32_t
hca_srq_posted(const struct hca_srq *s)
{
	return hca_rq_posted(&s->q, s->size_log + s->stride_log);
}

static void
read_producer(struct hca_srq *s)
{
	uint32_t producer = hca_srq_posted(s);

	if (producer - s->consumed > 1u << s->size_log)
		hca_srq_fail(s);
	else
		__atomic_store_n(&s->producer, producer, __ATOMIC_RELAXED);
}

/* Other pipes may take WQEs between the two loads: the count is judged if none has. */
static int
available_shared(struct hca_srq *s, uint64_t *next)
{
	uint32_t left;

	do {
		*next = __atomic_load_n(&s->next, __ATOMIC_ACQUIRE);
		if (unlikely(hca_srq_state(s) != HCA_SRQ_LIVE || HCA_SRQ_HEAD(*next) == HEAD_NONE))
			return -1;
		left = hca_srq_posted(s) - HCA_SRQ_CONSUMED(*next);
		if (likely(left <= 1u << s->size_log))
			return left != 0;
	} while (__atomic_load_n(&s->next, __ATOMIC_ACQUIRE) != *next);
	hca_srq_fail(s);
	return -1;
}

int
hca_srq_look(struct hca_srq *s, uint64_t *next)
{
	if (unlikely(s->shared))
		return available_shared(s, next);
	if (s->producer == s->consumed)
		read_producer(s);
	*next = s->next;
	if (unlikely(hca_srq_state(s) != HCA_SRQ_LIVE))
		return -1;
	return s->producer != s->consumed;
}

int
hca_srq_take(struct hca_srq *s, uint64_t next, uint32_t nda_nop)
{
	uint32_t head = HCA_NEXT_NDA(nda_nop), bytes = 1u << (s->size_log + s->stride_log);
	bool valid = likely(head < bytes && (head & ((1u << s->stride_log) - 1)) == 0);
	uint64_t after = (uint64_t)(HCA_SRQ_CONSUMED(next) + 1) << 32 | (valid ? head : HEAD_NONE);

	if (likely(!s->shared))
		__atomic_store_n(&s->next, after, __ATOMIC_RELAXED);
	else if (!__atomic_compare_exchange_n(&s->next, &next, after, false, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED))
		return -EAGAIN;
	if (likely(valid))
		return 0;
	hca_srq_fail(s);
	return -EINVAL;
}

uint32_t
hca_srq_count(struct hca_srq *s)
{
	if (s->shared)
		return hca_srq_posted(s) -
		       HCA_SRQ_CONSUMED(__atomic_load_n(&s->next, __ATOMIC_RELAXED));
	read_producer(s);
	return s->producer - s->consumed;
}

void
hca_srq_limit_event(struct hca_core *h, struct hca_srq *s, uint32_t limit, enum hca_stage_id stage)
{
	if (hca_srq_count(s) >= limit)
		return;
	/* the CEU may arm another limit at the same time: only this one has fired */
	if (!__atomic_compare_exchange_n(&s->limit, &limit, 0, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	HCA_COUNT_AT(h, stage, HCA_CTR_srq_limit_events);
	hca_eq_raise_srq(h, stage, HCA_EVENT_SRQ_LIMIT, (uint32_t)(s - h->srq));
}

void
hca_srq_catas(struct hca_core *h, struct hca_srq *s, enum hca_stage_id stage)
{
	if (__atomic_exchange_n(&s->told, 1, __ATOMIC_RELAXED) != 0)
		return;
	HCA_COUNT_AT(h, stage, HCA_CTR_srq_catas);
	hca_eq_raise_srq(h, stage, HCA_EVENT_SRQ_CATAS, (uint32_t)(s - h->srq));
}
