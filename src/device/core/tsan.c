/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory pools under ThreadSanitizer: their rings are in a library that is not instrumented, so the
 * two operations that move objects are wrapped. Empty in other builds.
 */

#include <stdint.h>

#include <rte_common.h>
#include <rte_lcore.h>
#include <rte_mempool.h>

#include "core/tsan.h"

#ifdef HCA_TSAN

/* The library's original table; global to the process, whatever HCAs exist. */
static struct {
	rte_mempool_enqueue_t enqueue;
	rte_mempool_dequeue_t dequeue;
} real[RTE_MEMPOOL_MAX_OPS_IDX];

static const char cache_of[RTE_MAX_LCORE + 1];

static int
watched_enqueue(struct rte_mempool *mp, void *const *objs, unsigned int n)
{
	hca_tsan_give_all(objs, n);
	return real[mp->ops_index].enqueue(mp, objs, n);
}

static int
watched_dequeue(struct rte_mempool *mp, void **objs, unsigned int n)
{
	int rc = real[mp->ops_index].dequeue(mp, objs, n);

	if (rc == 0)
		hca_tsan_take_all(objs, n);
	return rc;
}

void
hca_tsan_watch_pools(void)
{
	for (uint32_t i = 0; i < rte_mempool_ops_table.num_ops; i++) {
		struct rte_mempool_ops *ops = &rte_mempool_ops_table.ops[i];

		if (ops->enqueue == watched_enqueue)
			continue;
		real[i].enqueue = ops->enqueue;
		real[i].dequeue = ops->dequeue;
		ops->dequeue = watched_dequeue;
		ops->enqueue = watched_enqueue;
	}
}

static const char *
own_cache(void)
{
	unsigned int lcore = rte_lcore_id();

	return &cache_of[lcore < RTE_MAX_LCORE ? lcore : RTE_MAX_LCORE];
}

void
hca_tsan_take_caches(void)
{
	hca_tsan_take(own_cache());
}

void
hca_tsan_give_caches(void)
{
	hca_tsan_give(own_cache());
}

#endif
