/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Times are in ps: rounding shortens the time of a frame by less than 1 ps. A frame arrives at the
 * first ns that is not earlier. A path delivers in order, so each has a list of its frames, and the
 * next frame to arrive is the earliest head.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_malloc.h>

#include "core/mbuf.h"
#include "core/table.h"
#include "port/port_fabric.h"
#include "port/port_wrap.h"
#include "wire/udp_template.h"
#include "wire/wire_view.h"

#define HOLD_DEFAULT 4096u
#define PS UINT64_C(1000)	      /* per ns */
#define PS_BIT_MBPS UINT64_C(1000000) /* ps per bit at 1 Mb/s */
#define LATER_NS 1000u
#define NONE UINT32_MAX
#define ECN_CE 3u

struct transit {
	struct rte_mbuf *m;
	uint64_t due; /* ns */
	uint32_t next;
};

struct path {
	uint64_t free_at;  /* ps: time at which the last frame has left */
	uint64_t delay_ps; /* with its share of the skew */
	uint64_t loss;	   /* threshold of 32 bits */
	uint64_t carried;
	uint32_t head, tail; /* of its list; NONE: empty */
};

struct port_fabric {
	struct hca_port_wrap wrap;
	struct hca_port_rng rng;
	struct hca_fabric cfg;
	uint64_t link_free; /* ps: free_at of the host's link */
	bool waited;	    /* part of the last burst was refused */
	struct hca_port_fabric_stats stats;
	struct rte_mempool *pool;
	uint32_t held;	   /* [pub] */
	uint32_t unused;   /* list of free transits */
	uint64_t next_due; /* [pub] earliest arrival of the frames in the network */
	struct path path[HCA_FABRIC_PATHS];
	struct transit transit[];
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

static void
mark(struct port_fabric *p, struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t l3 = hca_port_l3(frame, m->data_len), ecn;

	ecn = l3 != 0 ? hca_port_ecn(frame + l3) : 0;
	if (ecn == 0 || ecn == ECN_CE)
		return;
	hca_port_mark_ce(frame + l3);
	hca_port_count(&p->stats.marked, 1);
}

static struct rte_mbuf *
copy_of(struct port_fabric *p, const struct rte_mbuf *m)
{
	struct rte_mbuf *c = rte_pktmbuf_alloc(p->pool);

	if (c == NULL)
		return NULL;
	memcpy(rte_pktmbuf_append(c, m->data_len), rte_pktmbuf_mtod(m, const void *), m->data_len);
	return c;
}

/* ---- arrival ---- */

/* The path whose first frame arrives next, or NULL. */
static struct path *
next_path(struct port_fabric *p)
{
	struct path *first = NULL;

	for (uint32_t i = 0; i < p->cfg.paths; i++) {
		struct path *q = &p->path[i];

		if (q->head != NONE &&
		    (first == NULL || p->transit[q->head].due < p->transit[first->head].due))
			first = q;
	}
	return first;
}

static void
note_due(struct port_fabric *p, const struct path *q)
{
	__atomic_store_n(&p->next_due, q != NULL ? p->transit[q->head].due : UINT64_MAX,
			 __ATOMIC_RELAXED);
}

static void
set_held(struct port_fabric *p, uint32_t n)
{
	__atomic_store_n(&p->held, n, __ATOMIC_RELAXED);
}

static void
append(struct port_fabric *p, struct path *q, struct rte_mbuf *m, uint64_t due)
{
	uint32_t i = p->unused;

	p->unused = p->transit[i].next;
	p->transit[i] = (struct transit){.m = m, .due = due, .next = NONE};
	if (q->head == NONE)
		q->head = i;
	else
		p->transit[q->tail].next = i;
	q->tail = i;
	set_held(p, p->held + 1);
	if (due < p->next_due)
		__atomic_store_n(&p->next_due, due, __ATOMIC_RELAXED);
}

static struct rte_mbuf *
remove_first(struct port_fabric *p, struct path *q)
{
	uint32_t i = q->head;

	q->head = p->transit[i].next;
	p->transit[i].next = p->unused;
	p->unused = i;
	set_held(p, p->held - 1);
	return p->transit[i].m;
}

static void
let_arrive(struct port_fabric *p, uint64_t now)
{
	struct hca_port *inner = p->wrap.inner;
	struct path *q;

	if (p->next_due > now)
		return;
	while ((q = next_path(p)) != NULL && p->transit[q->head].due <= now) {
		if (inner->ops->tx(inner, HCA_PORT_QUEUE, &p->transit[q->head].m, 1, now) != 1)
			break;
		remove_first(p, q);
		hca_port_count(&p->stats.arrived, 1);
	}
	note_due(p, q);
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
	return q->free_at <= at ? 0 : (q->free_at - at) * p->cfg.rate_mbps / (8 * PS_BIT_MBPS);
}

/* Enters `c`, the copy of a frame, in the network at time `at` (ps). */
static void
carry(struct port_fabric *p, struct rte_mbuf *c, uint64_t at)
{
	uint64_t bits = 8 * ((uint64_t)c->data_len + HCA_FABRIC_OVERHEAD), waits;
	struct path *q =
		&p->path[hca_port_fabric_path(&p->wrap.port, rte_pktmbuf_mtod(c, const uint8_t *),
					      c->data_len)];

	waits = waiting(p, q, at);
	if (p->cfg.queue != 0 && waits + bits / 8 > p->cfg.queue) {
		hca_port_count(&p->stats.overflown, 1);
		rte_pktmbuf_free(c);
		return;
	}
	if (p->cfg.ecn != 0 && waits >= p->cfg.ecn)
		mark(p, c);
	q->free_at = max_of(q->free_at, at) + bits * PS_BIT_MBPS / p->cfg.rate_mbps;
	hca_port_count(&q->carried, 1);
	if (is_lost(p, q)) {
		hca_port_count(&p->stats.lost, 1);
		hca_port_count(&p->stats.lost_data, is_data(c));
		rte_pktmbuf_free(c);
		return;
	}
	append(p, q, c, (q->free_at + q->delay_ps + PS - 1) / PS);
}

/* Takes a frame from the sender; false: no room, the sender keeps it. */
static bool
fabric_take(struct port_fabric *p, struct rte_mbuf *m, uint64_t now)
{
	uint64_t at = max_of(p->link_free, now * PS), bits;
	struct rte_mbuf *c;

	if (at > (now + HCA_FABRIC_AHEAD_NS) * PS || p->unused == NONE)
		return false;
	c = copy_of(p, m);
	if (c == NULL) {
		hca_port_count(&p->stats.no_mbuf, 1);
		return false;
	}
	bits = 8 * ((uint64_t)m->data_len + HCA_FABRIC_OVERHEAD);
	p->link_free = at + bits * PS_BIT_MBPS / (p->cfg.rate_mbps * p->cfg.paths);
	hca_port_count(&p->stats.frames, 1);
	rte_pktmbuf_free(m);
	carry(p, c, at);
	return true;
}

static uint16_t
fabric_tx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct port_fabric *p = fabric(port);
	uint16_t done = 0;

	let_arrive(p, now);
	while (done < n && fabric_take(p, m[done], now))
		done++;
	p->waited = done < n;
	hca_port_count(&p->stats.stalled, p->waited);
	let_arrive(p, now);
	return done;
}

static void
fabric_poll(struct hca_port *port, uint16_t q, uint64_t now)
{
	let_arrive(fabric(port), now);
	hca_port_poll(fabric(port)->wrap.inner, q, now);
}

/* Time at which a frame arrives, or the link has room after a refusal. */
static uint64_t
fabric_deadline(const struct hca_port *port, uint16_t q, uint64_t now)
{
	const struct port_fabric *p = (const struct port_fabric *)port;
	uint64_t due = __atomic_load_n(&p->next_due, __ATOMIC_RELAXED);

	if (p->waited)
		due = hca_port_earlier(due, p->link_free / PS + 1 - HCA_FABRIC_AHEAD_NS);
	if (due <= now)
		due = now + LATER_NS; /* the inner port or the pool has no room */
	return hca_port_earlier(due, hca_port_deadline(p->wrap.inner, q, now));
}

static void
fabric_close(struct hca_port *port)
{
	struct port_fabric *p = fabric(port);
	struct path *q;

	while ((q = next_path(p)) != NULL)
		rte_pktmbuf_free(remove_first(p, q));
	p->wrap.inner->ops->close(p->wrap.inner);
	rte_mempool_free(p->pool);
	rte_free(p);
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
		uint64_t share = c->paths > 1 ? c->skew_ns * PS * i / (c->paths - 1) : 0;

		p->path[i] = (struct path){.delay_ps = c->delay_ns * PS + share,
					   .loss = (uint64_t)(loss * 4294967296.0),
					   .head = NONE};
	}
}

static void
init_transits(struct port_fabric *p, uint32_t hold)
{
	for (uint32_t i = 0; i < hold; i++)
		p->transit[i].next = i + 1 < hold ? i + 1 : NONE;
	p->unused = 0;
}

int
hca_port_fabric_open(const struct hca_port_fabric_config *cfg, struct hca_port *inner,
		     struct hca_port **out)
{
	uint32_t hold = cfg->hold ? cfg->hold : HOLD_DEFAULT;
	char name[RTE_MEMPOOL_NAMESIZE];
	struct port_fabric *p;

	if (cfg->fabric.rate_mbps == 0 || cfg->fabric.paths > HCA_FABRIC_PATHS)
		return -EINVAL;
	p = rte_zmalloc_socket("hca_fabric", sizeof(*p) + hold * sizeof(p->transit[0]),
			       RTE_CACHE_LINE_SIZE, cfg->socket_id);
	if (p == NULL)
		return -ENOMEM;
	hca_port_wrap_init(&p->wrap, &fabric_ops, inner);
	p->wrap.port.queue_size = inner->queue_size + hold;
	p->rng.s = cfg->seed;
	p->cfg = cfg->fabric;
	if (p->cfg.paths == 0)
		p->cfg.paths = 1;
	p->next_due = UINT64_MAX;
	init_paths(p);
	init_transits(p, hold);
	/* copies that have arrived belong to the receiver until it frees them */
	snprintf(name, sizeof(name), "%.18s.fabric", cfg->name);
	p->pool = hca_mbuf_pool(name, hold + inner->queue_size + 1024, 0, HCA_MBUF_DATA,
				cfg->socket_id);
	if (p->pool == NULL) {
		rte_free(p);
		return -ENOMEM;
	}
	*out = &p->wrap.port;
	return 0;
}

/* ---- queries ---- */

void
hca_port_fabric_stats(const struct hca_port *port, struct hca_port_fabric_stats *out)
{
	hca_port_counted(out, &((const struct port_fabric *)port)->stats, sizeof(*out));
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
	return __atomic_load_n(&((const struct port_fabric *)port)->held, __ATOMIC_RELAXED);
}

uint32_t
hca_port_fabric_mbufs(const struct hca_port *port)
{
	return rte_mempool_in_use_count(((const struct port_fabric *)port)->pool);
}
