/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory of a device's UB: made with the device, or not at all. */

#include <errno.h>

#include <rte_malloc.h>

#include "core/core.h"
#include "core/table.h"
#include "ub/ub.h"
#include "wire/wire_view.h"

static int
pool_create(struct hca_core *h, struct hca_ub *ub, uint32_t lane)
{
	struct hca_ta_op_pool *p = &ub->pool[lane];

	p->count = h->cfg.ub_ops;
	ub->ops.op[lane] = hca_table_alloc(p->count, sizeof(struct hca_ta_op), h->cfg.socket_id);
	p->free = hca_table_alloc(p->count, sizeof(*p->free), h->cfg.socket_id);
	if (ub->ops.op[lane] == NULL || p->free == NULL)
		return -ENOMEM;
	/* the lowest index is taken first */
	while (p->free_n < p->count) {
		p->free[p->free_n] = p->count - 1 - p->free_n;
		p->free_n++;
	}
	return 0;
}

static int
tables_create(struct hca_core *h, struct hca_ub *ub)
{
	size_t tps = (size_t)1 << h->cfg.log_tps, mpts = (size_t)1 << h->cfg.log_mpts;
	int socket = h->cfg.socket_id;

	ub->tp_mask = (uint32_t)tps - 1;
	ub->tp = hca_table_alloc(tps, sizeof(*ub->tp), socket);
	ub->tpg = hca_table_alloc(tps, sizeof(*ub->tpg), socket);
	ub->token = hca_table_alloc(mpts, sizeof(*ub->token), socket);
	ub->known = hca_table_alloc(HCA_TC_WELL_KNOWN, sizeof(*ub->known), socket);
	ub->jetty = hca_table_alloc((size_t)1 << h->cfg.log_qps, sizeof(*ub->jetty), socket);
	ub->jfr = hca_table_alloc((size_t)1 << h->cfg.log_srqs, sizeof(*ub->jfr), socket);
	if (ub->tp == NULL || ub->tpg == NULL || ub->token == NULL || ub->known == NULL)
		return -ENOMEM;
	return ub->jetty != NULL && ub->jfr != NULL ? 0 : -ENOMEM;
}

int
hca_ub_create(struct hca_core *h)
{
	int rc;

	if (!(h->cfg.wires & HCA_WIRE_BIT(HCA_WIRE_UB)))
		return 0;
	h->ub = rte_zmalloc_socket("hca_ub", sizeof(*h->ub), RTE_CACHE_LINE_SIZE, h->cfg.socket_id);
	if (h->ub == NULL)
		return -ENOMEM;
	rc = tables_create(h, h->ub);
	for (uint32_t lane = 0; rc == 0 && lane < HCA_TP_LANES; lane++)
		rc = pool_create(h, h->ub, lane);
	if (rc != 0)
		hca_ub_destroy(h);
	return rc;
}

void
hca_ub_destroy(struct hca_core *h)
{
	struct hca_ub *ub = h->ub;

	if (ub == NULL)
		return;
	for (uint32_t lane = 0; lane < HCA_TP_LANES; lane++) {
		hca_table_free(ub->pool[lane].free);
		hca_table_free(ub->ops.op[lane]);
	}
	hca_table_free(ub->jfr);
	hca_table_free(ub->jetty);
	hca_table_free(ub->known);
	hca_table_free(ub->token);
	hca_table_free(ub->tpg);
	hca_table_free(ub->tp);
	rte_free(ub);
	h->ub = NULL;
}
