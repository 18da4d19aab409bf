/* SPDX-License-Identifier: BSD-3-Clause */

#include <unistd.h>

#include "endpoint_link.h"
#include "endpoint_log.h"
#include "graph/sleep.h"
#include "hca.h"
#include "port/port_ethdev.h"
#include "port/port_memif.h"

static bool
is_memif(const struct endpoint_port *p)
{
	return (p->device.traits & ENDPOINT_DEVICE_MEMIF) != 0;
}

static bool
ask(struct endpoint_link *l)
{
	const struct endpoint_port *p = l->port;
	bool up;

	if (is_memif(p))
		return hca_port_memif_connected(p->wire, &l->connects);
	up = hca_port_ethdev_ask_link(p->wire);
	/* Some drivers on kernel interfaces do not check the carrier. */
	if (up && p->device.interface[0] != '\0')
		up = endpoint_netdev_running(p->device.interface);
	hca_port_ethdev_set_link(p->wire, up);
	hca_port_ethdev_look(p->wire);
	return up;
}

static void
tell(struct endpoint_link *l, bool up)
{
	if (up == l->up)
		return;
	l->up = up;
	l->downs += !up;
	hca_kick_all(l->hca);
	LOG_INFO("port %s: link %s", l->port->device.name, up ? "up" : "down");
	l->changed(l->arg, up);
}

void
endpoint_link_stop(struct endpoint_link *l)
{
	if (l->port == NULL)
		return;
	/* Make sure that no peer connects while the driver closes its socket. */
	if (l->port->device.path[0] != '\0')
		unlink(l->port->device.path);
	if (!is_memif(l->port)) {
		hca_port_ethdev_pause(l->port->wire, true);
		hca_wait_workers(l->hca);
	}
	l->port = NULL;
}

/*
 * Report that a present peer accepts no frames: when the first ones are discarded, and when that
 * ends.
 */
static void
log_discarding(struct endpoint_link *l)
{
	bool on = hca_port_discarding(l->hca);

	if (on == l->discarding)
		return;
	l->discarding = on;
	if (on)
		LOG_WARNING(
			"port %s: the other end takes no frames though the link is up: they are "
			"discarded until it does (discard_after_us)",
			l->port->device.name);
	else
		LOG_INFO("port %s: frames are no longer discarded", l->port->device.name);
}

void
endpoint_link_init(struct endpoint_link *l, struct endpoint_port *p, struct hca *h,
		   void (*changed)(void *arg, bool up), void *arg)
{
	bool waits = (p->device.traits & ENDPOINT_DEVICE_WAITS) != 0;

	*l = (struct endpoint_link){.port = p, .hca = h, .changed = changed, .arg = arg};
	l->up = ask(l);
	l->seen = l->connects;
	LOG_INFO("port %s: link %s%s", p->device.name, l->up ? "up" : "down",
		 waits && !l->up ? ", waits for its peer" : "");
}

void
endpoint_link_watch(struct endpoint_link *l)
{
	bool up = ask(l);

	/* A peer disconnected and one connected since the last check: it may be another one. */
	if (l->up && up && l->connects != l->seen)
		tell(l, false);
	l->seen = l->connects;
	tell(l, up);
	log_discarding(l);
}
