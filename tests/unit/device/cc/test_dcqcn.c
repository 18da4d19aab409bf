/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The arithmetic of DCQCN against the equations of the paper in floating point, which run at each
 * event of a timer instead of when a flow is asked; its pace against a clock.
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cc/cc.h"
#include "cc/dcqcn.h"

#define LINE 100000000u /* kb/s */
#define FRAME (4096u + HCA_CC_FRAME_OVERHEAD)

static const struct hca_dcqcn_params plain = {HCA_DCQCN_DEFAULTS(LINE)};

/* ---- the paper ---- */

struct model {
	const struct hca_dcqcn_params *p;
	double rc, rt, alpha, bytes, alpha_at, timer_at;
	unsigned int t, b;
	bool limited, raised;
};

static void
model_raise(struct model *m)
{
	unsigned int most = m->t > m->b ? m->t : m->b, least = m->t < m->b ? m->t : m->b;

	m->raised = true;
	if (least > m->p->f)
		m->rt += (double)m->p->hai * (least - m->p->f);
	else if (most >= m->p->f)
		m->rt += m->p->ai;
	m->rt = RTE_MIN(m->rt, (double)m->p->line);
	m->rc = (m->rc + m->rt) / 2;
	if (m->rc > m->p->line - 1)
		m->limited = false;
}

/* All events up to now, in their order. */
static void
model_until(struct model *m, double now)
{
	for (;;) {
		double timer = m->limited ? m->timer_at : INFINITY;

		if (RTE_MIN(timer, m->alpha_at) > now)
			return;
		if (m->alpha_at <= timer) {
			m->alpha *= 1 - 1.0 / (1u << m->p->g_log);
			m->alpha_at += m->p->alpha_ns;
		} else {
			m->t++;
			m->timer_at += m->p->timer_ns;
			model_raise(m);
		}
	}
}

static void
model_cnp(struct model *m, double now)
{
	if (!m->limited)
		m->rc = m->rt = m->p->line;
	else if (m->raised || m->p->clamp)
		m->rt = m->rc;
	m->limited = true;
	m->rc = RTE_MAX(m->rc * (1 - m->alpha / 2), (double)m->p->min);
	m->alpha = (1 - 1.0 / (1u << m->p->g_log)) * m->alpha + 1.0 / (1u << m->p->g_log);
	m->t = m->b = 0;
	m->bytes = 0;
	m->raised = false;
	m->alpha_at = now + m->p->alpha_ns;
	m->timer_at = now + m->p->timer_ns;
}

static void
model_sent(struct model *m, double bytes)
{
	if (!m->limited)
		return;
	for (m->bytes += bytes; m->bytes >= m->p->byte_period && m->limited;
	     m->bytes -= m->p->byte_period) {
		m->b++;
		model_raise(m);
	}
}

static void
same(const struct hca_dcqcn *s, const struct model *m, uint64_t now)
{
	double rate = s->rate != 0 ? s->rate : m->p->line, want = m->limited ? m->rc : m->p->line;
	double alpha = (double)s->alpha / HCA_DCQCN_ONE;

	/* without a limit alpha is brought up to date by the next CNP */
	if (fabs(rate - want) > want / 100 || (s->rate != 0 && fabs(alpha - m->alpha) > 0.003))
		fail_msg("at %llu ns: rate %.0f, paper %.0f; alpha %.4f, paper %.4f",
			 (unsigned long long)now, rate, want, alpha, m->alpha);
}

static void
follow(const struct hca_dcqcn_params *p, unsigned int seed)
{
	struct model m = {.p = p, .alpha = 1, .alpha_at = INFINITY};
	struct hca_dcqcn s;
	uint64_t now = 1000000, again = UINT64_MAX;

	hca_dcqcn_begin(&s);
	srand(seed);
	for (unsigned int i = 0; i < 4000; i++) {
		now += (uint64_t)rand() % 40000;
		if (i % 512 == 511)
			now += 20000000;
		model_until(&m, (double)now);
		if (rand() % 16 == 0) {
			hca_dcqcn_notified(&s);
			model_cnp(&m, (double)now);
		}
		again = UINT64_MAX;
		if (hca_dcqcn_may_send(&s, p, now, &again) != 0 && i % 4 == 0) {
			hca_dcqcn_sent(&s, p, 1u << 20, now);
			model_sent(&m, 1u << 20);
		}
		same(&s, &m, now);
	}
}

static void
as_the_paper(void **state)
{
	struct hca_dcqcn_params paper = plain;

	(void)state;
	for (unsigned int seed = 1; seed <= 8; seed++)
		follow(&plain, seed);
	paper.f = 5;
	paper.ai = 40000;
	paper.hai = 400000;
	follow(&paper, 9);
	paper.clamp = true;
	follow(&paper, 10);
}

/* The first CNP halves the rate of the link; without further ones the limit goes away. */
static void
first_notification(void **state)
{
	uint64_t now = 1000000, again = UINT64_MAX;
	struct hca_dcqcn s;

	(void)state;
	hca_dcqcn_begin(&s);
	assert_int_equal(hca_dcqcn_may_send(&s, &plain, now, &again), UINT32_MAX);
	assert_int_equal(again, UINT64_MAX);
	hca_dcqcn_notified(&s);
	assert_int_equal(hca_dcqcn_may_send(&s, &plain, now, &again), FRAME);
	assert_int_equal(s.rate, LINE / 2);
	now += 1000000000;
	assert_int_equal(hca_dcqcn_may_send(&s, &plain, now, &again), UINT32_MAX);
	assert_int_equal(s.rate, 0);
	/* alpha is remembered */
	assert_true(s.alpha < HCA_DCQCN_ONE / 100);
	hca_dcqcn_notified(&s);
	hca_dcqcn_may_send(&s, &plain, now, &again);
	assert_true(s.rate > LINE - LINE / 100);
}

/* Bytes that are sent as soon as they may be take the rate, also with late turns. */
static void
paced(void **state)
{
	static const uint32_t rates[] = {10000, 1000000, 25000000, 99000000};

	(void)state;
	for (unsigned int i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct hca_dcqcn_params p = plain;
		uint64_t begin = 1000000, now = begin, bytes = 0, again, ns;
		struct hca_dcqcn s;

		p.timer_ns = UINT32_MAX;
		p.byte_period = UINT32_MAX;
		p.line = rates[i] * 2;
		hca_dcqcn_begin(&s);
		hca_dcqcn_notified(&s);
		srand(i);
		while (now < begin + 50000000) {
			uint32_t leave;

			again = UINT64_MAX;
			leave = hca_dcqcn_may_send(&s, &p, now, &again);
			assert_true(again != UINT64_MAX);
			if (leave < FRAME) {
				assert_int_equal(leave, 0);
				assert_true(again > now);
				now = again + (uint64_t)rand() % 2000;
				continue;
			}
			leave -= leave % FRAME;
			hca_dcqcn_sent(&s, &p, leave, now);
			bytes += leave;
		}
		assert_int_equal(s.rate, rates[i]);
		ns = now - begin;
		assert_true(bytes * 8000000 / ns <
			    rates[i] + rates[i] / 50 + FRAME * 16000000 / ns);
		assert_true(bytes * 8000000 / ns > rates[i] - rates[i] / 50);
	}
}

static void
many_notifications(void **state)
{
	uint64_t now = 1000000, again;
	struct hca_dcqcn s;

	(void)state;
	hca_dcqcn_begin(&s);
	for (unsigned int i = 0; i < 1000; i++)
		hca_dcqcn_notified(&s);
	hca_dcqcn_may_send(&s, &plain, now, &again);
	assert_int_equal(s.rate, plain.min);
	assert_true(s.alpha <= HCA_DCQCN_ONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_the_paper),
		cmocka_unit_test(first_notification),
		cmocka_unit_test(paced),
		cmocka_unit_test(many_notifications),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
