/* SPDX-License-Identifier: BSD-3-Clause */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "config_keys.h"
#include "config_values.h"
#include "hca.h"

#define AT(f) \
	.at = offsetof(struct endpoint_config, f), .size = sizeof(((struct endpoint_config *)0)->f)

#define NUMBER(s, n, f, lo, hi, d, e) \
	{ \
		.section = s, .name = n, .parse = config_number, AT(f), .min = lo, .max = hi, \
		.preset = d, .expected = e \
	}
#define POWER(s, n, f, lo, hi, d, e) \
	{ \
		.section = s, .name = n, .parse = config_power, AT(f), .min = lo, .max = hi, \
		.preset = d, .expected = e \
	}
#define CHOICE(s, n, f, d, e) \
	{ \
		.section = s, .name = n, .parse = config_choice, AT(f), .preset = d, .expected = e \
	}
#define YES_NO(s, n, f, d) \
	{ \
		.section = s, .name = n, .parse = config_yes_no, AT(f), .preset = d, \
		.expected = "yes or no" \
	}
#define TEXT(s, n, f, d, e) \
	{ \
		.section = s, .name = n, .parse = config_text, AT(f), .text = d, .expected = e \
	}
#define OTHER(s, n, f, fn, e) \
	{ \
		.section = s, .name = n, .parse = fn, AT(f), .expected = e \
	}
#define LIST(s, n, f, fn, e) \
	{ \
		.section = s, .name = n, .parse = fn, AT(f), .expected = e, .repeats = true \
	}

/* clang-format off */
const struct config_key config_keys[] = {
	{.section = "hca", .name = "name", .parse = config_name, AT(name), .text = "softhca0",
	 .expected = "1 to 15 letters, digits, '-', '_' or '.'"},
	CHOICE("hca", "layout", layout, HCA_LAYOUT_RTC, "rtc, txrx or full"),
	CHOICE("hca", "idle", idle, ENDPOINT_IDLE_AUTO, "auto or spin"),
	OTHER("hca", "lcores", cpus, config_cpus, "a list of CPUs like 2,3 or 4-7, or nothing"),
	NUMBER("hca", "seed", seed, 0, UINT64_MAX, 0, "a number"),

	OTHER("port", "device", device, config_device,
	      "a PCI address or a DPDK device like net_af_packet0,iface=eth1"),
	NUMBER("port", "mtu", mtu, 576, 9216, 0, "bytes of an IP packet, 576 to 9216, or auto"),
	POWER("port", "roce_mtu", roce_mtu, 256, 4096, 0, "256, 512, 1024, 2048, 4096 or auto"),
	OTHER("port", "mac", mac, config_mac_key, "a unicast MAC address or device"),
	POWER("port", "rx_descriptors", rx_descriptors, 32, 32768, 1024,
	      "a power of two, 32 to 32768"),
	POWER("port", "tx_descriptors", tx_descriptors, 32, 32768, 1024,
	      "a power of two, 32 to 32768"),
	NUMBER("port", "discard_after_us", discard_after_us, 1, 60000000, 1000000,
	       "microseconds, 1 to 60000000"),
	NUMBER("port", "link_poll_ms", link_poll_ms, 1, 10000, 100, "milliseconds, 1 to 10000"),
	{.section = "port", .name = "socket_mode", .parse = config_mode, AT(wire_mode),
	 .preset = 0600, .expected = "an octal mode like 0600"},

	LIST("addresses", "address", address, config_address,
	     "IP address/prefix, then perhaps \"vlan 1..4094\""),
	YES_NO("addresses", "link_local", link_local, 1),
	LIST("addresses", "gateway", gateway, config_gateway,
	     "IP address, then perhaps \"vlan 1..4094\""),
	LIST("addresses", "neighbour", neighbour, config_neighbour, "IP address and MAC address"),

	NUMBER("limits", "log_qps", log_qps, 4, 14, 14, "4 to 14"),
	NUMBER("limits", "log_cqs", log_cqs, 4, 14, 14, "4 to 14"),
	NUMBER("limits", "log_srqs", log_srqs, 2, 14, 12, "2 to 14"),
	NUMBER("limits", "log_mpts", log_mpts, 6, 17, 17, "6 to 17"),
	NUMBER("limits", "log_mtts", log_mtts, 10, 24, 20, "10 to 24"),
	NUMBER("limits", "clients", clients, 1, 2047, 256, "1 to 2047"),
	NUMBER("limits", "clients_per_user", clients_per_user, 1, 2047, 64, "1 to 2047"),

	NUMBER("quota", "qps", quota.qps, 0, 16384, 0, "0 (a share) to 16384"),
	NUMBER("quota", "cqs", quota.cqs, 0, 16384, 0, "0 (a share) to 16384"),
	NUMBER("quota", "srqs", quota.srqs, 0, 16384, 0, "0 (a share) to 16384"),
	NUMBER("quota", "mrs", quota.mrs, 0, 131072, 0, "0 (a share) to 131072"),
	NUMBER("quota", "pds", quota.pds, 0, 65536, 0, "0 (a share) to 65536"),
	NUMBER("quota", "xrcds", quota.xrcds, 0, 65536, 0, "0 (a share) to 65536"),
	NUMBER("quota", "channels", quota.channels, 0, 65536, 0, "0 (a share) to 65536"),
	NUMBER("quota", "mtts", quota.mtts, 0, 1u << 24, 0, "0 (a share) to 16777216"),
	NUMBER("quota", "segments", quota.segments, 0, 65536, 0, "0 (a share) to 65536"),
	NUMBER("quota", "groups", quota.groups, 0, 65536, 0, "0 (a share) to 65536"),
	NUMBER("quota", "user_share", quota.user_share, 1, 100, 75, "per cent, 1 to 100"),
	NUMBER("quota", "client_share", quota.client_share, 1, 100, 50, "per cent, 1 to 100"),
	NUMBER("quota", "memory_mb", quota_memory_mb, 1, 1u << 24, 16384,
	       "MiB, 1 to 16777216"),
	NUMBER("quota", "user_memory_mb", user_memory_mb, 1, 1u << 24, 65536,
	       "MiB, 1 to 16777216"),

	POWER("pools", "mbufs", mbufs, 512, 1u << 20, 4096, "a power of two, 512 to 1048576"),
	NUMBER("pools", "records", records, 0, 1u << 20, 0,
	       "0 (by the number of QPs) to 1048576"),
	NUMBER("pools", "records_per_qp", records_per_qp, 2, 256, 256, "2 to 256"),
	POWER("pools", "edge_size", edge_size, 64, 65536, 1024, "a power of two, 64 to 65536"),

	CHOICE("memory", "hugepages", hugepages, ENDPOINT_HUGEPAGES_AUTO, "auto, must or never"),
	NUMBER("memory", "size_mb", memory_mb, 64, 1u << 20, 512, "MiB, 64 to 1048576"),
	OTHER("memory", "numa_node", numa_node, config_node, "a NUMA node or any"),
	YES_NO("memory", "slow_memory", slow_memory, 0),
	TEXT("memory", "dpdk_args", dpdk_args, "", "more arguments of the EAL"),

	TEXT("control", "socket", socket, "", "a path of up to 107 characters"),
	{.section = "control", .name = "mode", .parse = config_mode, AT(socket_mode),
	 .preset = 0660, .expected = "an octal mode like 0660"},
	TEXT("control", "group", socket_group, "", "the name of a group"),
	TEXT("control", "privileged_users", privileged_users, "",
	     "names or numbers of users, up to 255 characters"),

	CHOICE("kernel", "interface", kernel, ENDPOINT_KERNEL_NONE, "none, auto or tap"),
	TEXT("kernel", "name", kernel_interface, "", "up to 15 characters"),
	YES_NO("kernel", "adopt", kernel_adopt, 0),

	YES_NO("admin", "telemetry", telemetry, 1),
	YES_NO("admin", "impair", impair, 0),
	CHOICE("admin", "log", log_level, ENDPOINT_LOG_INFO, "error, warning, info or debug"),
};
/* clang-format on */

const unsigned int config_keys_count = sizeof(config_keys) / sizeof(config_keys[0]);

const struct config_key *
config_key_find(const char *section, const char *name)
{
	for (unsigned int i = 0; i < config_keys_count; i++)
		if (strcmp(config_keys[i].section, section) == 0 &&
		    strcmp(config_keys[i].name, name) == 0)
			return &config_keys[i];
	return NULL;
}

bool
config_section_known(const char *section)
{
	for (unsigned int i = 0; i < config_keys_count; i++)
		if (strcmp(config_keys[i].section, section) == 0)
			return true;
	return false;
}

/* ---- names that were probably meant ---- */

#define NAME_MAX_CHARS 32u
#define NEAR 3u /* letters that may differ */

/* Letters to insert, delete or change (Levenshtein); long names are far from everything. */
static unsigned int
distance(const char *a, const char *b)
{
	unsigned int row[NAME_MAX_CHARS + 1], n = (unsigned int)strlen(b), up, diagonal;

	if (n > NAME_MAX_CHARS || strlen(a) > NAME_MAX_CHARS)
		return NAME_MAX_CHARS;
	for (unsigned int j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned int i = 1; a[i - 1] != '\0'; i++) {
		diagonal = row[0];
		row[0] = i;
		for (unsigned int j = 1; j <= n; j++) {
			bool same = tolower((unsigned char)a[i - 1]) ==
				    tolower((unsigned char)b[j - 1]);

			up = row[j];
			row[j] = diagonal + !same;
			if (up + 1 < row[j])
				row[j] = up + 1;
			if (row[j - 1] + 1 < row[j])
				row[j] = row[j - 1] + 1;
			diagonal = up;
		}
	}
	return row[n];
}

static const char *
nearer(const char *name, const char *candidate, const char *best, unsigned int *least)
{
	unsigned int d = distance(name, candidate);

	/* Half of a short name must be right. */
	if (d >= *least || 2 * d > strlen(candidate))
		return best;
	*least = d;
	return candidate;
}

const char *
config_section_nearest(const char *section)
{
	unsigned int least = NEAR + 1;
	const char *best = NULL;

	for (unsigned int i = 0; i < config_keys_count; i++)
		best = nearer(section, config_keys[i].section, best, &least);
	return best;
}

const char *
config_key_nearest(const char *section, const char *name)
{
	unsigned int least = NEAR + 1;
	const char *best = NULL;

	for (unsigned int i = 0; i < config_keys_count; i++)
		if (strcmp(config_keys[i].section, section) == 0)
			best = nearer(name, config_keys[i].name, best, &least);
	return best;
}
