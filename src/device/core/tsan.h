/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CORE_TSAN_H
#define CORE_TSAN_H

/*
 * What ThreadSanitizer cannot see. It understands our atomics and those of DPDK's headers, but not
 * what happens inside DPDK's libraries, which are not instrumented: there an object goes from one
 * thread to the next through a memory pool or an in-memory port, ordered by their rings. These
 * calls say so; in an ordinary build they are nothing. They are for DPDK's hand-overs for words
 * that one side writes and the other reads in another size, and for what is sent twice, never for a
 * race of our own.
 *
 * Built with -Db_sanitize=thread; rings in headers are then those of the C11 memory model, which
 * the tool follows by itself.
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

/* Everything this thread did so far happens before what the next owner of p does. */
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
 * What is sent again is read again, and may be acknowledged at that moment: the owner then writes
 * to memory that is being read. The peer has the packet already and drops this one, whatever is in
 * it.
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

/*
 * Have the memory pools say who gives and who takes. After the EAL has started; any number of
 * times.
 */
void hca_tsan_watch_pools(void);
/* The calling thread is a DPDK thread now, or ends being one: its pool caches change hands. */
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
