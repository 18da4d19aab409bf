/* SPDX-License-Identifier: BSD-3-Clause */

/* What any thread may ask of a device (hca.h): counters by number and name, the port's link. */

#include "core/core.h"

static const char *const counter_names[HCA_CTR_N] = {
#define X(n) [HCA_CTR_##n] = #n,
	HCA_COUNTER_LIST(X)
#undef X
};

unsigned int
hca_counter_count(void)
{
	return HCA_CTR_N;
}

const char *
hca_counter_name(unsigned int i)
{
	return i < HCA_CTR_N ? counter_names[i] : NULL;
}

uint64_t
hca_counter_value(const struct hca *h, unsigned int i)
{
	uint64_t sum = 0;

	if (i >= HCA_CTR_N)
		return 0;
	for (unsigned int s = 0; s < HCA_STAGE_N; s++)
		sum += __atomic_load_n(&hca_core(h)->line[s].counters[i], __ATOMIC_RELAXED);
	return sum;
}

bool
hca_port_link_up(const struct hca *h)
{
	return __atomic_load_n(&hca_core(h)->link_down, __ATOMIC_RELAXED) == 0;
}

bool
hca_port_discarding(const struct hca *h)
{
	return __atomic_load_n(&hca_core(h)->discarding, __ATOMIC_RELAXED);
}
