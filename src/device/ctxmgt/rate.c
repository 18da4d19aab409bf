/* SPDX-License-Identifier: BSD-3-Clause */

#include <rte_common.h>

#include "ctxmgt/rate.h"

/* X(code, Mb/s) */
#define RATE_LIST(X) \
	X(2, 2500) \
	X(3, 10000) \
	X(4, 30000) \
	X(5, 5000) \
	X(6, 20000) \
	X(7, 40000) \
	X(8, 60000) \
	X(9, 80000) \
	X(10, 120000) \
	X(11, 14000) \
	X(12, 56000) \
	X(13, 112000) \
	X(14, 168000) \
	X(15, 25000) \
	X(16, 100000) \
	X(17, 200000) \
	X(18, 300000) \
	X(19, 28000) \
	X(20, 50000) \
	X(21, 400000) \
	X(22, 600000)

uint32_t
hca_rate_limit_pace(uint32_t kbps)
{
	const uint64_t one = UINT64_C(8000000000); /* 8 bits at 1 kb/s */

	return kbps != 0 ? (uint32_t)((one + kbps - 1) / kbps) : 0;
}

bool
hca_rate_pace(uint32_t code, uint32_t *pace)
{
	static const uint32_t rate[] = {
#define X(c, mbps) [c] = mbps,
		RATE_LIST(X)
#undef X
	};

	*pace = 0;
	if (code == 0)
		return true;
	if (code >= RTE_DIM(rate) || rate[code] == 0)
		return false;
	*pace = 8000000 / rate[code]; /* 8 bits at 1 bit per microsecond and Mb/s */
	return true;
}
