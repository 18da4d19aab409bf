/* SPDX-License-Identifier: BSD-3-Clause */

/* Groups of the built-in responder: what is on the wire, and what queries make it send. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dpdk_compat.h>
#include <rte_ip.h>

#include "abi_addr.h"
#include "arp_nd.h"

#define SECOND 1000000000ull
#define MS 1000000ull
#define NONE ARP_ND_NO_VLAN
#define KEPT 512u

#define V4(a, b, c, d) \
	{ \
		[10] = 0xff, 0xff, a, b, c, d \
	}
static const uint8_t mac[6] = {2, 0, 0, 0, 0, 0x0a}, querier_mac[6] = {2, 0, 0, 0, 0, 0x0c};
static const uint8_t made_ll[16] = {0xfe, 0x80, [8] = 0, [11] = 0xff, 0xfe, 0, 0, 0x0a};
static const uint8_t own_ll[16] = {0xfe, 0x80, [15] = 0x70};
static const uint8_t g4[16] = V4(239, 129, 2, 3), h4[16] = V4(224, 0, 1, 129);
static const uint8_t g6[16] = {0xff, 0x15, [14] = 2, 3}, h6[16] = {0xff, 0x05, [15] = 9};

/* What was sent, without what was in front of the message. */
struct sent {
	uint64_t at;
	uint16_t vlan_id;
	bool v4;
	uint8_t dmac[6];
	uint8_t src[16], dst[16]; /* GID form */
	uint8_t message[1500];
	uint32_t len;
};

static struct arp_nd *a;
static struct sent *sent;
static unsigned int num;
static uint64_t now;

static uint32_t
take_ip4(struct sent *s, const uint8_t *p, uint32_t len)
{
	uint32_t total = (uint32_t)p[2] << 8 | p[3];

	assert_int_equal(p[0], 0x46);
	assert_int_equal(p[1], 0xc0);
	assert_true(total <= len);
	assert_int_equal(p[8], 1);
	assert_int_equal(p[9], 2);
	assert_int_equal(rte_raw_cksum(p, 24), 0xffff);
	assert_memory_equal(p + 20, "\x94\x04\0\0", 4);
	hca_gid_from_ip4(s->src, p + 12);
	hca_gid_from_ip4(s->dst, p + 16);
	s->v4 = true;
	s->len = total - 24;
	assert_int_equal(rte_raw_cksum(p + 24, s->len), 0xffff);
	return 24;
}

static uint32_t
take_ip6(struct sent *s, const uint8_t *p, uint32_t len)
{
	uint32_t payload = (uint32_t)p[4] << 8 | p[5];
	struct rte_ipv6_hdr ip;

	assert_int_equal(p[0], 0x60);
	assert_int_equal(payload, len - 40);
	assert_int_equal(p[6], 0);
	assert_int_equal(p[7], 1);
	assert_memory_equal(p + 40, "\x3a\0\x05\x02\0\0\x01\0", 8);
	memcpy(s->src, p + 8, 16);
	memcpy(s->dst, p + 24, 16);
	s->len = payload - 8;
	memcpy(&ip, p, 40);
	ip.proto = 58;
	ip.payload_len = rte_cpu_to_be_16((uint16_t)s->len);
	assert_int_equal(rte_ipv6_udptcp_cksum(&ip, p + 48), 0);
	return 48;
}

static bool
is_group_frame(const uint8_t *frame, uint32_t l3, uint16_t type)
{
	return (type == 0x0800 && frame[l3 + 9] == 2) || (type == 0x86dd && frame[l3 + 6] == 0);
}

static void
on_send(void *arg, const uint8_t *frame, uint32_t len)
{
	uint32_t l3 = 14;
	uint16_t type = (uint16_t)(frame[12] << 8 | frame[13]);
	struct sent *s = &sent[num % KEPT];

	(void)arg;
	memset(s, 0, sizeof(*s));
	s->at = now;
	s->vlan_id = NONE;
	assert_true(len >= 60 && len <= 1518);
	if (type == 0x8100) {
		l3 = 18;
		s->vlan_id = (uint16_t)(frame[14] << 8 | frame[15]);
		type = (uint16_t)(frame[16] << 8 | frame[17]);
	}
	if (!is_group_frame(frame, l3, type))
		return;
	num++;
	memcpy(s->dmac, frame, 6);
	assert_memory_equal(frame + 6, mac, 6);
	l3 += type == 0x0800 ? take_ip4(s, frame + l3, len - l3)
			     : take_ip6(s, frame + l3, len - l3);
	memcpy(s->message, frame + l3, s->len);
}

static int
setup(void **state)
{
	static const struct arp_nd_address own[] = {
		{V4(10, 0, 0, 1), 24, NONE},
		{{0x20, 1, 0xd, 0xb8, [15] = 1}, 64, NONE},
		{V4(10, 0, 7, 1), 24, 7},
		{{0xfe, 0x80, [15] = 0x70}, 64, 7},
		{{0x20, 1, 0xd, 0xb8, 0, 0, 0, 9, [15] = 1}, 64, 9}, /* no IPv4 in this VLAN */
	};
	struct arp_nd_config cfg = {.addresses = own, .num_addresses = 5, .send = on_send};

	(void)state;
	memcpy(cfg.mac, mac, 6);
	cfg.seed = 0x5eed;
	now = 100 * SECOND;
	sent = calloc(KEPT, sizeof(*sent));
	assert_non_null(sent);
	assert_int_equal(arp_nd_create(&cfg, &a), 0);
	num = 0;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	arp_nd_destroy(a);
	free(sent);
	return 0;
}

static void
run(uint64_t ns)
{
	for (uint64_t end = now + ns; now < end; now += 50 * MS)
		arp_nd_tick(a, now);
}

static int
join(const uint8_t gid[16], uint16_t vlan_id)
{
	struct arp_nd_hop g = {.vlan_id = vlan_id};

	memcpy(g.gid, gid, 16);
	return arp_nd_join(a, &g, now);
}

static int
leave(const uint8_t gid[16], uint16_t vlan_id)
{
	struct arp_nd_hop g = {.vlan_id = vlan_id};

	memcpy(g.gid, gid, 16);
	return arp_nd_leave(a, &g, now);
}

/* The frames of a run are forgotten. */
static void
settle(uint64_t ns)
{
	run(ns);
	num = 0;
}

static struct arp_nd_stats
stats(void)
{
	struct arp_nd_stats s;

	arp_nd_stats(a, &s);
	return s;
}

/* A report of IGMPv3 or MLDv2 with count records, of which one says type of group. */
static void
assert_report(const struct sent *s, unsigned int count, uint8_t type, const uint8_t group[16])
{
	static const uint8_t routers4[16] = V4(224, 0, 0, 22),
			     routers6[16] = {0xff, 2, [15] = 0x16};
	uint32_t size = s->v4 ? 8 : 20;

	assert_int_equal(s->v4, hca_gid_is_mapped(group));
	assert_memory_equal(s->dst, s->v4 ? routers4 : routers6, 16);
	assert_memory_equal(s->dmac, s->v4 ? "\x01\0\x5e\0\0\x16" : "\x33\x33\0\0\0\x16", 6);
	assert_int_equal(s->message[0], s->v4 ? 0x22 : 143);
	assert_int_equal(s->message[6] << 8 | s->message[7], count);
	assert_int_equal(s->len, 8 + count * size);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *r = s->message + 8 + i * size;

		assert_int_equal(r[1] | r[2] | r[3], 0); /* no sources, no auxiliary data */
		if (r[0] == type && memcmp(r + 4, s->v4 ? group + 12 : group, s->v4 ? 4 : 16) == 0)
			return;
	}
	fail_msg("the group is not in the report");
}

#define IS_EXCLUDE 2
#define TO_INCLUDE 3
#define TO_EXCLUDE 4

/* ---- joins and leaves ---- */

static void
join_is_reported(void **state)
{
	(void)state;
	assert_int_equal(join(g4, NONE), 0);
	assert_int_equal(join(g6, NONE), 0);
	run(50 * MS);
	assert_int_equal(num, 2);
	assert_report(&sent[0], 1, TO_EXCLUDE, g4);
	assert_report(&sent[1], 1, TO_EXCLUDE, g6);
	assert_memory_equal(sent[0].src + 12, "\x0a\0\0\x01", 4);
	assert_memory_equal(sent[1].src, made_ll, 16);
	run(1100 * MS);
	assert_int_equal(num, 4); /* once more, within a second */
	run(10 * SECOND);
	assert_int_equal(num, 4);
	/* another join is none for the network, nor is the leave of one of two */
	assert_int_equal(join(g4, NONE), 0);
	assert_int_equal(leave(g4, NONE), 0);
	run(5 * SECOND);
	assert_int_equal(num, 4);
	num = 0;
	assert_int_equal(leave(g4, NONE), 0);
	assert_int_equal(leave(g6, NONE), 0);
	run(5 * SECOND);
	assert_int_equal(num, 4);
	for (unsigned int i = 0; i < 4; i++)
		assert_report(&sent[i], 1, TO_INCLUDE, sent[i].v4 ? g4 : g6);
	assert_int_equal(leave(g4, NONE), -ENOENT);
	assert_int_equal(stats().group_reports, 8);
}

static void
vlans_are_tagged(void **state)
{
	(void)state;
	assert_int_equal(join(g4, 7), 0);
	assert_int_equal(join(g6, 7), 0);
	assert_int_equal(join(g4, 9), 0);
	run(50 * MS);
	assert_int_equal(num, 3);
	for (unsigned int i = 0; i < num; i++) {
		assert_report(&sent[i], 1, TO_EXCLUDE, sent[i].v4 ? g4 : g6);
		if (!sent[i].v4) /* the link-local address of that VLAN */
			assert_memory_equal(sent[i].src, own_ll, 16);
		else if (sent[i].vlan_id == 9)
			assert_memory_equal(sent[i].src + 12, "\0\0\0\0", 4);
		else
			assert_memory_equal(sent[i].src + 12, "\x0a\0\x07\x01", 4);
	}
	assert_int_equal(sent[0].vlan_id + sent[1].vlan_id + sent[2].vlan_id, 7 + 7 + 9);
	/* the same group elsewhere is another membership */
	assert_int_equal(leave(g4, NONE), -ENOENT);
	assert_int_equal(join(g4, 8), -EINVAL);
}

static void
not_reported(void **state)
{
	static const uint8_t silent[][16] = {
		V4(224, 0, 0, 1),
		{0xff, 2, [15] = 1},
		{0xff, 1, [15] = 9},
		{0xff, 0, [15] = 9},
	};
	static const uint8_t no_group[][16] = {V4(10, 0, 0, 1),
					       V4(240, 0, 0, 1),
					       {0xfe, 0x80},
					       {0}};

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(join(silent[i], NONE), 0);
		assert_int_equal(leave(silent[i], NONE), 0);
		assert_int_equal(join(no_group[i], NONE), -EINVAL);
	}
	run(3 * SECOND);
	assert_int_equal(num, 0);
}

/* Back before the second report of the leave: joined for the network again. */
static void
left_and_joined(void **state)
{
	(void)state;
	assert_int_equal(join(g4, NONE), 0);
	settle(3 * SECOND);
	assert_int_equal(leave(g4, NONE), 0);
	run(50 * MS);
	assert_report(&sent[0], 1, TO_INCLUDE, g4);
	assert_int_equal(join(g4, NONE), 0);
	settle(3 * SECOND);
	assert_int_equal(leave(g4, NONE), 0);
}

static void
many_groups(void **state)
{
	uint8_t group[16] = V4(239, 1, 0, 0);
	unsigned int records = 0;

	(void)state;
	for (uint32_t i = 0; i < ARP_ND_GROUPS; i++) {
		group[14] = (uint8_t)(i >> 8);
		group[15] = (uint8_t)i;
		assert_int_equal(join(group, NONE), 0);
	}
	assert_int_equal(join(h4, NONE), -ENOSPC);
	run(50 * MS);
	assert_true(num < 30); /* many in a packet */
	for (unsigned int i = 0; i < num; i++)
		records += (unsigned int)(sent[i].message[6] << 8 | sent[i].message[7]);
	assert_int_equal(records, ARP_ND_GROUPS);
	settle(3 * SECOND);
	assert_int_equal(leave(group, NONE), 0);
	settle(3 * SECOND);
	assert_int_equal(join(h4, NONE), 0);
	/* the end of the daemon: all are left */
	settle(3 * SECOND);
	arp_nd_leave_all(a, now);
	records = 0;
	for (unsigned int i = 0; i < num; i++)
		records += (unsigned int)(sent[i].message[6] << 8 | sent[i].message[7]);
	assert_int_equal(records, ARP_ND_GROUPS);
	assert_report(&sent[0], (unsigned int)(sent[0].message[6] << 8 | sent[0].message[7]),
		      TO_INCLUDE, (const uint8_t[16])V4(239, 1, 0, 0));
	settle(3 * SECOND);
	for (uint32_t i = 0; i < ARP_ND_GROUPS; i++) {
		group[14] = (uint8_t)(i >> 8);
		group[15] = (uint8_t)i;
		assert_int_equal(join(group, 7), 0);
	}
}

/* The link comes back, perhaps at another switch. */
static void
announced_again(void **state)
{
	(void)state;
	assert_int_equal(join(g4, NONE), 0);
	assert_int_equal(join(g6, 7), 0);
	settle(3 * SECOND);
	arp_nd_announce(a, now);
	run(3 * SECOND);
	assert_int_equal(num, 4);
	assert_report(&sent[0], 1, TO_EXCLUDE, sent[0].v4 ? g4 : g6);
}

/* ---- queries ---- */

static uint32_t
ether(uint8_t *f, const uint8_t dst[16], uint16_t vlan_id, uint16_t type)
{
	uint32_t n = 12;

	hca_gid_multicast_mac(dst, f);
	memcpy(f + 6, querier_mac, 6);
	if (vlan_id != NONE) {
		memcpy(f + n, "\x81\0", 2);
		f[n + 2] = (uint8_t)(vlan_id >> 8);
		f[n + 3] = (uint8_t)vlan_id;
		n += 4;
	}
	f[n] = (uint8_t)(type >> 8);
	f[n + 1] = (uint8_t)type;
	return n + 2;
}

/* An exact copy, so that sanitizers detect reads beyond its end. */
static void
put(const uint8_t *f, uint32_t len)
{
	uint8_t *exact = malloc(len ? len : 1);

	memcpy(exact, f, len);
	arp_nd_input(a, exact, len, now);
	free(exact);
}

static uint32_t
igmp_frame(uint8_t *f, uint16_t vlan_id, const uint8_t dst[16], const uint8_t *message,
	   uint32_t len)
{
	uint32_t l3 = ether(f, dst, vlan_id, 0x0800);
	uint8_t ip[24] = {0x46, 0xc0, 0, (uint8_t)(24 + len), 0, 0, 0, 0, 1, 2, 0, 0, 10, 0, 0, 9};
	uint16_t sum;

	memcpy(ip + 16, dst + 12, 4);
	memcpy(ip + 20, "\x94\x04\0\0", 4);
	sum = (uint16_t)~rte_raw_cksum(ip, 24);
	memcpy(ip + 10, &sum, 2);
	memcpy(f + l3, ip, 24);
	memcpy(f + l3 + 24, message, len);
	sum = (uint16_t)~rte_raw_cksum(f + l3 + 24, len);
	memcpy(f + l3 + 26, &sum, 2);
	return l3 + 24 + len;
}

static uint32_t
mld_frame(uint8_t *f, uint16_t vlan_id, const uint8_t dst[16], const uint8_t *message, uint32_t len)
{
	uint32_t l3 = ether(f, dst, vlan_id, 0x86dd);
	struct rte_ipv6_hdr ip = {.vtc_flow = rte_cpu_to_be_32(6u << 28),
				  .payload_len = rte_cpu_to_be_16((uint16_t)len),
				  .proto = 58,
				  .hop_limits = 1};
	uint8_t src[16] = {0xfe, 0x80, [15] = 9};
	uint16_t sum;

	memcpy(&ip.src_addr, src, 16);
	memcpy(&ip.dst_addr, dst, 16);
	memcpy(f + l3 + 40, "\x3a\0\x05\x02\0\0\x01\0", 8);
	memcpy(f + l3 + 48, message, len);
	memset(f + l3 + 50, 0, 2);
	sum = rte_ipv6_udptcp_cksum(&ip, f + l3 + 48);
	memcpy(f + l3 + 50, &sum, 2);
	ip.proto = 0;
	ip.payload_len = rte_cpu_to_be_16((uint16_t)(len + 8));
	memcpy(f + l3, &ip, 40);
	return l3 + 48 + len;
}

/* group NULL: a general query. len 8: of IGMPv1 (code 0) or IGMPv2. */
static void
igmp_query(uint16_t vlan_id, const uint8_t *group, uint8_t code, uint32_t len)
{
	static const uint8_t all[16] = V4(224, 0, 0, 1);
	uint8_t f[128], message[16] = {0x11, code};

	if (group != NULL)
		memcpy(message + 4, group + 12, 4);
	put(f, igmp_frame(f, vlan_id, group != NULL ? group : all, message, len));
}

/* len 24: of MLDv1, 28: of MLDv2 */
static void
mld_query(uint16_t vlan_id, const uint8_t *group, uint16_t code, uint32_t len)
{
	static const uint8_t all[16] = {0xff, 2, [15] = 1};
	uint8_t f[160], message[32] = {130, 0, 0, 0, (uint8_t)(code >> 8), (uint8_t)code};

	if (group != NULL)
		memcpy(message + 8, group, 16);
	put(f, mld_frame(f, vlan_id, group != NULL ? group : all, message, len));
}

static void
join_four(void)
{
	assert_int_equal(join(g4, NONE), 0);
	assert_int_equal(join(h4, NONE), 0);
	assert_int_equal(join(g6, NONE), 0);
	assert_int_equal(join(h6, NONE), 0);
	assert_int_equal(join(g4, 7), 0);
	settle(3 * SECOND);
}

static void
general_query(void **state)
{
	uint64_t asked, first = UINT64_MAX, last = 0;

	(void)state;
	join_four();
	for (unsigned int i = 0; i < 40; i++) {
		asked = now;
		num = 0;
		igmp_query(NONE, NULL, 20, 12); /* 2 s */
		mld_query(NONE, NULL, 2000, 28);
		run(2100 * MS);
		assert_int_equal(num, 2);
		for (unsigned int j = 0; j < 2; j++) {
			uint64_t after = sent[j].at - asked;

			assert_int_equal(sent[j].vlan_id, NONE);
			assert_report(&sent[j], 2, IS_EXCLUDE, sent[j].v4 ? g4 : g6);
			assert_report(&sent[j], 2, IS_EXCLUDE, sent[j].v4 ? h4 : h6);
			first = after < first ? after : first;
			last = after > last ? after : last;
		}
	}
	assert_true(first < 400 * MS && last > 1600 * MS); /* spread over the time allowed */
	num = 0;
	igmp_query(7, NULL, 10, 12);
	run(1100 * MS);
	assert_int_equal(num, 1);
	assert_int_equal(sent[0].vlan_id, 7);
	/* a VLAN without addresses */
	igmp_query(8, NULL, 10, 12);
	run(1100 * MS);
	assert_int_equal(num, 1);
	assert_int_equal(stats().group_queries, 81);
}

static void
specific_query(void **state)
{
	static const uint8_t other[16] = V4(239, 9, 9, 9);

	(void)state;
	join_four();
	igmp_query(NONE, g4, 10, 12);
	igmp_query(NONE, other, 10, 12);
	mld_query(NONE, h6, 1000, 28);
	run(1100 * MS);
	assert_int_equal(num, 2);
	for (unsigned int i = 0; i < 2; i++)
		assert_report(&sent[i], 1, IS_EXCLUDE, sent[i].v4 ? g4 : h6);
	/* for sources of a group: it is joined for all sources */
	num = 0;
	igmp_query(NONE, g4, 10, 16);
	run(1100 * MS);
	assert_int_equal(num, 1);
	assert_report(&sent[0], 1, IS_EXCLUDE, g4);
	/* of a group that was left */
	assert_int_equal(leave(g4, NONE), 0);
	settle(3 * SECOND);
	igmp_query(NONE, g4, 10, 12);
	run(1100 * MS);
	assert_int_equal(num, 0);
}

/* Times beyond the linear part of the codes. */
static void
long_times(void **state)
{
	uint64_t asked, last = 0, last6 = 0;

	(void)state;
	join_four();
	for (unsigned int i = 0; i < 40; i++) {
		asked = now;
		num = 0;
		igmp_query(NONE, NULL, 0x8a, 12);	   /* (10 | 16) << 3 tenths: 20.8 s */
		mld_query(NONE, NULL, 0x8000 | 0x400, 28); /* (0x400 | 0x1000) << 3 ms: 40.96 s */
		run(42 * SECOND);
		assert_int_equal(num, 2);
		for (unsigned int j = 0; j < 2; j++) {
			uint64_t after = sent[j].at - asked;

			if (sent[j].v4)
				last = after > last ? after : last;
			else
				last6 = after > last6 ? after : last6;
		}
	}
	assert_in_range(last, 16 * SECOND, 20900 * MS);
	assert_in_range(last6, 33 * SECOND, 41100 * MS);
}

/* A querier of IGMPv2 and MLDv1: their messages, for as long as it is present. */
static void
older_queriers(void **state)
{
	static const uint8_t routers4[16] = V4(224, 0, 0, 2), routers6[16] = {0xff, 2, [15] = 2};

	(void)state;
	join_four();
	igmp_query(NONE, NULL, 10, 8);
	mld_query(NONE, NULL, 1000, 24);
	run(1100 * MS);
	assert_int_equal(num, 4);
	for (unsigned int i = 0; i < 4; i++) {
		const struct sent *s = &sent[i];

		assert_int_equal(s->message[0], s->v4 ? 0x16 : 131);
		assert_int_equal(s->len, s->v4 ? 8 : 24);
		assert_memory_equal(s->v4 ? s->message + 4 : s->message + 8,
				    s->v4 ? s->dst + 12 : s->dst, s->v4 ? 4 : 16);
	}
	num = 0;
	assert_int_equal(leave(g4, NONE), 0);
	assert_int_equal(leave(g6, NONE), 0);
	run(3 * SECOND);
	assert_int_equal(num, 2);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(sent[i].message[0], sent[i].v4 ? 0x17 : 132);
		assert_memory_equal(sent[i].dst, sent[i].v4 ? routers4 : routers6, 16);
	}
	num = 0;
	assert_int_equal(join(g4, NONE), 0);
	run(3 * SECOND);
	assert_int_equal(num, 2);
	assert_int_equal(sent[0].message[0], 0x16);
	/* the other VLAN has no such querier; a newer query changes nothing while one is there */
	num = 0;
	igmp_query(7, NULL, 10, 12);
	igmp_query(NONE, g4, 10, 12);
	run(1100 * MS);
	assert_int_equal(num, 2);
	assert_int_equal(sent[0].message[0] + sent[1].message[0], 0x22 + 0x16);
	settle(260 * SECOND);
	igmp_query(NONE, NULL, 10, 12);
	run(1100 * MS);
	assert_int_equal(num, 1);
	assert_report(&sent[0], 2, IS_EXCLUDE, g4);
}

/* The oldest one says no time, and knows no leaving. */
static void
oldest_querier(void **state)
{
	(void)state;
	join_four();
	igmp_query(NONE, NULL, 0, 8);
	run(10 * SECOND + 100 * MS);
	assert_int_equal(num, 2);
	assert_int_equal(sent[0].message[0], 0x12);
	num = 0;
	igmp_query(NONE, g4, 10, 8); /* IGMPv2 does not end it */
	run(1100 * MS);
	assert_int_equal(num, 1);
	assert_int_equal(sent[0].message[0], 0x12);
	num = 0;
	assert_int_equal(leave(g4, NONE), 0);
	run(3 * SECOND);
	assert_int_equal(num, 0);
	assert_int_equal(leave(g4, NONE), -ENOENT);
}

/* What was to be sent for a newer querier is not sent to an older one. */
static void
older_querier_comes(void **state)
{
	(void)state;
	join_four();
	assert_int_equal(leave(h4, NONE), 0);
	run(50 * MS);
	num = 0;
	igmp_query(NONE, NULL, 50, 12);
	igmp_query(NONE, NULL, 10, 8);
	run(6 * SECOND);
	assert_int_equal(num, 1);
	assert_int_equal(sent[0].message[0], 0x16);
}

static void
floods(void **state)
{
	uint8_t group[16] = V4(239, 1, 0, 0);

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		group[14] = (uint8_t)(i >> 8);
		group[15] = (uint8_t)i;
		assert_int_equal(join(group, NONE), 0);
	}
	settle(3 * SECOND);
	for (uint64_t end = now + 10 * SECOND; now < end; now += MS) {
		igmp_query(NONE, NULL, 1, 12);
		igmp_query(NONE, group, 1, 12);
		arp_nd_tick(a, now);
	}
	/* 1000 groups are 6 packets: at most 2 answers a second, and of the group as many */
	assert_true(num <= 21 * 6 + 21);
	settle(3 * SECOND);
	for (uint64_t end = now + 10 * SECOND; now < end; now += MS) {
		igmp_query(NONE, NULL, 1, 8);
		arp_nd_tick(a, now);
	}
	assert_true(num <= 21 * 1000);
	assert_true(num >= 1000); /* and yet it answers */
	assert_true(stats().group_queries >= 30000);
}

/* ---- what is no query ---- */

static void
bad_queries(void **state)
{
	static const uint8_t all4[16] = V4(224, 0, 0, 1), all6[16] = {0xff, 2, [15] = 1};
	static const uint8_t query4[12] = {0x11, 1}, query6[28] = {130, 0, 0, 0, 0, 10};
	static const uint8_t report4[8] = {0x16, 0, 0, 0, 239, 1, 1, 1};
	uint8_t f[160];
	uint32_t len;

	(void)state;
	join_four();
	len = igmp_frame(f, NONE, all4, query4, 12);
	f[len - 1] ^= 1; /* checksum */
	put(f, len);
	len = igmp_frame(f, NONE, all4, query4, 10); /* a length of no version */
	put(f, len);
	len = igmp_frame(f, NONE, g4, query4, 12); /* a general query to a group */
	put(f, len);
	for (uint32_t cut = 14 + 28; cut < 14 + 36; cut++) /* shorter than it says */
		put(f, cut);
	len = mld_frame(f, NONE, all6, query6, 27);
	put(f, len);
	len = mld_frame(f, NONE, all6, query6, 28);
	f[14 + 7] = 2; /* from beyond a router */
	put(f, len);
	len = mld_frame(f, NONE, all6, query6, 28);
	f[len - 1] ^= 1;
	put(f, len);
	len = mld_frame(f, NONE, all6, query6, 28);
	f[14 + 41] = 9; /* a hop-by-hop header that is longer than the packet */
	put(f, len);
	assert_int_equal(stats().malformed, 3 + 8 + 4);
	len = igmp_frame(f, NONE, g4, report4, 8);
	put(f, len);
	len = mld_frame(f, NONE, all6, query6, 28);
	f[14 + 42] = 6; /* another option than the router alert */
	put(f, len);
	assert_int_equal(stats().other_protocol, 2);
	run(3 * SECOND);
	assert_int_equal(num, 0);
	assert_int_equal(stats().group_queries, 0);
}

static uint64_t
frames_counted(void)
{
	struct arp_nd_stats s = stats();

	return s.arp_requests + s.arp_answers + s.nd_requests + s.nd_answers + s.echo_requests +
	       s.group_queries + s.not_ours + s.other_protocol + s.malformed + s.spoofed +
	       s.unasked + s.limited;
}

/* Queries with damaged bytes: each is counted once, and read within its length. */
static void
damaged(void **state)
{
	static const uint8_t all4[16] = V4(224, 0, 0, 1), all6[16] = {0xff, 2, [15] = 1};
	static const uint8_t query4[16] = {0x11, 1}, query6[32] = {130, 0, 0, 0, 0, 10};
	uint8_t f[160];

	(void)state;
	join_four();
	srand(7);
	for (unsigned int i = 0; i < 20000; i++) {
		uint32_t len = i % 2 ? igmp_frame(f, NONE, all4, query4, 8 + (uint32_t)rand() % 9)
				     : mld_frame(f, NONE, all6, query6, 24 + (uint32_t)rand() % 9);
		uint64_t before = frames_counted();

		for (int n = rand() % 4; n > 0; n--)
			f[14 + (uint32_t)rand() % (len - 14)] = (uint8_t)rand();
		put(f, rand() % 4 ? len : (uint32_t)rand() % (len + 1));
		assert_int_equal(frames_counted(), before + 1);
	}
	run(SECOND);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(join_is_reported), TEST(vlans_are_tagged), TEST(not_reported),
		TEST(left_and_joined),	TEST(many_groups),	TEST(announced_again),
		TEST(general_query),	TEST(specific_query),	TEST(long_times),
		TEST(older_queriers),	TEST(oldest_querier),	TEST(older_querier_comes),
		TEST(floods),		TEST(bad_queries),	TEST(damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
