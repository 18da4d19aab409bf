/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_ETHDEV_H
#define PORT_PORT_ETHDEV_H

/*
 * A port on any DPDK ethdev: one receive and one transmit queue, jumbo frames where the driver
 * offers them, promiscuous off. The mbufs it receives come from its own pool with the private area
 * the engine needs; mbufs of other pools (in-memory ports hand over the sender's) are checked once
 * per pool and copied when they lack it.
 */

#include <stdint.h>

#include "port/port.h"

struct hca_port_ethdev_config {
	uint16_t port_id;	   /* probed, not started */
	uint16_t rx_desc, tx_desc; /* 0: 1024 */
	uint32_t rx_mbufs;	   /* 0: rx_desc + 4 bursts + caches */
	uint32_t mtu;		   /* IP MTU to ask for; 0: leave */
	const char *name;	   /* names the pool */
	int socket_id;
};

int hca_port_ethdev_open(const struct hca_port_ethdev_config *cfg, struct hca_port **out);

/*
 * Two ports joined back to back in memory (net_ring), each an ethdev of its own. depth: frames
 * either direction holds, a power of two.
 */
int hca_port_memory_pair(const char *name, uint32_t depth, int socket_id, struct hca_port *out[2]);

#endif
