/* SPDX-License-Identifier: BSD-3-Clause */

/* The responder: two of them on a simulated wire, and frames of strangers. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ip.h>

#include "arp_rig.h"

/* Request, answer, known: both IP versions, with and without a VLAN. */
static void
finds_each_other(void **state)
{
	static const struct {
		uint8_t gid[16];
		uint16_t vlan;
	} who[] = {
		{V4(10, 0, 0, 2), NONE},
		{V6(2), NONE},
		{V4(10, 0, 7, 2), 7},
		{{0x20, 1, 0xd, 0xb8, 0, 0, 0, 7, [15] = 2}, 7},
	};
	uint8_t mac[6];

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		memset(mac, 0, 6);
		/* the answer arrives while the request is sent */
		assert_int_equal(rig_lookup(who[i].gid, who[i].vlan, mac), 0);
		assert_memory_equal(mac, y_mac, 6);
		assert_memory_equal(x.hop.gid, who[i].gid, 16);
	}
	assert_int_equal(x.changes, 4);
	assert_int_equal(rig_stats(&x).arp_answers, 2);
	assert_int_equal(rig_stats(&x).nd_answers, 2);
	assert_int_equal(rig_stats(&y).arp_requests, 2);
	assert_int_equal(rig_stats(&y).nd_requests, 2);
	/* the other end does not learn from a request */
	assert_int_equal(y.changes, 0);
	/* known: no further requests */
	assert_int_equal(rig_lookup(y4, NONE, mac), 0);
	assert_int_equal(rig_stats(&x).questions, 4);
}

static void
asked_often(void **state)
{
	uint8_t mac[6];
	uint64_t start = now;

	(void)state;
	assert_int_equal(rig_lookup(z4, NONE, mac), -EAGAIN);
	while (rig_lookup(z4, NONE, mac) == -EAGAIN)
		rig_run(50 * MS);
	assert_int_equal(rig_lookup(z4, NONE, mac), -EHOSTUNREACH);
	assert_in_range(now - start, 3150 * MS, 3300 * MS);
	assert_int_equal(rig_stats(&x).questions, 8);
	assert_int_equal(rig_stats(&x).given_up, 1);
	assert_int_equal(x.lost_hops, 1);
	/* resolved again, but not at once */
	rig_run(1500 * MS);
	assert_int_equal(rig_lookup(z4, NONE, mac), -EAGAIN);
	assert_int_equal(rig_stats(&x).questions, 9);
}

static void
lost_question(void **state)
{
	uint8_t mac[6];

	(void)state;
	x.cut = true;
	assert_int_equal(rig_lookup(y6, NONE, mac), -EAGAIN);
	x.cut = false;
	rig_run(150 * MS);
	assert_int_equal(rig_lookup(y6, NONE, mac), 0);
	assert_int_equal(rig_stats(&x).questions, 2);
}

/*
 * Distant destinations use the gateway, link-local ones do not; without a gateway all are on-link.
 */
static void
gateways(void **state)
{
	static const uint8_t ll[16] = {0xfe, 0x80, [15] = 9};
	struct arp_nd_hop hop;
	uint8_t mac[6];

	(void)state;
	assert_int_equal(arp_nd_lookup(x.a, far4, NONE, now, mac, &hop), 0);
	assert_memory_equal(hop.gid, y4, 16);
	assert_memory_equal(mac, y_mac, 6);
	assert_int_equal(arp_nd_lookup(x.a, ll, NONE, now, mac, &hop), -EAGAIN);
	assert_memory_equal(hop.gid, ll, 16);
	assert_int_equal(arp_nd_lookup(x.a, far4, 7, now, mac, &hop), -EAGAIN);
	assert_memory_equal(hop.gid, far4, 16);
}

/*
 * The peer comes back with another MAC address: its announcement triggers a request, whose answer
 * counts.
 */
static void
peer_moves(void **state)
{
	uint8_t mac[6];

	(void)state;
	assert_int_equal(rig_lookup(y4, NONE, mac), 0);
	assert_int_equal(rig_lookup(y6, NONE, mac), 0);
	rig_run(5 * SECOND);
	arp_nd_destroy(y.a);
	rig_make(&y, z_mac, y4, y6, &x);
	rig_run(3 * SECOND); /* it announces itself */
	assert_int_equal(rig_lookup(y4, NONE, mac), 0);
	assert_memory_equal(mac, z_mac, 6);
	assert_int_equal(rig_lookup(y6, NONE, mac), 0);
	assert_memory_equal(mac, z_mac, 6);
	assert_int_equal(rig_stats(&x).moved, 2);
}

/* Without announcements, known next hops are verified from time to time. */
static void
checked_again(void **state)
{
	uint8_t mac[6];
	uint64_t questions;

	(void)state;
	assert_int_equal(rig_lookup(y4, NONE, mac), 0);
	questions = rig_stats(&x).questions;
	rig_run(31 * SECOND);
	assert_int_equal(rig_stats(&x).questions, questions + 1);
	assert_memory_equal(x.last, y_mac, 6); /* unicast to the known MAC address */
	x.cut = true;
	rig_run(40 * SECOND);
	assert_int_equal(rig_stats(&x).given_up, 1);
}

static void
announces(void **state)
{
	(void)state;
	rig_run(5 * SECOND);
	assert_int_equal(rig_stats(&x).announcements, 8);
	assert_int_equal(rig_stats(&y).unasked, 8);
	arp_nd_announce(x.a, now);
	rig_run(5 * SECOND);
	assert_int_equal(rig_stats(&x).announcements, 16);
}

/* ---- frames by hand ---- */

static void
arp_bytes(void **state)
{
	static const uint8_t want[] = {2,  0, 0, 0, 0, 0x0c, 2, 0, 0, 0,    0,	0x0a, 8, 6,
				       0,  1, 8, 0, 6, 4,    0, 2, 2, 0,    0,	0,    0, 0x0a,
				       10, 0, 0, 1, 2, 0,    0, 0, 0, 0x0c, 10, 0,    0, 3};
	uint8_t f[64];

	(void)state;
	x.cut = true;
	rig_put(f, frame_arp(f, all, -1, 1, z_mac, z4 + 12, x4 + 12));
	assert_int_equal(x.sent, 1);
	assert_int_equal(x.last_len, 60);
	assert_memory_equal(x.last, want, sizeof(want));
	/* tagged: answered in that VLAN, and only for its address */
	rig_put(f, frame_arp(f, all, 7, 1, z_mac, z4 + 12, x4 + 12));
	assert_int_equal(x.sent, 1);
	rig_put(f, frame_arp(f, all, 7, 1, z_mac, z4 + 12, (const uint8_t[]){10, 0, 7, 1}));
	assert_int_equal(x.sent, 2);
	assert_memory_equal(x.last + 12, "\x81\0\0\7\x08\6", 6);
	/* a priority tag counts as no VLAN */
	rig_put(f, frame_arp(f, all, 0, 1, z_mac, z4 + 12, x4 + 12));
	assert_int_equal(x.sent, 3);
	assert_memory_equal(x.last + 12, "\x08\6", 2);
	assert_int_equal(rig_stats(&x).not_ours, 1);
}

static void
hostile_arp(void **state)
{
	const uint8_t group[6] = {1, 0, 0, 0, 0, 1}, zero[6] = {0};
	uint8_t f[64], mac[6];
	uint32_t n;

	(void)state;
	x.cut = true;
	n = frame_arp(f, all, -1, 1, z_mac, z4 + 12, x4 + 12);
	for (uint32_t k = 0; k < n; k++)
		rig_put(f, k);
	assert_int_equal(rig_stats(&x).malformed, n);
	for (unsigned int i = 14; i < 20; i++) {
		f[i] ^= 1;
		rig_put(f, n);
		f[i] ^= 1;
	}
	f[21] = 9;
	rig_put(f, n);
	assert_int_equal(rig_stats(&x).malformed, n + 7);
	/* from a group, from address 0, from our own, for our own address */
	rig_put(f, frame_arp(f, all, -1, 1, group, z4 + 12, x4 + 12));
	rig_put(f, frame_arp(f, all, -1, 1, zero, z4 + 12, x4 + 12));
	rig_put(f, frame_arp(f, all, -1, 1, x_mac, z4 + 12, x4 + 12));
	rig_put(f, frame_arp(f, all, -1, 2, z_mac, x4 + 12, x4 + 12));
	assert_int_equal(rig_stats(&x).spoofed, 4);
	assert_int_equal(x.sent, 0);
	/* answers without a request do not fill the table */
	rig_put(f, frame_arp(f, x_mac, -1, 2, y_mac, z4 + 12, x4 + 12));
	rig_put(f, frame_arp(f, all, -1, 2, z_mac, z4 + 12, z4 + 12));
	assert_int_equal(rig_stats(&x).unasked, 2);
	assert_int_equal(rig_lookup(z4, NONE, mac), -EAGAIN);
	/* while a request is open, only a unicast answer with that address and VLAN counts */
	rig_put(f, frame_arp(f, all, -1, 2, z_mac, z4 + 12, x4 + 12));
	rig_put(f, frame_arp(f, x_mac, 7, 2, z_mac, z4 + 12, x4 + 12));
	rig_put(f, frame_arp(f, x_mac, -1, 2, z_mac, y4 + 12, x4 + 12));
	rig_put(f, frame_arp(f, y_mac, -1, 2, z_mac, z4 + 12, x4 + 12));
	assert_int_equal(rig_lookup(z4, NONE, mac), -EAGAIN);
	rig_put(f, frame_arp(f, x_mac, -1, 2, z_mac, z4 + 12, x4 + 12));
	assert_int_equal(rig_lookup(z4, NONE, mac), 0);
	/* and later answers cannot replace it */
	rig_run(5 * SECOND);
	rig_put(f, frame_arp(f, x_mac, -1, 2, y_mac, z4 + 12, x4 + 12));
	rig_put(f, frame_arp(f, all, -1, 1, y_mac, z4 + 12, z4 + 12));
	assert_int_equal(rig_lookup(z4, NONE, mac), 0);
	assert_memory_equal(mac, z_mac, 6);
}

static void
hostile_nd(void **state)
{
	static const uint8_t any[16], z6[16] = V6(3), group[16] = {0xff, 2, [15] = 1};
	uint8_t f[128], mac[6];
	uint64_t bad;
	uint32_t n;

	(void)state;
	x.cut = true;
	n = frame_nd(f, 135, 0, z6, x6, 1, 1, 255, 0);
	rig_put(f, n);
	assert_int_equal(rig_stats(&x).nd_requests, 1);
	for (uint32_t k = 0; k < n; k++)
		rig_put(f, k);
	bad = rig_stats(&x).malformed;
	assert_int_equal(bad, n);
	rig_put(f, frame_nd(f, 135, 0, z6, x6, 1, 1, 254, 0)); /* has passed a router */
	rig_put(f, frame_nd(f, 135, 0, z6, x6, 1, 1, 255, 1));
	rig_put(f, frame_nd(f, 135, 0, z6, x6, 1, 0, 255, 0)); /* option of length 0 */
	rig_put(f, frame_nd(f, 135, 0, z6, x6, 1, 9, 255, 0)); /* longer than the packet */
	rig_put(f, frame_nd(f, 135, 0, z6, group, 1, 1, 255, 0));
	/* a probe without a source cannot have the option */
	rig_put(f, frame_nd(f, 135, 0, any, x6, 1, 1, 255, 0));
	rig_put(f, frame_nd(f, 136, 0x40, z6, group, 2, 1, 255, 0));
	assert_int_equal(rig_stats(&x).malformed, bad + 7);
	rig_put(f, frame_nd(f, 135, 0, x6, x6, 1, 1, 255, 0));
	rig_put(f, frame_nd(f, 136, 0x40, z6, x6, 2, 1, 255, 0));
	rig_put(f, frame_nd(f, 135, 0, group, x6, 1, 1, 255, 0));
	assert_int_equal(rig_stats(&x).spoofed, 3);
	assert_int_equal(x.sent, 1);
	/* advertisements: not requested; unsolicited; without an address; the right one */
	rig_put(f, frame_nd(f, 136, 0x60, z6, y6, 2, 1, 255, 0));
	assert_int_equal(rig_lookup(z6, NONE, mac), -EAGAIN);
	rig_put(f, frame_nd(f, 136, 0x20, z6, z6, 2, 1, 255, 0));
	rig_put(f, frame_nd(f, 136, 0x60, z6, z6, 14, 1, 255, 0));
	assert_int_equal(rig_lookup(z6, NONE, mac), -EAGAIN);
	rig_put(f, frame_nd(f, 136, 0x60, z6, z6, 2, 1, 255, 0));
	assert_int_equal(rig_lookup(z6, NONE, mac), 0);
	assert_memory_equal(mac, z_mac, 6);
	assert_int_equal(rig_stats(&x).unasked, 3);
}

/* A probe for our address (duplicate address detection) is answered to all nodes. */
static void
nd_probe(void **state)
{
	static const uint8_t any[16], group[16] = {0xff, 2, [11] = 1, 0xff, 0, 0, 1};
	uint8_t body[24] = {135}, f[128];

	(void)state;
	x.cut = true;
	memcpy(body + 8, x6, 16);
	rig_put(f, frame_icmp6(f, (const uint8_t[]){0x33, 0x33, 0xff, 0, 0, 1}, any, group, body,
			       24, 255, 0));
	assert_int_equal(x.sent, 1);
	assert_memory_equal(x.last, "\x33\x33\0\0\0\1", 6);
	assert_int_equal(x.last[14 + 40], 136);
	assert_int_equal(x.last[14 + 44], 0x20);
}

static uint32_t
ping4(uint8_t *f, const uint8_t *dst_mac, const uint8_t *src, const uint8_t *dst, uint32_t data)
{
	struct rte_ipv4_hdr ip = {.version_ihl = 0x45,
				  .total_length = rte_cpu_to_be_16((uint16_t)(28 + data)),
				  .time_to_live = 3,
				  .next_proto_id = 1};
	uint32_t n = frame_ether(f, dst_mac, z_mac, -1, 0x0800);
	uint16_t sum;

	memcpy(&ip.src_addr, src + 12, 4);
	memcpy(&ip.dst_addr, dst + 12, 4);
	ip.hdr_checksum = rte_ipv4_cksum(&ip);
	memcpy(f + n, &ip, 20);
	memset(f + n + 20, 0, 8);
	f[n + 20] = 8;
	f[n + 25] = 0x77;
	for (uint32_t i = 0; i < data; i++)
		f[n + 28 + i] = (uint8_t)(i * 7);
	sum = (uint16_t)~rte_raw_cksum(f + n + 20, 8 + data);
	memcpy(f + n + 22, &sum, 2);
	return n + 28 + data;
}

static void
echo(void **state)
{
	static const uint8_t z6[16] = V6(3);
	uint8_t f[ARP_ND_FRAME_MAX + 100], body[1200] = {128};

	(void)state;
	x.cut = true;
	for (uint32_t data = 0; data < 4400; data += 311) {
		uint32_t n = ping4(f, x_mac, z4, x4, data);

		rig_put(f, n);
		assert_int_equal(x.last_len, n);
		assert_memory_equal(x.last, z_mac, 6);
		assert_memory_equal(x.last + 26, x4 + 12, 4);
		assert_memory_equal(x.last + 30, z4 + 12, 4);
		assert_int_equal(x.last[22], 64);
		assert_int_equal(rte_raw_cksum(x.last + 14, 20), 0xffff);
		assert_int_equal(rte_raw_cksum(x.last + 34, 8 + data), 0xffff);
		assert_int_equal(x.last[34], 0);
		assert_memory_equal(x.last + 38, f + 38, 4 + data);
	}
	for (uint32_t i = 8; i < sizeof(body); i++)
		body[i] = (uint8_t)i;
	rig_put(f, frame_icmp6(f, x_mac, z6, x6, body, sizeof(body), 64, 0));
	assert_int_equal(x.last[54], 129);
	assert_memory_equal(x.last + 58, body + 4, sizeof(body) - 4);
	assert_int_equal(rte_ipv6_udptcp_cksum((void *)(x.last + 14), x.last + 54), 0);
	assert_int_equal(rig_stats(&x).echo_requests, 16);
}

static void
hostile_echo(void **state)
{
	static const uint8_t z6[16] = V6(3), bcast[16] = V4(10, 0, 0, 255),
			     net[16] = V4(0, 0, 0, 0), group[16] = V4(224, 0, 0, 1),
			     loop[16] = V4(127, 0, 0, 1);
	uint8_t f[2048], body[8] = {128};
	uint32_t n, k;

	(void)state;
	x.cut = true;
	n = ping4(f, x_mac, z4, x4, 20);
	for (k = 0; k < n; k++)
		rig_put(f, k);
	for (k = 14; k < n; k++) {
		f[k] ^= 0x10;
		rig_put(f, n);
		f[k] ^= 0x10;
	}
	rig_put(f, ping4(f, all, z4, x4, 20)); /* to all hosts on the link */
	rig_put(f, ping4(f, x_mac, z4, bcast, 20));
	rig_put(f, ping4(f, x_mac, bcast, y4, 20));
	rig_put(f, ping4(f, y_mac, z4, x4, 20));
	assert_int_equal(x.sent, 0);
	assert_int_equal(rig_stats(&x).spoofed, 0);
	rig_put(f, ping4(f, x_mac, net, x4, 20));
	rig_put(f, ping4(f, x_mac, group, x4, 20));
	rig_put(f, ping4(f, x_mac, loop, x4, 20));
	rig_put(f, ping4(f, x_mac, x4, x4, 20));
	assert_int_equal(rig_stats(&x).spoofed, 4);
	rig_put(f, frame_icmp6(f, x_mac, z6, x6, body, 8, 64, 1));
	rig_put(f, frame_icmp6(f, all, z6, x6, body, 8, 64, 0));
	rig_put(f, frame_icmp6(f, x_mac, z6, y6, body, 8, 64, 0));
	assert_int_equal(x.sent, 0);
}

/* A flood is answered at the allowed rate, and later again. */
static void
limited(void **state)
{
	uint8_t f[64];
	uint32_t n = frame_arp(f, all, -1, 1, z_mac, z4 + 12, x4 + 12);

	(void)state;
	x.cut = true;
	for (unsigned int i = 0; i < 5000; i++)
		rig_put(f, n);
	assert_int_equal(x.sent, 1000);
	assert_int_equal(rig_stats(&x).limited, 4000);
	now += 10 * MS;
	for (unsigned int i = 0; i < 500; i++)
		rig_put(f, n);
	assert_int_equal(x.sent, 1100);
	now += SECOND;
	for (unsigned int i = 0; i < 500; i++)
		rig_put(f, n);
	assert_int_equal(x.sent, 1600);
}

/* More next hops than entries: those being resolved are not evicted. */
static void
table_full(void **state)
{
	uint8_t gid[16] = {0xfe, 0x80}, mac[6];

	(void)state;
	assert_int_equal(rig_lookup(y4, NONE, mac), 0);
	x.cut = true;
	for (unsigned int i = 0; i < ARP_ND_ENTRIES - 1; i++) {
		gid[15] = (uint8_t)i;
		gid[14] = 1;
		assert_int_equal(rig_lookup(gid, NONE, mac), -EAGAIN);
	}
	gid[14] = 2;
	assert_int_equal(rig_lookup(gid, NONE, mac), -EAGAIN); /* it evicts y, which is known */
	assert_int_equal(rig_lookup(y4, NONE, mac), -ENOBUFS);
	rig_run(4 * SECOND);
	x.cut = false;
	assert_int_equal(rig_lookup(y4, NONE, mac), 0);
}

/*
 * Valid frames with some bytes changed, and random ones: each is counted once and answered at most
 * once.
 */
static void
noise(void **state)
{
	static const uint8_t z6[16] = V6(3);
	const char *env = getenv("ARP_ND_SEED");
	unsigned int seed = env != NULL ? (unsigned int)strtoul(env, NULL, 0) : 1;
	uint8_t f[256];

	(void)state;
	printf("seed %u\n", seed);
	x.cut = true;
	for (unsigned int i = 0; i < 60000; i++) {
		unsigned int before = x.sent, r = (unsigned int)rand_r(&seed);
		uint32_t n;

		now += MS;
		switch (r % 4) {
		case 0:
			n = frame_arp(f, r & 16 ? all : x_mac, r & 32 ? 7 : -1, 1 + (r >> 8 & 1),
				      z_mac, z4 + 12, x4 + 12);
			break;
		case 1:
			n = frame_nd(f, 135 + (r >> 8 & 1), (uint8_t)(r >> 9), z6, r & 64 ? x6 : z6,
				     1 + (r >> 10 & 1), 1, 255, 0);
			break;
		case 2:
			n = ping4(f, x_mac, z4, x4, r >> 8 & 63);
			break;
		default:
			n = 14 + (r >> 8) % 100;
			for (uint32_t k = 0; k < n; k++)
				f[k] = (uint8_t)rand_r(&seed);
			memcpy(f, x_mac, 6);
		}
		for (unsigned int k = r >> 20 & 3; k != 0; k--)
			f[(unsigned int)rand_r(&seed) % n] ^= (uint8_t)rand_r(&seed);
		if (r & 0x8000000)
			n = (unsigned int)rand_r(&seed) % (n + 1);
		rig_put(f, n);
		assert_true(x.sent <= before + 2);
	}
}

static void
too_many_addresses(void **state)
{
	struct arp_nd_config cfg = {.num_addresses = ARP_ND_ADDRESSES + 1};
	struct arp_nd *a = NULL;

	(void)state;
	assert_int_equal(arp_nd_create(&cfg, &a), -EINVAL);
	assert_null(a);
}

#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(finds_each_other),
		T(asked_often),
		T(lost_question),
		T(gateways),
		T(peer_moves),
		T(checked_again),
		T(announces),
		T(arp_bytes),
		T(hostile_arp),
		T(hostile_nd),
		T(nd_probe),
		T(echo),
		T(hostile_echo),
		T(limited),
		T(table_full),
		T(noise),
		cmocka_unit_test(too_many_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
