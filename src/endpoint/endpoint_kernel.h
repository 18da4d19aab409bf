/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_KERNEL_H
#define ENDPOINT_KERNEL_H

/*
 * What of the port's traffic is not RoCE, and where addresses come from: a kernel interface or the
 * built-in responder, as configured. Owner: endpoint.c, its thread.
 */

#include "endpoint_port.h"

struct hca_driver;
struct kernif;

struct endpoint_kernif {
	struct kernif *kernif;
	struct endpoint_port *port;
	struct hca_port *divert; /* in front of it */
	bool carrier;		 /* as told last */
};

/* The port is open and the HCA is not there yet: port->top becomes the shared port. */
int endpoint_kernel_open(struct endpoint_kernif *k, const struct endpoint_config *c,
			 struct endpoint_port *port);
/* The workers run: GIDs appear. 0 or negative errno (endpoint_fail). */
int endpoint_kernel_start(struct endpoint_kernif *k, struct hca_driver *drv);
/* The wire's link, as often as it is known. */
void endpoint_kernel_link(struct endpoint_kernif *k, bool up);
/* Before the driver goes. */
void endpoint_kernel_stop(struct endpoint_kernif *k);
/* After the port is closed. */
void endpoint_kernel_close(struct endpoint_kernif *k);

/* hca_resolve_fn; arg: the endpoint_kernif. */
int endpoint_kernel_resolve(void *arg, uint32_t sgid_index, const uint8_t dgid[16],
			    uint8_t dmac[6]);

#endif
