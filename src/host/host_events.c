/* SPDX-License-Identifier: BSD-3-Clause */

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "host_events.h"

/* Interval of retries for events that found no room: initially, and at most */
#define DEBT_NS 1000000
#define DEBT_MAX_NS 16000000

void
host_events_urge(void *arg)
{
	struct host_events *ev = arg;

	if (__atomic_exchange_n(&ev->due, 1, __ATOMIC_SEQ_CST) == 0)
		syscall(SYS_futex, &ev->due, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Called by a worker at the end of its poll. */
static void
on_events(void *arg, uint32_t eqn_bits)
{
	struct host_events_source *s = arg;
	struct hca_driver *drv = __atomic_load_n(&s->drv, __ATOMIC_ACQUIRE);

	if (drv == NULL || !hca_driver_poll_few(drv))
		host_events_urge(s->owner);
}

/* Forward all events; returns the number of objects with events that found no room. */
static uint32_t
forward_all(struct host_events *ev)
{
	uint32_t owed = 0;

	for (uint32_t i = 0; i < HOST_EVENTS_MAX; i++) {
		struct hca_driver *drv = __atomic_load_n(&ev->source[i].drv, __ATOMIC_ACQUIRE);

		if (drv == NULL)
			continue;
		hca_driver_poll_wait(drv);
		owed += hca_driver_owed(drv);
	}
	return owed;
}

/* Wait for an urge, at most ns nanoseconds; 0: no timeout. */
static void
wait_due(struct host_events *ev, long ns)
{
	struct timespec ts = {.tv_nsec = ns};

	syscall(SYS_futex, &ev->due, FUTEX_WAIT_PRIVATE, 0, ns != 0 ? &ts : NULL, NULL, 0);
}

static void *
events_main(void *arg)
{
	struct host_events *ev = arg;
	uint32_t owed = 0;
	long pause = 0;

	(void)pthread_setname_np(pthread_self(), "hca-events");
	for (;;) {
		uint32_t before = owed;
		bool due = __atomic_exchange_n(&ev->due, 0, __ATOMIC_SEQ_CST) != 0;

		/*
		 * Read after `due` was taken: host_events_stop() sets `end` before `due`, and
		 * nothing sets it back.
		 */
		if (__atomic_load_n(&ev->end, __ATOMIC_ACQUIRE))
			break;
		/* A spurious wakeup costs one look. */
		owed = forward_all(ev);
		if (owed == 0)
			pause = 0;
		else if (due || pause == 0 || owed < before)
			pause = DEBT_NS;
		else if (pause < DEBT_MAX_NS)
			pause *= 2;
		wait_due(ev, pause);
	}
	return NULL;
}

void
host_events_watch(struct host_events *ev, uint32_t i, struct hca *h)
{
	ev->source[i] = (struct host_events_source){.owner = ev, .h = h};
	hca_set_notify(h, on_events, &ev->source[i]);
}

int
host_events_start(struct host_events *ev)
{
	int err = pthread_create(&ev->thread, NULL, events_main, ev);

	ev->runs = err == 0;
	return -err;
}

void
host_events_forward(struct host_events *ev, uint32_t i, struct hca_driver *drv)
{
	__atomic_store_n(&ev->source[i].drv, drv, __ATOMIC_RELEASE);
	host_events_urge(ev); /* events from before this call */
}

void
host_events_stop(struct host_events *ev)
{
	if (ev->runs) {
		__atomic_store_n(&ev->end, 1, __ATOMIC_RELEASE);
		host_events_urge(ev);
		pthread_join(ev->thread, NULL);
		ev->runs = false;
	}
	for (uint32_t i = 0; i < HOST_EVENTS_MAX; i++) {
		struct host_events_source *s = &ev->source[i];

		if (__atomic_exchange_n(&s->drv, NULL, __ATOMIC_SEQ_CST) != NULL)
			/* a worker may still be inside hca_driver_poll_few() */
			hca_wait_workers(s->h);
	}
}
