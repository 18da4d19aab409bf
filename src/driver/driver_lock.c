/* SPDX-License-Identifier: BSD-3-Clause */

#include "driver_lock.h"

/* On the stack of the thread that waits */
struct driver_lock_waiter {
	struct driver_lock_waiter *next;
	pthread_cond_t turn;
	bool granted;
};

void
driver_lock_init(struct driver_lock *lock)
{
	*lock = (struct driver_lock){.taken = false};
	pthread_mutex_init(&lock->guard, NULL);
}

void
driver_lock_destroy(struct driver_lock *lock)
{
	pthread_mutex_destroy(&lock->guard);
}

/* The guard is held, and released while the thread waits. */
static void
lock_wait(struct driver_lock *lock)
{
	struct driver_lock_waiter me = {.turn = PTHREAD_COND_INITIALIZER};

	if (lock->last != NULL)
		lock->last->next = &me;
	else
		lock->first = &me;
	lock->last = &me;
	lock->waiting++;
	while (!me.granted)
		pthread_cond_wait(&me.turn, &lock->guard);
	pthread_cond_destroy(&me.turn);
}

void
driver_lock_take(struct driver_lock *lock)
{
	pthread_mutex_lock(&lock->guard);
	if (lock->taken)
		lock_wait(lock);
	lock->taken = true;
	pthread_mutex_unlock(&lock->guard);
}

void
driver_lock_give(struct driver_lock *lock)
{
	struct driver_lock_waiter *next;

	pthread_mutex_lock(&lock->guard);
	next = lock->first;
	lock->taken = next != NULL; /* it stays taken, by the next one */
	if (next != NULL) {
		lock->first = next->next;
		if (lock->first == NULL)
			lock->last = NULL;
		lock->waiting--;
		next->granted = true;
		pthread_cond_signal(&next->turn);
	}
	pthread_mutex_unlock(&lock->guard);
}

bool
driver_lock_try(struct driver_lock *lock)
{
	bool got;

	pthread_mutex_lock(&lock->guard);
	got = !lock->taken;
	lock->taken = true;
	pthread_mutex_unlock(&lock->guard);
	return got;
}

uint32_t
driver_lock_waiting(struct driver_lock *lock)
{
	uint32_t n;

	pthread_mutex_lock(&lock->guard);
	n = lock->waiting;
	pthread_mutex_unlock(&lock->guard);
	return n;
}
