/* SPDX-License-Identifier: BSD-3-Clause */

/* See sleep.h. */

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <rte_malloc.h>

#include "abi_bar.h"
#include "requester/doorbell.h"
#include "engine/impl.h"
#include "graph/executor.h"
#include "graph/sleep.h"

#define WORD_STRIDE RTE_CACHE_LINE_SIZE
#define NOT_WORTH_NS 15000u /* alarms are 15 to 30 us late */
#define NAP_ROOM_NS 20000u
#define NAP_FRAME_NS 50000u
#define NAP_MAX_NS 1000000u
#define BACKSTOP_DOUBLES 4u  /* times, while no worker is kicked and no alarm finds work */
#define KICK_NS 1000000u     /* the time between work and its kick, if both have a CPU */
#define SUSPECT_NS 50000000u /* a kick may be this late if its sender waits for a CPU */

#define IN_VAIN_MAX 64u	     /* number of kicks without a doorbell */
#define IN_VAIN_NS 10000000u /* within this time after which */
#define MUTE_NS 100000000u   /* kicks are ignored for this time */

#define EVENTS 32
#define DATA_OWN 0u
#define DATA_PORT 1u
#define DATA_CLIENT 2u /* in addition to the number of its page */

_Static_assert(HCA_WORKERS_MAX *WORD_STRIDE <= HCA_SLEEP_BYTES, "a page holds the words");

/* A client's eventfd. */
struct kicker {
	int fd;		  /* [pub] -1: none; written by the control plane */
	bool muted;	  /* [pub] this and the following members are written by the worker */
	uint32_t in_vain; /* useless kicks since `since` */
	uint64_t since, listen_at;
	uint64_t mutes; /* [pub] */
};

struct sleeper {
	struct hca_pipe *pipe; /* the one whose stages the worker polls */
	uint32_t *word;
	int epoll_fd, kick_fd; /* -1: the worker never sleeps */
	int port_fd;	       /* -1: none, or another worker polls the port */
	bool rx, doorbells, encap;
	struct kicker *kicker;	 /* by page: the clients that wake it; NULL: it has no doorbells */
	bool no_pwait2;		 /* epoll_pwait2() is not there */
	enum hca_stage_id stage; /* the stage of its counters */
	uint32_t nap_room, nap_frame;
	uint32_t quiet;	    /* successive alarms without work */
	uint32_t muted;	    /* number of muted clients */
	uint64_t listen_at; /* time at which the first of them is unmuted */
	uint64_t suspect;   /* time at which the backstop found work; 0: none */
	/* [pub] the sleep word at the last kick from inside the process */
	uint32_t kicked __rte_cache_aligned;
} __rte_cache_aligned;

struct hca_sleep {
	struct sleeper worker[HCA_WORKERS_MAX];
	uint64_t backstop_ns;  /* [pub] */
	void *own_words;       /* NULL: the composition provides them */
	struct kicker *kicker; /* HCA_UAR_PAGES of each pipe */
};

/* Reason and time of the end of a sleep, and the work that was found. */
struct waking {
	struct epoll_event ev[EVENTS];
	int n;
	unsigned int something;
	uint64_t at;
};

/* The time until which a worker may sleep. */
struct alarm {
	uint64_t at;
	bool room; /* something waits for room */
};

static const hca_stage_deadline_fn deadlines[HCA_STAGE_N] = {
#define X(e, n, wires) [HCA_STAGE_##e] = hca_##n##_deadline,
	HCA_STAGE_LIST(X)
#undef X
};

/* ---- until when ---- */

static uint64_t
earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Messages from stages of the same worker. The inbox also counts waits of EE for a time. */
static bool
local_messages(const struct hca_pipe *h, unsigned int stage)
{
	if (h->inbox[stage].waiting == 0)
		return false;
	for (unsigned int from = 0; from < HCA_STAGE_N; from++) {
		const struct hca_msg_channel *c = h->msg[from][stage];

		if (c != NULL && c->local && hca_msg_count(c) != 0)
			return true;
	}
	return false;
}

/* After a poll without work, objects on an edge are there because the next stage has no room. */
static bool
edge_blocked(const struct hca_pipe *h, unsigned int stage)
{
	for (unsigned int i = 0; i < HCA_EDGE_N; i++)
		if (h->edge[i].to == stage && h->edge[i].ring != NULL &&
		    hca_ring_count(h->edge[i].ring) != 0)
			return true;
	return false;
}

static void
ask_stages(const struct hca_pipe *h, unsigned int worker, uint64_t now, struct alarm *a)
{
	for (unsigned int s = 0; s < HCA_STAGE_N; s++) {
		uint64_t at;

		if (h->stage_worker[s] != worker)
			continue;
		at = local_messages(h, s) ? now : deadlines[s](h, now);
		if (at == HCA_DEADLINE_ROOM || (h->num_workers != 1 && edge_blocked(h, s)))
			a->room = true;
		if (at != HCA_DEADLINE_ROOM)
			a->at = earlier(a->at, at);
	}
}

static struct alarm
ask(const struct hca *dev, unsigned int worker, uint64_t now)
{
	const struct sleeper *s = &dev->sleep->worker[worker];
	const struct hca_pipe *h = s->pipe;
	const struct hca_port_ops *port = h->port->ops;
	struct alarm a = {.at = UINT64_MAX};

	ask_stages(h, worker, now, &a);
	if ((s->rx || s->encap) && port->deadline != NULL)
		a.at = earlier(a.at, port->deadline(h->port, h->port_queue, now));
	return a;
}

uint64_t
hca_sleep_alarm(const struct hca *h, unsigned int worker, uint64_t now)
{
	return ask(h, worker, now).at;
}

/* The alarm, or a short sleep if something must be polled. */
static uint64_t
with_naps(const struct sleeper *s, const struct alarm *a, uint64_t now)
{
	uint64_t at = a->at;

	if (a->room)
		at = earlier(at, now + s->nap_room);
	if (s->rx && s->port_fd < 0)
		at = earlier(at, now + s->nap_frame);
	if (s->muted != 0)
		at = earlier(at, now + NAP_MAX_NS);
	return at;
}

static uint64_t
next_deadline(struct hca *h, unsigned int worker, uint64_t now)
{
	struct alarm a = ask(h, worker, now);

	return with_naps(&h->sleep->worker[worker], &a, now);
}

static void
longer_naps(struct sleeper *s)
{
	if (s->quiet < BACKSTOP_DOUBLES)
		s->quiet++;
	s->nap_room = RTE_MIN(2 * s->nap_room, NAP_MAX_NS);
	s->nap_frame = RTE_MIN(2 * s->nap_frame, NAP_MAX_NS);
}

static void
short_naps(struct sleeper *s)
{
	s->nap_room = NAP_ROOM_NS;
	s->nap_frame = NAP_FRAME_NS;
	s->quiet = 0;
}

/* ---- kicks ---- */

/* Called after a full fence. */
static void
kick_sleeper(struct sleeper *s)
{
	uint32_t word = __atomic_load_n(s->word, __ATOMIC_SEQ_CST);
	uint64_t one = 1;

	if ((word & HCA_SLEEP_ASLEEP) == 0 || __atomic_load_n(&s->kicked, __ATOMIC_RELAXED) == word)
		return;
	/* fails only if the counter is full, after 2^64 kicks */
	if (write(s->kick_fd, &one, sizeof(one)) == sizeof(one))
		__atomic_store_n(&s->kicked, word, __ATOMIC_RELAXED);
}

void
hca_kick_stage(struct hca *h, enum hca_stage_id stage)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (unsigned int n = 0; n < h->n_pipes; n++)
		kick_sleeper(&h->sleep->worker[h->pipe[n].stage_worker[stage]]);
}

void
hca_kick_all(struct hca *h)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (unsigned int w = 0; w < h->num_workers; w++)
		kick_sleeper(&h->sleep->worker[w]);
}

void
hca_wake_those(struct hca *h, unsigned int worker)
{
	uint64_t workers = h->wake[worker].workers;

	h->wake[worker].workers = 0;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (; workers != 0; workers &= workers - 1)
		kick_sleeper(&h->sleep->worker[__builtin_ctzll(workers)]);
}

static struct sleeper *
doorbell_sleeper(const struct hca *h, unsigned int pipe)
{
	return &h->sleep->worker[h->pipe[pipe].stage_worker[HCA_STAGE_DOORBELL]];
}

static int
listen_to(int epoll_fd, int op, int fd, uint32_t events, uint32_t data)
{
	struct epoll_event ev = {.events = events, .data.u32 = data};

	return epoll_ctl(epoll_fd, op, fd, &ev) == 0 ? 0 : -errno;
}

int
hca_kick_add(struct hca *h, uint32_t page, unsigned int pipe, int fd)
{
	const struct sleeper *s;
	int rc;

	if (page >= HCA_UAR_PAGES || pipe >= h->n_pipes)
		return -EINVAL;
	s = doorbell_sleeper(h, pipe);
	if (s->epoll_fd < 0)
		return 0;
	rc = listen_to(s->epoll_fd, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET, DATA_CLIENT + page);
	if (rc != 0)
		return rc;
	__atomic_store_n(&s->kicker[page].mutes, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&s->kicker[page].fd, fd, __ATOMIC_RELEASE);
	return 0;
}

/* The worker may be about to mute it, so wait before the descriptor is closed. */
void
hca_kick_remove(struct hca *h, uint32_t page)
{
	bool removed = false;

	for (unsigned int n = 0; n < h->n_pipes; n++) {
		const struct sleeper *s = doorbell_sleeper(h, n);
		int fd = __atomic_exchange_n(&s->kicker[page % HCA_UAR_PAGES].fd, -1,
					     __ATOMIC_ACQ_REL);

		if (fd < 0)
			continue;
		listen_to(s->epoll_fd, EPOLL_CTL_DEL, fd, 0, 0);
		removed = true;
	}
	if (removed)
		hca_wait_workers(h);
}

uint64_t
hca_kick_muted(const struct hca *h, uint32_t page)
{
	uint64_t sum = 0;

	for (unsigned int n = 0; n < h->n_pipes; n++)
		sum += __atomic_load_n(&doorbell_sleeper(h, n)->kicker[page % HCA_UAR_PAGES].mutes,
				       __ATOMIC_RELAXED);
	return sum;
}

/* ---- clients that kick for nothing: the doorbell's worker ---- */

static void
mute(struct hca *h, struct sleeper *s, struct kicker *k, uint32_t page, uint64_t now)
{
	int fd = __atomic_load_n(&k->fd, __ATOMIC_ACQUIRE);

	if (fd < 0 || listen_to(s->epoll_fd, EPOLL_CTL_MOD, fd, EPOLLET, DATA_CLIENT + page) != 0)
		return;
	k->muted = true;
	k->listen_at = now + MUTE_NS;
	__atomic_store_n(&k->mutes, k->mutes + 1, __ATOMIC_RELAXED);
	if (s->muted++ == 0)
		s->listen_at = k->listen_at;
	HCA_COUNT_AT(s->pipe, s->stage, HCA_CTR_kicks_muted);
}

static void
kicked_in_vain(struct hca *h, struct sleeper *s, uint32_t page, uint64_t now)
{
	struct kicker *k = &s->kicker[page];

	HCA_COUNT_AT(s->pipe, s->stage, HCA_CTR_kicks_for_nothing);
	if (k->muted)
		return;
	if (now - k->since > IN_VAIN_NS) {
		k->since = now;
		k->in_vain = 0;
	}
	if (++k->in_vain >= IN_VAIN_MAX)
		mute(h, s, k, page, now);
}

/* Judge kicks by whether the check at time now found work. */
static void
judge_kicks(struct hca *h, struct sleeper *s, const struct waking *w, uint64_t now)
{
	for (int i = 0; i < w->n; i++) {
		uint32_t data = w->ev[i].data.u32;

		if (data >= DATA_CLIENT && !hca_doorbell_rang(s->pipe, data - DATA_CLIENT, now))
			kicked_in_vain(h, s, data - DATA_CLIENT, now);
	}
}

/* Unmute clients whose time is over; kicks written meanwhile trigger now. */
static void
unmute(struct hca *h, struct sleeper *s, uint64_t now)
{
	if (likely(s->muted == 0) || now < s->listen_at)
		return;
	s->listen_at = UINT64_MAX;
	for (uint32_t page = 0; page < HCA_UAR_PAGES; page++) {
		struct kicker *k = &s->kicker[page];
		int fd = __atomic_load_n(&k->fd, __ATOMIC_ACQUIRE);

		if (!k->muted)
			continue;
		if (fd >= 0 && now < k->listen_at) {
			s->listen_at = earlier(s->listen_at, k->listen_at);
			continue;
		}
		k->muted = false;
		k->in_vain = 0;
		s->muted--;
		if (fd >= 0)
			listen_to(s->epoll_fd, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLET,
				  DATA_CLIENT + page);
	}
}

/* ---- one sleep ---- */

static unsigned int
look(struct hca *h, const struct sleeper *s, unsigned int worker, uint64_t now)
{
	if (s->doorbells)
		hca_doorbell_scan_next(s->pipe);
	if (s->encap)
		hca_encap_ask_link_next(s->pipe);
	return hca_poll(h, worker, now);
}

static bool
arm_port(const struct sleeper *s, bool on)
{
	struct hca_pipe *h = s->pipe;

	return s->port_fd >= 0 && h->port->ops->arm != NULL &&
	       h->port->ops->arm(h->port, h->port_queue, on);
}

/* A late kick explains the work that the backstop found. */
static void
settle_suspicion(struct sleeper *s, bool kicked, uint64_t now)
{
	if (likely(s->suspect == 0))
		return;
	if (!kicked && now - s->suspect < SUSPECT_NS)
		return;
	if (!kicked)
		HCA_COUNT_AT(s->pipe, s->stage, HCA_CTR_wake_missed);
	s->suspect = 0;
}

/* Discard late kicks of an earlier sleep. */
static void
forget_late_kicks(struct sleeper *s, uint64_t now)
{
	struct epoll_event ev[EVENTS];

	settle_suspicion(s, epoll_wait(s->epoll_fd, ev, EVENTS, 0) > 0, now);
}

static void
set_asleep(struct sleeper *s)
{
	__atomic_store_n(s->word, *s->word + 1, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void
set_awake(struct sleeper *s)
{
	__atomic_store_n(s->word, *s->word + 1, __ATOMIC_SEQ_CST);
	arm_port(s, false);
}

/*
 * Linux before 5.11 has no epoll_pwait2(), and system call filters and valgrind may not support it:
 * it is tried once.
 */
static int
wait_for_events(struct sleeper *s, struct epoll_event *ev, const struct timespec *ts)
{
	struct pollfd p = {.fd = s->epoll_fd, .events = POLLIN};
	int n;

	if (likely(!s->no_pwait2)) {
		n = epoll_pwait2(s->epoll_fd, ev, EVENTS, ts, NULL);
		if (likely(n >= 0) || (errno != ENOSYS && errno != EPERM))
			return n;
		s->no_pwait2 = true;
	}
	n = ppoll(&p, 1, ts, NULL);
	return n > 0 ? epoll_wait(s->epoll_fd, ev, EVENTS, 0) : n;
}

static void
wait_until(struct hca *h, struct sleeper *s, unsigned int worker, uint64_t until, uint64_t now,
	   struct waking *w)
{
	uint64_t ns = until == UINT64_MAX ? 0 : until - now;
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u)};

	/* before: a worker that still sleeps in its first sleep has slept */
	HCA_COUNT_AT(s->pipe, s->stage, HCA_CTR_worker_sleeps);
	hca_worker_offline(h, worker);
	w->n = wait_for_events(s, w->ev, until == UINT64_MAX ? NULL : &ts);
	hca_worker_online(h, worker);
}

static uint64_t
frames_received(const struct hca_pipe *h)
{
	return __atomic_load_n(&h->line[HCA_STAGE_DECAP].counters[HCA_CTR_rcvd_pkts],
			       __ATOMIC_RELAXED);
}

/*
 * The alarm alone ended the sleep: look for work, still asleep, and if there is some wait for
 * its kick. Once the word says awake no kick is due. True: found, and no kick came.
 */
static bool
found_by_alarm(struct hca *h, struct sleeper *s, unsigned int worker, const struct alarm *a,
	       struct waking *w)
{
	static const struct timespec soon = {.tv_nsec = KICK_NS};
	uint64_t rcvd = frames_received(s->pipe);

	if (w->n != 0 || w->at >= a->at || a->room || s->muted != 0)
		return false;
	w->something = look(h, s, worker, w->at);
	/* short sleeps are meant to find frames on a port without an interrupt */
	if (w->something == 0 || (s->rx && s->port_fd < 0 && rcvd != frames_received(s->pipe)))
		return false;
	w->n = wait_for_events(s, w->ev, &soon);
	return w->n == 0;
}

/* A sleep is over: awake, and look for work. */
static void
wake_up(struct hca *h, struct sleeper *s, unsigned int worker, const struct alarm *a,
	struct waking *w)
{
	w->at = hca_clock_ns();
	if (found_by_alarm(h, s, worker, a, w) && s->suspect == 0)
		s->suspect = w->at;
	set_awake(s);
	settle_suspicion(s, w->n > 0, w->at);
	w->something |= look(h, s, worker, w->at);
	judge_kicks(h, s, w, w->at);
}

/* False: the worker did not sleep. w->something: result of the last check. */
static bool
sleep_once(struct hca *h, struct sleeper *s, unsigned int worker, const int *stop, struct waking *w)
{
	uint64_t now = hca_clock_ns(), until, backstop;
	struct alarm a;

	w->something = 0;
	if (next_deadline(h, worker, now) < now + NOT_WORTH_NS)
		return false;
	forget_late_kicks(s, now);
	unmute(h, s, now);
	set_asleep(s);
	if (__atomic_load_n(stop, __ATOMIC_SEQ_CST) || arm_port(s, true) ||
	    (w->something = look(h, s, worker, now)) != 0) {
		set_awake(s);
		return false;
	}
	now = hca_clock_ns();
	a = ask(h, worker, now);
	until = with_naps(s, &a, now);
	if (until < now + NOT_WORTH_NS) {
		set_awake(s);
		return false;
	}
	backstop = __atomic_load_n(&h->sleep->backstop_ns, __ATOMIC_RELAXED);
	if (backstop != UINT64_MAX)
		until = earlier(until, now + (backstop << s->quiet));
	wait_until(h, s, worker, until, now, w);
	wake_up(h, s, worker, &a, w);
	return true;
}

/* Woken by the process itself, which does not kick without need. */
static bool
kicked_by_us(const struct waking *w)
{
	for (int i = 0; i < w->n; i++)
		if (w->ev[i].data.u32 < DATA_CLIENT)
			return true;
	return false;
}

bool
hca_sleep(struct hca *h, unsigned int worker, const int *stop)
{
	struct sleeper *s = &h->sleep->worker[worker];
	struct waking w;

	if (s->epoll_fd < 0)
		return false;
	while (sleep_once(h, s, worker, stop, &w)) {
		if (w.n > 0)
			HCA_COUNT_AT(s->pipe, s->stage, HCA_CTR_worker_kicked);
		if (w.something != 0 || kicked_by_us(&w)) {
			short_naps(s);
			return true;
		}
		if (w.n == 0)
			longer_naps(s);
	}
	if (w.something != 0)
		short_naps(s);
	return w.something != 0;
}

/* ---- life ---- */

const uint32_t *
hca_sleep_word(const struct hca *h, unsigned int worker)
{
	return h->sleep->worker[worker].word;
}

bool
hca_sleep_all(const struct hca *h)
{
	bool all = true;

	for (unsigned int w = 0; w < h->num_workers && all; w++)
		all = __atomic_load_n(h->sleep->worker[w].word, __ATOMIC_RELAXED) &
		      HCA_SLEEP_ASLEEP;
	return all;
}

uint32_t
hca_sleep_offset(const struct hca *h, unsigned int pipe)
{
	return h->pipe[pipe].stage_worker[HCA_STAGE_DOORBELL] * WORD_STRIDE;
}

const uint32_t *
hca_doorbell_word(const struct hca *h, unsigned int pipe)
{
	return doorbell_sleeper(h, pipe)->word;
}

int
hca_kick_fd(const struct hca *h, unsigned int pipe)
{
	return doorbell_sleeper(h, pipe)->kick_fd;
}

static int
prepare(struct sleeper *s)
{
	const struct hca_pipe *h = s->pipe;
	int rc;

	if (s->epoll_fd >= 0)
		return 0;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0)
		return -errno;
	s->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->kick_fd < 0)
		return -errno;
	rc = listen_to(s->epoll_fd, EPOLL_CTL_ADD, s->kick_fd, EPOLLIN | EPOLLET, DATA_OWN);
	if (rc != 0)
		return rc;
	if (s->rx && h->port->ops->wait_fd != NULL)
		s->port_fd = h->port->ops->wait_fd(h->port, h->port_queue);
	if (s->port_fd < 0)
		return 0;
	return listen_to(s->epoll_fd, EPOLL_CTL_ADD, s->port_fd, EPOLLIN | EPOLLET, DATA_PORT);
}

int
hca_sleep_prepare(struct hca *h, uint64_t backstop_ns)
{
	int rc = 0;

	__atomic_store_n(&h->sleep->backstop_ns,
			 backstop_ns != 0 ? backstop_ns : HCA_SLEEP_BACKSTOP_NS, __ATOMIC_RELAXED);
	for (unsigned int w = 0; w < h->num_workers && rc == 0; w++)
		rc = prepare(&h->sleep->worker[w]);
	return rc;
}

/* Backwards, so that a worker counts under the first of its stages. */
static void
assign_stages(struct hca_sleep *p, const struct hca_pipe *h)
{
	for (unsigned int s = HCA_STAGE_N; s-- > 0;)
		if (s != HCA_STAGE_CEU || h->pipe_number == 0)
			p->worker[h->stage_worker[s]].stage = s;
	p->worker[h->stage_worker[HCA_STAGE_DECAP]].rx = true;
	p->worker[h->stage_worker[HCA_STAGE_DOORBELL]].doorbells = true;
	p->worker[h->stage_worker[HCA_STAGE_DOORBELL]].kicker =
		&p->kicker[h->pipe_number * HCA_UAR_PAGES];
	p->worker[h->stage_worker[HCA_STAGE_ENCAP]].encap = true;
}

int
hca_sleep_init(struct hca *h)
{
	struct hca_sleep *p;
	const struct hca_config *cfg = &h->core->cfg;
	uint8_t *words = cfg->sleep_words;

	p = rte_zmalloc_socket("hca_sleep", sizeof(*p), RTE_CACHE_LINE_SIZE, cfg->socket_id);
	h->sleep = p;
	if (p == NULL)
		return -ENOMEM;
	for (unsigned int w = 0; w < HCA_WORKERS_MAX; w++)
		p->worker[w].epoll_fd = p->worker[w].kick_fd = p->worker[w].port_fd = -1;
	p->kicker = rte_zmalloc_socket("hca_sleep", h->n_pipes * HCA_UAR_PAGES * sizeof(*p->kicker),
				       RTE_CACHE_LINE_SIZE, cfg->socket_id);
	if (p->kicker == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < h->n_pipes * HCA_UAR_PAGES; i++)
		p->kicker[i].fd = -1;
	if (words == NULL)
		words = p->own_words = rte_zmalloc_socket("hca_sleep", HCA_SLEEP_BYTES,
							  RTE_CACHE_LINE_SIZE, cfg->socket_id);
	if (words == NULL)
		return -ENOMEM;
	for (unsigned int w = 0; w < h->num_workers; w++) {
		p->worker[w].pipe = h->of_worker[w];
		p->worker[w].word = (uint32_t *)(words + w * WORD_STRIDE);
		short_naps(&p->worker[w]);
	}
	for (unsigned int n = h->n_pipes; n-- > 0;)
		assign_stages(p, &h->pipe[n]);
	return 0;
}

void
hca_sleep_fini(struct hca *h)
{
	struct hca_sleep *p = h->sleep;

	if (p == NULL)
		return;
	for (unsigned int w = 0; w < HCA_WORKERS_MAX; w++) {
		if (p->worker[w].epoll_fd >= 0)
			close(p->worker[w].epoll_fd);
		if (p->worker[w].kick_fd >= 0)
			close(p->worker[w].kick_fd);
	}
	rte_free(p->kicker);
	rte_free(p->own_words);
	rte_free(p);
	h->sleep = NULL;
}
