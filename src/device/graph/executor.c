/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include "core/tsan.h"
#include "cpu_yield.h"
#include "engine/impl.h"
#include "graph/executor.h"
#include "graph/layout.h"
#include "graph/sleep.h"

#define IDLE_PAUSE 64u	/* empty polls before a pause */
#define SPELL_NS 200000 /* time without work after which a worker sleeps */

static const hca_stage_poll_fn stage_poll[HCA_STAGE_N] = {
#define X(e, n, wires) [HCA_STAGE_##e] = hca_##n##_poll,
	HCA_STAGE_LIST(X)
#undef X
};

static const char *const stage_names[HCA_STAGE_N] = {
#define X(e, n, wires) [HCA_STAGE_##e] = #n,
	HCA_STAGE_LIST(X)
#undef X
};

uint64_t
hca_clock_ns(void)
{
	static uint64_t factor; /* the same in every thread */
	uint64_t f = __atomic_load_n(&factor, __ATOMIC_RELAXED);

	/* 2^32 ns per cycle, so that one multiplication converts. */
	if (unlikely(f == 0)) {
		f = (uint64_t)((double)(1ull << 32) * 1e9 / (double)rte_get_tsc_hz());
		__atomic_store_n(&factor, f, __ATOMIC_RELAXED);
	}
	return (uint64_t)(((unsigned __int128)rte_rdtsc() * f) >> 32);
}

/*
 * Stage times. While they are measured, a worker charges cycles to the running stage; direct edges
 * go through a trampoline that charges the consumer and then switches back.
 */
struct stage_clock {
	uint64_t last;
	unsigned int stage;
	bool on;
};

static __thread struct stage_clock stage_clock;

static unsigned int
charge(struct hca_pipe *h, unsigned int next)
{
	struct stage_clock *c = &stage_clock;
	unsigned int was = c->stage;
	uint64_t t = rte_rdtsc();

	__atomic_store_n(&h->line[was].busy_cycles, h->line[was].busy_cycles + (t - c->last),
			 __ATOMIC_RELAXED);
	c->last = t;
	c->stage = next;
	return was;
}

static void
process_timed(struct hca_pipe *h, enum hca_edge_id edge, void *const *objs, unsigned int n,
	      uint64_t now)
{
	const struct hca_edge *e = &h->edge[edge];
	unsigned int was;

	if (!stage_clock.on) {
		e->plain(h, objs, n, now);
		return;
	}
	was = charge(h, e->to);
	e->plain(h, objs, n, now);
	charge(h, was);
}

#define X(e, f, t) \
	static void timed_##e(struct hca_pipe *h, void *const *objs, unsigned int n, uint64_t now) \
	{ \
		process_timed(h, HCA_EDGE_##e, objs, n, now); \
	}
HCA_EDGE_LIST(X)
#undef X

static const hca_stage_process_fn timed_fns[HCA_EDGE_N] = {
#define X(e, f, t) [HCA_EDGE_##e] = timed_##e,
	HCA_EDGE_LIST(X)
#undef X
};

static void
copy_word(uint64_t *to, const uint64_t *from)
{
	__atomic_store_n(to, __atomic_load_n(from, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

static uint64_t
since(const uint64_t *now, const uint64_t *from)
{
	return __atomic_load_n(now, __ATOMIC_RELAXED) - __atomic_load_n(from, __ATOMIC_RELAXED);
}

/*
 * The workers keep counting meanwhile: their counters are not reset, but the start values are
 * noted.
 */
static void
times_begin(struct hca_pipe *h, bool on)
{
	for (unsigned int s = 0; s < HCA_STAGE_N; s++) {
		const struct hca_stage_line *l = &h->line[s];
		struct hca_stage_times *from = &h->times_from[s];

		copy_word(&from->busy_cycles, &l->busy_cycles);
		copy_word(&from->polls, &l->polls);
		copy_word(&from->busy_polls, &l->busy_polls);
	}
	for (unsigned int e = 0; e < HCA_EDGE_N; e++)
		if (h->edge[e].process != NULL)
			__atomic_store_n(&h->edge[e].process, on ? timed_fns[e] : h->edge[e].plain,
					 __ATOMIC_RELAXED);
}

void
hca_stage_times_enable(struct hca *h, bool on)
{
	for (unsigned int n = 0; n < h->n_pipes; n++)
		times_begin(&h->pipe[n], on);
	__atomic_store_n(&h->times_on, on, __ATOMIC_RELAXED);
}

bool
hca_stage_times_enabled(const struct hca *h)
{
	return __atomic_load_n(&h->times_on, __ATOMIC_RELAXED);
}

const char *
hca_stage_name(unsigned int stage)
{
	return stage < HCA_STAGE_N ? stage_names[stage] : NULL;
}

unsigned int
hca_stage_count(void)
{
	return HCA_STAGE_N;
}

unsigned int
hca_stage_on(const struct hca *h, unsigned int pipe, unsigned int stage)
{
	if (pipe != 0 && (hca_stages_of_pipe(h->core->cfg.wires, pipe) >> stage & 1) == 0)
		return UINT_MAX;
	return h->pipe[pipe].stage_worker[stage];
}

uint32_t
hca_stage_waiting(const struct hca *h, unsigned int pipe, unsigned int stage)
{
	const struct hca_pipe *p = &h->pipe[pipe];
	uint32_t n = stage == HCA_STAGE_ENCAP ? __atomic_load_n(&p->backlog, __ATOMIC_RELAXED) : 0;

	for (unsigned int i = 0; i < HCA_EDGE_N; i++)
		if (p->edge[i].to == stage && p->edge[i].ring != NULL)
			n += hca_ring_count(p->edge[i].ring);
	for (unsigned int from = 0; from < HCA_STAGE_N; from++)
		if (p->msg[from][stage] != NULL)
			n += hca_msg_count(p->msg[from][stage]);
	return n;
}

uint64_t
hca_stage_cycles(const struct hca *h, unsigned int pipe, unsigned int stage)
{
	return since(&h->pipe[pipe].line[stage].busy_cycles,
		     &h->pipe[pipe].times_from[stage].busy_cycles);
}

uint64_t
hca_stage_polls(const struct hca *h, unsigned int pipe, unsigned int stage, bool busy)
{
	const struct hca_stage_times *from = &h->pipe[pipe].times_from[stage];
	const struct hca_stage_line *l = &h->pipe[pipe].line[stage];

	return busy ? since(&l->busy_polls, &from->busy_polls) : since(&l->polls, &from->polls);
}

uint64_t
hca_stage_time_ns(const struct hca *h, unsigned int pipe, unsigned int stage)
{
	double hz = (double)rte_get_tsc_hz();

	return (uint64_t)((double)hca_stage_cycles(h, pipe, stage) * 1e9 / hz);
}

static void
count_poll(struct hca_stage_line *l, bool busy)
{
	__atomic_store_n(&l->polls, l->polls + 1, __ATOMIC_RELAXED);
	if (busy)
		__atomic_store_n(&l->busy_polls, l->busy_polls + 1, __ATOMIC_RELAXED);
}

static unsigned int
poll_timed(struct hca_pipe *h, unsigned int worker, uint64_t now)
{
	unsigned int work = 0;

	stage_clock.on = true;
	stage_clock.last = rte_rdtsc();
	for (unsigned int s = 0; s < HCA_STAGE_N; s++) {
		unsigned int n;

		if (h->stage_worker[s] != worker)
			continue;
		stage_clock.stage = s;
		n = stage_poll[s](h, now, HCA_BURST);
		count_poll(&h->line[s], n != 0);
		/* a poll that found nothing does not show the cost of work */
		if (n != 0)
			charge(h, s);
		else
			stage_clock.last = rte_rdtsc();
		work += n;
	}
	stage_clock.on = false;
	return work;
}

/* Layout rtc: no table look-ups, so that the compiler can inline everything. */
static __rte_always_inline unsigned int
poll_stages(struct hca_pipe *h, uint32_t wires, uint64_t now)
{
	unsigned int work = 0;

#define X(e, n, of) \
	if ((wires & (of)) != 0) \
		work += hca_##n##_poll(h, now, HCA_BURST);
	HCA_STAGE_LIST(X)
#undef X
	return work;
}

static inline unsigned int
poll_all(struct hca_pipe *h, uint64_t now)
{
	return poll_stages(h, HCA_WIRE_BIT(HCA_WIRE_ROCE), now);
}

/* The same of a device with several wires. */
static __rte_noinline unsigned int
poll_all_mixed(struct hca_pipe *h, uint64_t now)
{
	return poll_stages(h, HCA_WIRES_ALL, now);
}

unsigned int
hca_poll(struct hca *dev, unsigned int worker, uint64_t now)
{
	struct hca_pipe *h = dev->of_worker[worker];
	unsigned int work = 0;

	__atomic_store_n(&dev->wake[worker].now, now, __ATOMIC_RELAXED);
	if (unlikely(__atomic_load_n(&dev->times_on, __ATOMIC_RELAXED))) {
		work = poll_timed(h, worker, now);
	} else if (h->num_workers == 1) {
		work = likely(!h->mixed) ? poll_all(h, now) : poll_all_mixed(h, now);
	} else {
		for (unsigned int s = 0; s < HCA_STAGE_N; s++)
			if (h->stage_worker[s] == worker)
				work += stage_poll[s](h, now, HCA_BURST);
	}
	if (unlikely(dev->wake[worker].workers != 0))
		hca_wake_those(dev, worker);
	rte_rcu_qsbr_quiescent(h->rcu, worker);
	return work;
}

unsigned int
hca_poll_stage(struct hca *dev, unsigned int pipe, unsigned int stage, uint64_t now,
	       unsigned int budget)
{
	struct hca_pipe *h = &dev->pipe[pipe];
	unsigned int work;

	__atomic_store_n(&h->wake[h->stage_worker[stage]].now, now, __ATOMIC_RELAXED);
	work = stage_poll[stage](h, now, budget);
	rte_rcu_qsbr_quiescent(h->rcu, h->stage_worker[stage]);
	return work;
}

void
hca_worker_online(struct hca *h, unsigned int worker)
{
	rte_rcu_qsbr_thread_online(h->core->rcu, worker);
}

void
hca_worker_offline(struct hca *h, unsigned int worker)
{
	rte_rcu_qsbr_thread_offline(h->core->rcu, worker);
}

void
hca_wait_workers(struct hca *h)
{
	struct rte_rcu_qsbr *rcu = h->core->rcu;
	uint64_t token = rte_rcu_qsbr_start(rcu);

	while (rte_rcu_qsbr_check(rcu, token, false) != 1)
		sched_yield();
}

unsigned int
hca_direct_poll(struct hca *h, uint64_t now)
{
	unsigned int work = 0;

	for (unsigned int w = 0; w < h->num_workers; w++)
		work += hca_poll(h, w, now);
	return work;
}

struct worker {
	struct hca_threads *owner;
	struct hca *hca;
	unsigned int id;
	int cpu;	    /* -1: any */
	bool polite;	    /* yields to other threads */
	unsigned int empty; /* polls since the last one that found something */
	struct cpu_yield cpu_yield;
	int tid; /* [pub] */
	pthread_t thread;
};

struct hca_threads {
	unsigned int n;
	bool spin;
	int stop;
	struct worker w[];
};

static void
pin_worker(const struct worker *w)
{
	cpu_set_t set;

	if (w->cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(w->cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

static const struct cpu_yield_system cpu_yield_system = {
	.now = hca_clock_ns,
	.yield = cpu_yield_sched,
	.nap = cpu_yield_nap,
	.switches = cpu_yield_switches,
};

/* Work was announced or found: begin a new spell. */
static void
sleep_after_spell(struct worker *w)
{
	if (!hca_sleep(w->hca, w->id, &w->owner->stop))
		return;
	w->empty = 0;
	cpu_yield_restart(&w->cpu_yield);
}

static void
found_nothing(struct worker *w, uint64_t now)
{
	const struct hca_threads *t = w->owner;

	if (++w->empty > IDLE_PAUSE)
		rte_pause();
	if (w->polite &&
	    (cpu_yield_empty(&w->cpu_yield, now) >= SPELL_NS ||
	     cpu_yield_hogged(&w->cpu_yield, now)) &&
	    !t->spin)
		sleep_after_spell(w);
}

static void
found_work(struct worker *w, unsigned int work, uint64_t now)
{
	w->empty = 0;
	if (w->polite)
		cpu_yield_busy(&w->cpu_yield, now, work >= HCA_BURST);
}

/* A thread waiting for events was woken, possibly on this CPU. */
static void
note_told_events(struct worker *w)
{
	struct hca_wake *wake = &w->hca->wake[w->id];

	if (likely(!wake->events))
		return;
	wake->events = false;
	cpu_yield_soon(&w->cpu_yield);
}

static void *
worker_main(void *arg)
{
	struct worker *w = arg;
	struct hca_threads *t = w->owner;
	bool registered = rte_thread_register() == 0;
	char name[24];

	snprintf(name, sizeof(name), "hca-worker-%u", w->id);
	(void)pthread_setname_np(pthread_self(), name);
	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELAXED);
	hca_tsan_take_caches();
	pin_worker(w);
	prctl(PR_SET_TIMERSLACK, 1ul);
	hca_worker_online(w->hca, w->id);
	while (!__atomic_load_n(&t->stop, __ATOMIC_RELAXED)) {
		uint64_t now = hca_clock_ns();
		unsigned int work = hca_poll(w->hca, w->id, now);

		note_told_events(w);
		if (work == 0)
			found_nothing(w, now);
		else
			found_work(w, work, now);
	}
	hca_worker_offline(w->hca, w->id);
	hca_tsan_give_caches();
	if (registered)
		rte_thread_unregister();
	return NULL;
}

/* Number of CPUs this process may run on, which may be fewer than the machine has. */
static unsigned int
usable_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
		return (unsigned int)CPU_COUNT(&set);
	return (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* Worker id of an HCA whose first worker is number `first` of all. */
static int
cpu_of(const struct hca_threads_config *cfg, const struct hca *h, unsigned int first,
       unsigned int id)
{
	const struct hca_config *c = &h->core->cfg;

	if (cfg->num_cpus == 0)
		return -1;
	id = hca_layout_cpu(c->layout, c->pipelines, c->wires, cfg->num_cpus, id);
	return cfg->cpus[(first + id) % cfg->num_cpus];
}

int
hca_threads_start(const struct hca_threads_config *cfg, struct hca_threads **out)
{
	struct hca_threads *t;
	unsigned int n = 0, i = 0;
	unsigned int cpus = usable_cpus();
	int rc;

	for (unsigned int k = 0; k < cfg->num_hca; k++)
		n += hca_workers(cfg->hca[k]);
	t = calloc(1, sizeof(*t) + n * sizeof(t->w[0]));
	if (t == NULL)
		return -ENOMEM;
	t->spin = cfg->spin;
	for (unsigned int k = 0; k < cfg->num_hca && !t->spin; k++) {
		rc = hca_sleep_prepare(cfg->hca[k], cfg->backstop_ns);
		if (rc != 0) {
			free(t);
			return rc;
		}
	}
	for (unsigned int k = 0; k < cfg->num_hca; k++) {
		unsigned int first = i;

		for (unsigned int id = 0; id < hca_workers(cfg->hca[k]); id++, i++) {
			struct worker *w = &t->w[i];

			*w = (struct worker){.owner = t, .hca = cfg->hca[k], .id = id};
			w->cpu_yield.system = &cpu_yield_system;
			/*
			 * spinning workers need CPUs of their own; if there are fewer CPUs than
			 * workers they yield
			 */
			w->polite = !t->spin || n > cpus;
			w->cpu_yield.spins = t->spin;
			w->cpu = cpu_of(cfg, cfg->hca[k], first, id);
			rc = pthread_create(&w->thread, NULL, worker_main, w);
			if (rc != 0) {
				hca_threads_stop(t);
				return -rc;
			}
			t->n++;
		}
	}
	*out = t;
	return 0;
}

void
hca_threads_stop(struct hca_threads *t)
{
	if (t == NULL)
		return;
	__atomic_store_n(&t->stop, 1, __ATOMIC_SEQ_CST);
	for (unsigned int i = 0; i < t->n; i++)
		hca_kick_all(t->w[i].hca);
	for (unsigned int i = 0; i < t->n; i++) {
		pthread_join(t->w[i].thread, NULL);
		/* the HCA is online for a thread that polls it next */
		hca_worker_online(t->w[i].hca, t->w[i].id);
	}
	free(t);
}

unsigned int
hca_threads_count(const struct hca_threads *t)
{
	return t->n;
}

int
hca_threads_tid(const struct hca_threads *t, unsigned int i)
{
	return __atomic_load_n(&t->w[i].tid, __ATOMIC_RELAXED);
}
