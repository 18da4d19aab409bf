/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_LINK_H
#define ENDPOINT_LINK_H

/*
 * Watches the link of a port from the main thread. What it finds is what the kernel interface is
 * told, and for devices of DPDK the engine, which raises PORT_CHANGE. A memif says by itself
 * whether its peer is there.
 */

#include "endpoint_port.h"

struct hca;

struct endpoint_link {
	struct endpoint_port *port;
	struct hca *hca;
	bool up;		 /* as told last */
	bool discarding;	 /* as told last */
	uint64_t downs;		 /* how often */
	uint64_t connects, seen; /* memif: how often a peer came, and as told last */
	void (*changed)(void *arg, bool up);
	void *arg;
};

/* Before the workers run the link is what the device says. */
void endpoint_link_init(struct endpoint_link *l, struct endpoint_port *p, struct hca *h,
			void (*changed)(void *arg, bool up), void *arg);

/*
 * While workers still run, if they do: nothing goes in or out any more. Not initialized: nothing.
 */
void endpoint_link_stop(struct endpoint_link *l);

/* Every link_poll_ms. */
void endpoint_link_watch(struct endpoint_link *l);

#endif
