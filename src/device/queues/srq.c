/* SPDX-License-Identifier: BSD-3-Clause */

#include "abi_cqe.h"
#include "abi_ctx.h"
#include "abi_wqe.h"
#include "core/core.h"
#include "queues/eq.h"
#include "queues/srq.h"

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

int
hca_srq_available(struct hca_srq *s)
{
	if (s->producer == s->consumed)
		read_producer(s);
	if (unlikely(__atomic_load_n(&s->state, __ATOMIC_ACQUIRE) != HCA_SRQ_LIVE))
		return -1;
	return s->producer != s->consumed;
}

const uint8_t *
hca_srq_peek(const struct hca_srq *s, uint32_t *off)
{
	*off = s->head;
	return hca_qbuf_at(&s->q, s->head);
}

bool
hca_srq_take(struct hca_srq *s, uint32_t nda_nop)
{
	uint32_t next = HCA_NEXT_NDA(nda_nop), bytes = 1u << (s->size_log + s->stride_log);

	__atomic_store_n(&s->consumed, s->consumed + 1, __ATOMIC_RELAXED);
	if (likely(next < bytes && (next & ((1u << s->stride_log) - 1)) == 0)) {
		s->head = next;
		return true;
	}
	hca_srq_fail(s);
	return false;
}

uint32_t
hca_srq_count(struct hca_srq *s)
{
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
	if (s->told)
		return;
	s->told = true;
	HCA_COUNT_AT(h, stage, HCA_CTR_srq_catas);
	hca_eq_raise_srq(h, stage, HCA_EVENT_SRQ_CATAS, (uint32_t)(s - h->srq));
}
