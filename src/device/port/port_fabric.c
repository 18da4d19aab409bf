/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Times are in ps, those of arrivals in ns: the first one that is not earlier. A path delivers in
 * order, so each has a list of its frames, and the next frame to arrive is the earliest head.
 */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include <rte_malloc.h>

#include "port/port_fabric.h"
#include "port/port_wrap.h"
#include "wire/udp_template.h"
#include "wire/wire_view.h"

#define HOLD_DEFAULT 4096u
#define LATER_NS 1000u

struct path {
	uint64_t free_at;  /* ps: time at which the last frame has left */
	uint64_t delay_ps; /* with its share of the skew */
	uint64_t loss;	   /* threshold of 32 bits */
	uint64_t carried;
};

/* Frames of one queue on their way. */
struct fabric_lane {
	uint16_t queue;
	bool waited;	    /* part of the last burst was refused */
	uint64_t link_free; /* [pub] ps: port_fabric.link_free when the last frame was offered */
	struct hca_port_fabric_stats stats;
	struct hca_transits transits;
	uint64_t next_due;				/* [pub] earliest arrival */
	struct hca_transit_list list[HCA_FABRIC_PATHS]; /* due: ns */
} __rte_cache_aligned;

/* The network is one for all queues: what its paths and the link carry is under the lock. */
struct port_fabric {
	struct hca_port_wrap wrap;
	struct hca_fabric cfg;
	pthread_mutex_t lock; /* protects the next three if there are several queues */
	struct hca_port_rng rng;
	uint64_t link_free; /* ps: free_at of the host's link */
	struct path path[HCA_FABRIC_PATHS];
	struct fabric_lane lane[];
};

static struct port_fabric *
fabric(struct hca_port *p)
{
	return (struct port_fabric *)p;
}

static uint64_t
max_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- frames ---- */

static uint32_t
mix(uint32_t h, uint32_t v)
{
	h = (h ^ v) * 0x9e3779b1u;
	return h ^ h >> 15;
}

unsigned int
hca_port_fabric_path(const struct hca_port *port, const uint8_t *frame, uint32_t len)
{
	uint32_t paths = ((const struct port_fabric *)port)->cfg.paths, h = 0, l3, ip, at, bytes;

	l3 = hca_port_l3(frame, len);
	if (l3 == 0)
		return 0;
	ip = frame[l3] >> 4 == 4 ? HCA_IPV4_LEN : HCA_IPV6_LEN;
	at = ip == HCA_IPV4_LEN ? 12 : 8;
	bytes = ip - at;
	for (uint32_t i = 0; i < bytes; i += 4)
		h = mix(h, hca_get_be32(frame + l3 + at + i));
	if (len >= l3 + ip + 2)
		h += hca_get_be16(frame + l3 + ip);
	return h % paths;
}

/* ---- arrival ---- */

static uint64_t
due_of(const struct fabric_lane *l, uint32_t path)
{
	const struct hca_transit *x = hca_transit_first(&l->transits, &l->list[path]);

	return x != NULL ? x->due : UINT64_MAX;
}

/* The path whose first frame arrives next. */
static uint32_t
next_path(const struct port_fabric *p, const struct fabric_lane *l)
{
	uint32_t first = 0;

	for (uint32_t i = 1; i < p->cfg.paths; i++)
		if (due_of(l, i) < due_of(l, first))
			first = i;
	return first;
}

static void
note_due(struct fabric_lane *l, uint64_t due)
{
	__atomic_store_n(&l->next_due, due, __ATOMIC_RELAXED);
}

static void
let_arrive(struct port_fabric *p, struct fabric_lane *l, uint64_t now)
{
	struct hca_port *inner = p->wrap.inner;
	uint32_t i;

	if (l->next_due > now)
		return;
	for (i = next_path(p, l); due_of(l, i) <= now; i = next_path(p, l)) {
		struct hca_transit *x = hca_transit_first(&l->transits, &l->list[i]);

		if (inner->ops->tx(inner, l->queue, &x->m, 1, now) != 1)
			break;
		hca_transit_take(&l->transits, &l->list[i]);
		hca_port_count(&l->stats.arrived, 1);
	}
	note_due(l, due_of(l, i));
}

/* ---- departure ---- */

static bool
is_lost(struct port_fabric *p, const struct path *q)
{
	return q->loss != 0 && (uint32_t)hca_port_random(&p->rng) < q->loss;
}

/* A request or a response: the sender must send it again if it is lost. */
static bool
is_data(const struct rte_mbuf *m)
{
	struct hca_wire_view v;

	return hca_wire_parse(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, &v) == 0 &&
	       hca_wire_is_data(&v);
}

/* Bytes that wait at a path at time `at`. */
static uint64_t
waiting(const struct port_fabric *p, const struct path *q, uint64_t at)
{
	return q->free_at <= at ? 0 : (q->free_at - at) * p->cfg.rate_mbps / (8 * HCA_PS_BIT_MBPS);
}

/* Enters `c`, the copy of a frame, in the network at time `at` (ps). */
static void
carry(struct port_fabric *p, struct fabric_lane *l, struct rte_mbuf *c, uint64_t at)
{
	uint64_t bytes = hca_transit_bytes(c), waits, due;
	unsigned int i = hca_port_fabric_path(&p->wrap.port, rte_pktmbuf_mtod(c, const uint8_t *),
					      c->data_len);
	struct path *q = &p->path[i];

	waits = waiting(p, q, at);
	if (p->cfg.queue != 0 && waits + bytes > p->cfg.queue) {
		hca_port_count(&l->stats.overflown, 1);
		rte_pktmbuf_free(c);
		return;
	}
	if (p->cfg.ecn != 0 && waits >= p->cfg.ecn)
		hca_port_count(&l->stats.marked, hca_transit_mark(c));
	q->free_at = max_of(q->free_at, at) + hca_transit_ps(bytes, p->cfg.rate_mbps);
	hca_port_count(&q->carried, 1);
	if (is_lost(p, q)) {
		hca_port_count(&l->stats.lost, 1);
		hca_port_count(&l->stats.lost_data, is_data(c));
		rte_pktmbuf_free(c);
		return;
	}
	due = (q->free_at + q->delay_ps + HCA_PS - 1) / HCA_PS;
	hca_transit_append(&l->transits, &l->list[i], (struct hca_transit){.m = c, .due = due});
	note_due(l, RTE_MIN(l->next_due, due));
}

/* Takes a frame from the sender; false: no room, the sender keeps it. */
static bool
fabric_take(struct port_fabric *p, struct fabric_lane *l, struct rte_mbuf *m, uint64_t now)
{
	uint64_t at = max_of(p->link_free, now * HCA_PS);
	struct rte_mbuf *c;

	if (at > (now + HCA_FABRIC_AHEAD_NS) * HCA_PS || hca_transits_full(&l->transits))
		return false;
	c = hca_transits_copy(&l->transits, m);
	if (c == NULL) {
		hca_port_count(&l->stats.no_mbuf, 1);
		return false;
	}
	p->link_free = at + hca_transit_ps(hca_transit_bytes(m), p->cfg.rate_mbps * p->cfg.paths);
	hca_port_count(&l->stats.frames, 1);
	rte_pktmbuf_free(m);
	carry(p, l, c, at);
	return true;
}

static uint16_t
fabric_tx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct port_fabric *p = fabric(port);
	struct fabric_lane *l = &p->lane[q];
	bool several = port->queues > 1;
	uint16_t done = 0;

	let_arrive(p, l, now);
	if (several)
		pthread_mutex_lock(&p->lock);
	while (done < n && fabric_take(p, l, m[done], now))
		done++;
	__atomic_store_n(&l->link_free, p->link_free, __ATOMIC_RELAXED);
	if (several)
		pthread_mutex_unlock(&p->lock);
	__atomic_store_n(&l->waited, done < n, __ATOMIC_RELAXED);
	hca_port_count(&l->stats.stalled, done < n);
	let_arrive(p, l, now);
	return done;
}

static void
fabric_poll(struct hca_port *port, uint16_t q, uint64_t now)
{
	let_arrive(fabric(port), &fabric(port)->lane[q], now);
	hca_port_poll(fabric(port)->wrap.inner, q, now);
}

/* Time at which a frame arrives, or the link has room after a refusal. */
static uint64_t
fabric_deadline(const struct hca_port *port, uint16_t q, uint64_t now)
{
	const struct port_fabric *p = (const struct port_fabric *)port;
	const struct fabric_lane *l = &p->lane[q];
	uint64_t due = __atomic_load_n(&l->next_due, __ATOMIC_RELAXED);
	uint64_t link_free = __atomic_load_n(&l->link_free, __ATOMIC_RELAXED);

	if (__atomic_load_n(&l->waited, __ATOMIC_RELAXED))
		due = hca_port_earlier(due, link_free / HCA_PS + 1 - HCA_FABRIC_AHEAD_NS);
	if (due <= now)
		due = now + LATER_NS; /* the inner port or the pool has no room */
	return hca_port_earlier(due, hca_port_deadline(p->wrap.inner, q, now));
}

static void
release(struct port_fabric *p)
{
	for (uint16_t q = 0; q < p->wrap.port.queues; q++)
		hca_transits_fini(&p->lane[q].transits);
	pthread_mutex_destroy(&p->lock);
	rte_free(p);
}

static void
fabric_close(struct hca_port *port)
{
	struct port_fabric *p = fabric(port);

	for (uint16_t q = 0; q < port->queues; q++)
		for (uint32_t i = 0; i < p->cfg.paths; i++)
			hca_transit_clear(&p->lane[q].transits, &p->lane[q].list[i]);
	p->wrap.inner->ops->close(p->wrap.inner);
	release(p);
}

static const struct hca_port_ops fabric_ops = {
	.rx = hca_port_wrap_rx,
	.tx = fabric_tx,
	.link_up = hca_port_wrap_link_up,
	.poll = fabric_poll,
	.missed = hca_port_wrap_missed,
	.wait_fd = hca_port_wrap_wait_fd,
	.arm = hca_port_wrap_arm,
	.deadline = fabric_deadline,
	.close = fabric_close,
};

/* ---- opening ---- */

static void
init_paths(struct port_fabric *p)
{
	const struct hca_fabric *c = &p->cfg;

	for (uint32_t i = 0; i < c->paths; i++) {
		double loss = i == 0 && c->loss0 >= 0 ? c->loss0 : c->loss;
		uint64_t share = c->paths > 1 ? c->skew_ns * HCA_PS * i / (c->paths - 1) : 0;

		p->path[i] = (struct path){.delay_ps = c->delay_ns * HCA_PS + share,
					   .loss = (uint64_t)(loss * 4294967296.0)};
	}
}

static int
make_lane(struct port_fabric *p, const struct hca_port_fabric_config *cfg, uint16_t q,
	  uint32_t hold)
{
	struct fabric_lane *l = &p->lane[q];
	char name[RTE_MEMPOOL_NAMESIZE];

	l->queue = q;
	l->next_due = UINT64_MAX;
	for (uint32_t i = 0; i < p->cfg.paths; i++)
		l->list[i] = HCA_TRANSIT_EMPTY;
	if (q == 0)
		snprintf(name, sizeof(name), "%.18s.fabric", cfg->name);
	else
		snprintf(name, sizeof(name), "%.16s.fab%u", cfg->name, q);
	if (hca_transits_init(&l->transits, name, hold, p->wrap.inner->queue_size,
			      cfg->socket_id) == 0)
		return 0;
	l->transits = (struct hca_transits){0};
	return -ENOMEM;
}

int
hca_port_fabric_open(const struct hca_port_fabric_config *cfg, struct hca_port *inner,
		     struct hca_port **out)
{
	uint32_t hold = cfg->hold ? cfg->hold : HOLD_DEFAULT;
	uint16_t queues = hca_port_queues(inner);
	struct port_fabric *p;
	int err = 0;

	if (cfg->fabric.rate_mbps == 0 || cfg->fabric.paths > HCA_FABRIC_PATHS)
		return -EINVAL;
	p = rte_zmalloc_socket("hca_fabric", sizeof(*p) + queues * sizeof(p->lane[0]),
			       RTE_CACHE_LINE_SIZE, cfg->socket_id);
	if (p == NULL)
		return -ENOMEM;
	hca_port_wrap_init(&p->wrap, &fabric_ops, inner);
	p->wrap.port.queue_size = inner->queue_size + hold;
	p->rng.s = cfg->seed;
	p->cfg = cfg->fabric;
	if (p->cfg.paths == 0)
		p->cfg.paths = 1;
	pthread_mutex_init(&p->lock, NULL);
	init_paths(p);
	for (uint16_t q = 0; q < queues && err == 0; q++)
		err = make_lane(p, cfg, q, RTE_MAX(hold / queues, 1u));
	if (err != 0) {
		release(p);
		return err;
	}
	*out = &p->wrap.port;
	return 0;
}

/* ---- queries ---- */

void
hca_port_fabric_stats(const struct hca_port *port, struct hca_port_fabric_stats *out)
{
	const struct port_fabric *p = (const struct port_fabric *)port;

	*out = (struct hca_port_fabric_stats){0};
	for (uint16_t q = 0; q < port->queues; q++)
		hca_port_add_counted(out, &p->lane[q].stats, sizeof(*out));
}

uint64_t
hca_port_fabric_carried(const struct hca_port *port, unsigned int path)
{
	const struct port_fabric *p = (const struct port_fabric *)port;

	return path < p->cfg.paths ? __atomic_load_n(&p->path[path].carried, __ATOMIC_RELAXED) : 0;
}

uint32_t
hca_port_fabric_held(const struct hca_port *port)
{
	const struct port_fabric *p = (const struct port_fabric *)port;
	uint32_t n = 0;

	for (uint16_t q = 0; q < port->queues; q++)
		n += hca_transits_held(&p->lane[q].transits);
	return n;
}

uint32_t
hca_port_fabric_mbufs(const struct hca_port *port)
{
	const struct port_fabric *p = (const struct port_fabric *)port;
	uint32_t n = 0;

	for (uint16_t q = 0; q < port->queues; q++)
		n += rte_mempool_in_use_count(p->lane[q].transits.pool);
	return n;
}
