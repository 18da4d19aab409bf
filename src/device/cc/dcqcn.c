/* SPDX-License-Identifier: BSD-3-Clause */

#include "cc/cc.h"
#include "cc/dcqcn.h"

#define SLACK_NS 25000u /* of a late turn: it may catch up */
/* byte_time: of a byte, in 1/256 ps */
#define BYTE_TIME UINT64_C(8000000000 * 256) /* at 1 kb/s */
#define NS (1000u * 256u)
#define BYTE_NS_KBPS UINT64_C(8000000) /* ns of a byte at 1 kb/s */

static void
set_rate(struct hca_dcqcn *s, uint32_t rate)
{
	__atomic_store_n(&s->rate, rate, __ATOMIC_RELAXED);
	s->byte_time = rate != 0 ? (uint32_t)RTE_MIN(BYTE_TIME / rate, UINT32_MAX) : 0;
}

static void
set_alpha(struct hca_dcqcn *s, uint32_t alpha)
{
	__atomic_store_n(&s->alpha, alpha, __ATOMIC_RELAXED);
}

void
hca_dcqcn_begin(struct hca_dcqcn *s)
{
	*s = (struct hca_dcqcn){.alpha = HCA_DCQCN_ONE, .alpha_at = UINT64_MAX};
}

void
hca_dcqcn_notified(struct hca_dcqcn *s)
{
	__atomic_store_n(&s->cnps, s->cnps + 1, __ATOMIC_RELEASE);
}

/* alpha = (1 - g) alpha, for each K without a CNP. */
static void
decrease_alpha(struct hca_dcqcn *s, const struct hca_dcqcn_params *p, uint64_t now)
{
	uint32_t alpha = s->alpha;

	for (; s->alpha_at <= now && alpha >> p->g_log != 0; s->alpha_at += p->alpha_ns)
		alpha -= alpha >> p->g_log;
	if (s->alpha_at <= now)
		s->alpha_at = now + p->alpha_ns;
	set_alpha(s, alpha);
}

/* One of the two has expired: fast recovery, additive or hyper increase. */
static void
raise_rate(struct hca_dcqcn *s, const struct hca_dcqcn_params *p)
{
	uint32_t most = RTE_MAX(s->timers, s->byte_counters);
	uint32_t least = RTE_MIN(s->timers, s->byte_counters);
	uint64_t target = s->target;

	s->raised = true;
	if (least > p->f)
		target += (uint64_t)p->hai * (least - p->f);
	else if (most >= p->f)
		target += p->ai;
	s->target = (uint32_t)RTE_MIN(target, p->line);
	set_rate(s, (uint32_t)(((uint64_t)s->rate + s->target + 1) / 2));
	if (s->rate >= p->line)
		set_rate(s, 0);
}

static void
count_event(uint16_t *n)
{
	*n += *n != UINT16_MAX;
}

static void
bring_up(struct hca_dcqcn *s, const struct hca_dcqcn_params *p, uint64_t now)
{
	if (s->alpha_at <= now)
		decrease_alpha(s, p, now);
	for (; s->rate != 0 && s->timer_at <= now; s->timer_at += p->timer_ns) {
		count_event(&s->timers);
		raise_rate(s, p);
	}
}

static void
cut_rate(struct hca_dcqcn *s, const struct hca_dcqcn_params *p, uint64_t now)
{
	uint32_t rate = s->rate, alpha = s->alpha;

	if (rate == 0) {
		rate = s->target = p->line;
		s->next_at = now;
		s->fraction = 0;
	} else if (s->raised || p->clamp) {
		s->target = rate;
	}
	rate -= (uint32_t)((uint64_t)rate * alpha / (2 * HCA_DCQCN_ONE));
	set_rate(s, RTE_MAX(rate, p->min));
	set_alpha(s, alpha + ((HCA_DCQCN_ONE - alpha) >> p->g_log));
	s->timers = s->byte_counters = 0;
	s->byte_count = 0;
	s->raised = false;
	s->alpha_at = now + p->alpha_ns;
	s->timer_at = now + p->timer_ns;
}

uint32_t
hca_dcqcn_may_send(struct hca_dcqcn *s, const struct hca_dcqcn_params *p, uint64_t now,
		   uint64_t *again)
{
	uint32_t cnps = __atomic_load_n(&s->cnps, __ATOMIC_ACQUIRE);
	uint64_t from, leave;

	if (likely(cnps == s->cnps_seen && s->rate == 0))
		return UINT32_MAX;
	bring_up(s, p, now);
	for (; cnps != s->cnps_seen; s->cnps_seen++)
		cut_rate(s, p, now);
	if (s->rate == 0)
		return UINT32_MAX;
	if (now < s->next_at) {
		*again = s->next_at;
		return 0;
	}
	from = RTE_MAX(s->next_at, now - RTE_MIN(now, SLACK_NS));
	leave = HCA_CC_FRAME + (now - from) * s->rate / BYTE_NS_KBPS;
	*again = from + leave * s->byte_time / NS + 1;
	return (uint32_t)leave;
}

void
hca_dcqcn_sent(struct hca_dcqcn *s, const struct hca_dcqcn_params *p, uint64_t bytes, uint64_t now)
{
	uint64_t from = RTE_MAX(s->next_at, now - RTE_MIN(now, SLACK_NS));
	uint64_t time = bytes * s->byte_time + s->fraction;

	if (s->rate == 0)
		return;
	s->next_at = from + time / NS;
	s->fraction = (uint32_t)(time % NS);
	for (s->byte_count += bytes; s->byte_count >= p->byte_period && s->rate != 0;
	     s->byte_count -= p->byte_period) {
		count_event(&s->byte_counters);
		raise_rate(s, p);
	}
}
