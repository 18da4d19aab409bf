/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENDPOINT_LINK_H
#define ENDPOINT_LINK_H

/*
 * Watches the link of a port from the main thread. What it finds is what the engine is told, which
 * raises PORT_CHANGE. A device that waits for its peer is started again and again; one whose peer
 * was lost is stopped and started, while no worker touches it.
 */

#include "endpoint_port.h"

struct hca;

struct endpoint_link {
	struct endpoint_port *port;
	struct hca *hca;
	bool up;		  /* as told last */
	bool peer_lost;		  /* a restart is due */
	uint64_t retry_at;	  /* ns: not before */
	uint64_t downs, restarts; /* how often */
	void (*changed)(void *arg, bool up);
	void *arg;
};

/* Before the workers run the link is what the device says. */
void endpoint_link_init(struct endpoint_link *l, struct endpoint_port *p, struct hca *h,
			void (*changed)(void *arg, bool up), void *arg);

/* While workers still run, if they do: nothing goes in or out any more. Not initialized: nothing. */
void endpoint_link_stop(struct endpoint_link *l);

/* Every link_poll_ms; now in ns, monotonic. */
void endpoint_link_watch(struct endpoint_link *l, uint64_t now);

#endif
