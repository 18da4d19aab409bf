/* SPDX-License-Identifier: BSD-3-Clause */

/* The tables of contexts that the engine uses. */

#include <errno.h>

#include <rte_malloc.h>

#include "ctxmgt/ctxmgt.h"
#include "engine/impl.h"

static void *
table_new(struct hca *h, const char *name, size_t n, size_t size)
{
	return rte_zmalloc_socket(name, n * size, RTE_CACHE_LINE_SIZE, h->cfg.socket_id);
}

int
hca_ctxmgt_init(struct hca *h)
{
	h->qp = table_new(h, "hca_qp", (size_t)h->qp_mask + 1, sizeof(*h->qp));
	h->cq = table_new(h, "hca_cq", (size_t)h->cq_mask + 1, sizeof(*h->cq));
	h->srq = table_new(h, "hca_srq", (size_t)h->srq_mask + 1, sizeof(*h->srq));
	h->ctxmgt = table_new(h, "hca_ctxmgt", 1, sizeof(*h->ctxmgt));
	if (h->qp == NULL || h->cq == NULL || h->srq == NULL || h->ctxmgt == NULL) {
		hca_ctxmgt_fini(h);
		return -ENOMEM;
	}
	rte_spinlock_init(&h->ctxmgt->dma.lock);
	hca_addr_reset(h->ctxmgt);
	return 0;
}

void
hca_ctxmgt_fini(struct hca *h)
{
	if (h->ctxmgt != NULL)
		hca_icm_unmap_all(h);
	rte_free(h->ctxmgt);
	rte_free(h->srq);
	rte_free(h->cq);
	rte_free(h->qp);
	h->ctxmgt = NULL;
	h->srq = NULL;
	h->cq = NULL;
	h->qp = NULL;
}
