/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_MBUF_FREE_H
#define CORE_MBUF_FREE_H

/*
 * Received frames back to their pool. Nearly all are single segments nobody else holds, of the pool
 * the first one of the burst came from: those go back in one go. rte_pktmbuf_free_bulk() has the
 * rest. Called by the stage that ends a frame, on its own lcore.
 */

#include <rte_mbuf.h>
#include <rte_mempool.h>

static inline bool
hca_mbuf_is_whole(const struct rte_mbuf *m, const struct rte_mempool *pool)
{
	return m->pool == pool && rte_mbuf_refcnt_read(m) == 1 && m->nb_segs == 1 &&
	       m->next == NULL && RTE_MBUF_DIRECT(m);
}

/* n > 0 */
static inline void
hca_mbuf_free_burst(struct rte_mbuf *const *m, unsigned int n)
{
	struct rte_mempool *pool = m[0]->pool;
	unsigned int whole = 0;

	while (whole < n && likely(hca_mbuf_is_whole(m[whole], pool)))
		whole++;
	if (likely(whole != 0))
		rte_mempool_put_bulk(pool, (void *const *)m, whole);
	if (unlikely(whole != n))
		rte_pktmbuf_free_bulk((struct rte_mbuf **)(uintptr_t)(m + whole), n - whole);
}

#endif
