/* SPDX-License-Identifier: BSD-3-Clause */

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>

#include <rte_interrupts.h>

#include "endpoint_driver.h"

typedef int (*unregister_fn)(const struct rte_intr_handle *handle, rte_intr_callback_fn fn,
			     void *arg);

/* A process has one endpoint, and who calls us knows nothing of it. */
static struct {
	pthread_mutex_t lock; /* what is waited for must not go away meanwhile */
	void (*wait)(void *arg);
	void *arg;
} guard = {.lock = PTHREAD_MUTEX_INITIALIZER};

void
endpoint_driver_guard(void (*wait)(void *arg), void *arg)
{
	pthread_mutex_lock(&guard.lock);
	guard.wait = wait;
	guard.arg = arg;
	pthread_mutex_unlock(&guard.lock);
}

__attribute__((visibility("default"))) int
rte_intr_callback_unregister(const struct rte_intr_handle *handle, rte_intr_callback_fn fn,
			     void *arg)
{
	union {
		void *symbol;
		unregister_fn call;
	} next = {.symbol = dlsym(RTLD_NEXT, "rte_intr_callback_unregister")};

	pthread_mutex_lock(&guard.lock);
	if (guard.wait != NULL)
		guard.wait(guard.arg);
	pthread_mutex_unlock(&guard.lock);
	return next.symbol != NULL ? next.call(handle, fn, arg) : -ENOSYS;
}
