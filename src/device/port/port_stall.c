/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>

#include <rte_malloc.h>

#include "port/port_stall.h"
#include "port/port_wrap.h"

#define FRESH 4u /* flag in port_stall.between: the transmitter has not taken these rules yet */

struct port_stall {
	struct hca_port_wrap wrap;
	struct hca_port_rng rng;
	struct hca_port_stall_stats stats;
	/*
	 * Triple buffer as in port_impair.c: one for the transmitter, one for the writer, one in
	 * exchange
	 */
	struct hca_port_stall_rules rules[3];
	uint32_t now_rules;  /* index of the transmitter's rules */
	uint32_t next_rules; /* index of the writer's rules */
	uint32_t between;    /* [pub] index of the third rules, and FRESH */
	uint32_t unplugged;  /* [pub] */
	uint64_t now;	     /* time of the last tx or poll */
	uint64_t first;	     /* time of the first frame, or of the setting; 0: none yet */
	uint64_t change;     /* [pub] time at which the rules change the link; UINT64_MAX: never */
	bool was_up;
	uint32_t *deaf; /* hca_port_stall_config; NULL: unused */
};

static struct port_stall *
stall(struct hca_port *p)
{
	return (struct port_stall *)p;
}

static const struct hca_port_stall_rules *
rules_of(const struct port_stall *s)
{
	return &s->rules[s->now_rules];
}

static void
set_time(struct port_stall *s, uint64_t now)
{
	s->now = now;
	if (likely((__atomic_load_n(&s->between, __ATOMIC_RELAXED) & FRESH) == 0))
		return;
	s->now_rules = __atomic_exchange_n(&s->between, s->now_rules, __ATOMIC_ACQ_REL) & ~FRESH;
	s->first = rules_of(s)->at_once ? RTE_MAX(now, UINT64_C(1)) : 0;
}

static bool
link_is_up(struct port_stall *s)
{
	const struct hca_port_stall_rules *r = rules_of(s);
	uint64_t t = s->now - s->first;
	bool up = __atomic_load_n(&s->unplugged, __ATOMIC_RELAXED) == 0;

	if (r->down_for != 0 && s->first != 0 && t >= r->down_after &&
	    t - r->down_after < r->down_for)
		up = false;
	if (unlikely(s->was_up != up)) {
		hca_port_count(&s->stats.link_downs, !up);
		if (s->deaf != NULL)
			__atomic_store_n(s->deaf, !up && r->both_ways, __ATOMIC_RELAXED);
		s->was_up = up;
	}
	return up;
}

static void
set_change(struct port_stall *s)
{
	const struct hca_port_stall_rules *r = rules_of(s);
	uint64_t at = UINT64_MAX;

	if (r->down_for != 0 && s->first != 0) {
		at = s->first + r->down_after;
		if (s->now >= at)
			at += r->down_for;
		if (s->now >= at)
			at = UINT64_MAX;
	}
	__atomic_store_n(&s->change, at, __ATOMIC_RELAXED);
}

static bool
in_stall(const struct port_stall *s)
{
	const struct hca_port_stall_rules *r = rules_of(s);

	if (r->stall_every == 0 || r->stall_for == 0 || s->first == 0)
		return false;
	return (s->now - s->first) % r->stall_every >= r->stall_every - r->stall_for;
}

static uint16_t
stall_tx(struct hca_port *p, uint16_t q, struct rte_mbuf **m, uint16_t n, uint64_t now)
{
	struct port_stall *s = stall(p);
	uint16_t take = n, took = 0;

	set_time(s, now);
	if (s->first == 0 && n != 0)
		s->first = now ? now : 1;
	if (!link_is_up(s) || in_stall(s))
		take = 0;
	if (take != 0 && rules_of(s)->tx_burst_max != 0)
		take = RTE_MIN(take, hca_port_random_below(&s->rng, rules_of(s)->tx_burst_max + 1));
	if (take != 0)
		took = s->wrap.inner->ops->tx(s->wrap.inner, q, m, take, now);
	hca_port_count(&s->stats.offered, n);
	hca_port_count(&s->stats.taken, took);
	hca_port_count(&s->stats.short_bursts, took < n);
	hca_port_count(&s->stats.empty_bursts, took == 0 && n != 0);
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

	set_time(s, now);
	set_change(s);
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
	uint64_t change = __atomic_load_n(&s->change, __ATOMIC_RELAXED);

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
	struct port_stall *s;

	s = rte_zmalloc_socket("hca_stall", sizeof(*s), RTE_CACHE_LINE_SIZE, cfg->socket_id);
	if (s == NULL)
		return -ENOMEM;
	hca_port_wrap_init(&s->wrap, &stall_ops, inner);
	s->rng.s = cfg->seed;
	s->was_up = true;
	s->deaf = cfg->deaf;
	s->change = UINT64_MAX;
	s->next_rules = 1;
	s->between = 2;
	*out = &s->wrap.port;
	return 0;
}

void
hca_port_stall_set(struct hca_port *p, const struct hca_port_stall_rules *rules)
{
	struct port_stall *s = stall(p);

	s->rules[s->next_rules] = *rules;
	s->next_rules =
		__atomic_exchange_n(&s->between, s->next_rules | FRESH, __ATOMIC_ACQ_REL) & ~FRESH;
}

void
hca_port_stall_link(struct hca_port *p, bool up)
{
	__atomic_store_n(&stall(p)->unplugged, !up, __ATOMIC_RELAXED);
}

void
hca_port_stall_stats(const struct hca_port *p, struct hca_port_stall_stats *out)
{
	hca_port_counted(out, &((const struct port_stall *)p)->stats, sizeof(*out));
}
