/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/table.h"
#include "core/ring_count.h"
#include "ctxmgt/ctxmgt.h"
#include "engine/impl.h"
#include "requester/record_pool.h"

static void
pool_fini(struct hca_record_pool *p)
{
	rte_ring_free(p->free);
	hca_table_free(p->mem);
	hca_table_free(p->stack);
	hca_table_free(p->owner);
	hca_table_free(p->owner_qps);
	p->owner = NULL;
	p->owner_qps = NULL;
	p->free = NULL;
	p->mem = NULL;
	p->stack = NULL;
}

/* References are indexes ORed with mark. */
static int
pool_init(struct hca_pipe *h, enum hca_wire wire, struct hca_record_pool *p, uint32_t count,
	  uint32_t size, uint32_t mark)
{
	char name[RTE_RING_NAMESIZE];

	memset(p, 0, sizeof(*p));
	p->count = count;
	p->mark = mark;
	snprintf(name, sizeof(name), "%s.%u.rec%s%u", h->cfg.name, h->pipe_number,
		 mark != 0 ? "f" : "", wire);
	p->free = rte_ring_create_elem(name, sizeof(uint32_t), count, h->cfg.socket_id,
				       RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
	p->mem = hca_table_alloc(count, size, h->cfg.socket_id);
	p->stack = hca_table_alloc(count, sizeof(uint32_t), h->cfg.socket_id);
	p->owner = hca_table_alloc(HCA_DMA_DOMAINS, sizeof(*p->owner), h->cfg.socket_id);
	p->owner_qps = hca_table_alloc(HCA_DMA_DOMAINS, sizeof(*p->owner_qps), h->cfg.socket_id);
	if (p->free == NULL || p->mem == NULL || p->stack == NULL || p->owner == NULL ||
	    p->owner_qps == NULL) {
		pool_fini(p);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < HCA_DMA_DOMAINS; i++)
		p->owner[i].wait_head = p->owner[i].wait_tail = UINT32_MAX;
	/* lowest on top, so that the first records used are adjacent */
	for (uint32_t i = 0; i < count; i++)
		p->stack[i] = (count - 1 - i) | mark;
	p->stack_n = count;
	return 0;
}

int
hca_record_pools_init(struct hca_pipe *h, enum hca_wire wire, const struct hca_record_sizes *s)
{
	struct hca_record_pools *p = &h->records[wire];
	int rc = pool_init(h, wire, &p->small, s->small, s->small_bytes, 0);

	return rc == 0 ? pool_init(h, wire, &p->full, s->full, s->full_bytes, HCA_RECREF_FULL) : rc;
}

void
hca_record_pools_fini(struct hca_pipe *h, enum hca_wire wire)
{
	pool_fini(&h->records[wire].full);
	pool_fini(&h->records[wire].small);
}

uint32_t
hca_record_pool_in_use(const struct hca_record_pool *p)
{
	uint32_t idle;

	if (p->free == NULL)
		return 0;
	idle = hca_ring_count(p->free) + __atomic_load_n(&p->stack_n, __ATOMIC_RELAXED);
	/* the parser may be moving some from one place to the other */
	return idle < p->count ? p->count - idle : 0;
}

int
hca_record_reserve_qp(struct hca_pipe *h, uint32_t service, uint32_t usr_page, int delta)
{
	struct hca_record_pools *of = hca_record_pools_of(h, service);
	struct hca_record_pool *pools[] = {&of->small, &of->full};

	for (unsigned int i = 0; delta > 0 && i < RTE_DIM(pools); i++)
		if ((pools[i]->reserved_qps + 1) * HCA_RECORDS_PER_QP_RESERVED > pools[i]->count)
			return -ENOMEM;
	for (unsigned int i = 0; i < RTE_DIM(pools); i++) {
		struct hca_record_pool *p = pools[i];
		uint16_t before = p->owner_qps[usr_page];
		uint16_t after = before + delta;

		p->owner_qps[usr_page] = after;
		__atomic_store_n(&p->owners, p->owners + (before == 0) - (after == 0),
				 __ATOMIC_RELAXED);
		__atomic_store_n(&p->reserved_qps, p->reserved_qps + delta, __ATOMIC_RELAXED);
	}
	return 0;
}

void
hca_record_pool_refill(struct hca_record_pool *p)
{
	uint32_t n = p->stack_n;

	n += rte_ring_sc_dequeue_burst_elem(p->free, &p->stack[n], sizeof(uint32_t), p->count - n,
					    NULL);
	hca_record_set_stack(p, n);
}
