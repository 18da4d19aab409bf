/* SPDX-License-Identifier: BSD-3-Clause */

#include "cc/cc.h"
#include "cc/swift.h"

static void
set_window(struct hca_swift *s, const struct hca_swift_params *p, uint64_t window)
{
	window = RTE_MAX(RTE_MIN(window, p->max), p->min);
	__atomic_store_n(&s->window, (uint32_t)window, __ATOMIC_RELAXED);
}

void
hca_swift_begin(struct hca_swift *s)
{
	*s = (struct hca_swift){.window = HCA_SWIFT_ONE};
}

/* The integer part of a square root, which is below 2^ROOT_BITS. */
#define ROOT_BITS 14u

static uint32_t
root_of(uint32_t x)
{
	uint32_t root = 0;

	for (uint32_t bit = 1u << (ROOT_BITS - 1); bit != 0; bit >>= 1)
		if ((root + bit) * (root + bit) <= x)
			root += bit;
	return root;
}

/* 1 / sqrt(packets), 1 / HCA_SWIFT_ONE. The window is at most HCA_SWIFT_FS_MAX. */
static uint32_t
inverse_root(uint32_t window)
{
	return HCA_SWIFT_ONE * HCA_SWIFT_ONE / root_of(window * HCA_SWIFT_ONE);
}

/* The window that the same rate would have on a short path: the scaling is one of rates. */
static uint32_t
short_window(const struct hca_swift_params *p, uint32_t window, uint64_t rtt)
{
	uint64_t w = rtt > p->base_ns ? (uint64_t)window * p->base_ns / rtt : window;

	return (uint32_t)RTE_MAX(RTE_MIN(w, HCA_SWIFT_FS_MAX), HCA_SWIFT_FS_MIN);
}

uint32_t
hca_swift_target(const struct hca_swift_params *p, uint32_t window, uint64_t rtt, uint64_t min_rtt)
{
	uint32_t at = inverse_root(short_window(p, window, rtt));
	uint64_t base = HCA_SWIFT_IS_LONG(p, min_rtt) ? min_rtt + HCA_SWIFT_QUEUE(p) : p->base_ns;
	uint64_t target = base + (uint64_t)p->fs_range_ns * (at - HCA_SWIFT_FS_TO) /
					 (HCA_SWIFT_FS_FROM - HCA_SWIFT_FS_TO);

	return (uint32_t)RTE_MIN(target, UINT32_MAX);
}

/* A READ is sent as a whole: a window of a few READs is kept by their pace. */
static bool
is_paced(const struct hca_swift *s, uint32_t window)
{
	return s->burst > 1 && window >= s->burst * HCA_SWIFT_ONE &&
	       window < s->burst * HCA_SWIFT_READS * HCA_SWIFT_ONE;
}

uint32_t
hca_swift_may_send(struct hca_swift *s, uint32_t unanswered, uint64_t now, uint64_t *again)
{
	uint32_t window = __atomic_load_n(&s->window, __ATOMIC_RELAXED);
	bool paced = is_paced(s, window);

	window = RTE_MAX(window / HCA_SWIFT_ONE, 1u);
	s->unanswered = unanswered;
	if (unanswered >= window + (paced ? s->burst - 1 : 0)) {
		__atomic_store_n(&s->limited, true, __ATOMIC_RELAXED);
		return 0;
	}
	if (now < s->next_at) {
		*again = s->next_at;
		return 0;
	}
	return (paced ? s->burst : window - unanswered) * HCA_CC_FRAME;
}

/*
 * A factor of 0.5 to 1.5 (1 / HCA_SWIFT_ONE) of each pause. READs of many flows with equal pauses
 * would meet in the same order again and again, and the first ones would see no queue.
 */
static uint32_t
jitter(struct hca_swift *s, uint64_t now)
{
	s->random = s->random * 1103515245u + 12345u + (uint32_t)now;
	return HCA_SWIFT_ONE / 2 + (s->random >> 16) % HCA_SWIFT_ONE;
}

void
hca_swift_sent(struct hca_swift *s, uint64_t packets, uint32_t burst, uint64_t now)
{
	uint32_t window = __atomic_load_n(&s->window, __ATOMIC_RELAXED);
	uint64_t rtt = RTE_MIN(__atomic_load_n(&s->rtt, __ATOMIC_RELAXED), UINT32_MAX);
	uint64_t pause, open = packets + (uint64_t)s->unanswered * HCA_SWIFT_ONE;

	__atomic_store_n(&s->burst, RTE_MIN(burst, HCA_SWIFT_BURST_MAX), __ATOMIC_RELAXED);
	__atomic_store_n(&s->limited, 2 * open >= window, __ATOMIC_RELAXED);
	packets = RTE_MIN(packets, HCA_SWIFT_ONE * HCA_SWIFT_ONE);
	if (packets > window || is_paced(s, window)) {
		pause = packets * rtt / window * jitter(s, now) / HCA_SWIFT_ONE;
		/* a round trip of seconds is a peer without a CPU, not the network */
		s->next_at = now + RTE_MIN(pause, HCA_SWIFT_PAUSE_MAX_NS);
	}
}

/* Whether the last decrease has had its effect. */
static bool
may_decrease(const struct hca_swift *s, uint64_t now)
{
	return s->decreased_at == 0 || now - s->decreased_at >= s->rtt;
}

static void
decrease(struct hca_swift *s, const struct hca_swift_params *p, uint64_t factor, uint64_t now)
{
	s->met = true;
	if (!may_decrease(s, now))
		return;
	set_window(s, p,
		   (uint64_t)s->window * (HCA_SWIFT_ONE - RTE_MIN(factor, p->max_mdf)) /
			   HCA_SWIFT_ONE);
	s->decreased_at = now;
}

void
hca_swift_timed(struct hca_swift *s, const struct hca_swift_params *p, uint64_t ns, uint64_t now)
{
	ns = RTE_MAX(ns, 1u);
	__atomic_store_n(&s->rtt, ns, __ATOMIC_RELAXED);
	s->samples += s->samples < HCA_SWIFT_LEARN;
	s->min_rtt = s->min_rtt == 0 ? ns : RTE_MIN(s->min_rtt, ns);
	__atomic_store_n(&s->target,
			 hca_swift_target(p, s->window, ns,
					  s->samples == HCA_SWIFT_LEARN ? s->min_rtt : 0),
			 __ATOMIC_RELAXED);
	if (ns > s->target)
		decrease(s, p, (uint64_t)p->beta * (ns - s->target) / ns, now);
}

void
hca_swift_acked(struct hca_swift *s, const struct hca_swift_params *p, uint32_t psns)
{
	uint32_t burst = RTE_MAX(__atomic_load_n(&s->burst, __ATOMIC_RELAXED), 1u);
	uint64_t more;

	if (s->rtt == 0 || s->rtt > s->target || !__atomic_load_n(&s->limited, __ATOMIC_RELAXED))
		return;
	if (!s->met) {
		set_window(s, p, s->window + (uint64_t)psns * HCA_SWIFT_ONE / 2);
		return;
	}
	more = (uint64_t)psns * p->ai / burst * HCA_SWIFT_ONE * HCA_SWIFT_ONE /
		       RTE_MAX(s->window, HCA_SWIFT_ONE) +
	       s->rest;
	s->rest = (uint32_t)(more % HCA_SWIFT_ONE);
	set_window(s, p, s->window + more / HCA_SWIFT_ONE);
}

void
hca_swift_lost(struct hca_swift *s, const struct hca_swift_params *p, uint64_t now)
{
	decrease(s, p, p->max_mdf, now);
}
