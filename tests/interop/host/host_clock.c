/* SPDX-License-Identifier: BSD-3-Clause */

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "host_clock.h"

#define TSC_US 100000u
#define TSC_TRIES 64u

void
host_clock_begin(struct host_clock *c, uint64_t asked, uint64_t heard, uint64_t said)
{
	c->first = c->last = (struct host_moment){asked, heard, said};
}

void
host_clock_heard(struct host_clock *c, uint64_t asked, uint64_t heard, uint64_t said)
{
	c->last = (struct host_moment){asked, heard, said};
}

bool
host_clock_is_wrong(const struct host_clock *c, char *text, size_t room)
{
	const struct host_moment *a = &c->first, *b = &c->last;
	uint64_t least = b->asked > a->heard ? b->asked - a->heard : 0;
	uint64_t most = b->heard - a->asked;
	uint64_t went = b->said > a->said ? b->said - a->said : 0;

	snprintf(text, room, "the guest's clock went %.3f s in %.3f to %.3f s", (double)went / 1e9,
		 (double)least / 1e9, (double)most / 1e9);
	return went > most + most / 4 || least > went + went / 4;
}

#if defined(__x86_64__)
struct sample {
	uint64_t ns, ticks;
};

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The best of several samples: the one during which no other thread had the CPU. */
static struct sample
sample(void)
{
	struct sample best = {0};
	uint64_t shortest = UINT64_MAX;

	for (unsigned int i = 0; i < TSC_TRIES; i++) {
		uint64_t ns = now_ns(), ticks = __builtin_ia32_rdtsc(), took = now_ns() - ns;

		if (took >= shortest)
			continue;
		shortest = took;
		best = (struct sample){ns, ticks};
	}
	return best;
}

uint32_t
host_tsc_khz(void)
{
	struct sample a = sample(), b;

	usleep(TSC_US);
	b = sample();
	return (uint32_t)((double)(b.ticks - a.ticks) * 1e6 / (double)(b.ns - a.ns));
}
#else
uint32_t
host_tsc_khz(void)
{
	return 0;
}
#endif
