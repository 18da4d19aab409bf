/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_ETHDEV_H
#define PORT_PORT_ETHDEV_H

/*
 * A port on any DPDK ethdev: one receive and one transmit queue, jumbo frames where the driver
 * offers them, promiscuous off. The mbufs it receives come from its own pool with the private area
 * the engine needs; mbufs of other pools (in-memory ports hand over the sender's) are checked once
 * per pool and copied when they lack it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "port/port.h"

struct hca_port_ethdev_config {
	uint16_t port_id;	   /* probed, not started */
	uint16_t rx_desc, tx_desc; /* 0: 1024 */
	uint32_t rx_mbufs;	   /* 0: rx_desc + 4 bursts + caches */
	uint32_t mtu;		   /* IP MTU to ask for; 0: leave */
	bool keep_mtu;		   /* frames of mtu pass, but the device must not be told */
	uint32_t data_room;	   /* per receive buffer, headroom included; 0: HCA_MBUF_DATA */
	uint32_t data_room_max;	   /* that at most, whatever frames may come; 0: any */
	bool watched;		   /* the link is what hca_port_ethdev_set_link() said last */
	const char *name;	   /* names the pool */
	int socket_id;
};

int hca_port_ethdev_open(const struct hca_port_ethdev_config *cfg, struct hca_port **out);

/*
 * What the composition may do to an open port from a thread of its own. Paused, a port gives and
 * takes nothing and has no link; workers may still be inside a burst, so hca_wait_workers() comes
 * between pausing and touching the device.
 */
void hca_port_ethdev_pause(struct hca_port *p, bool on);
/* Asks the device; changes nothing. */
bool hca_port_ethdev_ask_link(struct hca_port *p);
/* Watched ports: what the engine is told. */
void hca_port_ethdev_set_link(struct hca_port *p, bool up);

/*
 * Two ports joined back to back in memory (net_ring), each an ethdev of its own. depth: frames
 * either direction holds, a power of two.
 */
int hca_port_memory_pair(const char *name, uint32_t depth, int socket_id, struct hca_port *out[2]);

#endif
