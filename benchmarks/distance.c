/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * How far two CPUs are from each other: the time that a cache line takes from one to the other, in
 * ns. The CPUs of a virtual machine may move while it runs; then each exchange between programs on
 * both of them costs several times more, and no counter of the machine shows it.
 */

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MEASURED_NS 50000000u
#define NOBODY_NS 1000000000u
#define BATCH 200u

struct ball {
	_Alignas(64) uint32_t turn; /* odd: the other's */
	_Alignas(64) int cpu;
};

#define END UINT32_MAX

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int
pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

static void *
other(void *arg)
{
	struct ball *ball = arg;
	uint32_t turn;

	if (pin(ball->cpu) != 0)
		return NULL;
	while ((turn = __atomic_load_n(&ball->turn, __ATOMIC_ACQUIRE)) != END)
		if ((turn & 1) != 0)
			__atomic_store_n(&ball->turn, turn + 1, __ATOMIC_RELEASE);
	return NULL;
}

/* A round is two ways; ns of one. Negative: no answer. */
static double
rounds(struct ball *ball, uint32_t n)
{
	uint64_t begin = now_ns();
	uint32_t turn = ball->turn;

	for (uint32_t i = 0; i < n; i++, turn += 2) {
		__atomic_store_n(&ball->turn, turn + 1, __ATOMIC_RELEASE);
		while (__atomic_load_n(&ball->turn, __ATOMIC_ACQUIRE) == turn + 1)
			if (i == 0 && now_ns() - begin > NOBODY_NS)
				return -1;
	}
	return (double)(now_ns() - begin) / n / 2;
}

/* The shortest of many batches: in others one of the threads lost its CPU. */
static double
distance(struct ball *ball)
{
	uint64_t begin = now_ns();
	double best = rounds(ball, 1);

	if (best < 0)
		return best;
	best = rounds(ball, BATCH);
	while (now_ns() - begin < MEASURED_NS) {
		double ns = rounds(ball, BATCH);

		best = ns < best ? ns : best;
	}
	return best;
}

int
main(int argc, char **argv)
{
	static struct ball ball;
	pthread_t thread;
	double ns;

	if (argc != 3) {
		fprintf(stderr, "usage: %s CPU CPU\n", argv[0]);
		return 2;
	}
	ball.cpu = atoi(argv[2]);
	if (pin(atoi(argv[1])) != 0 || pthread_create(&thread, NULL, other, &ball) != 0) {
		fprintf(stderr, "%s: no thread on CPU %s\n", argv[0], argv[1]);
		return 1;
	}
	ns = distance(&ball);
	__atomic_store_n(&ball.turn, END, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	if (ns < 0) {
		fprintf(stderr, "%s: no thread on CPU %s\n", argv[0], argv[2]);
		return 1;
	}
	printf("%.0f\n", ns);
	return 0;
}
