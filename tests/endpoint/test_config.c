/* SPDX-License-Identifier: BSD-3-Clause */

/* Configuration files: every kind of error with its line, and the sample file. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi_ub.h"
#include "../test_path.h"
#include "abi_cmd.h"
#include "config_keys.h"
#include "endpoint.h"
#include "endpoint_check.h"
#include "endpoint_device.h"
#include "hca.h"

#define GOOD "[port]\ndevice = net_null0\n[addresses]\naddress = 10.0.0.1/24\n"

static const char *sample;
static char said[4096];

/* Returns the result of loading the text; `said` has the messages, "f" for the file's name. */
static int
load(struct endpoint_config *c, const char *text)
{
	char path[TEST_PATH_MAX], raw[4096];
	int fd = mkstemp(test_path(path, "config")), n;
	FILE *errors = fmemopen(raw, sizeof(raw), "w");
	char *at;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	n = endpoint_config_load(c, path, errors);
	fputc('\0', errors);
	fclose(errors);
	unlink(path);
	said[0] = '\0';
	for (char *line = strtok_r(raw, "\n", &at); line != NULL;
	     line = strtok_r(NULL, "\n", &at)) {
		strcat(said, "f");
		strcat(said, line + strlen(path));
		strcat(said, "\n");
	}
	return n;
}

static void
expect(const char *text, int n, const char *message)
{
	struct endpoint_config c;
	int got = load(&c, text);

	if (got != n || strstr(said, message) == NULL)
		fail_msg("%d errors, %d expected, with \"%s\"; said:\n%s", got, n, message, said);
}

static void
good(void **state)
{
	struct endpoint_config c;

	(void)state;
	assert_int_equal(load(&c, GOOD), 0);
	assert_string_equal(said, "");
	assert_string_equal(c.device, "net_null0");
	assert_int_equal(c.num_addresses, 1);
	assert_int_equal(c.address[0].prefix, 24);
	assert_int_equal(c.address[0].vlan_id, ENDPOINT_NO_VLAN);
	assert_string_equal(c.socket, "/run/softhca/softhca0.sock");
	assert_string_equal(c.kernel_interface, "softhca0");
	assert_int_equal(c.numa_node, -1);
	assert_int_equal(c.vendor_id, 0x025348);
	assert_int_equal(c.vendor_part_id, 1);
}

static void
every_kind_of_value(void **state)
{
	static const char text[] = "[hca]\nname=x-1 ; comment\nlayout = full\nlcores = 1, 3-5,7\n"
				   "idle=spin\nseed=0x10\nvendor_id=0x02c9\nvendor_part_id=4119\n"
				   "hw_ver=3\nfw_ver=16.35.2000\n[port]\ndevice=0000:3b:00.1,a=b\n"
				   "mtu=4200\nroce_mtu=2048\nmac=02:00:00:00:00:0a\n"
				   "own_frames=port\n"
				   "[addresses]\naddress = 2001:db8::1/64   vlan 7\n"
				   "address=10.1.2.3/8\nlink_local=no\n"
				   "neighbour = 10.1.2.4 02:00:00:00:00:0b\n"
				   "[memory]\nnuma_node=1\nhugepages=never\n[control]\nmode=600\n"
				   "socket=/tmp/a.sock\n[admin]\nlog=debug\n[hca]\n[limits]\n"
				   "log_qps=5\n";
	static const int cpus[] = {1, 3, 4, 5, 7};
	struct endpoint_config c;

	(void)state;
	if (load(&c, text) != 0)
		fail_msg("%s", said);
	assert_string_equal(c.name, "x-1");
	assert_int_equal(c.layout, HCA_LAYOUT_FULL);
	assert_int_equal(c.num_cpus, 5);
	assert_memory_equal(c.cpus, cpus, sizeof(cpus));
	assert_int_equal(c.idle, ENDPOINT_IDLE_SPIN);
	assert_int_equal(c.seed, 16);
	assert_int_equal(c.vendor_id, 0x02c9);
	assert_int_equal(c.vendor_part_id, 4119);
	assert_int_equal(c.hw_ver, 3);
	assert_true(c.fw_ver == HCA_FW_VER(16, 35, 2000));
	assert_string_equal(c.device, "0000:3b:00.1,a=b");
	assert_int_equal(c.roce_mtu, 2048);
	assert_int_equal(c.own_frames, ENDPOINT_OWN_FRAMES_PORT);
	assert_true(c.has_mac);
	assert_int_equal(c.mac[5], 10);
	assert_int_equal(c.num_addresses, 2);
	assert_int_equal(c.address[0].vlan_id, 7);
	assert_int_equal(c.address[0].gid[0], 0x20);
	assert_int_equal(c.address[1].gid[11], 0xff);
	assert_false(c.link_local);
	assert_int_equal(c.num_neighbours, 1);
	assert_int_equal(c.numa_node, 1);
	assert_int_equal(c.hugepages, ENDPOINT_HUGEPAGES_NEVER);
	assert_int_equal(c.socket_mode, 0600);
	assert_string_equal(c.socket, "/tmp/a.sock");
	assert_int_equal(c.log_level, ENDPOINT_LOG_DEBUG);
	assert_int_equal(c.log_qps, 5);
}

static void
syntax(void **state)
{
	char text[1024];

	(void)state;
	expect(GOOD "word\n", 1,
	       "f:5: line: expected [section], key = value or ; comment, found \"word\"");
	expect("a = b\n" GOOD, 1, "f:1: file: expected a [section] before the first key");
	expect(GOOD "[hca\n", 1, "f:5: section: expected [name], found \"[hca\"");
	expect(GOOD "[hca] name=x\n", 1, "f:5: section: expected nothing after [name]");
	expect(GOOD "= 5\n", 1, "f:5: line: expected key = value");
	snprintf(text, sizeof(text), GOOD "[hca]\nname = %0300d\n", 0);
	expect(text, 1, "f:6: line: expected a key of up to 63 and a value of up to 255");
	snprintf(text, sizeof(text), GOOD "[hca]\nname = %0600d\n", 0);
	expect(text, 1, "f:6: line: expected at most 320 characters");
}

static void
names(void **state)
{
	(void)state;
	expect(GOOD "[hcaa]\nname=x\n", 1, "f:5: [hcaa]: no such section, did you mean [hca]?");
	expect(GOOD "[zebra]\n", 1, "f:5: [zebra]: no such section\n");
	expect(GOOD "[hca]\nlayuot = rtc\n", 1,
	       "f:6: layuot: no such key in [hca], did you mean \"layout\"?");
	expect(GOOD "[hca]\nzzzzzzz = rtc\n", 1, "f:6: zzzzzzz: no such key in [hca]\n");
	expect(GOOD "[hca]\nname=a\nname=b\n", 1,
	       "f:7: name: expected once, found again (first on line 6)");
	/* Line numbers stay correct after errors and unknown sections. */
	expect("junk\n[oops]\nx=1\ny=2\n" GOOD "[hca]\nidle=never\n", 3,
	       "f:10: idle: expected auto or spin, found \"never\"");
}

static const struct bad_value {
	const char *section, *key, *value;
} bad_values[] = {
	{"hca", "name", ""},
	{"hca", "name", "a/b"},
	{"hca", "name", ".."},
	{"hca", "name", "0123456789abcdef"},
	{"hca", "layout", "RTC"},
	{"hca", "layout", "or"},
	{"hca", "layout", ""},
	{"hca", "idle", "autos"},
	{"hca", "congestion", "nothing"},
	{"hca", "congestion", ""},
	{"hca", "lcores", "1,,2"},
	{"hca", "lcores", "5-3"},
	{"hca", "lcores", "0-100"},
	{"hca", "lcores", "1,"},
	{"hca", "lcores", "x"},
	{"hca", "lcores", "-1"},
	{"hca", "seed", "-1"},
	{"hca", "seed", "1x"},
	{"hca", "seed", "99999999999999999999999"},
	{"port", "mtu", "575"},
	{"port", "mtu", "9217"},
	{"port", "mtu", "0"},
	{"port", "roce_mtu", "3000"},
	{"port", "roce_mtu", "8192"},
	{"port", "mac", "01:00:00:00:00:01"},
	{"port", "mac", "00:00:00:00:00:00"},
	{"port", "mac", "02:00:00:00:00"},
	{"port", "mac", "02:00:00:00:00:01:02"},
	{"port", "mac", "2:0:0:0:0:1"},
	{"port", "rx_descriptors", "1000"},
	{"port", "own_frames", "wire"},
	{"addresses", "address", "10.0.0.2"},
	{"addresses", "address", "10.0.0.2/0"},
	{"addresses", "address", "10.0.0.2/33"},
	{"addresses", "address", "224.0.0.1/4"},
	{"addresses", "address", "127.0.0.1/8"},
	{"addresses", "address", "::1/128"},
	{"addresses", "address", "ff02::1/16"},
	{"addresses", "address", "2001:db8::1/129"},
	{"addresses", "address", "10.0.0.2/24 vlan 0"},
	{"addresses", "address", "10.0.0.2/24 vlan 4095"},
	{"addresses", "address", "10.0.0.2/24 vlan"},
	{"addresses", "address", "10.0.0.2/24 7"},
	{"addresses", "neighbour", "10.0.0.3"},
	{"addresses", "neighbour", "10.0.0.3 02:00:00:00:00"},
	{"addresses", "neighbour", "10.0.0.3/24 02:00:00:00:00:01"},
	{"addresses", "link_local", "true"},
	{"hca", "vendor_id", "0"},
	{"hca", "vendor_id", "0x1000000"},
	{"hca", "vendor_part_id", "65536"},
	{"hca", "hw_ver", "a"},
	{"hca", "fw_ver", "1.2"},
	{"hca", "fw_ver", "1.2.3.4"},
	{"hca", "fw_ver", "1.2.65536"},
	{"hca", "fw_ver", "0.0.0"},
	{"limits", "log_qps", "15"},
	{"limits", "log_qps", "1"},
	{"limits", "clients", "2048"},
	{"quota", "qps", "16385"},
	{"pools", "mbufs", "31"},
	{"pools", "records_per_qp", "257"},
	{"memory", "size_mb", "63"},
	{"memory", "hugepages", "yes"},
	{"memory", "numa_node", "-1"},
	{"control", "mode", "0888"},
	{"port", "socket_mode", "0608"},
	{"port", "socket_mode", "rw"},
	{"control", "mode", "1777"},
	{"control", "mode", ""},
	{"control", "socket", "run/x.sock"},
	{"kernel", "interface", "macvlan"},
	{"kernel", "interface", "virtio-user"},
	{"kernel", "name", "0123456789abcdef"},
	{"admin", "log", "verbose"},
};

static void
values(void **state)
{
	char text[512], message[64];

	(void)state;
	for (size_t i = 0; i < sizeof(bad_values) / sizeof(bad_values[0]); i++) {
		const struct bad_value *b = &bad_values[i];

		snprintf(text, sizeof(text), GOOD "[%s]\n%s = %s\n", b->section, b->key, b->value);
		snprintf(message, sizeof(message), "%s: expected ", b->key);
		expect(text, 1, message);
		if (strstr(said, b->value) == NULL)
			fail_msg("\"%s\" is not named: %s", b->value, said);
	}
}

/* Words in any order; one that is unknown is an error. */
static void
ub_choices(void **state)
{
	struct endpoint_config c;

	assert_int_equal(load(&c, GOOD "[ub]\nchoices =\n"), 0);
	assert_int_equal(c.ub_choices, 0);
	assert_int_equal(load(&c, GOOD "[ub]\nchoices = edge, old_value_le\n"), 0);
	assert_int_equal(c.ub_choices, HCA_UB_SWITCH_EDGE | HCA_UB_SWITCH_OLD_VALUE_LE);
	assert_int_equal(load(&c, GOOD "[ub]\nchoices = no_ofst,clr_eor_text,no_taid\n"), 0);
	assert_int_equal(c.ub_choices, HCA_UB_SWITCH_NO_OFST | HCA_UB_SWITCH_CLR_EOR_TEXT |
					       HCA_UB_SWITCH_NO_TAID);
	assert_int_equal(load(&c, GOOD "[ub]\nchoices = edges\n"), 1);
	assert_int_equal(c.ub_choices, 0);
}

/* On unless it is switched off; its limits are those of the state machines. */
static void
connection_management(void **state)
{
	struct endpoint_config c;

	assert_int_equal(load(&c, GOOD), 0);
	assert_true(c.cm);
#define X(name, def, text) assert_int_equal(c.cm_limits.name, def);
	IBCM_LIMIT_LIST(X)
#undef X
	assert_int_equal(load(&c, GOOD "[cm]\nenabled = no\nids_client = 7\nbacklog = 3\n"), 0);
	assert_false(c.cm);
	assert_int_equal(c.cm_limits.ids_client, 7);
	assert_int_equal(c.cm_limits.backlog, 3);
	expect(GOOD "[cm]\nids = 0\n", 1, "ids: expected 1 to 1048576");
	expect(GOOD "[cm]\nsockets = 1\n", 1, "sockets");
}

static void
devices(void **state)
{
	static const char *const bad[] = {"",	     "eth1",	"net_null0 ", "0000:3b:00",
					  "3b:00.9", "3b:40.0", "net_a b"};
	static const char *const fine[] = {"3b:00.0", "0000:3b:00.0", "net_memif0,role=server",
					   "0000:3b:1f.7,x=1"};
	struct endpoint_config c;
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "[port]\ndevice = %s\n", bad[i]);
		if (load(&c, text) == 0 && strcmp(bad[i], "net_null0 ") != 0)
			fail_msg("\"%s\" was taken", bad[i]);
	}
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
		snprintf(text, sizeof(text), "[port]\ndevice = %s\n", fine[i]);
		if (load(&c, text) != 0)
			fail_msg("\"%s\": %s", fine[i], said);
	}
}

static void
across_keys(void **state)
{
	(void)state;
	expect("[hca]\nname=a\n", 1, "f: device: expected in [port]");
	expect("[port]\ndevice=net_null0\n[addresses]\nlink_local=no\n", 1,
	       "address: expected at least one");
	expect(GOOD "address = 10.0.0.1/16\n", 1, "f:5: address: expected different ones");
	expect(GOOD "[port]\nmtu=1500\nroce_mtu=2048\n", 1,
	       "f:7: roce_mtu: expected at most the MTU of the link less 60, found 2048");
	expect(GOOD "[kernel]\nadopt=yes\n", 1, "f:6: adopt: expected an interface");
	expect(GOOD "[limits]\nclients=5\nclients_per_user=6\n", 1,
	       "f:7: clients_per_user: expected at most clients = 5");
	expect(GOOD "[quota]\nmemory_mb=500\nuser_memory_mb=499\n", 1,
	       "f:7: user_memory_mb: expected at least memory_mb = 500, found 499");
}

static void
no_file(void **state)
{
	struct endpoint_config c;
	FILE *null = fopen("/dev/null", "w");

	(void)state;
	assert_int_equal(endpoint_config_load(&c, "/no/such/file", null), -ENOENT);
	assert_true(endpoint_config_load(&c, "/tmp", null) != 0);
	fclose(null);
}

/* The sample file contains every key, with its default unless the user must choose a value. */
static void
sample_file(void **state)
{
	struct endpoint_config c, d;
	char *text = calloc(1, 65536), key[64];
	FILE *f = fopen(sample, "r");

	(void)state;
	assert_non_null(f);
	assert_true(fread(text, 1, 65535, f) > 0);
	fclose(f);
	/* the user must choose the device: the sample says so */
	assert_non_null(strstr(text, "\n[port]\n"));
	expect(text, 1, "set device = net_af_packet0,iface=eth1");
	strcat(text, "[port]\ndevice = net_null0\n[addresses]\naddress = 192.0.2.1/24\n");
	load(&c, text);
	assert_false(c.impair);
	load(&d, "[port]\ndevice=net_null0\n[addresses]\naddress=192.0.2.1/24\n");
	c.line = d.line; /* the only difference */
	assert_memory_equal(&c, &d, sizeof(c));
	for (unsigned int i = 0; i < config_keys_count; i++) {
		snprintf(key, sizeof(key), "%s =", config_keys[i].name);
		if (strstr(text, key) == NULL)
			fail_msg("[%s] %s is not in the sample", config_keys[i].section,
				 config_keys[i].name);
	}
	free(text);
}

static void
gateways(void **state)
{
	static const char *const good_ones[] = {
		"address=192.0.2.1/24\ngateway=192.0.2.254",
		"address=192.0.2.1/24 vlan 7\ngateway=192.0.2.254 vlan 7",
		"address=2001:db8::1/64\ngateway=2001:db8::ff",
		"address=192.0.2.129/25\ngateway=192.0.2.254",
		"address=192.0.2.1/24\ngateway=fe80::1",
	};
	static const char *const bad_ones[] = {
		"address=192.0.2.1/24\ngateway=192.0.3.254",
		"address=192.0.2.1/25\ngateway=192.0.2.254",
		"address=192.0.2.1/24\ngateway=192.0.2.254 vlan 7",
		"address=2001:db8::1/64\ngateway=192.0.2.254",
		"address=192.0.2.1/24\nlink_local=no\ngateway=fe80::1",
	};
	struct endpoint_config c;
	char text[512];

	(void)state;
	for (unsigned int i = 0; i < 5; i++) {
		snprintf(text, sizeof(text), "[port]\ndevice=net_null0\n[addresses]\n%s\n",
			 good_ones[i]);
		assert_int_equal(load(&c, text), 0);
		snprintf(text, sizeof(text), "[port]\ndevice=net_null0\n[addresses]\n%s\n",
			 bad_ones[i]);
		expect(text, 1, "gateway: expected one within the prefix of an address");
	}
}

/* Checks against the machine report all problems at once, with their lines. */
static void
machine(void **state)
{
	static const char text[] = "[hca]\nlayout=full\nlcores=4000\n"
				   "[port]\ndevice=net_af_packet0,iface=nosuch0\n"
				   "[addresses]\naddress=192.0.2.1/24\n"
				   "[memory]\nhugepages=never\nsize_mb=64\n"
				   "[control]\ngroup=nosuchgroup\n";
	static const char *const lines[] = {
		"FILE:3: lcores: ",
		"FILE:5: device: ",
		"no interface nosuch0",
		"FILE:10: size_mb: ",
		"FILE:12: group: expected a group of this machine, found \"nosuchgroup\"",
	};
	char *text_of = NULL;
	size_t bytes;
	struct endpoint_config c;
	FILE *f = open_memstream(&text_of, &bytes);

	(void)state;
	assert_non_null(f);
	load(&c, text);
	assert_int_equal(endpoint_check(&c, "FILE", true, f), 4);
	fclose(f);
	for (unsigned int i = 0; i < 5; i++)
		if (strstr(text_of, lines[i]) == NULL)
			fail_msg("\"%s\" is not in:\n%s", lines[i], text_of);
	free(text_of);
	load(&c, "[port]\ndevice=net_null0\n[addresses]\naddress=192.0.2.1/24\n");
	assert_int_equal(endpoint_check(&c, "FILE", true, stderr), 0);
}

/* errors: their number. part: of the text that is written; NULL: no text. */
static void
judge_cpus(const char *hca, uint32_t allowed, uint32_t quota_milli, int errors, const char *part)
{
	struct endpoint_cpus cpus = {.online = 16, .allowed = allowed, .quota_milli = quota_milli};
	struct endpoint_config c;
	char text[256], *found = NULL;
	size_t bytes;
	FILE *f = open_memstream(&found, &bytes);

	assert_non_null(f);
	snprintf(text, sizeof(text),
		 "[hca]\n%s\n[port]\ndevice=net_null0\n[addresses]\naddress=192.0.2.1/24\n", hca);
	assert_int_equal(load(&c, text), 0);
	cpus.usable = endpoint_cpus_within(&cpus, allowed);
	assert_int_equal(endpoint_check_cpus(&c, &cpus, "FILE", f), errors);
	fclose(f);
	if (part == NULL)
		assert_string_equal(found, "");
	else if (strstr(found, part) == NULL)
		fail_msg("\"%s\" is not in:\n%s", part, found);
	free(found);
}

/* Programs need a CPU of the mask; the quota is the daemon's alone. */
static void
cpus(void **state)
{
	static const char spin[] = "layout=txrx\nidle=spin";

	(void)state;
	judge_cpus(spin, 4, UINT32_MAX, 0, NULL);
	judge_cpus(spin, 2, UINT32_MAX, 1, "FILE:2: idle: expected a CPU for programs");
	judge_cpus(spin, 16, 2000, 0, NULL);
	judge_cpus(spin, 16, 1500, 0,
		   "FILE:2: warning: layout: 2 workers are throttled by the quota of the control "
		   "group, 1.50 CPUs");
	judge_cpus("layout=txrx", 1, UINT32_MAX, 0, "warning: layout: 2 workers take turns on 1");
	judge_cpus("layout=rtc\nidle=spin", 1, 300, 0, NULL);
}

static void
roce_mtu(void **state)
{
	(void)state;
	assert_int_equal(endpoint_roce_mtu(300), 0);
	assert_int_equal(endpoint_roce_mtu(576), 256);
	assert_int_equal(endpoint_roce_mtu(1500), 1024);
	assert_int_equal(endpoint_roce_mtu(4183), 2048);
	assert_int_equal(endpoint_roce_mtu(4184), 4096);
	assert_int_equal(endpoint_roce_mtu(9000), 4096);
}

/* ---- arguments for DPDK ---- */

static uint32_t
mtu_of_eth1(const char *interface)
{
	return strcmp(interface, "eth1") == 0 ? 4200 : 0;
}

static int
parse(const char *device, uint32_t mtu, struct endpoint_device *d)
{
	struct endpoint_config c;

	endpoint_config_init(&c);
	snprintf(c.device, sizeof(c.device), "%s", device);
	c.mtu = mtu;
	return endpoint_device_parse(&c, mtu_of_eth1, d);
}

static void
option(const struct endpoint_device *d, const char *name, const char *value)
{
	char got[128] = "absent";

	endpoint_device_option(d->args, name, got, sizeof(got));
	assert_string_equal(got, value);
}

static void
device_options(void **state)
{
	struct endpoint_device d;

	(void)state;
	assert_int_equal(parse("net_af_packet0,iface=eth1", 0, &d), 0);
	assert_string_equal(d.name, "net_af_packet0");
	assert_string_equal(d.interface, "eth1");
	assert_int_equal(d.mtu, 4200);
	option(&d, "framesz", "8192");
	option(&d, "blocksz", "65536");
	assert_int_equal(d.data, 8192 + 128);
	assert_int_equal(parse("net_af_packet0,iface=eth1", 1500, &d), 0);
	option(&d, "framesz", "2048");
	assert_int_equal(parse("net_af_packet0,iface=eth1", 9000, &d), -EINVAL);
	assert_int_equal(parse("net_af_packet0,iface=eth9", 0, &d), -EINVAL);
	assert_non_null(strstr(endpoint_reason(), "eth9"));
	assert_int_equal(parse("net_af_packet0", 0, &d), -EINVAL);
	assert_int_equal(parse("net_af_packet0,iface=eth1,framesz=2048", 0, &d), -EINVAL);

	assert_int_equal(parse("net_af_xdp0,iface=eth1", 3306, &d), 0);
	assert_true(d.data_max < 4096);
	assert_int_equal(parse("net_af_xdp0,iface=eth1", 0, &d), -EINVAL);
	assert_non_null(strstr(endpoint_reason(), "the MTU may be 3306 at most"));

	assert_int_equal(parse("net_memif0,role=client,socket=/tmp/x", 0, &d), 0);
	option(&d, "socket-abstract", "no");
	option(&d, "bsize", "4224");
	assert_true(d.data >= 4200 + 14 + 128);
	assert_int_equal(d.traits & ENDPOINT_DEVICE_WAITS, ENDPOINT_DEVICE_WAITS);
	assert_string_equal(d.path, "");
	assert_int_equal(parse("net_memif0,role=server,socket=/tmp/x", 0, &d), 0);
	assert_string_equal(d.path, "/tmp/x");
	assert_int_equal(d.traits & ENDPOINT_DEVICE_WAITS, 0);
	assert_int_equal(parse("net_memif0,socket=/tmp/x", 0, &d), -EINVAL);
	assert_int_equal(parse("net_memif0,role=client,socket=/tmp/x,bsize=2048", 0, &d), -EINVAL);

	assert_int_equal(parse("net_null0", 0, &d), 0);
	option(&d, "no-rx", "1");
	assert_int_equal(d.mtu, 4200);
	assert_int_equal(parse("0000:3b:00.0", 0, &d), 0);
	assert_int_equal(d.traits, ENDPOINT_DEVICE_PCI);
	assert_int_equal(d.mtu, 0);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),
		cmocka_unit_test(every_kind_of_value),
		cmocka_unit_test(syntax),
		cmocka_unit_test(names),
		cmocka_unit_test(values),
		cmocka_unit_test(ub_choices),
		cmocka_unit_test(connection_management),
		cmocka_unit_test(devices),
		cmocka_unit_test(across_keys),
		cmocka_unit_test(no_file),
		cmocka_unit_test(sample_file),
		cmocka_unit_test(roce_mtu),
		cmocka_unit_test(device_options),
		cmocka_unit_test(gateways),
		cmocka_unit_test(machine),
		cmocka_unit_test(cpus),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s SAMPLE\n", argv[0]);
		return 2;
	}
	sample = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
