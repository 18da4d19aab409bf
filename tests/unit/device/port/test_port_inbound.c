/* SPDX-License-Identifier: BSD-3-Clause */

/* Faults of received frames. */

#include "port_rig.h"

#include "port/port_impair.h"
#include "port/port_inbound.h"
#include "port/port_wrap.h"

static struct hca_port_impair_stats
stats(struct hca_port *p)
{
	struct hca_port_impair_stats s;

	hca_port_impair_stats(p, &s);
	return s;
}

/* A port with frames with PSN 0 .. n - 1 to receive. */
static struct hca_port *
new_inbound(const char *name, unsigned int n)
{
	const struct hca_port_impair_config cfg = {.name = name, .seed = 7, .socket_id = -1};
	struct hca_port *p;

	assert_int_equal(hca_port_inbound_open(&cfg, rig_source(n), &p), 0);
	assert_int_equal(hca_port_missed(p), RIG_MISSED);
	return p;
}

static void
inbound(void **state)
{
	const struct hca_fault_rule lost = {.opcode = HCA_FAULT_ANY,
					    .psn = 3,
					    .fault = HCA_FAULT_DROP};
	const struct hca_fault_rule late = {.opcode = HCA_FAULT_ANY,
					    .psn = 5,
					    .fault = HCA_FAULT_DELAY,
					    .arg = 1000};
	const struct hca_fault_rule twice = {.opcode = HCA_FAULT_ANY,
					     .psn = 8,
					     .fault = HCA_FAULT_DUP};
	static const int order[] = {0, 1, 2, 4, 6, 7, 8, 9, 8};
	struct hca_port *p = new_inbound("tin", 10), *im = hca_port_inbound_impair(p);
	struct rte_mbuf *m = rig_frame(77);

	(void)state;
	assert_int_equal(hca_port_impair_rule(im, &lost), 0);
	assert_int_equal(hca_port_impair_rule(im, &late), 0);
	assert_int_equal(hca_port_impair_rule(im, &twice), 0);
	while (rig_receive(p, 4, 100) != 0)
		;
	assert_int_equal(sink.n, RTE_DIM(order));
	for (unsigned int i = 0; i < RTE_DIM(order); i++)
		assert_int_equal(rig_psn_of(i), order[i]);
	assert_int_equal(rig_receive(p, 4, 1099), 0);
	assert_int_equal(rig_receive(p, 4, 1100), 1);
	assert_int_equal(rig_psn_of(sink.n - 1), 5);
	assert_int_equal(stats(im).dropped, 1);

	/* sent frames are not affected */
	assert_int_equal(p->ops->tx(p, 0, &m, 1, 1200), 1);
	assert_int_equal(rig_psn_of(sink.n - 1), 77);
	rig_done(p);
}

/* Frames beyond the caller's room are kept, and freed when the port is closed. */
static void
inbound_keeps_what_does_not_fit(void **state)
{
	const struct hca_impair all_twice = {.dup = 1};
	struct hca_port *p = new_inbound("tik", 100);
	unsigned int times[100] = {0};

	(void)state;
	hca_port_impair_set(hca_port_inbound_impair(p), &all_twice);
	for (unsigned int i = 0; i < 60; i++)
		assert_int_equal(rig_receive(p, 3, i), 3);
	for (unsigned int i = 0; i < 180; i++)
		times[rig_psn_of(i)]++;
	for (unsigned int i = 0; i < 80; i++)
		assert_int_equal(times[i], 2);
	assert_int_equal(arrived, 100);
	rig_done(p); /* twenty have not been fetched */
}

/*
 * A delay that would hold more frames than fit: nothing is lost or reordered; the rest stays in the
 * inner port's queue. Then the delay ends: held frames still arrive.
 */
static void
inbound_delay_is_bounded(void **state)
{
	const struct hca_impair slow = {.delay_ns = 1000};
	struct hca_port *p = new_inbound("tib", 3000), *im = hca_port_inbound_impair(p);

	(void)state;
	hca_port_impair_set(im, &slow);
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(rig_receive(p, 32, 10), 0);
	assert_int_equal(hca_port_impair_held(im), 1024);
	assert_in_range(arrived, 1024, 1024 + 32);
	for (unsigned int i = 0; sink.n < 2000; i++) {
		assert_true(i < 1000000);
		rig_receive(p, 32, 1010 + 10 * i);
	}
	hca_port_impair_set(im, NULL);
	for (unsigned int i = 0; i < 200; i++)
		rig_receive(p, 32, 100000000);
	assert_int_equal(sink.n, 3000);
	for (unsigned int i = 0; i < 2000; i++)
		assert_int_equal(rig_psn_of(i), i);
	assert_int_equal(stats(im).frames, 3000);
	assert_int_equal(stats(im).dropped, 0);
	assert_true(stats(im).hold_full != 0);
	rig_done(p);
}

/* Settings changed back and forth: without faults every frame arrives once. */
static void
inbound_comes_and_goes(void **state)
{
	const struct hca_impair lose = {.drop = 1};
	struct hca_port *p = new_inbound("tic", 400), *im = hca_port_inbound_impair(p);

	(void)state;
	for (unsigned int i = 0; i < 40; i++) {
		hca_port_impair_set(im, i % 2 ? &lose : NULL);
		assert_int_equal(rig_receive(p, 10, i), i % 2 ? 0 : 10);
	}
	assert_int_equal(sink.n, 200);
	for (unsigned int i = 0; i < 200; i++)
		assert_int_equal(rig_psn_of(i), i / 10 * 20 + i % 10);
	assert_int_equal(stats(im).dropped, 200);
	assert_int_equal(stats(im).frames, 400);
	rig_done(p);
}

/*
 * The link goes down while frames are held, wait for room and have passed: all of them are lost,
 * and nothing is due until it is up.
 */
static void
inbound_down_forgets(void **state)
{
	const struct hca_impair slow = {.delay_ns = 1000};
	struct hca_port *p = new_inbound("tid", 2000), *im = hca_port_inbound_impair(p);

	(void)state;
	hca_port_impair_set(im, &slow);
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(rig_receive(p, 32, 10), 0);
	assert_int_equal(rig_receive(p, 32, 1010), 32);
	assert_int_equal(hca_port_deadline(p, 0, 1010), 1010);
	__atomic_store_n(hca_port_inbound_deaf(p), 1, __ATOMIC_RELAXED);
	assert_int_equal(rig_receive(p, 32, 1020), 0);
	assert_int_equal(hca_port_impair_held(im), 0);
	assert_int_equal(hca_port_inbound_lost(p), arrived - 32);
	assert_true(hca_port_deadline(p, 0, 1020) == UINT64_MAX);
	__atomic_store_n(hca_port_inbound_deaf(p), 0, __ATOMIC_RELAXED);
	hca_port_impair_set(im, NULL);
	while (rig_receive(p, 32, 5000) != 0)
		;
	assert_int_equal(sink.n, 2000 - hca_port_inbound_lost(p));
	assert_int_equal(rig_psn_of(32), hca_port_inbound_lost(p) + 32);
	rig_done(p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inbound),
		cmocka_unit_test(inbound_keeps_what_does_not_fit),
		cmocka_unit_test(inbound_delay_is_bounded),
		cmocka_unit_test(inbound_comes_and_goes),
		cmocka_unit_test(inbound_down_forgets),
	};

	return cmocka_run_group_tests(tests, rig_setup, NULL);
}
