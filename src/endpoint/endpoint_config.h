/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_CONFIG_H
#define ENDPOINT_CONFIG_H

/*
 * The daemon's configuration. Syntax: INI as rte_cfgfile reads it. The table in config_keys.c has
 * the keys with their ranges and defaults; config/softhcad.conf explains them.
 *
 * All errors of a file are reported, as "FILE:LINE: key: expected ..., found ...". Nothing here
 * depends on the machine.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "driver.h"

#define ENDPOINT_NAME_MAX 16u
#define ENDPOINT_DEVICE_MAX 256u
#define ENDPOINT_PATH_MAX 108u /* of a unix socket, with the terminating zero */
#define ENDPOINT_CPUS_MAX 64u
#define ENDPOINT_ADDRESSES_MAX 64u
#define ENDPOINT_NEIGHBOURS_MAX 256u
#define ENDPOINT_NO_VLAN 0xffffu

enum endpoint_idle {
	ENDPOINT_IDLE_AUTO, /* yield if there are more workers than CPUs, else back off and sleep */
	ENDPOINT_IDLE_SPIN,
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
	uint32_t device, group, layout, lcores, memory;
};

struct endpoint_config {
	/* [hca] */
	char name[ENDPOINT_NAME_MAX];
	uint32_t layout; /* enum hca_layout */
	uint32_t idle;	 /* enum endpoint_idle */
	uint64_t seed;
	int cpus[ENDPOINT_CPUS_MAX];
	uint32_t num_cpus;

	/* [port] */
	char device[ENDPOINT_DEVICE_MAX];
	uint32_t mtu;	   /* of IP packets; 0 = the device's */
	uint32_t roce_mtu; /* payload bytes; 0 = the largest that fits mtu */
	uint8_t mac[6];
	bool has_mac; /* false: the device's own is used */
	uint32_t rx_descriptors;
	uint32_t tx_descriptors;
	uint32_t discard_after_us;
	uint32_t link_poll_ms;
	/* mode of a socket that the device creates: memif, vhost, virtio_user server */
	uint32_t wire_mode;

	/* [addresses] */
	struct endpoint_address address[ENDPOINT_ADDRESSES_MAX];
	uint32_t num_addresses;
	struct endpoint_neighbour neighbour[ENDPOINT_NEIGHBOURS_MAX];
	uint32_t num_neighbours;
	struct endpoint_gateway gateway[ENDPOINT_ADDRESSES_MAX];
	uint32_t num_gateways;
	bool link_local; /* GID 0 is fe80::/64, made of the MAC address */

	/* [limits], [quota], [pools] */
	uint32_t log_qps, log_cqs, log_srqs, log_mpts, log_mtts;
	uint32_t clients;
	uint32_t clients_per_user;
	struct hca_quota quota;
	uint64_t quota_memory_mb; /* of memory one client may attach */
	uint64_t user_memory_mb;  /* of memory all clients of a user may attach */
	uint32_t mbufs;
	uint32_t records;
	uint32_t records_per_qp;
	uint32_t edge_size;

	/* [memory] */
	uint32_t hugepages; /* enum endpoint_hugepages */
	uint32_t memory_mb;
	int numa_node; /* -1 = any */
	/* for clients' memory that cannot be shared: workers wait for its pages */
	bool slow_memory;
	char dpdk_args[ENDPOINT_DEVICE_MAX];

	/* [control] */
	char socket[ENDPOINT_PATH_MAX]; /* "" = /run/softhca/NAME.sock */
	uint32_t socket_mode;
	char socket_group[32];	    /* "" = the daemon's group */
	char privileged_users[256]; /* names or numbers, separated by commas or blanks */

	/* [kernel] */
	uint32_t kernel; /* enum endpoint_kernel */
	char kernel_interface[16];
	bool kernel_adopt; /* use the addresses of the interface instead of the configured ones */

	/* [admin] */
	bool telemetry;
	bool impair;	    /* allow fault injection and captures; costs three calls per burst */
	uint32_t log_level; /* enum endpoint_log */

	struct endpoint_config_lines line;
};

void endpoint_config_init(struct endpoint_config *c);

/*
 * Reads path over the defaults. Errors go to `errors`, a line each. Returns their number (0 =
 * good), or a negative errno when the file could not be read (said in `errors` too).
 */
int endpoint_config_load(struct endpoint_config *c, const char *path, FILE *errors);

/* RoCE payload that fits IP packets of mtu bytes, in the largest form a request has; 0 = none. */
uint32_t endpoint_roce_mtu(uint32_t mtu);

#endif
