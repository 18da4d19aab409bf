/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_PORT_H
#define ENDPOINT_PORT_H

/*
 * The device of an endpoint, DPDK's or a memif of ours, as a port of the HCA. Owner: endpoint.c,
 * one thread.
 */

#include "endpoint_device.h"
#include "port/port.h"

struct endpoint_port {
	struct endpoint_device device;
	uint16_t id; /* of DPDK; not a memif's */
	bool probed;
	struct hca_port *wire; /* the device itself, which is watched */
	struct hca_port *top;  /* what the HCA uses: the wire, or what stands in front of it */
	uint8_t mac[6];
	uint32_t mtu;	   /* of IP packets */
	uint32_t roce_mtu; /* payload */
	uint32_t speed;	   /* Mb/s, 0 = unknown */
	char driver[32];
};

/* The EAL runs. 0 or negative errno (endpoint_fail). */
int endpoint_port_open(struct endpoint_port *p, const struct endpoint_config *c);
void endpoint_port_close(struct endpoint_port *p);

#endif
