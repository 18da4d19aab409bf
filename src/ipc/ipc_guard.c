/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * SIGBUS: a client has taken the pages of a segment away and there are no others. Whoever was
 * touching it (an lcore in the middle of a copy, the driver) goes on with zeros. The table is
 * process-wide, as signal handlers are.
 */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ipc_memory_impl.h"

#define MEMORIES_MAX 4096u
#define PAGE UINT64_C(4096)
#define PIECES 32u /* of a segment that are replaced on their own */

static struct ipc_memory *memories[MEMORIES_MAX];
static uint32_t memories_used; /* slots that were ever used */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t handlers; /* that may look at a memory of the table now */
static struct sigaction before;

int
ipc_guard_add(struct ipc_memory *m)
{
	uint32_t i = 0;
	int err = 0;

	pthread_mutex_lock(&table_lock);
	while (i < MEMORIES_MAX && memories[i] != NULL)
		i++;
	if (i == MEMORIES_MAX) {
		err = -ENOSPC;
	} else {
		__atomic_store_n(&memories[i], m, __ATOMIC_RELEASE);
		if (i >= memories_used)
			__atomic_store_n(&memories_used, i + 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&table_lock);
	return err;
}

/* No handler knows it any more when this has returned. */
void
ipc_guard_remove(struct ipc_memory *m)
{
	pthread_mutex_lock(&table_lock);
	for (uint32_t i = 0; i < memories_used; i++)
		if (memories[i] == m)
			__atomic_store_n(&memories[i], NULL, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&table_lock);
	while (__atomic_load_n(&handlers, __ATOMIC_SEQ_CST) != 0)
		sched_yield();
}

static bool
put_zeros(uint64_t at, uint64_t bytes)
{
	return mmap((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static bool
tell(struct ipc_memory *m, bool first)
{
	uint64_t one = 1;

	if (first)
		__atomic_fetch_add(&m->lost, 1, __ATOMIC_RELEASE);
	return write(m->config.lost_fd, &one, sizeof(one)) >= 0 || errno == EAGAIN;
}

/*
 * The page is zeros from now on; false: not mapped here. A page at a time takes a moment, all of a
 * large segment would hold up an lcore; but each is a mapping. Async-signal-safe.
 */
static bool
replace(struct ipc_memory *m, uint64_t addr)
{
	uint64_t uar = __atomic_load_n(&m->config.uar, __ATOMIC_ACQUIRE);

	if (uar != 0 && addr - uar < PAGE)
		return put_zeros(uar, PAGE) && tell(m, true);
	for (uint32_t i = 0; i < m->config.segments_max; i++) {
		struct ipc_segment *s = &m->segment[i];
		uint64_t length = __atomic_load_n(&s->length, __ATOMIC_ACQUIRE);
		uint64_t at = s->bus, page = s->page;
		uint32_t times;

		if (length == 0 || addr < at || addr - at >= length)
			continue;
		times = __atomic_fetch_add(&s->lost, 1, __ATOMIC_RELAXED);
		if (times < PIECES) {
			at += (addr - at) & ~(page - 1);
			length = page;
		}
		return put_zeros(at, length) && tell(m, times == 0);
	}
	return false;
}

static bool
repair(uint64_t addr)
{
	uint32_t used;
	bool repaired = false;

	__atomic_fetch_add(&handlers, 1, __ATOMIC_SEQ_CST);
	used = __atomic_load_n(&memories_used, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < used && !repaired; i++) {
		struct ipc_memory *m = __atomic_load_n(&memories[i], __ATOMIC_SEQ_CST);

		if (m != NULL && (addr - m->base < m->bytes || addr - m->config.uar < PAGE))
			repaired = replace(m, addr);
	}
	__atomic_fetch_sub(&handlers, 1, __ATOMIC_RELEASE);
	return repaired;
}

static void
on_sigbus(int sig, siginfo_t *info, void *context)
{
	int saved = errno;
	bool repaired = info->si_code > 0 && repair((uintptr_t)info->si_addr);

	errno = saved;
	if (repaired)
		return;
	if ((before.sa_flags & SA_SIGINFO) != 0)
		before.sa_sigaction(sig, info, context);
	else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
		before.sa_handler(sig);
	else
		sigaction(SIGBUS, &before, NULL); /* it faults again, and ends the process */
}

static int install_error;

static void
install(void)
{
	struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_NODEFER};

	sigemptyset(&sa.sa_mask);
	if (sigaction(SIGBUS, &sa, &before) != 0)
		install_error = -errno;
}

int
ipc_memory_guard(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, install);
	return install_error;
}

static _Thread_local char reason[sizeof(((struct ipc_reply *)NULL)->reason)] = "no error";

int
ipc_fail(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	return err;
}

const char *
ipc_reason(void)
{
	return reason;
}
