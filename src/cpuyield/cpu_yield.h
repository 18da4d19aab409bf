/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CPU_YIELD_H
#define CPU_YIELD_H

/*
 * When a polling thread yields its CPU: for workers of a device and programs inside poll_cq, which
 * may have to share CPUs. A spell is a sequence of polls that find nothing; it ends with one that
 * finds something.
 *
 *  - The CPU is not known to be shared: spin. When a spell is 10 us old, and every 10 us from then
 *    on, a sched_yield() probes. Shorter spells are never probed.
 *  - A yield that took long and switched to another thread means that the CPU is shared. This holds
 *    for 200 us and is renewed by another long yield in the second half of them, because counting
 *    switches costs a system call. Both conditions are needed: a thread that yields in a loop is
 *    inside sched_yield() when the timer ticks, would take the interrupt for another thread, and
 *    would never leave the mode.
 *  - Shared: every empty poll yields, and so does a full burst and every eighth busy poll. Else
 *    a stream would starve its own consumer.
 *  - A thread that finds something in every poll probes every 100 us, which costs 1 % of its time.
 *  - A yield of half a millisecond met a hog: a thread that never yields, such as a program that
 *    polls memory. After 8 ms were lost in such yields, minus a quarter of the time between them,
 *    yields stop for 20 ms, doubling up to 640 ms while hogs are met again: a yield costs a time
 *    slice of the hog and, under EEVDF, moves the deadline of the yielding thread away. A worker
 *    then sleeps at once and is scheduled when it is woken. A program spins for 100 us and then
 *    takes very short sleeps: spinning on, it would be a hog to the others. A single such yield
 *    proves nothing: another session had its turn, or the host took the CPU.
 *  - The scheduler deals turns to sessions, and a yield does not leave its session. A hog of
 *    another one has its turn whatever a program does, which must yield to its worker as long as
 *    their own turn lasts: a long yield behind many short ones does not count against a hog. One
 *    of the same session takes nearly every yield.
 *  - Every 2,048th yield is a very short sleep instead: under EEVDF each yield moves the thread's
 *    deadline away, even if no other thread is there, until threads that work delay it for seconds.
 *
 * Each thread has its own struct cpu_yield and accesses no other. Times are ns of a monotonic clock
 * that is never 0.
 */

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

/* age of a spell at which it is probed, and interval of probes */
#define CPU_YIELD_PROBE_NS 10000u
#define CPU_YIELD_SHARED_NS 200000u /* time for which a CPU counts as shared */
/* a yield without a switch takes 0.2 to 0.5 us, with two switches 2 us and more */
#define CPU_YIELD_SLOW_NS 1000u
/* a thread that runs this long during a yield does not yield itself */
#define CPU_YIELD_HOG_NS 500000u
#define CPU_YIELD_LOST_NS 8000000u	/* time lost in such yields after which a hog is assumed */
#define CPU_YIELD_LOST_SHARE 4u		/* 1/4 of the time between them is subtracted */
#define CPU_YIELD_AGAIN_NS 3000000u	/* the limit if a hog was met recently */
#define CPU_YIELD_HOGGED_MIN 20000000u	/* time without yields, initially */
#define CPU_YIELD_HOGGED_MAX 640000000u /* and at most */
/* age of a spell after which a program sleeps, if there is a hog */
#define CPU_YIELD_HOGGED_SPIN_NS 100000u
/* short yields of a program between two long ones: more are the turn of its session */
#define CPU_YIELD_TURN_YIELDS 32u
#define CPU_YIELD_NAP_EVERY 2048u /* number of yields per nap */
#define CPU_YIELD_BUSY_POLLS 8u
/* duration of busy polls before a probe, and interval of probes then */
#define CPU_YIELD_BUSY_PROBE_NS 100000u

/* System calls of the rule; tests replace them. */
struct cpu_yield_system {
	uint64_t (*now)(void);
	void (*yield)(void);
	void (*nap)(void);
	uint64_t (*switches)(void); /* number of times this thread left its CPU to another one */
};

struct cpu_yield {
	const struct cpu_yield_system *system;
	uint64_t begun;	       /* start of the spell; 0: the last poll found something */
	uint64_t probed;       /* end of the last yield */
	uint64_t shared_until; /* 0: not shared */
	/* time lost in yields to hogs, minus a share of the time between them */
	uint64_t lost;
	uint64_t lost_at;      /* end of the last such yield */
	uint64_t hogged_until; /* 0: no hog is known */
	uint64_t hogged_ns;    /* duration of the current or last time without yields */
	uint64_t switches;     /* value at the last count */
	/* first busy poll after an empty one; 0: the last poll was empty */
	uint64_t busy_since;
	uint32_t yields;
	uint32_t long_yield; /* the value of yields at the last that met a hog or another session */
	uint32_t busy;	     /* number of successive busy polls */
	bool soon;	     /* the next empty poll probes */
	bool spins;	     /* never sleeps, and yields even to a hog */
	bool naps;	     /* sleeps only by this rule: a program, not a worker */
};

static inline void
cpu_yield_sched(void)
{
	sched_yield();
}

static inline void
cpu_yield_nap(void)
{
	struct timespec ts = {.tv_nsec = 1};

	nanosleep(&ts, NULL);
}

static inline uint64_t
cpu_yield_switches(void)
{
	struct rusage r;

	return getrusage(RUSAGE_THREAD, &r) == 0 ? (uint64_t)r.ru_nivcsw : 0;
}

static inline bool
cpu_yield_shared(const struct cpu_yield *g, uint64_t now)
{
	return now < g->shared_until;
}

/* Whether a hog has the CPU: it gives the CPU up only at the end of its slice of milliseconds. */
static inline bool
cpu_yield_hogged(const struct cpu_yield *g, uint64_t now)
{
	return __builtin_expect(now < g->hogged_until, 0);
}

/* Whether the long yield of now ended a turn of this program's session. */
static inline bool
cpu_yield_turn_ended(struct cpu_yield *g)
{
	uint32_t between = g->yields - g->long_yield;

	g->long_yield = g->yields;
	return g->naps && between > CPU_YIELD_TURN_YIELDS;
}

/*
 * Account for a yield that took so long and ended now. If hogs are met again soon, the time without
 * yields doubles.
 */
static inline void
cpu_yield_met_hog(struct cpu_yield *g, uint64_t took, uint64_t now)
{
	uint64_t between = (now - took - g->lost_at) / CPU_YIELD_LOST_SHARE;
	bool again = g->hogged_until != 0 && now - g->hogged_until < 2 * g->hogged_ns;

	g->lost = (g->lost > between ? g->lost - between : 0) + took;
	g->lost_at = now;
	if (g->lost < (again ? CPU_YIELD_AGAIN_NS : CPU_YIELD_LOST_NS))
		return;
	if (!again)
		g->hogged_ns = CPU_YIELD_HOGGED_MIN;
	else if (g->hogged_ns < CPU_YIELD_HOGGED_MAX)
		g->hogged_ns *= 2;
	g->lost = 0;
	g->hogged_until = now + g->hogged_ns;
	g->shared_until = now;
}

/* Yield once and learn from it about the CPU. */
static __attribute__((noinline, unused)) void
cpu_yield_now(struct cpu_yield *g, uint64_t now)
{
	const struct cpu_yield_system *s = g->system;
	/* An old count would take a switch of long ago for one of this yield. */
	uint64_t before = cpu_yield_shared(g, now) ? g->switches : s->switches();
	uint64_t t = s->now(), took;

	if (++g->yields % CPU_YIELD_NAP_EVERY == 0)
		s->nap();
	else
		s->yield();
	g->probed = s->now();
	g->soon = false;
	g->switches = before;
	took = g->probed - t;
	if (took <= CPU_YIELD_SLOW_NS || g->probed + CPU_YIELD_SHARED_NS / 2 < g->shared_until)
		return;
	g->switches = s->switches();
	if (g->switches == before)
		return;
	g->shared_until = g->probed + CPU_YIELD_SHARED_NS;
	if (took >= CPU_YIELD_HOG_NS && !g->spins && !cpu_yield_turn_ended(g))
		cpu_yield_met_hog(g, took, g->probed);
}

/* A poll at time now found nothing: yield if it is due. Returns the age of the spell. */
static inline uint64_t
cpu_yield_empty(struct cpu_yield *g, uint64_t now)
{
	uint64_t age;

	g->busy_since = 0;
	if (g->begun == 0)
		g->begun = now;
	age = now - g->begun;
	if (cpu_yield_hogged(g, now)) {
		if (g->naps && age >= CPU_YIELD_HOGGED_SPIN_NS)
			g->system->nap();
		return age;
	}
	if (cpu_yield_shared(g, now) || g->soon ||
	    (age >= CPU_YIELD_PROBE_NS && now - g->probed >= CPU_YIELD_PROBE_NS))
		cpu_yield_now(g, now);
	return age;
}

/* A poll at time now found something; full: there is probably more. */
static inline void
cpu_yield_busy(struct cpu_yield *g, uint64_t now, bool full)
{
	g->begun = 0;
	if (g->busy_since == 0)
		g->busy_since = now;
	if (!cpu_yield_shared(g, now)) {
		if (cpu_yield_hogged(g, now) || now - g->busy_since < CPU_YIELD_BUSY_PROBE_NS)
			return;
		g->busy_since = now;
		cpu_yield_now(g, now);
		return;
	}
	if (full || ++g->busy % CPU_YIELD_BUSY_POLLS == 0)
		cpu_yield_now(g, now);
}

/* This thread has woken another one, which may wait for this CPU: probe at the next empty poll. */
static inline void
cpu_yield_soon(struct cpu_yield *g)
{
	g->soon = true;
}

/*
 * This thread has woken another one and may not poll soon: yield, unless a hog is known. The one
 * that is woken may wait for this CPU until the time slice of this thread ends. Long yields say
 * nothing here: the other one may work as long.
 */
static inline void
cpu_yield_woke(const struct cpu_yield *g, uint64_t now)
{
	if (!cpu_yield_hogged(g, now))
		g->system->yield();
}

/* Start a new spell at the next empty poll, because work was announced. */
static inline void
cpu_yield_restart(struct cpu_yield *g)
{
	g->begun = 0;
}

#endif
