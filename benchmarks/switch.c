/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Time of a system call without work, and of giving a CPU to another process by sched_yield(), in
 * ns. Programs and workers that share CPUs do both for every message, so these two bound half a
 * round trip. Some hypervisors make them several times as dear.
 */

#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCHES 50u
#define BATCH 500u
#define NOBODY_NS 1000000000u

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static double
system_calls(uint32_t *turn)
{
	uint64_t begin = now_ns();

	(void)turn;
	for (uint32_t i = 0; i < BATCH; i++)
		syscall(SYS_getppid);
	return (double)(now_ns() - begin) / BATCH;
}

/* A round is there and back. Negative: no answer. */
static double
handovers(uint32_t *turn)
{
	uint64_t begin = now_ns();
	uint32_t mine = __atomic_load_n(turn, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < BATCH; i++, mine += 2) {
		__atomic_store_n(turn, mine + 1, __ATOMIC_RELEASE);
		while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) == mine + 1) {
			sched_yield();
			if (i == 0 && now_ns() - begin > NOBODY_NS)
				return -1;
		}
	}
	return (double)(now_ns() - begin) / BATCH / 2;
}

/* The other process: an odd turn is its own. */
static void
other(uint32_t *turn, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent) {
		uint32_t t = __atomic_load_n(turn, __ATOMIC_ACQUIRE);

		if ((t & 1) != 0)
			__atomic_store_n(turn, t + 1, __ATOMIC_RELEASE);
		sched_yield();
	}
	_exit(0);
}

/* The shortest of many batches: in others another process had the CPU. */
static double
shortest(double (*batch)(uint32_t *turn), uint32_t *turn)
{
	double best = batch(turn);

	for (uint32_t i = 1; i < BATCHES && best >= 0; i++) {
		double ns = batch(turn);

		best = ns < best ? ns : best;
	}
	return best;
}

int
main(int argc, char **argv)
{
	double call, handover;
	pid_t parent = getpid(), child;
	uint32_t *turn;
	cpu_set_t set;

	if (argc != 2) {
		fprintf(stderr, "usage: %s CPU\n", argv[0]);
		return 2;
	}
	CPU_ZERO(&set);
	CPU_SET(atoi(argv[1]), &set);
	turn = mmap(NULL, sizeof(*turn), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (turn == MAP_FAILED || sched_setaffinity(0, sizeof(set), &set) != 0) {
		fprintf(stderr, "%s: no process on CPU %s\n", argv[0], argv[1]);
		return 1;
	}
	call = shortest(system_calls, turn);
	child = fork();
	if (child == 0)
		other(turn, parent);
	handover = child < 0 ? -1 : shortest(handovers, turn);
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	if (handover < 0) {
		fprintf(stderr, "%s: no second process on CPU %s\n", argv[0], argv[1]);
		return 1;
	}
	printf("%.0f %.0f\n", call, handover);
	return 0;
}
