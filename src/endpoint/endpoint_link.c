/* SPDX-License-Identifier: BSD-3-Clause */

#include <string.h>

#include <rte_log.h>

#include "endpoint_link.h"
#include "endpoint_log.h"
#include "hca.h"
#include "port/port_ethdev.h"

#define RETRY_NS 200000000u /* a peer may need this long to come back */

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

/* That a peer is not there yet is no error, whatever the driver says. */
static int
restart_quietly(struct hca_port *wire)
{
	uint32_t level = rte_log_get_global_level();
	int rc;

	if (level < RTE_LOG_DEBUG)
		rte_log_set_global_level(RTE_LOG_CRIT);
	rc = hca_port_ethdev_restart(wire);
	rte_log_set_global_level(level);
	return rc;
}

/* The device stands still while it is restarted, and stays so when that fails. */
static void
restart(struct endpoint_link *l, uint64_t now)
{
	struct hca_port *wire = l->port->wire;
	int rc;

	l->retry_at = now + RETRY_NS;
	if (!hca_port_ethdev_paused(wire)) {
		hca_port_ethdev_pause(wire, true);
		hca_wait_workers(l->hca);
	}
	rc = restart_quietly(wire);
	if (rc != 0) {
		LOG_DEBUG("port %s: not started: %s", l->port->device.name, strerror(-rc));
		return;
	}
	l->restarts++;
	l->peer_lost = false;
	hca_port_ethdev_pause(wire, false);
}

void
endpoint_link_init(struct endpoint_link *l, struct endpoint_port *p, struct hca *h,
		   void (*changed)(void *arg, bool up), void *arg)
{
	*l = (struct endpoint_link){.port = p, .hca = h, .changed = changed, .arg = arg};
	if (!hca_port_ethdev_paused(p->wire))
		l->up = ask(p);
	LOG_INFO("port %s: link %s%s", p->device.name, l->up ? "up" : "down",
		 hca_port_ethdev_paused(p->wire) ? ", waits for its peer" : "");
}

void
endpoint_link_watch(struct endpoint_link *l, uint64_t now)
{
	bool paused = hca_port_ethdev_paused(l->port->wire);

	if (!paused)
		tell(l, ask(l->port));
	if ((paused || l->peer_lost) && now >= l->retry_at)
		restart(l, now);
}
