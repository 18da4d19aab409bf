/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_CONFIG_H
#define ENDPOINT_CONFIG_H

/*
 * The daemon's configuration. Syntax: "[section]" and below it "key = value"; a semicolon starts a
 * comment, "\;" is one that does not. The list below has the keys, in addition to those of
 * hca_limits.h and a few in config_keys.c; config/softhcad.conf explains them.
 *
 * All errors of a file are reported, as "FILE:LINE: key: expected ..., found ...". Nothing here
 * depends on the machine.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "abi_tp.h"
#include "cc/cc_names.h"
#include "driver.h"
#include "endpoint_cpus.h"
#include "hca_limits.h"
#include "ibcm.h"

#define ENDPOINT_NAME_MAX 16u
#define ENDPOINT_DEVICE_MAX 256u
#define ENDPOINT_PATH_MAX 108u /* of a unix socket, with the terminating zero */
#define ENDPOINT_CPUS_MAX 64u
#define ENDPOINT_ADDRESSES_MAX 64u
#define ENDPOINT_NEIGHBOURS_MAX 256u
#define ENDPOINT_NO_VLAN 0xffffu

/*
 * Headers around the payload of the largest packet: IPv6, UDP, BTH, XRCETH, RETH, immediate, ICRC;
 * and without extended and immediate headers, over IPv4: the minimum.
 */
#define ENDPOINT_LARGEST_HEADERS (40u + 8 + 12 + 4 + 16 + 4 + 4)
#define ENDPOINT_MIN_HEADERS (20u + 8 + 12 + 16 + 4)

enum endpoint_idle {
	ENDPOINT_IDLE_AUTO, /* yield if there are more workers than CPUs, else back off and sleep */
	ENDPOINT_IDLE_SPIN,
};

/* Where frames for the own addresses go */
enum endpoint_own_frames {
	ENDPOINT_OWN_FRAMES_DEVICE, /* they do not leave the device */
	ENDPOINT_OWN_FRAMES_PORT,   /* out, for a port that brings them back: faults reach them */
};

enum endpoint_hugepages {
	ENDPOINT_HUGEPAGES_AUTO, /* if enough are free */
	ENDPOINT_HUGEPAGES_MUST,
	ENDPOINT_HUGEPAGES_NEVER,
};

enum endpoint_kernel {
	ENDPOINT_KERNEL_NONE, /* the built-in responder */
	ENDPOINT_KERNEL_AUTO, /* the best kind available: a TAP interface */
	ENDPOINT_KERNEL_TAP,
};

enum endpoint_log {
	ENDPOINT_LOG_ERROR,
	ENDPOINT_LOG_WARNING,
	ENDPOINT_LOG_INFO,
	ENDPOINT_LOG_DEBUG,
};

/* An IP address of the port, in GID form (IPv4: ::ffff:a.b.c.d) and network order. */
struct endpoint_address {
	uint8_t gid[16];
	uint8_t prefix;	  /* bits of the IP address, without ::ffff: */
	uint16_t vlan_id; /* or ENDPOINT_NO_VLAN */
};

/* The gateway for destinations in no prefix, one per IP version and VLAN. */
struct endpoint_gateway {
	uint8_t gid[16];
	uint16_t vlan_id; /* or ENDPOINT_NO_VLAN */
};

struct endpoint_neighbour {
	uint8_t gid[16];
	uint8_t mac[6];
};

/* Lines of the keys that endpoint_check() reports on; 0: not in the file. */
struct endpoint_config_lines {
	uint32_t device, group, layout, pipelines, lcores, memory, hugepages, clients;
};

/*
 * The keys. A row declares the member of struct endpoint_config, and makes the key: its range, its
 * default and the expectation in error messages; of a text its size is the range. A key of a new
 * kind also has a parser in config_values.c.
 *   NUMBER, POWER (of two)(section, name, type, member, min, max, def, expected)
 *   CHOICE(section, name, member, def, expected)  words in the order of their enum
 *   YES_NO(section, name, member, def)
 *   TEXT(section, name, size, member, parse, def, expected)
 *   PARSED(section, name, type, member, parse, def, expected)
 * A number whose default is 0 and below its minimum may be "auto".
 */
#define ENDPOINT_CONFIG_LIST(NUMBER, POWER, CHOICE, YES_NO, TEXT, PARSED) \
	TEXT(hca, name, ENDPOINT_NAME_MAX, name, config_name, "softhca0", \
	     "1 to 15 letters, digits, '-', '_' or '.'") \
	CHOICE(hca, layout, layout, HCA_LAYOUT_RTC, "rtc, txrx or full") \
	TEXT(hca, congestion, HCA_CC_NAME_MAX, congestion, config_congestion, "none", \
	     HCA_CC_NAMES) \
	CHOICE(hca, idle, idle, ENDPOINT_IDLE_AUTO, "auto or spin") \
	NUMBER(hca, seed, uint64_t, seed, 0, UINT64_MAX, 0, "a number") \
	/* 0: auto, until endpoint_settle_pipelines() */ \
	PARSED(hca, pipelines, uint32_t, pipelines, config_pipelines, 1, "1, 2, 4, 8, 16 or auto") \
	PARSED(hca, fw_ver, uint64_t, fw_ver, config_version, HCA_FW_VER_DEFAULT, \
	       "three numbers up to 65535, like 1.2.3") \
	TEXT(port, device, ENDPOINT_DEVICE_MAX, device, config_device, "", \
	     "a PCI address or a DPDK device like net_af_packet0,iface=eth1") \
	/* MTU of IP packets; 0: that of the device */ \
	NUMBER(port, mtu, uint32_t, mtu, 576, 9216, 0, \
	       "bytes of an IP packet, 576 to 9216, or auto") \
	/* payload bytes; 0: the largest that fits mtu */ \
	POWER(port, roce_mtu, uint32_t, roce_mtu, 256, 4096, 0, \
	      "256, 512, 1024, 2048, 4096 or auto") \
	POWER(port, rx_descriptors, uint32_t, rx_descriptors, 32, 32768, 1024, \
	      "a power of two, 32 to 32768") \
	POWER(port, tx_descriptors, uint32_t, tx_descriptors, 32, 32768, 1024, \
	      "a power of two, 32 to 32768") \
	NUMBER(port, discard_after_us, uint32_t, discard_after_us, 1, 60000000, 1000000, \
	       "microseconds, 1 to 60000000") \
	NUMBER(port, link_poll_ms, uint32_t, link_poll_ms, 1, 10000, 100, \
	       "milliseconds, 1 to 10000") \
	CHOICE(port, own_frames, own_frames, ENDPOINT_OWN_FRAMES_DEVICE, "device or port") \
	/* of a socket the device makes: memif, vhost, virtio_user server */ \
	PARSED(port, socket_mode, uint32_t, wire_mode, config_mode, 0600, \
	       "an octal mode like 0600") \
	/* GID 0 is fe80::/64 made of the MAC address */ \
	YES_NO(addresses, link_local, link_local, 1) \
	NUMBER(limits, clients, uint32_t, clients, 1, 2047, 256, "1 to 2047") \
	NUMBER(limits, clients_per_user, uint32_t, clients_per_user, 1, 2047, 64, "1 to 2047") \
	/* between clients of a user whose clients have taken memory away; 0: none */ \
	NUMBER(limits, turn_ms, uint32_t, turn_ms, 0, 500, 500, "milliseconds, 0 to 500") \
	/* of segments one client may attach, and all of a user together */ \
	NUMBER(quota, memory_mb, uint64_t, quota_memory_mb, 1, 1u << 24, 16384, \
	       "MiB, 1 to 16777216") \
	NUMBER(quota, user_memory_mb, uint64_t, user_memory_mb, 1, 1u << 24, 65536, \
	       "MiB, 1 to 16777216") \
	CHOICE(memory, hugepages, hugepages, ENDPOINT_HUGEPAGES_AUTO, "auto, must or never") \
	NUMBER(memory, size_mb, uint32_t, memory_mb, 64, 1u << 20, 512, "MiB, 64 to 1048576") \
	/* -1: any */ \
	PARSED(memory, numa_node, int, numa_node, config_node, UINT32_MAX, "a NUMA node or any") \
	/* of clients that cannot be shared: workers wait for it */ \
	YES_NO(memory, slow_memory, slow_memory, 0) \
	/* files of clients of root and of the daemon's user need no guard */ \
	YES_NO(memory, trust_own, trust_own, 1) \
	TEXT(memory, dpdk_args, ENDPOINT_DEVICE_MAX, dpdk_args, config_text, "", \
	     "more arguments of the EAL") \
	/* "": /run/softhca/NAME.sock */ \
	TEXT(control, socket, ENDPOINT_PATH_MAX, socket, config_text, "", \
	     "a path of up to 107 characters") \
	PARSED(control, mode, uint32_t, socket_mode, config_mode, 0660, "an octal mode like 0660") \
	/* "": the daemon's */ \
	TEXT(control, group, 32, socket_group, config_text, "", "the name of a group") \
	TEXT(control, privileged_users, 256, privileged_users, config_text, "", \
	     "names or numbers of users, up to 255 characters") \
	CHOICE(kernel, interface, kernel, ENDPOINT_KERNEL_NONE, "none, auto or tap") \
	TEXT(kernel, name, 16, kernel_interface, config_text, "", "up to 15 characters") \
	/* addresses are those of the interface, not the ones written here */ \
	YES_NO(kernel, adopt, kernel_adopt, 0) \
	/* UB over Ethernet in addition to RoCE */ \
	YES_NO(ub, enable, ub, 0) \
	/* of the channels to one peer, as the next ones */ \
	NUMBER(ub, tps, uint32_t, ub_tps, 1, 16, 4, "1 to 16") \
	POWER(ub, window, uint32_t, ub_window, 128, 2048, 1024, "a power of two, 128 to 2048") \
	CHOICE(ub, rule, ub_rule, HCA_TP_RULE_TIME, "nak, none, high, mark or time") \
	/* of the receiver; 0: as the rule needs, else enum hca_tp_mode + 1 */ \
	CHOICE(ub, mode, ub_mode, 0, "auto, drop, track or sack") \
	POWER(ub, sack, uint32_t, ub_sack, 64, 1024, 1024, "a power of two, 64 to 1024") \
	/* each further timeout is 2^exponent times as long */ \
	NUMBER(ub, exponent, uint32_t, ub_exponent, 0, 7, 1, "0 to 7") \
	/* source ports that packets of a channel take in turn */ \
	POWER(ub, paths, uint32_t, ub_paths, 1, 256, 1, "a power of two, 1 to 256") \
	NUMBER(ub, reorder_us, uint32_t, ub_reorder_us, 0, 1000000, 0, \
	       "microseconds, 0 (25 with several paths) to 1000000") \
	/* until an unacknowledged packet is sent again; 0: by its round trips */ \
	NUMBER(ub, timeout_us, uint32_t, ub_timeout_us, 0, 2097152, 20000, \
	       "microseconds, 4 to 2097152, or 0") \
	/* bytes of a request that are sent and answered as one */ \
	POWER(ub, segment, uint32_t, ub_segment, 4096, 65536, 65536, \
	      "a power of two, 4096 to 65536") \
	/* HCA_UB_SWITCH_*: choices that the specification leaves open */ \
	PARSED(ub, choices, uint32_t, ub_choices, config_ub_choices, 0, \
	       "words with commas between them: old_value_le, clr_eor_text, edge, no_taid, no_ofst, silent") \
	/* connection management, for librdmacm and softhca_cm_*; its limits: IBCM_LIMIT_LIST */ \
	YES_NO(cm, enabled, cm, 1) \
	YES_NO(admin, telemetry, telemetry, 1) \
	/* stand ready to inject faults and to capture: three calls per burst */ \
	YES_NO(admin, impair, impair, 0) \
	/* answer pings of other daemons */ \
	YES_NO(admin, ping, ping, 1) \
	CHOICE(admin, log, log_level, ENDPOINT_LOG_INFO, "error, warning, info or debug")

struct endpoint_config {
#define NUMBER(section, name, type, member, ...) type member;
#define CHOICE(section, name, member, ...) uint32_t member;
#define YES_NO(section, name, member, ...) bool member;
#define TEXT(section, name, size, member, ...) char member[size];
	ENDPOINT_CONFIG_LIST(NUMBER, NUMBER, CHOICE, YES_NO, TEXT, NUMBER)
#undef NUMBER
#undef CHOICE
#undef YES_NO
#undef TEXT
#define X(section, name, min, max, def) uint32_t name;
	HCA_LIMIT_LIST(X)
#undef X
	struct hca_quota quota;
	struct ibcm_limits cm_limits;

	/* Keys with a parser of their own */
	int cpus[ENDPOINT_CPUS_MAX];
	uint32_t num_cpus;
	bool fewer_pipelines; /* than `pipelines`, if the device has fewer queues: auto */
	uint8_t mac[6];
	bool has_mac; /* else the device's own */
	struct endpoint_address address[ENDPOINT_ADDRESSES_MAX];
	uint32_t num_addresses;
	struct endpoint_neighbour neighbour[ENDPOINT_NEIGHBOURS_MAX];
	uint32_t num_neighbours;
	struct endpoint_gateway gateway[ENDPOINT_ADDRESSES_MAX];
	uint32_t num_gateways;

	struct endpoint_config_lines line;
};

void endpoint_config_init(struct endpoint_config *c);

/*
 * Sets the defaults and reads the file `path` over them. Each error is a line in `errors`; its key
 * keeps the default. Returns the number of errors (0: the file is good), or a negative errno if the
 * file cannot be read, which is also a line in `errors`. Called by the daemon and softhca-ctl
 * doctor.
 */
int endpoint_config_load(struct endpoint_config *c, const char *path, FILE *errors);

/* RoCE payload that fits IP packets of mtu bytes, in the largest form a request has; 0 = none. */
uint32_t endpoint_roce_mtu(uint32_t mtu);
/* The protocols of the HCA: HCA_WIRE_BIT()s */
uint32_t endpoint_wires(const struct endpoint_config *c);
/* MiB of [memory] size_mb that the HCA needs. */
uint64_t endpoint_needed_mib(const struct endpoint_config *c);
/*
 * Select the number of pipelines if it is "auto": the largest power of two whose workers have a
 * CPU each, of `lcores`, else of those allowed (one of which is for programs if workers spin),
 * within the quota, and that size_mb is enough for. The device may have queues for fewer
 * (endpoint.c).
 */
void endpoint_settle_pipelines(struct endpoint_config *c, const struct endpoint_cpus *cpus);
/* Number of workers that the daemon starts with this configuration; "auto" counts as 1. */
uint32_t endpoint_workers(const struct endpoint_config *c);
/* Whether a device is named by its PCI address: [0000:]3b:00.0, maybe with arguments. */
bool endpoint_is_pci(const char *device);

#endif
