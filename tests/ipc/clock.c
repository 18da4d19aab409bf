/* SPDX-License-Identifier: BSD-3-Clause */

/* Preloaded library: the time of day jumps forward and back by days, at each call that reads it. */

#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define DAYS 86400
#define PUBLIC __attribute__((visibility("default")))

static time_t
jump(void)
{
	static unsigned int calls;

	return (time_t)(__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) % 7) * 3 * DAYS - 9 * DAYS;
}

PUBLIC int
clock_gettime(clockid_t clock, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, ts);

	if (rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		ts->tv_sec += jump();
	return rc;
}

PUBLIC int
gettimeofday(struct timeval *tv, void *zone)
{
	struct timespec ts;
	int rc = clock_gettime(CLOCK_REALTIME, &ts);

	(void)zone;
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return rc;
}

PUBLIC time_t
time(time_t *out)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (out != NULL)
		*out = ts.tv_sec;
	return ts.tv_sec;
}
