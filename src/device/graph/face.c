/* SPDX-License-Identifier: BSD-3-Clause */

/* The composer's functions of a device (hca.h): registers, DMA windows and usage. */

#include <errno.h>
#include <string.h>

#include "cc/cc.h"
#include "ctxmgt/ctxmgt.h"
#include "requester/doorbell.h"
#include "engine/impl.h"
#include "requester/record_pool.h"
#include "engine/timer.h"
#include "queues/eq.h"

volatile void *
hca_bar0(struct hca *h)
{
	return h->core->bar0;
}

volatile void *
hca_bar2(struct hca *h)
{
	return h->core->bar2;
}

const char *
hca_congestion(const struct hca *h)
{
	const struct hca_cc *cc = h->core->cc_room;

	return cc->row[__atomic_load_n(&cc->number, __ATOMIC_RELAXED)]->name;
}

uint32_t
hca_congestion_parameter(const struct hca *h, uint32_t number)
{
	const struct hca_config *c = &h->core->cfg;

	switch (number) {
#define X(name) \
	case HCA_CC_##name: \
		return __atomic_load_n(&c->name, __ATOMIC_RELAXED);
		HCA_CC_PARAMETER_LIST(X)
#undef X
	default:
		return 0;
	}
}

unsigned int
hca_workers(const struct hca *h)
{
	return h->num_workers;
}

unsigned int
hca_pipelines(const struct hca *h)
{
	return h->n_pipes;
}

int
hca_uar_undivide(struct hca *h, uint32_t page, bool undivided)
{
	uint64_t bit = 1ull << page % 64;

	if (page >= HCA_UAR_PAGES)
		return -EINVAL;
	if (undivided)
		__atomic_fetch_or(&h->undivided[page / 64], bit, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(&h->undivided[page / 64], ~bit, __ATOMIC_RELAXED);
	return 0;
}

static void
page_open(struct hca *h, uint32_t page, bool open)
{
	uint64_t word = __atomic_load_n(&h->undivided[page / 64], __ATOMIC_RELAXED);
	uint32_t parts = (word >> page % 64 & 1) != 0 ? 1 : h->n_pipes;

	for (unsigned int n = 0; n < h->n_pipes; n++)
		hca_doorbell_page_open(&h->pipe[n], page, open ? parts : 0);
}

/*
 * A domain other than the driver's is a client: its doorbell page is in use from its first window
 * to its last.
 */
int
hca_dma_attach(struct hca *h, uint32_t domain, uint64_t bus, uint64_t len)
{
	bool first = false;
	int rc = hca_dma_window_add(hca_core(h), domain, bus, len, &first);

	if (rc == 0 && first && domain != 0)
		page_open(h, domain, true);
	return rc;
}

int
hca_dma_detach(struct hca *h, uint32_t domain, uint64_t bus, uint64_t len)
{
	bool last = false;
	int rc = hca_dma_window_remove(hca_core(h), domain, bus, len, &last);

	if (rc != 0)
		return rc;
	/* live regions on it would keep accessing memory that no longer belongs to the client */
	if (hca_vtp_uncovered(hca_core(h), domain, bus, len)) {
		hca_dma_window_add(hca_core(h), domain, bus, len, &last);
		return -EBUSY;
	}
	if (last && domain != 0)
		page_open(h, domain, false);
	return 0;
}

/* atomic, because the CEU may be changing it */
#define LIVE(word, free) (__atomic_load_n(&(word), __ATOMIC_RELAXED) != (free))

static uint32_t
live_contexts(const struct hca_core *h, struct hca_usage *u)
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

static uint32_t
message_bytes_per_qp(const struct hca_pipe *p)
{
	uint32_t bytes = 0;

	for (unsigned int f = 0; f < HCA_STAGE_N; f++)
		for (unsigned int t = 0; t < HCA_STAGE_N; t++)
			bytes += p->msg[f][t] != NULL ? HCA_MSG_BYTES_PER_OBJECT : 0;
	return bytes;
}

/* Memory of a live QP, without its queues. Records belong to the HCA. */
static uint32_t
bytes_per_qp(const struct hca *h, uint32_t qps)
{
	uint64_t own = __atomic_load_n(&h->core->qp_own_bytes, __ATOMIC_RELAXED);
	size_t share = sizeof(struct hca_qp) + sizeof(struct hca_timer_entry) +
		       hca_eqs_bytes_per_qp(hca_core(h));

	for (unsigned int n = 0; n < h->n_pipes; n++)
		share += message_bytes_per_qp(&h->pipe[n]);
	return (uint32_t)(share + (qps != 0 ? own / qps : 0));
}

/* Work that waits between the stages of a pipe. */
static void
add_waiting(const struct hca_pipe *p, struct hca_usage *u)
{
	u->backlog += __atomic_load_n(&p->backlog, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < HCA_EDGE_N; i++)
		if (p->edge[i].ring != NULL)
			u->edge_objects += hca_ring_count(p->edge[i].ring);
	u->edge_objects += hca_loopback_count(p);
	for (unsigned int f = 0; f < HCA_STAGE_N; f++)
		for (unsigned int t = 0; t < HCA_STAGE_N; t++)
			if (p->msg[f][t] != NULL)
				u->messages += hca_msg_count(p->msg[f][t]);
}

static void
add_pools(const struct hca_pipe *p, struct hca_usage *u)
{
	for (unsigned int w = 0; w < HCA_WIRE_ROWS; w++) {
		u->records += hca_record_pool_in_use(&p->records[w].small);
		u->full_records += hca_record_pool_in_use(&p->records[w].full);
	}
	u->tx_mbufs += rte_mempool_in_use_count(p->tx_pool);
	u->resp_mbufs += rte_mempool_in_use_count(p->resp_pool);
}

void
hca_usage(const struct hca *h, struct hca_usage *u)
{
	memset(u, 0, sizeof(*u));
	for (unsigned int n = 0; n < h->n_pipes; n++) {
		add_pools(&h->pipe[n], u);
		add_waiting(&h->pipe[n], u);
	}
	u->qp_bytes = bytes_per_qp(h, live_contexts(h->core, u));
	if (u->qps != 0)
		u->qp_job_bytes =
			(uint32_t)(__atomic_load_n(&h->core->qp_job_bytes, __ATOMIC_RELAXED) /
				   u->qps);
}
