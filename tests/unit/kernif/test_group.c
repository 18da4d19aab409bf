/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Multicast groups of HCA clients: announced by a real kernel, in a network namespace of this
 * process, and by the built-in responder.
 */

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_ip.h>

#include "../../test_eal.h"
#include "../driver/fake_hw.h"
#include "kernif_impl.h"
#include "lan.h"

#define SKIPPED 77
#define TIMEOUT_MS 240000

#define V4(a, b, c, d) \
	{ \
		[10] = 0xff, 0xff, a, b, c, d \
	}

static const uint8_t our_mac[6] = {2, 9, 0, 0, 0, 1};
static const struct arp_nd_address own[] = {
	{V4(10, 9, 0, 1), 24, ARP_ND_NO_VLAN},
	{V4(10, 9, 0, 3), 24, ARP_ND_NO_VLAN},
	{{0x20, 1, 0xd, 0xb8, 0, 9, [15] = 1}, 64, ARP_ND_NO_VLAN},
};
static const uint8_t g4[16] = V4(239, 1, 2, 3), g6[16] = {0xff, 0x15, [14] = 2, 3};

static struct kernif *k;
static struct lan *lan;
static struct fake_hw *fake;
static struct hca_driver *drv;

static void
shell(const char *command)
{
	if (system(command) != 0)
		fail_msg("%s", command);
}

static void
begin(enum kernif_kind kind)
{
	struct hca_driver_config dc = {.timeout_ms = 5000};
	struct kernif_config c = {
		.kind = kind,
		.name = "kg0",
		.link_local = true,
		.mtu = 1500,
		.addresses = own,
		.num_addresses = 3,
	};

	memcpy(c.mac, our_mac, 6);
	assert_int_equal(kernif_create(&c, &k), 0);
	lan = lan_open(our_mac, kernif_kick, k);
	fake = fake_hw_create();
	assert_int_equal(hca_driver_create(&fake->hw, &dc, &drv), 0);
	if (kernif_start(k, lan_port(lan), drv) != 0)
		fail_msg("%s", kernif_reason());
}

static void
end(void)
{
	kernif_stop(k);
	hca_driver_destroy(drv);
	fake_hw_destroy(fake);
	lan_close(lan);
	kernif_destroy(k);
}

/* Index of an own address, which may appear late. */
static uint32_t
index_of(const uint8_t gid[16])
{
	struct hca_ctl_gid e;

	for (int ms = 0; ms < TIMEOUT_MS; ms += 5) {
		for (uint32_t i = 0; i < hca_driver_gid_entries(drv); i++)
			if (hca_driver_query_gid(drv, i, &e) == 0 && e.valid &&
			    memcmp(e.gid, gid, 16) == 0)
				return i;
		usleep(5000);
	}
	fail_msg("an address never became a GID");
	return 0;
}

static void
wait_reports(const uint8_t group[16], bool joined, unsigned int n)
{
	for (int ms = 0; lan_reports(lan, group, joined) < n; ms += 5) {
		if (ms > TIMEOUT_MS)
			fail_msg("%u reports", lan_reports(lan, group, joined));
		usleep(5000);
	}
}

static struct kernif_stats
stats(void)
{
	struct kernif_stats s;

	kernif_stats(k, &s);
	return s;
}

/* Wait until all is applied. */
static void
wait_applied(uint64_t joined, uint64_t left)
{
	struct kernif_stats s = stats();

	for (int ms = 0; s.groups_joined != joined || s.groups_left != left; ms += 5) {
		if (ms > TIMEOUT_MS)
			fail_msg("%u joined, %u left", (unsigned int)s.groups_joined,
				 (unsigned int)s.groups_left);
		usleep(5000);
		s = stats();
	}
}

static void
refused(void)
{
	static const uint8_t host[16] = V4(10, 9, 0, 2);

	assert_int_equal(kernif_group(k, 1, host, true), -EINVAL);
	assert_int_equal(kernif_group(k, GID_TABLE_MAX, g4, true), -EINVAL);
	assert_int_equal(kernif_group(k, 1, g4, false), -ENOENT);
}

static void
announced(enum kernif_kind kind)
{
	uint32_t first, second, six;

	begin(kind);
	first = index_of(own[0].gid);
	second = index_of(own[1].gid);
	six = index_of(own[2].gid);
	refused();
	assert_int_equal(kernif_group(k, first, g4, true), 0);
	assert_int_equal(kernif_group(k, first, g4, true), 0);
	assert_int_equal(kernif_group(k, six, g6, true), 0);
	wait_reports(g4, true, 2);
	wait_reports(g6, true, 2);
	/* the same link by another address: one membership for the network */
	assert_int_equal(kernif_group(k, second, g4, true), 0);
	wait_applied(3, 0);
	assert_int_equal(kernif_group(k, first, g4, false), 0);
	assert_int_equal(kernif_group(k, first, g4, false), 0);
	assert_int_equal(kernif_group(k, first, g4, false), -ENOENT);
	wait_applied(3, 1);
	assert_int_equal(lan_reports(lan, g4, false), 0);
	assert_int_equal(kernif_group(k, second, g4, false), 0);
	assert_int_equal(kernif_group(k, six, g6, false), 0);
	wait_reports(g4, false, 2);
	wait_reports(g6, false, 2);
	wait_applied(3, 3);
	assert_int_equal(stats().groups_failed, 0);
	end();
}

static void
by_the_kernel(void **state)
{
	(void)state;
	announced(KERNIF_TAP);
}

static void
by_the_responder(void **state)
{
	(void)state;
	announced(KERNIF_BUILTIN);
}

/* More than a socket may be in; and as many again, after all were left. */
static void
many_groups(enum kernif_kind kind)
{
	uint8_t group[16] = V4(239, 7, 0, 0);
	uint32_t index;

	begin(kind);
	index = index_of(own[0].gid);
	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < 100; i++) {
			group[15] = (uint8_t)i;
			assert_int_equal(kernif_group(k, index, group, true), 0);
		}
		wait_reports(group, true, round + 1);
		wait_applied(100 * (round + 1), 100 * round);
		for (unsigned int i = 0; i < 100; i++) {
			group[15] = (uint8_t)i;
			assert_int_equal(kernif_group(k, index, group, false), 0);
		}
		wait_applied(100 * (round + 1), 100 * (round + 1));
	}
	assert_true(k->groups.num_sockets <= 8);
	for (uint32_t i = 0; i < KERNIF_GROUPS; i++) {
		group[14] = (uint8_t)(i >> 8);
		group[15] = (uint8_t)i;
		/* without the daemon's thread, which takes its time */
		pthread_mutex_lock(&k->lock);
		assert_int_equal(kernif_group(k, 200, group, true), 0);
		pthread_mutex_unlock(&k->lock);
	}
	assert_int_equal(kernif_group(k, 200, g4, true), -ENOSPC);
	end();
}

static void
many_by_the_kernel(void **state)
{
	(void)state;
	many_groups(KERNIF_TAP);
}

static void
many_by_the_responder(void **state)
{
	(void)state;
	many_groups(KERNIF_BUILTIN);
}

/* The address goes: the group is left; it is joined again when another one has its index. */
static void
follows_the_address(void **state)
{
	static const uint8_t late[16] = V4(10, 9, 5, 1);
	uint32_t index;

	(void)state;
	begin(KERNIF_TAP);
	index = index_of(own[1].gid);
	assert_int_equal(kernif_group(k, index, g4, true), 0);
	wait_reports(g4, true, 1);
	shell("ip addr del 10.9.0.3/24 dev kg0");
	wait_reports(g4, false, 1);
	wait_applied(1, 1);
	shell("ip addr add 10.9.5.1/24 dev kg0");
	assert_int_equal(index_of(late), index);
	wait_applied(2, 1);
	end();
}

/* The daemon's end is a leave. */
static void
left_at_the_end(void **state)
{
	(void)state;
	begin(KERNIF_BUILTIN);
	assert_int_equal(kernif_group(k, index_of(own[0].gid), g4, true), 0);
	wait_reports(g4, true, 1);
	kernif_stop(k);
	wait_reports(g4, false, 1);
	end();
}

/* A querier's frame reaches the responder. */
static void
query_is_answered(void **state)
{
	uint8_t query[60] = {1,	   0,	 0x5e, 0,  0, 1, 2,    9, 0, 0, 0,    2, 8,    0,
			     0x46, 0xc0, 0,    36, 0, 0, 0,    0, 1, 2, 0,    0, 10,   9,
			     0,	   2,	 224,  0,  0, 1, 0x94, 4, 0, 0, 0x11, 1, 0xee, 0xfe};
	uint16_t sum = 0;
	unsigned int before;

	(void)state;
	begin(KERNIF_BUILTIN);
	assert_int_equal(kernif_group(k, index_of(own[0].gid), g4, true), 0);
	wait_reports(g4, true, 2);
	before = lan_reports(lan, g4, true);
	sum = (uint16_t)~rte_raw_cksum(query + 14, 24);
	memcpy(query + 24, &sum, 2);
	lan_send(lan, query, sizeof(query));
	wait_reports(g4, true, before + 1);
	end();
}

static int
enter_namespace(void)
{
	if (access("/dev/net/tun", R_OK | W_OK) != 0 || unshare(CLONE_NEWNET) != 0) {
		printf("skipped: needs root, network namespaces and /dev/net/tun\n");
		return SKIPPED;
	}
	if (system("command -v ip >/dev/null && ip link set lo up") != 0) {
		printf("skipped: the program ip is missing (package iproute2)\n");
		return SKIPPED;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tap[] = {
		cmocka_unit_test(by_the_kernel),
		cmocka_unit_test(many_by_the_kernel),
		cmocka_unit_test(follows_the_address),
	};
	const struct CMUnitTest builtin[] = {
		cmocka_unit_test(by_the_responder),
		cmocka_unit_test(many_by_the_responder),
		cmocka_unit_test(left_at_the_end),
		cmocka_unit_test(query_is_answered),
	};
	bool kernel = argc > 1 && strcmp(argv[1], "kernel") == 0;
	int rc = kernel ? enter_namespace() : 0;

	if (rc == 0)
		rc = test_eal_start(256);
	if (rc != 0)
		return rc;
	return kernel ? cmocka_run_group_tests(tap, NULL, NULL)
		      : cmocka_run_group_tests(builtin, NULL, NULL);
}
