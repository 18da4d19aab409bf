/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_LINK_H
#define ENDPOINT_LINK_H

/*
 * Watches the link of a port from the main thread and reports it to the kernel interface and, for
 * DPDK devices, to the engine, which raises PORT_CHANGE. (A memif port itself reports whether its
 * peer is connected.) So are the frames that a DPDK device has lost.
 */

#include "endpoint_port.h"

struct hca;

struct endpoint_link {
	struct endpoint_port *port;
	struct hca *hca;
	bool up;		 /* as last reported */
	bool discarding;	 /* as last reported */
	uint64_t downs;		 /* number of times the link went down */
	uint64_t connects, seen; /* memif: number of connections, now and at the last report */
	void (*changed)(void *arg, bool up);
	void *arg;
};

/* Read the initial state, before the workers run; changed() is called for each later change. */
void endpoint_link_init(struct endpoint_link *l, struct endpoint_port *p, struct hca *h,
			void (*changed)(void *arg, bool up), void *arg);

/* Stop all traffic of the port; workers may still run. Does nothing if l is not initialized. */
void endpoint_link_stop(struct endpoint_link *l);

/* Check the link; to be called every link_poll_ms. */
void endpoint_link_watch(struct endpoint_link *l);

#endif
