/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PORT_PORT_ETHDEV_H
#define PORT_PORT_ETHDEV_H

/*
 * A port on any DPDK ethdev: as many receive as transmit queues, jumbo frames if the driver offers
 * them, promiscuous mode off. Received mbufs come from its own pools, one per queue, which have the
 * private area that the engine needs. Mbufs of other pools (net_ring passes on the sender's) are
 * copied if they lack it. A device with several queues distributes frames as port_ethdev_spread.h
 * says.
 */

#include <stdbool.h>
#include <stdint.h>

#include "port/port.h"

#define HCA_PORT_ETHDEV_QUEUES 16u

struct hca_port_ethdev_config {
	uint16_t port_id; /* probed but not started */
	/* each way, at most HCA_PORT_ETHDEV_QUEUES, or as many as the device offers; 0: one */
	uint16_t queues;
	uint16_t rx_desc, tx_desc; /* 0: 1024 */
	uint32_t rx_mbufs;	   /* of each queue; 0: rx_desc + 4 bursts + caches */
	uint32_t mtu;		   /* IP MTU to request; 0: keep the device's */
	bool keep_mtu;		   /* frames of mtu pass, but the device's MTU must not be set */
	uint32_t data_room;	   /* per receive buffer, headroom included; 0: HCA_MBUF_DATA */
	uint32_t data_room_max;	   /* largest data_room, even if longer frames may arrive; 0: any */
	/*
	 * The link state is that of the last hca_port_ethdev_set_link(), the driver's count of lost
	 * frames that of the last hca_port_ethdev_look(): no thread that only reads them enters the
	 * driver or the kernel.
	 */
	bool watched;
	const char *name; /* name of the pool */
	int socket_id;
	/* tells how frames get to several queues; NULL: not told */
	void (*log)(void *arg, bool warning, const char *text);
	void *log_arg;
};

/*
 * Start the device and create its port. 0; -EINVAL: more queues than a port may have; another
 * negative errno of the driver. On failure the device is stopped.
 */
int hca_port_ethdev_open(const struct hca_port_ethdev_config *cfg, struct hca_port **out);

/*
 * The following functions may be called on an open port by one thread of the composition. A paused
 * port passes no frames and has no link. Workers may still be inside a burst after pausing, so call
 * hca_wait_workers() before using the device.
 */
void hca_port_ethdev_pause(struct hca_port *p, bool on);
/* Read the link state of the device; does not change that of the port. */
bool hca_port_ethdev_ask_link(struct hca_port *p);
/* Set the link state that the engine sees; for watched ports. */
void hca_port_ethdev_set_link(struct hca_port *p, bool up);
/* Read the driver's count of lost frames, for hca_port_missed(); for watched ports. */
void hca_port_ethdev_look(struct hca_port *p);

#endif
