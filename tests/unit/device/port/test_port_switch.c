/* SPDX-License-Identifier: BSD-3-Clause */

/* The simulated switch: exact times, order, queues, marks, PFC, addresses, one thread. */

#include "port_rig.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "port/port_switch.h"
#include "port/port_wrap.h"

#define START 1000000u
#define PORTS 4u
/* rig_frame() with the bytes that Ethernet adds, at 1 Gb/s: ns */
#define FRAME (14 + 20 + 8 + 12 + 16 + 64 + 4)
#define WIRE (FRAME + HCA_FABRIC_OVERHEAD)
#define SER (WIRE * 8ull)
#define LATER (START + 1000000000ull)

static struct hca_port *port[PORTS];

static void
open_seeded(const char *text, uint64_t seed)
{
	static unsigned int serial;
	char name[16], why[192] = "";
	struct hca_port_switch_config cfg = {.name = name,
					     .ports = PORTS,
					     .seed = seed,
					     .socket_id = -1};

	snprintf(name, sizeof(name), "ts%u", serial++);
	if (hca_switch_parse(text, &cfg.settings, why, sizeof(why)) != 0)
		fail_msg("%s", why);
	rig_sink();
	assert_int_equal(hca_port_switch_open(&cfg, port), 0);
	for (uint8_t i = 0; i < PORTS; i++)
		assert_int_equal(hca_port_switch_give(port[i], (uint8_t[]){2, 0, 0, 0, 0, i}), 0);
}

static void
open_switch(const char *text)
{
	open_seeded(text, 1);
}

static struct hca_port_switch_stats
stats(unsigned int i)
{
	struct hca_port_switch_stats s;

	hca_port_switch_stats(port[i], &s);
	return s;
}

static void
close_switch(void)
{
	rig_sink_clear();
	for (unsigned int i = 0; i < PORTS; i++)
		port[i]->ops->close(port[i]);
	assert_int_equal(rte_mempool_in_use_count(pool), 0);
}

/* From host to host; the second one may be none of the hosts. */
static struct rte_mbuf *
frame(uint8_t from, uint8_t to, uint32_t psn, uint8_t ecn)
{
	struct rte_mbuf *m = rig_frame(psn);
	uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);

	assert_int_equal(m->data_len, FRAME);
	memcpy(f, (uint8_t[]){2, 0, 0, 0, 0, to}, 6);
	memcpy(f + 6, (uint8_t[]){2, 0, 0, 0, 0, from}, 6);
	f[HCA_ETH_LEN + 1] |= ecn;
	return m;
}

static bool
try(uint8_t from, uint8_t to, uint32_t psn, uint8_t ecn, uint64_t now)
{
	struct rte_mbuf *m = frame(from, to, psn, ecn);

	if (port[from]->ops->tx(port[from], 0, &m, 1, now) == 1)
		return true;
	rte_pktmbuf_free(m);
	return false;
}

static void
send(uint8_t from, uint8_t to, uint32_t psn, uint64_t now)
{
	assert_true(try(from, to, psn, 0, now));
}

/* Received frames are appended to the sink. */
static unsigned int
receive(unsigned int i, uint64_t now)
{
	unsigned int n = 0, got;

	while ((got = rig_receive(port[i], 32, now)) != 0)
		n += got;
	return n;
}

static void
poll_to(uint64_t now)
{
	port[0]->ops->poll(port[0], 0, now);
}

/* Both links one after the other, each with its time and delay. */
static void
exact_times(void **state)
{
	uint64_t at = START + 2 * SER + 100000;

	(void)state;
	open_switch("rate=1,delay=50");
	send(0, 1, 0, START);
	send(0, 1, 1, START);
	assert_int_equal(hca_port_switch_held(port[0]), 2);
	assert_int_equal(receive(1, at - 1), 0);
	assert_int_equal(port[1]->ops->deadline(port[1], 0, at - 1), at);
	assert_int_equal(receive(1, at), 1);
	assert_int_equal(receive(1, at + SER - 1), 0);
	assert_int_equal(receive(1, at + SER), 1);
	assert_int_equal(port[1]->ops->deadline(port[1], 0, at + SER), UINT64_MAX);
	assert_int_equal(rig_psn_of(0), 0);
	assert_int_equal(rig_psn_of(1), 1);
	assert_int_equal(stats(1).frames, 2);
	assert_int_equal(stats(1).bytes, 2 * FRAME);
	assert_int_equal(hca_port_switch_held(port[0]), 0);
	close_switch();
}

/* 100 Gb/s: 12.96 ns per frame, which must not be rounded for each. */
static void
rates_are_not_rounded(void **state)
{
	(void)state;
	open_switch("rate=100,delay=0");
	for (uint32_t i = 0; i < 100; i++)
		send(0, 1, i, START);
	assert_int_equal(receive(1, START + 1296 + 12), 99); /* the last 12.96 ns after 1296 */
	assert_int_equal(receive(1, START + 1296 + 13), 1);
	close_switch();
}

/* The link has been taken for more than 2 us: the port stalls. */
static void
link_stalls(void **state)
{
	(void)state;
	open_switch("rate=1,delay=0");
	send(0, 1, 0, START);
	send(0, 1, 1, START);
	assert_false(try(0, 1, 2, 0, START));
	assert_int_equal(stats(0).stalled, 1);
	assert_false(try(0, 1, 2, 0, START + 2 * SER - HCA_FABRIC_AHEAD_NS - 1));
	assert_true(try(0, 1, 2, 0, START + 2 * SER - HCA_FABRIC_AHEAD_NS));
	assert_int_equal(receive(1, LATER), 3);
	close_switch();
}

/* Each port has its delay and rate; frames of several hosts leave in the order they came. */
static void
order_and_delays(void **state)
{
	(void)state;
	open_switch("rate=1,delay=10");
	hca_port_switch_set_link(port[1], 1000, 30);
	hca_port_switch_set_link(port[2], 10000, 0);
	send(0, 3, 0, START);	     /* enters at SER + 10000 */
	send(1, 3, 1, START + 9000); /* at 9000 + SER + 30, before it */
	send(2, 3, 2, START + 10500);
	assert_int_equal(receive(3, LATER), 3);
	assert_int_equal(rig_psn_of(0), 1);
	assert_int_equal(rig_psn_of(1), 2);
	assert_int_equal(rig_psn_of(2), 0);
	/* a delay that becomes shorter does not change the order */
	send(3, 0, 3, LATER);
	poll_to(LATER + SER + 10000);
	hca_port_switch_set_link(port[0], 1000, 0);
	send(1, 0, 4, LATER + SER + 10000);
	assert_int_equal(receive(0, LATER + 10000000), 2);
	assert_int_equal(rig_psn_of(3), 3);
	assert_int_equal(rig_psn_of(4), 4);
	close_switch();
}

/* The rate of a link with frames in its queue is halved. */
static void
rate_changes(void **state)
{
	uint64_t begin = START + SER / 10 + 1, t;

	(void)state;
	open_switch("rate=10,delay=0");
	hca_port_switch_set_link(port[1], 1000, 0);
	for (uint32_t i = 0; i < 10; i++)
		send(0, 1, i, START);
	/* the first has come at SER/10, five are through at 5 SER, the sixth has begun */
	poll_to(begin + 5 * SER);
	hca_port_switch_set_link(port[1], 500, 0);
	t = begin + 6 * SER;
	assert_int_equal(receive(1, t), 6);
	for (unsigned int i = 1; i <= 4; i++) {
		assert_int_equal(receive(1, t + 2 * i * SER - 1), 0);
		assert_int_equal(receive(1, t + 2 * i * SER), 1);
	}
	close_switch();
}

/* Two hosts fill a third one's link: every other frame finds no room once the queue is full. */
static void
queue_drops_tail(void **state)
{
	struct hca_port_switch_stats s;
	char text[64];

	(void)state;
	snprintf(text, sizeof(text), "rate=1,delay=0,queue=%u", 10 * WIRE);
	open_switch(text);
	for (uint32_t i = 0; i < 100; i++) {
		send(0, 2, i, START + i * SER);
		send(1, 2, 1000 + i, START + i * SER);
	}
	/* 200 frames in 100 SER; 101 or so can leave, 10 wait */
	poll_to(START + 100 * SER);
	s = stats(2);
	assert_in_range(s.dropped, 88, 92);
	assert_int_equal(s.max_queue, 10 * WIRE);
	assert_int_equal(hca_port_switch_queued(port[2]) % WIRE, 0);
	receive(2, LATER);
	s = stats(2);
	assert_int_equal(stats(0).taken + stats(1).taken, 200);
	assert_int_equal(s.frames + s.dropped, 200);
	assert_int_equal(hca_port_switch_queued(port[2]), 0);
	close_switch();
}

static uint32_t
ecn_of(unsigned int i)
{
	return hca_port_ecn(rte_pktmbuf_mtod(sink.got[i], uint8_t *) + HCA_ETH_LEN);
}

/*
 * 3000 frames in front of a link that is stopped as good as: marks[] of each 1000, when 0 .. 999,
 * 1000 .. 1999 and 2000 .. 2999 wait.
 */
static void
count_marks(uint64_t seed, uint8_t ecn, unsigned int marks[3])
{
	char text[96];

	snprintf(text, sizeof(text), "rate=1000,delay=0,kmin=%u,kmax=%u,pmax=0.5", 1000 * WIRE,
		 2000 * WIRE);
	open_seeded(text, seed);
	hca_port_switch_set_link(port[1], 1, 0);
	for (uint32_t i = 0; i < 3001; i++)
		assert_true(try(0, 1, i, ecn, START + 2 * i));
	poll_to(START + 10000);
	assert_int_equal(hca_port_switch_queued(port[1]), 3000 * WIRE); /* one has begun */
	assert_int_equal(receive(1, START + SER * 1000 * 4000), 3001);
	memset(marks, 0, 3 * sizeof(marks[0]));
	for (unsigned int i = 0; i < 3000; i++)
		marks[i / 1000] += ecn_of(i + 1) == 3;
	assert_int_equal(stats(1).marked, marks[0] + marks[1] + marks[2]);
	close_switch();
}

static void
marking_probability(void **state)
{
	unsigned int marks[3], again[3], other[3];

	(void)state;
	count_marks(1, 2, marks);
	assert_int_equal(marks[0], 0);
	/* the mean of 0 .. 0.5: 250, sigma 12.9 */
	assert_in_range(marks[1], 250 - 52, 250 + 52);
	assert_int_equal(marks[2], 1000);
	count_marks(1, 2, again);
	assert_memory_equal(marks, again, sizeof(marks));
	count_marks(2, 2, other);
	assert_int_not_equal(marks[1], other[1]);
	count_marks(1, 0, marks); /* not ECN-capable */
	assert_int_equal(marks[1] + marks[2], 0);
}

/* Host 0 exceeds its share and is paused; host 1, which sends to another port, is not. */
static void
pfc_pauses(void **state)
{
	struct hca_port_switch_stats s;
	char text[96];
	uint32_t sent = 0;

	(void)state;
	snprintf(text, sizeof(text), "rate=10,delay=1,xoff=%u,xon=%u,queue=%u", 20 * WIRE,
		 10 * WIRE, 64 * WIRE);
	open_switch(text);
	hca_port_switch_set_link(port[2], 1000, 1000);
	for (uint64_t t = 0; t < 400 * SER; t += SER / 10) {
		sent += try(0, 2, sent, 0, START + t);
		if (t % SER == 0)
			send(1, 3, 0, START + t);
	}
	s = stats(0);
	assert_true(s.stalled != 0);
	assert_true(s.pauses >= 10);
	/* a tenth of its rate is left: 9/10 of the time it is paused */
	assert_in_range(s.paused_ns, 400 * SER * 80 / 100, 400 * SER * 95 / 100);
	s = stats(2);
	assert_int_equal(s.dropped, 0);
	/* frames of two delays and one more exceed the limit */
	assert_in_range(s.max_queue, 20 * WIRE, 41 * WIRE);
	assert_int_equal(stats(1).pauses, 0);
	receive(2, LATER);
	assert_int_equal(stats(2).frames, sent);
	assert_int_equal(stats(0).taken, sent);
	assert_false(hca_port_switch_paused(port[0]));
	/* the link was never idle */
	assert_in_range(sent, 400, 400 + 45);
	close_switch();
}

/* Without PFC the same loses frames. */
static void
without_pfc(void **state)
{
	char text[96];

	(void)state;
	snprintf(text, sizeof(text), "rate=10,delay=1,queue=%u", 64 * WIRE);
	open_switch(text);
	hca_port_switch_set_link(port[2], 1000, 1000);
	for (uint64_t t = 0; t < 400 * SER; t += SER / 10 + 1)
		send(0, 2, 0, START + t);
	assert_int_equal(stats(0).stalled, 0);
	assert_true(stats(2).dropped > 3000);
	close_switch();
}

/* A burst of signals that are on their way: pauses and ends of pauses stay in turn. */
static void
many_signals(void **state)
{
	char text[96];

	(void)state;
	snprintf(text, sizeof(text), "rate=10,delay=10000,xoff=%u,xon=%u", 1 * WIRE, 1 * WIRE);
	open_switch(text);
	hca_port_switch_set_link(port[2], 2000, 0);
	/* each burst exceeds the limit, and leaves before the next one comes */
	for (uint32_t i = 0; i < 1000; i++)
		for (uint32_t k = 0; k < 4; k++)
			send(0, 2, i, START + i * 3000);
	receive(2, LATER);
	assert_in_range(stats(0).pauses, 20, 1000);
	assert_false(hca_port_switch_paused(port[0]));
	assert_int_equal(stats(2).frames, 4000);
	close_switch();
}

/* Given and learned addresses; unknown ones reach all others; frames to the own port end. */
static void
addresses(void **state)
{
	struct rte_mbuf *m;

	(void)state;
	open_switch("rate=1000,delay=0");
	send(0, 77, 0, START); /* unknown */
	assert_int_equal(receive(1, START + 100), 1);
	assert_int_equal(receive(2, START + 100), 1);
	assert_int_equal(receive(3, START + 100), 1);
	assert_int_equal(receive(0, START + 100), 0);
	assert_int_equal(stats(0).copied, 2);
	/* 77 says where it is */
	m = frame(77, 0, 1, 0);
	assert_int_equal(port[2]->ops->tx(port[2], 0, &m, 1, START + 200), 1);
	assert_int_equal(receive(0, START + 300), 1);
	send(0, 77, 2, START + 400);
	assert_int_equal(receive(2, START + 500), 1);
	assert_int_equal(receive(1, START + 500) + receive(3, START + 500), 0);
	/* a given address stays */
	m = frame(1, 0, 3, 0);
	assert_int_equal(port[3]->ops->tx(port[3], 0, &m, 1, START + 600), 1);
	send(0, 1, 4, START + 700);
	assert_int_equal(receive(1, START + 800), 1);
	send(3, 3, 5, START + 900);
	poll_to(START + 1000);
	assert_int_equal(stats(3).filtered, 1);
	/* a group */
	m = frame(3, 0, 6, 0);
	rte_pktmbuf_mtod(m, uint8_t *)[0] = 1;
	assert_int_equal(port[3]->ops->tx(port[3], 0, &m, 1, START + 1100), 1);
	assert_int_equal(receive(0, LATER) + receive(1, LATER) + receive(2, LATER), 4);
	close_switch();
}

static void
too_many_addresses(void **state)
{
	(void)state;
	open_switch("rate=1000,delay=0");
	for (unsigned int i = PORTS; i < HCA_SWITCH_MACS; i++)
		assert_int_equal(hca_port_switch_give(port[0], (uint8_t[]){4, 0, 0, 0, 0, i}), 0);
	assert_int_equal(hca_port_switch_give(port[0], (uint8_t[6]){6}), -ENOSPC);
	assert_int_equal(hca_port_switch_give(port[1], (uint8_t[]){4, 0, 0, 0, 0, 9}), 0);
	send(0, 1, 0, START);
	assert_int_equal(receive(1, LATER), 1);
	close_switch();
}

/* A host that does not take its frames loses them; close with frames inside. */
static void
missed(void **state)
{
	(void)state;
	open_switch("rate=1000,delay=0");
	for (uint32_t i = 0; i < HCA_SWITCH_RX + 10; i++)
		send(0, 1, i, START + 2 * i);
	port[1]->ops->poll(port[1], 0, LATER);
	assert_int_equal(stats(1).missed, 10);
	assert_int_equal(port[1]->ops->missed(port[1]), 10);
	assert_int_equal(port[1]->ops->deadline(port[1], 0, LATER), LATER);
	assert_int_equal(rig_receive(port[1], 32, LATER), 32);
	assert_int_equal(rig_psn_of(31), 31);
	send(0, 1, 0, LATER);
	assert_int_equal(hca_port_switch_mbufs(port[0]), HCA_SWITCH_RX + 1);
	close_switch();
}

static void *
other_thread(void *arg)
{
	struct rte_mbuf *m = arg, *got;

	assert_int_equal(port[0]->ops->tx(port[0], 0, &m, 1, START), 0);
	assert_int_equal(port[1]->ops->rx(port[1], 0, &got, 1, LATER), 0);
	port[1]->ops->poll(port[1], 0, LATER);
	return NULL;
}

static void
one_thread(void **state)
{
	struct rte_mbuf *m;
	pthread_t t;

	(void)state;
	open_switch("rate=1,delay=0");
	send(0, 1, 0, START);
	m = frame(0, 1, 1, 0);
	assert_int_equal(pthread_create(&t, NULL, other_thread, m), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
	rte_pktmbuf_free(m);
	assert_int_equal(stats(0).refused, 1);
	assert_int_equal(stats(1).refused, 2);
	assert_int_equal(receive(1, LATER), 1);
	close_switch();
}

static void
texts(void **state)
{
	static const struct {
		const char *text, *part;
	} bad[] = {
		{"", "NAME=VALUE"},
		{"delay=50", "expected a rate"},
		{"rate=0", "Gb/s of a link"},
		{"rate=100,pmax=2", "0 to 1"},
		{"rate=100,delay=-1", "microseconds of a link"},
		{"rate=100,queue=0", "bytes"},
		{"rate=100,kmin=5x", "bytes"},
		{"rate=100,kmin=2,kmax=1", "kmin is above kmax"},
		{"rate=100,kmax=1", "kmax needs kmin"},
		{"rate=100,xoff=1,xon=2", "xon is above xoff"},
		{"rate=100,ecn=5", "one of rate delay queue kmin kmax pmax xoff xon"},
	};
	struct hca_switch s;
	char why[192];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(hca_switch_parse(bad[i].text, &s, why, sizeof(why)), -EINVAL);
		if (strstr(why, bad[i].part) == NULL)
			fail_msg("\"%s\": %s", bad[i].text, why);
	}
	assert_int_equal(hca_switch_parse("rate=12.5,kmin=5e4", &s, why, sizeof(why)), 0);
	assert_int_equal(s.rate_mbps, 12500);
	assert_int_equal(s.kmax, 50000);
	assert_true(s.pmax == 1);
	assert_int_equal(s.xoff, 0);
}

static void
refuses(void **state)
{
	static const struct hca_port_switch_config bad[] = {
		{.ports = 4},
		{.ports = 1, .settings.rate_mbps = 1},
		{.ports = HCA_SWITCH_PORTS + 1, .settings.rate_mbps = 1},
		{.ports = 2, .settings = {.rate_mbps = 1, .kmin = 2, .kmax = 1}},
		{.ports = 2, .settings = {.rate_mbps = 1, .pmax = 1.5}},
		{.ports = 2, .settings = {.rate_mbps = 1, .xon = 1}},
	};
	struct hca_port *p[HCA_SWITCH_PORTS + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(hca_port_switch_open(&bad[i], p), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_times),
		cmocka_unit_test(rates_are_not_rounded),
		cmocka_unit_test(link_stalls),
		cmocka_unit_test(order_and_delays),
		cmocka_unit_test(rate_changes),
		cmocka_unit_test(queue_drops_tail),
		cmocka_unit_test(marking_probability),
		cmocka_unit_test(pfc_pauses),
		cmocka_unit_test(without_pfc),
		cmocka_unit_test(many_signals),
		cmocka_unit_test(addresses),
		cmocka_unit_test(too_many_addresses),
		cmocka_unit_test(missed),
		cmocka_unit_test(one_thread),
		cmocka_unit_test(texts),
		cmocka_unit_test(refuses),
	};

	return cmocka_run_group_tests(tests, rig_setup, NULL);
}
