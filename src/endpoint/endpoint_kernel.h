/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_KERNEL_H
#define ENDPOINT_KERNEL_H

/*
 * The port's traffic that is not RoCE, and the source of addresses: a kernel interface or the
 * built-in responder, as configured. Owned by endpoint.c; main thread only, except
 * endpoint_kernel_resolve() and endpoint_kernel_source().
 */

#include "endpoint_port.h"

struct hca_driver;
struct kernif;

struct endpoint_kernif {
	struct kernif *kernif;
	struct endpoint_port *port;
	struct hca_port *divert; /* the port that splits the traffic */
	bool carrier;		 /* state of the link as last reported */
};

/*
 * Create the shared port on port->top, which it replaces; before the HCA is created. 0 or a
 * negative errno (endpoint_fail).
 */
int endpoint_kernel_open(struct endpoint_kernif *k, const struct endpoint_config *c,
			 struct endpoint_port *port);
/*
 * Start it, which sets the GIDs; after the workers have started. 0 or a negative errno
 * (endpoint_fail).
 */
int endpoint_kernel_start(struct endpoint_kernif *k, struct hca_driver *drv);
/* Report the state of the port's link; may be repeated. */
void endpoint_kernel_link(struct endpoint_kernif *k, bool up);
/* Questions for next hops end at once from now on. */
void endpoint_kernel_hurry(struct endpoint_kernif *k);
/* Stop it, before the driver is destroyed. */
void endpoint_kernel_stop(struct endpoint_kernif *k);
/* Free it, after the port is closed. */
void endpoint_kernel_close(struct endpoint_kernif *k);

/*
 * hca_resolve_fn; arg: the endpoint_kernif. Blocks until the address is resolved; threads of the
 * driver.
 */
int endpoint_kernel_resolve(void *arg, uint32_t sgid_index, const uint8_t dgid[16],
			    uint8_t dmac[6]);
/* hca_source_fn; the same arg and threads. */
int endpoint_kernel_source(void *arg, const uint8_t dgid[16], uint32_t scope, uint32_t *sgid_index);
/* kernif_group(), for connection management; any thread, with any locks held. */
int endpoint_kernel_group(struct endpoint_kernif *k, uint32_t gid_index, const uint8_t mgid[16],
			  bool joined);

#endif
