/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A simulation of discrete events, times in ps. Each port has four: the next frame of the host's
 * link begins, a frame enters the switch, the next frame of the output queue begins, and PFC
 * changes the host's link. Every call of a port first lets all events up to `now` happen, the
 * earliest first, of equal ones that of the lower port. Frames arrive at hosts without an event,
 * because no other event depends on it.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_ether.h>
#include <rte_malloc.h>

#include "port/port_switch.h"
#include "port/port_wrap.h"

#define HOLD_DEFAULT 8192u
#define MAX_FRAME 4400u
#define QUEUE_SIZE 512u
#define SIGNALS 64u /* of PFC on their way to a host */

/* One direction of a link: frames wait, leave one after the other, and are on their way. */
struct switch_line {
	struct hca_transit_list waiting; /* due: from then on a frame may leave */
	struct hca_transit_list away;	 /* due: it arrives */
	uint64_t bytes;			 /* [pub] that wait */
	uint64_t free_at;		 /* the last frame has left */
	bool paused;			 /* [pub] */
};

/* Changes between paused and not paused, in turn. */
struct switch_signals {
	uint64_t due[SIGNALS];
	uint32_t head, n;
};

struct port_switch;

struct switch_port {
	struct hca_port port; /* first */
	struct port_switch *all;
	uint32_t index;
	uint64_t rate_mbps, delay_ps;
	struct switch_line up, down; /* to the switch, to the host */
	struct hca_transit_list arrived;
	uint32_t arrived_n;
	uint64_t inside; /* bytes of the host that wait in queues */
	bool off;	 /* PFC: the last signal was to pause */
	uint64_t paused_at;
	struct switch_signals signals;
	uint64_t next; /* event; UINT64_MAX: none */
	struct hca_port_switch_stats stats;
};

struct switch_mac {
	uint64_t mac;
	uint32_t port;
	bool given;
};

struct port_switch {
	struct hca_switch settings;
	struct hca_port_rng rng;
	struct hca_transits transits;
	uint64_t time; /* of the last call */
	int thread;    /* id; 0: before the first call */
	uint32_t n, open, macs;
	struct switch_mac mac[HCA_SWITCH_MACS];
	struct switch_port port[];
};

static struct switch_port *
switch_port(struct hca_port *p)
{
	return (struct switch_port *)p;
}

/* ---- lines ---- */

static uint64_t
line_next(const struct port_switch *s, const struct switch_line *l)
{
	const struct hca_transit *x = hca_transit_first(&s->transits, &l->waiting);

	return x == NULL || l->paused ? UINT64_MAX : RTE_MAX(l->free_at, x->due);
}

static void
line_add(struct port_switch *s, struct switch_line *l, struct hca_transit x)
{
	uint64_t bytes = l->bytes + hca_transit_bytes(x.m);

	__atomic_store_n(&l->bytes, bytes, __ATOMIC_RELAXED);
	hca_transit_append(&s->transits, &l->waiting, x);
}

/* The first frame that waits leaves at time `at`; returns it. */
static struct hca_transit
line_begin(struct switch_port *p, struct switch_line *l, uint64_t at)
{
	struct hca_transits *t = &p->all->transits;
	struct hca_transit x = hca_transit_take(t, &l->waiting);
	uint64_t bytes = hca_transit_bytes(x.m);

	__atomic_store_n(&l->bytes, l->bytes - bytes, __ATOMIC_RELAXED);
	l->free_at = at + hca_transit_ps(bytes, p->rate_mbps);
	x.due = l->free_at + p->delay_ps;
	/* in order, also after the delay became shorter */
	if (l->away.head != HCA_TRANSIT_NONE)
		x.due = RTE_MAX(x.due, t->slot[l->away.tail].due);
	hca_transit_append(t, &l->away, x);
	return x;
}

static uint64_t
due_of(const struct port_switch *s, const struct hca_transit_list *l)
{
	const struct hca_transit *x = hca_transit_first(&s->transits, l);

	return x != NULL ? x->due : UINT64_MAX;
}

/* ---- PFC ---- */

static uint64_t
signal_next(const struct switch_port *p)
{
	return p->signals.n != 0 ? p->signals.due[p->signals.head] : UINT64_MAX;
}

/* Signals alternate: without room two of them, of which the later one is new, cancel out. */
static void
signal_send(struct switch_port *p, uint64_t at)
{
	struct switch_signals *g = &p->signals;

	p->off = !p->off;
	if (g->n == SIGNALS)
		g->n--;
	else
		g->due[(g->head + g->n++) % SIGNALS] = at + p->delay_ps;
}

static void
signal_arrives(struct switch_port *p, uint64_t at)
{
	p->signals.head = (p->signals.head + 1) % SIGNALS;
	p->signals.n--;
	__atomic_store_n(&p->up.paused, !p->up.paused, __ATOMIC_RELAXED);
	if (p->up.paused) {
		p->paused_at = at;
		hca_port_count(&p->stats.pauses, 1);
	} else {
		p->up.free_at = RTE_MAX(p->up.free_at, at);
		hca_port_count(&p->stats.paused_ns, (at - p->paused_at) / HCA_PS);
	}
}

static void
judge_input(struct port_switch *s, struct switch_port *from, uint64_t at)
{
	if (s->settings.xoff == 0)
		return;
	if (from->off ? from->inside <= s->settings.xon : from->inside > s->settings.xoff)
		signal_send(from, at);
}

/* ---- events ---- */

static void
note_next(struct port_switch *s, struct switch_port *p)
{
	uint64_t next = RTE_MIN(line_next(s, &p->up), line_next(s, &p->down));

	next = RTE_MIN(next, due_of(s, &p->up.away));
	p->next = RTE_MIN(next, signal_next(p));
}

static uint64_t
mac_of(const uint8_t *b)
{
	uint64_t v = 0;

	memcpy(&v, b, RTE_ETHER_ADDR_LEN);
	return v;
}

static struct switch_mac *
mac_find(struct port_switch *s, uint64_t mac)
{
	for (uint32_t i = 0; i < s->macs; i++)
		if (s->mac[i].mac == mac)
			return &s->mac[i];
	return NULL;
}

static int
mac_learn(struct port_switch *s, uint64_t mac, uint32_t port, bool given)
{
	struct switch_mac *e = mac_find(s, mac);

	if (e == NULL && s->macs == HCA_SWITCH_MACS)
		return -ENOSPC;
	if (e == NULL) {
		e = &s->mac[s->macs++];
		*e = (struct switch_mac){.mac = mac};
	} else if (e->given && !given) {
		return 0;
	}
	e->port = port;
	e->given = given;
	return 0;
}

static bool
is_marked(struct port_switch *s, uint64_t waits)
{
	const struct hca_switch *c = &s->settings;
	double p;

	if (c->kmin == 0 || waits < c->kmin)
		return false;
	if (waits >= c->kmax)
		return true;
	p = c->pmax * (double)(waits - c->kmin) / (double)(c->kmax - c->kmin);
	return (double)(uint32_t)hca_port_random(&s->rng) < p * 4294967296.0;
}

/* A frame of host `from` enters the queue of port p. */
static void
queue_frame(struct port_switch *s, struct switch_port *p, struct hca_transit x)
{
	struct switch_port *from = &s->port[x.from];
	uint64_t bytes = hca_transit_bytes(x.m);

	if ((s->settings.queue != 0 && p->down.bytes + bytes > s->settings.queue) ||
	    hca_transits_full(&s->transits)) {
		hca_port_count(&p->stats.dropped, 1);
		rte_pktmbuf_free(x.m);
		return;
	}
	if (is_marked(s, p->down.bytes))
		hca_port_count(&p->stats.marked, hca_transit_mark(x.m));
	line_add(s, &p->down, x);
	if (p->down.bytes > p->stats.max_queue)
		hca_port_count(&p->stats.max_queue, p->down.bytes - p->stats.max_queue);
	from->inside += bytes;
	judge_input(s, from, x.due);
	note_next(s, from);
	note_next(s, p);
}

/* To all ports but that of its host. */
static void
flood(struct port_switch *s, struct hca_transit x)
{
	struct switch_port *from = &s->port[x.from];
	uint32_t last = x.from == s->n - 1 ? s->n - 2 : s->n - 1;

	for (uint32_t i = 0; i < last; i++) {
		struct hca_transit copy = x;

		if (i == x.from)
			continue;
		copy.m = hca_transits_copy(&s->transits, x.m);
		if (copy.m == NULL) {
			hca_port_count(&from->stats.no_mbuf, 1);
			continue;
		}
		hca_port_count(&from->stats.copied, 1);
		queue_frame(s, &s->port[i], copy);
	}
	queue_frame(s, &s->port[last], x);
}

static void
forward(struct port_switch *s, struct hca_transit x)
{
	const uint8_t *frame = rte_pktmbuf_mtod(x.m, const uint8_t *);
	const struct switch_mac *to;

	mac_learn(s, mac_of(frame + RTE_ETHER_ADDR_LEN), x.from, false);
	to = (frame[0] & 1) == 0 ? mac_find(s, mac_of(frame)) : NULL;
	if (to == NULL) {
		flood(s, x);
	} else if (to->port == x.from) {
		hca_port_count(&s->port[x.from].stats.filtered, 1);
		rte_pktmbuf_free(x.m);
	} else {
		queue_frame(s, &s->port[to->port], x);
	}
}

static void
leave_queue(struct port_switch *s, struct switch_port *p, uint64_t at)
{
	struct hca_transit x = line_begin(p, &p->down, at);
	struct switch_port *from = &s->port[x.from];

	from->inside -= hca_transit_bytes(x.m);
	judge_input(s, from, at);
	note_next(s, from);
}

/* The event of port p whose time has come. */
static void
happen(struct port_switch *s, struct switch_port *p)
{
	uint64_t at = p->next;

	if (signal_next(p) == at)
		signal_arrives(p, at);
	else if (due_of(s, &p->up.away) == at)
		forward(s, hca_transit_take(&s->transits, &p->up.away));
	else if (line_next(s, &p->down) == at)
		leave_queue(s, p, at);
	else
		line_begin(p, &p->up, at);
	note_next(s, p);
}

static struct switch_port *
first_event(struct port_switch *s)
{
	struct switch_port *first = &s->port[0];

	for (uint32_t i = 1; i < s->n; i++)
		if (s->port[i].next < first->next)
			first = &s->port[i];
	return first;
}

static void
let_arrive(struct port_switch *s, struct switch_port *p, uint64_t now)
{
	while (due_of(s, &p->down.away) <= now) {
		struct hca_transit x = hca_transit_take(&s->transits, &p->down.away);

		if (p->arrived_n == HCA_SWITCH_RX) {
			hca_port_count(&p->stats.missed, 1);
			rte_pktmbuf_free(x.m);
			continue;
		}
		p->arrived_n++;
		hca_port_count(&p->stats.frames, 1);
		hca_port_count(&p->stats.bytes, x.m->data_len);
		hca_transit_append(&s->transits, &p->arrived, x);
	}
}

/* The first thread that calls becomes the owner. */
static bool
is_owner(struct port_switch *s)
{
	int self = rte_gettid(), owner = 0;

	return __atomic_compare_exchange_n(&s->thread, &owner, self, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED) ||
	       owner == self;
}

/* False: the caller is another thread. now: ns. */
static bool
advance(struct switch_port *p, uint64_t now)
{
	struct port_switch *s = p->all;
	struct switch_port *e;

	if (!is_owner(s)) {
		__atomic_fetch_add(&p->stats.refused, 1, __ATOMIC_RELAXED);
		return false;
	}
	s->time = now * HCA_PS;
	while ((e = first_event(s))->next <= s->time)
		happen(s, e);
	let_arrive(s, p, s->time);
	return true;
}

/* ---- operations ---- */

/* Takes a frame from the host; false: no room, the host keeps it. */
static bool
switch_take(struct switch_port *p, struct rte_mbuf *m)
{
	struct port_switch *s = p->all;
	uint64_t busy = p->up.free_at > s->time ? p->up.free_at - s->time : 0;
	struct hca_transit x = {.due = s->time, .from = p->index};

	busy += hca_transit_ps(p->up.bytes, p->rate_mbps);
	if (busy > HCA_FABRIC_AHEAD_NS * HCA_PS || hca_transits_full(&s->transits))
		return false;
	x.m = hca_transits_copy(&s->transits, m);
	if (x.m == NULL) {
		hca_port_count(&p->stats.no_mbuf, 1);
		return false;
	}
	rte_pktmbuf_free(m);
	hca_port_count(&p->stats.taken, 1);
	line_add(s, &p->up, x);
	note_next(s, p);
	return true;
}

static uint16_t
switch_tx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct switch_port *p = switch_port(port);
	uint16_t done = 0;

	if (!advance(p, now))
		return 0;
	while (done < n && switch_take(p, m[done]))
		done++;
	hca_port_count(&p->stats.stalled, done < n);
	return done;
}

static uint16_t
switch_rx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct switch_port *p = switch_port(port);
	uint16_t got = 0;

	if (!advance(p, now))
		return 0;
	while (got < n && p->arrived_n != 0) {
		m[got++] = hca_transit_take(&p->all->transits, &p->arrived).m;
		p->arrived_n--;
	}
	return got;
}

static void
switch_poll(struct hca_port *port, uint16_t q, uint64_t now)
{
	advance(switch_port(port), now);
}

static bool
switch_link_up(struct hca_port *port)
{
	return true;
}

static uint64_t
switch_missed(const struct hca_port *port)
{
	return __atomic_load_n(&((const struct switch_port *)port)->stats.missed, __ATOMIC_RELAXED);
}

/* The next event of any port, or arrival at this one. */
static uint64_t
switch_deadline(const struct hca_port *port, uint16_t q, uint64_t now)
{
	const struct switch_port *p = (const struct switch_port *)port;
	struct port_switch *s = p->all;
	uint64_t next = RTE_MIN(first_event(s)->next, due_of(s, &p->down.away));

	if (p->arrived_n != 0)
		return now;
	return next == UINT64_MAX ? next : (next + HCA_PS - 1) / HCA_PS;
}

static void
line_clear(struct port_switch *s, struct switch_line *l)
{
	hca_transit_clear(&s->transits, &l->waiting);
	hca_transit_clear(&s->transits, &l->away);
}

/* Frames of a closed port's host stay until the last port is closed. */
static void
switch_close(struct hca_port *port)
{
	struct port_switch *s = switch_port(port)->all;

	if (--s->open != 0)
		return;
	for (uint32_t i = 0; i < s->n; i++) {
		line_clear(s, &s->port[i].up);
		line_clear(s, &s->port[i].down);
		hca_transit_clear(&s->transits, &s->port[i].arrived);
	}
	hca_transits_fini(&s->transits);
	rte_free(s);
}

static const struct hca_port_ops switch_ops = {
	.rx = switch_rx,
	.tx = switch_tx,
	.link_up = switch_link_up,
	.poll = switch_poll,
	.missed = switch_missed,
	.deadline = switch_deadline,
	.close = switch_close,
};

/* ---- opening ---- */

static bool
is_valid(const struct hca_port_switch_config *cfg)
{
	const struct hca_switch *c = &cfg->settings;

	return cfg->ports >= 2 && cfg->ports <= HCA_SWITCH_PORTS && c->rate_mbps != 0 &&
	       c->kmin <= c->kmax && c->pmax >= 0 && c->pmax <= 1 && c->xon <= c->xoff;
}

static void
init_port(struct port_switch *s, uint32_t i, const struct hca_port_switch_config *cfg)
{
	struct switch_port *p = &s->port[i];
	struct switch_line empty = {.waiting = HCA_TRANSIT_EMPTY, .away = HCA_TRANSIT_EMPTY};

	p->port = (struct hca_port){.ops = &switch_ops,
				    .max_frame = cfg->max_frame ? cfg->max_frame : MAX_FRAME,
				    .queue_size = QUEUE_SIZE,
				    .queues = RTE_MAX(cfg->queues, 1u)};
	p->all = s;
	p->index = i;
	p->up = p->down = empty;
	p->arrived = HCA_TRANSIT_EMPTY;
	p->next = UINT64_MAX;
	hca_port_switch_set_link(&p->port, cfg->settings.rate_mbps, cfg->settings.delay_ns);
}

int
hca_port_switch_open(const struct hca_port_switch_config *cfg, struct hca_port **out)
{
	uint32_t hold = cfg->hold ? cfg->hold : HOLD_DEFAULT;
	char name[RTE_MEMPOOL_NAMESIZE];
	struct port_switch *s;

	if (!is_valid(cfg))
		return -EINVAL;
	s = rte_zmalloc_socket("hca_switch", sizeof(*s) + cfg->ports * sizeof(s->port[0]),
			       RTE_CACHE_LINE_SIZE, cfg->socket_id);
	if (s == NULL)
		return -ENOMEM;
	snprintf(name, sizeof(name), "%.18s.switch", cfg->name);
	if (hca_transits_init(&s->transits, name, hold, cfg->ports * QUEUE_SIZE, cfg->socket_id) !=
	    0) {
		rte_free(s);
		return -ENOMEM;
	}
	s->settings = cfg->settings;
	s->rng.s = cfg->seed;
	s->n = s->open = cfg->ports;
	for (uint32_t i = 0; i < s->n; i++) {
		init_port(s, i, cfg);
		out[i] = &s->port[i].port;
	}
	return 0;
}

int
hca_port_switch_give(struct hca_port *p, const uint8_t mac[6])
{
	return mac_learn(switch_port(p)->all, mac_of(mac), switch_port(p)->index, true);
}

void
hca_port_switch_set_link(struct hca_port *p, uint64_t rate_mbps, uint64_t delay_ns)
{
	switch_port(p)->rate_mbps = rate_mbps;
	switch_port(p)->delay_ps = delay_ns * HCA_PS;
}

/* ---- queries ---- */

void
hca_port_switch_stats(const struct hca_port *p, struct hca_port_switch_stats *out)
{
	hca_port_counted(out, &((const struct switch_port *)p)->stats, sizeof(*out));
}

uint64_t
hca_port_switch_queued(const struct hca_port *p)
{
	return __atomic_load_n(&((const struct switch_port *)p)->down.bytes, __ATOMIC_RELAXED);
}

bool
hca_port_switch_paused(const struct hca_port *p)
{
	return __atomic_load_n(&((const struct switch_port *)p)->up.paused, __ATOMIC_RELAXED);
}

uint32_t
hca_port_switch_held(const struct hca_port *p)
{
	return hca_transits_held(&((const struct switch_port *)p)->all->transits);
}

uint32_t
hca_port_switch_mbufs(const struct hca_port *p)
{
	return rte_mempool_in_use_count(((const struct switch_port *)p)->all->transits.pool);
}
