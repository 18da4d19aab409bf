/* SPDX-License-Identifier: BSD-3-Clause */

/* Hand-made rtnetlink messages: VLANs, addresses that are not usable yet, malformed messages. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/if_addr.h>
#include <linux/neighbour.h>

#include "kernel_tables.h"

#define MAIN 7u
#define VLAN 9u

static struct kernel_tables t;
static struct kernel_link last_link;
static struct arp_nd_hop last_hop;
static uint8_t last_gid[16], last_mac[6];
static unsigned int links, links_gone, addresses, addresses_gone, found, lost;

static void
on_link(void *arg, const struct kernel_link *l, bool gone)
{
	(void)arg;
	last_link = *l;
	links += !gone;
	links_gone += gone;
}

static void
on_address(void *arg, const struct kernel_link *l, const uint8_t gid[16], bool gone)
{
	(void)arg;
	last_link = *l;
	memcpy(last_gid, gid, 16);
	addresses += !gone;
	addresses_gone += gone;
}

static void
on_neighbour(void *arg, const struct arp_nd_hop *hop, const uint8_t *mac)
{
	(void)arg;
	last_hop = *hop;
	found += mac != NULL;
	lost += mac == NULL;
	if (mac != NULL)
		memcpy(last_mac, mac, 6);
}

/* An exact copy of the message, so that sanitizers detect reads beyond its end. */
static void
tell(struct nl_request *r, uint32_t cut)
{
	uint32_t len = ((struct nlmsghdr *)(void *)r->bytes)->nlmsg_len - cut;
	struct nlmsghdr *h = malloc(len);

	assert_non_null(h);
	memcpy(h, r->bytes, len);
	h->nlmsg_len = len;
	kernel_tables_event(&t, h);
	free(h);
}

static void
link_message(struct nl_request *r, uint16_t type, uint32_t ifindex, uint32_t flags)
{
	const struct ifinfomsg m = {.ifi_index = (int)ifindex, .ifi_flags = flags};

	nl_begin(r, type, 0, &m, sizeof(m));
	nl_put(r, IFLA_ADDRESS, "\2\0\0\0\0\x07", 6);
}

static void
vlan_message(struct nl_request *r, uint16_t type, uint32_t on, const char *kind, uint16_t id,
	     uint16_t protocol)
{
	uint16_t ether = htons(protocol);
	size_t info, data;

	link_message(r, type, VLAN, IFF_UP);
	nl_put(r, IFLA_LINK, &on, sizeof(on));
	info = nl_nest(r, IFLA_LINKINFO);
	nl_put(r, IFLA_INFO_KIND, kind, strlen(kind) + 1);
	data = nl_nest(r, IFLA_INFO_DATA);
	nl_put(r, IFLA_VLAN_ID, &id, sizeof(id));
	nl_put(r, IFLA_VLAN_PROTOCOL, &ether, sizeof(ether));
	nl_nest_end(r, data);
	nl_nest_end(r, info);
}

static void
address_message(struct nl_request *r, uint16_t type, uint32_t ifindex, const char *text,
		uint32_t flags)
{
	bool v6 = strchr(text, ':') != NULL;
	const struct ifaddrmsg m = {.ifa_family = v6 ? AF_INET6 : AF_INET, .ifa_index = ifindex};
	uint8_t ip[16];

	assert_int_equal(inet_pton(m.ifa_family, text, ip), 1);
	nl_begin(r, type, 0, &m, sizeof(m));
	nl_put(r, IFA_ADDRESS, ip, v6 ? 16 : 4);
	nl_put(r, IFA_FLAGS, &flags, sizeof(flags));
}

static void
neighbour_message(struct nl_request *r, uint16_t type, uint32_t ifindex, uint16_t state,
		  const char *mac)
{
	const struct ndmsg m = {.ndm_family = AF_INET,
				.ndm_ifindex = (int)ifindex,
				.ndm_state = state};

	nl_begin(r, type, 0, &m, sizeof(m));
	nl_put(r, NDA_DST, "\x0a\0\0\2", 4);
	if (mac != NULL)
		nl_put(r, NDA_LLADDR, mac, 6);
}

static int
setup(void **state)
{
	const struct kernel_tables_ops ops = {.link = on_link,
					      .address = on_address,
					      .neighbour = on_neighbour};
	struct nl_request r;

	(void)state;
	links = links_gone = addresses = addresses_gone = found = lost = 0;
	kernel_tables_init(&t, MAIN, &ops);
	link_message(&r, RTM_NEWLINK, MAIN, IFF_UP);
	tell(&r, 0);
	return links == 1 ? 0 : -1;
}

static void
links_and_vlans(void **state)
{
	struct nl_request r;

	(void)state;
	assert_int_equal(last_link.vlan_id, ARP_ND_NO_VLAN);
	assert_true(last_link.up);
	link_message(&r, RTM_NEWLINK, 8, IFF_UP); /* another interface */
	tell(&r, 0);
	vlan_message(&r, RTM_NEWLINK, 8, "vlan", 100, 0x8100); /* on another interface */
	tell(&r, 0);
	vlan_message(&r, RTM_NEWLINK, MAIN, "macvlan", 100, 0x8100);
	tell(&r, 0);
	vlan_message(&r, RTM_NEWLINK, MAIN, "vlan", 100, 0x88a8); /* an 802.1ad outer tag */
	tell(&r, 0);
	vlan_message(&r, RTM_NEWLINK, MAIN, "vlan", 0, 0x8100);
	tell(&r, 0);
	assert_int_equal(links, 1);
	assert_null(kernel_tables_vlan(&t, 100));
	vlan_message(&r, RTM_NEWLINK, MAIN, "vlan", 100, 0x8100);
	tell(&r, 0);
	assert_int_equal(links, 2);
	assert_int_equal(kernel_tables_vlan(&t, 100)->ifindex, VLAN);
	address_message(&r, RTM_NEWADDR, VLAN, "10.0.0.1", 0);
	tell(&r, 0);
	assert_int_equal(last_link.vlan_id, 100);
	assert_memory_equal(last_gid, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\1", 16);
	neighbour_message(&r, RTM_NEWNEIGH, VLAN, NUD_REACHABLE, "\2\0\0\0\0\2");
	tell(&r, 0);
	assert_int_equal(last_hop.vlan_id, 100);
	link_message(&r, RTM_DELLINK, VLAN, 0);
	tell(&r, 0);
	assert_int_equal(links_gone, 1);
	assert_int_equal(last_link.vlan_id, 100);
	assert_null(kernel_tables_vlan(&t, 100));
	tell(&r, 0);
	assert_int_equal(links_gone, 1);
	address_message(&r, RTM_NEWADDR, VLAN, "10.0.0.1", 0);
	tell(&r, 0);
	assert_int_equal(addresses, 1);
}

static void
addresses_in_all_states(void **state)
{
	static const struct {
		const char *text;
		uint32_t flags;
		unsigned int come, gone;
	} row[] = {
		{"10.0.0.1", 0, 1, 0},
		{"10.0.0.1", IFA_F_PERMANENT | IFA_F_SECONDARY, 1, 0},
		{"127.0.0.1", 0, 0, 0},
		{"0.0.0.0", 0, 0, 0},
		{"224.0.0.1", 0, 0, 0},
		{"2001:db8::1", IFA_F_PERMANENT, 1, 0},
		{"2001:db8::1", IFA_F_TENTATIVE, 0, 0},
		{"2001:db8::1", IFA_F_TENTATIVE | IFA_F_OPTIMISTIC, 1, 0},
		{"2001:db8::1", IFA_F_TENTATIVE | IFA_F_DADFAILED, 0, 1},
		{"2001:db8::1", IFA_F_MANAGETEMPADDR, 1, 0},
		{"fe80::1", 0, 1, 0},
		{"::1", 0, 0, 0},
		{"::", 0, 0, 0},
		{"ff02::1", 0, 0, 0},
		{"::ffff:10.0.0.1", 0, 0, 0},
	};
	struct nl_request r;

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		addresses = addresses_gone = 0;
		address_message(&r, RTM_NEWADDR, MAIN, row[i].text, row[i].flags);
		tell(&r, 0);
		assert_int_equal(addresses, row[i].come);
		assert_int_equal(addresses_gone, row[i].gone);
	}
	addresses_gone = 0;
	address_message(&r, RTM_DELADDR, MAIN, "2001:db8::1", IFA_F_TENTATIVE);
	tell(&r, 0);
	assert_int_equal(addresses_gone, 1);
	address_message(&r, RTM_NEWADDR, 8, "10.0.0.1", 0);
	addresses = 0;
	tell(&r, 0);
	assert_int_equal(addresses, 0);
}

static void
neighbours_in_all_states(void **state)
{
	static const struct {
		uint16_t type, state;
		bool mac;
		unsigned int found, lost;
	} row[] = {
		{RTM_NEWNEIGH, NUD_REACHABLE, true, 1, 0},   {RTM_NEWNEIGH, NUD_STALE, true, 1, 0},
		{RTM_NEWNEIGH, NUD_PERMANENT, true, 1, 0},   {RTM_NEWNEIGH, NUD_PROBE, true, 1, 0},
		{RTM_NEWNEIGH, NUD_INCOMPLETE, false, 0, 0}, {RTM_NEWNEIGH, NUD_NONE, false, 0, 0},
		{RTM_NEWNEIGH, NUD_FAILED, false, 0, 1},     {RTM_NEWNEIGH, NUD_FAILED, true, 0, 1},
		{RTM_DELNEIGH, NUD_REACHABLE, true, 0, 1},
	};
	struct nl_request r;

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		found = lost = 0;
		neighbour_message(&r, row[i].type, MAIN, row[i].state,
				  row[i].mac ? "\2\0\0\0\0\2" : NULL);
		tell(&r, 0);
		assert_int_equal(found, row[i].found);
		assert_int_equal(lost, row[i].lost);
	}
	assert_memory_equal(last_mac, "\2\0\0\0\0\2", 6);
	found = 0;
	neighbour_message(&r, RTM_NEWNEIGH, 8, NUD_REACHABLE, "\2\0\0\0\0\2");
	tell(&r, 0);
	assert_int_equal(found, 0);
}

/* Every message cut at every length, and with every byte of its attributes inverted. */
static void
malformed(void **state)
{
	struct nl_request r[4];

	(void)state;
	vlan_message(&r[0], RTM_NEWLINK, MAIN, "vlan", 100, 0x8100);
	address_message(&r[1], RTM_NEWADDR, MAIN, "2001:db8::1", 0);
	neighbour_message(&r[2], RTM_NEWNEIGH, MAIN, NUD_REACHABLE, "\2\0\0\0\0\2");
	link_message(&r[3], RTM_NEWLINK, MAIN, IFF_UP);
	for (unsigned int i = 0; i < 4; i++) {
		uint32_t len = ((struct nlmsghdr *)(void *)r[i].bytes)->nlmsg_len;

		for (uint32_t cut = 0; cut <= len - NLMSG_HDRLEN; cut++)
			tell(&r[i], cut);
		for (uint32_t at = NLMSG_HDRLEN; at < len; at++) {
			r[i].bytes[at] ^= 0xff;
			tell(&r[i], 0);
			r[i].bytes[at] ^= 0xff;
		}
	}
	assert_true(t.num_links <= KERNEL_LINKS_MAX);
}

static void
too_many_vlans(void **state)
{
	struct nl_request r;

	(void)state;
	for (uint32_t i = 0; i < 2 * KERNEL_LINKS_MAX; i++) {
		vlan_message(&r, RTM_NEWLINK, MAIN, "vlan", (uint16_t)(i + 1), 0x8100);
		((struct ifinfomsg *)NLMSG_DATA((struct nlmsghdr *)(void *)r.bytes))->ifi_index =
			(int)(100 + i);
		tell(&r, 0);
	}
	assert_int_equal(t.num_links, KERNEL_LINKS_MAX);
	assert_non_null(kernel_tables_vlan(&t, 1));
}

/* A request that does not fit is refused when it is sent, not cut. */
static void
long_request(void **state)
{
	const struct ifinfomsg m = {0};
	struct nl_request r;
	struct nl s = {.fd = -1};
	char name[600] = {0};
	size_t at;

	(void)state;
	nl_begin(&r, RTM_NEWLINK, 0, &m, sizeof(m));
	at = nl_nest(&r, IFLA_LINKINFO);
	nl_put(&r, IFLA_IFNAME, name, sizeof(name));
	nl_put(&r, IFLA_IFNAME, name, sizeof(name));
	nl_nest_end(&r, at);
	assert_true(r.full);
	assert_int_equal(nl_talk(&s, &r, NULL, NULL), -EMSGSIZE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(links_and_vlans, setup),
		cmocka_unit_test_setup(addresses_in_all_states, setup),
		cmocka_unit_test_setup(neighbours_in_all_states, setup),
		cmocka_unit_test_setup(malformed, setup),
		cmocka_unit_test_setup(too_many_vlans, setup),
		cmocka_unit_test(long_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
