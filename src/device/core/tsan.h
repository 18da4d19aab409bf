/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_TSAN_H
#define CORE_TSAN_H

/*
 * Annotations for ThreadSanitizer. It understands our atomics and those in DPDK's headers, but not
 * DPDK's libraries, which are not instrumented: there an object passes from one thread to another
 * through a memory pool or an in-memory port, ordered by their rings. These calls declare that; in
 * other builds they are empty. They are for objects handed over by DPDK, for words that one side
 * writes and the other reads in another size, and for retransmissions, never for a race of our own.
 *
 * Used with -Db_sanitize=thread; rings in headers then use the C11 memory model, which the tool
 * understands.
 */

#include <stdbool.h>

#if defined(__SANITIZE_THREAD__)
#define HCA_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HCA_TSAN 1
#endif
#endif

#ifdef HCA_TSAN

void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);

/* All stores and loads of this thread so far happen before those of the next owner of p. */
static inline void
hca_tsan_give(const void *p)
{
	__tsan_release((void *)(uintptr_t)p);
}

static inline void
hca_tsan_take(const void *p)
{
	__tsan_acquire((void *)(uintptr_t)p);
}

/*
 * A retransmission reads its payload again and may be acknowledged at that moment: the owner may
 * then write to memory that is being read. The peer already has the packet and drops this one,
 * whatever it contains.
 */
static inline void
hca_tsan_repeat_begin(bool repeat)
{
	if (repeat)
		AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
}

static inline void
hca_tsan_repeat_end(bool repeat)
{
	if (repeat)
		AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

/* Make memory pools report the threads that use them. After the EAL start; may be repeated. */
void hca_tsan_watch_pools(void);
/* The calling thread becomes a DPDK thread, or ceases to be one: its pool caches change owners. */
void hca_tsan_take_caches(void);
void hca_tsan_give_caches(void);

#else

static inline void
hca_tsan_give(const void *p)
{
	(void)p;
}

static inline void
hca_tsan_take(const void *p)
{
	(void)p;
}

static inline void
hca_tsan_repeat_begin(bool repeat)
{
	(void)repeat;
}

static inline void
hca_tsan_repeat_end(bool repeat)
{
	(void)repeat;
}

static inline void
hca_tsan_watch_pools(void)
{
}

static inline void
hca_tsan_take_caches(void)
{
}

static inline void
hca_tsan_give_caches(void)
{
}

#endif

/* The same for a burst. */
static inline void
hca_tsan_give_all(void *const *p, unsigned int n)
{
#ifdef HCA_TSAN
	for (unsigned int i = 0; i < n; i++)
		hca_tsan_give(p[i]);
#else
	(void)p;
	(void)n;
#endif
}

static inline void
hca_tsan_take_all(void *const *p, unsigned int n)
{
#ifdef HCA_TSAN
	for (unsigned int i = 0; i < n; i++)
		hca_tsan_take(p[i]);
#else
	(void)p;
	(void)n;
#endif
}

#endif
