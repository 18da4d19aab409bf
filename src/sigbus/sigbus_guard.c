/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>

#include "sigbus_guard.h"

static struct {
	void *owner;
	sigbus_guard_fn fn; /* written only while the place has no owner */
} table[SIGBUS_GUARD_OWNERS];
static uint32_t used; /* places that have ever been in use */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t handlers; /* handlers that may be reading the table */
static struct sigaction before;
static int install_error;

static bool
repair(uintptr_t addr)
{
	bool repaired = false;
	uint32_t n;

	__atomic_fetch_add(&handlers, 1, __ATOMIC_SEQ_CST);
	n = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < n && !repaired; i++) {
		void *owner = __atomic_load_n(&table[i].owner, __ATOMIC_SEQ_CST);

		if (owner != NULL)
			repaired = table[i].fn(owner, addr);
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
		sigaction(SIGBUS, &before, NULL); /* the access faults again and ends the process */
}

static void
install(void)
{
	struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_NODEFER};

	sigemptyset(&sa.sa_mask);
	if (sigaction(SIGBUS, &sa, &before) != 0)
		install_error = -errno;
}

int
sigbus_guard_install(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, install);
	return install_error;
}

/* The place of an owner, else the first free one. */
static uint32_t
place_of(const void *owner)
{
	uint32_t place = SIGBUS_GUARD_OWNERS;

	for (uint32_t i = 0; i < SIGBUS_GUARD_OWNERS; i++) {
		if (table[i].owner == owner)
			return i;
		if (table[i].owner == NULL && place == SIGBUS_GUARD_OWNERS)
			place = i;
		if (i >= used)
			break;
	}
	return place;
}

int
sigbus_guard_add(void *owner, sigbus_guard_fn fn)
{
	int err = sigbus_guard_install();
	uint32_t i;

	if (err != 0)
		return err;
	pthread_mutex_lock(&table_lock);
	i = place_of(owner);
	if (i == SIGBUS_GUARD_OWNERS) {
		err = -ENOSPC;
	} else if (table[i].owner == NULL) {
		table[i].fn = fn;
		__atomic_store_n(&table[i].owner, owner, __ATOMIC_SEQ_CST);
		if (i >= used)
			__atomic_store_n(&used, i + 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&table_lock);
	return err;
}

/*
 * Waits for running handlers while it holds the lock, so a place is not reused while a handler may
 * read it.
 */
void
sigbus_guard_remove(void *owner)
{
	pthread_mutex_lock(&table_lock);
	for (uint32_t i = 0; i < used; i++)
		if (table[i].owner == owner)
			__atomic_store_n(&table[i].owner, NULL, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&handlers, __ATOMIC_SEQ_CST) != 0)
		sched_yield();
	pthread_mutex_unlock(&table_lock);
}
