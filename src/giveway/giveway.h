/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GIVEWAY_H
#define GIVEWAY_H

/*
 * When somebody who polls gives way: workers of a device and programs inside poll_cq, which may
 * have to share CPUs. A spell begins with the first poll that finds nothing and ends with one that
 * finds something.
 *
 *  - The CPU is not known to be shared: spin. When the spell is 10 us old one sched_yield() probes,
 *    and again every 10 us. What takes less than that never meets a probe.
 *  - A yield that took long and switched to another thread means that the CPU is shared, for 200
 *    us, which such a yield renews when half of them are over: to count switches costs a system
 *    call. Both are asked: a thread that yields in a loop is inside sched_yield() when the timer
 *    ticks, takes the interrupt for a neighbour, and would stay in the mode it should leave.
 *  - Shared: every empty poll yields, and so does a full burst and every eighth busy poll. Else a
 *    stream would starve its own consumer.
 *  - Who finds something in every poll has no spell: a probe every 100 us, 1 % of the time.
 *  - A yield that took half a millisecond met a hog: a thread that never gives way, such as a
 *    program that watches memory. When 8 ms were lost in such yields, less a quarter of what passed
 *    between them, nothing yields for 20 ms, doubling up to 640 ms while hogs are met again: a
 *    yield costs a slice of the hog's, and under EEVDF moves the one that yields further back each
 *    time. A worker sleeps at once instead, and is let in when it is woken. A program spins for 100
 *    us and takes very short sleeps then: spinning on it would be a hog to all others, and they to
 *    each other. One such yield alone says little: another session had its turn, or the host took
 *    the CPU.
 *  - Every 2,048th yield is a very short sleep instead: under EEVDF each yield moves the deadline
 *    of the one that yields further away, also when nobody else is there, until it starves for
 *    seconds behind those that work.
 *
 * One struct giveway per thread; nobody else touches it. Times are ns of any clock that goes
 * forward and is never 0.
 */

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

#define GIVEWAY_PROBE_NS 10000u	      /* age of a spell that probes, and between two probes */
#define GIVEWAY_SHARED_NS 200000u     /* how long a yield that met somebody counts */
#define GIVEWAY_SLOW_NS 1000u	      /* nobody there: 0.2 to 0.5 us; two switches: 2 us and more */
#define GIVEWAY_HOG_NS 500000u	      /* who has the CPU that long does not give way */
#define GIVEWAY_LOST_NS 8000000u      /* of such time, less what passed between: hogged */
#define GIVEWAY_LOST_SHARE 4u	      /* what passes between counts for one part in so many */
#define GIVEWAY_AGAIN_NS 3000000u     /* where that was so a moment ago */
#define GIVEWAY_HOGGED_MIN 20000000u  /* how long it counts, at first ... */
#define GIVEWAY_HOGGED_MAX 640000000u /* ... and at most */
#define GIVEWAY_HOGGED_SPIN_NS 100000u /* how old a spell beside a hog is that is slept through */
#define GIVEWAY_NAP_EVERY 2048u	       /* yields */
#define GIVEWAY_BUSY_POLLS 8u
#define GIVEWAY_BUSY_PROBE_NS 100000u /* without an empty poll, and between two probes then */

/* What the rule asks of the system; a test puts something else in its place. */
struct giveway_system {
	uint64_t (*now)(void);
	void (*yield)(void);
	void (*nap)(void);
	uint64_t (*switches)(void); /* how often this thread had to leave its CPU to another one */
};

struct giveway {
	const struct giveway_system *system;
	uint64_t begun;	       /* the spell; 0: the last poll found something */
	uint64_t probed;       /* the last yield was over */
	uint64_t shared_until; /* 0: not shared */
	uint64_t lost;	       /* in yields to hogs, less a share of what passed between */
	uint64_t lost_at;      /* the last of them was over */
	uint64_t hogged_until; /* 0: no hog was met */
	uint64_t hogged_ns;    /* how long the last one counted */
	uint64_t switches;     /* when they were last counted */
	/* the first busy poll behind an empty one; 0: the last one was empty */
	uint64_t busy_since;
	uint32_t yields;
	uint32_t busy; /* busy polls */
	bool soon;     /* the next empty poll probes */
	bool spins;    /* never sleeps: yields even to a hog */
	bool naps;     /* has no other sleep than that of the rule: a program */
};

static inline void
giveway_sched_yield(void)
{
	sched_yield();
}

static inline void
giveway_nap(void)
{
	struct timespec ts = {.tv_nsec = 1};

	nanosleep(&ts, NULL);
}

static inline uint64_t
giveway_switches(void)
{
	struct rusage r;

	return getrusage(RUSAGE_THREAD, &r) == 0 ? (uint64_t)r.ru_nivcsw : 0;
}

static inline bool
giveway_shared(const struct giveway *g, uint64_t now)
{
	return now < g->shared_until;
}

/*
 * Whoever has the CPU gets it from the scheduler only: a yield would cost a slice of milliseconds.
 */
static inline bool
giveway_hogged(const struct giveway *g, uint64_t now)
{
	return __builtin_expect(now < g->hogged_until, 0);
}

/* A yield of so long ended now. Hogs that are met again soon after are looked for less often. */
static inline void
giveway_met_hog(struct giveway *g, uint64_t took, uint64_t now)
{
	uint64_t between = (now - took - g->lost_at) / GIVEWAY_LOST_SHARE;
	bool again = g->hogged_until != 0 && now - g->hogged_until < 2 * g->hogged_ns;

	g->lost = (g->lost > between ? g->lost - between : 0) + took;
	g->lost_at = now;
	if (g->lost < (again ? GIVEWAY_AGAIN_NS : GIVEWAY_LOST_NS))
		return;
	if (!again)
		g->hogged_ns = GIVEWAY_HOGGED_MIN;
	else if (g->hogged_ns < GIVEWAY_HOGGED_MAX)
		g->hogged_ns *= 2;
	g->lost = 0;
	g->hogged_until = now + g->hogged_ns;
	g->shared_until = now;
}

/* One yield, and what it tells about the CPU. */
static __attribute__((noinline, unused)) void
giveway_yield(struct giveway *g, uint64_t now)
{
	const struct giveway_system *s = g->system;
	/* A count that is old would take a switch of long ago for one of this yield. */
	uint64_t before = giveway_shared(g, now) ? g->switches : s->switches();
	uint64_t t = s->now(), took;

	if (++g->yields % GIVEWAY_NAP_EVERY == 0)
		s->nap();
	else
		s->yield();
	g->probed = s->now();
	g->soon = false;
	g->switches = before;
	took = g->probed - t;
	if (took <= GIVEWAY_SLOW_NS || g->probed + GIVEWAY_SHARED_NS / 2 < g->shared_until)
		return;
	g->switches = s->switches();
	if (g->switches == before)
		return;
	g->shared_until = g->probed + GIVEWAY_SHARED_NS;
	if (took >= GIVEWAY_HOG_NS && !g->spins)
		giveway_met_hog(g, took, g->probed);
}

/* A poll found nothing at time now; gives way where that is due. Returns the age of the spell. */
static inline uint64_t
giveway_empty(struct giveway *g, uint64_t now)
{
	uint64_t age;

	g->busy_since = 0;
	if (g->begun == 0)
		g->begun = now;
	age = now - g->begun;
	if (giveway_hogged(g, now)) {
		if (g->naps && age >= GIVEWAY_HOGGED_SPIN_NS)
			g->system->nap();
		return age;
	}
	if (giveway_shared(g, now) || g->soon ||
	    (age >= GIVEWAY_PROBE_NS && now - g->probed >= GIVEWAY_PROBE_NS))
		giveway_yield(g, now);
	return age;
}

/* A poll found something at time now; full: there is probably more. */
static inline void
giveway_busy(struct giveway *g, uint64_t now, bool full)
{
	g->begun = 0;
	if (g->busy_since == 0)
		g->busy_since = now;
	if (!giveway_shared(g, now)) {
		if (giveway_hogged(g, now) || now - g->busy_since < GIVEWAY_BUSY_PROBE_NS)
			return;
		g->busy_since = now;
		giveway_yield(g, now);
		return;
	}
	if (full || ++g->busy % GIVEWAY_BUSY_POLLS == 0)
		giveway_yield(g, now);
}

/* A thread was woken that may wait for this CPU: the next empty poll probes. */
static inline void
giveway_soon(struct giveway *g)
{
	g->soon = true;
}

/* The next spell begins anew: somebody announced work. */
static inline void
giveway_anew(struct giveway *g)
{
	g->begun = 0;
}

#endif
