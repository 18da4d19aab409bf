/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DRIVER_LOCK_H
#define DRIVER_LOCK_H

/*
 * A lock that is handed over in the order of asking. Commands of clients take as long as the device
 * takes, and a client that gives the lock back and asks again at once would get a mutex again and
 * again before a waiting thread has woken up. Here it waits behind all that were waiting, so that
 * between two turns of one thread each waiting thread has one.
 *
 * It is valid with all bytes 0. Not recursive. Any thread.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct driver_lock_waiter;

struct driver_lock {
	pthread_mutex_t guard; /* of the rest; held for a few instructions */
	struct driver_lock_waiter *first, *last;
	uint32_t waiting;
	bool taken;
};

void driver_lock_init(struct driver_lock *lock);
void driver_lock_destroy(struct driver_lock *lock);
/* Waits for the turn of the calling thread. */
void driver_lock_take(struct driver_lock *lock);
/* The holder gives the lock to the thread that has waited longest, if there is one. */
void driver_lock_give(struct driver_lock *lock);
/* Takes it if it is free: whether it was. */
bool driver_lock_try(struct driver_lock *lock);
/** @return  number of threads that wait at this moment */
uint32_t driver_lock_waiting(struct driver_lock *lock);

#endif
