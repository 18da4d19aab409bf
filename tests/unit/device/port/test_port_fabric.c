/* SPDX-License-Identifier: BSD-3-Clause */

/* A network between two ports: exact times on a simulated clock, paths, losses, queues, marks. */

#include "port_rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "port/port_fabric.h"
#include "port/port_wrap.h"

#define START 1000000u
/* rig_frame() with the bytes that Ethernet adds, at 1 Gb/s: ns */
#define WIRE (14 + 20 + 8 + 12 + 16 + 64 + 4 + HCA_FABRIC_OVERHEAD)
#define SER (WIRE * 8)

static struct hca_port *
open_fabric(const char *text, uint32_t hold, uint64_t seed)
{
	static unsigned int serial;
	char name[16], why[192] = "";
	struct hca_port_fabric_config cfg = {.name = name,
					     .seed = seed,
					     .hold = hold,
					     .socket_id = -1};
	struct hca_port *p;

	snprintf(name, sizeof(name), "tf%u", serial++);
	if (hca_fabric_parse(text, &cfg.fabric, why, sizeof(why)) != 0)
		fail_msg("%s", why);
	assert_int_equal(hca_port_fabric_open(&cfg, rig_sink(), &p), 0);
	return p;
}

static struct hca_port_fabric_stats
stats(struct hca_port *p)
{
	struct hca_port_fabric_stats s;

	hca_port_fabric_stats(p, &s);
	return s;
}

static void
expect_arrivals(struct hca_port *p, uint64_t at, unsigned int before, unsigned int after)
{
	p->ops->poll(p, 0, at - 1);
	assert_int_equal(sink.n, before);
	assert_int_equal(p->ops->deadline(p, 0, START), at);
	p->ops->poll(p, 0, at);
	assert_int_equal(sink.n, after);
}

/* Serialisation, then delay; the second frame begins when the first has left. */
static void
exact_times(void **state)
{
	struct hca_port *p = open_fabric("rate=1,delay=50", 0, 1);

	(void)state;
	rig_send(p, 0, START);
	rig_send(p, 1, START);
	assert_int_equal(hca_port_fabric_held(p), 2);
	expect_arrivals(p, START + SER + 50000, 0, 1);
	expect_arrivals(p, START + 2 * SER + 50000, 1, 2);
	assert_int_equal(rig_psn_of(0), 0);
	assert_int_equal(rig_psn_of(1), 1);
	assert_int_equal(stats(p).arrived, 2);
	rig_done(p);
}

/* 100 Gb/s: 12.96 ns per frame, which must not be rounded for each. */
static void
rates_are_not_rounded(void **state)
{
	struct hca_port *p = open_fabric("rate=100,delay=0", 0, 1);

	(void)state;
	assert_int_equal(WIRE, 162);
	for (uint32_t i = 0; i < 100; i++)
		rig_send(p, i, START);
	p->ops->poll(p, 0, START + 1295);
	assert_int_equal(sink.n, 99);
	p->ops->poll(p, 0, START + 1296);
	assert_int_equal(sink.n, 100);
	rig_done(p);
}

/* The link has been taken for more than 2 us: the port stalls, and says until when. */
static void
link_stalls(void **state)
{
	struct hca_port *p = open_fabric("rate=1,delay=0", 0, 1);
	struct rte_mbuf *m[3] = {rig_frame(0), rig_frame(1), rig_frame(2)};

	(void)state;
	assert_int_equal(p->ops->tx(p, 0, m, 3, START), 2);
	assert_int_equal(stats(p).stalled, 1);
	assert_int_equal(p->ops->deadline(p, 0, START), START + 2 * SER + 1 - HCA_FABRIC_AHEAD_NS);
	assert_int_equal(p->ops->tx(p, 0, m + 2, 1, START + 2 * SER - HCA_FABRIC_AHEAD_NS - 1), 0);
	assert_int_equal(p->ops->tx(p, 0, m + 2, 1, START + 2 * SER - HCA_FABRIC_AHEAD_NS), 1);
	expect_arrivals(p, START + 3 * SER, 2, 3);
	rig_done(p);
}

static struct rte_mbuf *
frame_from(uint16_t sport, uint8_t ecn)
{
	struct rte_mbuf *m = rig_frame(sport);
	uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);

	f[HCA_ETH_LEN + 1] |= ecn;
	hca_put_be16(f + HCA_ETH_LEN + HCA_IPV4_LEN, sport);
	return m;
}

static void
send_from(struct hca_port *p, uint16_t sport, uint8_t ecn, uint64_t now)
{
	struct rte_mbuf *m = frame_from(sport, ecn);

	assert_int_equal(p->ops->tx(p, 0, &m, 1, now), 1);
}

static uint16_t
port_on_path(struct hca_port *p, unsigned int path)
{
	for (uint16_t port = 1;; port++) {
		struct rte_mbuf *m = frame_from(port, 0);
		unsigned int is =
			hca_port_fabric_path(p, rte_pktmbuf_mtod(m, uint8_t *), m->data_len);

		rte_pktmbuf_free(m);
		if (is == path)
			return port;
	}
}

/* Path i of 5 is i * 5 us behind; the link has the rate of all five. */
static void
paths_and_skew(void **state)
{
	struct hca_port *p = open_fabric("rate=1,delay=10,paths=5,skew=20", 0, 1);

	(void)state;
	for (unsigned int i = 0; i < 5; i++)
		send_from(p, port_on_path(p, 4 - i), 0, START + i * SER);
	for (unsigned int i = 0; i < 5; i++) {
		uint64_t at = START + (4 - i) * SER + SER + 10000 + i * 5000;

		p->ops->poll(p, 0, at - 1);
		assert_int_equal(sink.n, i);
		p->ops->poll(p, 0, at);
		assert_int_equal(sink.n, i + 1);
		assert_int_equal(hca_port_fabric_carried(p, i), 1);
	}
	rig_done(p);
}

static void
ports_spread(void **state)
{
	struct hca_port *p = open_fabric("rate=1000,paths=8", 4096, 1);

	(void)state;
	for (uint32_t i = 0; i < 800; i++)
		send_from(p, (uint16_t)(0xc000 + i), 0, START + 100 * i);
	for (unsigned int i = 0; i < 8; i++)
		assert_in_range(hca_port_fabric_carried(p, i), 60, 140);
	assert_int_equal(hca_port_fabric_carried(p, 8), 0);
	rig_done(p);
}

/* Two paths and one port: twice a path's rate comes in. */
static void
queue_drops_tail(void **state)
{
	char text[64];
	struct hca_port *p;

	(void)state;
	snprintf(text, sizeof(text), "rate=1,paths=2,queue=%u", 3 * WIRE);
	p = open_fabric(text, 0, 1);
	/* one each SER / 2: frame i finds i / 2 of a frame less than i waiting */
	for (uint32_t i = 0; i < 8; i++)
		send_from(p, 7, 0, START + i * SER / 2);
	/* waiting in front of 0..4: 0, .5, 1, 1.5, 2; of 5: 2.5, no room; 6: 2; 7: 2.5 */
	assert_int_equal(stats(p).overflown, 2);
	p->ops->poll(p, 0, START + 100 * SER);
	assert_int_equal(sink.n, 6);
	rig_done(p);
}

static uint8_t
tos_of(unsigned int i)
{
	return rte_pktmbuf_mtod(sink.got[i], uint8_t *)[HCA_ETH_LEN + 1];
}

static void
ecn_marks(void **state)
{
	char text[64];
	struct hca_port *p;
	const uint8_t *ip;

	(void)state;
	snprintf(text, sizeof(text), "rate=1,paths=2,ecn=%u", WIRE);
	p = open_fabric(text, 0, 1);
	for (uint32_t i = 0; i < 2; i++)
		send_from(p, 7, 2, START); /* the second finds one frame less half of one */
	send_from(p, 7, 2, START + SER);
	send_from(p, 7, 0, START + SER);
	p->ops->poll(p, 0, START + 100 * SER);
	assert_int_equal(sink.n, 4);
	assert_int_equal(tos_of(0), 2);
	assert_int_equal(tos_of(1), 2);
	assert_int_equal(tos_of(2), 3);
	assert_int_equal(tos_of(3), 0); /* not ECN-capable */
	assert_int_equal(stats(p).marked, 1);
	ip = rte_pktmbuf_mtod(sink.got[2], uint8_t *) + HCA_ETH_LEN;
	assert_int_equal(hca_port_ecn(ip), 3);
	rig_done(p);
}

static unsigned int
run_losses(const char *text, uint64_t seed, uint32_t psn[2000])
{
	struct hca_port *p = open_fabric(text, 4096, seed);
	unsigned int n;

	for (uint32_t i = 0; i < 2000; i++)
		rig_send(p, i, START + 1000 * i);
	p->ops->poll(p, 0, START + 10000000);
	n = sink.n;
	for (unsigned int i = 0; i < n; i++)
		psn[i] = (uint32_t)rig_psn_of(i);
	assert_int_equal(stats(p).lost, 2000 - n);
	assert_int_equal(stats(p).arrived, n);
	rig_done(p);
	return n;
}

static void
losses_follow_the_seed(void **state)
{
	static uint32_t a[2000], b[2000];
	unsigned int n = run_losses("rate=100,loss=0.1", 5, a);

	(void)state;
	assert_in_range(n, 1700, 1900);
	assert_int_equal(run_losses("rate=100,loss=0.1", 5, b), n);
	assert_memory_equal(a, b, n * sizeof(a[0]));
	run_losses("rate=100,loss=0.1", 6, b);
	assert_memory_not_equal(a, b, 100 * sizeof(a[0]));
	assert_int_equal(run_losses("rate=100,loss=0.5,loss0=0", 5, a), 2000);
	assert_int_equal(run_losses("rate=100,loss=0,loss0=1", 5, a), 0);
}

/* The frames of both wires that are sent again: all except acknowledgements. */
static void
lost_data(void **state)
{
	struct hca_port *p = open_fabric("rate=100,loss=1", 0, 1);
	struct rte_mbuf *m[] = {
		rig_ub_frame(HCA_UB_TP_ACK, 1, 2, 3),
		rig_frame_of(HCA_BTH_RC_ACK, 1, 2, 3, false),
		rig_frame_of(HCA_BTH_CNP, 1, 2, 3, false),
		rig_ub_frame(HCA_UB_TP_RTP, 1, 2, 3),
		rig_frame(1),
	};

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(p->ops->tx(p, 0, &m[i], 1, START + 1000 * i), 1);
		assert_int_equal(stats(p).lost, i + 1);
		assert_int_equal(stats(p).lost_data, i < 3 ? 0 : i - 2);
	}
	rig_done(p);
}

/* No room in the network, then none behind it. */
static void
room(void **state)
{
	struct hca_port *p = open_fabric("rate=100,delay=100", 4, 1);
	struct rte_mbuf *m[5];

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		m[i] = rig_frame(i);
	assert_int_equal(p->ops->tx(p, 0, m, 5, START), 4);
	sink.room = 3;
	p->ops->poll(p, 0, START + 200000);
	assert_int_equal(sink.n, 3);
	assert_int_equal(hca_port_fabric_held(p), 1);
	assert_true(p->ops->deadline(p, 0, START + 200000) > START + 200000);
	assert_int_equal(p->ops->tx(p, 0, m + 4, 1, START + 200000), 1);
	assert_int_equal(hca_port_fabric_held(p), 2);
	assert_int_equal(hca_port_fabric_mbufs(p), 5);
	rig_done(p); /* with frames inside */
}

static void
texts(void **state)
{
	static const struct {
		const char *text, *part;
	} bad[] = {
		{"", "NAME=VALUE"},
		{"delay=50", "expected a rate"},
		{"rate=0", "Gb/s of a path"},
		{"rate=100,loss=2", "0 to 1"},
		{"rate=100,paths=65", "1 to 64"},
		{"rate=100,delay=-1", "microseconds"},
		{"rate=100,delay=5x", "microseconds"},
		{"rate=100,queue=0", "bytes"},
		{"rate=100,ecn=nan", "bytes"},
		{"rate=100,speed=5", "one of rate delay paths skew loss loss0 queue ecn"},
		{"rate", "NAME=VALUE"},
	};
	struct hca_fabric f;
	char why[192], longer[400];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(hca_fabric_parse(bad[i].text, &f, why, sizeof(why)), -EINVAL);
		if (strstr(why, bad[i].part) == NULL)
			fail_msg("\"%s\": %s", bad[i].text, why);
	}
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(hca_fabric_parse(longer, &f, why, sizeof(why)), -EINVAL);
	assert_int_equal(hca_fabric_parse("rate=12.5,delay=50,paths=8,skew=20,loss=1e-3,loss0=0.1,"
					  "queue=200000,ecn=5e4",
					  &f, why, sizeof(why)),
			 0);
	assert_int_equal(f.rate_mbps, 12500);
	assert_int_equal(f.delay_ns, 50000);
	assert_int_equal(f.paths, 8);
	assert_int_equal(f.skew_ns, 20000);
	assert_true(f.loss == 1e-3 && f.loss0 == 0.1);
	assert_int_equal(f.queue, 200000);
	assert_int_equal(f.ecn, 50000);
}

static void
refuses(void **state)
{
	struct hca_port_fabric_config cfg = {.name = "tfx", .socket_id = -1};
	struct hca_port *p;

	(void)state;
	assert_int_equal(hca_port_fabric_open(&cfg, rig_sink(), &p), -EINVAL);
	cfg.fabric = (struct hca_fabric){.rate_mbps = 1, .paths = HCA_FABRIC_PATHS + 1};
	assert_int_equal(hca_port_fabric_open(&cfg, rig_sink(), &p), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_times),	cmocka_unit_test(rates_are_not_rounded),
		cmocka_unit_test(link_stalls),	cmocka_unit_test(paths_and_skew),
		cmocka_unit_test(ports_spread), cmocka_unit_test(queue_drops_tail),
		cmocka_unit_test(ecn_marks),	cmocka_unit_test(losses_follow_the_seed),
		cmocka_unit_test(lost_data),	cmocka_unit_test(room),
		cmocka_unit_test(texts),	cmocka_unit_test(refuses),
	};

	return cmocka_run_group_tests(tests, rig_setup, NULL);
}
