/* SPDX-License-Identifier: BSD-3-Clause */

/* The tables of contexts that the engine uses. */

#include <errno.h>

#include <rte_malloc.h>

#include "core/core.h"
#include "ctxmgt/ctxmgt.h"
#include "ctxmgt/qp.h"

static void *
table_new(struct hca_core *h, const char *name, size_t n, size_t size)
{
	return rte_zmalloc_socket(name, n * size, RTE_CACHE_LINE_SIZE, h->cfg.socket_id);
}

int
hca_ctxmgt_init(struct hca_core *h)
{
	h->qp = table_new(h, "hca_qp", (size_t)h->qp_mask + 1, sizeof(*h->qp));
	h->ctxmgt = table_new(h, "hca_ctxmgt", 1, sizeof(*h->ctxmgt));
	if (h->qp == NULL || h->ctxmgt == NULL) {
		hca_ctxmgt_fini(h);
		return -ENOMEM;
	}
	rte_spinlock_init(&h->ctxmgt->dma.lock);
	hca_addr_reset(h->ctxmgt);
	return 0;
}

void
hca_ctxmgt_fini(struct hca_core *h)
{
	if (h->ctxmgt != NULL)
		hca_icm_unmap_all(h);
	rte_free(h->ctxmgt);
	rte_free(h->qp);
	h->ctxmgt = NULL;
	h->qp = NULL;
}
