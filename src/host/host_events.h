/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_EVENTS_H
#define HOST_EVENTS_H

/*
 * Forwards events from a device's queues to its clients' channels, when workers have their own
 * threads. The worker that wrote the events forwards them itself at the end of its poll, if they
 * are few and it need not wait. A thread forwards the rest; it sleeps until it is urged, and
 * retries without being urged only while events wait for room in a client's pipe.
 *
 * Owned by the composition (src/embed, src/endpoint); its control thread makes all calls but
 * host_events_urge().
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "driver.h"
#include "hca.h"

#define HOST_EVENTS_MAX 16u /* HCAs */

struct host_events_source {
	struct host_events *owner;
	struct hca *h;
	struct hca_driver *drv; /* NULL before host_events_forward() and after host_events_stop() */
};

struct host_events {
	struct host_events_source source[HOST_EVENTS_MAX];
	pthread_t thread;
	bool runs;
	int end;
	uint32_t due __attribute__((aligned(64))); /* 1: there is work for the thread */
};

/*
 * Let the workers of h report events as source i. Before they run; the struct is zeroed initially.
 */
void host_events_watch(struct host_events *ev, uint32_t i, struct hca *h);

/* Start the thread; 0 or a negative errno. */
int host_events_start(struct host_events *ev);

/* From now on drv forwards the events of source i. */
void host_events_forward(struct host_events *ev, uint32_t i, struct hca_driver *drv);

/* End the thread. Workers may still run, but the drivers are not called any more. */
void host_events_stop(struct host_events *ev);

/*
 * hca_driver_config.urge, with the struct as argument: wake the thread. Any thread; never blocks.
 */
void host_events_urge(void *arg);

#endif
