/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The source of packets to a destination: by the routes of a real kernel, in a network namespace
 * of this process, and by the prefixes and gateways of the built-in responder.
 */

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
#define V6(net, host) \
	{ \
		0x20, 1, 0xd, 0xb8, 0, net, [15] = host \
	}
#define LINK_LOCAL(host) \
	{ \
		0xfe, 0x80, [15] = host \
	}

static const uint8_t our_mac[6] = {2, 9, 0, 0, 0, 1};
static const uint8_t gid0[16] = {0xfe, 0x80, [8] = 0, 9, 0, 0xff, 0xfe, 0, 0, 1};
static const struct arp_nd_address own[] = {
	{V4(10, 9, 0, 1), 24, ARP_ND_NO_VLAN},
	{V6(9, 1), 64, ARP_ND_NO_VLAN},
	{V4(10, 9, 0, 200), 28, ARP_ND_NO_VLAN},
	{V4(10, 9, 7, 1), 24, 7},
	{V6(7, 1), 64, 7},
};
#define UNTAGGED4 own[0].gid
#define UNTAGGED6 own[1].gid
#define NARROW4 own[2].gid
#define VLAN4 own[3].gid
#define VLAN6 own[4].gid
#define NUM_OWN 5u
#define NUM_UNTAGGED 3u
static bool vlans; /* the kernel has VLAN interfaces */
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
begin(enum kernif_kind kind, const struct arp_nd_hop *gateways, uint32_t num_gateways)
{
	struct hca_driver_config dc = {.timeout_ms = 5000,
				       .resolve = kernif_resolve,
				       .source = kernif_source};
	struct kernif_config c = {
		.kind = kind,
		.name = "ks0",
		.link_local = true,
		.mtu = 1500,
		.addresses = own,
		.num_addresses = kind == KERNIF_BUILTIN || vlans ? NUM_OWN : NUM_UNTAGGED,
		.gateways = gateways,
		.num_gateways = num_gateways,
	};

	memcpy(c.mac, our_mac, 6);
	assert_int_equal(kernif_create(&c, &k), 0);
	lan = lan_open(our_mac, kernif_kick, k);
	fake = fake_hw_create();
	dc.resolve_arg = k;
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

/* Whether the table has the address in a VLAN. */
static bool
has(const uint8_t gid[16], uint16_t vlan_id)
{
	struct hca_ctl_gid e;

	for (uint32_t i = 0; i < hca_driver_gid_entries(drv); i++)
		if (hca_driver_query_gid(drv, i, &e) == 0 && e.valid && e.vlan_id == vlan_id &&
		    memcmp(e.gid, gid, 16) == 0)
			return true;
	return false;
}

static void
wait_for(const uint8_t gid[16], uint16_t vlan_id)
{
	for (int ms = 0; !has(gid, vlan_id); ms += 5) {
		if (ms > TIMEOUT_MS)
			fail_msg("an address never became a GID");
		usleep(5000);
	}
}

static void
assert_from(const uint8_t to[16], uint32_t scope, const uint8_t from[16], uint16_t vlan_id)
{
	struct hca_ctl_gid e;
	uint32_t index = 99;

	if (hca_driver_source(drv, to, scope, &index) != 0)
		fail_msg("%s", hca_driver_reason());
	assert_int_equal(hca_driver_query_gid(drv, index, &e), 0);
	assert_true(e.valid);
	assert_memory_equal(e.gid, from, 16);
	assert_int_equal(e.vlan_id, vlan_id);
}

static int
source_error(const uint8_t to[16], uint32_t scope)
{
	uint32_t index;

	return hca_driver_source(drv, to, scope, &index);
}

/* ---- a TAP interface ---- */

/* The kernel's routes: on-link, by a gateway, with a preferred source. */
static void
by_routes(void **state)
{
	static const uint8_t host4[16] = V4(10, 9, 0, 2), host6[16] = V6(9, 2);
	static const uint8_t far4[16] = V4(8, 8, 8, 8), far6[16] = V6(0x77, 1);
	static const uint8_t group4[16] = V4(239, 1, 1, 1);

	(void)state;
	begin(KERNIF_TAP, NULL, 0);
	for (unsigned int i = 0; i < NUM_UNTAGGED; i++)
		wait_for(own[i].gid, own[i].vlan_id);
	assert_from(host4, 0, UNTAGGED4, ARP_ND_NO_VLAN);
	assert_from(host6, 0, UNTAGGED6, ARP_ND_NO_VLAN);
	assert_from(UNTAGGED6, 0, UNTAGGED6, ARP_ND_NO_VLAN); /* itself */
	assert_int_equal(source_error(far4, 0), -ENETUNREACH);
	assert_int_equal(source_error(far6, 0), -ENETUNREACH);
	assert_int_equal(source_error(group4, 0), -ENETUNREACH);
	shell("ip route add default via 10.9.0.2");
	assert_from(far4, 0, UNTAGGED4, ARP_ND_NO_VLAN);
	assert_from(group4, 0, UNTAGGED4, ARP_ND_NO_VLAN);
	shell("ip route replace default via 10.9.0.2 src 10.9.0.200");
	assert_from(far4, 0, NARROW4, ARP_ND_NO_VLAN);
	shell("ip -6 route add default via 2001:db8:9::2");
	assert_from(far6, 0, UNTAGGED6, ARP_ND_NO_VLAN);
	shell("ip route add blackhole 8.0.0.0/8");
	assert_int_equal(source_error(far4, 0), -ENETUNREACH);
	end();
	shell("ip route del blackhole 8.0.0.0/8");
}

/* A route by a VLAN interface has the GID of that VLAN. */
static void
by_vlans(void **state)
{
	static const uint8_t tagged4[16] = V4(10, 9, 7, 2), tagged6[16] = V6(7, 2);
	static const uint8_t far4[16] = V4(8, 8, 8, 8), to[16] = LINK_LOCAL(7);
	static const uint8_t vlan_ll[16] = LINK_LOCAL(0x70);

	(void)state;
	if (!vlans) {
		print_message("this kernel has no VLAN interfaces\n");
		return;
	}
	begin(KERNIF_TAP, NULL, 0);
	for (unsigned int i = 0; i < NUM_OWN; i++)
		wait_for(own[i].gid, own[i].vlan_id);
	assert_from(tagged4, 0, VLAN4, 7);
	assert_from(tagged6, 0, VLAN6, 7);
	assert_from(VLAN4, 0, VLAN4, 7);
	shell("ip route add default via 10.9.7.2");
	assert_from(far4, 0, VLAN4, 7);
	shell("ip -6 addr flush dev ks0.7 scope link && ip addr add fe80::70/64 dev ks0.7 nodad");
	wait_for(vlan_ll, 7);
	assert_from(to, if_nametoindex("ks0.7"), vlan_ll, 7);
	assert_from(vlan_ll, if_nametoindex("ks0.7"), vlan_ll, 7);
	end();
}

/* An address that is reached by another interface is not reached by this HCA. */
static void
by_another_interface(void **state)
{
	static const uint8_t there4[16] = V4(10, 20, 0, 2), away4[16] = V4(10, 20, 0, 1);
	static const uint8_t far4[16] = V4(8, 8, 8, 8);

	(void)state;
	shell("ip tuntap add dev ko0 mode tap && ip addr add 10.20.0.1/24 dev ko0 && "
	      "ip link set ko0 up");
	begin(KERNIF_TAP, NULL, 0);
	wait_for(UNTAGGED4, ARP_ND_NO_VLAN);
	shell("ip route add default via 10.20.0.2");
	assert_int_equal(source_error(there4, 0), -ENETUNREACH);
	assert_int_equal(source_error(away4, 0), -ENETUNREACH);
	assert_int_equal(source_error(far4, 0), -ENETUNREACH);
	/* an interface of ours without an IPv4 address */
	shell("ip addr flush dev ks0 && ip route add 10.20.9.0/24 dev ks0 src 10.20.0.1");
	for (int ms = 0; has(UNTAGGED4, ARP_ND_NO_VLAN); ms += 5) {
		assert_true(ms < TIMEOUT_MS);
		usleep(5000);
	}
	for (int ms = 0; has(NARROW4, ARP_ND_NO_VLAN); ms += 5) {
		assert_true(ms < TIMEOUT_MS);
		usleep(5000);
	}
	assert_int_equal(source_error((const uint8_t[16])V4(10, 20, 9, 2), 0), -EADDRNOTAVAIL);
	end();
	shell("ip link del ko0");
}

static void
link_local_scopes(void **state)
{
	static const uint8_t to[16] = LINK_LOCAL(7), group[16] = {0xff, 2, [15] = 0x77};
	uint32_t ifindex;

	(void)state;
	begin(KERNIF_TAP, NULL, 0);
	wait_for(gid0, ARP_ND_NO_VLAN);
	ifindex = if_nametoindex("ks0");
	assert_from(to, 0, gid0, ARP_ND_NO_VLAN);
	assert_from(to, ifindex, gid0, ARP_ND_NO_VLAN);
	assert_from(group, ifindex, gid0, ARP_ND_NO_VLAN);
	assert_from(gid0, ifindex, gid0, ARP_ND_NO_VLAN);
	assert_int_equal(source_error(to, if_nametoindex("lo")), -ENETUNREACH);
	end();
}

/* ---- the responder ---- */

static void
built_in(void **state)
{
	static const uint8_t host4[16] = V4(10, 9, 0, 2), narrow4[16] = V4(10, 9, 0, 201);
	static const uint8_t host6[16] = V6(9, 2), tagged4[16] = V4(10, 9, 7, 2);
	static const uint8_t tagged6[16] = V6(7, 2), far4[16] = V4(8, 8, 8, 8);
	static const uint8_t far6[16] = V6(0x77, 1), near6[16] = LINK_LOCAL(7);
	static const uint8_t group4[16] = V4(239, 1, 1, 1), group6[16] = {0xff, 2, [15] = 1};
	static const struct arp_nd_hop gw[] = {
		{V4(10, 9, 7, 254), 7},
		{V4(10, 9, 0, 202), ARP_ND_NO_VLAN},
		{LINK_LOCAL(1), 7},
	};

	(void)state;
	begin(KERNIF_BUILTIN, gw, 3);
	assert_from(host4, 0, UNTAGGED4, ARP_ND_NO_VLAN);
	assert_from(narrow4, 0, NARROW4, ARP_ND_NO_VLAN);
	assert_from(host6, 0, UNTAGGED6, ARP_ND_NO_VLAN);
	assert_from(tagged4, 0, VLAN4, 7);
	assert_from(tagged6, 0, VLAN6, 7);
	assert_from(VLAN6, 0, VLAN6, 7); /* itself */
	assert_from(far4, 0, VLAN4, 7);	 /* by the first gateway */
	assert_from(far6, 0, VLAN6, 7);	 /* by a gateway that is in no prefix */
	assert_from(near6, 0, gid0, ARP_ND_NO_VLAN);
	assert_from(group4, 0, UNTAGGED4, ARP_ND_NO_VLAN);
	assert_from(group6, 0, gid0, ARP_ND_NO_VLAN);
	assert_int_equal(source_error(near6, 77), -ENETUNREACH);
	end();
}

/* The second gateway's prefix decides; without gateways everything is on the link. */
static void
built_in_gateways(void **state)
{
	static const uint8_t far4[16] = V4(8, 8, 8, 8), far6[16] = V6(0x77, 1);
	static const struct arp_nd_hop gw = {V4(10, 9, 0, 202), ARP_ND_NO_VLAN};

	(void)state;
	begin(KERNIF_BUILTIN, &gw, 1);
	assert_from(far4, 0, NARROW4, ARP_ND_NO_VLAN);
	end();
	begin(KERNIF_BUILTIN, NULL, 0);
	assert_from(far4, 0, UNTAGGED4, ARP_ND_NO_VLAN);
	assert_from(far6, 0, UNTAGGED6, ARP_ND_NO_VLAN);
	kernif_stop(k);
	assert_int_equal(source_error(far4, 0), -ESHUTDOWN);
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
	vlans = system("ip link add link lo name kvlan type vlan id 7 2>/dev/null && "
		       "ip link del kvlan") == 0;
	return 0;
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest routes[] = {
		cmocka_unit_test(by_routes),
		cmocka_unit_test(by_vlans),
		cmocka_unit_test(by_another_interface),
		cmocka_unit_test(link_local_scopes),
	};
	const struct CMUnitTest builtin[] = {
		cmocka_unit_test(built_in),
		cmocka_unit_test(built_in_gateways),
	};
	bool kernel = argc > 1 && strcmp(argv[1], "routes") == 0;
	int rc = kernel ? enter_namespace() : 0;

	if (rc == 0)
		rc = test_eal_start(256);
	if (rc != 0)
		return rc;
	return kernel ? cmocka_run_group_tests(routes, NULL, NULL)
		      : cmocka_run_group_tests(builtin, NULL, NULL);
}
