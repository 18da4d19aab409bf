/* SPDX-License-Identifier: BSD-3-Clause */

/* The tables of contexts that the engine uses. */

#include <errno.h>

#include "core/core.h"
#include "core/table.h"
#include "ctxmgt/ctxmgt.h"
#include "ctxmgt/qp.h"

int
hca_ctxmgt_init(struct hca_core *h)
{
	h->qp = hca_table_alloc((size_t)h->qp_mask + 1, sizeof(*h->qp), h->cfg.socket_id);
	h->ctxmgt = hca_table_alloc(1, sizeof(*h->ctxmgt), h->cfg.socket_id);
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
	hca_table_free(h->ctxmgt);
	hca_table_free(h->qp);
	h->ctxmgt = NULL;
	h->qp = NULL;
}
