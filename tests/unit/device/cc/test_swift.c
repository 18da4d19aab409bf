/* SPDX-License-Identifier: BSD-3-Clause */

/* The arithmetic of Swift against the equations of the paper in floating point. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cc/cc.h"
#include "cc/swift.h"

#define BASE 25000u
#define ONE HCA_SWIFT_ONE

static const struct hca_swift_params plain = {HCA_SWIFT_DEFAULTS(BASE)};

static void
near(double is, double want, double percent)
{
	if (fabs(is - want) > want * percent / 100)
		fail_msg("%.3f, paper %.3f", is, want);
}

/* A flow that has met its target and whose window is in use. */
static struct hca_swift
flow_with(double window)
{
	struct hca_swift s;

	hca_swift_begin(&s);
	s.window = (uint32_t)(window * ONE);
	s.met = s.limited = true;
	return s;
}

/* ---- target: equation 2 of the paper, without hops ---- */

static double
paper_target(double window)
{
	double range = plain.fs_range_ns, min = 0.1, max = 100;
	double alpha = range / (1 / sqrt(min) - 1 / sqrt(max)), beta = -alpha / sqrt(max);

	return BASE + fmax(0, fmin(alpha / sqrt(window) + beta, range));
}

static void
target(void **state)
{
	static const double windows[] = {0.01, 0.1, 0.5, 1, 2.5, 8, 30, 100, 1000};

	(void)state;
	for (unsigned int i = 0; i < sizeof(windows) / sizeof(windows[0]); i++)
		near(hca_swift_target(&plain, (uint32_t)(windows[i] * ONE), BASE, 0),
		     paper_target(windows[i]), 1);
}

/* A long path has its own base; the scaling is by the rate, not by the window. */
static void
long_path(void **state)
{
	uint32_t rtt = 4 * BASE, near_by = hca_swift_target(&plain, 5 * ONE, BASE, 5000);

	(void)state;
	near(hca_swift_target(&plain, 20 * ONE, rtt, rtt),
	     rtt + HCA_SWIFT_QUEUE(&plain) + near_by - BASE, 1);
	/* the queue of other flows makes no long path */
	assert_int_equal(hca_swift_target(&plain, 5 * ONE, BASE, BASE + BASE / 2), near_by);
}

/* The first round trips, in which all flows begin, do not count as those of the path. */
static void
learns_late(void **state)
{
	struct hca_swift s = flow_with(100);
	uint64_t now = 1000000;

	(void)state;
	for (unsigned int i = 1; i < HCA_SWIFT_LEARN; i++) {
		hca_swift_timed(&s, &plain, 4 * BASE, now += 4 * BASE);
		assert_true(s.target < 4 * BASE);
		s.window = 100 * ONE;
	}
	hca_swift_timed(&s, &plain, 4 * BASE, now += 4 * BASE);
	assert_true(s.target > 4 * BASE);
}

/* ---- window: algorithm 1 of the paper ---- */

static void
follow(double window, unsigned int seed)
{
	struct hca_swift s = flow_with(window);
	uint64_t now = 1000000, cut_at = 0;
	double w = window;

	srand(seed);
	for (unsigned int i = 0; i < 2000; i++) {
		uint64_t rtt = 5000 + (uint64_t)rand() % 90000;
		uint32_t psns = 1 + (uint32_t)rand() % 4;
		double t = paper_target(rtt > BASE ? fmax(w * BASE / (double)rtt, 0.1) : w);

		now += 1000 + (uint64_t)rand() % 60000;
		if (fabs((double)rtt - t) < t / 50)
			continue; /* rounding decides */
		hca_swift_timed(&s, &plain, rtt, now);
		hca_swift_acked(&s, &plain, psns);
		if ((double)rtt < t) {
			w += 0.5 * psns / fmax(w, 1);
		} else if (cut_at == 0 || now - cut_at >= rtt) {
			w *= fmax(1 - 0.8 * ((double)rtt - t) / (double)rtt, 0.5);
			cut_at = now;
		}
		w = fmax(w, 0.01);
		near(s.window, w * ONE, 4);
		/* so that the error does not add up */
		w = (double)s.window / ONE;
	}
}

static void
as_the_paper(void **state)
{
	(void)state;
	follow(1, 1);
	follow(10, 2);
	follow(0.2, 3);
	follow(300, 4);
}

/* A window that is not in use does not grow; at first it grows until the target is met. */
static void
growth(void **state)
{
	struct hca_swift s;
	uint64_t again = UINT64_MAX;

	(void)state;
	hca_swift_begin(&s);
	s.window = 8 * ONE;
	hca_swift_may_send(&s, 0, 1, &again);
	hca_swift_sent(&s, 2 * ONE, 1, 1);
	hca_swift_timed(&s, &plain, 5000, 6000);
	hca_swift_acked(&s, &plain, 2);
	assert_int_equal(s.window, 8 * ONE);
	hca_swift_may_send(&s, 0, 6000, &again);
	hca_swift_sent(&s, 8 * ONE, 1, 6000);
	hca_swift_acked(&s, &plain, 8);
	assert_int_equal(s.window, 12 * ONE);
	hca_swift_timed(&s, &plain, 2 * BASE, 100000);
	s.window = 8 * ONE;
	hca_swift_timed(&s, &plain, 5000, 105000);
	hca_swift_acked(&s, &plain, 8);
	near(s.window, 8.5 * ONE, 1);
}

static void
losses(void **state)
{
	struct hca_swift s = flow_with(16);

	(void)state;
	hca_swift_timed(&s, &plain, 10000, 1000000);
	hca_swift_lost(&s, &plain, 1000000);
	assert_int_equal(s.window, 8 * ONE);
	/* at most once in a round trip */
	hca_swift_lost(&s, &plain, 1009999);
	assert_int_equal(s.window, 8 * ONE);
	hca_swift_lost(&s, &plain, 1010000);
	assert_int_equal(s.window, 4 * ONE);
}

/* ---- sending ---- */

static void
window_limits(void **state)
{
	struct hca_swift s = flow_with(4.9);
	uint64_t again = UINT64_MAX;

	(void)state;
	assert_int_equal(hca_swift_may_send(&s, 0, 1000, &again), 4 * HCA_CC_FRAME);
	assert_int_equal(hca_swift_may_send(&s, 3, 1000, &again), HCA_CC_FRAME);
	assert_int_equal(hca_swift_may_send(&s, 4, 1000, &again), 0);
	/* an ACK ends the wait */
	assert_int_equal(again, UINT64_MAX);
}

/* Frames that leave as soon as they may have the rate window / round trip, small ones also. */
static void
pace_of(double window, double packets, uint32_t burst)
{
	uint64_t begin = 1000000, now = begin, again, rtt = 30000;
	struct hca_swift s = flow_with(window);
	double sent = 0;

	s.rtt = rtt;
	for (unsigned int i = 0; i < 4000; i++) {
		again = UINT64_MAX;
		if (hca_swift_may_send(&s, 0, now, &again) == 0) {
			assert_true(again > now && again != UINT64_MAX);
			now = again;
			continue;
		}
		hca_swift_sent(&s, (uint64_t)(packets * ONE), burst, now);
		sent += packets;
	}
	near(sent * (double)rtt / (double)(now - begin), window, 5);
}

static void
pace(void **state)
{
	(void)state;
	pace_of(0.5, 1, 1);
	pace_of(0.05, 1, 1);
	pace_of(0.01, 0.25, 1);
	pace_of(2, 4, 4);
	pace_of(6, 4, 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(target),	 cmocka_unit_test(long_path),
		cmocka_unit_test(learns_late),	 cmocka_unit_test(as_the_paper),
		cmocka_unit_test(growth),	 cmocka_unit_test(losses),
		cmocka_unit_test(window_limits), cmocka_unit_test(pace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
