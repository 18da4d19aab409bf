/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>

#include <rte_malloc.h>

#include "port/port_stall.h"
#include "port/port_wrap.h"

/* odd, and far from the steps of the generator */
#define QUEUE_STEP UINT64_C(0x8ebc6af09c88c6e3)
#define FRESH 4u  /* flag in stall_lane.between: the transmitter has not taken these rules yet */
#define STARTS 4u /* a power of two */

/* Rules with the number of their setting. */
struct setting {
	struct hca_port_stall_rules r;
	uint32_t number;
};

/* The state of one queue. */
struct stall_lane {
	struct hca_port_rng rng;
	struct hca_port_stall_stats stats; /* link_downs is of the port */
	/*
	 * Triple buffer as in impair_lane.h: one for the transmitter, one for the writer, one in
	 * exchange
	 */
	struct setting rules[3];
	uint32_t now_rules;  /* index of the transmitter's rules */
	uint32_t next_rules; /* index of the writer's rules */
	uint32_t between;    /* [pub] index of the third rules, and FRESH */
	bool down;	     /* the rules took the link down, at the last tx or poll */
	bool idle;	     /* the transmitter's rules do nothing, as of the last poll */
	uint64_t change;     /* [pub] time at which the rules change the link; UINT64_MAX: never */
} __rte_cache_aligned;

struct port_stall {
	struct hca_port_wrap wrap;
	uint32_t *deaf;	    /* hca_port_stall_config; NULL: unused */
	uint32_t number;    /* of the last setting; the writer's */
	uint32_t unplugged; /* [pub] */
	uint32_t ruled;	    /* [pub] the rules took the link down */
	uint32_t both_ways; /* [pub] hca_port_stall_rules */
	uint32_t down;	    /* [pub] the link is down, as last counted */
	uint64_t link_downs;
	/*
	 * [pub] Time of the first frame of any queue, or of the setting, by number of the setting
	 * modulo STARTS; 0: none yet
	 */
	uint64_t first[STARTS];
	struct stall_lane lane[];
};

static struct port_stall *
stall(struct hca_port *p)
{
	return (struct port_stall *)p;
}

static const struct setting *
rules_of(const struct stall_lane *l)
{
	return &l->rules[l->now_rules];
}

static uint64_t *
first_of(struct port_stall *s, const struct stall_lane *l)
{
	return &s->first[rules_of(l)->number % STARTS];
}

/* Sets the start of the rules, unless another queue has done so. */
static void
begin(struct port_stall *s, const struct stall_lane *l, uint64_t now)
{
	uint64_t none = 0;

	__atomic_compare_exchange_n(first_of(s, l), &none, RTE_MAX(now, UINT64_C(1)), false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Tells the receiving port; of two threads that do so at once, the last one has the state. */
static void
set_deaf(struct port_stall *s)
{
	uint32_t down;

	do {
		down = __atomic_load_n(&s->down, __ATOMIC_SEQ_CST);
		__atomic_store_n(s->deaf,
				 down != 0 && __atomic_load_n(&s->both_ways, __ATOMIC_RELAXED) != 0,
				 __ATOMIC_SEQ_CST);
	} while (__atomic_load_n(&s->down, __ATOMIC_SEQ_CST) != down);
}

/* Any thread. Counts a change of the link. */
static bool
link_is_up(struct port_stall *s)
{
	uint32_t down = __atomic_load_n(&s->unplugged, __ATOMIC_RELAXED) != 0 ||
			__atomic_load_n(&s->ruled, __ATOMIC_RELAXED) != 0;

	if (likely(__atomic_load_n(&s->down, __ATOMIC_RELAXED) == down) ||
	    __atomic_exchange_n(&s->down, down, __ATOMIC_SEQ_CST) == down)
		return down == 0;
	if (down != 0)
		__atomic_fetch_add(&s->link_downs, 1, __ATOMIC_RELAXED);
	if (s->deaf != NULL)
		set_deaf(s);
	return down == 0;
}

/* Applies the rules to the link. */
static void
rule_link(struct port_stall *s, struct stall_lane *l, uint64_t now)
{
	const struct hca_port_stall_rules *r = &rules_of(l)->r;
	uint64_t first = __atomic_load_n(first_of(s, l), __ATOMIC_RELAXED), t = now - first;
	bool down = r->down_for != 0 && first != 0 && t >= r->down_after &&
		    t - r->down_after < r->down_for;

	if (unlikely(l->down != down)) {
		l->down = down;
		__atomic_store_n(&s->ruled, down, __ATOMIC_RELAXED);
	}
}

static void
take_over(struct port_stall *s, struct stall_lane *l, uint64_t now)
{
	if (likely((__atomic_load_n(&l->between, __ATOMIC_RELAXED) & FRESH) == 0))
		return;
	l->now_rules = __atomic_exchange_n(&l->between, l->now_rules, __ATOMIC_ACQ_REL) & ~FRESH;
	l->idle = false;
	__atomic_store_n(&s->both_ways, rules_of(l)->r.both_ways, __ATOMIC_RELAXED);
	if (rules_of(l)->r.at_once)
		begin(s, l, now);
}

static void
set_change(struct port_stall *s, struct stall_lane *l, uint64_t now)
{
	const struct hca_port_stall_rules *r = &rules_of(l)->r;
	uint64_t first = __atomic_load_n(first_of(s, l), __ATOMIC_RELAXED), at = UINT64_MAX;

	if (r->down_for != 0 && first != 0) {
		at = first + r->down_after;
		if (now >= at)
			at += r->down_for;
		if (now >= at)
			at = UINT64_MAX;
	}
	__atomic_store_n(&l->change, at, __ATOMIC_RELAXED);
}

static bool
in_stall(struct port_stall *s, const struct stall_lane *l, uint64_t now)
{
	const struct hca_port_stall_rules *r = &rules_of(l)->r;
	uint64_t first = __atomic_load_n(first_of(s, l), __ATOMIC_RELAXED);

	if (r->stall_every == 0 || r->stall_for == 0 || first == 0 || now < first)
		return false;
	return (now - first) % r->stall_every >= r->stall_every - r->stall_for;
}

static bool
do_nothing(const struct hca_port_stall_rules *r)
{
	return r->tx_burst_max == 0 && r->down_for == 0 &&
	       (r->stall_every == 0 || r->stall_for == 0);
}

/* No rules that do anything, and the link is up: frames pass. */
static inline bool
is_idle(const struct port_stall *s, const struct stall_lane *l)
{
	return l->idle && !l->down &&
	       (__atomic_load_n(&l->between, __ATOMIC_RELAXED) & FRESH) == 0 &&
	       (__atomic_load_n(&s->unplugged, __ATOMIC_RELAXED) |
		__atomic_load_n(&s->ruled, __ATOMIC_RELAXED) |
		__atomic_load_n(&s->down, __ATOMIC_RELAXED)) == 0;
}

static inline void
count_tx(struct stall_lane *l, uint16_t n, uint16_t took)
{
	hca_port_count(&l->stats.offered, n);
	hca_port_count(&l->stats.taken, took);
	if (likely(took == n))
		return;
	hca_port_count(&l->stats.short_bursts, 1);
	hca_port_count(&l->stats.empty_bursts, took == 0);
}

static __rte_noinline uint16_t
tx_by_rules(struct port_stall *s, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct stall_lane *l = &s->lane[q];
	uint16_t take = n, took = 0;
	uint32_t max;

	take_over(s, l, now);
	if (n != 0 && __atomic_load_n(first_of(s, l), __ATOMIC_RELAXED) == 0)
		begin(s, l, now);
	rule_link(s, l, now);
	if (!link_is_up(s) || in_stall(s, l, now))
		take = 0;
	max = rules_of(l)->r.tx_burst_max;
	if (take != 0 && max != 0)
		take = RTE_MIN(take, hca_port_random_below(&l->rng, max + 1));
	if (take != 0)
		took = s->wrap.inner->ops->tx(s->wrap.inner, q, m, take, now);
	count_tx(l, n, took);
	return took;
}

static uint16_t
stall_tx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct port_stall *s = stall(p);
	uint16_t took;

	if (unlikely(!is_idle(s, &s->lane[q])))
		return tx_by_rules(s, q, m, n, now);
	took = s->wrap.inner->ops->tx(s->wrap.inner, q, m, n, now);
	count_tx(&s->lane[q], n, took);
	return took;
}

static bool
stall_link_up(struct hca_port *p)
{
	struct port_stall *s = stall(p);

	return link_is_up(s) && s->wrap.inner->ops->link_up(s->wrap.inner);
}

static void
stall_poll(struct hca_port *p, uint16_t q, uint64_t now)
{
	struct port_stall *s = stall(p);
	struct stall_lane *l = &s->lane[q];

	if (unlikely(!is_idle(s, l))) {
		take_over(s, l, now);
		rule_link(s, l, now);
		set_change(s, l, now);
		l->idle = do_nothing(&rules_of(l)->r);
	}
	hca_port_poll(s->wrap.inner, q, now);
}

/*
 * No event announces that the rules change the link, so encap polls at that time. Stages with
 * frames that the port did not accept poll for room anyway.
 */
static uint64_t
stall_deadline(const struct hca_port *p, uint16_t q, uint64_t now)
{
	const struct port_stall *s = (const struct port_stall *)p;
	uint64_t change = __atomic_load_n(&s->lane[q].change, __ATOMIC_RELAXED);

	if (change <= now)
		change = UINT64_MAX;
	return hca_port_earlier(change, hca_port_deadline(s->wrap.inner, q, now));
}

static void
stall_close(struct hca_port *p)
{
	struct port_stall *s = stall(p);

	s->wrap.inner->ops->close(s->wrap.inner);
	rte_free(s);
}

static const struct hca_port_ops stall_ops = {
	.rx = hca_port_wrap_rx,
	.tx = stall_tx,
	.link_up = stall_link_up,
	.poll = stall_poll,
	.missed = hca_port_wrap_missed,
	.wait_fd = hca_port_wrap_wait_fd,
	.arm = hca_port_wrap_arm,
	.deadline = stall_deadline,
	.close = stall_close,
};

int
hca_port_stall_open(const struct hca_port_stall_config *cfg, struct hca_port *inner,
		    struct hca_port **out)
{
	uint16_t queues = hca_port_queues(inner);
	struct port_stall *s;

	s = rte_zmalloc_socket("hca_stall", sizeof(*s) + queues * sizeof(s->lane[0]),
			       RTE_CACHE_LINE_SIZE, cfg->socket_id);
	if (s == NULL)
		return -ENOMEM;
	hca_port_wrap_init(&s->wrap, &stall_ops, inner);
	s->deaf = cfg->deaf;
	for (uint16_t q = 0; q < queues; q++) {
		s->lane[q].rng.s = cfg->seed + q * QUEUE_STEP;
		s->lane[q].change = UINT64_MAX;
		s->lane[q].next_rules = 1;
		s->lane[q].between = 2;
	}
	*out = &s->wrap.port;
	return 0;
}

void
hca_port_stall_set(struct hca_port *p, const struct hca_port_stall_rules *rules)
{
	struct port_stall *s = stall(p);
	const struct setting next = {.r = *rules, .number = s->number + 1};

	s->number = next.number;
	__atomic_store_n(&s->first[next.number % STARTS], 0, __ATOMIC_RELAXED);
	for (uint16_t q = 0; q < s->wrap.port.queues; q++) {
		struct stall_lane *l = &s->lane[q];

		l->rules[l->next_rules] = next;
		l->next_rules =
			__atomic_exchange_n(&l->between, l->next_rules | FRESH, __ATOMIC_ACQ_REL) &
			~FRESH;
	}
}

void
hca_port_stall_link(struct hca_port *p, bool up)
{
	__atomic_store_n(&stall(p)->unplugged, !up, __ATOMIC_RELAXED);
}

void
hca_port_stall_stats(const struct hca_port *p, struct hca_port_stall_stats *out)
{
	const struct port_stall *s = (const struct port_stall *)p;

	*out = (struct hca_port_stall_stats){
		.link_downs = __atomic_load_n(&s->link_downs, __ATOMIC_RELAXED)};
	for (uint16_t q = 0; q < s->wrap.port.queues; q++)
		hca_port_add_counted(out, &s->lane[q].stats, sizeof(*out));
}
