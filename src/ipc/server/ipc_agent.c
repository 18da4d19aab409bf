/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The agent: one thread per client with foreign memory, which executes one request at a time. A
 * worker fills in the request and waits; either it takes the answer, or it abandons the request,
 * which then only the agent ends. Data passes through a buffer of the agent, so that late data
 * reaches no other memory.
 *
 * They meet by futex, after a short spin if they run on different CPUs. Neither yields: with a busy
 * thread on the CPU a yield costs a time slice of it, and may be in vain.
 *
 * A client is charged only the time of its system call, without the time in which the agent could
 * run but had no CPU: it is not responsible for a busy machine. The kernel's statistics of the
 * agent's thread tell them apart. Waiting for a CPU has a budget of its own.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
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
#define SPIN_NS 20000u /* limit of a spin for the other thread */
/* limit of a worker's wait for the system call; how long it waits for a CPU: IPC_BUDGET_CPU */
#define ACCESS_TIMEOUT_NS IPC_BUDGET_MIN_NS
#define NAP_NS 1000000u	       /* a waiting worker looks again after this time */
#define SAMPLE_NS 100000u      /* time from which a wait is worth a look at the statistics */
#define NAPS 5u		       /* least number of naps before a request is abandoned */
#define USUAL_NS 200000u       /* not charged */
#define DESTROY_PAUSE_NS 20000 /* between looks at an agent that ends */
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

/* ns: limit of a wait, 0: none. */
static void
futex(uint32_t *word, int op, uint32_t value, uint64_t ns)
{
	const struct timespec limit = {.tv_sec = (time_t)(ns / 1000000000u),
				       .tv_nsec = (long)(ns % 1000000000u)};

	syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, ns != 0 ? &limit : NULL, NULL, 0);
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

/*
 * Sequentially consistent, as all words that one thread writes before it reads those of the other.
 */
static uint32_t
state_of(const struct ipc_foreign *f)
{
	return __atomic_load_n(&f->state, __ATOMIC_SEQ_CST);
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
	if (__atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	pthread_mutex_destroy(&f->lock);
	ipc_foreign_free(f);
}

/* Spin while the state is `state`, if the other thread is on another CPU. */
static void
spin(const struct ipc_foreign *f, uint32_t state, const int *other)
{
	uint64_t until = now_ns() + SPIN_NS;

	if (__atomic_load_n(other, __ATOMIC_RELAXED) == sched_getcpu())
		return;
	while (state_of(f) == state && now_ns() < until)
		relax();
}

/* Sleep while the state is `state`; *asleep asks the other thread for a wake-up. */
static void
sleep_while(struct ipc_foreign *f, uint32_t state, uint32_t *asleep, uint64_t ns)
{
	__atomic_store_n(asleep, 1, __ATOMIC_SEQ_CST);
	futex(&f->state, FUTEX_WAIT, state, ns);
	__atomic_store_n(asleep, 0, __ATOMIC_SEQ_CST);
}

static void
wake(struct ipc_foreign *f, const uint32_t *asleep)
{
	if (__atomic_load_n(asleep, __ATOMIC_SEQ_CST) != 0)
		futex(&f->state, FUTEX_WAKE, INT_MAX, 0);
}

/* ---- the agent ---- */

static bool
stopped(const struct ipc_foreign *f)
{
	return __atomic_load_n(&f->stop, __ATOMIC_SEQ_CST) != 0;
}

/* Returns when there is a request, or the agent must end. */
static void
wait_for_request(struct ipc_foreign *f)
{
	uint32_t state = state_of(f);

	if (state == REQUEST_DONE) {
		spin(f, REQUEST_DONE, &f->worker_cpu);
		state = state_of(f);
	}
	if (state == REQUEST_IDLE)
		spin(f, REQUEST_IDLE, &f->worker_cpu);
	while ((state = state_of(f)) != REQUEST_ASKED && !stopped(f))
		sleep_while(f, state, &f->agent_asleep, 0);
	__atomic_store_n(&f->agent_cpu, sched_getcpu(), __ATOMIC_RELAXED);
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

	(void)pthread_setname_np(pthread_self(), "hca-agent");
	__atomic_store_n(&f->tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	for (;;) {
		wait_for_request(f);
		if (stopped(f))
			break;
		if (!change(f, REQUEST_ASKED, REQUEST_RUNNING))
			continue;
		f->result = perform(f);
		if (change(f, REQUEST_RUNNING, REQUEST_DONE))
			wake(f, &f->worker_asleep);
		else /* before it reads stop: its destroyer does not wake it after this state */
			__atomic_store_n(&f->state, REQUEST_IDLE, __ATOMIC_SEQ_CST);
	}
	release(f);
	return NULL;
}

int
ipc_foreign_start(struct ipc_foreign *f, uid_t uid)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	f->budget = ipc_budget_open(uid, now_ns());
	if (f->budget == NULL)
		return -ENOMEM;
	f->refs = 2;
	f->agent_cpu = f->worker_cpu = -1;
	pthread_mutex_init(&f->lock, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, AGENT_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, agent_main, f);
	pthread_attr_destroy(&attr);
	if (err != 0)
		ipc_budget_close(f->budget);
	return -err;
}

void
ipc_foreign_end(struct ipc_foreign *f)
{
	__atomic_store_n(&f->ended, 1, __ATOMIC_RELEASE);
}

void
ipc_foreign_destroy(struct ipc_foreign *f)
{
	const struct timespec pause = {.tv_nsec = DESTROY_PAUSE_NS};

	ipc_foreign_end(f);
	__atomic_store_n(&f->stop, 1, __ATOMIC_SEQ_CST);
	/* it may have read stop just before: it must not stay asleep */
	while (__atomic_load_n(&f->refs, __ATOMIC_ACQUIRE) != 1 &&
	       state_of(f) != REQUEST_GIVEN_UP) {
		wake(f, &f->agent_asleep);
		nanosleep(&pause, NULL);
	}
	ipc_budget_close(f->budget);
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
	__atomic_store_n(&f->worker_cpu, sched_getcpu(), __ATOMIC_RELAXED);
	__atomic_store_n(&f->state, REQUEST_ASKED, __ATOMIC_SEQ_CST);
	wake(f, &f->agent_asleep);
}

/* Within the share of its user: ipc_budget.h. */
static const struct ipc_allowance per_client = {.part = 20, .max = 50000000};

/* Whether the budgets permit another wait of the maximal length. */
static bool
can_pay(const struct ipc_foreign *f, uint64_t now)
{
	return ipc_allowance_left(&f->empty_at, &per_client, now) >= ACCESS_TIMEOUT_NS &&
	       ipc_budget_left(f->budget, IPC_BUDGET_SYSCALL, now) >= ACCESS_TIMEOUT_NS;
}

/* Charge the time beyond the usual. */
static void
spend(struct ipc_foreign *f, uint64_t now, uint64_t ns)
{
	if (ns <= USUAL_NS)
		return;
	ipc_allowance_take(&f->empty_at, &per_client, now, ns);
	ipc_budget_take(f->budget, IPC_BUDGET_SYSCALL, now, ns);
}

/* Read the kernel's state of the agent's thread. */
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

/* A worker's wait for one request. */
struct wait {
	uint64_t began;	     /* of the request */
	uint64_t ran;	     /* when the system call was seen first; 0: not yet */
	uint64_t timed_from; /* start of the period of ACCESS_TIMEOUT_NS that now runs */
	uint64_t starved;    /* longest time to wait for an agent without CPU */
	uint32_t naps;
	bool sampled;
	struct usage usage;
};

/* Whether the agent had no CPU lately, although it could run. Called once per ACCESS_TIMEOUT_NS. */
static bool
had_no_cpu(const struct ipc_foreign *f, struct wait *w, uint64_t now)
{
	struct usage u;
	bool lately;

	if (!w->sampled || !is_ready(f) || !usage_of(f, &u))
		return false;
	lately = u.run - w->usage.run < (now - w->timed_from) / 2;
	w->usage.run = u.run;
	if (lately)
		w->timed_from = now;
	return lately;
}

/*
 * The time of a system call that ended now, without that in which the agent had no CPU: as the
 * kernel counts it, or, if the access is abandoned, in whole periods of ACCESS_TIMEOUT_NS. So an
 * abandoned access is charged for one period, unless the agent had no CPU in the last one either.
 */
static uint64_t
time_to_charge(const struct ipc_foreign *f, const struct wait *w, uint64_t now, bool done)
{
	uint64_t ns = now - w->ran, queued = w->timed_from - w->ran;
	struct usage u;

	if (done && ns > USUAL_NS && w->sampled && usage_of(f, &u))
		queued = u.queued - w->usage.queued;
	return ns > queued ? ns - queued : 0;
}

/*
 * Abandon the request if it is time: -EAGAIN if it has not begun and will not be executed,
 * -EINPROGRESS if the agent still executes it; 0: not yet.
 */
static int
abandon(struct ipc_foreign *f, struct wait *w, uint32_t state, uint64_t now)
{
	if (state == REQUEST_ASKED)
		return now - w->began >= w->starved && change(f, REQUEST_ASKED, REQUEST_IDLE)
			       ? -EAGAIN
			       : 0;
	if (w->ran == 0)
		w->ran = w->timed_from = now;
	if (!w->sampled && now - w->ran >= SAMPLE_NS)
		w->sampled = usage_of(f, &w->usage);
	if (now - w->timed_from < ACCESS_TIMEOUT_NS || w->naps < NAPS ||
	    (had_no_cpu(f, w, now) && now - w->began < w->starved))
		return 0;
	return change(f, REQUEST_RUNNING, REQUEST_GIVEN_UP) ? -EINPROGRESS : 0;
}

static void
settle_account(struct ipc_foreign *f, const struct wait *w, uint64_t now, bool done)
{
	uint64_t charged = w->ran != 0 ? time_to_charge(f, w, now, done) : 0;
	uint64_t ns = now - w->began;

	spend(f, now, charged);
	if (ns > ACCESS_TIMEOUT_NS && ns > charged)
		ipc_budget_take(f->budget, IPC_BUDGET_CPU, now, ns - charged);
}

/* 0: it is done; or as abandon(). */
static int
wait_for_answer(struct ipc_foreign *f, uint64_t began)
{
	struct wait w = {.began = began, .ran = 0};
	uint64_t now = began, left = ipc_budget_left(f->budget, IPC_BUDGET_CPU, began);
	uint32_t state;
	int rc = 0;

	w.starved = left > ACCESS_TIMEOUT_NS ? left : ACCESS_TIMEOUT_NS;
	spin(f, REQUEST_ASKED, &f->agent_cpu);
	spin(f, REQUEST_RUNNING, &f->agent_cpu);
	while (rc == 0 && (state = state_of(f)) != REQUEST_DONE) {
		now = now_ns();
		rc = abandon(f, &w, state, now);
		if (rc == 0) {
			sleep_while(f, state, &f->worker_asleep, w.naps == 0 ? SAMPLE_NS : NAP_NS);
			w.naps++;
		}
	}
	if (w.naps != 0)
		settle_account(f, &w, rc == 0 ? now_ns() : now, rc == 0);
	return rc;
}

static int
request(struct ipc_foreign *f, bool write, uint64_t addr, void *bytes, uint32_t len)
{
	uint64_t began = now_ns();
	int rc;

	if (state_of(f) != REQUEST_IDLE || !can_pay(f, began))
		return -EAGAIN;
	ask(f, write, addr, bytes, len);
	rc = wait_for_answer(f, began);
	if (rc != 0)
		return rc == -EINPROGRESS && !write ? -EAGAIN : rc;
	rc = f->result;
	if (rc == 0 && !write)
		memcpy(bytes, f->bytes, len);
	__atomic_store_n(&f->state, REQUEST_IDLE, __ATOMIC_RELEASE);
	return rc;
}

int
ipc_foreign_access(struct ipc_foreign *f, bool write, uint64_t addr, void *bytes, uint32_t len)
{
	int rc;

	if (is_ended(f) || len > IPC_FOREIGN_BYTES)
		return -EFAULT;
	pthread_mutex_lock(&f->lock);
	rc = request(f, write, addr, bytes, len);
	pthread_mutex_unlock(&f->lock);
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
