/* SPDX-License-Identifier: BSD-3-Clause */

/* Changes of QP states by stages, counters and usage, shared by all stages. */

#include <errno.h>
#include <string.h>

#include "abi_ctx.h"
#include "ceu/qp.h"
#include "engine/impl.h"
#include "engine/record_pool.h"
#include "engine/timer.h"
#include "queues/eq.h"

static void
tell_state(struct hca *h, enum hca_stage_id from, uint32_t qpi)
{
	static const uint8_t told[] = {HCA_STAGE_PARSER, HCA_STAGE_RTC, HCA_STAGE_RRC,
				       HCA_STAGE_EE};

	for (unsigned int i = 0; i < RTE_DIM(told); i++)
		if (told[i] != from && h->msg[from][told[i]] != NULL)
			hca_msg_send(h, from, told[i], qpi, HCA_MSG_STATE);
}

bool
hca_qp_to_error(struct hca *h, enum hca_stage_id from, uint32_t qpi)
{
	struct hca_qp *qp = &h->qp[qpi];
	uint32_t state;

	do {
		state = hca_qp_state(qp);
		if (state == HCA_QPS_ERR || state == HCA_QPS_RST)
			return false;
	} while (!hca_qp_state_cas(qp, state, HCA_QPS_ERR));

	tell_state(h, from, qpi);
	return true;
}

bool
hca_qp_to_sq_error(struct hca *h, enum hca_stage_id from, uint32_t qpi)
{
	struct hca_qp *qp = &h->qp[qpi];

	if (!hca_qp_state_cas(qp, HCA_QPS_RTS, HCA_QPS_SQE) &&
	    !hca_qp_state_cas(qp, HCA_QPS_SQD, HCA_QPS_SQE))
		return false;
	tell_state(h, from, qpi);
	return true;
}

static const char *const counter_names[HCA_CTR_N] = {
#define X(n) [HCA_CTR_##n] = #n,
	HCA_COUNTER_LIST(X)
#undef X
};

unsigned int
hca_counter_count(void)
{
	return HCA_CTR_N;
}

const char *
hca_counter_name(unsigned int i)
{
	return i < HCA_CTR_N ? counter_names[i] : NULL;
}

uint64_t
hca_counter_value(const struct hca *h, unsigned int i)
{
	uint64_t sum = 0;

	if (i >= HCA_CTR_N)
		return 0;
	for (unsigned int s = 0; s < HCA_STAGE_N; s++)
		sum += __atomic_load_n(&h->line[s].counters[i], __ATOMIC_RELAXED);
	return sum;
}

/* atomic, because the CEU may be changing it */
#define LIVE(word, free) (__atomic_load_n(&(word), __ATOMIC_RELAXED) != (free))

static uint32_t
live_contexts(const struct hca *h, struct hca_usage *u)
{
	uint32_t qp_mask = __atomic_load_n(&h->qp_mask, __ATOMIC_RELAXED);
	uint32_t srq_mask = __atomic_load_n(&h->srq_mask, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i <= qp_mask; i++)
		u->qps += LIVE(h->qp[i].cfg.local_qpn, 0);
	for (uint32_t i = 0; i <= h->cq_mask; i++)
		u->cqs += LIVE(h->cq[i].state, HCA_CQ_FREE);
	for (uint32_t i = 0; i <= srq_mask; i++)
		u->srqs += LIVE(h->srq[i].state, HCA_SRQ_FREE);
	for (uint32_t i = 0; i <= h->vtp.mpt_mask; i++)
		u->mpts += LIVE(h->vtp.mpt[i].state, HCA_MPT_FREE);
	return u->qps;
}

/* Memory of a live QP, without its queues. Records belong to the HCA. */
static uint32_t
bytes_per_qp(const struct hca *h, uint32_t qps)
{
	uint64_t own = __atomic_load_n(&h->qp_own_bytes, __ATOMIC_RELAXED);
	size_t share =
		sizeof(struct hca_qp) + sizeof(struct hca_timer_entry) + hca_eqs_bytes_per_qp(h);

	for (unsigned int f = 0; f < HCA_STAGE_N; f++)
		for (unsigned int t = 0; t < HCA_STAGE_N; t++)
			share += h->msg[f][t] != NULL ? HCA_MSG_BYTES_PER_OBJECT : 0;
	return (uint32_t)(share + (qps != 0 ? own / qps : 0));
}

bool
hca_port_link_up(const struct hca *h)
{
	return __atomic_load_n(&h->link_down, __ATOMIC_RELAXED) == 0;
}

bool
hca_port_discarding(const struct hca *h)
{
	return __atomic_load_n(&h->discarding, __ATOMIC_RELAXED);
}

void
hca_usage(const struct hca *h, struct hca_usage *u)
{
	memset(u, 0, sizeof(*u));
	u->records = hca_record_pool_in_use(&h->rec);
	u->full_records = hca_record_pool_in_use(&h->rec_full);
	u->tx_mbufs = rte_mempool_in_use_count(h->tx_pool);
	u->resp_mbufs = rte_mempool_in_use_count(h->resp_pool);
	u->backlog = __atomic_load_n(&h->backlog, __ATOMIC_RELAXED);
	u->qp_bytes = bytes_per_qp(h, live_contexts(h, u));
	if (u->qps != 0)
		u->qp_job_bytes =
			(uint32_t)(__atomic_load_n(&h->qp_job_bytes, __ATOMIC_RELAXED) / u->qps);
	for (unsigned int i = 0; i < HCA_EDGE_N; i++)
		if (h->edge[i].ring != NULL)
			u->edge_objects += hca_ring_count(h->edge[i].ring);
	u->edge_objects += hca_loopback_count(h);
	for (unsigned int f = 0; f < HCA_STAGE_N; f++)
		for (unsigned int t = 0; t < HCA_STAGE_N; t++)
			if (h->msg[f][t] != NULL)
				u->messages += hca_msg_count(h->msg[f][t]);
}
