/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_PORT_H
#define ENDPOINT_PORT_H

/*
 * The device of an endpoint, of DPDK or a memif of our own, as a port of the HCA. Owned by
 * endpoint.c, main thread only.
 */

#include "endpoint_device.h"
#include "port/port.h"

struct endpoint_port {
	struct endpoint_device device;
	uint16_t id; /* DPDK's port number; unused for memif */
	bool probed;
	struct hca_port *wire; /* the device itself, for link state */
	struct hca_port *top;  /* the port the HCA uses: wire, or the ports in front of it */
	uint8_t mac[6];
	uint32_t mtu;	   /* of IP packets */
	uint32_t roce_mtu; /* payload bytes */
	uint32_t speed;	   /* Mb/s, 0 = unknown */
	char driver[32];
};

/* Open the device, after the EAL has started. 0 or a negative errno (endpoint_fail). */
int endpoint_port_open(struct endpoint_port *p, const struct endpoint_config *c);
/* Read the speed of the link, which is known when it is up. */
void endpoint_port_take_speed(struct endpoint_port *p);
void endpoint_port_close(struct endpoint_port *p);

#endif
