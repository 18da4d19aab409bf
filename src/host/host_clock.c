/* SPDX-License-Identifier: BSD-3-Clause */

/* The time of day, which completions show. No thread waits by it. */

#include <time.h>

#include "host.h"

uint64_t
hca_host_wall_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
