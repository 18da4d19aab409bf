/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_DEVICE_H
#define ENDPOINT_DEVICE_H

/*
 * Translates the configured device into arguments of DPDK or of a port of our own. By default,
 * drivers of virtual devices do not carry jumbo frames, fail because of files that a dead process
 * left behind, or cannot start before their peer; a table has the known traits of each driver.
 */

#include <stdbool.h>
#include <stdint.h>

#include "endpoint_config.h"

struct hca_port_memif_config;

/* Properties of a driver; bits. */
enum endpoint_device_trait {
	ENDPOINT_DEVICE_PCI = 1 << 0,
	ENDPOINT_DEVICE_MEMORY = 1 << 1,   /* no wire: frames may be as long as the buffers */
	ENDPOINT_DEVICE_MEMIF = 1 << 2,	   /* a port of our own, not a DPDK device */
	ENDPOINT_DEVICE_WAITS = 1 << 3,	   /* looks for its peer, which may start later */
	ENDPOINT_DEVICE_NETDEV = 1 << 4,   /* uses an interface of the kernel: `interface` */
	ENDPOINT_DEVICE_KEEP_MTU = 1 << 5, /* setting the MTU would change that of the interface */
	ENDPOINT_DEVICE_SHARED = 1 << 6,   /* hands its memory to the peer in few files */
	ENDPOINT_DEVICE_VHOST = 1 << 7,	   /* front-ends of vhost-user connect to it */
};

struct endpoint_device {
	char name[64];	    /* "net_memif0" or the PCI address */
	char args[512];	    /* "role=client,...", defaults added */
	uint32_t traits;    /* enum endpoint_device_trait */
	uint32_t mtu;	    /* of IP packets; 0: the device tells */
	uint32_t data;	    /* least bytes of a receive buffer, headroom included; 0: any */
	uint32_t buffers;   /* receive buffers that the driver holds beyond its descriptors */
	uint32_t data_max;  /* largest size of a receive buffer; 0: any */
	char path[108];	    /* the socket that the device creates; "" if none */
	char interface[16]; /* interface of the kernel; "" if none */
};

/*
 * Translate c->device with c->mtu and c->mac. kernel_mtu: returns the MTU of a kernel interface, 0
 * if it is unknown. Returns 0, or -EINVAL with a reason (endpoint_fail).
 */
int endpoint_device_parse(const struct endpoint_config *c,
			  uint32_t (*kernel_mtu)(const char *interface),
			  struct endpoint_device *out);

/* The value of an option in "a=1,b=2"; false: it is absent. */
bool endpoint_device_option(const char *args, const char *option, char *value, uint32_t size);

/* MTU of a kernel interface in this network namespace; 0: there is no such interface. */
uint32_t endpoint_netdev_mtu(const char *interface);
/* Whether the interface is up and has a carrier. */
bool endpoint_netdev_running(const char *interface);

/* Create the folder of the device's socket, if it is missing. On failure the driver reports it. */
void endpoint_make_folder(const struct endpoint_device *d);

/*
 * Remove a socket file on which no process listens. -EADDRINUSE: a process listens; -EEXIST: it is
 * not a socket.
 */
int endpoint_unlink_stale(const char *path);

/* The configuration of a memif port; 0 or -EINVAL (endpoint_fail). */
int endpoint_device_memif(const struct endpoint_device *d, struct hca_port_memif_config *mc);

#endif
