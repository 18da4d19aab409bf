/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The agent that accesses a client's memory, with replaced system calls: an access that is late is
 * abandoned and not executed by another thread, and no thread waits for an agent that hangs.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "ipc_foreign_impl.h"

#define BYTES 16384u
#define FREE_AT 12288 /* addresses from here on never block */

static uint8_t memory[BYTES];
static uint32_t blocked, calls, shorter;
static int agent_cpu = -1; /* each call uses up a millisecond of this CPU */

static void
use_cpu(void)
{
	struct timespec ts;
	uint64_t until = 0;

	if (sched_getcpu() != agent_cpu) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(agent_cpu, &set);
		pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	}
	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
		if (until == 0)
			until = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec + 1000000;
	} while ((uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec < until);
}

/* Lets calls that sleep go on; calls sleep as in a page fault, and do not poll. */
static void
unblock(void)
{
	__atomic_store_n(&blocked, 0, __ATOMIC_RELEASE);
	syscall(SYS_futex, &blocked, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static size_t
transfer(void *to, const void *from, size_t n, off64_t at)
{
	__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
	while (at < FREE_AT && __atomic_load_n(&blocked, __ATOMIC_ACQUIRE) != 0)
		syscall(SYS_futex, &blocked, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
	if (agent_cpu >= 0)
		use_cpu();
	memcpy(to, from, n);
	return n - __atomic_load_n(&shorter, __ATOMIC_RELAXED);
}

/* Replaces the C library's function for the agent. */
ssize_t
pread64(int fd, void *buf, size_t n, off64_t at)
{
	(void)fd;
	return at + n <= BYTES ? (ssize_t)transfer(buf, memory + at, n, at) : -1;
}

ssize_t
pwrite64(int fd, const void *buf, size_t n, off64_t at)
{
	(void)fd;
	return at + n <= BYTES ? (ssize_t)transfer(memory + at, buf, n, at) : -1;
}

static struct ipc_foreign *
client_of(uid_t uid)
{
	int mem = open("/proc/self/mem", O_RDWR), maps = open("/proc/self/maps", O_RDONLY);
	struct ipc_foreign *f;

	assert_int_equal(ipc_foreign_create(mem, maps, getpid(), uid, -1, &f), 0);
	close(mem);
	close(maps);
	return f;
}

static int
setup(void **state)
{
	blocked = calls = shorter = 0;
	*state = client_of(getuid());
	return 0;
}

static int
teardown(void **state)
{
	ipc_foreign_destroy(*state);
	return 0;
}

/* Repeat as needed: on a busy machine an access may be late. */
static int
access_surely(struct ipc_foreign *f, bool write, uint64_t at, void *bytes, uint32_t len)
{
	int rc;

	do {
		rc = ipc_foreign_access(f, write, at, bytes, len);
		if (rc == -EINPROGRESS) /* it is executed later */
			rc = write ? ipc_foreign_settle(f) : -EBADMSG;
		else if (rc == -EAGAIN)
			usleep(1000);
	} while (rc == -EAGAIN);
	return rc;
}

static void
to_and_fro(void **state)
{
	uint8_t out[5000], in[5000];

	for (uint32_t i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i * 7);
	for (uint32_t n = 0; n < 300; n++) {
		uint32_t at = n * 31 % 8000, len = 1 + n * 97 % 4999;

		if (n % 100 == 99)
			usleep(2000); /* the agent falls asleep */
		assert_int_equal(access_surely(*state, true, at, out, len), 0);
		assert_int_equal(access_surely(*state, false, at, in, len), 0);
		assert_memory_equal(in, out, len);
		assert_memory_equal(memory + at, out, len);
	}
}

static void
failures(void **state)
{
	uint8_t byte = 1;

	assert_int_equal(access_surely(*state, false, BYTES, &byte, 1), -EFAULT);
	shorter = 1;
	assert_int_equal(access_surely(*state, false, 0, &byte, 1), -EFAULT);
	assert_int_equal(access_surely(*state, true, 0, &byte, 1), -EFAULT);
	shorter = 0;
	assert_int_equal(ipc_foreign_access(*state, false, 0, memory, IPC_FOREIGN_BYTES + 1),
			 -EFAULT);
	assert_int_equal(access_surely(*state, true, 0, &byte, 1), 0);
	ipc_foreign_end(*state);
	assert_int_equal(ipc_foreign_access(*state, true, 0, &byte, 1), -EFAULT);
}

static void *
unblock_later(void *arg)
{
	usleep(50000);
	unblock();
	return arg;
}

static void
late(void **state)
{
	uint64_t bytes = 0x1122334455667788, was = 5, got = 6;
	pthread_t thread;
	uint32_t before;
	int rc;

	assert_int_equal(access_surely(*state, true, 64, &was, 8), 0);
	blocked = 1;
	do /* -EAGAIN: the agent had no CPU, and will not write */
		rc = ipc_foreign_access(*state, true, 64, &bytes, 8);
	while (rc == -EAGAIN);
	assert_int_equal(rc, -EINPROGRESS);
	before = calls;
	for (int i = 0; i < 100; i++) /* refused at once, without another system call */
		assert_int_equal(ipc_foreign_access(*state, false, 64, &got, 8), -EAGAIN);
	assert_int_equal(calls, before);
	assert_int_equal(got, 6);
	bytes = 0; /* the abandoned access must not write any more */
	assert_int_equal(pthread_create(&thread, NULL, unblock_later, NULL), 0);
	assert_int_equal(ipc_foreign_settle(*state), 0);
	pthread_join(thread, NULL);
	memcpy(&got, memory + 64, 8);
	assert_true(got == 0x1122334455667788);
	assert_int_equal(access_surely(*state, false, 64, &bytes, 8), 0);
	assert_true(bytes == got);
}

/* Destroying an owner while its agent hangs: neither waits for the other. */
static void
destroyed_while_late(void **state)
{
	uint8_t byte = 1;
	void *f;

	setup(&f);
	blocked = 1;
	while (__atomic_load_n(&((struct ipc_foreign *)f)->state, __ATOMIC_ACQUIRE) == 0)
		ipc_foreign_access(f, false, 0, &byte, 1);
	ipc_foreign_destroy(f);
	assert_int_equal(byte, 1);
	unblock();
	usleep(20000);
}

/* ---- no CPU for the agent ---- */

#define BURNERS 4

static pid_t burner[BURNERS]; /* 0: not running */
static cpu_set_t cpus_before;

static void
stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

/*
 * Processes: threads would hold the lock of Valgrind, which runs one thread of a process at a time,
 * while they wait for a CPU themselves.
 */
static pid_t
start_burner(int cpu)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	stay_on(cpu);
	for (;;)
		;
}

static void
start_burners(int cpu)
{
	for (int i = 0; i < BURNERS; i++) {
		burner[i] = start_burner(cpu);
		assert_true(burner[i] > 0);
	}
}

/* Also after a failure: they would slow down all tests behind it. */
static int
stop_burners(void **state)
{
	bool had = burner[0] > 0;

	for (int i = 0; i < BURNERS && burner[i] > 0; i++) {
		kill(burner[i], SIGKILL);
		waitpid(burner[i], NULL, 0);
		burner[i] = 0;
	}
	agent_cpu = -1;
	if (had)
		pthread_setaffinity_np(pthread_self(), sizeof(cpus_before), &cpus_before);
	return teardown(state);
}

#define ACCOUNT_NS 50000000u /* budget per client, as ipc_agent.c has it */
#define EARN 20u

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * The agent needs the CPU for a millisecond in a call, on a CPU that others use nearly always,
 * while the worker's is idle: all accesses succeed at last, and the client is charged for its own
 * time alone. The first of the tests, because the budget of all clients together is what they have
 * left of it.
 */
static void
agent_without_cpu(void **state)
{
	struct ipc_foreign *f = *state;
	uint8_t out = 7, in = 0;
	static int cpu[2];
	uint64_t now, used;
	int n = 0;

	pthread_getaffinity_np(pthread_self(), sizeof(cpus_before), &cpus_before);
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &cpus_before))
			cpu[n++] = i;
	if (n < 2)
		skip();
	start_burners(cpu[0]);
	stay_on(cpu[1]);
	agent_cpu = cpu[0];
	for (int i = 0; i < 20; i++)
		assert_int_equal(access_surely(f, true, 8, &out, 1), 0);
	assert_int_equal(access_surely(f, false, 8, &in, 1), 0);
	assert_int_equal(in, out);
	now = now_ns();
	used = now - f->empty_at < (uint64_t)ACCOUNT_NS * EARN
		       ? ACCOUNT_NS - (now - f->empty_at) / EARN
		       : 0;
	printf("%u calls, %.1f ms charged\n", calls, (double)used / 1e6);
	assert_true(used <= calls * UINT64_C(4000000));
}

#define SLOW 8
#define TIMEOUT_NS 5000000u /* ACCESS_TIMEOUT_NS of ipc_agent.c */
#define GIVE_UP_NS UINT64_C(60000000000)

/*
 * Eight clients whose accesses always make workers wait: together they get a tenth of the time and
 * a small burst, however many accesses they request. An agent without a CPU executes none of them,
 * so there are more rounds until one was executed.
 */
static void
eight_slow_ones(void **state)
{
	uint64_t begin = now_ns(), waits, most;
	struct ipc_foreign *f[SLOW];
	unsigned int round;
	uint8_t byte = 1;

	(void)state;
	for (int i = 0; i < SLOW; i++)
		setup((void **)&f[i]);
	calls = 0;
	for (round = 0; round < 40 || (__atomic_load_n(&calls, __ATOMIC_RELAXED) == 0 &&
				       now_ns() - begin < GIVE_UP_NS);
	     round++) {
		blocked = 1;
		for (int i = 0; i < SLOW; i++)
			assert_int_not_equal(ipc_foreign_access(f[i], false, 0, &byte, 1), 0);
		unblock();
		for (int i = 0; i < SLOW; i++)
			assert_int_equal(ipc_foreign_settle(f[i]), 0);
	}
	waits = __atomic_load_n(&calls, __ATOMIC_RELAXED);
	most = (50000000u + (now_ns() - begin) / 10) / TIMEOUT_NS + 1;
	printf("%u accesses, %u waited for\n", round * SLOW, (unsigned int)waits);
	assert_true(waits > 0 && waits <= most);
	for (int i = 0; i < SLOW; i++)
		ipc_foreign_destroy(f[i]);
}

/*
 * A user with eight such clients does not take the share of another user, whose memory answers at
 * once: workers wait for that as soon as the machine lets them.
 */
static void
slow_user(void **state)
{
	struct ipc_foreign *f[SLOW], *other = client_of(1002);
	unsigned int served = 0;
	uint8_t byte = 1;

	(void)state;
	for (int i = 0; i < SLOW; i++)
		f[i] = client_of(1001);
	for (int round = 0; round < 40; round++) {
		blocked = 1;
		for (int i = 0; i < SLOW; i++)
			assert_int_not_equal(ipc_foreign_access(f[i], false, 0, &byte, 1), 0);
		/* on a busy machine one may be late in vain */
		for (int i = 0; i < 2; i++)
			if (ipc_foreign_access(other, false, FREE_AT, &byte, 1) == 0) {
				served++;
				break;
			}
		unblock();
		for (int i = 0; i < SLOW; i++)
			assert_int_equal(ipc_foreign_settle(f[i]), 0);
	}
	printf("another user was served %u times of 40\n", served);
	assert_true(served >= 30);
	for (int i = 0; i < SLOW; i++)
		ipc_foreign_destroy(f[i]);
	ipc_foreign_destroy(other);
}

#define MS UINT64_C(1000000)

/* Two users, each with half, whatever the other one takes. */
static void
shares(void **state)
{
	static const uint64_t part[IPC_BUDGETS] = {10, 4}, most[IPC_BUDGETS] = {50 * MS, 100 * MS};
	uint64_t now = 1000000 * MS;
	struct ipc_budget *a = ipc_budget_open(2001, now), *same = ipc_budget_open(2001, now), *b;

	(void)state;
	assert_ptr_equal(a, same);
	for (unsigned int k = 0; k < IPC_BUDGETS; k++) {
		assert_true(ipc_budget_left(a, k, now) == most[k]); /* alone: all of it */
		ipc_budget_take(a, k, now, 1000 * MS);
		assert_true(ipc_budget_left(a, k, now) == 0);
	}
	b = ipc_budget_open(2002, now);
	for (unsigned int k = 0; k < IPC_BUDGETS; k++) {
		assert_true(ipc_budget_left(b, k, now) == most[k] / 2);
		ipc_budget_take(b, k, now, 1000 * MS);
		for (uint64_t t = 40; t <= 120; t += 40) {
			assert_true(ipc_budget_left(a, k, now + t * MS) == t * MS / part[k] / 2);
			assert_true(ipc_budget_left(b, k, now + t * MS) == t * MS / part[k] / 2);
		}
		ipc_budget_take(a, k, now + 120 * MS, 1000 * MS);
		assert_true(ipc_budget_left(a, k, now + 120 * MS) == 0);
		assert_true(ipc_budget_left(b, k, now + 120 * MS) == 120 * MS / part[k] / 2);
	}
	ipc_budget_close(b);
	ipc_budget_close(a);
	ipc_budget_close(same);
}

/*
 * A user that leaves and returns has the old budget; with very many users each can wait once at a
 * time.
 */
static void
returned_and_many(void **state)
{
	uint64_t now = 2000000 * MS, left = 0;
	struct ipc_budget *b = ipc_budget_open(2001, now), *all[40];

	(void)state;
	ipc_budget_take(b, IPC_BUDGET_CPU, now, 1000 * MS);
	ipc_budget_close(b);
	b = ipc_budget_open(2001, now + 8 * MS);
	assert_true(ipc_budget_left(b, IPC_BUDGET_CPU, now + 8 * MS) == 2 * MS);
	ipc_budget_close(b);
	b = ipc_budget_open(2001, now + 2000 * MS);
	assert_true(ipc_budget_left(b, IPC_BUDGET_CPU, now + 2000 * MS) == 100 * MS);
	ipc_budget_close(b);
	now += 4000 * MS;
	for (unsigned int i = 0; i < 40; i++)
		all[i] = ipc_budget_open(3000 + i, now);
	for (unsigned int i = 0; i < 40; i++) {
		assert_true(ipc_budget_left(all[i], IPC_BUDGET_SYSCALL, now) == TIMEOUT_NS);
		ipc_budget_take(all[i], IPC_BUDGET_SYSCALL, now, TIMEOUT_NS);
		left += ipc_budget_left(all[i], IPC_BUDGET_SYSCALL, now + 1000 * MS);
	}
	assert_true(left == 1000 * MS / 10);
	for (unsigned int i = 0; i < 40; i++)
		ipc_budget_close(all[i]);
}

struct worker {
	struct ipc_foreign *f;
	uint64_t at;
	unsigned int wrong;
};

static void *
work(void *arg)
{
	struct worker *w = arg;
	uint64_t out, in;

	for (uint64_t n = 0; n < 500; n++) {
		out = n << 8 | w->at;
		in = 0;
		if (access_surely(w->f, true, w->at * 64, &out, 8) != 0 ||
		    access_surely(w->f, false, w->at * 64, &in, 8) != 0 || in != out)
			w->wrong++;
	}
	return NULL;
}

static void
several_workers(void **state)
{
	struct worker w[3] = {{*state, 1, 0}, {*state, 2, 0}, {*state, 3, 0}};
	pthread_t thread[3];

	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, work, &w[i]), 0);
	for (int i = 0; i < 3; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(w[i].wrong, 0);
	}
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(agent_without_cpu, setup, stop_burners),
		TEST(to_and_fro),
		TEST(failures),
		TEST(late),
		cmocka_unit_test(destroyed_while_late),
		TEST(several_workers),
		cmocka_unit_test(eight_slow_ones),
		cmocka_unit_test(slow_user),
		cmocka_unit_test(shares),
		cmocka_unit_test(returned_and_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
