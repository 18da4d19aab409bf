/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The agent: one thread per client with foreign memory, which executes one request at a time. A
 * worker fills in the request and waits; either it takes the answer, or it abandons the request,
 * which then only the agent ends. Data passes through a buffer of the agent, so that late data
 * reaches no other memory.
 *
 * A client is charged only the time of its system call, without the time in which the agent could
 * run but had no CPU: it is not responsible for a busy machine. The kernel's statistics of the
 * agent's thread tell them apart.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ipc_foreign_impl.h"
#include "ipc_memory.h"

#define AGENT_STACK (64u << 10)
#define AWAKE_NS 50000u	     /* time that the agent waits for the next request before it sleeps */
#define PATIENCE_NS 5000000u /* limit of a worker's wait for the system call */
#define START_NS \
	1000000000u	  /* limit of its wait until the call begins, and while there is no CPU */
#define SAMPLE_NS 100000u /* time from which a wait is worth a look at the statistics */
#define TURNS 50u	  /* least number of times it yields the CPU */
#define USUAL_NS 200000u  /* not charged */
/* budget per client beyond that; refilled with a twentieth of the time */
#define ACCOUNT_NS 50000000u
#define EARN 20u
#define ALL_ACCOUNT_NS \
	50000000u /* budget of all clients together; refilled with a tenth of the time */
#define ALL_EARN 10u
#define SPINS 100u
#define SETTLE_MS 2000u

enum request_state {
	REQUEST_IDLE,
	REQUEST_ASKED,
	REQUEST_RUNNING,
	REQUEST_DONE,
	REQUEST_GIVEN_UP, /* the agent is still executing it */
};

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void
futex(uint32_t *word, int op, uint32_t value)
{
	syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static inline void
relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#else
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}

static uint32_t
state_of(const struct ipc_foreign *f)
{
	return __atomic_load_n(&f->state, __ATOMIC_ACQUIRE);
}

static bool
change(struct ipc_foreign *f, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&f->state, &from, to, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_ACQUIRE);
}

static void
release(struct ipc_foreign *f)
{
	if (__atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL) == 0)
		ipc_foreign_free(f);
}

/* ---- the agent ---- */

static bool
stopped(const struct ipc_foreign *f)
{
	return __atomic_load_n(&f->stop, __ATOMIC_ACQUIRE) != 0;
}

/* Returns when there is a request, or the agent must end. */
static void
wait_for_request(struct ipc_foreign *f)
{
	uint64_t until = now_ns() + AWAKE_NS;

	while (state_of(f) != REQUEST_ASKED && !stopped(f)) {
		if (now_ns() < until) {
			sched_yield();
			continue;
		}
		__atomic_store_n(&f->asleep, 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&f->state, __ATOMIC_SEQ_CST) == REQUEST_IDLE && !stopped(f))
			futex(&f->state, FUTEX_WAIT, REQUEST_IDLE);
		else if (state_of(f) == REQUEST_DONE)
			sched_yield(); /* the worker will take it soon */
		__atomic_store_n(&f->asleep, 0, __ATOMIC_SEQ_CST);
	}
}

/* Fewer bytes than requested: the rest is not mapped, or the process is gone. */
static int
perform(struct ipc_foreign *f)
{
	ssize_t n = f->write ? pwrite(f->mem, f->bytes, f->len, (off_t)f->addr)
			     : pread(f->mem, f->bytes, f->len, (off_t)f->addr);

	return n == (ssize_t)f->len ? 0 : -EFAULT;
}

static void *
agent_main(void *arg)
{
	struct ipc_foreign *f = arg;

	pthread_setname_np(pthread_self(), "hca-agent");
	__atomic_store_n(&f->tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	for (;;) {
		wait_for_request(f);
		if (stopped(f))
			break;
		if (!change(f, REQUEST_ASKED, REQUEST_RUNNING))
			continue;
		f->result = perform(f);
		if (!change(f, REQUEST_RUNNING, REQUEST_DONE))
			__atomic_store_n(&f->state, REQUEST_IDLE, __ATOMIC_RELEASE);
	}
	release(f);
	return NULL;
}

int
ipc_foreign_start(struct ipc_foreign *f)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	f->refs = 2;
	f->account = ACCOUNT_NS;
	f->account_at = now_ns();
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, AGENT_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, agent_main, f);
	pthread_attr_destroy(&attr);
	return -err;
}

static void
wake(struct ipc_foreign *f)
{
	if (__atomic_load_n(&f->asleep, __ATOMIC_SEQ_CST) != 0)
		futex(&f->state, FUTEX_WAKE, 1);
}

void
ipc_foreign_end(struct ipc_foreign *f)
{
	__atomic_store_n(&f->ended, 1, __ATOMIC_RELEASE);
}

void
ipc_foreign_destroy(struct ipc_foreign *f)
{
	ipc_foreign_end(f);
	__atomic_store_n(&f->stop, 1, __ATOMIC_SEQ_CST);
	/* it may have read stop just before: it must not stay asleep */
	while (__atomic_load_n(&f->refs, __ATOMIC_ACQUIRE) != 1 &&
	       state_of(f) != REQUEST_GIVEN_UP) {
		wake(f);
		sched_yield();
	}
	release(f);
}

/* ---- the workers ---- */

static bool
is_ended(const struct ipc_foreign *f)
{
	return __atomic_load_n(&f->ended, __ATOMIC_ACQUIRE) != 0;
}

static void
ask(struct ipc_foreign *f, bool write, uint64_t addr, const void *bytes, uint32_t len)
{
	f->write = write;
	f->addr = addr;
	f->len = len;
	if (write)
		memcpy(f->bytes, bytes, len);
	__atomic_store_n(&f->state, REQUEST_ASKED, __ATOMIC_SEQ_CST);
	wake(f);
}

/* Budget of all clients of this process together. */
static struct {
	uint32_t taken;
	uint64_t account, account_at;
} all = {.account = ALL_ACCOUNT_NS};

/* Refill a budget with a part of the time that has passed. */
static void
earn(uint64_t *account, uint64_t *at, uint64_t now, uint64_t part, uint64_t most)
{
	uint64_t earned = now > *at ? (now - *at) / part : 0;

	if (now > *at)
		*at = now;
	*account = *account + earned < most ? *account + earned : most;
}

static void
take_all(void)
{
	while (__atomic_exchange_n(&all.taken, 1, __ATOMIC_ACQUIRE) != 0)
		sched_yield();
}

static void
give_all(void)
{
	__atomic_store_n(&all.taken, 0, __ATOMIC_RELEASE);
}

/* Whether the budget permits another wait of the maximal length. */
static bool
can_pay(struct ipc_foreign *f, uint64_t now)
{
	bool can;

	earn(&f->account, &f->account_at, now, EARN, ACCOUNT_NS);
	take_all();
	earn(&all.account, &all.account_at, now, ALL_EARN, ALL_ACCOUNT_NS);
	can = f->account >= PATIENCE_NS && all.account >= PATIENCE_NS;
	give_all();
	return can;
}

/* Charge the time beyond the usual. */
static void
spend(struct ipc_foreign *f, uint64_t ns)
{
	if (ns <= USUAL_NS)
		return;
	f->account -= ns < f->account ? ns : f->account;
	take_all();
	all.account -= ns < all.account ? ns : all.account;
	give_all();
}

/* True: it is executed, or done. Otherwise it will not be executed. */
static bool
wait_for_start(struct ipc_foreign *f, uint64_t began)
{
	for (uint32_t i = 0; state_of(f) == REQUEST_ASKED; i++) {
		if (i < SPINS)
			relax();
		else if (now_ns() - began >= START_NS && change(f, REQUEST_ASKED, REQUEST_IDLE))
			return false;
		else
			sched_yield();
	}
	return true;
}

/* Read what the kernel says of the agent's thread. */
static bool
read_of_agent(const struct ipc_foreign *f, const char *name, char *text, size_t size)
{
	ssize_t n = -1;
	int fd;

	snprintf(text, size, "/proc/self/task/%d/%s", __atomic_load_n(&f->tid, __ATOMIC_ACQUIRE),
		 name);
	fd = open(text, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, size - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* Times of the agent's thread, ns: on a CPU, and ready to run but waiting for one. */
struct usage {
	uint64_t run, queued;
};

static bool
usage_of(const struct ipc_foreign *f, struct usage *u)
{
	char text[128];

	return read_of_agent(f, "schedstat", text, sizeof(text)) &&
	       sscanf(text, "%" SCNu64 " %" SCNu64, &u->run, &u->queued) == 2;
}

static bool
is_ready(const struct ipc_foreign *f)
{
	char text[128], *p;

	if (!read_of_agent(f, "stat", text, sizeof(text)))
		return false;
	p = strrchr(text, ')'); /* the end of the thread's name */
	return p != NULL && p[1] == ' ' && p[2] == 'R';
}

/* A worker's wait for one system call. */
struct wait {
	uint64_t began, patience; /* patience: since then the agent has had the time to finish */
	bool sampled;
	struct usage usage;
};

/* Whether the agent had no CPU lately, although it could run. Asked every PATIENCE_NS at most. */
static bool
had_no_cpu(struct ipc_foreign *f, struct wait *w, uint64_t now)
{
	struct usage u;
	bool lately;

	if (now - w->began >= START_NS || !w->sampled || !is_ready(f) || !usage_of(f, &u))
		return false;
	lately = u.run - w->usage.run < (now - w->patience) / 2;
	w->usage.run = u.run;
	if (lately)
		w->patience = now;
	return lately;
}

/*
 * The time of a wait that ended now, without that in which the agent had no CPU: as the kernel
 * counts it, or, if the access is given up, in whole periods of patience. So each access that is
 * given up is charged for one of them at least.
 */
static uint64_t
time_to_charge(const struct ipc_foreign *f, const struct wait *w, uint64_t now, bool done)
{
	uint64_t ns = now - w->began, queued = w->patience - w->began;
	struct usage u;

	if (done && ns > USUAL_NS && w->sampled && usage_of(f, &u))
		queued = u.queued - w->usage.queued;
	return ns > queued ? ns - queued : 0;
}

/* True: it is done. */
static bool
wait_for_answer(struct ipc_foreign *f)
{
	struct wait w = {0};
	uint64_t now = 0;
	uint32_t turns = 0;
	bool done = true;

	for (uint32_t i = 0; done && state_of(f) != REQUEST_DONE; i++) {
		if (i < SPINS) {
			relax();
			continue;
		}
		now = now_ns();
		if (turns++ == 0)
			w.began = w.patience = now;
		if (!w.sampled && now - w.began >= SAMPLE_NS)
			w.sampled = usage_of(f, &w.usage);
		if (now - w.patience >= PATIENCE_NS && turns > TURNS && !had_no_cpu(f, &w, now))
			done = !change(f, REQUEST_RUNNING, REQUEST_GIVEN_UP);
		else
			sched_yield();
	}
	if (turns > TURNS)
		spend(f, time_to_charge(f, &w, now, done));
	return done;
}

static int
request(struct ipc_foreign *f, bool write, uint64_t addr, void *bytes, uint32_t len)
{
	uint64_t began = now_ns();
	int rc = -EAGAIN;

	if (state_of(f) != REQUEST_IDLE || !can_pay(f, began))
		return -EAGAIN;
	ask(f, write, addr, bytes, len);
	if (wait_for_start(f, began) && wait_for_answer(f)) {
		rc = f->result;
		if (rc == 0 && !write)
			memcpy(bytes, f->bytes, len);
		__atomic_store_n(&f->state, REQUEST_IDLE, __ATOMIC_RELEASE);
	}
	return rc;
}

int
ipc_foreign_access(struct ipc_foreign *f, bool write, uint64_t addr, void *bytes, uint32_t len)
{
	int rc;

	if (is_ended(f) || len > IPC_FOREIGN_BYTES)
		return -EFAULT;
	while (__atomic_exchange_n(&f->taken, 1, __ATOMIC_ACQUIRE) != 0)
		sched_yield();
	rc = request(f, write, addr, bytes, len);
	__atomic_store_n(&f->taken, 0, __ATOMIC_RELEASE);
	return rc;
}

int
ipc_foreign_settle(struct ipc_foreign *f)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	for (uint32_t ms = 0; state_of(f) == REQUEST_GIVEN_UP; ms++) {
		if (ms == SETTLE_MS)
			return ipc_fail(-EIO, "the client's memory does not answer");
		nanosleep(&pause, NULL);
	}
	return 0;
}
