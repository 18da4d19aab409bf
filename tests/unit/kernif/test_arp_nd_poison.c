/* SPDX-License-Identifier: BSD-3-Clause */

/* A stranger on the segment claims the neighbour's addresses. */

#include <errno.h>
#include <string.h>

#include "arp_rig.h"

/*
 * A stranger answers faster than the owner of an address: the owner, which also answers, keeps it,
 * and later answers of the stranger are ignored. IPv4 and IPv6.
 */
static void
poisoned(void **state)
{
	uint8_t f[128], mac[6];

	(void)state;
	assert_int_equal(rig_lookup(y4, NONE, mac), 0);
	assert_int_equal(rig_lookup(y6, NONE, mac), 0);
	rig_run(5 * SECOND);
	x.cut = true;
	rig_put(f, frame_arp(f, all, -1, 1, z_mac, y4 + 12, y4 + 12));
	rig_put(f, frame_nd(f, 136, 0x20, y6, y6, 2, 1, 255, 0));
	rig_put(f, frame_arp(f, x_mac, -1, 2, z_mac, y4 + 12, x4 + 12));
	rig_put(f, frame_nd(f, 136, 0x60, y6, y6, 2, 1, 255, 0));
	assert_int_equal(rig_stats(&x).moved, 2);
	rig_put(f, frame_arp(f, x_mac, -1, 2, y_mac, y4 + 12, x4 + 12));
	nd_mac = y_mac;
	rig_put(f, frame_nd(f, 136, 0x60, y6, y6, 2, 1, 255, 0));
	nd_mac = z_mac;
	assert_int_equal(rig_stats(&x).disputed, 2);
	assert_memory_equal(x.hop_mac, y_mac, 6);
	for (unsigned int i = 0; i < 100; i++) {
		rig_put(f, frame_arp(f, x_mac, -1, 2, z_mac, y4 + 12, x4 + 12));
		rig_put(f, frame_nd(f, 136, 0x60, y6, y6, 2, 1, 255, 0));
	}
	assert_int_equal(rig_lookup(y4, NONE, mac), 0);
	assert_memory_equal(mac, y_mac, 6);
	assert_int_equal(rig_lookup(y6, NONE, mac), 0);
	assert_memory_equal(mac, y_mac, 6);
	assert_int_equal(rig_stats(&x).disputed, 2);
	/*
	 * later the owner's answer does not count any more; RoCE frames may still refute the claim
	 */
	rig_run(2 * SECOND);
	x.cut = true;
	rig_put(f, frame_arp(f, all, -1, 1, z_mac, y4 + 12, y4 + 12));
	rig_put(f, frame_arp(f, x_mac, -1, 2, z_mac, y4 + 12, x4 + 12));
	now += 2 * SECOND;
	rig_put(f, frame_arp(f, x_mac, -1, 2, y_mac, y4 + 12, x4 + 12));
	assert_int_equal(rig_lookup(y4, NONE, mac), 0);
	assert_memory_equal(mac, z_mac, 6);
	arp_nd_correct(x.a, &x.hop, y_mac, now);
	assert_int_equal(rig_lookup(y4, NONE, mac), 0);
	assert_memory_equal(mac, y_mac, 6);
	assert_int_equal(rig_stats(&x).disputed, 3);
}

/* z claims the addresses of y without a request */
static void
claims(void)
{
	uint8_t f[128];

	arp_nd_input(x.a, f, frame_arp(f, x_mac, -1, 2, z_mac, y4 + 12, x4 + 12), now);
	arp_nd_input(x.a, f, frame_nd(f, 136, 0x60, y6, y6, 2, 1, 255, 0), now);
}

static void
expect(const uint8_t want[6])
{
	uint8_t mac[6];

	assert_int_equal(rig_lookup(y4, NONE, mac), 0);
	assert_memory_equal(mac, want, 6);
	assert_int_equal(rig_lookup(y6, NONE, mac), 0);
	assert_memory_equal(mac, want, 6);
}

static void
ask_both(int want)
{
	uint8_t mac[6];

	assert_int_equal(rig_lookup(y4, NONE, mac), want);
	assert_int_equal(rig_lookup(y6, NONE, mac), want);
}

/* It claims them before the request and answers first: the owner keeps the addresses. */
static void
answers_unasked(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 100; i++)
		claims();
	x.cut = true;
	ask_both(-EAGAIN);
	claims();
	ask_both(-EAGAIN);
	assert_int_equal(x.changes, 0);
	x.cut = false;
	rig_run(150 * MS);
	expect(y_mac);
	claims();
	expect(y_mac);
	assert_int_equal(rig_stats(&x).arp_answers + rig_stats(&x).nd_answers, 2);
}

/* It begins after the request, gets the addresses, and continues, which makes it a suspect. */
static void
answers_too_often(void **state)
{
	(void)state;
	x.cut = true;
	ask_both(-EAGAIN);
	claims();
	expect(z_mac);
	x.cut = false;
	now += 250 * MS; /* the latest time for an answer */
	claims();
	expect(z_mac);
	now += 100 * MS;
	claims();
	expect(y_mac);
	for (unsigned int i = 0; i < 100; i++) {
		claims();
		rig_run(50 * MS);
		expect(y_mac);
	}
	assert_int_equal(rig_stats(&x).moved, 2);
	assert_int_equal(rig_stats(&x).disputed, 0);
}

/* A suspect, but the only one to answer: it gets the address and is no suspect any more. */
static void
only_one_answers(void **state)
{
	uint8_t mac[6];

	(void)state;
	claims();
	x.cut = true;
	ask_both(-EAGAIN);
	for (unsigned int i = 0; i < 6; i++) { /* 600 ms */
		rig_run(100 * MS);
		claims();
		ask_both(-EAGAIN);
	}
	rig_run(200 * MS);
	claims();
	expect(z_mac);
	now += 1000 * SECOND; /* long forgotten */
	assert_int_equal(rig_lookup(y4, NONE, mac), 0);
}

/* The owner of a known address answers without a request: it is verified and stays in use. */
static void
owner_suspected(void **state)
{
	uint8_t f[128];

	(void)state;
	ask_both(0);
	rig_run(5 * SECOND);
	x.cut = true;
	rig_put(f, frame_arp(f, x_mac, -1, 2, y_mac, y4 + 12, x4 + 12));
	for (unsigned int i = 0; i < 12; i++) {
		rig_run(100 * MS);
		rig_put(f, frame_arp(f, x_mac, -1, 2, y_mac, y4 + 12, x4 + 12));
		expect(y_mac);
	}
	assert_int_equal(rig_stats(&x).moved, 0);
	assert_int_equal(rig_stats(&x).given_up, 0);
	assert_int_equal(x.lost_hops, 0);
}

/*
 * A stranger forges answers that name the owner's MAC address, then claims the address and answers
 * first: the owner, which has had the address for long, also answers and keeps it.
 */
static void
owner_framed(void **state)
{
	uint64_t questions;
	uint8_t f[128];

	(void)state;
	ask_both(0);
	rig_run(15 * SECOND);
	x.cut = true;
	for (unsigned int i = 0; i < 100; i++) {
		rig_put(f, frame_arp(f, x_mac, -1, 2, y_mac, y4 + 12, x4 + 12));
		nd_mac = y_mac;
		rig_put(f, frame_nd(f, 136, 0x60, y6, y6, 2, 1, 255, 0));
		nd_mac = z_mac;
		now += 10 * MS;
	}
	rig_put(f, frame_arp(f, all, -1, 1, z_mac, y4 + 12, y4 + 12));
	rig_put(f, frame_nd(f, 136, 0x20, y6, y6, 2, 1, 255, 0));
	claims();
	rig_put(f, frame_arp(f, x_mac, -1, 2, y_mac, y4 + 12, x4 + 12));
	nd_mac = y_mac;
	rig_put(f, frame_nd(f, 136, 0x60, y6, y6, 2, 1, 255, 0));
	nd_mac = z_mac;
	expect(y_mac);
	assert_int_equal(rig_stats(&x).disputed, 2);
	/* the owner has the address back and is established as before */
	now += 2 * SECOND;
	questions = rig_stats(&x).questions;
	rig_put(f, frame_arp(f, x_mac, -1, 2, y_mac, y4 + 12, x4 + 12));
	assert_int_equal(rig_stats(&x).questions, questions);
	expect(y_mac);
}

/* The answer arrives just after the resolution failed. */
static void
late_answer(void **state)
{
	uint8_t mac[6], f[128];

	(void)state;
	x.cut = true;
	assert_int_equal(rig_lookup(y4, NONE, mac), -EAGAIN);
	rig_run(3400 * MS);
	assert_int_equal(rig_lookup(y4, NONE, mac), -EHOSTUNREACH);
	rig_put(f, frame_arp(f, x_mac, -1, 2, y_mac, y4 + 12, x4 + 12));
	assert_int_equal(rig_lookup(y4, NONE, mac), 0);
	assert_memory_equal(mac, y_mac, 6);
	assert_int_equal(rig_stats(&x).moved, 0);
	assert_int_equal(x.changes, 1);
}

/* More suspects than entries: the oldest is forgotten, without other effects. */
static void
many_suspects(void **state)
{
	uint8_t f[128], ip[4] = {10, 0, 0, 100};

	(void)state;
	claims();
	for (unsigned int i = 0; i < 200; i++) {
		now += MS;
		ip[3] = (uint8_t)i;
		rig_put(f, frame_arp(f, x_mac, -1, 2, z_mac, ip, x4 + 12));
		claims(); /* repeated, so not the oldest */
	}
	x.cut = true;
	ask_both(-EAGAIN);
	claims();
	ask_both(-EAGAIN);
	x.cut = false;
	rig_run(150 * MS);
	expect(y_mac);
}

#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(poisoned),	    T(answers_unasked), T(answers_too_often), T(only_one_answers),
		T(owner_suspected), T(owner_framed),	T(late_answer),	      T(many_suspects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
