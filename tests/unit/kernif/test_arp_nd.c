/* SPDX-License-Identifier: BSD-3-Clause */

/* The responder: two of them on one wire under simulated time, and frames by strangers. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ip.h>

#include "arp_nd.h"

#define SECOND 1000000000ull
#define MS 1000000ull
#define NONE ARP_ND_NO_VLAN

/* One end of the wire; what it sends is queued, and kept as `last`. */
struct end {
	struct arp_nd *a;
	struct end *peer;
	bool cut;
	uint8_t last[ARP_ND_FRAME_MAX];
	uint32_t last_len;
	unsigned int sent, changes, lost_hops;
	struct arp_nd_hop hop;
	uint8_t hop_mac[6];
};

static struct end x, y;
static uint64_t now;

static const uint8_t x_mac[6] = {2, 0, 0, 0, 0, 0x0a}, y_mac[6] = {2, 0, 0, 0, 0, 0x0b};
static const uint8_t z_mac[6] = {2, 0, 0, 0, 0, 0x0c};
#define V4(a, b, c, d) \
	{ \
		[10] = 0xff, 0xff, a, b, c, d \
	}
#define V6(last) \
	{ \
		0x20, 1, 0xd, 0xb8, [15] = last \
	}
static const uint8_t x4[16] = V4(10, 0, 0, 1), y4[16] = V4(10, 0, 0, 2), z4[16] = V4(10, 0, 0, 3);
static const uint8_t x6[16] = V6(1), y6[16] = V6(2), far4[16] = V4(8, 8, 8, 8);

static void
on_send(void *arg, const uint8_t *frame, uint32_t len)
{
	struct end *e = arg;

	assert_true(len >= 42 && len <= ARP_ND_FRAME_MAX);
	e->sent++;
	memcpy(e->last, frame, len);
	e->last_len = len;
	if (!e->cut && e->peer != NULL && e->peer->a != NULL)
		arp_nd_input(e->peer->a, frame, len, now);
}

static void
on_change(void *arg, const struct arp_nd_hop *hop, const uint8_t *mac)
{
	struct end *e = arg;

	e->hop = *hop;
	e->changes += mac != NULL;
	e->lost_hops += mac == NULL;
	if (mac != NULL)
		memcpy(e->hop_mac, mac, 6);
}

static void
make(struct end *e, const uint8_t mac[6], const uint8_t g4[16], const uint8_t g6[16],
     struct end *peer)
{
	struct arp_nd_address own[4] = {
		{.prefix = 24, .vlan_id = NONE},
		{.prefix = 64, .vlan_id = NONE},
		{.prefix = 24, .vlan_id = 7},
		{.prefix = 64, .vlan_id = 7},
	};
	const struct arp_nd_hop gw = {.gid = V4(10, 0, 0, 2), .vlan_id = NONE};
	struct arp_nd_config cfg = {
		.addresses = own,
		.num_addresses = 4,
		.gateways = &gw,
		.num_gateways = 1,
		.send = on_send,
		.changed = on_change,
		.arg = e,
	};

	for (unsigned int i = 0; i < 4; i++)
		memcpy(own[i].gid, i % 2 ? g6 : g4, 16);
	own[2].gid[14] = 7; /* 10.0.7.x */
	own[3].gid[7] = 7;
	memcpy(cfg.mac, mac, 6);
	*e = (struct end){.peer = peer};
	assert_int_equal(arp_nd_create(&cfg, &e->a), 0);
}

static int
setup(void **state)
{
	(void)state;
	now = 100 * SECOND;
	x.a = y.a = NULL;
	make(&x, x_mac, x4, x6, &y);
	make(&y, y_mac, y4, y6, &x);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	arp_nd_destroy(x.a);
	arp_nd_destroy(y.a);
	return 0;
}

static struct arp_nd_stats
stats(struct end *e)
{
	struct arp_nd_stats s;

	arp_nd_stats(e->a, &s);
	return s;
}

static uint64_t
frames_counted(struct end *e)
{
	struct arp_nd_stats s = stats(e);

	return s.arp_requests + s.arp_answers + s.nd_requests + s.nd_answers + s.echo_requests +
	       s.not_ours + s.other_protocol + s.malformed + s.spoofed + s.unasked + s.limited;
}

static int
lookup(const uint8_t gid[16], uint16_t vlan, uint8_t mac[6])
{
	struct arp_nd_hop hop;

	return arp_nd_lookup(x.a, gid, vlan, now, mac, &hop);
}

static void
run(uint64_t ns)
{
	for (uint64_t end = now + ns; now < end; now += 50 * MS) {
		arp_nd_tick(x.a, now);
		arp_nd_tick(y.a, now);
	}
}

/* Asked, answered by the other end, known: both versions, with and without a VLAN. */
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
		/* the answer comes while the question is being sent */
		assert_int_equal(lookup(who[i].gid, who[i].vlan, mac), 0);
		assert_memory_equal(mac, y_mac, 6);
		assert_memory_equal(x.hop.gid, who[i].gid, 16);
	}
	assert_int_equal(x.changes, 4);
	assert_int_equal(stats(&x).arp_answers, 2);
	assert_int_equal(stats(&x).nd_answers, 2);
	assert_int_equal(stats(&y).arp_requests, 2);
	assert_int_equal(stats(&y).nd_requests, 2);
	/* the other end has learned nothing by being asked */
	assert_int_equal(y.changes, 0);
	/* known: no more questions */
	assert_int_equal(lookup(y4, NONE, mac), 0);
	assert_int_equal(stats(&x).questions, 4);
}

static void
asked_often(void **state)
{
	uint8_t mac[6];
	uint64_t start = now;

	(void)state;
	assert_int_equal(lookup(z4, NONE, mac), -EAGAIN);
	while (lookup(z4, NONE, mac) == -EAGAIN)
		run(50 * MS);
	assert_int_equal(lookup(z4, NONE, mac), -EHOSTUNREACH);
	assert_in_range(now - start, 3150 * MS, 3300 * MS);
	assert_int_equal(stats(&x).questions, 8);
	assert_int_equal(stats(&x).given_up, 1);
	assert_int_equal(x.lost_hops, 1);
	/* asked anew, but not at once */
	run(1500 * MS);
	assert_int_equal(lookup(z4, NONE, mac), -EAGAIN);
	assert_int_equal(stats(&x).questions, 9);
}

static void
lost_question(void **state)
{
	uint8_t mac[6];

	(void)state;
	x.cut = true;
	assert_int_equal(lookup(y6, NONE, mac), -EAGAIN);
	x.cut = false;
	run(150 * MS);
	assert_int_equal(lookup(y6, NONE, mac), 0);
	assert_int_equal(stats(&x).questions, 2);
}

/* What is far away goes to the gateway; link-local stays; without a gateway everything is here. */
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

/* The peer comes back with another MAC address: its announcement makes us ask, the answer counts. */
static void
peer_moves(void **state)
{
	uint8_t mac[6];

	(void)state;
	assert_int_equal(lookup(y4, NONE, mac), 0);
	assert_int_equal(lookup(y6, NONE, mac), 0);
	run(5 * SECOND);
	arp_nd_destroy(y.a);
	make(&y, z_mac, y4, y6, &x);
	run(3 * SECOND); /* announces itself */
	assert_int_equal(lookup(y4, NONE, mac), 0);
	assert_memory_equal(mac, z_mac, 6);
	assert_int_equal(lookup(y6, NONE, mac), 0);
	assert_memory_equal(mac, z_mac, 6);
	assert_int_equal(stats(&x).moved, 2);
}

/* Nobody announces anything: known next hops are asked again every now and then. */
static void
checked_again(void **state)
{
	uint8_t mac[6];
	uint64_t questions;

	(void)state;
	assert_int_equal(lookup(y4, NONE, mac), 0);
	questions = stats(&x).questions;
	run(31 * SECOND);
	assert_int_equal(stats(&x).questions, questions + 1);
	assert_memory_equal(x.last, y_mac, 6); /* the one that is known is asked alone */
	x.cut = true;
	run(40 * SECOND);
	assert_int_equal(stats(&x).given_up, 1);
}

static void
announces(void **state)
{
	(void)state;
	run(5 * SECOND);
	assert_int_equal(stats(&x).announcements, 8);
	assert_int_equal(stats(&y).unasked, 8);
	arp_nd_announce(x.a, now);
	run(5 * SECOND);
	assert_int_equal(stats(&x).announcements, 16);
}

/* ---- frames by hand ---- */

static uint32_t
ether(uint8_t *f, const uint8_t *dst, const uint8_t *src, int vlan, uint16_t type)
{
	uint32_t n = 12;

	memcpy(f, dst, 6);
	memcpy(f + 6, src, 6);
	if (vlan >= 0) {
		const uint8_t tag[4] = {0x81, 0, (uint8_t)(vlan >> 8), (uint8_t)vlan};

		memcpy(f + n, tag, 4);
		n += 4;
	}
	f[n++] = (uint8_t)(type >> 8);
	f[n++] = (uint8_t)type;
	return n;
}

static uint32_t
arp(uint8_t *f, const uint8_t *dst, int vlan, uint8_t op, const uint8_t *sha, const uint8_t *spa,
    const uint8_t *tpa)
{
	static const uint8_t head[7] = {0, 1, 8, 0, 6, 4, 0};
	uint32_t n = ether(f, dst, z_mac, vlan, 0x0806);

	memcpy(f + n, head, 7);
	f[n + 7] = op;
	memcpy(f + n + 8, sha, 6);
	memcpy(f + n + 14, spa, 4);
	memset(f + n + 18, 0, 6);
	memcpy(f + n + 24, tpa, 4);
	return n + 28;
}

static void
put(const uint8_t *f, uint32_t len)
{
	/* a copy of exactly that length: the sanitizers see what is read behind it */
	uint8_t *exact = malloc(len ? len : 1);
	uint64_t before = frames_counted(&x);

	memcpy(exact, f, len);
	arp_nd_input(x.a, exact, len, now);
	free(exact);
	assert_int_equal(frames_counted(&x), before + 1);
}

static const uint8_t all[6] = {255, 255, 255, 255, 255, 255};

static void
arp_bytes(void **state)
{
	static const uint8_t want[] = {2,  0, 0, 0, 0, 0x0c, 2, 0, 0, 0,    0,	0x0a, 8, 6,
				       0,  1, 8, 0, 6, 4,    0, 2, 2, 0,    0,	0,    0, 0x0a,
				       10, 0, 0, 1, 2, 0,    0, 0, 0, 0x0c, 10, 0,    0, 3};
	uint8_t f[64];

	(void)state;
	x.cut = true;
	put(f, arp(f, all, -1, 1, z_mac, z4 + 12, x4 + 12));
	assert_int_equal(x.sent, 1);
	assert_int_equal(x.last_len, 60);
	assert_memory_equal(x.last, want, sizeof(want));
	/* tagged: answered on that VLAN, and only for the address there */
	put(f, arp(f, all, 7, 1, z_mac, z4 + 12, x4 + 12));
	assert_int_equal(x.sent, 1);
	put(f, arp(f, all, 7, 1, z_mac, z4 + 12, (const uint8_t[]){10, 0, 7, 1}));
	assert_int_equal(x.sent, 2);
	assert_memory_equal(x.last + 12, "\x81\0\0\7\x08\6", 6);
	/* a priority tag is no VLAN */
	put(f, arp(f, all, 0, 1, z_mac, z4 + 12, x4 + 12));
	assert_int_equal(x.sent, 3);
	assert_memory_equal(x.last + 12, "\x08\6", 2);
	assert_int_equal(stats(&x).not_ours, 1);
}

static void
hostile_arp(void **state)
{
	const uint8_t group[6] = {1, 0, 0, 0, 0, 1}, zero[6] = {0};
	uint8_t f[64], mac[6];
	uint32_t n;

	(void)state;
	x.cut = true;
	n = arp(f, all, -1, 1, z_mac, z4 + 12, x4 + 12);
	for (uint32_t k = 0; k < n; k++)
		put(f, k);
	assert_int_equal(stats(&x).malformed, n);
	for (unsigned int i = 14; i < 20; i++) {
		f[i] ^= 1;
		put(f, n);
		f[i] ^= 1;
	}
	f[21] = 9;
	put(f, n);
	assert_int_equal(stats(&x).malformed, n + 7);
	/* from a group, from nobody, from us, for our own address */
	put(f, arp(f, all, -1, 1, group, z4 + 12, x4 + 12));
	put(f, arp(f, all, -1, 1, zero, z4 + 12, x4 + 12));
	put(f, arp(f, all, -1, 1, x_mac, z4 + 12, x4 + 12));
	put(f, arp(f, all, -1, 2, z_mac, x4 + 12, x4 + 12));
	assert_int_equal(stats(&x).spoofed, 4);
	assert_int_equal(x.sent, 0);
	/* answers nobody asked for do not fill the table */
	put(f, arp(f, x_mac, -1, 2, y_mac, z4 + 12, x4 + 12));
	put(f, arp(f, all, -1, 2, z_mac, z4 + 12, z4 + 12));
	assert_int_equal(stats(&x).unasked, 2);
	assert_int_equal(lookup(z4, NONE, mac), -EAGAIN);
	/* while the question is open, only an answer to us counts, from that address, on that VLAN */
	put(f, arp(f, all, -1, 2, z_mac, z4 + 12, x4 + 12));
	put(f, arp(f, x_mac, 7, 2, z_mac, z4 + 12, x4 + 12));
	put(f, arp(f, x_mac, -1, 2, z_mac, y4 + 12, x4 + 12));
	put(f, arp(f, y_mac, -1, 2, z_mac, z4 + 12, x4 + 12));
	assert_int_equal(lookup(z4, NONE, mac), -EAGAIN);
	put(f, arp(f, x_mac, -1, 2, z_mac, z4 + 12, x4 + 12));
	assert_int_equal(lookup(z4, NONE, mac), 0);
	/* and afterwards nobody takes it over */
	run(5 * SECOND);
	put(f, arp(f, x_mac, -1, 2, y_mac, z4 + 12, x4 + 12));
	put(f, arp(f, all, -1, 1, y_mac, z4 + 12, z4 + 12));
	assert_int_equal(lookup(z4, NONE, mac), 0);
	assert_memory_equal(mac, z_mac, 6);
}

/* ICMPv6 in a frame; sum: as it should be, or one more. */
static uint32_t
icmp6(uint8_t *f, const uint8_t *dst_mac, const uint8_t *src, const uint8_t *dst,
      const uint8_t *body, uint32_t len, uint8_t hops, unsigned int wrong)
{
	struct rte_ipv6_hdr ip = {.vtc_flow = rte_cpu_to_be_32(6u << 28),
				  .payload_len = rte_cpu_to_be_16((uint16_t)len),
				  .proto = 58,
				  .hop_limits = hops};
	uint32_t n = ether(f, dst_mac, z_mac, -1, 0x86dd);
	uint16_t sum;

	memcpy(ip.src_addr, src, 16);
	memcpy(ip.dst_addr, dst, 16);
	memcpy(f + n, &ip, 40);
	memcpy(f + n + 40, body, len);
	memset(f + n + 42, 0, 2);
	sum = (uint16_t)(rte_ipv6_udptcp_cksum(&ip, f + n + 40) + wrong);
	memcpy(f + n + 42, &sum, 2);
	return n + 40 + len;
}

static const uint8_t *nd_mac = z_mac; /* in the option */

static uint32_t
nd(uint8_t *f, uint8_t type, uint8_t flags, const uint8_t *src, const uint8_t *target,
   uint8_t option, uint8_t units, uint8_t hops, unsigned int wrong)
{
	uint8_t body[32] = {type, [4] = flags, [24] = option, units};

	memcpy(body + 8, target, 16);
	memcpy(body + 26, nd_mac, 6);
	return icmp6(f, x_mac, src, x6, body, 32, hops, wrong);
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
	n = nd(f, 135, 0, z6, x6, 1, 1, 255, 0);
	put(f, n);
	assert_int_equal(stats(&x).nd_requests, 1);
	for (uint32_t k = 0; k < n; k++)
		put(f, k);
	bad = stats(&x).malformed;
	assert_int_equal(bad, n);
	put(f, nd(f, 135, 0, z6, x6, 1, 1, 254, 0)); /* came through a router */
	put(f, nd(f, 135, 0, z6, x6, 1, 1, 255, 1));
	put(f, nd(f, 135, 0, z6, x6, 1, 0, 255, 0)); /* option without length */
	put(f, nd(f, 135, 0, z6, x6, 1, 9, 255, 0)); /* longer than the packet */
	put(f, nd(f, 135, 0, z6, group, 1, 1, 255, 0));
	put(f, nd(f, 135, 0, any, x6, 1, 1, 255, 0)); /* a probe has no source to tell */
	put(f, nd(f, 136, 0x40, z6, group, 2, 1, 255, 0));
	assert_int_equal(stats(&x).malformed, bad + 7);
	put(f, nd(f, 135, 0, x6, x6, 1, 1, 255, 0));
	put(f, nd(f, 136, 0x40, z6, x6, 2, 1, 255, 0));
	put(f, nd(f, 135, 0, group, x6, 1, 1, 255, 0));
	assert_int_equal(stats(&x).spoofed, 3);
	assert_int_equal(x.sent, 1);
	/* advertisements: unasked; unsolicited; without an address; the right one */
	put(f, nd(f, 136, 0x60, z6, y6, 2, 1, 255, 0));
	assert_int_equal(lookup(z6, NONE, mac), -EAGAIN);
	put(f, nd(f, 136, 0x20, z6, z6, 2, 1, 255, 0));
	put(f, nd(f, 136, 0x60, z6, z6, 14, 1, 255, 0));
	assert_int_equal(lookup(z6, NONE, mac), -EAGAIN);
	put(f, nd(f, 136, 0x60, z6, z6, 2, 1, 255, 0));
	assert_int_equal(lookup(z6, NONE, mac), 0);
	assert_memory_equal(mac, z_mac, 6);
	assert_int_equal(stats(&x).unasked, 3);
}

/*
 * Somebody answers faster than the owner of an address: the owner, who answers too, keeps it, and what
 * the other one says again is nothing. Over IPv4 and IPv6.
 */
static void
poisoned(void **state)
{
	uint8_t f[128], mac[6];

	(void)state;
	assert_int_equal(lookup(y4, NONE, mac), 0);
	assert_int_equal(lookup(y6, NONE, mac), 0);
	run(5 * SECOND);
	x.cut = true;
	put(f, arp(f, all, -1, 1, z_mac, y4 + 12, y4 + 12));
	put(f, nd(f, 136, 0x20, y6, y6, 2, 1, 255, 0));
	put(f, arp(f, x_mac, -1, 2, z_mac, y4 + 12, x4 + 12));
	put(f, nd(f, 136, 0x60, y6, y6, 2, 1, 255, 0));
	assert_int_equal(stats(&x).moved, 2);
	put(f, arp(f, x_mac, -1, 2, y_mac, y4 + 12, x4 + 12));
	nd_mac = y_mac;
	put(f, nd(f, 136, 0x60, y6, y6, 2, 1, 255, 0));
	nd_mac = z_mac;
	assert_int_equal(stats(&x).disputed, 2);
	assert_memory_equal(x.hop_mac, y_mac, 6);
	for (unsigned int i = 0; i < 100; i++) {
		put(f, arp(f, x_mac, -1, 2, z_mac, y4 + 12, x4 + 12));
		put(f, nd(f, 136, 0x60, y6, y6, 2, 1, 255, 0));
	}
	assert_int_equal(lookup(y4, NONE, mac), 0);
	assert_memory_equal(mac, y_mac, 6);
	assert_int_equal(lookup(y6, NONE, mac), 0);
	assert_memory_equal(mac, y_mac, 6);
	assert_int_equal(stats(&x).disputed, 2);
	/* later the owner's answer is no answer any more; frames of RoCE may still speak for it */
	run(2 * SECOND);
	x.cut = true;
	put(f, arp(f, all, -1, 1, z_mac, y4 + 12, y4 + 12));
	put(f, arp(f, x_mac, -1, 2, z_mac, y4 + 12, x4 + 12));
	now += 2 * SECOND;
	put(f, arp(f, x_mac, -1, 2, y_mac, y4 + 12, x4 + 12));
	assert_int_equal(lookup(y4, NONE, mac), 0);
	assert_memory_equal(mac, z_mac, 6);
	arp_nd_correct(x.a, &x.hop, y_mac, now);
	assert_int_equal(lookup(y4, NONE, mac), 0);
	assert_memory_equal(mac, y_mac, 6);
	assert_int_equal(stats(&x).disputed, 3);
}

/* z's answers for the addresses of y, which nobody has asked for */
static void
claims(void)
{
	uint8_t f[128];

	arp_nd_input(x.a, f, arp(f, x_mac, -1, 2, z_mac, y4 + 12, x4 + 12), now);
	arp_nd_input(x.a, f, nd(f, 136, 0x60, y6, y6, 2, 1, 255, 0), now);
}

static void
expect(const uint8_t want[6])
{
	uint8_t mac[6];

	assert_int_equal(lookup(y4, NONE, mac), 0);
	assert_memory_equal(mac, want, 6);
	assert_int_equal(lookup(y6, NONE, mac), 0);
	assert_memory_equal(mac, want, 6);
}

static void
ask_both(int want)
{
	uint8_t mac[6];

	assert_int_equal(lookup(y4, NONE, mac), want);
	assert_int_equal(lookup(y6, NONE, mac), want);
}

/* It answers before it is asked, and is the first to answer the question: the owner is believed. */
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
	run(150 * MS);
	expect(y_mac);
	claims();
	expect(y_mac);
	assert_int_equal(stats(&x).arp_answers + stats(&x).nd_answers, 2);
}

/* It begins behind the question, is believed, and goes on: that gives it away. */
static void
answers_too_often(void **state)
{
	(void)state;
	x.cut = true;
	ask_both(-EAGAIN);
	claims();
	expect(z_mac);
	x.cut = false;
	now += 250 * MS; /* as late as an answer may be */
	claims();
	expect(z_mac);
	now += 100 * MS;
	claims();
	expect(y_mac);
	for (unsigned int i = 0; i < 100; i++) {
		claims();
		run(50 * MS);
		expect(y_mac);
	}
	assert_int_equal(stats(&x).moved, 2);
	assert_int_equal(stats(&x).disputed, 0);
}

/* Suspected, but nobody else answers: it has the addresses, and is forgiven. */
static void
only_one_answers(void **state)
{
	uint8_t mac[6];

	(void)state;
	claims();
	x.cut = true;
	ask_both(-EAGAIN);
	for (unsigned int i = 0; i < 6; i++) { /* 600 ms */
		run(100 * MS);
		claims();
		ask_both(-EAGAIN);
	}
	run(200 * MS);
	claims();
	expect(z_mac);
	now += 1000 * SECOND; /* forgotten since long */
	assert_int_equal(lookup(y4, NONE, mac), 0);
}

/* The owner of an address that is known answers unasked: asked again, and goes on being used. */
static void
owner_suspected(void **state)
{
	uint8_t f[128];

	(void)state;
	ask_both(0);
	run(5 * SECOND);
	x.cut = true;
	put(f, arp(f, x_mac, -1, 2, y_mac, y4 + 12, x4 + 12));
	for (unsigned int i = 0; i < 12; i++) {
		run(100 * MS);
		put(f, arp(f, x_mac, -1, 2, y_mac, y4 + 12, x4 + 12));
		expect(y_mac);
	}
	assert_int_equal(stats(&x).moved, 0);
	assert_int_equal(stats(&x).given_up, 0);
	assert_int_equal(x.lost_hops, 0);
}

/* The answer comes when it has just been given up. */
static void
late_answer(void **state)
{
	uint8_t mac[6], f[128];

	(void)state;
	x.cut = true;
	assert_int_equal(lookup(y4, NONE, mac), -EAGAIN);
	run(3400 * MS);
	assert_int_equal(lookup(y4, NONE, mac), -EHOSTUNREACH);
	put(f, arp(f, x_mac, -1, 2, y_mac, y4 + 12, x4 + 12));
	assert_int_equal(lookup(y4, NONE, mac), 0);
	assert_memory_equal(mac, y_mac, 6);
	assert_int_equal(stats(&x).moved, 0);
	assert_int_equal(x.changes, 1);
}

/* More suspects than there is room for: the oldest is forgotten, nothing else happens. */
static void
many_suspects(void **state)
{
	uint8_t f[128], ip[4] = {10, 0, 0, 100};

	(void)state;
	claims();
	for (unsigned int i = 0; i < 200; i++) {
		now += MS;
		ip[3] = (uint8_t)i;
		put(f, arp(f, x_mac, -1, 2, z_mac, ip, x4 + 12));
		claims(); /* said again: not the oldest */
	}
	x.cut = true;
	ask_both(-EAGAIN);
	claims();
	ask_both(-EAGAIN);
	x.cut = false;
	run(150 * MS);
	expect(y_mac);
}

/* A probe for our address (duplicate address detection) is answered to all. */
static void
nd_probe(void **state)
{
	static const uint8_t any[16], group[16] = {0xff, 2, [11] = 1, 0xff, 0, 0, 1};
	uint8_t body[24] = {135}, f[128];

	(void)state;
	x.cut = true;
	memcpy(body + 8, x6, 16);
	put(f,
	    icmp6(f, (const uint8_t[]){0x33, 0x33, 0xff, 0, 0, 1}, any, group, body, 24, 255, 0));
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
	uint32_t n = ether(f, dst_mac, z_mac, -1, 0x0800);
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

		put(f, n);
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
	put(f, icmp6(f, x_mac, z6, x6, body, sizeof(body), 64, 0));
	assert_int_equal(x.last[54], 129);
	assert_memory_equal(x.last + 58, body + 4, sizeof(body) - 4);
	assert_int_equal(rte_ipv6_udptcp_cksum((void *)(x.last + 14), x.last + 54), 0);
	assert_int_equal(stats(&x).echo_requests, 16);
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
		put(f, k);
	for (k = 14; k < n; k++) {
		f[k] ^= 0x10;
		put(f, n);
		f[k] ^= 0x10;
	}
	put(f, ping4(f, all, z4, x4, 20)); /* to everybody on the link */
	put(f, ping4(f, x_mac, z4, bcast, 20));
	put(f, ping4(f, x_mac, bcast, y4, 20));
	put(f, ping4(f, y_mac, z4, x4, 20));
	assert_int_equal(x.sent, 0);
	assert_int_equal(stats(&x).spoofed, 0);
	put(f, ping4(f, x_mac, net, x4, 20));
	put(f, ping4(f, x_mac, group, x4, 20));
	put(f, ping4(f, x_mac, loop, x4, 20));
	put(f, ping4(f, x_mac, x4, x4, 20));
	assert_int_equal(stats(&x).spoofed, 4);
	put(f, icmp6(f, x_mac, z6, x6, body, 8, 64, 1));
	put(f, icmp6(f, all, z6, x6, body, 8, 64, 0));
	put(f, icmp6(f, x_mac, z6, y6, body, 8, 64, 0));
	assert_int_equal(x.sent, 0);
}

/* A flood is answered at the rate that is allowed, and later again. */
static void
limited(void **state)
{
	uint8_t f[64];
	uint32_t n = arp(f, all, -1, 1, z_mac, z4 + 12, x4 + 12);

	(void)state;
	x.cut = true;
	for (unsigned int i = 0; i < 5000; i++)
		put(f, n);
	assert_int_equal(x.sent, 1000);
	assert_int_equal(stats(&x).limited, 4000);
	now += 10 * MS;
	for (unsigned int i = 0; i < 500; i++)
		put(f, n);
	assert_int_equal(x.sent, 1100);
	now += SECOND;
	for (unsigned int i = 0; i < 500; i++)
		put(f, n);
	assert_int_equal(x.sent, 1600);
}

/* More next hops than the table holds: those being asked for are not pushed out. */
static void
table_full(void **state)
{
	uint8_t gid[16] = {0xfe, 0x80}, mac[6];

	(void)state;
	assert_int_equal(lookup(y4, NONE, mac), 0);
	x.cut = true;
	for (unsigned int i = 0; i < ARP_ND_ENTRIES - 1; i++) {
		gid[15] = (uint8_t)i;
		gid[14] = 1;
		assert_int_equal(lookup(gid, NONE, mac), -EAGAIN);
	}
	gid[14] = 2;
	assert_int_equal(lookup(gid, NONE, mac), -EAGAIN); /* in place of y, known */
	assert_int_equal(lookup(y4, NONE, mac), -ENOBUFS);
	run(4 * SECOND);
	x.cut = false;
	assert_int_equal(lookup(y4, NONE, mac), 0);
}

/* Good frames with a few bytes changed, and noise: counted once each, never answered twice. */
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
			n = arp(f, r & 16 ? all : x_mac, r & 32 ? 7 : -1, 1 + (r >> 8 & 1), z_mac,
				z4 + 12, x4 + 12);
			break;
		case 1:
			n = nd(f, 135 + (r >> 8 & 1), (uint8_t)(r >> 9), z6, r & 64 ? x6 : z6,
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
		put(f, n);
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

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

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
		T(poisoned),
		T(answers_unasked),
		T(answers_too_often),
		T(only_one_answers),
		T(owner_suspected),
		T(late_answer),
		T(many_suspects),
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
