/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory of the event queues: a word, a link and a place on the rings for each object. */

#include <errno.h>
#include <string.h>

#include <rte_malloc.h>
#include <rte_ring_elem.h>

#include "queues/eq.h"
#include "queues/eq_impl.h"
#include "wire/wire_view.h"

static struct rte_ring *
ring_new(struct hca_core *h, uint32_t objects)
{
	uint32_t n = rte_align32pow2(objects + 1);
	ssize_t size = rte_ring_get_memsize_elem(sizeof(uint32_t), n);
	struct rte_ring *r;

	if (size < 0)
		return NULL;
	r = rte_zmalloc_socket("hca_eq_ring", size, RTE_CACHE_LINE_SIZE, h->cfg.socket_id);
	if (r != NULL)
		rte_ring_init(r, "hca_eq", n, RING_F_SP_ENQ | RING_F_SC_DEQ);
	return r;
}

static void *
words_new(struct hca_core *h, size_t n, size_t size)
{
	return rte_zmalloc_socket("hca_eq", n * size, RTE_CACHE_LINE_SIZE, h->cfg.socket_id);
}

/* Number of TPs. A device with RoCE alone has none; 1 avoids an allocation of 0 bytes. */
static uint32_t
tps(const struct hca_core *h)
{
	return (h->cfg.wires & ~HCA_WIRE_BIT(HCA_WIRE_ROCE)) != 0 ? 1u << h->cfg.log_tps : 1;
}

static bool
tables_new(struct hca_core *h, struct hca_eqs *q)
{
	uint32_t objects = 0;
	bool ok = true;

	q->count[OBJ_CQ] = h->cq_mask + 1;
	q->count[OBJ_QP] = h->qp_mask + 1;
	q->count[OBJ_DEVICE] = 1 + EQ_MAX;
	q->count[OBJ_SRQ] = h->srq_mask + 1;
	q->count[OBJ_TP] = tps(h);
	for (unsigned int k = 0; k < OBJ_KINDS; k++) {
		q->pending[k] = words_new(h, q->count[k], sizeof(uint32_t));
		q->unsent[k] = words_new(h, q->count[k], sizeof(uint32_t));
		q->link[k] = words_new(h, q->count[k], sizeof(uint32_t));
		ok &= q->pending[k] != NULL && q->unsent[k] != NULL && q->link[k] != NULL;
		objects += q->count[k];
	}
	q->later = words_new(h, q->count[OBJ_CQ], sizeof(*q->later));
	q->later_at = words_new(h, q->count[OBJ_CQ], sizeof(*q->later_at));
	q->comp = words_new(h, q->count[OBJ_CQ], sizeof(*q->comp));
	q->tp_told = words_new(h, q->count[OBJ_TP], sizeof(*q->tp_told));
	q->parked = ring_new(h, objects);
	q->failed_cq = ring_new(h, q->count[OBJ_CQ]);
	for (unsigned int s = 0; s < HCA_STAGE_N; s++)
		q->raised[s].last = TOKEN_NONE;
	return ok && q->later != NULL && q->later_at != NULL && q->comp != NULL &&
	       q->tp_told != NULL && q->parked != NULL && q->failed_cq != NULL;
}

size_t
hca_eqs_bytes_per_qp(const struct hca_core *h)
{
	const struct hca_eqs *q = h->eqs;
	uint64_t objects = 0;

	for (unsigned int k = 0; k < OBJ_KINDS; k++)
		objects += q->count[k];
	return sizeof(*q->pending[0]) + sizeof(*q->link[0]) + sizeof(*q->unsent[0]) +
	       rte_ring_get_size(q->parked) * sizeof(uint32_t) / objects;
}

int
hca_eqs_init(struct hca_core *h)
{
	h->eqs = words_new(h, 1, sizeof(*h->eqs));
	if (h->eqs == NULL)
		return -ENOMEM;
	memset(h->eqs->type_eqn, EQN_NONE, sizeof(h->eqs->type_eqn));
	if (!tables_new(h, h->eqs)) {
		hca_eqs_fini(h);
		return -ENOMEM;
	}
	return 0;
}

void
hca_eqs_fini(struct hca_core *h)
{
	struct hca_eqs *q = h->eqs;

	if (q == NULL)
		return;
	for (uint32_t eqn = 0; eqn < EQ_MAX; eqn++)
		if (q->eq[eqn].live)
			rte_free(q->eq[eqn].q.pages);
	for (unsigned int k = 0; k < OBJ_KINDS; k++) {
		rte_free(q->pending[k]);
		rte_free(q->link[k]);
		rte_free(q->unsent[k]);
	}
	rte_free(q->failed_cq);
	rte_free(q->parked);
	rte_free(q->later);
	rte_free(q->later_at);
	rte_free(q->comp);
	rte_free(q->tp_told);
	rte_free(q);
	h->eqs = NULL;
}
