/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_DEVICE_H
#define ENDPOINT_DEVICE_H

/*
 * From what the configuration calls a device to what DPDK, or a port of ours, has to be told.
 * Drivers of virtual devices have defaults that do not carry jumbo frames, fail over files that a
 * dead process left behind, or cannot start before their peer: what is known of each stands in one
 * table.
 */

#include <stdbool.h>
#include <stdint.h>

#include "endpoint_config.h"

struct hca_port_memif_config;

/* What a driver can and cannot do; bits. */
enum endpoint_device_trait {
	ENDPOINT_DEVICE_PCI = 1 << 0,
	ENDPOINT_DEVICE_MEMORY = 1 << 1,   /* no wire: any frame size passes that buffers hold */
	ENDPOINT_DEVICE_MEMIF = 1 << 2,	   /* a port of our own, DPDK knows nothing of it */
	ENDPOINT_DEVICE_WAITS = 1 << 3,	   /* looks for its peer, which may come later */
	ENDPOINT_DEVICE_NETDEV = 1 << 4,   /* sits on an interface of the kernel: `interface` */
	ENDPOINT_DEVICE_KEEP_MTU = 1 << 5, /* setting the MTU would change that interface's */
	ENDPOINT_DEVICE_SHARED = 1 << 6,   /* hands its memory to the peer as few files */
};

struct endpoint_device {
	char name[64];	    /* "net_memif0" or the PCI address */
	char args[512];	    /* "role=client,...", completed */
	uint32_t traits;    /* enum endpoint_device_trait */
	uint32_t mtu;	    /* of IP packets; 0: ask the device */
	uint32_t data;	    /* bytes each receive buffer must hold, headroom included; 0: any */
	uint32_t buffers;   /* receive buffers the driver keeps beside its descriptors */
	uint32_t data_max;  /* bytes a receive buffer may have at most; 0: any */
	char path[108];	    /* its socket, when it makes one; "" */
	char interface[16]; /* of the kernel; "" */
};

/*
 * c: device, mtu, mac. kernel_mtu: the MTU of an interface of the kernel by name, 0 = unknown.
 * 0 or -EINVAL with a sentence (endpoint_fail).
 */
int endpoint_device_parse(const struct endpoint_config *c,
			  uint32_t (*kernel_mtu)(const char *interface),
			  struct endpoint_device *out);

/* The value of an option in "a=1,b=2"; false: it is not there. */
bool endpoint_device_option(const char *args, const char *option, char *value, uint32_t size);

/* MTU of an interface of the kernel in this network namespace; 0: there is none. */
uint32_t endpoint_netdev_mtu(const char *interface);
/* It is up and has a carrier. */
bool endpoint_netdev_running(const char *interface);

/*
 * The folder of a device's socket, where it is missing; what cannot be made the driver will miss.
 */
void endpoint_make_folder(const struct endpoint_device *d);

/* Removes a socket file nobody listens on. -EADDRINUSE: somebody does; -EEXIST: it is no socket. */
int endpoint_unlink_stale(const char *path);

/* The arguments of a memif. 0 or -EINVAL (endpoint_fail). */
int endpoint_device_memif(const struct endpoint_device *d, struct hca_port_memif_config *mc);

#endif
