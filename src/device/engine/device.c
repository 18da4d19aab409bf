/* SPDX-License-Identifier: BSD-3-Clause */

/* Sums over the pipes of a device, and the link of its port (hca.h). Any thread. */

#include "engine/impl.h"

uint64_t
hca_pipe_counter_value(const struct hca *h, unsigned int pipe, unsigned int i)
{
	uint64_t sum = 0;

	for (unsigned int s = 0; i < HCA_CTR_N && s < HCA_STAGE_N; s++)
		sum += __atomic_load_n(&h->pipe[pipe].line[s].counters[i], __ATOMIC_RELAXED);
	return sum;
}

uint64_t
hca_counter_value(const struct hca *h, unsigned int i)
{
	uint64_t sum = 0;

	for (unsigned int n = 0; n < h->n_pipes; n++)
		sum += hca_pipe_counter_value(h, n, i);
	return sum;
}

/* As reported by PORT_CHANGE events, which the first pipe raises. */
bool
hca_port_link_up(const struct hca *h)
{
	return __atomic_load_n(&h->core->link_down, __ATOMIC_RELAXED) == 0;
}

bool
hca_port_discarding(const struct hca *h)
{
	for (unsigned int n = 0; n < h->n_pipes; n++)
		if (__atomic_load_n(&h->pipe[n].discarding, __ATOMIC_RELAXED))
			return true;
	return false;
}
