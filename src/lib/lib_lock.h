/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_LOCK_H
#define LIB_LOCK_H

/*
 * The lock of a queue. It is held for tens of ns, so a waiting thread spins; after LIB_LOCK_SPINS
 * turns it yields, because with fewer CPUs than threads the holder may not be running. Only the
 * lock of a CQ is held for longer: while a program reads completions (start_poll). A thread that
 * waits for it holds no other lock that a program may need meanwhile.
 */

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#define LIB_LOCK_SPINS 128

struct lib_lock {
	uint32_t taken;
};

static inline void
lib_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

static inline bool
lib_lock_try(struct lib_lock *lock)
{
	return __atomic_exchange_n(&lock->taken, 1, __ATOMIC_ACQUIRE) == 0;
}

static inline void
lib_lock_take(struct lib_lock *lock)
{
	unsigned int spins = 0;

	while (!lib_lock_try(lock)) {
		while (__atomic_load_n(&lock->taken, __ATOMIC_RELAXED) != 0) {
			if (++spins % LIB_LOCK_SPINS == 0)
				sched_yield();
			else
				lib_cpu_relax();
		}
	}
}

static inline void
lib_lock_drop(struct lib_lock *lock)
{
	__atomic_store_n(&lock->taken, 0, __ATOMIC_RELEASE);
}

#endif
