/* SPDX-License-Identifier: BSD-3-Clause */

/* Workers that wait for their CPU move to an idle one; the other workers do not move. */

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "endpoint_place.h"

#define CPUS 4u
#define MS 1000000ull
#define PERIOD ENDPOINT_PLACE_PERIOD_NS

/* A machine of four CPUs; thread id i + 1 is worker i. */
static struct {
	uint64_t waited[2], idle[CPUS];
	bool may[2][CPUS];
	bool heads;
	int idle_error, looks;
	int tid, cpu; /* the last move */
} fake;

static uint64_t
waited(int tid)
{
	return tid > 0 ? fake.waited[tid - 1] : 0;
}

static int
idle(uint64_t *out, unsigned int max)
{
	assert_true(max >= CPUS);
	fake.looks++;
	memcpy(out, fake.idle, sizeof(fake.idle));
	return fake.idle_error;
}

static bool
may_run(int tid, unsigned int cpu)
{
	return cpu < CPUS && fake.may[tid - 1][cpu];
}

static int
move(int tid, unsigned int cpu)
{
	fake.tid = tid;
	fake.cpu = (int)cpu;
	return 0;
}

static bool
coin(void)
{
	return fake.heads;
}

static const struct endpoint_place_machine machine = {.waited = waited,
						      .idle = idle,
						      .may_run = may_run,
						      .move = move,
						      .coin = coin};
static const int tids[2] = {1, 2};

static struct endpoint_place place;
static uint64_t now;

static int
setup(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	memset(fake.may, 1, sizeof(fake.may));
	fake.heads = true;
	now = 0;
	endpoint_place_init(&place, &machine, now);
	return 0;
}

/* A period in which the workers waited for wait0 and wait1 ms, and CPU i was idle for ms[i]. */
static bool
period(unsigned int wait0, unsigned int wait1, const unsigned int *ms)
{
	fake.waited[0] += wait0 * MS;
	fake.waited[1] += wait1 * MS;
	for (unsigned int i = 0; i < CPUS; i++)
		fake.idle[i] += ms[i] * MS;
	fake.tid = 0;
	now += PERIOD;
	return endpoint_place_watch(&place, tids, 2, now);
}

static void
waits_and_moves(void **state)
{
	static const unsigned int idle_ms[CPUS] = {0, 20, 30, 10};

	(void)state;
	assert_true(period(20, 30, idle_ms)); /* how idle the CPUs are is not known yet */
	assert_int_equal(fake.tid, 0);
	assert_true(period(20, 30, idle_ms));
	assert_int_equal(fake.tid, 2);
	assert_int_equal(fake.cpu, 2);
	assert_int_equal(place.moves, 1);
}

/* The most idle CPU is not always allowed; a pinned worker has nowhere to go. */
static void
affinity(void **state)
{
	static const unsigned int idle_ms[CPUS] = {0, 20, 30, 10};

	(void)state;
	fake.may[1][2] = false;
	period(0, 30, idle_ms);
	period(0, 30, idle_ms);
	assert_int_equal(fake.cpu, 1);
	for (unsigned int i = 1; i < CPUS; i++)
		fake.may[1][i] = false;
	period(0, 30, idle_ms);
	assert_int_equal(fake.tid, 0);
}

static void
no_idle_cpu(void **state)
{
	static const unsigned int idle_ms[CPUS] = {10, 12, 0, 0};

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		assert_true(period(45, 45, idle_ms));
		assert_int_equal(fake.tid, 0);
	}
}

/* Workers that do not wait cost no look at the CPUs, and an old look is not compared with. */
static void
nobody_waits(void **state)
{
	static const unsigned int idle_ms[CPUS] = {0, 40, 0, 0};

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		assert_false(period(12, 0, idle_ms));
	assert_int_equal(fake.looks, 0);
	assert_true(period(13, 0, idle_ms));
	assert_int_equal(fake.tid, 0);
	assert_false(period(0, 0, idle_ms));
	assert_true(period(13, 0, idle_ms));
	assert_int_equal(fake.tid, 0);
	assert_true(period(13, 0, idle_ms));
	assert_int_equal(fake.tid, 1);
}

static void
coin_decides(void **state)
{
	static const unsigned int idle_ms[CPUS] = {0, 40, 0, 0};

	(void)state;
	fake.heads = false;
	for (unsigned int i = 0; i < 4; i++) {
		assert_true(period(40, 0, idle_ms));
		assert_int_equal(fake.tid, 0);
	}
	fake.heads = true;
	period(40, 0, idle_ms);
	assert_int_equal(fake.tid, 1);
}

/* Calls within a period do nothing; if the idle times cannot be read, no worker moves. */
static void
early_and_blind(void **state)
{
	static const unsigned int idle_ms[CPUS] = {0, 40, 0, 0};

	(void)state;
	period(40, 0, idle_ms);
	fake.waited[0] += 40 * MS;
	assert_true(endpoint_place_watch(&place, tids, 2, now + PERIOD - 1));
	assert_int_equal(fake.looks, 1);
	fake.idle_error = -1;
	for (unsigned int i = 0; i < 3; i++) {
		period(40, 0, idle_ms);
		assert_int_equal(fake.tid, 0);
	}
}

/* ---- this machine ---- */

static int spinner_tid, spinner_cpu, stop;

static void *
spin(void *arg)
{
	(void)arg;
	__atomic_store_n(&spinner_tid, gettid(), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		__atomic_store_n(&spinner_cpu, sched_getcpu(), __ATOMIC_RELAXED);
	return NULL;
}

static uint64_t
waits_always(int tid)
{
	static uint64_t total;

	(void)tid;
	return total += PERIOD;
}

static bool
heads(void)
{
	return true;
}

/* Real threads and CPUs, with a worker that is said to wait: it moves, and may run everywhere. */
static void
real_move(void **state)
{
	struct endpoint_place_machine real;
	cpu_set_t before, after;
	pthread_t thread;
	int tid;

	(void)state;
	endpoint_place_init(&place, NULL, 0);
	real = *place.machine;
	real.waited = waits_always;
	real.coin = heads;
	endpoint_place_init(&place, &real, 0);
	stop = 0;
	assert_int_equal(pthread_create(&thread, NULL, spin, NULL), 0);
	while ((tid = __atomic_load_n(&spinner_tid, __ATOMIC_ACQUIRE)) == 0)
		sched_yield();
	assert_int_equal(sched_getaffinity(tid, sizeof(before), &before), 0);
	for (unsigned int i = 0; i < CPU_SETSIZE; i++)
		assert_int_equal(real.may_run(tid, i), CPU_ISSET(i, &before));
	for (unsigned int i = 1; i <= 4; i++)
		assert_true(endpoint_place_watch(&place, &tid, 1, i * PERIOD));
	for (unsigned int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &before))
			assert_int_equal(real.move(tid, i), 0);
	assert_int_equal(sched_getaffinity(tid, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

/* The machine's idle times grow by no more than the time that passes, for CPUs that are there. */
static void
real_idle(void **state)
{
	static uint64_t a[ENDPOINT_PLACE_CPUS], b[ENDPOINT_PLACE_CPUS];
	unsigned int cpus = 0;

	(void)state;
	endpoint_place_init(&place, NULL, 0);
	assert_int_equal(place.machine->idle(a, ENDPOINT_PLACE_CPUS), 0);
	assert_int_equal(place.machine->idle(b, ENDPOINT_PLACE_CPUS), 0);
	for (unsigned int i = 0; i < ENDPOINT_PLACE_CPUS; i++) {
		assert_true(b[i] >= a[i]);
		cpus += b[i] != 0;
	}
	assert_true(cpus >= 1 && cpus <= (unsigned int)sysconf(_SC_NPROCESSORS_CONF));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(waits_and_moves, setup),
		cmocka_unit_test_setup(affinity, setup),
		cmocka_unit_test_setup(no_idle_cpu, setup),
		cmocka_unit_test_setup(nobody_waits, setup),
		cmocka_unit_test_setup(coin_decides, setup),
		cmocka_unit_test_setup(early_and_blind, setup),
		cmocka_unit_test_setup(real_move, setup),
		cmocka_unit_test_setup(real_idle, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
