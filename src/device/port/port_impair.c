/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The fate of each frame is decided once (impair_fate.c): then rules count it, its fault is listed,
 * and its contents change. A frame that is refused afterwards (no room to hold it, or the inner
 * port is full) keeps its fate until the sender offers it again.
 */

#include <errno.h>
#include <stdio.h>

#include <rte_malloc.h>

#include "core/mbuf.h"
#include "core/table.h"
#include "port/impair_lane.h"

#define HOLD_DEFAULT 1024u
#define HOLD_OF_QUEUE 256u /* each of several queues holds this many of `hold`, or its share */
#define LATER_NS 20000u
/* odd, and far from the steps of impair_fate.c and of the generator */
#define QUEUE_STEP UINT64_C(0x8ebc6af09c88c6e3)

static struct port_impair *
impair(struct hca_port *p)
{
	return (struct port_impair *)p;
}

static const struct port_impair *
impair_const(const struct hca_port *p)
{
	return (const struct port_impair *)p;
}

static bool
offer(struct port_impair *p, struct impair_lane *l, struct rte_mbuf *m, uint64_t now)
{
	return p->wrap.inner->ops->tx(p->wrap.inner, l->queue, &m, 1, now) == 1;
}

/* Searches the whole heap: few frames wait for others to pass, because only rules hold these. */
static void
let_go_after(struct port_impair *p, struct impair_lane *l, uint64_t now)
{
	struct impair_heap *h = &l->heap;

	for (uint32_t i = 0; i < h->n;) {
		if (h->at[i].after > l->stats.frames || !offer(p, l, h->at[i].m, now))
			i++;
		else
			impair_heap_remove(h, i);
	}
}

static void
let_go(struct port_impair *p, struct impair_lane *l, uint64_t now)
{
	struct impair_heap *h = &l->heap;

	while (h->n != 0 && h->at[0].due <= now && offer(p, l, h->at[0].m, now))
		impair_heap_remove(h, 0);
}

/* Hold a copy until `due`; false: no room. */
static bool
hold_copy(struct impair_lane *l, struct rte_mbuf *m, uint64_t due, uint64_t after)
{
	struct rte_mbuf *c;

	if (l->heap.n >= l->heap.max) {
		hca_port_count(&l->stats.hold_full, 1);
		return false;
	}
	c = rte_pktmbuf_copy(m, l->pool, 0, UINT32_MAX);
	if (c == NULL) {
		hca_port_count(&l->stats.no_mbuf, 1);
		return false;
	}
	impair_heap_push(&l->heap, c, due, after);
	return true;
}

static void
count_held(struct impair_lane *l, const struct impair_fate *f)
{
	hca_port_count(&l->stats.reordered, f->fault == HCA_FAULT_REORDER);
	hca_port_count(&l->stats.delayed, f->fault != HCA_FAULT_REORDER);
}

static bool
hold_until(struct impair_lane *l, struct rte_mbuf *m, const struct impair_fate *f, uint64_t due)
{
	bool swap = f->fault == HCA_FAULT_REORDER && f->by_rule;

	if (!hold_copy(l, m, due, swap ? l->stats.frames + 2 : UINT64_MAX))
		return false;
	count_held(l, f);
	if (f->fault == HCA_FAULT_DUP && hold_copy(l, m, due, UINT64_MAX))
		hca_port_count(&l->stats.duplicated, 1);
	return true;
}

/* Applies the fate to the frame. False: not accepted, the caller keeps the frame. */
static bool
apply(struct port_impair *p, struct impair_lane *l, struct rte_mbuf *m, uint64_t now)
{
	struct impair_fate *f = &l->fate;

	if (f->fault == HCA_FAULT_DROP) {
		hca_port_count(&l->stats.dropped, 1);
		rte_pktmbuf_free(m);
		return true;
	}
	if (f->wait != 0 && hold_until(l, m, f, now + f->wait)) {
		rte_pktmbuf_free(m);
		return true;
	}
	if (f->wait != 0 && f->fault != HCA_FAULT_REORDER) {
		hca_port_count(&l->stats.stalled, 1);
		return false;
	}
	if (f->fault == HCA_FAULT_DUP && hold_copy(l, m, now, UINT64_MAX)) {
		hca_port_count(&l->stats.duplicated, 1);
		f->fault = IMPAIR_PASS; /* if the inner port refuses the frame, it passes later */
	}
	if (offer(p, l, m, now))
		return true;
	if (!impair_damages(f) || !hold_copy(l, m, now, UINT64_MAX))
		return false;
	rte_pktmbuf_free(m);
	return true;
}

static bool
send_one(struct port_impair *p, struct impair_lane *l, struct rte_mbuf *m, uint64_t now)
{
	if (likely(l->refused != m))
		impair_decide(p, l, m, now);
	l->refused = apply(p, l, m, now) ? NULL : m;
	if (l->refused != NULL)
		return false;
	l->judged += !l->fate.spared;
	return true;
}

/* Takes new odds. A refused frame, whose fate the old ones decided, is not held or counted. */
static void
take_over(struct impair_lane *l)
{
	uint32_t got;

	if (likely((__atomic_load_n(&l->between, __ATOMIC_RELAXED) & IMPAIR_FRESH) == 0))
		return;
	got = __atomic_exchange_n(&l->between, l->now_odds, __ATOMIC_ACQ_REL);
	l->now_odds = got & ~IMPAIR_FRESH;
	l->judged = 0;
	l->settings++;
	l->fate.wait = 0;
	l->fate.spared = true;
}

static bool
is_clean(const struct port_impair *p, const struct impair_lane *l)
{
	return !impair_odds(l)->any && impair_rules(p) == 0 && l->heap.n == 0 && l->refused == NULL;
}

bool
hca_port_impair_clean(struct hca_port *port, uint16_t q)
{
	struct port_impair *p = impair(port);

	take_over(p->lane[q]);
	return is_clean(p, p->lane[q]);
}

void
hca_port_impair_count(struct hca_port *port, uint16_t q, uint16_t n)
{
	hca_port_count(&impair(port)->lane[q]->stats.frames, n);
}

uint32_t
hca_port_impair_forget(struct hca_port *port, uint16_t q)
{
	struct impair_lane *l = impair(port)->lane[q];

	l->refused = NULL;
	return impair_heap_clear(&l->heap);
}

static uint16_t
impair_tx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct port_impair *p = impair(port);
	struct impair_lane *l = p->lane[q];
	uint16_t done = 0;

	take_over(l);
	if (is_clean(p, l)) {
		done = p->wrap.inner->ops->tx(p->wrap.inner, q, m, n, now);
		hca_port_count(&l->stats.frames, done);
		return done;
	}
	let_go(p, l, now);
	while (done < n && send_one(p, l, m[done], now)) {
		hca_port_count(&l->stats.frames, 1);
		done++;
		if (impair_rules(p) != 0)
			let_go_after(p, l, now);
	}
	let_go(p, l, now);
	return done;
}

static void
impair_poll(struct hca_port *port, uint16_t q, uint64_t now)
{
	struct port_impair *p = impair(port);
	struct impair_lane *l = p->lane[q];

	take_over(l);
	if (l->heap.n != 0)
		let_go(p, l, now);
	hca_port_poll(p->wrap.inner, q, now);
}

static uint64_t
impair_deadline(const struct hca_port *port, uint16_t q, uint64_t now)
{
	const struct port_impair *p = impair_const(port);
	uint64_t due = __atomic_load_n(&p->lane[q]->heap.next_due, __ATOMIC_RELAXED);

	/* due but still held: the inner port accepts no more */
	if (due <= now)
		due = now + LATER_NS;
	return hca_port_earlier(due, hca_port_deadline(p->wrap.inner, q, now));
}

static void
release_lane(struct impair_lane *l)
{
	if (l == NULL)
		return;
	impair_heap_clear(&l->heap);
	hca_fired_fini(&l->fired);
	rte_mempool_free(l->pool);
	rte_free(l);
}

static void
release(struct port_impair *p)
{
	for (uint16_t q = 0; q < p->wrap.port.queues; q++)
		release_lane(p->lane[q]);
	rte_free(p);
}

static void
impair_close(struct hca_port *port)
{
	struct port_impair *p = impair(port);

	p->wrap.inner->ops->close(p->wrap.inner);
	release(p);
}

static const struct hca_port_ops impair_ops = {
	.rx = hca_port_wrap_rx,
	.tx = impair_tx,
	.link_up = hca_port_wrap_link_up,
	.poll = impair_poll,
	.missed = hca_port_wrap_missed,
	.wait_fd = hca_port_wrap_wait_fd,
	.arm = hca_port_wrap_arm,
	.deadline = impair_deadline,
	.close = impair_close,
};

static struct rte_mempool *
make_pool(const struct hca_port_impair_config *cfg, uint16_t q, uint32_t n)
{
	char name[RTE_MEMPOOL_NAMESIZE];

	if (q == 0)
		snprintf(name, sizeof(name), "%.20s.hold", cfg->name);
	else
		snprintf(name, sizeof(name), "%.18s.h%u", cfg->name, q);
	return hca_mbuf_pool(name, n, 0, HCA_MBUF_DATA, cfg->socket_id);
}

static struct impair_lane *
make_lane(const struct hca_port_impair_config *cfg, uint16_t q, uint32_t hold)
{
	struct impair_lane *l;

	l = rte_zmalloc_socket("hca_impair_q", sizeof(*l) + hold * sizeof(l->held[0]),
			       RTE_CACHE_LINE_SIZE, cfg->socket_id);
	if (l == NULL)
		return NULL;
	l->queue = q;
	l->seed = cfg->seed + q * QUEUE_STEP;
	l->next_odds = 1;
	l->between = 2;
	l->heap = (struct impair_heap){.at = l->held, .max = hold, .next_due = UINT64_MAX};
	/* copies that were sent belong to the receiver until it frees them */
	l->pool = make_pool(cfg, q, 2 * hold);
	if (l->pool == NULL) {
		rte_free(l);
		return NULL;
	}
	hca_fired_init(&l->fired);
	return l;
}

/* Frames that each queue may hold. */
static uint32_t
hold_of_queue(const struct hca_port_impair_config *cfg, uint16_t queues)
{
	uint32_t hold = cfg->hold ? cfg->hold : HOLD_DEFAULT;

	return RTE_MAX(hold / queues, RTE_MIN(hold, HOLD_OF_QUEUE));
}

int
hca_port_impair_open(const struct hca_port_impair_config *cfg, struct hca_port *inner,
		     struct hca_port **out)
{
	uint16_t queues = hca_port_queues(inner);
	uint32_t hold = hold_of_queue(cfg, queues);
	struct port_impair *p;

	p = rte_zmalloc_socket("hca_impair", sizeof(*p) + queues * sizeof(p->lane[0]),
			       RTE_CACHE_LINE_SIZE, cfg->socket_id);
	if (p == NULL)
		return -ENOMEM;
	hca_port_wrap_init(&p->wrap, &impair_ops, inner);
	p->wrap.port.queue_size = inner->queue_size + hold;
	for (uint16_t q = 0; q < queues; q++) {
		p->lane[q] = make_lane(cfg, q, hold);
		if (p->lane[q] == NULL) {
			release(p);
			return -ENOMEM;
		}
	}
	*out = &p->wrap.port;
	return 0;
}

static uint64_t
threshold(double probability)
{
	const double whole = 4294967296.0;
	uint64_t t;

	if (!(probability > 0))
		return 0;
	t = probability >= 1 ? (uint64_t)whole : (uint64_t)(probability * whole);
	return t != 0 ? t : 1;
}

static struct impair_odds
odds_from(const struct hca_impair *in)
{
	struct impair_odds o = {
		.drop = threshold(in->drop),
		.dup = threshold(in->dup),
		.reorder = threshold(in->reorder),
		.corrupt = threshold(in->corrupt),
		.truncate = threshold(in->truncate),
		.ecn = threshold(in->ecn),
		.delay_ns = in->delay_ns,
		.jitter_ns = in->jitter_ns,
		.reorder_ns = in->reorder_ns,
		.kinds = in->corrupt_kinds & HCA_CORRUPT_ANY,
		.qpn = in->qpn,
		.sqpn = in->sqpn,
		.wire = in->wire,
		.by_name = in->by_name,
		.of = in->of,
	};

	if (o.kinds == 0)
		o.kinds = HCA_CORRUPT_ANY;
	o.any = (o.drop | o.dup | o.reorder | o.corrupt | o.truncate | o.ecn | o.delay_ns |
		 o.jitter_ns) != 0;
	return o;
}

void
hca_port_impair_set(struct hca_port *port, const struct hca_impair *in)
{
	static const struct hca_impair none;
	const struct impair_odds o = odds_from(in != NULL ? in : &none);
	struct port_impair *p = impair(port);

	for (uint16_t q = 0; q < p->wrap.port.queues; q++) {
		struct impair_lane *l = p->lane[q];

		l->odds[l->next_odds] = o;
		l->next_odds = __atomic_exchange_n(&l->between, l->next_odds | IMPAIR_FRESH,
						   __ATOMIC_ACQ_REL) &
			       ~IMPAIR_FRESH;
	}
}

int
hca_port_impair_rule(struct hca_port *port, const struct hca_fault_rule *rule)
{
	struct port_impair *p = impair(port);
	unsigned int n = p->num_rules;

	if (n == HCA_FAULT_RULES)
		return -ENOSPC;
	p->rule[n] = *rule;
	for (uint16_t q = 0; q < p->wrap.port.queues; q++)
		p->lane[q]->rule[n] = (struct impair_rule_count){0};
	__atomic_store_n(&p->num_rules, n + 1, __ATOMIC_RELEASE);
	return 0;
}

unsigned int
hca_port_impair_rules(const struct hca_port *port)
{
	return impair_rules(impair_const(port));
}

void
hca_port_impair_clear_rules(struct hca_port *port)
{
	__atomic_store_n(&impair(port)->num_rules, 0, __ATOMIC_RELEASE);
}

/* Over all queues. */
static struct impair_rule_count
counted_by(const struct hca_port *port, unsigned int rule)
{
	const struct port_impair *p = impair_const(port);
	struct impair_rule_count sum = {0};

	for (uint16_t q = 0; rule < impair_rules(p) && q < p->wrap.port.queues; q++)
		hca_port_add_counted(&sum, &p->lane[q]->rule[rule], sizeof(sum));
	return sum;
}

uint64_t
hca_port_impair_hits(const struct hca_port *port, unsigned int rule)
{
	return counted_by(port, rule).hits;
}

uint64_t
hca_port_impair_seen(const struct hca_port *port, unsigned int rule)
{
	return counted_by(port, rule).seen;
}

unsigned int
hca_port_impair_fired(struct hca_port *port, struct hca_fired out[HCA_FIRED_MAX])
{
	struct port_impair *p = impair(port);
	unsigned int n = 0;

	for (uint16_t q = 0; q < p->wrap.port.queues; q++)
		n = hca_fired_read(&p->lane[q]->fired, out, n);
	return n;
}

void
hca_port_impair_watch(struct hca_port *port, hca_port_impair_watch_fn fn, void *arg)
{
	impair(port)->watch = fn;
	impair(port)->watch_arg = arg;
}

void
hca_port_impair_stats(const struct hca_port *port, struct hca_port_impair_stats *out)
{
	const struct port_impair *p = impair_const(port);

	*out = (struct hca_port_impair_stats){0};
	for (uint16_t q = 0; q < p->wrap.port.queues; q++)
		hca_port_add_counted(out, &p->lane[q]->stats, sizeof(*out));
}

uint32_t
hca_port_impair_held(const struct hca_port *port)
{
	const struct port_impair *p = impair_const(port);
	uint32_t n = 0;

	for (uint16_t q = 0; q < p->wrap.port.queues; q++)
		n += __atomic_load_n(&p->lane[q]->heap.n, __ATOMIC_RELAXED);
	return n;
}

uint32_t
hca_port_impair_mbufs(const struct hca_port *port)
{
	const struct port_impair *p = impair_const(port);
	uint32_t n = 0;

	for (uint16_t q = 0; q < p->wrap.port.queues; q++)
		n += rte_mempool_in_use_count(p->lane[q]->pool);
	return n;
}
