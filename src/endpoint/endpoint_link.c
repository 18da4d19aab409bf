/* SPDX-License-Identifier: BSD-3-Clause */

#include <semaphore.h>
#include <string.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_log.h>

#include "endpoint_driver.h"
#include "endpoint_link.h"
#include "endpoint_log.h"
#include "hca.h"
#include "port/port_ethdev.h"

#define RETRY_NS 200000000u /* a peer that is not there is looked for again */
#define CONNECT_NS \
	700000000u /* one that was found may need so long to answer, or refuse in silence */

static bool
ask(const struct endpoint_port *p)
{
	bool up = hca_port_ethdev_ask_link(p->wire);

	/* Drivers on interfaces of the kernel do not all look at the carrier. */
	if (up && p->device.interface[0] != '\0')
		up = endpoint_netdev_running(p->device.interface);
	hca_port_ethdev_set_link(p->wire, up);
	return up;
}

static void
tell(struct endpoint_link *l, bool up)
{
	if (up == l->up)
		return;
	l->up = up;
	l->downs += !up;
	LOG_INFO("port %s: link %s", l->port->device.name, up ? "up" : "down");
	l->changed(l->arg, up);
	if (!up && (l->port->device.traits & ENDPOINT_DEVICE_RETURNS))
		l->peer_lost = true;
}

/* ---- in the thread of the drivers ---- */

/*
 * Drivers notice a lost peer in DPDK's interrupt thread and tear down there what they had with it,
 * without keeping others out (workers: endpoint_driver.h). Alarms run in that thread: what is called
 * from one cannot meet them.
 */
struct call {
	int (*fn)(struct endpoint_link *l);
	struct endpoint_link *link;
	int result;
	sem_t done;
};

static void
run_call(void *arg)
{
	struct call *c = arg;

	c->result = c->fn(c->link);
	sem_post(&c->done);
}

static int
in_driver_thread(struct endpoint_link *l, int (*fn)(struct endpoint_link *l))
{
	struct call c = {.fn = fn, .link = l};
	int rc;

	sem_init(&c.done, 0, 0);
	rc = rte_eal_alarm_set(1, run_call, &c);
	while (rc == 0 && sem_wait(&c.done) != 0)
		;
	sem_destroy(&c.done);
	return rc == 0 ? c.result : rc;
}

/* That a peer is not there yet is no error, whatever the driver says. */
static int
restart_quietly(struct endpoint_link *l)
{
	uint32_t level = rte_log_get_global_level();
	int rc;

	if (level < RTE_LOG_DEBUG)
		rte_log_set_global_level(RTE_LOG_CRIT);
	rc = hca_port_ethdev_restart(l->port->wire);
	rte_log_set_global_level(level);
	return rc;
}

static int
stop_device(struct endpoint_link *l)
{
	hca_port_ethdev_stop(l->port->wire);
	return 0;
}

/* ---- in the main thread ---- */

static void
pause_port(struct endpoint_link *l)
{
	if (hca_port_ethdev_paused(l->port->wire))
		return;
	hca_port_ethdev_pause(l->port->wire, true);
	hca_wait_workers(l->hca);
}

/* The device stands still while it is restarted, and stays so when that fails. */
static void
restart(struct endpoint_link *l, uint64_t now)
{
	int rc;

	l->retry_at = now + RETRY_NS;
	pause_port(l);
	rc = in_driver_thread(l, restart_quietly);
	if (rc != 0) {
		LOG_DEBUG("port %s: not started: %s", l->port->device.name, strerror(-rc));
		return;
	}
	l->restarts++;
	l->peer_lost = false;
	l->retry_at = now + CONNECT_NS;
	hca_port_ethdev_pause(l->port->wire, false);
}

void
endpoint_link_stop(struct endpoint_link *l)
{
	if (l->port == NULL)
		return;
	/* Nobody connects any more while the driver forgets its socket. */
	if (l->port->device.path[0] != '\0')
		unlink(l->port->device.path);
	pause_port(l);
	if (l->port->device.traits & ENDPOINT_DEVICE_RETURNS)
		in_driver_thread(l, stop_device);
	endpoint_driver_guard(NULL, NULL);
	l->port = NULL;
}

static void
wait_workers(void *h)
{
	hca_wait_workers(h);
}

void
endpoint_link_init(struct endpoint_link *l, struct endpoint_port *p, struct hca *h,
		   void (*changed)(void *arg, bool up), void *arg)
{
	*l = (struct endpoint_link){.port = p, .hca = h, .changed = changed, .arg = arg};
	endpoint_driver_guard(wait_workers, h);
	if (!hca_port_ethdev_paused(p->wire))
		l->up = ask(p);
	LOG_INFO("port %s: link %s%s", p->device.name, l->up ? "up" : "down",
		 hca_port_ethdev_paused(p->wire) ? ", waits for its peer" : "");
}

void
endpoint_link_watch(struct endpoint_link *l, uint64_t now)
{
	bool paused = hca_port_ethdev_paused(l->port->wire), due;

	if (!paused)
		tell(l, ask(l->port));
	due = paused || l->peer_lost;
	if (!l->up && (l->port->device.traits & ENDPOINT_DEVICE_WAITS))
		due = true;
	if (due && now >= l->retry_at)
		restart(l, now);
}
