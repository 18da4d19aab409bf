/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * SIGBUS: a peer has cut a region short that could not be sealed. Whoever was copying goes on with
 * zeros, and the link goes down. The table is process-wide, as signal handlers are; other handlers
 * of the process get what is not ours.
 */

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "port/port_memif_impl.h"

#define GUARDED_MAX 64u

static struct {
	struct memif_conn *conn;
	struct port_memif *port;
} guarded[GUARDED_MAX];

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t handlers; /* that may look at a connection of the table now */
static struct sigaction before;
static bool installed;

/* Its bytes are zeros from now on. Async-signal-safe. */
static bool
replace(struct port_memif *p, struct memif_conn *c, uintptr_t addr)
{
	for (uint32_t i = 0; i < REGIONS_MAX; i++) {
		uint64_t size = __atomic_load_n(&c->region[i].size, __ATOMIC_ACQUIRE);
		uintptr_t base = (uintptr_t)c->region[i].base;

		if (size == 0 || addr < base || addr - base >= size)
			continue;
		if (mmap(c->region[i].base, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
			 0) == MAP_FAILED)
			return false;
		memif_break(p, c, MEMIF_BROKEN_MEMORY);
		return true;
	}
	return false;
}

static bool
repair(uintptr_t addr)
{
	bool repaired = false;

	__atomic_fetch_add(&handlers, 1, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < GUARDED_MAX && !repaired; i++) {
		struct memif_conn *c = __atomic_load_n(&guarded[i].conn, __ATOMIC_SEQ_CST);

		if (c != NULL)
			repaired = replace(guarded[i].port, c, addr);
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

static int
install(void)
{
	struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_NODEFER};

	if (installed)
		return 0;
	sigemptyset(&sa.sa_mask);
	if (sigaction(SIGBUS, &sa, &before) != 0)
		return -errno;
	installed = true;
	return 0;
}

int
memif_guard_add(struct port_memif *p, struct memif_conn *c)
{
	uint32_t i, place = GUARDED_MAX;
	int err;

	pthread_mutex_lock(&table_lock);
	err = install();
	for (i = 0; i < GUARDED_MAX && guarded[i].conn != c; i++)
		if (guarded[i].conn == NULL && place == GUARDED_MAX)
			place = i;
	if (err == 0 && i == GUARDED_MAX && place == GUARDED_MAX)
		err = -ENOSPC;
	if (err == 0 && i == GUARDED_MAX) {
		guarded[place].port = p;
		__atomic_store_n(&guarded[place].conn, c, __ATOMIC_SEQ_CST);
	}
	pthread_mutex_unlock(&table_lock);
	return err;
}

/* No handler knows it any more when this has returned. */
void
memif_guard_remove(struct memif_conn *c)
{
	pthread_mutex_lock(&table_lock);
	for (uint32_t i = 0; i < GUARDED_MAX; i++)
		if (guarded[i].conn == c)
			__atomic_store_n(&guarded[i].conn, NULL, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&table_lock);
	while (__atomic_load_n(&handlers, __ATOMIC_SEQ_CST) != 0)
		sched_yield();
}
