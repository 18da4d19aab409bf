/* SPDX-License-Identifier: BSD-3-Clause */

/* The machine of the measurement. */

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "perf.h"

#define ROUNDS 20000u
#define PAIRS_MAX 6u

static void
query_cpu(struct perf_host *host)
{
	FILE *f = fopen("/proc/cpuinfo", "r");
	char line[256];

	snprintf(host->cpu, sizeof(host->cpu), "unknown");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) != 0 || colon == NULL)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(host->cpu, sizeof(host->cpu), "%.127s", colon + 2);
		break;
	}
	if (f != NULL)
		fclose(f);
}

/* Two threads hand one cache line to and fro. */
struct bounce {
	uint32_t word __attribute__((aligned(128)));
	int cpu __attribute__((aligned(128)));
};

static void
pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static void *
answer(void *arg)
{
	struct bounce *b = arg;

	pin(b->cpu);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		while (__atomic_load_n(&b->word, __ATOMIC_ACQUIRE) != 2 * i + 1)
			sched_yield();
		__atomic_store_n(&b->word, 2 * i + 2, __ATOMIC_RELEASE);
	}
	return NULL;
}

static double
one_way_ns(int a, int b)
{
	struct bounce line = {.word = 0, .cpu = b};
	uint64_t begin = 0;
	pthread_t thread;

	pin(a);
	if (pthread_create(&thread, NULL, answer, &line) != 0)
		return 0;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		if (i == ROUNDS / 2)
			begin = perf_now_ns();
		__atomic_store_n(&line.word, 2 * i + 1, __ATOMIC_RELEASE);
		while (__atomic_load_n(&line.word, __ATOMIC_ACQUIRE) != 2 * i + 2)
			sched_yield();
	}
	pthread_join(thread, NULL);
	return (double)(perf_now_ns() - begin) / ROUNDS;
}

static void
measure_core_to_core(struct perf_host *host)
{
	unsigned int pairs = 0;
	cpu_set_t old;

	pthread_getaffinity_np(pthread_self(), sizeof(old), &old);
	for (int a = 0; a < CPU_SETSIZE; a++) {
		for (int b = a + 1; b < CPU_SETSIZE && pairs < PAIRS_MAX; b++) {
			double ns;

			if (!CPU_ISSET(a, &old) || !CPU_ISSET(b, &old))
				continue;
			ns = one_way_ns(a, b);
			pairs++;
			if (host->core_to_core_min == 0 || ns < host->core_to_core_min)
				host->core_to_core_min = ns;
			if (ns > host->core_to_core_max)
				host->core_to_core_max = ns;
		}
	}
	pthread_setaffinity_np(pthread_self(), sizeof(old), &old);
}

void
perf_host_query(struct perf_host *host, bool core_to_core)
{
	struct utsname u;

	memset(host, 0, sizeof(*host));
	query_cpu(host);
	if (uname(&u) == 0)
		snprintf(host->kernel, sizeof(host->kernel), "%.63s %.63s", u.sysname, u.release);
	host->cores = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
	if (core_to_core)
		measure_core_to_core(host);
}
