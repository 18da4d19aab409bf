/* SPDX-License-Identifier: BSD-3-Clause */

/* Groups of the built-in responder: their frames on the wire, and the answers to queries. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi_addr.h"
#include "group_rig.h"

#define IS_EXCLUDE 2
#define TO_INCLUDE 3
#define TO_EXCLUDE 4

/* ---- joins and leaves ---- */

static void
join_is_reported(void **state)
{
	(void)state;
	assert_int_equal(rig_join(g4, NONE), 0);
	assert_int_equal(rig_join(g6, NONE), 0);
	rig_run(50 * MS);
	assert_int_equal(num, 2);
	rig_report(&sent[0], 1, TO_EXCLUDE, g4);
	rig_report(&sent[1], 1, TO_EXCLUDE, g6);
	assert_memory_equal(sent[0].src + 12, "\x0a\0\0\x01", 4);
	assert_memory_equal(sent[1].src, made_ll, 16);
	rig_run(1100 * MS);
	assert_int_equal(num, 4); /* once more, within a second */
	rig_run(10 * SECOND);
	assert_int_equal(num, 4);
	/* another join is none for the network, nor is the leave of one of two */
	assert_int_equal(rig_join(g4, NONE), 0);
	assert_int_equal(rig_leave(g4, NONE), 0);
	rig_run(5 * SECOND);
	assert_int_equal(num, 4);
	num = 0;
	assert_int_equal(rig_leave(g4, NONE), 0);
	assert_int_equal(rig_leave(g6, NONE), 0);
	rig_run(5 * SECOND);
	assert_int_equal(num, 4);
	for (unsigned int i = 0; i < 4; i++)
		rig_report(&sent[i], 1, TO_INCLUDE, sent[i].v4 ? g4 : g6);
	assert_int_equal(rig_leave(g4, NONE), -ENOENT);
	assert_int_equal(rig_stats().group_reports, 6 + 8);
}

/* Neighbours ask for own IPv6 addresses in these groups, which switches have to deliver. */
static void
own_addresses(void **state)
{
	static const uint8_t first[16] = {0xff, 2, [11] = 1, 0xff, 0, 0, 1};
	static const uint8_t second[16] = {0xff, 2, [11] = 1, 0xff, 0, 0, 0x70};

	(void)state;
	rig_run(50 * MS);
	assert_int_equal(num, 3);
	rig_report(&sent[0], 1, TO_EXCLUDE, first);
	rig_report(&sent[1], 1, TO_EXCLUDE, second);
	rig_report(&sent[2], 1, TO_EXCLUDE, first);
	assert_int_equal(sent[0].vlan_id, NONE);
	assert_int_equal(sent[1].vlan_id, 7);
	assert_int_equal(sent[2].vlan_id, 9);
	rig_run(2 * SECOND);
	assert_int_equal(num, 6);
}

static void
vlans_are_tagged(void **state)
{
	(void)state;
	assert_int_equal(rig_join(g4, 7), 0);
	assert_int_equal(rig_join(g6, 7), 0);
	assert_int_equal(rig_join(g4, 9), 0);
	rig_run(50 * MS);
	assert_int_equal(num, 3);
	for (unsigned int i = 0; i < num; i++) {
		rig_report(&sent[i], 1, TO_EXCLUDE, sent[i].v4 ? g4 : g6);
		if (!sent[i].v4) /* the link-local address of that VLAN */
			assert_memory_equal(sent[i].src, own_ll, 16);
		else if (sent[i].vlan_id == 9)
			assert_memory_equal(sent[i].src + 12, "\0\0\0\0", 4);
		else
			assert_memory_equal(sent[i].src + 12, "\x0a\0\x07\x01", 4);
	}
	assert_int_equal(sent[0].vlan_id + sent[1].vlan_id + sent[2].vlan_id, 7 + 7 + 9);
	/* the same group elsewhere is another membership */
	assert_int_equal(rig_leave(g4, NONE), -ENOENT);
	assert_int_equal(rig_join(g4, 8), -EINVAL);
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
		assert_int_equal(rig_join(silent[i], NONE), 0);
		assert_int_equal(rig_leave(silent[i], NONE), 0);
		assert_int_equal(rig_join(no_group[i], NONE), -EINVAL);
	}
	rig_run(3 * SECOND);
	assert_int_equal(num, 0);
}

/* Back before the second report of the leave: joined for the network again. */
static void
left_and_joined(void **state)
{
	(void)state;
	assert_int_equal(rig_join(g4, NONE), 0);
	rig_settle(3 * SECOND);
	assert_int_equal(rig_leave(g4, NONE), 0);
	rig_run(50 * MS);
	rig_report(&sent[0], 1, TO_INCLUDE, g4);
	assert_int_equal(rig_join(g4, NONE), 0);
	rig_settle(3 * SECOND);
	assert_int_equal(rig_leave(g4, NONE), 0);
}

#define JOINED (ARP_ND_GROUPS - 3) /* those of own addresses are the others */

static void
many_groups(void **state)
{
	uint8_t group[16] = V4(239, 1, 0, 0);
	unsigned int records = 0;

	(void)state;
	for (uint32_t i = 0; i < JOINED; i++) {
		group[14] = (uint8_t)(i >> 8);
		group[15] = (uint8_t)i;
		assert_int_equal(rig_join(group, NONE), 0);
	}
	assert_int_equal(rig_join(h4, NONE), -ENOSPC);
	rig_run(50 * MS);
	assert_true(num < 30); /* many in a packet */
	for (unsigned int i = 0; i < num; i++)
		records += (unsigned int)(sent[i].message[6] << 8 | sent[i].message[7]);
	assert_int_equal(records, JOINED);
	rig_settle(3 * SECOND);
	assert_int_equal(rig_leave(group, NONE), 0);
	rig_settle(3 * SECOND);
	assert_int_equal(rig_join(h4, NONE), 0);
	/* the end of the daemon: all are left */
	rig_settle(3 * SECOND);
	arp_nd_leave_all(group_host, now);
	records = 0;
	for (unsigned int i = 0; i < num; i++)
		records += (unsigned int)(sent[i].message[6] << 8 | sent[i].message[7]);
	assert_int_equal(records, ARP_ND_GROUPS);
	for (unsigned int i = 0; i < num; i++)
		assert_int_equal(sent[i].message[8], TO_INCLUDE);
	rig_settle(3 * SECOND);
	for (uint32_t i = 0; i < ARP_ND_GROUPS; i++) {
		group[14] = (uint8_t)(i >> 8);
		group[15] = (uint8_t)i;
		assert_int_equal(rig_join(group, 7), 0);
	}
}

/* The link comes back, perhaps at another switch. */
static void
announced_again(void **state)
{
	unsigned int v4 = 0;

	(void)state;
	assert_int_equal(rig_join(g4, NONE), 0);
	assert_int_equal(rig_join(g6, 7), 0);
	rig_settle(3 * SECOND);
	arp_nd_announce(group_host, now);
	rig_run(3 * SECOND);
	assert_int_equal(num, 2 * 5); /* and those of own addresses */
	for (unsigned int i = 0; i < num; i++) {
		assert_int_equal(sent[i].message[8], TO_EXCLUDE);
		v4 += sent[i].v4;
	}
	assert_int_equal(v4, 2);
}

/* ---- queries ---- */

static void
join_four(void)
{
	assert_int_equal(rig_join(g4, NONE), 0);
	assert_int_equal(rig_join(h4, NONE), 0);
	assert_int_equal(rig_join(g6, NONE), 0);
	assert_int_equal(rig_join(h6, NONE), 0);
	assert_int_equal(rig_join(g4, 7), 0);
	rig_settle(3 * SECOND);
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
		rig_igmp_query(NONE, NULL, 20, 12); /* 2 s */
		rig_mld_query(NONE, NULL, 2000, 28);
		rig_run(2100 * MS);
		assert_int_equal(num, 2);
		for (unsigned int j = 0; j < 2; j++) {
			uint64_t after = sent[j].at - asked;

			assert_int_equal(sent[j].vlan_id, NONE);
			/* with IPv6, one more for the group of the own address */
			rig_report(&sent[j], sent[j].v4 ? 2 : 3, IS_EXCLUDE, sent[j].v4 ? g4 : g6);
			rig_report(&sent[j], sent[j].v4 ? 2 : 3, IS_EXCLUDE, sent[j].v4 ? h4 : h6);
			first = after < first ? after : first;
			last = after > last ? after : last;
		}
	}
	assert_true(first < 400 * MS && last > 1600 * MS); /* spread over the time allowed */
	num = 0;
	rig_igmp_query(7, NULL, 10, 12);
	rig_run(1100 * MS);
	assert_int_equal(num, 1);
	assert_int_equal(sent[0].vlan_id, 7);
	/* a VLAN without addresses */
	rig_igmp_query(8, NULL, 10, 12);
	rig_run(1100 * MS);
	assert_int_equal(num, 1);
	assert_int_equal(rig_stats().group_queries, 81);
}

static void
specific_query(void **state)
{
	static const uint8_t other[16] = V4(239, 9, 9, 9);

	(void)state;
	join_four();
	rig_igmp_query(NONE, g4, 10, 12);
	rig_igmp_query(NONE, other, 10, 12);
	rig_mld_query(NONE, h6, 1000, 28);
	rig_run(1100 * MS);
	assert_int_equal(num, 2);
	for (unsigned int i = 0; i < 2; i++)
		rig_report(&sent[i], 1, IS_EXCLUDE, sent[i].v4 ? g4 : h6);
	/* for sources of a group: it is joined for all sources */
	num = 0;
	rig_igmp_query(NONE, g4, 10, 16);
	rig_run(1100 * MS);
	assert_int_equal(num, 1);
	rig_report(&sent[0], 1, IS_EXCLUDE, g4);
	/* of a group that was left */
	assert_int_equal(rig_leave(g4, NONE), 0);
	rig_settle(3 * SECOND);
	rig_igmp_query(NONE, g4, 10, 12);
	rig_run(1100 * MS);
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
		rig_igmp_query(NONE, NULL, 0x8a, 12); /* (10 | 16) << 3 tenths: 20.8 s */
		rig_mld_query(NONE, NULL, 0x8000 | 0x400,
			      28); /* (0x400 | 0x1000) << 3 ms: 40.96 s */
		rig_run(42 * SECOND);
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
	rig_igmp_query(NONE, NULL, 10, 8);
	rig_mld_query(NONE, NULL, 1000, 24);
	rig_run(1100 * MS);
	assert_int_equal(num, 5);
	for (unsigned int i = 0; i < 5; i++) {
		const struct sent *s = &sent[i];

		assert_int_equal(s->message[0], s->v4 ? 0x16 : 131);
		assert_int_equal(s->len, s->v4 ? 8 : 24);
		assert_memory_equal(s->v4 ? s->message + 4 : s->message + 8,
				    s->v4 ? s->dst + 12 : s->dst, s->v4 ? 4 : 16);
	}
	num = 0;
	assert_int_equal(rig_leave(g4, NONE), 0);
	assert_int_equal(rig_leave(g6, NONE), 0);
	rig_run(3 * SECOND);
	assert_int_equal(num, 2);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(sent[i].message[0], sent[i].v4 ? 0x17 : 132);
		assert_memory_equal(sent[i].dst, sent[i].v4 ? routers4 : routers6, 16);
	}
	num = 0;
	assert_int_equal(rig_join(g4, NONE), 0);
	rig_run(3 * SECOND);
	assert_int_equal(num, 2);
	assert_int_equal(sent[0].message[0], 0x16);
	/* the other VLAN has no such querier; a newer query changes nothing while one is there */
	num = 0;
	rig_igmp_query(7, NULL, 10, 12);
	rig_igmp_query(NONE, g4, 10, 12);
	rig_run(1100 * MS);
	assert_int_equal(num, 2);
	assert_int_equal(sent[0].message[0] + sent[1].message[0], 0x22 + 0x16);
	rig_settle(260 * SECOND);
	rig_igmp_query(NONE, NULL, 10, 12);
	rig_run(1100 * MS);
	assert_int_equal(num, 1);
	rig_report(&sent[0], 2, IS_EXCLUDE, g4);
}

/* A querier of IGMPv1 names no time, and gets no leave messages. */
static void
oldest_querier(void **state)
{
	(void)state;
	join_four();
	rig_igmp_query(NONE, NULL, 0, 8);
	rig_run(10 * SECOND + 100 * MS);
	assert_int_equal(num, 2);
	assert_int_equal(sent[0].message[0], 0x12);
	num = 0;
	rig_igmp_query(NONE, g4, 10, 8); /* IGMPv2 does not end it */
	rig_run(1100 * MS);
	assert_int_equal(num, 1);
	assert_int_equal(sent[0].message[0], 0x12);
	num = 0;
	assert_int_equal(rig_leave(g4, NONE), 0);
	rig_run(3 * SECOND);
	assert_int_equal(num, 0);
	assert_int_equal(rig_leave(g4, NONE), -ENOENT);
}

/* A report for a newer querier is cancelled when an older one comes. */
static void
older_querier_comes(void **state)
{
	(void)state;
	join_four();
	assert_int_equal(rig_leave(h4, NONE), 0);
	rig_run(50 * MS);
	num = 0;
	rig_igmp_query(NONE, NULL, 50, 12);
	rig_igmp_query(NONE, NULL, 10, 8);
	rig_run(6 * SECOND);
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
		assert_int_equal(rig_join(group, NONE), 0);
	}
	rig_settle(3 * SECOND);
	for (uint64_t end = now + 10 * SECOND; now < end; now += MS) {
		rig_igmp_query(NONE, NULL, 1, 12);
		rig_igmp_query(NONE, group, 1, 12);
		arp_nd_tick(group_host, now);
	}
	/* 1000 groups are 6 packets: at most 2 answers a second, and of the group as many */
	assert_true(num <= 21 * 6 + 21);
	rig_settle(3 * SECOND);
	for (uint64_t end = now + 10 * SECOND; now < end; now += MS) {
		rig_igmp_query(NONE, NULL, 1, 8);
		arp_nd_tick(group_host, now);
	}
	assert_true(num <= 21 * 1000);
	assert_true(num >= 1000); /* and yet it answers */
	assert_true(rig_stats().group_queries >= 30000);
}

/* ---- messages that are not queries ---- */

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
	len = rig_igmp(f, NONE, all4, query4, 12);
	f[len - 1] ^= 1; /* checksum */
	rig_put(f, len);
	len = rig_igmp(f, NONE, all4, query4, 10); /* a length of no version */
	rig_put(f, len);
	len = rig_igmp(f, NONE, g4, query4, 12); /* a general query to a group */
	rig_put(f, len);
	for (uint32_t cut = 14 + 28; cut < 14 + 36; cut++) /* shorter than it says */
		rig_put(f, cut);
	len = rig_mld(f, NONE, all6, query6, 27);
	rig_put(f, len);
	len = rig_mld(f, NONE, all6, query6, 28);
	f[14 + 7] = 2; /* from beyond a router */
	rig_put(f, len);
	len = rig_mld(f, NONE, all6, query6, 28);
	f[len - 1] ^= 1;
	rig_put(f, len);
	len = rig_mld(f, NONE, all6, query6, 28);
	f[14 + 41] = 9; /* a hop-by-hop header that is longer than the packet */
	rig_put(f, len);
	assert_int_equal(rig_stats().malformed, 3 + 8 + 4);
	len = rig_igmp(f, NONE, g4, report4, 8);
	rig_put(f, len);
	len = rig_mld(f, NONE, all6, query6, 28);
	f[14 + 42] = 6; /* another option than the router alert */
	rig_put(f, len);
	assert_int_equal(rig_stats().other_protocol, 2);
	rig_run(3 * SECOND);
	assert_int_equal(num, 0);
	assert_int_equal(rig_stats().group_queries, 0);
}

static uint64_t
frames_counted(void)
{
	struct arp_nd_stats s = rig_stats();

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
		uint32_t len = i % 2 ? rig_igmp(f, NONE, all4, query4, 8 + (uint32_t)rand() % 9)
				     : rig_mld(f, NONE, all6, query6, 24 + (uint32_t)rand() % 9);
		uint64_t before = frames_counted();

		for (int n = rand() % 4; n > 0; n--)
			f[14 + (uint32_t)rand() % (len - 14)] = (uint8_t)rand();
		rig_put(f, rand() % 4 ? len : (uint32_t)rand() % (len + 1));
		assert_int_equal(frames_counted(), before + 1);
	}
	rig_run(SECOND);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(own_addresses, rig_setup_new, rig_teardown),
		TEST(join_is_reported),
		TEST(vlans_are_tagged),
		TEST(not_reported),
		TEST(left_and_joined),
		TEST(many_groups),
		TEST(announced_again),
		TEST(general_query),
		TEST(specific_query),
		TEST(long_times),
		TEST(older_queriers),
		TEST(oldest_querier),
		TEST(older_querier_comes),
		TEST(floods),
		TEST(bad_queries),
		TEST(damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
