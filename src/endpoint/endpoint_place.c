/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_random.h>

#include "endpoint_machine.h"
#include "endpoint_place.h"

#define SHARE 4u /* a quarter of the period */
#define SECOND_NS 1000000000ull

/* ---- the machine ---- */

/* A line of /proc/stat: "cpuN user nice system idle iowait ...", in clock ticks. */
static int
idle_of_cpus(uint64_t *idle, unsigned int max)
{
	uint64_t tick_ns = SECOND_NS / (uint64_t)sysconf(_SC_CLK_TCK);
	FILE *f = fopen("/proc/stat", "re");
	uint64_t nothing, waits;
	unsigned int cpu;
	char line[512];

	if (f == NULL)
		return -errno;
	while (fgets(line, sizeof(line), f) != NULL && strncmp(line, "cpu", 3) == 0)
		if (sscanf(line, "cpu%u %*u %*u %*u %" SCNu64 " %" SCNu64, &cpu, &nothing,
			   &waits) == 3 &&
		    cpu < max)
			idle[cpu] = (nothing + waits) * tick_ns;
	fclose(f);
	return 0;
}

static bool
may_run(int tid, unsigned int cpu)
{
	cpu_set_t set;

	return cpu < CPU_SETSIZE && sched_getaffinity(tid, sizeof(set), &set) == 0 &&
	       CPU_ISSET(cpu, &set);
}

static int
move(int tid, unsigned int cpu)
{
	cpu_set_t before, one;

	if (sched_getaffinity(tid, sizeof(before), &before) != 0)
		return -errno;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(tid, sizeof(one), &one) != 0)
		return -errno;
	return sched_setaffinity(tid, sizeof(before), &before) == 0 ? 0 : -errno;
}

static bool
coin(void)
{
	return (rte_rand() & 1) != 0;
}

static const struct endpoint_place_machine this_machine = {
	.waited = endpoint_machine_waited_ns,
	.idle = idle_of_cpus,
	.may_run = may_run,
	.move = move,
	.coin = coin,
};

/* ---- looking ---- */

void
endpoint_place_init(struct endpoint_place *p, const struct endpoint_place_machine *machine,
		    uint64_t now)
{
	memset(p, 0, sizeof(*p));
	p->machine = machine != NULL ? machine : &this_machine;
	p->looked_at = now;
}

/* The worker that waited most in the last period, if that is long enough; 0: none. */
static int
one_that_waits(struct endpoint_place *p, const int *tids, unsigned int n, uint64_t elapsed)
{
	uint64_t longest = elapsed / SHARE;
	int found = 0;

	for (unsigned int i = 0; i < n && i < ENDPOINT_PLACE_WORKERS; i++) {
		uint64_t total = p->machine->waited(tids[i]), waited = total - p->waited[i];

		p->waited[i] = total;
		if (waited < longest)
			continue;
		longest = waited;
		found = tids[i];
	}
	return found;
}

/* The CPU for this worker that was idle most in the last period, if that is enough; -1: none. */
static int
idle_cpu(struct endpoint_place *p, int tid, uint64_t elapsed)
{
	static const uint64_t none[ENDPOINT_PLACE_CPUS];
	uint64_t before[ENDPOINT_PLACE_CPUS], longest = elapsed / SHARE;
	bool known = p->idle_known;
	int found = -1;

	memcpy(before, known ? p->idle : none, sizeof(before));
	p->idle_known = p->machine->idle(p->idle, ENDPOINT_PLACE_CPUS) == 0;
	for (unsigned int cpu = 0; known && p->idle_known && cpu < ENDPOINT_PLACE_CPUS; cpu++) {
		uint64_t idle = p->idle[cpu] - before[cpu];

		if (idle < longest || !p->machine->may_run(tid, cpu))
			continue;
		longest = idle;
		found = (int)cpu;
	}
	return found;
}

bool
endpoint_place_watch(struct endpoint_place *p, const int *tids, unsigned int n, uint64_t now)
{
	uint64_t elapsed = now - p->looked_at;
	int tid, cpu;

	if (elapsed < ENDPOINT_PLACE_PERIOD_NS)
		return p->idle_known;
	p->looked_at = now;
	tid = one_that_waits(p, tids, n, elapsed);
	if (tid == 0) {
		p->idle_known = false;
		return false;
	}
	cpu = idle_cpu(p, tid, elapsed);
	if (cpu >= 0 && p->machine->coin() && p->machine->move(tid, (unsigned int)cpu) == 0)
		p->moves++;
	return true;
}
