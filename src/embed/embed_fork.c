/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory of the EAL stays shared after fork(): calls of a child on an HCA would change the parent's
 * rings and queues, but not its heap. So it is refused.
 */

#include <pthread.h>

#include "embed_ctl.h"

static uint32_t forks;

static void
count_fork(void)
{
	forks++;
}

static void
watch_forks(void)
{
	pthread_atfork(NULL, NULL, count_fork);
}

uint32_t
embed_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	return forks;
}
