/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_EVENTS_H
#define HOST_EVENTS_H

/*
 * Who forwards events from the queues of a device to the channels of its clients, where workers
 * have threads of their own. The worker that wrote them does it itself at the end of its poll, if
 * they are few and it need not wait for anybody. What it leaves is for a thread, which sleeps until
 * it is told, and looks again by itself only while a client owes it room in a pipe.
 *
 * Owner: the composition (src/embed, the daemon). Calls come from its control thread.
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
	struct hca_driver *drv; /* NULL: not yet, or not any more */
};

struct host_events {
	struct host_events_source source[HOST_EVENTS_MAX];
	pthread_t thread;
	bool runs;
	int end;
	uint32_t due __attribute__((aligned(64))); /* somebody has something for the thread */
};

/* Before workers run: events of h are those of source i. The struct is zeroed. */
void host_events_watch(struct host_events *ev, uint32_t i, struct hca *h);

/* 0 or negative errno. */
int host_events_start(struct host_events *ev);

/* From now on the events of source i are forwarded by its driver. */
void host_events_forward(struct host_events *ev, uint32_t i, struct hca_driver *drv);

/* Ends the thread; workers run still, but nobody looks at the drivers any more. */
void host_events_stop(struct host_events *ev);

/* For hca_driver_config.urge, with the struct as argument: the thread should look. Never blocks. */
void host_events_urge(void *arg);

#endif
