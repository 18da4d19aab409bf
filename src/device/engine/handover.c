/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stdio.h>

#include "ctxmgt/ctxmgt.h"
#include "engine/handover.h"
#include "engine/impl.h"
#include "wire/roce_qpn.h"

int
hca_handover_init(struct hca_pipe *h, struct hca_handover *o, const char *kind, uint32_t frames,
		  uint32_t pipes)
{
	char name[RTE_RING_NAMESIZE];

	for (unsigned int n = 0; n < HCA_PIPES_MAX; n++) {
		if ((pipes >> n & 1) == 0)
			continue;
		snprintf(name, sizeof(name), "%s.%u.%s%u", h->cfg.name, h->pipe_number, kind, n);
		o->to[n] = rte_ring_create(name, frames, h->cfg.socket_id,
					   RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
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
		rte_ring_free(o->to[n]);
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
