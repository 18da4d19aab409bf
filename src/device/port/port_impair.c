/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The fate of each frame is decided once: then rules count it, its fault is listed, and its
 * contents change. A frame that is refused afterwards (no room to hold it, or the inner port is
 * full) keeps its fate until the sender offers it again.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_malloc.h>

#include "core/mbuf.h"
#include "core/table.h"
#include "port/port_impair.h"
#include "port/port_wrap.h"
#include "wire/udp_template.h"

#define HOLD_DEFAULT 1024u
#define REORDER_NS 10000u
#define LATER_NS 20000u
#define FATE_PASS HCA_FAULT_KINDS
/* odd, and far from each other and from the steps of the generator */
#define FRAME_STEP UINT64_C(0xd1342543de82ef95)
#define SETTING_STEP UINT64_C(0xa0761d6478bd642f)
#define FRESH 4u /* flag in port_impair.between: the worker has not taken this set of odds yet */

/* Result of decide(). */
struct fate {
	unsigned int fault; /* enum hca_fault or FATE_PASS */
	uint64_t arg;
	uint64_t wait; /* ns */
	bool ecn;
	bool by_rule;
	uint8_t rule; /* counted from 1 */
	bool spared;  /* the odds are for other frames: QP, wire or opcode */
};

/* Held frames: a binary heap by due time, then age. */
struct held {
	struct rte_mbuf *m;
	uint64_t due;
	uint64_t seq;
	uint64_t after; /* also due when stats.frames reaches this; UINT64_MAX: never */
};

/* Probabilities as 32-bit thresholds. */
struct odds {
	uint64_t drop, dup, reorder, corrupt, truncate, ecn;
	uint64_t delay_ns, jitter_ns, reorder_ns;
	uint32_t kinds;
	uint32_t qpn, sqpn; /* 0: all */
	uint8_t wire;	    /* HCA_WIRE_NONE: all */
	bool by_name;
	struct hca_opcode_set of;
	bool any;
};

struct rule {
	struct hca_fault_rule r;
	uint64_t seen, hits;
};

struct port_impair {
	struct hca_port_wrap wrap;
	struct hca_port_rng rng; /* seeded for each frame */
	uint64_t seed;
	uint64_t settings; /* number of times that odds were set */
	uint64_t judged;   /* frames since the last setting, without spared ones */
	/*
	 * Triple buffer: one set is the worker's, one the writer's; either swaps its own for the
	 * third. So neither waits, and no set is read while it is written.
	 */
	struct odds odds[3];
	uint32_t now_odds;  /* index of the worker's set */
	uint32_t next_odds; /* index of the writer's set */
	uint32_t between;   /* [pub] index of the third set, and FRESH */
	struct rule rules[HCA_FAULT_RULES];
	unsigned int num_rules;		/* [pub] */
	struct fate fate;		/* fate of the frame that is sent */
	const struct rte_mbuf *refused; /* frame whose fate waits for the next offer; or NULL */
	struct hca_port_impair_stats stats;
	hca_port_impair_watch_fn watch;
	void *watch_arg;
	struct hca_fired_list fired;
	struct rte_mempool *pool;
	uint64_t seq;
	uint32_t hold;
	uint32_t num_held; /* [pub] */
	uint64_t next_due; /* [pub] earliest due time of the held frames */
	struct held heap[];
};

static struct port_impair *
impair(struct hca_port *p)
{
	return (struct port_impair *)p;
}

static bool
earlier(const struct held *a, const struct held *b)
{
	return a->due != b->due ? a->due < b->due : a->seq < b->seq;
}

static void
set_held(struct port_impair *p, uint32_t n)
{
	__atomic_store_n(&p->num_held, n, __ATOMIC_RELAXED);
}

static void
set_due(struct port_impair *p)
{
	__atomic_store_n(&p->next_due, p->num_held != 0 ? p->heap[0].due : UINT64_MAX,
			 __ATOMIC_RELAXED);
}

static void
heap_push(struct port_impair *p, struct held h)
{
	uint32_t i = p->num_held;

	set_held(p, i + 1);

	while (i != 0 && earlier(&h, &p->heap[(i - 1) / 2])) {
		p->heap[i] = p->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	p->heap[i] = h;
	set_due(p);
}

static void
heap_remove(struct port_impair *p, uint32_t i)
{
	struct held last = p->heap[p->num_held - 1];

	set_held(p, p->num_held - 1);
	/* move the hole up while the last entry is earlier than its parent; otherwise down */
	while (i != 0 && earlier(&last, &p->heap[(i - 1) / 2])) {
		p->heap[i] = p->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c + 1 < p->num_held && earlier(&p->heap[c + 1], &p->heap[c]))
			c++;
		if (c >= p->num_held || !earlier(&p->heap[c], &last))
			break;
		p->heap[i] = p->heap[c];
		i = c;
	}
	p->heap[i] = last;
	set_due(p);
}

static bool
offer(struct port_impair *p, struct rte_mbuf *m, uint64_t now)
{
	return p->wrap.inner->ops->tx(p->wrap.inner, HCA_PORT_QUEUE, &m, 1, now) == 1;
}

/* Searches the whole heap: few frames wait for others to pass, because only rules hold these. */
static void
let_go_after(struct port_impair *p, uint64_t now)
{
	for (uint32_t i = 0; i < p->num_held;) {
		if (p->heap[i].after > p->stats.frames || !offer(p, p->heap[i].m, now))
			i++;
		else
			heap_remove(p, i);
	}
}

static void
let_go(struct port_impair *p, uint64_t now)
{
	while (p->num_held != 0 && p->heap[0].due <= now && offer(p, p->heap[0].m, now))
		heap_remove(p, 0);
}

/* Hold a copy until `due`; false: no room. */
static bool
hold_copy(struct port_impair *p, struct rte_mbuf *m, uint64_t due, uint64_t after)
{
	struct rte_mbuf *c;

	if (p->num_held >= p->hold) {
		hca_port_count(&p->stats.hold_full, 1);
		return false;
	}
	c = rte_pktmbuf_copy(m, p->pool, 0, UINT32_MAX);
	if (c == NULL) {
		hca_port_count(&p->stats.no_mbuf, 1);
		return false;
	}
	heap_push(p, (struct held){.m = c, .due = due, .seq = p->seq++, .after = after});
	return true;
}

static bool
chance(struct port_impair *p, uint64_t odds)
{
	return odds != 0 && (hca_port_random(&p->rng) >> 32) < odds;
}

static const struct odds *
odds_of(const struct port_impair *p)
{
	return &p->odds[p->now_odds];
}

static unsigned int
random_corruption(struct port_impair *p)
{
	static const uint8_t faults[] = {HCA_FAULT_CORRUPT_PAYLOAD, HCA_FAULT_CORRUPT_HEADER,
					 HCA_FAULT_CORRUPT_ICRC, HCA_FAULT_CORRUPT_RANDOM};
	unsigned int i;

	do {
		i = hca_port_random_below(&p->rng, RTE_DIM(faults));
	} while ((odds_of(p)->kinds & 1u << i) == 0);
	return faults[i];
}

static unsigned int
rules_of(const struct port_impair *p)
{
	return __atomic_load_n(&p->num_rules, __ATOMIC_ACQUIRE);
}

/* Reads the members that rules and odds compare; false: a frame of no wire. */
static bool
read_frame(const struct rte_mbuf *m, struct hca_wire_view *v)
{
	return hca_wire_parse(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, v) == 0;
}

static bool
is_of_qp(const struct hca_wire_view *v, uint32_t qpn, uint32_t sqpn)
{
	return (qpn == 0 && sqpn == 0) || (qpn != 0 && v->dst == qpn) ||
	       (sqpn != 0 && v->src == sqpn);
}

static bool
is_of_wire(const struct hca_wire_view *v, uint8_t wire)
{
	return wire == HCA_WIRE_NONE || v->wire == wire;
}

static bool
rule_matches(const struct hca_fault_rule *r, const struct rte_mbuf *m,
	     const struct hca_wire_view *v)
{
	bool any_qp = r->qpn == 0 && r->sqpn == 0 && r->wire == HCA_WIRE_NONE;

	if (v == NULL)
		return r->opcode == HCA_FAULT_ANY && r->psn == HCA_FAULT_ANY && any_qp &&
		       !r->by_name;
	return is_of_wire(v, r->wire) && (r->opcode == HCA_FAULT_ANY || r->opcode == v->opcode) &&
	       (r->psn == HCA_FAULT_ANY || r->psn == v->psn) && is_of_qp(v, r->qpn, r->sqpn) &&
	       (!r->by_name || hca_opcode_set_has(&r->of, rte_pktmbuf_mtod(m, const uint8_t *), v));
}

static bool
fate_by_rule(struct port_impair *p, struct rte_mbuf *m, struct fate *f)
{
	struct hca_wire_view v;
	bool parsed = read_frame(m, &v);

	for (unsigned int i = 0; i < rules_of(p); i++) {
		struct rule *r = &p->rules[i];

		if (!rule_matches(&r->r, m, parsed ? &v : NULL))
			continue;
		hca_port_count(&r->seen, 1);
		if (r->seen < r->r.nth || (r->r.count != 0 && r->hits >= r->r.count))
			continue;
		hca_port_count(&r->hits, 1);
		f->fault = r->r.fault;
		f->arg = r->r.arg;
		f->by_rule = true;
		f->rule = (uint8_t)(i + 1);
		return true;
	}
	return false;
}

/* Are the odds for one QP, wire or opcode that is not the frame's? */
static bool
is_spared(const struct port_impair *p, const struct rte_mbuf *m)
{
	const struct odds *o = odds_of(p);
	struct hca_wire_view v;

	if (likely(o->qpn == 0 && o->sqpn == 0 && o->wire == HCA_WIRE_NONE && !o->by_name))
		return false;
	return !read_frame(m, &v) || !is_of_wire(&v, o->wire) || !is_of_qp(&v, o->qpn, o->sqpn) ||
	       (o->by_name &&
		!hca_opcode_set_has(&o->of, rte_pktmbuf_mtod(m, const uint8_t *), &v));
}

/*
 * Draws depend only on the seed, the number of settings and the number of the frame: not on the
 * fate of other frames, nor on the number of times that this one was refused.
 */
static void
begin_draws(struct port_impair *p)
{
	p->rng.s = p->seed + p->settings * SETTING_STEP + p->judged * FRAME_STEP;
}

static struct fate
fate_of(struct port_impair *p, struct rte_mbuf *m)
{
	const struct odds *o = odds_of(p);
	struct fate f = {.fault = FATE_PASS, .spared = is_spared(p, m)};

	if (rules_of(p) != 0 && fate_by_rule(p, m, &f))
		return f;
	if (!o->any || f.spared)
		return f;
	f.ecn = chance(p, o->ecn);
	if (chance(p, o->drop))
		f.fault = HCA_FAULT_DROP;
	else if (chance(p, o->corrupt))
		f.fault = random_corruption(p);
	else if (chance(p, o->truncate))
		f.fault = HCA_FAULT_TRUNCATE;
	else if (chance(p, o->dup))
		f.fault = HCA_FAULT_DUP;
	else if (chance(p, o->reorder))
		f.fault = HCA_FAULT_REORDER;
	return f;
}

/* Offset and length of the range that a corruption of this kind may change. */
static uint32_t
corruptible(const struct rte_mbuf *m, unsigned int fault, uint32_t *from)
{
	struct hca_wire_view v;
	uint32_t len = m->data_len;

	*from = 2 * 6;
	if (!read_frame(m, &v) || fault == HCA_FAULT_CORRUPT_RANDOM)
		return len > *from ? len - *from : 0;
	if (fault == HCA_FAULT_CORRUPT_ICRC) {
		*from = v.icrc;
		return HCA_ICRC_LEN;
	}
	if (fault == HCA_FAULT_CORRUPT_PAYLOAD && v.icrc > v.payload) {
		*from = v.payload;
		return v.icrc - v.payload;
	}
	*from = v.transport;
	return v.payload - v.transport;
}

static void
corrupt(struct port_impair *p, struct rte_mbuf *m, unsigned int fault)
{
	uint32_t from, n = corruptible(m, fault, &from);
	uint8_t *byte;

	if (n == 0)
		return;
	byte = rte_pktmbuf_mtod_offset(m, uint8_t *, from + hca_port_random_below(&p->rng, n));
	*byte ^= (uint8_t)(1 + hca_port_random_below(&p->rng, 255));
	hca_port_count(&p->stats.corrupted, 1);
}

static void
cut(struct port_impair *p, struct rte_mbuf *m, uint64_t to)
{
	if (m->data_len < 2)
		return;
	if (to == 0 || to >= m->data_len)
		to = 1 + hca_port_random_below(&p->rng, m->data_len - 1u);
	rte_pktmbuf_trim(m, (uint16_t)(m->data_len - to));
	hca_port_count(&p->stats.truncated, 1);
}

static void
mark_ecn(struct port_impair *p, struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	uint32_t l3 = hca_port_l3(frame, m->data_len);

	if (l3 == 0)
		return;
	hca_port_mark_ce(frame + l3);
	hca_port_count(&p->stats.ecn_marked, 1);
}

/* Was the frame's content changed? Then it should not go back to the sender as refused. */
static bool
is_damaged(const struct fate *f)
{
	return f->ecn || f->fault == HCA_FAULT_ECN || f->fault == HCA_FAULT_TRUNCATE ||
	       (f->fault >= HCA_FAULT_CORRUPT_PAYLOAD && f->fault <= HCA_FAULT_CORRUPT_RANDOM);
}

/* Apply a fault to the frame's contents. */
static void
damage(struct port_impair *p, struct rte_mbuf *m, const struct fate *f)
{
	if (f->ecn || f->fault == HCA_FAULT_ECN)
		mark_ecn(p, m);
	if (f->fault >= HCA_FAULT_CORRUPT_PAYLOAD && f->fault <= HCA_FAULT_CORRUPT_RANDOM)
		corrupt(p, m, f->fault);
	else if (f->fault == HCA_FAULT_TRUNCATE)
		cut(p, m, f->arg);
}

/* Time for which a frame is held, ns; 0: it is sent at once. */
static uint64_t
wait_of(struct port_impair *p, const struct fate *f)
{
	const struct odds *o = odds_of(p);
	uint64_t reorder = o->reorder_ns ? o->reorder_ns : REORDER_NS;
	uint64_t wait = f->spared ? 0 : o->delay_ns;

	if (o->jitter_ns != 0 && !f->spared)
		wait += hca_port_random_below(&p->rng,
					      (uint32_t)RTE_MIN(o->jitter_ns + 1, UINT32_MAX));
	if (f->fault == HCA_FAULT_DELAY)
		wait += f->arg;
	if (f->fault == HCA_FAULT_REORDER)
		wait += f->by_rule
				? reorder
				: 1 + hca_port_random_below(&p->rng,
							    (uint32_t)RTE_MIN(reorder, UINT32_MAX));
	return wait;
}

/* Lists the fault of a frame, before damage() changes the frame. */
static void
tell(struct port_impair *p, const struct rte_mbuf *m, const struct fate *f, uint64_t now)
{
	struct hca_fired d = {.at = now, .frame = p->stats.frames + 1, .rule = f->rule};

	d.fault = (uint8_t)(f->fault != FATE_PASS ? f->fault : HCA_FAULT_ECN);
	hca_fired_describe(&d, m);
	if (p->watch != NULL)
		p->watch(p->watch_arg, m, &d);
	hca_fired_enter(&p->fired, &d);
}

/* Called once for each frame, even if it is refused and offered again. */
static void
decide(struct port_impair *p, struct rte_mbuf *m, uint64_t now)
{
	struct fate *f = &p->fate;

	begin_draws(p);
	*f = fate_of(p, m);
	if (f->fault != FATE_PASS || f->ecn)
		tell(p, m, f, now);
	if (f->fault == HCA_FAULT_DROP)
		return;
	damage(p, m, f);
	f->wait = wait_of(p, f);
}

static void
count_held(struct port_impair *p, const struct fate *f)
{
	hca_port_count(&p->stats.reordered, f->fault == HCA_FAULT_REORDER);
	hca_port_count(&p->stats.delayed, f->fault != HCA_FAULT_REORDER);
}

static bool
hold_until(struct port_impair *p, struct rte_mbuf *m, const struct fate *f, uint64_t due)
{
	bool swap = f->fault == HCA_FAULT_REORDER && f->by_rule;

	if (!hold_copy(p, m, due, swap ? p->stats.frames + 2 : UINT64_MAX))
		return false;
	count_held(p, f);
	if (f->fault == HCA_FAULT_DUP && hold_copy(p, m, due, UINT64_MAX))
		hca_port_count(&p->stats.duplicated, 1);
	return true;
}

/* Applies the fate to the frame. False: not accepted, the caller keeps the frame. */
static bool
apply(struct port_impair *p, struct rte_mbuf *m, struct fate *f, uint64_t now)
{
	if (f->fault == HCA_FAULT_DROP) {
		hca_port_count(&p->stats.dropped, 1);
		rte_pktmbuf_free(m);
		return true;
	}
	if (f->wait != 0 && hold_until(p, m, f, now + f->wait)) {
		rte_pktmbuf_free(m);
		return true;
	}
	if (f->wait != 0 && f->fault != HCA_FAULT_REORDER) {
		hca_port_count(&p->stats.stalled, 1);
		return false;
	}
	if (f->fault == HCA_FAULT_DUP && hold_copy(p, m, now, UINT64_MAX)) {
		hca_port_count(&p->stats.duplicated, 1);
		f->fault = FATE_PASS; /* if the inner port refuses the frame, it passes later */
	}
	if (offer(p, m, now))
		return true;
	if (!is_damaged(f) || !hold_copy(p, m, now, UINT64_MAX))
		return false;
	rte_pktmbuf_free(m);
	return true;
}

static bool
send_one(struct port_impair *p, struct rte_mbuf *m, uint64_t now)
{
	if (likely(p->refused != m))
		decide(p, m, now);
	p->refused = apply(p, m, &p->fate, now) ? NULL : m;
	if (p->refused != NULL)
		return false;
	p->judged += !p->fate.spared;
	return true;
}

/* Takes new odds. A refused frame, whose fate the old ones decided, is not held or counted. */
static void
take_over(struct port_impair *p)
{
	uint32_t got;

	if (likely((__atomic_load_n(&p->between, __ATOMIC_RELAXED) & FRESH) == 0))
		return;
	got = __atomic_exchange_n(&p->between, p->now_odds, __ATOMIC_ACQ_REL);
	p->now_odds = got & ~FRESH;
	p->judged = 0;
	p->settings++;
	p->fate.wait = 0;
	p->fate.spared = true;
}

static bool
is_clean(const struct port_impair *p)
{
	return !odds_of(p)->any && rules_of(p) == 0 && p->num_held == 0 && p->refused == NULL;
}

bool
hca_port_impair_clean(struct hca_port *port)
{
	struct port_impair *p = impair(port);

	take_over(p);
	return is_clean(p);
}

void
hca_port_impair_count(struct hca_port *port, uint16_t n)
{
	hca_port_count(&impair(port)->stats.frames, n);
}

uint32_t
hca_port_impair_forget(struct hca_port *port)
{
	struct port_impair *p = impair(port);
	uint32_t n = p->num_held;

	for (uint32_t i = 0; i < n; i++)
		rte_pktmbuf_free(p->heap[i].m);
	p->refused = NULL;
	set_held(p, 0);
	set_due(p);
	return n;
}

static uint16_t
impair_tx(struct hca_port *port, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct port_impair *p = impair(port);
	uint16_t done = 0;

	take_over(p);
	if (is_clean(p)) {
		done = p->wrap.inner->ops->tx(p->wrap.inner, q, m, n, now);
		hca_port_count(&p->stats.frames, done);
		return done;
	}
	let_go(p, now);
	while (done < n && send_one(p, m[done], now)) {
		hca_port_count(&p->stats.frames, 1);
		done++;
		if (rules_of(p) != 0)
			let_go_after(p, now);
	}
	let_go(p, now);
	return done;
}

static void
impair_poll(struct hca_port *port, uint16_t q, uint64_t now)
{
	struct port_impair *p = impair(port);

	take_over(p);
	if (p->num_held != 0)
		let_go(p, now);
	hca_port_poll(p->wrap.inner, q, now);
}

static uint64_t
impair_deadline(const struct hca_port *port, uint16_t q, uint64_t now)
{
	const struct port_impair *p = (const struct port_impair *)port;
	uint64_t due = __atomic_load_n(&p->next_due, __ATOMIC_RELAXED);

	/* due but still held: the inner port accepts no more */
	if (due <= now)
		due = now + LATER_NS;
	return hca_port_earlier(due, hca_port_deadline(p->wrap.inner, q, now));
}

static void
impair_close(struct hca_port *port)
{
	struct port_impair *p = impair(port);

	hca_port_impair_forget(port);
	p->wrap.inner->ops->close(p->wrap.inner);
	hca_fired_fini(&p->fired);
	rte_mempool_free(p->pool);
	rte_free(p);
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

int
hca_port_impair_open(const struct hca_port_impair_config *cfg, struct hca_port *inner,
		     struct hca_port **out)
{
	uint32_t hold = cfg->hold ? cfg->hold : HOLD_DEFAULT;
	char name[RTE_MEMPOOL_NAMESIZE];
	struct port_impair *p;

	p = rte_zmalloc_socket("hca_impair", sizeof(*p) + hold * sizeof(p->heap[0]),
			       RTE_CACHE_LINE_SIZE, cfg->socket_id);
	if (p == NULL)
		return -ENOMEM;
	hca_port_wrap_init(&p->wrap, &impair_ops, inner);
	p->wrap.port.queue_size = inner->queue_size + hold;
	p->seed = cfg->seed;
	p->hold = hold;
	p->next_due = UINT64_MAX;
	p->next_odds = 1;
	p->between = 2;
	/* copies that were sent belong to the receiver until it frees them */
	snprintf(name, sizeof(name), "%.20s.hold", cfg->name);
	p->pool = hca_mbuf_pool(name, 2 * hold, 0, HCA_MBUF_DATA, cfg->socket_id);
	if (p->pool == NULL) {
		rte_free(p);
		return -ENOMEM;
	}
	hca_fired_init(&p->fired);
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

void
hca_port_impair_set(struct hca_port *port, const struct hca_impair *in)
{
	static const struct hca_impair none;
	struct port_impair *p = impair(port);
	struct odds o;

	if (in == NULL)
		in = &none;
	o = (struct odds){
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
	p->odds[p->next_odds] = o;
	p->next_odds =
		__atomic_exchange_n(&p->between, p->next_odds | FRESH, __ATOMIC_ACQ_REL) & ~FRESH;
}

int
hca_port_impair_rule(struct hca_port *port, const struct hca_fault_rule *rule)
{
	struct port_impair *p = impair(port);

	if (p->num_rules == HCA_FAULT_RULES)
		return -ENOSPC;
	p->rules[p->num_rules] = (struct rule){.r = *rule};
	__atomic_store_n(&p->num_rules, p->num_rules + 1, __ATOMIC_RELEASE);
	return 0;
}

unsigned int
hca_port_impair_rules(const struct hca_port *port)
{
	return rules_of((const struct port_impair *)port);
}

void
hca_port_impair_clear_rules(struct hca_port *port)
{
	__atomic_store_n(&impair(port)->num_rules, 0, __ATOMIC_RELEASE);
}

uint64_t
hca_port_impair_hits(const struct hca_port *port, unsigned int rule)
{
	const struct port_impair *p = (const struct port_impair *)port;

	return rule < rules_of(p) ? __atomic_load_n(&p->rules[rule].hits, __ATOMIC_RELAXED) : 0;
}

uint64_t
hca_port_impair_seen(const struct hca_port *port, unsigned int rule)
{
	const struct port_impair *p = (const struct port_impair *)port;

	return rule < rules_of(p) ? __atomic_load_n(&p->rules[rule].seen, __ATOMIC_RELAXED) : 0;
}

unsigned int
hca_port_impair_fired(struct hca_port *port, struct hca_fired out[HCA_FIRED_MAX])
{
	return hca_fired_read(&impair(port)->fired, out);
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
	hca_port_counted(out, &((const struct port_impair *)port)->stats, sizeof(*out));
}

uint32_t
hca_port_impair_held(const struct hca_port *port)
{
	return __atomic_load_n(&((const struct port_impair *)port)->num_held, __ATOMIC_RELAXED);
}

uint32_t
hca_port_impair_mbufs(const struct hca_port *port)
{
	return rte_mempool_in_use_count(((const struct port_impair *)port)->pool);
}
