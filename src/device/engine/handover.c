/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>

#include <rte_malloc.h>

#include "ctxmgt/ctxmgt.h"
#include "engine/handover.h"
#include "engine/impl.h"
#include "wire/roce_qpn.h"

/* Without a memzone: there are as many rings as pairs of pipes, and DPDK has 2,560 memzones. */
static struct rte_ring *
ring_new(const struct hca_pipe *h, const char *kind, unsigned int to, uint32_t frames)
{
	uint32_t count = rte_align32pow2(frames + 1);
	struct rte_ring *r = rte_zmalloc_socket(kind, (size_t)rte_ring_get_memsize(count),
						RTE_CACHE_LINE_SIZE, h->cfg.socket_id);
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "%s.%u.%s%u", h->cfg.name, h->pipe_number, kind, to);
	if (r != NULL &&
	    rte_ring_init(r, name, frames, RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ) != 0) {
		rte_free(r);
		r = NULL;
	}
	return r;
}

int
hca_handover_init(struct hca_pipe *h, struct hca_handover *o, const char *kind, uint32_t frames,
		  uint32_t pipes)
{
	for (unsigned int n = 0; n < HCA_PIPES_MAX; n++) {
		if ((pipes >> n & 1) == 0)
			continue;
		o->to[n] = ring_new(h, kind, n, frames);
		if (o->to[n] == NULL)
			return -ENOMEM;
	}
	return 0;
}

void
hca_handover_fini(struct hca_handover *o)
{
	void *m;

	for (unsigned int n = 0; n < HCA_PIPES_MAX; n++) {
		while (o->to[n] != NULL && rte_ring_dequeue(o->to[n], &m) == 0)
			rte_pktmbuf_free(m);
		rte_free(o->to[n]);
		o->to[n] = NULL;
	}
}

unsigned int
hca_pipe_of_frame(const struct hca_core *h, const uint8_t *frame, uint32_t len)
{
	uint32_t qpn = hca_roce_qpn(frame, len);

	if (unlikely(qpn == HCA_QPN_MULTICAST))
		return HCA_PIPE_ALL;
	if (unlikely(qpn == HCA_QPN_GSI))
		qpn = __atomic_load_n(&h->ctxmgt->gsi_qpn, __ATOMIC_ACQUIRE);
	return qpn & h->pipe_mask;
}
