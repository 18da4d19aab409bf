/* SPDX-License-Identifier: BSD-3-Clause */

/* The counters by number and name (hca.h). */

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
