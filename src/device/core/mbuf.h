/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_MBUF_H
#define CORE_MBUF_H

/* Frames: room that their pools reserve, and how received ones go back. */

#include <rte_mbuf.h>
#include <rte_mempool.h>

#define HCA_MBUF_PRIV 128u  /* bytes of the private area: struct hca_txd or hca_rxd */
#define HCA_MBUF_DATA 4608u /* headroom, largest headers, 4096 payload, pad, ICRC */

static inline bool
hca_mbuf_is_whole(const struct rte_mbuf *m, const struct rte_mempool *pool)
{
	return m->pool == pool && rte_mbuf_refcnt_read(m) == 1 && m->nb_segs == 1 &&
	       m->next == NULL && RTE_MBUF_DIRECT(m);
}

/*
 * Frees n > 0 frames. Nearly all are single segments without another reference, of the pool of the
 * first one: those go back in one go. rte_pktmbuf_free_bulk() has the rest. Called by the stage
 * that ends a frame, on its own lcore.
 */
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
